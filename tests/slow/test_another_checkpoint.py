"""The whole series runs on a checkpoint of bert-base's shape: its asserts hold for any BERT."""

import os
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import ROOT, run_python

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
    paths = sorted((ROOT / "notebooks").rglob(pattern))
    run = run_python("-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", *paths, CHECKPOINT=str(tmp_path))
    assert run.returncode == 0, run.stdout[-8000:]
