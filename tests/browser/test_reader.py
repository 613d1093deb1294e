"""What a reader does with the three views: numbers under the pointer, pins, pictures, keyboard, themes."""

import random
import re
from urllib.parse import unquote

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from tests.browser import reader
from tests.browser.figure_examples import Finger, middle
from tests.browser.reader import DARK_GROUND, HEADS, LEFT, RIGHT, check_flow, open_saved, settle
from tests.browser.reader import SQUARES as CELL
from views import head_view, model_view
from views.page import View


def tooltip(page) -> str:
    return page.locator("#tip").text_content()


def said(page) -> str:
    return page.locator("#say").text_content()


def enlarge(page, number: int) -> None:
    page.locator(CELL).nth(number).click(position={"x": 10, "y": 10})


def minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def name_in(tokens: list[str], index: int) -> str:
    """Return a token as in tooltips: with its position if it is repeated."""
    return tokens[index] + f" (position {index})" * (tokens.count(tokens[index]) > 1)


# Move the pointer to each of these points: what the tooltip says, and the ribbons there, or, with a tooltip, within a
# pixel, which may touch one
MOVE = """(points) => points.map(([x, y]) => {
  const under = document.elementFromPoint(x, y), at = { clientX: x, clientY: y, bubbles: true };
  under.dispatchEvent(new PointerEvent("pointermove", at));
  under.dispatchEvent(new MouseEvent("mousemove", at));
  const text = document.getElementById("tip").textContent, around = text ? [-1, 0, 1] : [0];
  const ribbons = [...document.querySelectorAll(".base .ribbon")].filter((e) => {
    const back = e.getScreenCTM().inverse();
    const under = e.matches(".faint") ? "isPointInStroke" : "isPointInFill";
    return around.some((right) => around.some((down) =>
      e[under](new DOMPoint(x + right, y + down).matrixTransform(back))));
  });
  const shown = [...document.querySelectorAll(".highlight")].map((e) => +e.matches(".shown"));
  return { text, ribbons: ribbons.map((e) => `${e.dataset.i} ${e.dataset.j}`), shown };
})"""


def test_the_ribbon_under_the_pointer_is_named(page, draw, pair, tmp_path):
    """Of 100 points between the columns, each tooltip names a ribbon that is there, with the model's weights."""
    heads = [5, 9]
    open_saved(page, draw["head"](layer=5, heads=heads), tmp_path)
    box, chance, named = page.locator(".base").bounding_box(), random.Random(0), set()
    names = [name_in(pair.tokens, index) for index in range(13)]
    points = [
        [round(box[at] + chance.uniform(0.02, 0.98) * box[size]) for at, size in (("x", "width"), ("y", "height"))]
        for _ in range(100)
    ]
    for point, found in zip(points, page.evaluate(MOVE, points), strict=True):
        if not found["text"]:
            assert found["ribbons"] == []
            continue
        pairs, mean, each = re.fullmatch(r"(.*) (\d\.\d\d)( \(layer-head .*\))", found["text"]).groups()
        row, column = map(names.index, pairs.split(" → "))
        assert f"{row} {column}" in found["ribbons"]
        weights = pair.attention[5, heads, row, column]
        assert abs(float(mean) - weights.mean()) < 0.0051
        for head, weight in zip(heads, weights.tolist(), strict=True):
            named_own = re.search(rf"5-{head}: (\d\.\d\d)", each)
            assert abs(float(named_own[1]) - weight) < 0.0051
        if (row, column) not in named and len(named) < 5:
            page.mouse.move(*point)  # as a hand does
            assert tooltip(page) == found["text"]
        named.add((row, column))
    assert len(named) > 20


def test_tooltip_shows_each_weight_of_an_enlarged_square(page, draw, pair, tmp_path):
    layer, head = 0, 3
    open_saved(page, draw["model"](include_layers=[layer]), tmp_path)
    rows, columns = reader.part(pair, "ab")
    page.locator("#filter").select_option("ab")
    enlarge(page, head)
    weights, left, right = pair.attention[layer, head, rows, columns], pair.tokens[rows], pair.tokens[columns]
    box, cells = page.locator(".cells").bounding_box(), torch.ones_like(weights).nonzero().tolist()
    width, height = box["width"] / len(right), box["height"] / len(left)
    points = [[box["x"] + (column + 0.5) * width, box["y"] + (row + 0.5) * height] for row, column in cells]
    for (row, column), found in zip(cells, page.evaluate(MOVE, points), strict=True):
        text, weight = found["text"].rsplit(" ", 1)
        assert text == f"layer {layer}, head {head}: {name_in(left, row)} → {name_in(right, column)}"
        assert abs(float(weight) - weights[row, column]) < 0.0051
        assert [at for at, value in enumerate(found["shown"]) if value] == [row, len(left) + column]
    page.mouse.move(*points[20])  # as a hand does
    assert tooltip(page).startswith(f"layer {layer}, head {head}: {name_in(left, cells[20][0])} → ")


def test_heads_move_to_what_they_look_at(page, draw, tmp_path):
    """Each is under the title of its kind, with its share in its name; node computes both (tests/js)."""
    page.emulate_media(reduced_motion="no-preference")
    open_saved(page, draw["model"](), tmp_path)
    moving = """() => {
      const order = document.querySelector("#order");
      order.value = "kinds";
      order.dispatchEvent(new Event("change", { bubbles: true }));
      return document.getAnimations().filter((one) => one.effect.target.matches(".square")).length;
    }"""
    assert page.evaluate(moving) == 72
    titles = page.locator(".labels text").all_text_contents()
    kinds = [title.split(":")[0].split(" (")[0] for title in titles for _ in range(int(re.findall(r"\d+", title)[-1]))]
    named = page.locator(CELL).evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    for kind, name in zip(kinds, named, strict=True):
        share, where = re.fullmatch(r"layer \d+, head \d+: (?:at most )?(\S+) (to .*)", name).groups()
        assert ("at most" in name) == (kind == "Spread out")
        assert float(share) <= 0.5 if kind == "Spread out" else float(share) >= 0.5
        assert kind in ("Spread out", "One word", "One mark") or where == f"to {kind[0].lower()}{kind[1:]}"
    assert len(set(named)) == 72
    assert page.heard == []


def test_neuron_view_states_the_product_under_the_pointer(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3, token="his"), tmp_path)
    query, keys = pair.queries[1, 3, 8], pair.keys[1, 3]
    for key in (3, 7, 12):
        for place in (0, 2, 31):
            block = page.locator(".block").nth(32 * key + place)
            neuron, box = int(block.get_attribute("data-neuron")), block.bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
            q, k, score = query[neuron], keys[key, neuron], query @ keys[key] / 32**0.5
            name = name_in(pair.tokens, key)
            numbers = f"query of “his” {q:.2f} × key of “{name}” {k:.2f} ÷ √32 = {q * k / 32**0.5:.2f}"
            assert said(page).startswith(minus(f"Neuron {neuron}: {numbers}. "))
            assert minus(f"What is left, {score:.2f}, is the score") in said(page)
            assert f" {pair.attention[1, 3, 8, key]:.2f} is the weight." in said(page)
            marked = page.locator(".block.marked")
            assert marked.evaluate_all("(all) => all.map((e) => +e.dataset.neuron)") == [neuron] * 13
            shown = page.locator(".sums .number").all_text_contents()
            assert shown == [minus(f"{number:.2f}") for number in keys[:, neuron].tolist()]
    page.locator(".sums .key").nth(3).click()
    reader.check_computation(page, pair, 1, 3, 3)
    assert page.heard == []


@pytest.mark.parametrize("options", [{"token": "his"}, {}])
def test_neuron_view_begins_with_a_finding(page, draw, pair, tmp_path, options):
    """Without a token it begins with the largest weight between two different tokens, [CLS] apart."""
    open_saved(page, draw["neuron"](layer=2, head=4, **options), tmp_path)
    weights = pair.attention[2, 4].clone().fill_diagonal_(0)
    weights[:, 0] = 0
    row = 8 if options else int(weights.argmax()) // 13
    assert page.locator("#query").input_value() == str(row)
    assert f"key of “{name_in(pair.tokens, int(weights[row].argmax()))}”" in said(page)


# Pins, heads and [CLS]


def chosen(page) -> list[str]:
    """Return the tokens between which the ribbons of what is chosen run."""
    return page.locator(".chosen .ribbon").evaluate_all("(all) => all.map((e) => `${e.dataset.i} ${e.dataset.j}`)")


def test_a_click_pins_a_word_and_the_second_frees_it(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=5, heads=[5]), tmp_path)
    page.locator(LEFT).nth(8).click()
    page.locator(LEFT).nth(3).hover()  # another word changes nothing
    reader.leave(page)
    weights, columns = pair.attention[5, 5, 8].topk(3)
    most = [f"{weight:.2f} to “{name_in(pair.tokens, at)}”" for at, weight in zip(columns, weights, strict=True)]
    for _ in range(2):
        assert {pairs.split()[0] for pairs in chosen(page)} == {"8"}
        assert said(page) == f"In layer 5, head 5, “his” gives {', '.join(most)}."
        address = page.url
        assert '"i":8' in unquote(address)
        page.goto("about:blank")
        page.goto(address)  # a link to the pinned word
        page.locator(".chosen .ribbon").first.wait_for(state="attached")
    page.locator(LEFT).nth(8).click()
    reader.leave(page)
    assert chosen(page) == []
    page.locator(RIGHT).nth(3).click()
    reader.leave(page)
    assert page.locator(".pinned > text:first-of-type").all_text_contents() == ["ian"]
    assert {pairs.split()[1] for pairs in chosen(page)} == {"3"}
    page.locator(HEADS).nth(2 * 12 + 4).click()
    assert {pairs.split()[1] for pairs in chosen(page)} == {"3"}
    assert "In layer 2, head 4, “ian” gets" in said(page)
    assert page.heard == []


def is_mark(token: str) -> bool:
    return token in ("[CLS]", "[SEP]") or not token.isalnum()


def test_the_plain_call_begins_with_the_head_that_gives_most_to_words(page, draw, pair, tmp_path):
    words = torch.tensor([not is_mark(token) for token in pair.tokens])
    shares = pair.attention[..., words].sum(-1).mean(-1)  # (L, A)
    for options, some in (({}, shares), ({"layer": 2}, shares[2:3])):
        open_saved(page, draw["head"](**options), tmp_path)
        layer, head = divmod(int(some.argmax()), 12)
        layer += options.get("layer", 0)
        check_flow(page, pair.attention[layer, head])
        title = page.locator("h1").text_content()
        assert title.startswith(f"Layer {layer}, head {head}: ")
        found = reader.numbers(page, HEADS, "data-value")
        assert (found.view(6, 12) - shares).abs().max() < 1e-3
        means = reader.numbers(page, ".heads > .cell.last", "data-value")
        assert (means - torch.cat([shares.mean(1), shares.mean()[None]])).abs().max() < 1e-3
    page.locator(HEADS).nth(2 * 12 + 4).click()
    page.get_by_label("without [CLS]").check()
    kept = pair.attention[2, 4] * words * words[:, None]
    found = page.locator(".base .ribbon").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
    assert sum(found) == pytest.approx(float(kept.sum()), abs=0.02)


def test_the_mean_of_several_heads_is_drawn(page, draw, pair, tmp_path):
    """By Shift+click and, for a finger and the keyboard, by a switch; a second press takes a head away."""
    open_saved(page, draw["head"](layer=2, heads=[4]), tmp_path)
    page.locator(HEADS).nth(2 * 12 + 11).click(modifiers=["Shift"])
    check_flow(page, pair.attention[2, [4, 11]].mean(0))
    page.get_by_label("mean of several heads").check()
    page.locator(HEADS).nth(2 * 12 + 11).focus()
    for key in ("ArrowLeft", "Enter", "Enter"):
        page.keyboard.press(key)
    page.locator(HEADS).nth(5 * 12 + 5).click()
    check_flow(page, torch.stack([pair.attention[2, 4], pair.attention[2, 11], pair.attention[5, 5]]).mean(0))
    title = page.locator("h1").text_content()
    assert title.startswith("Mean of layer 2, heads 4, 11, and layer 5, head 5: ")
    page.goto(page.url)
    page.reload()
    page.locator(".base .ribbon").first.wait_for(state="attached")
    assert page.locator("h1").text_content() == title
    assert page.heard == []


def test_a_text_of_512_tokens_is_drawn(page, tmp_path):
    weights = torch.randn(1, 1, 2, 512, 512, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    open_saved(page, head_view(weights, [f"w{number}" for number in range(512)]), tmp_path)
    head = int(page.locator("h1").text_content()[len("Layer 0, head ")])
    assert page.locator(".base .ribbon").count() == 3000
    assert "Drawn are the 3,000 widest of 262,144 ribbons" in said(page)
    page.locator(LEFT).nth(400).click()
    shares = {int(pairs.split()[1]) for pairs in chosen(page)}
    assert shares == set((reader.as_drawn(weights[0, 0, head, 400]) > 0.0025).nonzero().flatten().tolist())
    assert page.get_by_label("as bertviz draws it").count() == 0  # with a line for each weight
    assert page.heard == []


def test_whole_words_are_one_switch_away(page, encoder, tokenizer, tmp_path):
    text = "unbelievably simple"
    for draw in (head_view, model_view):
        view = draw(encoder, tokenizer, text)
        open_saved(page, view, tmp_path)
        page.get_by_label("whole words").check()
        if draw is head_view:
            words = page.locator(f"{LEFT} > text:first-of-type").all_text_contents()
            assert words == ["[CLS]", "unbelievably", "simple", "[SEP]"]
            settle(page)
            found = reader.numbers(page, ".base .ribbon", "data-value")
            assert abs(found.sum() - 4) < 0.02
        else:
            enlarge(page, 0)
            assert "unbelievably" in page.locator("g.detail text").all_text_contents()
            open_saved(page, draw(encoder, tokenizer, text, words=True), tmp_path)
            assert page.get_by_label("whole words").is_checked()
    assert page.heard == []


def test_a_head_view_begins_at_its_token_until_the_pointer_comes(page, draw, pair, tmp_path):
    page.mouse.move(1200, 880)
    open_saved(page, draw["head"](layer=5, heads=[5], token="his"), tmp_path)
    text = said(page)
    assert text.startswith("In layer 5, head 5, “his” gives ")
    assert {pairs.split()[0] for pairs in chosen(page)} == {"8"}
    page.mouse.move(1190, 880)
    assert said(page) == text  # the pointer is over the page, not over the drawing
    page.locator("#vis").hover(position={"x": 250, "y": 2})
    assert chosen(page) == []
    page.locator(LEFT).nth(8).hover()
    expect(page.locator("#say")).to_have_text(text)


# The picture


STATES = {"head": "Layer 0, head 3", "model": "Layer 0, head 5"}
STATES |= {"neuron": "Layer 0, head 0; Neuron "}


@pytest.mark.parametrize("name", STATES)
def test_a_picture_holds_every_number_and_says_what_was_drawn(page, draw, pair, tmp_path, name):
    """In the dark, as a view opens, and as a reader has chosen."""
    options = {"head": {"heads": [3]}, "model": {"include_layers": [0, 5]}, "neuron": {}}[name]
    open_saved(page, draw[name](display_mode="dark", **options), tmp_path)
    reader.check_saved_picture(page, tmp_path)
    if name == "head":
        page.locator(LEFT).nth(3).click()
    if name == "model":
        enlarge(page, 5)
    settle(page)
    svg, png = reader.check_saved_picture(page, tmp_path)
    picture = Image.open(png).convert("RGB")
    assert picture.getpixel((3, 3)) == tuple(map(int, re.findall(r"\d+", DARK_GROUND)))
    assert len(picture.getcolors(1_000_000)) > 30
    drawn = {"head": "path", "model": "image", "neuron": "rect"}[name]
    text = {"head": "ian", "model": "Layer 0, head 5", "neuron": "machine"}[name]
    count = page.locator(f"#vis {drawn}").count() if name == "model" else 13
    page.goto(svg.as_uri())
    assert page.locator(drawn).count() >= count
    assert text.lower() in " ".join(page.locator("text").all_text_contents()).lower()
    caption = " ".join(page.locator("text.caption").all_text_contents())
    for words in ("13 tokens, “[CLS] i called ian .", STATES[name]):
        assert words in caption
    boxes = page.locator("text").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().toJSON())")
    assert min(box["left"] for box in boxes) >= 0
    assert page.heard == []


# The keyboard


def press(page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def name_of_focus(page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")


def tab_to(page, name: str) -> None:
    """Press Tab until the focus has this id, or a name that begins with it."""
    for _ in range(24):
        press(page, "Tab")
        if name_of_focus(page).startswith(name):
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab does not come to {name}")


def strongest(pair, weights: torch.Tensor, row: int, place: int) -> str:
    """Return the tooltip text of a token's line by rank of its weight."""
    column = int(reader.as_drawn(weights[row]).argsort(descending=True, stable=True)[place])
    return f"{name_in(pair.tokens, row)} → {name_in(pair.tokens, column)} {weights[row, column]:.2f}"


def test_the_head_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=4, heads=[5]), tmp_path)
    for name in ("filter", "[CLS], gives most to"):
        tab_to(page, name)
    press(page, *["ArrowDown"] * 8)
    weights = pair.attention[4, 5]
    most = name_in(pair.tokens, int(weights[8].argmax()))
    assert name_of_focus(page) == f"his, gives most to {most}, {weights[8].max():.2f}"
    assert {pairs.split()[0] for pairs in chosen(page)} == {"8"}
    press(page, "ArrowRight")  # to the token that gets most
    got = weights[:, weights[8].argmax()]
    assert (
        f" gets {got.sum():.2f}, most from {name_in(pair.tokens, int(got.argmax()))}, {got.max():.2f}"
        in name_of_focus(page)
    )
    press(page, "ArrowLeft")
    assert f" gives most to {most}" in name_of_focus(page)
    press(page, "Enter")
    assert page.locator(".pinned").count() == 1
    tab_to(page, "layer 4, head 5: ")
    press(page, "ArrowDown", "Enter")
    check_title = page.locator("h1").text_content()
    assert check_title.startswith("Layer 5, head 5: ")


def test_the_model_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["model"](include_layers=[1, 5]), tmp_path)
    tab_to(page, "layer 1, head 0")
    press(page, "ArrowDown", *["ArrowRight"] * 5, "Enter")
    assert page.locator("text.detail").text_content() == "Layer 5, head 5"
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    tab_to(page, "[CLS], position 0")
    press(page, *["ArrowDown"] * 8, "ArrowRight")
    assert tooltip(page) == f"layer 5, head 5: {strongest(pair, pair.attention[5, 5], 8, 0)}"
    press(page, "Escape")
    assert page.locator(".detail").count() == 0
    assert name_of_focus(page) == "layer 5, head 5"


def test_the_neuron_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3, token=3), tmp_path)
    tab_to(page, "the scores of the keys for ian")
    before = said(page)
    press(page, "ArrowRight")
    assert said(page) != before
    press(page, *["ArrowUp"] * 13, *["ArrowDown"] * 8)
    assert "key of “his”" in said(page)
    press(page, "Enter")
    reader.check_computation(page, pair, 1, 3, 8)
    assert page.heard == []


# Accessibility, sizes and room


@pytest.mark.parametrize(("name", "width"), [("head", 390), ("model", 1300), ("neuron", 390)])
def test_view_passes_axe_and_is_legible_and_large_enough(page, draw, tmp_path, name, width):
    page.set_viewport_size({"width": width, "height": 900})
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode="dark" if width == 390 else "light", **few), tmp_path)
    if name == "model":
        page.locator("#order").select_option("kinds")
        enlarge(page, 0)
        page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished))")
    if name == "head":
        page.locator(LEFT).nth(8).click()
    settle(page)
    letters = page.locator("text, p, label, select, button, output").evaluate_all(
        """(all) => all.filter((e) => e.getBoundingClientRect().width).map((e) => {
            const { a, b } = e.getScreenCTM?.() ?? { a: 1, b: 0 };
            return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(a, b);
        })"""
    )
    assert min(letters) >= 11.6
    pressed = {"head": f"{HEADS}, {LEFT} > .room, {RIGHT} > .room", "model": CELL, "neuron": ".sums"}[name]
    sizes = page.locator(f"select, button, input[type=range], {pressed}").evaluate_all(
        """(all) => all.map((e) => e.getBoundingClientRect()).filter(({ width }) => width)
            .map(({ width, height }) => Math.min(width, height))"""
    )
    assert min(sizes) >= 23.9
    assert reader.cropped(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:200]) for rule in found] == []


def open_in_long_page(page, view, folder, height: int):
    """Open a view in a frame between much other text, scrolled to its top, and return the frame."""
    page.set_viewport_size({"width": 884, "height": height})
    space = "<p style='height: 1500px'>"
    file = folder / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{space}{view._repr_html_()}{space}", "utf-8")
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#vis > svg").wait_for()
    page.locator("iframe").evaluate("(e) => e.scrollIntoView()")
    return frame


@pytest.mark.parametrize(("height", "is_seen"), [(720, True), (150, False)])
def test_a_click_on_a_square_scrolls_only_to_what_is_out_of_sight(page, draw, tmp_path, height, is_seen):
    """The enlarged head is below the squares, in a notebook's column of 884 pixels."""
    frame = open_in_long_page(page, draw["model"](), tmp_path, height)
    before = page.evaluate("scrollY")
    frame.locator(CELL).nth(5).click(position={"x": 10, "y": 10})
    expect(frame.locator("text.detail")).to_have_text("Layer 0, head 5")
    if not is_seen:
        page.wait_for_function("(before) => scrollY > before", arg=before)
    reader.let_fit(frame)  # meanwhile the view has seen whether the head is in sight
    assert (page.evaluate("scrollY") == before) == is_seen


# What `explore` keeps while it replaces its frame


def test_choices_carry_over_to_the_next_view(page, draw, pair, tmp_path):
    frames = {
        name: draw[name](**options)._repr_html_()
        for name, options in (("head", {"layer": 3, "heads": [1]}), ("neuron", {"layer": 3, "head": 1}), ("model", {}))
    }
    file = tmp_path / "page.html"
    file.write_text('<!doctype html><meta charset=utf-8><div class="keeps-choices"></div>', "utf-8")
    page.goto(file.as_uri())
    view = page.frame_locator("iframe")

    def show(name: str) -> None:
        page.locator(".keeps-choices").evaluate("(e, html) => { e.innerHTML = html; }", frames[name])
        view.locator("#vis > svg[viewBox]").wait_for()

    def title() -> str:
        return view.locator("h1").text_content()

    show("head")
    assert title().startswith("Layer 3, head 1: ")
    view.locator(HEADS).nth(5 * 12 + 5).click()
    show("head")  # of another text
    assert title().startswith("Layer 5, head 5: ")
    show("neuron")
    assert [view.locator(name).input_value() for name in ("#layer", "#att_head")] == ["5", "5"]
    view.locator("#att_head").select_option("7")
    show("model")
    assert view.locator("text.detail").text_content() == "Layer 5, head 7"
    view.locator(CELL).nth(2 * 12 + 4).click(position={"x": 10, "y": 10})
    show("model")
    assert view.locator("text.detail").text_content() == "Layer 2, head 4"
    show("head")
    assert title().startswith("Layer 2, head 4: ")
    assert page.heard == []


# Themes


def test_views_follow_the_theme_around_them(page, draw, tmp_path):
    page.emulate_media(color_scheme="dark")  # of the system, which the page around does not follow
    views = [draw["head"](), draw["model"](include_layers=[5]), draw["neuron"](), draw["neuron"](display_mode="light")]
    *follow, stays = reader.open_in_frames(page, views, tmp_path)
    for css, mode, ground in (
        ("color: black; background: white", "light", "rgb(255, 255, 255)"),
        ("color: #ddd; background: #111", "dark", "rgb(17, 17, 17)"),
    ):
        page.evaluate("(css) => { document.body.style.cssText = css; }", css)
        for view in follow:
            view.locator(f"html.{mode}").wait_for(state="attached")
            assert view.locator("html").evaluate("(e) => getComputedStyle(e).backgroundColor") == ground
            fills = view.locator("svg text:not(.marked + text)").evaluate_all(
                "(all) => all.map((e) => getComputedStyle(e).fill)"
            )
            bright = [sum(map(int, re.findall(r"\d+", fill)[:3])) for fill in fills if fill.startswith("rgb")]
            assert all(value > 380 if mode == "dark" else value < 420 for value in bright)
        assert stays.locator("html.light").count() == 1


# A finger


def test_a_finger_opens_reads_and_closes_a_head(phone, draw, pair, tmp_path):
    """On a phone, in a page that is longer than the window: the squares scroll it, too."""
    view = draw["model"]()
    view = View(view.summary, view.page.replace("</main>", "</main><p style='height: 900px'>", 1))
    open_saved(phone, view, tmp_path)
    finger, weights, square = Finger(phone), pair.attention[0, 2], phone.locator(CELL).nth(2)
    finger.tap(middle(square))
    expect(phone.locator("text.detail")).to_have_text("Layer 0, head 2")
    phone.locator(".detail image").scroll_into_view_if_needed()
    for row, column in ((3, 2), (8, 7), (11, 0)):
        cell = phone.locator(".detail image").bounding_box()
        finger.tap((cell["x"] + (column + 0.5) * cell["width"] / 13, cell["y"] + (row + 0.5) * cell["height"] / 13))
        text = f"{name_in(pair.tokens, row)} → {name_in(pair.tokens, column)} {weights[row, column]:.2f}"
        expect(phone.locator("#tip")).to_have_text(f"layer 0, head 2: {text}")
    finger.tap(middle(phone.locator("g.detail text.token").nth(8)))
    expect(phone.locator("#say")).to_contain_text(f"layer 0, head 2: his → got {weights[8, 7]:.2f}")
    finger.tap(middle(square))
    expect(phone.locator("text.detail")).to_have_count(0)
    phone.evaluate("scrollTo(0, 0)")
    x, y = middle(phone.locator(CELL).nth(40))
    finger.drag((x, y), (x, y - 150))
    phone.wait_for_function("scrollY > 50")
