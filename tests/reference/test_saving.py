"""A saved classifier is the same in every hand, and is written whole or not at all, whatever goes wrong."""

import json
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    pipeline,
)

from publish import notebooks
from tests.helpers import TINY, filled, names, saved_number, tiny_tokenizer, unix_only
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import Examples
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune, predict
from views import head_view

REAL = TINY | {"vocab_size": 30522, "max_position_embeddings": 24}
TEXTS = ["A good film!", "Bad.", "Crème brûlée in 東京 :-) – unaffable", "good bad " * 30, "[MASK] of it"]
WHOLE = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]


def content(path: Path) -> dict[str, bytes]:
    """What a file or the files of a folder hold, by name."""
    return {file.name: file.read_bytes() for file in ([path] if path.is_file() else path.iterdir())}


# The same in every hand


@pytest.fixture(scope="module")
def trained(tokenizer) -> TransformerForSequenceClassification:
    """A small model that has learned a little."""
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**REAL))
    examples = Examples(["a good film", "a bad film", "so good", "so bad"] * 10, [1, 0, 1, 0] * 10)
    settings = {"epochs": 6, "batch_size": 8, "learning_rate": 2e-2, "quiet": True}
    fine_tune(model, tokenizer, examples, examples, **settings)
    return model


@pytest.fixture(scope="module")
def before(trained, tokenizer) -> torch.Tensor:
    """The probabilities of TEXTS before saving, (N, 2): texts of both classes, and none of them at a half."""
    labels, probabilities = predict(trained, tokenizer, TEXTS)
    assert set(labels.tolist()) == {0, 1}
    return probabilities


@pytest.fixture(scope="module")
def folder(trained, tokenizer, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "new" / "model"
    trained.save(folder, tokenizer, ["bad", "good"])
    return folder


def test_only_the_files_of_a_checkpoint_are_written(folder):
    assert names(folder) == WHOLE
    assert names(folder.parent) == ["model"]


def test_our_own_classes_read_it(folder, before):
    model = TransformerForSequenceClassification.load(folder)
    assert not model.training
    assert model.config.name_or_path == str(folder)  # which a view's title takes
    labels, probabilities = predict(model, WordPieceTokenizer.from_checkpoint(folder), TEXTS)
    assert torch.equal(probabilities, before)
    assert torch.equal(labels, before.argmax(dim=-1))


def test_transformers_reads_it(folder, before):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    options = {"output_loading_info": True}
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, **options)
    assert type(model) is BertForSequenceClassification
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert model.dtype == torch.float32
    with torch.no_grad():
        logits = model(**tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")).logits
    assert (logits.softmax(dim=-1) - before).abs().max() <= 1e-5


def test_a_pipeline_of_transformers_reads_it_with_the_names_of_the_classes(folder, before):
    classify = pipeline("text-classification", str(folder), device="cpu")
    found = classify(TEXTS, truncation=True)
    assert [answer["label"] for answer in found] == [
        ["bad", "good"][label] for label in before.argmax(dim=-1)
    ]
    assert [answer["score"] for answer in found] == pytest.approx(before.amax(dim=-1).tolist(), abs=1e-5)


def test_a_tokenizer_that_keeps_the_case_comes_back_so(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "É", "e", "A", "a", "##b", "!", "東", "B"]
    cased = WordPieceTokenizer({token: number for number, token in enumerate(tokens)}, lowercase=False)
    config = BertConfig(**TINY | {"vocab_size": len(tokens)})
    TransformerForSequenceClassification(config).save(tmp_path, cased)
    wanted = cased.encode("É a Ab! 東 é B")
    assert WordPieceTokenizer.from_checkpoint(tmp_path).encode("É a Ab! 東 é B") == wanted
    assert AutoTokenizer.from_pretrained(tmp_path).encode("É a Ab! 東 é B") == wanted


def test_what_transformers_saved_loads_here(tmp_path):
    torch.manual_seed(0)
    official = BertForSequenceClassification(BertConfig(**TINY, num_labels=4)).eval()
    official.save_pretrained(tmp_path)
    ours = TransformerForSequenceClassification.load(tmp_path)
    ids = torch.tensor([[2, 7, 9, 3]])
    assert (ours(ids) - official(ids).logits).abs().max() <= 1e-5


def test_what_transformers_saved_in_several_files_loads_here(tmp_path):
    torch.manual_seed(0)
    official = BertForSequenceClassification(BertConfig(**TINY)).eval()
    official.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    assert not (tmp_path / "model.safetensors").exists()
    ids = torch.tensor([[2, 7, 9, 3]])
    ours = TransformerForSequenceClassification.load(tmp_path)
    assert (ours(ids) - official(ids).logits).abs().max() <= 1e-5
    next(tmp_path.glob("model-*.safetensors")).unlink()
    with pytest.raises(ValueError, match=r"model-.*\.safetensors cannot be read"):
        TransformerForSequenceClassification.load(tmp_path)


def test_a_half_precision_config_does_not_reach_the_saved_model(tmp_path):
    config = BertConfig(**TINY, torch_dtype=torch.float16)  # the name that transformers 4 and 5 both take
    TransformerForSequenceClassification(config).save(tmp_path / "model", tiny_tokenizer())
    assert BertForSequenceClassification.from_pretrained(tmp_path / "model").dtype == torch.float32


# Whose vocabulary


@pytest.fixture
def bert(tmp_path, official_tokenizer) -> Path:
    """A checkpoint as transformers saves one: an encoder without a head, and the official tokenizer."""
    torch.manual_seed(0)
    BertModel(BertConfig(**REAL)).save_pretrained(tmp_path / "bert")
    official_tokenizer.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_an_official_tokenizer_is_saved_as_ours_is(trained, folder, official_tokenizer, tmp_path):
    trained.save(tmp_path, official_tokenizer, ["bad", "good"])
    assert content(tmp_path) == content(folder)


def test_without_a_tokenizer_the_checkpoints_own_is_saved(bert, tokenizer, tmp_path):
    TransformerForSequenceClassification.from_checkpoint(bert).save(tmp_path / "one")
    TransformerForSequenceClassification.load(tmp_path / "one").save(tmp_path / "two")
    for place in ("one", "two"):
        assert WordPieceTokenizer.from_checkpoint(tmp_path / place).vocab == tokenizer.vocab


def test_a_loaded_model_is_saved_where_it_came_from(trained, tokenizer, tmp_path):
    trained.save(tmp_path, tokenizer)
    first = content(tmp_path)
    TransformerForSequenceClassification.load(tmp_path).save(tmp_path)
    second = content(tmp_path)
    settings = [json.loads(files.pop("config.json")) for files in (first, second)]
    assert settings[0] == settings[1]
    assert second == first


def test_a_model_made_from_a_config_must_be_given_a_tokenizer(tmp_path):
    with pytest.raises(
        ValueError, match=r"made from a configuration, which has no vocabulary: pass tokenizer="
    ):
        filled(1.0).save(tmp_path / "model")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("size", "sizes"),
    [(40, r"40 tokens with ids up to 39, .* is 50"), (51, r"51 tokens with ids up to 50, .* is 50")],
)
def test_a_tokenizer_of_another_model_is_refused(tmp_path, size, sizes):
    with pytest.raises(ValueError, match=sizes):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer(size))
    assert names(tmp_path) == []


def test_an_official_tokenizer_of_another_model_is_refused(tmp_path, official_tokenizer):
    with pytest.raises(
        ValueError, match=r"30522 tokens with ids up to 30521, and the model's vocab_size is 50"
    ):
        filled(1.0).save(tmp_path / "model", official_tokenizer)
    assert names(tmp_path) == []


def test_the_tokenizer_that_was_in_the_folder_gives_way(bert, tmp_path, trained, tokenizer):
    """Its tokenizer.json would be read before our vocab.txt."""
    swapped = dict(tokenizer.vocab)
    swapped["good"], swapped["bad"] = swapped["bad"], swapped["good"]
    ours = WordPieceTokenizer(swapped)
    trained.save(bert, ours)
    assert WordPieceTokenizer.from_checkpoint(bert).encode("good or bad") == ours.encode("good or bad")
    assert AutoTokenizer.from_pretrained(bert).encode("good or bad") == ours.encode("good or bad")


# The names of the classes


def test_names_of_classes_are_kept(tmp_path):
    filled(1.0).save(tmp_path, tiny_tokenizer(), ["no", "yes"])
    TransformerForSequenceClassification.load(tmp_path).save(tmp_path)
    config = TransformerForSequenceClassification.load(tmp_path).config
    assert (config.id2label, config.label2id) == ({0: "no", 1: "yes"}, {"no": 0, "yes": 1})


@pytest.mark.parametrize("labels", [["one"], ["a", "b", "c"], ["same", "same"], "no"])
def test_names_that_do_not_fit_the_classes(tmp_path, labels):
    with pytest.raises(ValueError, match=rf"labels={re.escape(repr(labels))} must be 2 different names"):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer(), labels)
    assert names(tmp_path) == []


# Where it may be saved


@pytest.mark.parametrize("name", ["thesis.txt", ".git", "training.safetensors"])
def test_a_folder_with_something_else_in_it_is_left_alone(bert, name):
    (bert / name).write_text("mine")
    before = content(bert)
    with pytest.raises(
        ValueError, match=rf"holds {re.escape(name)}, which is no file of a model: save into a folder"
    ):
        TransformerForSequenceClassification.from_checkpoint(bert).save(bert)
    assert content(bert) == before


def test_a_checkpoint_of_bert_may_be_saved_over(bert):
    model = TransformerForSequenceClassification.from_checkpoint(bert)
    model.save(bert)
    assert names(bert) == WHOLE
    loaded = TransformerForSequenceClassification.load(bert)
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in loaded.state_dict().items())


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_do_not_replace_a_good_model(tmp_path, value):
    filled(1.0).save(tmp_path, tiny_tokenizer())
    before = content(tmp_path)
    broken = filled(2.0)
    with torch.no_grad():
        broken.encoder.layers[1].attention.query.weight[3] = value
    message = r"^bert\.encoder\.layer\.1\.attention\.self\.query\.weight holds NaN or inf: take the weights"
    with pytest.raises(ValueError, match=message):
        broken.save(tmp_path, tiny_tokenizer())
    assert content(tmp_path) == before


# Loading what is not whole


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no folder: pass one that save\(\) has written"):
        TransformerForSequenceClassification.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_half_written_folder(tmp_path, name):
    filled(1.0).save(tmp_path, tiny_tokenizer())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ValueError, match=rf"{name} cannot be read \(.*\): (fetch or save it|save the model) again"
    ):
        TransformerForSequenceClassification.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"holds no (config.json, so it is no checkpoint|weights): "):
        TransformerForSequenceClassification.load(tmp_path)


def test_a_folder_whose_parts_disagree(tmp_path):
    filled(1.0).save(tmp_path, tiny_tokenizer())
    config = tmp_path / "config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps(settings | {"model_type": "gpt2"}))
    with pytest.raises(ValueError, match=r'model_type="gpt2", and this series builds "bert"'):
        TransformerForSequenceClassification.load(tmp_path)
    config.write_text(json.dumps(settings | {"num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"missing: encoder.layers.2"):
        TransformerForSequenceClassification.load(tmp_path)
    config.write_text(json.dumps(settings))
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"classifier.weight": torch.zeros(5, 12)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"mis-shaped: classifier.weight \(5, 12\) for \(2, 12\)"):
        TransformerForSequenceClassification.load(tmp_path)


# A save that breaks off


def break_off(monkeypatch, owner, name: str, number: int, error: BaseException) -> None:
    """Let the n-th call of a function raise an error."""
    real, calls = getattr(owner, name), []

    def failing(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, failing)


MOMENTS = {
    "before the first file is on the disk": (os, "fsync", 1),
    "before the last file is on the disk": (os, "fsync", 4),
    "before the old folder goes": (Path, "rename", 1),
    "before the new one comes": (Path, "rename", 2),
}


@pytest.mark.parametrize("error", [OSError("input/output error"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_save_that_breaks_off_leaves_the_old_model(tmp_path, monkeypatch, moment, error):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    message = r"could not be saved \(input/output error\): choose a place that you may write"
    with monkeypatch.context() as patch:
        break_off(patch, *MOMENTS[moment], error)
        with pytest.raises(type(error), match=message if isinstance(error, OSError) else None):
            filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert names(tmp_path) == ["model"]
    assert saved_number(tmp_path / "model") == 1
    filled(3.0).save(tmp_path / "model", tiny_tokenizer())
    assert saved_number(tmp_path / "model") == 3


def test_what_a_killed_process_left_is_written_over(tmp_path):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    for kind in ("new", "old"):
        (tmp_path / f".model.{kind}").mkdir()
        (tmp_path / f".model.{kind}" / "model.safetensors").write_text("half")
    filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert saved_number(tmp_path / "model") == 2
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("error", [OSError("input/output error"), KeyboardInterrupt()], ids=repr)
def test_a_file_that_breaks_off_stays_as_it_was(tmp_path, monkeypatch, error):
    VIEW.save(tmp_path / "view.html")
    before = content(tmp_path)
    break_off(monkeypatch, os, "fsync", 1, error)
    with pytest.raises(type(error)):
        head_view([torch.full((1, 2, 3, 3), 1 / 3)], ["x", "y", "z"]).save(tmp_path / "view.html")
    assert content(tmp_path) == before


# A disk that is full, and a place that nobody may write

VIEW = head_view([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
SAVERS = {
    "classifier": lambda path: filled(2.0).save(path, tiny_tokenizer()),
    "view": VIEW.save,
    "notebook": lambda path: notebooks.save(nbformat.v4.new_notebook(metadata={"long": "x" * 9000}), path),
}
REMEDY = r"saved.* could not be saved.*\(.*\): (choose|use) .* that you may write, on a disk with room for it"


@contextmanager
def full_disk(size: int = 4000):
    """No file can grow beyond so many bytes: the system itself refuses, in the middle of a write."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def somebody_else():
    """As root, be a user without rights, since root may write everywhere; a normal user stays as he is."""
    root = os.geteuid() == 0
    if root:
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("this root can be nobody else, so nothing is unwritable")
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@unix_only
@pytest.mark.parametrize("name", SAVERS)
def test_a_full_disk_keeps_what_was_saved(tmp_path, name):
    if name == "classifier":
        filled(1.0).save(tmp_path / "saved", tiny_tokenizer())
    else:
        (tmp_path / "saved").write_text("old")
    before = content(tmp_path / "saved")
    with pytest.raises(OSError, match=REMEDY), full_disk():
        SAVERS[name](tmp_path / "saved")
    assert content(tmp_path / "saved") == before
    assert names(tmp_path) == ["saved"]


@unix_only
@pytest.mark.parametrize("name", SAVERS)
def test_a_full_disk_is_left_as_it_was(tmp_path, name):
    with pytest.raises(OSError, match=r"File too large"), full_disk():
        SAVERS[name](tmp_path / "saved")
    assert names(tmp_path) == []


@unix_only
@pytest.mark.parametrize("name", SAVERS)
def test_an_unwritable_folder_is_named(name):
    with tempfile.TemporaryDirectory() as folder:  # tmp_path cannot be read by another user, and this one can
        path = Path(folder)
        path.chmod(0o555)
        with somebody_else(), pytest.raises(OSError, match=REMEDY) as error:
            SAVERS[name](path / "saved")
        path.chmod(0o755)
        assert "Permission denied" in str(error.value)
        assert folder in str(error.value)
        assert names(path) == []


@pytest.mark.parametrize("name", SAVERS)
def test_a_file_where_a_folder_should_be(tmp_path, name):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=REMEDY):
        SAVERS[name](tmp_path / "file" / "saved")
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["file"]


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "saved").write_text("mine")
    with pytest.raises(FileExistsError, match=r"is a file: save into a folder"):
        filled(1.0).save(tmp_path / "saved", tiny_tokenizer())
    assert (tmp_path / "saved").read_text() == "mine"
