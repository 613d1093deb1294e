"""The page of common misconceptions lists every declared wrong answer, and Sphinx builds it without warnings."""

import nbformat
import pytest

pytest.importorskip("sphinx", reason="make site installs what this needs: requirements-dev.txt")

from exercises.mistakes import MISTAKES
from publish import misconceptions, website


def test_page_has_the_declared_answers_and_builds_without_warnings(tmp_path):
    """Build with -W: the first warning raises."""
    text = misconceptions.page()
    for number, answers in MISTAKES.items():
        assert f"Exercise {number}: {len(answers)} wrong answers" in text
        assert all(f"| {misconceptions.cell(each.hint)} |" in text for each in answers)
    assert "<summary>weights_of: 2" in text
    assert "| 1 | Almost. Divide each score by √D, where D = len(query)" in text
    copy = tmp_path / "05_encoder_layer.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 05")]), copy)
    website.build([copy], tmp_path / "site", tmp_path / "work")
    made = (tmp_path / "site" / "misconceptions.html").read_text("utf-8")
    assert made.count("<details>") == made.count("<table") - 1 == text.count("<details>")
    assert "Scores are not divided by √D" in made
    assert 'href="notebooks/05_encoder_layer.html"' in made
    assert 'href="misconceptions.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")
