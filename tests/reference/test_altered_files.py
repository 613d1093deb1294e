"""Checkpoints with altered files raise a clear error or load the original weights."""

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


def test_flipped_header_bit_is_detected_or_harmless(folder):
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
def test_damaged_config_error_names_file(folder, damage):
    (folder / "config.json").write_bytes(damage)
    with pytest.raises(ValueError, match=r"config\.json .*: download or save it again|has model_type=\"None\""):
        TransformerEncoder.from_checkpoint(str(folder))


def test_weights_and_config_of_different_models_are_rejected(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 24, "num_attention_heads": 2}))
    with pytest.raises(ValueError, match=r"weights do not fit the configuration; mis-shaped: .*\(50, 12\)"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_other_model_in_place_of_embedded_one_is_rejected(folder, monkeypatch):
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
