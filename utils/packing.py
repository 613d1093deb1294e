"""The same numbers, sooner: texts of different lengths as one row of tokens, and models as ONNX files.

Built in notebook 13; packing is used from notebook 09 on.
"""

import logging
import os
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from utils.batches import device_of, evaluation_mode
from utils.checking import SIZES, require_finite_weights, require_input, require_size
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.saving import write_file

INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # of a model as ONNX, (B, S) each
ASKED_FOR = {
    "output_attentions": ("attentions",),
    "output_hidden_states": ("hidden_states",),
    "output_queries_keys": ("queries", "keys"),
}
MOST_BYTES = 2**31 - 1  # in a file of ONNX, which is one message of protobuf's
NOTES = (
    "max_position_embeddings",
    "vocab_size",
    "type_vocab_size",
)  # of the model, in a file's notes on itself
# onnxruntime's name for the folder in which it looks for weights in other files
FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"
BLOCK, LARGE = 16, 10_000  # numbers that share a scale in 8 bits; numbers from which on a matrix is stored so


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
    outputs that it has not, for weights that are not float32 or not finite, and for more than 2 GB of them;
    ModuleNotFoundError without the packages for it.
    """
    options = {
        "output_attentions": output_attentions,
        "output_hidden_states": output_hidden_states,
        "output_queries_keys": output_queries_keys,
    }
    asked = {option: True for option, wanted in options.items() if wanted}
    names = output_names(model, asked)
    require_exportable(model)
    require_folder(path)
    return write_file(path, onnx_bytes(Stacked(model, **asked), model.config, names))


def require_folder(path: str | os.PathLike) -> None:
    """OSError if a file cannot be written for want of a folder: tracing a model takes long, and would be in vain."""
    if not Path(path).parent.is_dir():
        remedy = "choose a place that you may write"
        raise OSError(f"{path} could not be saved (there is no folder {Path(path).parent}): {remedy}")


def require_exportable(model: nn.Module) -> None:
    """ValueError unless all weights are float32 and finite, and the model has more than one position to trace."""
    for name, weight in model.named_parameters():
        if weight.dtype != torch.float32:
            raise ValueError(f"{name} is {weight.dtype}, and a file holds float32: export model.float()")
    require_finite_weights(dict(model.named_parameters()))
    most = SIZES["max_position_embeddings"]
    require_size("max_position_embeddings", model.config.max_position_embeddings, most, least=2)


def output_names(model: nn.Module, asked: Collection[str]) -> list[str]:
    """What a model gives, of what its options can ask for; errors as in `export_onnx`."""
    kind = type(model).__name__
    if isinstance(model, TransformerEncoder):
        given = {"last_hidden_state"}.union(*(ASKED_FOR[option] for option in asked))
        return [name for name in EncoderOutput._fields if name in given]
    if not isinstance(getattr(model, "encoder", None), TransformerEncoder) or not hasattr(model, "config"):
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
    require_package("onnxscript", "a model becomes ONNX", "onnx onnxscript")
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
    program.model.metadata_props.update({name: str(getattr(config, name)) for name in NOTES})
    return program.model_proto.SerializeToString()


def require_package(name: str, what: str, install: str | None = None) -> None:
    """ModuleNotFoundError that says what a package is for, and how it comes, unless it is installed."""
    if find_spec(name) is None:
        raise ModuleNotFoundError(f"{what} by the package {name}: pip install {install or name}")


class OnnxModel:
    """A file of ONNX, run by onnxruntime on the CPU, and called as the model it was written from.

    With torch's number of threads. OSError for a file that cannot be read, ValueError for one that is no model or names
    other files to read, ModuleNotFoundError without onnxruntime.
    """

    def __init__(self, path: str | os.PathLike):
        require_package("onnxruntime", "a file of ONNX is run")
        import onnxruntime  # here, since only whoever runs files needs it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        content = read_onnx(path)
        with TemporaryDirectory() as nothing:  # the only place where weights in other files are looked for
            options.add_session_config_entry(FOLDER_OF_WEIGHTS, nothing)
            try:
                self.session = onnxruntime.InferenceSession(
                    content, options, providers=["CPUExecutionProvider"]
                )
            except Exception as error:  # a class of its own for each kind of damage, and no common one
                raise not_onnx(path) from error
        notes = self.session.get_modelmeta().custom_metadata_map
        self.sizes = SimpleNamespace(**{name: read_count(notes, name, path) for name in NOTES})

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Three times (B, S) to the file's outputs by name; bad input raises the encoder's errors."""
        require_input(input_ids, attention_mask, token_type_ids, self.sizes)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask != 0
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        arrays = (tensor.long().cpu().numpy() for tensor in (input_ids, mask, types))
        given = dict(zip(INPUTS, arrays, strict=True))
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, map(torch.from_numpy, self.session.run(names, given)), strict=True))


def read_count(notes: dict[str, str], name: str, path: str | os.PathLike) -> int:
    """A count in a file's notes, as large as any where there is none; ValueError for what is no number."""
    count = notes.get(name, str(MOST_BYTES))
    if not re.fullmatch("[0-9]{1,10}", count):
        raise ValueError(
            f"{path} notes {name}={count!r:.80}, which is no count: write it again with export_onnx"
        )
    return int(count)


def read_onnx(path: str | os.PathLike) -> bytes:
    """A file's bytes; OSError, with the remedy, where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise OSError(f"{path} cannot be read ({error}): name a file that export_onnx wrote") from error


def not_onnx(path: str | os.PathLike) -> ValueError:
    """The complaint about a file that holds something else."""
    return ValueError(f"{path} is no model in ONNX, or only a part of one: write it again with export_onnx")


def to_eight_bits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers in blocks of `BLOCK` as codes 0 … 255 (blocks, BLOCK), and each block's scale and lowest (blocks, 1).

    A number is about code · scale + lowest; scale and lowest are float16.
    """
    blocks = values.reshape(-1, BLOCK)
    lowest = blocks.min(axis=1, keepdims=True).astype(np.float16)
    above = blocks - lowest.astype(np.float32)
    scale = (above.max(axis=1, keepdims=True) / 255).astype(np.float16)
    codes = np.rint(above / np.where(scale > 0, scale, 1).astype(np.float32))
    return codes.clip(0, 255).astype(np.uint8), scale, lowest


def load_onnx(path: str | os.PathLike):
    """A file's model as the package onnx holds it, to be altered; errors as in `quantize_onnx`."""
    require_package("onnx", "a file of ONNX is altered")
    import onnx
    from google.protobuf.message import DecodeError  # what onnx itself stands on

    try:
        model = onnx.load_from_string(read_onnx(path))
    except DecodeError as error:
        raise not_onnx(path) from error
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer):
        raise not_onnx(path)  # its weights lie in other files
    return model


def fits_eight_bits(values: np.ndarray) -> bool:
    """Whether numbers come back from 8 bits no further off than a 255th of their whole range."""
    with np.errstate(all="ignore"):  # float16 ends at 65,504
        codes, scale, lowest = to_eight_bits(values)
        restored = codes * scale.astype(np.float32) + lowest
        off = np.abs(restored - values.reshape(-1, BLOCK)).max()
        return bool(off <= (values.max() - values.min()) / 255)


def quantize_onnx(path: str | os.PathLike, target: str | os.PathLike) -> Path:
    """Write a file of ONNX again with its large matrices in 8 bits, a third of the size; return the new file's path.

    Nodes of ONNX's own turn them back into float32 when the file is loaded, so that it needs no special runtime, and
    saves neither time nor memory while it runs. A matrix that 8 bits cannot hold, such as one with numbers above
    65,504, stays as it is. OSError, ValueError and ModuleNotFoundError as in `OnnxModel` and `export_onnx`; ValueError
    also for a matrix with NaN or inf.
    """
    model = load_onnx(path)
    from onnx import numpy_helper

    graph, added = model.graph, []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim == 2:
            require_finite_weights({tensor.name: torch.tensor(values)})
            if values.size >= LARGE and values.size % BLOCK == 0 and fits_eight_bits(values):
                graph.initializer.remove(tensor)
                added += restoring_nodes(graph, tensor.name, values)
    nodes = [*added, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return write_file(target, model.SerializeToString())


def restoring_nodes(graph, name: str, values: np.ndarray) -> list:
    """Put a matrix into a graph in 8 bits, and return the nodes that make it what it was, under its name."""
    from onnx import TensorProto, helper, numpy_helper

    codes, scale, lowest = to_eight_bits(values)
    parts = {"codes": codes, "scale": scale, "lowest": lowest, "shape": np.array(values.shape)}
    graph.initializer.extend(numpy_helper.from_array(part, f"{name}.{kind}") for kind, part in parts.items())
    floats = [
        helper.make_node("Cast", [f"{name}.{kind}"], [f"{name}.{kind}.float"], to=TensorProto.FLOAT)
        for kind in ("codes", "scale", "lowest")
    ]
    return [
        *floats,
        helper.make_node("Mul", [f"{name}.codes.float", f"{name}.scale.float"], [f"{name}.scaled"]),
        helper.make_node("Add", [f"{name}.scaled", f"{name}.lowest.float"], [f"{name}.blocks"]),
        helper.make_node("Reshape", [f"{name}.blocks", f"{name}.shape"], [name]),
    ]
