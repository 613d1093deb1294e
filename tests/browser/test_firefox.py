"""In Firefox: views and figures are drawn, follow pointer and keys and are saved; both pages of the site answer."""

import re

import pytest
import torch
from PIL import Image

from tests.browser import explorer_page, type_bert_page
from tests.browser.figure_examples import FIGURES, NAMES
from views import figures

TAB, UP, DOWN, RIGHT = "\ue004", "\ue013", "\ue015", "\ue014"
HOME, DELETE, ENTER = "\ue011", "\ue017", "\ue007"
explorer_address, site = explorer_page.address, explorer_page.site  # fixtures
type_bert_address, folder = type_bert_page.address, type_bert_page.folder
NUMBERS = "[...document.querySelectorAll('td[data-value]')].map((e) => e.dataset.value).join()"
HALF = 0.01  # large matrices of the explorer's model are stored as float16


def test_the_head_view_follows_the_pointer_and_the_keys(firefox, draw, pair, tmp_path):
    firefox.open(draw["head"](layer=5, heads=[5]).save(tmp_path / "view.html").as_uri())
    firefox.wait_for("!!document.querySelector('.base .ribbon')")
    found = firefox.evaluate("[...document.querySelectorAll('.base .ribbon')].map((e) => +e.dataset.value)")
    assert abs(sum(found) - 13) < 0.05
    rows = "[...new Set([...document.querySelectorAll('.chosen .ribbon')].map((e) => e.dataset.i))].join()"
    for click, away in ((False, False), (True, True), (True, False)):  # pointed at, pinned, and freed
        firefox.point_at("[data-token^=L]", 8, click=click)
        if away:
            firefox.point_at("#help")
        assert firefox.evaluate(rows) == "8"
    firefox.point_at("#help")
    assert firefox.evaluate(rows) == ""
    firefox.evaluate("document.querySelector('#tools label:last-child input').focus()")
    firefox.press(TAB, DOWN, DOWN, UP)
    assert firefox.evaluate(rows) == "1" or firefox.evaluate(rows) == "9"
    weights = pair.attention[5, 5, int(firefox.evaluate(rows))]
    assert f"gives {weights.max():.2f} to " in firefox.evaluate("document.getElementById('say').textContent")


# with a slider, boxes to press, a text to type, and ribbons
@pytest.mark.parametrize("name", ["next_token", "mask_painter", "longest_match", "sentence_view"])
def test_figures_show_what_they_compute_and_fit(firefox, tmp_path, name):
    firefox.resize(390, 900)
    firefox.open(FIGURES[name].make(NAMES).save(tmp_path / "figure.html").as_uri())
    firefox.wait_for("!document.querySelector('html.moving')")
    assert firefox.evaluate(f"({FIGURES[name].script})(document.getElementById('figure'))") == []
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert firefox.heard == []


def test_firefox_drags_an_arrow(firefox, tmp_path):
    """Its numbers change, and are those that the figure computes, which node compares with torch's."""
    uncomputed = FIGURES["attention_in_the_plane"].script
    view = figures.attention_in_the_plane([0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], tokens=NAMES, asking=1)
    firefox.open(view.save(tmp_path / "figure.html").as_uri())
    seen = {firefox.evaluate(NUMBERS)}
    for to in ((120, 90), (300, 260), (250, 120)):
        firefox.drag(".handle", 3, to)
        seen.add(firefox.evaluate(NUMBERS))
        firefox.press(RIGHT, DOWN)
        seen.add(firefox.evaluate(NUMBERS))
        assert firefox.evaluate(f"({uncomputed})(document.getElementById('figure'))") == []
    assert len(seen) > 4  # one place may be outside the figure


def test_a_picture_is_saved(firefox, draw, tmp_path):
    firefox.open(draw["head"](heads=[0, 3]).save(tmp_path / "view.html").as_uri())
    firefox.wait_for("!!document.querySelector('#vis > svg')")
    firefox.point_at("#save [value=png]", click=True)
    title = firefox.evaluate("document.querySelector('h1').textContent").lower()
    path = firefox.downloads / f"{re.sub('[^a-z0-9]+', '_', title)[:60]}.png"
    firefox.wait_until(
        lambda: path.exists() and path.read_bytes().endswith(b"IEND\xaeB`\x82"), f"{path.name} is not saved"
    )
    with Image.open(path) as picture:
        assert min(picture.size) > 400


@pytest.mark.long
def test_a_readers_own_sentence_is_answered(firefox, explorer_address, tokenizer):
    firefox.resize(1280, 800)
    firefox.open(explorer_address)
    firefox.heard.clear()
    firefox.evaluate("document.getElementById('first').scrollIntoView({ block: 'center' })")
    firefox.point_at("#first", click=True)
    firefox.press(HOME, *[DELETE] * len("time flies like an arrow"), *"the cat sat", ENTER)
    firefox.wait_for("document.getElementById('status').textContent.includes('computed here')", 120)
    tokens = firefox.evaluate("[...document.querySelectorAll('#tokens b')].map((e) => e.textContent)")
    assert tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    found = torch.tensor(firefox.evaluate("[...drawings.weights.values]"))
    head = tuple(firefox.evaluate("[followed.layer, followed.head]"))
    wanted = explorer_page.results(explorer_page.in_page(), tokenizer, "the cat sat").weights[head]
    assert 0 < (found - wanted.flatten()).abs().max() <= HALF
    firefox.press(*" down")  # from now on typing is answered, too
    firefox.wait_for("document.querySelectorAll('#tokens b').length === 6")
    assert firefox.heard == []
    # the control: an error of the page, and a request that it refuses
    firefox.evaluate("setTimeout(() => { throw new Error('on purpose'); })")
    firefox.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    firefox.wait_to_hear("on purpose")
    firefox.wait_to_hear("Content-Security-Policy")


@pytest.mark.long
def test_a_typed_line_is_judged(firefox, type_bert_address):
    firefox.resize(390, 700)
    firefox.open(type_bert_address)
    firefox.evaluate("box.scrollIntoView({ block: 'center' })")
    firefox.point_at("#body", click=True)
    firefox.press(*"softmax([dot(query, key) for key in keys])", ENTER)
    firefox.wait_for("by('verdict').textContent.includes('Divide each score')", 180)
    firefox.wait_for("by('effect').textContent.includes('1.00')")
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert firefox.heard == []
