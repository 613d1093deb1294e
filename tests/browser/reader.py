"""Use each view like a reader, on any page, and check what it draws.

`view` is a page or a frame, `pair` the text that it shows. Numbers are read from the SVG and compared with the model's.
"""

import math

import numpy as np
import torch
from playwright.sync_api import expect

from utils.support.colours import DARK, SCALES

DRAWN = 1e-4  # numbers are drawn to four digits
DARK_GROUND = f"rgb{tuple(bytes.fromhex(DARK['paper'][1:]))}"
CELLS = "#vis > svg > g:has(> rect.attn_background)"  # of the model view
TILES = "#heads > button"  # of the head view
TOKENS = "#left > g:last-child > g"
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
LEFT_PARTS = {"aa": "a", "ab": "a", "ba": "b", "bb": "b"}


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


# where each pair's line begins and ends on the screen: rows of x1, y1, x2, y2; the view's first line is from 0 to 0
ENDS = """([selector, rows, columns]) => {
  const line = document.querySelector(selector), at = line.getScreenCTM(), ends = [];
  const [x1, y1, x2] = ["x1", "y1", "x2"].map((name) => +line.getAttribute(name));
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const [from, to] = [y1 + view.row * row, y1 + view.row * column];
    ends.push([x1 * at.a + at.e, from * at.d + at.f, x2 * at.a + at.e, to * at.d + at.f]);
  }
  return ends;
}"""
LINES = {"head": "#attention line", "model": ".attn-line-group line", "neuron": "#collapsed .attn-line-group line"}


def line_ends(view, name: str, size: int) -> torch.Tensor:
    """(size, size, 4): x1, y1, x2, y2 of each pair's line on the screen, in a drawing that shows lines of one layer."""
    ends = view.locator("html").evaluate(f"(_, options) => ({ENDS})(options)", [LINES[name], size, size])
    return torch.tensor(ends, dtype=torch.float64).view(size, size, 4)


def point(ends: torch.Tensor, along: float) -> tuple[float, float]:
    """Return a point of a line, `along` from its left end (0) to its right end (1)."""
    x1, y1, x2, y2 = ends.tolist()
    return x1 + along * (x2 - x1), y1 + along * (y2 - y1)


def distances(ends: torch.Tensor, x: float, y: float) -> torch.Tensor:
    """Return the distance of each line (…, 4) from a point of the drawing."""
    x1, y1, x2, y2 = ends.unbind(-1)
    return ((y2 - y1) * (x - x1) - (x2 - x1) * (y - y1)).abs() / torch.hypot(x2 - x1, y2 - y1)


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


def use_head_view(view, pair) -> None:
    L, A, S, _ = pair.attention.shape
    lines, opacity = "#attention line", "stroke-opacity"
    check_head_lines(view, pair.attention[0])
    # hover
    view.locator("#left text").nth(8).hover()
    expect(view.locator(f"{lines}[visibility=visible]")).to_have_count(A * S)
    assert set(numbers(view, f"{lines}[visibility=visible]", "left-token-index").tolist()) == {8}
    assert close(numbers(view, "#right .attentionBoxes rect", "opacity"), pair.attention[0, :, 8])
    leave(view)
    expect(view.locator(f"{lines}[visibility=visible]")).to_have_count(0)
    # a tile: click, click, double-click, double-click
    tile = view.locator(TILES).nth(3)
    without, alone = pair.attention[0] / (A - 1), torch.zeros(A, S, S)
    without[3], alone[3] = 0, pair.attention[0, 3]
    for press, wanted in (
        (tile.click, without),
        (tile.click, pair.attention[0] / A),
        (tile.dblclick, alone),
        (tile.dblclick, pair.attention[0] / A),
    ):
        press()
        assert close(numbers(view, lines, opacity), wanted)
    # drop-downs
    for layer in (L - 1, 2):
        view.locator("#layer").select_option(str(layer))
        check_head_lines(view, pair.attention[layer])
    for name in LEFT_PARTS:
        rows, columns = part(pair, name)
        view.locator("#filter").select_option(name)
        assert close(numbers(view, lines, opacity), pair.attention[2, :, rows, columns] / A)
        assert view.locator("#left text").all_text_contents() == pair.tokens[rows]
        assert view.locator("#right text").all_text_contents() == pair.tokens[columns]
    view.locator("#filter").select_option("all")


def check_head_lines(view, weights: torch.Tensor) -> None:
    expect(view.locator("#attention line")).to_have_count(weights.numel())
    assert close(numbers(view, "#attention line", "stroke-opacity"), weights / len(weights))


def use_model_view(view, pair, layers=range(6)) -> None:
    """Use a model view that includes these `layers`."""
    attention, A = pair.attention[list(layers)], pair.attention.size(1)
    layer, head = 5, 5
    cell = view.locator(f"{CELLS} > rect:last-child").nth(list(layers).index(layer) * A + head)
    check_colours(view, ".square image", attention)
    for _ in range(2):  # opened and closed
        cell.click(position={"x": 10, "y": 10})
        expect(view.locator("text.detail")).to_have_text(f"Layer {layer}, Head {head}")
        check_colours(view, ".detail image", pair.attention[layer, head])
        view.locator("g.detail text.token").nth(8).hover()
        expect(view.locator(".highlight.shown")).to_have_count(1)
        cell.click(position={"x": 10, "y": 10})
        expect(view.locator(".detail")).to_have_count(0)
    for name in (*LEFT_PARTS, "all"):
        rows, columns = part(pair, name) if name in LEFT_PARTS else (slice(None), slice(None))
        view.locator("#filter").select_option(name)
        check_colours(view, ".square image", attention[:, :, rows, columns])
    # bertviz's lines
    view.locator("#drawing").select_option("lines")
    check_model_lines(view, attention)
    cell.click(position={"x": 10, "y": 10})
    assert close(numbers(view, ".attn-line-group line", "stroke-opacity"), pair.attention[layer, head])
    view.locator("g.detail text.token").nth(8).hover()
    assert numbers(view, ".attn-line-group", "opacity").tolist() == [float(row == 8) for row in range(len(pair.tokens))]
    view.locator("#filter").select_option("ab")
    check_model_lines(view, attention[:, :, *part(pair, "ab")])
    view.locator("#filter").select_option("all")
    view.locator("#drawing").select_option("squares")
    check_colours(view, ".square image", attention)


def check_model_lines(view, weights: torch.Tensor) -> None:
    assert close(numbers(view, f"{CELLS} line", "stroke-opacity"), weights)


def use_neuron_view(view, pair, layer: int = 0, head: int = 0) -> None:
    """Use a neuron view that starts, and ends, with this `layer` and `head`."""
    check_neuron_lines(view, pair.attention[layer, head])
    for row in (8, 3):
        open_query(view, row)
        check_computation(view, pair, layer, head, row)
    for other_layer, other_head in ((5, 5), (1, 11)):
        view.locator("#layer").select_option(str(other_layer))
        view.locator("#att_head").select_option(str(other_head))
        check_computation(view, pair, other_layer, other_head, 3)
    for name in LEFT_PARTS:
        rows, columns = part(pair, name)
        view.locator("#filter").select_option(name)
        check_neuron_lines(view, pair.attention[1, 11, rows, columns])
        assert view.locator(".sums .key").all_text_contents() == pair.tokens[columns]
    for control, value in (("#filter", "all"), ("#layer", str(layer)), ("#att_head", str(head))):
        view.locator(control).select_option(value)


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


def check_stripes(view, pair, layer: int, head: int, row: int) -> None:
    """Check q, k, q × k, q · k / √D and softmax of one token in bertviz's opened drawing."""
    query, keys = pair.queries[layer, head, row].double(), pair.keys[layer, head].double()
    expect(view.locator("#expanded")).to_have_attribute("visibility", "visible")
    assert close(numbers(view, "#queries .element", "data-value"), pair.queries[layer, head])
    assert close(numbers(view, "#keys .element", "data-value"), keys)
    assert close(numbers(view, "#product .element", "data-value"), query * keys, 1e-3)
    scores = numbers(view, "#dotproducts rect", "data-value")
    assert close(scores, keys @ query / math.sqrt(keys.size(-1)), 1e-3)
    assert close(numbers(view, "#expanded #rightText .highlight", "opacity"), pair.attention[layer, head, row])


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
