"""type_bert.html in Chromium, served and as one file: the visit by keyboard, answers, the whole model, a phone."""

import json
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from exercises.diagnosis.reference import default_reference
from publish.type_bert import build
from tests.browser.explorer_page import axe_violations
from tests.browser.type_bert_page import JUDGE, address, folder, for_browsers, visit
from utils.search import embed
from utils.support.checkpoint import DEFAULT_CHECKPOINT

PATIENCE = 180_000  # milliseconds, for a busy machine
LINE = "return softmax([dot(query, key) / math.sqrt(len(query)) for key in keys])"
pytestmark = pytest.mark.long


def type_lines(page, lines: str) -> None:
    """Type into the box by keyboard; Enter checks a complete last line."""
    page.locator("#body").press("Control+A")
    for line in lines.split("\n"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")


def weights(page) -> list[float]:
    return page.frame_locator("#own").locator(".word").evaluate_all("(all) => all.map((e) => +e.dataset.value)")


def test_the_visit_by_keyboard(page, address, encoder, tokenizer):
    """A line typed before Python is ready waits; wrong, it is drawn with dashes; right, it agrees; a link keeps it."""
    visit(page, address)
    see = page.frame_locator("#view")
    expect(see.locator(".controls")).to_be_hidden()
    expect(page.frame_locator("#own").locator(".outline[d^=M]")).to_have_count(0)
    expect(page.frame_locator("#own").locator("h1")).to_have_text("“it” looks at all tokens alike")
    expect(page.frame_locator("#own").locator(".most")).to_have_count(0)
    type_lines(page, "softmax([dot(query, key) for key in keys])")
    expect(page.locator("#verdict")).to_contain_text("Python is still starting")
    page.locator("#guesses button").nth(1).press("Enter")
    official = []
    for word in build.WORDS:
        with torch.inference_mode():
            output = encoder(**tokenizer(build.SENTENCE.format(word)), output_attentions=True)
        official.append(output.attentions[build.LAYER][0, build.HEAD, 10])
    tired, narrow = official
    for index, word in ((2, "animal"), (8, "street")):
        said = f"“{word}” gets {narrow[index]:.2f}, {'more' if narrow[index] > tired[index] else 'less'} than the "
        expect(page.locator("#refuted")).to_contain_text(f"{said}{tired[index]:.2f} with “tired”")
    expect(see.get_by_role("radio", name="both in one picture")).to_be_checked()
    expect(page.locator("#verdict")).to_contain_text("Divide each score by √D", timeout=PATIENCE)
    expect(page.locator("#effect")).to_contain_text(f"“animal” 1.00 instead of {tired[2]:.2f}")
    assert weights(page)[2] > 0.99
    expect(page.frame_locator("#own").locator(".outline[d^=M]")).not_to_have_count(0)
    type_lines(page, LINE)
    expect(page.locator("#effect")).to_contain_text(
        "All 512 weights of this head agree with PyTorch's", timeout=PATIENCE
    )
    assert torch.allclose(torch.tensor(weights(page)), tired, atol=1e-5)
    expect(page.locator("#link")).to_have_text("1 of 8 lines are yours")
    page.locator("#next").press("Enter")
    expect(page.locator("#task-title")).to_contain_text("average: ")
    expect(page.locator("#body")).to_be_focused()
    page.locator("#ours").press("Enter")
    expect(page.locator("#verdict")).to_contain_text("This is our line.", timeout=PATIENCE)
    link = page.locator("#link").evaluate("(e) => e.href")
    page.reload()
    expect(page.locator("#link")).to_have_text("1 of 8 lines are yours", timeout=PATIENCE)
    visit(page, link)
    expect(page.locator("#brought")).to_contain_text("lines for weights_of. They have not run yet")
    expect(page.locator("#link")).to_have_text("0 of 8 lines are yours")
    page.locator("#run-brought").click(timeout=PATIENCE)
    expect(page.locator("#link")).to_have_text("1 of 8 lines are yours", timeout=PATIENCE)
    expect(page.locator("#brought")).to_be_hidden()
    assert page.locator("#body").input_value() == LINE
    page.locator("#ours").press("Enter")
    expect(page.locator("#link")).to_have_text("0 of 8 lines are yours", timeout=PATIENCE)
    assert page.evaluate("location.hash") == ""  # a reload does not make it the reader's again
    assert page.heard == []


def test_the_whole_model_runs_with_the_readers_lines(page, address, encoder, tokenizer):
    """It agrees with the encoder; a wrong line changes it; the page cannot send anything elsewhere.

    Then answers are judged as in Python.
    """
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    visit(page, address)
    expect(page.locator("#loaded")).to_have_text("The model is loaded.", timeout=PATIENCE)
    assert asked[-1].endswith(build.FILES["model"])  # after Python
    texts = ["dogs bark", "a hound is loud", "time flies"]
    vectors = embed(texts, encoder, tokenizer)
    page.evaluate(JUDGE, [{"gap": "average", "body": "return [dot(weights, column) for column in zip(*values)]"}])
    for name, text in zip(("first", "second", "third"), texts, strict=True):
        page.locator(f"#{name}").fill(text)
    page.locator("#third").press("Enter")
    expect(page.locator("#cosine")).to_contain_text("your average in all layers", timeout=PATIENCE)
    expect(page.locator("#cosine")).to_contain_text("“a hound is loud” is nearer.")
    found = [float(text.split()[0]) for text in page.locator("#near li").all_text_contents()]
    assert found == pytest.approx((vectors[1:] @ vectors[0]).tolist(), abs=0.016)
    page.locator("#third").fill("")
    expect(page.locator("#near li")).to_have_count(0)
    expect(page.locator("#cosine")).to_be_empty()
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


def test_the_one_file_stops_draws_and_fits_a_phone_with_its_keyboard(page, folder):
    """Calls wait until Python has started again, and what is said is in the window.

    Nothing scrolls sideways, and axe-core finds nothing, in both themes.
    """
    visit(page, (folder / "file.html").as_uri())
    page.set_viewport_size({"width": 390, "height": 420})
    page.locator("#body").fill("while True: pass")
    page.locator("#check").click()
    page.wait_for_function("() => !by('stop').disabled && (by('stop').click(), true)", timeout=PATIENCE)
    expect(page.locator("#verdict")).to_have_text("Stopped.")
    found = page.evaluate("ask('check', { gap, body: 'scores', mine: {} })")
    assert "`scores` is not known here" in found["hint"]
    page.locator("#body").fill("scores")
    page.locator("#body").press("Enter")
    expect(page.locator("#verdict")).to_contain_text("`scores` is not known here", timeout=PATIENCE)
    expect(page.locator("#verdict")).to_be_in_viewport()
    type_lines(page, LINE)
    expect(page.locator("#effect")).to_contain_text(
        "All 512 weights of this head agree with PyTorch's", timeout=PATIENCE
    )
    assert sum(weights(page)) == pytest.approx(1, abs=1e-5)
    for scheme, height in (("dark", 420), ("light", 800)):
        page.set_viewport_size({"width": 390, "height": height})
        page.emulate_media(color_scheme=scheme)
        assert axe_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_one_file_draws_the_readers_sentence(page, folder, encoder, tokenizer):
    """By the reader's line, with BERT's ribbons below where they differ; after Right, the ribbons are in the window."""
    assert (folder / "file.html").stat().st_size <= 48e6
    text = "The cat slept, since it was tired."
    with torch.inference_mode():
        official = encoder(**tokenizer(text), output_attentions=True).attentions[build.LAYER][0, build.HEAD, 6]
    visit(page, (folder / "file.html").as_uri())
    page.locator("#sentence").fill(text)
    words = page.frame_locator("#heads").locator(".word")
    wrong = "print(query)\nsoftmax([dot(query, key) for key in keys])"
    for line, said in ((wrong, "“animal” 1.00 instead of"), (LINE, "All 512 weights")):
        page.locator("#body").fill(line)
        page.locator("#body").press("Control+Enter")
        expect(page.locator("#effect")).to_contain_text(said, timeout=PATIENCE)
        expect(page.locator("#printed")).to_have_text(re.compile("0.0, 0.0]" if line == wrong else "^$"))
        if line == LINE:
            for width, height in ((1280, 800), (390, 844)):
                page.set_viewport_size({"width": width, "height": height})
                page.evaluate("reveal()")
                expect(page.frame_locator("#own").locator(".word").nth(2)).to_be_in_viewport(ratio=0.99)
        page.locator("#sentence").press("Enter")
        ends = "give other ribbons" if line == wrong else "give the same ribbons"
        expect(page.locator("#looked")).to_contain_text(ends, timeout=PATIENCE)
        shown = torch.tensor(words.evaluate_all("(all) => all.map((e) => +e.dataset.value)"))
        other = torch.tensor(words.evaluate_all("(all) => all.map((e) => +e.dataset.other)"))
        assert torch.allclose(shown if line == LINE else other, official, atol=0.012)
        assert (shown.max() > 0.95) == (line != LINE)
    page.locator("#embed").click()
    expect(page.locator("#near li")).to_have_count(2, timeout=PATIENCE)
    assert axe_violations(page) == []
    page.reload()
    assert page.locator("#sentence").input_value() == text
    page.locator("#sentence").fill("")
    expect(page.locator("#whole")).to_be_hidden()
    assert page.heard == []


def test_a_dropped_file_of_numbers_is_named(page, folder, tmp_path):
    """Dropped by the mouse, not chosen; the rows to feed are the command's."""
    reference = default_reference(DEFAULT_CHECKPOINT)
    np.save(tmp_path / "out.npy", reference.last("no √D").numpy())
    visit(page, (folder / "file.html").as_uri())
    page.get_by_text("Does a BERT that you have built").click()
    page.locator("#file").scroll_into_view_if_needed()
    box, devtools = page.locator("#file").bounding_box(), page.context.new_cdp_session(page)
    dropped = {"items": [], "files": [str(tmp_path / "out.npy")], "dragOperationsMask": 1}
    for step in ("dragEnter", "dragOver", "drop"):
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + 9}
        devtools.send("Input.dispatchDragEvent", {"type": step, **place, "data": dropped})
    expect(page.locator("#diagnosis")).to_contain_text("Scores are not divided by √D")
    expect(page.locator("#diagnosis")).to_contain_text("See exercise 3.2.")
    (tmp_path / "out.json").write_text("{")
    page.locator("#file").set_input_files(tmp_path / "out.json")
    expect(page.locator("#diagnosis")).to_contain_text("JSON")
    with page.expect_download() as found:
        page.locator("#probe").click()
    probed = json.loads(found.value.path().read_text("utf-8"))
    assert probed["input_ids"] == reference.batch[0].tolist()
    assert axe_violations(page) == []
    assert page.heard == []
