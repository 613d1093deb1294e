"""Measure peak memory of a forward pass for different numbers of tokens, each in its own process."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from benchmarks.baselines import EAGER, SDPA
from benchmarks.timing import OURS
from utils.encoder import TransformerEncoder

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
WITH_WEIGHTS = f"{OURS}, with attention weights"
CONTESTANTS = (OURS, WITH_WEIGHTS, SDPA, EAGER)
LAYERS = 2  # of BERT-base's size; each layer frees its memory before the next


def peak_memory(name: str, length: int) -> float:
    """Return the megabytes that a forward pass of one text adds to those in use, on Linux."""
    config = BertConfig(num_hidden_layers=LAYERS, max_position_embeddings=length)
    options = {"output_attentions": True} if name == WITH_WEIGHTS else {}
    if name in (OURS, WITH_WEIGHTS):
        model = TransformerEncoder(config)
    else:
        config._attn_implementation = "sdpa" if name == SDPA else "eager"
        model = BertModel(config)
    model.eval()
    ids = torch.zeros(1, length, dtype=torch.long)
    with torch.inference_mode():
        model(ids[:, :8])  # one-time allocations
        before = reset_peak()
        model(ids, **options)
    return (status("VmHWM") - before) / 1e6


def reset_peak() -> int:
    """Reset the peak memory, and return the bytes in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(field: str) -> int:
    """Return a field of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def measure() -> dict[str, list[float]] | None:
    """Return the megabytes of each contestant at each length; None if the system does not report memory."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    found = {}
    for name in CONTESTANTS:
        found[name] = []
        for length in LENGTHS:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found[name].append(pool.submit(peak_memory, name, length).result())
            print(f"{name}, {length} tokens: {found[name][-1]:.0f} MB", flush=True)
    return found
