"""Write a copy of the series without solutions, to hand out to a class: `make student`, into the folder student/.

It holds the files that `publish/student.json` names, which are the series' own: nothing else that is in the folder goes
out, and nothing at all if an exercise has an answer, or one of the files has changed since the last commit. Only the
printed solutions are missing: `utils` holds a finished version of each part, on which the notebooks run, and the checks
hold answers.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import nbformat

from publish import badges, marks
from publish.notebooks import NO_GUESS, OUR_VERSION_BLOCK, is_our_version, save
from utils.support.command_line import Parser
from utils.support.files import replacement, write_file

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("notebooks", "scripts", "pyproject.toml", "requirements.txt", "constraints.txt", "LICENSE")
COPIED += (".binder", ".gitignore", "Makefile", "README.md")
ENDS = "# For contributors"  # and what follows it in the Makefile and pyproject.toml
SOLUTIONS, TUTOR = "notebooks/solutions", "notebooks/AGENTS.md"
OWN_FILES = "publish/student.json"  # written by --list at a release
NOT_ATTEMPTED = "not attempted yet"
README = """# Anatomy of a Transformer Encoder

**Build BERT in {count} notebooks.** Go through them in order; from 10 on, take what interests you. With one
evening, take [BERT in an evening](notebooks/evening.ipynb).

## Start

```sh
make lab
```

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


def list_own_files(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the files that git knows and the copy takes, and for a notebook the fingerprint of each cell."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--", *copied_names(root)]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    found = {}
    for name in sorted(filter(None, names)):
        if not name.startswith(SOLUTIONS):
            cells = nbformat.read(root / name, as_version=4).cells if name.endswith(".ipynb") else []
            found[name] = {cell.id: fingerprint(cell) for cell in cells}
    return found


def is_answered_by_readers(cell) -> bool:
    """Return whether readers write into a cell: an exercise, or a guess."""
    return "exercise" in cell.metadata.get("tags", []) or cell.source.startswith(NO_GUESS.rpartition(" ")[0])


def fingerprint(cell) -> str:
    """Return a fingerprint of a cell that readers answer, and an empty one of all others, which authors edit."""
    return sha256(cell.source.encode()).hexdigest()[:8] if is_answered_by_readers(cell) else ""


def find_answers(name: str, notebook, expected: dict[str, str]) -> list[str]:
    """Return what a reader has written into a notebook of the series, each as a phrase that names its cell."""
    problems = []
    for number, cell in enumerate(notebook.cells, 1):
        printed = [output.get("text", "") for output in cell.get("outputs", [])]
        where = f"{name}, cell {number} ({cell.source.strip().partition(chr(10))[0][:40]!r})"
        if cell.id not in expected:
            problems.append(f"{where} is not the series'")
        elif expected[cell.id] and fingerprint(cell) != expected[cell.id]:
            problems.append(f"{where} has an answer")
        elif "exercise" in cell.metadata.get("tags", []) and not all(NOT_ATTEMPTED in text for text in printed):
            problems.append(f"{where} has the output of an answer")
    return problems


def build_readme(text: str) -> str:
    """Return the README of the copy: how to start and the table of notebooks, taken from the README of the series."""
    *start, table = marks.parts(text, "student")
    return README.format(start="\n\n".join(start), table=table, count=len(table.splitlines()) - 2)


def for_students(text: str, name: str, own_files) -> str:
    """Return the Markdown of a file in which a link to what the copy lacks is its label."""

    def is_there(link: str) -> bool:
        path = os.path.normpath(Path(name).parent / link)
        return any(Path(own).is_relative_to(path) for own in own_files)

    return marks.keep_links(text, is_there)


def write_copy(target: Path, root: Path = ROOT, assistant: bool = False) -> Path:
    """Copy the series into a new folder, which appears once it is complete, and return its path.

    No notebook is ever written with its solutions, nor, unless there may be an `assistant`, without the setting that
    turns Colab's off. FileExistsError if the folder exists, and ValueError if a notebook has an answer.
    """
    target = target.resolve()
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists: remove it, or name another folder: make student ARGS=FOLDER")
    if inside := [name for name in copied_names(root) if target.is_relative_to(root / name)]:
        raise FileExistsError(f"{target} is in {inside[0]}, which is copied: name a folder elsewhere")
    own_files = json.loads((root / OWN_FILES).read_text("utf-8"))
    patterns = badges.patterns_by_file(root)
    with replacement(target) as new:
        problems = []
        for name, cells in own_files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            if not name.endswith((".ipynb", ".md")) and name not in ("Makefile", badges.HOME):
                shutil.copy(root / name, new / name)
                continue
            text = (root / name).read_text("utf-8")
            if name.endswith(".ipynb") or name == badges.HOME:
                # without the address of the original, which has the solutions
                text = badges.set_address(name, text, patterns[name], None)
            if name.endswith(".ipynb"):
                notebook = nbformat.reads(text, as_version=4)
                problems += find_answers(name, notebook, cells)
                notebook = without_solutions(notebook, name, own_files)
                notebook.metadata.setdefault("colab", {})["generative_ai_disabled"] = not assistant
                save(notebook, new / name)
            else:
                text = build_readme(text) if name == "README.md" else text.partition(ENDS)[0]
                text = for_students(marks.read(text, "student"), name, own_files) if name.endswith(".md") else text
                (new / name).write_text(text.rstrip() + "\n", "utf-8")
        if problems:
            raise ValueError("\n".join([*problems, "Move your own work elsewhere, and restore these notebooks."]))
        (new / TUTOR).rename(new / Path(TUTOR).name)  # coding assistants read it in the folder that is open
    return target


def left_out(root: Path) -> list[str]:
    """Return the notebooks next to those of the series that are not its own."""
    found = (path.relative_to(root).as_posix() for path in (root / "notebooks").glob("*.ipynb"))
    return sorted({*found} - json.loads((root / OWN_FILES).read_text("utf-8")).keys())


def without_solutions(notebook, name: str, own_files):
    """Return a notebook without our versions of its exercises, and without what the copy leaves out."""
    for cell in filter(is_our_version, marks.read_notebook(notebook, "student").cells):
        cell.source = OUR_VERSION_BLOCK.sub("", cell.source).strip()
    for cell in (cell for cell in notebook.cells if cell.cell_type == "markdown"):
        cell.source = for_students(cell.source, name, own_files)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip() or cell.cell_type == "code"]
    return notebook


def changed_files(root: Path) -> list[str] | None:
    """Return the series' own files that differ from the last commit; None if git does not know the folder."""
    command = ["git", "-C", str(root), "diff", "--name-only", "--relative", "-z", "HEAD", "--", "."]
    if not (root / ".git").exists() or not shutil.which("git"):
        return None
    changed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    own = json.loads((root / OWN_FILES).read_text("utf-8"))
    return [name for name in changed if name in own]


def main() -> str | None:
    """Write the copy, or the list of files that it takes; return an error message or None."""
    parser = Parser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "student")
    parser.add_argument("--assistant", action="store_true", help="leave Colab's assistant on, which writes code")
    parser.add_argument("--list", action="store_true", help=f"write {OWN_FILES} from git instead, at a release")
    options = parser.parse_args()
    try:
        if options.list:
            write_file(ROOT / OWN_FILES, json.dumps(list_own_files(ROOT), indent=1) + "\n")
            return None
        if changed := changed_files(ROOT):
            remedy = "restore them, for example by `git stash`, or commit what your students are to get"
            return f"Changed since the last commit: {', '.join(changed)}: {remedy}"
        if changed is None:
            print("Without git, changes of yours are looked for in exercises alone: copy from a fresh folder.")
        copy = write_copy(options.folder, ROOT, options.assistant)
        for name in left_out(ROOT):
            print(f"Left out, because it is not one of the series' own files: {name}")
        print(f"Written to {copy}, ready to hand out")
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
