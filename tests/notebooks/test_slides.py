"""The slides: every notebook's cells say by hand what a class is shown, a story of 15 to 40 slides."""

import math
import re

import nbformat
import pytest

from publish.notebooks import REMOVE_INPUT, is_folded, reveals_answer
from tests.helpers import ROOT
from tests.notebooks.on_slides import SHOWN, STARTS, headings, kind_of

CHOSEN = [f"{number:02d}" for number in range(16)]  # the notebooks whose slides have been chosen
SERIES = [next((ROOT / "notebooks").glob(f"{number}_*.ipynb")) for number in CHOSEN]
KINDS = SHOWN | {"notes", "skip"}
WIDTH, LINES = 83, 22  # of code at 24 px on a slide of 1280 × 720, in letters and lines
FOR_READERS = re.compile(r"Read \d+ minutes|colab\.svg|[Rr]un (the next cell|both cells|the cells above)|Sources\*\*")
every_chapter = pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)


def cells_of(path) -> list:
    return nbformat.read(path, as_version=4).cells


def deck(path) -> list[list]:
    """The cells of each slide that a class sees."""
    slides = []
    for cell in cells_of(path):
        if kind_of(cell) in STARTS:
            slides.append([])
        if kind_of(cell) in SHOWN:
            slides[-1].append(cell)
    return slides


def hides_code(cell) -> bool:
    return REMOVE_INPUT in cell.metadata.get("tags", [])


def height_of_code(cell) -> int:
    """Lines of a cell's code and printed text as a slide wraps them."""
    texts = [output["text"] for output in cell.outputs if "text" in output]
    lines = [line for text in [cell.source] * (not hides_code(cell)) + texts for line in text.splitlines()]
    return sum(max(1, math.ceil(len(line) / WIDTH)) for line in lines)


@every_chapter
def test_every_cell_says_whether_it_is_on_a_slide(path):
    unsaid = [cell.id for cell in cells_of(path) if kind_of(cell) not in KINDS]
    assert not unsaid, f"choose a slide type (skip, if none) in JupyterLab's property inspector: {unsaid}"


@every_chapter
def test_a_story_of_a_length_that_one_can_present(path):
    assert 15 <= len(deck(path)) <= 40


@every_chapter
def test_nothing_for_readers_alone_is_shown(path):
    for slide in deck(path):
        for cell in slide:
            assert not FOR_READERS.search(cell.source), cell.id
            assert hides_code(cell) or not is_folded(cell), f"{cell.id}: set-up and imports"
            assert "exercise" not in cell.metadata.get("tags", []), cell.id


@every_chapter
def test_pictures_stand_without_the_code_that_draws_them(path):
    for cell in (cell for slide in deck(path) for cell in slide if cell.cell_type == "code"):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            short = len(cell.source.splitlines()) <= 7
            assert hides_code(cell) or short, f"{cell.id} draws a picture: tag it {REMOVE_INPUT}"
        if hides_code(cell) and not reveals_answer(cell):
            assert cell.outputs, f"{cell.id}: nothing is left of a cell without code and output"


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_what_slides_leave_away_is_folded_in_jupyterlab(path):
    assert not [cell.id for cell in cells_of(path) if hides_code(cell) and not is_folded(cell)]


@every_chapter
def test_a_question_is_shown_with_its_answer(path):
    asked = None
    for cell in cells_of(path):
        if cell.source.startswith("prediction = "):
            asked = cell
        elif asked and reveals_answer(cell):
            assert (kind_of(asked) in SHOWN) == (kind_of(cell) in SHOWN), f"{asked.id}, {cell.id}"
            asked = None


@every_chapter
def test_code_fits_without_being_shrunk(path):
    for slide in deck(path):
        heights = {cell.id: height_of_code(cell) for cell in slide if cell.cell_type == "code"}
        assert sum(heights.values()) <= LINES, heights


@every_chapter
def test_a_slide_stands_under_its_own_heading(path):
    """The last heading that was shown is the last one of the notebook, too: none was left out on the way."""
    told = shown = None
    for cell in cells_of(path):
        found = headings(cell)
        told = found[-1] if found else told
        if kind_of(cell) in SHOWN:
            assert not found or cell.source.startswith("#"), f"{cell.id}: a heading in the middle of a text"
            shown = found[-1] if found else shown
            assert shown, f"{cell.id} stands before the first heading"
            assert shown == told, f"{cell.id}: {told!r} is above it and on no slide"
