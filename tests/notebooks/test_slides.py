"""The slides of each notebook: every cell has a slide type, and a deck has 15 to 40 slides."""

import re

import nbformat
import pytest

from publish import slides, teaching
from publish.notebooks import REMOVE_INPUT, reveals_answer
from publish.slides import hides_code
from tests.helpers import ROOT, STARTS, kind_of

SERIES = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))
SHOWN = {"slide", "subslide", "fragment", "-"}
HEADING = re.compile(r"^#{1,3} .*", re.MULTILINE)
KINDS = SHOWN | {"notes", "skip"}
every_chapter = pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)


def headings(cell) -> list[str]:
    without_code = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
    return HEADING.findall(without_code) if cell.cell_type == "markdown" else []


def cells_of(path) -> list:
    return nbformat.read(path, as_version=4).cells


def shown_on_slides(cells) -> list[list]:
    found = []
    for cell in cells:
        if kind_of(cell) in STARTS:
            found.append([])
        if kind_of(cell) in SHOWN:
            found[-1].append(cell)
    return found


@every_chapter
def test_every_cell_has_a_slide_type(path):
    untyped = [cell.id for cell in cells_of(path) if kind_of(cell) not in KINDS]
    assert not untyped, f"choose a slide type (Skip to hide it) in JupyterLab's property inspector: {untyped}"


@every_chapter
def test_slides_have_at_most_80_words_and_one_sentence(path, tmp_path):
    made = shown_on_slides(slides.lay_out(path, tmp_path).cells)
    counted = [[cell for cell in slide if not reveals_answer(cell)] for slide in made]  # these show what they print
    words = {slide[0].id: sum(map(slides.count_words, slide)) for slide in counted if slide}
    assert {name: count for name, count in words.items() if count > slides.MOST} == {}
    empty = [
        slide[0].id
        for slide in made
        if not any(any(slides.texts_of(cell)) or cell.get("outputs") or reveals_answer(cell) for cell in slide)
    ]
    assert empty == []
    sentences = [[cell.id for cell in slide if "sentence" in cell.metadata.slideshow] for slide in made]
    assert [names for names in sentences if len(names) > 1] == []
    assert sum(map(len, sentences)) >= 10  # written by hand, on the slides that show something


@pytest.mark.parametrize("unit", teaching.units(), ids=lambda unit: unit.title)
def test_short_decks_have_43_slides_for_46_minutes_of_class(unit, tmp_path):
    made = []
    for path in (path for path in SERIES if path.name[:2] in unit.notebooks):
        cells = slides.lay_out(path, tmp_path, short=True).cells
        made += shown_on_slides(cells)
        assert sum("sentence" in cell.metadata.slideshow for cell in cells) >= 8
    taught = sum(minutes for row, minutes in teaching.rehearse(unit) if not row.if_there_is_time)
    assert len(made) <= 43 / 46 * (taught + teaching.to_spare(unit) - teaching.SPARE)
    titles = {line.lstrip("# ") for slide in made for cell in slide for line in headings(cell)}
    assert not titles & {"Recap", "You will be able to"}
    for row in unit.rows:
        assert (row.heading in titles) != row.if_there_is_time, row.heading


@every_chapter
def test_slides_hide_the_code_of_pictures(path):
    for cell in (cell for slide in shown_on_slides(cells_of(path)) for cell in slide if cell.cell_type == "code"):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            short = len(cell.source.splitlines()) <= 7
            assert hides_code(cell) or short, f"{cell.id} draws a picture: tag it {REMOVE_INPUT}"
        if hides_code(cell) and not reveals_answer(cell):
            assert cell.outputs, f"{cell.id}: nothing is left of a cell without code and output"


@every_chapter
def test_slides_follow_their_own_heading(path):
    """The last heading shown is the last one in the notebook, so none was skipped."""
    current = shown = None
    for cell in cells_of(path):
        found = headings(cell)
        current = found[-1] if found else current
        if kind_of(cell) in SHOWN:
            assert not found or cell.source.startswith("#"), f"{cell.id}: a heading in the middle of a text"
            shown = found[-1] if found else shown
            assert shown, f"{cell.id} is before the first heading"
            assert shown == current, f"{cell.id}: its heading {current!r} is not on a slide"
