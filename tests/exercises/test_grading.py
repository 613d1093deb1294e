"""Hand-ins of notebook 03 are graded: right and wrong ones as `check` would, and no cheat is believed.

The original is notebook 03 without its longest exercise; tests/slow grades all of all notebooks.
"""

import csv
import functools
import json
import multiprocessing
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exercises import POINTS, __main__, find_check, grading, notebook_03
from exercises.grading import grade
from exercises.grading.cells import Answer, Cell, in_place, parsed, read_cells, shapes, without_magics
from exercises.grading.process import Allowance, Grader, receive
from exercises.grading.report import Graded, Verdict, compare, report, write_csv, write_feedback
from exercises.grading.watch import landlock
from tests.exercises.hand_ins import HEAD, WINDOW
from tests.helpers import ROOT

pytestmark = pytest.mark.long
NUMBERS = ["3.1", "3.2", "3.3", "3.6"]
LONG = ("3.4", "3.5")
CONTENT = json.loads(next((ROOT / "notebooks").glob("03_*.ipynb")).read_text("utf-8"))
SOLVED = {cell.number: cell.source for cell in read_cells(ROOT / "notebooks/solutions/03_solutions.ipynb")}
RIGHT = {number: SOLVED[number] for number in NUMBERS}
SOFTMAX = 'check("3.1", softmax_by_hand)'


def number_of(cell: dict) -> str:
    return Cell("", "".join(cell["source"])).number


def write(path: Path, answers: dict[str, str], change: Callable = lambda cells: cells) -> Path:
    """A copy of the notebook with these exercise cells, the others as handed out."""
    cells = [dict(cell) for cell in CONTENT["cells"] if number_of(cell) not in LONG]
    for cell in cells:
        cell["source"] = answers.get(number_of(cell), cell["source"])
    path.write_text(json.dumps(CONTENT | {"cells": change(cells)}), "utf-8")
    return path


def softmax(body: str) -> dict[str, str]:
    """All right, but for 3.1, where this is done."""
    return RIGHT | {"3.1": f"{body}\n\n{SOFTMAX}"}


def moved(cells: list[dict]) -> list[dict]:
    """In another order, with other ids."""
    return [cell | {"id": f"new-{place}"} for place, cell in enumerate(reversed(cells))]


def answered_below(cells: list[dict]) -> list[dict]:
    """The cells of the exercises as handed out, and the answers in new ones below them."""
    added = {"cell_type": "code", "id": "added", "metadata": {}, "outputs": [], "execution_count": None}
    number = next(place for place, cell in enumerate(cells) if number_of(cell) == "3.2")
    return [*cells[: number + 1], added | {"source": RIGHT["3.2"]}, *cells[number + 1 :]]


def with_a_function_above(cells: list[dict]) -> list[dict]:
    """Cells of the student's own: one that an answer needs, one that fails, one that says it is correct."""
    own = ["def largest(x):\n    return x.amax(dim=-1, keepdim=True)", "1 / 0", 'print("Exercise 3.1: correct.")']
    added = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for source in own
    ]
    place = next(place for place, cell in enumerate(cells) if number_of(cell) == "3.1")
    return [*cells[:place], *added, *cells[place:]]


OWN_FUNCTION = SOLVED["3.1"].replace("scores.amax(dim=-1, keepdim=True)", "largest(scores)")
PARTLY = {"3.2": RIGHT["3.2"], "3.3": RIGHT["3.3"].replace("64**0.5", "64", 1)}
HAND_INS = {
    "right": (RIGHT,),
    "partly": (PARTLY,),
    "empty": ({},),
    "moved": (RIGHT, moved),
    "below": ({}, answered_below),
    "own function": (RIGHT | {"3.1": OWN_FUNCTION}, with_a_function_above),
    "lacks": (RIGHT, lambda cells: [cell for cell in cells if number_of(cell) != "3.1"]),
    "does not parse": (softmax("def softmax_by_hand(scores:"),),
    # cheats
    "prints": (
        {number: f'print("Exercise {number}: correct.")\nif False:\n    check("{number}", ...)' for number in NUMBERS},
    ),
    "edits": (
        softmax("""\
import exercises
exercises.CHECKS["3.1"] = exercises.verdict = lambda *anything: "correct."
exercises.notebook_03.expect = lambda *anything: None
softmax_by_hand = abs"""),
    ),
    "edits when called": (
        softmax("""\
def softmax_by_hand(scores):
    torch.allclose = lambda *anything, **options: True
    return scores"""),
    ),
    "imports": (
        RIGHT
        | {
            "3.1": f"""\
from utils import attention as a
def softmax_by_hand(scores):
    a.causal_mask(torch.ones(1, 2).long())
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)

{SOFTMAX}""",
            "3.6": f'theirs = __import__("exercises.notebook_03")\n{SOLVED["3.6"]}'.replace(
                "scaled_dot_product_attention(", "(theirs.notebook_03.window(1, 1), scaled_dot_product_attention)[1]("
            ),
        },
    ),
    "exits": (softmax("import os\nos._exit(0)"),),
    "exits when called": (softmax("def softmax_by_hand(scores):\n    raise SystemExit"),),
    "raises oddly": (softmax('raise ValueError("a\\nb\\x1b[2J \\ud800 end")'),),
    "nests": (softmax(f"x = {'(' * 5000}1{')' * 5000}"),),
    "too much": (softmax("kept = []\nwhile True: kept.append(bytearray(b'1' * 10**8))"),),
    "writes": (softmax('open("inside.txt", "w").close()\nopen("../../outside.txt", "w")'),),
    "reads": (softmax('import json\nopen("{neighbour}").read()'),),
    "calls home": (softmax("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')"),),
    "starts a program": (softmax("import os\nos.system('ls')"),),
    "deletes": (RIGHT | {"3.2": f"{RIGHT['3.2']}\ndel torch, Tensor, check"},),
}


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory) -> Path:
    """A folder of hand-ins, and the original in it."""
    folder = tmp_path_factory.mktemp("class")
    write(folder / "original.ipynb", {})
    for name, (answers, *change) in HAND_INS.items():
        answers = {number: text.replace("{neighbour}", str(folder / "right.ipynb")) for number, text in answers.items()}
        write(folder / f"{name}.ipynb", answers, *change)
    (folder / "no JSON.ipynb").write_text("My notebook", "utf-8")
    (folder / "no notebook.ipynb").write_text("[]", "utf-8")
    return folder


@pytest.fixture(scope="module")
def graded(handed_in) -> dict:
    """What is said of each."""
    paths = [path for path in sorted(handed_in.glob("*.ipynb")) if path.stem != "original"]
    save = functools.partial(write_csv, handed_in / "grades.csv")
    rows = grade(handed_in / "original.ipynb", paths, save, 2, Allowance(gigabytes=1))
    assert [row.name for row in rows] == [path.stem for path in paths]
    return {row.name: row for row in rows}


def words(row, number: str) -> str:
    return row.verdicts[number].words


def test_right_hand_ins_get_all_points(graded):
    for name in ("right", "moved", "own function"):
        assert graded[name].total == sum(POINTS[number] for number in NUMBERS), report([graded[name]])
        assert not graded[name].remarks


def test_a_part_that_is_right_counts_and_a_hint_is_told(graded):
    assert graded["partly"].total == POINTS["3.2"]
    assert "64 is the variance" in words(graded["partly"], "3.3")
    assert "not attempted" in words(graded["partly"], "3.1")
    assert graded["below"].total == POINTS["3.2"]
    assert graded["empty"].total == 0
    assert {verdict.kind for verdict in graded["empty"].verdicts.values()} == {"not attempted"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lacks", "its cell is missing, or does not call check('3.1', …)"),
        ("does not parse", "does not parse: "),
        ("edits", "it alters exercises.verdict"),
        ("edits when called", "it alters torch.allclose"),
        ("imports", "it uses utils.attention.causal_mask"),
        ("exits", "ends the process (exit status 0)"),
        ("exits when called", "your code raised SystemExit"),
        ("raises oddly", "your code raised ValueError: a b [2J end (line 1 of the cell"),
        ("nests", "too many nested parentheses"),
        ("too much", "takes more than 1 GB of memory"),
        ("writes", "it writes ../../outside.txt"),
        ("reads", "right.ipynb"),
        ("calls home", "it uses the network"),
        ("starts a program", "it starts or signals a process"),
    ],
)
def test_what_is_wrong_with_one_exercise_costs_it_alone(graded, name, told):
    row = graded[name]
    assert told in words(row, "3.1"), words(row, "3.1")
    points = {number: row.points(number) for number in NUMBERS}
    others = {} if name == "imports" else {"3.6": POINTS["3.6"]}
    assert points == {"3.2": 1, "3.3": 1, "3.1": 0, "3.6": 0} | others


def test_a_loop_ends_and_costs_its_exercise_alone(handed_in, tmp_path):
    looping = write(tmp_path / "loops.ipynb", softmax("while True: pass"))
    [row] = grade(handed_in / "original.ipynb", [looping], allowance=Allowance(seconds=6))
    assert words(row, "3.1") == "stopped: does not end within 6 seconds."
    assert [row.points(number) for number in NUMBERS] == [0, 1, 1, 3]


def test_a_printed_verdict_is_not_believed(graded):
    assert graded["prints"].total == 0
    assert all("prints “correct” itself" in verdict.words for verdict in graded["prints"].verdicts.values())


def test_a_reference_behind_a_function_is_told(graded):
    assert "it uses exercises.notebook_03.window" in words(graded["imports"], "3.6")


def test_what_a_hand_in_breaks_for_later_cells_is_told(graded):
    assert graded["deletes"].points("3.2")
    assert graded["deletes"].points("3.6") == 0
    assert "original notebook raised NameError: name 'Tensor' is not defined" in " ".join(graded["deletes"].remarks)


def test_what_is_no_notebook_is_told(graded):
    assert "is no notebook: it cannot be read as JSON" in " ".join(graded["no JSON"].remarks)
    assert "has no list of cells" in " ".join(graded["no notebook"].remarks)
    assert report([graded["no JSON"]]).count("cannot be read as JSON") == 1
    assert graded["no JSON"].total == graded["no notebook"].total == 0


def test_the_checks_of_this_process_are_as_they_were(graded):
    assert notebook_03.expect is find_check("3.2").__globals__["expect"]
    assert all(graded.values())


def test_the_table_and_the_csv_say_the_same(handed_in, graded):
    with (handed_in / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    lines = report(list(graded.values())).splitlines()
    assert rows.keys() == graded.keys()
    for name, row in rows.items():
        assert int(row["points"]) == graded[name].total
        assert int(row["of"]) == sum(POINTS[number] for number in NUMBERS)
        assert next(line for line in lines if line.startswith(f"{name} ")).split()[-1] == row["points"]
        assert [row[f"{number} told"] for number in NUMBERS] == [words(graded[name], number) for number in NUMBERS]
    assert rows["imports"]["look at"] == "3.1 3.6"
    assert sorted(path.suffix for path in handed_in.iterdir()) == [".csv"] + [".ipynb"] * (len(rows) + 1)


def test_only_cells_that_the_exercises_need_are_run():
    needed = ["y = 1", "x = []", "x.append(y)", "x[0] = 2", "def f(): return x"]
    others = ["torch.add(x)", "z = x", "def h(): x = 1", "print(y)"]
    cells = ["one", "two", *needed, *others, "check('3.1', f)", "x = 3"]
    original = [Cell("", source) for source in cells]
    answer = Answer(("def g():\n    return f()\n\ncheck('3.1', g)",))
    steps = in_place(original, {"3.1": answer})
    assert [source for number, (source,) in steps if not number] == ["one", "two", *needed]
    assert steps[-1] == ("3.1", answer.sources)
    assert in_place(original, {}) == [("", ("one",)), ("", ("two",))]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no.ipynb", "right.ipynb"], "no.ipynb is no notebook: "),
        (["prose.ipynb", "right.ipynb"], "prose.ipynb has no exercises: "),
        (["original.ipynb", "nobody/*.ipynb"], "there is no hand-in nobody/*.ipynb"),
        (["original.ipynb", "."], ". is a folder: name its notebooks"),
        (["original.ipynb", "right.ipynb", "--csv", "right.ipynb/grades.csv"], "grades.csv could not be saved"),
    ],
)
def test_bad_arguments_are_told_at_once(handed_in, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    for name in ("original", "right"):
        Path(f"{name}.ipynb").write_bytes((handed_in / f"{name}.ipynb").read_bytes())
    Path("prose.ipynb").write_text(json.dumps({"cells": []}), "utf-8")
    monkeypatch.setattr(sys, "argv", ["exercises", "grade", *arguments])
    monkeypatch.setattr(Grader, "run", lambda *anything: pytest.fail("a hand-in was run"))
    assert told in str(__main__.main()).replace("\\", "/")


@pytest.mark.parametrize(
    "forged", [b"correct", b'{"number": "3.1"}', b'{"secret": "guessed", "number": "3.1"}', b"[1]"]
)
def test_a_message_without_the_secret_ends_the_conversation(forged):
    ours, theirs = multiprocessing.Pipe(duplex=False)
    assert receive(ours, "real") == {}
    theirs.send_bytes(b'{"secret": "real", "number": "3.2"}')
    assert receive(ours, "real") == {"number": "3.2"}
    theirs.send_bytes(forged)
    assert receive(ours, "real") is None
    theirs.close()
    assert receive(ours, "real") is None


def test_equal_names_are_told_apart_by_their_folders(tmp_path):
    paths = [tmp_path / name / "03.ipynb" for name in ("ada", "bob")]
    assert list(grading.named(paths)) == ["ada/03", "bob/03"]
    assert list(grading.named(paths[:1])) == ["03"]


def test_a_class_that_has_copied_the_solution_is_told_in_one_line():
    names = [f"student {number:02}" for number in range(40)]
    rows = [Graded(name, {}, shapes={"3.1": {"a shape"}}, same={"3.1": {"the solution"}}) for name in names]
    compare(rows)
    assert rows[2].same_as == "3.1: the solution, student 00, student 01, student 03, student 04, 35 more"
    compare(rows[:3])
    assert rows[2].same_as == "3.1: the solution, student 00, student 01"


def test_names_that_look_the_same_all_get_a_row(tmp_path):
    names = ["Anna Berg", "Anna  Berg", "Anna\u200b Berg", "Anna Berg (2)", "Bo"]
    paths = [tmp_path / f"{name}.ipynb" for name in names]
    assert list(grading.named(paths).values()) == paths
    assert list(grading.named(paths))[::4] == ["Anna Berg", "Bo"]


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("%%time\nx = 1", "\nx = 1"),
        ("%%capture out\nx = 1", "\nx = 1"),
        ("%timeit -n 2 -r 3 f(x)\ny = 5 %time", "f(x)\ny = 5 %time"),
        ("if x:\n    %time y = f(x)\n    %matplotlib inline", "if x:\n    y = f(x)\n    pass"),
        ("!ls\n%run other.ipynb", "!ls\n%run other.ipynb"),
    ],
)
def test_magics_that_only_measure_or_show_are_taken_away(source, left):
    assert without_magics(source) == left


def test_an_answer_is_known_again_under_other_names():
    renamed = HEAD.replace("attention_mask", "padding").replace("mask =", "hidden =").replace(" mask\n", " hidden\n")
    renamed = renamed.replace("super()", "# first\n        super()")
    told = f'"""A cell of mine."""\n{renamed}'
    assert parsed(told).body
    assert shapes(told) == shapes(HEAD) != set()
    assert not shapes(WINDOW) & shapes(HEAD)
    assert not shapes("def f(x):\n    y = x + 1\n    return y")  # too short to tell
    assert not shapes(WINDOW, stub=WINDOW)  # nothing is theirs


@pytest.mark.skipif(not landlock(), reason="the kernel has no Landlock")
def test_what_python_does_not_see_the_kernel_refuses(handed_in, tmp_path):
    outside = tmp_path / "outside"
    escapes = {
        "saves": f"torch.save(torch.zeros(2), {str(outside)!r})",
        "runs": "import os, shutil\nfrom _posixsubprocess import fork_exec as run\n"
        f"run([b'/usr/bin/touch', {str(outside)!r}.encode()], [b'/usr/bin/touch'], True, (), None, None, "
        "-1, -1, -1, -1, -1, -1, *os.pipe(), False, False, -1, None, None, None, -1, None, False)",
        "fills": "open('much', 'wb').write(bytes(3 * 10**8))",
    }
    paths = [write(tmp_path / f"{name}.ipynb", softmax(f"{body}\n{SOLVED['3.1']}")) for name, body in escapes.items()]
    saves, _, fills = grade(handed_in / "original.ipynb", paths)
    assert not outside.exists()
    assert [row.points("3.1") for row in (saves, fills)] == [0, 0]


def test_a_doubted_answer_can_be_accepted_and_told_to_its_author(handed_in, tmp_path):
    accepted = [("imports", "3.1"), ("imports", "3.6"), ("empty", "3.2")]
    paths = [handed_in / f"{name}.ipynb" for name in ("imports", "empty")]
    save = functools.partial(write_feedback, tmp_path / "told")
    believed, empty = grade(handed_in / "original.ipynb", paths, save, accepted=accepted)
    assert believed.total == sum(POINTS[number] for number in NUMBERS)
    assert "3.2 was to be accepted, but it is not doubted" in empty.remarks[0]
    assert empty.total == 0
    told = (tmp_path / "told" / "imports.txt").read_text("utf-8")
    assert told.startswith("imports: 7 of 7 points\n\n3.1 (2 of 2): correct.")
    assert "uses utils" not in told
    with pytest.raises(ValueError, match=r"nobody:3\.1 cannot be accepted: there are the names imports"):
        grade(handed_in / "original.ipynb", paths, accepted=[("nobody", "3.1")])


def test_a_spreadsheet_takes_no_name_for_a_formula(tmp_path):
    write_csv(tmp_path / "grades.csv", [Graded("=1+1", {"3.2": Verdict("correct", "correct.")})])
    assert "\n'=1+1,1,1,1," in (tmp_path / "grades.csv").read_text("utf-8-sig")


def test_the_command_grades(handed_in, tmp_path, monkeypatch, capsys):
    table = tmp_path / "grades.csv"
    files = [str(handed_in / f"{name}.ipynb") for name in ("original", "r[i]ght")]
    monkeypatch.setattr(sys, "argv", ["exercises", "grade", *files, "--csv", str(table), "--processes", "1"])
    assert __main__.main() == 0
    printed = capsys.readouterr().out
    assert re.search(r"^right +2 +1 +1 +3 +7$", printed, re.MULTILINE)
    assert f"Written to {table}" in printed
    assert "right,2,1,1,3,7,7," in table.read_text("utf-8-sig")


def test_what_a_check_imports_late_is_not_held_against_the_student(tmp_path):
    """Of the whole notebook: 3.5 and 3.6 compare with transformers' model, which starts threads, sockets and more."""
    path = tmp_path / "Ada.ipynb"
    solved = {number: source for number, source in SOLVED.items() if number}
    cells = [cell | {"source": solved.get(number_of(cell), cell["source"])} for cell in CONTENT["cells"]]
    path.write_text(json.dumps(CONTENT | {"cells": cells}), "utf-8")
    (row,) = grade(next((ROOT / "notebooks").glob("03_*.ipynb")), [path])
    assert {number: verdict.kind for number, verdict in row.verdicts.items()} == dict.fromkeys(solved, "correct")


def test_points_and_sums_are_those_of_the_exercises_after_an_acceptance(handed_in, tmp_path):
    """In the table and in the file alike; each sum is told here by hand: 3.1 counts 2, 3.2 and 3.3 one, 3.6 three."""
    table = tmp_path / "grades.csv"
    paths = [handed_in / f"{name}.ipynb" for name in ("right", "imports", "empty")]
    save = functools.partial(write_csv, table)
    before = grade(handed_in / "original.ipynb", paths, save)
    assert [row.total for row in before] == [7, 2, 0]
    after = grade(handed_in / "original.ipynb", paths, save, accepted=[("imports", "3.1")])
    assert [row.total for row in after] == [7, 4, 0]
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["points"], row["of"], row["look at"]) for row in rows] == [
        ("7", "7", ""),
        ("4", "7", "3.6"),
        ("0", "7", ""),
    ]
    for row in rows:
        assert sum(int(row[number]) for number in NUMBERS) == int(row["points"])
    printed = report(after)
    assert re.search(r"^imports +2 +1 +1 +! +4$", printed, re.MULTILINE)


def test_an_interrupted_grading_keeps_what_it_has(handed_in, tmp_path, monkeypatch):
    table = tmp_path / "grades.csv"

    def interrupted(rows, **options):
        yield next(iter(rows))
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "tqdm", interrupted)
    paths = [handed_in / f"{name}.ipynb" for name in ("no JSON", "no notebook")]
    rows = grade(handed_in / "original.ipynb", paths, functools.partial(write_csv, table))
    kinds = [row.verdicts["3.2"].kind for row in rows]
    assert kinds == ["stopped", "not graded"]
    assert "is no notebook" in table.read_text("utf-8-sig")
