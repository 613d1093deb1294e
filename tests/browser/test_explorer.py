"""explorer.html in a real browser: torch's numbers, your own text, and no requests to elsewhere."""

import re
import shutil
import time

import pytest
import torch
from playwright.sync_api import expect

from explorer import explorer
from publish.server import serve
from tests.browser.explorer_page import (
    BUILT,
    PATIENCE,
    WIDTHS,
    address,
    assert_numbers,
    at_first,
    axe_violations,
    drawn,
    encoder,
    last,
    run_timers,
    running,
    send,
    site,
)
from tests.texts import WORDS, generated_strings, in_words, telling_characters
from views.figures import splitting_rules, vocabulary_lines
from views.page import own_text

PAIR = ("I called Ian.", "I got his answering machine.")
TIRED = "the animal didn't cross the street because it was too tired"
HOSTILE = "<img src=x onerror=alert(1)> </script><script>alert(2) ${1} &amp;"
pytestmark = pytest.mark.long


def test_the_first_paint_needs_no_model(page, address):
    """Opening the page fetches only the page itself and the picture at its top, and draws the saved sentence."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    start = time.perf_counter()
    page.goto(address)
    page.locator("#final canvas").wait_for()
    assert time.perf_counter() - start < 10  # a second where nothing else runs
    assert asked == at_first(address)
    assert page.heard == []


def test_the_saved_sentence_has_torchs_numbers(page, address, encoder, tokenizer, last):
    page.goto(address)
    for layer, head in (explorer.SHOWN.values(), last):
        assert_numbers(page, encoder, tokenizer, [explorer.SENTENCE], layer, head, 1e-5)
    assert page.heard == []


@pytest.mark.parametrize(
    "texts", [("fruit flies like a banana",), PAIR, ("Ça va? 北京 déjà-vu 👍", "[MASK] is unbelievably good")]
)
def test_a_readers_own_text_has_torchs_numbers(running, encoder, tokenizer, last, texts):
    page, _ = running
    assert "tokens, computed here in" in send(page, *texts)
    for layer, head in ((0, 2), (1, 7), last):
        assert_numbers(page, encoder, tokenizer, texts, layer, head, 0.01)


def test_an_answer_comes_soon_while_one_types(running):
    """Typing needs no Enter, and only the newest text is answered."""
    page, _ = running
    page.locator("#second").fill("")
    page.locator("#first").fill("")
    page.locator("#first").press_sequentially("the cat sat", delay=20)
    expect(page.locator("#tokens b")).to_have_text(["[CLS]", "the", "cat", "sat", "[SEP]"], timeout=PATIENCE)
    said = send(page, "word " * (explorer.LIMITS["tokens"] - 2))
    assert said.startswith(f"{explorer.LIMITS['tokens']} tokens")
    seconds = float(said.split()[-2])
    assert 0 < seconds < 10  # a second where nothing else runs


def test_nothing_is_fetched_before_a_request(page, address):
    """Typing does not fetch 46 MB, but Enter does, and from then on typing is answered."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.locator("#first").press("End")
    page.locator("#first").press_sequentially(" so", delay=20)
    run_timers(page)
    assert asked == at_first(address)
    page.locator("#first").press("Enter")
    expect(page.locator("#status")).to_contain_text("computed here", timeout=PATIENCE)
    assert len(asked) > 1
    page.locator("#first").press_sequentially(" far")
    expect(page.locator("#tokens b").nth(-2)).to_have_text("far", timeout=PATIENCE)


@pytest.mark.parametrize("way", ["button", "example"])
def test_a_button_is_a_request(page, address, way):
    page.goto(address)
    page.locator({"button": "form button[type=submit]", "example": "#examples button"}[way]).first.click()
    expect(page.locator("#status")).to_contain_text("computed here", timeout=PATIENCE)


def test_the_token_that_is_followed_stays_while_the_text_changes(running):
    """The token is followed to its new position; if it disappears, token 2 is, until it comes back."""
    page, _ = running

    def followed(words: int) -> str:
        expect(page.locator("#tokens b")).to_have_count(words, timeout=PATIENCE)
        return page.locator("#token option:checked").inner_text()

    send(page, TIRED)
    page.locator("#tokens button", has_text="it").last.click()
    assert followed(15) == "10 it"
    first = page.locator("#first")
    first.press("End")
    for _ in "tired":
        first.press("Backspace")
    followed(14)  # a pause, which is answered
    first.press_sequentially("wide", delay=20)
    assert followed(15) == "10 it"
    assert page.locator("#tokens b").all_text_contents()[-2] == "wide"
    assert "“it” looks most at" in page.locator("#looks").inner_text()
    first.press("Home")
    first.press_sequentially("now ", delay=20)
    assert followed(16) == "11 it"
    send(page, "the animal was too tired")
    assert followed(7) == "2 animal"
    send(page, TIRED)
    assert followed(15) == "10 it"


def test_repeated_token_is_named_with_its_position(running):
    page, _ = running
    send(page, "word by word")
    page.locator("#weights tbody td").nth(1 * 5 + 3).hover()
    expect(page.locator("#tip")).to_contain_text(": word at 1 → word at 3 ")
    page.locator("#tokens button").nth(3).click()
    assert page.locator("#looks").inner_text().startswith("“word” at 3 looks most at ")
    labels = page.locator("#tokens button").evaluate_all("(all) => all.map((e) => e.ariaLabel.split(', ')[0])")
    assert labels == ["[CLS]", "word at 1", "by", "word at 3", "[SEP]"]


def test_a_pair_has_numbers_and_a_long_text_no_empty_headings(running):
    page, _ = running
    cell = page.locator("#weights tbody td").first
    send(page, *PAIR)
    assert float(cell.evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")) > 10
    send(page, "a " * 30)
    assert float(cell.evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)")) == 0
    tallest = "(e) => Math.max(...[...e.querySelectorAll('span')].map((s) => s.offsetHeight))"
    heading = page.locator("#weights thead")
    assert heading.bounding_box()["height"] <= heading.evaluate(tallest) + 12


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("", ""), "There is no text yet: type a sentence."),
        (("  ", " "), "There is no text yet: type a sentence."),
        (("\u200b", ""), "No token is left of this text: type a word."),
        (("word " * 47, ""), "This text has 49 tokens, and the page draws 48 at most: shorten it."),
        (("a" * 2001, ""), "This text has more than 2000 characters: shorten it."),
    ],
)
def test_undrawable_text_shows_error_and_keeps_last_view(running, texts, said):
    page, _ = running
    send(page, "good")
    assert send(page, *texts) == said
    assert page.locator("#tokens b").all_text_contents() == ["[CLS]", "good", "[SEP]"]


def test_hostile_text_is_text(running, encoder, tokenizer):
    page, _ = running
    page.heard.clear()
    before = page.evaluate("document.querySelectorAll('img, script, iframe, svg').length")
    send(page, HOSTILE, "<b>bold</b>")
    assert_numbers(page, encoder, tokenizer, (HOSTILE, "<b>bold</b>"), 0, 0, 0.01)
    page.locator("#weights tbody td").nth(5).hover()
    assert page.evaluate("document.querySelectorAll('img, script, iframe, svg').length") == before
    assert page.heard == []


def test_no_request_leaves_the_page(running, address, site):
    """All requests go to the page's folder, and its policy blocks others, which the control sends."""
    page, asked = running
    folder = address.removesuffix("explorer.html")
    names = {url.removeprefix(folder) for url in asked if not url.startswith("blob:")}
    files = ("ort.mjs", "ort.wasm.gzip", "encoder.onnx.gzip", "vocabulary.txt")
    assert names == {
        "explorer.html",
        f"{explorer.ASSETS}/{explorer.PICTURE}",
        *(f"{explorer.ASSETS}/{name}" for name in files),
    }
    refused = """(url) => fetch(url, { mode: "no-cors" }).then(() => "came", () => "refused")"""
    assert page.evaluate(refused, folder) == "came"
    worker = """(url) => new Promise((resolve) => {
      const answers = `.then(() => postMessage("came"), () => postMessage("refused"))`;
      const source = `fetch("${url}", { mode: "no-cors" })${answers}`;
      new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" })
        .onmessage = ({ data }) => resolve(data);
    })"""
    assert page.evaluate(worker, folder) == "came"
    with serve(site) as elsewhere:  # the same files at another port
        assert page.evaluate(refused, f"{elsewhere}/") == "refused"
        assert page.evaluate(worker, f"{elsewhere}/") == "refused"
    page.heard.clear()


def test_page_opens_with_a_sentence_that_can_be_changed(page, address, encoder, tokenizer):
    page.goto(address)
    opening, picture = page.locator("#opening"), page.frame_locator("#opening iframe")
    texts = [explorer.OPENING["text"].format(word) for word in explorer.OPENING["words"]]
    layer, head = picture.locator("#data").evaluate("(e) => Object.values(JSON.parse(e.textContent).first).slice(1)")
    for text, word in list(zip(texts, explorer.OPENING["words"], strict=True))[::-1]:
        picture.get_by_role("radio", name=word, exact=True).check()
        picture.locator("html.moving").wait_for(state="detached")
        with torch.no_grad():
            weights = encoder(**tokenizer(text), output_attentions=True).attentions[layer][0, head, 10]
        shown = picture.locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
        assert torch.allclose(torch.tensor(shown), weights, atol=1e-5)
    inside = picture.locator("html").evaluate("(e) => e.scrollHeight - e.clientHeight")
    assert inside == 0  # the frame is as high as the picture
    assert opening.bounding_box()["y"] < page.locator("#form").bounding_box()["y"]
    assert opening.locator("p").is_hidden()
    assert page.heard == []


def test_page_from_folder_explains_why_it_is_static(page, site, encoder, tokenizer):
    page.goto((site / "explorer.html").as_uri())
    assert "opened from a folder" in page.locator("#promise").inner_text()
    assert "python -m http.server --bind 127.0.0.1 -d site" in page.locator("#promise").inner_text()
    assert page.locator("#first").is_disabled()
    assert_numbers(page, encoder, tokenizer, [explorer.SENTENCE], 2, 3, 1e-5)
    assert page.heard == []


def test_missing_files_are_named_and_fetched_on_request(page, site, tmp_path):
    folder = shutil.copytree(site / explorer.ASSETS, tmp_path / explorer.ASSETS)  # other processes use the original
    shutil.copy(site / "explorer.html", tmp_path)
    encoder = folder / "encoder.onnx.gzip"
    hidden = encoder.rename(encoder.with_suffix(".hidden"))
    with serve(tmp_path) as origin:
        page.goto(f"{origin}/explorer.html")
        said = send(page, "good")
        page.locator("#pair-examples button").first.click()
        expect(page.locator("#pair-status")).to_contain_text("is not there (404)", timeout=PATIENCE)
        hidden.rename(encoder)
        assert "encoder.onnx.gzip is not there (404)" in said
        page.locator("#first").press_sequentially("ness")
        run_timers(page)
        assert page.locator("#status").inner_text() == said  # only a request tries again
        page.locator("#pair-examples button").first.click()
        page.locator("#pair-examples button").nth(1).click()  # before the model is there: the last one counts
        expect(page.locator("#pair .pair-now").first).to_have_text("oak → dog", timeout=PATIENCE)
        expect(page.locator("#pair .pair-held").first).to_have_text("control: oak → pine")
        assert "computed here" in send(page, "good")


def test_token_layer_and_head_are_chosen_with_arrow_keys(page, address, last):
    page.goto(address)
    page.locator("#tokens button").nth(2).press("ArrowRight")
    assert page.locator("#token").input_value() == "3"
    assert page.locator("#tokens [aria-checked=true]").get_attribute("aria-label") == "like, id 2066"
    page.locator("#heads [aria-checked=true]").press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert (page.locator("#layer").input_value(), page.locator("#head").input_value()) == ("1", "3")
    assert "In layer 1, head 3" in page.locator("#station-scores p").first.inner_text()
    expect(page.locator("#heads [aria-checked=true]")).to_be_focused()
    page.locator("#heads button").last.click()
    assert (page.locator("#layer").input_value(), page.locator("#head").input_value()) == tuple(map(str, last))


def test_tooltip_shows_numbers_on_hover_and_focus(page, address, encoder):
    page.goto(address)
    tip, weights = page.locator("#tip"), drawn(page, "weights").view(7, 7)
    page.locator("#weights tbody td").nth(2 * 7 + 1).hover()
    expect(tip).to_have_text(f"layer 0, head 2: flies → time {weights[2, 1]:.3f}")
    page.locator("#weights tbody td").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(tip).to_have_text(f"layer 0, head 2: time → time {weights[1, 1]:.3f}")
    page.keyboard.press("Enter")
    assert page.locator("#token").input_value() == "1"
    vectors = drawn(page, "final").view(7, -1)
    page.locator("#final canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    H = encoder.config.hidden_size
    expect(tip).to_have_text(f"time, number {H - 1}: {vectors[1, -1]:.3f}".replace("-", "−"))
    expect(page.locator("#spoken")).to_have_text(tip.inner_text())


def test_the_tokenizer_gives_our_ids(page, tokenizer):
    """It agrees on generated strings, chosen words and special characters, unlike a naive tokenizer."""
    texts = generated_strings(2000 if BUILT else 400) + WORDS + in_words(telling_characters())
    wanted = [tokenizer.encode(text) for text in texts]
    page.add_script_tag(content=own_text("draggable/tokenizer.js"))
    start = """([vocabulary, rules]) => {
      window.encode = makeTokenizer(vocabulary, rules);
      window.naive = makeTokenizer(vocabulary, { ...rules, later: [] });
    }"""
    page.evaluate(start, [vocabulary_lines(tokenizer.vocab), splitting_rules(tokenizer.lowercase)])
    found, naive = (
        page.evaluate(f"(texts) => texts.map((text) => {name}(text).ids)", texts) for name in ("encode", "naive")
    )
    assert [text for text, ours, theirs in zip(texts, wanted, found, strict=True) if ours != theirs] == []
    assert naive != wanted
    pair, batch = page.evaluate("(texts) => encode(...texts)", list(PAIR)), tokenizer(*PAIR)
    assert pair["ids"] == batch["input_ids"][0].tolist()
    assert pair["types"] == batch["token_type_ids"][0].tolist()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible(page, address, width, scheme):
    """There is no horizontal scrolling at any width, and no violation of axe-core's rules."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe_violations(page) == []


def test_paper_has_every_colour(page, address):
    """This includes pages that are dark on screen: printed numbers have the colours of the light page."""
    page.goto(address)
    cell = page.locator("#weights tbody td").nth(7)  # the largest weight of the second row
    ground = "(e) => getComputedStyle(e).backgroundColor"
    light = cell.evaluate(ground)
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    assert cell.evaluate(ground) != light
    page.emulate_media(media="print")
    expect(cell).to_have_css("background-color", light)
    assert cell.evaluate("(e) => getComputedStyle(e).printColorAdjust") == "exact"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("form:visible, button.small:visible").count() == 0
    page.emulate_media(media="screen")
    expect(cell).not_to_have_css("background-color", light)
    page.evaluate("localStorage.clear()")


def test_stations_are_numbered_in_order_and_name_their_notebooks(page, address):
    page.goto(address)
    assert page.locator(".stop").all_inner_texts() == list("12345678")
    named = [f"Notebook {number}" for number in ("01", "02", "04", "03", "03", "05", "05", "06")]
    assert page.locator(".built").all_inner_texts() == named


def test_the_sites_own_switch_is_followed(page, address):
    page.goto(address)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    assert page.evaluate(ground) != "rgb(255, 255, 255)"
    page.evaluate("localStorage.clear()")
