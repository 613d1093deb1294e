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

from tests.browser.figures import close, drag, numbers, open_figure, places, press, slide
from utils.attention import compute_attention_weights, scaled_dot_product_attention
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
    assert f"The number {followed} is x{place}." in page.locator("#say").text_content()


# HERE longest_match


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
    "mask_painter": Example(make_mask, use_mask),
    "split_and_merge": Example(make_split, use_split),
    # ROW longest_match
    #
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
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_a_changed_value_marks_the_rows_that_may_see_it_under_each_mask(page, tmp_path):
    open_figure(page, figures.mask_painter(NAMES, rows=["temps", "vite"]), tmp_path)
    page.get_by_label("value of arrow").fill("14")
    for mask, rows in {"bidirectional": 3, "causal": 1, "padding": 0, "window": 2, "cross": 2}.items():
        page.get_by_label(mask, exact=True).check()
        assert page.locator(".moved").count() == rows
    page.get_by_label("bidirectional").check()
    for cell in (1, 2, 5):
        page.locator(".cell").nth(cell).click()
    assert "This is the causal mask." in page.locator("#say").text_content()
    assert page.get_by_label("causal").is_checked()
