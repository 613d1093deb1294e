"""What a reader has beside bertviz's drawing: numbers, a threshold, pictures, the keyboard, themes, readable sizes."""

import re

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

from tests.browser import reader
from tests.browser.reader import CELLS, open_saved
from utils.views import model_view

MINUS = "\N{MINUS SIGN}"
CELL = f"{CELLS} > rect:last-child"


def told(page, selector: str, number: int) -> str:
    """What is said of an element when the pointer comes to it."""
    page.locator(selector).nth(number).dispatch_event("mouseover", {"bubbles": True})
    assert page.locator("#tip").is_visible()
    return page.locator("#tip").text_content()


def test_the_head_view_tells_a_lines_weight_and_a_tiles_head(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=3), tmp_path)
    S, (head, row, column) = len(pair.tokens), (5, 8, 3)
    weight = pair.attention[3, head, row, column]
    said = told(page, "#attention line", (head * S + row) * S + column)
    assert said == f"layer 3, head 5: {pair.tokens[row]} → {pair.tokens[column]} {weight:.2f}"
    assert told(page, "#vis > svg > g:last-child > rect", 11) == "head 11"
    assert page.locator("text.tile").all_text_contents() == [str(number) for number in range(12)]
    page.locator("#help").dispatch_event("mouseover", {"bubbles": True})
    assert not page.locator("#tip").is_visible()


def test_the_model_view_tells_a_cells_head_and_a_lines_weight(page, draw, pair, tmp_path):
    open_saved(page, draw["model"](include_layers=[2, 5]), tmp_path)
    assert told(page, CELL, 12 + 7) == "layer 5, head 7"
    page.locator(CELL).nth(12 + 7).click(position={"x": 10, "y": 10})
    S = len(pair.tokens)
    weight = pair.attention[5, 7, 8, 3]
    assert told(page, ".attn-line-group line", 8 * S + 3) == f"layer 5, head 7: his → ian {weight:.2f}"


def test_the_neuron_view_tells_every_number_of_the_sum(page, draw, pair, encoder, tokenizer, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3), tmp_path)
    weight = pair.attention[1, 3, 8, 3]
    S = len(pair.tokens)
    assert told(page, ".attn-line-group line", 8 * S + 3) == f"layer 1, head 3: his → ian {weight:.2f}"
    reader.open_query(page, 8)
    with torch.no_grad():
        output = encoder(**tokenizer(*pair.sentences), output_queries_keys=True)
    query, key = output.queries[1][0, 3], output.keys[1][0, 3]  # (S, D)
    D = query.size(1)
    said = told(page, "#queries .element", 8 * D + 5)
    assert said == f"layer 1, head 3, neuron 5: query of his {query[8, 5]:.2f}".replace("-", MINUS)
    said = told(page, "#keys .element", 3 * D + 5)
    assert said == f"layer 1, head 3, neuron 5: key of ian {key[3, 5]:.2f}".replace("-", MINUS)
    score = query[8] @ key[3] / D**0.5
    assert told(page, ".dotproduct", 3) == f"layer 1, head 3: q · k / √D for ian {score:.2f}".replace(
        "-", MINUS
    )
    assert "q · k / √D" in page.locator("#heading").text_content()
    printed = page.locator("#dotproducts text").all_text_contents()
    assert printed == [f"{score:.1f}".replace("-", MINUS) for score in (key @ query[8] / D**0.5).tolist()]
    reader.leave(page)  # what was multiplied stays, so that the pointer can come to it
    assert page.locator("#product").evaluate("(e) => getComputedStyle(e).opacity") == "1"


def test_a_tile_shows_its_head_and_dashes_tell_heads_of_one_colour_apart(page, draw, tmp_path):
    open_saved(page, draw["head"](), tmp_path)
    page.locator(reader.TILES).nth(10).hover()
    opacities = page.locator(".headAttention").evaluate_all(
        "(all) => all.map((g) => getComputedStyle(g).opacity)"
    )
    assert opacities == ["0.05"] * 10 + ["1", "0.05"]
    reader.leave(page)
    look = "(all) => all.map((e) => e.getAttribute('stroke') + getComputedStyle(e).strokeDasharray)"
    looks = page.locator(".headAttention > g:first-child > line:first-child").evaluate_all(look)
    assert len(set(looks)) == 12


# The threshold and the picture


def hide_below(page, weight: float) -> None:
    page.locator("#threshold").evaluate(
        "(e, value) => { e.value = value; e.dispatchEvent(new Event('input')); }", weight
    )


@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_weights_below_the_threshold_are_hidden(page, draw, pair, tmp_path, name):
    open_saved(page, draw[name](**({"layer": 3} if name == "head" else {})), tmp_path)
    weights, lines = {
        "head": (pair.attention[3], "#attention line"),
        "model": (pair.attention, f"{CELLS} line"),
        "neuron": (pair.attention[0, 0], "#collapsed .attn-line-group line"),
    }[name]
    hide_below(page, 0.3)
    shown = "(all) => all.filter((e) => getComputedStyle(e).display !== 'none').length"
    assert page.locator(lines).evaluate_all(shown) == int((reader.as_drawn(weights) >= 0.3).sum())
    if name != "model":  # what is drawn afterwards keeps to it
        page.locator("#layer").select_option("5")
        weights = pair.attention[5] if name == "head" else pair.attention[5, 0]
        assert page.locator(lines).evaluate_all(shown) == int((reader.as_drawn(weights) >= 0.3).sum())
    hide_below(page, 0)
    assert page.locator(lines).evaluate_all(shown) == weights.numel()


def test_the_threshold_paints_a_large_model_view_again(page, many, tmp_path):
    open_saved(page, model_view(*many), tmp_path)
    before = page.locator("canvas").evaluate(reader.INK)
    hide_below(page, 0.5)
    assert page.locator("canvas").evaluate(reader.INK) < 0.8 * before
    hide_below(page, 0)
    assert page.locator("canvas").evaluate(reader.INK) == before


def save_picture(page, folder):
    with page.expect_download() as download:
        page.locator("#save").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.mark.parametrize(
    ("name", "file"),
    [("head", "head_view_0.svg"), ("model", "model_view.svg"), ("neuron", "neuron_view_0_0.svg")],
)
def test_a_picture_of_what_is_shown_is_saved(page, draw, pair, tmp_path, name, file):
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode="dark", **few), tmp_path)
    count = page.locator("#vis line").count()
    path = save_picture(page, tmp_path)
    assert path.name == file
    page.goto(path.as_uri())
    assert page.locator("line").count() == count
    texts = page.locator("text").all_text_contents()
    assert name == "model" or set(pair.tokens) <= set(texts)
    assert page.locator("svg").evaluate("(e) => getComputedStyle(e).backgroundColor") == "rgb(0, 0, 0)"
    assert "13 tokens" in page.locator("title").text_content()
    boxes = page.locator("text").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().toJSON())")
    assert min(box["left"] for box in boxes) >= 0
    assert page.heard == []


def test_a_painted_picture_is_saved_too(page, many, tmp_path):
    open_saved(page, model_view(*many), tmp_path)
    page.goto(save_picture(page, tmp_path).as_uri())
    assert page.locator("image").get_attribute("href").startswith("data:image/png;base64,")


# The keyboard


def press(page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def said(page) -> str:
    return page.locator("#tip").text_content()


def name_of_focus(page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")


def tab_to(page, name: str) -> None:
    """Press Tab until it comes to a control's id or an element's name."""
    for _ in range(20):
        press(page, "Tab")
        if name_of_focus(page) == name:
            box = page.locator("#ring")
            assert box.is_visible() or page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab does not come to {name}")


def strongest(pair, weights: torch.Tensor, row: int, place: int) -> str:
    """The line of a token that is told at this place, as words."""
    column = int(reader.as_drawn(weights[row]).argsort(descending=True, stable=True)[place])
    return f"{pair.tokens[row]} → {pair.tokens[column]} {weights[row, column]:.2f}"


def test_the_head_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=4, heads=[5]), tmp_path)
    for name in ("layer", "filter", "threshold", "save", "[CLS], token 1"):
        tab_to(page, name)
    press(page, *["ArrowDown"] * 8)
    assert name_of_focus(page) == "his, token 9"
    assert set(reader.numbers(page, "#attention line[visibility=visible]", "left-token-index").tolist()) == {
        8
    }
    for place in range(2):
        press(page, "ArrowRight")
        assert said(page) == f"layer 4, head 5: {strongest(pair, pair.attention[4, 5], 8, place)}"
    tab_to(page, "[CLS], token 1")  # of the right column
    tab_to(page, "head 0")
    press(page, *["ArrowRight"] * 5, "Shift+Enter")
    tile = page.locator(reader.TILES).nth(5)
    assert reader.close(reader.numbers(page, "#attention line", "stroke-opacity"), pair.attention[4] / 12)
    press(page, "Enter")
    assert tile.get_attribute("aria-checked") == "false"
    press(page, " ")
    assert tile.get_attribute("aria-checked") == "true"


def test_the_model_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["model"](include_layers=[1, 5]), tmp_path)
    tab_to(page, "layer 1, head 0")
    press(page, "ArrowDown", *["ArrowRight"] * 5, "Enter")
    assert page.locator("text.detail").text_content() == "Layer 5, Head 5"
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    tab_to(page, "[CLS], token 1")
    press(page, *["ArrowDown"] * 8, "ArrowRight")
    assert said(page) == f"layer 5, head 5: {strongest(pair, pair.attention[5, 5], 8, 0)}"
    press(page, "Escape")
    assert page.locator(".detail").count() == 0
    assert name_of_focus(page) == "layer 5, head 5"


def test_the_neuron_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3), tmp_path)
    tab_to(page, "[CLS], token 1")
    press(page, *["ArrowDown"] * 8, "ArrowRight")
    assert said(page) == f"layer 1, head 3: {strongest(pair, pair.attention[1, 3], 8, 0)}"
    press(page, "Enter")
    assert page.locator("#expanded").get_attribute("visibility") == "visible"
    assert name_of_focus(page) == "his, token 9"
    reader.check_computation(page, pair, 1, 3, 8)
    heard = []
    for _ in range(4):
        press(page, "Tab", "ArrowRight", "ArrowDown", "ArrowDown")
        heard.append(re.sub(r"layer 1, head 3,? ?:? ?| \S+$", "", said(page)))
    assert sorted(heard) == sorted(
        [
            "neuron 1: key of called",
            "neuron 1: query of called",
            "neuron 1: q × k for called",
            "q · k / √D for ian",
        ]
    )
    press(page, *["Shift+Tab"] * 4, "Enter")
    assert page.locator("#collapsed").get_attribute("visibility") == "visible"
    assert page.heard == []


# Sizes, contrasts, names: what everybody needs


@pytest.mark.parametrize("width", [358, 736, 1300])
@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_letters_can_be_read_and_controls_pressed(page, draw, tmp_path, name, width):
    page.set_viewport_size({"width": width, "height": 900})
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](**few), tmp_path)
    if name == "model":
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    if name == "neuron":
        reader.open_query(page, 8)
    letters = page.locator("text, p, label, select, button, output").evaluate_all(
        "(all) => all.map((e) => parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom)"
    )
    assert min(letters) >= 11
    pressed = {
        "head": f"{reader.TILES}, #left > g:last-child > g, #right > g:last-child > g",
        "model": f"{CELL}, g.detail > g",
        "neuron": "#expanded #leftText > g > rect:last-of-type",
    }[name]
    sizes = page.locator(f"select, button, input, {pressed}").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect()).map((box) => Math.min(box.width, box.height))"
    )
    assert min(sizes) >= 23.9


@pytest.mark.parametrize("display_mode", ["light", "dark"])
@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_no_rule_of_accessibility_is_broken(page, draw, tmp_path, name, display_mode):
    few = {"include_layers": [5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode=display_mode, **few), tmp_path)
    if name == "model":
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    if name == "neuron":
        reader.open_query(page, 8)
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:200]) for rule in found] == []


# Themes


@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_a_saved_page_follows_the_system(page, draw, pair, tmp_path, name):
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](**few), tmp_path)
    ground = "(e) => getComputedStyle(e).backgroundColor"
    assert page.locator("html").evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    page.locator("html.dark").wait_for()
    assert page.locator("html").evaluate(ground) == "rgb(0, 0, 0)"
    fills = page.locator("svg text:not(.tile)").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).fill)"
    )
    assert all(sum(map(int, re.findall(r"\d+", fill))) > 450 for fill in fills)
    if name != "model":
        page.locator("#layer").select_option("5")
    assert page.locator("html").evaluate(ground) == "rgb(0, 0, 0)"


def test_a_view_in_a_page_follows_its_letters(page, draw, tmp_path):
    page.emulate_media(color_scheme="dark")  # of the system, which the page around does not follow
    views = [draw["neuron"](), draw["neuron"](display_mode="light")]
    follows, stays = reader.open_in_frames(page, views, tmp_path)
    for colour, mode in (("black", "light"), ("#ddd", "dark"), ("#222", "light")):
        page.evaluate("(colour) => { document.body.style.color = colour; }", colour)
        follows.locator(f"html.{mode}").wait_for(state="attached")
        assert stays.locator("html.light").count() == 1


def test_title_and_heading_say_what_is_shown(page, draw, tmp_path):
    open_saved(page, draw["head"](), tmp_path)
    for said in (page.title(), page.locator("h1").text_content()):
        assert said.startswith("Head view of 6 layers × 12 heads on 13 tokens, “[CLS] i called ian .")
