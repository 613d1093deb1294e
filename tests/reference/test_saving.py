"""A saved classifier loads equally in every library, and is written completely or not at all."""

import errno
import io
import os
import re
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
)

from tests.helpers import SMALL, TINY, filled, names, saved_number, tiny_tokenizer, unix_only
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.lora import add_lora, merge_lora
from utils.masked_lm import TransformerForMaskedLM
from utils.support import checkpoint
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import Examples
from utils.support.files import staging_path, write_file
from utils.support.onnx import export_onnx
from utils.support.vocabulary import write_vocabulary
from utils.token_labels import TransformerForTokenClassification
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune, predict
from views import head_view

if os.name != "nt":
    import fcntl

REAL = TINY | {"vocab_size": 30522, "max_position_embeddings": 24}
TEXTS = ["A good film!", "Bad.", "Crème brûlée in 東京 :-) – unaffable", "good bad " * 30, "[MASK] of it"]
WHOLE = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]


def content(path: Path) -> dict[str, bytes]:
    """Return the content of a file, or of each file in a folder, by name."""
    return {file.name: file.read_bytes() for file in ([path] if path.is_file() else path.iterdir())}


# The same in every hand


@pytest.fixture(scope="module")
def trained(tokenizer) -> TransformerForSequenceClassification:
    """Return a small model after a short training."""
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**REAL))
    examples = Examples(["a good film", "a bad film", "so good", "so bad"] * 10, [1, 0, 1, 0] * 10)
    settings = {"epochs": 6, "batch_size": 8, "learning_rate": 2e-2, "quiet": True}
    fine_tune(model, tokenizer, examples, examples, **settings)
    return model


@pytest.fixture(scope="module")
def before(trained, tokenizer) -> torch.Tensor:
    """Return the probabilities of TEXTS before saving, (N, 2), with both classes among the predictions."""
    labels, probabilities = predict(trained, tokenizer, TEXTS)
    assert set(labels.tolist()) == {0, 1}
    return probabilities


@pytest.fixture(scope="module")
def folder(trained, tokenizer, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "new" / "model"
    trained.save(folder, tokenizer, ["bad", "good"])
    return folder


def test_transformers_loads_saved_model(folder, before):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    options = {"output_loading_info": True}
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, **options)
    assert type(model) is BertForSequenceClassification
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.dtype == torch.float32
    with torch.no_grad():
        logits = model(**tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")).logits
    assert (logits.softmax(dim=-1) - before).abs().max() <= 1e-5


# Whose vocabulary


@pytest.fixture
def theirs(tmp_path, official_tokenizer) -> Path:
    """Save a classifier and the official tokenizer with transformers."""
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(**REAL)).save_pretrained(tmp_path / "theirs")
    official_tokenizer.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_official_tokenizer_is_saved_like_ours(trained, folder, official_tokenizer, tmp_path):
    trained.save(tmp_path, official_tokenizer, ["bad", "good"])
    assert content(tmp_path) == content(folder)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (None, r"made from a configuration has no vocabulary: pass tokenizer="),
        ("official", r"30522 tokens with ids up to 30521, but the model's vocab_size is 50"),
    ],
)
def test_save_rejects_tokenizer_of_another_model(tmp_path, official_tokenizer, size, words):
    tokenizer = size and official_tokenizer
    with pytest.raises(ValueError, match=words):
        filled(1.0).save(tmp_path / "model", tokenizer)
    assert names(tmp_path) == []


def test_save_replaces_existing_tokenizer(theirs, trained, tokenizer):
    """Check that the old tokenizer.json, which takes precedence over our vocab.txt, is no longer used."""
    swapped = dict(tokenizer.vocab)
    swapped["good"], swapped["bad"] = swapped["bad"], swapped["good"]
    ours = WordPieceTokenizer(swapped)
    trained.save(theirs, ours)
    assert WordPieceTokenizer.from_checkpoint(theirs).encode("good or bad") == ours.encode("good or bad")
    assert AutoTokenizer.from_pretrained(theirs).encode("good or bad") == ours.encode("good or bad")


@pytest.mark.parametrize("token", ["a ", "\u2028", ""])
def test_whitespace_token_survives_saving(tmp_path, token):
    """Check tokens such as U+2028, which bert-base-chinese has and vocab.txt cannot store."""
    vocab = dict(tiny_tokenizer().vocab)
    vocab[token] = vocab.pop("z")
    for lowercase in (True, False):
        filled(1.0).save(tmp_path / "model", WordPieceTokenizer(vocab, lowercase))
        ours, official = WordPieceTokenizer.from_checkpoint(tmp_path / "model"), load_tokenizer(tmp_path / "model")
        assert ours.vocab == vocab
        assert ours.lowercase == lowercase
        assert ours.encode("A b", "c") == official("A b", "c")["input_ids"]
        assert (ours.vocab["[UNK]"] in ours.encode("A b")) is not lowercase


def test_vocabulary_that_cannot_be_restored_is_rejected(tmp_path):
    vocab = tiny_tokenizer().vocab | {"last": 60}  # no line of vocab.txt for the ids before
    with pytest.raises(ValueError, match=r"the token 'last' cannot be stored in a file: leave it out"):
        write_vocabulary(tmp_path, vocab, True, 16)


# One checkpoint, one meaning


def test_saved_classifier_loads_complete_or_with_new_head(tmp_path):
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**TINY, num_labels=3)).eval()
    model.save(tmp_path, tiny_tokenizer(), ["b", "a", "c"])
    TransformerForSequenceClassification.from_checkpoint(tmp_path).save(tmp_path)
    whole = TransformerForSequenceClassification.from_checkpoint(tmp_path)
    assert whole.config.id2label == {0: "b", 1: "a", 2: "c"}
    assert whole.config.label2id["c"] == 2
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in whole.state_dict().items())
    for num_labels in (3, 2):
        new = TransformerForSequenceClassification.from_checkpoint(tmp_path, num_labels=num_labels)
        assert list(new.config.id2label.values()) == [f"LABEL_{number}" for number in range(num_labels)]
        kept = [name for name in new.state_dict() if not name.startswith("classifier.")]
        assert all(torch.equal(new.state_dict()[name], model.state_dict()[name]) for name in kept)
        assert not new.training
        assert not torch.equal(new.classifier.weight[:2], model.classifier.weight[:2])


# The names of the classes


@pytest.mark.parametrize(
    "labels",
    [
        *(["\ud800", "b"], ["", "b"], [" ", "b"]),  # no program prints these
        *(["one"], ["same", "same"], "no", ["a", 1], 2),
        *({"a", "b"}, {0: "a", 1: "b"}, iter("ab")),  # of no order, or another
    ],
)
def test_invalid_class_names_are_rejected(tmp_path, labels):
    words = rf"labels={re.escape(repr(labels))} must be a list of 2 different names, in the order of the classes"
    with pytest.raises(ValueError, match=words):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer(), labels)
    assert names(tmp_path) == []


# Only what can be read again

FIRST = "encoder.layers.0.attention.query"


def query_of(model) -> nn.Linear:
    return model.get_submodule(FIRST)


def with_adapter(config):
    return lambda model: get_peft_model(model, config)


CHANGED = {  # what was done to a model: a part of the error, or None if the model is the same when it is loaded
    "LoRA": (lambda model: add_lora(model, 2), r"merge LoRA \(merge_lora, or .*\), and save the model"),
    "LoRA of peft": (with_adapter(LoraConfig(r=2, target_modules=["query"])), "or merge_and_unload"),
    "merged": (lambda model: (add_lora(model, 2), merge_lora(model)), None),
    "pruned": (lambda model: prune.l1_unstructured(query_of(model), "weight", 0.3), "call torch.nn.utils.prune.remove"),
    "weight_norm": (lambda model: weight_norm(query_of(model)), "call .*remove_weight_norm"),
    "spectral_norm": (lambda model: spectral_norm(query_of(model)), "call .*remove_spectral_norm"),
    "parametrized": (lambda model: parametrizations.orthogonal(query_of(model)), "call .*remove_parametrizations"),
    "quantized": (
        lambda model: torch.ao.quantization.quantize_dynamic(model, {nn.Linear}),
        "_params: take the model from before it was quantized",
    ),
    "integers": (lambda model: query_of(model).register_parameter("weight", integers(query_of(model).weight)), "int8"),
    "a layer removed": (lambda model: model.encoder.layers.__delitem__(1), "missing: .*: write the change into"),
    "a layer removed, and written": (
        lambda model: (model.encoder.layers.__delitem__(1), setattr(model.config, "num_hidden_layers", 1)),
        None,
    ),
    "a layer added": (lambda model: model.encoder.layers.append(model.encoder.layers[0]), "unexpected: .*: write"),
    "a layer twice": (lambda model: model.encoder.layers.__setitem__(1, model.encoder.layers[0]), None),
    "another head": (lambda model: setattr(model, "classifier", nn.Linear(12, 5)), r"mis-shaped: .*\(5,\) for \(2,\)"),
    "no bias": (lambda model: setattr(model.classifier, "bias", None), "missing: classifier.bias"),
    "compiled": (lambda model: setattr(model, "encoder", Compiled(model.encoder)), "model out of its wrapper"),
    "fewer heads in the config": (lambda model: setattr(model.config, "num_attention_heads", 1), "num_heads=3, not 1"),
    "pre-LN": (
        lambda model: setattr(model, "encoder", TransformerEncoder(model.config, norm_first=True)),
        "norm_first=True, not False",
    ),
    "another activation": (
        lambda model: setattr(model.encoder.layers[1].feed_forward, "activation", nn.SiLU()),
        r"layers.1.*=SiLU\(\), not GELU",
    ),
    "another eps": (lambda model: setattr(model.encoder.embeddings.layer_norm, "eps", 0.1), "eps=0.1, not 1e-12:"),
    "no dropout": (lambda model: setattr(model.encoder.layers[0], "dropout", nn.Identity()), None),
    "a derived class": (lambda model: setattr(model, "__class__", type("Own", (type(model),), {"__init__": 0})), None),
    "no values": (lambda model: model.to("meta"), "no values"),
    "half precision": (lambda model: model.half(), None),
}


class Compiled(nn.Module):
    """A model with the name that torch.compile gives it, without the seconds that the compiler takes to start."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self._orig_mod = model


def integers(weight) -> nn.Parameter:
    return nn.Parameter(torch.ones(weight.shape, dtype=torch.int8), requires_grad=False)


@pytest.mark.filterwarnings("ignore")  # of torch, about what is out of date
@pytest.mark.parametrize("change", CHANGED)
def test_save_writes_only_what_can_be_read_again(tmp_path, change):
    """The trial before a training says so, too, and draws no random numbers."""
    make, words = CHANGED[change]
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**TINY))
    changed = make(model)
    model = changed if type(changed) is type(model) else model  # a copy, if it is quantized
    seeded, folder = torch.get_rng_state(), tmp_path / "model"
    for dry_run in (True, False):
        if words:
            with pytest.raises(ValueError, match=words):
                model.save(folder, tiny_tokenizer(), dry_run=dry_run)
        else:
            model.save(folder, tiny_tokenizer(), dry_run=dry_run)
    assert torch.equal(torch.get_rng_state(), seeded)
    assert names(tmp_path) == ([] if words else ["model"])
    if words is None:
        loaded, ids = TransformerForSequenceClassification.from_checkpoint(folder), torch.tensor([[2, 7, 9, 3]])
        assert torch.equal(loaded(ids), model.float().eval()(ids))
        assert BertForSequenceClassification.from_pretrained(folder).num_labels == 2


# Where it may be saved


def alone(name: str):
    return lambda folder: (folder / name).write_text('{"mine": 1}')


def model_and(name: str, make):
    """Return a function that saves a model and replaces one name in its folder."""

    def make_both(folder: Path) -> None:
        filled(1.0).save(folder, tiny_tokenizer())
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return make_both


FOREIGN = {
    "a masked LM": lambda folder: TransformerForMaskedLM(BertConfig(**TINY)).save(folder, tiny_tokenizer()),
    "an encoder": lambda folder: BertModel(BertConfig(**TINY)).save_pretrained(folder),
    "a config.json of another program": alone("config.json"),
    "a config.json that is not JSON": lambda folder: (folder / "config.json").write_text("theme = dark"),
    "a config.json that is a list": lambda folder: (folder / "config.json").write_text("[1]"),
    "weights alone": alone("model.safetensors"),
    "a folder vocab.txt": model_and("vocab.txt", Path.mkdir),
    "a folder .git": model_and(".git", Path.mkdir),
    "a file thesis.txt": model_and("thesis.txt", Path.touch),
}
if os.name != "nt":  # as in the Hub's cache
    FOREIGN["a link"] = model_and("vocab.txt", lambda path: path.symlink_to(path.with_name("tokenizer.json")))
A_NEW_ONE = r"\(classifier…\): pass num_labels=2 for a new, untrained one"
ANOTHER = r"\(cls.predictions.*: use one .* BertForMaskedLM"
HEADS = [
    (TransformerForSequenceClassification, "an encoder", A_NEW_ONE),
    (TransformerForSequenceClassification, "a masked LM", A_NEW_ONE),
    (TransformerForTokenClassification, "an encoder", A_NEW_ONE),
    (TransformerForMaskedLM, "an encoder", ANOTHER),
]


@pytest.mark.parametrize(("kind", "found", "remedy"), HEADS)
def test_missing_head_error_names_remedy(tmp_path, kind, found, remedy):
    FOREIGN[found](tmp_path)
    with pytest.raises(ValueError, match=rf"has no weights for this model's head {remedy}"):
        kind.from_checkpoint(tmp_path)
    if remedy == A_NEW_ONE:
        assert kind.from_checkpoint(tmp_path, num_labels=2).config.num_labels == 2


def everything(folder: Path) -> dict[str, tuple]:
    """Return the content, inode and permissions of all that a folder contains."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path.relative_to(folder))] = (content, status.st_ino, status.st_mode)
    return found


@pytest.mark.parametrize("found", FOREIGN)
def test_save_refuses_foreign_folder(tmp_path, found):
    (tmp_path / "model").mkdir()
    FOREIGN[found](tmp_path / "model")
    before = everything(tmp_path)
    for attempt in (TransformerForSequenceClassification.check_folder, WRITERS["classifier"]):
        with pytest.raises(ValueError, match=r"model contains .*: save into a new folder"):
            attempt(tmp_path / "model")
    assert everything(tmp_path) == before


def test_save_refuses_folder_filled_concurrently(tmp_path, monkeypatch):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    real = os.fsync

    def fill_meanwhile(file):
        (tmp_path / "model" / "thesis.txt").write_text("mine")
        real(file)

    monkeypatch.setattr(os, "fsync", fill_meanwhile)
    with pytest.raises(
        ValueError, match=r"model contains thesis.txt, which is not a file of a model: save into a new folder"
    ):
        filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert (tmp_path / "model" / "thesis.txt").read_text() == "mine"
    assert names(tmp_path) == ["model"]


def test_save_leaves_neighbours_alone(tmp_path):
    neighbours = [".model.lock", ".saving-abcdefgh", "model.new"]
    for name in neighbours:
        (tmp_path / name).write_text("mine")
    (tmp_path / "model").mkdir()  # an empty folder is replaced
    for number in (1.0, 2.0):
        filled(number).save(tmp_path / "model", tiny_tokenizer())
        write_file(tmp_path / "file", "content")
        assert saved_number(tmp_path / "model") == number
    assert names(tmp_path) == sorted([*neighbours, "file", "model"])
    assert {(tmp_path / name).read_text() for name in neighbours} == {"mine"}


@unix_only
def test_save_keeps_permissions_of_what_it_replaces(tmp_path):
    """A table of grades that only its owner may read stays private, and so does a model."""
    write_file(tmp_path / "grades.csv", "old")
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    for path, mode in (("grades.csv", 0o600), ("model", 0o700), ("model/vocab.txt", 0o640)):
        (tmp_path / path).chmod(mode)
    write_file(tmp_path / "grades.csv", "new")
    filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("grades.csv", "model", "model/vocab.txt")]
    assert modes == [0o600, 0o700, 0o640]


# What goes wrong on the way

UNUSABLE = ("", "a\0b", "x" * 256, "y/" * 2100, "half \ud83d")
VIEW = head_view([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
WRITERS = {
    "classifier": lambda path: filled(2.0).save(path, tiny_tokenizer()),
    "dry run": lambda path: filled(2.0).save(path, tiny_tokenizer(), dry_run=True),
    "text": lambda path: write_file(path, "x" * 9000),
}
FOLDERS = ("classifier", "dry run")


@contextmanager
def full_disk(size: int = 4000):
    """Limit files to `size` bytes, so that the system itself fails in the middle of a write."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def failing_call(owner, name: str, number: int, error: BaseException):
    """Make the n-th call of a function raise an error."""
    real, calls = getattr(owner, name), []

    def failing(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise error
        return real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, failing)
        yield


FULL = OSError(errno.ENOSPC, "No space left on device")
TROUBLE = {
    "full disk": full_disk,
    "full before the first file": lambda: failing_call(os, "fsync", 1, FULL),
    "interrupted before the first file": lambda: failing_call(os, "fsync", 1, KeyboardInterrupt()),
}


def refusing(owner, name: str, number: int, refuses=lambda *arguments: True):
    """Make the system refuse a call for arguments of which `refuses` is true, with an error number."""
    real = getattr(owner, name)

    def refused(*arguments, **options):
        if refuses(*arguments):
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    patch = pytest.MonkeyPatch()
    patch.setattr(owner, name, refused)
    return patch


def is_saved(path, *_) -> bool:
    return Path(path).name == "saved"


FILE_SYSTEMS = {
    "a mount point (EBUSY)": lambda: [
        refusing(os, name, errno.EBUSY, lambda *paths: any(map(is_saved, paths))) for name in ("rename", "replace")
    ],
    "no locks, permissions, fsync, and nothing is renamed": lambda: [
        *(refusing(os, name, errno.EPERM) for name in ("rename", "replace", "chmod", "fchmod", "fsync")),
        refusing(fcntl, "flock", errno.ENOSYS),
    ],
    "files not reopened": lambda: [refusing(io, "open", errno.EPERM, lambda _, mode="r", *__: mode == "rb+")],
    "old files that a reader has open": lambda: [
        refusing(os, "rmdir", errno.ENOTEMPTY, lambda path, *_, **__: Path(path).name == "old")
    ],
}


@unix_only
@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_save_works_on_file_systems_that_lack_something(tmp_path, system):
    """New and over an earlier one; a model, and a file."""
    patches = FILE_SYSTEMS[system]()
    try:
        for number in (2.0, 3.0):
            for dry_run in (True, False):
                filled(number).save(tmp_path / "models" / "saved", tiny_tokenizer(), dry_run=dry_run)
                write_file(tmp_path / "files" / "saved", str(number), dry_run=dry_run)
            assert saved_number(tmp_path / "models" / "saved") == number
            assert (tmp_path / "files" / "saved").read_text() == str(number)
    finally:
        for patch in patches:
            patch.undo()
    if "reader" in system:
        filled(3.0).save(tmp_path / "models" / "saved", tiny_tokenizer(), dry_run=True)  # removes what was left
    assert names(tmp_path / "models") == names(tmp_path / "files") == ["saved"]
    assert names(tmp_path / "models" / "saved") == WHOLE


@unix_only
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("trouble", TROUBLE)
def test_failed_save_leaves_existing_files_unchanged(tmp_path, trouble, writer):
    (tmp_path / "there").mkdir()
    old = tmp_path / "there" / "saved"
    filled(1.0).save(old, tiny_tokenizer()) if writer in FOLDERS else old.write_text("old")
    before = everything(tmp_path)
    words = r"saved.* could not be saved.*\(.*\): choose a writable folder on a disk with enough space"
    for path in (old, tmp_path / "saved"):
        expected = pytest.raises(KeyboardInterrupt) if "interrupt" in trouble else pytest.raises(OSError, match=words)
        with expected, TROUBLE[trouble]():
            WRITERS[writer](path)
    assert everything(tmp_path) == before


@unix_only
@pytest.mark.parametrize("copied", range(1, 5))
def test_copy_that_fails_keeps_the_new_model_and_names_it(tmp_path, copied):
    """The folder cannot be renamed, so the four files are copied into it, config.json last."""
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    mount = refusing(os, "rename", errno.EBUSY, lambda path, *_: Path(path).name == "model")
    with pytest.raises(OSError, match=r"could not be saved") as raised, failing_call(shutil, "copyfile", copied, FULL):
        filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    mount.undo()
    (kept,) = tmp_path.glob("unsaved-*/model")
    assert f"; what was to be saved is in {kept})" in str(raised.value)
    assert saved_number(kept) == 2
    assert names(tmp_path) == ["model", kept.parent.name]
    staging_path(tmp_path / "model").mkdir()  # as after a kill
    with pytest.raises(ValueError, match=rf"model is not a checkpoint, because it has no config\.json: use {kept}"):
        saved_number(tmp_path / "model")


def test_reader_during_a_save_gets_one_model_or_an_error(tmp_path, monkeypatch):
    """Each error's remedy works: to load again, or to save again after a kill."""
    folder = tmp_path / "model"
    filled(1.0).save(folder, tiny_tokenizer())
    read_weights = checkpoint.read_weights

    def read_after_a_save(name):
        filled(2.0).save(folder, tiny_tokenizer())
        return read_weights(name)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "read_weights", read_after_a_save)
        with pytest.raises(ValueError, match="model was saved again while it was being read: load it again"):
            TransformerForSequenceClassification.from_checkpoint(folder)
    assert saved_number(folder) == 2
    staging_path(folder).mkdir()
    folder.rename(staging_path(folder) / "old")
    with pytest.raises(OSError, match=r"model is being saved, or its saving was killed: wait for .*, or save"):
        TransformerForSequenceClassification.from_checkpoint(folder)
    filled(3.0).save(folder, tiny_tokenizer(), dry_run=True)
    assert saved_number(folder) == 2


# What may be there already

OTHER_WRITERS = {"view": VIEW.save, "ONNX": lambda path: export_onnx(TransformerEncoder(BertConfig(**SMALL)), path)}


PLACES = {
    "a pipe": (lambda path: os.mkfifo(path), "a device, pipe or socket"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "a symbolic link"),
    "a link to a file": (lambda path: path.symlink_to(__file__), "a symbolic link"),
    "a link to a folder": (lambda path: path.symlink_to(path.parent), "a symbolic link"),
    "a file": (Path.touch, "a file"),
    "a folder": (Path.mkdir, "a folder"),
}


@unix_only
@pytest.mark.parametrize("writer", WRITERS | OTHER_WRITERS)
def test_save_refuses_to_replace_other_file_types(tmp_path, monkeypatch, writer):
    """Check that saving fails before any work starts, even for root."""
    for work in ("utils.support.onnx.onnx_bytes", "utils.support.saving.read_vocabulary"):
        monkeypatch.setattr(work, lambda *arguments: pytest.fail("it was begun"))
    wanted = "a folder" if writer in FOLDERS else "a file"
    for place, (make, kind) in PLACES.items():
        if kind == wanted:
            continue
        make(tmp_path / place)
        before = everything(tmp_path)
        for path in (tmp_path / place, tmp_path / "missing" / ".." / place):
            with pytest.raises(FileExistsError, match=rf"{place} is {kind}, not {wanted}: choose another path"):
                (WRITERS | OTHER_WRITERS)[writer](path)
        assert everything(tmp_path) == before


@unix_only
def test_save_refuses_write_protected_and_current_places(tmp_path, monkeypatch):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    write_file(tmp_path / "file", "mine")
    for name, mode, writer in (("model", 0o500, "classifier"), ("file", 0o400, "text")):
        (tmp_path / name).chmod(mode)
        with pytest.raises(FileExistsError, match=rf"{name} is write-protected: choose another path"):
            WRITERS[writer](tmp_path / name)
        (tmp_path / name).chmod(0o700)
    monkeypatch.chdir(tmp_path / "model")
    for path in (".", "", "../model", Path()):
        with pytest.raises(
            (FileExistsError, ValueError),
            match=r"is the current folder, which .*: choose another path|must be the name of a file",
        ):
            filled(2.0).save(path, tiny_tokenizer())
    assert saved_number(tmp_path / "model") == 1
    assert (tmp_path / "file").read_text() == "mine"


@unix_only
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        *((path, TypeError, r"a path must be a string or a pathlib\.Path, got") for path in (None, 5, b"saved")),
        *((path, ValueError, "a path must be the name of a file or folder, got") for path in UNUSABLE),
        *((place, OSError, "saved could not be saved") for place in ("/proc/saved", f"{__file__}/saved")),
    ],
)
def test_save_explains_paths_it_cannot_use(writer, path, error, words):
    with pytest.raises(error, match=words):
        WRITERS[writer](path)
