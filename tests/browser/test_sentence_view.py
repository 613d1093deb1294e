"""The sentence view: ribbons, two texts in one picture, whole words, other scripts and long texts."""

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
    texts_of,
)
from views import sentence_view, whole_words
from views.models import tokenize_for_view


def test_ribbons_morph_between_the_weights_of_two_texts(timed, tmp_path):
    """On the way, each ribbon is between its two widths, and together they stay as wide as 1."""
    open_figure(timed, FIGURES["sentence_view"].make(NAMES), tmp_path)
    timed.clock.pause_at(timed.evaluate("Date.now() / 1000 + 1"))
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


def test_a_long_sentence_of_many_heads_fits_a_phone(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 900})
    scores = torch.randn(2, 1, 16, 128, 128, generator=torch.Generator().manual_seed(0))
    open_figure(page, sentence_view(scores.softmax(dim=-1), ["Donaudampfschifffahrt", "a"] * 64), tmp_path)
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert close(numbers(page, ".word"), scores[0, 0, 0, 0].softmax(dim=0))
    page.locator(".cell:not(.last)").last.click()
    settle(page)
    assert close(ribbon_widths(page), scores[1, 0, 15, 0].softmax(dim=0))
