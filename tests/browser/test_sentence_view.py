"""The sentence view: ribbons, two texts in one picture, whole words, other scripts and long texts. The path view."""

import functools
import itertools
import random
import re

import pytest
import torch
from playwright.sync_api import expect

from tests.browser.figure_examples import (
    FIGURES,
    NAMES,
    SENTENCES,
    close,
    numbers,
    open_figure,
    ribbon_widths,
    settle,
    stop_clock,
    texts_of,
    with_means,
)
from views import path_view, sentence_view, whole_words
from views.cuts import measure_cuts
from views.models import tokenize_for_view
from views.path import read_path


def test_ribbons_morph_between_the_weights_of_two_texts(timed, tmp_path):
    """On the way, each ribbon is between its two widths, and together they stay as wide as 1."""
    open_figure(timed, FIGURES["sentence_view"].make(NAMES), tmp_path)
    stop_clock(timed)
    timed.get_by_role("radio", name=NAMES[2], exact=True).check()
    timed.locator(".word").nth(1).click()
    timed.locator(".cell:not(.last)").nth(4).click()
    timed.clock.run_for(600)
    one, other = SENTENCES[:, 1, 0, 1]
    assert (one - other).abs().min() > 0.01  # the control: every ribbon has to change
    assert close(ribbon_widths(timed), one)
    timed.get_by_role("radio", name="again", exact=True).check()
    timed.clock.run_for(200)
    between = ribbon_widths(timed)
    assert ((between - one) * (other - between) > 0).all()
    assert abs(between.sum() - 1) < 1e-6
    timed.clock.run_for(400)
    assert close(ribbon_widths(timed), other)


SENTENCE = "The animal didn't cross the street because it was too {}."


@pytest.mark.parametrize("width", [1280, 390])
def test_a_sentence_is_a_line_or_a_column_in_reading_order(page, tmp_path, width, encoder, tokenizer):
    page.set_viewport_size({"width": width, "height": 900})
    texts = [SENTENCE.format(word) for word in ("tired", "wide")]
    view = sentence_view(encoder, tokenizer, texts[0], token="it", layer=3, head=1, other=texts[1:])
    open_figure(page, view, tmp_path)
    title = page.locator("h1").text_content()
    assert view.summary.startswith(f"{title}: ")
    assert title == "“it” looks most at “animal”"
    boxes = [word.bounding_box() for word in page.locator(".word").all()]
    along, across = ("x", "y") if width == 1280 else ("y", "x")
    starts = [box[along] for box in boxes]
    assert starts == sorted(starts)
    assert max(box[across] for box in boxes) - min(box[across] for box in boxes) < 2
    drawn = page.locator(".sentence").bounding_box()
    assert all(box["x"] >= drawn["x"] - 1 and box["x"] + box["width"] <= width for box in boxes)
    page.get_by_role("radio", name="wide", exact=True).check()
    with torch.no_grad():
        weights = torch.cat(encoder(**tokenizer(texts[1]), output_attentions=True).attentions)
    assert close(numbers(page, ".word"), weights[3, 1, 10])
    assert close(numbers(page, ".cell:not(.last)"), weights[:, :, 10, 2])
    assert page.locator("#say").text_content().startswith("With “wide” instead of “tired”, “animal” gets ")
    page.locator(".word[tabindex='0']").press("ArrowUp")
    assert close(numbers(page, ".word"), weights[3, 0, 10])
    page.keyboard.press("ArrowRight")
    assert close(numbers(page, ".word"), weights[3, 0, 11])


SIDES = (".ribbon:not(.below)", ".ribbon.below")


@pytest.mark.parametrize("width", [1280, 390])
def test_two_texts_in_one_picture(page, tmp_path, width, encoder, tokenizer):
    """Above and below the same words, or beside them; another word may have more pieces, and whole words have none."""
    page.set_viewport_size({"width": width, "height": 900})
    texts = [SENTENCE.format(word) for word in ("tired", "unflappable")]
    open_figure(
        page, sentence_view(encoder, tokenizer, texts[0], token="it", layer=3, head=1, other=texts[1]), tmp_path
    )
    with torch.no_grad():
        one, other = (torch.cat(encoder(**tokenizer(text), output_attentions=True).attentions) for text in texts)
    pieces = other.size(-1) - one.size(-1) + 1
    assert pieces > 2
    ids = [*range(13), *[13] * pieces, 14, 15]
    wanted = one[3, 1, 10], whole_words(other[3, 1], ids)[10]
    for side, shares in zip(SIDES, wanted, strict=True):
        assert close(numbers(page, side), shares)
        assert abs(ribbon_widths(page, side).sum() - 1) < 1e-6
    moved = (one[:, :, 10] - whole_words(other, ids)[:, :, 10]).abs().sum(dim=-1) / 2
    assert close(numbers(page, ".cell:not(.last)"), moved)
    across = "top" if width == 1280 else "left"
    sides = [page.locator(side).first.evaluate(f"(e) => e.getBoundingClientRect().{across}") for side in SIDES]
    assert sides[0] < sides[1]
    assert texts_of(page, ".differs") == [f"tired unflappable {wanted[0][13]:.2f} {wanted[1][13]:.2f} "]
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    page.get_by_role("radio", name="unflappable", exact=True).check()
    assert close(numbers(page, ".word"), wanted[1])
    page.locator(".word[tabindex='0']").press("ArrowRight")
    assert close(numbers(page, ".word"), whole_words(other[3, 1], ids)[11])


def test_a_word_of_one_text_alone_has_nothing_to_compare(page, tmp_path):
    weights = [torch.full((1, 1, 1, count, count), 1 / count) for count in (3, 2)]
    view = sentence_view(weights[0], ["a", "b", "c"], token="b", other=(weights[1], ["a", "c"]))
    open_figure(page, view, tmp_path)
    assert page.locator("h1").text_content() == "“b” is in one text only"
    assert view.summary.startswith("“b” is in one text only: ")
    assert page.locator("#say").text_content() == "“b” is in one text only, where it gives 0.33 to “a”."
    assert close(ribbon_widths(page), weights[0][0, 0, 0, 1])
    assert ribbon_widths(page, ".ribbon.below").sum() == 0
    page.locator(".word").first.click()
    assert "0.33 of the attention of “a” moves" in page.locator("h1").text_content()


def test_whole_words_are_one_switch_away(page, tmp_path, encoder, tokenizer):
    text = "Ian was unbelievably tired."
    read = tokenize_for_view(encoder, tokenizer, text, None)
    open_figure(page, sentence_view(encoder, tokenizer, text, token="tired", layer=2, head=4), tmp_path)
    with torch.no_grad():
        weights = torch.cat(encoder(**read.inputs, output_attentions=True).attentions)
    token = read.tokens.index("tired")
    assert close(numbers(page, ".word"), weights[2, 4, token])
    page.get_by_role("checkbox", name="whole words").check()
    merged = whole_words(weights, read.words)
    assert texts_of(page, ".name") == ["[CLS]", "ian", "was", "unbelievably", "tired", ".", "[SEP]"]
    assert close(numbers(page, ".word"), merged[2, 4, 4])
    page.locator(".word").nth(3).click()
    assert close(numbers(page, ".word"), merged[2, 4, 3])
    page.get_by_role("checkbox", name="whole words").uncheck()
    assert close(numbers(page, ".word"), weights[2, 4, 3])  # of its first piece
    opened = sentence_view(encoder, tokenizer, text, layer=2, head=4, words=True)
    open_figure(page, opened, tmp_path)
    assert close(numbers(page, ".word"), merged[2, 4, 1])


HEBREW = ["[CLS]", "הילדה", "קראה", "ספר", "בגן", "New", "York", ".", "[SEP]"]
MIXED = ["[CLS]", "he", "said", "שלום", "עולם", "to", "me", ".", "[SEP]"]


@pytest.mark.parametrize(
    ("tokens", "order"),
    [(HEBREW, [8, 7, 5, 6, 4, 3, 2, 1, 0]), (MIXED, [0, 1, 2, 4, 3, 5, 6, 7, 8])],
    ids=["from the right", "mixed"],
)
def test_words_are_in_the_order_of_their_script(page, tmp_path, tokens, order):
    scores = torch.randn(1, 1, 1, len(tokens), len(tokens), generator=torch.Generator().manual_seed(0))
    open_figure(page, sentence_view(scores.softmax(dim=-1), tokens, token=1), tmp_path)
    lefts = [word.bounding_box()["x"] for word in page.locator(".word").all()]
    assert sorted(range(len(tokens)), key=lefts.__getitem__) == order
    assert close(ribbon_widths(page), scores[0, 0, 0, 1].softmax(dim=0))
    page.locator(".word[tabindex='0']").press("ArrowLeft")
    expect(page.locator(".word").nth(order[max(0, order.index(1) - 1)])).to_have_attribute("aria-checked", "true")


def test_a_text_of_512_tokens_shows_those_around_the_chosen_one(page, tmp_path):
    scores = torch.randn(1, 1, 2, 512, 512, generator=torch.Generator().manual_seed(0))
    weights = scores.mul(3).softmax(dim=-1)[0, 0]
    open_figure(page, sentence_view(weights[None, None], [f"w{i}" for i in range(512)], token=300), tmp_path)
    page.locator(".word").first.wait_for()  # the weights are decompressed first
    for token, first in ((300, 236), (299, 235)):
        shares = weights[0, token]
        wanted = torch.cat([shares[:first].sum()[None], shares[first : first + 128], shares[first + 128 :].sum()[None]])
        assert texts_of(page, ".name")[:2] == [f"{first} before", f"w{first}"]
        off = (numbers(page, ".word") - wanted).abs()
        assert off[1:-1].max() < 1.01e-3
        assert off.max() < 0.02  # the sums of all others
        assert abs(ribbon_widths(page).sum() - 1) < 0.02
        page.locator(".word[tabindex='0']").press("ArrowLeft")
    page.locator(".word").last.click()
    assert texts_of(page, ".word[aria-checked='true'] .name") == ["w362"]


def test_a_tie_has_no_winner(page, tmp_path):
    view = sentence_view(torch.full((1, 1, 2, 3, 3), 1 / 3), ["a", "b", "c"], token="b")
    open_figure(page, view, tmp_path)
    assert page.locator("h1").text_content() == "“b” looks at all tokens alike"
    assert view.summary.startswith("“b” looks at all tokens alike: ")
    assert page.locator(".word.most").count() == 0


def test_a_long_sentence_of_many_heads_fits_a_phone(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 900})
    scores = torch.randn(2, 1, 16, 128, 128, generator=torch.Generator().manual_seed(0))
    open_figure(page, sentence_view(scores.softmax(dim=-1), ["Donaudampfschifffahrt", "a"] * 64), tmp_path)
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert close(numbers(page, ".word"), scores[0, 0, 0, 0].softmax(dim=0))
    page.locator(".cell:not(.last)").last.click()
    settle(page)
    assert close(ribbon_widths(page), scores[1, 0, 15, 0].softmax(dim=0))


UNDER = """([selector, x, y, near]) => [...document.querySelectorAll(selector)].flatMap((e, i) => {
  const box = e.getBoundingClientRect(), back = e.getScreenCTM?.().inverse();
  const inside = (x, y) => e.isPointInFill?.(new DOMPoint(x, y).matrixTransform(back)) ??
    (box.left <= x && x < box.right && box.top <= y && y < box.bottom);
  const by = near ? [-1, 0, 1] : [-2, 0, 2], kind = near ? "some" : "every"; // a button has round corners
  return by[kind]((right) => by[kind]((down) => inside(x + right, y + down))) ? [+(e.dataset.word ?? i)] : [];
})"""


def points_in(page, selector: str, count: int, chance: random.Random) -> list[tuple[float, float]]:
    """Return random points of an element, in the window."""
    box = page.locator(selector).bounding_box()
    return [
        tuple(round(box[a] + chance.uniform(0.01, 0.99) * box[b]) for a, b in (("x", "width"), ("y", "height")))
        for _ in range(count)
    ]


def test_what_is_pressed_in_a_sentence_is_drawn(page, tmp_path, encoder, tokenizer):
    """At 100 points of the drawing and the map, the token or the head under the pointer, with the model's weights."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    text = SENTENCE.format("tired")
    open_figure(page, sentence_view(encoder, tokenizer, text, token="it", layer=3, head=1), tmp_path)
    with torch.no_grad():
        weights = with_means(torch.cat(encoder(**tokenizer(text), output_attentions=True).attentions).double())
    cells = [(layer, head) for layer in range(6) for head in range(13)] + [(6, 12)]
    chance, place, token, chosen = random.Random(0), (3, 1), 10, set()
    for x, y in points_in(page, ".sentence", 60, chance) + points_in(page, ".heads", 40, chance):
        near = [page.evaluate(UNDER, [selector, x, y, True]) for selector in (".word .room", ".heads button")]
        inside = page.evaluate(UNDER, [".word .room, .heads button", x, y, False])
        page.mouse.click(x, y)
        shown = numbers(page, ".word")
        may_be = [(place, i) for i in near[0]] + [(cells[i], token) for i in near[1]] + [(place, token)]
        drawn = [one for one in may_be if close(shown, weights[(*one[0], one[1])])]
        assert drawn, (x, y)
        place, token = drawn[0]
        assert (place, token) in may_be[:-1] or not inside
        chosen.add((place, token))
    assert len(chosen) > 20


@pytest.mark.parametrize("mode", ["where it goes (measured)", "where it comes from (an estimate)"])
def test_a_path_view_names_words_by_pointer_and_click(page, tmp_path, encoder, tokenizer, mode):
    """At 100 points, and for each word that is clicked, with the numbers that the encoder gives without that word."""
    page.set_viewport_size({"width": 1280, "height": 900})
    text, word, is_measured = "The animal was too tired to cross that street.", 5, "goes" in mode
    view = path_view(encoder, tokenizer, text, word=word)
    open_figure(page, view, tmp_path)
    assert view.summary.startswith(f"{page.locator('h1').text_content()}: ")
    page.get_by_role("radio", name=mode).check()
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        others = [ids] + [ids.index_fill(1, torch.tensor([at]), tokenizer.vocab["[MASK]"]) for at in range(ids.size(1))]
        states = [torch.cat(encoder(each, output_hidden_states=True).hidden_states) for each in others]
        turns = torch.stack([1 - torch.cosine_similarity(each, states[0], dim=-1) for each in states[1:]])
    shares = torch.eye(len(turns), dtype=torch.float64)
    for flows in reversed(read_path(encoder, tokenizer, text).flows.double()):
        shares = shares @ flows
    names, named = texts_of(page, ".word .name"), set()
    assert names == [tokenizer.tokens[int(token_id)] for token_id in ids[0]]
    for x, y in points_in(page, ".paths", 100, random.Random(0)):
        page.mouse.move(x, y)
        under = page.evaluate(UNDER, [".word" if is_measured else ".word, .flow[data-word]", x, y, True])
        said = page.locator("#say").text_content()
        lit = [i for i in under if f"“{names[i]}” turns by" in said or f"“{names[i]}” gives" in said]
        if not lit:
            assert word in under or not under or "By the test" in said or "Most turned" in said
            continue
        named.update(lit)
        shown = [float(number) for number in re.findall(r"\d\.\d+", said)]
        wanted = [
            turns[word, :, i].tolist() if is_measured else [float(shares[word, i]), float(turns[i, -1, word])]
            for i in lit
        ]
        assert any(torch.allclose(torch.tensor(shown), torch.tensor(each), atol=0.0051) for each in wanted), said
    assert len(named) > 6
    for word in range(1, len(names) - 1):
        page.locator(".word").nth(word).click()
        page.mouse.move(5, 5)
        check_words_of_path(page, names, word, turns[:, -1], shares, is_measured)


def check_words_of_path(page, names: list[str], word: int, turns, shares, is_measured: bool) -> None:
    """Title and sentence name the words that turn most, or give most, with their numbers (S, S)."""
    marks, title = {"[CLS]", "[SEP]", "."}, page.locator("h1").text_content()
    others = [at for at in range(len(names)) if at != word and names[at] not in marks]
    numbers, tests = (turns[word], turns[word]) if is_measured else (shares[word], turns[:, word])
    most = max(others, key=lambda at: float(numbers[at]))
    if is_measured:
        assert title.startswith(f"With [MASK] for “{names[word]}”, no word turns more than “{names[most]}”: ")
    else:
        own = float(re.search(r"By an estimate, (\S+) of", title)[1])
        assert abs(own - shares[word, word]) < 0.0051
        assert f"vector of “{names[word]}” comes from itself" in title
        assert title.endswith(f" from “{names[most]}”")
    assert abs(float(re.findall(r"\d\.\d\d", title)[-1]) - numbers[most]) < 0.0051
    order = sorted((at for at in range(len(names)) if at != word), key=lambda at: -float(tests[at]))
    order = [at for at in order if at in others][:3] + [at for at in order if at not in others][:1]
    listed = re.findall(r"“([^”]+)” (\d\.\d\d)", page.locator("#say").text_content())
    assert [name for name, _ in listed] == [names[at] for at in order]
    assert all(abs(float(n) - tests[at]) < 0.0051 for (_, n), at in zip(listed, order, strict=True))


@pytest.fixture
def measured(monkeypatch):
    """Return `measure_cuts`, which takes seconds, and keep what it finds for the view."""
    measure = functools.cache(measure_cuts)
    monkeypatch.setattr("views.sentence.measure_cuts", measure)
    return measure


def test_each_cut_is_drawn_as_it_was_measured(page, tmp_path, encoder, tokenizer, measured):
    """Of 12 heads and words in each cut: the degrees, the share that is filled, and the title."""
    text = "The animal was too tired."
    turns, weights = measured(encoder, tokenizer, (text,), None), encoder(**tokenizer(text), output_attentions=True)
    open_figure(page, sentence_view(encoder, tokenizer, text, token=2, layer=4, head=5, cuts=True), tmp_path)
    title, cores = page.locator("h1"), page.locator(".core")
    expect(title).to_contain_text("Head 4-5, link of “animal” to “[CLS]”")
    for cut, name in enumerate(["link left out", "link left out, its weight shared"]):
        page.get_by_label(name, exact=True).check()
        for layer, head, token in random.Random(cut).sample([*itertools.product(range(6), range(12), range(8))], 12):
            page.locator(".heads [role=radio]").nth(13 * layer + head).click()
            page.locator(".word").nth(token).click()
            given, goal = weights.attentions[layer][0, head, token], turns[cut, layer, head, token].tolist()
            read = "(all) => all.map((core) => [core.dataset.turn, core.getAttribute('stroke-width')].map(Number))"
            drawn = cores.evaluate_all(read)
            assert [turn for turn, _ in drawn] == pytest.approx(goal, abs=0.006)
            whole = float(page.locator(".sentence").get_attribute("data-whole"))
            widths = [min(whole * share, whole * turn / 40) for share, turn in zip(given.tolist(), goal, strict=True)]
            assert [width for _, width in drawn] == pytest.approx(widths, abs=0.05)
            most = int(given.argmax())
            expect(title).to_contain_text(f"({given[most]:.2f})")
            said = re.search(r"left out, its vector turns by (.*)°; shared, by (.*)°", title.text_content())
            assert [*map(float, said.groups())] == pytest.approx(turns[:, layer, head, token, most].tolist(), abs=0.056)
            longest = float(numbers(page, ".heads .cell").nan_to_num().max())
            assert float(page.locator(".ends").text_content()[2:].strip(" °")) == pytest.approx(longest, abs=0.051)
    page.locator(".heads [role=radio]").nth(12).click()  # a mean of heads has no cut
    expect(title).to_contain_text("looks most at")
    page.locator(".heads [role=radio]").first.click()
    page.get_by_label("no", exact=True).check()
    expect(title).to_contain_text("looks most at")
    assert page.heard == []


def test_the_last_vector_of_one_word_is_named(page, tmp_path, encoder, tokenizer, measured):
    text = "It was too tired."
    view = sentence_view(encoder, tokenizer, text, token="it", layer=4, head=5, cuts="last")
    open_figure(page, view, tmp_path)
    turns, weights = measured(encoder, tokenizer, (text,), 1), encoder(**tokenizer(text), output_attentions=True)
    most = int(weights.attentions[4][0, 5, 1].argmax())
    assert view.summary.startswith(page.locator("h1").text_content())
    left, shared = (round(turn, 2) for turn in turns[:, 4, 5, 1, most].tolist())  # as they are packed
    for name in ("link left out", "link left out, its weight shared"):
        page.get_by_label(name, exact=True).check()
        said = f"left out, the last vector turns by {left:.1f}°; shared, by {shared:.1f}°"
        expect(page.locator("h1")).to_contain_text(said)
        expect(page.locator("#say")).to_contain_text("how far the last vector of “it” turns")
    page.locator(".word").nth(2).click()  # of which nothing was measured
    expect(page.locator("h1")).to_contain_text("“was” looks most at")
