"""A reader opens and runs notebooks in JupyterLab, and uses their views."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser import figure_examples as figures
from tests.browser import reader
from tests.browser.jupyterlab import run_all, serve_jupyterlab
from tests.browser.views_notebook import EXPLORE, FIGURES, LAYERS, VIEWS, write_notebook
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def jupyterlab(browser, draw, tmp_path_factory):
    """Yield a function from a notebook's name to its address on a running server."""
    tmp_path = tmp_path_factory.mktemp("jupyterlab")
    write_notebook(tmp_path)
    write_notebook(tmp_path, "explore", EXPLORE)
    write_notebook(tmp_path, "figures", FIGURES)
    for name in ("00_overview.ipynb", "07_attention_views.ipynb", "proofs/00_proofs.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "notebooks" / name, tmp_path / name)
    write_notebook_from_elsewhere(tmp_path / "elsewhere.ipynb", draw["head"]())
    with serve_jupyterlab(tmp_path) as address:
        yield address


def write_notebook_from_elsewhere(path: Path, view) -> None:
    """Write a notebook with a saved view in its output, which JupyterLab does not trust."""
    cell = nbformat.v4.new_code_cell("head_view(attentions, tokens)", execution_count=1)
    data = {"text/html": view._repr_html_(), "text/plain": repr(view)}
    cell.outputs = [nbformat.v4.new_output("execute_result", data, execution_count=1)]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)


def test_a_reader_runs_the_notebook_and_uses_its_views(page, jupyterlab, pair):
    cells = run_all(page, jupyterlab("views"), len(VIEWS))
    head, model, first, second = (cells.nth(index + 1).frame_locator("iframe") for index in range(4))
    reader.use_head_view(head, pair)
    reader.use_model_view(model, pair, LAYERS)
    reader.use_neuron_view(first, pair, 1, 3)
    reader.check_neuron_lines(second, pair.attention[4, 9])
    reader.open_query(second, 2)
    reader.check_computation(second, pair, 4, 9, 2)
    reader.check_neuron_lines(first, pair.attention[1, 3])
    for view in (head, model, first, second):
        assert reader.cropped(view) == []
    for index in range(len(VIEWS)):  # the text for when frames are removed
        assert not cells.nth(index + 1).locator(".jp-OutputArea-output p").is_visible()
    for theme, mode in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        page.get_by_role("menuitem", name="Settings", exact=True).click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Theme", exact=True).hover()
        page.locator(".lm-Menu-itemLabel").get_by_text(theme, exact=True).click()
        for view in (head, first):
            view.locator(f"html.{mode}").wait_for(state="attached")
    reader.check_neuron_lines(first, pair.attention[1, 3])
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []


def test_a_reader_types_sentences_into_explore(page, jupyterlab):
    output = run_all(page, jupyterlab("explore"), 1).nth(1).locator(".jp-OutputArea-child").nth(1)
    view, tokens = output.frame_locator("iframe"), output.get_by_role("group", name="Tokens and their ids")
    first, second = output.get_by_label("Sentence A:"), output.get_by_label("Sentence B:")
    error, chosen = output.get_by_role("alert"), view.locator(".heads > [aria-checked=true]")

    def type_into(box, text: str) -> None:
        box.press("Control+A")
        page.keyboard.type(text)
        box.press("Enter")

    expect(view.locator(reader.WORDS)).to_contain_text(["[CLS]", "the", "animal"])
    expect(output.locator("iframe:visible")).to_have_count(1)  # the view without widgets is hidden
    expect(chosen).to_have_attribute("aria-label", re.compile("^layer 3, head 1:"))
    type_into(first, "Fruit flies")
    expect(view.locator(reader.WORDS)).to_have_text(["[CLS]", "fruit", "flies", "[SEP]"])
    expect(tokens.locator("span")).to_have_text(["[CLS]101", "fruit5909", "flies10029", "[SEP]102"])
    expect(first).to_be_focused()  # ready for the next sentence
    view.locator(reader.HEADS).nth(5 * 12 + 1).click()
    type_into(second, "<img src=x onerror=alert(1)>")
    expect(tokens.locator("span")).to_contain_text(["[CLS]", "fruit", "flies", "[SEP]", "<", "im", "##g", "sr"])
    expect(view.locator(reader.WORDS).nth(4)).to_have_text("<")
    expect(chosen).to_have_attribute("aria-label", re.compile("^layer 5, head 1:"))
    output.get_by_label("View:").select_option("neuron view")
    expect(view.locator("#att_head")).to_have_value("1")
    expect(view.locator("#layer")).to_have_value("5")
    expect(error).to_have_count(0)
    first.fill("word " * 600)
    first.press("Enter")
    expect(error).to_contain_text("tokens, but the model has 512 positions (max_position_embeddings): shorten the text")
    expect(error).to_be_visible()
    expect(view.locator(".sums .key").nth(1)).to_have_text("fruit")
    expect(tokens).to_contain_text("fruit")
    second.fill("")
    type_into(first, "Time flies.")
    expect(error).to_have_count(0)
    expect(view.locator(".sums .key")).to_have_text(["[CLS]", "time", "flies", ".", "[SEP]"])
    expect(view.locator("#layer")).to_have_value("5")
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []


def test_untrusted_notebook_describes_view_and_trust(page, jupyterlab):
    page.goto(jupyterlab("elsewhere"))
    output = page.locator(".jp-OutputArea-output")
    output.get_by_text("Head view of 6 layers × 12 heads on 13 tokens, “[CLS] i called ian").wait_for()
    assert output.get_by_text("run the cells above, then this one").is_visible()
    assert page.locator("iframe").count() == 0


def test_a_reader_drags_figures(page, jupyterlab):
    cells = run_all(page, jupyterlab("figures"), len(FIGURES))
    for index, name in enumerate(FIGURES, start=1):
        cells.nth(index).scroll_into_view_if_needed()
        figures.FIGURES[name].use(cells.nth(index).frame_locator("iframe"))
        assert not cells.nth(index).locator(".jp-OutputArea-output p").is_visible()
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []


SHARE_IN_VIEW = """(frame) => {
  const around = frame.closest(".jp-WindowedPanel-outer").getBoundingClientRect(), own = frame.getBoundingClientRect();
  return (Math.min(own.bottom, around.bottom) - Math.max(own.top, around.top)) / own.height;
}"""


SIZES = [(1280, 720), (1280, 800), (1440, 900), (1920, 1080)]
FIRST_VIEWS = [*(("00_overview", size) for size in SIZES), ("07_attention_views", (1280, 720))]


@pytest.mark.parametrize(("name", "size"), FIRST_VIEWS, ids=str)
def test_six_keys_run_the_first_interactive_figure(page, jupyterlab, name, size):
    """As README says, this needs no click: the first cell of an opened notebook has the focus."""
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.goto(jupyterlab(name))
    page.locator(".jp-Notebook .jp-Cell:focus").wait_for(timeout=45_000)
    page.get_by_text("| Idle").wait_for(timeout=45_000)
    view = page.locator(".jp-Notebook iframe:visible")
    for _ in range(6):
        assert view.count() == 0
        page.keyboard.press("Shift+Enter")
    view.first.wait_for(timeout=60_000)
    view.first.content_frame.locator("svg").first.wait_for()
    frame = view.first.element_handle()
    page.wait_for_function(f"(frame) => ({SHARE_IN_VIEW})(frame) >= 0.99", arg=frame, timeout=15_000)
    page.wait_for_timeout(1000)
    assert frame.evaluate(SHARE_IN_VIEW) >= 0.99  # and stays there


def test_keys_reach_the_notebook_after_a_click_in_a_picture(page, jupyterlab):
    """Shift+Enter runs the next cell, and Escape only leaves the picture."""
    cells = run_all(page, jupyterlab("figures"), len(FIGURES))
    frame, active = cells.nth(1).locator("iframe"), page.locator(".jp-Cell.jp-mod-active")
    cells.nth(1).locator(".jp-InputPrompt").click()
    for key, moved in (("Escape", 0), ("Shift+Enter", 1)):
        frame.content_frame.locator("svg").first.click(position={"x": 5, "y": 5})
        assert page.evaluate("document.activeElement.tagName") == "IFRAME"
        page.keyboard.press(key)
        expect(page.locator(".jp-Cell.jp-mod-active:focus")).to_have_count(1)
        expect(active).to_have_attribute("data-windowed-list-index", str(1 + moved))
