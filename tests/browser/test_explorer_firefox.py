"""explorer.html in Firefox, by pointer and keys: it loads, leads through its tour, answers a sentence of one's own."""

import pytest
import torch

from tests.browser.explorer_page import address, encoder, site

HOME, DELETE, ENTER, RIGHT, ESCAPE = "\ue011", "\ue017", "\ue007", "\ue014", "\ue00c"
HALF = 0.01  # large matrices of the page's model are stored as float16
__all__ = ["address", "encoder", "site"]
pytestmark = pytest.mark.long


@pytest.fixture
def page(firefox, address):
    firefox.resize(1280, 800)
    firefox.open(address)
    firefox.heard.clear()
    return firefox


def text(page, selector: str) -> str:
    return page.evaluate(f"document.querySelector({selector!r}).textContent")


def weights(encoder, tokenizer, sentence: str, layer: int, head: int) -> torch.Tensor:
    with torch.inference_mode():
        return encoder(**tokenizer(sentence), output_attentions=True).attentions[layer][0, head].flatten()


def test_the_saved_sentence_is_drawn_and_tells_its_numbers(page, encoder, tokenizer):
    wanted = weights(encoder, tokenizer, "time flies like an arrow", 0, 2)
    assert torch.allclose(torch.tensor(page.evaluate("[...drawings.weights.values]")), wanted, atol=1e-5)
    page.evaluate("document.getElementById('weights').scrollIntoView({ block: 'center' })")
    page.point_at("#weights tbody td", 2 * 7 + 1)
    assert text(page, "#tip") == f"layer 0, head 2: flies → time {wanted[2 * 7 + 1]:.3f}"
    assert page.heard == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_tour_is_walked(page, width):
    """With the pointer, then with keys: at each stop what it speaks of is in the window, and not under the panel."""
    page.resize(width, 800)
    page.point_at("#tour-start", click=True)
    count = page.evaluate("STOPS.length")
    for place in range(count):
        title, at, guess = page.evaluate(f"(({{title, at, guess}}) => [title, at, guess])(STOPS[{place}])")
        assert text(page, "#tour-place") == f"{place + 1} of {count}"
        assert text(page, "#tour-title") == title
        seen = """((e) => {
          const box = e.getBoundingClientRect();
          return document.elementFromPoint(box.left + box.width / 2, Math.max(box.top, 80) + 8).closest("#tour, #bar");
        })"""
        assert page.evaluate(f"{seen}(document.querySelector(STOPS[{place}].look ?? {at!r})) === null"), title
        if guess:
            page.point_at("#tour-next", click=True)  # uncovers the answer
        if place % 2:
            page.press(RIGHT)
        else:
            page.point_at("#tour-next", click=True)
    assert page.evaluate("document.getElementById('tour').hidden")
    assert page.evaluate("document.activeElement.id") == "tour-start"
    page.point_at("#tour-start", click=True)
    page.press(ESCAPE)
    assert page.evaluate("document.getElementById('tour').hidden")
    assert page.heard == []


def test_a_readers_own_sentence_is_answered(page, encoder, tokenizer):
    page.evaluate("document.getElementById('first').scrollIntoView({ block: 'center' })")
    page.point_at("#first", click=True)
    page.press(HOME, *[DELETE] * len("time flies like an arrow"), *"the cat sat", ENTER)
    page.wait_for("document.getElementById('status').textContent.includes('computed here')", 120)
    tokens = page.evaluate("[...document.querySelectorAll('#tokens b')].map((e) => e.textContent)")
    assert tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    found = torch.tensor(page.evaluate("[...drawings.weights.values]"))
    wanted = weights(encoder, tokenizer, "the cat sat", 0, 2)
    assert 0 < (found - wanted).abs().max() <= HALF
    page.press(*" down")  # from now on typing is answered, too
    page.wait_for("document.querySelectorAll('#tokens b').length === 6")
    assert page.heard == []


def test_console_errors_are_recorded(page):
    """The control of the tests above, which find it empty: an error of the page, and a request that it refuses."""
    page.evaluate("setTimeout(() => { throw new Error('on purpose'); })")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.wait_to_hear("on purpose")
    page.wait_to_hear("Content-Security-Policy")
