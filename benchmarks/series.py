"""Seconds that a reader or a runner waits for: the series under nbval, and importing `utils` and `exercises`."""

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRAINING = "notebooks/08_classifier.ipynb"
IMPORTED = (
    "utils.encoder",
    "utils.tokenization",
    "utils.views",
    "utils.plots",
    "utils.training",
    "utils.search",
)
IMPORTED += ("utils.inference", "exercises")


def validate(*arguments: str, threads: int) -> tuple[float, str]:
    """Seconds and output of pytest with nbval, as `make test` calls it; SystemExit if a cell fails."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--nbval", "--durations=1"]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout)
    return time.perf_counter() - started, done.stdout


def series_seconds() -> dict[str, float]:
    """Seconds of the series with its solutions: all of it but notebook 08, 08 without its training cell, that cell."""
    others, _ = validate("notebooks", f"--ignore={TRAINING}", threads=1)  # two at a time
    whole, output = validate(TRAINING, threads=2)
    training = float(re.search(r"([\d.]+)s call ", output)[1])
    return {"other notebooks": others, "08 without training": whole - training, "training": training}


def import_seconds(rounds: int = 3) -> dict[str, float]:
    """Seconds to import modules in a new Python that has torch and what we take of transformers."""
    before = "import time, torch; from transformers import AutoTokenizer, BertConfig, BertModel; "
    found = {}
    for name in (*IMPORTED, "all"):
        wanted = ", ".join(IMPORTED) if name == "all" else name
        program = f"{before}start = time.perf_counter(); import {wanted}; print(time.perf_counter() - start)"
        command = [sys.executable, "-c", program]
        runs = [
            float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
            for _ in range(rounds)
        ]
        found[name] = statistics.median(runs)
    return found
