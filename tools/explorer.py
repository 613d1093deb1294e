"""Build explorer.html: one sentence through the encoder, its numbers in the page, and the model for any other beside it."""

import base64
import gzip
import html
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from hashlib import sha256, sha512
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from tools.badges import current_slug
from utils import tokenization
from utils.checkpoints import checkpoint_name
from utils.encoder import TransformerEncoder
from utils.inference import onnx_bytes
from utils.saving import write_file, write_folder
from utils.tokenization import WordPieceTokenizer

PARTS = Path(__file__).parent / "web" / "explorer"
ASSETS = "_static/explorer"  # of the page, in the site
SENTENCE = "time flies like an arrow"  # of notebooks/images/encoder.svg
LAYER, HEAD = 0, 2  # shown at first: each token looks at the one before it
MOST_TOKENS, MOST_CHARACTERS = 48, 2000
LARGE = 10_000  # numbers in a matrix from which on it is stored in half the room
OUTPUTS = ("hidden_states", "attended", "queries", "keys", "values", "attentions")
# Nothing is fetched but the page's own files; its worker, a blob, is bound by the same
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{program}'; "
    "worker-src blob:; style-src 'sha256-{style}'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)


class Package(NamedTuple):
    """A package of npm's in one version, with the SHA-512 that its registry publishes."""

    name: str
    version: str
    integrity: str


RUNTIME = Package(
    "onnxruntime-web",
    "1.30.0",
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
)
PROGRAM, WASM = "dist/ort.wasm.bundle.min.mjs", "dist/ort-wasm-simd-threaded.wasm"


class Stations(nn.Module):
    """The encoder with what comes out of each of its parts, `OUTPUTS`, layers first."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor):
        """Three times (B, S) to (L + 1, B, S, H), (L, B, S, H), three times (L, B, A, S, D) and (L, B, A, S, S)."""
        asked = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}
        output = self.encoder(input_ids, attention_mask, token_type_ids, **asked)
        attended, values = [], []
        for layer, states in zip(self.encoder.layers, output.hidden_states, strict=False):  # the last one comes out
            added, _ = layer.attention(states, attention_mask, output_attentions=True)
            attended.append(layer.attention_norm(states + added))
            values.append(layer.attention.project(states)[2])
        lists = (output.hidden_states, attended, output.queries, output.keys, values, output.attentions)
        return tuple(torch.stack(tuple(tensors)) for tensors in lists)


def fetch(package: Package, folder: Path) -> Path:
    """A package as npm's configured registry has it, kept in the folder; it is asked once.

    FileNotFoundError without npm, OSError if npm cannot get the package, ValueError if it is not the published one.
    """
    path = folder / f"{package.name}-{package.version}.tgz"
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", f"{package.name}@{package.version}", "--silent", "--pack-destination", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode or not path.exists():
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise OSError(f"npm cannot get {package.name} {package.version} ({reason[-1] if reason else 'no reason given'})")
    if digest(path.read_bytes()) != package.integrity:
        raise ValueError(f"{path} is not {package.name} {package.version} as published: delete it and try again")
    return path


def digest(content: bytes) -> str:
    """The SHA-512 of a file as npm's registries write it."""
    return base64.b64encode(sha512(content).digest()).decode()


def read_member(tarball: Path, name: str) -> bytes:
    """One file of a package."""
    with tarfile.open(tarball) as archive:
        return archive.extractfile(f"package/{name}").read()


def store_as_float16(model: bytes) -> bytes:
    """The same model with large matrices as float16 in the file, which nodes turn into float32 when it is loaded."""
    found = onnx.load_from_string(model)
    graph, casts = found.graph, []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim == 2 and values.size > LARGE:
            graph.initializer.remove(tensor)
            graph.initializer.append(numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}_16"))
            casts.append(helper.make_node("Cast", [f"{tensor.name}_16"], [tensor.name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(found)
    return found.SerializeToString()


def export(encoder: TransformerEncoder) -> bytes:
    """The encoder for the page: ONNX with the outputs of `Stations`."""
    return store_as_float16(onnx_bytes(Stations(encoder), encoder.config, OUTPUTS))


def saved_sentence(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """The page's first sentence: text, tokens, ids, token types, and its numbers as float32 in base64."""
    batch = tokenizer(SENTENCE)
    with torch.inference_mode():
        outputs = Stations(encoder)(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
    numbers = {
        name: base64.b64encode(tensor.numpy().astype("<f4").tobytes()).decode()
        for name, tensor in zip(OUTPUTS, outputs, strict=True)
    }
    ids = batch["input_ids"][0].tolist()
    tokens = [tokenizer.tokens[token_id] for token_id in ids]
    return {"text": SENTENCE, "tokens": tokens, "ids": ids, "types": batch["token_type_ids"][0].tolist(), "numbers": numbers}


def tokenizer_rules(tokenizer: WordPieceTokenizer) -> dict:
    """What tokenizer.js needs beside the vocabulary, from where Python's tokenizer has it."""
    return {
        "lowercase": tokenizer.lowercase,
        "later": tokenization.LATER_CHARACTERS,
        "earlier": tokenization.EARLIER_CATEGORY,
        "ideographs": tokenization.CJK_RANGES,
        "longest": tokenization.MAX_CHARACTERS_PER_WORD,
    }


def vocabulary(tokenizer: WordPieceTokenizer) -> bytes:
    """The tokens in the order of their ids, a line each."""
    return "\n".join(tokenizer.tokens[number] for number in range(len(tokenizer.tokens))).encode()


def make_files(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, runtime: Path) -> dict[str, bytes]:
    """What the page fetches, by name."""
    return {
        "ort.mjs": read_member(runtime, PROGRAM),
        "ort.wasm.gzip": gzip.compress(read_member(runtime, WASM), mtime=0),
        "encoder.onnx.gzip": gzip.compress(export(encoder), compresslevel=6, mtime=0),
        "vocabulary.txt": vocabulary(tokenizer),
    }


def make_page(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, files: Mapping[str, bytes], pages: Mapping[str, str]) -> str:
    """The page as one file; `pages` says where notebooks' pages are, by number, and the others are on GitHub."""
    names = {"program": "ort.mjs", "runtime": "ort.wasm.gzip", "encoder": "encoder.onnx.gzip", "vocabulary": "vocabulary.txt"}
    config = encoder.config
    data = {
        "sizes": {
            "V": config.vocab_size,
            "H": config.hidden_size,
            "L": config.num_hidden_layers,
            "A": config.num_attention_heads,
            "I": config.intermediate_size,
        },
        "layer": LAYER,
        "head": HEAD,
        "most": min(MOST_TOKENS, config.max_position_embeddings),
        "longest": MOST_CHARACTERS,
        "files": {kind: {"path": f"{ASSETS}/{name}", "size": len(files[name])} for kind, name in names.items()},
        "rules": tokenizer_rules(tokenizer),
        "saved": saved_sentence(encoder, tokenizer),
    }
    read = {path.name: path.read_text("utf-8") for path in PARTS.iterdir()}
    program = "\n".join(read[name] for name in ("tokenizer.js", "model.js", "draw.js", "explorer.js"))
    style = read["explorer.css"]
    inserted = {
        "policy": POLICY.format(program=fingerprint(program), style=fingerprint(style)),
        "style": style,
        "program": program,
        "worker": read["worker.js"],
        "data": json.dumps(data).replace("<", "\\u003c"),
        "model": html.escape(Path(checkpoint_name()).name),
        "runtime": RUNTIME.version,
        "megabytes": f"{sum(map(len, files.values())) / 1e6:.0f}",
    }
    elsewhere = f"https://github.com/{current_slug()}/tree/main/notebooks"
    page = re.sub(r"notebook:(\d\d)", lambda link: pages.get(link[1], elsewhere), read["page.html"])
    return re.sub(r"%([a-z]+)%", lambda place: inserted[place[1]], page)


def fingerprint(text: str) -> str:
    """The hash by which a page's policy knows a script or a style in it."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def build(site: Path, cache: Path, pages: Mapping[str, str]) -> None:
    """Write explorer.html and its files into a site; errors of `fetch` where the runtime is not to be had."""
    runtime = fetch(RUNTIME, cache)
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    files = make_files(encoder, tokenizer, runtime)
    page = make_page(encoder, tokenizer, files, pages)
    write_folder(site / ASSETS, files)
    write_file(site / "explorer.html", page)
