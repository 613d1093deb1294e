"""The page of common misconceptions lists every wrong answer, and Sphinx builds it without warnings."""

import importlib

import nbformat
import pytest

pytest.importorskip("sphinx", reason="make site installs what this needs: requirements-dev.txt")

from exercises.comparison import MISTAKES
from publish import website
from tests.exercises.cases.notebook_05 import WRONG
from tests.exercises.misconceptions import cell, hint_of, mistake_sources, page, wrong_answer_sources


@pytest.fixture(scope="module")
def text() -> str:
    return page("05", "05")


def test_page_counts_wrong_answers_per_exercise(text):
    counts = {number: len(answers) + len(MISTAKES.get(number, ())) for number, answers in WRONG.items()}
    assert f"\n{sum(counts.values())} wrong answers to {len(WRONG)} exercises" in text
    for number, count in counts.items():
        assert f"Exercise {number}: {count} wrong answers" in text


def test_page_contains_every_hint(text):
    for number, answers in WRONG.items():
        assert all(f"| {cell(hint)} |" in text for hint, _ in MISTAKES.get(number, ()))
        for answer, _ in answers:
            assert f"| {cell(hint_of(number, answer))} |" in text


def test_site_with_misconceptions_builds_without_warnings(text, tmp_path):
    """Build with -W: the first warning raises."""
    copy = tmp_path / "05_encoder_layer.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 05")]), copy)
    website.build([copy], tmp_path / "site", tmp_path / "work", misconceptions=text)
    made = (tmp_path / "site" / "misconceptions.html").read_text("utf-8")
    assert made.count("<details>") == len(WRONG)
    assert made.count("<table") >= len(WRONG)
    assert 'href="notebooks/05_encoder_layer.html"' in made
    assert 'href="misconceptions.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")


@pytest.mark.parametrize("chapter", [f"notebook_{number:02}" for number in range(16)])
def test_every_wrong_answer_has_its_source(chapter):
    mistake_sources(chapter)  # KeyError for a declared mistake without its source
    wrong = importlib.import_module(f"tests.exercises.cases.{chapter}").WRONG
    assert {key: len(texts) for key, texts in wrong_answer_sources(chapter).items()} == {
        key: len(answers) for key, answers in wrong.items()
    }
