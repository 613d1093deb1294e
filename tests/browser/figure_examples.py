"""An example of each draggable figure, and how a reader uses it.

Each has a `use`: it takes hold of the figure once, at random, by the pointer or by the keyboard, and compares all
numbers that are then shown with torch, or with the library that the figure imitates.
"""

import functools
import heapq
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import faiss
import torch
from playwright.sync_api import expect
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tests.helpers import SMALL
from tests.texts import SPECIAL, WORDS
from utils.attention import compute_attention_weights, scaled_dot_product_attention
from utils.search import hnsw_index, search_index
from utils.support.checkpoint import load_tokenizer
from utils.support.checks import SPECIAL_TOKENS
from utils.support.datasets import reviews
from utils.tokenization import WordPieceTokenizer
from views import figures, sentence_view, why_near
from views.page import View


def numbers_that_say_where(tokens: int, heads: int, head_size: int) -> torch.Tensor:
    """Return numbers (S, A, D) whose three digits are the token, the head and the coordinate, each from 0."""
    token, head, place = torch.arange(tokens), torch.arange(heads), torch.arange(head_size)
    return 100 * token[:, None, None] + 10 * head[:, None] + place


class InFrame:
    """A figure in a frame of a page, for what `use` does: the frame's elements, and the page's pointer and keys."""

    def __init__(self, page, frame):
        self.mouse, self.keyboard = page.mouse, page.keyboard
        self.locator, self.get_by_role, self.get_by_label = (frame.locator, frame.get_by_role, frame.get_by_label)


def open_figure(page, view, folder: Path) -> None:
    """Open the saved page of a figure in the browser."""
    page.goto(view.save(folder / "figure.html").as_uri())


def settle(page) -> None:
    """Wait until every number, bar and arrow has arrived where its last change sends it."""
    page.locator("html.moving").wait_for(state="detached")


def numbers(page, selector: str) -> torch.Tensor:
    """Return the unrounded numbers of these elements."""
    values = page.locator(selector).evaluate_all("(all) => all.map((e) => e.dataset.value)")
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def handle_positions(page, selector: str = ".handle:visible") -> torch.Tensor:
    """Return the positions of handles, (N, 2)."""
    found = page.locator(selector).evaluate_all("(all) => all.map((e) => [+e.dataset.x, +e.dataset.y])")
    return torch.tensor(found, dtype=torch.float64)


def drag(page, handle, x: float, y: float) -> None:
    """Drag a handle with a real pointer to a point of the window."""
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y, steps=2)
    page.mouse.up()


def slide(page, slider, chance: random.Random) -> None:
    """Drag a range input with a real pointer to somewhere along it."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 8 + chance.random() * (box["width"] - 16), box["y"] + box["height"] / 2)


def press(page, element, keys: str, chance: random.Random, most: int = 12) -> None:
    """Focus an element, and press one of the keys (names separated by spaces) at most `most` times."""
    element.focus()
    key = chance.choice(keys.split())
    for _ in range(chance.randint(1, most)):
        page.keyboard.press(key)


def write(page, box, text: str) -> None:
    """Replace the text of a box by keyboard."""
    box.focus()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type(text)


def texts_of(page, selector: str) -> list[str]:
    """Return the texts of these elements."""
    return page.locator(selector).all_text_contents()


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Return whether the numbers of a page agree with torch's to within 1e-5 of their size."""
    wanted = torch.as_tensor(wanted, dtype=torch.float64).flatten()
    return found.shape == wanted.shape and torch.allclose(found, wanted, rtol=1e-5, atol=1e-5)


ARROWS = "ArrowLeft ArrowRight ArrowUp ArrowDown"


class Finger:
    """A finger on the screen of a page; `scrolled` is how far it has moved the page, in pixels."""

    def __init__(self, page):
        self.page, self.session, self.scrolled = page, page.context.new_cdp_session(page), 0

    def send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Put the finger down, move it in small steps, as a hand does, and lift it."""
        before = self.page.evaluate("scrollY")
        self.send("touchStart", start)
        for share in torch.linspace(0.1, 1, 10).tolist():
            self.send("touchMove", tuple(a + share * (b - a) for a, b in zip(start, end, strict=True)))
        self.send("touchEnd")
        after = self.page.evaluate(
            "new Promise((drawn) => setTimeout(() => requestAnimationFrame(() => drawn(scrollY))))"
        )
        self.scrolled += abs(after - before)

    def tap(self, at: tuple[float, float]) -> None:
        self.drag(at, at)


def middle(element) -> tuple[float, float]:
    """Return the middle of an element in the window, after scrolling to it."""
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def thumb(slider) -> tuple[float, float]:
    """Return the middle of a slider's thumb in the window."""
    slider.scroll_into_view_if_needed()
    box, wide = slider.bounding_box(), 24 if slider.locator("xpath=ancestor::*[@class='strip']").count() else 16
    least, most, at = slider.evaluate("(e) => [+e.min, +e.max, +e.value]")
    along = (at - least) / (most - least) * (box["width"] - wide)
    return box["x"] + wide / 2 + along, box["y"] + box["height"] / 2


def drag_thumbs(page, finger: Finger) -> None:
    """Drag the thumb of each slider; it stops at most half a step away from the finger."""
    for slider in page.locator("input[type=range]:visible").all():
        (x, y), box = thumb(slider), slider.bounding_box()
        least, most, step = slider.evaluate("(e) => [+e.min, +e.max, +e.step || 1]")
        to = x + (box["width"] / 4 if x < box["x"] + box["width"] / 2 else -box["width"] / 4)
        finger.drag((x, y), (to, y + 6))
        assert abs(thumb(slider)[0] - to) <= 0.5 * step / (most - least) * box["width"] + 2


def drag_heads(page, finger: Finger) -> None:
    """Drag the head of each arrow towards the middle, up or down as well as across."""
    for one in page.locator(".handle:visible circle").all():
        start, plane = middle(one), middle(page.locator("svg").first)
        end = tuple(a + 0.4 * (b - a) for a, b in zip(start, plane, strict=True))
        finger.drag(start, end)
        assert max(abs(a - b) for a, b in zip(middle(one), end, strict=True)) < 3


def paint_cells(page, finger: Finger) -> None:
    """Paint from the first row down to the third."""
    cells = page.locator(".cell")
    column = [cells.nth(4 * row + 1) for row in range(3)]
    was = [one.get_attribute("aria-pressed") for one in column]
    finger.drag(middle(column[0]), middle(column[2]))
    assert len({one.get_attribute("aria-pressed") for one in column}) == 1
    assert column[0].get_attribute("aria-pressed") != was[0]


def drag_bar(page, finger: Finger) -> None:
    """Drag a bar of the word's vector to a third of the strip's height."""
    strip = page.locator("svg[data-values]").first
    (x, y), box = middle(strip), strip.bounding_box()
    scale = float(strip.get_attribute("data-limit"))
    finger.drag((x + 3, y), (x + 3, y + box["height"] / 6))
    values = json.loads(strip.get_attribute("data-values"))
    assert abs(values[len(values) // 2] / scale + 1 / 3) < 0.05


def tap_words(page, finger: Finger) -> None:
    """Tap words and a line: what was tapped stays chosen when the finger is lifted."""
    for one in page.locator(".word").all():
        finger.tap(middle(one))
        expect(one).to_have_class(re.compile("chosen"))
    lines = page.locator("line")
    points = [lines.nth(at).evaluate(UNCOVERED) for at in range(lines.count())]
    finger.tap(next(point for point in points if point))
    expect(page.locator("line:not(.dim)")).to_have_count(1)


# a point of a line, in the window, that lies under no other line
UNCOVERED = """(line) => {
  for (let along = 0.1; along < 1; along += 0.05) {
    const point = line.getPointAtLength(along * line.getTotalLength()).matrixTransform(line.getScreenCTM());
    if (document.elementFromPoint(point.x, point.y) === line) return [point.x, point.y];
  }
  return null;
}"""


def tap_gap(page, finger: Finger) -> None:
    """Tap between two letters."""
    finger.tap(middle(page.locator(".gap").nth(1)))
    expect(page.locator(".gap").nth(1)).to_have_attribute("aria-pressed", "true")


def tap_number(page, finger: Finger) -> None:
    """Tap a number, which is then followed."""
    finger.tap(middle(page.locator("td[data-value]").nth(5)))
    expect(page.locator("td[data-value]").nth(5)).to_have_class("followed")


def drag_map(page, finger: Finger) -> None:
    """Drag the mark in the map of all factors."""
    (x, y), box = middle(page.locator(".map")), page.locator(".map").bounding_box()
    finger.drag((x, y), (x + box["width"] / 4, y + 6))
    assert abs(middle(page.locator(".map circle").first)[0] - (x + box["width"] / 4)) <= 3


def tap_text(page, finger: Finger) -> None:
    """Tap a text of the graph, which is then named with its cosine."""
    one = page.locator(".text").nth(50)
    finger.tap(middle(one))
    cosine = f"{float(one.get_attribute('data-value')):.2f}".replace("-", "\u2212")
    expect(page.locator("svg").first.locator("text").last).to_have_text(re.compile(f". {cosine}$"))


class Example(NamedTuple):
    """How to make a figure from three names, and how a reader uses it."""

    make: Callable[[list[str]], View]
    use: Callable  # (page, chance): change something with a hand, and compare all numbers
    touch: tuple[Callable, ...] = (drag_thumbs,)  # (page, finger): do it with a finger, and compare where it went


def make_plane(names: list[str]) -> View:
    values = [[1, 4], [-4, -1], [3, 0]]
    return figures.attention_in_the_plane([0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], values, names, asking=1)


def use_plane(page, chance: random.Random) -> None:
    handles = page.locator(".handle:visible")
    one = handles.nth(chance.randrange(handles.count()))
    if chance.random() < 0.5:
        box = page.locator("svg").bounding_box()
        x, y = (box[corner] + chance.uniform(0, box[side]) for corner, side in (("x", "width"), ("y", "height")))
        drag(page, one, x, y)
    else:
        press(page, one, ARROWS, chance)
    if chance.random() < 0.3:
        page.get_by_role("checkbox").nth(chance.randrange(2)).click()
    settle(page)
    scaled, simple = (page.get_by_role("checkbox").nth(index).is_checked() for index in range(2))
    points = handle_positions(page)  # the keys', and, if they are apart, the values' and the query's
    keys, values, query = (points, points, points[1]) if simple else (points[:3], points[3:6], points[6])
    products = keys @ query
    scores = products / 2**0.5 if scaled else products
    if scaled:
        average, weights = scaled_dot_product_attention(query[None, None], keys[None], values[None])
        average, weights = average[0, 0], weights[0, 0]
    else:
        weights = scores.softmax(dim=0)
        average = weights @ values
    assert close(numbers(page, "td[data-value]"), torch.stack([products, scores, scores.exp(), weights], dim=1))
    assert close(numbers(page, "[class^=average]"), average)
    along = keys / keys.norm(dim=1, keepdim=True)  # how far the query goes in each key's direction
    assert close(handle_positions(page, ".projection").flatten(), (along @ query)[:, None] * along)


def make_sharpness(names: list[str]) -> View:
    return figures.sharpness([3.5, 12.6, -4.2], tokens=names)


def use_sharpness(page, chance: random.Random) -> None:
    sliders = page.get_by_role("slider")
    one = sliders.nth(chance.randrange(sliders.count()))
    if chance.random() < 0.2:
        page.get_by_role("button").nth(chance.randrange(3)).click()
    elif chance.random() < 0.5:
        slide(page, one, chance)
    else:
        press(page, one, ARROWS, chance)
    settle(page)
    scores, scaled, weights, gradients = numbers(page, "td[data-value], td span[data-value]").view(3, 4).T
    assert close(scaled, scores * 64 ** float(sliders.first.input_value()))
    assert close(weights, scaled.softmax(dim=0))
    softmax = functools.partial(torch.softmax, dim=0)
    diagonal = torch.autograd.functional.jacobian(softmax, scaled).diagonal()
    assert close(gradients, diagonal)
    assert close(numbers(page, "b[data-value]"), torch.stack([weights.max(), diagonal.max()]))
    assert close(numbers(page, ".map circle"), torch.cat([weights, diagonal.max()[None]]))


LOGITS = torch.randn(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
LOGITS = 2 * LOGITS.sort(descending=True).values
LOGITS[5] = LOGITS[4]  # a tie


def make_next_token(names: list[str]) -> View:
    return figures.next_token(LOGITS, [*names, *(f"word {number}" for number in range(17))])


def use_next_token(page, chance: random.Random) -> None:
    sliders = page.get_by_role("slider")
    one = sliders.nth(chance.randrange(3))
    if chance.random() < 0.5:
        slide(page, one, chance)
    else:
        press(page, one, ARROWS, chance)
    exponent, top_k, top_p = (float(one.input_value()) for one in sliders.all())
    scores = LOGITS[None]
    for warper in (
        TemperatureLogitsWarper(min(3.0, 10**exponent)),
        TopKLogitsWarper(int(top_k)),
        TopPLogitsWarper(top_p),
    ):
        scores = warper(None, scores)
    shares = scores.softmax(dim=-1)[0].sort(descending=True).values  # of a tie, torch drops either for top-p
    draws = chance.choice([None, 0, 1, 100])  # None: as many as before, drawn again from the new shares
    if draws is not None:
        page.get_by_role("button", name="clear the draws").click()
    if draws:
        page.get_by_role("button", name={1: "draw a token", 100: "draw 100 tokens"}[draws]).click()
    settle(page)
    rows = [[float(x) for x in row.split(",")] for row in page.locator("tbody tr").evaluate_all(DATA)]
    alone, others = torch.tensor(rows[:-1], dtype=torch.float64), torch.tensor(rows[-1], dtype=torch.float64)
    assert alone[4, 2] >= alone[5, 2]  # here the first one stays
    model = LOGITS.softmax(dim=0)
    assert close(alone[:, :3].flatten(), torch.stack([LOGITS, model, shares], dim=1)[:12])
    assert close(others[:2], torch.stack([model[12:].sum(), shares[12:].sum()]))
    tally = torch.cat([alone[:, 3], others[2:]])
    expected = torch.cat([alone[:, 2], others[1:2]])
    draws = tally.sum() if draws is None else draws
    assert tally.sum() == draws
    assert (tally[expected == 0] == 0).all()  # what is cut is never drawn
    assert ((tally - draws * expected).abs() <= 5 * (draws * expected * (1 - expected)).sqrt() + 1).all()


DATA = "(rows) => rows.map((row) => [...row.querySelectorAll('[data-value]')].map((e) => e.dataset.value).join())"


EMBEDDED = torch.randn(9, 8, generator=torch.Generator().manual_seed(2)).split([3, 4, 2])
GAMMA, BETA = torch.linspace(0.5, 1.5, 8), torch.linspace(-1, 1, 8)


def make_sum_and_scale(names: list[str]) -> View:
    return figures.sum_and_scale(*EMBEDDED, names, weight=GAMMA, bias=BETA)


def use_sum_and_scale(page, chance: random.Random) -> None:
    strips, sliders = page.locator("svg[data-values]"), page.get_by_role("slider")
    before = json.loads(strips.first.get_attribute("data-values"))
    one, choice = sliders.nth(chance.randrange(sliders.count())), chance.randrange(5)
    if choice == 0:
        page.get_by_role("combobox").select_option(index=chance.randrange(3))
        before = None
    elif choice == 1:
        page.locator("input[type=radio], input[type=checkbox]").nth(chance.randrange(3)).click()
    elif choice == 2:
        slide(page, strips.first, chance)  # its middle, so the number becomes 0
        box = strips.first.bounding_box()
        drag(page, strips.first, box["x"] + chance.random() * box["width"], box["y"] + chance.random() * 44)
    elif choice == 3:
        slide(page, one, chance)
    else:
        press(page, one, ARROWS, chance)
    settle(page)
    drawn = torch.tensor(strips.evaluate_all("(all) => all.map((e) => JSON.parse(e.dataset.values))")).double()
    at, gamma, beta, number, _ = (float(one.input_value()) for one in sliders.all())
    words, positions, types = (table.double() for table in EMBEDDED)
    word = drawn[0] if before is None or choice >= 2 else torch.tensor(before, dtype=torch.float64)
    if choice == 0:
        word = words[page.get_by_role("combobox").evaluate("(e) => e.selectedIndex")]
    total = word + positions[int(at)] + types[int(page.locator("input[type=radio]:checked").input_value())]
    weight, bias = gamma * torch.ones(8).double(), beta * torch.ones(8).double()
    if page.get_by_role("checkbox").is_checked():
        weight, bias = gamma * GAMMA.double(), beta + BETA.double()
    normed = torch.nn.functional.layer_norm(total, [8], weight, bias, eps=1e-12)
    rows = torch.stack([word, drawn[1], drawn[2], total, normed])
    assert close(drawn.flatten(), rows)
    assert close(drawn[1], positions[int(at)])
    moments = [m for row in (total, normed) for m in (row.mean(), row.std(correction=0))]
    assert close(numbers(page, ".moment"), torch.stack(moments))
    assert close(numbers(page, ".chosen"), rows[:, int(number)])
    check_addition(page)


def check_addition(page) -> None:
    """Check that what is written below the strips that are added adds up exactly, and that they have one scale."""
    texts = page.locator(".written").evaluate_all("(all) => all.map((e) => [...e.children].map((s) => s.textContent))")
    word, position, kind, total, _ = [[Decimal(text.replace("\u2212", "-")) for text in row] for row in texts]
    assert [sum(parts) for parts in zip(word, position, kind, strict=True)] == total
    scales = page.locator("svg[data-values]").evaluate_all("(all) => all.map((e) => e.dataset.limit)")
    assert len(set(scales[:4])) == 1


def make_mask(names: list[str]) -> View:
    return figures.mask_painter([*names, "[PAD]"], rows=names[:2], mask="causal")


def use_mask(page, chance: random.Random) -> None:
    cells, inputs = page.locator(".cell"), page.locator("input[type=number]")
    one, other = (cells.nth(chance.randrange(cells.count())) for _ in range(2))
    value = inputs.nth(chance.randrange(inputs.count()))
    deed = chance.choice(["preset", "paint", "keys", "type", "step"])
    if deed == "preset":
        page.get_by_role("radio").nth(chance.randrange(5)).click()
    elif deed == "paint":
        was, box = one.get_attribute("aria-pressed"), other.bounding_box()
        drag(page, one, box["x"] + 9, box["y"] + 9)
        assert {one.get_attribute("aria-pressed"), other.get_attribute("aria-pressed")} == {
            "false" if was == "true" else "true"
        }
    elif deed == "keys":
        press(page, page.locator(".cell[tabindex='0']"), ARROWS, chance)
        was = page.locator(".cell:focus").get_attribute("aria-pressed")
        page.keyboard.press("Space")
        assert page.locator(".cell:focus").get_attribute("aria-pressed") != was
    elif deed == "type":
        value.fill(str(chance.randint(-99, 99) / 4))
    else:
        press(page, value, "ArrowUp ArrowDown", chance)
    settle(page)
    values = torch.tensor([float(one.input_value()) for one in inputs.all()], dtype=torch.float64)
    pressed = cells.evaluate_all("(all) => all.map((e) => e.ariaPressed === 'true')")
    mask = torch.tensor(pressed).view(-1, len(values))
    query, key = torch.zeros(len(mask), 1).double(), torch.zeros(len(values), 1).double()
    weights = compute_attention_weights(query, key, mask)  # nan in a row that may see nothing, as the figure
    for selector, wanted in ((".cell", weights), ("td.average", weights @ values)):
        assert close(numbers(page, selector).nan_to_num(-1e3), wanted.nan_to_num(-1e3))
    sees_nothing = "Softmax of nothing" in page.locator("#say").text_content()
    assert sees_nothing == (not mask.any(dim=1).all())


def make_split(names: list[str]) -> View:
    return figures.split_and_merge(names, heads=2, head_size=4)


def use_split(page, chance: random.Random) -> None:
    sliders = page.locator("input[type=range]")
    deed = chance.choice(["order", "slide", "slide", "keys", "step", "step", "click"])
    if deed == "order":
        page.get_by_role("radio").nth(chance.randrange(3)).click()
    elif deed == "slide":
        slide(page, sliders.nth(chance.randrange(5)), chance)
    elif deed == "keys":
        press(page, sliders.nth(chance.randrange(5)), ARROWS, chance, most=3)
    elif deed == "step":
        button = page.get_by_role("button").nth(chance.randrange(2))
        if button.is_enabled():
            button.click()
    else:
        cells = page.locator("td[data-value]")
        cells.nth(chance.randrange(cells.count())).click()
    settle(page)
    S, A, D, followed, step = (int(one.input_value()) for one in sliders.all())
    H = A * D
    assert 2 <= S <= 6
    assert H <= 24
    x = torch.arange(S * H).view(S, H)
    right = x.view(S, A, D)
    paths = [
        [x, right, right.transpose(0, 1), right, x],
        [x, x.view(A, S, D), x.view(A, S, D).transpose(0, 1), x.view(A, S, D).transpose(0, 1).reshape(S, H)],
        [x, right, right.transpose(0, 1), right.transpose(0, 1).reshape(S, H)],
    ]
    chosen = [one.is_checked() for one in page.get_by_role("radio").all()].index(True)
    found = paths[chosen][step]
    assert close(numbers(page, "td[data-value]"), found)
    code = page.locator("[aria-current]").text_content()
    assert code.endswith(f"= {tuple(found.shape)}")
    same_shape = right.transpose(0, 1) if "(A, S, D) =" in code else right if "(S, A, D) =" in code else x
    assert page.locator(".wrong").count() == (found != same_shape).sum()
    place = (found == followed).nonzero()[0].tolist()
    shown = numbers_that_say_where(S, A, D).flatten()
    texts = page.locator("td[data-value]").all_text_contents()
    assert texts == [f"{number:03}" for number in shown[found.flatten()].tolist()]
    assert f"The number {shown[followed]:03} is q{place}." in page.locator("#say").text_content()


def make_longest_match(names: list[str]) -> View:
    return figures.longest_match(WordPieceTokenizer.from_checkpoint(), " ".join(["unaffable", *names]))


def use_longest_match(page, chance: random.Random) -> None:
    official, box, slider = official_tokenizer(), page.locator("textarea"), page.locator("input[type=range]")
    if chance.random() < 0.7:
        write(page, box, text_of_words(chance))
    if chance.random() < 0.5 and (words := page.get_by_role("radio")).count():
        words.nth(chance.randrange(words.count())).click()
    if chance.random() < 0.5:
        press(page, slider, "ArrowLeft ArrowRight Home End", chance)
    settle(page)
    wanted = figures.split_words(box.input_value())
    shown = page.get_by_role("radio").evaluate_all("(all) => all.map((e) => e.value)")
    assert shown == list(dict.fromkeys(wanted))
    word = page.locator("input:checked").get_attribute("value")
    assert page.locator(".letter").all_text_contents() == list(word)
    tries = count_tries(word, official.vocab)
    assert slider.get_attribute("max") == str(len(tries))
    at = int(slider.input_value())
    found = [piece for piece, known in tries[:at] if known]
    pieces = official.tokenize(word) if at == len(tries) else found
    assert page.locator(".token").all_text_contents() == pieces
    assert close(numbers(page, ".id"), official.convert_tokens_to_ids(pieces))
    assert page.locator(".try").count() == min(at, 40)
    assert page.locator(".found.try").count() == sum(known for _, known in tries[:at][-40:])


@functools.cache
def official_tokenizer():
    return load_tokenizer()


@functools.cache
def some_reviews() -> list[str]:
    return reviews().test.texts[:500]


def count_tries(word: str, vocab: dict[str, int]) -> list[tuple[str, bool]]:
    """Return each piece that greedy longest match looks up, and whether the vocabulary has it."""
    if word in SPECIAL_TOKENS or len(word) > 100:
        return []
    tries, rest, sign = [], word, ""
    while rest:
        for length in range(len(rest), 0, -1):
            tries.append((sign + rest[:length], sign + rest[:length] in vocab))
            if tries[-1][1]:
                break
        else:
            return tries
        rest, sign = rest[length:], "##"
    return tries


def text_of_words(chance: random.Random) -> str:
    """Return a few words of the reviews and others, sometimes joined."""
    review = chance.choice(some_reviews()).split()[:6]
    glued = "".join(chance.choices(review, k=3))[:30]
    return " ".join(chance.sample([*review, glued, *chance.sample(WORDS + SPECIAL, 3)], 3))[:150]


def make_merges(names: list[str]) -> View:
    return figures.merges([*names, "flies flies tries fly pie"])


def use_merges(page, chance: random.Random) -> None:
    box, slider = page.locator("textarea"), page.locator("input[type=range]")
    if chance.random() < 0.5:
        few = "".join(chance.choices("aab b ", k=40))  # many ties, and pieces that overlap
        write(page, box, chance.choice([few, f"{text_of_words(chance)} {text_of_words(chance)}"]))
    if chance.random() < 0.3:
        slide(page, slider, chance)
    else:
        press(page, slider, "ArrowLeft ArrowRight ArrowRight Home End", chance)
    settle(page)
    words = Counter(word for word in figures.split_words(box.input_value()) if word.isalpha())
    counts = dict(words.most_common())
    at, states = int(slider.input_value()), learn(counts, 12)
    assert slider.get_attribute("max") == str(len(states) - 1)
    splits, vocabulary, pairs = states[at]
    shown = page.locator(".word").evaluate_all(
        "(all) => all.map((e) => [...e.querySelectorAll('.piece')].map((p) => p.textContent))"
    )
    assert shown == [splits[word] for word in counts]
    assert close(numbers(page, ".times"), list(counts.values()))
    best = pairs[:6]
    assert texts_of(page, "tbody th") == [f"{left} + {right}" for (left, right), _ in best]
    assert texts_of(page, "tbody td:nth-child(2)") == [joined(pair) for pair, _ in best]
    assert close(numbers(page, "td[data-value]"), [count for _, count in best])
    assert close(numbers(page, ".size"), [len(vocabulary)])
    assert texts_of(page, ".kept .piece") == vocabulary[len(states[0][1]) :]
    framed = page.locator(".next").all_text_contents()
    assert set(framed) == (set(pairs[0][0]) if pairs else set())


def joined(pair: tuple[str, str]) -> str:
    return pair[0] + pair[1].removeprefix("##")


def learn(counts: dict[str, int], steps: int) -> list[tuple[dict, list, list]]:
    """Apply notebook 01's rule: pieces of each word, vocabulary and sorted pairs, before and after each merge."""
    splits = {word: [word[0], *(f"##{character}" for character in word[1:])] for word in counts}
    vocabulary, states = sorted({piece for pieces in splits.values() for piece in pieces}), []
    while True:
        pairs = Counter()
        for word, pieces in splits.items():
            for pair in pairwise(pieces):
                pairs[pair] += counts[word]
        rank = {piece: place for place, piece in enumerate(vocabulary)}
        best = sorted(pairs.items(), key=lambda item: (-item[1], rank[item[0][0]], rank[item[0][1]]))
        states.append((splits, vocabulary, best))
        if not best or len(states) > steps:
            return states
        first = best[0][0]
        splits = {word: merge(pieces, first) for word, pieces in splits.items()}
        vocabulary = [*vocabulary, joined(first)]


def merge(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    merged = []
    for piece in pieces:
        if merged and (merged[-1], piece) == pair:
            merged[-1] = joined(pair)
        else:
            merged.append(piece)
    return merged


@functools.cache
def graph() -> tuple:
    """Return a graph of 120 vectors with so few links that some searches miss neighbours, and a query."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(120, 12, generator=generator), dim=1)
    query = torch.nn.functional.normalize(torch.randn(12, generator=generator), dim=0)
    return hnsw_index(vectors, M=3), vectors, query


def make_graph(names: list[str]) -> View:
    index, vectors, query = graph()
    order = (vectors @ query).argsort(descending=True).tolist()  # so that the three names are the nearest
    named = dict(zip(order, names, strict=False))
    return figures.graph_walk(index, vectors, query, [named.get(node, str(node)) for node in range(120)])


def use_graph(page, chance: random.Random) -> None:
    index, vectors, query = graph()
    ef, step = page.get_by_role("slider").all()
    if chance.random() < 0.5:
        slide(page, ef, chance)
    else:
        press(page, ef, "ArrowLeft ArrowRight Home End", chance)
    press(page, step, "End", chance, most=1)
    settle(page)
    index.hnsw.efSearch = int(ef.input_value())
    faiss.cvar.hnsw_stats.reset()
    exact = (vectors @ query).topk(3)
    found = search_index(query[None], index, 3).indices[0]
    hits = len(set(found.tolist()) & set(exact.indices.tolist()))
    assert close(numbers(page, "td[data-value]"), exact.values)
    cosines = vectors @ query
    assert close(numbers(page, ".text"), cosines)
    places = page.locator(".text").evaluate_all(
        "(all) => all.map((e) => [+e.getAttribute('cx'), +e.getAttribute('cy')])"
    )
    radius = torch.tensor(places, dtype=torch.float64).norm(dim=1)
    assert close(radius / radius.max(), (1 - cosines) / (1 - cosines).max())
    reached = cosines[sorted(walk(index, cosines, int(ef.input_value()))[0])].max()
    circle = torch.tensor([float(page.locator(".reached").get_attribute("r"))], dtype=torch.float64)
    assert close(circle / radius.max(), (1 - reached) / (1 - cosines).max())
    assert numbers(page, ".found").tolist() == [hits]
    met, comparisons = walk(index, vectors @ query, int(ef.input_value()))
    assert comparisons == faiss.cvar.hnsw_stats.ndis  # so the walk is faiss's
    assert numbers(page, ".met").item() == len(met)
    for button in ("← back", "next →"):
        for _ in range(chance.randint(0, 3)):
            page.get_by_role("button", name=button).click(force=True)
    assert 1 <= numbers(page, ".met").item() <= 120
    press(page, step, "End", chance, most=1)


def walk(index, scores: torch.Tensor, ef: int) -> tuple[set[int], int]:
    """Return the texts that a search in a graph visits, and its number of comparisons."""
    layers, best = figures.read_links(index.hnsw, len(scores)), index.hnsw.entry_point
    met, comparisons, last = {best}, 0, None
    for layer in reversed(layers[1:]):
        while best != last:
            last, met = best, met | set(layer[best])
            comparisons += len(layer[best])
            best = max([best, *layer[best]], key=scores.__getitem__)
        last = None
    seen, heap = {best}, [(-scores[best].item(), best)]
    while heap:
        distance, node = heapq.heappop(heap)
        if sum(-scores[other] < distance for other in seen) >= ef:
            break
        for other in set(layers[0][node]) - seen:
            seen.add(other)
            comparisons += 1
            heapq.heappush(heap, (-scores[other].item(), other))
    return met | seen, comparisons


def make_turn(names: list[str]) -> View:
    return figures.rotary_turn(tokens=[*names, *(f"word {number}" for number in range(3, 12))])


def use_turn(page, chance: random.Random) -> None:
    query, key, pair = page.locator("input[type=range]").all()
    one, together = chance.choice([query, key]), page.get_by_role("checkbox")
    state = turn_state(page)
    deed = chance.choice(["slide", "slide", "keys", "keys", "together", "pair", "head", "head"])
    if deed == "slide":
        slide_pin(page, one, chance.randrange(12))
    elif deed == "keys":
        press(page, one, f"{ARROWS} Home End", chance)
    elif deed == "together":
        together.click()
    elif deed == "pair":
        press(page, pair, ARROWS, chance)
    elif chance.random() < 0.5:
        press(page, page.locator(".handle").nth(chance.randrange(2)), ARROWS, chance)
    else:
        box = page.locator("svg").first.bounding_box()
        x, y = (box[side] + chance.random() * box["width"] for side in "xy")
        drag(page, page.locator(".handle").nth(chance.randrange(2)), x, y)
    settle(page)
    now = turn_state(page)
    before, after = (unturned(one) for one in (state, now))
    if deed != "head":
        assert close(after.flatten(), before)
    distance = int(query.input_value()) - int(key.input_value())
    if deed in ("slide", "keys") and together.is_checked():
        assert distance == state.positions[0] - state.positions[1]
    every = torch.arange(-11, 12)
    turned = rotate(after[0].expand(23, 2), every * now.angle)
    assert close(numbers(page, "circle[data-value]"), turned @ after[1])
    product = numbers(page, "b[data-value]")
    assert close(product, now.heads[0] @ now.heads[1])
    assert close(product, rotate(after[:1], distance * now.angle) @ after[1])
    shown = f"query at {now.positions[0]} · key at {now.positions[1]} = "
    assert page.locator("#figure > p").text_content().startswith(shown)
    between = torch.atan2(now.heads[:, 1], now.heads[:, 0]).rad2deg()
    shown_angle = re.findall(r"(?:= |together |which is )(−?[\d.]+)°", page.locator(".adds").text_content())[-1]
    wrong = (float(shown_angle.replace("−", "-")) - (between[0] - between[1]).item()) % 360
    assert min(wrong, 360 - wrong) <= 0.7  # eleven times a rounded angle, and another one
    sums = [re.split(r"° = | × ", text.replace("−", "-")) for text in texts_of(page, "td")[-3:]]
    sums = [[Decimal(number.rstrip("°")) for number in row] for row in sums]
    assert all(position * each == product for position, each, product in sums)  # what is written adds up exactly
    assert sums[0][2] - sums[1][2] == sums[2][2]
    angles = torch.tensor([float(row[2]) for row in sums])
    wanted = torch.tensor([*now.positions, distance]) * now.angle
    assert (angles - wanted.rad2deg()).abs().max() <= 0.56


class Turned(NamedTuple):
    """The tips of the arrows, their positions, and the angle of one position."""

    heads: torch.Tensor
    positions: list[int]
    angle: torch.Tensor


def turn_state(page) -> Turned:
    """Read the positions, the pair and the turned arrows of rotary_turn."""
    *positions, pair = (int(one.input_value()) for one in page.locator("input[type=range]").all())
    return Turned(handle_positions(page), positions, torch.tensor(10_000.0).double() ** (-pair / 32))


def unturned(state: Turned) -> torch.Tensor:
    return rotate(state.heads, -torch.tensor(state.positions) * state.angle)


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn each row (N, 2) by its angle, as ModernBERT turns a pair of dimensions."""
    cos, sin = angles.cos(), angles.sin()
    return (torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2) @ x[:, :, None])[:, :, 0]


def slide_pin(page, slider, to: int) -> None:
    """Drag a slider's thumb with a real pointer to another value."""
    box, most = slider.bounding_box(), int(slider.get_attribute("max"))
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 12 + (box["width"] - 24) * int(slider.input_value()) / most, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 12 + (box["width"] - 24) * to / most, middle, steps=3)
    page.mouse.up()


@functools.cache
def words_and_model(names: tuple[str, ...]):
    """Return a BERT with random weights, and a tokenizer with each name as a word."""
    lines = Tokenizer(WordLevel({name: number for number, name in enumerate(names)}))
    lines.pre_tokenizer = Split("\n", "removed")
    torch.manual_seed(0)
    config = BertConfig(**SMALL | {"vocab_size": len(names)})
    return BertModel(config).eval(), PreTrainedTokenizerFast(tokenizer_object=lines)


def make_why_near(names: list[str]) -> View:
    model, tokenizer = words_and_model(tuple(names))
    return why_near(model, tokenizer, "\n".join(names), "\n".join(names[1:]), control="\n".join(names[:2] * 3))


def use_why_near(page, chance: random.Random) -> None:
    words = page.locator(".word")
    if chance.random() < 0.3:
        page.get_by_role("radio").nth(chance.randrange(2)).click()
    if chance.random() < 0.3:
        page.get_by_role("checkbox").click()
    chosen = words.nth(chance.randrange(words.count()))
    if chance.random() < 0.5:
        chosen.hover()
    else:
        press(page, words.and_(page.locator("[tabindex='0']")), "ArrowUp ArrowDown ArrowLeft ArrowRight", chance)
        chosen = page.locator(".word:focus")
    settle(page)
    model, tokenizer = words_and_model(tuple(NAMES))
    control = page.get_by_role("radio").nth(1).is_checked()
    with torch.no_grad():
        states = [
            model(**tokenizer("\n".join(text), return_tensors="pt")).last_hidden_state[0].double()
            for text in (NAMES[:2] * 3 if control else NAMES, NAMES[1:])
        ]
    means = [each.mean(dim=0) for each in states]
    shares = states[0] @ states[1].T / means[0].norm() / means[1].norm() / len(states[0]) / len(states[1])
    assert close(numbers(page, ".word"), torch.cat([shares.sum(dim=1), shares.sum(dim=0)]))
    assert close(numbers(page, "line").sort().values, shares.flatten().sort().values)
    cosine = torch.cosine_similarity(*means, dim=0)
    assert abs(numbers(page, "line").sum() - cosine) < 1e-9
    side, at = map(int, chosen.get_attribute("data-at").split())
    total = (shares.T if side else shares)[at].sum()
    said = page.locator("#say").text_content().replace("\u2212", "-")
    assert f"{total:.3f} of the cosine {cosine:.3f}" in said.replace("-0.000", "0.000")
    page.mouse.move(1, 1)


SENTENCES = (3 * torch.randn(2, 2, 4, 3, 3, generator=torch.Generator().manual_seed(4)).double()).softmax(dim=-1)


def make_sentence(names: list[str]) -> View:
    one, other = ([layer[None] for layer in weights] for weights in SENTENCES)
    return sentence_view(one, names, token=1, layer=1, other=(other, [*names[:2], "again"]))


BOTH = "both in one picture"


def use_sentence(page, chance: random.Random) -> None:
    words, cells = page.locator(".word"), page.locator(".heads .cell")
    deed = chance.choice(["exchange", "word", "head", "target", "keys", "keys on the map"])
    if deed == "exchange":
        page.get_by_role("radio", name=chance.choice(["again", NAMES[2], BOTH]), exact=True).click()
    elif deed == "word":
        words.nth(chance.randrange(3)).click()
    elif deed == "head":
        cells.nth(chance.randrange(8)).click()
    elif deed == "target":
        options = page.locator("select option").count()
        page.get_by_role("combobox").select_option(index=chance.randrange(options))
    else:
        press(page, (cells if "map" in deed else words).and_(page.locator("[tabindex='0']")), ARROWS, chance)
    settle(page)
    checked = page.locator(".word, .cell").evaluate_all("(all) => all.map((e) => e.ariaChecked === 'true')")
    [token], [head] = (torch.tensor(each).nonzero().flatten().tolist() for each in (checked[:3], checked[3:]))
    target = page.get_by_role("combobox").evaluate("(e) => e.selectedIndex")
    if page.get_by_label(BOTH, exact=True).is_checked():
        check_both(page, token, head, of_all=target == 1)
        return
    weights = SENTENCES[int(page.get_by_label("again", exact=True).is_checked())]
    shares = weights.flatten(0, 1)[head, token]
    for selector in (".word", ".ribbon:not(.below)", ".part"):
        assert close(numbers(page, selector), shares)
    assert texts_of(page, ".number") == [f"{share:.2f}" for share in shares]
    assert close(numbers(page, ".cell"), weights[:, :, token, target])
    widths = ribbon_widths(page)
    assert close(widths, shares)
    assert abs(widths.sum() - 1) < 1e-6
    assert abs(widths[:2].sum() - 1) > 1e-6  # the control: without a ribbon it is less
    said = page.locator("#say").text_content()
    assert f"In layer {head // 4}, head {head % 4}, “{texts_of(page, '.name')[token]}” gives {shares.max():.2f}" in said


def check_both(page, token: int, head: int, of_all: bool) -> None:
    """Both texts are drawn, and the map and the sentence give how much attention moves from one to the other."""
    one, other = SENTENCES.flatten(1, 2)[:, head, token]
    for below, shares in (("", one), (".below", other)):
        side = f".ribbon{below or ':not(.below)'}"
        assert close(numbers(page, side), shares)
        assert close(ribbon_widths(page, side), shares)
    assert texts_of(page, ".more") == [f"{share:.2f}" for share in other]
    moved = (SENTENCES[0] - SENTENCES[1]).abs().sum(dim=-1) / 2  # (L, A, S)
    moved = moved.mean(dim=-1) if of_all else moved[:, :, token]
    assert close(numbers(page, ".cell"), moved)
    means, most = moved.mean(dim=-1), int((one - other).abs().argmax())
    assert texts_of(page, ".mean")[1:] == [f"{mean:.2f}" for mean in means]
    said = page.locator("#say").text_content()
    assert f"{one[most]:.2f} above and " in said
    assert f"{other[most]:.2f} below. Altogether {(one - other).abs().sum() / 2:.2f} of its attention moves." in said
    assert f"Layer {int(means.argmax())} changes most: on average over its heads, {means.max():.2f} " in said


def ribbon_widths(page, ribbons: str = ".ribbon:not(.below)") -> torch.Tensor:
    """Return the widths of a sentence's ribbons, as shares of the widest possible."""
    widths = page.locator(ribbons).evaluate_all(
        "(all) => all.map((e) => e.getAttribute('stroke-width') / e.closest('svg').dataset.whole)"
    )
    return torch.tensor(widths, dtype=torch.float64)


def tap_sentence(page, finger: Finger) -> None:
    """Tap each word and a head: what was tapped is chosen."""
    for one in [*page.locator(".word").all(), page.locator(".cell").nth(6)]:
        finger.tap(middle(one))
        expect(one).to_have_attribute("aria-checked", "true")


NAMES = ["time", "flies", "arrow"]
FIGURES = {
    "attention_in_the_plane": Example(make_plane, use_plane, (drag_heads,)),
    "sharpness": Example(make_sharpness, use_sharpness, (drag_map, drag_thumbs)),
    "next_token": Example(make_next_token, use_next_token),
    "sum_and_scale": Example(make_sum_and_scale, use_sum_and_scale, (drag_bar, drag_thumbs)),
    "mask_painter": Example(make_mask, use_mask, (paint_cells,)),
    "split_and_merge": Example(make_split, use_split, (tap_number, drag_thumbs)),
    "graph_walk": Example(make_graph, use_graph, (tap_text, drag_thumbs)),
    "rotary_turn": Example(make_turn, use_turn, (drag_heads, drag_thumbs)),
    "longest_match": Example(make_longest_match, use_longest_match, (tap_gap, drag_thumbs)),
    "merges": Example(make_merges, use_merges),
    "why_near": Example(make_why_near, use_why_near, (tap_words,)),
    "sentence_view": Example(make_sentence, use_sentence, (tap_sentence,)),
}
