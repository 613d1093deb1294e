"""Record notebooks/images/explore.gif for the README: a reader types into `explore` in JupyterLab."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image, ImageDraw

from publish.browser import open_browser
from publish.jupyterlab import ROOT, run_all, serve_jupyterlab

FILM = ROOT / "notebooks" / "images" / "explore.gif"
SIZE = 1060, 640  # of the film; the browser window is larger, so that nothing needs to scroll
CELL = """from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer
from views import explore

explore(TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint())"""
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
TYPED = "tired.", "narrow."  # the end of the default sentence, and what the reader types instead
QUESTION = "it"
POINTER = [(0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12)]


class Film:
    """Record frames of one element of a page, with the pointer drawn where it was last moved."""

    def __init__(self, page, part):
        self.page, self.pointer = page, (SIZE[0] - 40, SIZE[1] - 40)
        box = part.bounding_box()
        self.corner = box["x"], box["y"]
        self.frames, self.milliseconds = [], []

    def show(self, milliseconds: int) -> None:
        """Take a frame that is shown for so many milliseconds."""
        clip = {"x": self.corner[0], "y": self.corner[1], "width": SIZE[0], "height": SIZE[1]}
        picture = Image.open(io.BytesIO(self.page.screenshot(clip=clip))).convert("RGB")
        shape = [(self.pointer[0] + x, self.pointer[1] + y) for x, y in POINTER]
        ImageDraw.Draw(picture).polygon(shape, "black", "white")
        self.frames.append(picture)
        self.milliseconds.append(milliseconds)

    def move(self, target, right: float = 0.5) -> None:
        """Move the pointer to an element in visible steps; `right` is the fraction of its width to aim at."""
        box = target.bounding_box()
        there = (box["x"] + right * box["width"] - self.corner[0], box["y"] + box["height"] / 2 - self.corner[1])
        here, steps = self.pointer, 5
        for step in range(1, steps + 1):
            self.pointer = tuple(a + (b - a) * step / steps for a, b in zip(here, there, strict=True))
            self.page.mouse.move(*(a + b for a, b in zip(self.corner, self.pointer, strict=True)))
            self.show(60)

    def save(self, path: Path) -> None:
        """Write the frames as an endless GIF, in the palette of the frames shown longest."""
        long = [frame for frame, time in zip(self.frames, self.milliseconds, strict=True) if time > 3000]
        sheet = Image.new("RGB", (SIZE[0], SIZE[1] * len(long)))
        for number, frame in enumerate(long):
            sheet.paste(frame, (0, SIZE[1] * number))
        palette = sheet.quantize(200, method=Image.Quantize.MAXCOVERAGE)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=self.milliseconds, loop=0, optimize=True)


def play(page, output, film: Film) -> None:
    """Point at "it", type a new end of the sentence, point again, and open the query in the neuron view."""
    view, sentence = output.frame_locator("iframe:visible"), output.get_by_label("Sentence A:")
    film.show(900)
    film.move(view.locator("#left text").get_by_text(QUESTION, exact=True))
    film.show(3200)
    film.move(sentence, right=0.7)
    page.mouse.down()
    page.mouse.up()
    page.keyboard.press("End")
    for key in ["Backspace"] * len(TYPED[0]) + list(TYPED[1]):
        page.keyboard.press(key)
        film.show(90)
    page.keyboard.press("Enter")
    view.locator("#left text").get_by_text(TYPED[1][:-1], exact=True).wait_for()
    film.show(400)
    film.move(view.locator("#left text").get_by_text(QUESTION, exact=True))
    film.show(3600)
    film.move(output.get_by_label("View:"))
    output.get_by_label("View:").select_option("neuron view")
    asking = view.locator("#collapsed #leftText > g").filter(has_text=QUESTION).last
    asking.wait_for()
    film.show(600)
    film.move(asking.locator("text"))
    film.show(900)
    film.move(asking.locator("rect").nth(1))
    page.mouse.down()
    page.mouse.up()
    page.wait_for_timeout(500)
    film.show(3600)


def main() -> None:
    """Serve a one-cell notebook, run it, and record its output."""
    with TemporaryDirectory() as folder, open_browser() as browser:
        notebook = new_notebook(cells=[new_code_cell(CELL)], metadata={"kernelspec": KERNEL})
        nbformat.write(notebook, Path(folder) / "film.ipynb")
        with serve_jupyterlab(Path(folder)) as address:
            page = browser.new_page(viewport={"width": 1700, "height": 1100})
            cell = run_all(page, address("film"), 0).first
            output = cell.locator(".jp-OutputArea-child").last
            page.wait_for_timeout(1000)
            film = Film(page, output.locator(".jp-OutputArea-output"))
            play(page, output, film)
            film.save(FILM)
    print(f"{FILM.relative_to(ROOT)}: {len(film.frames)} frames, {FILM.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
