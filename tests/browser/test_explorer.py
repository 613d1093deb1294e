"""explorer.html in a real browser: torch's numbers, the tour, the frame, and your own texts with the model."""

import re

import pytest
import torch
from playwright.sync_api import expect

from explorer import explorer
from publish.server import serve
from tests.browser.explorer_page import (
    NUMBERS,
    PATIENCE,
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
from tests.helpers import PAIR

HOSTILE = "<img src=x onerror=alert(1)> </script><script>alert(2) ${1} &amp;"
EXACT = 1e-5  # the saved sentence is stored in float32
STORED = 0.01  # large matrices of the page's own model are stored in float16
SEEN = """(i) => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const one = box(STOPS[i].look ?? STOPS[i].at), panel = box("#tour"), bar = box("#bar");
  const across = Math.max(0, Math.min(one.right, panel.right) - Math.max(one.left, panel.left));
  const down = Math.max(0, Math.min(one.bottom, panel.bottom) - Math.max(one.top, panel.top));
  const fits = one.height <= (across ? panel.top : innerHeight) - Math.max(0, bar.bottom);
  return { below: one.top - Math.max(0, bar.bottom), covered: across * down > 0 && fits, height: panel.height };
}"""  # where a stop's subject is: below what sticks to the top, under the panel though there is room, and the panel
pytestmark = pytest.mark.long


@pytest.fixture
def opened(page, address):
    """Return the page as it opens, with the addresses that it requested."""
    asked = page.asked = []
    page.on("request", lambda request: asked.append(request.url.split("#")[0]))
    page.goto(address)
    page.locator("#final canvas").wait_for()
    return page


@pytest.fixture(scope="module")
def saved(encoder, tokenizer):
    return results(encoder, tokenizer, explorer.SENTENCE)


def test_what_is_drawn_are_these_numbers(opened, saved):
    """One state: tables, drawings and sentences; a cell is chosen by pointer and by keys. The model is not needed."""
    state = {"layer": 1, "head": 7, "token": 4}
    follow(opened, layer=1, head=7)
    opened.locator("#weights tbody td").nth(4 * 7 + 2).click()
    wanted, (found,) = numbers(saved, **state), opened.evaluate(NUMBERS, [state])
    for name in ("embeddings", "scores", "weights", "values", "context", "attended", "output"):
        assert opened.evaluate(f"[...drawings.{name}.values]") == found[name], name
    for name in ("scores", "weights"):
        assert close(cells(opened, name).tolist(), wanted[name], 0.0051), name
    tip = opened.locator("#tip")
    opened.locator("#weights tbody td").nth(4 * 7 + 2).hover()
    expect(tip).to_have_text(f"layer 1, head 7: an → flies {wanted['weights'][4, 2]:.3f}")
    opened.locator("#weights tbody td[tabindex='0']").press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("Enter")
    assert opened.evaluate("followed.token") == 1
    opened.locator("#final canvas").focus()
    opened.keyboard.press("End")
    expect(tip).to_have_text(
        f"[CLS], number {saved.states.size(-1) - 1}: {saved.states[-1, 0, -1]:.3f}".replace("-", "−")
    )
    expect(opened.locator("#spoken")).to_have_text(tip.inner_text())


def test_the_tour_by_keyboard_alone(opened):
    """Each stop shows its subject, not under the panel; the end restores the initial state."""
    follow(opened, layer=1, head=5, token=4)
    opened.locator("#first").fill("my own words")
    before, count = opened.evaluate("({ ...followed })"), opened.evaluate("STOPS.length")
    for width, height in ((390, 844), (1280, 800)):
        opened.set_viewport_size({"width": width, "height": height})
        opened.locator("#tour-start").press("Enter")
        for place in range(count):
            at, title = opened.evaluate("(i) => [STOPS[i].at, STOPS[i].title]", place)
            expect(opened.locator("#tour-place")).to_have_text(f"{place + 1} of {count}")
            expect(opened.locator("#tour-title")).to_have_text(title)
            expect(opened.locator("#tour-title")).to_be_focused()
            expect(opened.locator(at)).to_have_class(re.compile("toured"))
            seen = opened.evaluate(SEEN, place)
            assert seen["below"] >= -1, (title, width)
            assert not seen["covered"], (title, width)
            assert width > 760 or seen["height"] <= 200, title
            opened.keyboard.press("ArrowRight")
        expect(opened.locator("#tour-start")).to_be_focused()
        assert opened.evaluate("({ ...followed })") == before
        assert opened.locator("#first").input_value() == "my own words"
    opened.locator("#tour-start").click()
    opened.locator("#tour-next").click()
    opened.keyboard.press("ArrowLeft")
    expect(opened.locator("#tour-place")).to_have_text(f"1 of {count}")
    opened.keyboard.press("Escape")
    expect(opened.locator("#tour")).to_be_hidden()
    assert opened.heard == []


def test_page_is_accessible_closed_and_open(opened):
    """Nothing scrolls horizontally, and axe-core finds nothing, with the tour and a sum open, too."""
    for scheme, widths in (("light", (390, 1300)), ("dark", (736, 390))):
        opened.emulate_media(color_scheme=scheme)
        if scheme == "dark":
            opened.locator("#three-rows").evaluate("(e) => { e.open = true; }")
            opened.locator("#tour-start").click()
        for width in widths:
            opened.set_viewport_size({"width": width, "height": 900})
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_violations(opened) == []


def test_page_opens_with_a_sentence_that_can_be_changed(opened, encoder, tokenizer):
    picture = opened.frame_locator("#opening iframe")
    begin = picture.locator("#data").evaluate("(e) => JSON.parse(e.textContent).first")
    for word in explorer.OPENING["words"][::-1]:
        picture.get_by_role("radio", name=word, exact=True).check()
        picture.locator("html.moving").wait_for(state="detached")
        wanted = results(encoder, tokenizer, explorer.OPENING["text"].format(word)).weights[
            begin["layer"], begin["head"], 10
        ]
        shown = picture.locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
        assert close(shown, wanted, EXACT)
    assert picture.locator("html").evaluate("(e) => e.scrollHeight - e.clientHeight") == 0


def test_page_from_folder_explains_why_it_is_static(page, site):
    page.goto((site / "explorer.html").as_uri())
    assert "python -m http.server --bind 127.0.0.1 -d site" in page.locator("#promise").inner_text()
    assert page.locator("#first").is_disabled()
    assert page.locator("#first").input_value() == explorer.SENTENCE
    assert page.heard == []


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
    asked = states(torchs, 4)
    for state, found in zip(asked, running.evaluate(NUMBERS, asked), strict=True):
        for name, wanted in numbers(torchs, **state).items():
            assert close(found[name], wanted, 2 * STORED), (name, state)
    running.locator("#opening .coming").wait_for(state="detached")
    assert running.evaluate(count) == before
    assert running.heard == []


def test_the_picture_at_the_top_is_of_the_readers_text(running, encoder, tokenizer):
    """On a phone the window goes there; the button had shown the download, and nothing speaks of it any more.

    It begins with the largest weight between two words that are not neighbours.
    """
    torchs = results(encoder, tokenizer, "the dog is unbelievably big")
    running.set_viewport_size({"width": 390, "height": 844})
    running.evaluate("Object.assign(page, { wish: null, choseHead: false })")
    send(running, "the dog is unbelievably big")
    picture = running.frame_locator("#opening iframe:not(.coming)")
    expect(picture.locator(".word .name")).to_have_text(torchs.tokens)
    at = tuple(running.evaluate("[followed.layer, followed.head, followed.token]"))
    inner = torchs.weights[..., 1:-1, 1:-1]
    places = torch.arange(inner.size(-1))
    words = inner * ((places - places[:, None]).abs() > 1)
    assert words[at[0], at[1], at[2] - 1].max() >= words.max() - STORED
    shown = picture.locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
    assert close(shown, torchs.weights[at], STORED)
    picture.get_by_label("whole words").check()
    expect(picture.locator(".word .name")).to_have_text(["[CLS]", "the", "dog", "is", "unbelievably", "big", "[SEP]"])
    assert running.locator("#opening").bounding_box()["y"] >= 0
    expect(running.locator("#send")).to_have_text("Send it through")


def test_nothing_is_fetched_before_a_request(running, address):
    """Typing did not fetch 46 MB; Enter did, and the button showed it; from then on typing is answered."""
    assert running.asked_by_typing == at_first(address)
    assert "MB" in running.offer
    assert any(step.startswith("Loading ") for step in running.evaluate("steps"))
    running.locator("#examples button").first.click()
    expect(running.locator("#status")).to_contain_text("computed here", timeout=PATIENCE)
    running.locator("#first").press("End")
    running.locator("#first").press_sequentially(" far")
    expect(running.locator("#tokens b").nth(-2)).to_have_text("far", timeout=PATIENCE)


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
