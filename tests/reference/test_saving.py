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
from filelock import FileLock
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ModernBertConfig,
    ModernBertModel,
    pipeline,
)

from publish import notebooks
from tests.helpers import TINY, filled, names, saved_number, tiny_tokenizer, unix_only
from utils.checkpoint import load_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import Examples
from utils.files import check_writable, write_file
from utils.masked_lm import TransformerForMaskedLM
from utils.tokenization import WordPieceTokenizer, write_vocabulary
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
    model = TransformerForSequenceClassification.from_checkpoint(folder)
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
    assert [answer["label"] for answer in found] == [["bad", "good"][label] for label in before.argmax(dim=-1)]
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
    ours = TransformerForSequenceClassification.from_checkpoint(tmp_path)
    ids = torch.tensor([[2, 7, 9, 3]])
    assert (ours(ids) - official(ids).logits).abs().max() <= 1e-5


def test_what_transformers_saved_in_several_files_loads_here(tmp_path):
    torch.manual_seed(0)
    official = BertForSequenceClassification(BertConfig(**TINY)).eval()
    official.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 1
    assert not (tmp_path / "model.safetensors").exists()
    ids = torch.tensor([[2, 7, 9, 3]])
    ours = TransformerForSequenceClassification.from_checkpoint(tmp_path)
    assert (ours(ids) - official(ids).logits).abs().max() <= 1e-5
    next(tmp_path.glob("model-*.safetensors")).unlink()
    with pytest.raises(ValueError, match=r"model-.*\.safetensors cannot be read"):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)


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


@pytest.fixture
def theirs(tmp_path, official_tokenizer) -> Path:
    """A classifier as transformers saves one."""
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(**REAL)).save_pretrained(tmp_path / "theirs")
    official_tokenizer.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_an_official_tokenizer_is_saved_as_ours_is(trained, folder, official_tokenizer, tmp_path):
    trained.save(tmp_path, official_tokenizer, ["bad", "good"])
    assert content(tmp_path) == content(folder)


def test_without_a_tokenizer_the_checkpoints_own_is_saved(bert, tokenizer, tmp_path):
    TransformerForSequenceClassification.from_checkpoint(bert, num_labels=2).save(tmp_path / "one")
    TransformerForSequenceClassification.from_checkpoint(tmp_path / "one").save(tmp_path / "two")
    for place in ("one", "two"):
        assert WordPieceTokenizer.from_checkpoint(tmp_path / place).vocab == tokenizer.vocab


def test_a_loaded_model_is_saved_where_it_came_from(trained, tokenizer, tmp_path):
    trained.save(tmp_path, tokenizer)
    first = content(tmp_path)
    TransformerForSequenceClassification.from_checkpoint(tmp_path).save(tmp_path)
    second = content(tmp_path)
    settings = [json.loads(files.pop("config.json")) for files in (first, second)]
    assert settings[0] == settings[1]
    assert second == first


def test_a_model_made_from_a_config_must_be_given_a_tokenizer(tmp_path):
    with pytest.raises(ValueError, match=r"made from a configuration, which has no vocabulary: pass tokenizer="):
        filled(1.0).save(tmp_path / "model")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("size", "sizes"), [(40, r"40 tokens with ids up to 39, .* is 50"), (51, r"51 tokens with ids up to 50, .* is 50")]
)
def test_a_tokenizer_of_another_model_is_refused(tmp_path, size, sizes):
    with pytest.raises(ValueError, match=sizes):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer(size))
    assert names(tmp_path) == []


def test_an_official_tokenizer_of_another_model_is_refused(tmp_path, official_tokenizer):
    with pytest.raises(ValueError, match=r"30522 tokens with ids up to 30521, and the model's vocab_size is 50"):
        filled(1.0).save(tmp_path / "model", official_tokenizer)
    assert names(tmp_path) == []


def test_the_tokenizer_that_was_in_the_folder_gives_way(theirs, trained, tokenizer):
    """Its tokenizer.json would be read before our vocab.txt."""
    swapped = dict(tokenizer.vocab)
    swapped["good"], swapped["bad"] = swapped["bad"], swapped["good"]
    ours = WordPieceTokenizer(swapped)
    trained.save(theirs, ours)
    assert WordPieceTokenizer.from_checkpoint(theirs).encode("good or bad") == ours.encode("good or bad")
    assert AutoTokenizer.from_pretrained(theirs).encode("good or bad") == ours.encode("good or bad")


@pytest.mark.parametrize("token", ["a ", "a\nb", "a\u3000", "\t", "\u2028", ""])
def test_a_token_of_white_space_is_saved(tmp_path, token):
    """bert-base-chinese has U+2028, which vocab.txt cannot hold."""
    vocab = dict(tiny_tokenizer().vocab)
    vocab[token] = vocab.pop("z")
    for lowercase in (True, False):
        filled(1.0).save(tmp_path / "model", WordPieceTokenizer(vocab, lowercase))
        ours, official = WordPieceTokenizer.from_checkpoint(tmp_path / "model"), load_tokenizer(tmp_path / "model")
        assert (ours.vocab, ours.lowercase) == (vocab, lowercase)
        assert ours.encode("A b", "c") == official("A b", "c")["input_ids"]
        assert (ours.vocab["[UNK]"] in ours.encode("A b")) is not lowercase


def test_a_vocabulary_that_comes_back_changed_is_refused(tmp_path):
    vocab = tiny_tokenizer().vocab | {"last": 60}  # no line of vocab.txt for the ids before
    with pytest.raises(ValueError, match=r"a file cannot hold the token 'last'"):
        write_vocabulary(tmp_path, vocab, True, 16)


# One checkpoint, one meaning


def test_a_saved_classifier_comes_back_whole_or_with_a_new_head(tmp_path):
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**TINY, num_labels=3)).eval()
    model.save(tmp_path, tiny_tokenizer(), ["b", "a", "c"])
    whole = TransformerForSequenceClassification.from_checkpoint(tmp_path)
    assert list(whole.config.id2label.values()) == ["b", "a", "c"]
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in whole.state_dict().items())
    for num_labels in (3, 2):
        new = TransformerForSequenceClassification.from_checkpoint(tmp_path, num_labels=num_labels)
        assert list(new.config.id2label.values()) == [f"LABEL_{number}" for number in range(num_labels)]
        assert torch.equal(new.pooler.weight, model.pooler.weight)
        assert not torch.equal(new.classifier.weight[:2], model.classifier.weight[:2])
    assert not hasattr(TransformerForSequenceClassification, "load")


@pytest.mark.parametrize("head", ["encoder", "masked LM"])
def test_without_a_head_the_error_says_how_to_get_one(tmp_path, head):
    FOREIGN[f"a{'n' * (head == 'encoder')} {head}"](tmp_path)
    words = r"holds no weights of this model's head \(classifier…\): num_labels=2 asks for a new, untrained one"
    with pytest.raises(ValueError, match=words):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)
    assert TransformerForSequenceClassification.from_checkpoint(tmp_path, num_labels=2).config.num_labels == 2


# The names of the classes


def test_names_of_classes_are_kept(tmp_path):
    filled(1.0).save(tmp_path, tiny_tokenizer(), ["no", "yes"])
    TransformerForSequenceClassification.from_checkpoint(tmp_path).save(tmp_path)
    config = TransformerForSequenceClassification.from_checkpoint(tmp_path).config
    assert (config.id2label, config.label2id) == ({0: "no", 1: "yes"}, {"no": 0, "yes": 1})


@pytest.mark.parametrize(
    "labels",
    [
        *(["one"], ["a", "b", "c"], ["same", "same"], "no", ["a", 1], [None, "a"], 2),
        *({"a", "b"}, frozenset("ab"), {"a": 0, "b": 1}, {0: "a", 1: "b"}, iter("ab")),  # of no order, or another
    ],
)
def test_names_that_do_not_fit_the_classes(tmp_path, labels):
    words = rf"labels={re.escape(repr(labels))} must be a list of 2 different names, in the order of the classes"
    with pytest.raises(ValueError, match=words):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer(), labels)
    assert names(tmp_path) == []


# Where it may be saved


@pytest.mark.parametrize("name", ["thesis.txt", ".git", "training.safetensors"])
def test_a_folder_with_something_else_in_it_is_left_alone(theirs, name):
    (theirs / name).write_text("mine")
    before = content(theirs)
    with pytest.raises(ValueError, match=rf"holds {re.escape(name)}, which is no file of a model: save into a folder"):
        TransformerForSequenceClassification.from_checkpoint(theirs).save(theirs)
    assert content(theirs) == before


def masked_lm(folder: Path) -> None:
    TransformerForMaskedLM(BertConfig(**TINY)).save(folder, tiny_tokenizer())


def of_another_family(folder: Path) -> None:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    ModernBertModel(ModernBertConfig(**sizes, vocab_size=50, pad_token_id=0)).save_pretrained(folder)


def alone(name: str):
    return lambda folder: (folder / name).write_text('{"mine": 1}')


def folder_named(name: str):
    def make(folder: Path) -> None:
        filled(1.0).save(folder, tiny_tokenizer())
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
        (folder / name / "thesis.txt").write_text("mine")

    return make


def linked(folder: Path) -> None:
    """As in the Hub's cache."""
    filled(1.0).save(folder, tiny_tokenizer())
    (folder / "model.safetensors").rename(folder.parent / "blob")
    (folder / "model.safetensors").symlink_to(folder.parent / "blob")


FOREIGN = {
    "a masked LM": masked_lm,
    "ModernBERT": of_another_family,
    "an encoder": lambda folder: BertModel(BertConfig(**TINY)).save_pretrained(folder),
    "a config.json of another program": lambda folder: (folder / "config.json").write_text('{"theme": "dark"}'),
    "a config.json that is no JSON": lambda folder: (folder / "config.json").write_text("theme = dark"),
    "a config.json that is a list": lambda folder: (folder / "config.json").write_text("[1]"),
    **{f"{name} alone": alone(name) for name in ("vocab.txt", "tokenizer.json", "model.safetensors")},
    **{f"a folder {name}": folder_named(name) for name in ("config.json", "vocab.txt", "tokenizer.json")},
}
if os.name != "nt":
    FOREIGN["a link"] = linked


def everything(folder: Path) -> dict[str, bytes]:
    """What all files below a folder hold, links followed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("found", FOREIGN)
def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path, found):
    folder = tmp_path / "model"
    folder.mkdir()
    FOREIGN[found](folder)
    before = everything(tmp_path)
    with pytest.raises(ValueError, match=r"holds .*: save into a folder of its own"):
        filled(2.0).save(folder, tiny_tokenizer())
    assert everything(tmp_path) == before


def test_a_folder_that_somebody_fills_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    real = os.fsync

    def fill_meanwhile(file):
        (tmp_path / "model" / "thesis.txt").write_text("mine")
        real(file)

    monkeypatch.setattr(os, "fsync", fill_meanwhile)
    with pytest.raises(ValueError, match=r"holds thesis.txt, which is no file of a model"):
        filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert (tmp_path / "model" / "thesis.txt").read_text() == "mine"
    assert names(tmp_path) == ["model"]


def test_an_empty_folder_and_its_neighbours(tmp_path):
    (tmp_path / "model").mkdir()
    for name in (".model.new", ".model.old", ".model.1.tmp", "model.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("mine")
    for number in (1.0, 2.0):
        filled(number).save(tmp_path / "model", tiny_tokenizer())
        assert saved_number(tmp_path / "model") == number
    assert sum(path.read_text() == "mine" for path in tmp_path.glob("*/thesis.txt")) == 4


def test_the_current_folder_stays_where_it_is(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    for number in (1.0, 2.0):
        filled(number).save(".", tiny_tokenizer())
        assert Path.cwd() == tmp_path / "model"
        assert names(Path.cwd()) == WHOLE
        assert saved_number(Path()) == number
    Path("note.txt").write_text("written")
    assert (tmp_path / "model" / "note.txt").read_text() == "written"
    assert names(tmp_path) == ["model"]


@unix_only
def test_a_saved_folder_can_be_read_by_whom_the_system_lets(tmp_path):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "plain" / "file").touch()
    modes = {path.stat().st_mode for path in (*(tmp_path / "model").iterdir(), tmp_path / "plain" / "file")}
    assert len(modes) == 1


def test_a_classifier_of_transformers_may_be_saved_over(theirs):
    model = TransformerForSequenceClassification.from_checkpoint(theirs)
    model.save(theirs)
    assert names(theirs) == WHOLE
    loaded = TransformerForSequenceClassification.from_checkpoint(theirs)
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
    with pytest.raises(OSError, match=r"nowhere\" is no local folder and could not be fetched"):
        TransformerForSequenceClassification.from_checkpoint(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_half_written_folder(tmp_path, name):
    filled(1.0).save(tmp_path, tiny_tokenizer())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"{name} cannot be read \(.*\): (fetch or save it|save the model) again"):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"holds no (config.json, so it is not a checkpoint|weights): "):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)


def test_a_folder_whose_parts_disagree(tmp_path):
    filled(1.0).save(tmp_path, tiny_tokenizer())
    config = tmp_path / "config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps(settings | {"model_type": "gpt2"}))
    with pytest.raises(ValueError, match=r'model_type="gpt2", and this series builds "bert"'):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)
    config.write_text(json.dumps(settings | {"num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"missing: encoder.layers.2"):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)
    config.write_text(json.dumps(settings))
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"classifier.weight": torch.zeros(5, 12)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"mis-shaped: classifier.weight \(5, 12\) for \(2, 12\)"):
        TransformerForSequenceClassification.from_checkpoint(tmp_path)


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


def test_what_a_killed_process_left_is_removed(tmp_path):
    for name in ("model", "file"):
        for kind in ("new", "old"):
            (tmp_path / f".{name}.draft-abcd_123" / kind).mkdir(parents=True)
            (tmp_path / f".{name}.draft-abcd_123" / kind / "model.safetensors").write_text("half")
        (tmp_path / f".{name}.lock").touch()
    others = [".model.draft-1.draft-abcd_123", ".model.draft-thesis", ".models.draft-abcd_123"]
    for other in others:
        (tmp_path / other).mkdir()
    filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert saved_number(tmp_path / "model") == 2
    write_file(tmp_path / "file", "whole")
    assert names(tmp_path) == sorted([*others, "file", "model"])


def test_the_only_model_that_a_killed_process_left_stays_until_another_is_saved(tmp_path, monkeypatch):
    filled(1.0).save(tmp_path / ".model.draft-abcd_123" / "old", tiny_tokenizer())
    check_writable(tmp_path / "model")
    with monkeypatch.context() as patch:
        break_off(patch, os, "fsync", 1, OSError("input/output error"))
        with pytest.raises(OSError, match=r"input/output error"):
            filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert names(tmp_path) == [".model.draft-abcd_123"]
    assert saved_number(tmp_path / ".model.draft-abcd_123" / "old") == 1
    filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert names(tmp_path) == ["model"]


def test_what_a_killed_process_locked_can_be_read_and_saved(tmp_path):
    (tmp_path / ".model.lock").touch()
    with pytest.raises(OSError, match=r"model is being saved, or whoever saved it was killed: read it again"):
        saved_number(tmp_path / "model")
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    (tmp_path / ".model.lock").touch()
    assert saved_number(tmp_path / "model") == 1
    filled(2.0).save(tmp_path / "model", tiny_tokenizer())
    assert saved_number(tmp_path / "model") == 2
    assert names(tmp_path) == ["model"]


def test_who_waits_too_long_for_another_to_be_done_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.files.TURN", 0.1)
    with FileLock(tmp_path / ".model.lock"), pytest.raises(OSError, match=r"model could not be saved \(.*lock"):
        filled(1.0).save(tmp_path / "model", tiny_tokenizer())


@unix_only
def test_a_folder_is_read_where_nothing_can_be_written(tmp_path):
    with tempfile.TemporaryDirectory() as folder:  # as in the test of an unwritable folder
        filled(1.0).save(Path(folder) / "model", tiny_tokenizer())
        Path(folder).chmod(0o555)
        (Path(folder) / "model").chmod(0o555)
        with somebody_else():
            assert saved_number(Path(folder) / "model") == 1
        Path(folder).chmod(0o755)
        (Path(folder) / "model").chmod(0o755)


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
    with pytest.raises(ValueError, match=r"is a file: save into a folder"):
        filled(1.0).save(tmp_path / "saved", tiny_tokenizer())
    assert (tmp_path / "saved").read_text() == "mine"
