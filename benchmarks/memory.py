"""Peak memory of a forward pass against the number of tokens, each in a process of its own."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from benchmarks.peers import EAGER, SDPA
from benchmarks.timing import OURS
from utils.encoder import TransformerEncoder

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
WITH_WEIGHTS = f"{OURS}, attention weights asked for"
CONTESTANTS = (OURS, WITH_WEIGHTS, SDPA, EAGER)
LAYERS = 2  # of BERT-base's size: what one layer needs is freed before the next


def peak_memory(name: str, length: int, device: str) -> float:
    """Megabytes that a forward pass of one text adds to what was in use before; Linux and CUDA can tell."""
    config = BertConfig(num_hidden_layers=LAYERS, max_position_embeddings=length)
    options = {"output_attentions": True} if name == WITH_WEIGHTS else {}
    if name in (OURS, WITH_WEIGHTS):
        model = TransformerEncoder(config)
    else:
        config._attn_implementation = "sdpa" if name == SDPA else "eager"
        model = BertModel(config)
    model.eval().to(device)
    ids = torch.zeros(1, length, dtype=torch.long, device=device)
    with torch.inference_mode():
        model(ids[:, :8])  # what is allocated once
        before = start_watching(device)
        model(ids, **options)
    return (highest(device) - before) / 1e6


def start_watching(device: str) -> int:
    """Bytes in use now; from here on the highest number is kept."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def highest(device: str) -> int:
    """The highest number of bytes in use since `start_watching`."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else status("VmHWM")


def status(field: str) -> int:
    """A field of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def measure(device: str) -> dict[str, list[float]] | None:
    """Megabytes of each contestant at each length; None where the system does not tell."""
    if device == "cpu" and not Path("/proc/self/clear_refs").exists():
        return None
    found = {}
    for name in CONTESTANTS:
        found[name] = []
        for length in LENGTHS:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found[name].append(pool.submit(peak_memory, name, length, device).result())
            print(f"{name}, {length} tokens: {found[name][-1]:.0f} MB", flush=True)
    return found
