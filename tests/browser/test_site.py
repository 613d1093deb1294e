"""The site and the slides, opened from a folder without internet.

A small site is built of saved notebooks, some with views put in. SITE=site checks all pages of a built site instead.
"""

import functools
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from publish.server import serve
from tests.browser import figure_examples as figures
from tests.browser import reader

pytest.importorskip("myst_nb", reason="make site installs what this needs: requirements-dev.txt")
pytest.importorskip("sphinx_revealjs", reason="make slides installs what this needs: requirements-dev.txt")

from publish import screenshots, slides, website
from publish.notebooks import METADATA

BUILT = os.environ.get("SITE")
SMALL = ["00_opening", "03_self_attention", "04_views"]
SMALL_PAGES = ["index.html", "search.html", "genindex.html", *(f"notebooks/{name}.html" for name in SMALL)]
PAGES = sorted(str(p.relative_to(BUILT)) for p in Path(BUILT).rglob("*.html")) if BUILT else SMALL_PAGES
PAGES = [page for page in PAGES if not page.startswith(("slides", "_static"))]  # nor the frames of other pages
every_page = pytest.mark.parametrize("name", PAGES)
# One page of each kind: a list, a notebook with a saved view, and all views. With SITE=folder, every page of that site.
KINDS = PAGES if BUILT else ["index.html", "notebooks/03_self_attention.html", "notebooks/04_views.html"]
PAGES_WITH_ALL_COLOURS = KINDS if BUILT else ["notebooks/04_views.html"]
every_kind = pytest.mark.parametrize("name", KINDS)
PHONE, LAPTOP = {"width": 390, "height": 800}, {"width": 1366, "height": 768}
# Figures on the page of views: one of each kind of control, and the largest; the site shows all in the same way.
FIGURES = ["sentence_view", "attention_in_the_plane", "mask_painter", "longest_match"]
SCROLLING = """(selector) => [...document.querySelectorAll(selector)]
  .filter((e) => e.scrollWidth > e.clientWidth && ["auto", "scroll"].includes(getComputedStyle(e).overflowX))"""


def with_view(path: Path, call: str, view, target: Path) -> None:
    """Copy a saved notebook and put a view into the output of the cell that makes such a call."""
    notebook = nbformat.read(path, as_version=4)
    cell = next(c for c in notebook.cells if c.cell_type == "code" and call in c.source)
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": view._repr_html_()})]
    nbformat.write(notebook, target)


@pytest.fixture(scope="module")
def executed(tmp_path_factory, draw, browser) -> Path:
    """Return notebooks as `make site` executes them, with screenshots."""
    folder = tmp_path_factory.mktemp("executed")
    shutil.copytree(website.NOTEBOOKS / "images", folder / "images")
    own = website.NOTEBOOKS / "03_self_attention.ipynb"
    with_view(own, "neuron_view(", draw["neuron"](), folder / own.name)
    views = nbformat.v4.new_notebook(metadata=METADATA)
    views.cells = [nbformat.v4.new_markdown_cell("# 04 · Views\n\n## Two views")]
    for name in ("head", "model"):
        data = {"text/html": draw[name]()._repr_html_(), "text/plain": "a view"}
        output = nbformat.v4.new_output("display_data", data)
        views.cells.append(nbformat.v4.new_code_cell(f"{name}_view()", outputs=[output]))
    for name in FIGURES:
        data = {"text/html": figures.FIGURES[name].make(figures.NAMES)._repr_html_()}
        output = nbformat.v4.new_output("display_data", data)
        views.cells.append(nbformat.v4.new_code_cell(f"{name}()", outputs=[output]))
    with patch.object(screenshots, "open_browser", lambda: nullcontext(browser)):
        screenshots.add_screenshots(views, nbformat.v4.new_notebook())
    nbformat.write(views, folder / "04_views.ipynb")
    first = next(cell for cell in views.cells if cell.source == "sentence_view()")
    opening = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# 00 · Opening"), first], metadata=METADATA
    )
    nbformat.write(opening, folder / "00_opening.ipynb")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory, executed) -> Path:
    if BUILT:
        return Path(BUILT).resolve()
    folder = tmp_path_factory.mktemp("built")
    website.build([executed / f"{name}.ipynb" for name in SMALL], folder / "site", folder / "work")
    return folder / "site"


def open_page(page, path: Path) -> None:
    page.goto(path.as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise")


@every_page
def test_page_is_complete(page, site, name):
    """Formulas render, pictures load, views draw when scrolled to, and there are no requests or errors."""
    open_page(page, site / name)
    assert page.locator("h1, .sidebar-search").first.is_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert page.locator(".math").count() == page.locator("mjx-container").count()
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    for frame in page.locator("iframe").all():
        frame.scroll_into_view_if_needed()
        view = frame.content_frame
        view.locator("#vis > svg, #figure > *").first.wait_for()
        assert reader.cropped(view) == []
        if frame.get_attribute("data-view"):  # with a text for pages without scripts
            assert not frame.locator("xpath=following-sibling::p").is_visible()
    unloaded = "(all) => all.filter((e) => !e.complete || !e.naturalWidth).map((e) => e.src)"
    assert page.locator("img").evaluate_all(unloaded) == []
    assert page.locator("img:not([alt])").count() == 0
    assert page.heard == []


def harm(page, context: dict | None = None, **options) -> list:
    """Return critical and serious violations of axe-core's rules, without views, which have their own tests."""
    found = (
        Axe().run(page, context=context, options={"iframes": False, "preload": False, **options}).response["violations"]
    )
    return [
        (broken["id"], [node["html"] for node in broken["nodes"]])
        for broken in found
        if broken["impact"] in ("critical", "serious")
    ]


@every_kind
def test_a_page_fits_a_laptop_and_a_phone(page, site, name):
    """It passes axe-core and works by keyboard; lines of code of up to 110 characters need no scrolling on a laptop.

    All pages have the colours of one; those of code and formulas, which take axe-core a minute, are left out.
    """
    page.set_viewport_size(LAPTOP)
    open_page(page, site / name)
    longest = "(all) => all.map((e) => Math.max(...e.textContent.split('\\n').map((line) => line.length)))"
    scrolling = page.evaluate_handle(f"({SCROLLING})('div.cell_input pre')")
    assert [length for length in scrolling.evaluate(longest) if length <= 110] == []
    assert harm(page, rules={"color-contrast": {"enabled": False}}) == []
    for scheme in ("light", "dark") if name in PAGES_WITH_ALL_COLOURS else ():
        page.emulate_media(color_scheme=scheme)
        assert harm(page, {"exclude": ["pre", "mjx-container"]}, runOnly=["color-contrast"]) == [], scheme
    page.set_viewport_size(PHONE)
    for frame in page.locator("iframe").all():
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("#vis > svg, #figure > *").first.wait_for()
    assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= PHONE["width"]
    page.wait_for_function(f"({SCROLLING})('article *').every((e) => e.tabIndex === 0)")


@functools.cache
def ids(path: Path) -> set[str]:
    """Return the ids of a page, which links may name after a #."""
    return set(re.findall(r' id="([^"]+)"', path.read_text("utf-8")))


def test_links_inside_the_site_resolve(site):
    for name in PAGES:
        document = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
        for link in document.select("a[href]"):
            parts = urlsplit(link["href"])
            if parts.scheme:
                continue
            target = (site / name).parent / unquote(parts.path) if parts.path else site / name
            assert target.is_file(), (name, link)
            if parts.fragment:
                assert unquote(parts.fragment) in ids(target), (name, link)


def test_a_reader_opens_the_site(page, browser, site):
    """The start page has a view in place of README's first film; a page is readable before and without its views."""
    open_page(page, site / "index.html")
    page.locator("article iframe").scroll_into_view_if_needed()
    page.frame_locator("article iframe").locator(".ribbon").first.wait_for()
    films = page.locator("article img[src$='.gif']").evaluate_all("all => all.map((one) => one.src.split('/').at(-1))")
    assert films == ["where_it_goes.gif"]
    for path in (site / "notebooks").glob("[0-9e]*.html"):
        open_page(page, path)
        assert page.locator("article :is(img, iframe)").first.bounding_box()["y"] <= 640, path.name
    open_page(page, site / "notebooks" / "03_self_attention.html")
    assert page.locator("iframe[data-view]").count() == page.locator("iframe").count() > 0
    last = page.locator("iframe").last
    assert last.get_attribute("srcdoc") is None
    last.scroll_into_view_if_needed()
    page.locator(f"iframe[data-view='{last.get_attribute('data-view')}'][srcdoc]").wait_for()
    with browser.new_context(java_script_enabled=False) as context:
        bare = context.new_page()
        bare.goto(page.url)
        assert len(bare.locator("article").inner_text()) > 10_000
        shown = bare.locator(".attention-view p").all_inner_texts()
        assert shown
        assert all("The interactive view appears here" in text for text in shown)


@pytest.mark.parametrize("place", ["folder", "server"])
def test_search_finds_a_notebook(page, site, place):
    with serve(site) as served:
        page.goto({"folder": site.as_uri(), "server": served}[place] + "/index.html")
        page.locator(".sidebar-search").fill("softmax")
        page.locator(".sidebar-search").press("Enter")
        found = page.locator(".search a", has_text="03 · Self-attention").first
        found.wait_for()
        if place == "server":
            page.locator(".search p.context", has_text="softmax").first.wait_for()
        found.click()
        assert page.locator("h1").inner_text().startswith("03 · Self-attention")
    assert page.heard == []


DECK = {"width": 1280, "height": 720}


def open_deck(page, copy: Path, folder: Path) -> None:
    page.set_viewport_size(DECK)
    page.goto(slides.make_slides(copy, folder).as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")


# the number of positions that a view's frame takes below this much space: one if it rests
PLACES = """async (above) => {
  const frame = document.querySelector("iframe"), seen = [];
  frame.closest("section").style.paddingTop = `${above}px`;
  fit(frame.closest("section"));
  for (let at = 0; at < 24; at++) {
    await new Promise(requestAnimationFrame);
    seen.push(JSON.stringify(frame.getBoundingClientRect()));
  }
  return new Set(seen.slice(8)).size;
}"""


def test_a_teacher_presents_a_notebook_and_its_view(page, executed, tmp_path):
    """A view rests, where a frame that only followed its height would grow and shrink forever.

    After a click in it and a choice from its drop-down, the arrow keys still turn slides.
    """
    open_deck(page, executed / "03_self_attention.ipynb", tmp_path)
    frame = page.locator("iframe")
    place = page.evaluate("Reveal.getIndices(document.querySelector('iframe').closest('section'))")
    page.evaluate("({ h, v }) => Reveal.slide(h, v)", place)
    view = frame.content_frame
    view.locator("#vis > svg").first.wait_for()
    assert [page.evaluate(PLACES, above) for above in range(0, 48, 12)] == [1] * 4
    page.evaluate(PLACES, 0)
    box = frame.bounding_box()
    assert box["width"] >= 1200
    assert not view.locator("#help").is_visible()
    assert not view.locator("#save").is_visible()
    zoom = frame.evaluate("(e) => new DOMMatrix(getComputedStyle(e).transform).a")
    letters = view.locator(".sums .key").evaluate_all(
        "(all) => all.map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"
    )
    assert letters
    assert min(letters) * zoom >= 23
    assert box["y"] + box["height"] <= 720
    here = page.evaluate("Reveal.getIndices()")
    view.locator("#vis > svg").first.click(position={"x": 120, "y": 120})
    view.locator("#layer").select_option("1")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices()") != here
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("Reveal.getIndices()") == here
    view.locator("#layer").focus()
    page.keyboard.press("ArrowDown")
    assert view.locator("#layer").input_value() == "2"
    assert page.evaluate("Reveal.getIndices()") == here
    page.keyboard.press("PageDown")
    assert page.evaluate("Reveal.getIndices()") != here
    assert page.heard == []
