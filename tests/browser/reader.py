"""Use each view like a reader, on any page, and check what it draws.

`view` is a page or a frame, `pair` the text that it shows. Numbers are read from the SVG and compared with the model's.
"""

import math
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import expect

from utils.support.colours import DARK, SCALES

DRAWN = 1e-4  # numbers are drawn to four digits
DARK_GROUND = f"rgb{tuple(bytes.fromhex(DARK['paper'][1:]))}"
SQUARES = ".square > .press"  # of the model view
HEADS = ".heads > .cell:not(.last)"  # of the head view's map; the last ones are means
LEFT, RIGHT = "[data-token^=L]", "[data-token^=R]"  # of the head view
WORDS = f"{LEFT} > text:first-of-type"
# the colours of each picture of weights, its pixels from left to right and from top to bottom
PIXELS = """async (_, selector) => {
  const all = [];
  for (const element of document.querySelectorAll(selector)) {
    const image = new Image();
    image.src = element.getAttribute("href");
    await image.decode();
    const { width, height } = image, pen = new OffscreenCanvas(width, height).getContext("2d");
    pen.drawImage(image, 0, 0);
    all.push([...pen.getImageData(0, 0, width, height).data].filter((_, index) => index % 4 < 3).join(" "));
  }
  return all.join(" ");
}"""


def numbers(view, selector: str, attribute: str) -> torch.Tensor:
    values = view.locator(selector).evaluate_all(  # one string, which is transferred faster than many numbers
        "(elements, name) => elements.map((e) => +(e.getAttribute(name) ?? e.style[name])).join(' ')", attribute
    )
    return torch.tensor([float(value) for value in values.split()], dtype=torch.float64)


def close(found: torch.Tensor, wanted: torch.Tensor, tolerance: float = DRAWN) -> bool:
    return found.numel() == wanted.numel() and bool((found - wanted.double().flatten()).abs().max() <= tolerance)


def open_in_frames(page, views, folder) -> list:
    """Open a page with each view in a frame, as in a notebook, and return the frames once they are drawn."""
    file = folder / "page.html"
    body = "".join(view._repr_html_() for view in views)
    file.write_text("<!doctype html><meta charset=utf-8>" + body, encoding="utf-8")
    page.goto(file.as_uri())
    frames = [page.frame_locator("iframe").nth(index) for index in range(len(views))]
    for frame in frames:
        frame.locator("#vis > svg").wait_for()
    return frames


def open_saved(page, view, folder) -> None:
    page.goto(view.save(folder / "view.html").as_uri())
    page.locator("#vis > svg").wait_for()


def as_drawn(weights: torch.Tensor) -> torch.Tensor:
    return (weights.double() / DRAWN).round() * DRAWN


def coloured(weights: torch.Tensor, theme: str = "light") -> np.ndarray:
    """Return the red, green and blue of each weight, from 0 to 255, on the scale of a theme."""
    stops = np.array([[int(stop[at : at + 2], 16) for at in (1, 3, 5)] for stop in SCALES[theme]["above"]])
    at = weights.double().flatten().numpy()
    return np.stack([np.interp(at, np.linspace(0, 1, len(stops)), channel) for channel in stops.T], axis=-1)


def check_colours(view, selector: str, weights: torch.Tensor, theme: str = "light") -> None:
    """Check that pictures of weights have the colours of these weights, pixel by pixel."""
    found = np.array(view.locator("html").evaluate(PIXELS, selector).split(), float).reshape(-1, 3)
    assert found.shape == (weights.numel(), 3)
    assert abs(found - coloured(weights, theme)).max() <= 2  # of 255


def leave(view) -> None:
    """Move the pointer away from the drawing."""
    view.locator("#help").hover()


def part(pair, name: str) -> tuple[slice, slice]:
    """Return the rows and columns of a part of the pair, such as "ab"."""
    sentences = {"a": slice(0, pair.start), "b": slice(pair.start, None)}
    return sentences[name[0]], sentences[name[1]]


def shown_numbers(view, selector: str) -> torch.Tensor:
    """Return the numbers next to the tokens of a side of the head view; those below 0.005 are not shown."""
    texts = view.locator(f"{selector} > .number").all_text_contents()
    return torch.tensor([float(text or 0.005) for text in texts], dtype=torch.float64)


def check_flow(view, weights: torch.Tensor) -> None:
    """Check each ribbon's number, and what each token on the right gets."""
    settle(view)
    read = "(all) => all.map((e) => [e.dataset.i, e.dataset.j, e.dataset.value].map(Number))"
    found = torch.zeros(weights.shape, dtype=torch.float64)
    for i, j, weight in view.locator(".base .ribbon").evaluate_all(read):
        found[int(i), int(j)] = weight
    assert close(found.flatten(), weights, 0.02 / 8)
    got = torch.tensor([float(text or 0) for text in view.locator(f"{RIGHT} > .number").all_text_contents()])
    assert close(got, weights.sum(0), 0.051)


def click_a_head(view, pair) -> None:
    """Choose a head in the map of a head view, and point at a token."""
    chosen = view.locator(HEADS).nth(2 * 12 + 4)
    chosen.click()
    chosen.and_(view.locator("[aria-checked=true]")).wait_for()  # JupyterLab may be busy
    check_flow(view, pair.attention[2, 4])
    view.locator(LEFT).nth(8).hover()
    assert close(shown_numbers(view, RIGHT), pair.attention[2, 4, 8].clamp(min=0.005), 0.0051)
    leave(view)


def enlarge_a_head(view, pair, number: int) -> None:
    """Open head 5 of layer 5 in a model view, and close it; `number` is its place."""
    cell = view.locator(SQUARES).nth(number)
    cell.click(position={"x": 10, "y": 10})
    expect(view.locator("text.detail")).to_have_text("Layer 5, head 5")
    check_colours(view, ".detail image", pair.attention[5, 5])
    view.locator("g.detail text.token").nth(8).hover()
    expect(view.locator(".highlight.shown")).to_have_count(1)
    cell.click(position={"x": 10, "y": 10})
    expect(view.locator(".detail")).to_have_count(0)


def settle(view) -> None:
    """Wait until nothing moves."""
    view.locator("html:not(.moving)").wait_for(state="attached")


def check_neuron_lines(view, weights: torch.Tensor) -> None:
    """Check the weights next to the sums of whatever query is chosen."""
    settle(view)
    row = int(view.locator("#query").input_value())
    assert close(numbers(view, ".sums .weight", "data-value"), weights[row])


def open_query(view, row: int) -> None:
    view.locator("#query").select_option(str(row))


def check_computation(view, pair, layer: int, head: int, row: int) -> None:
    """Check the products of one query with all keys, their sums and the softmax of these, as they are drawn."""
    query, keys = pair.queries[layer, head, row].double(), pair.keys[layer, head].double()
    settle(view)
    (S, D), order = keys.shape, numbers(view, ".block", "data-neuron").long()
    products = torch.zeros(S, D, dtype=torch.float64)
    products.scatter_(1, order.view(S, D), numbers(view, ".block", "data-value").view(S, D))
    assert close(products.flatten(), query * keys / math.sqrt(D), 1e-3)
    scores = numbers(view, ".sums .score", "data-value")
    assert close(scores, keys @ query / math.sqrt(D), 1e-3)
    weights = numbers(view, ".sums .weight", "data-value")
    assert close(weights, pair.attention[layer, head, row])
    assert close(scores.softmax(-1), weights, 1e-3)


def let_fit(view) -> None:
    """Wait for the two frames in which a view answers a new width; frames out of sight draw none within a second."""
    view.locator("html").evaluate("""() => new Promise((done) => {
      requestAnimationFrame(() => requestAnimationFrame(done));
      setTimeout(done, 1000);
    })""")


def cropped(view) -> list[str]:
    """Return what is drawn out of reach, and by how many pixels a page is too wide or a frame too low."""
    let_fit(view)
    out = view.locator("text, rect, line, select").evaluate_all(
        """(elements) => elements.filter((e) => {
            const box = e.getBoundingClientRect(), scroller = e.closest("#vis");
            const hidden = scroller ? (scroller.scrollWidth - scroller.clientWidth) * scroller.currentCSSZoom : 0;
            return box.left < 0 || box.right > document.documentElement.clientWidth + hidden;
        }).map((e) => `${e.tagName} ${e.textContent}`)"""
    )
    low = view.locator("html").evaluate("(e) => (window.frameElement ? e.scrollHeight - e.clientHeight : 0)")
    wide = view.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth")
    return out + [f"{name} by {size} px" for name, size in (("low", low), ("wide", wide)) if size > 0]


# The numbers that can be seen in a drawing, but for those on controls, and the words on controls.
SEEN = """(drawing) => {
  const control = "option, select, button:not(.cell, [role], [aria-pressed]), summary, details:not([open]), #tools";
  const walker = document.createTreeWalker(drawing, NodeFilter.SHOW_TEXT), texts = [], words = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement, label = parent.closest("label");
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const isOff = label?.querySelector("input:is([type=radio], [type=checkbox]):not(:checked)");
    (parent.closest(`${control}, .rests`) || isOff ? words : texts).push(node.textContent);
  }
  for (const input of drawing.querySelectorAll("[type=number]")) texts.push(input.value);
  return [texts.join(" "), words];
}"""


def check_saved_picture(page, folder: Path) -> list[Path]:
    """Check that the picture saved as SVG and PNG holds all numbers of the drawing, and nothing to press."""
    texts, controls = page.locator("#figure, #view").evaluate(SEEN)
    files = {}
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.locator(f"#save [value={kind}]").click()
        download.value.save_as(files.setdefault(kind, folder / f"picture.{kind}"))
    drawn = ElementTree.parse(files["svg"])
    written = [" ".join(each.itertext()) for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    numbers = re.compile(r"\d+(?:[.,]\d+)*")
    missing = Counter(numbers.findall(texts)) - Counter(numbers.findall(" ".join(written)))
    assert not missing
    alone = {text.strip() for text in written}
    assert not {word.strip() for word in controls if re.search(r"[a-z]{3}", word)} & alone - set(texts.split())
    with Image.open(files["png"]) as picture:
        assert min(picture.size) > 400
        assert len(picture.convert("RGB").getcolors(1_000_000)) > 20
    return list(files.values())
