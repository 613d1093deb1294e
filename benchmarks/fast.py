"""Time fast ways that need preparation, for us and peers alike: torch.compile, and ONNX files in onnxruntime."""

import logging
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertModel

from benchmarks.baselines import SDPA, TORCH, Batch, TorchEncoder, limit, random_bert, require_agreement, runner
from benchmarks.timing import OURS, Work
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.support.batches import collate, token_ids
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import reviews
from utils.support.onnx import OnnxModel, export_onnx, onnx_bytes

PACKED, COMPILED = f"{OURS}, packed", f"{OURS}, compiled"
ONNX, MULTIPLIED = f"{OURS}, ONNX", f"{OURS}, ONNX, multiplied in 8 bits"
PEER_COMPILED, PEER_ONNX = "transformers, sdpa, compiled", "transformers, ONNX"
ROUNDED = (MULTIPLIED,)  # its results do not agree with the others to within 1e-4
SHAPES = {(8, 128): 15, (1, 8): 40, (1, 512): 15}  # (B, S): rounds
NAME, MIXED_ROUNDS = "prepared", 15


class LastHiddenState(nn.Module):
    """An official model that returns only its last hidden state."""

    def __init__(self, model: BertModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Map three inputs (B, S) to the last hidden state (B, S, H)."""
        return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state


def write_files(encoder: TransformerEncoder, official: BertModel, folder: Path) -> dict[str, OnnxModel]:
    """Export our encoder to two files and the official model to one, and open them."""
    from onnxruntime.quantization import quantize_dynamic

    logging.getLogger().setLevel(logging.ERROR)  # quantize_dynamic recommends a step for other models
    paths = {name: folder / f"{index}.onnx" for index, name in enumerate((ONNX, MULTIPLIED, PEER_ONNX))}
    export_onnx(encoder, paths[ONNX])
    quantize_dynamic(paths[ONNX], paths[MULTIPLIED])
    paths[PEER_ONNX].write_bytes(onnx_bytes(LastHiddenState(official), official.config, ["last_hidden_state"]))
    for name, path in paths.items():
        print(f"{name}: {path.stat().st_size / 1e6:.0f} MB", flush=True)
    return {name: OnnxModel(path) for name, path in paths.items()}


def prepared_works(device: str) -> Iterator[Work]:
    """Yield prepared forward passes at BERT-base's size with random weights, on the CPU only."""
    if device != "cpu":
        return
    encoder, official = random_bert(device, torch.float32)
    official.set_attn_implementation("sdpa")
    generator = torch.Generator().manual_seed(0)
    batches = {
        f"{NAME}, {B} × {S}": (
            torch.randint(1000, encoder.config.vocab_size, (B, S), generator=generator).tolist(),
            rounds,
        )
        for (B, S), rounds in SHAPES.items()
    }
    mixed = token_ids(reviews().test.texts[:32], load_tokenizer(), 512)
    batches[f"{NAME}, 32 reviews of mixed length"] = mixed, MIXED_ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(encoder, official, Path(folder))
        for name, (rows, rounds) in batches.items():
            yield Work(name, contestants(encoder, official, files, collate(rows)), rounds)


def contestants(
    encoder: TransformerEncoder, official: BertModel, files: dict[str, OnnxModel], batch: Batch
) -> dict[str, Callable[[], object]]:
    """Return all ways on one batch, compiled for its shape, after checking that the exact ones agree."""
    torch.compiler.reset()
    modules = {
        OURS: encoder,
        COMPILED: torch.compile(deepcopy(encoder), dynamic=False),
        SDPA: official,
        PEER_COMPILED: torch.compile(deepcopy(official), dynamic=False),
        TORCH: TorchEncoder(encoder).eval(),
    }

    found = {name: runner(model, batch) for name, model in modules.items()}
    found[PACKED] = torch.inference_mode()(lambda: encode_packed(encoder, **batch))
    found |= {name: (lambda model=model: model(**batch)["last_hidden_state"]) for name, model in files.items()}
    exact = {name: run for name, run in found.items() if name not in ROUNDED}
    require_agreement(exact, batch["attention_mask"])
    return found | limit(encoder, batch["attention_mask"].sum(dim=1).tolist())
