"""A BERT in NumPy, and 26 ways in which public ones went wrong.

They were written before a look at the table of `diagnose`. Each has the thread that tells of the mistake, and, added
afterwards, its name there, or none.
"""

import math

import numpy as np
from scipy.special import erf

KINDS = {
    "ml-explore/mlx#744": "quick GELU",
    "pytorch/pytorch#24181": "ReLU",
    "harvardnlp/annotated-transformer#119": "norm by n − 1",
    "jadore801120/attention-is-all-you-need-pytorch#17": "norm along the text",
    "Qualcomm-AI-research/geometric-algebra-transformer#8": "norm of all vectors",
    "tracel-ai/burn#2185": "",  # eps of 1e-5 outside the root
    "keras-team/keras-hub#642": "eps 1e-5 in layers",
    "MuQiuJun-AI/bert4pytorch#11": "untrained norms",
    "huggingface/pytorch-image-models#2236": "mask after softmax",
    "georg-wolflein/good-features#1": "mask 0, not −∞",
    "hyunwoongko/transformer#10": "",  # scores of padding at -e
    "ToluClassics/mlx-transformers#23": "no mask",
    "lsdefine/attention-is-all-you-need-keras#16": "mask of queries",
    "deepspeedai/DeepSpeed#1967": "mask added as it is",
    "om-ai-lab/OmDet#19": "",  # attention over the batch
    "Graylab/DL4Proteins-notebooks#12": "by √H",
    "Kyubyong/transformer#49": "",  # ReLU on queries, keys and values
    "stevezheng23/sequence_labeling_tf#81": "key from the query",
    "vllm-project/semantic-router#2249": "transposed output",
    "d2l-ai/d2l-en#2661": "words times √H",
    "huggingface/transformers#1761": "positions from 1",
    "mashrurmorshed/Torch-KWT#13": "norm before adding",
    "deepspeedai/DeepSpeed#1155": "pre-norm",
    "IDEA-Research/DAB-DETR#17": "last layer for all",
    "lucidrains/x-transformers#37": "no last norm",
    "Atcold/NYU-DLSP20#270": "last layer alone",
}


def norm(x, weight, bias, thread, in_layer=True):
    axis = {"jadore801120/attention-is-all-you-need-pytorch#17": 1}.get(thread, -1)
    axis = (1, 2) if thread == "Qualcomm-AI-research/geometric-algebra-transformer#8" else axis
    centred = x - x.mean(axis, keepdims=True)
    std = np.sqrt((centred**2).mean(axis, keepdims=True) + 1e-12)
    if thread == "harvardnlp/annotated-transformer#119":
        std = x.std(-1, keepdims=True, ddof=1) + 1e-6
    if thread == "tracel-ai/burn#2185":
        std = x.std(-1, keepdims=True) + 1e-5
    if thread == "keras-team/keras-hub#642" and in_layer:
        std = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return centred / std if thread == "MuQiuJun-AI/bert4pytorch#11" else centred / std * weight + bias


def attention(x, mask, layer, heads, thread):
    project = {part: layer(f"attention.self.{part}", x) for part in ("query", "key", "value")}
    if thread == "stevezheng23/sequence_labeling_tf#81":
        project["key"] = project["query"]
    if thread == "Kyubyong/transformer#49":
        project = {part: np.maximum(y, 0) for part, y in project.items()}
    if over_batch := thread == "om-ai-lab/OmDet#19":
        project = {part: y.swapaxes(0, 1) for part, y in project.items()}
    batch, length, size = project["query"].shape
    q, k, v = (y.reshape(batch, length, heads, -1).swapaxes(1, 2) for y in project.values())
    scores = q @ k.swapaxes(2, 3) / np.sqrt(size if thread == "Graylab/DL4Proteins-notebooks#12" else size / heads)
    mask = mask[:, None, None].astype(bool)
    if thread == "lsdefine/attention-is-all-you-need-keras#16":
        mask = mask.swapaxes(2, 3)
    fill = {"hyunwoongko/transformer#10": -math.e, "georg-wolflein/good-features#1": 0}.get(thread, -1e9)
    if thread == "deepspeedai/DeepSpeed#1967":
        scores = scores + mask
    elif thread not in ("ToluClassics/mlx-transformers#23", "huggingface/pytorch-image-models#2236") and not over_batch:
        scores = np.where(mask, scores, fill)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    if thread == "huggingface/pytorch-image-models#2236":
        weights = weights * mask
    mixed = (weights @ v).swapaxes(1, 2).reshape(batch, length, size)
    mixed = mixed.swapaxes(0, 1) if over_batch else mixed
    return layer("attention.output.dense", mixed, thread == "vllm-project/semantic-router#2249")


def gelu(x, thread):
    if thread == "ml-explore/mlx#744":
        return x / (1 + np.exp(-1.702 * x))
    if thread == "pytorch/pytorch#24181":
        return np.maximum(x, 0)
    return (x * (1 + erf(x / math.sqrt(2))) / 2).astype(x.dtype)


def bert(weights, ids, mask, types, thread=None, heads=12):
    """Return all hidden states of a BERT that has the mistake of a public thread."""

    def linear(number):
        def apply(name, x, transpose=False):
            weight, bias = (weights[f"encoder.layer.{number}.{name}.{kind}"] for kind in ("weight", "bias"))
            return x @ (weight if transpose else weight.T) + bias

        return apply

    def normalise(name, x, in_layer=True):
        return norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], thread, in_layer)

    words, positions, segments = (
        weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    places = np.arange(ids.shape[1])[None]
    places = np.cumsum(mask, 1) * mask if thread == "huggingface/transformers#1761" else places
    factor = np.float32(math.sqrt(words.shape[1])) if thread == "d2l-ai/d2l-en#2661" else 1
    states = [normalise("embeddings.LayerNorm", words[ids] * factor + positions[places] + segments[types], False)]
    for i in range(count := len({name.split(".")[2] for name in weights if name.startswith("encoder.")})):
        number = count - 1 if thread == "IDEA-Research/DAB-DETR#17" else i
        x = states[0] if thread == "Atcold/NYU-DLSP20#270" else states[-1]
        layer, name = linear(number), f"encoder.layer.{number}"
        for sublayer, place in (attend, "attention.output.LayerNorm"), (feed, "output.LayerNorm"):
            if thread == "deepspeedai/DeepSpeed#1155":
                x = x + sublayer(normalise(f"{name}.{place}", x), mask, layer, heads, thread)
            elif thread == "mashrurmorshed/Torch-KWT#13":
                x = x + normalise(f"{name}.{place}", sublayer(x, mask, layer, heads, thread))
            else:
                x = x + sublayer(x, mask, layer, heads, thread)
                is_last = i == count - 1 and sublayer is feed
                x = x if is_last and thread == "lucidrains/x-transformers#37" else normalise(f"{name}.{place}", x)
        states.append(x)
    return np.stack(states)


def attend(x, mask, layer, heads, thread):
    return attention(x, mask, layer, heads, thread)


def feed(x, mask, layer, heads, thread):
    return layer("output.dense", gelu(layer("intermediate.dense", x), thread))
