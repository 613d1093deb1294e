"""Build explorer.html: the encoder's numbers for one sentence, and the model for any other sentence next to it."""

import base64
import gzip
import html
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from explorer.npm import Package, fetch, read_member
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import checkpoint_name
from utils.support.colours import fill_in
from utils.support.files import write_file
from utils.support.onnx import onnx_bytes
from utils.tokenization import WordPieceTokenizer
from views.figures import pack, splitting_rules, vocabulary_lines
from views.page import json_for_html
from views.scripts import join, shorten
from views.sentence import sentence_view

PARTS = Path(__file__).parent
ASSETS = "_static/explorer"  # folder of the page's files in the site
START = "index.html"  # linked if the site has no page for a notebook
FILES = {
    "program": "ort.mjs",
    "runtime": "ort.wasm.gzip",
    "encoder": "encoder.onnx.gzip",
    "vocabulary": "vocabulary.txt",
}
PICTURE = "sentence.html"  # a page of its own with its own policy, shown in a frame
RUNTIME = Package(
    "onnxruntime-web",
    "1.30.0",
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
)
SENTENCE = "time flies like an arrow"  # of exercises/encoder.svg
EXAMPLES = (  # sentences from the series to start with
    ("fruit flies like a banana", ""),
    ("the bark of a palm tree is very rough", ""),
    ("I called Ian.", "I got his answering machine."),
)
# Drawn at the top of the page: a sentence whose last word can be exchanged, and what to follow
OPENING = {
    "text": "The animal didn't cross the street because it was too {}.",
    "words": ("tired", "hungry", "wide", "narrow"),
    "follow": {"token": "it", "layer": 3, "head": 1},
}
SHOWN = {"layer": 2, "head": 11}  # initially: "flies" looks at "time", and a little at [CLS]
LIMITS = {"tokens": 48, "characters": 2000}  # of a typed text
LARGE = 10_000  # numbers in the smallest matrix that is stored in float16
OUTPUTS = ("hidden_states", "attended", "queries", "keys", "values", "attentions", "embedded")
IN_FLOAT16 = "embedded"  # output of the saved sentence that is stored as float16, like the table of words in the model
SIZES = {
    "V": "vocab_size",
    "H": "hidden_size",
    "L": "num_hidden_layers",
    "A": "num_attention_heads",
    "I": "intermediate_size",
}
# The page may fetch and frame its own files only; this also applies to its worker, a blob
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{program}'; "
    "worker-src blob:; frame-src 'self'; img-src data:; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
)


class EncoderParts(nn.Module):
    """The encoder with the outputs of all its parts, `OUTPUTS`, layers first."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor):
        """Map three inputs (B, S) to (L + 1, B, S, H), (L, B, S, H), three times (L, B, A, S, D), (L, B, A, S, S).

        The last output is (2, B, S, H), the word and position rows, which together with the token-type row are summed
        for the embedding.
        """
        options = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}
        output = self.encoder(input_ids, attention_mask, token_type_ids, **options)
        attended, values = [], []
        for layer, states in zip(self.encoder.layers, output.hidden_states[:-1], strict=True):
            added, _ = layer.attention(states, attention_mask, output_attentions=True)
            attended.append(layer.attention_norm(states + added))
            values.append(layer.attention.project(states)[2])
        embeddings = self.encoder.embeddings
        words = embeddings.word_embeddings(input_ids)
        positions = embeddings.position_embeddings.weight[: input_ids.size(1)].expand_as(words)
        lists = (output.hidden_states, attended, output.queries, output.keys, values, output.attentions)
        lists += ((words, positions),)
        return tuple(torch.stack(tuple(tensors)) for tensors in lists)


def store_in_float16(graph: onnx.GraphProto) -> None:
    """Store the large float32 matrices of a graph in float16; nodes cast them to float32 under their names."""
    casts = []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim == 2 and values.size >= LARGE:
            half = numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}_16")
            graph.initializer.remove(tensor)
            graph.initializer.append(half)
            casts.append(helper.make_node("Cast", [half.name], [tensor.name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]  # restored before the nodes that use them
    del graph.node[:]
    graph.node.extend(nodes)


def export(encoder: TransformerEncoder) -> bytes:
    """Export the encoder to ONNX for the page, with the outputs of `EncoderParts` and float16 matrices."""
    model = onnx.load_from_string(onnx_bytes(EncoderParts(encoder), encoder.config, OUTPUTS))
    store_in_float16(model.graph)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def saved_sentence(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """Return the page's first sentence: texts, tokens, ids, token types, and all outputs, packed."""
    batch = tokenizer(SENTENCE)
    ids, types = batch["input_ids"], batch["token_type_ids"]
    with torch.inference_mode():
        outputs = EncoderParts(encoder)(ids, batch["attention_mask"], types)
    tensors = dict(zip(OUTPUTS, outputs, strict=True))
    half = {IN_FLOAT16: pack(tensors.pop(IN_FLOAT16), "<f2")}
    numbers = {name: pack(tensor) for name, tensor in tensors.items()}
    tokens = [tokenizer.tokens[token_id] for token_id in ids[0].tolist()]
    lists = {"tokens": tokens, "ids": ids[0].tolist(), "types": types[0].tolist()}
    return {"texts": [SENTENCE, ""], "numbers": numbers, "half": half} | lists


def draw_opening(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> str:
    """Return the page of the picture at the top: a sentence view that the reader can change."""
    first, *others = (OPENING["text"].format(word) for word in OPENING["words"])
    layer = min(OPENING["follow"]["layer"], encoder.config.num_hidden_layers - 1)
    return sentence_view(encoder, tokenizer, first, other=others, **OPENING["follow"] | {"layer": layer}).page


def make_files(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, runtime: Path) -> dict[str, bytes]:
    """Return the files that the page fetches; model and runtime are compressed, since not every server does that."""
    wasm = read_member(runtime, "dist/ort-wasm-simd-threaded.wasm")
    return {
        FILES["program"]: read_member(runtime, "dist/ort.wasm.bundle.min.mjs"),
        FILES["runtime"]: gzip.compress(wasm, mtime=0),
        FILES["encoder"]: gzip.compress(export(encoder), compresslevel=6, mtime=0),
        FILES["vocabulary"]: vocabulary_lines(tokenizer.vocab).encode(),
    }


def make_data(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, files: Mapping[str, bytes]) -> str:
    """Return the data of the page's program as JSON that is safe inside a script tag."""
    data = {
        "sizes": {letter: getattr(encoder.config, field) for letter, field in SIZES.items()},
        "shown": SHOWN,
        "examples": EXAMPLES,
        "limits": LIMITS,
        "files": {kind: {"path": f"{ASSETS}/{name}", "size": len(files[name])} for kind, name in FILES.items()},
        "rules": splitting_rules(tokenizer.lowercase),
        "saved": saved_sentence(encoder, tokenizer),
        "types": pack(encoder.embeddings.token_type_embeddings.weight.detach(), "<f2"),
    }
    return json_for_html(data)


def make_page(data: str, size: int, pages: Mapping[str, str]) -> str:
    """Return the page; `size` is the total size of the files it fetches, `pages` maps notebook numbers to pages."""
    read = {path.name: path.read_text("utf-8") for path in PARTS.glob("*.*") if path.suffix != ".py"}
    program, worker = join(PARTS / "explorer.js"), shorten(read["worker.js"])
    style = make_style(read["base.css"], read["explorer.css"])
    inserted = {
        "policy": POLICY.format(program=fingerprint(program), style=fingerprint(style)),
        "style": style,
        "program": program,
        "worker": worker,
        "data": data,
        "picture": f"{ASSETS}/{PICTURE}",
        "model": html.escape(Path(checkpoint_name()).name),
        "runtime": RUNTIME.version,
        "megabytes": f"{size / 1e6:.0f}",
    }
    page = re.sub(r"notebook:(\d\d)", lambda link: pages.get(link[1], START), read["page.html"])
    return re.sub(r"%([a-z]+)%", lambda placeholder: inserted[placeholder[1]], page)


def make_style(*sheets: str) -> str:
    """Return style sheets as one, without comments and indentation, with the table of colours before them."""
    return fill_in(re.sub(r" */\*.*?\*/|^ +", "", "".join(sheets), flags=re.MULTILINE))


def fingerprint(text: str) -> str:
    """Return the hash by which the page's policy allows a script or style."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def build(site: Path, cache: Path, pages: Mapping[str, str]) -> None:
    """Write explorer.html and its files into a site; raises the errors of `fetch` if the runtime is unavailable."""
    runtime = fetch(RUNTIME, cache)
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    files = make_files(encoder, tokenizer, runtime)
    page = make_page(make_data(encoder, tokenizer, files), sum(map(len, files.values())), pages)
    (site / ASSETS).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(site / ASSETS / name, content)
    write_file(site / ASSETS / PICTURE, draw_opening(encoder, tokenizer))
    write_file(site / "explorer.html", page)
