"""Build microbert.html: microbert.py, editable, with the Python and the weights that run it in the reader's browser."""

import ast
import gzip
import html
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from torch import Tensor

from explorer.explorer import START, fingerprint, make_style, shorten
from explorer.micro import run
from explorer.npm import Package, fetch, read_member
from utils.encoder import TransformerEncoder
from utils.search import embed
from utils.support.checkpoint import embedded_folder
from utils.support.datasets import companies, company_queries
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from views.page import json_for_html

PARTS = Path(__file__).parent
SOURCE = PARTS.parents[1] / "microbert.py"
PAGE = "microbert.html"
ASSETS = "_static/microbert"  # folder of the page's files in the site
PYODIDE = Package(
    "pyodide", "314.0.7", "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
)
FILES = {
    "program": "pyodide.mjs.gzip",
    "machine": "pyodide.asm.mjs.gzip",
    "runtime": "pyodide.asm.wasm.gzip",
    "library": "python_stdlib.zip",
    "model": "model.gzip",
}
TEXTS = ("time flies", "hours go by quickly", "a fly has two wings")
CHARACTERS = 300  # of a text
WORDS = "embeddings.word_embeddings.weight"  # half of all weights
STEPS = {"words": 255, "others": 1023}  # of a row's largest weight: 9 and 11 bits, so that the page fits 35 MB
# What a reader may try: a piece of a line of microbert.py, what to put in its place, what that asks, and texts for it
IDEAS = (
    (
        "math.exp(score - largest)",
        "1.0",
        "Every token now attends to all tokens equally. Is the same text still nearest?",
        TEXTS,
    ),
    ("math.sqrt(size) for key", "1 for key", "The scores are no longer divided, and attention becomes sharper.", TEXTS),
    (
        "map(model.rows, names, (ids, range(len(ids))",
        "map(model.rows, names, (ids, [0] * len(ids)",
        "Every token is at position 0. Who bites whom?",
        ("dog bites man", "man bites dog"),
    ),
)
# The page may fetch its own files only; this also applies to its workers, which are blobs
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src blob: 'wasm-unsafe-eval' 'sha256-{program}'; "
    "worker-src blob:; img-src data:; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
)


def round_rows(name: str, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one scale per row, and the numbers of a matrix divided by it and rounded to integers."""
    steps = STEPS["words" if name == WORDS else "others"]
    scales = np.abs(matrix).max(axis=1, keepdims=True).astype("<f4") / np.float32(steps)
    codes = np.rint(matrix / np.where(scales > 0, scales, 1)).astype("<i2")
    return scales, codes


def rounded(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights as the page restores them."""
    return {
        name: np.multiply(*round_rows(name, tensor)) if tensor.ndim == 2 else tensor.astype(np.float32)
        for name, tensor in tensors.items()
    }


def pack(folder: Path, tensors: Mapping[str, np.ndarray]) -> bytes:
    """Return a checkpoint in one compressed file, which worker.js unpacks.

    Its parts: the size of a head in 4 bytes; the head, JSON with the texts of files and the table of a safetensors
    file in float32; then each tensor of the table. A matrix has a scale for each row, the lower bytes of its numbers,
    and the higher ones, which differ little and thus compress well.
    """
    table, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        start, end = end, end + 4 * tensor.size
        table[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
        if tensor.ndim == 2:
            scales, codes = round_rows(name, tensor)
            pairs = codes.view(np.uint8).reshape(-1, 2)
            parts += [scales.tobytes(), pairs[:, 0].tobytes(), pairs[:, 1].tobytes()]
        else:
            parts.append(tensor.astype("<f4").tobytes())
    files = {name: (folder / name).read_text("utf-8") for name in ("config.json", "vocab.txt")}
    head = json.dumps({"files": files, "table": table}).encode()
    return gzip.compress(b"".join([len(head).to_bytes(4, "little"), head, *parts]), compresslevel=6, mtime=0)


def differences(folder: Path, changed: Path) -> Tensor:
    """Return how much rounding, in the folder `changed`, changes the cosine of each pair of a query and a company."""
    texts = [company.text for company in companies()], [query for query, _ in company_queries()]
    tables = []
    for path in (folder, changed):
        encoder, tokenizer = TransformerEncoder.from_checkpoint(path), WordPieceTokenizer.from_checkpoint(path)
        vectors, queries = (embed(part, encoder, tokenizer) for part in texts)
        tables.append(queries @ vectors.T)
    before, after = tables
    return (before - after).abs()


def first_answer(source: str, folder: Path) -> dict:
    """Run the file on TEXTS as the page does: what it shows until the reader runs it."""

    def ask(function: str, texts: Sequence[str], **others) -> dict:
        inputs = {"source": source, "texts": texts, "folder": str(folder), **others}
        return json.loads(run.answer(function, json.dumps(inputs)))

    each = [ask("vector", [text]) for text in TEXTS]
    end = ask("finish", TEXTS, vectors=[found["value"] for found in each])
    return {"texts": TEXTS, "each": each, "end": end}


def line_to_write(source: str) -> int:
    """Return the line in which `attention` makes attention weights: notebook 03 builds it."""
    (function,) = (node for node in ast.walk(ast.parse(source)) if getattr(node, "name", "") == "attention")
    names = ((node.lineno, ast.unparse(node.targets[0])) for node in ast.walk(function) if isinstance(node, ast.Assign))
    (line,) = (line for line, name in names if name == "weights")
    return line


def lines_of_code(source: str) -> int:
    """Count the lines that are neither empty nor part of a docstring."""
    return len([line for line in re.sub(r'"""[\s\S]*?"""', "", source).splitlines() if line.strip()])


def idea(source: str, old: str, new: str, asks: str, texts: Sequence[str]) -> dict:
    """Return an idea for the page, with the line to change."""
    (line,) = (number for number, line in enumerate(source.splitlines(), 1) if old in line)
    return {"line": line, "old": old, "new": new, "asks": asks, "texts": texts}


def make_files(pyodide: Path, folder: Path, tensors: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    """Return the files that the page fetches; all are compressed, since not every server does that."""
    return {
        FILES["program"]: gzip.compress(
            read_member(pyodide, "pyodide.mjs").partition(b"//# sourceMapping")[0], mtime=0
        ),
        FILES["machine"]: gzip.compress(read_member(pyodide, "pyodide.asm.mjs"), mtime=0),
        FILES["runtime"]: gzip.compress(read_member(pyodide, "pyodide.asm.wasm"), mtime=0),
        FILES["library"]: read_member(pyodide, "python_stdlib.zip"),
        FILES["model"]: pack(folder, tensors),
    }


def make_page(
    source: str,
    files: Mapping[str, bytes],
    lock: dict,
    layers: int,
    changes: Tensor,
    saved: dict,
    pages: Mapping[str, str],
) -> str:
    """Return the page with a saved answer; `pages` maps notebook numbers to pages of the site."""
    read = {path.name: path.read_text("utf-8") for path in PARTS.iterdir() if path.is_file()}
    program, worker = shorten(read["page.js"]), shorten(read["worker.js"])
    style = make_style((PARTS.parent / "base.css").read_text("utf-8"), read["micro.css"])
    data = {
        "source": source,
        "line": line_to_write(source),
        "layers": layers,
        "files": {kind: {"path": f"{ASSETS}/{name}", "size": len(files[name])} for kind, name in FILES.items()},
        "lock": {"info": lock["info"], "packages": {}},  # of Pyodide: no package beyond the standard library
        "runner": read["run.py"],
        "saved": saved,
        "ideas": [idea(source, *each) for each in IDEAS],
    }
    inserted = {
        "policy": POLICY.format(program=fingerprint(program), style=fingerprint(style)),
        "style": style,
        "program": program,
        "worker": worker,
        "data": json_for_html(data),
        "lines": str(lines_of_code(source)),
        "line": str(data["line"]),
        "first": html.escape(TEXTS[0]),
        "second": html.escape(TEXTS[1]),
        "third": html.escape(TEXTS[2]),
        "model": "all-MiniLM-L6-v2",
        "characters": str(CHARACTERS),
        "megabytes": f"{sum(map(len, files.values())) / 1e6:.0f}",
        "difference": f"{float(changes.max()):.1g}",
        "mean": f"{float(changes.mean()):.1g}",
        "pairs": f"{changes.numel():,}",
        "version": PYODIDE.version,
    }
    page = re.sub(r"notebook:(\d\d)", lambda link: pages.get(link[1], START), read["page.html"])
    return re.sub(r"%([a-z]+)%", lambda placeholder: inserted[placeholder[1]], page)


def build(site: Path, cache: Path, pages: Mapping[str, str], folder: Path | None = None) -> None:
    """Write microbert.html and its files into a site; raises the errors of `fetch` if Pyodide is unavailable."""
    pyodide = fetch(PYODIDE, cache)
    folder = folder or embedded_folder()
    tensors = {name: part for name, part in load_file(folder / "model.safetensors").items() if part.dtype == np.float32}
    files = make_files(pyodide, folder, tensors)
    lock = json.loads(read_member(pyodide, "pyodide-lock.json"))
    layers = json.loads((folder / "config.json").read_text("utf-8"))["num_hidden_layers"]
    source = SOURCE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        restored = Path(shutil.copytree(folder, name, dirs_exist_ok=True))  # the weights of the page
        save_file(rounded(tensors), restored / "model.safetensors")
        changes, saved = differences(folder, restored), first_answer(source, restored)
    page = make_page(source, files, lock, layers, changes, saved, pages)
    (site / ASSETS).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(site / ASSETS / name, content)
    write_file(site / PAGE, page)
