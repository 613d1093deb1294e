"""What slides change for a room: a name, exercises of the class, short lines of code, links, and the main sentence."""

import ast
import re

from publish import slides
from tests.helpers import ROOT


def notebook(number: str, **options) -> str:
    """Return the page of a deck of a saved notebook."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return slides.make_slides(path, **options).read_text("utf-8")


def test_an_exercise_of_the_course_is_in_the_deck_and_others_are_not(tmp_path):
    page = notebook("04", folder=tmp_path)
    assert re.findall(r"Exercise (4\.\d)", page) == ["4.2"]
    assert "Our version" not in page


def test_code_is_broken_where_python_breaks_it():
    code = "weights = scaled_dot_product(first_argument, second_argument, third_argument, fourth_argument)  # why"
    narrow = slides.narrower(code)
    assert max(map(len, narrow.splitlines())) <= slides.COLUMNS < len(code)
    assert ast.dump(ast.parse(narrow)) == ast.dump(ast.parse(code))
    assert slides.narrower("x = 1") == "x = 1"
    long = "\n".join([code] * (slides.LINES))
    assert slides.narrower(long) == long  # it would add too many lines


def test_the_sentence_that_matters_appears_at_the_last_key_press(page, tmp_path):
    (path,) = (ROOT / "notebooks").glob("03_*.ipynb")
    page.goto(slides.make_slides(path, tmp_path).as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    finding = page.locator(".heading > .sentence", has_text="The same vector went in, and two different ones came out")
    index = finding.evaluate("one => Reveal.getIndices(one.closest('section'))")
    page.evaluate("({h, v}) => Reveal.slide(h, v, -1)", index)
    assert finding.evaluate("one => getComputedStyle(one).visibility") == "hidden"
    while page.evaluate("Reveal.availableFragments().next"):
        page.keyboard.press("ArrowRight")
    finding.wait_for(state="visible")  # it fades in
    assert page.evaluate("Reveal.getIndices().v") == index["v"]
