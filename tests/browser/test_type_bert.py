"""type_bert.html in Chromium, served and as one file: the visit by keyboard, answers, the whole model, a phone."""

import re
import subprocess
import sys

import pytest
import torch
from playwright.sync_api import expect

from publish.type_bert import build
from tests.browser.explorer_page import axe_violations
from tests.browser.type_bert_page import JUDGE, address, folder, for_browsers
from tests.helpers import ROOT
from utils.support.checkpoint import embedded_folder

PATIENCE = 180_000  # milliseconds, for a busy machine
LINE = "return softmax([dot(query, key) / math.sqrt(len(query)) for key in keys])"
pytestmark = pytest.mark.long


@pytest.fixture(params=["site", "file"])
def opened(page, request, address, folder):
    """Return the page, served or from a folder."""
    page.goto(address if request.param == "site" else (folder / "file.html").as_uri())
    return page


def type_lines(page, lines: str) -> None:
    """Type into the box by keyboard; Enter checks a complete last line."""
    page.locator("#body").press("Control+A")
    for line in lines.split("\n"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")


def weights(page) -> list[float]:
    return page.frame_locator("#own").locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")


def test_the_visit_by_keyboard(opened, encoder, tokenizer):
    """A line typed before Python is ready waits; wrong, it is drawn with dashes; right, it agrees; a link keeps it."""
    see = opened.frame_locator("#view")
    expect(see.locator(".controls")).to_be_hidden()
    type_lines(opened, "softmax([dot(query, key) for key in keys])")
    expect(opened.locator("#verdict")).to_contain_text("Python is still starting")
    opened.locator("#guesses button").nth(1).press("Enter")
    official = []
    for word in build.WORDS:
        with torch.inference_mode():
            output = encoder(**tokenizer(build.SENTENCE.format(word)), output_attentions=True)
        official.append(output.attentions[build.LAYER][0, build.HEAD, 10])
    tired, wide = official
    for index, word in ((2, "animal"), (8, "street")):
        said = f"“{word}” gets {wide[index]:.2f}, {'more' if wide[index] > tired[index] else 'less'} than the "
        expect(opened.locator("#refuted")).to_contain_text(f"{said}{tired[index]:.2f} with “tired”")
    expect(see.get_by_role("radio", name="both in one picture")).to_be_checked()
    expect(opened.locator("#verdict")).to_contain_text("Divide each score by √D", timeout=PATIENCE)
    expect(opened.locator("#effect")).to_contain_text(f"“animal” 1.00 instead of {tired[2]:.2f}")
    assert weights(opened)[2] > 0.99
    expect(opened.frame_locator("#own").locator(".outline[d^=M]")).not_to_have_count(0)
    type_lines(opened, LINE)
    expect(opened.locator("#effect")).to_contain_text("All 512 weights agree with PyTorch's", timeout=PATIENCE)
    assert torch.allclose(torch.tensor(weights(opened)), tired, atol=1e-5)
    expect(opened.locator("#link")).to_have_text("1 of 8 lines are yours")
    opened.locator("#next").press("Enter")
    expect(opened.locator("#task-title")).to_contain_text("average: ")
    expect(opened.locator("#body")).to_be_focused()
    opened.locator("#ours").press("Enter")
    expect(opened.locator("#verdict")).to_contain_text("This is our line.", timeout=PATIENCE)
    link = opened.locator("#link").evaluate("(e) => e.href")
    opened.goto("about:blank")
    opened.goto(link)
    expect(opened.locator("#link")).to_have_text("1 of 8 lines are yours", timeout=PATIENCE)
    assert opened.locator("#body").input_value() == LINE
    assert opened.heard == []


def test_the_whole_model_runs_with_the_readers_lines(page, address):
    """It agrees with microbert.py here; a wrong line changes it; the page cannot send anything elsewhere.

    Then answers are judged as in Python.
    """
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    expect(page.locator("#embed")).to_be_enabled(timeout=PATIENCE)
    assert asked[-1].endswith(build.FILES["model"])  # after Python
    command = [sys.executable, ROOT / "microbert.py", "dogs bark", "a hound is loud"]
    here = subprocess.run(command, env={"CHECKPOINT": str(embedded_folder())}, capture_output=True, text=True).stdout
    page.evaluate(JUDGE, [{"gap": "average", "body": "return [dot(weights, column) for column in zip(*values)]"}])
    page.locator("#first").fill("dogs bark")
    page.locator("#second").fill("a hound is loud")
    page.locator("#second").press("Enter")
    cosine = page.locator("#cosine")
    expect(cosine).to_contain_text("your average in all layers", timeout=PATIENCE)
    found = [float(number) for number in re.findall(r"is (\d\.\d\d)", cosine.text_content())]
    assert found == pytest.approx([float(here.split()[0])] * 2, abs=0.011)
    page.evaluate(JUDGE, [{"gap": "add", "body": "return x"}])
    expect(page.locator("#effect")).to_contain_text("In the whole BERT", timeout=PATIENCE)
    assert page.heard == []
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert any("Content Security Policy" in text for _, text, _ in page.heard)
    page.heard.clear()
    answers = for_browsers()
    said = page.evaluate(JUDGE, [{"gap": gap, "body": body} for gap, _, body in answers])
    assert [(a, b) for a, b in zip(answers, said, strict=True) if a[1] not in b] == []
    assert page.heard == []


@pytest.mark.parametrize("opened", ["site"], indirect=True)
def test_stop_and_a_phone_with_its_keyboard(opened):
    """Nothing scrolls sideways, what is said is in the window, and axe-core finds nothing, in both themes."""
    opened.set_viewport_size({"width": 390, "height": 420})
    opened.locator("#body").fill("while True: pass")
    opened.locator("#check").click()
    opened.wait_for_function("() => !by('stop').disabled && (by('stop').click(), true)", timeout=PATIENCE)
    expect(opened.locator("#verdict")).to_have_text("Stopped.")
    expect(opened.locator("#ready")).to_have_text("Python is ready.", timeout=PATIENCE)
    opened.locator("#body").fill("scores")
    opened.locator("#body").press("Enter")
    expect(opened.locator("#verdict")).to_contain_text("`scores` is not known here", timeout=PATIENCE)
    expect(opened.locator("#verdict")).to_be_in_viewport()
    for scheme, height in (("dark", 420), ("light", 800)):
        opened.set_viewport_size({"width": 390, "height": height})
        opened.emulate_media(color_scheme=scheme)
        assert axe_violations(opened) == []
        assert opened.evaluate("document.documentElement.scrollWidth") == 390
