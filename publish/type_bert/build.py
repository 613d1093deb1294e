"""Build type_bert.html, for the site or as one file:

python -m publish.type_bert.build [build/type_bert.html]
"""

import base64
import gzip
import html
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from explorer.explorer import START, fingerprint, make_style
from explorer.npm import Package, fetch, read_member
from publish.badges import current, link_to
from publish.type_bert.checks import first_lines, parts_of, split
from publish.type_bert.gaps import GAPS
from utils.encoder import TransformerEncoder
from utils.search import embed
from utils.support.checkpoint import embedded_folder
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from views import sentence_view
from views.page import json_for_html
from views.scripts import join, shorten

PARTS = Path(__file__).parent
ROOT = PARTS.parents[1]
PAGE = "type_bert.html"
ASSETS = "_static/type_bert"  # folder of the page's files in the site
VIEW = "view.html"  # a page of its own with its own policy, shown in frames
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
PYTHON = ("exercises/mistakes.py", *(f"publish/type_bert/{name}.py" for name in ("gaps", "checks", "runner")))
TEXTS = ("time flies", "hours go by quickly", "a fly has two wings")
SENTENCE, WORDS = "The animal didn't cross the street because it was too {}.", ("tired", "wide")
LAYER, HEAD = 3, 1
TABLE = "embeddings.word_embeddings.weight"  # half of all weights
STEPS = {"words": 255, "others": 1023}  # of a row's largest weight: 9 and 11 bits, so that the model takes 29 MB
# On the site, the page and its workers, which are blobs, may fetch and frame the page's own files only. The one file
# fetches nothing; its workers import data: addresses, and its view, which inherits this policy, has styles of its own.
POLICIES = {
    "site": "connect-src 'self'; frame-src 'self'; script-src blob: 'wasm-unsafe-eval' {scripts}; style-src {style}",
    "file": "script-src blob: data: 'wasm-unsafe-eval' {scripts}; style-src 'unsafe-inline'",
}
ROUNDED = (
    "For step 4, the weight matrices are rounded to 9 or 11 bits, and JavaScript multiplies by them. Python does "
    "everything else."
)
KINDS = {  # what the page says of itself; the one file does not contain the whole model, and has no step 4
    "site": {"runs": "the real model runs with it", "whole": "", "last": "5", "where": "", "rounded": ROUNDED},
    "file": {
        "runs": "one head of the real model runs with it",
        "whole": " hidden",
        "last": "4",
        "where": ", on this computer",
        "rounded": "",
    },
}


def round_rows(name: str, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one scale per row, and the numbers of a matrix divided by it and rounded to integers."""
    steps = STEPS["words" if name == TABLE else "others"]
    scales = np.abs(matrix).max(axis=1, keepdims=True).astype("<f4") / np.float32(steps)
    codes = np.rint(matrix / np.where(scales > 0, scales, 1)).astype("<i2")
    return scales, codes


def pack_model(folder: Path) -> bytes:
    """Return a checkpoint in one compressed file, which worker.js unpacks.

    Its parts: the size of a head in 4 bytes; the head, JSON with the texts of files and the table of a safetensors
    file in float32; then each tensor of the table. A matrix has a scale for each row, the lower bytes of its numbers,
    and the higher ones, which differ little and thus compress well.
    """
    table, parts, end = {}, [], 0
    for name, tensor in load_file(folder / "model.safetensors").items():
        if tensor.dtype != np.float32:
            continue
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


def python_files(pyodide: Path) -> dict[str, bytes]:
    """Return the files that start Python; all are compressed, since not every server does that."""
    program = read_member(pyodide, "pyodide.mjs").partition(b"//# sourceMapping")[0]
    return {
        "program": gzip.compress(program, mtime=0),
        "machine": gzip.compress(read_member(pyodide, "pyodide.asm.mjs"), mtime=0),
        "runtime": gzip.compress(read_member(pyodide, "pyodide.asm.wasm"), mtime=0),
        "library": read_member(pyodide, "python_stdlib.zip"),
    }


def pack(numbers: Tensor) -> tuple[int, str]:
    """Return the length of a row, and the numbers in float32 and base64."""
    return numbers.shape[-1], base64.b64encode(numbers.detach().contiguous().numpy().astype("<f4").tobytes()).decode()


def numbers_of_head(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """Return what one head reads in both sentences, its weights, the official attention weights, and the tokens."""
    size = encoder.config.hidden_size // encoder.config.num_attention_heads
    rows, attention = slice(HEAD * size, HEAD * size + size), encoder.layers[LAYER].attention
    head, official, tokens = {}, [], []
    for part in ("query", "key"):
        layer = getattr(attention, part)
        head |= {f"{part}.weight": pack(layer.weight[rows]), f"{part}.bias": pack(layer.bias[rows])}
    for word in WORDS:
        batch = tokenizer(SENTENCE.format(word))
        with torch.inference_mode():
            output = encoder(**batch, output_hidden_states=True, output_attentions=True)
        head[word] = pack(output.hidden_states[LAYER][0])
        official.append([[round(w, 8) for w in row] for row in output.attentions[LAYER][0, HEAD].tolist()])
        tokens.append([tokenizer.tokens[token_id] for token_id in batch["input_ids"][0].tolist()])
    return {"head": head, "official": official, "tokens": tokens}


def draw_view(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> str:
    """Return the page of the sentence view, for both sentences and the layer of the head."""
    first, second = map(SENTENCE.format, WORDS)
    options = {"token": "it", "layer": LAYER, "head": HEAD, "include_layers": [LAYER]}
    return sentence_view(encoder, tokenizer, first, other=[second], **options).page


def make_page(kind: str, data: Mapping, inserted: Mapping, pages: Mapping[str, str], scripts: list[str]) -> str:
    """Return the page of a kind, "site" or "file"; `scripts` are those of a view that inherits its policy."""
    read = {path.name: path.read_text("utf-8") for path in PARTS.iterdir() if path.is_file()}
    program, style = (
        join(PARTS / "page.js"),
        make_style((ROOT / "explorer/base.css").read_text("utf-8"), read["page.css"]),
    )
    hashes = " ".join(f"'sha256-{fingerprint(text)}'" for text in (program, *scripts))
    policy = POLICIES[kind].format(scripts=hashes, style=f"'sha256-{fingerprint(style)}'")
    inserted = {
        "policy": f"default-src 'none'; {policy}; worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'",
        **KINDS[kind],
        "style": style,
        "program": program,
        "worker": shorten(read["worker.js"]),
        "data": json_for_html(data),
        "first": html.escape(TEXTS[0]),
        "second": html.escape(TEXTS[1]),
        "version": PYODIDE.version,
        "name": "all-MiniLM-L6-v2",
        **inserted,
    }

    def link(found: re.Match) -> str:
        return f'<a href="{pages[found[1]]}">{found[2]}</a>' if pages.get(found[1]) else found[2]

    page = re.sub(r'<a href="page:(\w+)">(.*?)</a>', link, read["page.html"])
    return re.sub(r"%([a-z]+)%", lambda placeholder: inserted[placeholder[1]], page)


def make_data(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, pyodide: Path) -> dict:
    """Return the data of the page's program."""
    source = (ROOT / "microbert.py").read_text("utf-8")
    file = split(source)
    parts = {gap: (*parts_of(file, gap), first_lines(file, gap)) for gap in GAPS}
    first, *others = embed(list(TEXTS), encoder, tokenizer)
    return numbers_of_head(encoder, tokenizer) | {
        "source": source,
        "parts": {gap: dict(zip(("above", "ours", "first"), each, strict=True)) for gap, each in parts.items()},
        "python": {f"/home/pyodide/{name}": (ROOT / name).read_text("utf-8") for name in PYTHON},
        "lock": {"info": json.loads(read_member(pyodide, "pyodide-lock.json"))["info"], "packages": {}},
        "texts": TEXTS,
        "cosines": [round(float(first @ other), 4) for other in others],
    }


def build(site: Path, cache: Path, pages: Mapping[str, str], folder: Path | None = None) -> None:
    """Write type_bert.html and its files into a site; raises the errors of `fetch` if Pyodide is unavailable.

    `pages` maps the numbers of notebooks, and "evening", to pages of the site.
    """
    pyodide, folder = fetch(PYODIDE, cache), folder or embedded_folder()
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    files = python_files(pyodide) | {"model": pack_model(folder)}
    data = make_data(encoder, tokenizer, pyodide)
    data |= {"view": f"{ASSETS}/{VIEW}", "files": {name: f"{ASSETS}/{file}" for name, file in FILES.items()}}
    note = f"The model, {len(files['model']) / 1e6:.0f} MB, is loading."
    page = make_page("site", data, {"model": note, "files": ""}, {"index": START, **pages}, [])
    (site / ASSETS).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(site / ASSETS / FILES[name], content)
    write_file(site / ASSETS / VIEW, draw_view(encoder, tokenizer))
    write_file(site / PAGE, page)


def build_file(path: Path, cache: Path) -> None:
    """Write the page as one file, which opens from a folder: Python is inside, the whole model is not."""
    pyodide = fetch(PYODIDE, cache)
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    view = draw_view(encoder, tokenizer)
    data = make_data(encoder, tokenizer, pyodide) | {"view": view, "files": None}
    inside = (
        f'<script type="text/plain" id="file-{name}">{base64.b64encode(content).decode()}</script>'
        for name, content in python_files(pyodide).items()
    )
    names = {"index": "README.md", "evening": "notebooks/evening.ipynb", "03": "notebooks/03_self_attention.ipynb"}
    pages = {name: link_to(target, current()) for name, target in names.items()}
    scripts = re.findall(r"<script>(.*?)</script>", view, re.DOTALL)
    inserted = {"model": "", "files": "\n".join(inside)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, make_page("file", data, inserted, pages, scripts))


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / PAGE)
    try:
        build_file(target, ROOT / "build" / "npm")
    except (OSError, ValueError) as error:
        sys.exit(f"{target.name} cannot be written: {error}")
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, opens from a folder")
