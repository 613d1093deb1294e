"""Measure how much of a machine's speed a forward pass reaches, compared with one large matrix product."""

import statistics
from copy import deepcopy

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.baselines import SDPA, TORCH, forward_contestants, random_bert, runner
from benchmarks.timing import OURS, Work, quartiles, take_turns
from utils.support.batches import collate

SHAPES = {"cpu": (8, 128), "cuda": (64, 512)}  # B, S: enough to keep the machine busy
DTYPES = {"cpu": torch.float32, "cuda": torch.bfloat16}
SIZES = {"cpu": 2048, "cuda": 8192}  # rows and columns of the large product
PRODUCT, COMPILED = "one large product", f"{OURS}, compiled with max-autotune-no-cudagraphs"


def measure(device: str) -> dict:
    """Measure seconds and operations of BERT-base's forward pass, ours and the peers', and of the large product."""
    encoder, official = random_bert(device, DTYPES[device])
    ids = torch.randint(1000, encoder.config.vocab_size, SHAPES[device])
    batch = collate(ids.tolist(), device)
    square = torch.randn(SIZES[device], SIZES[device], device=device, dtype=DTYPES[device])
    runs = forward_contestants(encoder, official, batch)
    contestants = {name: runs[name] for name in (OURS, SDPA, TORCH)} | {PRODUCT: lambda: square @ square}
    if device == "cuda":
        compiled = torch.compile(deepcopy(encoder), mode="max-autotune-no-cudagraphs", dynamic=False)
        contestants[COMPILED] = runner(compiled, batch)
    B, S = SHAPES[device]
    name = f"forward, {B} × {S}, {str(DTYPES[device]).removeprefix('torch.')}"
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        # returning attention weights, because the counter knows these products on any device
        encoder(**batch, output_attentions=True)
    operations = dict.fromkeys(contestants, counter.get_total_flops()) | {PRODUCT: 2 * SIZES[device] ** 3}
    seconds = take_turns(Work(name, contestants, 15), device)
    return {"name": name, "operations": operations, "seconds": seconds}


def rows(found: dict) -> list[list[str]]:
    """Return the table: operations per second, and their share of the large product's in the same round."""
    lines = [["", "operations a second", "share of the large product's", "quartiles"]]
    for name, seconds in found["seconds"].items():
        speeds = [found["operations"][name] / each for each in seconds]
        best = [found["operations"][PRODUCT] / each for each in found["seconds"][PRODUCT]]
        low, share, high = quartiles([mine / other for mine, other in zip(speeds, best, strict=True)])
        a_second = f"{statistics.median(speeds) / 1e12:.3g} · 10¹²"
        lines.append([name, a_second, f"{share:.2f}", f"{low:.2f} … {high:.2f}"])
    return lines
