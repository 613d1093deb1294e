"""The figures that can be dragged: what a hand does to them, and the numbers that they then show, which are torch's.

Each figure has an example and a `use` in FIGURES: it takes hold of the figure once, at random, by the pointer or by
the keyboard, and compares what is shown with torch.
"""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.figures import close, drag, numbers, open_figure, places, press, write
from tests.texts import WORDS
from utils.attention import scaled_dot_product_attention
from utils.checkpoint import load_tokenizer
from utils.checks import SPECIAL_TOKENS
from utils.datasets import reviews
from utils.tokenization import WordPieceTokenizer, normalize, pre_tokenize, split_special_tokens
from utils.views import figures
from utils.views.page import View

HOSTILE = ["</script>", "<img src=x onerror=alert(1)>", "$x$ & \u2028"]
ARROWS = "ArrowLeft ArrowRight ArrowUp ArrowDown"


class Example(NamedTuple):
    """How a figure is made of three names, and how a reader uses it."""

    make: Callable[[list[str]], View]
    use: Callable  # (page, chance): change something with a hand, and compare all numbers


def make_plane(names: list[str]) -> View:
    values = [[1, 4], [-4, -1], [3, 0]]
    return figures.attention_in_the_plane(
        [0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], values, names, asking=1
    )


def use_plane(page, chance: random.Random) -> None:
    handles = page.locator(".handle:visible")
    one = handles.nth(chance.randrange(handles.count()))
    if chance.random() < 0.5:
        box = page.locator("svg").bounding_box()
        x, y = (
            box[corner] + chance.uniform(0, box[side]) for corner, side in (("x", "width"), ("y", "height"))
        )
        drag(page, one, x, y)
    else:
        press(page, one, ARROWS, chance)
    if chance.random() < 0.3:
        page.get_by_role("checkbox").nth(chance.randrange(2)).click()
    scaled, simple = (page.get_by_role("checkbox").nth(index).is_checked() for index in range(2))
    points = places(page)  # the keys', and, if they are apart, the values' and the query's
    keys, values, query = (points, points, points[1]) if simple else (points[:3], points[3:6], points[6])
    products = keys @ query
    scores = products / 2**0.5 if scaled else products
    if scaled:
        average, weights = scaled_dot_product_attention(query[None, None], keys[None], values[None])
        average, weights = average[0, 0], weights[0, 0]
    else:
        weights = scores.softmax(dim=0)
        average = weights @ values
    assert close(numbers(page, "td[data-value]"), torch.stack([products, scores, weights], dim=1))
    assert close(numbers(page, "[class^=average]"), average)


# HERE sharpness


# HERE next_token


# HERE sum_and_scale


# HERE mask_painter


# HERE split_and_merge


def make_longest_match(names: list[str]) -> View:
    return figures.longest_match(WordPieceTokenizer.from_checkpoint(), " ".join(names))


def use_longest_match(page, chance: random.Random) -> None:
    official, box, slider = load_tokenizer(), page.locator("textarea"), page.locator("input[type=range]")
    if chance.random() < 0.7:
        write(page, box, text_of_words(chance))
    if chance.random() < 0.5 and (words := page.get_by_role("radio")).count():
        words.nth(chance.randrange(words.count())).click()
    if chance.random() < 0.5:
        press(page, slider, "ArrowLeft ArrowRight Home End", chance)
    wanted = [word for part in split_special_tokens(box.input_value()) for word in words_of(part)]
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


def words_of(part: str) -> list[str]:
    return [part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part))


def count_tries(word: str, vocab: dict[str, int]) -> list[tuple[str, bool]]:
    """Each piece that greedy longest match looks up, and whether it is there."""
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
    """A few words of the reviews, glued together at times, and of other kinds."""
    review = chance.choice(reviews().test.texts).split()[:6]
    glued = "".join(chance.choices(review, k=3))[:30]
    return " ".join(chance.sample([*review, glued, *chance.sample(WORDS, 3)], 3))[:150]


# HERE merges


# HERE graph_walk


FIGURES = {
    "attention_in_the_plane": Example(make_plane, use_plane),
    # ROW sharpness
    #
    # ROW next_token
    #
    # ROW sum_and_scale
    #
    # ROW mask_painter
    #
    # ROW split_and_merge
    #
    "longest_match": Example(make_longest_match, use_longest_match),
    # ROW merges
    #
    # ROW graph_walk
    #
}
NAMES = ["time", "flies", "arrow"]
every_figure = pytest.mark.parametrize("name", FIGURES)


@every_figure
def test_fifty_states_reached_by_hand_show_torchs_numbers(page, tmp_path, name):
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    chance = random.Random(0)
    for _ in range(50):
        FIGURES[name].use(page, chance)
    assert page.heard == []


@pytest.mark.parametrize("width", [1280, 640, 390])  # 640: a window of 1,280 at 200 %
@pytest.mark.parametrize("scheme", ["light", "dark"])
@every_figure
def test_it_can_be_read_and_reached_everywhere(page, tmp_path, name, scheme, width):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    expect(page.locator(f"html.{scheme}")).to_be_attached()
    assert Axe().run(page).response["violations"] == []
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    boxes = [
        one.bounding_box() for one in page.locator("button, input, select, .handle").all() if one.is_visible()
    ]
    assert min(min(box["width"], box["height"]) for box in boxes) >= 24


@every_figure
def test_hostile_names_are_shown_and_run_nothing(page, tmp_path, name):
    view = FIGURES[name].make(HOSTILE)
    open_figure(page, view, tmp_path)
    assert page.locator("#figure img, #figure script").count() == 0
    assert all(part in page.locator("#figure").text_content() for part in HOSTILE)
    page.set_content(view._repr_html_())
    page.frame_locator("iframe").locator("#figure > *").first.wait_for()
    assert page.locator("body script").count() == 0
    assert page.heard == []


@every_figure
def test_in_a_frame_it_takes_its_height_and_the_picture_beside_it_goes(page, tmp_path, name):
    file = tmp_path / "frame.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{FIGURES[name].make(NAMES)._repr_html_()}", "utf-8")
    page.goto(file.as_uri())
    expect(page.locator("p")).to_be_hidden()
    inside = page.frame_locator("iframe").locator("html")
    assert inside.evaluate("(e) => e.scrollHeight - e.clientHeight") == 0
    assert page.locator("iframe").bounding_box()["height"] < 900


@every_figure
def test_without_scripts_a_still_picture_stands_there(browser, tmp_path, name):
    view = FIGURES[name].make(NAMES)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(view.save(tmp_path / "figure.html").as_uri())
        assert page.locator("img").bounding_box()["width"] > 200
        page.set_content(re.sub(r"<iframe.*?</iframe>", "", view._repr_html_(), flags=re.DOTALL))
        assert page.locator("img").bounding_box()["width"] > 200
    assert view._repr_png_().startswith(b"\x89PNG")


@every_figure
def test_it_prints(page, tmp_path, name):
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    page.emulate_media(media="print")
    assert page.locator("#help").is_hidden()
    assert page.locator("#figure").is_visible()
    page.emulate_media(media="screen")


@every_figure
def test_it_is_small_and_needs_nothing(name):
    page = FIGURES[name].make(NAMES).page
    drawing = (figures.FOLDER / f"{name}.js").read_text("utf-8")
    assert len(drawing.encode()) <= 15_000
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
