"""Screenshots of views and figures, for where no script runs: GitHub, paper, and notebooks that are only read."""

import base64
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import unescape

from PIL import Image

from publish.browser import open_browser

# the HTML of a view in an output: its title, its page, and the text shown where frames are removed
FRAME = re.compile(r"""<iframe title="([^"]*)" srcdoc='([^']*)'[^>]*></iframe><p>.*?</p>""", re.DOTALL)
# width of the page in CSS pixels, and image pixels per CSS pixel: fewer where fine lines would make the file large
SIZES = {"head_view": (880, 1.5), "model_view": (790, 1.5), "neuron_view": (880, 1.5)}
FIGURE = (760, 2)
MAX_HEIGHT = 900  # of a displayed screenshot, in pixels: a taller page is scaled down
DRAWN = "() => document.querySelector('#figure > *, #vis > svg')"
STILL = """
select { appearance: none; border: 0; background: none; opacity: 1; }
body::after { content: "still: run the cell"; display: block; text-align: right;
  font: var(--small) var(--face); color: var(--soft); }
"""  # nothing looks as if it could be pressed
HTML, PNG, PAGE = "text/html", "image/png", "page"


@contextmanager
def screenshotter() -> Iterator[Callable[[str], tuple[bytes, dict]]]:
    """Yield a function that turns a page into a PNG and its display size, all in one browser.

    FileNotFoundError if no browser is installed.
    """
    with open_browser() as browser:

        def take_screenshot(page: str) -> tuple[bytes, dict]:
            width, scale = next((size for kind, size in SIZES.items() if f' {kind}"' in page[:200]), FIGURE)
            with browser.new_page(viewport={"width": width, "height": 100}, device_scale_factor=scale) as tab:
                tab.evaluate("window.still = true")  # the page reads this to lay itself out for a screenshot
                tab.set_content(page)
                tab.wait_for_function(DRAWN)
                tab.add_style_tag(content=STILL)
                tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                height = tab.evaluate("document.documentElement.scrollHeight")
                shot = tab.screenshot(full_page=True, animations="disabled")
            png = reduce_colours(shot, max_height=round(MAX_HEIGHT * scale))
            shrink = min(1, MAX_HEIGHT / height)
            return png, {"width": round(width * shrink), "height": round(height * shrink)}

        yield take_screenshot


def reduce_colours(png: bytes, colours: int = 128, max_height: int = 10_000) -> bytes:
    """Return the picture as a PNG of at most `colours` colours and `max_height` pixels, about a third of the size.

    The palette covers the whole range of colours: one weighted by pixel counts would turn a thin red line into its
    neighbours' orange.
    """
    file, picture = io.BytesIO(), Image.open(io.BytesIO(png)).convert("RGB")
    picture.thumbnail((picture.width, max_height))
    few = picture.quantize(colours, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def pages_of(notebook) -> Iterator[tuple[dict, str]]:
    """Yield each output of a notebook that holds a view or figure, with its page."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if frame := FRAME.search(output.get("data", {}).get(HTML, "")):
                yield output, unescape(frame[2])


def add_screenshots(notebook, before) -> None:
    """Add a screenshot to each view and figure of an executed notebook.

    A view whose page is unchanged since `before`, the saved notebook, keeps its screenshot, whichever browser took it,
    unless STILL has changed.
    FileNotFoundError if another one needs a screenshot and no browser is installed.
    """
    outputs = [output for cell in before.cells for output in cell.get("outputs", [])]
    old = {output.metadata[PNG][PAGE]: output for output in outputs if PAGE in output.get("metadata", {}).get(PNG, {})}
    new = [(output, page, sha256((page + STILL).encode()).hexdigest()[:16]) for output, page in pages_of(notebook)]
    for output, _, name in new:
        if name in old:
            output.data[PNG], output.metadata[PNG] = old[name].data[PNG], old[name].metadata[PNG]
    if missing := [each for each in new if each[2] not in old]:
        with screenshotter() as take_screenshot:
            for output, page, name in missing:
                png, size = take_screenshot(page)
                output.data[PNG] = base64.b64encode(png).decode()
                output.metadata[PNG] = size | {PAGE: name}
