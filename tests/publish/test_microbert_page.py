"""microbert.html: weights that fit a download, and a program that runs the reader's file as Python does."""

import gzip
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


def test_the_packed_model_has_the_rounded_weights(folder):
    tensors = build.load_file(folder / "model.safetensors")
    packed = gzip.decompress(build.pack(folder, tensors))
    size = 4 + int.from_bytes(packed[:4], "little")
    head, at = json.loads(packed[4:size]), size
    assert head["files"]["vocab.txt"].split("\n")[101] == "[CLS]"
    end = 0
    for name, wanted in build.rounded(tensors).items():
        assert head["table"][name]["data_offsets"] == [end, end := end + 4 * wanted.size]
        assert head["table"][name]["shape"] == list(wanted.shape)
        if wanted.ndim == 1:
            found = np.frombuffer(packed, np.float32, wanted.size, at)
            at += found.nbytes
        else:
            scales = np.frombuffer(packed, np.float32, len(wanted), at)[:, None]
            low = np.frombuffer(packed, np.uint8, wanted.size, at + scales.nbytes)
            high = np.frombuffer(packed, np.int8, wanted.size, at + scales.nbytes + wanted.size)
            found = (high.astype(np.int16) * 256 + low).reshape(wanted.shape) * scales
            at += scales.nbytes + 2 * wanted.size
        assert (found == wanted).all()
    assert at == len(packed)


def test_the_file_prints_what_python_prints(folder):
    found = run_file(folder, SOURCE)
    assert found["printed"] == run_here(folder, *TEXTS)
    assert found["error"] is None


def test_the_line_to_write_makes_attention_weights():
    line = SOURCE.splitlines()[build.line_to_write(SOURCE) - 1]
    assert line.strip().startswith("weights = softmax([dot(query[head], key[head])")
    assert 80 < build.lines_of_code(SOURCE) <= 115


@pytest.mark.parametrize(("old", "new", "asks"), build.IDEAS)
def test_each_idea_changes_a_vector(folder, old, new, asks):
    before, after = (ask("vector", folder, source, TEXTS[1:])["value"] for source in (SOURCE, edit(SOURCE, old, new)))
    assert len(before) == len(after) == 48
    assert np.abs(np.subtract(before, after)).max() > 1e-3
    assert re.match(r"<li>Line \d+: replace <code>", build.idea(SOURCE, old, new, asks))


@pytest.mark.parametrize(
    ("old", "new", "code", "function", "message"),
    [
        ("math.exp(score - largest)", "1 / 0", "powers = [1 / 0", "softmax", "ZeroDivisionError: division by zero"),
        ("def dot(a, b):", "def dot(a, b)", "def dot(a, b)", "", "SyntaxError: expected ':'"),
        ("import json\n", "import jso\n", "import jso", "", "ModuleNotFoundError: No module named 'jso'"),
        ("return sum(map(mul, a, b))", "return dot(a, b)", "return dot(a, b)", "dot", "RecursionError: maximum"),
        ('print(f"{dot(first, other):.2f} {text}")', "print(firts)", "print(firts)", "", "NameError: name 'firts' is"),
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
        ('{dot(first, other):.2f}', '{len(first)}', "48 hours"),
        ('if __name__ == "__main__":', "if False:", "$"),
        ("import json\n", "import json; print('once')\n", r"once\n-?\d+\.\d\d hours"),
    ],
)  # fmt: skip
def test_any_change_is_run(folder, old, new, printed):
    found = run_file(folder, edit(SOURCE, old, new))
    assert re.match(printed, found["printed"])
    assert (found["error"] is None) == bool(printed)


def test_what_is_printed_for_a_text_is_kept(folder):
    source = edit(SOURCE, "    powers =", "    print('s', len(scores))\n    powers =")
    found = ask("vector", folder, source, ["time flies"])
    assert found["printed"] == "s 4\n" * 4 * 4 * 2  # queries, heads, layers
    flood = ask("vector", folder, edit(SOURCE, "    powers =", "    print('x' * 999)\n    powers ="), ["time flies"])
    assert len(flood["printed"]) == program.SHOWN


def test_arguments_and_environment_are_restored(folder):
    before = list(sys.argv), dict(os.environ)
    assert ask("vector", folder, texts=TEXTS[:1])["error"] is None
    assert (sys.argv, dict(os.environ)) == before
