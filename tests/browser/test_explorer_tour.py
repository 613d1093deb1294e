"""explorer.html in a real browser: sums, the flow of a token, guesses, and the tour."""

import re

import pytest
import torch
from playwright.sync_api import expect

from explorer import explorer
from tests.browser.explorer_page import address, axe_violations, encoder, follow, last, site

HALF = 1e-3  # tolerance of the saved rows, which are stored as float16
GUESSES = ("looks", "added", "active", "turned")
__all__ = ["address", "encoder", "last", "site"]
pytestmark = pytest.mark.long


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@pytest.fixture(scope="module")
def computed(encoder, tokenizer):
    """Return torch's results for the saved sentence by name, layers first."""
    batch = tokenizer(explorer.SENTENCE)
    with torch.inference_mode():
        out = encoder(**batch, output_hidden_states=True, output_attentions=True)
        lengths, active = [], []
        for layer, states in zip(encoder.layers, out.hidden_states[:-1], strict=True):
            added, _ = layer.attention(states, batch["attention_mask"])
            between = layer.attention_norm(states + added)
            network = layer.feed_forward(between)
            lengths.append([x[0].pow(2).sum(-1).sqrt() for x in (states, added, between, network)])
            active.append(layer.feed_forward.intermediate(between)[0].gt(0).double().mean(-1))
    tokens = [tokenizer.tokens[i] for i in batch["input_ids"][0].tolist()]
    states = torch.cat(out.hidden_states)
    weights = torch.cat(out.attentions)
    found = {"states": states, "weights": weights, "lengths": lengths, "active": active}
    return found | {"tokens": tokens, "ids": batch["input_ids"][0]}


def test_sums_open(page, address, encoder, computed, last):
    page.goto(address)
    assert not page.locator("#three").is_visible()
    page.locator("#three-rows summary").click()
    expect(page.locator("#three canvas")).to_be_visible()
    table, ids = encoder.embeddings, computed["ids"]
    for layer, token in ((0, 2), (last[0], 5), (1, 0)):
        follow(page, layer=layer, token=token)
        found = page.evaluate("parts.sums.parts")
        words, place = table.word_embeddings.weight[ids[token]], table.position_embeddings.weight[token]
        kind = table.token_type_embeddings.weight[0]
        wanted = torch.stack([words, place, kind, words + place + kind]).detach()
        rows = torch.tensor(found["rows"])
        assert (rows - wanted).abs().max() <= HALF * wanted.abs().max()
        assert torch.equal(torch.tensor(page.evaluate("parts.sums.drawn()")), rows.flatten())
        lengths = torch.stack(computed["lengths"][layer])[:, token]
        assert torch.allclose(torch.tensor(found["lengths"]), lengths, rtol=1e-4)
        assert found["active"] == pytest.approx(float(computed["active"][layer][token]), abs=1e-6)
        shown = [number(text) for text in page.locator("#attention-lengths .number").all_text_contents()]
        assert shown == [pytest.approx(float(length), abs=0.051) for length in lengths[:3]]
        ratio = float(lengths[1] / lengths[0])
        expect(page.locator("#attention-added")).to_contain_text(f"is {ratio:.2f} times as long")
        percent = f"{100 * found['active']:.0f} % are above zero for “{computed['tokens'][token]}”"
        expect(page.locator("#active")).to_contain_text(percent)


def test_a_token_flows_through_the_layers(page, address, encoder, computed):
    page.goto(address)
    L, S = encoder.config.num_hidden_layers, len(computed["tokens"])
    follow(page, token=4)
    mean = computed["weights"].mean(dim=1)[:, 4]
    assert page.locator("#ways path").count() == 0
    for layer in range(L):
        page.locator("#flow-on").click()
        assert page.locator("#ways path").count() == (layer + 1) * S
        ends = page.locator("#ways path.now").evaluate_all(
            "(all) => all.map((e) => e.dataset.ends.split(' ').map(Number))"
        )
        tops, bottoms = torch.tensor(ends).T
        assert torch.allclose(bottoms - tops, 18 * mean[layer], atol=1e-4)
        assert tops[1:].tolist() == pytest.approx(bottoms[:-1].tolist())  # one below the other, and 1 in all
        assert (tops[0], bottoms[-1]) == pytest.approx((-9, 9), abs=1e-4)
        stream, added = (float(computed["lengths"][layer][i][4]) for i in (0, 1))
        expect(page.locator("#flow-words")).to_contain_text(f"is {added / stream:.2f} times as long")
        most = int(mean[layer].argmax())
        name = "itself" if most == 4 else f"“{computed['tokens'][most]}”"
        expect(page.locator("#flow-words")).to_contain_text(f"Layer {layer}: on average")
        expect(page.locator("#flow-words")).to_contain_text(f"looks most at {name} ({mean[layer].max():.2f})")
    expect(page.locator("#flow-on")).to_be_disabled()
    page.locator("#flow-back").click()
    assert page.locator("#ways path").count() == (L - 1) * S
    page.locator("#flow-play").click()
    expect(page.locator("#ways path")).to_have_count(L * S)
    expect(page.locator("#flow-play")).to_have_text("Play again")


def test_reduced_motion_disables_playing(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    expect(page.locator("#flow-play")).to_be_hidden()
    page.locator("#flow-on").click()
    assert page.locator("#ways path").count() > 0
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("name", GUESSES)
def test_a_guess_covers_its_answer(page, address, computed, name):
    """The answer agrees with torch, and is visible and read out only after the guess."""
    page.goto(address)
    follow(page, layer=1, head=7, token=3)
    host = page.locator(f"#guess-{name}")
    host.get_by_role("button", name="Guess first").click()
    covers = page.evaluate(f"GUESSES.{name}.covers")
    for selector in covers:
        expect(page.locator(selector)).not_to_be_visible()
        assert page.locator(selector).evaluate("(e) => e.inert")
    choices = host.get_by_role("button").all_text_contents()[:-1]
    follow(page, token=2)  # the question goes with the token that is followed
    expect(host).to_contain_text("“flies”")
    lengths = torch.stack(computed["lengths"][1])[:, 2]
    states = computed["states"]
    apart = {
        "looks": lambda: -computed["weights"][1, 7, 2],
        "added": lambda: (torch.tensor([0.1, 1 / 3, 1, 3]).log() - (lengths[1] / lengths[0]).log()).abs(),
        "active": lambda: (torch.tensor([0.05, 0.2, 0.5, 0.8]) - computed["active"][1][2]).abs(),
        "turned": lambda: (
            torch.tensor([0.9, 0.6, 0.3, 0]) - torch.cosine_similarity(states[0, 2], states[-1, 2], dim=0)
        ).abs(),
    }[name]()
    right = int(apart.argmin())
    wrong = (right + 1) % len(choices)
    host.get_by_role("button", name=choices[wrong], exact=True).click()
    expect(host).to_contain_text(f"Not {choices[wrong]}, but {choices[right]}.")
    for selector in covers:
        assert not page.locator(selector).evaluate("(e) => e.inert || getComputedStyle(e).visibility === 'hidden'")
    host.get_by_role("button", name="Close").click()
    host.get_by_role("button", name="Guess first").click()
    host.get_by_role("button", name=choices[right], exact=True).click()
    expect(host).to_contain_text(f"Yes: {choices[right]}.")


def test_the_tour_by_keyboard_alone(page, address):
    """Each stop shows its subject, which Tab reaches, and the end restores the initial state."""
    page.goto(address)
    follow(page, layer=1, head=5, token=4)
    page.locator("#first").fill("my own words")
    before = page.evaluate("({ ...followed })")
    page.locator("nav a").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#tour-start")).to_be_focused()
    page.keyboard.press("Enter")
    count = page.evaluate("STOPS.length")
    assert 10 <= count <= 15
    titles = []
    for place in range(count):
        at, title, guess = page.evaluate("(i) => [STOPS[i].at, STOPS[i].title, STOPS[i].guess]", place)
        titles.append(title)
        expect(page.locator("#tour-place")).to_have_text(f"{place + 1} of {count}")
        expect(page.locator("#tour-title")).to_have_text(title)
        expect(page.locator("#tour-title")).to_be_focused()
        expect(page.locator(at)).to_be_in_viewport()
        expect(page.locator(at)).to_have_class(re.compile("toured"))
        if guess:
            covered = page.locator(page.evaluate("(name) => GUESSES[name].covers[0]", guess))
            expect(covered).not_to_be_visible()
            for _ in range(8):  # past the panel's buttons and a link, to the choices
                page.keyboard.press("Tab")
                if page.evaluate("(name) => document.activeElement.closest(`#guess-${name}`) !== null", guess):
                    break
            page.keyboard.press("Enter")
            expect(covered).to_be_visible()
            expect(page.locator("#tour-next")).to_be_focused()
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("ArrowRight")
    assert len(set(titles)) == count
    expect(page.locator("#tour")).to_be_hidden()
    expect(page.locator("#tour-start")).to_be_focused()
    assert page.evaluate("({ ...followed })") == before
    assert page.locator("#first").input_value() == "my own words"
    assert page.heard == []


def test_escape_ends_the_tour_and_back_goes_back(page, address):
    page.goto(address)
    page.locator("#tour-start").click()
    for _ in range(3):
        page.locator("#tour-next").click()
    expect(page.locator("#scores")).not_to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tour-place")).to_have_text(re.compile("^3 of"))
    assert not page.locator("#scores").evaluate("(e) => e.inert")  # a guess that is left is no longer covered
    page.locator("#tour-next").click()
    page.locator("#tour-next").click()  # uncovers
    expect(page.locator("#tour-place")).to_have_text(re.compile("^4 of"))
    expect(page.locator("#scores")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#tour")).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1280])
def test_open_page_is_accessible(page, address, width):
    """With a sum, a guess and the tour open, nothing scrolls horizontally, and axe-core finds no violations."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    page.locator("#three-rows summary").click()
    page.locator("#guess-active").get_by_role("button").click()
    page.locator("#tour-start").click()
    for _ in range(3):
        page.locator("#tour-next").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_violations(page) == []


# Of what a stop speaks of: whether it begins below what sticks to the top, how much of it is under the panel, and how
# much of it the window shows
SEEN = """(i) => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const one = box(STOPS[i].look ?? STOPS[i].at), panel = box("#tour"), bar = box("#bar");
  const across = Math.max(0, Math.min(one.right, panel.right) - Math.max(one.left, panel.left));
  const down = Math.max(0, Math.min(one.bottom, panel.bottom) - Math.max(one.top, panel.top));
  return {
    below: one.top - Math.max(0, bar.bottom), covered: (across * down) / (one.width * one.height),
    fits: one.height <= (across ? panel.top : innerHeight) - Math.max(0, bar.bottom), panel: panel.height,
    part: STOPS[i].look !== undefined,
  };
}"""


@pytest.mark.parametrize("size", [(390, 800), (390, 844), (768, 1024), (1280, 800), (1440, 900)])
def test_the_tours_panel_does_not_cover_what_it_speaks_of(page, address, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(address)
    page.locator("#tour-start").click()
    for place in range(page.evaluate("STOPS.length")):
        seen = page.evaluate(SEEN, place)
        title = page.evaluate("(i) => STOPS[i].title", place)
        assert seen["below"] >= -1, title
        assert seen["fits"] or not seen["part"], title
        assert seen["covered"] == 0 or not seen["fits"], title
        if size[0] >= 1280:
            assert seen["covered"] == 0, title
        if size[0] < 760:
            assert seen["panel"] <= 180, title
            whole = page.locator("#tour-text").evaluate("(e) => e.scrollWidth <= e.clientWidth")
            page.get_by_role("button", name="More", exact=True).click()
            assert whole or page.locator("#tour-text").evaluate("(e) => e.clientHeight >= 40"), title
        page.locator("#tour-next").click()
        if page.evaluate("(i) => STOPS[i].guess !== undefined", place):
            page.locator("#tour-next").click()
    assert page.heard == []


def test_explanations_are_folded_at_first(page, address):
    """This shortens the page; choosing a cell opens its explanation."""
    page.goto(address)
    folded = page.locator("details")
    assert folded.count() >= 5
    assert not any(one.evaluate("(e) => e.open") for one in folded.all())
    page.locator("#weights tbody td").nth(3).click()
    expect(page.locator("#one-dot")).to_be_visible()
    before = page.evaluate("document.documentElement.scrollHeight")
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert page.evaluate("document.documentElement.scrollHeight") > before + 800
