"""The setup cell prepares every notebook, and comparisons fail above their tolerance."""

import os
import random
import warnings
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook
from transformers import BertConfig

from publish.notebooks import run
from tests.helpers import ROOT
from utils.support import reader_input
from utils.support.checkpoint import DEFAULT_CHECKPOINT, REQUIRED_SIZES
from utils.support.comparisons import compare, largest_difference, predictions, reveal
from utils.support.datasets import DATA
from utils.support.notebook import other_checkout, start


@pytest.fixture(autouse=True)
def settings():
    """Restore the settings that `start` changes for a whole notebook."""
    with plt.rc_context(), warnings.catch_warnings(), patch.dict(os.environ):
        yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("folder", [".", "notebooks", "notebooks/solutions"])
def test_start_names_another_checkout(tmp_path, folder, monkeypatch, capsys):
    for name in ("utils/support", "exercises", "notebooks/solutions"):
        (tmp_path / "week 3" / name).mkdir(parents=True)
    (tmp_path / "week 3" / "utils" / "support" / "notebook.py").touch()
    monkeypatch.chdir(tmp_path / "week 3" / folder)
    start()
    checkout = tmp_path / "week 3"
    assert f"This notebook is in {checkout}, but Python imports the series from {ROOT}." in capsys.readouterr().out


def test_other_checkout_returns_none_elsewhere(tmp_path):
    assert other_checkout(ROOT / "notebooks" / "solutions") is None
    assert other_checkout(tmp_path) is None


def draws() -> list[float]:
    return [random.random(), np.random.rand(), torch.rand(1).item()]  # noqa: NPY002


def test_start_seeds_all_generators():
    def drawn_after(*seed: int) -> list[float]:
        start(*seed)
        return draws()

    assert drawn_after() == drawn_after(0)
    assert all(mine != other for mine, other in zip(drawn_after(0), drawn_after(1), strict=True))


@pytest.mark.parametrize(("device", "cuda", "wanted"), [("cpu", True, "cpu"), ("", True, "cuda"), ("", False, "cpu")])
def test_device_variable_takes_precedence_over_cuda(monkeypatch, device, cuda, wanted):
    monkeypatch.setenv("DEVICE", device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    assert start() == torch.device(wanted)


@pytest.mark.parametrize("device", ["gpu", "cpu:", "meta"])
def test_device_that_does_not_exist_is_refused_in_words(monkeypatch, device):
    monkeypatch.setenv("DEVICE", device)
    with pytest.raises(ValueError, match=f"DEVICE={device} cannot be used here: write DEVICE=c"):
        start()


def test_start_enables_large_pages_unless_variable_is_set(monkeypatch):
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    start()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    start()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"


def config_in(folder, **changes) -> str:
    BertConfig(**{"num_attention_heads": 12} | changes).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("least", [True, False])
def test_start_prints_no_warning_for_large_checkpoint(tmp_path, monkeypatch, capsys, least):
    sizes = REQUIRED_SIZES | {"intermediate_size": 1536} if least else {}
    monkeypatch.setenv("CHECKPOINT", config_in(tmp_path, **sizes))
    start()
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("field", REQUIRED_SIZES)
def test_start_warns_about_small_checkpoint(tmp_path, monkeypatch, capsys, field):
    smaller = {"hidden_size": 192, "num_attention_heads": 8}.get(field, REQUIRED_SIZES[field] - 1)
    monkeypatch.setenv("CHECKPOINT", config_in(tmp_path, **{field: smaller}))
    start()
    _, _, told = capsys.readouterr().out.splitlines()
    assert told == (
        f"This checkpoint is smaller than what the notebooks look at ({field}={smaller}, not {REQUIRED_SIZES[field]}): "
        "use a larger one, or expect some cells to fail"
    )


def test_start_names_the_checkpoint_that_the_text_describes(tmp_path, monkeypatch, capsys):
    line = "The text describes all-MiniLM-L6-v2: your checkpoint gives other numbers and other heads."
    for name, wanted in (("all-MiniLM-L6-v2", False), (str(tmp_path), True)):
        monkeypatch.setenv("CHECKPOINT", name)
        start()
        assert (line in capsys.readouterr().out.splitlines()) is wanted


@pytest.mark.parametrize("content", [None, "{"])
def test_start_ignores_unreadable_checkpoint(tmp_path, monkeypatch, capsys, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    monkeypatch.setenv("CHECKPOINT", str(tmp_path))
    start()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_largest_difference_is_absolute_and_checks_shapes():
    assert largest_difference(torch.tensor([1.0, 2.0]), torch.tensor([1.5, -1.0])) == 3
    with pytest.raises(ValueError, match=r"ours is \(2,\), the official one \(3,\)"):
        largest_difference(torch.zeros(2), torch.zeros(3))


def test_compare_fails_above_tolerance():
    for wrong in (1e-4, float("nan")):
        with pytest.raises(AssertionError, match=r"weights: largest difference (1\.00e-04|nan) is above 1e-05"):
            compare("weights", torch.tensor([wrong]), torch.tensor([0.0]))


def test_index_of_falls_back_to_first_word(capsys):
    assert reader_input.index_of("His", ["[CLS]", "i", "got", "his", "[SEP]"]) == 3
    assert capsys.readouterr().out == ""
    assert reader_input.index_of("his", ["[CLS]", "i", "see", "[SEP]"]) == 1
    assert capsys.readouterr().out == "“his” is not among these tokens, so this cell follows “i”\n"
    assert reader_input.index_of("his", ["[CLS]", "[SEP]"]) == 0
    assert reader_input.index_of(None, ["[CLS]", "a", "[SEP]"]) == 1
    assert "so this cell follows “a”" in capsys.readouterr().out
    with pytest.raises(ValueError, match="there are no tokens to look at: type at least one word"):
        reader_input.index_of("his", [])


def test_as_token_normalizes_like_tokenizer(tokenizer):
    found = {word: reader_input.as_token(word, tokenizer) for word in ("José", "Zoë", "Björn", "His", "Unaffable")}
    assert found == {"José": "jose", "Zoë": "zoe", "Björn": "bjorn", "His": "his", "Unaffable": "unaffable"}


def test_first_piece_of_unknown_word_is_printed(tokenizer, capsys):
    assert reader_input.first_piece("Flies", tokenizer) == tokenizer.vocab["flies"]
    assert capsys.readouterr().out == ""
    assert reader_input.first_piece("antidisestablishmentarianism", tokenizer) == tokenizer.vocab["anti"]
    told = "“antidisestablishmentarianism” is not in this vocabulary, so this cell follows “anti”\n"
    assert capsys.readouterr().out == told


def test_require_tokens_switches_to_the_embedded_model(monkeypatch, capsys):
    reader_input.require_tokens("his her john")
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("CHECKPOINT", str(DATA / "tiny_bert"))
    reader_input.require_tokens("the antidisestablishmentarianism")
    assert "“antidisestablishmentarianism” is not a token of " in capsys.readouterr().out
    assert os.environ["CHECKPOINT"] == DEFAULT_CHECKPOINT


@pytest.mark.parametrize(
    ("text", "taken", "printed"),
    [
        ("I called Ian.", ("I called Ian.",), ""),
        (["one", "two", "three"], ("one", "two"), "the first two of 3"),
        ("a" * 600, ("a" * 500,), "the first 500 characters"),
        (("a" * 300, "b"), ("a" * 250, "b"), "the first 250 characters"),
        (None, ("I called Ian.",), "the text"),
    ],
)
def test_text_or_pair_takes_what_a_reader_types(text, taken, printed, capsys):
    assert reader_input.text_or_pair(text) == taken
    out = capsys.readouterr().out
    assert printed in out if printed else out == ""


def test_clamp_returns_nearest_number_and_prints_it(capsys):
    assert [reader_input.clamp("layer", value, 6) for value in (0, 5)] == [0, 5]
    assert capsys.readouterr().out == ""
    assert [reader_input.clamp("layer", value, 6) for value in (9, -1, "two", 2.5, None)] == [5, 0, 0, 0, 0]
    assert "layer must be an integer from 0 to 5, not 9: this cell uses 5" in capsys.readouterr().out
    assert reader_input.clamp("layers", 0, 6, minimum=1) == 1
    assert type(reader_input.clamp("layer", True, 6)) is int
    assert "not True: this cell uses 0" in capsys.readouterr().out


TEXT, TEXTS, NUMBERS = "one text in quotation marks", "a list of texts", "a list of numbers"


@pytest.mark.parametrize(
    ("value", "instead", "taken", "expected"),
    [
        ("time flies", "a", "time flies", None),
        *((value, "a", "a", TEXT) for value in ("", ("x", "y"), None)),
        (["x", "", "y"], ["a"], ["x", "y"], None),
        (("x", "y"), ["a"], ["x", "y"], None),
        ("x", ["a"], ["x"], None),
        *((value, ["a"], ["a"], TEXTS) for value in ([], [("x", "y")], [" "], None)),
        ([1, 2.5, float("nan")], [7], [1, 2.5], None),
        *((value, [7], [7], NUMBERS) for value in ("x", [[1, 2]], [float("inf")], [10**400])),
    ],
)
def test_validated_returns_valid_values_or_prints_what_it_expects(value, instead, taken, expected, capsys):
    assert reader_input.validated("box", value, instead) == taken
    out = capsys.readouterr().out
    assert out.startswith(f"box must be {expected}, not ") and out.count("\n") == 1 if expected else not out


@pytest.mark.parametrize("value", [[1], None, [True, "a"]])
def test_validated_refuses_another_count(value, capsys):
    assert reader_input.validated("logits", value, [0.0, 1.1], count=2) == [0.0, 1.1]
    assert capsys.readouterr().out.startswith("logits must be a list of 2 numbers, not ")
    assert reader_input.validated("logits", (-1000, 3), [0.0, 1.1], count=2) == [-1000, 3]
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "most", "count"),
    [("a b  c", 40, 3), ("a " * 900, 40, 40), ("x " * 300, 300, 250), (" " * 600 + "a", 5, 1)],
    ids=["few", "many", "at the limit", "after spaces"],
)
def test_first_words_prints_what_it_cuts(text, most, count, capsys):
    words = reader_input.first_words(text, most)
    assert len(words) == count
    assert "".join(text.split()).startswith("".join(words))
    assert capsys.readouterr().out.count("only its beginning is read") == (words != text.split())


@pytest.mark.parametrize(
    ("prediction", "actual"),
    [
        ((1, 1 / 8), [1.0, 0.13]),
        (np.array([1.0, 0.13]), [1.0, 0.13]),
        (70.4, 70),
        (("##ies", "fl"), ["##ies", "fl"]),
        (" Attention Weights", "attention weights"),
        ("0,5", 0.5),
    ],
)
def test_reveal_accepts_prediction_within_rounding(prediction, actual, capsys):
    reveal(prediction, actual)
    assert capsys.readouterr().out == f"{actual}; you predicted {prediction}: correct\n"


@pytest.mark.parametrize(
    ("prediction", "actual"),
    [
        ((1, 1 / 9), [1.0, 0.13]),
        ((1 / 8, 1), [1.0, 0.13]),
        (1, [1.0, 0.13]),
        (0.66, 0.67),
        (float("nan"), 0.5),
        ("many", 0.5),
        ("many words", "words"),
        (torch.ones(2, 2), [1.0, 1.0]),
    ],
)
def test_reveal_prints_no_verdict_for_other_predictions(prediction, actual, capsys):
    reveal(prediction, actual)
    assert capsys.readouterr().out == f"{actual}; you predicted {prediction}\n"


def test_reveal_asks_for_missing_prediction_and_gives_nothing_away(monkeypatch, capsys):
    monkeypatch.setenv("SHOW", "off")
    assert not reveal(None, 0.5)
    assert capsys.readouterr().out == 'Type a guess above first, or "skip", and run both cells again.\n'


@pytest.mark.parametrize("prediction", ["skip", ["skip"], None])
def test_reveal_answers_readers_who_skip(prediction, monkeypatch, capsys):
    monkeypatch.setenv("SHOW", "on")
    assert reveal(prediction, 0.5)
    assert capsys.readouterr().out == "The answer: 0.5\n"


REVEALS = """
from IPython.display import display
from utils.support.comparisons import reveal
print("before")
reveal({prediction}, 0.5)
print("explained")
display("a figure")
"the value"
"""


@pytest.mark.long
def test_cell_shows_nothing_before_a_prediction(tmp_path, monkeypatch):
    """Neither text nor figures nor its value; the next cell shows again what it prints."""
    monkeypatch.setenv("SHOW", "off")
    cells = [
        new_code_cell(code)
        for code in (REVEALS.format(prediction=None), "print('next')", REVEALS.format(prediction=0.4))
    ]
    notebook = new_notebook(cells=cells)
    run(notebook, tmp_path)
    asked, following, answered = notebook.cells
    for cell, printed, shown in ((asked, ["before"], 0), (answered, ["before", "explained"], 2)):
        said = "".join(output.text for output in cell.outputs if output.get("name") == "stdout").splitlines()
        assert [line for line in said if "guess" not in line and "predicted" not in line] == printed
        assert sum("data" in output for output in cell.outputs) == shown
    assert following.outputs[0].text == "next\n"


def test_predictions_lists_last_prediction_of_each_name(monkeypatch, capsys):
    monkeypatch.setattr("utils.support.comparisons.PREDICTED", {})
    monkeypatch.setenv("SHOW", "off")
    predictions()
    assert capsys.readouterr().out.startswith("You have predicted nothing yet")
    reveal(None, 0.5, "the share")
    reveal(0.4, 0.5, "the share")
    reveal(0.5, 0.5, "the share")
    reveal(3, 7, "how many")
    capsys.readouterr()
    predictions()
    assert capsys.readouterr().out.splitlines() == [
        "the share: you predicted 0.5, the result is 0.5",
        "how many: you predicted 3, the result is 7",
    ]
