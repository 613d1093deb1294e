"""Measure how much of a machine's speed a forward pass reaches, compared with one large matrix product."""

import statistics

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.baselines import SDPA, TORCH, forward_contestants, random_bert
from benchmarks.timing import OURS, Work, quartiles, take_turns
from utils.support.batches import collate

B, S = 8, 128  # enough to keep the machine busy
SIZE = 2048  # rows and columns of the large product
PRODUCT = "one large product"


def measure() -> dict:
    """Measure seconds and operations of BERT-base's forward pass, ours and the peers', and of the large product."""
    encoder, official = random_bert("cpu", torch.float32)
    ids = torch.randint(1000, encoder.config.vocab_size, (B, S))
    batch = collate(ids.tolist())
    square = torch.randn(SIZE, SIZE)
    runs = forward_contestants(encoder, official, batch)
    contestants = {name: runs[name] for name in (OURS, SDPA, TORCH)} | {PRODUCT: lambda: square @ square}
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        # returning attention weights, because the counter knows these products on any device
        encoder(**batch, output_attentions=True)
    operations = dict.fromkeys(contestants, counter.get_total_flops()) | {PRODUCT: 2 * SIZE**3}
    name = f"forward, {B} × {S}, float32"
    seconds = take_turns(Work(name, contestants, 15), "cpu")
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
