"""A notebook executed and converted to HTML with nbconvert, opened from a file without internet."""

import subprocess
import sys

from tests.browser import reader
from tests.browser.notebook import write_notebook
from tests.helpers import environment


def test_a_reader_uses_the_views_of_a_converted_notebook(page, pair, tmp_path):
    notebook = write_notebook(tmp_path)
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(notebook)]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    page.goto(notebook.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    head, model, first, second = (page.frame_locator("iframe").nth(index) for index in range(4))
    reader.use_head_view(head, pair)
    reader.use_model_view(model, pair)
    reader.use_neuron_view(first, pair, 1, 3)
    reader.check_neuron_lines(second, pair.attention[4, 9])
    for view in (head, model, first, second):
        assert reader.cropped(view) == []
    # nbconvert's own page asks for MathJax and require.js; the views ask for nothing and complain of nothing
    assert [heard for heard in page.heard if "about:srcdoc" in heard or heard[0] in ("dialog", "error")] == []
