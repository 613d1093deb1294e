"""The decks of `make slides`: executed with figures in the size of a slide, and then shown slide by slide."""

import os
import shutil
from pathlib import Path

import pytest

from publish import slides, website
from publish.browser import open_browser
from publish.notebooks import number_of

CHAPTERS = sorted(website.NOTEBOOKS.glob("[0-9e]*.ipynb"))
LEAST = 24  # pixels of letters in code and figures
VIEWS_ONLY = {"12_decoder"}  # no still figure
SMALLER = {"07_attention_views": 16}  # the annotated pictures of views are as they are saved

# For each slide: elements that overflow, texts and pictures that overlap, the number of words to read, and the font
# size of its code and figures in pixels; a letter of 10 points in a figure has 10 / 72 of the 201.6 pixels that a
# picture has per inch.
WALK = """async () => {
const still = async (slide) => { // a view is fitted a moment after it is drawn
  const heights = () => [...slide.querySelectorAll("iframe")].map((e) => e.getBoundingClientRect().height).join();
  for (let before = ""; before !== heights();) {
    before = heights();
    await new Promise((done) => setTimeout(done, 100));
  }
};
for (const hidden of document.querySelectorAll("mjx-assistive-mml")) hidden.remove();
const walked = [];
for (const slide of document.querySelectorAll(".slides section:not(:has(section))")) {
  const { h, v } = Reveal.getIndices(slide);
  Reveal.slide(h, v, 99);
  await still(slide);
  const within = document.querySelector(".slides").getBoundingClientRect();
  const shown = [...slide.querySelectorAll("h1, h2, h3, p, li, pre, td, th, img, iframe")]
    .filter((e) => !e.closest("aside") && e.checkVisibility({ visibilityProperty: true }) && e.offsetHeight !== 0)
    .filter((e) => !e.querySelector("p, li, pre, img, iframe"));
  const boxes = shown.map((e) => e.getBoundingClientRect());
  const words = (e) => (e.innerText || e.alt || e.src || e.title || e.tagName).slice(0, 50);
  const outside = shown.filter((e, i) => boxes[i].bottom > within.bottom + 2 || boxes[i].right > within.right + 2
    || boxes[i].left < within.left - 2 || boxes[i].top < within.top - 2);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const meeting = shown.flatMap((e, i) => shown.slice(i + 1).filter((other, j) => meet(boxes[i], boxes[i + 1 + j])
    && !e.contains(other) && !other.contains(e)).map((other) => [words(e), words(other)]));
  const figures = [...slide.querySelectorAll("img[src^='data:image/png']")].filter((e) => e.offsetHeight);
  walked.push({
    name: slide.innerText.slice(0, 60).replace(/\\s+/g, " "),
    outside: outside.map(words),
    meeting,
    read: shown.filter((e) => !e.matches(".running, img, iframe"))
      .flatMap((e) => e.innerText.split(/\\s+/).filter((word) => /\\p{L}/u.test(word))).length,
    code: Math.min(...[...slide.querySelectorAll("pre")].filter((e) => !e.closest("aside") && e.innerText.trim())
      .map((e) => parseFloat(getComputedStyle(e).fontSize))),
    letters: figures.map((e) => Math.round((10 / 72) * 2016
      * Math.min(e.clientWidth / e.naturalWidth, e.clientHeight / e.naturalHeight)) / 10),
  });
}
return walked;
}"""


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_slides_have_no_overflow_or_overlap(path, tmp_path, monkeypatch):
    """DECKS=site/slides walks decks that `make slides` has made."""
    if made := os.environ.get("DECKS"):
        deck = Path(made).resolve() / f"{number_of(path)}.html"
    else:
        monkeypatch.setenv("PYTHONPATH", str(website.ROOT))
        shutil.copytree(website.NOTEBOOKS / "images", tmp_path / "images")
        copy = tmp_path / path.name
        website.execute_one(path, copy, slides.LARGER_TEXT)
        deck = slides.make_slides(copy, tmp_path / "slides")
    with open_browser() as browser:  # only now, because a notebook cannot be executed while it is open
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(deck.as_uri())
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        page.evaluate("Reveal.next()")  # the first slide is fitted a moment after it is ready
        walked = page.evaluate(WALK)
    assert len(walked) > 10
    for slide in walked:
        assert slide["outside"] == [], slide
        assert slide["meeting"] == [], slide
        assert slide["read"] <= slides.MOST, slide
        assert (slide["code"] or LEAST) >= LEAST, slide
    letters = [(letter, slide["name"]) for slide in walked for letter in slide["letters"]]
    assert bool(letters) == (path.stem not in VIEWS_ONLY)
    assert min(letters, default=(LEAST, ""))[0] >= SMALLER.get(path.stem, LEAST), min(letters)
