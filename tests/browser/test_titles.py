"""Every switch of each view is pressed, and what the view then says is compared with the model's numbers."""

import re

import pytest
import torch
from playwright.sync_api import expect

from tests.browser import reader
from tests.browser.reader import HEADS, open_saved
from tests.browser.test_reader import name_in


def title(page) -> str:
    reader.settle(page)
    return page.locator("h1").text_content()


def help_of(page) -> str:
    return page.locator("#help").evaluate("(e) => e.firstChild.textContent")


def check_head_title(page, tokens: list[str], heads: str, drawn: torch.Tensor) -> None:
    """Compare title and help with the weights that are drawn: a number of all attention, and where it goes."""
    marks = torch.tensor([token in ("[CLS]", "[SEP]", ".") for token in tokens])
    gets, of_words = drawn.sum(0), drawn.sum(0)[~marks].sum() >= drawn.sum(0)[marks].sum()
    said = re.fullmatch(r"(.*): (\d+\.\d) of the (\d+) tokens’ attention goes to (.*)", title(page))
    assert (said[1], int(said[3])) == (heads, len(drawn))
    assert abs(float(said[2]) - gets[~marks if of_words else marks].sum()) < 0.051
    if of_words:
        number, name = re.fullmatch(r"words, (\S+) to “(.*)” alone", said[4]).groups()
        most = max(float(gets[at]) for at, token in enumerate(tokens) if token == name)
        assert most > torch.where(marks, -1, gets).max() - 1e-3
        assert abs(float(number) - most) < 0.051
    else:
        some = {tokens[at] for at in range(len(tokens)) if marks[at] and gets[at] >= 0.05}
        assert {name.strip("“”") for name in re.split(", | and ", said[4])} == some
    assert ("gives 1" in help_of(page)) == bool((drawn.sum(1) > 0.99).all())


def test_a_head_views_words_follow_every_switch(page, draw, pair, tmp_path):
    open_saved(page, draw["head"](layer=2, heads=[4]), tmp_path)
    marks = torch.tensor([token in ("[CLS]", "[SEP]", ".") for token in pair.tokens])
    without, several = page.get_by_label("without [CLS]"), page.get_by_label("mean of several heads")
    for layer, head in ((2, 4), (5, 5)):
        page.locator(HEADS).nth(layer * 12 + head).click()
        for name in ("all", "ab", "ba"):
            rows, columns = reader.part(pair, name) if name != "all" else (slice(None), slice(None))
            page.locator("#filter").select_option(name)
            weights = pair.attention[layer, head, rows, columns]
            for left_out in (False, True):
                without.set_checked(left_out)
                out = marks[rows, None] | marks[None, columns] if left_out else torch.zeros_like(weights).bool()
                drawn = weights.masked_fill(out, 0)
                check_head_title(page, pair.tokens[columns], f"Layer {layer}, head {head}", drawn)
        without.uncheck()
        page.locator("#filter").select_option("all")
    several.check()
    page.locator(HEADS).nth(5 * 12 + 9).click()
    mean = pair.attention[5, [5, 9]].mean(0)
    check_head_title(page, pair.tokens, "Mean of layer 5, heads 5, 9", mean)
    several.uncheck()
    page.locator(".heads > .cell.last").nth(2).click()
    mean = pair.attention[2].mean(0)
    check_head_title(page, pair.tokens, "Layer 2, mean of all heads", mean)
    assert page.heard == []


@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_bertvizs_own_drawing_is_one_switch_away(page, draw, pair, tmp_path, name):
    """It has a line for each weight. Its own boxes choose layer and head, of which the page around it says nothing."""
    options = {"head": {"layer": 2, "heads": range(12)}, "model": {}, "neuron": {"layer": 2, "head": 4}}[name]
    weights = {"head": pair.attention[2] / 12, "model": pair.attention, "neuron": pair.attention[2, 4]}[name]
    lines = {"head": "#attention line", "model": "svg > g line", "neuron": "#collapsed line"}[name]
    open_saved(page, draw[name](**options), tmp_path)
    before = title(page)
    if name == "neuron":
        page.locator("#tools summary").click()
    switch = page.get_by_label("as bertviz draws it")
    switch.check()
    theirs = page.frame_locator("#bertviz")
    theirs.locator("#vis > svg").wait_for()
    assert page.locator("#vis").is_hidden()
    assert reader.close(reader.numbers(theirs, lines, "stroke-opacity"), weights)
    assert title(page).startswith("As bertviz draws it: ")
    assert not re.search(r"\d", title(page))
    assert page.locator("#help, #say").evaluate_all("(all) => all.every((e) => !e.checkVisibility())")
    assert page.evaluate("window.pictureState()") == "As bertviz draws it"
    switch.uncheck()
    expect(page.locator("h1")).to_have_text(before)
    assert page.locator("#help").is_visible()
    assert page.locator("#vis > svg").is_visible()
    assert [message for message in page.heard if message[0] != "console"] == []


def test_a_model_views_title_counts_what_most_heads_look_at(page, draw, pair, tmp_path):
    open_saved(page, draw["model"](), tmp_path)
    for name in ("all", "bb"):
        rows, columns = reader.part(pair, name) if name != "all" else (slice(None), slice(None))
        page.locator("#filter").select_option(name)
        tokens, weights = pair.tokens[columns], pair.attention[:, :, rows, columns]
        others = ~torch.eye(len(tokens), dtype=torch.bool)
        steps = [weights.diagonal(step, -2, -1).mean(-1) for step in (0, -1, 1)]
        shares = torch.stack([*steps, *((weights * others).sum(-2) / others.sum(0)).unbind(-1)], dim=-1)
        best, kind = shares.max(-1)
        what = ["the token itself", "the token before", "the token after", *tokens]
        counts = {}
        for at in kind[best > 0.5].tolist():
            counts[what[at]] = counts.get(what[at], 0) + 1
        most = max(counts, key=counts.get)
        for order in ("kinds", "layer"):
            page.locator("#order").select_option(order)
            assert title(page) == f"{counts[most]} of 72 heads give {most} more than half of their attention"
        reader.check_colours(page, ".square image", weights)
    to_words = pair.attention[..., [1, 2, 3, 6, 7, 8, 9, 10]].sum((-1, -2))  # neither marks nor full stops
    layer, head = divmod(int(to_words.argmax()), 12)
    expect(page.locator("text.detail")).to_have_text(f"Layer {layer}, head {head}")  # is enlarged at first


def test_a_neuron_views_title_names_the_highest_score(page, draw, pair, tmp_path):
    open_saved(page, draw["neuron"](layer=2, head=4, token="his"), tmp_path)
    for layer, head, row in ((2, 4, 8), (0, 2, 8), (5, 5, 3)):
        page.locator("#layer").select_option(str(layer))
        page.locator("#att_head").select_option(str(head))
        page.locator("#query").select_option(str(row))
        weights = pair.attention[layer, head, row]
        most = int(weights.argmax())
        score = pair.queries[layer, head, row] @ pair.keys[layer, head, most] / 32**0.5
        names = [name_in(pair.tokens, at) for at in (row, most)]
        said = f"for “{names[0]}”, “{names[1]}” has the highest score, {score:.1f}, and gets {weights[most]:.2f}"
        assert title(page) == f"Layer {layer}, head {head}: {said}"
        reader.check_computation(page, pair, layer, head, row)
    page.locator("#tools summary").click()  # "more"
    for name in ("ab", "ba"):
        rows, columns = reader.part(pair, name)
        page.locator("#filter").select_option(name)
        reader.check_neuron_lines(page, pair.attention[5, 5, rows, columns])
        assert page.locator(".sums .key").all_text_contents() == pair.tokens[columns]
