"""Screenshots: every saved view and figure has one, of a size that fits a page."""

import base64

import nbformat
import pytest

from publish.notebooks import notebook_paths
from publish.screenshots import PAGE, PNG
from views.page import STATIC_NOTICE


@pytest.mark.parametrize("path", notebook_paths([]), ids=lambda path: path.stem)
def test_saved_views_and_figures_have_a_screenshot(path):
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    for output in outputs:
        if STATIC_NOTICE in output.get("data", {}).get("text/plain", ""):
            assert base64.b64decode(output.data[PNG]).startswith(b"\x89PNG")
            assert len(output.metadata[PNG][PAGE]) == 16
            size = output.metadata[PNG]
            assert 300 <= size["width"] <= 1100
            assert size["height"] <= 900
