"""Photographs of views and figures, for where no script runs: GitHub, paper, a notebook that is read and not run."""

import base64
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import unescape

from PIL import Image
from playwright.sync_api import sync_playwright

from publish.browser import find_browser

FRAME = re.compile(r"""<iframe title="[^"]*" srcdoc='([^']*)'""")
WIDTHS = {"head_view": 480, "model_view": 1000, "neuron_view": 1080}  # of a view's page; a figure's is FIGURE
FIGURE = 760
HIDDEN = "#tools, #help, #wide, .controls { display: none !important } body { padding: 4px !important }"
DRAWN = "() => document.querySelector('#figure > *, #vis > svg')"
HTML, PNG, PAGE = "text/html", "image/png", "page"


@contextmanager
def camera() -> Iterator[Callable[[str], bytes]]:
    """A function from a page to its picture, a PNG of two pixels for one; one browser takes them all."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])

        def shoot(page: str) -> bytes:
            width = next((width for kind, width in WIDTHS.items() if f' {kind}"' in page[:200]), FIGURE)
            with browser.new_page(viewport={"width": width, "height": 400}, device_scale_factor=2) as tab:
                tab.evaluate("window.still = true")  # by which a page begins where it shows most
                tab.set_content(page)
                tab.wait_for_function(DRAWN)
                tab.add_style_tag(content=HIDDEN)
                return fewer_colours(tab.screenshot(full_page=True, animations="disabled"))

        yield shoot


def fewer_colours(png: bytes) -> bytes:
    """The picture in 128 colours, a third of the size."""
    file = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def pages_of(notebook) -> Iterator[tuple[dict, str]]:
    """Each output of a notebook that holds a view or figure, with its page."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if frame := FRAME.search(output.get("data", {}).get(HTML, "")):
                yield output, unescape(frame[1])


def photograph(notebook, before) -> None:
    """Put a picture beside each view and figure of a notebook that has run.

    One whose page is that of `before`, the notebook as it was saved, keeps its picture, whatever the browser now.
    """
    outputs = [output for cell in before.cells for output in cell.get("outputs", [])]
    old = {
        output.metadata[PNG][PAGE]: output
        for output in outputs
        if PAGE in output.get("metadata", {}).get(PNG, {})
    }
    new = [(output, page, sha256(page.encode()).hexdigest()[:16]) for output, page in pages_of(notebook)]
    for output, _, name in new:
        if name in old:
            output.data[PNG], output.metadata[PNG] = old[name].data[PNG], old[name].metadata[PNG]
    if missing := [each for each in new if each[2] not in old]:
        with camera() as shoot:
            for output, page, name in missing:
                png = shoot(page)
                width, height = (int.from_bytes(png[at : at + 4]) // 2 for at in (16, 20))
                output.data[PNG] = base64.b64encode(png).decode()
                output.metadata[PNG] = {"width": width, "height": height, PAGE: name}
