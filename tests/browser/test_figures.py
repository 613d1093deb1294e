"""Draggable figures compute torch's numbers, show what they compute, and can be used by pointer, keys and finger."""

import random

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.figure_examples import FIGURES, NAMES, SHOWN, Finger, close, middle, open_figure, stop_clock
from tests.browser.reader import check_saved_picture
from views import figures
from views.models import visible
from views.page import View

HOSTILE = ["</script>", "<img src=x onerror=alert(1)>", "$x$ & \u2028"]
NAMES_BEGIN_WITH_TEXT = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # off in axe unless requested
DRAWN = "document.getElementById('figure').innerHTML"
# the numbers of a figure, and its controls
CHOSEN = f"""() => {{
  const root = document.getElementById("figure");
  return [...({SHOWN})(root), ...[...root.querySelectorAll("input")].map((e) => e.value + e.checked)];
}}"""
ADDRESS = "new Promise((done) => setTimeout(() => done(location.href)))"  # after what a page does a moment later
SIZES = """(all) => all.filter((e) => e.getClientRects().length).map((e) => e.getBoundingClientRect())
  .map(({ width, height }) => Math.min(width, height))"""
every_figure = pytest.mark.parametrize("name", FIGURES)


@every_figure
def test_figure_shows_its_numbers_and_takes_keys(page, tmp_path, name):
    """What is shown is what `compute` returns: at first, after a key, and from the address of that, on a phone.

    Nothing is too small, too wide or unnamed; saved pictures hold every number. One figure is light, the next dark.
    """
    example, schemes = FIGURES[name], ("light", "dark")[:: (-1) ** ([*FIGURES].index(name) % 2)]
    page.emulate_media(color_scheme=schemes[0])
    open_figure(page, example.make(NAMES), tmp_path)
    assert example.uncomputed(page) == []
    shown = page.locator("#help").evaluate("(e) => e.firstChild.textContent")
    assert shown.count(". ") <= 1  # the rest is behind "?"
    before, drawn = page.evaluate(CHOSEN), page.evaluate(DRAWN)
    example.use(page)
    assert (after := page.evaluate(CHOSEN)) != before
    assert page.evaluate(DRAWN) != drawn
    page.set_viewport_size({"width": 1280, "height": 900})
    check_room(page, schemes[0])
    address = page.evaluate(ADDRESS)
    page.goto("about:blank")
    page.set_viewport_size({"width": 390, "height": 900})
    page.emulate_media(color_scheme=schemes[1])
    page.goto(address)
    assert page.evaluate(ADDRESS) == address
    assert page.evaluate(CHOSEN) == after
    assert example.uncomputed(page) == []
    check_room(page, schemes[1])
    assert Axe().run(page, options=NAMES_BEGIN_WITH_TEXT).response["violations"] == []
    check_saved_picture(page, tmp_path)
    assert page.heard == []


def test_a_sentence_view_computes_torchs_numbers(page, tmp_path):
    """For fifty random states; node computes those of the other figures."""
    example, chance = FIGURES["sentence_view"], random.Random(0)
    open_figure(page, example.make(NAMES), tmp_path)
    states = [example.state(chance) for _ in range(50)]
    found = page.evaluate(f"(states) => states.map((one) => ({example.compute})(one))", states)
    for state, one in zip(states, found, strict=True):
        example.check(state, one)


def check_room(page, scheme: str) -> None:
    """Check that a figure has this theme, and fits the window, with controls large enough for a finger."""
    expect(page.locator(f"html.{scheme}")).to_be_attached()
    assert "undefined" not in page.locator("main").inner_text()  # a word that a sentence lacks
    assert page.locator("html").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    # radio buttons and checkboxes are as large as their labels
    pressed = "button, select, summary, .handle, .curtain, label, input:not([type=radio], [type=checkbox])"
    assert page.locator(":is([type=radio], [type=checkbox]):not(label *)").count() == 0
    sizes = page.locator(pressed).evaluate_all(SIZES)
    assert sizes
    assert min(sizes) >= 24


@every_figure
def test_a_finger_moves_the_figure_and_not_the_page(phone, tmp_path, name):
    """On a phone, in a page that is longer than the window, as on the site."""
    view = FIGURES[name].make(NAMES)
    view = View(view.summary, view.page.replace("</main>", "</main><p style='height: 900px'>", 1))
    open_figure(phone, view, tmp_path)
    finger = Finger(phone)
    FIGURES[name].touch(phone, finger)
    assert finger.scrolled == 0
    phone.evaluate("scrollTo(0, 0)")
    finger.drag((385, 650), (385, 500))  # the control: beside the figure, the page scrolls
    phone.wait_for_function("scrollY > 50")


@pytest.mark.parametrize("name", ["attention_in_the_plane", "merges", "sentence_view"])
def test_a_change_is_a_move_of_less_than_a_second(timed, tmp_path, name):
    """It takes 300 to 700 ms, by the page's own clock; under reduced motion it takes none."""
    selector, key = FIGURES[name].change
    for motion in ("no-preference", "reduce"):
        timed.emulate_media(reduced_motion=motion)
        open_figure(timed, FIGURES[name].make(NAMES), tmp_path)
        timed.clock.run_for(1000)
        stop_clock(timed)
        timed.locator(selector).first.press(key)
        seen = {timed.evaluate(DRAWN)}
        for _ in range(3):
            assert timed.locator("html.moving").count() == (motion != "reduce")
            timed.clock.run_for(100)
            seen.add(timed.evaluate(DRAWN))
        assert len(seen) == (4 if motion != "reduce" else 1)
        timed.clock.run_for(400)
        assert timed.locator("html.moving").count() == 0
        timed.clock.resume()


@every_figure
def test_hostile_names_in_a_frame_are_shown_and_run_nothing(page, tmp_path, name):
    view = FIGURES[name].make(HOSTILE)
    file = tmp_path / "frame.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{view._repr_html_()}", "utf-8")
    page.goto(file.as_uri())
    expect(page.locator("p")).to_be_hidden()  # it is replaced by the figure
    inside = page.frame_locator("iframe")
    assert inside.locator("html").evaluate("(e) => e.scrollHeight - e.clientHeight") == 0
    assert page.locator("iframe").bounding_box()["height"] < 900
    named = inside.locator("#figure [aria-label]").evaluate_all("(all) => all.map((e) => e.ariaLabel)")  # of cut names
    text = " ".join([inside.locator("#figure").text_content(), *named])
    assert all(part in text or visible(part) in text for part in HOSTILE)
    assert inside.locator("img, #figure script, h1 *").count() == 0
    assert page.locator("body script").count() == 0
    assert page.heard == []
    drawing = (figures.FOLDER / f"{name}.js").read_text("utf-8")
    assert len(drawing.encode()) <= 20_000
    assert "://" not in view.page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("name", ["longest_match", "merges", "split_and_merge"])
def test_steps_play_until_the_end_or_a_readers_hand(timed, tmp_path, name):
    open_figure(timed, FIGURES[name].make(NAMES), tmp_path)
    stop_clock(timed)
    play, slider = timed.locator(".steps button").first, timed.locator(".steps input")
    slider.press("Home")
    play.click()
    timed.clock.run_for(2100)
    assert slider.input_value() == "3"
    timed.get_by_role("button", name="back").click()
    timed.clock.run_for(3000)
    assert slider.input_value() == "2"
    assert play.text_content() == "▶ play"
    play.click()
    timed.clock.run_for(60_000)
    assert slider.input_value() == slider.get_attribute("max")
    play.click()
    assert slider.input_value() == "0"
    assert play.text_content() == "❙❙ pause"


def test_a_head_under_another_arrow_can_still_be_taken(page, tmp_path):
    """The average covers the query when that points to a key, which is where readers drag it."""
    keys = [[2, 2.5], [-2.5, 1], [1.5, -2.5]]
    open_figure(page, figures.attention_in_the_plane([0.6, 0.9], keys, tokens=NAMES, asking=1), tmp_path)
    query, box = page.locator(".handle").last, page.locator("svg").bounding_box()
    for along in (0.6, 0.4, 0.7):  # of the way to the key of “time”
        x, y = (box[corner] + box["width"] * (5 + at * along) / 10 for corner, at in (("x", 2), ("y", -2.5)))
        page.mouse.move(*middle(query))
        page.mouse.down()
        page.mouse.move(x, y, steps=2)
        page.mouse.up()
        assert max(abs(a - b) for a, b in zip(middle(query), (x, y), strict=True)) < 6


def test_where_both_move_the_product_stays(page, tmp_path):
    open_figure(page, figures.rotary_turn(), tmp_path)
    query, key = page.locator(".strip input").all()
    first = page.evaluate("compute(state()).product")
    page.get_by_role("checkbox").check()
    for _ in range(9):  # the query has no room for more than five
        key.press("ArrowRight")
    assert [query.input_value(), key.input_value()] == ["11", "8"]
    assert page.evaluate("compute(state()).product") == pytest.approx(first, abs=1e-9)
    assert "and so does their product" in page.locator("#say").text_content()


def test_what_is_written_adds_up_exactly(page, tmp_path):
    """Also where every number is rounded; 40 numbers follow by a button."""
    word, position, kind = (0.1 * torch.randn(5, 40, generator=torch.Generator().manual_seed(3))).split([2, 2, 1])
    open_figure(page, figures.sum_and_scale(word, position, kind, NAMES[:2]), tmp_path)
    rows = page.locator(".written div").evaluate_all(
        "(all) => all.map((row) => [...row.children].map((e) => e.textContent))"
    )
    parts = [[round(1000 * float(text.replace("\u2212", "-"))) for text in row] for row in rows[1:5]]
    assert [sum(column) for column in zip(*parts[:3], strict=True)] == parts[3]
    page.get_by_role("button", name="now all 40 numbers").click()
    page.get_by_role("button", name="LayerNorm").click()
    assert "Now the mean of all 40 numbers is 0.000" in page.locator("#say").text_content()
    assert close(page.evaluate("compute(state).total"), (word[0] + position[1] + kind[0]).double())


def test_darts_stay_where_they_fell_and_the_ruler_moves(page, tmp_path):
    open_figure(page, FIGURES["next_token"].make(NAMES), tmp_path)
    places, drawn = "[...document.querySelectorAll('.dart')].map((e) => e.getAttribute('cx'))", "compute(state).drawn"
    before, tally = page.evaluate(places), page.evaluate(drawn)
    page.locator(".curtain").press("Home")
    assert page.evaluate(places) == before
    assert len(before) == 100
    assert sum(tally) == 100
    assert page.evaluate(drawn)[0] == 100
    page.get_by_role("button", name="throw 100").click()
    assert page.evaluate(places)[:100] == before
    assert page.evaluate(drawn)[0] == 200
