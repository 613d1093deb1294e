"""Build type_bert.html, for the site or as one file:

python -m publish.type_bert.build [build/type_bert.html]
"""

import base64
import copy
import gzip
import html
import json
import re
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from exercises.diagnosis.broken import mark
from exercises.diagnosis.bugs import BUGS, ENCODER_BUGS
from exercises.diagnosis.matching import CLEAR, EXACT, NOISE
from exercises.diagnosis.probe import probe, weight_sums
from exercises.diagnosis.reference import Reference, default_reference
from explorer.explorer import START, fingerprint, make_style
from explorer.npm import Package, fetch, read_member
from publish.badges import Address, current, link_to
from publish.type_bert.checks import first_lines, parts_of, split
from publish.type_bert.gaps import GAPS
from utils.encoder import TransformerEncoder
from utils.search import embed
from utils.support.checkpoint import DEFAULT_CHECKPOINT, embedded_folder
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from views import sentence_view
from views.page import json_for_html
from views.scripts import join, shorten

PARTS = Path(__file__).parent
ROOT = PARTS.parents[1]
PAGE = "type_bert.html"
FILE = ROOT / "build" / PAGE  # the page as one file
ASSETS = "_static/type_bert"  # folder of the page's files in the site
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
OWN = "My dog chased the squirrel until it climbed a tree."
TEXTS = ("time flies", "hours go by quickly", "a fly has two wings")
SENTENCE, WORDS = "The animal didn't cross the street because it was too {}.", ("tired", "narrow")
LAYER, HEAD = 3, 1
TABLE = "embeddings.word_embeddings.weight"  # half of all weights
PROJECTIONS = 8  # numbers that are kept of a vector
STEPS = {"words": 255, "others": 1023}  # of a row's largest weight: 9 and 11 bits, so that the model takes 29 MB
# The page and its workers, which are blobs, may fetch the page's own files only. The workers import data: addresses,
# and the views, which inherit this policy, have styles of their own.
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src blob: data: 'wasm-unsafe-eval' {scripts}; "
    "style-src 'unsafe-inline'; worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'"
)
TITLE = "Anatomy of a Transformer Encoder"
EVENING = "write two parts of a running BERT with PyTorch, in 90 minutes"
ENDS = {  # whether the notebooks have an address
    True: f'Next, spend an evening: <a href="page:evening">{EVENING}</a>. Or <a href="page:03">open notebook 03</a>, '
    f'which explains this line. Both belong to <a href="page:index">{TITLE}</a>, 16 notebooks that build BERT.',
    False: f"This page belongs to {TITLE}, 16 notebooks that build BERT. Next, spend an evening: in the folder of that "
    f"project, run <code>make lab</code> and open <code>notebooks/evening.ipynb</code>, where you {EVENING}. Or open "
    "<code>notebooks/03_self_attention.ipynb</code>, which explains this line.",
}
LICENCE = "safetensors", "licenses/LICENSE"  # an installed package under the licence of the weights, and its file


def round_rows(matrix: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one scale per row, and the numbers of a matrix divided by it and rounded to integers."""
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
            scales, codes = round_rows(tensor, STEPS["words" if name == TABLE else "others"])
            pairs = codes.view(np.uint8).reshape(-1, 2)
            parts += [scales.tobytes(), pairs[:, 0].tobytes(), pairs[:, 1].tobytes()]
        else:
            parts.append(tensor.astype("<f4").tobytes())
    files = {name: (folder / name).read_text("utf-8") for name in ("config.json", "vocab.txt")}
    head = json.dumps({"files": files, "table": table}).encode()
    return gzip.compress(b"".join([len(head).to_bytes(4, "little"), head, *parts]), compresslevel=6, mtime=0)


def measure_rounding(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict[str, str]:
    """Return how far the rounded model's attention weights are from the model's: the largest distance and the mean.

    The texts are those of the page.
    """
    rounded = copy.deepcopy(encoder)
    for name, matrix in rounded.named_parameters():
        if matrix.ndim == 2:
            scales, codes = round_rows(matrix.detach().numpy(), STEPS["words" if "word" in name else "others"])
            matrix.data = torch.from_numpy(scales * codes)
    apart, texts = [], [*map(SENTENCE.format, WORDS), OWN, *TEXTS]
    for text in texts:
        with torch.inference_mode():
            both = [model(**tokenizer(text), output_attentions=True).attentions for model in (encoder, rounded)]
        apart += [(one - other).abs().flatten() for one, other in zip(*both, strict=True)]
    distances = torch.cat(apart)
    return {"most": f"{distances.max():.3f}", "mean": f"{distances.mean():.4f}", "texts": str(len(texts))}


def packed_model(cache: Path, encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> tuple[bytes, dict]:
    """Return the packed checkpoint and how far it is from the model, kept in the cache while nothing changes them."""
    folder = embedded_folder()
    made_from = Path(__file__).read_bytes() + (folder / "model.safetensors").read_bytes()
    model, distance = (cache / f"model-{sha256(made_from).hexdigest()[:16]}.{kind}" for kind in ("gzip", "json"))
    if not distance.exists():
        write_file(model, pack_model(folder))
        write_file(distance, json.dumps(measure_rounding(encoder, tokenizer)))
    return model.read_bytes(), json.loads(distance.read_text("utf-8"))


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


def numbers_of_bugs(reference: Reference) -> dict:
    """Return what diagnosis.js compares a file with: projections of the last vectors, without and with each bug."""
    H = reference.right.size(-1)
    directions = torch.randn(PROJECTIONS, H, generator=torch.Generator().manual_seed(0))
    states = [mark(reference.right.shape), reference.right, *map(reference.last, ENCODER_BUGS)]
    kept = [(each[reference.real] @ directions.T).flatten() for each in states]
    return {
        "probe": probe(reference.encoder, reference.tokenizer),
        "sums": weight_sums(reference.encoder),
        "shape": [*reference.right.shape],
        "real": reference.real.flatten().nonzero().flatten().tolist(),
        "directions": pack(directions),
        "kept": pack(torch.stack(kept)),
        "says": ["Right.", *(f"{BUGS[name].sentence} See exercise {BUGS[name].exercise}." for name in ENCODER_BUGS)],
        "limits": {"noise": NOISE["float32"], "clear": CLEAR["float32"], "exact": EXACT},
    }


def draw_view(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> str:
    """Return the page of the sentence view, for both sentences and the layer of the head."""
    first, second = map(SENTENCE.format, WORDS)
    options = {"token": "it", "layer": LAYER, "head": HEAD, "include_layers": [LAYER]}
    return sentence_view(encoder, tokenizer, first, other=[second], **options).page


def make_page(data: Mapping, pages: Mapping[str, str | None], inserted: Mapping, view: str = "") -> str:
    """Return the page; `pages` are the addresses of the series, evening and 03, or None, and `view` runs in frames."""
    read = {path.name: path.read_text("utf-8") for path in PARTS.iterdir() if path.is_file()}
    program = join(PARTS / "page.js")
    style = make_style((ROOT / "explorer/base.css").read_text("utf-8"), read["page.css"])
    scripts = [program, *re.findall(r"<script>(.*?)</script>", view, re.DOTALL)]
    package, licence = LICENCE
    inserted = {
        "policy": POLICY.format(scripts=" ".join(f"'sha256-{fingerprint(text)}'" for text in scripts)),
        "style": style,
        "program": program,
        "worker": shorten(read["worker.js"]),
        "data": json_for_html({**data, "view": view}),
        **{name: html.escape(text) for name, text in zip(("first", "second", "third"), TEXTS, strict=True)},
        "own": html.escape(OWN),
        "licence": html.escape(distribution(package).read_text(licence)),
        "version": PYODIDE.version,
        "name": "all-MiniLM-L6-v2",
        "bugs": str(len(ENCODER_BUGS)),
        **inserted,
    }

    def link(found: re.Match) -> str:
        return f'<a href="{pages[found[1]]}">{found[2]}</a>' if pages[found[1]] else found[2]

    page = read["page.html"].replace("%end%", ENDS[bool(pages["evening"])])
    page = re.sub(r'<a href="page:(\w+)">(.*?)</a>', link, page)
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
        "bugs": numbers_of_bugs(default_reference(DEFAULT_CHECKPOINT)),
        "texts": TEXTS,
        "cosines": [round(float(first @ other), 4) for other in others],
    }


def write_page(target: Path, cache: Path, pages: Mapping[str, str | None], fetched: str | None = None) -> None:
    """Write the page: one file or, with a folder of files that are `fetched`, a page that fetches the files of Python.

    `pages` maps "index", "evening" and "03" to their addresses, or to None. Raises the errors of `fetch` if Pyodide is
    unavailable.
    """
    pyodide = fetch(PYODIDE, cache)
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    packed, distance = packed_model(cache, encoder, tokenizer)
    files, data = python_files(pyodide) | {"model": packed}, make_data(encoder, tokenizer, pyodide)
    inserted = distance | {"files": "", "where": ""}
    target.parent.mkdir(parents=True, exist_ok=True)
    if fetched:
        folder = target.parent / fetched
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_file(folder / FILES[name], content)
        data["files"] = {name: f"{fetched}/{file}" for name, file in FILES.items()}
        inserted["model"] = f"The model, {len(files['model']) / 1e6:.0f} MB, is loading."
    else:
        inside = (
            f'<script type="text/plain" id="file-{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in files.items()
        )
        inserted |= {"files": "\n".join(inside), "where": ", on this computer", "model": "The model is unpacked."}
    write_file(target, make_page(data, pages, inserted, draw_view(encoder, tokenizer)))


def build(site: Path, cache: Path, pages: Mapping[str, str]) -> None:
    """Write type_bert.html and its files into a site; `pages` maps the numbers of notebooks to pages of the site."""
    write_page(site / PAGE, cache, {"index": START, **pages}, ASSETS)


def addresses(address: Address | None) -> dict[str, str | None]:
    """Return where a reader of the one file finds the series, the evening and 03: on GitHub, if it is there."""
    names = {"index": "README.md", "evening": "notebooks/evening.ipynb", "03": "notebooks/03_self_attention.ipynb"}
    return {name: link_to(path, address) for name, path in names.items()}


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else FILE)
    try:
        write_page(target, ROOT / "build" / "npm", addresses(current()))
    except (OSError, ValueError) as error:
        sys.exit(f"{target.name} cannot be written: {error}")
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB, opens from a folder")
