"""The page of common misconceptions lists every wrong answer, and Sphinx builds it without warnings."""

from collections import Counter

import nbformat
import pytest

pytest.importorskip("sphinx", reason="make site installs what this needs: requirements-dev.txt")

from publish import website
from tests.exercises.answers import wrong_answers
from tests.exercises.misconceptions import cell, hint_of, page, typed_section

ANSWERS = [each for each in wrong_answers() if each.number.startswith("5.")]
COUNTS = Counter(each.number for each in ANSWERS)


@pytest.fixture(scope="module")
def text() -> str:
    return page("05", "05")


def test_page_counts_wrong_answers_per_exercise(text):
    assert f"\n{len(ANSWERS)} wrong answers to {len(COUNTS)} exercises" in text
    for number, count in COUNTS.items():
        assert f"Exercise {number}: {count} wrong answers" in text


def test_page_has_rows_of_the_typed_page():
    rows = "\n".join(typed_section())
    assert "<summary>weights_of: 2" in rows
    assert "| 1 | Almost. Divide each score by √D, where D = len(query)" in rows


def test_page_contains_a_hint_of_each_exercise(text):
    for each in {each.number: each for each in ANSWERS}.values():
        assert f"| {cell(hint_of(each.number, each.make()))} |" in text


def test_site_with_misconceptions_builds_without_warnings(text, tmp_path):
    """Build with -W: the first warning raises."""
    copy = tmp_path / "05_encoder_layer.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 05")]), copy)
    website.build([copy], tmp_path / "site", tmp_path / "work", misconceptions=text)
    made = (tmp_path / "site" / "misconceptions.html").read_text("utf-8")
    assert made.count("<details>") == len(COUNTS)
    assert made.count("<table") >= len(COUNTS)
    assert 'href="notebooks/05_encoder_layer.html"' in made
    assert 'href="misconceptions.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")
