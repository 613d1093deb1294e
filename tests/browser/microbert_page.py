"""Fixtures and helpers for tests of microbert.html: a page with a small random BERT, which answers in a second.

SITE=site tests the page of a built site with the pretrained model instead.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from transformers import BertConfig, BertModel

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from explorer import npm
from explorer.micro import build
from publish.server import serve
from publish.website import BUILD
from tests.helpers import ROOT
from utils.support.checkpoint import embedded_folder

BUILT = os.environ.get("SITE")
SMALL = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 96}
SMALL |= {"initializer_range": 0.3}  # so that attention differs from token to token


def pyodide_or_skip() -> Path:
    """Return Pyodide's package, or skip the test with the reason."""
    try:
        return npm.fetch(build.PYODIDE, BUILD / "npm")
    except OSError as error:
        pytest.skip(f"{error}: install Node.js to test {build.PAGE}")


def small_checkpoint(folder: Path) -> Path:
    """Write a checkpoint with random weights and the vocabulary of the embedded one."""
    torch.manual_seed(0)
    BertModel(BertConfig(**SMALL)).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(embedded_folder() / name, folder)
    return folder


def restored(checkpoint: Path, folder: Path) -> Path:
    """Write a copy of a checkpoint with the weights that the page restores."""
    shutil.copytree(checkpoint, folder)
    build.save_file(build.rounded(build.load_file(checkpoint / "model.safetensors")), folder / "model.safetensors")
    return folder


def run_here(checkpoint: Path, *texts: str, source: Path = ROOT / "microbert.py") -> str:
    """Return what a file prints that this computer's Python runs."""
    command = [sys.executable, "-S", "-I", source, *texts]
    environment = os.environ | {"CHECKPOINT": str(checkpoint)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """Return a folder with the weights of the page."""
    folder = tmp_path_factory.mktemp("checkpoint")
    return restored(embedded_folder() if BUILT else small_checkpoint(folder / "small"), folder / "restored")


@pytest.fixture(scope="module")
def micro_site(tmp_path_factory) -> Path:
    """Build the page once for all modules and processes of a run."""
    if BUILT:
        return Path(BUILT).resolve()
    pyodide_or_skip()
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "microbert"
    with FileLock(f"{folder}.lock"):
        if not (folder / build.PAGE).exists():  # it is written last
            pages = {"03": "notebooks/03_self_attention.html"}
            small = small_checkpoint(tmp_path_factory.mktemp("small"))
            build.build(folder, BUILD / "npm", pages, small)
    return folder


@pytest.fixture(scope="module")
def address(micro_site):
    """Serve the page locally, and yield its address."""
    with serve(micro_site) as origin:
        yield f"{origin}/{build.PAGE}"


def edit(source: str, old: str, new: str) -> str:
    """Return a source with the only occurrence of `old` replaced."""
    assert source.count(old) == 1
    return source.replace(old, new)


def printed_part(text: str) -> str:
    """Return what the file printed, without the command above it."""
    return re.sub(r"^\$ .*\n", "", text)
