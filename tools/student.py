"""Write a copy of the series without solutions, to hand out to a class: `make student`, into the folder student/.

Left out are the solutions, what is for teachers, and the tests of how the series is made; links to them are mended.
The checks of the exercises stay, and whoever reads their source finds some answers there.
"""

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

from tools.notebooks import save

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {
    "notebooks/solutions",
    *("TEACHING.md", "MISCONCEPTIONS.md"),
    # right and wrong answers to all exercises
    *("tests/exercises/cases", "tests/exercises/test_exercises.py", "tests/exercises/test_grading.py"),
    *("tests/exercises/test_cheats.py", "tests/exercises/hand_ins.py"),
    *("tests/browser", "tests/notebooks", "tests/slow", "tests/tools"),
    ".git",
}
LINK = r"\[([^\[\]]*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)"
IN_BRACKETS = re.compile(rf"\s*\({LINK}\)")


def kept_out(root: Path, target: Path):
    """For shutil.copytree: what git ignores, what is left out, and the copy itself."""
    patterns = [line.rstrip("/") for line in (root / ".gitignore").read_text("utf-8").split("\n") if line]
    by_name = shutil.ignore_patterns(*patterns)

    def ignore(folder: str, names: list[str]) -> set[str]:
        paths = {name: Path(folder, name) for name in names}
        left_out = {
            name
            for name, path in paths.items()
            if path.relative_to(root).as_posix() in LEFT_OUT or path == target
        }
        return left_out | by_name(folder, names)

    return ignore


def mend(text: str, folder: Path, root: Path) -> str:
    """A Markdown text of a file in this folder, without links to what is left out.

    A bracket that holds such a link alone goes; elsewhere its words stay.
    """

    def is_left_out(target: str) -> bool:
        path = os.path.normpath(folder / target)
        return any(Path(path).is_relative_to(root / place) for place in LEFT_OUT)

    text = IN_BRACKETS.sub(lambda match: "" if is_left_out(match[2]) else match[0], text)
    return re.sub(LINK, lambda m: f"{m[1]} (not in this copy)" if is_left_out(m[2]) else m[0], text)


def write_copy(target: Path, root: Path = ROOT) -> Path:
    """Copy the series into a new folder, and return its path; FileExistsError if the folder is there."""
    target = target.resolve()
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it, or name another folder: make student ARGS=FOLDER")
    shutil.copytree(root, target, ignore=kept_out(root, target))
    for path in sorted(target.rglob("*.md")):
        mended = mend(path.read_text("utf-8"), root / path.parent.relative_to(target), root)
        path.write_text(mended, "utf-8")
    for path in sorted((target / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = mend(cell.source, root / "notebooks", root)
        save(notebook, path)
    return target


def main() -> str | None:
    """Write the copy; return what is wrong, if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "student")
    try:
        print(f"Written to {write_copy(parser.parse_args().folder)}, ready to hand out")
    except OSError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
