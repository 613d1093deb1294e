"""microbert.html in Chromium: it prints what this computer's Python prints, also after a change; errors and Stop."""

import json
import re

import pytest
from playwright.sync_api import expect

from explorer.micro import build, run
from publish.server import serve
from tests.browser.explorer_page import axe_violations
from tests.browser.microbert_page import BUILT, address, checkpoint, edit, micro_site, printed_part, run_here
from tests.helpers import ROOT

SOURCE = (ROOT / "microbert.py").read_text("utf-8")
TEXTS = ("time flies", "hours go by quickly")
PATIENCE = 180_000  # milliseconds, for a busy machine
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def running(window, address):
    """Return a page that has answered once, with the addresses that it requested and the steps that it showed."""
    asked = []
    window.on("request", lambda request: asked.append(request.url))
    window.goto(address)
    before = list(asked)
    window.evaluate("""() => {
      window.steps = [];
      const observer = new MutationObserver(() => steps.push(by("doing").textContent));
      observer.observe(by("doing"), { childList: true });
    }""")
    press(window)
    return window, before, asked


@pytest.fixture
def original(running):
    """Return the page with the original file and texts."""
    page = running[0]
    page.set_viewport_size({"width": 1300, "height": 900})
    put(page, SOURCE)
    for name, text in zip(("first", "second"), TEXTS, strict=True):
        page.locator(f"#{name}").fill(text)
    page.heard.clear()
    return page


def put(page, source: str) -> None:
    """Replace the file, as typing does; Chromium takes seconds to insert so many lines by itself."""
    page.locator("#source").evaluate("(e, text) => { e.value = text; e.dispatchEvent(new Event('input')); }", source)


def press(page) -> str:
    """Press Run, wait for an answer or an error, and return what was printed."""
    page.locator("#run").click()
    expect(page.locator("#status")).to_have_text(re.compile("Computed|Stopped by|could not"), timeout=PATIENCE)
    return printed_part(page.locator("#printed").text_content())


def test_only_the_page_is_fetched_before_run(running, address):
    _, before, asked = running
    assert before == [address]
    assert {url.rpartition("/")[2] for url in asked[1:] if not url.startswith("blob:")} == set(build.FILES.values())
    assert all(url.startswith((address.rpartition("/")[0], "blob:")) for url in asked)


def test_the_answer_is_the_one_of_python_here(original, checkpoint):
    assert press(original) == run_here(checkpoint, *TEXTS)
    here = json.loads(
        run.answer("vector", json.dumps({"source": SOURCE, "texts": TEXTS[:1], "folder": str(checkpoint)}))
    )
    item = original.locator("#vectors li").first.text_content()
    assert item.startswith(f"“time flies” became {len(here['value'])} numbers: ")
    shown = [float(number.replace("−", "-")) for number in re.findall(r"[−\d.]+(?=,)", item.partition(":")[2])]
    assert shown == pytest.approx(here["value"][:4], abs=1e-4)
    assert original.heard == []


def test_progress_is_shown_step_by_step(running):
    steps = running[0].evaluate("steps")
    assert re.match(r"Downloading: \d+ of \d+ MB\.", steps[0])
    assert "Starting Python." in steps
    assert [step for step in steps if step.startswith("Computing layer 2 of ") and "for “time flies”" in step]


@pytest.mark.parametrize("texts", [("", "one"), ("Ça va? 北京 “déjà-vu” 👍", "<b>&amp;</b> [MASK]"), ("same", "same")])
def test_any_texts_are_compared(original, checkpoint, texts):
    for name, text in zip(("first", "second"), texts, strict=True):
        original.locator(f"#{name}").fill(text)
    assert press(original) == run_here(checkpoint, *texts)


def test_a_changed_line_changes_the_answer_and_reset_brings_it_back(original, checkpoint, tmp_path):
    first = press(original)
    changed = edit(SOURCE, "def embed(text, model):", "def embed(text, model):\n    text = text[::-1]")
    put(original, changed)
    (tmp_path / "microbert.py").write_text(changed, "utf-8")
    second = press(original)
    assert second == run_here(checkpoint, *TEXTS, source=tmp_path / "microbert.py")
    original.locator("#reset").click()
    assert original.locator("#source").input_value() == SOURCE
    assert press(original) == first != second
    original.locator("#reset").click()
    assert original.locator("#source").input_value() == changed


@pytest.mark.parametrize(
    ("old", "new", "message", "where"),
    [
        (
            "math.exp(score - largest)",
            "1 / 0",
            "ZeroDivisionError: division by zero",
            ", in softmax(): powers = [1 / 0",
        ),
        ("def dot(a, b):", "def dot(a, b)", "SyntaxError: expected ':'", ": def dot(a, b)"),
    ],
)
def test_an_error_is_shown_with_its_line(original, old, new, message, where):
    changed = edit(SOURCE, old, new)
    line = changed[: changed.index(new)].count("\n") + 1
    put(original, changed)
    press(original)
    assert original.locator("#message").text_content() == message
    assert original.locator("#where").text_content().startswith(f"In line {line}{where}")
    assert original.locator("#lines .wrong").text_content() == str(line)
    put(original, SOURCE)
    assert original.locator("#lines .wrong").count() == 0
    press(original)
    expect(original.locator("#error")).to_be_hidden()
    assert original.heard == []


def test_an_endless_loop_is_stopped(original, checkpoint):
    put(original, edit(SOURCE, "def dot(a, b):", "def dot(a, b):\n    while True: pass\n"))
    original.locator("#run").click()
    expect(original.locator("#doing")).to_contain_text("Computing layer 1", timeout=PATIENCE)
    original.locator("#stop").click()
    expect(original.locator("#status")).to_have_text("Stopped.")
    put(original, SOURCE)
    assert press(original) == run_here(checkpoint, *TEXTS)
    assert original.heard == []


def test_keys_suffice(original):
    """Control and Enter runs the file; Enter in the file begins a line below the one before; Tab leaves the file."""
    source = original.locator("#source")
    original.locator("#go").click()
    line = build.line_to_write(SOURCE)
    chosen = source.evaluate("(e) => e.value.slice(e.selectionStart, e.selectionEnd)")
    assert chosen == SOURCE.splitlines()[line - 1]
    source.press("End")
    source.press("Enter")
    source.press_sequentially("print('here')")
    assert source.input_value().splitlines()[line] == " " * 12 + "print('here')"
    source.press("Control+Enter")
    expect(original.locator("#printed")).to_contain_text("here", timeout=PATIENCE)
    source.press("Tab")
    assert original.evaluate("document.activeElement !== document.getElementById('source')")


def test_numbers_follow_the_lines(original):
    original.locator("#source").evaluate("(e) => { e.scrollTop = 400; }")
    expect(original.locator("#lines span")).to_have_count(len(SOURCE.split("\n")))
    assert original.evaluate("new Promise((done) => setTimeout(() => done(by('lines').scrollTop), 200))") == 400
    heights = original.evaluate(
        "[by('lines').firstChild.offsetHeight * by('lines').children.length, by('source').scrollHeight]"
    )
    assert abs(heights[0] + 16 - heights[1]) < 20  # the same height for each line


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_the_page_is_accessible_and_fits(original, scheme, width):
    put(original, edit(SOURCE, "math.exp(score", "math.exq(score"))
    original.set_viewport_size({"width": width, "height": 800})
    original.emulate_media(color_scheme=scheme)
    press(original)
    assert axe_violations(original) == []
    assert original.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = (
        "[...document.querySelectorAll('button, input')].filter((e) => e.getBoundingClientRect().height < 24).length"
    )
    assert original.evaluate(small) == 0
    original.emulate_media(color_scheme="light")


def test_the_page_refuses_requests_elsewhere(original):
    """Neither the page nor the reader's file can send anything away: the browser blocks it."""
    leak = "import js; js.fetch('http://127.0.0.1:9/')"
    put(original, edit(SOURCE, "import json\n", f"import json; {leak}\n"))
    press(original)
    original.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert any("Content Security Policy" in text for _, text, _ in original.heard)
    original.heard.clear()


def test_the_page_states_its_size(original, micro_site):
    size = sum(path.stat().st_size for path in (micro_site / build.ASSETS).iterdir())
    assert f"downloads {size / 1e6:.0f} MB" in original.locator("#promise").text_content()
    assert not BUILT or size <= 35e6
    assert original.locator("#now a").get_attribute("href").startswith("notebooks/03_")
    assert f"Now write line {build.line_to_write(SOURCE)} yourself" in original.locator("#now").text_content()


def test_a_failed_download_is_explained_and_tried_again(page, micro_site, checkpoint):
    with serve(micro_site) as origin:
        page.route("**/model.gzip", lambda route: route.fulfill(status=404))
        page.goto(f"{origin}/{build.PAGE}")
        press(page)
        said = page.locator("#status").text_content()
        assert said.startswith(f"This page could not run Python ({build.ASSETS}/model.gzip is not there (404)).")
        page.unroute("**/model.gzip")
        assert press(page) == run_here(checkpoint, *TEXTS)


def test_stop_ends_a_download(page, address, checkpoint):
    page.goto(address)
    page.locator("#run").click()
    page.locator("#stop").click()
    expect(page.locator("#status")).to_have_text("Stopped.")
    assert press(page) == run_here(checkpoint, *TEXTS)


def test_a_page_in_a_folder_explains_what_it_needs(page, micro_site):
    page.goto((micro_site / build.PAGE).as_uri())
    expect(page.locator("#promise")).to_contain_text("python -m http.server")
    expect(page.locator("#run")).to_be_disabled()
    assert page.locator("#source").input_value() == SOURCE
