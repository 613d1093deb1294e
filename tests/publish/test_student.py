"""The copy for students: no solutions, no dead link to them, and all that its own commands need."""

import os
import re
from pathlib import Path

import nbformat
import pytest

from publish.student import LEFT_OUT, mend, write_copy
from tests.helpers import ROOT

LINK = re.compile(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


def texts(folder: Path) -> dict[Path, str]:
    """The Markdown of all pages and notebooks."""
    found = {path: path.read_text("utf-8") for path in folder.rglob("*.md") if ".venv" not in path.parts}
    for path in (folder / "notebooks").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        found[path] = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return found


def dead_links(folder: Path) -> list[str]:
    """The links to files that are not there."""
    return [
        f"{path.name}: {target}"
        for path, text in texts(folder).items()
        for target in LINK.findall(text)
        if not os.path.lexists(os.path.normpath(path.parent / target))
    ]


def test_no_answers_and_no_history_in_it(copy):
    assert [place for place in LEFT_OUT if (copy / place).exists()] == []
    assert list(copy.rglob("*solutions.ipynb")) == []
    assert not {".git", ".venv", "student", "site"} & {path.name for path in copy.iterdir()}


def test_no_link_is_dead(copy):
    assert any("solutions/" in text for text in texts(ROOT).values())
    assert dead_links(copy) == dead_links(ROOT)
    assert not any("solutions/" in text for text in texts(copy).values())


def test_all_else_is_there(copy):
    for name in ("notebooks", "exercises", "utils", "views", "scripts", "tests/reference", "publish"):
        here, there = (
            sorted(path.name for path in (root / name).iterdir() if path.is_file()) for root in (ROOT, copy)
        )
        assert here == there
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        ours, theirs = (nbformat.read(root / "notebooks" / path.name, 4) for root in (ROOT, copy))
        assert [cell for cell in ours.cells if cell.cell_type == "code"] == [
            cell for cell in theirs.cells if cell.cell_type == "code"
        ]


def test_a_folder_that_is_there_is_left_alone(copy):
    with pytest.raises(FileExistsError, match="exists: remove it, or name another folder"):
        write_copy(copy)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("What is lost? ([an answer](solutions/03_solutions.ipynb))", "What is lost?"),
        ("See [ours](solutions/03_solutions.ipynb#a).", "See ours (not in this copy)."),
        ("[the guide](../TEACHING.md)", "the guide (not in this copy)"),
        ("([the next](04_multi_head_attention.ipynb)) [a](https://example.org/solutions/)", None),
    ],
)
def test_links_are_mended(text, mended):
    assert mend(text, ROOT / "notebooks", ROOT) == (mended or text)
