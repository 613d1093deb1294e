"""The book: its links resolve, it holds its font and formulas, and epubcheck accepts it."""

import os
import re
import zipfile
from posixpath import dirname, join, normpath
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup

pytest.importorskip("myst_nb", reason="make book installs what this needs: requirements-dev.txt")

from publish import book
from publish.browser import find_browser
from publish.notebooks import notebook_paths
from tests.helpers import skip_or_fail

CHAPTERS = ["03_self_attention", "proofs/03_proofs", "solutions/03_solutions"]
TO_ANCHOR = re.compile(r"(?<!!)\[[^\]]*\]\((?![a-z]+:)[^)\s]*#[^)\s]+\)")
weekly = pytest.mark.skipif("STATES" not in os.environ, reason="make test-all and each release check the whole book")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of pages and the EPUB of notebook 03 and its solutions."""
    if find_browser() is None:
        skip_or_fail("formulas are drawn by a browser: install Chromium to test the book")
    folder = tmp_path_factory.mktemp("book")
    book.write_sources(notebook_paths(["03"]), folder / "source")
    pages = book.run_sphinx(folder / "source", folder)
    return pages, book.repack_epub(pages, folder)


def read(pages, name: str) -> BeautifulSoup:
    return BeautifulSoup((pages / name).read_text("utf-8"), "html.parser")


@pytest.mark.long
def test_links_between_pages_of_the_book_resolve(made):
    pages, _ = made
    names = sorted(path.relative_to(pages).as_posix() for path in (pages / "notebooks").rglob("*.xhtml"))
    assert len(names) == 3  # with its proofs and solutions
    anchors = {name: {tag["id"] for tag in read(pages, name).select("[id]")} for name in names}
    followed = expected = 0
    for name in names:
        for link in read(pages, name).select("a[href]"):
            path, sharp, anchor = unquote(link["href"]).partition("#")
            if not re.match("[a-z]+:", path):
                target = normpath(join(dirname(name), path)) if path else name
                assert (pages / target).is_file(), link
                assert not sharp or anchor in anchors[target], link
                followed += bool(sharp)
        saved = nbformat.read(pages.parent / "source" / name.replace(".xhtml", ".ipynb"), as_version=4)
        texts = [cell.source for cell in saved.cells if cell.cell_type == "markdown"]
        expected += sum(len(TO_ANCHOR.findall(text)) for text in texts)
    assert followed >= expected > 8


@pytest.mark.long
def test_links_in_the_printed_page_resolve(made):
    page = BeautifulSoup(book.merge_pages(made[0]), "html.parser")
    anchors = [tag["id"] for tag in page.select("[id]")]
    links = [link["href"][1:] for link in page.select('a[href^="#"]')]
    assert len(links) > 10
    assert set(links) <= set(anchors)
    assert len(anchors) == len(set(anchors))
    formulas = sum(len(read(made[0], f"notebooks/{name}.xhtml").select("svg")) for name in CHAPTERS)
    assert len(page.select("section svg")) == formulas > 30
    assert "not attempted" not in page.text
    assert page.select("details") == page.select("details[open]") != []
    for picture in page.select("img"):
        assert (made[0] / picture["src"]).is_file()


@pytest.mark.long
def test_book_has_fonts_formulas_and_version(made):
    with zipfile.ZipFile(made[1]) as epub:
        inside = epub.namelist()
        start = epub.read("index.xhtml").decode()
        chapter = epub.read("notebooks/03_self_attention.xhtml").decode()
        style = epub.read("_static/book.css").decode()
        package = epub.read(next(name for name in inside if name.endswith("content.opf"))).decode()
    assert f"the book of version {book.read_version()}" in start
    assert chapter.count('class="formula"') > 0
    assert "mjx-merror" not in chapter
    assert 'href="_static/DejaVuSans.ttf"' in package
    assert all(f'href="_static/{name}"' in package for name in re.findall(r'url\("(.*?)"\)', style))


@weekly
@pytest.mark.long
def test_epubcheck_accepts_the_book(made):
    if book.epubcheck() is None:
        pytest.skip(book.INSTALL_EPUBCHECK)
    assert book.check_epub(made[1]) is None
