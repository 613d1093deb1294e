"""Maintain the notebooks: `execute` runs and saves them, `sync` copies the finished definitions from utils."""

import argparse
import ast
import base64
import copy
import io
import itertools
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image
from tqdm.auto import tqdm
from traitlets.config import Config

from publish.photograph import photograph
from utils.files import write_file
from views.page import INSTEAD  # a view that lives says where it does

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
MODULES = {  # each notebook's modules in utils, with the names that it must finish; it may copy others from them
    "01": {"tokenization": ("WordPieceTokenizer", "normalize", "pre_tokenize", "word_pieces", "pad_batch")},
    "02": {"embeddings": ("Embeddings",)},
    "03": {"attention": ("compute_attention_weights", "scaled_dot_product_attention", "AttentionHead")},
    "04": {"attention": ("MultiHeadAttention",)},
    "05": {"encoder_layer": ("FeedForward", "TransformerEncoderLayer")},
    "06": {"encoder": ("TransformerEncoder",), "weights": ("rename_weight", "rename_weights")},
    "08": {
        "classifier": ("TransformerForSequenceClassification",),
        "training": ("rate_factor", "make_optimizer", "train_epoch", "classify", "fit", "fine_tune"),
        "statistics": ("wilson_interval",),
    },
    "09": {"search": ("mean_pooling", "embed", "search"), "batches": ()},
    "11": {
        "masked_lm": ("LanguageModelHead", "TransformerForMaskedLM", "mask_tokens"),
        "pretraining": (
            "fill_rows",
            "NeighbourGuess",
            "endless_batches",
            "masked_batches",
            "guess_words",
            "mean_vectors",
            "find_partners",
            "contrast",
        ),
    },
    "12": {
        "attention": ("causal_mask",),
        "decoder": (*("LayerCache", "TransformerDecoderLayer", "TransformerDecoder", "EncoderDecoder"),),
        "generation": ("Writer", "greedy_search", "beam_search"),
    },
    "13": {
        "packing": ("TextBoundaries", "encode_packed"),
        "eight_bits": ("to_eight_bits", "in_eight_bits", "quantize_onnx"),
    },
    "14": {
        "modernbert": (
            *("rotary", "local_mask", "local_attention", "RotaryAttention", "GatedFeedForward"),
            *("ModernEncoderLayer", "ModernEncoder"),
        )
    },
    "15": {"token_labels": ("TransformerForTokenClassification", "align"), "lora": ("LoRA",)},
}
WIDGET = "application/vnd.jupyter.widget-view+json"  # names a widget of a kernel that is gone
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # JupyterLab's word for it, and Colab's
EXEMPT = "nbval-ignore-output"  # tag of a cell whose output nbval does not compare
REMOVE_INPUT = "remove-input"  # tag of a cell whose code stays off the slides, as nbconvert and Jupyter Book say it
SEMINAR = "seminar"  # tag of a cell that the seminar of TEACHING.md shows, tells or runs
PROOFS = "## Proofs"  # the heading at the end, of what defends the claims
PROOF = "### Proof "  # begins each of them: the claim stays in sight, and JupyterLab folds what follows
COLLAPSED = {"jp-MarkdownHeadingCollapsed": True}
KEPT = ("tags", "slideshow", "nbgrader")  # of a cell's metadata, by whoever wrote it
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
    before = copy.deepcopy(notebook)
    run(notebook, path.parent)
    pack_pictures(notebook)
    photograph(notebook, before)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        kept = {name: cell.metadata[name] for name in KEPT if cell.metadata.get(name)}
        folded = FOLDED if is_folded(cell) else COLLAPSED if cell.source.startswith(PROOF) else {}
        cell.metadata = nbformat.from_dict(kept | folded)
        if tells_the_answer(cell):
            cell.outputs = []
        elif cell.cell_type == "code":
            cell.outputs = join_streams(without_progress(cell))
            for output in cell.outputs:  # a view's payload and boxes appear where its cell is run
                for kind in ("text/html", WIDGET):
                    output.get("data", {}).pop(kind, None)
            cell.outputs = [output for output in cell.outputs if output.get("data", True)]  # less bare boxes
    save(notebook, path)


def pack_pictures(notebook) -> None:
    """Write the figures of a notebook in a seventh fewer bytes: the same pixels, without their channel of opacity."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if png := output.get("data", {}).get("image/png"):
            picture, file = Image.open(io.BytesIO(base64.b64decode(png))), io.BytesIO()
            if picture.mode == "RGBA" and picture.getchannel("A").getextrema() == (255, 255):
                picture.convert("RGB").save(file, "PNG", optimize=True)
                output.data["image/png"] = base64.b64encode(file.getvalue()).decode()


def run(notebook, folder: Path, timeout: int = 3600) -> None:
    """Run the cells of a notebook in a folder, on a fresh kernel, with so many seconds for each cell.

    The kernel is handed keys to encrypt what it says, without which ipykernel warns on every start.
    """
    encrypted = Config({"KernelManager": {"transport_encryption": "auto"}})
    options = {"timeout": timeout, "kernel_name": "python3", "record_timing": False, "config": encrypted}
    NotebookClient(notebook, resources={"metadata": {"path": folder}}, **options).execute(
        env=os.environ | {"MINE": "off"}  # not a reader's parts
    )


def is_folded(cell) -> bool:
    """Whether a cell is shown by its title alone: what a reader runs and need not read, such as imports."""
    return cell.cell_type == "code" and cell.source.startswith("# @title ")


def tells_the_answer(cell) -> bool:
    """Whether a cell compares a reader's prediction with what came out: that is not saved, so that they can predict."""
    return cell.cell_type == "code" and "reveal(" in cell.source and EXEMPT in cell.metadata.get("tags", [])


def main_line(notebook) -> list:
    """The cells before the heading "Proofs": what a reader walks through."""
    return list(
        itertools.takewhile(lambda cell: cell.cell_type == "code" or not cell.source.startswith(PROOFS), notebook.cells)
    )


def reading_time(cells: list) -> float:
    """Minutes that cells of a main line take to read, their exercises left out.

    A minute for 130 words or 12 lines of open code, 2 for a view or figure that lives, 0.7 for a still picture, 1.5 for
    a prediction and 0.5 for a line to change; tables and sources are left out.
    """
    read = 0
    for cell in cells:
        text = [line for line in cell.source.splitlines() if line.strip()]
        if "exercise" in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "code":
            lives, still = pictures(cell)
            read += 0 if is_folded(cell) else len(text) / 12
            read += 2 * lives + 0.7 * still + 1.5 * tells_the_answer(cell) + 0.5 * cell.source.count("# change me")
        elif not cell.source.startswith(("### Exercise", "**Sources")):
            read += sum(len(line.split()) for line in text if not line.startswith("|")) / 130
            read += 0.7 * cell.source.count("![")
    return read


def minutes(notebook) -> tuple[int, int]:
    """How long the main line of a notebook takes to read, and with its exercises, rounded to five minutes.

    An exercise takes 12 minutes.
    """
    cells = main_line(notebook)
    read = reading_time(cells)
    exercises = sum("exercise" in cell.metadata.get("tags", []) for cell in cells)
    return round(read), 5 * round((read + 12 * exercises) / 5)


def pictures(cell) -> tuple[int, int]:
    """How many of a code cell's saved outputs live in a running notebook, and how many are still pictures."""
    shown = [output.data for output in cell.outputs if "image/png" in output.get("data", {})]
    lives = sum(INSTEAD in data.get("text/plain", "") for data in shown)
    return lives, len(shown) - lives


def without_progress(cell) -> list:
    """The outputs of a code cell, less the progress bars of one that nbval does not compare: they hold timings."""
    exempt = EXEMPT in cell.metadata.get("tags", [])
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
    write_file(path, nbformat.writes(notebook) + "\n")


def definitions(source: str) -> list[tuple[str, ast.stmt]]:
    """The functions, classes and constants at the top level of a Python source, each with its name."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with an IPython magic defines nothing of ours
        return []
    return [(name, node) for node in body if (name := name_of(node))]


def name_of(node: ast.stmt) -> str | None:
    """The name that a statement gives to a function, a class or an UPPER_CASE constant; None for any other."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()) if (
            name.isupper()
        ):
            return name
    return None


def has_docstring(node: ast.AST) -> bool:
    """Whether a node is a function or a class with a docstring and, since a body must not be empty, more."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(node, kinds) and ast.get_docstring(node) is not None and len(node.body) > 1


def place(node: ast.stmt, lines: list[str]) -> slice:
    """Where a top-level statement stands among the lines of its source, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    rest = lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()
    if node.col_offset or rest[:1] not in (b"", b"#"):
        raise ValueError(f"a statement shares a line with {lines[first - 1]!r}: give each lines of its own")
    return slice(first - 1, node.end_lineno)


def without_docstrings(node: ast.stmt, lines: list[str]) -> list[str]:
    """The lines of a statement, decorators and comments included, docstrings and the blanks after them not."""
    where, skip = place(node, lines), set()
    for docstring in (part.body[0] for part in ast.walk(node) if has_docstring(part)):
        skip.update(range(docstring.lineno - 1, docstring.end_lineno))
        if not lines[docstring.end_lineno].strip():
            skip.add(docstring.end_lineno)
    return [lines[number] for number in range(where.start, where.stop) if number not in skip]


def read_module(module: str) -> str:
    """The source of a module of utils."""
    path = ROOT / "utils" / f"{module}.py"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: correct its name in MODULES, publish/notebooks.py")
    return path.read_text("utf-8")


def finished(path: Path) -> dict[str, list[str]]:
    """The lines of each definition that the utils modules of a notebook hold, by name."""
    sources = [read_module(module) for module in MODULES.get(path.name[:2], {})]
    return {
        name: without_docstrings(node, source.split("\n")) for source in sources for name, node in definitions(source)
    }


def with_homes(source: str, homes: dict[str, list[str]]) -> str:
    """The source of a cell, with the lines of its home in place of each definition that has one."""
    lines = source.split("\n")  # as ast counts them; str.splitlines would end lines at more characters
    for name, node in reversed(definitions(source)):  # from below, so that line numbers above stay right
        if name in homes:
            lines[place(node, lines)] = homes[name]
    return "\n".join(lines)


def sync(path: Path, write: bool = True) -> bool:
    """Replace each definition in a notebook that has a home in its utils modules; return whether any differed."""
    notebook, homes, changed = nbformat.read(path, as_version=4), finished(path), False
    for cell in notebook.cells:
        written_by_readers = "exercise" in cell.metadata.get("tags", [])
        if cell.cell_type == "code" and not written_by_readers:
            source = with_homes(cell.source, homes)
            changed |= source != cell.source
            cell.source = source
    if changed and write:
        save(notebook, path)
    return changed


def main() -> str | None:
    """Run a command on the notebooks named, or on all; return what failed, if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["execute", "sync"])
    parser.add_argument("names", nargs="*", help="beginnings of file names, such as 03")
    parser.add_argument("--check", action="store_true", help="sync: change nothing, fail where something would change")
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
