"""Numbers in prose and drawings that no cell prints: ids in drawings, and a table that is a record."""

import json
import re

import nbformat

from exercises.parts import DRAWING
from tests.helpers import ROOT
from utils.support.datasets import DATA


def prose(name: str) -> str:
    """Return the text cells of a notebook, in one line."""
    (path,) = (ROOT / "notebooks").glob(f"{name}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    return " ".join(" ".join(cell.source for cell in cells if cell.cell_type == "markdown").split())


def drawn(name: str) -> list[str]:
    """Return the texts of a drawing in file order."""
    drawing = DRAWING if name == "encoder" else ROOT / "notebooks" / "images" / f"{name}.svg"
    return re.findall(r">([^<>\n]+)<", drawing.read_text("utf-8"))


def test_ids_in_drawings_are_right(tokenizer):
    text, steps, total = "José can't tokenize!", drawn("01_steps"), drawn("02_sum")
    assert [word for word in steps if word.isdecimal()] == list(map(str, tokenizer.encode(text)))
    assert {text, *tokenizer.tokenize(text)} <= {*steps}
    for name in {*total} & {"[CLS]", "[SEP]", "time", "flies"}:
        assert str(tokenizer.vocab[name]) in total, f"{name} has another id in 02_sum.svg"
    first, second, third, *_, last = map(str, tokenizer.encode("time flies like an arrow"))
    assert f"“time flies like an arrow” → {first} {second} {third} … {last}" in drawn("encoder")


def test_table_of_fast_inference_is_the_record():
    ways = json.loads((DATA / "fast_inference.json").read_text("utf-8"))["ways"]
    for name, way in ways.items():
        changed = way["changed queries"] + way["changed reviews"] if "changed reviews" in way else "–"
        assert f"| {name} | {way['right']} | {changed} | {way['time']:.2g} | {way['megabytes']} |" in prose("13")
    assert f"{ways['bfloat16']['time'] / ways['packed']['time']:.0f} times as slow as float32" in prose("13")
