"""Saved views work when opened from a file without internet."""

import pytest

from tests.browser import reader
from tests.families import FAMILIES, byte_level, sharp_model
from views import head_view, model_view, neuron_view

DRAW = {"head": head_view, "model": model_view, "neuron": neuron_view}
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


FOREIGN = [*HOSTILE, "\x1b[31mred\x1b[0m", "\u202eabc", "\u200b", "\n", "שלום", "🙂", "a b"]


@pytest.fixture(scope="module")
def foreign() -> tuple:
    """Return a small GPT-2 with a byte vocabulary in which each of these texts is a token."""
    bytewise = byte_level(FOREIGN)
    bytewise.add_tokens(FOREIGN)
    return sharp_model("gpt2", FAMILIES["gpt2"] | {"vocab_size": len(bytewise)}), bytewise


@pytest.mark.parametrize("name", DRAW)
def test_hostile_tokens_are_shown_and_not_run(page, foreign, tmp_path, name):
    reader.open_saved(page, DRAW[name](*foreign, "".join(FOREIGN)), tmp_path)
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
@pytest.mark.parametrize("name", DRAW)
def test_view_with_long_tokens_stops_resizing(page, foreign, tmp_path, name, width):
    """Zooming changes the width of text slightly, which must not make the view resize forever."""
    page.set_viewport_size({"width": width, "height": 900})
    (frame,) = reader.open_in_frames(page, [DRAW[name](*foreign, "".join(HOSTILE))], tmp_path)
    changes = [frame.locator("html").evaluate(RESTLESS)]
    while changes[-1] > 2 and len(changes) < 40:
        changes.append(frame.locator("html").evaluate(RESTLESS))
    assert changes[-1] <= 2, changes
