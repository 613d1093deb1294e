"""Write a copy of the series without solutions, to hand out to a class: `make student`, into the folder student/.

It holds everything that a student runs, and a README of one screen; dead links are removed. The checks of the exercises
are included, and their source contains some answers.
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
from publish.notebooks import OUR_VERSION_BLOCK, drop_claims, is_our_version, save
from utils.support.files import replacement

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
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
SOLUTIONS, TUTOR = "notebooks/solutions", "notebooks/AGENTS.md"
WITHHELD = (SOLUTIONS, "microbert.py")  # a sentence that sends students there makes no sense in the copy
# mark a link there or a mention of our version, and the beginning and the end of another dead link's label
GONE, DEAD, END = "\x02", "\x00", "\x01"
STRIPPED = (
    (rf"[^\S\n]*\([^().?!]*{GONE}[^().?!]*\)", ""),
    (rf"(?m)^[^.?!\n]*{GONE}[^.?!\n]*[.?!]?[^\S\n]*", ""),
    (rf"[^.?!\n]*{GONE}[^.?!\n]*[.?!]?", ""),
    (rf"[^\S\n]*\([^().?!]*{DEAD}[^{END}]*{END}[^().?!]*\.?\)", ""),
    (rf"(?<=[.?!])[^\S\n]{DEAD}[^{END}]*{END}\.?(?=\))", ""),
    (f"[{DEAD}{END}]", ""),
)
LINK = r"\[([^\[\]]*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)"
README = """# Anatomy of a Transformer Encoder

**Build BERT in {count} notebooks.** Go through them in order; from 10 on, take what interests you. With one
evening, take [BERT in an evening](notebooks/evening.ipynb).

## Start

{start}

## Work

- Run a cell with Shift+Enter. To start over: *Kernel ▸ Restart Kernel and Run up to Selected Cell*.
- In an exercise, replace `...` with your answer and run the cell: it reports whether you are right, or gives a hint.
- Hand in the notebook file itself (`.ipynb`), named after you. Cells of your own are welcome.
- The words of the field are in a [glossary](notebooks/glossary.md);
  [where to go from here](notebooks/where_to_go.md) lists what comes next.
- When you have finished a notebook, close it with *File ▸ Close and Shut Down Notebook*, which frees its memory.

## The notebooks

{table}

Licence: [MIT](LICENSE).
"""


def copied_names(root: Path) -> list[str]:
    """Return the names of the files and folders that are copied, packages included."""
    packages = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    return [*COPIED, *dict.fromkeys(package.partition(".")[0] for package in packages)]


def build_readme(text: str) -> str:
    """Return the README of the copy: how to start and the table of notebooks, taken from the README of the series."""
    start = re.search(r"^## Getting started\n.*?(^```sh\n.*?)(?=^## )", text, re.M | re.S)[1]
    start = re.sub(r"^(git clone|cd encoder|make test).*\n", "", start, flags=re.M)
    start = re.sub(r"^(make lab) +#.*$", r"\1", start, flags=re.M)
    start = re.sub(r"^On \*\*Colab\*\*.*\n", "", start, flags=re.M)
    start = re.sub(r" \[All other commands\]\([^)]*\)\.", "", start)
    table = re.search(r"^\| Notebook .*?(?=\n\n)", text, re.M | re.S)[0]
    return README.format(start=start.strip(), table=table, count=len(table.splitlines()) - 2)


def strip_dead_links(text: str, folder: Path, root: Path) -> str:
    """Remove from a Markdown text of a file in `folder` what leads to files that are not in the copy.

    A sentence or parenthesis that sends to a solution, or to our version, is removed, and so is another parenthesis of
    one phrase, or a sentence in one, with a dead link; elsewhere its label stays.
    """
    names = [*copied_names(root), "README.md"]

    def mark(match: re.Match) -> str:
        if re.match("[a-z]+:", match[2]):
            return match[0]
        path = Path(os.path.normpath(folder / match[2]))
        if any(path.is_relative_to(root / name) for name in WITHHELD):
            return GONE
        return match[0] if any(path.is_relative_to(root / name) for name in names) else f"{DEAD}{match[1]}{END}"

    text = re.sub(r"\b[Oo]ur version\b", GONE, re.sub(LINK, mark, text))
    for pattern, replacement_text in STRIPPED:
        text = re.sub(pattern, replacement_text, text)
    return text


def write_copy(target: Path, root: Path = ROOT, assistant: bool = False) -> Path:
    """Copy the series into a new folder, which appears once it is complete, and return its path.

    No notebook is ever written with its solutions, nor, unless there may be an `assistant`, without the setting that
    turns Colab's off. FileExistsError if the folder exists.
    """
    target = target.resolve()
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists: remove it, or name another folder: make student ARGS=FOLDER")
    if inside := [name for name in copied_names(root) if target.is_relative_to(root / name)]:
        raise FileExistsError(f"{target} is in {inside[0]}, which is copied: name a folder elsewhere")
    ignored = [line.rstrip("/") for line in (root / ".gitignore").read_text("utf-8").split("\n") if line]
    without = shutil.ignore_patterns(*ignored, "*.ipynb", Path(SOLUTIONS).name)
    patterns = badges.patterns_by_file(root)
    with replacement(target) as new:
        new.mkdir()
        for name in copied_names(root):
            if (root / name).is_dir():
                shutil.copytree(root / name, new / name, ignore=without)
            else:
                shutil.copy(root / name, new / name)
        makefile, readme, settings = (
            (root / name).read_text("utf-8") for name in ("Makefile", "README.md", badges.HOME)
        )
        (new / "Makefile").write_text(makefile.partition(MAKEFILE_ENDS)[0], "utf-8")
        (new / "README.md").write_text(build_readme(readme), "utf-8")
        # without the address of the original, which has the solutions
        settings = badges.set_address(badges.HOME, settings, patterns[badges.HOME], None)
        (new / badges.HOME).write_text(settings, "utf-8")
        for page in new.rglob("*.md"):
            text = strip_dead_links(page.read_text("utf-8"), root / page.parent.relative_to(new), root)
            page.write_text(text, "utf-8")
        for name in (name for name in patterns if name.endswith(".ipynb") and not name.startswith(SOLUTIONS)):
            text = badges.set_address(name, (root / name).read_text("utf-8"), patterns[name], None)
            notebook = without_solutions(nbformat.reads(text, as_version=4), (root / name).parent, root)
            notebook.metadata.setdefault("colab", {})["generative_ai_disabled"] = not assistant
            save(notebook, new / name)
        (new / TUTOR).rename(new / Path(TUTOR).name)  # coding assistants read it in the folder that is open
    return target


def without_solutions(notebook, folder: Path, root: Path):
    """Return a notebook of a folder without our versions of its exercises, and without dead links."""
    for cell in filter(is_our_version, drop_claims(notebook).cells):
        cell.source = OUR_VERSION_BLOCK.sub("", cell.source).strip()
    notebook.cells = [cell for cell in notebook.cells if cell.source or cell.cell_type == "code"]
    for cell in (cell for cell in notebook.cells if cell.cell_type == "markdown"):
        cell.source = strip_dead_links(cell.source, folder, root)
    return notebook


def main() -> str | None:
    """Write the copy; return an error message or None."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "student")
    parser.add_argument("--assistant", action="store_true", help="leave Colab's assistant on, which writes code")
    options = parser.parse_args()
    try:
        print(f"Written to {write_copy(options.folder, assistant=options.assistant)}, ready to hand out")
    except OSError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
