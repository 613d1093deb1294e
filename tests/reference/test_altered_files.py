"""Checkpoints whose files were altered are refused, in words, or give the weights they held before."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import TINY
from utils.encoder import TransformerEncoder
from utils.support import checkpoint


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.manual_seed(0)
    BertModel(BertConfig(**TINY)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def state_or_error(folder: Path) -> dict[str, torch.Tensor] | str:
    try:
        return TransformerEncoder.from_checkpoint(str(folder)).state_dict()
    except (ValueError, OSError) as error:
        return str(error)


def test_a_bit_flipped_in_the_header_of_the_weights_is_noticed(folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    wanted = TransformerEncoder.from_checkpoint(str(folder)).state_dict()
    header = 8 + int.from_bytes(whole[:8], "little")
    for position in [*range(8), *range(8, header, 61)]:
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        weights.write_bytes(flipped)
        loaded = state_or_error(folder)
        if isinstance(loaded, str):
            assert "model.safetensors" in loaded or "weights do not fit" in loaded
        else:  # it hit nothing that matters, such as the pooler's name or a space
            assert all(torch.equal(loaded[name], weight) for name, weight in wanted.items()), position


@pytest.mark.parametrize("damage", [b"", b'{"model_type": "be', b"\xff\xfe{", b'["bert"]'])
def test_a_damaged_configuration_is_named(folder, damage):
    (folder / "config.json").write_bytes(damage)
    with pytest.raises(ValueError, match=r"config\.json .*: download or save it again|has model_type=\"None\""):
        TransformerEncoder.from_checkpoint(str(folder))


def test_weights_and_configuration_of_different_models(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 24, "num_attention_heads": 2}))
    with pytest.raises(ValueError, match=r"weights do not fit the configuration; mis-shaped: .*\(50, 12\)"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_another_whole_model_in_the_embedded_ones_place(folder, monkeypatch):
    package = folder.parent / "swapped"
    shutil.copytree(folder, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(checkpoint, "DEFAULT_PACKAGE", "swapped")
    checkpoint.embedded_folder.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"model\.safetensors was altered"):
            checkpoint.load_config(checkpoint.DEFAULT_CHECKPOINT)
    finally:
        checkpoint.embedded_folder.cache_clear()
