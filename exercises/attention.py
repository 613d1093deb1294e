"""What the exercises on attention have in common: official models, usual mistakes, masks and padding."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import BertConfig

from exercises.framework import Hint, close, expect
from utils.attention import compute_attention_weights
from utils.support.checkpoint import load_reference_model

if TYPE_CHECKING:
    from transformers import BertModel

IDS = torch.tensor([[101, 2051, 10029, 2066, 2019, 8612, 102], [101, 5909, 102, 0, 0, 0, 0]])


def official_model(hidden_size: int = 0, num_heads: int = 0) -> "BertModel":
    """Return the pretrained model, or one of these sizes whose parameters are so large that mistakes show."""
    if not hidden_size:
        return load_reference_model()
    from transformers import BertModel  # here: it takes as long to import as torch

    sizes = {"hidden_size": hidden_size, "num_attention_heads": num_heads, "num_hidden_layers": 2}
    small = {"vocab_size": 41, "intermediate_size": 16, "max_position_embeddings": 16}
    config = BertConfig(**sizes, **small, initializer_range=0.5, attn_implementation="eager")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config).eval()
        with torch.no_grad():
            for vector in (parameter for parameter in model.parameters() if parameter.dim() == 1):
                vector += 0.3 * torch.randn(vector.shape)  # biases of 0 and gains of 1 would all be alike
        return model


def batch_for(model: "BertModel") -> tuple[Tensor, Tensor]:
    """Return ids of two texts, the second one padded, that fit the model's vocabulary; and their attention mask."""
    ids = IDS % model.config.vocab_size
    return ids, (IDS != 0).long()


NARROW_MASK = (
    "The mask (B, S) does not fit the scores {scores}. It hides keys from all queries, so give it dimensions of "
    "size 1, {fit}."
)


def describes_sizes(error: RuntimeError) -> bool:
    """Return whether an error of torch says that two shapes do not broadcast."""
    return any(words in str(error) for words in ("must match the size of tensor", "is not broadcastable", "broadcast"))


def wrong_weights(query: Tensor, key: Tensor, hidden_size: int, num_heads: int = 1) -> Iterator[tuple[str, Tensor]]:
    """Yield pairs of a hint and the attention weights of a typical mistake, from query and key (…, S, D)."""
    D, products = query.size(-1), query @ key.transpose(-2, -1)
    scores = products / D**0.5
    yield "The scores are not scaled. Divide them by √D.", products.softmax(-1)
    yield (
        "The scores are divided by √H. A head sums D products, so divide by √D.",
        (products / hidden_size**0.5).softmax(-1),
    )
    yield (
        "The scores are divided by √A, the number of heads. Divide by √D, the size of a head.",
        (products / num_heads**0.5).softmax(-1),
    )
    yield "The scores are divided by D. Divide them by its square root, √D.", (products / D).softmax(-1)
    yield "The scores are multiplied by √D. Divide them by it.", (products * D**0.5).softmax(-1)
    yield "These are the scores. Softmax over the keys is missing.", scores
    shares = scores.flatten().softmax(0).view_as(scores)
    yield (
        "All weights together sum to 1, but those of each query should: sum(-1, keepdim=True), or softmax(-1).",
        shares,
    )
    yield "Softmax runs over the queries. The keys are the last dimension, dim=-1.", scores.softmax(-2)
    yield ("Softmax runs over the texts of the batch. The keys are the last dimension, dim=-1.", scores.softmax(0))
    yield ("Query and key are swapped. A row of the scores belongs to a query.", scores.transpose(-2, -1).softmax(-1))


def divided_by(weights: Tensor, products: Tensor) -> float | None:
    """Return the number by which products were divided before these softmax weights, or None if there is none."""
    logs, centred = weights.log(), products - products.mean(-1, keepdim=True)
    divisor = ((centred**2).sum() / (centred * logs).sum()).item()
    return divisor if divisor > 0 and close(weights, (products / divisor).softmax(-1), 1e-4) else None


def wrong_scale(weights: Tensor, products: Tensor, D: int) -> str:
    """Return a hint for weights of scores that are not divided by √D, or that are divided too late; "" for others."""
    if (divisor := divided_by(weights, products)) is not None:
        power = " In Python, D ** 1 / 2 is (D ** 1) / 2: write D ** 0.5." * (abs(divisor - 2 * D) < 0.01 * D)
        return (
            f"The scores are divided by {divisor:.3g}, but √D is {D**0.5:.3g} here: D is the last size of the query, "
            f"query.size(-1), and it is {D} here.{power}"
        )
    total = weights.sum(-1)
    if close(total, total.mean().expand_as(total), 1e-3) and not close(total, torch.ones_like(total), 1e-3):
        return f"Each row of the weights sums to {total.mean():.2g}, not to 1. Divide the scores, before the softmax."
    return ""


def low_scores(width: int, D: int) -> tuple[Tensor, Tensor]:
    """Return states (2, 3, width) and their mask (2, 3): padding ends the first text, and begins the second.

    If every query is (1, …, 1) and every key D times its state's first coordinate, real tokens have the score −200,
    and padding has 0.
    """
    mask = torch.tensor([[1, 1, 0], [0, 1, 1]])
    return (mask * (-200 / D**0.5))[..., None].repeat(1, 1, width), mask


def expect_nothing_on_padding(run: Callable, parts, hidden_size: int, D: int) -> None:
    """Raise `Hint` if padding gets a weight where the scores of real tokens are lower than its own.

    `run` gives the weights for states and mask; the query and key layers of `parts` are overwritten.
    """
    with torch.no_grad():
        for layer, first, bias in ((parts.query, 0.0, 1.0), (parts.key, 1.0, 0.0)):
            layer.weight.zero_()
            layer.weight[:, 0] = first
            layer.bias.fill_(bias)
    hides_padding(run(*low_scores(hidden_size, D)))


def hides_padding(weights: Tensor) -> None:
    """Raise `Hint` unless the weights that `low_scores` gave leave padding out."""
    weights = torch.as_tensor(weights)
    expect(
        not weights.isnan().any(),
        "A row of weights is nan if the scores of real tokens are low, such as −200, and padding has the largest "
        "score: the real tokens' weights are then 0, and so is their sum. Set masked scores to −inf before the "
        "softmax, and before you take the maximum of the row. With exp and sum, subtract this maximum first, or call "
        "softmax, which does.",
    )
    expect(
        weights[0, ..., -1].max() < 1e-7,
        "Padding still gets some weight if the scores of real tokens are low, such as −200. Hide it with −inf "
        "(-math.inf), which is below every score, before the softmax.",
    )
    expect(
        weights[1, ..., 0].max() < 1e-7,
        "A text may begin with padding, which then gets some weight. Hide the keys at which the mask is 0, wherever "
        "they are.",
    )


class Parts(torch.nn.Module):
    """What the reader's forward gets: all of a MultiHeadAttention that a part may use, without a forward of its own."""

    compute_attention_weights = staticmethod(compute_attention_weights)

    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(hidden_size, hidden_size) for _ in range(4))
        self.num_heads = num_heads
        self.requires_grad_(False)

    def split_heads(self, x: Tensor) -> Tensor:
        """Split (B, S, H) into heads, (B, A, S, D)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def load(self, layer) -> None:
        """Copy the parameters of an official layer's attention."""
        for name in ("query", "key", "value"):
            getattr(self, name).load_state_dict(getattr(layer.attention.self, name).state_dict())
        self.output.load_state_dict(layer.attention.output.dense.state_dict())


def returned_pair(result):
    """Return the output and the weights; a `Hint` if there are not two."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("Return two tensors: the output and the attention weights.")
    return result


def expect_no_additive(result: Tensor, wanted: Tensor) -> None:
    """Raise `Hint` for a mask with 0 where a token may look and much below 0 elsewhere."""
    additive = result.dtype != torch.bool and torch.equal(result == 0, wanted) and (result[~wanted] < -1).all()
    expect(
        not additive or wanted.all(),
        "The positions are right, but this mask, with 0 where a token may look, would be added. Return booleans.",
    )
