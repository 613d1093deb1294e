"""Saved views work when opened from a file without internet."""

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from tests.browser import reader
from tests.browser.figure_examples import FIGURES, NAMES, SHOWN, open_figure
from tests.families import FAMILIES, byte_level, sharp_model
from views import head_view, model_view, neuron_view

USES = {"head": reader.use_head_view, "model": reader.use_model_view, "neuron": reader.use_neuron_view}
DRAW = {"head": head_view, "model": model_view, "neuron": neuron_view}
CELL = reader.SQUARES
CHOSEN = f"""() => {{
  const root = document.getElementById("figure");
  return [...({SHOWN})(root), ...[...root.querySelectorAll("input")].map((e) => e.value + e.checked)];
}}"""  # the numbers of a figure, and its controls
HOSTILE = [
    "</script>",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "a\u2028b\u2029c",
    "'\"`${alert(1)}",
    "');alert(1)//",
    "\\u003cimg src=x onerror=alert(1)>",
    "&lt;b&gt;&amp;",
]


# how often a view changes its size in a quarter of a second
RESTLESS = """() => new Promise((done) => {
  let changes = 0;
  new MutationObserver((all) => { changes += all.length; }).observe(document.body, {attributes: true});
  setTimeout(() => done(changes), 250);
})"""


@pytest.mark.parametrize("name", USES)
def test_a_reader_uses_each_view(page, draw, pair, tmp_path, name):
    reader.open_saved(page, draw[name](), tmp_path)
    USES[name](page, pair)
    assert page.heard == []


@pytest.mark.parametrize("name", USES)
def test_view_is_not_cropped(page, draw, tmp_path, name):
    reader.open_saved(page, draw[name](), tmp_path)
    if name == "model":
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    for width in (1300, 700, 358):
        page.set_viewport_size({"width": width, "height": 900})
        assert reader.cropped(page) == []


FOREIGN = [*HOSTILE, "\x1b[31mred\x1b[0m", "\u202eabc", "\u200b", "\n", "שלום", "🙂", "a b"]


@pytest.fixture(scope="module")
def foreign() -> tuple:
    """Return a small GPT-2 with a byte vocabulary in which each of these texts is a token."""
    bytewise = byte_level(FOREIGN)
    bytewise.add_tokens(FOREIGN)
    return sharp_model("gpt2", FAMILIES["gpt2"] | {"vocab_size": len(bytewise)}), bytewise


@pytest.mark.parametrize("name", USES)
def test_hostile_tokens_are_shown_and_not_run(page, foreign, tmp_path, name):
    reader.open_saved(page, DRAW[name](*foreign, "".join(FOREIGN)), tmp_path)
    if name == "model":
        page.locator(CELL).first.click(position={"x": 10, "y": 10})
    left = {
        "head": f"{reader.LEFT} > text:first-of-type",
        "model": "g.detail >> nth=0 >> text.token",
        "neuron": ".sums .key",
    }[name]
    shown = page.locator(left).all_text_contents()
    assert [token for token in FOREIGN if token.isprintable() and token not in shown] == []
    assert {"\\x1b[31mred\\x1b[0m", "\\u202eabc", "\\u200b", "\\n"} <= set(shown)
    assert page.locator("img, #vis script, #vis b").count() == 0
    assert page.heard == []


@pytest.mark.parametrize("width", [1300, 700])
@pytest.mark.parametrize("name", USES)
def test_view_with_long_tokens_stops_resizing(page, foreign, tmp_path, name, width):
    """Zooming changes the width of text slightly, which must not make the view resize forever."""
    page.set_viewport_size({"width": width, "height": 900})
    (frame,) = reader.open_in_frames(page, [DRAW[name](*foreign, "".join(HOSTILE))], tmp_path)
    changes = [frame.locator("html").evaluate(RESTLESS)]
    while changes[-1] > 2 and len(changes) < 40:
        changes.append(frame.locator("html").evaluate(RESTLESS))
    assert changes[-1] <= 2, changes


# The numbers that can be seen in a drawing, but for those on controls, and the words on controls.
SEEN = """(drawing) => {
  const control = "option, select, button:not(.cell, [role], [aria-pressed]), summary, details:not([open]), #tools";
  const walker = document.createTreeWalker(drawing, NodeFilter.SHOW_TEXT), texts = [], words = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement, label = parent.closest("label");
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const isOff = label?.querySelector("input:is([type=radio], [type=checkbox]):not(:checked)");
    (parent.closest(`${control}, .rests`) || isOff ? words : texts).push(node.textContent);
  }
  for (const input of drawing.querySelectorAll("[type=number]")) texts.push(input.value);
  return [texts.join(" "), words];
}"""


def check_saved_picture(page, folder: Path) -> None:
    """Check that the picture saved as SVG and PNG holds all numbers of the drawing, and nothing to press."""
    texts, controls = page.locator("#figure, #view").evaluate(SEEN)
    files = {}
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.locator(f"#save [value={kind}]").click()
        download.value.save_as(files.setdefault(kind, folder / f"picture.{kind}"))
    drawn = ElementTree.parse(files["svg"])
    written = [" ".join(each.itertext()) for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    numbers = re.compile(r"\d+(?:[.,]\d+)*")
    missing = Counter(numbers.findall(texts)) - Counter(numbers.findall(" ".join(written)))
    assert not missing
    alone = {text.strip() for text in written}
    assert not {word.strip() for word in controls if re.search(r"[a-z]{3}", word)} & alone - set(texts.split())
    with Image.open(files["png"]) as picture:
        assert min(picture.size) > 400
        assert len(picture.convert("RGB").getcolors(1_000_000)) > 20


@pytest.mark.parametrize("name", USES)
def test_a_saved_view_holds_every_number(page, draw, tmp_path, name):
    reader.open_saved(page, draw[name](layer=2) if name != "model" else draw[name](), tmp_path)
    check_saved_picture(page, tmp_path)
    if name == "head":
        page.locator(reader.LEFT).nth(8).click()
    if name == "model":
        page.locator(CELL).nth(5).click(position={"x": 10, "y": 10})
    reader.settle(page)
    check_saved_picture(page, tmp_path)
    assert page.heard == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_saved_figure_holds_every_number(page, tmp_path, name):
    page.emulate_media(reduced_motion="reduce")
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    check_saved_picture(page, tmp_path)
    FIGURES[name].use(page)
    check_saved_picture(page, tmp_path)
    assert page.heard == []


@pytest.mark.parametrize("name", FIGURES)
def test_the_address_of_a_figure_brings_back_what_was_chosen(page, tmp_path, name):
    page.emulate_media(reduced_motion="reduce")
    open_figure(page, FIGURES[name].make(NAMES), tmp_path)
    before = page.evaluate(CHOSEN)
    FIGURES[name].use(page)
    page.wait_for_timeout(50)
    after, address = page.evaluate(CHOSEN), page.url
    assert after != before
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_timeout(50)
    assert page.evaluate(CHOSEN) == after
    assert page.heard == []


def test_large_model_view_draws_every_weight_in_squares(page, many, tmp_path):
    weights, tokens = many
    reader.open_saved(page, model_view(weights, tokens), tmp_path)
    reader.check_colours(page, ".square image", weights)
    assert page.get_by_label("as bertviz draws it").count() == 0  # with 589,824 lines
