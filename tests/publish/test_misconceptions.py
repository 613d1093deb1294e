"""The page of common misconceptions has every wrong answer, and Sphinx makes it without a warning."""

import nbformat
import pytest

pytest.importorskip("sphinx", reason="make site installs what this needs: requirements-dev.txt")

from publish import website
from publish.misconceptions import cell, page
from tests.exercises.cases.notebook_05 import WRONG
from tests.exercises.misconceptions import hint_of


@pytest.fixture(scope="module")
def text() -> str:
    return page("05", "05")


def test_it_counts_the_wrong_answers_of_each_exercise(text):
    assert f"\n{sum(map(len, WRONG.values()))} wrong answers to {len(WRONG)} exercises" in text
    for number, answers in WRONG.items():
        assert f"Exercise {number}: {len(answers)} wrong answers" in text


def test_it_tells_every_hint(text):
    for number, answers in WRONG.items():
        for answer, _ in answers:
            assert f"| {cell(hint_of(number, answer))} |" in text


def test_a_site_with_readme_and_this_page_has_no_warning(text, tmp_path):
    """Sphinx stops at the first one."""
    copy = tmp_path / "05_encoder_layer.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 05")]), copy)
    website.build([copy], tmp_path / "site", tmp_path / "work", misconceptions=text)
    made = (tmp_path / "site" / "misconceptions.html").read_text("utf-8")
    assert made.count("<details>") == len(WRONG)
    assert made.count("<table") >= len(WRONG)
    assert 'href="notebooks/05_encoder_layer.html"' in made
    assert 'href="misconceptions.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")
