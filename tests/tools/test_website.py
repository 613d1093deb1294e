"""What the site and the slides are made of, without a browser."""

import nbformat
import pytest

pytest.importorskip("sphinx_revealjs", reason="make slides installs what this needs: requirements-dev.txt")

from tools import slides, website
from tools.badges import current_slug

GITHUB = f"https://github.com/{current_slug()}/blob/main"
code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[next](04_x.ipynb) and [way](#goals)", "[next](04_x.ipynb) and [way](#goals)"),
        ("[gone](05_y.ipynb#goals)", f"[gone]({GITHUB}/notebooks/05_y.ipynb#goals)"),
        ("[`utils`](../utils)", f"[`utils`]({GITHUB}/utils)"),
        ("![a](images/a.svg)", "![a](images/a.svg)"),
        ("[![a](images/a.svg)](https://a.b/c)", "[![a](images/a.svg)](https://a.b/c)"),
        ("![Open in Colab](https://a.b/c.svg)", "Open in Colab"),
        ("[a](mailto:a@b.c)", "[a](mailto:a@b.c)"),
    ],
)
def test_links_lead_to_pages_or_to_the_repository(source, expected):
    assert website.relink(source, "notebooks", lambda path: path == "notebooks/04_x.ipynb") == expected


def test_readers_do_not_see_progress_bars_and_warnings(tmp_path):
    widget = nbformat.v4.new_output("display_data", {website.WIDGET: {}, "text/plain": "100%"})
    warning = nbformat.v4.new_output("stream", name="stderr", text="a warning")
    picture = nbformat.v4.new_output("display_data", {"image/png": ""})
    boxes = nbformat.v4.new_output(
        "display_data", {website.WIDGET: {}, "text/html": "a view", "text/plain": ""}
    )
    cells = [code('bars(title="A title")', outputs=[widget, warning, picture, boxes]), code("print(1)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    first = website.read_for_readers(tmp_path / "a.ipynb").cells[0]
    assert [list(output.data) for output in first.outputs] == [["image/png"], ["text/html", "text/plain"]]
    assert first.outputs[0].metadata["image/png"]["alt"] == "A title"


def test_a_notebook_is_executed_in_a_copy(tmp_path):
    path, copy = tmp_path / "a.ipynb", tmp_path / "build" / "a.ipynb"
    html = "from IPython.display import HTML\nHTML('<b>kept</b>')"
    nbformat.write(nbformat.v4.new_notebook(cells=[code(html)]), path)
    before = path.read_bytes()
    website.execute_one(path, copy)
    assert nbformat.read(copy, as_version=4).cells[0].outputs[0].data["text/html"] == "<b>kept</b>"
    assert path.read_bytes() == before


def test_slides_start_at_headings_but_not_at_comments_in_code():
    source = "intro\n\n## One\ntext\n```\n## no heading\n```\n### Two"
    assert slides.split_at_headings(source) == ["intro", "## One\ntext\n```\n## no heading\n```", "### Two"]


def test_what_does_not_fit_starts_a_slide_of_its_own():
    long = "\n".join(f"x = {number}" for number in range(20))
    cells = [
        text("# Title"),
        code("# @title Set-up\nsetup()"),
        code("# @title Imports\nimport a"),
        text("## One"),
        code(long),
        code("y"),
        code(long),
    ]
    expected = ["slide", "skip", "skip", "slide", "fragment", "fragment", "subslide"]
    assert slides.slide_types(cells) == expected
    cells[5].metadata["slideshow"] = {"slide_type": "notes"}
    assert slides.slide_types(cells)[5] == "notes"
