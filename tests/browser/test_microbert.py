"""microbert.html in Chromium: it prints what this computer's Python prints, also after a change; errors and Stop."""

import re

import pytest
from playwright.sync_api import expect

from explorer.micro import build
from publish.server import serve
from tests.browser.explorer_page import axe_violations
from tests.browser.microbert_page import BUILT, address, checkpoint, edit, micro_site, printed_part, run_here
from tests.helpers import ROOT

SOURCE = (ROOT / "microbert.py").read_text("utf-8")
TEXTS = build.TEXTS
PATIENCE = 180_000  # milliseconds, for a busy machine
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def running(window, address):
    """Return a page that has answered once, with the addresses that it requested and the steps that it showed."""
    asked = []
    window.on("request", lambda request: asked.append(request.url))
    window.goto(address)
    assert asked == [address]
    window.evaluate("""() => {
      window.steps = [];
      new MutationObserver(() => steps.push(by("doing").textContent)).observe(by("doing"), { childList: true });
    }""")
    press(window)
    return window, asked


@pytest.fixture
def original(running):
    """Return the page with the original file and texts."""
    page = running[0]
    page.set_viewport_size({"width": 1300, "height": 900})
    write(page, *TEXTS)
    put(page, SOURCE)
    page.heard.clear()
    return page


def write(page, *texts: str) -> None:
    for name, text in zip(("first", "second", "third"), (*texts, ""), strict=False):
        page.locator(f"#{name}").fill(text)


def put(page, source: str) -> None:
    """Replace the file, as typing does; Chromium takes seconds to insert so many lines by itself."""
    page.locator("#source").evaluate("(e, text) => { e.value = text; e.dispatchEvent(new Event('input')); }", source)


def press(page) -> str:
    """Press Run, wait for an answer or an error, and return what was printed."""
    page.locator("#run").click()
    expect(page.locator("#status")).to_have_text(re.compile("Computed|Stopped by|could not"), timeout=PATIENCE)
    return printed_part(page.locator("#printed").text_content())


def test_a_saved_answer_is_there_at_once_and_progress_is_shown(running, address, checkpoint, micro_site):
    page, asked = running
    assert {url.rpartition("/")[2] for url in asked[1:] if not url.startswith("blob:")} == set(build.FILES.values())
    assert all(url.startswith((address.rpartition("/")[0], "blob:")) for url in asked)
    steps = page.evaluate("steps")
    assert re.match(r"Downloading: \d+ of \d+ MB\.", steps[0])
    assert [step for step in steps if step.startswith("Computing layer 2 of ") and "for “time flies”" in step]
    size = sum(path.stat().st_size for path in (micro_site / build.ASSETS).iterdir())
    assert f"downloads {size / 1e6:.0f} MB" in page.locator("#promise").text_content()
    assert not BUILT or size <= 35e6
    other = page.context.new_page()
    other.goto((micro_site / build.PAGE).as_uri())
    assert printed_part(other.locator("#printed").text_content()) == run_here(checkpoint, *TEXTS)
    assert other.locator("#vectors li").all_text_contents() == page.locator("#vectors li").all_text_contents()
    expect(other.locator("#promise")).to_contain_text("python -m http.server")
    expect(other.locator("#run")).to_be_disabled()
    other.close()


@pytest.mark.parametrize("texts", [TEXTS, ("Ça va? 北京 “déjà-vu” 👍", "<b>&amp;</b> [MASK]"), ("", "one", "one")])
def test_any_texts_are_compared(original, checkpoint, texts):
    write(original, *texts)
    assert press(original) == run_here(checkpoint, *texts)
    assert original.heard == []


def test_an_idea_shows_before_and_after_and_reset_brings_the_file_back(original, checkpoint, tmp_path):
    old, new, _, texts = build.IDEAS[2]  # its texts have not been compared yet: the original file runs first
    original.locator(".try").nth(2).click()
    expect(original.locator("#change")).to_be_visible(timeout=PATIENCE)
    changed = edit(SOURCE, old, new)
    (tmp_path / "microbert.py").write_text(changed, "utf-8")
    prints = [run_here(checkpoint, *texts), run_here(checkpoint, *texts, source=tmp_path / "microbert.py")]
    before, after = (line.split()[0].replace("-", "−") for line in prints)
    assert original.locator("#change td").all_text_contents() == [f"{before} → {after}"]
    line = changed[: changed.index(new)].count("\n") + 1
    assert original.locator("#lines .now").text_content() == str(line)
    original.locator("#reset").click()
    assert original.locator("#source").input_value() == SOURCE
    original.locator("#reset").click()
    assert original.locator("#source").input_value() == changed == original.locator("#paint").text_content()[:-2]
    assert original.locator("#paint .word", has_text="def").count() == SOURCE.count("\ndef ") + SOURCE.count("    def ")


def test_an_error_is_shown_with_its_line(original):
    changed = edit(SOURCE, "math.exp(score - largest)", "1 / 0")
    line = changed[: changed.index("1 / 0")].count("\n") + 1
    put(original, changed)
    press(original)
    assert original.locator("#message").text_content() == "ZeroDivisionError: division by zero"
    assert original.locator("#where").text_content().startswith(f"In line {line}, in softmax(): powers = [1 / 0")
    assert original.locator("#lines .wrong").text_content() == str(line)
    for width, scheme in ((390, "dark"), (1300, "light")):
        original.set_viewport_size({"width": width, "height": 800})
        original.emulate_media(color_scheme=scheme)
        assert axe_violations(original) == []
        assert original.evaluate("document.documentElement.scrollWidth <= innerWidth")
    put(original, SOURCE)
    press(original)
    expect(original.locator("#error")).to_be_hidden()


def test_an_endless_loop_is_stopped(original, checkpoint):
    put(original, edit(SOURCE, "def dot(a, b):", "def dot(a, b):\n    while True: pass\n"))
    original.locator("#run").click()
    expect(original.locator("#doing")).to_contain_text("Computing layer 1", timeout=PATIENCE)
    original.locator("#stop").click()
    expect(original.locator("#status")).to_have_text("Stopped.")
    put(original, SOURCE)
    write(original, "one", "two")
    assert press(original) == run_here(checkpoint, "one", "two")


def test_keys_suffice(original):
    """Control and Enter runs the file; Enter in the file begins a line below the one before; Tab leaves the file."""
    source, line = original.locator("#source"), build.line_to_write(SOURCE)
    original.locator("#go").click()
    chosen = source.evaluate("(e) => e.value.slice(e.selectionStart, e.selectionEnd)")
    assert chosen == SOURCE.splitlines()[line - 1]
    source.press("End")
    source.press("Enter")
    source.press_sequentially("print('here')")
    assert source.input_value().splitlines()[line] == " " * 12 + "print('here')"
    expect(original.locator("#lines span")).to_have_count(len(SOURCE.split("\n")) + 1)
    tops = "['lines', 'paint', 'source'].map((id) => by(id).scrollTop)"
    assert original.evaluate(f"new Promise((done) => setTimeout(() => done(new Set({tops}).size), 200))") == 1
    source.press("Control+Enter")
    expect(original.locator("#printed")).to_contain_text("here", timeout=PATIENCE)
    source.press("Tab")
    assert original.evaluate("document.activeElement !== document.getElementById('source')")


def test_the_page_refuses_requests_elsewhere(original):
    """Neither the page nor the reader's file can send anything away: the browser blocks it."""
    put(original, edit(SOURCE, "import json\n", "import json; import js; js.fetch('http://127.0.0.1:9/')\n"))
    press(original)
    original.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert any("Content Security Policy" in text for _, text, _ in original.heard)
    original.heard.clear()


def test_a_failed_or_stopped_download_is_tried_again(page, micro_site, checkpoint):
    """The reader's own text is then computed, and the vectors of the others come with the page."""
    with serve(micro_site) as origin:
        page.route("**/model.gzip", lambda route: route.fulfill(status=404))
        page.goto(f"{origin}/{build.PAGE}")
        write(page, "time goes by", *TEXTS[1:])
        press(page)
        said = page.locator("#status").text_content()
        assert said.startswith(f"This page could not run Python ({build.ASSETS}/model.gzip is not there (404)).")
        page.unroute("**/model.gzip")
        page.locator("#run").click()
        page.locator("#stop").click()
        expect(page.locator("#status")).to_have_text("Stopped.")
        assert press(page) == run_here(checkpoint, "time goes by", *TEXTS[1:])
        assert "came with the page" in page.locator("#status").text_content()
