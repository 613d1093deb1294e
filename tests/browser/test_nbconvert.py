"""A notebook saved with its views and converted to HTML with nbconvert, opened from a file without internet."""

import subprocess
import sys

import nbformat

from tests.browser import reader
from tests.browser.notebook import LAYERS
from tests.helpers import environment


def test_a_reader_uses_the_views_of_a_converted_notebook(page, draw, pair, tmp_path):
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
    path = tmp_path / "views.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(path)]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    page.goto(path.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    head, model, first, second = (page.frame_locator("iframe").nth(index) for index in range(4))
    reader.use_head_view(head, pair)
    reader.use_model_view(model, pair, LAYERS)
    reader.use_neuron_view(first, pair, 1, 3)
    reader.check_neuron_lines(second, pair.attention[4, 9])
    for view in (head, model, first, second):
        assert reader.cropped(view) == []
    # nbconvert's own page asks for MathJax and require.js; the views ask for nothing and complain of nothing
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []
