"""explorer.html in a real browser: the explanations of a weight, the scale, a pair and the ending, and links."""

import math

import pytest
import torch
import torch.nn.functional as F
from playwright.sync_api import expect

from explorer import explorer
from tests.browser.explorer_page import (
    PATIENCE,
    address,
    at_first,
    axe_violations,
    cells,
    drawn,
    encoder,
    follow,
    last,
    run_timers,
    running,
    send,
    site,
)
from utils.search import embed, shares_of_cosine

TIRED, WIDE, HUNGRY = (
    f"the animal didn't cross the street because it was too {word}" for word in ("tired", "wide", "hungry")
)
EXACT, STORED = 1e-5, 0.01  # float32 of the saved sentence; large matrices of the page's own model in float16
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def computed(encoder, tokenizer):
    """Return a function from a text to its tokens and all of torch's results, layers first."""

    def compute(*texts):
        batch = tokenizer(*texts)
        asked = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}
        with torch.inference_mode():
            out = encoder(**batch, **asked)
        tokens = [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()]
        states, weights, queries, keys = (
            torch.cat(x) for x in (out.hidden_states, out.attentions, out.queries, out.keys)
        )
        return {"tokens": tokens, "states": states, "weights": weights, "queries": queries, "keys": keys}

    return compute


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def close(found, wanted: torch.Tensor, tolerance: float) -> bool:
    """Compare relative to the largest number, or to 1."""
    wanted = torch.as_tensor(wanted)
    return bool((torch.tensor(found) - wanted).abs().max() <= tolerance * max(1, wanted.abs().max()))


@pytest.mark.parametrize("matrix", ["scores", "weights"])
@pytest.mark.parametrize("way", ["pointer", "keys"])
def test_one_weight_is_taken_apart(page, address, computed, last, matrix, way):
    page.goto(address)
    torchs = computed(explorer.SENTENCE)
    S = len(torchs["tokens"])
    for (layer, head), row, column in (((0, 2), 2, 1), ((1, 7), 0, 6), (last, 5, 5)):
        follow(page, layer=layer, head=head)
        cell = page.locator(f"#{matrix} tbody td")
        if way == "pointer":
            cell.nth(row * S + column).click()
        else:
            page.locator(f"#{matrix} tbody td[tabindex='0']").focus()
            page.keyboard.press("Home")
            for key, count in (("ArrowUp", S), ("ArrowDown", row), ("ArrowRight", column)):
                for _ in range(count):
                    page.keyboard.press(key)
            page.keyboard.press("Enter")
        query, key = torchs["queries"][layer, head, row], torchs["keys"][layer, head, column]
        scores = torchs["queries"][layer, head, row] @ torchs["keys"][layer, head].T / math.sqrt(len(query))
        wanted = {
            "products": query * key,
            "dot": query @ key,
            "score": scores[column],
            "power": scores[column].exp(),
            "total": scores.exp().sum(),
            "share": torchs["weights"][layer, head, row, column],
        }
        found = page.evaluate("({ ...parts.score.parts, products: [...parts.score.parts.products] })")
        for name, value in wanted.items():
            assert close(found[name], value, EXACT), name
        assert page.locator("#weights td.picked").inner_text() == f"{wanted['share']:.2f}"
        assert number(page.locator("#one-share").inner_text().split("= ")[1]) == round(found["share"], 3)
        chosen = page.locator("#one-row .chosen")
        assert chosen.locator("th").inner_text() == f"“{torchs['tokens'][column]}”"
        assert number(chosen.locator("td").last.inner_text()) == round(found["share"], 3)
    assert page.heard == []


def test_tooltip_shows_numbers_of_vectors_and_products(page, address, computed):
    """This covers query, key and products, with the pointer and with arrow keys."""
    page.goto(address)
    page.locator("#weights tbody td").nth(2 * 7 + 1).click()
    torchs = computed(explorer.SENTENCE)
    layer, head = explorer.SHOWN.values()
    query, key = torchs["queries"][layer, head, 2], torchs["keys"][layer, head, 1]
    field = page.locator("#one-vectors canvas")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 3.5 / len(query), box["y"] + box["height"] * 0.75)
    expect(page.locator("#tip")).to_have_text(f"k of “time”, number 3: {key[3]:.3f}".replace("-", "−"))
    page.locator("#one-products canvas").focus()
    page.keyboard.press("End")
    wanted = f"q × k, number {len(query) - 1}: {query[-1] * key[-1]:.3f}".replace("-", "−")
    expect(page.locator("#tip")).to_have_text(wanted)
    expect(page.locator("#spoken")).to_have_text(wanted)


def test_followed_token_is_kept_until_another_is_chosen(page, address):
    page.goto(address)
    asked = page.locator("#one-row .chosen th")
    page.locator("#weights tbody td").nth(2 * 7 + 5).click()
    expect(asked).to_have_text("“arrow”")
    follow(page, head=7)
    expect(asked).to_have_text("“arrow”")
    page.locator("#tokens button").nth(4).click()
    most = drawn(page, "weights").view(7, 7)[4].argmax()
    expect(asked).to_have_text(f"“{page.locator('#tokens b').nth(int(most)).inner_text()}”")


def test_the_slider_divides(page, address, computed):
    """It ranges from 1 to 2√D with √D in the middle, and works by keyboard and pointer."""
    page.goto(address)
    page.locator("#scale summary").click()
    page.locator("#tokens button").nth(3).click()
    torchs = computed(explorer.SENTENCE)
    layer, head = explorer.SHOWN.values()
    root = math.sqrt(torchs["keys"].size(-1))
    products = torchs["queries"][layer, head, 3] @ torchs["keys"][layer, head].T

    def bars() -> torch.Tensor:
        shown = [number(text) for text in page.locator("#bars .number").all_inner_texts()]
        shares = page.evaluate("parts.scale.shares")
        widths = page.locator("#bars .fill").evaluate_all(
            "(all) => all.map((e) => e.offsetWidth / e.parentElement.offsetWidth)"
        )
        assert close(shown, torch.tensor(shares), 0.00051)
        assert close(widths, torch.tensor(shares), 0.01)
        return shares

    slider, said = page.locator("#divisor"), page.locator("#spread")
    assert close(bars(), torchs["weights"][layer, head, 3], EXACT)
    slider.focus()
    page.keyboard.press("Home")
    assert close(bars(), products.softmax(dim=-1), EXACT)
    assert said.inner_text().startswith("In layer 0, head 2, divided by 1.00, “like” gives ")
    page.keyboard.press("ArrowRight")
    assert close(bars(), (products / (1 + (root - 1) / 20)).softmax(dim=-1), EXACT)
    page.keyboard.press("End")
    flat = (products / (2 * root)).softmax(dim=-1)
    assert close(bars(), flat, EXACT)
    assert f"The entropy is {torch.special.entr(flat).sum() / math.log(2):.2f} bits" in said.inner_text()
    assert ("saturated" in said.inner_text()) == bool(flat.max() > 0.99)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert close(bars(), products.softmax(dim=-1), EXACT)
    assert ("saturated" in said.inner_text()) == bool(products.softmax(dim=-1).max() > 0.99)
    page.locator("#own").click()
    assert close(bars(), torchs["weights"][layer, head, 3], EXACT)
    assert slider.get_attribute("aria-valuetext").endswith("the model's own")
    page.locator("#telling").click()
    every = (torchs["queries"][..., 3:4, :] @ torchs["keys"].transpose(-1, -2)).squeeze(-2)  # (L, A, S)
    sharp, flat = ((every / divisor).softmax(dim=-1).amax(dim=-1) for divisor in (1, 2 * root))
    change = sharp - flat
    found = change[tuple(page.evaluate("[followed.layer, followed.head]"))]
    assert found >= change.max() - EXACT > 0


def keep(page, text: str) -> None:
    send(page, text)
    page.locator("#keep").click()
    expect(page.locator("#kept")).to_contain_text(text)


def table(page) -> list[list[str]]:
    return [line.locator("th, td").all_inner_texts()[1:] for line in page.locator("#pair-lines tr").all()]


def test_a_pair_and_its_control_have_torchs_differences(running, computed):
    """The weight that moves is half the sum of a row's absolute differences, as in notebook 07."""
    page, _ = running
    keep(page, TIRED)
    assert "is the kept one" in page.locator("#pair-how").inner_text()
    page.locator("#tokens button", has_text="it").last.click()
    follow(page, layer=1, head=3)
    send(page, WIDE)
    assert [line[1] for line in table(page)] == ["–"] * 4
    page.locator("#control-text").fill(HUNGRY)
    page.locator("#control-text").press("Enter")
    expect(page.locator("#pair .pair-held").first).to_have_text("control: tired → hungry", timeout=PATIENCE)
    tired, wide, hungry = map(computed, (TIRED, WIDE, HUNGRY))
    it = tired["tokens"].index("it")
    found = page.evaluate("parts.pair.measured")
    for name, other in (("now", wide), ("held", hungry)):
        difference = other["weights"] - tired["weights"]
        moved = difference.abs().sum(dim=-1) / 2
        wanted = {
            "here": moved[1, 3, it],
            "heads": moved[..., it].mean(),
            "all": moved.mean(),
            "cosine": F.cosine_similarity(tired["states"][-1, it], other["states"][-1, it], dim=0),
        }
        for kind, value in wanted.items():
            assert abs(found[name][kind] - value) <= STORED, (name, kind)
    assert table(page) == [
        [f"{found[name][kind]:.2f}" for name in ("now", "held")] for kind in ("here", "heads", "all", "cosine")
    ]
    difference = (wide["weights"] - tired["weights"])[1, 3]
    assert (cells(page, "pair-map").view_as(difference) - difference).abs().max() <= STORED + 0.0051
    moved = (wide["weights"] - tired["weights"]).abs().sum(dim=-1)[..., it] / 2
    first = page.locator("#pair-most button").first.inner_text()
    layer, head = (int(part.split()[1]) for part in first.split(", "))
    assert moved[layer, head] >= moved.max() - STORED
    page.locator("#pair-most button").first.press("Enter")
    expect(page.locator("#pair-most button").first).to_be_focused()
    assert (page.locator("#layer").input_value(), page.locator("#head").input_value()) == (str(layer), str(head))
    page.locator("#pair-heads [aria-checked=true]").press("Home")
    assert page.locator("#head").input_value() == "0"


def test_pair_of_other_length_is_aligned_or_refused(running, computed):
    page, _ = running
    keep(page, "the cat sat on the mat")
    send(page, "the black cat sat on the carpet")
    cat, black = map(computed, ("the cat sat on the mat", "the black cat sat on the carpet"))
    assert page.locator("#pair-map thead th").all_inner_texts()[2] == "– → black"
    follow(page, token=3, layer=0, head=1)
    rest = [0, 1, 3, 4, 5, 6, 7, 8]  # without "black"
    difference = black["weights"][0, 1, 3][rest] - cat["weights"][0, 1, 2]
    wanted = (difference.abs().sum() + black["weights"][0, 1, 3, 2]) / 2
    assert abs(page.evaluate("parts.pair.measured.now.here") - wanted) <= STORED
    follow(page, token=2)
    assert "is in the new text only" in page.locator("#pair-words").inner_text()
    assert not page.locator("#pair-numbers").is_visible()
    send(page, "fruit flies like a banana")
    assert "shares 2 of 8 tokens with the kept sentence" in page.locator("#pair-how").inner_text()
    assert not page.locator("#pair-shown").is_visible()


def test_align_finds_corresponding_tokens(page, address):
    page.goto(address)
    cases = (
        ("a b c", "a x c", [[[0], [0]], [[1], [1]], [[2], [2]]]),
        ("a b c", "a x y c", [[[0], [0]], [[1], [1, 2]], [[2], [3]]]),
        ("a b c", "a c", [[[0], [0]], [[1], []], [[2], [1]]]),
        ("a c", "a b c", [[[0], [0]], [[], [1]], [[1], [2]]]),
        ("a b a c", "a c a b", [[[0], [0]], [[1], [1]], [[2], [2]], [[3], [3]]]),
    )
    for first, second, wanted in cases:
        found = page.evaluate("(ab) => align(...ab).map(({ a, b }) => [a, b])", [first.split(), second.split()])
        assert found == wanted, (first, second)


def test_a_ready_pair_is_one_click(running):
    page, _ = running
    send(page, "good")
    page.locator("#pair-examples button").first.click()
    expect(page.locator("#pair .pair-held").first).to_have_text("control: tired → hungry", timeout=PATIENCE)
    expect(page.locator("#pair .pair-now").first).to_have_text("tired → wide", timeout=PATIENCE)
    assert page.locator("#token option:checked").inner_text() == "10 it"
    expect(page.locator("#one-row .chosen th")).to_have_text("“animal”")
    page.locator("#control-text").fill("\u200b")
    page.locator("#control-form button").click()
    expect(page.locator("#pair-status")).to_have_text("No token is left of this text: type a word.")


def nearness(page) -> list[float]:
    return page.evaluate("parts.ending.cosines")


def cosines(texts, encoder, tokenizer) -> torch.Tensor:
    first, *others = embed(list(texts), encoder, tokenizer)
    return torch.stack([first @ other for other in others])


def test_the_ending_compares_sentences_before_the_model_is_there(page, address, encoder, tokenizer):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    wanted = cosines((explorer.SENTENCE, *explorer.ENDING), encoder, tokenizer)
    assert close(nearness(page), wanted, EXACT)
    shown = [number(text) for text in page.locator("#nearness .number").all_inner_texts()]
    assert close(shown, wanted, 0.0051)
    assert asked == at_first(address)


def test_the_ending_compares_the_readers_sentences(running, encoder, tokenizer):
    page, _ = running
    texts = ("a dog is barking", "there is a noisy hound", "the bark of a tree")
    send(page, texts[0])
    assert close(nearness(page), cosines((texts[0], *explorer.ENDING), encoder, tokenizer), STORED)
    page.locator("#other").fill(texts[1])
    page.locator("#ending-control").fill(texts[2])
    page.locator("#ending-control").press("Enter")
    expect(page.locator("#nearness .name").last).to_have_text(texts[2], timeout=PATIENCE)
    assert close(nearness(page), cosines(texts, encoder, tokenizer), STORED)
    page.locator("#other").fill(" ")
    page.locator("#ending-form button").click()
    expect(page.locator("#ending-status")).to_have_text("There is no text yet: type a sentence.")
    page.locator("#ready").click()
    expect(page.locator("#nearness .name").first).to_have_text(explorer.ENDING[0])
    assert page.locator("#first").input_value() == explorer.SENTENCE
    assert close(nearness(page), cosines((explorer.SENTENCE, *explorer.ENDING), encoder, tokenizer), EXACT)


def shares_drawn(page, first: str, other: str, encoder, tokenizer, tolerance: float) -> torch.Tensor:
    """Return the shares that the page draws, checking that they agree with torch and add up to the cosine."""
    with torch.inference_mode():
        states = [encoder(**tokenizer(text)).last_hidden_state[0] for text in (first, other)]
    wanted = shares_of_cosine(*states)
    found = torch.tensor(page.evaluate("[...parts.ending.near.shares]")).view_as(wanted)
    assert (found - wanted).abs().max() <= tolerance
    for side, name in enumerate(("near-left", "near-right")):
        totals = [number(text) for text in page.locator(f"#{name} small").all_inner_texts()]
        assert close(totals, found.sum(dim=1 - side), 0.0051)
    at = page.locator("#near-with").input_value()
    cosine = page.evaluate(f"parts.ending.cosines[{at}]")
    assert abs(found.sum() - cosine) <= 1e-5
    said = f"All {wanted.numel()} shares add up to {cosine:.3f}, and the cosine is {cosine:.3f}.".replace("-", "−")
    assert page.locator("#near-words").inner_text().startswith(said)
    thickness = page.locator("#near-lines line").evaluate_all(
        "(all) => all.map((e) => +e.getAttribute('stroke-width'))"
    )
    largest = found.abs().flatten().sort(descending=True).values[:80]
    assert close(thickness, (9 * largest / largest[0]).clamp(min=0.4), 1e-3)
    dashed = page.locator("#near-lines line.minus").count()
    assert dashed == (found.flatten()[found.abs().flatten().sort(descending=True).indices[:80]] < 0).sum()
    return found


def test_why_they_are_near_adds_up_before_the_model_is_there(page, address, encoder, tokenizer):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    for at, text in enumerate(explorer.ENDING):
        page.locator("#near-with").select_option(str(at))
        shares_drawn(page, explorer.SENTENCE, text, encoder, tokenizer, EXACT)
    assert asked == at_first(address)
    assert page.heard == []


@pytest.mark.parametrize("way", ["pointer", "keys"])
def test_near_shows_share_of_pair_and_total_of_token(page, address, encoder, tokenizer, way):
    page.goto(address)
    found = shares_drawn(page, explorer.SENTENCE, explorer.ENDING[0], encoder, tokenizer, EXACT)
    left, right = (page.locator(f"#near-{side} button") for side in ("left", "right"))
    said, drawn_lines = page.locator("#near-words"), page.locator("#near-lines line:not(.dim)")
    cosine = f"{found.sum():.3f}"
    if way == "pointer":
        right.nth(5).hover()
    else:
        right.first.focus()
        for _ in range(5):
            page.keyboard.press("ArrowDown")
    total = f"{found[:, 5].sum():.3f} of the cosine {cosine}.".replace("-", "−")
    expect(said).to_contain_text(f"“fast” with all tokens of the other sentence: {total}")
    expect(drawn_lines).to_have_count(len(found))
    if way == "pointer":
        right.nth(5).click()
        left.nth(2).click()
    else:
        left.first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
    expect(said).to_have_text(f"“flies” with “fast”: {found[2, 5]:.3f} of the cosine {cosine}.".replace("-", "−"))
    expect(drawn_lines).to_have_count(1)
    page.locator("#near-all").press("Enter")
    expect(said).to_contain_text("All 49 shares")
    thick = page.locator("#near-lines line").first
    thick.dispatch_event("pointerenter")
    assert page.locator("#near-lines line:not(.dim)").count() == 1
    i, j = divmod(int(found.abs().argmax()), found.size(1))
    expect(said).to_contain_text(f"{found[i, j]:.3f} of the cosine {cosine}.".replace("-", "−"))
    thick.dispatch_event("pointerleave")
    expect(said).to_contain_text("All 49 shares")


def test_signs_differ_in_colour_and_form(page, address):
    draw = """() => {
      parts.ending.near.draw([["a", "b"], ["c"]], Float32Array.of(0.5, -0.25), 0.25);
      const styles = [...document.querySelectorAll("#near-lines line")].map((line) => getComputedStyle(line));
      return styles.map(({ stroke, strokeDasharray }) => [stroke, strokeDasharray]);
    }"""
    page.goto(address)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        plus, minus = page.evaluate(draw)
        assert plus[0] != minus[0]
        assert (plus[1], minus[1]) == ("none", "5px, 4px")


def test_shares_of_own_sentences(running, encoder, tokenizer):
    page, _ = running
    page.locator("#ready").click()
    page.locator("#near-with").select_option("0")
    send(page, "a dog is barking")
    expect(page.locator("#near-left button")).to_have_count(6)
    expect(page.locator("#near-words")).to_contain_text("All 42 shares", timeout=PATIENCE)
    shares_drawn(page, "a dog is barking", explorer.ENDING[0], encoder, tokenizer, STORED)
    page.locator("#other").fill("<b>unbelievably</b> " * 2)
    page.locator("#other").press("Enter")
    expect(page.locator("#nearness .name").first).to_contain_text("unbelievably", timeout=PATIENCE)
    found = shares_drawn(page, "a dog is barking", "<b>unbelievably</b> " * 2, encoder, tokenizer, STORED)
    assert page.locator("#near b").count() == 0
    assert f"The {found.numel() - 80} smallest have no line." in page.locator("#near-words").inner_text()
    page.locator("#near-with").select_option("1")
    shares_drawn(page, "a dog is barking", explorer.ENDING[1], encoder, tokenizer, STORED)
    page.locator("#ready").click()
    shares_drawn(page, explorer.SENTENCE, explorer.ENDING[1], encoder, tokenizer, EXACT)
    page.locator("#near-with").select_option("0")


def test_the_curve_is_the_cosine_to_the_embedding(page, address, computed):
    page.goto(address)
    page.locator("#tokens button").nth(5).click()
    states = computed(explorer.SENTENCE)["states"][:, 5]
    wanted = F.cosine_similarity(states, states[:1], dim=-1)
    assert close(page.evaluate("parts.ending.curve"), wanted, EXACT)
    labels = page.locator("#curve .value").all_text_contents()
    assert labels == [f"{value:.2f}".replace("-", "−") for value in wanted.tolist()]


def test_page_from_folder_fetches_nothing(page, site):
    page.goto((site / "explorer.html").as_uri() + "#s=other&l=2")
    assert page.locator("#layer").input_value() == "2"
    assert page.locator("#first").input_value() == explorer.SENTENCE
    page.locator("#pair-examples button").first.click()
    expect(page.locator("#pair-status")).to_contain_text("From a folder this page cannot load the model")
    assert page.heard == []


def links_of(page) -> str:
    """Return the address once it no longer changes."""
    run_timers(page)
    return page.url


def test_an_untouched_page_has_a_plain_address(page, address):
    page.goto(address)
    assert links_of(page) == address


def test_a_link_leads_back_without_the_model(page, address):
    page.goto(address)
    page.locator("#heads button").nth(17).click()
    page.locator("#weights tbody td").nth(4 * 7 + 2).click()
    page.locator("#scale summary").click()
    page.locator("#divisor").focus()
    page.keyboard.press("ArrowLeft")
    link = links_of(page)
    assert link.split("#")[1] == "l=1&h=5&t=4&k=2&d=-1"
    words, spread = (page.locator(f"#{name}").inner_text() for name in ("one-words", "spread"))
    page.goto("about:blank")
    page.goto(link)
    assert (page.locator("#layer").input_value(), page.locator("#head").input_value()) == ("1", "5")
    assert page.locator("#token").input_value() == "4"
    assert page.locator("#one-words").inner_text() == words
    assert page.locator("#spread").inner_text() == spread
    assert links_of(page) == link


def test_link_with_texts_waits_for_enter(running, address):
    """Its text appears in the boxes without fetching anything; Enter restores the rest."""
    page, _ = running
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#pair-examples button").nth(1).click()
    expect(page.locator("#pair .pair-now").first).to_have_text("oak → dog", timeout=PATIENCE)
    page.locator("#other").fill("the dog sleeps")
    page.locator("#other").press("Enter")
    expect(page.locator("#nearness .name").first).to_have_text("the dog sleeps", timeout=PATIENCE)
    page.locator("#weights tbody td").nth(3 * 9 + 5).click()
    page.locator("#copy-link").click()
    expect(page.locator("#status")).to_contain_text("The link is copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    shown = ("one-words", "pair-words", "pair-lines", "nearer", "spread")
    before = [page.locator(f"#{name}").inner_text() for name in shown]
    other, asked = page.context.new_page(), []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    expect(other.locator("#status")).to_contain_text("Press Enter")
    assert other.locator("#first").input_value() == "the bark of the dog is very rough"
    assert other.locator("#tokens b").all_inner_texts()[1] == "time"
    other.locator("#heads button").first.click()  # a look around loses nothing
    other.locator("#heads button").nth(1).click()
    run_timers(other)
    assert [url.split("#")[0] for url in asked] == at_first(address)
    assert other.url == link
    other.locator("#first").press("Enter")
    expect(other.locator("#pair .pair-held").first).to_have_text("control: oak → pine", timeout=PATIENCE)
    expect(other.locator("#nearness .name").first).to_have_text("the dog sleeps", timeout=PATIENCE)
    assert [other.locator(f"#{name}").inner_text() for name in shown] == before
    assert links_of(other) == link
    other.close()


@pytest.mark.parametrize(
    "hash_",
    [
        "s=<img src=x onerror=alert(1)>&l=1",
        "s=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E&keep=%00&b=%E0%A4%A",
        "l=99&h=-5&t=1000000000&k=NaN&d=999",
        "l=1e1&h=__proto__&t=constructor&k=&d=--",
        "__proto__[x]=1&constructor=2&s2=only&keep2=x",
        "=&&&===%&#%23",
        "s=" + "word%20" * 1000,
    ],
)
def test_a_hostile_address_is_inert(page, address, hash_):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("about:blank")
    page.goto(f"{address}#{hash_}")
    page.locator("#weights tbody td").first.wait_for()
    run_timers(page)
    assert page.locator("#tokens b").all_inner_texts()[1:-1] == explorer.SENTENCE.split()
    assert page.evaluate("followed.layer >= 0 && followed.layer < L && followed.head >= 0 && followed.head < A")
    assert page.evaluate("followed.token < shown.tokens.length && followed.key < shown.tokens.length")
    assert len(page.locator("#first").input_value()) <= explorer.LIMITS["characters"]
    assert [url.split("#")[0] for url in asked if url != "about:blank"] == at_first(address)
    drawn = page.evaluate("[...document.querySelectorAll('img, iframe')].map((e) => e.src)")
    assert drawn == at_first(address)[1:]  # nothing but the picture at the top
    assert page.heard == []


@pytest.mark.parametrize("width", [390, 1280])
def test_explanations_are_accessible(running, width):
    """With a pair, a control and an error, nothing scrolls horizontally, and axe-core finds no violations."""
    page, _ = running
    size = page.viewport_size
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#pair-examples button").first.click()
    expect(page.locator("#pair .pair-now").first).to_have_text("tired → wide", timeout=PATIENCE)
    page.locator("#other").fill("")
    page.locator("#ending-form button").click()
    expect(page.locator("#ending-status")).to_contain_text("no text")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_violations(page) == []
    page.locator("#other").fill(explorer.ENDING[0])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)


@pytest.mark.parametrize("words", [16, 46])
def test_paper_holds_every_column(running, words):
    """Printed matrices fit the page for any number of tokens."""
    page, _ = running
    size = page.viewport_size
    keep(page, "word " * words)
    send(page, "word " * (words - 1) + "good")
    page.set_viewport_size({"width": 718, "height": 900})  # A4 between margins of 1 cm
    page.emulate_media(media="print")
    for name in ("scores", "weights", "pair-map"):
        box = page.locator(f"#{name} tbody td").last.bounding_box()
        assert box["width"] >= 9
        assert box["x"] + box["width"] <= 718, name
    page.emulate_media(media="screen")
    page.set_viewport_size(size)
