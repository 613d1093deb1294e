"""Checkpoints load by name or folder; altered or unsupported ones are rejected with a reason."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import NFKC, BertNormalizer, Lowercase, Prepend, Replace, Sequence

from tests.helpers import SMALL, TINY, tiny_tokenizer, write_vocabulary
from utils.encoder import TransformerEncoder
from utils.support import checkpoint
from utils.support.vocabulary import read_vocabulary
from utils.tokenization import WordPieceTokenizer

MARIAN = {"d_model": 16, "vocab_size": 30, "pad_token_id": 1, "decoder_start_token_id": 1}
MARIAN |= {f"{side}_{part}": 2 for side in ("encoder", "decoder") for part in ("layers", "attention_heads", "ffn_dim")}
PREFIXES = ("", "bert.", "model.")  # of a model within one with a head


@pytest.fixture
def folder(tmp_path):
    """Save a randomly initialised BERT with a vocabulary of 30 tokens."""
    transformers.BertModel(transformers.BertConfig(**SMALL)).save_pretrained(tmp_path)
    write_vocabulary(tmp_path, [*tiny_tokenizer(30).vocab])
    return tmp_path


def edit_weights(folder, change) -> None:
    """Rewrite model.safetensors after applying `change` to its dictionary."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def prefix_weights(folder, prefix: str) -> None:
    """Add a prefix to the name of every weight."""
    weights = load_file(folder / "model.safetensors")
    save_file({f"{prefix}{name}": weight for name, weight in weights.items()}, folder / "model.safetensors")


def official(folder):
    return checkpoint.load_official(folder, transformers.AutoModel)


def edited(change):
    """Return a function that applies `change` to the weights in a folder."""
    return lambda folder: edit_weights(folder, change)


def drop_pooler(weights: dict) -> None:
    for name in ("weight", "bias"):
        weights.pop(f"pooler.dense.{name}")


def test_environment_and_argument_choose_the_checkpoint(folder, monkeypatch):
    monkeypatch.setenv("CHECKPOINT", str(folder))
    assert checkpoint.load_config().hidden_size == 8
    assert TransformerEncoder.from_checkpoint().config.hidden_size == 8
    assert checkpoint.load_config(checkpoint.DEFAULT_CHECKPOINT).hidden_size == 384


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        ({"checkpoint": "bert"}, r"use \S+checkpoint"),  # as scripts/pretrain.py writes it
        ({"snapshots/1f2e": "bert", "1_Pooling": None}, r"use \S+1f2e"),  # as the Hub's cache has it
        ({"0_Transformer": "bert", "1_Pooling": None}, r"use \S+0_Transformer"),
        ({"one": "bert", "two/three": "gpt2"}, r"use \S+one or \S+three"),
        ({"1_Pooling": None}, r"use the embedded .*"),
    ],
)
def test_parent_folder_error_names_checkpoint_inside(tmp_path, files, remedy):
    for name, family in files.items():
        (tmp_path / name).mkdir(parents=True)
        content = {"pooling_mode": "mean"} if family is None else {"model_type": family}
        (tmp_path / name / "config.json").write_text(json.dumps(content))
    for load in (checkpoint.load_config, official):
        with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))} .*is not a checkpoint, .*: {remedy}$"):
            load(tmp_path)


def settings(**changes):
    """Return a function that changes settings in config.json."""

    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def renamed(old: str, new: str):
    """Return a function that replaces a part of every weight's name."""
    return edited(lambda weights: [weights.update({name.replace(old, new): weights.pop(name)}) for name in [*weights]])


def add_distances(folder) -> None:
    """Add the distance table of a BERT with relative positions, which transformers 5 does not support."""
    name = "encoder.layer.1.attention.self.distance_embedding.weight"
    edit_weights(folder, lambda weights: weights.update({name: torch.ones(19, 4)}))


POSITION_IDS = {"embeddings.position_ids": torch.arange(10)[None]}
OFFICIAL = {
    "names of nn.DataParallel": (
        lambda folder: prefix_weights(folder, "module."),
        " has the weight module.embeddings.LayerNorm.bias: take the model out of its wrapper: model.module or",
    ),
    "code of its own": (renamed("intermediate.dense", "mlp.gated_layers"), "missing: encoder.layer.0.intermediate.den"),
    "relative positions": (add_distances, "unexpected: encoder.layer.1.attention.self.distance_embedding.weight"),
    "other sizes": (settings(hidden_size=16), "mis-shaped: embeddings.LayerNorm.bias, embeddings.LayerNorm.weight"),
    "a layer too few": (settings(num_hidden_layers=3), "missing: encoder.layer.2.attention.output.LayerNorm.bias"),
    "a pointer of git-lfs": (
        lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n"),
        "cannot be read (Error while deserializing header",
    ),
    "4 bits": (settings(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}), "cannot be read"),
    "code that is not run": (
        settings(model_type="new", auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"}),
        "contains custom code",
    ),
    **{key: (settings(**{key: "flash_attention_2"}), None) for key in ("attn_implementation", "_attn_implementation")},
    "NaN": (edited(lambda weights: weights[min(weights)].fill_(torch.nan)), "embeddings.LayerNorm.bias contains NaN"),
    "no pooler": (edited(drop_pooler), None),
    "old buffers": (edited(lambda weights: weights.update(POSITION_IDS)), None),
    "a table of sines": (
        lambda folder: transformers.MarianMTModel(transformers.MarianConfig(**MARIAN)).save_pretrained(folder),
        None,
    ),
}


@pytest.mark.parametrize("given", OFFICIAL)
def test_official_model_loads_completely_or_raises(folder, given):
    change, message = OFFICIAL[given]
    change(folder)
    if message is None:
        model = official(folder)
        stored = load_file(folder / "model.safetensors")
        loaded = {f"{prefix}{name}": weight for name, weight in model.state_dict().items() for prefix in PREFIXES}
        assert model.config._attn_implementation == "eager"
        assert all(torch.equal(stored[name], loaded[name]) for name in stored.keys() & loaded.keys())
    else:
        place = "" if given == "NaN" else f"{re.escape(str(folder))}.*"
        with pytest.raises(ValueError, match=f"{place}{re.escape(message)}"):
            official(folder)


WITHOUT_WEIGHTS = {  # files beside config.json and vocab.txt: a part of the error of utils and views
    "nothing": ((), r"no weights \(model.safetensors\), only config.json, .*vocab.txt: copy its weights there"),
    "a broken download": (("model.safetensors.part",), "only .*part.* Its download is not .*: download it again"),
    "another name": (("best.safetensors",), "only best.safetensors, .* Give its weights this name, or"),
    "shards without index": (("model-00001-of-00002.safetensors",), "or download model.safetensors.index.json, too"),
    "pickled under another name": (("best.pt",), r"only pickled weights \(best.pt\), which can run code"),
    "an adapter": (("adapter_config.json", "adapter_model.safetensors"), "holds an adapter .*: merge it into its"),
}


@pytest.mark.parametrize("found", WITHOUT_WEIGHTS)
def test_folder_without_weights_is_refused_alike_by_utils_and_views(folder, found):
    files, words = WITHOUT_WEIGHTS[found]
    (folder / "model.safetensors").unlink()
    for name in files:
        (folder / name).write_bytes(b"")
    for load in (TransformerEncoder.from_checkpoint, official):
        with pytest.raises(ValueError, match=words):
            load(folder)


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    """Copy the embedded checkpoint and load the copy in place of the installed package."""
    source = checkpoint.checkpoint_folder(checkpoint.DEFAULT_CHECKPOINT)
    package = tmp_path / "a_copy_of_the_embedded_checkpoint"
    shutil.copytree(source, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(checkpoint, "DEFAULT_PACKAGE", package.name)
    checkpoint.embedded_folder.cache_clear()
    yield package / "model"
    checkpoint.embedded_folder.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("name", checkpoint.DEFAULT_SHA256)
def test_altered_embedded_file_is_rejected(embedded, name):
    content = bytearray((embedded / name).read_bytes())
    content[-1] ^= 1
    (embedded / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} was altered .*: reinstall its package") as error:
        checkpoint.load_tokenizer(checkpoint.DEFAULT_CHECKPOINT)
    assert checkpoint.DEFAULT_SHA256[name] in str(error.value)
    assert str(error.value).count("SHA-256") == 1


def test_missing_embedded_file_is_reported(embedded):
    (embedded / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"vocab\.txt is missing: reinstall its package"):
        checkpoint.load_tokenizer(checkpoint.DEFAULT_CHECKPOINT)


@pytest.mark.parametrize("change", ["post_processor", "max_input_chars_per_word"])
def test_tokenizer_with_other_ids_is_rejected(folder, change):
    tokenizer = checkpoint.load_tokenizer(folder)
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    parts["model"]["vocab"]["##a"] = parts["model"]["vocab"].pop("y")  # so that a long word has pieces
    if change == "post_processor":
        parts["post_processor"] = None
    else:
        parts["model"][change] = 1000
    backend = Tokenizer.from_str(json.dumps(parts))
    with pytest.raises(
        ValueError, match=r"the tokenizer gives other ids for 'a+.*than BERT's tokenizer: use a checkpoint"
    ):
        read_vocabulary(transformers.PreTrainedTokenizerFast(tokenizer_object=backend))


def rebuilt_tokenizer(folder: Path, normalizer) -> None:
    """Leave only tokenizer.json, from which transformers 5 takes the vocabulary and not the normalizer."""
    vocab = {token: number for number, token in enumerate([*[*tiny_tokenizer().vocab][:-2], "A", "É"])}
    tokenizer = BertWordPieceTokenizer(vocab, lowercase=False)
    tokenizer._tokenizer.normalizer = normalizer
    for name in checkpoint.TOKENIZER_FILES:
        (folder / name).unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def bare(tmp_path) -> Path:
    transformers.BertModel(transformers.BertConfig(**TINY)).save_pretrained(tmp_path)
    return tmp_path


CASED = BertNormalizer(lowercase=False)


@pytest.mark.parametrize(
    "normalizer",
    [
        None,
        CASED,
        BertNormalizer(strip_accents=False),
        BertNormalizer(handle_chinese_chars=False),
        Prepend("a"),
        Sequence([NFKC(), Lowercase()]),
        Sequence([Replace("ß", "c"), BertNormalizer()]),
    ],
    ids=str,
)
def test_stored_normalizer_is_the_one_that_is_used(bare, normalizer):
    """transformers 5 alone would use that of its class; ours refuses what it can't do."""
    rebuilt_tokenizer(bare, normalizer)
    stored = Tokenizer.from_file(str(bare / "tokenizer.json"))
    found = checkpoint.load_official_tokenizer(bare)
    for text in ("A É", "\ufb01 ß \u4e2d\u6587", "a\u200bb"):
        assert found.encode(text) == stored.encode(text).ids
    if normalizer is CASED:
        assert WordPieceTokenizer.from_checkpoint(bare).encode("A É") == [2, 48, 49, 3]
    else:
        with pytest.raises(ValueError, match=r"has a normalizer that is not supported, .*: use a checkpoint"):
            WordPieceTokenizer.from_checkpoint(bare)


@pytest.mark.parametrize(
    ("normalizer", "settings"),
    [
        (CASED, {"do_lower_case": True}),
        (BertNormalizer(), {"strip_accents": False}),
        (Sequence([NFKC(), Lowercase()]), {"do_lower_case": False}),
    ],
)
def test_contradicting_normalizers_are_rejected(bare, normalizer, settings):
    rebuilt_tokenizer(bare, normalizer)
    (bare / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"} | settings))
    with pytest.raises(
        ValueError,
        match=f"has the normalizer .*, but tokenizer_config.json sets {min(settings)}=.*: delete this setting, or",
    ):
        checkpoint.load_official_tokenizer(bare)


def test_cased_vocabulary_without_settings_is_rejected(bare):
    """A cased vocab.txt alone, as older cased checkpoints have: transformers lowercases by default."""
    tokens = [*[*tiny_tokenizer().vocab][:40], *"ABCDEFGHIJ"]
    (bare / "vocab.txt").write_text("\n".join(tokens))
    with pytest.raises(ValueError, match=r"has 10 tokens with capitals, .*: write \{\"do_lower_case\": false\} into"):
        checkpoint.load_tokenizer(bare)
    (bare / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert checkpoint.load_tokenizer(bare).encode("A a") == [2, 40, 5, 3]


def test_truncation_of_the_beginning_is_rejected(bare):
    write_vocabulary(bare, [*tiny_tokenizer().vocab])
    (bare / "tokenizer_config.json").write_text('{"do_lower_case": true, "truncation_side": "left"}')
    with pytest.raises(ValueError, match=r'has truncation_side="left", which is not supported here: write "right"'):
        checkpoint.load_tokenizer(bare)


def test_folder_named_like_the_embedded_checkpoint_is_refused(bare, tmp_path, monkeypatch):
    (tmp_path / checkpoint.DEFAULT_CHECKPOINT).mkdir()
    (tmp_path / "config.json").rename(tmp_path / checkpoint.DEFAULT_CHECKPOINT / "config.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHECKPOINT", raising=False)
    assert checkpoint.load_config().hidden_size == 384
    assert checkpoint.load_config(f"./{checkpoint.DEFAULT_CHECKPOINT}").hidden_size == 12
    with pytest.raises(ValueError, match=r"is the embedded checkpoint and a folder here: rename it, or write \./all"):
        checkpoint.load_config(checkpoint.DEFAULT_CHECKPOINT)
