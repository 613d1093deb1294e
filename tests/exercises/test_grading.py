"""Hand-ins of notebook 03 are graded: right ones get all points, and none ends the run or touches another's row.

The original is notebook 03 without its two longest exercises; tests/slow grades all of all notebooks.
"""

import csv
import functools
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from exercises import __main__, find_check
from exercises.framework import POINTS
from exercises.grading import grade
from exercises.grading import report as reports
from exercises.grading.cells import Cell, fingerprints, published, read_cells, steps_to_run
from exercises.grading.process import Grader
from tests.exercises.hand_ins import (
    CHANGES,
    CHECKED,
    ENDLESS,
    HARMLESS,
    HEAD,
    HONEST,
    HOSTILE,
    NOTEBOOK,
    NUMBERS,
    RIGHT,
    SOLVED,
    hand_in,
    honest,
    original,
    write_files,
)
from tests.helpers import ROOT, unix_only

pytestmark = pytest.mark.long
OF = sum(POINTS[number] for number in NUMBERS if find_check(number))
ODD_NAMES = ["n: a", "n? a", "N? A", "-rf", "\udcff", "$(ls)", "a\nb", "Zoë 😀", "x" * 240]
GRADED_NAMES = ["-rf", "\udcff", "a\nb", "x" * 240]
SWAPPED = {"3.2": SOLVED["3.2"].replace("dim=-1", "dim=-2"), "3.3": SOLVED["3.3"]}
FOLLOWING = {  # hand-ins whose 3.3 calls their own 3.2, and the sign of 3.2 in the table
    "3.2 wrong": (SWAPPED, "0"),
    "3.2 not attempted": ({"3.3": SOLVED["3.3"]}, "·"),
    "3.2 exits": (SWAPPED | {"3.2": f"import os\nos._exit(0)\n{SOLVED['3.2']}"}, "!"),
    "3.2 renamed": ({n: source.replace("my_attention", "meine") for n, source in SWAPPED.items()}, "0"),
}
BOTH_WRONG = SWAPPED | {"3.3": SOLVED["3.3"].replace("@ self.v", "@ self.k")}
PARTLY = {"3.4": RIGHT["3.4"], "3.1": RIGHT["3.1"].replace("(2, 7, 5)", "(2, 5, 7)")}
WINDOW = """\
def window_attention(query, key, value, attention_mask, reach):
    places = torch.arange(query.size(1), device=query.device)
    near = (places[:, None] - places).abs() <= reach
    return scaled_dot_product_attention(query, key, value, (attention_mask[:, None, :] != 0) & near)
"""


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    """The original."""
    return hand_in(tmp_path_factory.mktemp("original") / "03_short.ipynb", {})


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> dict[str, reports.Row]:
    """The rows of a class that is honest, by name."""
    folder = tmp_path_factory.mktemp("honest")
    paths = [hand_in(folder / f"{name}.ipynb", RIGHT, change) for name, change in CHANGES.items()]
    paths += [
        *honest(folder, NUMBERS),
        hand_in(folder / "partly.ipynb", PARTLY),
        hand_in(folder / "empty.ipynb", {}),
        hand_in(folder / "both wrong.ipynb", BOTH_WRONG, short=False),
        *(hand_in(folder / f"{name}.ipynb", cells, short=False) for name, (cells, _) in FOLLOWING.items()),
        hand_in(folder / "theirs.ipynb", {"3.4": "from utils.attention import causal_mask as f\ncheck('3.4', f)"}),
    ]
    content = json.loads((folder / "as it is.ipynb").read_text("utf-8"))
    content["metadata"]["kernelspec"] = {"name": "julia-9", "language": "julia"}
    (folder / "of another kernel, with a BOM.ipynb").write_text("\ufeff" + json.dumps(content), "utf-8")
    paths.append(folder / "of another kernel, with a BOM.ipynb")
    rows = grade(NOTEBOOK, paths, functools.partial(reports.write_csv, folder / "grades.csv"), processes=2)
    assert [row.name for row in rows] == [path.stem for path in paths]
    return {row.name: row for row in rows} | {"csv": folder / "grades.csv"}


def test_honest_hand_ins_get_all_points(graded):
    rows = [row for name, row in graded.items() if name in CHANGES or name.startswith("of another")]
    assert {row.name: reports.report([row]) for row in rows if row.total != OF or row.remarks} == {}


def test_odd_answers_that_are_right_are_correct(graded):
    odd = [row for name, row in graded.items() if name.startswith("odd")]
    verdicts = [verdict for row in odd for verdict in row.verdicts.values()]
    kinds = [verdict for verdict in verdicts if verdict[0] not in ("correct", "not attempted")]
    assert len(odd) == max(len(HONEST[number]) for number in NUMBERS)
    assert kinds == []


def test_partly_right_hand_ins_get_hints(graded):
    assert graded["partly"].total == POINTS["3.4"]
    assert "a row for each query" in graded["partly"].verdicts["3.1"][1]
    assert {kind for kind, _ in graded["empty"].verdicts.values()} == {"not attempted"}


def test_later_exercise_is_judged_with_ours_in_place_of_an_earlier_answer(graded):
    for name, (_, sign) in FOLLOWING.items():
        row = graded[name]
        assert row.follows == {"3.3": ["3.2"]}, reports.report([row])
        assert re.search(rf"^ *{name} +· +{re.escape(sign)} +6\* +· +6$", reports.report([row]), re.MULTILINE), (
            reports.report([row])
        )
    words = "correct with our answer to 3.2 in place of yours. Alone: not yet. Softmax runs over the queries."
    assert graded["3.2 wrong"].verdicts["3.3"][1].startswith(words)
    assert graded["both wrong"].total == 0
    assert graded["both wrong"].follows == {}


def test_reference_implementation_as_answer_is_noted(graded):
    assert graded["theirs"].remarks == ["3.4 answers with causal_mask of utils"]
    assert graded["theirs"].points("3.4") == 0


@pytest.fixture(scope="module")
def hostile(short, tmp_path_factory) -> tuple[dict[str, reports.Row], dict[str, str]]:
    """The rows of hand-ins that try to end the grading, and what is no notebook with a word of its verdict."""
    folder = tmp_path_factory.mktemp("hostile")
    files = write_files(folder)
    for name, (body, _) in HOSTILE.items():
        hand_in(folder / f"{name}.ipynb", RIGHT | {"3.4": f"softmax_by_hand = ...\n{body}\n\n{CHECKED}"})
    for name in GRADED_NAMES:
        hand_in(folder / f"{name}.ipynb", RIGHT)
    paths = sorted(folder.glob("*.ipynb"), key=lambda path: path.stem in ENDLESS)
    ends = -len(ENDLESS)
    rows = grade(short, paths[:ends], processes=2, gigabytes=1.5)
    rows += grade(short, paths[ends:], processes=2, seconds=5, gigabytes=1.5)
    return {row.name: row for row in rows}, files


@unix_only
@pytest.mark.parametrize("name", HOSTILE)
def test_failure_costs_only_its_exercise(hostile, name):
    row = hostile[0][name]
    assert HOSTILE[name][1] in row.verdicts["3.4"][1], reports.report([row])
    assert row.total == OF - POINTS["3.4"], reports.report([row])
    assert row.verdicts["3.4"][0] == "stopped" or "stopped" not in row.verdicts["3.4"][1] or name in HARMLESS


@unix_only
def test_files_other_than_notebooks_are_reported(hostile):
    rows, files = hostile
    assert {name: rows[name].verdicts["3.4"] for name in files if files[name] not in reports.report([rows[name]])} == {}
    assert {rows[name].total for name in files} == {0}
    assert rows["right"].total == OF


@unix_only
def test_odd_file_names_are_graded(hostile):
    totals = {name: row.total for name, row in hostile[0].items() if name not in HOSTILE and name not in hostile[1]}
    assert sorted(totals.values()) == [OF] * (len(GRADED_NAMES) + 1), totals


def test_steps_are_what_answers_need():
    needed = ["y = 1", "x = []", "x.append(y)", "x[0] = 2", "def f(): return x"]
    others = ["torch.add(x)", "z = x", "def h(): x = 1", "print(y)"]
    original = ["check = 1", "two", *needed, *others, "check('3.4', f)", "x = 3"]
    given = [Cell("", text, at) for at, text in enumerate(original)]
    answer = Cell("", "from mine import q\ndef g():\n    return f()\n\ncheck('3.4', g)", 1)
    written = [Cell("", f"%%writefile {name}.py\nq = 1") for name in ("mine", "other")]
    steps = steps_to_run(given, [Cell("", "%%time\nq = 1"), *written, answer], {"3.4": answer})
    assert [cell.source for number, cell in steps if not number] == ["check = 1", "two", *needed]
    assert [cell for number, cell in steps if number] == [written[0], answer]
    assert [cell.source for _, cell in steps_to_run(given, [], {})] == ["check = 1", "two"]


def test_measuring_magics_are_removed(tmp_path):
    sources = {
        "%%time\nx = 1": "\nx = 1",
        "%%capture out\nx = 1": "\nx = 1",
        "%timeit -n 2 -r 3 f(x)\ny = 5 %time": "f(x)\ny = 5 %time",
        "if x:\n    %time y = f(x)": "if x:\n    y = f(x)",
        "!ls\n%run other.ipynb": "!ls\n%run other.ipynb",
    }
    cells = [{"cell_type": "code", "source": source} for source in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    assert [cell.source for cell in read_cells(tmp_path / "a.ipynb")] == list(sources.values())


def test_fingerprint_ignores_names_and_comments():
    renamed = HEAD.replace("attention_mask", "padding").replace("mask =", "hidden =").replace("+ mask", "+ hidden")
    renamed = renamed.replace("super()", '"""Mine."""  # first\n        super()')
    assert fingerprints(renamed) == fingerprints(HEAD) != set()
    assert not fingerprints(WINDOW) & fingerprints(HEAD)
    assert not fingerprints("def f(x):\n    y = x + 1\n    return y")  # too short
    assert not fingerprints(WINDOW, stub=WINDOW)  # nothing is theirs
    stub = next(cell.source for cell in read_cells(NOTEBOOK) if cell.number == "3.3")
    assert published(NOTEBOOK).keys() & fingerprints(SOLVED["3.3"].replace("MyHead", "Kopf"), stub)
    assert not published(NOTEBOOK).keys() & fingerprints(HEAD, stub)


def test_same_as_names_at_most_five_and_none_for_what_is_published():
    rows = [reports.Row(f"student {n:02}", {"3.4": ("correct", "")}, fingerprints={"3.4": {"a"}}) for n in range(40)]
    reports.compare_rows(rows, {})
    assert rows[2].same_as == "3.4: student 00, student 01, student 03, student 04, student 05, 34 more"
    reports.compare_rows(rows, {"a": "the solution"})
    assert rows[2].same_as == ""
    assert rows[2].public == {"3.4": ["the solution"]}
    rows[7].fingerprints["3.4"].add("b")
    rows[8].fingerprints["3.4"].add("b")
    reports.compare_rows(rows, {"a": "the solution"})
    assert [row.same_as for row in rows[6:9]] == ["", "3.4: student 08", "3.4: student 07"]


def test_files_for_moodle_and_canvas_have_the_columns_that_they_import(tmp_path):
    """With names as both write them into the archive of an assignment's submissions."""
    names = {
        "Zoë Ann Berg_10234_assignsubmission_file_/03_self_attention.ipynb": ("Zoë Ann Berg", "10234"),
        "Lu_10235_assignsubmission_file_/a_9_1_b.ipynb": ("Lu", "10235"),
        "bergada_2345_99887_03_self_attention-1.ipynb": ("bergada", "2345"),
        "mccoybob_LATE_2346_99888_03.ipynb": ("mccoybob", "2346"),
        "Eve Mallory_2222_assignsubmission_file_x_1234_assignsubmission_.ipynb": ("Eve Mallory", "2222"),
        "ada@example.org_03.ipynb": ("ada@example.org_03", ""),
    }
    paths = {tmp_path / name: known for name, known in names.items()}
    assert [reports.find_id(path, reports.LMS_NAMES) for path in paths] == [known for _, known in paths.values()]
    assert reports.find_id([*paths][-1], r"([^/_@]+@[^/_]+)_[^/]*$") == "ada@example.org"
    assert list(reports.row_names([*paths][:5])) == [name for name, _ in [*names.values()][:5]]
    verdicts = {"3.1": ("correct", "correct."), "3.4": ("not yet", "not yet. No.")}
    rows = [reports.Row(name, verdicts, id=known) for name, known in names.values()]
    rows.append(reports.Row("late", {"3.1": ("not graded", ""), "3.4": ("not graded", "")}, id="5"))
    reports.write_moodle(tmp_path / "moodle.csv", rows)
    reports.write_canvas(tmp_path / "canvas.csv", rows, "03_self_attention (77)")
    texts = [(tmp_path / f"{name}.csv").read_text("utf-8").splitlines(keepends=True) for name in ("moodle", "canvas")]
    moodle, canvas = (list(csv.reader(lines)) for lines in texts)
    assert moodle[0] == ["Identifier", "Grade", "Last modified (grade)", "Feedback comments"]
    assert [line[:3] for line in moodle[1:3]] == [["Participant 10234", "1", ""], ["Participant 10235", "1", ""]]
    assert "3.4 (0 of 2): not yet. No." in moodle[1][3]
    assert canvas[0] == ["Student", "ID", "Section", "03_self_attention (77)"]
    assert canvas[1:3] == [["Points Possible", "", "", "3"], ["Zoë Ann Berg", "10234", "", "1"]]
    assert len(moodle) == len(canvas) - 1 == 6


IMITATIONS = ["03.ipynb", "x_9_assignsubmission_file_.ipynb", "_9_assignsubmission_.ipynb", "ada_9_8_03.ipynb"]
IMITATIONS += ["9_8_03.ipynb", "LATE_9_8_03.ipynb", "u9_attempt_2026-11-28-10-42-00_a.ipynb"]


@pytest.mark.parametrize(
    ("path", "known"),
    [  # what a student can name imitates each platform; {} is a file name by which another is meant
        ("Eve Li_22_assignsubmission_file_/{}", "22"),
        ("Eve Li_22_assignsubmission_file/mine/{}", "22"),
        ("Team A-Eve Li_22_assignsubmission_file_{}", "22"),
        ("eveli_22_333_{}", "22"),
        ("eveli_LATE_22_333_{}", "22"),
        ("eveli_late_22_333_{}", "22"),
        ("Homework 3_u22_attempt_2026-11-28-10-42-00_{}", ""),  # Blackboard
        ("Li_Eve_eli_22/20261128104200_{}", ""),  # ILIAS
    ],
)
@pytest.mark.parametrize("imitation", IMITATIONS)
def test_id_is_never_from_the_part_that_a_student_names(tmp_path, path, known, imitation):
    found = reports.find_id(tmp_path / path.format(imitation), reports.LMS_NAMES)
    assert found == known
    blackboard = reports.find_id(tmp_path / path.format(imitation), r"/[^/]*?_([^/_]+)_attempt_")
    assert blackboard == "u22" or "attempt" not in path


def test_one_id_twice_is_reported_and_in_no_file_to_import(tmp_path):
    ids = {"a": "7", "b": "7", "c": "8", "d": ""}
    rows = [reports.Row(name, {"3.1": ("correct", "correct.")}, id=id) for name, id in ids.items()]
    reports.note_shared_ids(rows)
    reports.write_csv(tmp_path / "grades.csv", rows)
    reports.write_moodle(tmp_path / "moodle.csv", rows)
    reports.write_canvas(tmp_path / "canvas.csv", rows, "03")
    words = "the id 7 is also that of b: in no file to import"
    assert words in reports.report(rows)
    assert words in (tmp_path / "grades.csv").read_text("utf-8")
    for name, known in {"moodle": ["Participant 8"], "canvas": ["", "8"]}.items():
        lines = list(csv.reader((tmp_path / f"{name}.csv").read_text("utf-8").splitlines()))
        column = lines[0].index("Identifier" if name == "moodle" else "ID")
        assert [line[column] for line in lines[1:] if len(line) > column] == known


FORMULAS = ['=HYPERLINK("x","y")', "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\ufeff=1", "＝1", "＠a", "x;=1"]
FORMULAS += ['x;"=1"', " =1", "a\n-1"]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_text_of_a_student_is_a_formula_in_any_table(tmp_path, name):
    row = reports.Row(name, {"3.1": ("not yet", f"not yet. {name}")}, id=name, remarks=[name])
    reports.write_csv(tmp_path / "grades.csv", [row])
    reports.write_moodle(tmp_path / "moodle.csv", [row])
    reports.write_canvas(tmp_path / "canvas.csv", [row], "03")
    for path in tmp_path.glob("*.csv"):
        for delimiter in ",;\t":  # spreadsheets of some countries split at semicolons
            with path.open(encoding="utf-8-sig", newline="") as file:
                cells = [cell for line in csv.reader(file, delimiter=delimiter) for cell in line]
            assert not [cell for cell in cells if re.match("[\\s\ufeff]*[=+@＝＠]|[\\s]*-[^ ]", cell)]


def test_texts_of_a_hand_in_are_cut(tmp_path):
    row = reports.Row("eve", {"3.1": ("not graded", ""), "3.4": ("not yet", "not yet.")})
    for number in range(99):
        row.remark(f"{number} " + "x" * 10**6)
    row.judge("3.1", "y" * 10**6)
    row.follow("3.4", ["z" * 10**6, "3.1"])
    reports.write_csv(tmp_path / "grades.csv", [row])
    with (tmp_path / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        (line,) = csv.DictReader(file)  # which takes at most 131,072 characters in a field
    assert max(map(len, line.values())) < 32_767  # as a cell of Excel
    assert len(line["3.1 comment"]) == 2000
    assert line["with ours"] == "3.4: 3.1"


DETACHED = """\
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        with open({place!r}, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(99)
    os._exit(0)
while not os.path.exists({place!r}) or not os.path.getsize({place!r}):
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no subreapers")
@pytest.mark.parametrize("then", ["", "os._exit(0)\n", "time.sleep(99)\n"])
def test_detached_process_ends_with_the_grading(short, tmp_path, then):
    place = tmp_path / "number"
    source = DETACHED.format(place=str(place)) + then + RIGHT["3.4"]
    (row,) = grade(short, [hand_in(tmp_path / "eve.ipynb", RIGHT | {"3.4": source})], seconds=5 if "99" in then else 60)
    assert not psutil.pid_exists(int(place.read_text()))
    assert row.points("3.1") == POINTS["3.1"]
    assert (row.verdicts["3.4"][0] == "correct") == (then == "")


def test_every_hand_in_gets_a_row_and_a_letter(tmp_path):
    names = ["Anna Berg", "Anna  Berg", "Anna\u200b Berg", "Anna Berg (2)", "anna berg", "n: a", "n? a", "n_ a"]
    names += ["' ", "=1+1", *ODD_NAMES[2:]]
    found = reports.row_names([tmp_path / f"{name}.ipynb" for name in names])
    assert [path.stem for path in found.values()] == names
    reports.write_letters(tmp_path / "letters", [reports.Row(name, {"3.1": ("correct", name)}) for name in found])
    assert sorted(path.name for path in (tmp_path / "letters").iterdir()) == sorted(map(reports.letter_name, found))
    assert len(list((tmp_path / "letters").iterdir())) == len(names)
    assert list(reports.row_names([tmp_path / name / "03.ipynb" for name in ("ada", "bob")])) == ["ada/03", "bob/03"]


def test_earlier_grades_stay_until_graded_again(tmp_path):
    """A late hand-in is added to the table of the class, also when the grading is interrupted before its first row."""
    table, letters = tmp_path / "grades.csv", tmp_path / "letters"

    def write(grades: dict[str, str]) -> dict[str, str]:
        rows = [reports.Row(name, {"3.1": (kind, kind)}) for name, kind in grades.items()]
        reports.write_csv(table, rows)
        reports.write_letters(letters, rows)
        lines = [line.split(",") for line in table.read_text("utf-8-sig").splitlines()[1:]]
        kinds = {path.stem: path.read_text("utf-8").split(": ")[-1].strip() for path in letters.iterdir()}
        assert kinds == {line[0]: line[-2] for line in lines}
        return kinds

    assert write({"ada": "correct", "bob": "not yet"}) == {"ada": "correct", "bob": "not yet"}
    expected = {"ada": "correct", "bob": "not yet", "late": "not graded"}
    assert write({"bob": "not graded", "late": "not graded"}) == expected
    assert write({"bob": "correct", "late": "not yet"}) == {"ada": "correct", "bob": "correct", "late": "not yet"}
    table.write_text("name,phone\nada,1\n")
    with pytest.raises(ValueError, match=r"grades.csv does not hold grades of these exercises: choose another file"):
        reports.write_csv(table, [reports.Row("ada", {"3.1": ("correct", "correct.")})])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.ipynb", "right.ipynb"], "no.ipynb is not a notebook: "),
        (["prose.ipynb", "right.ipynb"], "prose.ipynb has no exercises: "),
        (["original.ipynb", "nobody/*.ipynb"], "there is no hand-in nobody/*.ipynb"),
        (
            ["original.ipynb", "right.ipynb", "--accept", "nobody:3.4"],
            "nobody:3.4 cannot be accepted: there are the names right",
        ),
        (
            ["original.ipynb", "right.ipynb", "--accept", "right:3.9"],
            "right:3.9 cannot be accepted: there are the exercises 3.1",
        ),
        (["original.ipynb", "right.ipynb", "--csv", "right.ipynb/grades.csv"], "grades.csv could not be saved"),
        (["original.ipynb", "right.ipynb", "--feedback", "right.ipynb"], "right.ipynb could not be saved ([Errno "),
    ],
)
def test_bad_arguments_are_refused_before_any_run(short, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name in ("original", "right"):
        Path(f"{name}.ipynb").write_bytes(short.read_bytes())
    Path("prose.ipynb").write_text(json.dumps({"cells": []}), "utf-8")
    monkeypatch.setattr(sys, "argv", ["exercises", "grade", *arguments])
    monkeypatch.setattr(Grader, "run", lambda *anything: pytest.fail("a hand-in was run"))
    assert message in str(__main__.main()).replace("\\", "/")


def test_command_writes_table_csv_and_letters(short, tmp_path, monkeypatch, capsys):
    table, letters = tmp_path / "grades.csv", tmp_path / "letters"
    hand_in(tmp_path / "right.ipynb", RIGHT)
    hand_in(tmp_path / "empty.ipynb", {})
    files = [str(short), str(tmp_path / "r[i]ght.ipynb"), str(tmp_path / "empty.ipynb")]
    options = ["--csv", str(table), "--feedback", str(letters), "--processes", "1", "--accept", "empty:3.1"]
    monkeypatch.setattr(sys, "argv", ["exercises", "grade", *files, *options])
    assert __main__.main() == 0
    printed = capsys.readouterr().out
    assert re.search(r"^ *right +1 +2 +3$", printed, re.MULTILINE)
    assert re.search(r"^ *empty +1 +· +1$", printed, re.MULTILINE)
    assert "nothing detects deliberate cheating" in printed
    assert "right,1,2,3,3," in table.read_text("utf-8-sig")
    assert (letters / "right.txt").read_text("utf-8").startswith("right: 3 of 3 points\n\n3.1 (1 of 1): correct.")
    assert "3.1 (1 of 1): correct. Accepted by hand (not attempted" in (letters / "empty.txt").read_text("utf-8")


@unix_only
def test_ctrl_c_saves_what_is_graded(short, tmp_path):
    table = tmp_path / "grades.csv"
    hand_in(tmp_path / "right.ipynb", RIGHT)
    hand_in(tmp_path / "sleeps.ipynb", RIGHT | {"3.1": f"import time\ntime.sleep(999)\n{RIGHT['3.1']}"})
    files = [str(short), str(tmp_path / "right.ipynb"), str(tmp_path / "sleeps.ipynb")]
    command = [sys.executable, "-m", "exercises", "grade", *files, "--csv", str(table), "--processes", "1"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    hear = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # ignored in what a script starts with “&”
    with subprocess.Popen(command, cwd=ROOT, preexec_fn=hear, **options) as run:
        try:
            while "right,1,2,3,3" not in (table.read_text("utf-8-sig") if table.exists() else ""):
                assert run.poll() is None
                time.sleep(0.2)
            run.send_signal(signal.SIGINT)
            printed, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 1
    assert re.search(r"^ *sleeps +\? +\? +0$", printed, re.MULTILINE), printed


def test_other_notebook_is_reported(tmp_path):
    (row,) = grade(original("04"), [hand_in(tmp_path / "03.ipynb", RIGHT)])
    assert "03.ipynb is another notebook: it checks exercise 3." in reports.report([row])


@pytest.mark.parametrize("helper", ["from math import *", "exec('floor = int')", "globals()['floor'] = int"])
def test_cells_that_may_define_a_missing_name_are_run(helper):
    sources = {"a": "set_up = 1", "b": "from exercises import check", "c": 'answer = ...\ncheck("2.2", answer)'}
    original = [Cell(id, source) for id, source in sources.items()]
    answer = Cell("c", 'answer = floor(2.5)\ncheck("2.2", answer)', 3)
    unneeded, own = Cell("d", "print('slow')", 1), Cell("e", helper, 2)
    steps = steps_to_run(original, [unneeded, own, answer], {"2.2": answer})
    assert own in [cell for _, cell in steps]
    named = Cell("e", "from math import floor", 2)
    steps = steps_to_run(original, [unneeded, named, answer], {"2.2": answer})
    assert [cell.id for _, cell in steps] == ["a", "b", "e", "c"]  # nothing is missing, so only what is needed
    torch_names = Cell("e", "from torch import *", 2)  # its max takes a dimension
    answer = Cell("c", 'answer = max(2.5, 3)\ncheck("2.2", answer)', 3)
    steps = steps_to_run(original, [unneeded, torch_names, answer], {"2.2": answer})
    assert [cell.id for _, cell in steps] == ["a", "b", "e", "c"]
