"""explorer.html in a real browser, with the model: your own texts, links."""

import re

import pytest
import torch
from playwright.sync_api import expect

from explorer import explorer
from publish.server import serve
from tests.browser.explorer_page import (
    NUMBERS,
    PATIENCE,
    WINDOW,
    address,
    at_first,
    axe_violations,
    cells,
    close,
    encoder,
    follow,
    loaded,
    numbers,
    results,
    run_timers,
    running,
    send,
    site,
    states,
)

PAIR = ("I called Ian.", "I got his answering machine.")
TIRED = explorer.OPENING["text"].format("tired").lower()
HOSTILE = "<img src=x onerror=alert(1)> </script><script>alert(2) ${1} &amp;"
STORED = 0.01  # large matrices of the page's own model are stored in float16
pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "texts", [PAIR, ("Ça va? 北京 déjà-vu 👍", "[MASK] is unbelievably good"), (HOSTILE, "<b>b</b>")]
)
def test_every_number_of_a_readers_text_equals_torchs(running, encoder, tokenizer, texts):
    """The exact ones are tested with the saved sentence; a text is never read as HTML."""
    count = "document.querySelectorAll('img, script, iframe').length"
    running.locator("#opening .coming").wait_for(state="detached")
    before = running.evaluate(count)
    assert "tokens, computed here in" in send(running, *texts)
    torchs = results(encoder, tokenizer, *texts)
    assert running.locator("#tokens b").all_text_contents() == torchs.tokens
    assert running.locator("#tokens span").all_text_contents() == [str(one) for one in torchs.ids]
    asked = states(torchs)
    for state, found in zip(asked, running.evaluate(NUMBERS, asked), strict=True):
        for name, wanted in numbers(torchs, **state).items():
            assert close(found[name], wanted, 2 * STORED), (name, state)
    running.locator("#opening .coming").wait_for(state="detached")
    assert running.evaluate(count) == before
    assert running.heard == []


def test_the_picture_at_the_top_is_of_the_readers_text(running, encoder, tokenizer):
    """On a phone the window goes there; the button had shown the download, and nothing speaks of it any more."""
    torchs = results(encoder, tokenizer, "the dog is unbelievably big")
    running.set_viewport_size({"width": 390, "height": 844})
    send(running, "the dog is unbelievably big")
    picture = running.frame_locator("#opening iframe:not(.coming)")
    expect(picture.locator(".word .name")).to_have_text(torchs.tokens)
    at = tuple(running.evaluate("[followed.layer, followed.head, followed.token]"))
    shown = picture.locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
    assert close(shown, torchs.weights[at], STORED)
    picture.get_by_label("whole words").check()
    expect(picture.locator(".word .name")).to_have_text(["[CLS]", "the", "dog", "is", "unbelievably", "big", "[SEP]"])
    assert running.locator("#opening").bounding_box()["y"] >= 0
    expect(running.locator("#send")).to_have_text("Send it through")


def test_nothing_is_fetched_before_a_request(page, address):
    """Typing does not fetch 46 MB; an example does, and the button shows it; from then on typing is answered."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.locator("#first").press("End")
    page.locator("#first").press_sequentially(" so", delay=20)
    run_timers(page)
    assert asked == at_first(address)
    assert "MB" in page.locator("#send").inner_text()
    page.evaluate("""() => {
      window.steps = [];
      new MutationObserver(() => steps.push(by("send").textContent)).observe(by("send"), { childList: true });
    }""")
    page.locator("#examples button").first.click()
    expect(page.locator("#status")).to_contain_text("computed here", timeout=PATIENCE)
    assert any(step.startswith("Loading ") for step in page.evaluate("steps"))
    page.locator("#first").press("End")
    page.locator("#first").press_sequentially(" far")
    expect(page.locator("#tokens b").nth(-2)).to_have_text("far", timeout=PATIENCE)


def test_the_followed_token_stays_while_one_types(running):
    """The token is followed to its new position; if it disappears, token 2 is, until it comes back."""

    def followed(words: int) -> str:
        expect(running.locator("#tokens b")).to_have_count(words, timeout=PATIENCE)
        return running.locator("#token option:checked").inner_text()

    send(running, TIRED)
    running.locator("#tokens button", has_text="it").last.click()
    first = running.locator("#first")
    first.press("Home")
    first.press_sequentially("now ", delay=20)
    assert followed(17) == "11 it"
    send(running, "the animal was too tired")
    assert followed(7) == "2 animal"
    send(running, TIRED)
    assert followed(16) == "10 it"
    send(running, "word by word")
    running.locator("#tokens button").nth(3).click()
    assert running.locator("#looks").inner_text().startswith("“word” at 3 looks most at ")


def test_undrawable_text_shows_error_and_keeps_last_view(running):
    send(running, "good")
    for texts, said in (
        (("  ", " "), "There is no text yet: type a sentence."),
        (("\u200b", ""), "No token is left of this text: type a word."),
        (("word " * 47, ""), "This text has 49 tokens, and the page draws 48 at most: shorten it."),
        (("a" * 2001, ""), "This text has more than 2000 characters: shorten it."),
    ):
        assert send(running, *texts) == said
        assert running.locator("#tokens b").all_text_contents() == ["[CLS]", "good", "[SEP]"]


def test_no_request_leaves_the_page(running, address, site):
    """All requests go to the page's folder, and its policy blocks others, which the control sends."""
    folder = address.removesuffix("explorer.html")
    names = {url.removeprefix(folder) for url in running.asked if not url.startswith("blob:")}
    files = (explorer.PICTURE, *explorer.FILES.values())
    assert names == {"explorer.html", *(f"{explorer.ASSETS}/{name}" for name in files)}
    refused = """(url) => fetch(url, { mode: "no-cors" }).then(() => "came", () => "refused")"""
    worker = """(url) => new Promise((resolve) => {
      const answers = `.then(() => postMessage("came"), () => postMessage("refused"))`;
      const source = `fetch("${url}", { mode: "no-cors" })${answers}`;
      new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" })
        .onmessage = ({ data }) => resolve(data);
    })"""
    with serve(site) as elsewhere:  # the same files at another port
        for script in (refused, worker):
            assert running.evaluate(script, folder) == "came"
            assert running.evaluate(script, f"{elsewhere}/") == "refused"


def test_link_with_text_waits_for_enter(running, address):
    """Its text appears in the box without fetching anything; Enter restores the rest."""
    send(running, "the bark of the dog is very rough")
    running.locator("#weights tbody td").nth(3 * 9 + 5).click()
    running.locator("#copy-link").click()
    expect(running.locator("#status")).to_contain_text("The link is copied")
    link, looks = running.evaluate("navigator.clipboard.readText()"), running.locator("#looks").inner_text()
    other, asked = running.context.new_page(), []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    expect(other.locator("#status")).to_contain_text("Press Enter")
    assert other.locator("#first").input_value() == "the bark of the dog is very rough"
    other.locator("#heads button").first.click()  # a look around loses nothing
    other.evaluate("(choice) => follow(choice)", running.evaluate("({ layer: followed.layer, head: followed.head })"))
    run_timers(other)
    assert [url.split("#")[0] for url in asked] == at_first(address)
    other.locator("#first").press("Enter")
    expect(other.locator("#looks")).to_have_text(looks, timeout=PATIENCE)
    run_timers(other)
    assert other.url == link
    other.close()


def test_printed_matrices_fit_paper(running):
    for words in (16, 46):
        running.set_viewport_size(WINDOW)
        running.emulate_media(media="screen")
        send(running, "word " * words)
        running.set_viewport_size({"width": 718, "height": 900})  # A4 between margins of 1 cm
        running.emulate_media(media="print")
        for name in ("scores", "weights"):
            box = running.locator(f"#{name} tbody td").last.bounding_box()
            assert box["width"] >= 9
            assert box["x"] + box["width"] <= 718, name
