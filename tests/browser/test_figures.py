"""Draggable figures show torch's numbers after any use by hand."""

import json
import os
import random
from collections import Counter
from itertools import pairwise

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from tests.browser.figure_examples import (
    FIGURES,
    NAMES,
    SENTENCES,
    Finger,
    check_addition,
    close,
    drag,
    handle_positions,
    learn,
    middle,
    numbers,
    open_figure,
    ribbon_widths,
    settle,
    slide_pin,
    some_reviews,
    texts_of,
    thumb,
)
from views import figures, sentence_view, whole_words
from views.models import tokenize_for_view, visible
from views.page import View

HOSTILE = ["</script>", "<img src=x onerror=alert(1)>", "$x$ & \u2028"]
NAMES_BEGIN_WITH_TEXT = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # off in axe unless requested
STATES = int(os.environ.get("STATES", 10))  # in which each figure is compared; `make test-all` sets 50
every_figure = pytest.mark.parametrize("name", FIGURES)


@every_figure
def test_states_reached_by_hand_show_torchs_numbers(page, tmp_path, name):
    page.emulate_media(reduced_motion="reduce")  # no time is spent on moves
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    chance = random.Random(0)
    for _ in range(STATES):
        FIGURES[name].use(page, chance)
    assert page.heard == []


CHANGES = {  # an element, and the key that changes its figure
    "attention_in_the_plane": ("[type=checkbox]", "Space"),
    "sharpness": ("button:text('× 1')", "Enter"),
    "next_token": ("[type=range]", "ArrowRight"),
    "sum_and_scale": ("[type=range]", "ArrowRight"),
    "mask_painter": ("[value=padding]", "Space"),
    "split_and_merge": (".steps button:enabled", "Enter"),
    "graph_walk": (".steps input", "End"),
    "rotary_turn": ("[type=range]", "ArrowRight"),
    "longest_match": (".steps button:enabled", "Enter"),
    "merges": (".steps button:enabled", "Enter"),
    "why_near": ("[type=radio]:not(:checked)", "Space"),
    "sentence_view": ("[value=again]", "Space"),
}
DRAWN = "document.getElementById('figure').innerHTML"


@every_figure
def test_a_change_is_a_move_that_ends_at_torchs_numbers(browser, tmp_path, name):
    """It takes 300 to 700 ms, by the page's own clock; under reduced motion it takes none."""
    selector, key = CHANGES[name]
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.clock.install()
        for motion in ("no-preference", "reduce"):
            page.emulate_media(reduced_motion=motion)
            open_figure(page, FIGURES[name].make(NAMES), tmp_path)
            page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
            page.locator(selector).first.press(key)
            if name == "longest_match":  # the first try is the whole word, from nothing
                page.locator(selector).last.press(key)
            assert page.locator("html.moving").count() == (motion != "reduce")
            seen = {page.evaluate(DRAWN)}
            for _ in range(3):
                page.clock.run_for(100)
                seen.add(page.evaluate(DRAWN))
            assert page.locator("html.moving").count() == (motion != "reduce")
            assert len(seen) == (4 if motion != "reduce" else 1)
            page.clock.run_for(400)
            assert page.locator("html.moving").count() == 0
            page.clock.resume()
        page.emulate_media(reduced_motion="no-preference")
        for _ in range(3):
            FIGURES[name].use(page, random.Random(0))


@every_figure
def test_nothing_lags_behind_a_drag(page, tmp_path, name):
    page.emulate_media(reduced_motion="no-preference")
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    for one in page.locator("[type=range]:visible, .handle:visible").all():
        start = thumb(one) if one.get_attribute("type") else middle(one)
        page.mouse.move(*start)
        page.mouse.down()
        for by in (-9, 9, -18):
            page.mouse.move(start[0] + by, start[1] + 1)
            assert page.locator("html.moving").count() == 0
        page.mouse.up()


@pytest.mark.parametrize("width", [1280, 640, 390])  # 640: a window of 1,280 at 200 %
@every_figure
def test_figure_is_accessible_at_every_width(page, tmp_path, name, width):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    for scheme in ("light", "dark") if width != 640 else ():  # axe-core finds the same at all widths of a layout
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(f"html.{scheme}")).to_be_attached()
        assert Axe().run(page, options=NAMES_BEGIN_WITH_TEXT).response["violations"] == []
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    # radio buttons and checkboxes are as large as their labels
    pressed = "button, select, .handle, label, input:not([type=radio], [type=checkbox])"
    boxes = [box for one in page.locator(pressed).all() if (box := one.bounding_box())]  # None for hidden elements
    assert page.locator(":is([type=radio], [type=checkbox]):not(label *)").count() == 0
    assert min(min(box["width"], box["height"]) for box in boxes) >= 24


@every_figure
def test_a_finger_moves_the_figure_and_not_the_page(browser, tmp_path, name):
    """On a phone, in a page that is longer than the window, as on the site."""
    view = FIGURES[name].make(NAMES)
    view = View(view.summary, view.page.replace("</main>", "</main><p style='height: 900px'>", 1))
    with browser.new_page(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True) as page:
        open_figure(page, view, tmp_path)
        finger = Finger(page)
        for touch in FIGURES[name].touch:
            touch(page, finger)
        assert finger.scrolled == 0
        page.evaluate("scrollTo(0, 0)")
        finger.drag((385, 650), (385, 500))  # the control: beside the figure, the page scrolls
        assert finger.scrolled > 50


@every_figure
def test_hostile_names_are_shown_and_run_nothing(page, tmp_path, name):
    view = FIGURES[name].make(HOSTILE)
    open_figure(page, view, tmp_path)
    assert page.locator("#figure img, #figure script").count() == 0
    if name == "graph_walk":  # which names the nearest texts when it has met them
        page.locator(".steps input").press("End")
    named = page.locator("#figure [aria-label]").evaluate_all("(all) => all.map((e) => e.ariaLabel)")  # of cut names
    text = " ".join([page.locator("#figure").text_content(), *named])
    assert all(part in text or visible(part) in text for part in HOSTILE)
    page.set_content(view._repr_html_())
    page.frame_locator("iframe").locator("#figure > *").first.wait_for()
    assert page.locator("body script").count() == 0
    assert page.heard == []


@every_figure
def test_frame_fits_figure_and_replaces_picture(page, tmp_path, name):
    file = tmp_path / "frame.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{FIGURES[name].make(NAMES)._repr_html_()}", "utf-8")
    page.goto(file.as_uri())
    expect(page.locator("p")).to_be_hidden()
    inside = page.frame_locator("iframe").locator("html")
    assert inside.evaluate("(e) => e.scrollHeight - e.clientHeight") == 0
    assert page.locator("iframe").bounding_box()["height"] < 900


@every_figure
def test_figure_prints_without_help(page, tmp_path, name):
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    page.emulate_media(media="print")
    assert page.locator("#help").is_hidden()
    assert page.locator("#figure").is_visible()
    page.emulate_media(media="screen")


@every_figure
def test_figure_is_small_and_self_contained(name):
    page = FIGURES[name].make(NAMES).page
    drawing = (figures.FOLDER / f"{name}.js").read_text("utf-8")
    assert len(drawing.encode()) <= 15_000
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_merges_are_those_of_the_librarys_trainer(page, tmp_path):
    """In a tie, the trainer prefers older pieces, in the order of the characters that it is given."""
    texts = [text for text in some_reviews()[:10] if text.isascii()]
    open_figure(page, figures.merges(texts, 60), tmp_path)
    page.locator("input[type=range]").press("End")
    counts = Counter(word for text in texts for word in figures.split_words(text) if word.isalpha())
    single = learn(counts, 0)[0][1]
    single += sorted(set("".join(counts)) - set(single))  # the trainer also adds each character without ##
    trained = Tokenizer(WordPiece())
    trained.pre_tokenizer = WhitespaceSplit()
    trainer = WordPieceTrainer(vocab_size=len(single) + 60, special_tokens=single, show_progress=False)
    trained.train_from_iterator([" ".join([word] * count) for word, count in counts.items()], trainer=trainer)
    pieces = sorted(trained.get_vocab(), key=trained.get_vocab().get)
    assert texts_of(page, ".kept .piece") == pieces[len(single) :]
    assert len(pieces) == len(single) + 60


def test_changed_value_marks_rows_that_see_it(page, tmp_path):
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


def test_a_head_under_another_arrow_can_still_be_taken(page, tmp_path):
    """The average covers the query when that points to a key, which is where readers drag it."""
    keys = [[2, 2.5], [-2.5, 1], [1.5, -2.5]]
    open_figure(page, figures.attention_in_the_plane([0.6, 0.9], keys, tokens=NAMES, asking=1), tmp_path)
    query, box = page.locator(".handle").last, page.locator("svg").bounding_box()
    for along in (0.6, 0.4, 0.7):  # of the way to the key of “time”
        x, y = (box[corner] + box["width"] * (5 + at * along) / 10 for corner, at in (("x", 2), ("y", -2.5)))
        drag(page, query, x, y)
        middle = query.bounding_box()
        assert abs(middle["x"] + middle["width"] / 2 - x) < 6
        assert abs(middle["y"] + middle["height"] / 2 - y) < 6


def test_where_both_move_the_arrows_turn_and_the_product_stays(page, tmp_path):
    open_figure(page, figures.rotary_turn(), tmp_path)
    query, key = page.locator(".strip input").all()
    product, heads = page.locator("b[data-value]"), page.locator(".handle")
    first, positions_before = float(product.get_attribute("data-value")), handle_positions(page)
    page.get_by_role("checkbox").check()
    slide_pin(page, key, 8)
    assert [query.input_value(), key.input_value()] == ["11", "8"]
    assert float(product.get_attribute("data-value")) == pytest.approx(first, abs=1e-9)
    assert (handle_positions(page) - positions_before).abs().amax(dim=1).min() > 0.5
    assert "and so does their product" in page.locator("#say").text_content()
    slide_pin(page, key, 11)  # the query has no room
    assert [query.input_value(), key.input_value()] == ["11", "8"]
    page.get_by_role("checkbox").uncheck()
    heads.first.press("ArrowDown")
    query.press("Home")
    assert "The distance changed" in page.locator("#say").text_content()
    assert page.locator("#figure > p").text_content().endswith("distance −8")


@pytest.mark.parametrize("width", [1280, 390])
def test_sixteen_long_words_fit_and_pin_points_to_word(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_figure(page, figures.rotary_turn(tokens=["Donaudampfschifffahrt", "answering"] * 8), tmp_path)
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    query, _ = page.locator(".strip input").all()
    for at in (0, 15, 9):
        box = page.locator(".cells span").nth(at).bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, query.bounding_box()["y"] + 10)
        assert query.input_value() == str(at)


def test_long_vectors_show_eight_numbers_and_a_button(page, tmp_path):
    word, position, kind = torch.randn(5, 40, generator=torch.Generator().manual_seed(3)).split([2, 2, 1])
    open_figure(page, figures.sum_and_scale(word, position, kind, NAMES[:2]), tmp_path)
    button = page.get_by_role("button")
    for count, name in ((8, "now all 40 numbers"), (40, "the first 8 alone"), (8, "now all 40 numbers")):
        assert button.text_content() == name
        total = (word[0] + position[1] + kind[0])[:count]
        shown = page.locator("svg[data-values]").evaluate_all("(all) => all.map((e) => JSON.parse(e.dataset.values))")
        assert torch.allclose(torch.tensor(shown[3]), total, atol=1e-6)
        assert torch.allclose(
            torch.tensor(shown[4]), torch.nn.functional.layer_norm(total, [count], eps=1e-12), atol=1e-5
        )
        assert page.get_by_role("slider").count() == (5 if count == 40 else 1)
        button.click()


def test_the_words_numbers_are_changed_by_keys_too(page, tmp_path):
    open_figure(page, FIGURES["sum_and_scale"].make(NAMES), tmp_path)
    strip = page.get_by_role("spinbutton")
    first, at = (
        json.loads(strip.get_attribute("data-values")),
        int(strip.get_attribute("aria-valuetext").split()[1][:-1]),
    )
    strip.press("ArrowLeft" if at else "ArrowRight")
    strip.press("ArrowUp")
    at += -1 if at else 1
    moved = [new - old for new, old in zip(json.loads(strip.get_attribute("data-values")), first, strict=True)]
    assert [index for index, by in enumerate(moved) if by > 0] == [at]
    assert strip.get_attribute("aria-valuetext").startswith(f"number {at}: ")


def test_on_a_phone_the_arrow_between_two_averages_is_seen(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 900})
    open_figure(page, figures.mask_painter(["time", "flies", "like", "an", "arrow"]), tmp_path)
    page.locator("[aria-pressed]").nth(9).click()
    gaps = page.locator(".moved").evaluate_all("""(rows) => rows.map((row) => {
      const range = document.createRange();
      range.selectNodeContents(row.querySelector(".old"));
      const text = range.getBoundingClientRect(), next = row.querySelector(".average").getBoundingClientRect();
      return [text.left - row.querySelectorAll(".cell")[4].getBoundingClientRect().right, next.left - text.right];
    })""")
    assert len(gaps) == 1
    assert min(gaps[0]) >= 0


def test_three_largest_shares_are_marked_until_a_choice(page, tmp_path):
    open_figure(page, FIGURES["why_near"].make(NAMES), tmp_path)
    lines = page.locator("line").evaluate_all(
        "(all) => all.map((e) => [Math.abs(e.dataset.value), e.classList.contains('dim')])"
    )
    strong = [share for share, dim in lines if not dim]
    assert sorted(strong) == sorted(share for share, _ in lines)[-3:]
    shown = [abs(float(text.replace("\u2212", "-"))) for text in page.locator(".share").all_text_contents()]
    assert shown == pytest.approx(strong, abs=5.1e-4)
    page.locator(".word").first.hover()
    assert all(
        text == "hidden"
        for text in page.locator(".share").evaluate_all("(all) => all.map((e) => getComputedStyle(e).visibility)")
    )
    assert page.locator("line:not(.dim)").count() == len(NAMES) - 1


def test_few_bars_are_drawn_whole(page, tmp_path):
    """No bar is higher than half of its strip."""
    open_figure(page, FIGURES["sum_and_scale"].make(NAMES), tmp_path)
    heights = page.locator(".row svg path[fill]").evaluate_all(
        "(all) => all.flatMap((e) => [...(e.getAttribute('d') ?? '').matchAll(/v(-?[\\d.e-]+)h/g)].map((m) => +m[1]))"
    )
    assert len(heights) >= 32
    assert max(map(abs, heights)) <= 1 + 1e-9


@pytest.mark.parametrize("width", [1280, 390])
def test_numbers_to_add_do_not_touch(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 900})
    generator = torch.Generator().manual_seed(3)
    word, position, kind = (0.1 * torch.randn(5, 40, generator=generator)).split([2, 2, 1])
    open_figure(page, figures.sum_and_scale(word, position, kind, NAMES[:2]), tmp_path)
    check_addition(page)
    rows = page.locator(".written").evaluate_all("""(rows) => rows.map((row) => [...row.children].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const { left, right } = range.getBoundingClientRect();
      return [left, right];
    }))""")
    assert [len(row) for row in rows] == [8] * 5
    assert min(after[0] - before[1] for row in rows for before, after in pairwise(row)) >= 3


def test_a_hundred_tokens_are_drawn_at_first_and_after_each_change(page, tmp_path):
    open_figure(page, FIGURES["next_token"].make(NAMES), tmp_path)
    tallies = page.locator("tbody td:last-child")
    before = numbers(page, "tbody td:last-child")
    assert before.sum() == 100
    page.get_by_role("slider").first.press("Home")  # the lowest temperature
    expect(tallies.first).to_have_text("100")
    assert numbers(page, "tbody td:last-child").sum() == 100
    assert before[0] < 100


def test_ribbons_morph_between_the_weights_of_two_texts(browser, tmp_path):
    """On the way, each ribbon is between its two widths, and together they stay as wide as 1."""
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.clock.install()
        open_figure(page, FIGURES["sentence_view"].make(NAMES), tmp_path)
        page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
        page.get_by_role("radio", name=NAMES[2], exact=True).check()
        page.locator(".word").nth(1).click()
        page.locator(".cell").nth(4).click()
        page.clock.run_for(600)
        one, other = SENTENCES[:, 1, 0, 1]
        assert (one - other).abs().min() > 0.01  # the control: every ribbon has to change
        assert close(ribbon_widths(page), one)
        page.get_by_role("radio", name="again", exact=True).check()
        page.clock.run_for(200)
        between = ribbon_widths(page)
        assert ((between - one) * (other - between) > 0).all()
        assert abs(between.sum() - 1) < 1e-6
        page.clock.run_for(400)
        assert close(ribbon_widths(page), other)


SENTENCE = "The animal didn't cross the street because it was too {}."


@pytest.mark.parametrize("width", [1280, 390])
def test_a_sentence_is_a_line_or_a_column_in_reading_order(page, tmp_path, width, encoder, tokenizer):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(reduced_motion="reduce")
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
    assert close(numbers(page, ".cell"), weights[:, :, 10, 2])
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
    page.emulate_media(reduced_motion="reduce")
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
    assert close(numbers(page, ".cell"), moved)
    across = "top" if width == 1280 else "left"
    sides = [page.locator(side).first.evaluate(f"(e) => e.getBoundingClientRect().{across}") for side in SIDES]
    assert sides[0] < sides[1]
    assert texts_of(page, ".differs") == [f"tired unflappable {wanted[0][13]:.2f} {wanted[1][13]:.2f} "]
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    page.get_by_role("radio", name="unflappable", exact=True).check()
    assert close(numbers(page, ".word"), wanted[1])
    page.locator(".word[tabindex='0']").press("ArrowRight")
    assert close(numbers(page, ".word"), whole_words(other[3, 1], ids)[11])


def test_whole_words_are_one_switch_away(page, tmp_path, encoder, tokenizer):
    page.emulate_media(reduced_motion="reduce")
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
    page.emulate_media(reduced_motion="reduce")
    open_figure(page, sentence_view(scores.softmax(dim=-1), tokens, token=1), tmp_path)
    lefts = [word.bounding_box()["x"] for word in page.locator(".word").all()]
    assert sorted(range(len(tokens)), key=lefts.__getitem__) == order
    assert close(ribbon_widths(page), scores[0, 0, 0, 1].softmax(dim=0))
    page.locator(".word[tabindex='0']").press("ArrowLeft")
    expect(page.locator(".word").nth(order[max(0, order.index(1) - 1)])).to_have_attribute("aria-checked", "true")


def test_a_text_of_512_tokens_shows_those_around_the_chosen_one(page, tmp_path):
    scores = torch.randn(1, 1, 2, 512, 512, generator=torch.Generator().manual_seed(0))
    weights = scores.mul(3).softmax(dim=-1)[0, 0]
    page.emulate_media(reduced_motion="reduce")
    open_figure(page, sentence_view(weights[None, None], [f"w{i}" for i in range(512)], token=300), tmp_path)
    for token, first in ((300, 236), (299, 235)):
        shares = weights[0, token]
        wanted = torch.cat([shares[:first].sum()[None], shares[first : first + 128], shares[first + 128 :].sum()[None]])
        assert texts_of(page, ".name")[:2] == [f"{first} before", f"w{first}"]
        assert (numbers(page, ".word") - wanted).abs().max() < 2e-3
        assert abs(ribbon_widths(page).sum() - 1) < 0.01
        page.locator(".word[tabindex='0']").press("ArrowLeft")
    page.locator(".word").last.click()
    assert texts_of(page, ".word[aria-checked='true'] .name") == ["w362"]


def test_a_long_sentence_of_many_heads_fits_a_phone(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 900})
    scores = torch.randn(2, 1, 16, 128, 128, generator=torch.Generator().manual_seed(0))
    open_figure(page, sentence_view(scores.softmax(dim=-1), ["Donaudampfschifffahrt", "a"] * 64), tmp_path)
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert close(numbers(page, ".word"), scores[0, 0, 0, 0].softmax(dim=0))
    page.locator(".cell").last.click()
    settle(page)
    assert close(ribbon_widths(page), scores[1, 0, 15, 0].softmax(dim=0))
