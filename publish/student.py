"""Write a copy of the series without solutions, to hand out to a class: `make student`, into the folder student/.

It holds what a student runs, and a README of one screen; links to all else are mended. The checks of the exercises
stay, and whoever reads their source finds some answers there.
"""

import argparse
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import nbformat

from publish import badges
from publish.notebooks import save

ROOT = Path(__file__).resolve().parents[1]
KEPT = (
    "notebooks",
    "scripts",
    "pyproject.toml",
    "requirements.txt",
    "constraints.txt",
    "LICENSE",
    ".binder",
    ".gitignore",
)
MAKEFILE_ENDS = "# For contributors and teachers."
SOLUTIONS = "notebooks/solutions"
LINK = r"\[([^\[\]]*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)"
IN_BRACKETS = re.compile(rf"\s*\({LINK}\)")
README = """# Anatomy of a Transformer Encoder

**Build BERT in 16 notebooks.** Go through them in order; from 10 on, take what interests you.

## Start

{start}

## Work

- Run a cell with Shift+Enter. To start over: *Kernel ▸ Restart Kernel and Run up to Selected Cell*.
- In an exercise, write your answer in place of `...` and run the cell: it says whether you are right, or gives a hint.
- Hand in the notebook file itself (`.ipynb`), named after you. Cells of your own are welcome.
- Close a notebook that you have read with *File ▸ Close and Shut Down Notebook*: each takes memory of its own.

## The notebooks

{table}

Licence: [MIT](LICENSE).
"""


def kept(root: Path) -> list[str]:
    """The files and folders of the copy that are those of the series, packages included."""
    packages = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    return [*KEPT, *dict.fromkeys(package.partition(".")[0] for package in packages)]


def readme_of(text: str) -> str:
    """The README of the copy, made of that of the series: how to start, and the table of notebooks."""
    start = re.search(r"^```sh\n.*?(?=^## )", text, re.M | re.S)[0]
    start = re.sub(r"^(git clone|cd encoder|make test).*\n", "", start, flags=re.M)
    start = re.sub(r"^(make lab) +#.*$", r"\1", start, flags=re.M)
    start = re.sub(r"^On \*\*Colab\*\*.*\n", "", start, flags=re.M)
    start = re.sub(r" \[All other commands\]\([^)]*\)\.", "", start)
    return README.format(start=start.strip(), table=re.search(r"^\| Notebook .*?(?=\n\n)", text, re.M | re.S)[0])


def mend(text: str, folder: Path, root: Path) -> str:
    """A Markdown text of a file in this folder, without links to what is left out.

    A bracket that holds such a link alone goes; elsewhere its words stay.
    """
    places = [*kept(root), "README.md"]

    def is_left_out(target: str) -> bool:
        if re.match("[a-z]+:", target):
            return False
        path = Path(os.path.normpath(folder / target))
        return path.is_relative_to(root / SOLUTIONS) or not any(path.is_relative_to(root / place) for place in places)

    text = IN_BRACKETS.sub(lambda match: "" if is_left_out(match[2]) else match[0], text)
    return re.sub(LINK, lambda m: f"{m[1]} (not in this copy)" if is_left_out(m[2]) else m[0], text)


def write_copy(target: Path, root: Path = ROOT) -> Path:
    """Copy the series into a new folder, and return its path; FileExistsError if the folder is there."""
    target = target.resolve()
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it, or name another folder: make student ARGS=FOLDER")
    ignored = [line.rstrip("/") for line in (root / ".gitignore").read_text("utf-8").split("\n") if line]
    without = shutil.ignore_patterns(*ignored, Path(SOLUTIONS).name)
    for name in kept(root):
        if (root / name).is_dir():
            shutil.copytree(root / name, target / name, ignore=without)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)
    for name, made in {"README.md": readme_of, "Makefile": lambda text: text.partition(MAKEFILE_ENDS)[0]}.items():
        (target / name).write_text(made((root / name).read_text("utf-8")), "utf-8")
    for name in ("pyproject.toml", *(f"notebooks/{path.name}" for path in (target / "notebooks").glob("*.ipynb"))):
        path = target / name  # whose address is that of the original, solutions and all
        path.write_text(badges.addressed(name, path.read_text("utf-8"), badges.files(root)[name], None), "utf-8")
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
