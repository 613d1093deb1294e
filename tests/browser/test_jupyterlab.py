"""A reader opens and runs notebooks in JupyterLab, and uses their views."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser import figure_examples as figures
from tests.browser import reader
from tests.browser.jupyterlab import REST, run_all, serve_jupyterlab, show
from tests.helpers import ROOT

SETUP = """\
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer
from views import attention_in_the_plane, explore, head_view, model_view, neuron_view

encoder = TransformerEncoder.from_checkpoint("all-MiniLM-L6-v2")
tokenizer = WordPieceTokenizer.from_checkpoint("all-MiniLM-L6-v2")
pair = ("I called Ian.", "I got his answering machine.")
batch = tokenizer(*pair)
attentions = encoder(**batch, output_attentions=True).attentions
tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]"""
VIEWS = {
    "head": "head_view(attentions, tokens, 6)",
    "model": "model_view(attentions, tokens, 6, include_layers=[0, 5])",
    "neuron": "neuron_view(encoder, tokenizer, *pair, layer=1, head=3)",
    "second neuron": 'neuron_view(encoder, tokenizer, *pair, layer=4, head=9, display_mode="dark")',
}
FIGURES = {
    "attention_in_the_plane": """attention_in_the_plane(
    [0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], [[1, 4], [-4, -1], [3, 0]], ["time", "flies", "arrow"], asking=1
)"""
}
CELLS = VIEWS | FIGURES | {"explore": "explore(encoder, tokenizer)"}


@pytest.fixture(scope="module")
def jupyterlab(browser, draw, tmp_path_factory):
    """Yield a function from a notebook's name to its address on a running server."""
    tmp_path = tmp_path_factory.mktemp("jupyterlab")
    write_notebook(tmp_path / "views.ipynb", [nbformat.v4.new_code_cell(one) for one in (SETUP, *CELLS.values())])
    shutil.copy(ROOT / "notebooks" / "00_overview.ipynb", tmp_path)
    view = draw["head"]()
    data = {"text/html": view._repr_html_(), "text/plain": repr(view)}
    saved = nbformat.v4.new_code_cell("head_view(attentions, tokens)", execution_count=1)
    saved.outputs = [nbformat.v4.new_output("execute_result", data, execution_count=1)]
    write_notebook(tmp_path / "elsewhere.ipynb", [saved])  # which JupyterLab does not trust
    with serve_jupyterlab(tmp_path) as address:
        yield address


def write_notebook(path: Path, cells: list) -> None:
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def test_a_reader_runs_a_notebook_and_uses_its_views_and_figures(page, jupyterlab, pair):
    cells = run_all(page, jupyterlab("views"), len(CELLS))
    use_views(page, cells, pair)
    for index, name in enumerate(FIGURES, start=len(VIEWS) + 1):
        figures.FIGURES[name].use(show(cells.nth(index)))
        assert not cells.nth(index).locator(".jp-OutputArea-output p").is_visible()
    press_keys_after_a_click(page, cells, len(VIEWS) + 1)
    use_explore(page, cells.nth(len(CELLS)).locator(".jp-OutputArea-child").nth(1))
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []


def use_views(page, cells, pair) -> None:
    head = show(cells.nth(1))
    reader.click_a_head(head, pair)
    assert reader.cropped(head) == []
    model = show(cells.nth(2))
    reader.enlarge_a_head(model, pair, 12 + 5)
    assert reader.cropped(model) == []
    second = show(cells.nth(4))
    reader.open_query(second, 2)
    reader.check_computation(second, pair, 4, 9, 2)
    assert reader.cropped(second) == []
    first = show(cells.nth(3))
    reader.check_neuron_lines(first, pair.attention[1, 3])  # which the other one has not moved
    assert reader.cropped(first) == []
    for index in range(len(VIEWS)):  # the text for when frames are removed
        assert not cells.nth(index + 1).locator(".jp-OutputArea-output p").is_visible()
    for theme, mode in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        page.get_by_role("menuitem", name="Settings", exact=True).click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Theme", exact=True).hover()
        page.locator(".lm-Menu-itemLabel").get_by_text(theme, exact=True).click()
        for view in (head, first):
            view.locator(f"html.{mode}").wait_for(state="attached")
    reader.check_neuron_lines(first, pair.attention[1, 3])


def press_keys_after_a_click(page, cells, index: int) -> None:
    """Check that Shift+Enter runs a cell after a click in its picture, and Escape only leaves the picture."""
    frame, active = cells.nth(index).locator("iframe"), page.locator(".jp-Cell.jp-mod-active")
    show(cells.nth(index))
    cells.nth(index).locator(".jp-InputPrompt").click()
    for key, moved in (("Escape", 0), ("Shift+Enter", 1)):
        frame.content_frame.locator("svg").first.click(position={"x": 5, "y": 5})
        assert page.evaluate("document.activeElement.tagName") == "IFRAME"
        page.keyboard.press(key)
        expect(page.locator(".jp-Cell.jp-mod-active:focus")).to_have_count(1)
        expect(active).to_have_attribute("data-windowed-list-index", str(index + moved))


def use_explore(page, output) -> None:
    """Type sentences into `explore`."""
    view, tokens = output.frame_locator("iframe"), output.get_by_role("group", name="Tokens and their ids")
    first, second = output.get_by_label("Sentence A:"), output.get_by_label("Sentence B:")
    chosen = view.locator(".heads > [aria-checked=true]")

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
    type_into(second, "a b")
    expect(view.locator(reader.WORDS).nth(4)).to_have_text("a")
    expect(chosen).to_have_attribute("aria-label", re.compile("^layer 5, head 1:"))


def test_untrusted_notebook_describes_view_and_trust(page, jupyterlab):
    page.goto(jupyterlab("elsewhere"))
    output = page.locator(".jp-OutputArea-output")
    output.get_by_text("Head view of 6 layers × 12 heads on 13 tokens, “[CLS] i called ian").wait_for()
    assert output.get_by_text("run the cells above, then this one").is_visible()
    assert page.locator("iframe").count() == 0


SHARE_IN_VIEW = """(frame) => {
  const around = frame.closest(".jp-WindowedPanel-outer").getBoundingClientRect(), own = frame.getBoundingClientRect();
  return (Math.min(own.bottom, around.bottom) - Math.max(own.top, around.top)) / own.height;
}"""
FITS = "(frame) => frame.clientHeight <= frame.closest('.jp-WindowedPanel-outer').clientHeight"
SIZES = [(1280, 720), (1280, 800), (1440, 900), (1920, 1080)]


def test_six_keys_run_the_first_interactive_figure(page, jupyterlab):
    """As README says, this needs no click: the first cell of an opened notebook has the focus.

    The figure is in sight in the smallest window, and fits larger ones.
    """
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[0], strict=True)))
    page.goto(jupyterlab("00_overview"))
    page.locator(".jp-Notebook .jp-Cell:focus").wait_for()
    page.get_by_text("| Idle").wait_for()
    view = page.locator(".jp-Notebook iframe:visible")
    for _ in range(6):
        assert view.count() == 0
        page.keyboard.press("Shift+Enter")
    view.first.wait_for()
    view.first.content_frame.locator("svg").first.wait_for()
    frame = view.first.element_handle()
    page.wait_for_function(f"(frame) => ({SHARE_IN_VIEW})(frame) >= 0.99", arg=frame)
    frame.evaluate(REST, False)
    assert frame.evaluate(SHARE_IN_VIEW) >= 0.99  # and stays there
    for size in SIZES[1:]:
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        reader.let_fit(view.first.content_frame)
        assert frame.evaluate(FITS), size
