"""In Firefox: views and figures are drawn, follow pointer and keys and are saved; both pages of the site answer."""

import json
import re

import pytest
import torch
from PIL import Image

from tests.browser import explorer_page, type_bert_page
from tests.browser.figure_examples import FIGURES, NAMES
from utils.attention import scaled_dot_product_attention
from views import figures

TAB, UP, DOWN, RIGHT = "\ue004", "\ue013", "\ue015", "\ue014"
HOME, DELETE, ENTER = "\ue011", "\ue017", "\ue007"
explorer_address, site = explorer_page.address, explorer_page.site  # fixtures
type_bert_address, folder = type_bert_page.address, type_bert_page.folder
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


def test_the_neuron_view_marks_and_the_model_view_enlarges(firefox, draw, pair, tmp_path):
    firefox.open(draw["neuron"](layer=1, head=3, token=8).save(tmp_path / "view.html").as_uri())
    firefox.wait_for("!!document.querySelector('.block')")
    firefox.point_at(".block", 32 * 3 + 1)
    neuron = firefox.evaluate("+document.querySelector('.block.marked').dataset.neuron")
    q, k = pair.queries[1, 3, 8, neuron], pair.keys[1, 3, 3, neuron]
    said = f"Neuron {neuron}: query of “his” {q:.2f} × key of “ian” {k:.2f} ÷ √32 = {q * k / 32**0.5:.2f}. "
    assert firefox.evaluate("document.getElementById('say').textContent").startswith(said.replace("-", "−"))
    firefox.open(draw["model"](include_layers=[2, 5]).save(tmp_path / "view.html").as_uri())
    firefox.wait_for("!!document.querySelector('.square')")
    firefox.point_at(".square > .press", 12 + 5, click=True)
    assert firefox.evaluate("document.querySelector('text.detail').textContent") == "Layer 5, head 5"
    assert firefox.evaluate("[...document.querySelectorAll('.square image')].every((e) => e.href.baseVal.length > 100)")
    firefox.point_at("g.detail text.token", 8)
    weights, columns = pair.attention[5, 5, 8].topk(3)
    said = firefox.evaluate("document.getElementById('say').textContent")
    assert said.startswith(f"layer 5, head 5: his → {pair.tokens[columns[0]]} {weights[0]:.2f}, ")


def shown(firefox, selector: str) -> torch.Tensor:
    """Return the unrounded numbers of these elements."""
    numbers = firefox.evaluate(f"[...document.querySelectorAll('{selector}')].map((e) => +e.dataset.value)")
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_what_they_compute_and_fit(firefox, tmp_path, name):
    firefox.open(FIGURES[name].make(NAMES).save(tmp_path / "figure.html").as_uri())
    for width in (1280, 390):
        firefox.resize(width, 900)
        firefox.wait_for("!document.querySelector('html.moving')")
        assert firefox.evaluate(f"({FIGURES[name].script})(document.getElementById('figure'))") == []
        assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert firefox.heard == []


def test_firefox_drags_an_arrow(firefox, tmp_path):
    keys = torch.tensor([[2, 2.5], [-2.5, 1], [1.5, -2.5]], dtype=torch.float64)
    view = figures.attention_in_the_plane([0.6, 0.9], keys, tokens=["time", "flies", "arrow"], asking=1)
    firefox.open(view.save(tmp_path / "figure.html").as_uri())
    for to in ((120, 90), (300, 260), (90, 330), (250, 120)):
        firefox.drag(".handle", 3, to)
        firefox.press(RIGHT, DOWN)
        point = firefox.evaluate("(({x, y}) => [+x, +y])([...document.querySelectorAll('.handle')].at(-1).dataset)")
        query = torch.tensor(point, dtype=torch.float64)
        average, weights = scaled_dot_product_attention(query[None, None], keys[None], keys[None])
        table = shown(firefox, "td[data-value]").view(3, 4)
        assert torch.allclose(table[:, 0], keys @ query, atol=1e-5)
        assert torch.allclose(table[:, 3], weights[0, 0], atol=1e-5)
        assert torch.allclose(shown(firefox, "[class^=average]"), average[0, 0], atol=1e-5)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_is_saved(firefox, draw, tmp_path, kind):
    firefox.open(draw["head"](heads=[0, 3]).save(tmp_path / "view.html").as_uri())
    firefox.wait_for("!!document.querySelector('#vis > svg')")
    firefox.point_at(f"#save [value={kind}]", click=True)
    title = firefox.evaluate("document.querySelector('h1').textContent").lower()
    path = firefox.downloads / f"{re.sub('[^a-z0-9]+', '_', title)[:60]}.{kind}"
    ends = (b"</svg>", b"IEND\xaeB`\x82")
    firefox.wait_until(lambda: path.exists() and path.read_bytes()[-12:].endswith(ends), f"{path.name} is not saved")
    if kind == "png":
        with Image.open(path) as picture:
            assert min(picture.size) > 400
    else:
        firefox.open(path.as_uri())
        assert firefox.evaluate("document.querySelectorAll('path').length") > 100


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
@pytest.mark.parametrize("kind", ["site", "file"])
def test_firefox_judges_every_answer_alike(firefox, type_bert_address, folder, kind):
    firefox.resize(390, 700)
    firefox.open(type_bert_address if kind == "site" else (folder / "file.html").as_uri())
    firefox.evaluate("box.scrollIntoView({ block: 'center' })")
    firefox.point_at("#body", click=True)
    firefox.press(*"softmax([dot(query, key) for key in keys])", ENTER)
    firefox.wait_for("by('verdict').textContent.includes('Divide each score')", 180)
    firefox.wait_for("by('effect').textContent.includes('1.00')")
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    answers = type_bert_page.for_browsers() if kind == "site" else []
    asked = json.dumps([{"gap": gap, "body": body} for gap, _, body in answers])
    firefox.evaluate(f"({type_bert_page.JUDGE})({asked}).then((said) => {{ window.said = said; }}) && 0")
    firefox.wait_for("window.said !== undefined", 600)
    said = firefox.evaluate("window.said")
    assert [(a, b) for a, b in zip(answers, said, strict=True) if a[1] not in b] == []
    assert firefox.heard == []
