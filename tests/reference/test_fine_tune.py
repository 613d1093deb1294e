"""The command line of fine_tune: the head and the classes of the model, the printed lines, and invalid options."""

import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel, pipeline

import fine_tune
from tests.helpers import TINY, names, tiny_tokenizer, write_vocabulary
from utils.classifier import TransformerForSequenceClassification
from utils.support.checkpoint import Checkpoint
from utils.support.datasets import Examples
from utils.support.labelled_texts import sorted_names
from utils.support.labelled_words import read_words
from utils.token_labels import TransformerForTokenClassification, predict_labels
from utils.training import fine_tune as learn
from utils.training import predict

ROWS = [f"{letter} {number},{'pos' if letter == 'p' else 'neg'}" for letter in "np" for number in range(30)]


@pytest.fixture
def own(tmp_path) -> Path:
    """A CSV of two classes that the first letter decides."""
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *ROWS]), "utf-8")
    return tmp_path / "own.csv"


@cache
def trained() -> TransformerForSequenceClassification:
    """Return a classifier trained on the rows, in which class 0 is "pos"."""
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**TINY))
    texts, names = zip(*(row.split(",") for row in ROWS), strict=True)
    examples = Examples(texts, [int(name == "neg") for name in names])
    options = {"epochs": 8, "batch_size": 8, "learning_rate": 2e-2, "quiet": True}
    learn(model, tiny_tokenizer(), examples, examples, **options)
    return model


def saved(folder: Path, labels: list[str] | None) -> Path:
    """Save a classifier that is always right about the rows if its classes are named "pos" and "neg"."""
    config = BertConfig(**TINY, num_labels=len(labels or "ab"))
    model = trained() if config.num_labels == 2 else TransformerForSequenceClassification(config)
    model.save(folder, tiny_tokenizer(), labels)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program in this process, and return its output."""

    def call(*arguments) -> str:
        monkeypatch.setattr(sys, "argv", ["fine_tune.py", "--cpu", *map(str, arguments)])
        fine_tune.main()
        return capsys.readouterr().out

    return call


# A word's letter decides its label, except for b, whose label depends on the word before it.
WORD_ROWS = [["a,O", "b,B-x", "c,I-x"], ["c,O", "b,O", "a,O", "don't,B-y"], ["a,O", "b,B-x", "a,O", "b,B-x"]]


@pytest.fixture
def words(tmp_path) -> Path:
    """A CSV of words and labels, 60 different texts."""
    texts = [[*rows, f"{number},O"] for number in range(20) for rows in WORD_ROWS]
    (tmp_path / "words.csv").write_text("\n\n".join("\n".join(rows) for rows in texts), "utf-8")
    return tmp_path / "words.csv"


@pytest.fixture
def tiny(tmp_path) -> Path:
    """A BERT of random weights whose vocabulary is the letters and numbers."""
    torch.manual_seed(0)
    BertModel(BertConfig(**TINY)).save_pretrained(tmp_path / "bert")
    write_vocabulary(tmp_path / "bert", [*tiny_tokenizer().vocab])
    return tmp_path / "bert"


@pytest.fixture
def refused(run):
    """Run the program, which ends with an error, and return its message."""

    def call(*arguments) -> str:
        with pytest.raises(SystemExit) as caught:
            run(*arguments)
        assert isinstance(caught.value.code, str)
        return caught.value.code

    return call


@pytest.mark.parametrize("labels", [["pos", "neg"], ["neg", "pos"]])
def test_classes_are_matched_by_name(tmp_path, own, run, labels):
    folder = saved(tmp_path / "model", labels)
    printed = run("--data", own, "--checkpoint", folder, "--epochs", 0, "--save", tmp_path / "again")
    right = "100.0%" if labels[0] == "pos" else "0.0%"
    assert f"Classification head: from {folder}, with the classes {', '.join(labels)}" in printed
    assert f"Test accuracy {right} of" in printed
    again = TransformerForSequenceClassification.from_checkpoint(tmp_path / "again")
    assert list(again.config.id2label.values()) == labels


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        (2, {"id2label": {"1": "neg", "2": "pos"}, "label2id": {"neg": 1, "pos": 2}}, "the classes are 1, 2: number"),
        (2, {"id2label": ["neg", "pos"]}, "'list' object has no attribute 'items'): correct this setting"),
        (2, {"id2label": {"0": None, "1": None}}, "has the classes None, None, but the data has neg, pos"),
        (3, {"id2label": {"0": "neg", "1": "pos", "2": "pos"}, "label2id": {"neg": 0, "pos": 2}}, "'pos' two ids"),
        (2, {"id2label": {"0": "neg", "1": "pos"}}, None),
        (2, {"id2label": {"0": "neg", "1": "pos"}, "label2id": None}, None),
    ],
)
def test_odd_ids_and_names_of_classes(tmp_path, own, run, refused, rows, settings, words):
    """As other programs write them; the remedy is to number and name the classes."""
    path = saved(tmp_path / "model", [f"{number}" for number in range(rows)]) / "config.json"
    kept = {name: value for name, value in json.loads(path.read_text()).items() if "label" not in name}
    path.write_text(json.dumps(kept | settings))
    common = ["--data", own, "--checkpoint", path.parent, "--epochs", 0]
    if words:
        assert words in refused(*common)
    else:
        assert "with the classes neg, pos\n" in run(*common)


def test_classes_are_named_by_label2id_alone(tmp_path, own, run):
    """A checkpoint may name its classes in label2id alone."""
    folder = saved(tmp_path / "model", None)
    path = folder / "config.json"
    settings = json.loads(path.read_text())
    settings.pop("id2label", None)
    path.write_text(json.dumps(settings | {"label2id": {"pos": 0, "neg": 1}}))
    printed = run("--data", own, "--checkpoint", folder, "--epochs", 0)
    assert "with the classes pos, neg\n" in printed
    assert "Test accuracy 100.0%" in printed


@pytest.mark.parametrize(
    ("labels", "names", "classes"),
    [
        (["so-so", "pos", "neg"], ["neg", "pos"], "so-so, pos, neg"),  # data with some of the classes
        (None, ["0", "11"], "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"),  # unnamed classes, too
        (None, ["10", "2", "LABEL_3"], None),
        (None, [str(number) for number in range(1, 13)], "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"),
        (None, [f"LABEL_{number}" for number in (2, 10)], ", ".join(f"LABEL_{number}" for number in range(12))),
    ],
)
def test_classes_of_data_are_found_in_model(tmp_path, labels, names, classes):
    model = TransformerForSequenceClassification(BertConfig(**TINY, num_labels=len(labels or range(12))))
    model.save(tmp_path / "model", tiny_tokenizer(), labels)
    arguments = TransformerForSequenceClassification, Checkpoint(tmp_path / "model"), sorted_names(names)
    if classes is None:
        with pytest.raises(
            ValueError, match=r"has the classes LABEL_0, .*, but the data has 10, 2, LABEL_3: choose another checkpoint"
        ):
            fine_tune.starting_model(*arguments)
    else:
        assert ", ".join(fine_tune.starting_model(*arguments)[1]) == classes


def test_checkpoint_without_head_gets_new_head_with_the_classes_of_other_columns(tmp_path, tiny, run):
    rows = [f"a {number};{'xyz'[number % 3]}" for number in range(30)]
    (tmp_path / "own.csv").write_text("\n".join(["sentence;topic", *rows]), "utf-8")
    options = ["--text", "sentence", "--label", "topic", "--save", tmp_path / "saved"]
    printed = run("--data", tmp_path / "own.csv", "--checkpoint", tiny, "--epochs", 1, *options)
    assert "3 classes: x (10), y (10), z (10)" in printed
    assert f"Classification head: new and untrained, because {tiny} has none" in printed
    model = TransformerForSequenceClassification.from_checkpoint(tmp_path / "saved")
    assert list(model.config.id2label.values()) == ["x", "y", "z"]


@pytest.mark.parametrize("names", [None, ["BertForMaskedLM"], ["BertModel"]])
def test_head_of_unknown_kind_is_refused(tmp_path, own, run, refused, names):
    """The weights have a head, but the configuration does not say of which kind; the remedy works."""
    folder = saved(tmp_path / "model", ["pos", "neg"])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": names}))
    common = ["--data", own, "--checkpoint", folder, "--epochs", 0]
    remedy = '"architectures": ["BertForSequenceClassification"]'
    message = refused(*common)
    assert f"{folder} has a classification head, but its config.json names" in message
    assert f"to use the head, write {remedy} into it" in message
    (folder / "config.json").write_text(json.dumps(config | json.loads(f"{{{remedy}}}")))
    assert "Test accuracy 100.0%" in run(*common)


def test_result_is_compared_with_guessing(tmp_path, own, run):
    folder = saved(tmp_path / "model", ["pos", "neg"])
    printed = run("--data", own, "--checkpoint", folder, "--epochs", 1)
    assert "(50.0%); loss of guessing: 0.6931" in printed
    assert "hardly better" not in printed
    again = run("--data", own, "--checkpoint", saved(tmp_path / "wrong", ["neg", "pos"]), "--epochs", 1)
    assert "After 6 steps the model is hardly better than guessing. Try more --epochs" in again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epochs", -1], "--epochs must be an integer from 0 to 10,000, got -1"),
        (["--batch-size", 0], "--batch-size must be a positive integer, got 0"),
        (["--limit", 0], "--limit must be a positive integer, got 0"),
        (["--seed", -1], "--seed must be an integer from 0"),
        (["--text", "a", "--text", "a"], "the texts are in a, a: name one column of"),
        (["--text", "a", "--text", "b", "--text", "c"], "the texts are in a, b, c: name one column of"),
        *((["--learning-rate", rate], f"--learning-rate must be between 0 and 1, got {rate}") for rate in (0.0, "nan")),
        (["--checkpoint", "no/model/here"], '"no/model/here" is not a local folder'),
    ],
)
def test_invalid_options_end_with_message(own, refused, options, words):
    assert words in refused(*["--data", own] * ("--text" in options), *options)


@pytest.mark.parametrize("option", ["--seed", "--label", "--data", "--epochs"])
def test_option_that_is_given_twice_is_refused(own, run, capsys, option):
    with pytest.raises(SystemExit):
        run(*[option, 0, option, 1])
    assert f"{option} is given twice: give it once" in capsys.readouterr().err


def test_foreign_save_folder_raises_before_training(tmp_path, own, refused, monkeypatch):
    monkeypatch.setattr(fine_tune, "fit", lambda *arguments, **options: pytest.fail("it was trained"))
    folder = saved(tmp_path / "model", ["pos", "neg"])
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "notes.txt").write_text("mine")
    common = ["--data", own, "--checkpoint", folder, "--save"]
    assert "contains notes.txt, which is not a file of a model" in refused(*common, tmp_path / "thesis")
    assert "could not be saved" in refused(*common, own / "below")
    assert names(tmp_path) == ["model", "own.csv", "thesis"]


def test_rows_are_counted_and_multiline_rows_reported(tmp_path, run):
    folder = saved(tmp_path / "model", ["pos", "neg"])
    lines = ["text,label", *ROWS, "n 1,neg"]
    (tmp_path / "own.csv").write_text("\n".join(lines), "utf-8")
    common = ["--data", tmp_path / "own.csv", "--checkpoint", folder, "--epochs", 0]
    printed = run(*common)
    assert "Read 61 rows.\n2 classes: neg (30), pos (30)\nDistinct texts: 48 for training, 6 for" in printed
    lines[5], lines[17] = f'"{lines[5]}', lines[17].replace(",", '",')
    (tmp_path / "own.csv").write_text("\n".join(lines), "utf-8")
    printed = run(*common)
    assert "Read 49 rows." in printed
    assert "Rows that span several lines: 1. Look for a stray quotation mark." in printed


@pytest.mark.parametrize("epochs", [0, 1])
def test_loss_that_is_not_finite_ends_with_message(tmp_path, own, refused, monkeypatch, epochs):
    """The best epoch before it is saved."""

    def fit(*arguments, validate, **options):
        for _ in range(epochs):
            validate()
        raise FloatingPointError("the loss is nan at step 4")

    monkeypatch.setattr(fine_tune, "fit", fit)
    folder, new = saved(tmp_path / "model", ["pos", "neg"]), tmp_path / "new"
    assert "the loss is nan at step 4" in refused("--data", own, "--checkpoint", folder, "--save", new)
    assert new.exists() == (epochs > 0)


def fact_table(folder: Path, rows: list[str]) -> Path:
    (folder / "facts.csv").write_text("\n".join(["text,label", *rows]), "utf-8")
    return folder / "facts.csv"


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (
            [f"a b {n},{'usual' if n % 10 else 'rare'}" for n in range(40)],
            "Most frequent class of the test split: usual (75.0%); loss of guessing: 0.6931\nTest accuracy ",
        ),
        (
            [f"a b {n},{'yn'[n % 2]}" for n in range(20) for _ in "ab"] + ["a b 0,n"],
            "Texts with two labels or more: 1. The first label of each is used.",
        ),
        (
            [f"{'b ' * n},{'yn'[n % 2]}" for n in range(11, 19)],  # of 13 to 20 tokens
            "Texts longer than 16 tokens, which are truncated: 4\n",
        ),
        ([f"a b {n},c{n % 25:02}" for n in range(100)], "c19 (4), and 5 more\n"),
        (
            [f"a b {n},{('0', '1', '0.0', '1.0')[n % 4]}" for n in range(40)],
            "Labels read as integers: 0.0 as 0, 1.0 as 1\n2 classes: 0 (20), 1 (20)\n",
        ),
        (
            [f"a b {n},{(0, 1, -1)[n % 3]}" for n in range(30)],
            "The label -1 often marks a text without a label. If it does here, delete its rows.\n3 classes: -1 (10), ",
        ),
    ],
)
def test_data_report(tmp_path, tiny, run, rows, fact):
    assert fact in run("--data", fact_table(tmp_path, rows), "--checkpoint", tiny, "--epochs", 0)


def test_limited_texts_are_counted_alone(own, tiny, run):
    printed = run("--data", own, "--checkpoint", tiny, "--epochs", 0, "--limit", 2)
    assert sum(map(int, re.findall(r"\((\d+)\)", re.search("classes: .*", printed)[0]))) == 6


def test_model_is_saved_before_the_report(tmp_path, own, tiny, run, monkeypatch):
    monkeypatch.setattr(fine_tune.TextLabels, "report", lambda *arguments: print(1 / 0))
    with pytest.raises(ZeroDivisionError):
        run("--data", own, "--checkpoint", tiny, "--epochs", 1, "--save", tmp_path / "saved")
    assert TransformerForSequenceClassification.from_checkpoint(tmp_path / "saved").config.num_labels == 2


def test_model_is_kept_elsewhere_if_it_cannot_be_saved_after_the_training(tmp_path, own, tiny, refused, monkeypatch):
    def fit_and_spoil(*arguments, **options):
        history = fit(*arguments, **options)
        (tmp_path / "saved").mkdir()
        (tmp_path / "saved" / "thesis.txt").touch()
        return history

    fit = fine_tune.fit
    monkeypatch.setattr(fine_tune, "fit", fit_and_spoil)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = refused("--data", own, "--checkpoint", tiny, "--epochs", 1, "--save", tmp_path / "saved")
    assert "saved contains thesis.txt, which is not a file of a model: save into a new folder\n" in said
    (kept,) = tmp_path.glob("unsaved-*/model")
    assert said.endswith(f"\nThe trained model is in {kept}")
    assert TransformerForSequenceClassification.from_checkpoint(kept).config.num_labels == 2


LEARN = ["--epochs", 25, "--batch-size", 8, "--learning-rate", 2e-2]


@pytest.mark.long
def test_pairs_are_learned_and_read_by_pipeline(tmp_path, tiny, run):
    """The label is the first text's letter, in pairs that have the same words in both orders."""
    pairs = [(f"{a} {number}", f"{b} {number}") for number in range(30) for a, b in ("pn", "np")]
    rows = [f"{first},{second},{first[0]}" for first, second in pairs]
    (tmp_path / "pairs.csv").write_text("\n".join(["premise,hypothesis,label", *rows]), "utf-8")
    data = ["--data", tmp_path / "pairs.csv", "--text", "premise", "--text", "hypothesis"]
    printed = run(*data, "--checkpoint", tiny, *LEARN, "--save", tmp_path / "saved")
    assert "Pairs of texts: premise and hypothesis\n" in printed
    assert "Pairs for the test, 6, with a text that training has in another pair: 2\n" in printed
    assert "Test accuracy 100.0% of 6 texts" in printed
    model = TransformerForSequenceClassification.from_checkpoint(tmp_path / "saved")
    ours = predict(model, tiny_tokenizer(), pairs)
    read = pipeline("text-classification", str(tmp_path / "saved"))
    for theirs, label, probabilities in zip(read([{"text": a, "text_pair": b} for a, b in pairs]), *ours, strict=True):
        assert theirs["label"] == model.config.id2label[int(label)]
        assert theirs["score"] == pytest.approx(float(probabilities[label]), abs=1e-6)


# Words


@pytest.mark.long
def test_words_are_learned_scored_and_read_by_pipeline(tmp_path, words, tiny, run):
    printed = run("--tokens", words, "--checkpoint", tiny, *LEARN, "--save", tmp_path / "saved").splitlines()
    counts = "4 classes: B-x (60), B-y (20), I-x (20), O (180)"
    sizes = "Distinct texts: 48 for training, 6 for validation, 6 for the test"
    assert printed[:3] == ["Read 280 words in 60 texts.", counts, sizes]
    rows = {line.split()[0]: line.split()[1:] for line in printed}
    assert rows["x"][:3] == ["1.00", "1.00", "1.00"]
    counts = {name: int(rows[name][3]) for name in ("B-x", "B-y", "I-x", "O", "x", "y", "all")}
    assert counts["all"] == counts["x"] + counts["y"] == counts["B-x"] + counts["B-y"]
    again = run("--tokens", words, "--checkpoint", tmp_path / "saved", "--epochs", 0).splitlines()
    assert again[3] == f"Classification head: from {tmp_path / 'saved'}, with the classes B-x, B-y, I-x, O"
    assert again[4:] == printed[6:]
    texts = [text for text, _ in read_words(words).test]
    model = TransformerForTokenClassification.from_checkpoint(tmp_path / "saved")
    ours = predict_labels(model, tiny_tokenizer(), texts)
    label = pipeline("token-classification", str(tmp_path / "saved"), ignore_labels=[])
    for text, numbers in zip(texts, ours, strict=True):
        starts = [sum(len(word) + 1 for word in text[:place]) for place in range(len(text))]
        theirs = {piece["start"]: piece["entity"] for piece in label(" ".join(text))}
        assert [theirs[start] for start in starts] == [model.config.id2label[number] for number in numbers]


def test_words_with_some_of_the_classes_are_scored(tmp_path, words, run):
    model = TransformerForTokenClassification(BertConfig(**TINY, num_labels=5))
    with torch.no_grad():
        model.classifier.bias[0] = 100.0  # always predicts z, which the data does not have
    model.save(tmp_path / "saved", tiny_tokenizer(), ["z", "O", "B-x", "I-x", "B-y"])
    printed = run("--tokens", words, "--checkpoint", tmp_path / "saved", "--epochs", 0)
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
    assert "Test accuracy 0.0% of" in printed
    assert rows["z"][0] == "0.00"
    assert rows["z"][3] == "0"
    assert rows["O"][1] == "0.00"


def test_limited_words_are_counted_alone(words, tiny, run):
    printed = run("--tokens", words, "--checkpoint", tiny, "--epochs", 0, "--limit", 2)
    used = [label for split in read_words(words)[:3] for _, labels in split[:2] for label in labels]
    counts = [int(number) for number in re.findall(r"\((\d+)\)", re.search("classes: .*", printed)[0])]
    assert sum(counts) == len(used)


def test_long_texts_are_divided_and_all_words_count(tmp_path, tiny, run):
    texts = [[f"{'ab'[place % 2]},{'xy'[place % 2]}" for place in range(20 + number)] for number in range(10)]
    (tmp_path / "long.csv").write_text("\n\n".join("\n".join(rows) for rows in texts), "utf-8")
    printed = run("--tokens", tmp_path / "long.csv", "--checkpoint", tiny, "--epochs", 0)
    assert "Texts of more than 16 tokens, divided between words: 10" in printed
    tested = len(read_words(tmp_path / "long.csv").test[0][0])
    assert f" of {tested} words, loss" in printed
    assert 'Spans are not scored, because no word has the label "O" (outside).' in printed
    assert "\nspan " not in printed


def test_every_class_is_in_the_training_split(tmp_path):
    texts = [[("a", "O"), (str(number), "O")] for number in range(30)] + [[("b", "rare"), ("c", "O")]]
    rows = "\n\n".join("\n".join(",".join(row) for row in text) for text in texts)
    (tmp_path / "rare.csv").write_text(rows, "utf-8")
    for seed in range(8):
        found = read_words(tmp_path / "rare.csv", seed)
        assert len(found.train) == 25
        assert len(found.validation) == 3
        assert len(found.test) == 3
        assert {label for _, labels in found.train for label in labels} == {0, 1}
