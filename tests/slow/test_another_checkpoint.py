"""The whole series runs on a checkpoint of bert-base's shape: its asserts hold for any BERT."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import ROOT

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
