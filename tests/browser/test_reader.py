"""What reader.js adds to bertviz: tooltips, a threshold, pictures, keyboard, themes and legible sizes."""

import re

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser import reader
from tests.browser.figure_examples import Finger, middle
from tests.browser.reader import CELLS, DARK_GROUND, let_fit, open_saved
from views import head_view, model_view
from views.page import View

MINUS = "\N{MINUS SIGN}"
CELL = f"{CELLS} > rect:last-child"


def hover(page, selector: str, index: int) -> str:
    """Hover over an element, and return its tooltip."""
    page.locator(selector).nth(index).hover()
    assert page.locator("#tip").is_visible()
    return tooltip(page)


def tooltip(page) -> str:
    return page.locator("#tip").text_content()


def choose_lines(page) -> None:
    """Choose bertviz's lines in a model view."""
    page.locator("#drawing").select_option("lines")


def enlarge(page, number: int) -> None:
    page.locator(CELL).nth(number).click(position={"x": 10, "y": 10})


# Four drawings of lines with the heads that they show: a head view of all heads and of one, an enlarged head, and a
# neuron view. Their tooltips differ in form.
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
    if kind == "model":
        choose_lines(page)
        enlarge(page, 5)
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


@pytest.mark.parametrize(("layer", "head", "name"), [(5, 5, "all"), (2, 4, "all"), (0, 2, "ab")])
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
        said, weight = tooltip(page).rsplit(" ", 1)
        assert said == f"layer {layer}, head {head}: {name_in(left, row)} → {name_in(right, column)}"
        assert abs(float(weight) - weights[row, column]) < 0.0051
        shown = page.locator(".highlight").evaluate_all("(all) => all.map((e) => +e.matches('.shown'))")
        assert [at for at, value in enumerate(shown) if value] == [row, len(left) + column]


def shares_of(weights: torch.Tensor, tokens: list[str]) -> dict[tuple[str, str], torch.Tensor]:
    """Return what each head gives on average (L, A), by kind and by the words of a tooltip."""
    S = len(tokens)
    steps = {("Itself", "to itself"): 0, ("The token before", "to the token before"): -1}
    steps |= {("The token after", "to the token after"): 1}
    shares = {kind: weights.diagonal(step, -2, -1).mean(-1) for kind, step in steps.items()}
    for column, token in enumerate(tokens):
        kind = "One word" if token.strip("[]").isalnum() and token not in ("[CLS]", "[SEP]") else "One mark"
        others = torch.arange(S) != column
        shares[kind, f"to {name_in(tokens, column)}"] = weights[:, :, others, column].mean(-1)
    return shares


def test_heads_are_sorted_by_what_they_look_at(page, draw, pair, tmp_path):
    """Each head is under the title of its largest share, if that is at least 0.4, with the share in its tooltip."""
    open_saved(page, draw["model"](), tmp_path)
    page.emulate_media(reduced_motion="reduce")
    page.locator("#order").select_option("kinds")
    page.emulate_media(reduced_motion="no-preference")
    assert "at least 0.4" in page.locator("#rule").text_content()
    titles = page.locator(".labels text").all_text_contents()
    assert sum(int(re.search(r": (\d+) heads?$", title)[1]) for title in titles) == 72
    heads = [(title.split(":")[0].split(" (")[0], int(re.search(r"(\d+) head", title)[1])) for title in titles]
    kinds = [kind for kind, count in heads for _ in range(count)]
    named = page.locator(CELL).evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    drawn = page.locator(".square .name").all_text_contents()
    shares, seen = shares_of(pair.attention, pair.tokens), set()
    largest = torch.stack(list(shares.values())).amax(0)
    for index, (kind, name) in enumerate(zip(kinds, drawn, strict=True)):
        layer, head = map(int, name.split("-"))
        seen.add((layer, head))
        said = hover(page, CELL, index)
        found = re.fullmatch(rf"layer {layer}, head {head}: (?P<most>at most )?(?P<share>\S+) (?P<where>to .*)", said)
        assert named[index] == said
        assert abs(float(found["share"]) - largest[layer, head]) < 0.0051
        spread = largest[layer, head] < 0.4
        assert bool(found["most"]) == bool(spread) == (kind == "Spread out")
        (own,) = (kind for kind, where in shares if where == found["where"])
        assert shares[own, found["where"]][layer, head] == largest[layer, head]
        assert spread or own == kind
    assert len(seen) == 72
    assert page.heard == []


def test_squares_move_to_their_kind_and_arrow_keys_follow(page, draw, tmp_path):
    open_saved(page, draw["model"](), tmp_path)
    moving = "() => document.getAnimations().filter((one) => one.effect.target.matches('.square')).length"
    page.locator("#order").select_option("kinds")
    assert page.evaluate(moving) == 72
    page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished))")
    boxes = [cell.bounding_box() for cell in page.locator(CELL).all()]
    page.locator(CELL).nth(10).focus()
    for key, sign in (("ArrowDown", 1), ("ArrowDown", 1), ("ArrowUp", -1)):
        before = page.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
        page.keyboard.press(key)
        after = page.evaluate("document.activeElement.getBoundingClientRect().toJSON()")
        assert 0 < sign * (after["y"] - before["y"]) < 130
        assert abs(after["x"] - before["x"]) < before["width"]
    assert len({(box["x"], box["y"]) for box in boxes}) == 72
    page.emulate_media(reduced_motion="reduce")
    page.locator("#order").select_option("layer")
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")


def test_tooltip_skips_hidden_lines(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=5, heads=[5, 9]), tmp_path)
    where = reader.point(reader.line_ends(page, "head", len(pair.tokens))[8, 3], 0.3)  # his → ian
    page.mouse.move(*where)
    first, second = pair.attention[5, [5, 9], 8, 3].tolist()
    assert first > 0.2 > second > 0.01
    assert tooltip(page) == f"layer 5, his → ian: head 5 {first:.2f}, head 9 {second:.2f}"
    hide_below(page, 0.2)
    page.mouse.move(where[0], where[1] + 1)
    assert tooltip(page) == f"layer 5, his → ian: head 5 {first:.2f}"
    page.locator(reader.TILES).nth(5).click()
    page.mouse.move(*where)
    assert "head 5" not in tooltip(page)  # another line, which passes here
    assert "his → ian" not in tooltip(page)
    hide_below(page, 0)
    page.locator("#left > g:last-child > g").nth(6).focus()
    page.keyboard.press("ArrowDown")  # to "got", whose lines are shown alone
    page.mouse.move(where[0] + 1, where[1])
    assert tooltip(page) == "" or "layer 5, got → " in tooltip(page)


def test_token_shows_its_largest_weights_for_up_to_three_heads(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=5, heads=[5]), tmp_path)

    def largest(head: int) -> str:
        weights, columns = pair.attention[5, head, 8].topk(3)
        names = [name_in(pair.tokens, column) for column in columns.tolist()]
        shares = [f"{name} {weight:.2f}" for name, weight in zip(names, weights.tolist(), strict=True)]
        return f"layer 5, head {head}: his → {', '.join(shares)}"

    assert hover(page, "#left text", 8) == largest(5)
    for heads in ([3, 5], [3, 4, 5], []):  # with four heads it is too much to read
        page.locator(reader.TILES).nth(heads[-2] if heads else 8).click()
        page.locator("#left text").nth(8).hover()
        assert tooltip(page) == "\n".join(map(largest, heads))


def test_tooltip_of_tile_cell_and_background(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=3), tmp_path)
    assert hover(page, "#vis > svg > g:last-child > rect", 11) == "head 11"
    assert page.locator("text.tile").all_text_contents() == [str(number) for number in range(12)]
    page.locator("#help").hover()
    assert not page.locator("#tip").is_visible()
    open_saved(page, draw["model"](include_layers=[2, 5]), tmp_path)
    assert hover(page, CELL, 12 + 7) == "layer 5, head 7"


def test_tooltip_shows_every_number_of_the_neuron_view(page, draw, pair, encoder, tokenizer, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3), tmp_path)
    reader.open_query(page, 8)
    with torch.no_grad():
        output = encoder(**tokenizer(*pair.sentences), output_queries_keys=True)
    query, key = output.queries[1][0, 3], output.keys[1][0, 3]  # (S, D)
    D = query.size(1)
    said = hover(page, "#queries .element", 8 * D + 5)
    assert said == f"layer 1, head 3, neuron 5: query of his {query[8, 5]:.2f}".replace("-", MINUS)
    said = hover(page, "#keys .element", 3 * D + 5)
    assert said == f"layer 1, head 3, neuron 5: key of ian {key[3, 5]:.2f}".replace("-", MINUS)
    scores = key @ query[8] / D**0.5
    assert hover(page, ".dotproduct", 3) == f"layer 1, head 3: q · k / √D for ian {scores[3]:.2f}".replace("-", MINUS)
    assert hover(page, ".dotproduct", 5).startswith("layer 1, head 3: q · k / √D for [SEP] (position 5) ")
    assert "q · k / √D" in page.locator("#heading").text_content()
    printed = page.locator("#dotproducts text").all_text_contents()
    assert printed == [f"{score:.1f}".replace("-", MINUS) for score in scores.tolist()]
    weights = reader.as_drawn(pair.attention[1, 3, 8])
    assert page.locator("#weights text").all_text_contents() == [f"{weight:.2f}" for weight in weights]
    assert hover(page, "#expanded #rightText > g", 3) == f"layer 1, head 3: his → ian {weights[3]:.2f}"
    page.locator("#expanded #leftText > g").nth(3).hover()  # another query
    weights = reader.as_drawn(pair.attention[1, 3, 3])
    assert page.locator("#weights text").all_text_contents() == [f"{weight:.2f}" for weight in weights]
    reader.leave(page)  # what was multiplied stays, so that the pointer can come to it
    assert page.locator("#product").evaluate("(e) => getComputedStyle(e).opacity") == "1"


def test_hovered_token_shows_lines_at_full_weight(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=5), tmp_path)
    page.locator("#left > g:last-child > g").nth(8).hover()
    drawn = "(all) => all.map((e) => getComputedStyle(e).strokeOpacity).join(' ')"
    found = page.locator("#attention line[visibility=visible]").evaluate_all(drawn)
    assert reader.close(torch.tensor([float(value) for value in found.split()]), pair.attention[5, :, 8])
    reader.leave(page)
    found = page.locator("#attention line").evaluate_all(drawn)
    assert reader.close(torch.tensor([float(value) for value in found.split()]), pair.attention[5] / 12)


def contrast(colour: str, opacity: float, ground: int) -> float:
    """Return the WCAG 2.1 contrast of a line with an rgb() colour to a grey ground."""
    line = torch.tensor([opacity * int(value) + (1 - opacity) * ground for value in re.findall(r"\d+", colour)])
    srgb = torch.stack([line, torch.full((3,), float(ground))]) / 255
    linear = torch.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    light, dark = (linear @ torch.tensor([0.2126, 0.7152, 0.0722]) + 0.05).tolist()
    return light / dark


@pytest.mark.parametrize("heads", [[4], range(6), range(6, 12), None])
def test_lines_have_contrast_on_a_dark_ground(page, draw, tmp_path, heads):
    open_saved(page, draw["head"](layer=2, heads=heads, display_mode="dark"), tmp_path)
    look = "(all) => all.map((e) => getComputedStyle(e).stroke)"
    colours = page.locator(".headAttention > g:first-child > line:first-child").evaluate_all(look)
    for ground in (0, 0x11, 0x1E):
        assert min(contrast(colours[head], 0.41, ground) for head in heads or range(12)) >= 3


def test_only_a_few_chosen_heads_have_hues(page, draw, tmp_path):
    open_saved(page, draw["head"](), tmp_path)
    tiles = page.locator(reader.TILES)
    look = "(all) => all.map((e) => getComputedStyle(e).stroke)"

    def hues() -> list[str]:
        strokes = page.locator(".headAttention > g:first-child > line:first-child").evaluate_all(look)
        shown = tiles.evaluate_all("(all) => all.map((e) => e.ariaChecked === 'true')")
        fills = tiles.evaluate_all("(all) => all.map((e) => getComputedStyle(e).fill)")
        assert [fill for fill, is_shown in zip(fills, shown, strict=True) if is_shown] == [
            stroke for stroke, is_shown in zip(strokes, shown, strict=True) if is_shown
        ]
        return [stroke for stroke, is_shown in zip(strokes, shown, strict=True) if is_shown]

    blue = hues()[0]
    assert hues() == [blue] * 12
    tiles.nth(4).dblclick()
    assert hues() == [blue]
    for head in (11, 7):
        tiles.nth(head).click()
    assert len(set(hues())) == 3
    for head in (0, 1, 2, 3):
        tiles.nth(head).click()
    assert hues() == [blue] * 7


def test_tile_shows_head_and_dashes_for_equal_colours(page, draw, tmp_path):
    open_saved(page, draw["head"](), tmp_path)
    page.locator(reader.TILES).nth(10).hover()
    opacities = page.locator(".headAttention").evaluate_all("(all) => all.map((g) => getComputedStyle(g).opacity)")
    assert opacities == ["0.05"] * 10 + ["1", "0.05"]
    weights = torch.full((1, 1, 30, 2, 2), 0.5)
    open_saved(page, head_view(weights, ["a", "b"], heads=[1, 2, 13, 14, 25, 26]), tmp_path)
    look = "(all) => all.map((e) => getComputedStyle(e)).map((style) => style.stroke + style.strokeDasharray)"
    looks = page.locator(".headAttention > g:first-child > line:first-child").evaluate_all(look)
    assert len({looks[head] for head in (1, 2, 13, 14, 25, 26)}) == 6


# The first state


def test_a_head_view_begins_at_its_token_until_the_pointer_comes(page, draw, pair, tmp_path):
    page.mouse.move(1200, 880)
    open_saved(page, draw["head"](layer=5, heads=[5], token="his"), tmp_path)
    said, visible = tooltip(page), "#attention line[visibility=visible]"
    assert said.startswith("layer 5, head 5: his → ")
    assert set(reader.numbers(page, visible, "left-token-index").tolist()) == {8}
    assert not page.locator("#help").evaluate(
        "(help) => help.getBoundingClientRect().top < document.getElementById('tip').getBoundingClientRect().bottom"
    )
    page.mouse.move(1190, 880)
    assert tooltip(page) == said  # the pointer is over the page, not over the drawing
    page.locator("#vis").hover(position={"x": 900, "y": 200})
    assert page.locator(visible).count() == 0
    assert page.locator("#attention").get_attribute("visibility") == "visible"
    assert hover(page, "#left text", 8) == said


def test_a_neuron_view_begins_with_the_row_of_its_token(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=5, head=5, token=3), tmp_path)
    assert page.locator("#expanded").get_attribute("visibility") == "visible"
    reader.check_computation(page, pair, 5, 5, 3)
    assert page.evaluate("document.activeElement === document.body")
    page.locator("#expanded #leftText > g").nth(8).hover()
    reader.check_computation(page, pair, 5, 5, 8)
    reader.close_query(page, 8)


@pytest.mark.parametrize("name", ["head", "neuron"])
def test_a_view_without_a_token_begins_with_all_lines(page, draw, pair, tmp_path, name):
    open_saved(page, draw[name](), tmp_path)
    assert tooltip(page) == ""
    assert page.locator("#attention line[visibility=visible], #expanded[visibility=visible]").count() == 0


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
    if name == "model":
        page.locator("#threshold").evaluate("(e) => { e.value = 0.3; e.dispatchEvent(new Event('input')); }")
        reader.check_colours(page, ".square image", torch.where(reader.as_drawn(weights) >= 0.3, weights, 0))
        choose_lines(page)
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
    choose_lines(page)
    before = page.locator("canvas").evaluate(reader.INK)
    hide_below(page, 0.5)
    assert page.locator("canvas").evaluate(reader.INK) < 0.8 * before
    hide_below(page, 0)
    assert page.locator("canvas").evaluate(reader.INK) == before


# how the caption of a picture describes the choices
STATES = {"head": "Layer 0, all heads;", "model": "Model view of", "neuron": "Layer 0, head 0;"}


def save_picture(page, folder):
    with page.expect_download() as download:
        page.locator("#save").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.mark.parametrize(
    ("name", "file"), [("head", "head_view_0.svg"), ("model", "model_view.svg"), ("neuron", "neuron_view_0_0.svg")]
)
def test_a_picture_of_what_is_shown_is_saved(page, draw, pair, tmp_path, name, file):
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode="dark", **few), tmp_path)
    hide_below(page, 0.1)
    drawn = "image" if name == "model" else "line"
    count = page.locator(f"#vis {drawn}").count()
    assert count > 0
    path = save_picture(page, tmp_path)
    assert path.name == file
    page.goto(path.as_uri())
    assert page.locator(drawn).count() == count
    texts = page.locator("text").all_text_contents()
    assert name == "model" or set(pair.tokens) <= set(texts)
    assert page.locator("svg").evaluate("(e) => getComputedStyle(e).backgroundColor") == DARK_GROUND
    assert "13 tokens" in page.locator("title").text_content()
    caption = " ".join(page.locator("text.caption").all_text_contents())
    for words in ("13 tokens, “[CLS] i called ian .", "weights below 0.10 hidden", STATES[name]):
        assert words in caption
    boxes = page.locator("text").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().toJSON())")
    assert min(box["left"] for box in boxes) >= 0
    assert page.heard == []


def test_the_caption_of_a_picture_follows_the_readers_choices(page, draw, pair, encoder, tokenizer, tmp_path):
    open_saved(page, head_view(encoder, tokenizer, *pair.sentences), tmp_path)
    page.locator("#layer").select_option("5")
    page.locator(reader.TILES).nth(5).dblclick()
    page.locator(reader.TILES).nth(9).click()
    page.locator("#filter").select_option("ba")
    page.goto(save_picture(page, tmp_path).as_uri())
    caption = " ".join(page.locator("text.caption").all_text_contents())
    assert "Head view of all-MiniLM-L6-v2, 6 layers × 12 heads" in caption
    assert "Layer 5, heads 5, 9; attention: Sentence B → Sentence A" in caption
    open_saved(page, draw["model"](include_layers=[5]), tmp_path)
    enlarge(page, 7)
    page.goto(save_picture(page, tmp_path).as_uri())
    assert "Layer 5, head 7" in page.locator("text.caption").all_text_contents()


def test_a_painted_picture_is_saved_too(page, many, tmp_path):
    open_saved(page, model_view(*many), tmp_path)
    choose_lines(page)
    page.goto(save_picture(page, tmp_path).as_uri())
    assert page.locator("image").get_attribute("href").startswith("data:image/png;base64,")


# The keyboard


def press(page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def name_of_focus(page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")


def tab_to(page, name: str) -> None:
    """Press Tab until the focus has this id or name."""
    for _ in range(20):
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
    for name in ("layer", "filter", "threshold", "save", "[CLS], position 0"):
        tab_to(page, name)
    press(page, *["ArrowDown"] * 8)
    assert name_of_focus(page) == "his, position 8"
    assert set(reader.numbers(page, "#attention line[visibility=visible]", "left-token-index").tolist()) == {8}
    for place in range(2):
        press(page, "ArrowRight")
        assert tooltip(page) == f"layer 4, head 5: {strongest(pair, pair.attention[4, 5], 8, place)}"
    tab_to(page, "[CLS], position 0")  # of the right column
    tab_to(page, "head 0")
    press(page, *["ArrowRight"] * 5, "Shift+Enter")
    tile = page.locator(reader.TILES).nth(5)
    assert reader.close(reader.numbers(page, "#attention line", "stroke-opacity"), pair.attention[4] / 12)
    press(page, "Enter")
    assert tile.get_attribute("aria-checked") == "false"
    press(page, " ")
    assert tile.get_attribute("aria-checked") == "true"


@pytest.mark.parametrize("drawing", ["squares", "lines"])
def test_the_model_view_by_keyboard(page, draw, pair, tmp_path, drawing):
    open_saved(page, draw["model"](include_layers=[1, 5]), tmp_path)
    if drawing == "lines":
        choose_lines(page)
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
    press(page, "Enter")
    page.locator("#help").click()  # and the focus is nowhere
    press(page, "Escape")
    assert page.locator(".detail").count() == 0


def test_the_neuron_view_by_keyboard(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=1, head=3), tmp_path)
    tab_to(page, "[CLS], position 0")
    press(page, *["ArrowDown"] * 8, "ArrowRight")
    assert tooltip(page) == f"layer 1, head 3: {strongest(pair, pair.attention[1, 3], 8, 0)}"
    press(page, "Enter")
    assert page.locator("#expanded").get_attribute("visibility") == "visible"
    assert name_of_focus(page) == "his, position 8"
    reader.check_computation(page, pair, 1, 3, 8)
    heard = []
    for _ in range(5):
        press(page, "Tab", "ArrowRight", "ArrowDown", "ArrowDown")
        heard.append(re.sub(r"layer 1, head 3,? ?:? ?| [\d.−]+$", "", tooltip(page)))
    assert sorted(heard) == sorted(
        [
            "neuron 1: key of called",
            "neuron 1: query of called",
            "neuron 1: q × k for called",
            "q · k / √D for ian",
            "his → ian",
        ]
    )
    press(page, *["Shift+Tab"] * 5, "Enter")
    assert page.locator("#collapsed").get_attribute("visibility") == "visible"
    assert page.heard == []


# Accessibility: sizes, contrast and names


@pytest.mark.parametrize("width", [358, 736, 1300])
@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_text_is_legible_and_controls_are_large_enough(page, draw, tmp_path, name, width):
    page.set_viewport_size({"width": width, "height": 900})
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](**few), tmp_path)
    if name == "model":
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    if name == "neuron":
        reader.open_query(page, 8)
    letters = page.locator("text, p, label, select, button, output").evaluate_all(
        """(all) => all.map((e) => {
            const { a, b } = e.getScreenCTM?.() ?? { a: 1, b: 0 };
            return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(a, b);
        })"""
    )
    assert min(letters) >= 10.9
    pressed = {
        "head": f"{reader.TILES}, #left > g:last-child > g, #right > g:last-child > g",
        "model": CELL,
        "neuron": "#expanded #leftText > g > rect:last-of-type",
    }[name]
    sizes = page.locator(f"select, button, input, {pressed}").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect()).map((box) => Math.min(box.width, box.height))"
    )
    assert min(sizes) >= 23.9


@pytest.mark.parametrize("display_mode", ["light", "dark"])
@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_view_passes_axe(page, draw, tmp_path, name, display_mode):
    few = {"include_layers": [5]} if name == "model" else {}
    open_saved(page, draw[name](display_mode=display_mode, **few), tmp_path)
    if name == "model":
        page.locator("#order").select_option("kinds")
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    if name == "neuron":
        reader.open_query(page, 8)
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
@pytest.mark.parametrize("width", [358, 390, 780, 1280])
def test_squares_and_the_enlarged_head_need_no_scrolling(page, draw, tmp_path, width, order):
    page.set_viewport_size({"width": width, "height": 900})
    open_saved(page, draw["model"](), tmp_path)
    page.locator("#order").select_option(order)
    enlarge(page, 30)
    page.wait_for_function("document.querySelector('rect.detail').getBoundingClientRect().y < 900 - 100")
    assert outside(page) == []
    assert not page.locator("#wide").is_visible()
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
    assert frame.locator("rect.detail").bounding_box()["y"] < height


@pytest.mark.parametrize("width", [884, 390])
def test_an_opened_neuron_view_fits_a_notebook_and_can_be_scrolled_on_a_phone(page, draw, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 720})
    [frame] = reader.open_in_frames(page, [draw["neuron"](layer=2, head=4)], tmp_path)
    reader.open_query(frame, 8)
    let_fit(frame)
    vis = frame.locator("#vis")
    assert frame.locator("#wide").is_visible() == (width == 390)
    assert vis.evaluate("(e) => e.scrollWidth <= e.clientWidth") == (width == 884)
    vis.evaluate("(e) => e.scrollBy(1000, 0)")
    last = frame.locator("#expanded #rightText > g").last.bounding_box()
    assert last["x"] + last["width"] <= width


def test_the_model_view_of_lines_is_never_cut(page, draw, tmp_path):
    page.set_viewport_size({"width": 780, "height": 900})
    open_saved(page, draw["model"](include_layers=[0, 5]), tmp_path)
    choose_lines(page)
    assert outside(page) == []
    assert not page.locator("#wide").is_visible()
    page.set_viewport_size({"width": 500, "height": 900})
    page.locator("#wide").wait_for()  # says that there is more
    page.locator("#vis").evaluate("(vis) => vis.scrollBy(1000, 0)")
    assert page.get_by_text("11", exact=True).bounding_box()["x"] < 500
    page.locator("#vis").evaluate("(vis) => vis.scrollBy(-1000, 0)")
    page.emulate_media(media="print")
    let_fit(page)
    assert outside(page) == []
    assert not page.locator("#wide, #help, #save").locator("visible=true").count()
    page.emulate_media(media="screen")


@pytest.mark.parametrize("head", [0, 6, 11])
def test_enlarged_head_does_not_cover_its_cell(page, draw, tmp_path, head):
    open_saved(page, draw["model"](include_layers=[0, 5]), tmp_path)
    choose_lines(page)
    enlarge(page, 12 + head)
    cell, panel = page.locator(CELL).nth(12 + head).bounding_box(), page.locator("rect.detail").bounding_box()
    assert panel["x"] >= cell["x"] + cell["width"] or panel["x"] + panel["width"] <= cell["x"]


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
        checked = view.locator(reader.TILES).evaluate_all("(all) => all.map((e) => e.getAttribute('aria-checked'))")
        return [head for head, value in enumerate(checked) if value == "true"]

    show("head")
    assert shown_heads() == [1]
    view.locator("#layer").select_option("5")
    view.locator(reader.TILES).nth(5).click()
    view.locator(reader.TILES).nth(1).click()
    hide_below(view, 0.2)
    show("head")  # of another text
    assert (view.locator("#layer").input_value(), shown_heads()) == ("5", [5])
    assert view.locator("output").text_content() == "0.20"
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


@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_saved_page_follows_the_system_theme(page, draw, pair, tmp_path, name):
    few = {"include_layers": [0, 5]} if name == "model" else {}
    open_saved(page, draw[name](**few), tmp_path)
    ground = "(e) => getComputedStyle(e).backgroundColor"
    assert page.locator("html").evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    page.locator("html.dark").wait_for()
    assert page.locator("html").evaluate(ground) == DARK_GROUND
    fills = page.locator("svg text:not(.tile)").evaluate_all("(all) => all.map((e) => getComputedStyle(e).fill)")
    assert all(sum(map(int, re.findall(r"\d+", fill))) > 450 for fill in fills)
    if name != "model":
        page.locator("#layer").select_option("5")
    assert page.locator("html").evaluate(ground) == DARK_GROUND


def test_view_in_page_follows_its_text_colour(page, draw, tmp_path):
    page.emulate_media(color_scheme="dark")  # of the system, which the page around does not follow
    views = [draw["neuron"](), draw["neuron"](display_mode="light")]
    follows, stays = reader.open_in_frames(page, views, tmp_path)
    for colour, mode in (("black", "light"), ("#ddd", "dark"), ("#222", "light")):
        page.evaluate("(colour) => { document.body.style.color = colour; }", colour)
        follows.locator(f"html.{mode}").wait_for(state="attached")
        assert stays.locator("html.light").count() == 1


def test_a_view_has_the_dark_ground_of_the_page_around_it(page, draw, tmp_path):
    views = [draw["model"](include_layers=[5]), draw["model"](include_layers=[5], display_mode="dark")]
    follows, stays = reader.open_in_frames(page, views, tmp_path)
    page.evaluate("() => { document.body.style.cssText = 'color: #ddd; background: #111'; }")
    follows.locator("html.dark").wait_for(state="attached")
    ground = "(e) => getComputedStyle(e).backgroundColor"
    cell = follows.locator(".attn_background").first.evaluate("(e) => getComputedStyle(e).fill")
    assert follows.locator("html").evaluate(ground) == cell == "rgb(17, 17, 17)"
    assert stays.locator("html").evaluate(ground) == DARK_GROUND


def test_title_and_heading_describe_the_view(page, draw, tmp_path):
    open_saved(page, draw["head"](), tmp_path)
    for said in (page.title(), page.locator("#details").text_content()):
        assert said.startswith("Head view of 6 layers × 12 heads on 13 tokens, “[CLS] i called ian .")
        assert said.endswith("machine . …”")  # a text is cut between two tokens


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
            said = f"{name_in(pair.tokens, row)} → {name_in(pair.tokens, column)} {weights[row, column]:.2f}"
            expect(page.locator("#tip")).to_have_text(f"layer 0, head 2: {said}")
            tip = page.locator("#tip").bounding_box()
            assert tip["x"] >= 0
            assert tip["x"] + tip["width"] <= 390
        finger.tap(middle(page.locator("g.detail text.token").nth(8)))
        expect(page.locator("#tip")).to_contain_text(f"layer 0, head 2: his → got {weights[8, 7]:.2f}")
        expect(page.locator(".highlight.shown")).to_have_count(1)
        finger.tap(middle(square))
        expect(page.locator("text.detail")).to_have_count(0)
        page.evaluate("scrollTo(0, 0)")
        x, y = middle(page.locator(CELL).nth(40))
        finger.scrolled = 0
        finger.drag((x, y), (x, y - 150))
        assert finger.scrolled > 50
        expect(page.locator("text.detail")).to_have_count(0)


def test_a_finger_goes_from_token_to_token(browser, draw, pair, tmp_path):
    with browser.new_page(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True) as page:
        open_saved(page, draw["head"](layer=2, heads=[4]), tmp_path)
        finger, weights = Finger(page), pair.attention[2, 4]
        for row in (8, 3, 10):
            finger.tap(middle(page.locator("#left text").nth(row)))
            most = name_in(pair.tokens, int(weights[row].argmax()))
            told = f"layer 2, head 4: {name_in(pair.tokens, row)} → {most} {weights[row].max():.2f}"
            expect(page.locator("#tip")).to_contain_text(told)
            shown = reader.numbers(page, "#attention line[visibility=visible]", "left-token-index")
            assert set(shown.tolist()) == {row}


def test_heading_names_the_heads_that_are_shown(page, draw, tmp_path):
    heading = page.locator("h1")
    open_saved(page, draw["head"](layer=2, heads=[4, 11]), tmp_path)
    expect(heading).to_have_text("Layer 2, heads 4, 11: what each token on the left looks at")
    page.locator(reader.TILES).nth(4).click()
    expect(heading).to_have_text("Layer 2, head 11: what each token on the left looks at")
    page.locator("#layer").select_option("5")
    expect(heading).to_have_text(re.compile("^Layer 5, head 11: "))
    open_saved(page, draw["neuron"](layer=1, head=3), tmp_path)
    expect(heading).to_have_text("Layer 1, head 3: how well a query fits each key, number by number")
    page.locator("#att_head").select_option("7")
    expect(heading).to_have_text(re.compile("^Layer 1, head 7: "))
    open_saved(page, draw["model"](include_layers=[0, 5]), tmp_path)
    expect(heading).to_have_text("All 24 heads: which token looks at which")
    enlarge(page, 15)
    expect(heading).to_have_text("Layer 5, head 3: which token looks at which")
    page.keyboard.press("Escape")
    expect(heading).to_have_text("All 24 heads: which token looks at which")
