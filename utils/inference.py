"""The same numbers, sooner: texts of different lengths as one row of tokens, and models as ONNX files.

Packing is used from notebook 09 on.
"""

import logging
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from utils.batches import device_of, evaluation_mode
from utils.checking import require_input
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.saving import write_file

INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # of a model as ONNX, (B, S) each
ASKED_FOR = {
    "output_attentions": ("attentions",),
    "output_hidden_states": ("hidden_states",),
    "output_queries_keys": ("queries", "keys"),
}
MOST_BYTES = 2**31 - 1  # in a file of ONNX, which is one message of protobuf's


class TextBoundaries(TorchFunctionMode):
    """While it is active, torch's fused attention keeps the texts of a packed row apart.

    `lengths` are the texts' numbers of tokens, in order. Texts of the same length that stand together share a call.
    """

    def __init__(self, lengths: Sequence[int]):
        super().__init__()
        self.groups = [(len(list(same)), length) for length, same in groupby(lengths)]
        self.calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Run any torch function as it is, but fused attention on each group: (1, A, N, D) to (1, A, N, D)."""
        if function is not F.scaled_dot_product_attention:
            return function(*args, **(kwargs or {}))
        self.calls += 1
        sizes = [texts * length for texts, length in self.groups]  # tokens in each group
        pieces = [x[0].split(sizes, dim=1) for x in args[:3]]  # of query, key and value, (A, N, D) each
        context = []
        for group, *parts in zip(self.groups, *pieces, strict=True):
            query, key, value = (part.unflatten(1, group) for part in parts)  # (A, texts, length, D)
            context.append(function(query, key, value, *args[3:], **(kwargs or {})).flatten(1, 2))
        return torch.cat(context, dim=1)[None]


def encode_packed(
    encoder: TransformerEncoder,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    token_type_ids: Tensor | None = None,
) -> Tensor:
    """The encoder's last_hidden_state (B, S, H) of a padded batch, whose padding skips the layers and comes out as 0.

    The layers get the real tokens of all texts as one row (1, N, H). ValueError for a bad mask, and for an encoder
    whose attention is not torch's fused one, which alone knows here where a text ends.
    """
    require_input(input_ids, attention_mask, token_type_ids, encoder.config)
    embedded = encoder.embeddings(input_ids, token_type_ids)  # (B, S, H)
    real = torch.ones_like(input_ids) != 0 if attention_mask is None else attention_mask != 0  # (B, S)
    packed = embedded[real][None]  # (1, N, H)
    with TextBoundaries(real.sum(dim=1).tolist()) as boundaries:
        for layer in encoder.layers:
            packed, _ = layer(packed)
    if boundaries.calls != len(encoder.layers):
        fused = f"{boundaries.calls} of {len(encoder.layers)} layers used torch's fused attention"
        raise ValueError(
            f"{fused}, so texts were mixed: pad them, as encoder(input_ids, attention_mask) does"
        )
    return torch.zeros_like(embedded).masked_scatter(real[:, :, None], packed)


class Stacked(nn.Module):
    """A model whose outputs are single tensors, as ONNX has them: what each layer gives is stacked, layers first."""

    def __init__(self, model: nn.Module, **options: bool):
        super().__init__()
        self.model, self.options = model, options

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> tuple[Tensor, ...]:
        """Three times (B, S) to what was asked for."""
        output = self.model(input_ids, attention_mask, token_type_ids, **self.options)
        outputs = (output,) if isinstance(output, Tensor) else output
        return tuple(torch.stack(x) if isinstance(x, tuple) else x for x in outputs if x is not None)


def export_onnx(
    model: nn.Module,
    path: str | os.PathLike,
    *,
    output_attentions: bool = False,
    output_hidden_states: bool = False,
    output_queries_keys: bool = False,
) -> Path:
    """Write an encoder, or a model on one, as ONNX, which runs without this project and without torch; return the path.

    Inputs are input_ids, attention_mask (1 = real token) and token_type_ids, int64 of any (B, S) up to the model's
    positions; the file looks at no values. Outputs are last_hidden_state (B, S, H) or a classifier's logits
    (B, num_labels), and of an encoder what is asked for, layers first: hidden_states (L + 1, B, S, H), attentions
    (L, B, A, S, S), queries and keys (L, B, A, S, D). In evaluation mode, whichever the model is in, in which it is
    left. Written whole or not at all: OSError where it cannot be. TypeError for what is no such model, ValueError for
    outputs that it has not and for more than 2 GB of weights, ModuleNotFoundError without the packages for it.
    """
    options = {
        "output_attentions": output_attentions,
        "output_hidden_states": output_hidden_states,
        "output_queries_keys": output_queries_keys,
    }
    asked = {option: True for option, wanted in options.items() if wanted}
    names = output_names(model, asked)
    return write_file(path, onnx_bytes(Stacked(model, **asked), model.config, names))


def output_names(model: nn.Module, asked: Collection[str]) -> list[str]:
    """What a model gives, of what its options can ask for; errors as in `export_onnx`."""
    kind = type(model).__name__
    if isinstance(model, TransformerEncoder):
        given = {"last_hidden_state"}.union(*(ASKED_FOR[option] for option in asked))
        return [name for name in EncoderOutput._fields if name in given]
    if not isinstance(getattr(model, "encoder", None), TransformerEncoder):
        raise TypeError(f"a {kind} cannot be exported: pass a TransformerEncoder, or a model on one")
    if asked:
        raise ValueError(f"a {kind} gives logits, and {', '.join(asked)} ask for more: export its .encoder")
    return ["logits"]


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Errors only: torch's exporter warns of its own old code, and of packages that no model here needs."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def onnx_bytes(model: nn.Module, config, output_names: Sequence[str]) -> bytes:
    """A module that takes `INPUTS`, any number of texts of any length up to the configuration's, as a file of ONNX.

    In evaluation mode. ValueError for more weights than such a file holds, ModuleNotFoundError without onnxscript.
    """
    if find_spec("onnxscript") is None:
        raise ModuleNotFoundError(
            "a model becomes ONNX by the package onnxscript: pip install onnx onnxscript"
        )
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    if size > MOST_BYTES:
        raise ValueError(
            f"the weights take {size / 2**30:.1f} GB, and a file of ONNX holds 2: use a smaller model"
        )
    shape = (2, min(7, config.max_position_embeddings))
    ids, mask, types = (torch.ones(shape, dtype=torch.long, device=device_of(model)) for _ in INPUTS)
    sizes = {0: Dim("batch"), 1: Dim("length", max=config.max_position_embeddings)}
    with evaluation_mode(model), torch.no_grad(), quiet_exporter():
        program = torch.onnx.export(
            model,
            (ids, mask, types),  # one tensor three times would be one input
            input_names=INPUTS,
            output_names=output_names,
            dynamic_shapes=(sizes,) * len(INPUTS),
            dynamo=True,
            verbose=False,
        )
    return program.model_proto.SerializeToString()
