"""Build explorer.html: one sentence through the encoder, with its numbers, and the model for any other beside it."""

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
from utils.eight_bits import replace_matrices
from utils.encoder import TransformerEncoder
from utils.search import shares_of_cosine
from utils.support.checkpoint import checkpoint_name
from utils.support.colours import css, variables
from utils.support.files import write_file
from utils.support.onnx import onnx_bytes
from utils.tokenization import WordPieceTokenizer
from views.figures import pack, splitting_rules, vocabulary_lines
from views.page import json_for_html, own_text

PARTS = Path(__file__).parent
SHARED = ("tokenizer.js", "shares.js")  # with figures
PROGRAM = (
    *(
        "model.js",
        "draw.js",
        "score.js",
        "scale.js",
        "sums.js",
        "near.js",
        "ending.js",
        "flow.js",
        "pair.js",
        "guess.js",
    ),
    *("tour.js", "address.js", "explorer.js"),
)
ASSETS = "_static/explorer"  # of the page, in the site
START = "index.html"  # of the site, where it has no page for a notebook
FILES = {
    "program": "ort.mjs",
    "runtime": "ort.wasm.gzip",
    "encoder": "encoder.onnx.gzip",
    "vocabulary": "vocabulary.txt",
}
RUNTIME = Package(
    "onnxruntime-web",
    "1.30.0",
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
)
SENTENCE = "time flies like an arrow"  # of exercises/encoder.svg
EXAMPLES = (  # for a reader to start with, of the series
    ("fruit flies like a banana", ""),
    ("the bark of a palm tree is very rough", ""),
    ("I called Ian.", "I got his answering machine."),
)
# To compare with SENTENCE at its end: one that means the same in other words, and the control, which shares its words
ENDING = ("the years go by fast", "fruit flies like a banana")
# A sentence to keep, the next and the control, with what to follow: three questions of notebook 07
PAIRS = (
    {
        "change": "tired or wide? Control: hungry",
        "kept": "the animal didn't cross the street because it was too tired",
        "next": "the animal didn't cross the street because it was too wide",
        "control": "the animal didn't cross the street because it was too hungry",
        "follow": {"word": "it", "key": "animal", "layer": 3, "head": 1},
    },
    {
        "change": "bark of an oak or of a dog? Control: pine",
        "kept": "the bark of the oak is very rough",
        "next": "the bark of the dog is very rough",
        "control": "the bark of the pine is very rough",
        "follow": {"word": "bark", "layer": 0, "head": 1},
    },
    {
        "change": "I see or I sees? Control: saw",
        "kept": "I see a man",
        "next": "I sees a man",
        "control": "I saw a man",
        "follow": {"word": "sees", "key": "i", "layer": 0, "head": 5},
    },
)
SHOWN = {"layer": 0, "head": 2}  # at first: each token looks at the one before it
TOUR = {"layer": 2, "head": 11}  # "flies" looks at "time", and a little at [CLS]
LIMITS = {"tokens": 48, "characters": 2000}  # of a reader's text
OUTPUTS = ("hidden_states", "attended", "queries", "keys", "values", "attentions", "lengths", "active", "embedded")
IN_HALF = "embedded"  # of the saved sentence, in half the room, as the page's model holds the table of words
SIZES = {
    "V": "vocab_size",
    "H": "hidden_size",
    "L": "num_hidden_layers",
    "A": "num_attention_heads",
    "I": "intermediate_size",
}
# Nothing is fetched but the page's own files; its worker, a blob, is bound by the same
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{program}'; "
    "worker-src blob:; img-src data:; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
)


class Stations(nn.Module):
    """The encoder with what comes out of each of its parts, `OUTPUTS`, layers first."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor):
        """Three times (B, S) to (L + 1, B, S, H), (L, B, S, H), three times (L, B, A, S, D), (L, B, A, S, S).

        And (L, 4, B, S), the length of each token's vector, of what attention adds to it, of the vector between
        and of what the feed-forward network adds; (L, B, S), the share of its units above zero; and (2, B, S, H), the
        rows for word and position that, with that of the token type, add up to what becomes the embedding.
        """
        asked = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}
        output = self.encoder(input_ids, attention_mask, token_type_ids, **asked)
        attended, values, lengths, active = [], [], [], []
        for layer, states in zip(self.encoder.layers, output.hidden_states[:-1], strict=True):
            added, _ = layer.attention(states, attention_mask, output_attentions=True)
            between = layer.attention_norm(states + added)
            units = layer.feed_forward.intermediate(between)
            vectors = (states, added, between, layer.feed_forward(between))
            lengths.append(torch.stack([vector.norm(dim=-1) for vector in vectors]))
            active.append((units > 0).float().mean(dim=-1))
            attended.append(between)
            values.append(layer.attention.project(states)[2])
        embeddings = self.encoder.embeddings
        words = embeddings.word_embeddings(input_ids)
        positions = embeddings.position_embeddings.weight[: input_ids.size(1)].expand_as(words)
        lists = (output.hidden_states, attended, output.queries, output.keys, values, output.attentions)
        lists += (lengths, active, (words, positions))
        return tuple(torch.stack(tuple(tensors)) for tensors in lists)


def in_float16(name: str, values: np.ndarray) -> tuple[list, list]:
    """A matrix in half the room: the tensor that holds it and the node that makes float32 of it, under its name."""
    half = numpy_helper.from_array(values.astype(np.float16), f"{name}_16")
    return [half], [helper.make_node("Cast", [half.name], [name], to=TensorProto.FLOAT)]


def export(encoder: TransformerEncoder) -> bytes:
    """The encoder for the page: ONNX with the outputs of `Stations`, its large matrices in half the room."""
    model = onnx.load_from_string(onnx_bytes(Stations(encoder), encoder.config, OUTPUTS))
    replace_matrices(model.graph, in_float16)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def saved_sentence(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """The page's first sentence: texts, tokens, ids, token types, and its numbers, packed."""
    batch = tokenizer(SENTENCE)
    ids, types = batch["input_ids"], batch["token_type_ids"]
    with torch.inference_mode():
        outputs = Stations(encoder)(ids, batch["attention_mask"], types)
    tensors = dict(zip(OUTPUTS, outputs, strict=True))
    half = {IN_HALF: pack(tensors.pop(IN_HALF), "<f2")}
    numbers = {name: pack(tensor) for name, tensor in tensors.items()}
    tokens = [tokenizer.tokens[token_id] for token_id in ids[0].tolist()]
    lists = {"tokens": tokens, "ids": ids[0].tolist(), "types": types[0].tolist()}
    return {"texts": [SENTENCE, ""], "numbers": numbers, "half": half} | lists


def compared(text: str, encoder: TransformerEncoder, tokenizer: WordPieceTokenizer) -> dict:
    """A text that SENTENCE is compared with at the page's end: its tokens, its vector, and the shares of its cosine."""
    batches = tokenizer(SENTENCE), tokenizer(text)
    with torch.inference_mode():
        states, others = (encoder(**batch).last_hidden_state[0] for batch in batches)
    tokens = [tokenizer.tokens[token_id] for token_id in batches[1]["input_ids"][0].tolist()]
    numbers = {"vector": others.mean(dim=0), "shares": shares_of_cosine(states, others)}
    return {"text": text, "tokens": tokens} | {name: pack(tensor) for name, tensor in numbers.items()}


def make_files(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, runtime: Path) -> dict[str, bytes]:
    """What the page fetches, by name: the model and its runtime, packed, since not every server packs."""
    wasm = read_member(runtime, "dist/ort-wasm-simd-threaded.wasm")
    return {
        FILES["program"]: read_member(runtime, "dist/ort.wasm.bundle.min.mjs"),
        FILES["runtime"]: gzip.compress(wasm, mtime=0),
        FILES["encoder"]: gzip.compress(export(encoder), compresslevel=6, mtime=0),
        FILES["vocabulary"]: vocabulary_lines(tokenizer.vocab).encode(),
    }


def make_data(encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, files: Mapping[str, bytes]) -> str:
    """What the page's program reads, as JSON that no script tag can end."""
    data = {
        "sizes": {letter: getattr(encoder.config, field) for letter, field in SIZES.items()},
        "shown": SHOWN,
        "tour": TOUR,
        "examples": EXAMPLES,
        "limits": LIMITS,
        "files": {kind: {"path": f"{ASSETS}/{name}", "size": len(files[name])} for kind, name in FILES.items()},
        "rules": splitting_rules(tokenizer.lowercase),
        "saved": saved_sentence(encoder, tokenizer),
        "types": pack(encoder.embeddings.token_type_embeddings.weight.detach(), "<f2"),
        "pairs": PAIRS,
        "ending": [compared(text, encoder, tokenizer) for text in ENDING],
    }
    return json_for_html(data)


def make_page(data: str, size: int, pages: Mapping[str, str]) -> str:
    """The page as one file; `size` is that of what it fetches, `pages` says where notebooks' pages are, by number."""
    read = {path.name: path.read_text("utf-8") for path in PARTS.glob("*.*") if path.suffix != ".py"}
    shared = [own_text(f"draggable/{name}") for name in SHARED]
    commented = "\n".join([*shared, *(read[name] for name in PROGRAM)])
    # the page is fetched often, and read here
    program, worker = (
        re.sub(r"^ *//.*\n|^ +|(?<=[;{,]) // [^\"'`\n]*$", "", text, flags=re.MULTILINE)
        for text in (commented, read["worker.js"])
    )
    rules = re.sub(r" */\*.*?\*/|^ +", "", read["explorer.css"], flags=re.MULTILINE)
    style = css(dark=None) + rules.replace("--dark-theme;", variables("dark"))
    inserted = {
        "policy": POLICY.format(program=fingerprint(program), style=fingerprint(style)),
        "style": style,
        "program": program,
        "worker": worker,
        "data": data,
        "model": html.escape(Path(checkpoint_name()).name),
        "runtime": RUNTIME.version,
        "megabytes": f"{size / 1e6:.0f}",
    }
    page = re.sub(r"notebook:(\d\d)", lambda link: pages.get(link[1], START), read["page.html"])
    return re.sub(r"%([a-z]+)%", lambda place: inserted[place[1]], page)


def fingerprint(text: str) -> str:
    """The hash by which a page's policy knows a script or a style in it."""
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def build(site: Path, cache: Path, pages: Mapping[str, str]) -> None:
    """Write explorer.html and its files into a site; errors of `fetch` where the runtime is not to be had."""
    runtime = fetch(RUNTIME, cache)
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    files = make_files(encoder, tokenizer, runtime)
    page = make_page(make_data(encoder, tokenizer, files), sum(map(len, files.values())), pages)
    (site / ASSETS).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(site / ASSETS / name, content)
    write_file(site / "explorer.html", page)
