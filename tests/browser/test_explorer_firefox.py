"""explorer.html in Firefox, by pointer and keys: it answers a sentence of the reader's own."""

import pytest
import torch

from tests.browser.explorer_page import address, encoder, results, site

HOME, DELETE, ENTER = "\ue011", "\ue017", "\ue007"
HALF = 0.01  # large matrices of the page's model are stored as float16
__all__ = ["address", "encoder", "site"]
pytestmark = pytest.mark.long


@pytest.fixture
def page(firefox, address):
    firefox.resize(1280, 800)
    firefox.open(address)
    firefox.heard.clear()
    return firefox


def test_a_readers_own_sentence_is_answered(page, encoder, tokenizer):
    page.evaluate("document.getElementById('first').scrollIntoView({ block: 'center' })")
    page.point_at("#first", click=True)
    page.press(HOME, *[DELETE] * len("time flies like an arrow"), *"the cat sat", ENTER)
    page.wait_for("document.getElementById('status').textContent.includes('computed here')", 120)
    tokens = page.evaluate("[...document.querySelectorAll('#tokens b')].map((e) => e.textContent)")
    assert tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    found = torch.tensor(page.evaluate("[...drawings.weights.values]"))
    head = tuple(page.evaluate("[followed.layer, followed.head]"))
    wanted = results(encoder, tokenizer, "the cat sat").weights[head]
    assert 0 < (found - wanted.flatten()).abs().max() <= HALF
    page.press(*" down")  # from now on typing is answered, too
    page.wait_for("document.querySelectorAll('#tokens b').length === 6")
    assert page.heard == []


def test_console_errors_are_recorded(page):
    """The control of the tests above, which find it empty: an error of the page, and a request that it refuses."""
    page.evaluate("setTimeout(() => { throw new Error('on purpose'); })")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.wait_to_hear("on purpose")
    page.wait_to_hear("Content-Security-Policy")
