"""Photographs of views and figures, for where no script runs: GitHub, paper, a notebook that is read and not run."""

import base64
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import unescape

from PIL import Image

from publish.browser import open_browser

# how a view stands in an output: its title and its page, and the words for where frames are dropped
FRAME = re.compile(r"""<iframe title="([^"]*)" srcdoc='([^']*)'[^>]*></iframe><p>.*?</p>""", re.DOTALL)
# of a page in pixels, and how many of the picture's stand for one of them: fine lines would take much room
SIZES = {"head_view": (480, 1.5), "model_view": (1000, 1), "neuron_view": (1080, 1.5)}
FIGURE = (760, 2)
HIGHEST = 900  # of a picture as it is shown, in pixels: a taller page is shown smaller
DRAWN = "() => document.querySelector('#figure > *, #vis > svg')"
HTML, PNG, PAGE = "text/html", "image/png", "page"


@contextmanager
def camera() -> Iterator[Callable[[str], tuple[bytes, dict]]]:
    """A function from a page to its picture, a PNG, and the size at which it is shown; one browser takes them all.

    FileNotFoundError where there is none.
    """
    with open_browser() as browser:

        def shoot(page: str) -> tuple[bytes, dict]:
            width, scale = next((size for kind, size in SIZES.items() if f' {kind}"' in page[:200]), FIGURE)
            with browser.new_page(viewport={"width": width, "height": 100}, device_scale_factor=scale) as tab:
                tab.evaluate("window.still = true")  # by which a page shows what a photograph should
                tab.set_content(page)
                tab.wait_for_function(DRAWN)
                tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                height = tab.evaluate("document.documentElement.scrollHeight")
                shot = tab.screenshot(full_page=True, animations="disabled")
            png = fewer_colours(shot, highest=round(HIGHEST * scale))
            less = min(1, HIGHEST / height)
            return png, {"width": round(width * less), "height": round(height * less)}

        yield shoot


def fewer_colours(png: bytes, colours: int = 128, highest: int = 10_000) -> bytes:
    """The picture in so many colours, a third of the size, and smaller if it is higher than so many pixels.

    They cover all that is there: a palette by the number of pixels would give a thin red line its neighbours' orange.
    """
    file, picture = io.BytesIO(), Image.open(io.BytesIO(png)).convert("RGB")
    picture.thumbnail((picture.width, highest))
    few = picture.quantize(colours, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def pages_of(notebook) -> Iterator[tuple[dict, str]]:
    """Each output of a notebook that holds a view or figure, with its page."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if frame := FRAME.search(output.get("data", {}).get(HTML, "")):
                yield output, unescape(frame[2])


def photograph(notebook, before) -> None:
    """Put a picture beside each view and figure of a notebook that has run.

    One whose page is that of `before`, the notebook as it was saved, keeps its picture, whatever the browser now;
    FileNotFoundError for others where there is no browser.
    """
    outputs = [output for cell in before.cells for output in cell.get("outputs", [])]
    old = {output.metadata[PNG][PAGE]: output for output in outputs if PAGE in output.get("metadata", {}).get(PNG, {})}
    new = [(output, page, sha256(page.encode()).hexdigest()[:16]) for output, page in pages_of(notebook)]
    for output, _, name in new:
        if name in old:
            output.data[PNG], output.metadata[PNG] = old[name].data[PNG], old[name].metadata[PNG]
    if missing := [each for each in new if each[2] not in old]:
        with camera() as shoot:
            for output, page, name in missing:
                png, size = shoot(page)
                output.data[PNG] = base64.b64encode(png).decode()
                output.metadata[PNG] = size | {PAGE: name}
