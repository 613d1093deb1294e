"""The sources of the site and the slides, without a browser."""

import os
from unittest.mock import patch

import nbformat
import pytest
from bs4 import BeautifulSoup

pytest.importorskip("sphinx_revealjs", reason="make slides installs what this needs: requirements-dev.txt")

from publish import slides, website
from publish.badges import Address

GITHUB = "https://github.com/ada/encoder/blob/v1"
code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


@pytest.mark.parametrize(("source", "expected"), [
    ("[next](04_x.ipynb) and [way](#goals)", "[next](04_x.ipynb) and [way](#goals)"),
    ("[gone](05_y.ipynb#goals)", f"[gone]({GITHUB}/notebooks/05_y.ipynb#goals)"),
    ("[`utils`](../utils)", f"[`utils`]({GITHUB}/utils)"),
    ("![a](images/a.svg)", "![a](images/a.svg)"),
    ("[![a](images/a.svg)](https://a.b/c)", "[![a](images/a.svg)](https://a.b/c)"),
    ("![Open in Colab](https://a.b/c.svg)", "Open in Colab"),
    ("[a](mailto:a@b.c)", "[a](mailto:a@b.c)"),
])  # fmt: skip
def test_relink_leads_to_pages_or_the_repository(monkeypatch, source, expected):
    monkeypatch.setattr(website, "current", lambda: Address("ada/encoder", "v1"))
    assert website.relink(source, "notebooks", lambda path: path == "notebooks/04_x.ipynb") == expected


@pytest.mark.parametrize(("source", "described"), [
    ('bars(title="A title")', "A title"),
    ('ax.set(title=f"Layer {layer}", xlabel="depth")', "Layer …"),
    ('curves(rows, xlabel="depth", ylabel="length")', "Figure to “Residuals”; depth; length"),
    ("draw(rows)", "Figure to “Residuals”"),
])  # fmt: skip
def test_alt_text_is_the_title_or_the_heading(tmp_path, source, described):
    drawn = code(source, outputs=[nbformat.v4.new_output("display_data", {"image/png": ""})])
    cells = [text("# Title"), text("Words.\n\n### Residuals\n\nMore words."), drawn]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    (output,) = website.read_for_display(tmp_path / "a.ipynb").cells[2].outputs
    assert output.metadata["image/png"]["alt"] == described


MADE_FROM = ("a.ipynb", "utils/a.py", "views/draggable/a.js", "exercises/a.svg", "microbert.py")


@pytest.mark.parametrize("changed", MADE_FROM)
def test_a_copy_is_stale_after_a_change_of_its_code(tmp_path, monkeypatch, changed):
    monkeypatch.setattr(website, "ROOT", tmp_path)
    for name in (*MADE_FROM, "copy.ipynb"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (name == "copy.ipynb",) * 2)
    notebook, copy = tmp_path / "a.ipynb", tmp_path / "copy.ipynb"
    assert website.is_up_to_date(notebook, copy, None)
    os.utime(tmp_path / changed, (2, 2))
    assert not website.is_up_to_date(notebook, copy, None)


def test_a_new_site_keeps_slides_and_the_files_of_its_user(tmp_path):
    """A site that cannot be copied to its end changes nothing."""
    site, new = tmp_path / "site", tmp_path / "new"
    for name in ("site/CNAME", "site/slides/03.html", "site/my/page.html", "new/index.html", "new/_static/a.css"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
    website.replace_site(site, new)
    (new / "_static" / "a.css").unlink()
    website.replace_site(site, new)
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    assert files == [".made.txt", "CNAME", "index.html", "my/page.html", "slides/03.html"]
    (new / "index.html").write_text("newer", "utf-8")
    (new / "lost.html").symlink_to("nowhere")
    with pytest.raises(OSError, match=r"lost\.html"):
        website.replace_site(site, new)
    assert (site / "index.html").read_text("utf-8") == "new/index.html"


@pytest.mark.parametrize(("source", "output", "is_run_again"), [
    ("print(1)", {}, False),
    ("view()", {"image/png": {"page": "0123456789abcdef"}}, True),
    ('reveal("1", prediction)', {}, False),
    ("explore(model)", {}, True),
    ("print(never_run)", None, True),
])  # fmt: skip
def test_only_what_saving_leaves_out_is_run_again(tmp_path, source, output, is_run_again):
    path, copy = tmp_path / "a.ipynb", tmp_path / "build" / "a.ipynb"
    count = None if output is None else 1
    saved = nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": "saved"}, metadata=output or {})
    cell = code(source, outputs=[saved], execution_count=count)
    cell.metadata.tags = ["nbval-ignore-output"] * ("reveal(" in source)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    with patch.object(website, "run") as run, patch.object(website, "add_screenshots"):
        website.execute_one(path, copy)
    assert run.called == is_run_again
    assert copy.read_bytes() == path.read_bytes()


def test_the_start_page_shows_the_view_of_the_overview(tmp_path):
    """The proofs and solutions of 00 follow it, and have no view."""
    frame = """<div><iframe title="A view" srcdoc=''></iframe><p></p></div>"""
    view = nbformat.v4.new_output("display_data", {"text/html": frame})
    copies = []
    for name, outputs in (("00_overview", [view]), ("00_proofs", []), ("00_solutions", [])):
        copies.append(tmp_path / f"{name}.ipynb")
        nbformat.write(nbformat.v4.new_notebook(cells=[text("# 00"), code("draw()", outputs=outputs)]), copies[-1])
    readme = tmp_path / "README.md"
    readme.write_text("# Title\n\n![A reader swaps a word](film.gif)\n", "utf-8")
    website.write_sources(copies, readme, tmp_path / "source", website.NOTEBOOKS / "images")
    start = (tmp_path / "source" / "index.md").read_text("utf-8")
    assert 'data-view="00_overview-1"' in start
    assert "film.gif" not in start


def on_slide(cell, kind, *tags):
    cell.metadata.update(slideshow={"slide_type": kind}, tags=list(tags))
    return cell


def test_deck_follows_slide_types_and_tags(tmp_path):
    answer = nbformat.v4.new_output("stream", text="The answer: 42\n")
    drawn = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}, metadata={"image/png": {"alt": "it"}})
    cells = [
        on_slide(text("# Title"), "slide"),
        on_slide(text("said aloud"), "notes"),
        on_slide(code("left_out()"), "skip"),
        on_slide(code("drawing()", outputs=[answer]), "subslide", "remove-input"),
        on_slide(code("shown()"), "fragment"),
        on_slide(code("plot()", outputs=[drawn]), "-"),
        on_slide(code("plot()", outputs=[drawn]), "-", "remove-input"),
        on_slide(text("<details><summary><b>Why?</b></summary>\n\nIt **is**.\n\n</details>"), "-"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "05_a.ipynb")
    path = slides.make_slides(tmp_path / "05_a.ipynb", tmp_path / "deck")
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    assert path.name == "05.html"
    first, second, third = page.select(".slides > section > section")  # no room for a second picture
    assert first.h1.text == "Title"
    assert first.select_one("aside.notes").text.strip() == "said aloud"
    assert second.select_one(".jp-OutputArea").text.strip() == "The answer: 42"
    assert second.select_one(".fragment pre").text.strip() == "shown()"
    assert [len(slide.select("img")) for slide in (second, third)] == [1, 1]
    assert third.strong.text == "is"
    for hidden in ("left_out", "drawing", "plot", "Why?"):
        assert hidden not in page.text
    for file in page.select("script[src], link[href]"):
        assert (tmp_path / "deck" / (file.get("src") or file["href"])).is_file()


def test_notes_sentences_and_own_slides_are_put_in(tmp_path, monkeypatch):
    cells = [on_slide(text("# Word\n\ntold"), "slide"), on_slide(text("said aloud"), "notes")]
    cells[0].id = "cell-0"
    cells += [on_slide(text("## Second\n\nmore"), "slide"), on_slide(text("## Third"), "slide")]
    cells[2].metadata.slideshow.sentence = "5 < 6, and that matters."
    cells[3].source += f"\n\n{'It is. ' * 29}**How many?** {'Or not. ' * 9}\n\n- a list"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "05_a.ipynb")
    monkeypatch.setattr(slides, "notes", lambda number: {"cell-0": f"4 min · of {number}"})
    own = "## Exam\n\nin June\n---\nafter: Second\n## Office hour\n---\nafter: Second\n## Pizza"
    path = slides.make_slides(tmp_path / "05_a.ipynb", tmp_path / "deck", by="Ada Berg", own=own)
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    noted = ["4 min · of 05", "said aloud", "5 < 6, and that matters.", ("Or not. " * 7).strip()]
    assert [note.text.strip() for note in page.select("aside.notes")] == noted
    assert page.select_one("aside .sentence").text == noted[2]
    assert "Ada Berg" in page.select_one(".slides section").text
    assert [title.text for title in page.select("h2")] == ["Exam", "Second", "Office hour", "Pizza", "Third"]
    with pytest.raises(ValueError, match="no slide has the heading 'Fourth'"):
        slides.make_slides(tmp_path / "05_a.ipynb", tmp_path / "deck", own="after: Fourth\n## Exam")


def test_pages_show_code_that_slides_hide(tmp_path):
    drawn = on_slide(code("drawing()"), "slide", "remove-input", "kept")
    set_up = code("# @title Set-up: find the series\nimport x")
    nbformat.write(nbformat.v4.new_notebook(cells=[drawn, set_up]), tmp_path / "05_a.ipynb")
    (tmp_path / "README.md").write_text("# Start", "utf-8")
    (tmp_path / "images").mkdir()
    website.write_sources([tmp_path / "05_a.ipynb"], tmp_path / "README.md", tmp_path / "source", tmp_path / "images")
    shown, folded = nbformat.read(tmp_path / "source" / "notebooks" / "05_a.ipynb", as_version=4).cells
    assert shown.metadata["tags"] == ["kept"]
    assert folded.metadata["tags"] == ["hide-input"]
    assert folded.metadata["mystnb"]["code_prompt_show"] == "Set-up: show the code"


def test_widgets_link_to_the_explorer(tmp_path):
    boxes = nbformat.v4.new_output("display_data", {website.WIDGET: {}, "text/html": "<div>a view</div>"})
    notebook = nbformat.v4.new_notebook(cells=[code("explore(encoder, tokenizer)", outputs=[boxes])])
    nbformat.write(notebook, tmp_path / "05_a.ipynb")
    (tmp_path / "README.md").write_text("# Start", "utf-8")
    (tmp_path / "images").mkdir()
    for extras in ([website.EXPLORER], []):
        source = tmp_path / "source"
        website.write_sources([tmp_path / "05_a.ipynb"], tmp_path / "README.md", source, tmp_path / "images", extras)
        (shown,) = nbformat.read(source / "notebooks" / "05_a.ipynb", as_version=4).cells
        assert ('href="../explorer.html"' in shown.outputs[0].data["text/html"]) == bool(extras)
