"""What is right is not accused, however odd, and what cheats gets no point without a mark: notebook 03."""

import pytest

from exercises.grading import grade
from exercises.grading.report import report
from tests.exercises.hand_ins import CHEATS, HEAD, HONEST, SHAPES, TELLING, hand_in, mistakes, original

pytestmark = pytest.mark.long
HELPER = "def largest(x):\n    return x.amax(dim=-1, keepdim=True)"
USES_IT = "def softmax_by_hand(s):\n    e = (s - largest(s)).exp()\n    return e / e.sum(-1, keepdim=True)"
BORROWED_ABOVE = f"from utils.attention import AttentionHead as A\n{SHAPES}"


def test_no_right_answer_is_accused_and_no_cheat_gets_points_without_a_mark(tmp_path):
    """Some of each; tests/slow has all."""
    some = {number: dict(list(cases.items())[:4]) for number, cases in HONEST.items()}
    assert not mistakes(tmp_path, some, CHEATS | {"3.5": {name: CHEATS["3.5"][name] for name in TELLING}})


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> dict:
    """What is said of a few, by name."""
    folder = tmp_path_factory.mktemp("class")
    paths = [
        hand_in(folder / "helper below.ipynb", {"3.1": USES_IT}, below=HELPER),
        hand_in(folder / "import above.ipynb", {"3.2": BORROWED_ABOVE, "3.5": "MyHead = A"}),
        hand_in(folder / "copied.ipynb", {"3.5": HEAD.replace(" mask", " padding")}),
        hand_in(folder / "neighbour.ipynb", {"3.5": f"# all mine\n{HEAD}"}),
        hand_in(folder / "another.ipynb", {}, "04"),
    ]
    return {row.name: row for row in grade(original("03"), paths, processes=2)}


def test_what_an_earlier_exercise_imports_is_still_borrowed(rows):
    assert rows["import above"].points("3.2")
    assert "the series' own AttentionHead" in rows["import above"].verdicts["3.5"].words
    assert rows["import above"].points("3.5") == 0


def test_a_cell_below_is_run_and_told(rows):
    assert rows["helper below"].points("3.1") == 2
    assert rows["helper below"].remarks == ["3.1 uses a cell that stands below it"]


def test_another_notebook_is_told(rows):
    assert "another.ipynb is notebook 04, not 03" in " ".join(rows["another"].remarks)


def test_who_has_the_same_is_told_whatever_the_names(rows):
    assert rows["copied"].alike["3.5"] == ["neighbour"]
    assert "same as: 3.5: copied" in report([rows["neighbour"]])
    assert rows["copied"].points("3.5") == 3
