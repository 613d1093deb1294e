"""Measure the seconds that the series takes under nbval, and that importing `utils` and `exercises` takes."""

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
SLOWEST = "notebooks/08_classifier.ipynb"
TRAINING = {  # the cells that train
    "08_classifier": ("fine-tuning",),
    "11_pretraining": ("pretraining-037", "pretraining-069"),
    "12_decoder": ("cell-034", "cell-058", "cell-073"),
}
MODULES = "encoder tokenization plots training search packing onnx"
IMPORTED = (*(f"utils.{name}" for name in MODULES.split()), "views", "exercises")


def series_seconds() -> dict[str, float]:
    """Return the seconds of all notebooks and solutions under nbval, two at a time, and of each training cell.

    SystemExit if a cell fails.
    """
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    started = time.perf_counter()
    done = subprocess.run(
        [*command, "--nbval", "--durations=0", SLOWEST, "notebooks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    whole = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(done.stdout)
    seconds = {
        (name, int(cell)): float(taken)
        for taken, name, cell in re.findall(r"([\d.]+)s call +notebooks/(\S+)\.ipynb::Cell (\d+)", done.stdout)
    }
    training = {name: sum(seconds[name, cell] for cell in training_cells(name, ids)) for name, ids in TRAINING.items()}
    return {"whole": whole, **training}


def training_cells(name: str, ids: tuple[str, ...]) -> list[int]:
    """Return nbval's numbers of cells: their indices among the code cells."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    code = [cell.id for cell in notebook.cells if cell.cell_type == "code"]
    return [code.index(cell_id) for cell_id in ids]


def import_seconds(rounds: int = 3) -> dict[str, float]:
    """Return the seconds to import modules in a new Python that has imported torch and transformers."""
    before = "import time, torch; from transformers import AutoTokenizer, BertConfig, BertModel; "
    found = {}
    for name in (*IMPORTED, "all"):
        modules = ", ".join(IMPORTED) if name == "all" else name
        program = f"{before}start = time.perf_counter(); import {modules}; print(time.perf_counter() - start)"
        command = [sys.executable, "-c", program]
        runs = [
            float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
            for _ in range(rounds)
        ]
        found[name] = statistics.median(runs)
    return found
