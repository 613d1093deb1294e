"""microbert.html: weights that fit a download, and a program that runs the reader's file as Python does."""

import gc
import json
import os
import re
import sys

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from explorer.micro import build
from explorer.micro import run as program
from tests.browser.microbert_page import edit, run_here, small_checkpoint
from tests.helpers import ROOT

SOURCE = (ROOT / "microbert.py").read_text("utf-8")
TEXTS = ["time flies", "hours go by, quickly!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_checkpoint(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module", autouse=True)
def small_heap():
    """Keep the program's garbage collection, one for each text, from walking through all of torch."""
    gc.freeze()
    yield
    gc.unfreeze()


def ask(function: str, folder, source: str = SOURCE, texts=TEXTS, **others) -> dict:
    inputs = {"source": source, "texts": texts, "folder": str(folder), **others}
    return json.loads(program.answer(function, json.dumps(inputs)))


def run_file(folder, source: str) -> dict:
    """Run a source as the page does: the vector of each text, then the complete file."""
    vectors = [ask("vector", folder, source, [text]) for text in TEXTS]
    failed = next((found for found in vectors if found["error"]), None)
    return failed or ask("finish", folder, source, vectors=[found["value"] for found in vectors])


def test_rounding_keeps_each_number_within_half_a_step():
    matrix = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    matrix[3] = 0
    for name, largest in ((build.WORDS, 255), ("encoder.layer.0.output.dense.weight", 1023)):
        scales, codes = build.round_rows(name, matrix)
        assert (np.abs(codes * scales - matrix) <= 0.501 * scales).all()
        assert (np.abs(codes).max(axis=1) == np.where(scales[:, 0] > 0, largest, 0)).all()


def test_the_file_prints_what_python_prints(folder):
    found = run_file(folder, SOURCE)
    assert found["printed"] == run_here(folder, *TEXTS)
    assert found["error"] is None


def test_the_line_to_write_makes_attention_weights():
    line = SOURCE.splitlines()[build.line_to_write(SOURCE) - 1]
    assert line.strip().startswith("weights = softmax([dot(query[head], key[head])")
    assert 80 < build.lines_of_code(SOURCE) <= 117


@pytest.mark.parametrize(("old", "new", "asks", "texts"), build.IDEAS)
def test_each_idea_changes_a_vector(folder, old, new, asks, texts):
    before, after = (ask("vector", folder, source, texts[1:2])["value"] for source in (SOURCE, edit(SOURCE, old, new)))
    assert np.abs(np.subtract(before, after)).max() > 1e-3
    assert old in SOURCE.splitlines()[build.idea(SOURCE, old, new, asks, texts)["line"] - 1]


@pytest.mark.parametrize(
    ("old", "new", "code", "function", "message"),
    [
        ("def dot(a, b):", "def dot(a, b)", "def dot(a, b)", "", "SyntaxError: expected ':'"),
        ("return sum(map(mul, a, b))", "return dot(a, b)", "return dot(a, b)", "dot", "RecursionError: maximum"),
        ("model = Checkpoint(folder)", "sys.exit('enough')", "sys.exit('enough')", "", "enough"),
    ],
)
def test_an_error_has_its_line(folder, old, new, code, function, message):
    source = edit(SOURCE, old, new)
    error = run_file(folder, source)["error"]
    assert source.splitlines()[error["line"] - 1].strip().startswith(code)
    assert error["function"] == function
    assert error["message"].startswith(message)
    assert message.partition(":")[0] in error["trace"]
    assert "run.py" not in error["trace"]


@pytest.mark.parametrize(
    ("old", "new", "printed"),
    [
        ("    return [a / math.sqrt(dot(mean, mean)) for a in mean]", "    return tuple(mean)", r"-?\d+\.\d\d hours"),
        ("def embed(", "def embedded(", ""),  # a name that the last part does not know
        ('if __name__ == "__main__":', "if False:", "$"),
    ],
)
def test_any_change_is_run(folder, old, new, printed):
    found = run_file(folder, edit(SOURCE, old, new))
    assert re.match(printed, found["printed"])
    assert (found["error"] is None) == bool(printed)


def test_what_is_printed_for_a_text_is_kept_and_nothing_else(folder):
    before = list(sys.argv), dict(os.environ)
    source = edit(SOURCE, "    powers =", "    print('s', len(scores))\n    powers =")
    found = ask("vector", folder, source, ["time flies"])
    assert found["printed"] == "s 4\n" * 4 * 4 * 2  # queries, heads, layers
    flood = ask("vector", folder, edit(SOURCE, "    powers =", "    print('x' * 999)\n    powers ="), ["time flies"])
    assert len(flood["printed"]) == program.SHOWN
    assert (sys.argv, dict(os.environ)) == before
