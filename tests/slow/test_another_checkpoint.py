"""The whole series runs on a checkpoint of bert-base's shape: its asserts hold for any BERT."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import ROOT
from tests.repository import copy_project

# The notebooks that train, embed many texts or try every head get the smallest shape of the series.
SMALL = BertConfig(hidden_size=48, num_hidden_layers=6, num_attention_heads=12, intermediate_size=96)
# 11 and 12 begin with random weights: no checkpoint changes what they do.
SHAPES = {"0[0-7]_*.ipynb": BertConfig(), "0[89]_*.ipynb": SMALL, "1[!12]_*.ipynb": SMALL}


def write_random(folder: Path, config: BertConfig, tokenizer) -> None:
    """A checkpoint of random weights, as transformers saves one."""
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.skipif("CHECKPOINT" in os.environ, reason="CHECKPOINT is set: the series runs on it already")
@pytest.mark.parametrize("pattern", SHAPES)
def test_series_on_random_weights(tmp_path, official_tokenizer, pattern):
    write_random(tmp_path, SHAPES[pattern], official_tokenizer)
    paths = [str(path) for path in sorted((ROOT / "notebooks").rglob(pattern))]
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", *paths]
    environment = os.environ | {"CHECKPOINT": str(tmp_path)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8000:]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_checkpoint_path_is_relative_to_the_root(tmp_path, official_tokenizer):
    """As README has it: a relative path, for a program that starts kernels in notebooks/."""
    project = copy_project(tmp_path / "project")
    (project / ".venv").symlink_to(sys.prefix)
    write_random(project / "mybert", SMALL, official_tokenizer)
    installed = ["-o", ".venv/.installed", "-o", ".venv/.installed-dev"]  # whatever is installed will do
    command = ["make", *installed, "compare", "NB=07", "CHECKPOINT=mybert"]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr
    assert " passed" in run.stdout
