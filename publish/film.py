"""Record notebooks/images/where_it_looks.gif for the README: a reader exchanges a word in the sentence view."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageDraw

from publish.browser import open_browser
from publish.notebooks import ROOT
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer
from views import sentence_view
from views.page import View

FILM = ROOT / "notebooks" / "images" / "where_it_looks.gif"
WIDTH = 720  # of the page in CSS pixels
LARGER = 1.25  # film pixels per CSS pixel, so that its smallest letters have 16
STEP = 50  # milliseconds between the frames of a move
SENTENCE = "The animal didn't cross the street because it was too {}."
WORDS = "tired", "hungry", "wide", "narrow"
POINTER = [(0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12)]
SHOWN = """() => {
  document.querySelectorAll("h1, #help, .below, .details").forEach((e) => { e.style.display = "none"; });
  document.body.style.margin = "0";
}"""


class Film:
    """Record frames of a page whose clock stands still between them, with the pointer drawn where it is."""

    def __init__(self, page, part):
        self.page, self.part, self.pointer = page, part, (WIDTH - 40, 200)
        self.frames, self.milliseconds = [], []

    def show(self, milliseconds: int) -> None:
        """Take a frame that is shown for so many milliseconds."""
        picture = Image.open(io.BytesIO(self.part.screenshot())).convert("RGB")
        box = self.part.bounding_box()
        shape = [
            ((self.pointer[0] - box["x"]) * LARGER + x, (self.pointer[1] - box["y"]) * LARGER + y) for x, y in POINTER
        ]
        ImageDraw.Draw(picture).polygon(shape, "black", "white")
        self.frames.append(picture)
        self.milliseconds.append(milliseconds)

    def watch(self, milliseconds: int) -> None:
        """Let the page's clock run, and take a frame every STEP milliseconds."""
        for _ in range(0, milliseconds, STEP):
            self.page.clock.run_for(STEP)
            self.show(STEP)

    def click(self, target) -> None:
        """Move the pointer to the middle of an element in visible steps, and click."""
        box = target.bounding_box()
        there, here, steps = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), self.pointer, 5
        for step in range(1, steps + 1):
            self.pointer = tuple(a + (b - a) * step / steps for a, b in zip(here, there, strict=True))
            self.show(STEP)
        self.page.mouse.click(*there)

    def save(self, path: Path) -> None:
        """Write the frames as an endless GIF in the palette of the frames that are shown longest."""
        long = [frame for frame, time in zip(self.frames, self.milliseconds, strict=True) if time > 1000]
        width, height = long[0].size
        sheet = Image.new("RGB", (width, height * len(long)))
        for number, frame in enumerate(long):
            sheet.paste(frame, (0, height * number))
        palette = sheet.quantize(64, method=Image.Quantize.MAXCOVERAGE)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=self.milliseconds, loop=0, optimize=True)


def play(page, film: Film) -> None:
    """Exchange the last word three times, then let another word look."""
    film.show(2600)
    for word in WORDS[1:]:
        film.click(page.get_by_role("radio", name=word, exact=True))
        film.watch(700)
        film.show(2200)
    film.click(page.locator(".word").nth(6))  # "cross"
    film.watch(700)
    film.show(2200)
    film.click(page.get_by_role("radio", name=WORDS[0], exact=True))
    film.click(page.locator(".word").nth(10))  # "it" again, as at the start
    film.watch(700)


def opening_view() -> View:
    """Return the sentence view that opens the series."""
    texts = [SENTENCE.format(word) for word in WORDS]
    model = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    return sentence_view(*model, texts[0], token="it", layer=3, head=1, other=texts[1:])


def main() -> None:
    """Record the film, and print its size."""
    with TemporaryDirectory() as folder, open_browser() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=LARGER)
        page.clock.install()
        page.goto(opening_view().save(Path(folder) / "view.html").as_uri())
        page.evaluate(SHOWN)
        page.locator(".ribbon").first.wait_for()
        page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
        film = Film(page, page.locator("#figure"))
        play(page, film)
        film.save(FILM)
    size = f"{film.frames[0].size}, {len(film.frames)} frames, {FILM.stat().st_size / 1e3:.0f} kB"
    print(f"{FILM.relative_to(ROOT)}: {size}")


if __name__ == "__main__":
    main()
