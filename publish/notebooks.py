"""Maintain the notebooks: `execute` runs and saves them, `sync` copies finished definitions from utils.

What a cell with `reveal` prints and draws is saved in the `<details>` after it, for readers who guess nothing.
"""

import ast
import base64
import copy
import itertools
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm.auto import tqdm
from traitlets.config import Config

from publish import marks
from publish.screenshots import add_screenshots, reduce_colours
from utils.support.command_line import Parser
from utils.support.files import write_file

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"  # names a widget of a kernel that is gone
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # as JupyterLab and as Colab store it
EXEMPT = "nbval-ignore-output"  # tag of a cell whose output nbval does not compare
VARIES = "varies"  # tag of a cell that reveals what a training gave, so its numbers depend on the machine
REMOVE_INPUT = "remove-input"  # tag of a cell whose code is hidden on slides, as in nbconvert and Jupyter Book
FOLDERS = (".", "proofs", "solutions")  # in notebooks/: the series, the tests of its claims, the solved exercises
COPIED = re.compile(
    r"(\d\d)_(.+)"
)  # the id of a cell that `sync` copies from another notebook: its number, the cell's id
PROOF = "### Proof "  # starts each proof: the claim stays visible, and JupyterLab folds the rest
STATED_MINUTES = re.compile(r"^#+ (.*)\n(?:[^#\n].*\n|\n)*?\*\*●+ (\d+) min", re.MULTILINE)  # of an exercise
MINUTES = re.compile(r"^Read \d+ minutes, with exercises \d+", re.MULTILINE)
MARK = re.compile(r"^## \d:\d\d (?=· )", re.MULTILINE)  # how a heading begins that says when a reader arrives there
# begins the finished code of an exercise, which is closed on GitHub as well
OUR_VERSION = "<summary><b>Our version</b></summary>"
BUILT_IN = re.compile(r"Built in notebook (\d\d), (exercise [\d.]*\d|proof [\d.]*\d|section “[^”]*”)")
OUR_VERSION_BLOCK = re.compile(rf"<details>\s*{OUR_VERSION}.*?</details>", re.DOTALL)
FENCED = re.compile(r"(?<=^```python\n).+?(?=\n```$)", re.MULTILINE | re.DOTALL)
COLLAPSED = {"jp-MarkdownHeadingCollapsed": True}
NO_GUESS = "prediction = None"  # how a cell begins that asks for a prediction
# the beginning of the <details> that explains an answer, and what `execute` writes below it: figures, and a table
BOX = re.compile(r"(<details>\s*<summary>.*?</summary>\n\n)((?:<!--answer-->\n.*?<!--/answer-->\n\n)?)", re.DOTALL)
SHOWN = "<!--answer-->\n\n{}\n\n<!--/answer-->\n\n"
ANSWERS = Path("images", "answers")  # the figures of answers, next to the notebook
KEPT_METADATA = ("tags", "slideshow", "nbgrader")  # metadata of a cell that is no matter of folding
METADATA = {
    "colab": {"runtime_attributes": {"runtime_version": "2026.07"}},  # one of those in tests/colab
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def number_of(path: Path) -> str:
    """Return what the names of a notebook, its proofs and its solutions begin with, such as 03 or evening."""
    return path.stem.partition("_")[0]


def notebook_paths(names: list[str]) -> list[Path]:
    """Return the notebooks whose file names begin with one of `names`, or all, then their proofs and solutions."""
    paths = [path for folder in FOLDERS for path in sorted((NOTEBOOKS / folder).glob("[0-9e]*.ipynb"))]
    return [path for path in paths if not names or path.name.startswith(tuple(names))]


def execute(path: Path) -> None:
    """Run a notebook in a fresh kernel and save it with its outputs; after an error the file is unchanged."""
    notebook = nbformat.read(path, as_version=4)
    before = copy.deepcopy(notebook)
    run(notebook, path.parent)
    compress_figures(notebook)
    add_screenshots(notebook, before)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        kept = {name: cell.metadata[name] for name in KEPT_METADATA if cell.metadata.get(name)}
        folded = FOLDED if is_folded(cell) else COLLAPSED if cell.source.startswith(PROOF) else {}
        cell.metadata = nbformat.from_dict(kept | folded)
        if cell.cell_type == "code":
            cell.outputs = join_streams(drop_progress_bars(cell))
            for output in cell.outputs:  # views and widgets appear when the reader runs the cell
                for kind in ("text/html", WIDGET):
                    output.get("data", {}).pop(kind, None)
            cell.outputs = [output for output in cell.outputs if output.get("data", True)]
    files = save_answers(notebook, path)
    write_minutes(notebook)
    write_figures(files)
    save(notebook, path)
    remove_old_figures(files, path)


def save_answers(notebook, path: Path) -> dict[Path, bytes]:
    """Move what the cells with `reveal` print and draw into the boxes after them, and return the files of figures."""
    folder, number, files = path.parent / ANSWERS, number_of(path), {}
    for cell, box in answers(notebook.cells):
        names = []
        for index, png in enumerate(figures(cell.outputs), 1):
            names.append(f"{number}_{cell.id}{f'-{index}' * (index > 1)}.png")
            files[folder / names[-1]] = png
        shown = [f"![{question(cell.source)}]({(ANSWERS / name).as_posix()})\n" for name in names]
        text = "\n".join([*shown, table(cell.outputs)])
        box.source = BOX.sub(lambda found, text=text: found[1] + SHOWN.format(text), box.source, count=1)
        cell.outputs = []
    return files


def write_figures(files: Mapping[Path, bytes]) -> None:
    """Write the figures of a notebook's answers."""
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, content)


def remove_old_figures(files: Mapping[Path, bytes], path: Path) -> None:
    """Remove the figures of earlier runs, which the saved notebook no longer names."""
    for old in {*(path.parent / ANSWERS).glob(f"{number_of(path)}_*.png")} - files.keys():
        old.unlink()


def answers(cells: list) -> list[tuple]:
    """Return each cell that reveals an answer with its box: the next text cell with a <details> that has a summary.

    ValueError if another prediction, or the end, comes first.
    """
    pairs = []
    for index, cell in enumerate(cells):
        if reveals_answer(cell):
            after = itertools.takewhile(lambda other: not other.source.startswith(NO_GUESS), cells[index + 1 :])
            boxes = (other for other in after if other.cell_type == "markdown" and not is_our_version(other))
            if (box := next((box for box in boxes if BOX.search(box.source)), None)) is None:
                raise ValueError(f"cell {cell.id} reveals an answer: explain it below, in <details> with a <summary>")
            pairs.append((cell, box))
    return pairs


def question(source: str) -> str:
    """Return the question that a cell passes to `reveal`, for the alt text of its figures."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    [call] = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "reveal")
    text = call.args[2]
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)


def figures(outputs: list) -> list[bytes]:
    """Return the figures among the outputs of a cell as PNG."""
    found = (output.get("data", {}).get("image/png") for output in outputs)
    return [base64.b64decode(png) for png in found if png]


def table(outputs: list) -> str:
    """Return the lines that a cell prints as a Markdown table, with columns where a line has a colon or two spaces."""
    printed = (output.text for output in join_streams(outputs) if output.get("name") == "stdout")
    lines = [line.strip() for line in "".join(printed).splitlines() if line.strip()]
    rows = [re.split(r":?\s{2,}", line) for line in lines]
    rows = [row if len(row) > 1 else line.split(": ", 1) for row, line in zip(rows, lines, strict=True)]
    width = max(2, *map(len, rows))
    rows = [[re.sub(r"([\\`*_|])", r"\\\1", text) for text in row] + [""] * (width - len(row)) for row in rows]
    lines = (f"|{'|'.join(row)}|" for row in [rows[0], ["---"] * width, *rows[1:]])
    return "\n".join(lines).replace("<", "&lt;")


def compress_figures(notebook) -> None:
    """Save the figures of a notebook with few colours, in a fraction of the bytes."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if png := output.get("data", {}).get("image/png"):
            output.data["image/png"] = base64.b64encode(reduce_colours(base64.b64decode(png))).decode()


def run(notebook, folder: Path, timeout: int = 3600) -> None:
    """Run the cells of a notebook in a folder and a fresh kernel, with `timeout` seconds for each cell.

    Unless the environment variable SHOW is off, answers are shown without a prediction. The connection is encrypted,
    because ipykernel warns at every start if it is not.
    """
    encrypted = Config({"KernelManager": {"transport_encryption": "auto"}})
    options = {"timeout": timeout, "kernel_name": "python3", "record_timing": False, "config": encrypted}
    NotebookClient(notebook, resources={"metadata": {"path": folder}}, **options).execute(
        env={"SHOW": "on"} | os.environ | {"MINE": "off"}  # run the series' own parts, not a reader's
    )


def is_folded(cell) -> bool:
    """Return whether only the title of a cell is shown, as for imports, which readers run and need not read."""
    return cell.cell_type == "code" and cell.source.startswith("# @title ")


def is_our_version(cell) -> bool:
    """Return whether a text cell shows the finished code of the exercise above it."""
    return cell.cell_type == "markdown" and OUR_VERSION in cell.source


def convert_finished_code(cell, convert: Callable[[str], str]) -> str:
    """Return the source of a cell, converted where it has finished definitions: in code cells, and in "Our version"."""
    if cell.cell_type == "code":
        return cell.source if "exercise" in cell.metadata.get("tags", []) else convert(cell.source)
    return FENCED.sub(lambda code: convert(code[0]), cell.source) if is_our_version(cell) else cell.source


def reveals_answer(cell) -> bool:
    """Return whether a cell reveals the answer to a prediction: what it shows is saved in the box after it."""
    return cell.cell_type == "code" and "reveal(" in cell.source and EXEMPT in cell.metadata.get("tags", [])


def reading_time(cells: list) -> float:
    """Estimate the minutes that cells take to read, without exercises, recalled questions, tables and sources.

    One minute for 150 words or 12 lines of open code, 2 for an interactive view or figure, 0.7 for a still picture, 1.5
    for a prediction and 0.5 for a line to change.
    """
    read = 0
    for cell in cells:
        # the time of a prediction includes its answer
        source = BOX.sub(r"\1", OUR_VERSION_BLOCK.sub("", marks.read(cell.source, "")))
        text = [line for line in source.splitlines() if line.strip()]
        if "exercise" in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "code":
            interactive, still = count_outputs(cell)
            read += 0 if is_folded(cell) else len(text) / 12
            read += 2 * interactive + 0.7 * still + 1.5 * reveals_answer(cell) + 0.5 * cell.source.count("# change me")
        elif not cell.source.startswith(("### Exercise", "**Sources", "Read ")):
            read += sum(len(line.split()) for line in text if not line.startswith("|")) / 150
            read += 0.7 * source.count("![")
    return read


def minutes(notebook) -> tuple[int, int]:
    """Return the minutes to read a notebook, and with its exercises, rounded to five minutes.

    Exercises take the minutes that their texts state, as in "**●● 20 minutes.**"; the others 12 minutes each.
    """
    cells = notebook.cells
    read, stated = reading_time(cells), exercise_minutes(cells)
    silent, is_stated = 0, False
    for cell in cells:
        is_stated = is_stated or bool(STATED_MINUTES.search(cell.source))
        if "exercise" in cell.metadata.get("tags", []):
            silent, is_stated = silent + (not is_stated), False
    return round(read), 5 * round((read + sum(stated.values()) + 12 * silent) / 5)


def exercise_minutes(cells: list) -> dict[str, int]:
    """Return the minutes that the texts of exercises state, by their headings."""
    return {heading: int(stated) for cell in cells for heading, stated in STATED_MINUTES.findall(cell.source)}


def write_minutes(notebook) -> None:
    """Write the counted minutes where a notebook states them."""
    stated, cells = "Read {} minutes, with exercises {}".format(*minutes(notebook)), notebook.cells
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            start = reading_time(cells[:number]) + sum(exercise_minutes(cells[:number]).values())
            text = MINUTES.sub(stated, cell.source)
            cell.source = MARK.sub(
                lambda mark, start=start: clock(start + len(mark.string[: mark.start()].split()) / 150), text
            )


def clock(minutes: float) -> str:
    """Return how a heading begins that a reader reaches after so many minutes."""
    return "## {}:{:02d} ".format(*divmod(round(minutes), 60))


def count_outputs(cell) -> tuple[int, int]:
    """Count the saved outputs of a code cell that are interactive when run, and those that are still pictures."""
    from views.page import STATIC_NOTICE  # the text by which an interactive view is recognised

    shown = [output.data for output in cell.outputs if "image/png" in output.get("data", {})]
    interactive = sum(STATIC_NOTICE in data.get("text/plain", "") for data in shown)
    return interactive, len(shown) - interactive


def drop_progress_bars(cell) -> list:
    """Return the outputs of a code cell; if nbval skips it, without progress bars, which hold timings."""
    exempt = EXEMPT in cell.metadata.get("tags", [])
    return [output for output in cell.outputs if not (exempt and output.get("name") == "stderr")]


def join_streams(outputs: list) -> list:
    """Join neighbouring outputs of one stream, because a stream is split at random points."""
    joined = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def save(notebook, path: Path) -> None:
    """Write a notebook atomically."""
    write_file(path, nbformat.writes(notebook) + "\n")


def definitions(source: str) -> list[tuple[str, ast.stmt]]:
    """Return the top-level functions, classes and constants of a Python source, each with its name."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with an IPython magic defines nothing of ours
        return []
    return [(name, node) for node in body if (name := defined_name(node))]


def defined_name(node: ast.stmt) -> str | None:
    """Return the name of a function, class or UPPER_CASE constant that a statement defines, else None."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()) if (
            name.isupper()
        ):
            return name
    return None


def has_docstring(node: ast.AST) -> bool:
    """Return whether a node is a function or class whose body has a docstring and at least one more statement."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(node, kinds) and ast.get_docstring(node) is not None and len(node.body) > 1


def line_range(node: ast.stmt, lines: list[str]) -> slice:
    """Return the range of lines of a top-level statement, decorators included; ValueError if it shares a line."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    rest = lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()
    if node.col_offset or rest[:1] not in (b"", b"#"):
        raise ValueError(f"a statement shares a line with {lines[first - 1]!r}: put each statement on its own line")
    return slice(first - 1, node.end_lineno)


def strip_docstrings(node: ast.stmt, lines: list[str]) -> list[str]:
    """Return the lines of a statement without docstrings and the blank lines after them."""
    where, skip = line_range(node, lines), set()
    for docstring in (part.body[0] for part in ast.walk(node) if has_docstring(part)):
        skip.update(range(docstring.lineno - 1, docstring.end_lineno))
        if not lines[docstring.end_lineno].strip():
            skip.add(docstring.end_lineno)
    return [lines[number] for number in range(where.start, where.stop) if number not in skip]


def read_module(module: str) -> str:
    """Return the source of a module of utils."""
    return (ROOT / "utils" / f"{module}.py").read_text("utf-8")


def read_built() -> dict[str, dict[str, dict[str, str]]]:
    """Return the definitions that each notebook builds, by module, with their places, as their docstrings name them."""
    found = {}
    for path in sorted((ROOT / "utils").glob("*.py")):
        for name, node in definitions(path.read_text("utf-8")):
            if place := BUILT_IN.search(" ".join(((has_docstring(node) and ast.get_docstring(node)) or "").split())):
                found.setdefault(place[1], {}).setdefault(path.stem, {})[name] = place[2]
    return found


BUILT = read_built()


def utils_definitions(path: Path) -> dict[str, list[str]]:
    """Return the lines of each definition in the utils modules of a notebook, by name."""
    sources = [read_module(module) for module in BUILT.get(number_of(path), {})]
    return {
        name: strip_docstrings(node, source.split("\n")) for source in sources for name, node in definitions(source)
    }


def replace_definitions(source: str, definitions_by_name: dict[str, list[str]]) -> str:
    """Return the source of a cell, with each definition that utils has replaced by the lines from utils."""
    lines = source.split("\n")  # as ast counts lines; str.splitlines splits at more characters
    for name, node in reversed(definitions(source)):  # from the bottom up, so that earlier line numbers stay valid
        if name in definitions_by_name:
            lines[line_range(node, lines)] = definitions_by_name[name]
    return "\n".join(lines)


def original_source(path: Path, number: str, cell_id: str) -> str:
    """Return the source of a cell in the notebook of this number next to `path`; ValueError if there is none."""
    cells = [cell for file in path.parent.glob(f"{number}_*.ipynb") for cell in nbformat.read(file, as_version=4).cells]
    found = [cell.source for cell in cells if cell.id == cell_id]
    if len(found) != 1:
        raise ValueError(
            f"{path.name} copies the cell {cell_id} of notebook {number}, which has {len(found)}: correct its id"
        )
    return found[0]


def sync(path: Path, write: bool = True) -> bool:
    """Replace each definition in a notebook by the one in its utils modules; return whether any differed.

    A cell whose id is 03_ and the id of a cell of notebook 03 is replaced by that cell.
    """
    notebook, definitions_by_name, changed = nbformat.read(path, as_version=4), utils_definitions(path), False
    for cell in notebook.cells:
        source = convert_finished_code(cell, lambda code: replace_definitions(code, definitions_by_name))
        if original := COPIED.fullmatch(cell.id):
            source = original_source(path, *original.groups())
        changed |= source != cell.source
        cell.source = source
    if changed and write:
        save(notebook, path)
    return changed


def main() -> str | None:
    """Run a command on the given notebooks, or on all; return an error message or None."""
    parser = Parser(description=__doc__)
    parser.add_argument("command", choices=["execute", "sync"])
    parser.add_argument("names", nargs="*", help="beginnings of file names, such as 03")
    parser.add_argument("--check", action="store_true", help="sync: change nothing, fail if a notebook is out of date")
    arguments = parser.parse_args()
    paths = notebook_paths(arguments.names)
    if not paths:
        return f"no notebook in {NOTEBOOKS} begins with {', '.join(arguments.names)}"
    if arguments.command == "execute":
        for path in tqdm(paths, unit="notebook"):
            execute(path)
        return None
    changed = [path.name for path in paths if sync(path, write=not arguments.check)]
    if changed and arguments.check:
        return f"{', '.join(changed)}: a definition differs from the one in utils; run `make sync notebooks`"
    print(f"{len(changed)} of {len(paths)} notebooks changed {' '.join(changed)}".rstrip())
    return None


if __name__ == "__main__":
    sys.exit(main())
