"""Views of a notebook that nbconvert converted to HTML work offline."""

import sys

import nbformat
from ipywidgets.embed import dependency_state
from nbconvert import HTMLExporter
from playwright.sync_api import expect

from tests.browser import reader
from tests.browser.views_notebook import LAYERS
from views import explore


def test_the_views_of_a_converted_notebook_are_drawn_and_answer(page, draw, pair, tmp_path):
    views = {
        "head": draw["head"](),
        "model": draw["model"](include_layers=LAYERS),
        "neuron": draw["neuron"](layer=1, head=3),
        "second neuron": draw["neuron"](layer=4, head=9, display_mode="dark"),
    }
    notebook = nbformat.v4.new_notebook()
    for name, view in views.items():
        data = {"text/html": view._repr_html_(), "text/plain": repr(view)}
        output = nbformat.v4.new_output("execute_result", data, execution_count=1)
        notebook.cells.append(nbformat.v4.new_code_cell(name, outputs=[output], execution_count=1))
    path = tmp_path / "views.html"
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0], "utf-8")
    page.goto(path.as_uri(), wait_until="domcontentloaded")
    head, model, first, second = (page.frame_locator("iframe").nth(index) for index in range(4))
    reader.use_head_view(head, pair)
    reader.use_model_view(model, pair, LAYERS)
    reader.check_neuron_lines(second, pair.attention[4, 9])
    reader.check_neuron_lines(first, pair.attention[1, 3])
    reader.open_query(first, 8)
    reader.check_computation(first, pair, 1, 3, 8)
    for view in (head, model, first, second):
        assert reader.cropped(view) == []
    # nbconvert's page requests MathJax and require.js; the views request nothing and report no errors
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []


def test_converted_notebook_shows_view_without_dead_boxes(page, encoder, tokenizer, monkeypatch, tmp_path):
    """A notebook executed by nbconvert contains its widgets' state, but their code would come from the internet."""
    outputs = []
    monkeypatch.setattr(sys.modules["views.explore"], "display", lambda data, raw: outputs.append(data))
    explorer = explore(encoder, tokenizer)
    explorer._ipython_display_()
    outputs = [nbformat.v4.new_output("display_data", data) for data in outputs]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("explore", outputs=outputs)])
    state = {"state": dependency_state(explorer.box), "version_major": 2, "version_minor": 0}
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    path = tmp_path / "explore.html"
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0], "utf-8")
    page.goto(path.as_uri(), wait_until="domcontentloaded")
    view = page.frame_locator("iframe:visible")
    expect(view.locator(reader.WORDS)).to_contain_text(["[CLS]", "the", "animal"])
    expect(page.get_by_text("boxes for your own sentences appear here")).to_be_visible()
