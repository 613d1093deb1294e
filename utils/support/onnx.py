"""Export models as ONNX files, which run without torch and without this project. Used in notebook 13."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.export import Dim

from utils.support.batches import device_of, evaluation_mode
from utils.support.checkpoint import wrap_read_errors
from utils.support.checks import check_finite_weights, check_size, checked_mask
from utils.support.files import as_path, write_file
from utils.support.tables import existing_file

INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # (B, S) each
METADATA_FIELDS = ("max_position_embeddings", "vocab_size", "type_vocab_size")  # sizes of the model, stored in the file
REMEDY = "write it again with export_onnx"
MAX_BYTES = 2**31 - 2**24  # protobuf's limit, less the graph


class OnnxOutputs(nn.Module):
    """Wrap a model so that each output is a single tensor, as in ONNX: the tensors of all layers are stacked."""

    def __init__(self, model: nn.Module, **options: bool):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
        """Turn three (B, S) tensors into the requested outputs."""
        output = self.model(input_ids, attention_mask, token_type_ids, **self.options)
        outputs = (output,) if isinstance(output, Tensor) else output
        return tuple(torch.stack(x) if isinstance(x, tuple) else x for x in outputs if x is not None)


def export_onnx(model: nn.Module, path: str | os.PathLike, *, output_attentions: bool = False) -> Path:
    """Export an encoder, or a model with an encoder, as an ONNX file, and return its path.

    Inputs are input_ids, attention_mask (1 = real token) and token_type_ids, int64 (B, S) for any B and any S up to the
    model's positions. The file does not check their values: a row whose mask is 0 everywhere, which the model refuses,
    gets meaningless vectors (in onnxruntime finite ones, or NaN in a file with attentions). Outputs are the logits of a
    model with a head, or an encoder's last_hidden_state (B, S, H) and, if requested, attentions (L, B, A, S, S). The
    export is in evaluation mode, and the model's own mode stays. The file is written atomically: OSError if that fails.
    TypeError for any other model, ValueError for outputs that the model does not have, and for weights that are not
    finite, not float32 or larger than 2 GB.
    """
    options = {"output_attentions": True} if output_attentions else {}
    names = output_names(model, options)
    check_size("max_position_embeddings", model.config.max_position_embeddings, minimum=2)
    for name, weight in model.named_parameters():
        if weight.dtype != torch.float32:
            raise ValueError(f"{name} is {weight.dtype}, but only float32 can be exported: export model.float()")
    if (size := sum(weight.nbytes for weight in model.parameters())) > MAX_BYTES:
        raise ValueError(
            f"the weights take {size / 1e9:.1f} GB, but an ONNX file holds 2 GB at most: call torch.onnx.export with "
            "a path, which writes them to a second file"
        )
    check_finite_weights(dict(model.named_parameters()))
    write_file(path, b"", dry_run=True)  # before tracing, which takes long
    return write_file(path, onnx_bytes(OnnxOutputs(model, **options), model.config, names))


def output_names(model: nn.Module, options: dict[str, bool]) -> list[str]:
    """Return the names of an encoder's outputs with these options, or ["logits"]; raise the errors of `export_onnx`."""
    kind, encoder = type(model).__name__, getattr(model, "encoder", model)
    is_decoder = getattr(getattr(model, "config", None), "is_decoder", True)
    if is_decoder or not hasattr(encoder, "load_bert_weights"):
        raise TypeError(f"a {kind} cannot be exported: pass a TransformerEncoder, or a model that has one")
    if encoder is not model:
        if options:
            raise ValueError(f"a {kind} returns only logits, without {', '.join(options)}: export its .encoder")
        return ["logits"]
    with evaluation_mode(model), torch.no_grad():
        output = model(torch.zeros(1, 1, dtype=torch.long, device=device_of(model)), **options)
    return [name for name, value in output._asdict().items() if value is not None]


def onnx_bytes(model: nn.Module, config, output_names: Sequence[str]) -> bytes:
    """Return a module that takes `INPUTS` as the content of an ONNX file, in evaluation mode.

    It takes any number of texts of any length up to the configuration's. `config` is the BertConfig whose sizes are
    stored in the file, so that `OnnxModel` can check its input.
    """
    shape = (2, min(7, config.max_position_embeddings))
    ids, mask, types = (torch.ones(shape, dtype=torch.long, device=device_of(model)) for _ in INPUTS)
    sizes = {0: Dim("batch"), 1: Dim("length", max=config.max_position_embeddings)}
    with evaluation_mode(model), torch.no_grad(), quiet_exporter():
        program = torch.onnx.export(
            model,
            (ids, mask, types),  # the same tensor three times would become a single input
            input_names=INPUTS,
            output_names=output_names,
            dynamic_shapes=(sizes,) * len(INPUTS),
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props.update({name: str(getattr(config, name)) for name in METADATA_FIELDS})
    return program.model_proto.SerializeToString()


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silence warnings: torch's exporter warns of its own deprecated code, and of packages that no model here needs."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def read_onnx(path: str | os.PathLike, content: bytes):
    """Return the model in an ONNX file as the package onnx reads it; ValueError for damaged and for split files."""
    import onnx

    with wrap_read_errors(path):
        model = onnx.load_from_string(content)
    constants = (attribute.t for node in model.graph.node for attribute in node.attribute)
    if any(tensor.external_data for tensor in (*model.graph.initializer, *constants)):
        raise ValueError(f"{path} stores its weights in another file: {REMEDY}")
    return model


class OnnxModel:
    """Run an ONNX file with onnxruntime, on the CPU with torch's number of threads, and call it like its model.

    FileNotFoundError for a missing file, ValueError if it does not contain a model.
    """

    def __init__(self, path: str | os.PathLike):
        import onnxruntime  # here, because only running files needs it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        content = existing_file(as_path(path), "an ONNX file").read_bytes()
        read_onnx(path, content)
        with wrap_read_errors(path):
            self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        notes = self.session.get_modelmeta().custom_metadata_map
        if not all(notes.get(name, "").isdecimal() for name in METADATA_FIELDS):
            raise ValueError(f"{path} does not contain the sizes of its model: {REMEDY}")
        self.sizes = SimpleNamespace(**{name: int(notes[name]) for name in METADATA_FIELDS})

    def __call__(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Turn three (B, S) tensors into the outputs by name; invalid input raises the encoder's errors."""
        checked_mask(input_ids, attention_mask, token_type_ids, self.sizes)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask != 0
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        arrays = [tensor.long().cpu().numpy() for tensor in (input_ids, mask, types)]
        names = [output.name for output in self.session.get_outputs()]
        found = self.session.run(names, dict(zip(INPUTS, arrays, strict=True)))
        return {name: torch.from_numpy(values) for name, values in zip(names, found, strict=True)}
