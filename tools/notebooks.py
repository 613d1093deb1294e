"""Maintain the notebooks: `execute` runs and saves them, `sync` copies the finished definitions from utils."""

import argparse
import ast
import os
import sys
from contextlib import suppress
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from tqdm.auto import tqdm

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
MODULES = {
    "01": ("tokenization",),
    "02": ("embeddings",),
    "03": ("attention",),
    "04": ("attention",),
    "05": ("encoder_layer",),
    "06": ("encoder",),
    "08": ("classifier", "training", "evaluation"),
    "09": ("packing", "search"),
}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook_paths(names: list[str]) -> list[Path]:
    """The notebooks whose file names begin with one of the names, solutions included; all of them for no names."""
    paths = sorted(NOTEBOOKS.glob("[0-9]*.ipynb")) + sorted((NOTEBOOKS / "solutions").glob("[0-9]*.ipynb"))
    return [path for path in paths if not names or path.name.startswith(tuple(names))]


def execute(path: Path) -> None:
    """Run a notebook from a fresh kernel and save it with its outputs; an error leaves the file as it was."""
    notebook = nbformat.read(path, as_version=4)
    options = {"timeout": 3600, "kernel_name": "python3", "record_timing": False}
    NotebookClient(notebook, resources={"metadata": {"path": path.parent}}, **options).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
        )
        if cell.cell_type == "code":
            cell.outputs = join_streams(without_progress(cell))
        for output in cell.get("outputs", []):  # a view's payload appears where its cell is run
            output.get("data", {}).pop("text/html", None)
    save(notebook, path)


def without_progress(cell) -> list:
    """The outputs of a code cell, less the progress bars of one that nbval does not compare: they hold timings."""
    exempt = "nbval-ignore-output" in cell.metadata.get("tags", [])
    return [output for output in cell.outputs if not (exempt and output.get("name") == "stderr")]


def join_streams(outputs: list) -> list:
    """The outputs, with neighbouring pieces of one stream joined, since where a stream breaks is chance."""
    joined = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def save(notebook, path: Path) -> None:
    """Write a notebook whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8") as file:
            nbformat.write(notebook, file)
        draft.replace(path)
    except OSError as error:
        raise OSError(
            f"{path} could not be saved and is as it was ({error}): use a folder that you may write, "
            "on a disk with room for it"
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def definitions(source: str) -> dict[str, str]:
    """The top-level functions and classes of a Python source by name, each without its docstrings."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with an IPython magic defines nothing of ours
        return {}
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: without_docstrings(node, source) for node in tree.body if isinstance(node, kinds)}


def without_docstrings(node: ast.stmt, source: str) -> str:
    """The source lines of a definition, decorators and comments included, docstrings and the blanks after them not."""
    lines, skip = source.splitlines(), set()
    for part in ast.walk(node):
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(part) is not None:
            docstring = part.body[0]
            skip.update(range(docstring.lineno, docstring.end_lineno + 1))
            if not lines[docstring.end_lineno : docstring.end_lineno + 1][0].strip():
                skip.add(docstring.end_lineno + 1)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    kept = [lines[number - 1] for number in range(first, node.end_lineno + 1) if number not in skip]
    return "\n".join(kept)


def finished(path: Path) -> dict[str, str]:
    """The definitions that the utils modules of a notebook hold, by name."""
    modules = MODULES.get(path.name[:2], ())
    sources = [(ROOT / "utils" / f"{module}.py").read_text("utf-8") for module in modules]
    return {name: text for source in sources for name, text in definitions(source).items()}


def sync(path: Path, write: bool = True) -> bool:
    """Replace each definition in a notebook that has a home in its utils module; return whether any differed."""
    notebook, homes, changed = nbformat.read(path, as_version=4), finished(path), False
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for name, text in definitions(cell.source).items():
            if name in homes and text != homes[name]:
                cell.source = cell.source.replace(text, homes[name])
                changed = True
    if changed and write:
        save(notebook, path)
    return changed


def main() -> str | None:
    """Run a command on the notebooks named, or on all; return what failed, if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["execute", "sync"])
    parser.add_argument("names", nargs="*", help="beginnings of file names, such as 03")
    parser.add_argument(
        "--check", action="store_true", help="sync: change nothing, fail where something would change"
    )
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
        return f"{', '.join(changed)}: a definition differs from its home in utils; run `make sync notebooks`"
    print(f"{len(changed)} of {len(paths)} notebooks changed {' '.join(changed)}".rstrip())
    return None


if __name__ == "__main__":
    sys.exit(main())
