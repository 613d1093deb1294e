"""Measure page faults and time of a forward pass for three memory settings, each in its own process, in turn."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import TORCH
from benchmarks.timing import OURS

ROOT = Path(__file__).resolve().parents[1]
LARGE_PAGES, GIGABYTE = "THP_MEM_ALLOC_ENABLE", str(2**30)
SETTINGS = {
    "as it comes": {},
    "torch's large pages": {LARGE_PAGES: "1"},
    "glibc keeps memory": {"MALLOC_MMAP_THRESHOLD_": GIGABYTE, "MALLOC_TRIM_THRESHOLD_": GIGABYTE},
}
ROUNDS, PASSES = 3, 5
CHILD = f"""
import json, resource, statistics, sys, time
import torch
from transformers import BertConfig
from benchmarks.peers import TORCH, TorchEncoder
from utils.encoder import TransformerEncoder
torch.manual_seed(0)
model = TransformerEncoder(BertConfig()).eval()
if sys.argv[1] == TORCH:
    model = TorchEncoder(model).eval()
ids = torch.ones(8, 128, dtype=torch.long)
mask, types = torch.ones_like(ids), torch.zeros_like(ids)
seconds = []
with torch.inference_mode():
    model(ids, mask, types)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({PASSES}):
        started = time.perf_counter()
        model(ids, mask, types)
        seconds.append(time.perf_counter() - started)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(json.dumps([faults / {PASSES}, statistics.median(seconds)]))
"""


def measure() -> dict[str, dict[str, list[list[float]]]] | None:
    """Return faults per pass and seconds of each contestant and setting, by round; None unless on Linux."""
    if sys.platform != "linux":
        return None
    found = {name: {setting: [] for setting in SETTINGS} for name in (OURS, TORCH)}
    for _ in range(ROUNDS):
        for name, results in found.items():
            for setting, variables in SETTINGS.items():
                environment = {k: v for k, v in os.environ.items() if k != LARGE_PAGES} | variables
                command = [sys.executable, "-c", CHILD, name]
                run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
                results[setting].append(json.loads(run.stdout.splitlines()[-1]))
                print(f"{name}, {setting}: {results[setting][-1]}", flush=True)
    return found


def rows(found: dict[str, dict[str, list[list[float]]]]) -> list[list[str]]:
    """Return the table: medians over the rounds, and each setting's time relative to the default setting."""
    lines = [["", "memory", "page faults a pass", "seconds", "over as it comes"]]
    for name, results in found.items():
        usual = [seconds for _, seconds in results["as it comes"]]
        for setting, runs in results.items():
            faults, seconds = (statistics.median(values) for values in zip(*runs, strict=True))
            ratio = statistics.median(mine / base for (_, mine), base in zip(runs, usual, strict=True))
            lines.append([name, setting, f"{faults:,.0f}", f"{seconds:.2f} s", f"{ratio:.2f}"])
    return lines
