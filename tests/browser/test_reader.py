"""What a reader does with the three views: numbers under the pointer, pins, threshold, pictures, keyboard, themes."""

import re
from urllib.parse import unquote

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from tests.browser import reader
from tests.browser.figure_examples import Finger, middle
from tests.browser.reader import CELLS, DARK_GROUND, TILES, TOKENS, let_fit, open_saved, settle
from views import head_view, model_view
from views.page import View

CELL = f"{CELLS} > rect:last-child"
SHOWN = "#attention line[visibility=visible]"
LOOKS = "(all) => all.map((e) => +getComputedStyle(e).strokeOpacity).join(' ')"


def tooltip(page) -> str:
    return page.locator("#tip").text_content()


def said(page) -> str:
    return page.locator("#say").text_content()


def enlarge(page, number: int) -> None:
    page.locator(CELL).nth(number).click(position={"x": 10, "y": 10})


def minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


# Four drawings of lines with the heads that they show; their tooltips differ in form.
DRAWINGS = {
    "all heads": ("head", {"layer": 5}, range(12)),
    "one head": ("head", {"layer": 5, "heads": [5]}, [5]),
    "enlarged head": ("model", {"include_layers": [5]}, [5]),
    "neuron view": ("neuron", {"layer": 5, "head": 5}, [5]),
}
ONE = re.compile(r"layer 5, head (?P<head>\d+): (?P<pair>.*) (?P<weight>\d\.\d\d)")
SEVERAL = re.compile(r"layer 5, (?P<pair>.* → .*?): (?P<heads>head .*)")


def open_drawing(page, draw, name: str, folder):
    kind, options, heads = DRAWINGS[name]
    open_saved(page, draw[kind](**options), folder)
    if kind != "head":
        page.locator("#drawing").select_option("lines")
    if kind == "model":
        enlarge(page, 5)
    if kind == "neuron":
        page.locator("#expanded #leftText > g > rect:last-of-type").first.click()
    return kind, list(heads)


def name_in(tokens: list[str], index: int) -> str:
    """Return a token as in tooltips: with its position if it is repeated."""
    return tokens[index] + f" (position {index})" * (tokens.count(tokens[index]) > 1)


def read_tooltip(text: str, tokens: list[str]) -> tuple[int, int, dict[int, float]] | None:
    """Return the row and column of a tooltip's pair, and the weight of each head; None without a tooltip."""
    if not text:
        return None
    found = ONE.fullmatch(text) or SEVERAL.fullmatch(text.replace("\n", " "))
    names = [name_in(tokens, index) for index in range(len(tokens))]
    row, column = map(names.index, found["pair"].split(" → "))
    if found.re is ONE:
        return row, column, {int(found["head"]): float(found["weight"])}
    return (row, column, {int(head): float(weight) for _, head, weight in map(str.split, found["heads"].split(","))})


@pytest.mark.parametrize("name", DRAWINGS)
def test_tooltip_names_the_visible_line_under_the_pointer(page, draw, pair, tmp_path, name):
    """Point at 200 points of visible lines, and along each line of 0.2 or more until its tooltip appears."""
    kind, heads = open_drawing(page, draw, name, tmp_path)
    S = len(pair.tokens)
    ends, weights = reader.line_ends(page, kind, S), pair.attention[5, heads]
    strongest = weights.amax(0)

    def check_tooltip(row: int, column: int, along: float) -> tuple[bool, set[tuple[int, int, int]]]:
        """Return whether the tooltip here is right, and the (row, column, head) that it names."""
        x, y = reader.point(ends[row, column], along)
        page.mouse.move(x, y)
        found = read_tooltip(tooltip(page), pair.tokens)
        if found is None:
            return False, set()
        *place, shares = found
        near = reader.distances(ends, x, y)
        seen = strongest[near <= 0.5].max()  # under the pointer itself
        right = (
            near[*place] <= 4
            and shares.keys() <= set(heads)
            and all(abs(pair.attention[5, head, *place] - weight) < 0.0051 for head, weight in shares.items())
            and abs(strongest[*place] - max(shares.values())) < 0.0051
            and list(shares.values()) == sorted(shares.values(), reverse=True)
            and strongest[*place] >= 0.7 * seen
        )
        return bool(right), {(*place, head) for head in shares}

    generator = torch.Generator().manual_seed(0)
    visible = (strongest >= 0.05).nonzero().tolist()
    points = [
        (*visible[int(torch.randint(len(visible), (), generator=generator))], along)
        for along in torch.empty(200).uniform_(0.03, 0.97, generator=generator).tolist()
    ]
    outcomes = [check_tooltip(*point) for point in points]
    assert sum(right for right, _ in outcomes) >= 0.98 * len(points)
    reached = set().union(*(lines for _, lines in outcomes))
    strong = {(row, column, heads[head]) for head, row, column in (weights >= 0.2).nonzero().tolist()}
    for row, column, head in sorted(strong):
        for along in torch.linspace(0.02, 0.98, 33).tolist():
            if (row, column, head) in reached:
                break
            reached |= check_tooltip(row, column, along)[1]
    assert strong <= reached


@pytest.mark.parametrize(("layer", "head", "name"), [(5, 5, "all"), (0, 2, "ab")])
def test_tooltip_shows_each_weight_of_an_enlarged_square(page, draw, pair, tmp_path, layer, head, name):
    open_saved(page, draw["model"](include_layers=[layer]), tmp_path)
    rows, columns = reader.part(pair, name) if name != "all" else (slice(None), slice(None))
    page.locator("#filter").select_option(name)
    enlarge(page, head)
    weights, left, right = pair.attention[layer, head, rows, columns], pair.tokens[rows], pair.tokens[columns]
    box = page.locator(".cells").bounding_box()
    for row, column in torch.ones_like(weights).nonzero().tolist():
        x, y = ((at + 0.5) / size for at, size in ((column, len(right)), (row, len(left))))
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        text, weight = tooltip(page).rsplit(" ", 1)
        assert text == f"layer {layer}, head {head}: {name_in(left, row)} → {name_in(right, column)}"
        assert abs(float(weight) - weights[row, column]) < 0.0051
        shown = page.locator(".highlight").evaluate_all("(all) => all.map((e) => +e.matches('.shown'))")
        assert [at for at, value in enumerate(shown) if value] == [row, len(left) + column]


def shares_of(weights: torch.Tensor, tokens: list[str]) -> dict[tuple[str, str], torch.Tensor]:
    """Return what each head gives on average (L, A), by kind and by the words of a tooltip."""
    steps = {("Itself", "to itself"): 0, ("The token before", "to the token before"): -1}
    steps |= {("The token after", "to the token after"): 1}
    shares = {kind: weights.diagonal(step, -2, -1).mean(-1) for kind, step in steps.items()}
    for column, token in enumerate(tokens):
        kind = "One word" if token.strip("[]").isalnum() and token not in ("[CLS]", "[SEP]") else "One mark"
        others = torch.arange(len(tokens)) != column
        shares[kind, f"to {name_in(tokens, column)}"] = weights[:, :, others, column].mean(-1)
    return shares


def test_heads_move_to_what_they_look_at(page, draw, pair, tmp_path):
    """Each head is under the title of its largest share, if that is at least 0.4, with the share in its name."""
    open_saved(page, draw["model"](), tmp_path)
    page.locator("#order").select_option("kinds")
    moving = "() => document.getAnimations().filter((one) => one.effect.target.matches('.square')).length"
    assert page.evaluate(moving) == 72
    titles = page.locator(".labels text").all_text_contents()
    kinds = [title.split(":")[0].split(" (")[0] for title in titles for _ in range(int(re.findall(r"\d+", title)[-1]))]
    named = page.locator(CELL).evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    shares = shares_of(pair.attention, pair.tokens)
    largest = torch.stack(list(shares.values())).amax(0)
    for kind, name in zip(kinds, named, strict=True):
        found = re.fullmatch(r"layer (\d+), head (\d+): (?P<most>at most )?(?P<share>\S+) (?P<where>to .*)", name)
        at = int(found[1]), int(found[2])
        assert abs(float(found["share"]) - largest[at]) < 0.0051
        spread = largest[at] < 0.4
        assert bool(found["most"]) == bool(spread) == (kind == "Spread out")
        (own,) = (kind for kind, where in shares if where == found["where"])
        assert shares[own, found["where"]][at] == largest[at]
        assert spread or own == kind
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
            assert f"and {pair.attention[1, 3, 8, key]:.2f} the weight." in said(page)
            marked = page.locator(".block.marked")
            assert marked.evaluate_all("(all) => all.map((e) => +e.dataset.neuron)") == [neuron] * 13
            shown = page.locator(".sums .number").all_text_contents()
            assert shown == [minus(f"{number:.2f}") for number in keys[:, neuron].tolist()]
    page.locator(".sums .key").nth(3).click()
    reader.check_computation(page, pair, 1, 3, 3)
    assert page.heard == []


@pytest.mark.parametrize("options", [{"token": "his"}, {}])
def test_neuron_view_begins_with_a_finding_and_keeps_its_stripes(page, draw, pair, tmp_path, options):
    """Without a token it begins with the largest weight between two different tokens, [CLS] apart."""
    open_saved(page, draw["neuron"](layer=2, head=4, **options), tmp_path)
    weights = pair.attention[2, 4].clone().fill_diagonal_(0)
    weights[:, 0] = 0
    row = 8 if options else int(weights.argmax()) // 13
    assert page.locator("#query").input_value() == str(row)
    assert f"key of “{name_in(pair.tokens, int(weights[row].argmax()))}”" in said(page)
    page.locator("#drawing").select_option("lines")
    reader.check_stripes(page, pair, 2, 4, row)
    page.locator("#expanded #leftText > g").nth(3).hover()
    reader.check_stripes(page, pair, 2, 4, 3)
    page.locator("#queries .element").nth(3 * 32 + 5).hover()  # and the row stays open
    assert tooltip(page) == minus(f"layer 2, head 4, neuron 5: query of ian {pair.queries[2, 4, 3, 5]:.2f}")
    reader.check_stripes(page, pair, 2, 4, 3)


# Pins, heads and [CLS]


def test_a_click_pins_a_word_and_the_second_frees_it(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=5, heads=[5, 9]), tmp_path)
    page.locator("#left text").nth(8).click()
    page.locator("#left text").nth(3).hover()  # another word changes nothing
    reader.leave(page)
    for _ in range(2):
        assert set(reader.numbers(page, SHOWN, "left-token-index").tolist()) == {8}
        weights, columns = pair.attention[5, 5, 8].topk(3)
        largest = ", ".join(
            f"{name_in(pair.tokens, at)} {weight:.2f}" for at, weight in zip(columns, weights, strict=True)
        )
        assert f"layer 5, head 5: his → {largest}" in said(page)
        address = page.url
        assert '"index":8' in unquote(address)
        page.goto("about:blank")
        page.goto(address)  # a link to the pinned word
        page.locator(SHOWN).first.wait_for()
    page.locator("#left text").nth(8).click()
    expect(page.locator(SHOWN)).to_have_count(0)
    page.locator("#right text").nth(3).click()
    assert page.locator(".pinned").all_text_contents() == ["ian"]  # which does not look like a hover
    assert set(reader.numbers(page, SHOWN, "right-token-index").tolist()) == {3}
    assert "ian ←" in said(page)
    page.locator("#layer").select_option("2")
    assert set(reader.numbers(page, SHOWN, "right-token-index").tolist()) == {3}
    assert page.heard == []


def test_weak_lines_are_faint_until_a_word_is_chosen(page, draw, pair, tmp_path):
    page.emulate_media(reduced_motion="reduce")
    open_saved(page, draw["head"](layer=5, heads=[5]), tmp_path)
    weights = reader.as_drawn(pair.attention[5, 5])

    def looks(selector: str) -> torch.Tensor:
        return torch.tensor([float(value) for value in page.locator(selector).evaluate_all(LOOKS).split()])

    rest = torch.where(weights >= 0.2, weights, 0.12 * weights)
    assert reader.close(looks("#attention [head-index='5'] line"), rest)
    page.locator("#left text").nth(8).hover()
    page.wait_for_timeout(50)
    assert reader.close(looks(f"#attention [head-index='5'] {SHOWN.split()[1]}"), weights[8])
    page.locator("#tools").get_by_label("without [CLS]").check()
    hidden = page.locator("#attention [head-index='5'] line").evaluate_all("(all) => all.map((e) => +!e.style.display)")
    assert torch.tensor(hidden).view(13, 13).equal((torch.arange(13) > 0).long().outer((torch.arange(13) > 0).long()))
    page.locator("#left text").nth(8).hover()
    assert "[CLS]" not in said(page)
    page.emulate_media(reduced_motion="no-preference")


def test_a_few_heads_have_hues_in_the_order_of_choice_and_numbers(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=2), tmp_path)
    tiles = page.locator(TILES)
    page.locator("#left text").nth(8).hover()  # with twelve heads, strong boxes carry their numbers
    strong = pair.attention[2, :, 8] >= 0.2
    assert page.locator("#numbers .stripe").all_text_contents() == [str(head) for head in range(12)]
    middles = "(all) => all.map((e) => e.getBoundingClientRect()).map(({ x, width }) => x + width / 2)"
    stripes = page.locator("#right .attentionBoxes g rect:first-child").evaluate_all(middles)
    assert page.locator("#numbers .stripe").evaluate_all(middles) == pytest.approx(stripes, abs=1)
    for row, label in enumerate(page.locator("#numbers text:not(.stripe)").all_text_contents()):
        heads = label.replace(" …", "").split()
        column = int(strong.any(0).nonzero()[row])
        assert set(map(int, heads)) <= set(strong[:, column].nonzero()[:, 0].tolist())
    hue = "(all) => all.map((e) => e.style.getPropertyValue('--hue'))"
    first = tiles.evaluate_all(hue)
    assert len(set(first)) == 1
    tiles.nth(4).dblclick()
    for head in (11, 0):
        tiles.nth(head).click()
    hues = page.locator("html").evaluate("(e) => getComputedStyle(e).getPropertyValue('--heads').trim().split(' ')")
    assert [tiles.evaluate_all(hue)[head] for head in (4, 11, 0)] == hues[:3]
    reader.leave(page)
    assert sorted(page.locator("#numbers text").all_text_contents()) == ["0", "11", "4"]
    for head in (1, 2, 3, 5):
        tiles.nth(head).click()
    assert {tiles.evaluate_all(hue)[head] for head in (0, 1, 2, 3, 4, 5, 11)} == set(first)


def contrast(colour: list[float], opacity: float, ground: int) -> float:
    """Return the WCAG 2.1 contrast of a line with a colour (from 0 to 1) to a grey ground."""
    line = opacity * torch.tensor(colour) + (1 - opacity) * ground / 255
    srgb = torch.stack([line, torch.full((3,), ground / 255)])
    linear = torch.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    light, dark = (linear @ torch.tensor([0.2126, 0.7152, 0.0722]) + 0.05).tolist()
    return light / dark


@pytest.mark.parametrize("heads", [[4], range(6), None])
def test_lines_have_contrast_on_a_dark_ground(page, draw, tmp_path, heads):
    open_saved(page, draw["head"](layer=2, heads=heads, display_mode="dark"), tmp_path)
    page.wait_for_timeout(500)
    look = "(all) => all.map((e) => getComputedStyle(e).stroke.match(/[\\d.]+/g).map(Number))"
    colours = page.locator(".headAttention > g:first-child > line:first-child").evaluate_all(look)
    weights, opacities = (
        torch.tensor(page.locator("#attention line:visible").evaluate_all(f"(all) => all.map((e) => +e.{what})"))
        for what in ("__data__", "style.strokeOpacity")
    )
    strong = (weights >= 0.2) & (opacities > 0)
    assert strong.any()
    assert (opacities - weights.sqrt())[strong].abs().max() < 1e-4
    for ground in (0, 0x11, 0x1E):
        for head in heads or range(12):
            assert contrast(colours[head][-3:], 0.41**0.5, ground) >= 3


def test_whole_words_are_one_switch_away(page, encoder, tokenizer, tmp_path):
    text = "unbelievably simple"
    for draw in (head_view, model_view):
        view = draw(encoder, tokenizer, text)
        open_saved(page, view, tmp_path)
        page.get_by_label("whole words").check()
        if draw is head_view:
            assert page.locator("#left text").all_text_contents() == ["[CLS]", "unbelievably", "simple", "[SEP]"]
            found = reader.numbers(page, "#attention line", "stroke-opacity").view(12, 4, 4) * 12
            assert (found.sum(-1) - 1).abs().max() < 1e-3
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
    assert text.startswith("layer 5, head 5: his → ")
    assert set(reader.numbers(page, SHOWN, "left-token-index").tolist()) == {8}
    page.mouse.move(1190, 880)
    assert said(page) == text  # the pointer is over the page, not over the drawing
    page.locator("#vis").hover(position={"x": 900, "y": 200})
    assert page.locator(SHOWN).count() == 0
    page.locator("#left text").nth(8).hover()
    expect(page.locator("#say")).to_have_text(text)


# The threshold and the picture


def hide_below(page, weight: float) -> None:
    page.locator("#threshold").evaluate(
        "(e, value) => { e.value = value; e.dispatchEvent(new Event('input', {bubbles: true})); }", weight
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
    if name == "model":
        reader.check_colours(page, ".square image", torch.where(reader.as_drawn(weights) >= 0.3, weights, 0))
    if name != "head":
        page.locator("#drawing").select_option("lines")
    shown = "(all) => all.filter((e) => getComputedStyle(e).display !== 'none').length"
    assert page.locator(lines).evaluate_all(shown) == int((reader.as_drawn(weights) >= 0.3).sum())
    if name != "model":  # what is drawn afterwards keeps to it
        page.locator("#layer").select_option("5")
        weights = pair.attention[5] if name == "head" else pair.attention[5, 0]
        assert page.locator(lines).evaluate_all(shown) == int((reader.as_drawn(weights) >= 0.3).sum())
    hide_below(page, 0)
    assert page.locator(lines).evaluate_all(shown) == weights.numel()


def save_picture(page, folder, kind: str = "svg"):
    with page.expect_download() as download:
        page.locator(f"#save [value={kind}]").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


STATES = {"head": "Layer 0, head 3; layer 0, head 3: ian → ", "model": "Layer 0, head 5"}
STATES |= {"neuron": "Layer 0, head 0; Neuron "}


@pytest.mark.parametrize("name", STATES)
def test_a_picture_shows_what_is_chosen_and_says_what_was_drawn(page, draw, pair, tmp_path, name):
    options = {"head": {"heads": [3]}, "model": {"include_layers": [0, 5]}, "neuron": {}}[name]
    open_saved(page, draw[name](display_mode="dark", **options), tmp_path)
    hide_below(page, 0.05)
    if name == "head":
        page.locator("#left text").nth(3).click()
    if name == "model":
        enlarge(page, 5)
    settle(page)
    png = Image.open(save_picture(page, tmp_path, "png")).convert("RGB")
    assert png.getpixel((3, 3)) == tuple(map(int, re.findall(r"\d+", DARK_GROUND)))
    assert len(png.getcolors(1_000_000)) > 30
    path = save_picture(page, tmp_path)
    assert path.name.startswith("layer_0_head_")
    drawn = {"head": "line", "model": "image", "neuron": "rect"}[name]
    text = {"head": "ian", "model": "Layer 0, Head 5", "neuron": "machine"}[name]
    count = page.locator(f"#vis {drawn}").count() if name == "model" else 13
    page.goto(path.as_uri())
    assert page.locator(drawn).count() >= count
    if name == "head":  # the pinned word's lines alone
        visible = page.locator("line").evaluate_all(
            "(all) => all.filter((e) => getComputedStyle(e).visibility !== 'hidden').map((e) => e.getAttribute('y1'))"
        )
        assert len(set(visible)) == 1
    assert text in " ".join(page.locator("text").all_text_contents())
    caption = " ".join(page.locator("text.caption").all_text_contents())
    for words in ("13 tokens, “[CLS] i called ian .", "weights below 0.05 hidden", STATES[name]):
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
    """Press Tab until the focus has this id or name."""
    for _ in range(24):
        press(page, "Tab")
        if name_of_focus(page) == name:
            box = page.locator("#ring")
            assert box.is_visible() or page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab does not come to {name}")


def strongest(pair, weights: torch.Tensor, row: int, place: int) -> str:
    """Return the tooltip text of a token's line by rank of its weight."""
    column = int(reader.as_drawn(weights[row]).argsort(descending=True, stable=True)[place])
    return f"{name_in(pair.tokens, row)} → {name_in(pair.tokens, column)} {weights[row, column]:.2f}"


def test_the_head_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=4, heads=[5]), tmp_path)
    for name in ("layer", "filter", "threshold", "head 0"):
        tab_to(page, name)
    press(page, *["ArrowRight"] * 5, "Shift+Enter")
    tile = page.locator(TILES).nth(5)
    assert reader.close(reader.numbers(page, "#attention line", "stroke-opacity"), pair.attention[4] / 12)
    press(page, "Enter")
    assert tile.get_attribute("aria-checked") == "false"
    press(page, "Shift+Enter")
    tab_to(page, "[CLS], position 0")
    press(page, *["ArrowDown"] * 8)
    assert name_of_focus(page) == "his, position 8"
    assert set(reader.numbers(page, SHOWN, "left-token-index").tolist()) == {8}
    for place in range(2):
        press(page, "ArrowRight")
        assert tooltip(page) == f"layer 4, head 5: {strongest(pair, pair.attention[4, 5], 8, place)}"
    press(page, "Enter")
    assert "Pinned" in said(page)
    tab_to(page, "[CLS], position 0")  # of the right column


@pytest.mark.parametrize("drawing", ["squares", "lines"])
def test_the_model_view_by_keyboard(page, draw, pair, tmp_path, drawing):
    open_saved(page, draw["model"](include_layers=[1, 5]), tmp_path)
    page.locator("#drawing").select_option(drawing)
    tab_to(page, "layer 1, head 0")
    press(page, "ArrowDown", *["ArrowRight"] * 5, "Enter")
    assert page.locator("text.detail").text_content() == "Layer 5, Head 5"
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
    page.locator("#drawing").select_option("lines")
    tab_to(page, "[CLS], position 0")
    press(page, *["ArrowDown"] * 8, "Enter")
    assert page.locator("#collapsed").get_attribute("visibility") == "visible"
    assert page.heard == []


# Accessibility, sizes and room


@pytest.mark.parametrize("width", [390, 1300])
@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_view_passes_axe_and_is_legible_and_large_enough(page, draw, tmp_path, name, width):
    page.set_viewport_size({"width": width, "height": 900})
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode="dark" if width == 390 else "light", **few), tmp_path)
    if name == "model":
        page.locator("#order").select_option("kinds")
        enlarge(page, 0)
        page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished))")
    if name == "head":
        page.locator("#left text").nth(8).click()
    settle(page)
    letters = page.locator("text, p, label, select, button, output").evaluate_all(
        """(all) => all.filter((e) => e.getBoundingClientRect().width).map((e) => {
            const { a, b } = e.getScreenCTM?.() ?? { a: 1, b: 0 };
            return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(a, b);
        })"""
    )
    assert min(letters) >= 11.6
    pressed = {"head": f"{TILES}, {TOKENS}", "model": CELL, "neuron": ".sums"}[name]
    sizes = page.locator(f"select, button, input[type=range], {pressed}").evaluate_all(
        """(all) => all.map((e) => e.getBoundingClientRect()).filter(({ width }) => width)
            .map(({ width, height }) => Math.min(width, height))"""
    )
    assert min(sizes) >= 23.9
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert not page.locator("#wide").is_visible()
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["impact"], rule["nodes"][0]["html"][:200]) for rule in found] == []


def outside(page) -> list[str]:
    """Return the elements that are drawn to the left or right of the visible area."""
    return page.locator("#vis").evaluate(
        """(vis) => [...vis.querySelectorAll("text, rect, line")].filter((e) => {
            const box = e.getBoundingClientRect(), { left, right } = vis.getBoundingClientRect();
            return box.left < left - 4 || box.right > right + 4; // some of which is a letter's empty edge
        }).map((e) => e.outerHTML)"""
    )


@pytest.mark.parametrize("order", ["layer", "kinds"])
@pytest.mark.parametrize("width", [390, 780, 1280])
def test_squares_and_the_enlarged_head_need_no_scrolling(page, draw, tmp_path, width, order):
    page.set_viewport_size({"width": width, "height": 900})
    open_saved(page, draw["model"](), tmp_path)
    page.locator("#order").select_option(order)
    enlarge(page, 30)
    page.wait_for_function("document.querySelector('rect.detail').getBoundingClientRect().y < 900 - 100")
    assert outside(page) == []
    cells = [cell.bounding_box() for cell in page.locator(CELL).all()]
    panel = page.locator("rect.detail").bounding_box()
    right, low = (max(cell[side] + cell[size] for cell in cells) for side, size in (("x", "width"), ("y", "height")))
    assert panel["x"] >= right or panel["y"] >= low  # beside or below all squares


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
    expect(frame.locator("text.detail")).to_have_text("Layer 0, Head 5")
    if not is_seen:
        page.wait_for_function("(before) => scrollY > before", arg=before)
    page.wait_for_timeout(300)
    assert (page.evaluate("scrollY") == before) == is_seen


@pytest.mark.parametrize("name", ["model", "neuron"])
def test_bertvizs_own_drawing_is_scrolled_where_it_is_too_wide(page, draw, tmp_path, name):
    few = {"include_layers": [0, 5]} if name == "model" else {"layer": 2, "head": 4}
    page.set_viewport_size({"width": 390, "height": 900})
    open_saved(page, draw[name](**few), tmp_path)
    page.locator("#drawing").select_option("lines")
    page.locator("#wide").wait_for()  # says that there is more
    page.locator("#vis").evaluate("(vis) => vis.scrollBy(1000, 0)")
    last = {"model": CELL, "neuron": "#expanded #rightText text"}[name]
    assert page.locator(last).last.bounding_box()["x"] < 390
    page.emulate_media(media="print")
    let_fit(page)
    assert outside(page) == []
    assert not page.locator("#wide, #help, #save").locator("visible=true").count()
    page.emulate_media(media="screen")


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

    def shown_heads() -> list[int]:
        checked = view.locator(TILES).evaluate_all("(all) => all.map((e) => e.getAttribute('aria-checked'))")
        return [head for head, value in enumerate(checked) if value == "true"]

    show("head")
    assert shown_heads() == [1]
    view.locator("#layer").select_option("5")
    view.locator(TILES).nth(5).click()
    view.locator(TILES).nth(1).click()
    hide_below(view, 0.2)
    show("head")  # of another text
    assert (view.locator("#layer").input_value(), shown_heads()) == ("5", [5])
    assert view.locator("#tools output").text_content() == "0.20"
    count = int((reader.as_drawn(pair.attention[5, 5]) >= 0.2).sum())
    lines = view.locator("#attention [head-index='5'] line")
    assert lines.evaluate_all("(all) => all.filter((e) => e.style.display !== 'none').length") == count
    show("neuron")
    assert [view.locator(name).input_value() for name in ("#layer", "#att_head")] == ["5", "5"]
    view.locator("#att_head").select_option("7")
    show("model")
    assert view.locator(".detail").count() == 0
    view.locator(CELL).nth(2 * 12 + 4).click(position={"x": 10, "y": 10})
    show("model")
    assert view.locator("text.detail").text_content() == "Layer 2, Head 4"
    show("head")
    assert (view.locator("#layer").input_value(), shown_heads()) == ("2", [4])
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
    page.emulate_media(color_scheme="light")


# A finger


def test_a_finger_opens_reads_and_closes_a_head(browser, draw, pair, tmp_path):
    """On a phone, in a page that is longer than the window: the squares scroll it, too."""
    view = draw["model"]()
    view = View(view.summary, view.page.replace("</main>", "</main><p style='height: 900px'>", 1))
    with browser.new_page(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True) as page:
        open_saved(page, view, tmp_path)
        finger, weights, square = Finger(page), pair.attention[0, 2], page.locator(CELL).nth(2)
        finger.tap(middle(square))
        expect(page.locator("text.detail")).to_have_text("Layer 0, Head 2")
        page.locator(".detail image").scroll_into_view_if_needed()
        for row, column in ((3, 2), (8, 7), (11, 0)):
            cell = page.locator(".detail image").bounding_box()
            finger.tap((cell["x"] + (column + 0.5) * cell["width"] / 13, cell["y"] + (row + 0.5) * cell["height"] / 13))
            text = f"{name_in(pair.tokens, row)} → {name_in(pair.tokens, column)} {weights[row, column]:.2f}"
            expect(page.locator("#tip")).to_have_text(f"layer 0, head 2: {text}")
        finger.tap(middle(page.locator("g.detail text.token").nth(8)))
        expect(page.locator("#say")).to_contain_text(f"layer 0, head 2: his → got {weights[8, 7]:.2f}")
        finger.tap(middle(square))
        expect(page.locator("text.detail")).to_have_count(0)
        page.evaluate("scrollTo(0, 0)")
        x, y = middle(page.locator(CELL).nth(40))
        finger.scrolled = 0
        finger.drag((x, y), (x, y - 150))
        assert finger.scrolled > 50


def test_a_finger_pins_and_frees_a_token_and_marks_a_product(browser, draw, pair, tmp_path):
    with browser.new_page(viewport={"width": 390, "height": 900}, has_touch=True, is_mobile=True) as page:
        open_saved(page, draw["head"](layer=2, heads=[4]), tmp_path)
        finger, weights = Finger(page), pair.attention[2, 4]
        for row in (8, 3, 10):
            finger.tap(middle(page.locator("#left text").nth(row)))
            most = name_in(pair.tokens, int(weights[row].argmax()))
            text = f"layer 2, head 4: {name_in(pair.tokens, row)} → {most} {weights[row].max():.2f}"
            expect(page.locator("#say")).to_contain_text(text)
            assert set(reader.numbers(page, SHOWN, "left-token-index").tolist()) == {row}
        finger.tap(middle(page.locator("#left text").nth(10)))
        expect(page.locator(SHOWN)).to_have_count(0)
        open_saved(page, draw["neuron"](layer=2, head=4, token=8), tmp_path)
        block = page.locator(".block").nth(32 * 3 + 1)
        finger.tap(middle(block))
        expect(page.locator("#say")).to_contain_text(f"Neuron {block.get_attribute('data-neuron')}: ")
