"""The copy for students has what they run and nothing else, without dead links or solutions."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import nbformat
import pytest

from publish import badges, marks
from publish.notebooks import ROOT
from publish.student import OWN_FILES, find_answers, for_students, list_own_files, main, write_copy
from tests.helpers import needs_make

# what a lecturer may have in the folder: 18 files that a review has tried, and 18 others
PLANTED = [
    "exam.md",
    "marks_2026.csv",
    "questions.md",
    ".env",
    "my_bert.html",
    "mine2/attention_weights.py",
    "submissions/Ada.txt",
    "letters/ada.txt",
    "key.pdf",
    "scripts/secret.txt",
    "utils/notes.txt",
    "notebooks/exam.md",
    "notebooks/mine/encoder.py",
    "exercises/key.py",
    "notebooks/.ipynb_checkpoints/03_self_attention-checkpoint.ipynb",
    "notebooks/images/exam.png",
    "utils/data/marks.csv",
    "views/token.js",
    "notebooks/solutions/16_solutions.ipynb",
    "notebooks/proofs/exam_proofs.ipynb",
    "notebooks/images/answers/exam.png",
    "notebooks/README.md",
    "notebooks/AGENTS.local.md",
    ".binder/environment.yml",
    ".binder/.netrc",
    "exercises/grading/marks.db",
    "exercises/notebook_16.py",
    "exercises/__pycache__/key.cpython-313.pyc",
    "utils/support/passwords.py",
    "utils/data/tiny_bert/key.txt",
    "views/draggable/exam.js",
    "scripts/.history",
    "Makefile.local",
    "pyproject.toml.bak",
    ".gitignore.swp",
    "LICENSE~",
]
LINK = re.compile(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


@cache
def texts(folder: Path) -> dict[Path, str]:
    """Return the Markdown of all pages and notebooks."""
    found = {path: path.read_text("utf-8") for path in folder.rglob("*.md") if ".venv" not in path.parts}
    for path in (folder / "notebooks").rglob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        found[path] = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return found


def dead_links(folder: Path) -> list[str]:
    """Return the links to missing files."""
    return [
        f"{path.name}: {target}"
        for path, text in texts(folder).items()
        for target in LINK.findall(text)
        if not os.path.lexists(os.path.normpath(path.parent / target))
    ]


def test_copy_has_only_what_students_run(copy):
    """Solutions, teachers' and developers' files and the git history are left out."""
    folders = {"notebooks", "exercises", "scripts", "utils", "views", ".binder"}
    files = {"README.md", "AGENTS.md", "Makefile", "LICENSE", ".gitignore"}
    files |= {"pyproject.toml", "requirements.txt", "constraints.txt"}
    assert {path.name for path in copy.iterdir()} == folders | files
    assert not [path for path in copy.rglob("*") if "solutions" in path.name]
    words = "\n".join(texts(copy).values())
    assert not re.search(r"TEACHING|GRADING|ROOMS|rubric|misconceptions|make (test|student|site|slides)", words)
    assert "](notebooks/glossary.md)" in (copy / "README.md").read_text("utf-8")


def test_copy_omits_our_versions_and_no_other_text(copy):
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        ours, theirs = (nbformat.read(root / "notebooks" / path.name, 4).cells for root in (ROOT, copy))
        assert not any("Our version</b>" in cell.source for cell in theirs)
        headings = [
            [
                line
                for cell in cells
                if cell.cell_type != "code"
                for line in re.findall("(?m)^#+ (?!claim:).*", cell.source)
            ]
            for cells in (ours, theirs)
        ]
        assert headings[0] == headings[1]


@needs_make
def test_makefile_has_only_student_targets(copy):
    command = ["make", "--no-print-directory", "help"]  # an outer make would have it print the folder
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["help", "cpu-torch", "lab", "clean"]
    for target in ("lab", "cpu-torch"):
        assert subprocess.run(["make", "--dry-run", target], cwd=copy, capture_output=True, check=False).returncode == 0
    assert subprocess.run(["make", "--dry-run", "test"], cwd=copy, capture_output=True, check=False).returncode


def test_copy_has_no_dead_links(copy):
    assert any("solutions/" in text for text in texts(ROOT).values())
    assert dead_links(copy) == []
    assert not any("solutions/" in text for text in texts(copy).values())


def test_copy_sends_nobody_to_what_it_lacks(copy):
    """Every text is read: what is removed leaves no sentence about it, and no stray mark or empty parenthesis."""
    gone = re.compile(r"not in this copy|\b[Oo]ur (version|answer)\b|copy ours|microbert|[\0-\x08]", re.MULTILINE)
    broken = re.compile(r"\(\s*[.,;)]|[^\S\n][.,;:](?!\S)|[.?!]\s*[,;]")
    originals = "\n\n".join(texts(ROOT).values())
    assert len(gone.findall(originals)) > 9
    for path, text in texts(copy).items():
        if path == copy / "AGENTS.md":
            continue  # whose rules name it: see below
        found = [text[max(0, match.start() - 60) : match.end() + 60] for match in gone.finditer(text)]
        changed = [line for line in text.splitlines() if line not in originals and broken.search(line)]
        assert found == [], path.name
        assert changed == [], path.name


def test_tutor_keeps_its_rules_whole(copy):
    assert (copy / "AGENTS.md").read_bytes() == (ROOT / "notebooks" / "AGENTS.md").read_bytes()


def test_settings_are_those_of_what_students_run(copy):
    settings = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"].keys() == {"setuptools"}
    assert settings["project"] == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def series(tmp_path) -> Path:
    """Return a folder with the files that a copy is made of, but only two notebooks, without git."""
    root, own = tmp_path / "series", json.loads((ROOT / OWN_FILES).read_text("utf-8"))
    kept = {name: cells for name, cells in own.items() if not cells or name[10:13] in ("00_", "03_")}
    for name in (*kept, *badges.ADDRESS_PATTERNS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / OWN_FILES).parent.mkdir(exist_ok=True)
    (root / OWN_FILES).write_text(json.dumps(kept), "utf-8")
    return root


def test_copy_omits_the_address_of_the_original(series, tmp_path):
    """The original has the solutions."""
    badges.rewrite(badges.Address("ada/encoder"), series)
    assert "ada/encoder" in (series / "notebooks" / "00_overview.ipynb").read_text("utf-8")
    copy = write_copy(tmp_path / "copy", series)
    assert not [path for path in copy.rglob("*") if path.is_file() and b"ada/encoder" in path.read_bytes()]


def test_files_that_are_not_the_series_own_stay_at_home(series, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("publish.student.ROOT", series)
    shutil.copy(series / "notebooks" / "03_self_attention.ipynb", series / "notebooks" / "03_copy.ipynb")
    (series / "notebooks" / "exam.ipynb").write_text("not even a notebook", "utf-8")
    before = {path.relative_to(series) for path in series.rglob("*")}
    for name in PLANTED:
        (series / name).parent.mkdir(parents=True, exist_ok=True)
        (series / name).write_text("the lecturer's own", "utf-8")
    monkeypatch.setattr("sys.argv", ["student", str(tmp_path / "copy")])
    assert main() is None
    out = {path.relative_to(tmp_path / "copy") for path in (tmp_path / "copy").rglob("*")}
    assert len(set(PLANTED)) == 36
    assert out - before == {Path("AGENTS.md")}
    assert not out & {Path("notebooks", "03_copy.ipynb"), Path("notebooks", "exam.ipynb")}
    printed = capsys.readouterr().out
    assert "not one of the series' own files: notebooks/03_copy.ipynb\n" in printed
    assert "not one of the series' own files: notebooks/exam.ipynb\n" in printed
    assert "Without git, changes of yours are looked for in exercises alone" in printed


def solve(cell) -> None:
    cell.source = cell.source.replace("...", "query @ key.T")


def spoil(cell) -> None:
    cell.outputs = [nbformat.v4.new_output("stream", text="Exercise 3.2: right.\n")]


def fail(cell) -> None:
    cell.outputs = [nbformat.v4.new_output("error", ename="NameError", evalue="name 'mine'", traceback=[])]


def rename(cell) -> None:
    cell.id = "of-my-own"


def test_an_answer_stops_the_copy_and_is_named(series, tmp_path):
    path = series / "notebooks" / "03_self_attention.ipynb"
    notebook = nbformat.read(path, as_version=4)
    exercises = [cell for cell in notebook.cells if "exercise" in cell.metadata.get("tags", [])]
    for change, cell in zip((solve, spoil, fail, rename), exercises, strict=True):
        change(cell)
    nbformat.write(notebook, path)
    with pytest.raises(ValueError, match="restore these notebooks") as refused:
        write_copy(tmp_path / "copy", series)
    found = re.findall(r"03_self_attention\.ipynb, cell \d+ .*\) (.*)", str(refused.value))
    output = "has the output of an answer"
    assert found == ["has an answer", output, output, "is not the series'"]
    assert not (tmp_path / "copy").exists()


def test_a_change_of_the_series_own_files_stops_the_copy_until_it_is_committed(series, tmp_path, monkeypatch):
    """As a note in a text cell: only the lecturer knows whether students are to get it."""
    monkeypatch.setattr("publish.student.ROOT", series)
    monkeypatch.setattr("sys.argv", ["student", str(tmp_path / "copy")])
    git = ["git", "-C", str(series), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "The series"]):
        subprocess.run([*git, *command], check=True)
    (series / "exam.md").write_text("not of the series", "utf-8")
    names = ["notebooks/03_self_attention.ipynb", "notebooks/glossary.md", "requirements.txt"]
    for name in names:
        (series / name).write_text((series / name).read_text("utf-8") + "\n", "utf-8")
    assert f"Changed since the last commit: {', '.join(names)}: restore them" in main()
    assert not (tmp_path / "copy").exists()
    subprocess.run([*git, "commit", "-qam", "For my students"], check=True)
    assert main() is None


def test_a_guess_is_an_answer():
    cell = nbformat.v4.new_code_cell("prediction = 0.5", id="guess")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    (problem,) = find_answers("03.ipynb", notebook, {"guess": "of None"})
    assert "has an answer" in problem


def test_list_of_own_files_is_up_to_date():
    listed = json.loads((ROOT / OWN_FILES).read_text("utf-8"))
    assert listed == list_own_files(), "run python -m publish.student --list"


def test_colabs_assistant_is_off_unless_wanted(copy, series, tmp_path):
    with_one = write_copy(tmp_path / "with", series, assistant=True)
    for folder, is_off in ((copy, True), (with_one, False)):
        for path in (folder / "notebooks").glob("*.ipynb"):
            assert nbformat.read(path, 4).metadata["colab"]["generative_ai_disabled"] is is_off


def test_write_copy_refuses_existing_folder_and_leaves_no_part(copy, tmp_path, monkeypatch):
    with pytest.raises(FileExistsError, match="exists: remove it, or name another folder"):
        write_copy(copy)
    with pytest.raises(FileExistsError, match="copy is in notebooks, which is copied: name a folder elsewhere"):
        write_copy(ROOT / "notebooks" / "copy")
    monkeypatch.setattr("publish.student.without_solutions", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_copy(tmp_path / "copy")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("text", "expected"), [
    ("Why?<!--not student--> ([ours](solutions/03_solutions.ipynb))<!--/not-->\n\nSo.", "Why?\n\nSo."),
    ("<!--not site-->A page.<!--/not--> Then go on.", "A page. Then go on."),
    ("So we [recorded](../benchmarks/records/labels.py) five (3,000 texts).", "So we recorded five (3,000 texts)."),
    ("[the data](../utils/data/README.md) and [a script](../scripts/fine_tune.py)", None),
    ("([the next](04_multi_head_attention.ipynb#a)) [a](https://example.org/solutions/) [b](#here)", None),
])  # fmt: skip
def test_text_for_students(text, expected):
    own_files = json.loads((ROOT / OWN_FILES).read_text("utf-8"))
    assert for_students(marks.read(text, "student"), "notebooks/03_self_attention.ipynb", own_files) == (
        expected or text
    )
