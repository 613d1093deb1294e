"""The whole series runs on a checkpoint of bert-base's shape: its asserts hold for any BERT."""

import os
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import ROOT


@pytest.mark.skipif("CHECKPOINT" in os.environ, reason="CHECKPOINT is set: the series runs on it already")
def test_series_on_a_random_bert_base(tmp_path, official_tokenizer):
    torch.manual_seed(0)
    config = BertConfig()
    assert (config.num_hidden_layers, config.hidden_size) == (12, 768)
    BertModel(config).save_pretrained(tmp_path)
    official_tokenizer.save_pretrained(tmp_path)
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", "notebooks"]
    environment = os.environ | {"CHECKPOINT": str(tmp_path)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8000:]
