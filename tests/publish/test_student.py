"""The copy for students has what they run and nothing else, without dead links or solutions."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from publish import badges
from publish.notebooks import ROOT
from publish.student import strip_dead_links, write_copy
from tests.helpers import needs_make

LINK = re.compile(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


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
            [line for cell in cells if cell.cell_type != "code" for line in re.findall("(?m)^#+ .*", cell.source)]
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


def test_copy_omits_the_address_of_the_original(tmp_path):
    """The original has the solutions."""
    original = tmp_path / "original"
    shutil.copytree(ROOT, original, ignore=shutil.ignore_patterns(".*", "utils", "tests", "images", "site", "build"))
    shutil.copytree(ROOT / ".binder", original / ".binder")
    shutil.copy(ROOT / ".gitignore", original)
    (original / "utils").mkdir()
    badges.rewrite(badges.Address("ada/encoder"), original)
    assert "ada/encoder" in (original / "notebooks" / "00_overview.ipynb").read_text("utf-8")
    copy = write_copy(tmp_path / "copy", original)
    assert not [path for path in copy.rglob("*.*") if path.is_file() and "ada/encoder" in path.read_text("utf-8")]


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
        found = [text[max(0, match.start() - 60) : match.end() + 60] for match in gone.finditer(text)]
        changed = [line for line in text.splitlines() if line not in originals and broken.search(line)]
        assert (found, changed) == ([], []) or path.name == "AGENTS.md", path.name


def test_colabs_assistant_is_off_unless_wanted(copy, tmp_path):
    with_one = write_copy(tmp_path / "with", assistant=True)
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
    ("What is lost? ([an answer](solutions/03_solutions.ipynb))", "What is lost?"),
    ("Why? Think, then compare with [ours](solutions/03_solutions.ipynb#a).\n\nSo.", "Why?\n\nSo."),
    ("Three sentences. ([an answer](solutions/a.ipynb), with others)", "Three sentences."),
    ("Read it in [a page](../microbert.py): one BERT. Then go on.", "Then go on."),
    ("(Stuck? Read our version, and close it. Or go on: ours fills in.)", "(Stuck? Or go on: ours fills in.)"),
    ("So we [recorded](../benchmarks/records/labels.py) five (3,000 texts).", "So we recorded five (3,000 texts)."),
    ("(Not tried there. [Benchmark](../benchmarks/results.md))", "(Not tried there.)"),
    ("[the guide](../docs/TEACHING.md)", "the guide"),
    ("[the data](../utils/data/README.md) and [a script](../scripts/fine_tune.py)", None),
    ("([the next](04_multi_head_attention.ipynb)) [a](https://example.org/solutions/)", None),
])  # fmt: skip
def test_strip_dead_links(text, expected):
    assert strip_dead_links(text, ROOT / "notebooks", ROOT) == (expected or text)
