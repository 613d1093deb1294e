"""The site and the slides, opened from a folder without internet.

A small site is built of saved notebooks, some with views put in. SITE=site checks all pages of a built site instead.
The slides are those of every notebook.
"""

import base64
import functools
import io
import math
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
from PIL import Image
from playwright.sync_api import expect

from publish.server import serve
from tests.browser import figure_examples as figures
from tests.browser import reader

pytest.importorskip("myst_nb", reason="make site installs what this needs: requirements-dev.txt")
pytest.importorskip("sphinx_revealjs", reason="make slides installs what this needs: requirements-dev.txt")

from publish import screenshots, slides, website
from publish.notebooks import METADATA, is_folded

BUILT = os.environ.get("SITE")
SMALL = ["00_opening", "02_embeddings", "03_self_attention", "04_views", "solutions/02_solutions"]
SMALL_PAGES = ["index.html", "search.html", "genindex.html", *(f"notebooks/{name}.html" for name in SMALL)]
PAGES = sorted(str(p.relative_to(BUILT)) for p in Path(BUILT).rglob("*.html")) if BUILT else SMALL_PAGES
PAGES = [page for page in PAGES if not page.startswith(("slides", "_static"))]  # nor the frames of other pages
every_page = pytest.mark.parametrize("name", PAGES)
# One page of each kind: a list, a notebook with a saved view, and all views. With SITE=folder, every page of that site.
KINDS = PAGES if BUILT else ["index.html", "notebooks/03_self_attention.html", "notebooks/04_views.html"]
every_kind = pytest.mark.parametrize("name", KINDS)
PHONE, LAPTOP = {"width": 390, "height": 800}, {"width": 1366, "height": 768}
SCROLLING = """(selector) => [...document.querySelectorAll(selector)]
  .filter((e) => e.scrollWidth > e.clientWidth && ["auto", "scroll"].includes(getComputedStyle(e).overflowX))"""

# For a picture: the size of 10-point text in pixels of the slide; notebooks draw 201.6 pixels per inch.
# For a line of code: whether it wraps without further indentation.
MEASURES = """
  window.lettersOf = (e) => (10 / 72) * 201.6
    * Math.min(e.clientWidth / e.naturalWidth, e.clientHeight / e.naturalHeight);
  window.strays = (e) => {
    const range = document.createRange(), parts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    const places = [];
    for (let node = parts.nextNode(); node; node = parts.nextNode()) {
      for (let i = 0; i < node.length; i++) {
        range.setStart(node, i);
        range.setEnd(node, i + 1);
        if (node.data[i] !== " ") places.push(range.getBoundingClientRect());
      }
    }
    const start = places[0];
    return places.some((place) => place.top > start.bottom && place.left <= start.left);
  };
"""
# Turn a deck slide by slide, and measure what a class would see.
WALK = """() => [...document.querySelectorAll(".slides section:not(:has(section))")].map((s) => {
  const { h, v } = Reveal.getIndices(s);
  Reveal.slide(h, v);
  const sizes = (what) => [...s.querySelectorAll(what)].filter((e) => !e.closest("aside") && e.textContent.trim())
    .map((e) => parseFloat(getComputedStyle(e).fontSize));
  const drawn = [...s.querySelectorAll("img")], pictures = drawn.map((e) => e.getBoundingClientRect().height);
  const letters = drawn.filter((e) => e.src.startsWith("data:image/png")).map(lettersOf);
  const ends = [...s.querySelectorAll(".jp-Cell > *, img, p, li")].filter((e) => !e.closest("aside"))
    .map((e) => e.getBoundingClientRect().bottom);
  return {
    name: s.innerText.slice(0, 60).replace(/\\s+/g, " "),
    down: s.scrollHeight - 720,
    right: s.scrollWidth - s.clientWidth,
    code: Math.min(...sizes("pre")),
    text: Math.min(...sizes("h1, h2, h3, .jp-Cell p, .jp-Cell li, td, th")),
    picture: Math.min(...pictures),
    letters: Math.min(...letters),
    straying: [...s.querySelectorAll("pre .line")].filter(strays).map((e) => e.textContent),
    used: Math.max(...ends) / 720,
    beside: Math.min(...[...s.querySelectorAll(".running"), document.querySelector(".slide-number")]
      .map((e) => parseFloat(getComputedStyle(e).fontSize))),
  };
})"""


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
    (folder / "solutions").mkdir()
    for name in ("02_embeddings.ipynb", "solutions/02_solutions.ipynb"):
        shutil.copy(website.NOTEBOOKS / name, folder / name)
    shutil.copytree(website.NOTEBOOKS / "images", folder / "images")
    own = website.NOTEBOOKS / "03_self_attention.ipynb"
    with_view(own, "neuron_view(", draw["neuron"](), folder / own.name)
    views = nbformat.v4.new_notebook(metadata=METADATA)
    views.cells = [nbformat.v4.new_markdown_cell("# 04 · Views\n\n## Two views")]
    for name in ("head", "model"):
        data = {"text/html": draw[name]()._repr_html_(), "text/plain": "a view"}
        output = nbformat.v4.new_output("display_data", data)
        views.cells.append(nbformat.v4.new_code_cell(f"{name}_view()", outputs=[output]))
    for name, example in figures.FIGURES.items():
        figure = example.make(figures.NAMES)
        data = {"text/html": figure._repr_html_()}
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

    Code and formulas, whose colours take axe-core a minute, are left out.
    """
    page.set_viewport_size(LAPTOP)
    open_page(page, site / name)
    longest = "(all) => all.map((e) => Math.max(...e.textContent.split('\\n').map((line) => line.length)))"
    scrolling = page.evaluate_handle(f"({SCROLLING})('div.cell_input pre')")
    assert [length for length in scrolling.evaluate(longest) if length <= 110] == []
    assert harm(page, rules={"color-contrast": {"enabled": False}}) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert harm(page, {"exclude": ["pre", "mjx-container"]}, runOnly=["color-contrast"]) == [], scheme
    page.set_viewport_size(PHONE)
    for frame in page.locator("iframe").all():
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("#vis > svg, #figure > *").first.wait_for()
    assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= PHONE["width"]
    page.wait_for_function(f"({SCROLLING})('article *').every((e) => e.tabIndex === 0)")


def test_folded_cells_have_titles_and_diagrams_follow_theme(page, site):
    open_page(page, site / "notebooks" / "02_embeddings.html")
    said = page.locator("details summary .collapsed").all_inner_texts()
    cells = nbformat.read(website.NOTEBOOKS / "02_embeddings.ipynb", as_version=4).cells
    titles = [website.FOLDED_NAME.match(cell.source)[1] for cell in cells if is_folded(cell)]
    assert titles[:2] == ["Set-up", "Imports"]
    assert said == [f"{title}: show the code" for title in titles]
    diagram = page.locator("article img[src$='02_sum.svg']")
    for scheme, filtered in (("light", False), ("dark", True)):
        page.emulate_media(color_scheme=scheme)
        assert (diagram.evaluate("(e) => getComputedStyle(e).filter") != "none") == filtered


@functools.cache
def ids(path: Path) -> set[str]:
    """Return the ids of a page, which links may name after a #."""
    return set(re.findall(r' id="([^"]+)"', path.read_text("utf-8")))


@every_page
def test_links_inside_the_site_resolve(site, name):
    document = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
    for link in document.select("a[href]"):
        parts = urlsplit(link["href"])
        if parts.scheme:
            continue
        target = (site / name).parent / unquote(parts.path) if parts.path else site / name
        assert target.is_file(), link
        if parts.fragment:
            assert unquote(parts.fragment) in ids(target), link


def test_a_reader_opens_the_site(page, browser, site):
    """The start page has a view in place of the README's film; a page is readable before and without its views."""
    open_page(page, site / "index.html")
    page.locator("article iframe").scroll_into_view_if_needed()
    page.frame_locator("article iframe").locator(".ribbon").first.wait_for()
    assert page.locator("article img[src$='.gif']").count() == 0
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


@pytest.mark.skipif(BUILT is not None, reason="needs the small site, whose figures are known")
def test_figures_are_dragged_and_have_pictures_without_js(page, browser, site):
    address = site / "notebooks" / "04_views.html"
    open_page(page, address)
    for name, example in figures.FIGURES.items():
        frame = page.locator(f'.attention-view iframe[title^="{example.make(figures.NAMES).summary[:14]}"]')
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("#figure > *").first.wait_for()
        example.use(frame.content_frame)
        assert not frame.locator("xpath=following-sibling::p").is_visible(), name
    with browser.new_context(java_script_enabled=False) as context:
        bare = context.new_page()
        bare.goto(address.as_uri())
        assert bare.locator(".attention-view p img").count() == 2 + len(figures.FIGURES)
        assert all(image.bounding_box()["width"] > 200 for image in bare.locator(".attention-view p img").all())


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


CHAPTERS = sorted(website.NOTEBOOKS.glob("[0-9e]*.ipynb"))
DECK = {"width": 1280, "height": 720}


def open_deck(page, copy: Path, folder: Path, seminar: bool = False) -> None:
    page.set_viewport_size(DECK)
    page.goto((slides.make_seminar([copy], folder) if seminar else slides.make_slides(copy, folder)).as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.evaluate(f"() => {{ {MEASURES} }}")


WEEKLY = "STATES" in os.environ  # as `make test-all` sets it: all decks
DECKS = [pytest.param(path, False, id=path.stem) for path in (CHAPTERS if WEEKLY else CHAPTERS[3:4])]
DECKS += [pytest.param(CHAPTERS[number], True, id=f"seminar {number:02d}") for number in ((4, 7) if WEEKLY else (7,))]


@pytest.mark.long
@pytest.mark.parametrize(("path", "seminar"), DECKS)
def test_every_slide_fits_and_can_be_read_from_the_back_row(page, path, seminar, tmp_path):
    open_deck(page, path, tmp_path, seminar)
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert page.locator("img:not([alt])").count() == 0
    walked = page.evaluate(WALK)
    assert not seminar or 5 <= len(walked) <= 14  # a saved view is a picture on a separate slide
    for slide in walked:
        assert slide["down"] <= 1, slide
        assert slide["right"] <= 1, slide
        assert (slide["code"] or math.inf) >= 24, slide
        assert slide["text"] >= 24, slide
        assert (slide["picture"] or math.inf) >= 250, slide
        assert slide["straying"] == [], slide
        assert slide["used"] >= 1 / 3, slide
        assert slide["beside"] >= 24, slide
    assert harm(page) == []
    assert page.heard == []


def on_slide(cell, kind: str, *tags: str):
    cell.metadata.update(slideshow={"slide_type": kind}, tags=list(tags))
    return cell


def a_deck(tmp_path, *cells) -> Path:
    path = tmp_path / "05_a.ipynb"
    nbformat.write(nbformat.v4.new_notebook(metadata=METADATA, cells=cells), path)
    return path


text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell


def picture(width: int, height: int):
    """Return a picture as an output of a saved notebook."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), "grey").save(file, "PNG")
    return nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(file.getvalue()).decode()})


def test_a_question_and_its_figure_meet_and_a_figure_has_room(page, tmp_path):
    long = "\n".join(f"line_{number} = {number}" for number in range(18))
    path = a_deck(
        tmp_path,
        on_slide(text("# Title\n\nWhich is larger?"), "slide"),
        on_slide(code("draw()", outputs=[picture(1000, 500)]), "subslide", "remove-input"),
        on_slide(text("said of the figure"), "notes"),
        on_slide(code(long), "slide"),
        on_slide(code("draw()", outputs=[picture(1000, 500)]), "fragment", "remove-input"),
        on_slide(text("# Two thoughts\n\none"), "slide"),
        on_slide(text("## Another\n\ntwo"), "subslide"),
    )
    open_deck(page, path, tmp_path)
    found = [(bool(slide["picture"]), slide["name"]) for slide in page.evaluate(WALK)]
    assert [name.split()[0] for _, name in found] == ["Title", "Title", "Title", "Two", "Another"]
    page.evaluate("Reveal.slide(0, 0, -1)")
    figure = page.locator("section.present section.present .fragment img")
    expect(figure).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(figure).to_be_visible()
    assert page.locator("section.present section.present p").first.inner_text() == "Which is larger?"
    notes = page.locator("section.present section.present .fragment aside.notes")
    assert notes.text_content().strip() == "said of the figure"
    page.keyboard.press("ArrowRight")
    assert "line_17" in page.locator("section.present section.present").inner_text()
    page.keyboard.press("ArrowRight")
    alone = page.locator("section.present section.present img")
    expect(alone).to_be_visible()
    assert alone.evaluate("(e) => lettersOf(e)") >= 24


def test_code_comes_in_with_the_text_that_it_belongs_to(page, tmp_path):
    """When a slide is split at its picture, its code does not appear before its text."""
    path = a_deck(
        tmp_path,
        on_slide(text("# Title\n\n**Question.** Why?"), "slide"),
        on_slide(text("said of it. " * 60), "subslide"),
        on_slide(code("draw()", outputs=[picture(1000, 900)]), "-"),
    )
    open_deck(page, path, tmp_path / "deck")
    step = page.locator("section.present section.present .fragment")
    assert "Why?" in page.locator("section.present section.present").inner_text()
    assert step.count() == 1
    assert "draw()" in step.text_content()
    expect(step).to_be_hidden()
    page.evaluate("Reveal.next()")
    step.wait_for()
    assert page.locator("section.present section.present img").count() == 0  # it is on a separate slide


def test_code_that_breaks_keeps_pythons_indentation(page, tmp_path):
    source = "def long(name):\n    if name:\n        return " + " + ".join(["one_long_name"] * 12)
    open_deck(page, a_deck(tmp_path, on_slide(code(source), "slide")), tmp_path)
    (slide,) = page.evaluate(WALK)
    assert slide["straying"] == []
    rows = "(all) => all.map((e) => Math.round(e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight)))"
    first, second, third = page.locator("pre .line").evaluate_all(rows)
    assert (first, second) == (1, 1)
    assert third > 1
    page.add_style_tag(content=".reveal pre .line { padding: 0 !important; text-indent: 0 !important; }")
    (without,) = page.evaluate(WALK)
    assert len(without["straying"]) == 1


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


# the size of the smallest letters of a figure in pixels of the slide, and how much of its page cannot be seen
LETTERS = """(frame) => {
  const inside = frame.contentDocument, zoom = new DOMMatrix(getComputedStyle(frame).transform).a;
  const written = [...inside.querySelectorAll("main *")].filter((e) => e.getClientRects().length &&
    [...e.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
  const high = (e) => parseFloat(getComputedStyle(e).fontSize) * (e.ownerSVGElement ? e.getScreenCTM().a : 1) * zoom;
  return [Math.min(...written.map(high)), inside.documentElement.scrollHeight - inside.documentElement.clientHeight];
}"""


@pytest.mark.parametrize("name", ["attention_in_the_plane", "sharpness"])
def test_a_figure_has_large_letters_on_its_slide(page, tmp_path, name):
    """Where it has no room to be enlarged, it has room at its sides."""
    data = {"text/html": figures.FIGURES[name].make(figures.NAMES)._repr_html_()}
    output = nbformat.v4.new_output("display_data", data)
    shown = on_slide(code("draw()", outputs=[output]), "subslide", "remove-input")
    open_deck(page, a_deck(tmp_path, on_slide(text("# Title\n\nWhich is larger?"), "slide"), shown), tmp_path)
    page.evaluate("Reveal.slide(0, 1)")
    page.locator("iframe").content_frame.locator("#figure > *").first.wait_for()
    page.wait_for_function(f"({LETTERS})(document.querySelector('iframe'))[0] >= 19.5")
    _, hidden = page.evaluate(f"({LETTERS})(document.querySelector('iframe'))")
    assert hidden <= 1
    assert page.locator("iframe").bounding_box()["height"] <= 720


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
