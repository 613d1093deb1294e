"""explorer.html in a real browser, with the model: your own texts, what changes with one word, the ending, links."""

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
from utils.search import embed
from views.why_near import shares_of_cosine

PAIR = ("I called Ian.", "I got his answering machine.")
TIRED, WIDE, HUNGRY = (explorer.PAIRS[0][name] for name in ("kept", "next", "control"))
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
            assert name in ("dot", "power", "total") or close(found[name], wanted, 2 * STORED), (name, state)
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
    assert running.locator(".cost:visible").count() == 0


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
    assert page.locator(".cost").count() == 2
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


def keep(page, text: str) -> None:
    send(page, text)
    page.locator("#keep").click()
    expect(page.locator("#kept")).to_contain_text(text)


def test_a_ready_pair_and_its_control_have_torchs_differences(running, encoder, tokenizer):
    """The weight that moves is half the sum of a row's absolute differences, as in notebook 07."""
    running.locator("#pair-examples button").first.click()
    expect(running.locator("#pair .pair-now").first).to_have_text("tired → wide", timeout=PATIENCE)
    expect(running.locator("#pair .pair-held").first).to_have_text("control: tired → hungry")
    assert running.locator("#token option:checked").inner_text() == "10 it"
    expect(running.locator("#one-row .chosen th")).to_have_text("“animal”")
    follow(running, layer=1, head=3)
    tired, wide, hungry = (results(encoder, tokenizer, text) for text in (TIRED, WIDE, HUNGRY))
    found = running.evaluate("parts.pair.measured")
    for name, other in (("now", wide), ("held", hungry)):
        moved = (other.weights - tired.weights).abs().sum(dim=-1) / 2
        cosine = torch.cosine_similarity(tired.states[-1, 10], other.states[-1, 10], dim=0)
        wanted = {"here": moved[1, 3, 10], "heads": moved[..., 10].mean(), "all": moved.mean(), "cosine": cosine}
        for kind, value in wanted.items():
            assert abs(found[name][kind] - value) <= STORED, (name, kind)
    table = [row.locator("td").all_inner_texts() for row in running.locator("#pair-lines tr").all()]
    kinds = ("here", "heads", "all", "cosine")
    assert table == [[f"{found[name][kind]:.2f}" for name in ("now", "held")] for kind in kinds]
    difference = (wide.weights - tired.weights)[1, 3]
    assert close(cells(running, "pair-map").tolist(), difference, STORED + 0.0051)
    picture = running.frame_locator("#pair-picture iframe")
    expect(picture.locator(".differs .name")).to_have_text("tired")
    expect(picture.locator(".differs .second")).to_have_text("wide")
    expect(picture.locator(".cell[aria-checked='true']")).to_have_attribute("title", re.compile("layer 1, head 3: "))
    for side, text in ((":not(.below)", tired), (".below", wide)):
        picture.locator("html.moving").wait_for(state="detached")
        ribbons = picture.locator(f".ribbon{side}").evaluate_all("(all) => all.map((e) => +e.dataset.value)")
        assert close(ribbons, text.weights[1, 3, 10], STORED)
    running.locator("#pair-most button").first.press("Enter")
    expect(running.locator("#pair-most button").first).to_be_focused()
    moved = (wide.weights - tired.weights).abs().sum(dim=-1)[..., 10] / 2
    assert moved[tuple(running.evaluate("[followed.layer, followed.head]"))] >= moved.max() - STORED
    running.locator("#control-text").fill("\u200b")
    running.locator("#control-form button").click()
    expect(running.locator("#pair-status")).to_have_text("No token is left of this text: type a word.")


def test_pair_of_other_length_is_aligned_or_refused(running, encoder, tokenizer):
    for first, second, wanted in (
        ("a b c", "a x y c", [[[0], [0]], [[1], [1, 2]], [[2], [3]]]),
        ("a b c", "a c", [[[0], [0]], [[1], []], [[2], [1]]]),
        ("a c", "a b c", [[[0], [0]], [[], [1]], [[1], [2]]]),
        ("a b a c", "a c a b", [[[0], [0]], [[1], [1]], [[2], [2]], [[3], [3]]]),
    ):
        found = running.evaluate("(ab) => align(...ab).map(({ a, b }) => [a, b])", [first.split(), second.split()])
        assert found == wanted, (first, second)
    keep(running, "the cat sat on the mat")
    send(running, "the black cat sat on the carpet")
    cat, black = (
        results(encoder, tokenizer, f"the {text}") for text in ("cat sat on the mat", "black cat sat on the carpet")
    )
    follow(running, token=3, layer=0, head=1)
    rest = [0, 1, 3, 4, 5, 6, 7, 8]  # without "black"
    difference = black.weights[0, 1, 3][rest] - cat.weights[0, 1, 2]
    wanted = (difference.abs().sum() + black.weights[0, 1, 3, 2]) / 2
    assert abs(running.evaluate("parts.pair.measured.now.here") - wanted) <= STORED
    expect(running.frame_locator("#pair-picture iframe").locator(".differs")).to_have_count(2)
    follow(running, token=2)
    assert "is in the new text only" in running.locator("#pair-words").inner_text()
    send(running, "fruit flies like a banana")
    assert "shares 2 of 8 tokens with the kept sentence" in running.locator("#pair-how").inner_text()
    assert not running.locator("#pair-shown").is_visible()


def test_the_ending_compares_the_readers_sentences(running, encoder, tokenizer):
    texts = ("a dog is barking", "<b>unbelievably</b> noisy hounds", "the bark of a tree")
    send(running, texts[0])
    running.locator("#other").fill(texts[1])
    running.locator("#ending-control").fill(texts[2])
    running.locator("#ending-control").press("Enter")
    expect(running.locator("#nearness .name")).to_have_text(list(texts[1:]), timeout=PATIENCE)
    first, *others = embed(list(texts), encoder, tokenizer)
    assert close(running.evaluate("parts.ending.cosines"), torch.stack([first @ other for other in others]), STORED)
    sides = (results(encoder, tokenizer, text).states[-1] for text in texts[:2])
    assert close(running.evaluate("[...parts.ending.near.shares]"), shares_of_cosine(*sides), STORED)
    assert running.locator("#near b").count() == 0
    running.locator("#other").fill(" ")
    running.locator("#ending-form button").click()
    expect(running.locator("#ending-status")).to_have_text("There is no text yet: type a sentence.")
    running.locator("#ready").click()
    expect(running.locator("#nearness .name").first).to_have_text(explorer.ENDING[0])
    assert running.locator("#first").input_value() == explorer.SENTENCE


def test_link_with_texts_waits_for_enter(running, address):
    """Its text appears in the boxes without fetching anything; Enter restores the rest."""
    running.locator("#pair-examples button").nth(1).click()
    expect(running.locator("#pair .pair-now").first).to_have_text("oak → dog", timeout=PATIENCE)
    running.locator("#other").fill("the dog sleeps")
    running.locator("#other").press("Enter")
    expect(running.locator("#nearness .name").first).to_have_text("the dog sleeps", timeout=PATIENCE)
    running.locator("#weights tbody td").nth(3 * 9 + 5).click()
    running.locator("#copy-link").click()
    expect(running.locator("#status")).to_contain_text("The link is copied")
    link = running.evaluate("navigator.clipboard.readText()")
    shown = ("one-words", "pair-words", "pair-lines", "nearer", "spread")
    before = [running.locator(f"#{name}").inner_text() for name in shown]
    other, asked = running.context.new_page(), []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    expect(other.locator("#status")).to_contain_text("Press Enter")
    assert other.locator("#first").input_value() == "the bark of the dog is very rough"
    other.locator("#heads button").first.click()  # a look around loses nothing
    other.locator("#heads button").nth(35).click()
    run_timers(other)
    assert [url.split("#")[0] for url in asked] == at_first(address)
    other.locator("#first").press("Enter")
    expect(other.locator("#pair .pair-held").first).to_have_text("control: oak → pine", timeout=PATIENCE)
    expect(other.locator("#nearness .name").first).to_have_text("the dog sleeps", timeout=PATIENCE)
    other.evaluate("(i) => followHead(i)", running.evaluate("followed.layer * A + followed.head"))
    assert [other.locator(f"#{name}").inner_text() for name in shown] == before
    run_timers(other)
    assert other.url == link
    other.close()


def test_explanations_are_accessible_and_fit_paper(running):
    """With a pair, a control and an error, nothing scrolls horizontally; printed matrices fit for any text."""
    running.locator("#pair-examples button").first.click()
    expect(running.locator("#pair .pair-now").first).to_have_text("tired → wide", timeout=PATIENCE)
    running.locator("#other").fill("")
    running.locator("#ending-form button").click()
    for width, scheme in ((390, "light"), (1280, "dark")):
        running.set_viewport_size({"width": width, "height": 900})
        running.emulate_media(color_scheme=scheme)
        assert running.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_violations(running) == []
    for words in (16, 46):
        running.set_viewport_size(WINDOW)
        running.emulate_media(media="screen")
        keep(running, "word " * words)
        send(running, "word " * (words - 1) + "good")
        running.set_viewport_size({"width": 718, "height": 900})  # A4 between margins of 1 cm
        running.emulate_media(media="print")
        for name in ("scores", "weights", "pair-map"):
            box = running.locator(f"#{name} tbody td").last.bounding_box()
            assert box["width"] >= 9
            assert box["x"] + box["width"] <= 718, name
