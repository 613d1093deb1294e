"""One table of inputs that readers may use, and their outcome: a correct result, or a clear error.

`tests/reference/test_bad_input.py` tries every case; `python -m publish.bad_input` writes their summary into
CONTRIBUTING.md.
"""

import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import faiss
import matplotlib.pyplot as plt
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from publish.tiny import TINY, tiny_tokenizer, write_vocabulary
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.packing import encode_packed
from utils.pretraining import fill_rows, train_vocabulary
from utils.search import embed, hnsw_index, search, search_index
from utils.support import labelled_texts, labelled_words, tables
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.datasets import Examples
from utils.support.neighbour_counts import NeighbourCounts
from utils.support.plots import heatmap
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune, predict
from views import head_view, model_view, neuron_view

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- bad input: written by python -m publish.bad_input -->", "<!-- end of bad input -->"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VIEWS = (head_view, model_view, neuron_view)
QUERY = "bert.encoder.layer.0.attention.self.query.weight"
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
LAYER_NORM = "bert.encoder.layer.1.output.LayerNorm.bias"
DEEP = "[" * 100_000
ADDED = {"id": 50, "content": "<new>", "special": True}
ADDED |= dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
BYTE_PAIRS = {"type": "BPE", "vocab": {}, "merges": []}
IDS = torch.tensor([[2, 7, 3], [2, 8, 3]])
WRITES = {"is_decoder": True, "add_cross_attention": True, "bos_token_id": 2, "eos_token_id": 3}
SAMPLE = Examples(["a b", "c"], [0, 1])
UNIT = F.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(0)), dim=1)
NAN = UNIT * math.nan
GOOD = [torch.full((1, 3, 4, 4), 0.25)] * 2
WORDS = ["[CLS]", "a", "b", "[SEP]"]


class Case(NamedTuple):
    """An input, the call that receives it in the folder of a tiny checkpoint, and the expected outcome."""

    group: str
    given: str
    call: Callable[[Path], object]
    error: type[Exception] | None = None  # None for valid input: the call then returns whether the result is correct
    words: str = ""


# The tiny checkpoint, and ways to change it


def write_checkpoint(folder: Path) -> Path:
    """A classifier of random weights with a vocabulary of 50 tokens, as transformers saves it."""
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(**TINY)).save_pretrained(folder)
    write_vocabulary(folder, [*tiny_tokenizer().vocab])
    return folder


def load(folder: Path) -> TransformerEncoder:
    """Everything that a checkpoint holds, read as the series reads it."""
    WordPieceTokenizer.from_checkpoint(str(folder))
    return TransformerEncoder.from_checkpoint(str(folder))


def alter(file: str, reader: Callable[[Path], object] | None = None, **changes):
    """Load after changing settings of a JSON file in the folder; `...` removes one."""

    def call(folder: Path):
        path = folder / file
        content = json.loads(path.read_text("utf-8")) if path.exists() else {}
        content |= changes
        path.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))
        return (reader or load)(folder)

    return call


def rewrite(file: str, content: bytes | str | int, reader: Callable[[Path], object] = load):
    """Load after giving a file other content; a number is the size of an empty one."""

    def call(folder: Path):
        if isinstance(content, int):
            with (folder / file).open("wb") as whole:
                whole.truncate(content)
        else:
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        return reader(folder)

    return call


def loads(call: Callable[[Path], object]):
    """Whether the call gives a model of the checkpoint's size."""
    return lambda folder: call(folder).config.hidden_size == TINY["hidden_size"]


def with_weights(change: Callable[[dict], object], reader: Callable[[Path], object] = load):
    """Load after `change` has altered the dictionary of weights."""

    def call(folder: Path):
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return reader(folder)

    return call


def classify(folder: Path) -> TransformerForSequenceClassification:
    """The classifier in the folder."""
    return TransformerForSequenceClassification.from_checkpoint(folder)


def save_broken(folder: Path) -> None:
    """Save a classifier into its folder again once its weights are no numbers."""
    model = classify(folder)
    with torch.no_grad():
        model.encoder.layers[0].attention.query.weight[0] = torch.nan
    model.save(folder)


def fill(value: float, name: str = QUERY):
    """Return a change that sets one weight to a value."""
    return lambda weights: weights[name].view(-1)[3:4].fill_(value)


def cast(dtype: torch.dtype):
    """Return a change that casts all weights."""
    return lambda weights: weights.update({name: weight.to(dtype) for name, weight in weights.items()})


def put(name: str, *shape: int):
    """Return a change that replaces a weight by ones of this shape."""
    return lambda weights: weights.update({name: torch.ones(shape)})


def without_pooler(weights: dict) -> None:
    """Delete the pooler's weights."""
    for kind in ("weight", "bias"):
        del weights[f"bert.pooler.dense.{kind}"]


def half_the_weights(folder: Path):
    """Load a checkpoint whose file of weights is cut off."""
    return rewrite("model.safetensors", (folder / "model.safetensors").read_bytes()[:5000])(folder)


def take_state_dict(change: Callable[[torch.Tensor], torch.Tensor]):
    """Give an encoder the official state dict, every weight changed."""

    def call(folder: Path):
        weights = load_reference_model(str(folder)).state_dict()
        return encoder().load_bert_weights({name: change(weight) for name, weight in weights.items()})

    return call


def equals_before(change: Callable[[dict], object], tolerance: float):
    """Whether the encoder gives what it gave before the weights were changed."""

    def call(folder: Path) -> bool:
        ids = torch.tensor([[2, 7, 9, 3]])
        before = load(folder)(ids).last_hidden_state
        after = with_weights(change)(folder)(ids).last_hidden_state
        return torch.allclose(before, after, atol=tolerance)

    return call


def old_names(weights: dict) -> None:
    """Rename LayerNorm's weights as TensorFlow called them."""
    for name in list(weights):
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        weights[old] = weights.pop(name)


def shard(folder: Path, *names: str, links: Path | None = None) -> Path:
    """Put the weights into files of these names, relative to the folder, and an index that names them."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts = {name: {} for name in names}
    for number, (weight, tensor) in enumerate(weights.items()):
        parts[names[number % len(names)]][weight] = tensor
    for name, part in parts.items():
        save_file(part, folder / name, metadata={"format": "pt"})
    index = {weight: name for name, part in parts.items() for weight in part}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": index})
    )
    return folder


def lost_shard(folder: Path):
    """The index names a file that is gone."""
    (shard(folder, "a.safetensors") / "a.safetensors").unlink()
    return load(folder)


def index(content: str):
    """Load after giving the index of a shard other content."""

    def call(folder: Path):
        (shard(folder, "a.safetensors") / "model.safetensors.index.json").write_text(content)
        return load(folder)

    return call


def pickled_weights(folder: Path):
    """A pickle is all there is."""
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    return load(folder)


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, place: Path):
        self.place = place

    def __reduce__(self):
        return (Path.touch, (self.place,))


def pickled_shard(folder: Path):
    """The index names a pickled file, which would write a file if anybody unpickled it."""
    shard(folder, "model-1.safetensors")
    torch.save({"bomb": Bomb(folder / "went-off")}, folder / "pytorch_model.bin")
    path = folder / "model.safetensors.index.json"
    path.write_text(path.read_text().replace("model-1.safetensors", "pytorch_model.bin"))
    try:
        return load(folder)
    finally:
        assert not (folder / "went-off").exists()


def hub_cache(folder: Path) -> bool:
    """Files in `blobs`, and links to them in `snapshots`, as the Hub's cache has them."""
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "1234"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.replace(blobs / path.name)
        (snapshot / path.name).symlink_to(os.path.relpath(blobs / path.name, snapshot))
    return load(snapshot).config.hidden_size == TINY["hidden_size"]


def tokenizer_json(change: Callable[[dict], object]):
    """Load after `change` has altered the parts of tokenizer.json."""

    def call(folder: Path):
        official = load_tokenizer(str(folder))
        official.save_pretrained(folder)
        path = folder / "tokenizer.json"
        parts = json.loads(path.read_text("utf-8"))
        change(parts)
        path.write_text(json.dumps(parts), "utf-8")
        tokenizer = WordPieceTokenizer.from_checkpoint(str(folder))
        official = load_tokenizer(str(folder))
        texts = ["a b 7 [MASK] é zz", "17 <new> x"]
        assert [tokenizer.encode(text) for text in texts] == [official.encode(text) for text in texts]
        return True

    return call


def words(*tokens: str):
    """Load with a vocabulary of these tokens."""
    return lambda folder: write_vocabulary(folder, tokens) or load(folder)


# Models of random numbers, and what is done with them


def encoder() -> TransformerEncoder:
    """Return a tiny encoder of random weights."""
    return TransformerEncoder(BertConfig(**TINY)).eval()


def classifier() -> TransformerForSequenceClassification:
    """Return a tiny classifier of random weights."""
    return TransformerForSequenceClassification(BertConfig(**TINY))


def encode(**changes):
    """Return a call of the encoder with other arguments."""
    batch = {"input_ids": IDS} | changes
    return lambda _: encoder()(**batch)


def same(**changes):
    """Whether the encoder takes the changed batch as it takes the ids alone."""

    def call(folder: Path) -> bool:
        model = encoder()
        changed = model(**{"input_ids": IDS} | changes).last_hidden_state
        return torch.allclose(changed, model(IDS).last_hidden_state, atol=1e-6)

    return call


def pair(encoder: dict | None = None, **decoder) -> EncoderDecoder:
    """A tiny encoder–decoder with changed settings."""
    return EncoderDecoder(BertConfig(**TINY | (encoder or {})), BertConfig(**TINY | WRITES | decoder)).eval()


def write(settings: dict | None = None, **changes):
    """Return a call of `generate` with other arguments."""
    return lambda _: pair(**settings or {}).generate(**{"input_ids": IDS, "max_length": 8} | changes)


def masked_lm() -> TransformerForMaskedLM:
    """Return a tiny masked language model."""
    return TransformerForMaskedLM(BertConfig(**TINY)).eval()


def counted(rows: torch.Tensor) -> bool:
    """Whether pairs of neighbours in rows are counted under the number of the pair."""
    pairs = rows[:, 0].long() * 70_000 + rows[:, 2]
    return NeighbourCounts(rows, 70_000).between[0].tolist() == pairs.unique().tolist()


def write_with_pad(pad_token_id: int):
    """Write with a padding id that was changed in a decoder which was built before."""

    def call(folder: Path):
        model = pair()
        model.decoder.config.pad_token_id = pad_token_id
        return model.generate(IDS, max_length=8)

    return call


def go_on(source: float = 0.0, shift: int = 0):
    """Go on with the cache of a text, after its source or its first tokens have changed."""

    def call(folder: Path):
        decoder, states = pair().decoder, torch.zeros(2, 4, 12)
        cache = decoder.new_cache()
        decoder(IDS, None, states, cache=cache)
        return decoder(torch.cat([IDS + shift, IDS], dim=1), None, states + source, cache=cache)

    return call


def decode(**changes):
    """Return a call of the decoder with other arguments."""
    return lambda _: pair().decoder(IDS, **changes)


def tune(**changes):
    """Fine-tune a tiny model with changed arguments."""

    def call(folder: Path):
        arguments = {"tokenizer": tiny_tokenizer(), "train": SAMPLE, "validation": SAMPLE, "epochs": 1, "quiet": True}
        return fine_tune(classifier(), **arguments | changes)

    return call


def nearest(queries=UNIT[:3], vectors=UNIT, k=2):
    """Return a call of `search`."""
    return lambda _: search(queries, vectors, k)


def finds_itself(queries, vectors=UNIT):
    """Whether exact search and the graph give each of these queries itself first."""
    return lambda _: (
        [
            found.indices[:, 0].tolist()
            for found in (search(queries, vectors, 1), search_index(queries, hnsw_index(vectors), 1))
        ]
        == [[0, 1, 2]] * 2
    )


def graph(**settings):
    """Return a call of `hnsw_index`."""
    return lambda _: hnsw_index(UNIT, **settings)


def distances() -> faiss.Index:
    """Return an index of distances in place of products."""
    index = faiss.IndexFlatL2(8)
    index.add(UNIT.numpy())
    return index


def drawn(text: str):
    """Whether a figure with this text as its label draws, and draws it as it stands."""

    def call(folder: Path) -> bool:
        heatmap([[1.0]], [text], [text], title=text)
        ax = plt.gcf().axes[0]
        plt.gcf().canvas.draw()
        return all(label.get_text().replace(r"\$", "$") == text for label in (ax.title, ax.get_xticklabels()[0]))

    return call


def table(content: bytes):
    """The rows of a CSV file with these bytes."""

    def call(folder: Path):
        path = folder / "companies.csv"
        path.write_bytes(content)
        return [*tables.read_csv(path, ("name", "ticker"))[0].values()] == ["Café", "C"]

    return call


GOOD_WORDS = "Anna,name\nmet,O\nBo,name\n\nCafé,O\nin,O\n\nMo,name\nis,O\n"
WORD_TEXTS = [["Anna", "met", "Bo"], ["Café", "in"], ["Mo", "is"]]


def labelled(content: bytes | str, wanted: Sequence[Sequence[str]] = WORD_TEXTS):
    """The texts of a file of words and labels with this content."""

    def call(folder: Path):
        path = folder / "words.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found = labelled_words.read_words(path)
        return sorted(text for part in found[:3] for text, _ in part) == sorted(map(list, wanted))

    return call


def texts_of(name: str, content: bytes | str, label: str = "label"):
    """The texts and labels of a file with this name and content."""

    def call(folder: Path):
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found = labelled_texts.read_labelled(path, label=label)
        pairs = [
            (text, found.names[number])
            for part in found[:3]
            for text, number in zip(part.texts, part.labels, strict=True)
        ]
        return sorted(pairs) == [(letter, "yes" if letter < "d" else "no") for letter in "abcdef"]

    return call


def corpus(content: bytes | str):
    """The texts of a file to pretrain on."""

    def call(folder: Path):
        path = folder / "corpus"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return [*tables.read_texts([path])] == ["a text", "another"]

    return call


def word_folder(folder: Path):
    """The path of a folder where a file of words belongs."""
    return labelled_words.read_words(folder)


# The table: what is given, what is done with it, and the error with some of its words, or nothing if it is taken right.
# First rows that differ in one place only.

# fmt: off
COUNTS = ("num_attention_heads", "hidden_size", "vocab_size", "intermediate_size")
CONFIGS = [
    *((field, value, f"{field} must be a positive integer, got {value}") for field in COUNTS for value in (-1, 0)),
    ("max_position_embeddings", 0, "max_position_embeddings must be a positive integer, got 0"),
    ("hidden_size", "12", "hidden_size"),
    ("hidden_size", 12.5, "hidden_size"),
    ("num_attention_heads", 5, "hidden_size=12 is not divisible by num_attention_heads=5"),
    ("hidden_dropout_prob", 1.5, "hidden_dropout_prob must be a number from 0 to 1, got 1.5"),
    ("attention_probs_dropout_prob", math.nan, "attention_probs_dropout_prob must be a number from 0 to 1, got nan"),
    *(("layer_norm_eps", eps, f"layer_norm_eps must be a number from 0 to 1, got {eps}") for eps in (math.nan, -1.0)),
    *(("initializer_range", std, f"initializer_range must be a number from 0 to 1, got {std}")
      for std in (math.nan, math.inf, -0.1)),
    ("pad_token_id", 50, "pad_token_id must be an integer from 0 to 49, got 50"),
    *(("num_hidden_layers", count, f"num_hidden_layers must be an integer from 1 to 1,000, got {count}")
      for count in (-1, 0, 10**9)),
    ("hidden_act", [4], "hidden_act"),
    ("intermediate_size", 10**15, "GB of memory are free: use a smaller"),
    ("hidden_act", "silu", 'hidden_act="silu" is not supported: use one of gelu'),
    ("is_decoder", True, "is_decoder=True is not supported: use False"),
    ("add_cross_attention", True, "add_cross_attention=True is not supported: use False"),
    ("position_embedding_type", "relative_key", "position_embedding_type='relative_key' is not supported"),
    ("pruned_heads", {"0": [1]}, "is not supported: use {}"),
    ("model_type", "roberta", 'model_type="roberta", which is not supported here'),
    ("quantization_config", {"bits": 8}, "quantized weights (quantization_config) are not supported"),
    ("hidden_size", 24, "weights do not fit the configuration; mis-shaped"),
    ("num_hidden_layers", 3, "missing: layers.2"),
    ("num_hidden_layers", 1, "unexpected: layers.1"),
]
BROKEN_JSON = [
    ("an empty file", b"", "config.json cannot be read"),
    ("half a file", b'{"model_type": "be', "config.json cannot be read"),
    ("a list", b"[]", 'model_type="None", which is not supported here'),
    ("bytes that are no UTF-8", b"\xff\xfe{", "config.json cannot be read"),
]
RUNTIME_SETTINGS = [
    ("torch_dtype", "float16"),
    ("dtype", "bfloat16"),
    ("return_dict", False),
    ("transformers_version", "9"),
]
BROKEN_INDEX = [
    ("{}", "index.json cannot be read ('weight_map')"),
    ("[1]", "index.json cannot be read"),
]
NOT_TENSORS = [
    ("input_ids", "ids", IDS.tolist()),
    ("input_ids", "ids", IDS.numpy()),
    ("input_ids", "a tokenizer's batch", {"input_ids": IDS}),
    ("input_ids", "a text", "a film"),
    ("attention_mask", "a mask", [[1, 1, 1], [1, 1, 1]]),
    ("token_type_ids", "token types", [[0, 0, 0], [0, 0, 0]]),
]

# Then the groups

SETTINGS = [
    *((f"`{name}: {value!r}`", alter("config.json", **{name: value}), ValueError, words)
      for name, value, words in CONFIGS),
    ("no `model_type`", alter("config.json", model_type=...), ValueError, "model_type"),
    *((f"config.json: {given}", rewrite("config.json", content), ValueError, words)
      for given, content, words in BROKEN_JSON),
    *((f"`{name}: {value!r}`, which says how a program used it", loads(alter("config.json", **{name: value})))
      for name, value in RUNTIME_SETTINGS),
    ("a folder without config.json", lambda folder: (folder / "config.json").unlink() or load(folder),
     ValueError, "is not a checkpoint, because it has no config.json"),
    ("a name that is neither a folder nor on the Hub", lambda folder: load(folder / "nowhere"),
     OSError, "is not a local folder and could not be downloaded"),
]

WEIGHTS = [
    ("NaN in one weight", with_weights(fill(math.nan)),
     ValueError, "layers.0.attention.query.weight contains NaN or inf"),
    *((f"{value} in `{name}`", with_weights(fill(value, name)), ValueError, "contains NaN or inf: use weights from")
      for value in (math.inf, -math.inf, math.nan) for name in (WORD_EMBEDDINGS, LAYER_NORM)),
    ("NaN in the head of a classifier", with_weights(fill(math.nan, "classifier.weight"), classify),
     ValueError, "classifier.weight contains NaN or inf"),
    *((f"weights stored as {dtype}", with_weights(cast(dtype)),
       ValueError, ": save the model with float32 weights")
      for dtype in (torch.int8, torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn)),
    *((f"weights stored as {dtype}", equals_before(cast(dtype), tolerance))
      for dtype, tolerance in [(torch.float64, 1e-6), (torch.float16, 0.02), (torch.bfloat16, 0.1)]),
    ("the names of old checkpoints, LayerNorm.gamma", equals_before(old_names, 1e-7)),
    ("a weight too few", with_weights(lambda weights: weights.pop(QUERY)),
     ValueError, "missing: layers.0.attention.query.weight"),
    ("a layer too many", with_weights(put(QUERY.replace("layer.0", "layer.7"), 3)),
     ValueError, "unexpected: layers.7"),
    ("a weight of another shape", with_weights(put(QUERY, 12, 11)),
     ValueError, "mis-shaped: layers.0.attention.query.weight (12, 11) for (12, 12)"),
    ("a weight under two names", with_weights(put(QUERY.removeprefix("bert."), 12, 12)),
     ValueError, "a second time: save the model again"),
    ("no pooler, which no layer needs", loads(with_weights(without_pooler))),
    ("an empty file", rewrite("model.safetensors", b""), ValueError, "model.safetensors cannot be read"),
    ("half a file", half_the_weights, ValueError, "model.safetensors cannot be read"),
    ("pickled weights only", pickled_weights,
     ValueError, "only pickled weights (pytorch_model.bin), which can run code"),
    ("no weights", lambda folder: (folder / "model.safetensors").unlink() or load(folder),
     ValueError, "has no weights"),
    ("an index that names a pickled file, a bomb", pickled_shard,
     ValueError, "names 'pytorch_model.bin', which is not a safetensors file"),
    ("an index that leads out of the folder", lambda folder: load(shard(folder, f"../{folder.name}-1.safetensors")),
     ValueError, "which is not a safetensors file in its folder"),
    ("an index with an absolute path", lambda folder: load(shard(folder, f"{folder}-2.safetensors")),
     ValueError, "which is not a safetensors file in its folder"),
    ("the Hub's cache, with its links", hub_cache),
    ("two shards", loads(lambda folder: load(shard(folder, "a.safetensors", "b.safetensors")))),
    ("a classifier in two shards", loads(lambda folder: classify(shard(folder, "a.safetensors", "b.safetensors")))),
    ("NaN in a classifier that is saved over a good one", save_broken,
     ValueError, "bert.encoder.layer.0.attention.self.query.weight contains NaN or inf"),
    ("a shard that is missing", lost_shard, ValueError, "a.safetensors cannot be read"),
    *((f"an index that holds {content:.20}", index(content), ValueError, words) for content, words in BROKEN_INDEX),
    ("a state dict with NaN", take_state_dict(lambda weight: weight * math.nan), ValueError, "contains NaN or inf"),
    ("a state dict of whole numbers", take_state_dict(torch.Tensor.long),
     ValueError, "has the type torch.int64: save the model with float32 weights"),
]

TOKENIZER = [
    ("a vocabulary smaller than the model's", words(*tiny_tokenizer(40).vocab),
     ValueError, "has 40 tokens with ids up to 39, but the model's vocab_size is 50"),
    ("rows for 40 tokens, filled up to 48", lambda folder: BertConfig(**TINY | {"vocab_size": 48}).save_pretrained(
        folder) or write_vocabulary(folder, [*tiny_tokenizer(40).vocab]) or len(load_tokenizer(folder)) == 40),
    ("a folder without vocabulary", lambda folder: (folder / "vocab.txt").unlink() or load(folder),
     ValueError, "the tokenizer"),
    ("a vocabulary larger than the model's", words(*tiny_tokenizer(60).vocab),
     ValueError, "has 60 tokens with ids up to 59"),
    ("a vocabulary with a token twice", words(*tiny_tokenizer(49).vocab, "a"), ValueError, "tokens with ids up to"),
    ("a special token added", alter("tokenizer_config.json", additional_special_tokens=["<new>"]),
     ValueError, "has 51 tokens with ids up to 50"),
    ("a token of the vocabulary made special", alter("tokenizer_config.json", additional_special_tokens=["17"]),
     ValueError, "special tokens that BERT does not have, "),
    ("another mask token", alter("tokenizer_config.json", mask_token="17"), ValueError, "special tokens that BERT"),
    ("another padding token", alter("special_tokens_map.json", pad_token="a"), ValueError, "special tokens that BERT"),
    ("a tokenizer that strips no accents", alter("tokenizer_config.json", strip_accents=False),
     ValueError, "a normalizer that is not supported"),
    ("a tokenizer that leaves Chinese whole", alter("tokenizer_config.json", tokenize_chinese_chars=False),
     ValueError, "a normalizer that is not supported"),
    ("the tokenizer of another family", alter("tokenizer_config.json", tokenizer_class="GPT2Tokenizer"),
     ValueError, "tokenizer"),
    ("tokenizer_config.json: a list", rewrite("tokenizer_config.json", "[]"),
     ValueError, "cannot be read"),
    ("tokenizer.json: an empty file", rewrite("tokenizer.json", b""), ValueError, "cannot be read"),
    ("tokenizer.json: no parts", rewrite("tokenizer.json", "{}"), ValueError, "tokenizer"),
    ("vocab.txt: bytes that are no UTF-8", rewrite("vocab.txt", b"\xff\xfe"), ValueError, "cannot be read"),
    ("tokenizer.json as the official tokenizer writes it", tokenizer_json(lambda parts: None)),
    ("tokenizer.json with another mask token", tokenizer_json(lambda parts: parts["added_tokens"].append(ADDED)),
     ValueError, "has 51 tokens with ids up to 50"),
    ("tokenizer.json of byte pairs", tokenizer_json(lambda parts: parts.update(model=BYTE_PAIRS)),
     ValueError, "tokenizer"),
]

VOCABULARY = [
    ("a list for a vocabulary", lambda _: WordPieceTokenizer(SPECIAL),
     TypeError, "must be a dictionary from token to id, got list"),
    ("None for a vocabulary", lambda _: WordPieceTokenizer(None), TypeError, "must be a dictionary"),
    ("a vocabulary without [SEP] and [MASK]", lambda _: WordPieceTokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}),
     ValueError, "the vocabulary lacks [SEP], [MASK]"),
    *((f"a token with the id {wrong!r}",
       lambda _, wrong=wrong: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": wrong}),
       ValueError, f"the vocabulary gives 'n' the id {wrong!r}: ids must be integers") for wrong in (-1, 50.0)),
    *((f"the id {wrong}, to decode", lambda _, wrong=wrong: tiny_tokenizer().decode([5, wrong]),
       ValueError, f"id {wrong} is outside the vocabulary of 50 tokens") for wrong in (-1, -100)),
    ("two tokens with one id", lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 7}),
     ValueError, "gives several tokens the id 7: use each id once"),
    *((f"a text that is {text!r}", lambda _, text=text: tiny_tokenizer().tokenize(text),
       TypeError, f"text must be a string, got {type(text).__name__}") for text in (None, 7, b"a", ["a"])),
    *((f"texts that are {texts!r}", lambda _, texts=texts: tiny_tokenizer()(texts),
       TypeError, "texts must be a string or a list of strings") for texts in (None, 7, {"a"})),
    ("a dictionary to learn a vocabulary from", lambda _: train_vocabulary({"a": 1}, 80),
     TypeError, "texts must be a list or stream of strings, got dict"),
    ("an empty stream to learn a vocabulary from", lambda _: train_vocabulary(iter([]), 80),
     ValueError, "got no texts: pass a list"),
    ("a text of six million letters", lambda _: tiny_tokenizer().encode("a " * 3_000_000),
     ValueError, "text has 6,000,000 characters: split it into parts of at most 5,000,000"),
    ("no texts", lambda _: tiny_tokenizer()([]), ValueError, "pass at least one text"),
    ("two texts and one pair", lambda _: tiny_tokenizer()(["a", "b"], ["c"]), ValueError, "got 2 texts but 1 pairs"),
    ("`max_length=1`", lambda _: tiny_tokenizer()("a", max_length=1),
     ValueError, "max_length=1 is too small for 2 special tokens: use at least 2"),
    ("an id beyond the vocabulary, to decode", lambda _: tiny_tokenizer().decode([50]),
     ValueError, "id 50 is outside the vocabulary of 50 tokens"),
    ("an empty text", lambda _: tiny_tokenizer().encode("") == [2, 3]),
    ("a text of a million letters", lambda _: tiny_tokenizer().encode("a" * 10**6) == [2, 1, 3]),
    ("half a surrogate pair", lambda _: tiny_tokenizer().encode("a \ud800") == [2, 5, 3]),
    ("half a surrogate pair among texts to learn from",
     lambda _: fill_rows(["a \ud800b c"], tiny_tokenizer(), 5).tolist() == [[2, 5, 6, 7, 3]]),
    *((f"`probability={share!r}`", lambda _, share=share: mask_tokens(IDS, tiny_tokenizer(), share),
       ValueError, "probability must be between 0 and 1, got ") for share in (0, 1, math.nan, True, "0.15")),
    ("too little text for a row", lambda _: fill_rows(["a"], tiny_tokenizer(), 8),
     ValueError, "the texts have 2 tokens, and a row takes 6: use more, or shorter rows"),
    ("rows of two tokens", lambda _: fill_rows(["a"], tiny_tokenizer(), 2),
     ValueError, "length must be an integer of at least 3, got 2"),
    *((f"a vocabulary of {size!r} tokens to learn", lambda _, size=size: train_vocabulary(["a"], size),
       ValueError, "size must be an integer from 41 to 1,000,000") for size in (40, 10**9, "many")),
    ("two pairs for one text", lambda _: tiny_tokenizer()(["a"], ["b", "c"]),
     ValueError, "got 1 texts but 2 pairs: pass at least one text, and one pair per text"),
    ("`max_length=2` for a pair", lambda _: tiny_tokenizer()("a", "b", max_length=2),
     ValueError, "max_length=2 is too small for 3 special tokens: use at least 3"),
    ("rows of special tokens only", lambda _: mask_tokens(torch.tensor([[2, 1, 3]]), tiny_tokenizer()),
     ValueError, "input_ids contain only special tokens: use rows of text"),
]

INPUT = [
    *((f"the id {wrong} of 50", encode(input_ids=torch.tensor([[2, wrong, 3]])),
       ValueError, f"input_ids contain {wrong}, but valid ids are 0 to 49") for wrong in (50, -1, 10**9)),
    *((f"ids of the shape {shape}", encode(input_ids=torch.ones(shape).long()),
       ValueError, "input_ids must be (B, S), got") for shape in [(3,), (0, 3), (1, 0), (1, 1, 3)]),
    *((f"ids of {dtype}", encode(input_ids=IDS.to(dtype)),
       ValueError, f"input_ids must contain integers, got {dtype}: convert with .long()")
      for dtype in (torch.float32, torch.bool, torch.float16)),
    ("ids of torch.int32", same(input_ids=IDS.int())),
    *((f"{name}, a {type(given).__name__}", encode(**{field: given}),
       TypeError, f"{field} must be a tensor, got {type(given).__name__}: use torch.tensor([ids]), or **batch")
      for field, name, given in NOT_TENSORS),
    ("17 tokens for 16 positions", encode(input_ids=torch.ones(1, 17).long()),
     ValueError, "17 tokens, but only 16 positions: tokenize with max_length=16"),
    *((f"the token type {wrong} of 2", encode(token_type_ids=torch.tensor([[0, wrong, 0], [0, 0, 0]])),
       ValueError, f"token_type_ids contain {wrong}, but valid ids are 0 to 1") for wrong in (2, -1)),
    ("the id 50 of 50, packed", lambda _: encode_packed(encoder(), torch.tensor([[2, 50, 3]])),
     ValueError, "input_ids contain 50, but valid ids are 0 to 49"),
    ("token types of another shape", encode(token_type_ids=torch.zeros(1, 2).long()),
     ValueError, "token_type_ids must have the shape (2, 3) of the input"),
    ("token types of torch.float32", encode(token_type_ids=torch.zeros(2, 3)),
     ValueError, "token_type_ids must contain integers, got torch.float32"),
    *((f"a mask of the shape {shape}", encode(attention_mask=torch.ones(shape)),
       ValueError, "attention_mask must have the shape (2, 3) of the input") for shape in [(2, 4), (3,), (2, 1, 1, 3)]),
    ("a mask that hides a whole row", encode(attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])),
     ValueError, "attention_mask masks every token of a row: leave at least one 1"),
    ("a mask with NaN in it", encode(attention_mask=torch.tensor([[1, 1, torch.nan], [1, 1, 1]])),
     ValueError, "attention_mask contains NaN or less than 0: use 1 for real tokens and 0 for padding"),
    ("a mask to be added to scores", encode(attention_mask=torch.tensor([[0, 0, -10_000], [0, 0, 0]])),
     ValueError, "attention_mask contains NaN or less than 0: use 1 for real tokens and 0 for padding"),
    *((f"a mask of {dtype}", same(attention_mask=torch.ones(2, 3).to(dtype)))
      for dtype in (torch.bool, torch.float32, torch.int64, torch.uint8)),
    *((f"{given} ids", encode(input_ids=ids), ValueError, words) for given, ids, words in (
        ("meta", IDS.to("meta"), "input_ids must have values, but a tensor on the device meta has none"),
        ("sparse", IDS.to_sparse(), "input_ids must be a dense tensor, got torch.sparse_coo"))),
    ("a mask of complex numbers", encode(attention_mask=torch.ones(2, 3).to(torch.complex64)),
     ValueError, "attention_mask must contain real numbers, got torch.complex64"),
    ("an index tuple for `where`", lambda _: masked_lm()(IDS, where=(torch.tensor([0]), torch.tensor([1]))),
     TypeError, "where must be a tensor, got tuple"),
    *((f"ids of {dtype} to be masked", lambda _, dtype=dtype: mask_tokens(IDS.to(dtype), tiny_tokenizer()),
       ValueError, f"input_ids must contain integers, got {dtype}") for dtype in (torch.float32, torch.int8)),
    ("ids of torch.float32 to be counted", lambda _: NeighbourCounts(IDS.float(), 50),
     ValueError, "rows must contain integers, got torch.float32"),
    ("int32 ids of a large vocabulary to be counted",
     lambda _: counted(IDS.int() + 69_990)),
    ("no mask, packed", lambda _: encode_packed(encoder(), IDS).shape == (2, 3, 12)),
]

WRITING = [
    ("no source", decode(), ValueError, "encoder_hidden_states=None, but this decoder looks at a source"),
    ("a source of another width", decode(encoder_hidden_states=torch.zeros(2, 4, 6)),
     ValueError, "encoder_hidden_states must be (2, S, 12), a source for each text, got (2, 4, 6)"),
    ("one source for two texts", decode(encoder_hidden_states=torch.zeros(1, 4, 12)),
     ValueError, "must be (2, S, 12), a source for each text, got (1, 4, 12)"),
    ("a source without a real token", write(attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])),
     ValueError, "attention_mask masks every token of a row: leave at least one 1"),
    ("the id 50 of 50 in the source", write(input_ids=IDS + 47), ValueError, "but valid ids are 0 to 49"),
    *((f"`max_length={length!r}`", write(max_length=length), ValueError, "must be an integer from 2 to 16")
      for length in (1, 0, 17, 2.5, None)),
    *((f"`num_beams={beams!r}`", write(num_beams=beams), ValueError, "must be an integer from 1 to 25")
      for beams in (0, -1, 1.5, 26)),
    *((f"`{name}: {wrong!r}`", write({name: wrong}),
       ValueError, f"{name} must be an integer from 0 to 49, got {wrong!r}")
      for name in ("bos_token_id", "eos_token_id") for wrong in (None, 50)),
    *((f"`pad_token_id={wrong}`, set after the decoder was built", write_with_pad(wrong),
       ValueError, f"pad_token_id must be an integer from 0 to 49, got {wrong}") for wrong in (-1, 10**9)),
    *((f"the cache of another {what}", go_on(**change), ValueError, "the cache was filled with another text, source")
      for what, change in (("source", {"source": 1.0}), ("text", {"shift": 1}))),
    ("an encoder and a decoder of different widths", write({"encoder": {"hidden_size": 24}}),
     ValueError, "hidden_size is 24 in the encoder, 12 in the decoder: use one"),
    *((f"a source with {wrong}", decode(encoder_hidden_states=torch.full((2, 4, 12), wrong)),
       ValueError, "encoder_hidden_states contain NaN or inf: look for what went wrong in the encoder")
      for wrong in (math.nan, math.inf)),
    *((f"{given} for the source",
       decode(encoder_hidden_states=torch.zeros(2, 4, 12), encoder_attention_mask=mask), ValueError, words)
      for given, mask, words in (
          ("a mask of another shape", torch.ones(2, 3), "encoder_attention_mask must have the shape (2, 4)"),
          ("a mask that hides a row", torch.zeros(2, 4), "encoder_attention_mask masks every token of a row"),
          ("a mask with NaN", torch.full((2, 4), math.nan), "encoder_attention_mask contains NaN or less than 0"))),
    ("a text of 17 tokens for 16 positions", lambda _: pair()(IDS, None, torch.ones(2, 17).long()),
     ValueError, "17 tokens, but only 16 positions"),
    ("word embeddings that are not tied", write({"tie_word_embeddings": False}),
     ValueError, "tie_word_embeddings=False is not supported: use "),
    ("a decoder that does not use a source", write({"add_cross_attention": False}),
     ValueError, "this decoder does not use a source: "),
    ("an encoder for the decoder", write({"is_decoder": False}), ValueError, "is_decoder=False makes an encoder"),
]

TRAINING = [
    ("the label 2 of two classes", tune(train=Examples(["a"], [2])),
     ValueError, "labels must be from 0 to 1, got 2 for text 0"),
    ("the label -1", tune(train=Examples(["a"], [-1])),
     ValueError, "labels must be from 0 to 1, got -1 for text 0"),
    *((f"the label {label!r}", tune(train=Examples(["a"], [label])),
       TypeError, f"labels must be integers, got {kind}: {label!r} of text 0: use int(label)")
      for label, kind in [("1", "str"), (None, "NoneType"), (0.5, "float")]),
    ("two texts and one label", lambda _: Examples(["a", "b"], [0]), ValueError, "got 2 texts but 1 labels"),
    ("an empty text among them", tune(train=Examples(["a", " "], [0, 1])), ValueError, "text 1 is empty"),
    ("a pair of lists instead of Examples", tune(train=(["a"], [0])),
     TypeError, "examples must be Examples(texts, labels), got tuple"),
    *((f"no texts as `{name}`", tune(**{name: Examples([], [])}), ValueError, "got an empty list: pass at least one")
      for name in ("train", "validation")),
    ("`max_length=2` to train", tune(max_length=2),
     ValueError, "max_length=2 is too small for 2 special tokens and 1 of text: use at least 3"),
    *((f"`epochs={epochs}`", tune(epochs=epochs), ValueError, "epochs must be an integer from 1 to 10,000, got ")
      for epochs in (0, 2**70)),
    ("`batch_size=0`", tune(batch_size=0), ValueError, "batch_size must be a positive integer, got 0"),
    *((f"`learning_rate={rate}`", tune(learning_rate=rate), ValueError, "learning_rate must be between 0 and")
      for rate in (0.0, math.nan, -1.0)),
    *((f"`{name}={value!r}`", tune(**{name: value}), ValueError, f"{name} must")
      for name, value in (("seed", 0.5), ("seed", "a"), ("patience", None), ("max_length", 2.5), ("batch_size", 2.5))),
    ("a tokenizer of another model", tune(tokenizer=tiny_tokenizer(40)),
     ValueError, "has 40 tokens with ids up to 39, but the model's vocab_size is 50"),
    ("a text where the tokenizer belongs", tune(tokenizer="a text"),
     TypeError, "tokenizer must be a WordPieceTokenizer or transformers' own, got str"),
    ("a function without a vocabulary where the tokenizer belongs", tune(tokenizer=len),
     TypeError, "tokenizer must be a WordPieceTokenizer or transformers' own, got builtin_function_or_method"),
    ("one text to classify, not a list", lambda _: predict(classifier(), tiny_tokenizer(), "a film"),
     TypeError, "wrap one text in a list"),
    ("one class", lambda _: TransformerForSequenceClassification(BertConfig(**TINY, num_labels=1)),
     ValueError, "num_labels must be an integer of at least 2, got 1"),
    *((f"a checkpoint with `problem_type: {kind!r}`", alter("config.json", classify, problem_type=kind),
       ValueError, f"problem_type={kind!r} is not supported: use a classifier that gives each text one label")
      for kind in ("multi_label_classification", "regression")),
    ("a new last layer for several labels a text", loads(alter(
        "config.json", lambda folder: TransformerForSequenceClassification.from_checkpoint(folder, num_labels=2),
        problem_type="multi_label_classification"))),
]

VECTORS = [
    ("queries that are not of length 1", nearest(UNIT[:3] * 2),
     ValueError, "queries must have length 1, so that products are cosines: take them from embed()"),
    ("queries with NaN", nearest(NAN[:3]), ValueError, "queries contain NaN or inf"),
    ("queries with inf", nearest(UNIT[:3] / 0), ValueError, "queries contain NaN or inf"),
    ("vectors with NaN", nearest(vectors=NAN), ValueError, "vectors contain NaN or inf"),
    ("vectors that are not of length 1", nearest(vectors=UNIT * 0.5), ValueError, "vectors must have length 1"),
    ("one query that is no row", nearest(UNIT[0]), ValueError, "queries must be (Q, 8) as the vectors are, got (8,)"),
    ("queries of another width", nearest(UNIT[:3, :7]),
     ValueError, "queries must be (Q, 8) as the vectors are, got (3, 7)"),
    ("words for queries", nearest(["a film"]), TypeError, "queries must be numbers, (N, H), as embed() returns them"),
    *((f"`k={k!r}` of 40 vectors", nearest(k=k),
       ValueError, f"k={k!r}, but there are 40 vectors to search: use k from 1 to 40")
      for k in (0, -1, 41, 2.5, "2", None)),
    ("queries of float64", finds_itself(UNIT[:3].double())),
    ("queries of float16", finds_itself(UNIT[:3].half())),
    ("a NumPy array", finds_itself(UNIT[:3].numpy(), UNIT.double().numpy())),
    ("a list of vectors", finds_itself(list(UNIT[:3]), [row.numpy() for row in UNIT])),
    ("a list of lists", finds_itself(UNIT[:3].tolist(), UNIT.tolist())),
    ("vectors that require gradients",
     finds_itself(UNIT[:3].clone().requires_grad_(), UNIT.clone().requires_grad_())),
    ("a transposed view", finds_itself(UNIT.T.contiguous().T[:3], UNIT.T.contiguous().T)),
    ("an index of distances, not cosines", lambda _: search_index(UNIT[:3], distances(), 1),
     ValueError, "the index measures distances, not cosines: build it with faiss.METRIC_INNER_PRODUCT"),
    ("queries with NaN, in an index", lambda _: search_index(NAN[:3], hnsw_index(UNIT), 1),
     ValueError, "queries contain NaN or inf"),
    *((f"`M={M!r}`", graph(M=M), ValueError, f"M must be an integer from 2 to 512, got {M!r}")
      for M in (1, 0, -4, 10**6, 2.5, "32", None)),
    *((f"`{name}={value!r}`", graph(**{name: value}),
       ValueError, f"{name} must be an integer from 1 to 100,000, got {value!r}")
      for name in ("ef_construction", "ef_search") for value in (0, -1, 10**9)),
    ("no texts to embed", lambda _: embed([], encoder(), tiny_tokenizer()), ValueError, "got an empty list"),
    ("a tokenizer of another model, to embed", lambda _: embed(["a"], encoder(), tiny_tokenizer(40)),
     ValueError, "vocab_size is 50"),
]

VIEW = [
    *((f"`html_action='save'` for {draw.__name__}", lambda _, draw=draw: draw(GOOD, WORDS, html_action="save"),
       ValueError, 'html_action must be "view", "return" or None') for draw in VIEWS[:2]),
    ("`html_action='return'`",
     lambda _: head_view(GOOD, WORDS, html_action="return").page == head_view(GOOD, WORDS).page),
    ("`include_heads=` for head_view", lambda _: head_view(GOOD, WORDS, include_heads=[0]),
     TypeError, "got an unexpected keyword argument 'include_heads': heads=[…] selects the heads shown at first"),
    ("`attention=` for neuron_view", lambda _: neuron_view(attention=GOOD, tokens=WORDS),
     TypeError, "got an unexpected keyword argument 'attention': attentions hold no queries and keys"),
    ("`words='yes'`", lambda _: model_view(GOOD, WORDS, words="yes"),
     TypeError, "words must be True, for whole words, or False"),
    ("`heads=3` of 3", lambda _: head_view(GOOD, WORDS, heads=3),
     ValueError, "heads names 3, but there are 3: use 0 to 2"),
    ("`heads=2`, not in a list",
     lambda _: head_view(GOOD, WORDS, heads=2).page == head_view(GOOD, WORDS, heads=[2]).page),
    ("`heads='2'`", lambda _: head_view(GOOD, WORDS, heads="2"),
     ValueError, "heads names '2', but there are 3: use 0 to 2"),
    ("`layer='1'`", lambda _: head_view(GOOD, WORDS, layer="1"),
     ValueError, "layer must be one of the layers shown, [0, 1], got '1'"),
    ("`sentence_b_start=tensor(2)`",
     lambda _: head_view(GOOD, WORDS, torch.tensor(2)).page == head_view(GOOD, WORDS, 2).page),
    ("`sentence_b_start='2'`", lambda _: head_view(GOOD, WORDS, "2"),
     ValueError, "sentence_b_start must be an integer from 1 to 3"),
    ("a layer that does not exist", lambda _: model_view(GOOD, WORDS, include_layers=[2]),
     ValueError, "include_layers names 2, but there are 2: use 0 to 1"),
    ("a text for tokens", lambda _: head_view(GOOD, "a text"),
     TypeError, "tokens must be a list, the 4 tokens of attention, got str: pass (model, tokenizer, sentence_a"),
    ("three tokens for four positions", lambda _: head_view(GOOD, WORDS[:3]),
     ValueError, "attention has 4 positions, but there are 3 tokens"),
    ("a model that returned no weights", lambda _: head_view((None, None), WORDS),
     ValueError, 'attn_implementation="eager"'),
    ("a number for attention", lambda _: head_view(3, WORDS),
     TypeError, "attention must be one tensor per layer, got int"),
    ("attention as NumPy arrays",
     lambda _: head_view([layer.numpy() for layer in GOOD], WORDS).page == head_view(GOOD, WORDS).page),
    ("a model's whole output", lambda _: head_view({"attentions": GOOD}, WORDS),
     TypeError, "attention is the whole output of a model: pass its attentions, output.attentions"),
    ("the attentions of generate()", lambda _: model_view((tuple(GOOD), tuple(GOOD)), WORDS),
     TypeError, "attention contains tuples of tensors, as in the output of generate(), or in a whole output with"),
    ("words for attention", lambda _: head_view(["a", "b"], WORDS),
     TypeError, "attention must be one tensor per layer ("),
    ("a batch of two texts", lambda _: head_view([torch.ones(2, 3, 4, 4)], WORDS),
     ValueError, "is of a batch of 2, and a view shows one text"),
    ("attention with NaN", lambda _: model_view([torch.full((1, 1, 4, 4), math.nan)], WORDS),
     ValueError, "attention holds nan or inf"),
    ("a text where the tokenizer belongs", lambda _: neuron_view(encoder(), "a", "b"),
     TypeError, "tokenizer must be a WordPieceTokenizer or transformers' own, got str"),
    ("a tokenizer smaller than the model", lambda _: neuron_view(encoder(), tiny_tokenizer(40), "a"),
     ValueError, "has 40 tokens with ids up to 39, but the model's vocab_size is 50"),
    ("a list of sentences for one", lambda _: neuron_view(encoder(), tiny_tokenizer(), ["a", "b"]),
     ValueError, "sentence_a must be one string"),
    ("a text longer than the model", lambda _: neuron_view(encoder(), tiny_tokenizer(), "a " * 20),
     ValueError, "22 tokens, but the model has 16 positions"),
    ("another model", lambda _: neuron_view(torch.nn.Linear(2, 2), tiny_tokenizer(), "a"),
     ValueError, "do not support a Linear"),
    ("a tokenizer with attentions", lambda _: head_view(GOOD, tiny_tokenizer(), "a"),
     TypeError, "tokens must be a list, the 4 tokens of attention, got WordPieceTokenizer: pass (model, tokenizer"),
    ("a tokenizer where the encoder belongs", lambda _: model_view(tiny_tokenizer(), encoder(), "a"),
     TypeError, "attention must be one tensor per layer, got WordPieceTokenizer: pass (model, tokenizer, sentence_a"),
    ("an encoder and no text", lambda _: head_view(encoder(), tiny_tokenizer()),
     ValueError, "sentence_a must be one string, got None"),
    ("an encoder, a text and tokens", lambda _: head_view(encoder(), tiny_tokenizer(), "a", encoder_tokens=WORDS),
     TypeError, "the attentions of an encoder–decoder model cannot be combined with other arguments: pass (model"),
    ("tokens by name without an attention", lambda _: head_view(encoder_tokens=WORDS),
     TypeError, "encoder_tokens without an attention: pass (model, tokenizer, sentence_a"),
    *((f"sentence_b_start for {draw.__name__} of a pair",
       lambda _, draw=draw: draw(encoder(), tiny_tokenizer(), "a", 3),
       ValueError, "sentence_b must be one string, got 3") for draw in VIEWS),
    *((f"the label {text}", drawn(text)) for text in ("from $5 to $10", r"$\bad{$", "$", "\\$1")),
    ("the misspelled option `anotate=True`", lambda _: heatmap([[1.0]], ["a"], ["a"], anotate=True),
     TypeError, "'anotate'"),
]

TABLE = [
    ("a byte order mark, as Excel writes it", table("\ufeffname,ticker\r\nCafé,C\r\n".encode())),
    ("semicolons, as Excel writes them in Europe", table("name;ticker\nCafé;C\n".encode())),
    ("a line for Excel above the header", table("\ufeffsep=;\r\nname;ticker\r\nCafé;C\r\n".encode())),
    ("bars", table("name|ticker\nCafé|C\n".encode())),
    ("a comma in the name of a column", table("name;ticker;a, b, c\nCafé;C;d\n".encode())),
    ("a column too many", table("more,name,ticker\n1,Café,C\n".encode())),
    ("a column that is missing", table(b"name,symbol\nA,B\n"),
     ValueError, "the column 'ticker' is missing from ['name', 'symbol']"),
    ("a row that is too short", table(b"name,ticker\nA\n"),
     ValueError, "row 1 below the header has fewer than 2 columns"),
    ("a row that is too long", table(b"name,ticker\nA,B,C\n"), ValueError, "Expected 2 fields in line 2, saw 3"),
    ("Latin-1", table("name,ticker\nCafé,C\n".encode("latin-1")), ValueError, "save it as CSV, UTF-8"),
    ("an empty file", table(b""), ValueError, "No columns to parse from file"),
    ("a column that is there twice", table(b"name,ticker,name\nA,B,C\n"),
     ValueError, "the header names the column 'name' more than once"),
    ("a stray quote", table(b'name,ticker\n"A,B\n"C,D\n'), ValueError, "cannot be read"),
]
TEXT_ROWS = [(letter, "yes" if letter < "d" else "no") for letter in "abcdef"]
TEXTS_FILE = [
    ("a header with spaces", texts_of("own.csv", "text, label\n" + "".join(f"{a}, {b}\n" for a, b in TEXT_ROWS))),
    ("tabs, and quotes that are no pairs",
     texts_of("own.tsv", "text\tlabel\tnote\n" + "".join(f'{a}\t{b}\t5" x\n' for a, b in TEXT_ROWS))),
    ("tabs, and quotes in the header", texts_of(
        "own.tsv", '"text"\t"label"\n' + "".join(f'"{a}"\t"{b}"\n' for a, b in TEXT_ROWS))),
    ("an index in front", texts_of("own.csv", ",text,label\n" + "".join(f"0,{a},{b}\n" for a, b in TEXT_ROWS))),
    ("\\r as the end of a row", texts_of("own.csv", "text,label\r" + "".join(f"{a},{b}\r" for a, b in TEXT_ROWS))),
    ("JSON Lines", texts_of(
        "own.jsonl", "".join(json.dumps({"text": a, "label": b, "id": 1}) + "\n" for a, b in TEXT_ROWS))),
    ("JSON Lines without a label", texts_of("own.jsonl", '{"text": "a", "class": 1}\n'),
     ValueError, "line 1 has no text or number as 'label': its fields are ['text', 'class']"),
    ("a list in JSON", texts_of("own.json", '[\n{"text": "a", "label": "yes"}\n]\n'),
     ValueError, "line 1 is not a JSON object: write one object per line (JSON Lines), or save the texts as CSV"),
    ("a text of 200,000 characters", lambda folder: texts_of("own.csv", f"text,label\n{'a ' * 100_000},yes\n")(folder),
     ValueError, "has one class, 'yes'"),
    ("a corpus with \\r as the end of a line", corpus("a text\ranother\r")),
    ("a corpus of JSON Lines", corpus('{"text": "a\\ntext", "id": 1}\n\n{"text": "another"}\n{"text": " "}\n')),
    ("a corpus of JSON Lines without texts", corpus('{"content": "a text"}\n'),
     ValueError, "line 1 has no text or number as 'text': its fields are ['content']"),
]
WORDS_FILE = [
    ("no label in a row", labelled(GOOD_WORDS + "alone\n"),
     ValueError, "line 10 has 1 field, ['alone'], not a word and a label"),
    ("an empty label", labelled(GOOD_WORDS + "alone,\n"), ValueError, "line 10 has no label for the word 'alone'"),
    ("a label of spaces", labelled(GOOD_WORDS + "alone,  \n"), ValueError, "line 10 has no label for the word 'alone'"),
    ("a label without its word", labelled(GOOD_WORDS + ",name\n"),
     ValueError, "line 10 has no word for the label 'name'"),
    ("a word of two words", labelled(GOOD_WORDS + "New York,name\n"),
     ValueError, "line 10 has several words, 'New York'; each word needs its own row"),
    ("a row of three fields", labelled(GOOD_WORDS + "Anna,NNP,name\n"),
     ValueError, "line 10 has 3 fields, ['Anna', 'NNP', 'name'], not a word"),
    ("a comma as a word, without quotes", labelled(GOOD_WORDS + ",,O\n"),
     ValueError, "a comma as a word needs double quotes around it"),
    ("one class", labelled("a,O\n\nb,O\n\nc,O\n"), ValueError, "has one class, 'O'"),
    ("no empty row in 100,000 rows", labelled("a,O\nB,name\n" * 50_000),
     ValueError, "has 1 different text in 100,000 rows, too few for three parts: leave an empty row between texts"),
    ("two texts", labelled("a,O\n\nB,name\n"), ValueError, "has 2 different texts in 2 rows"),
    ("one text three times", labelled("a,O\nB,name\n\n" * 3), ValueError, "has 1 different text in 6 rows"),
    ("a class of its own in each text", labelled("a,x\n\nb,y\n\nc,z\n"),
     ValueError, "no text can be set aside, because the classes x, y, z are in one text each"),
    ("a header", labelled("word,label\n" + GOOD_WORDS), ValueError, "begins with a header, 'word' and 'label'"),
    ("word and label that changed places", labelled("O,a\nname,B\n\nO,c\n\nO,d\n"),
     ValueError, "as if they were swapped: write the word first"),
    ("Latin-1 words", labelled(GOOD_WORDS.encode("latin-1")), ValueError, "save it as CSV, UTF-8"),
    ("UTF-16", labelled(GOOD_WORDS.encode("utf-16")), ValueError, "save it as CSV, UTF-8"),
    ("UTF-16 without a mark, all NUL bytes", labelled("a,O\nB,name\n".encode("utf-16-le")),
     ValueError, "save it as CSV, UTF-8"),
    ("a NUL byte", labelled(GOOD_WORDS + "a\0,O\n"), ValueError, "has a NUL byte in it"),
    ("a workbook of Excel", labelled(b"PK\x03\x04\x14\x00\x06\xff\xd8"), ValueError, "save it as CSV, UTF-8"),
    ("an empty file of words", labelled(b""), ValueError, "is empty: write a word and its label into each row"),
    ("empty rows only", labelled("\n\n,\n"), ValueError, "is empty: write a word and its label into each row"),
    ("a stray quote that swallows lines", labelled(GOOD_WORDS + '"a,O\nb",O\n'),
     ValueError, "a stray quote swallows lines"),
    ("a stray quote to the end", labelled(GOOD_WORDS + '"a,O\nb,O\n'),
     ValueError, "cannot be read (unexpected end of data)"),
    ("a folder", word_folder, FileNotFoundError,
     "give the path of a CSV with a word and a label in each row"),
    ("a byte order mark and Windows' line ends, as Excel writes words",
     labelled("\ufeff" + GOOD_WORDS.replace("\n", "\r\n"))),
    ("semicolons, and an empty row of them", labelled(GOOD_WORDS.replace(",", ";").replace("\n\n", "\n;\n"))),
    ("tabs", labelled(GOOD_WORDS.replace(",", "\t"))),
    ("a comma in quotes as a word", labelled(GOOD_WORDS + '",",O\n', [*WORD_TEXTS[:2], ["Mo", "is", ","]])),
    ("quotes among words between tabs", labelled(
        GOOD_WORDS.replace(",", "\t") + '"\tO\n"\tO\n', [*WORD_TEXTS[:2], ["Mo", "is", '"', '"']])),
    ("quotes around labels between tabs", labelled(re.sub(",(.*)", r'\t"\1"', GOOD_WORDS)),
     ValueError, 'line 1 has quotes around the label "name": between tabs or spaces, leave them out'),
    ("spaces between words and labels", labelled(GOOD_WORDS.replace(",", "  "))),
    ("CoNLL-2003: four columns, and marks of documents",
     labelled("-DOCSTART- -X- -X- O\n\n" + GOOD_WORDS.replace(",", " NNP B-NP "))),
    ("marks of documents without an empty row", labelled(GOOD_WORDS.replace("\n\n", "\n-DOCSTART-,O\n"))),
    ("GermEval: numbered words, and comments",
     labelled("#\thttp://a.b\n" + re.sub("(?m)^(.+),", r"1\t\1\t_\t", GOOD_WORDS.replace("\n\n", "\n\n#\tb c\n")))),
    ("CoNLL-2003 with numbered words", labelled(re.sub("(?m)^(.+),", r"1 \1 NNP B-NP ", GOOD_WORDS))),
    ("an empty word between tabs, as in GermEval", labelled(GOOD_WORDS.replace("Bo", "").replace(",", "\t")),
     ValueError, "line 3 has no word for the label 'name'"),
    ("comments of CoNLL-U", labelled("# sent_id = 1\n# text = Anna met\n" + GOOD_WORDS.replace(",", " NNP _ "))),
    ("the sign # as a first word", labelled(
        "#\tO\n" + GOOD_WORDS.replace(",", "\t"), [["#", *WORD_TEXTS[0]], *WORD_TEXTS[1:]])),
    ("all ten columns of CoNLL-U",
     labelled("1-2\tim" + "\t_" * 8 + "\n" + re.sub("(?m)^(.+),", "1\t\\1" + "\t_" * 7 + "\t", GOOD_WORDS)),
     ValueError, "it has the ten columns of CoNLL-U: keep two, the word and its label"),
    ("a row with a space too many", labelled(GOOD_WORDS.replace(",", " ") + "New York name\n"),
     ValueError, "line 10 has 3 fields, ['New', 'York', 'name'], not a word and a label; most rows have 2"),
    ("prose", labelled("It was good.\nSo is this, I think.\n\nIt was not.\n"), ValueError, "not a word and a label"),
    ("empty columns at the end of rows", labelled(GOOD_WORDS.replace(",", "\t").replace("\n", "\t\t\n"))),
    ("no-break spaces in a word and as a word", labelled(GOOD_WORDS + "10\u00a0000,O\n\u00a0,O\n",
                                                          [*WORD_TEXTS[:2], ["Mo", "is", "10\u00a0000", "\u00a0"]])),
    ("labels and words that mean nothing to a spreadsheet", labelled(GOOD_WORDS + "null,NA\nNone,NA\n",
                                                                     [*WORD_TEXTS[:2], ["Mo", "is", "null", "None"]])),
    ("\\r as the end of a line", labelled(GOOD_WORDS.replace("\n", "\r"))),
    *((f"the header {header}", labelled(f"{header}\n{GOOD_WORDS}"), ValueError, "begins with a header, ")
      for header in ("tokens,ner_tags", "token,ner_tag", "word,entity", "Word,Tag", "Token,POS", "a_word,ner type")),
    ("a header of any names, above labels with marks",
     labelled("mot,nature\n" + GOOD_WORDS.replace("name", "B-name")), ValueError, "begins with a header, 'mot' and"),
    ("the header of four columns", labelled("word pos chunk ner\n" + GOOD_WORDS.replace(",", " NNP B-NP ")),
     ValueError, "(columns 1 and 4, between spaces) begins with a header, 'word' and 'ner'"),
    ("JSON Lines of words", labelled('{"tokens": ["a"], "ner_tags": [0]}\n'),
     ValueError, "cannot be read (it contains JSON): save it as CSV, UTF-8, with a word and its label in each row"),
    ("several empty rows, before and after, too", labelled("\n\n" + GOOD_WORDS.replace("\n\n", "\n\n\n") + "\n\n")),
]
# fmt: on
GROUPS = {
    "a checkpoint's settings": SETTINGS,
    "a checkpoint's weights": WEIGHTS,
    "a checkpoint's tokenizer": TOKENIZER,
    "texts and a vocabulary of your own": VOCABULARY,
    "ids, masks and token types": INPUT,
    "a source, and settings for writing": WRITING,
    "labels and settings for training": TRAINING,
    "vectors and an index": VECTORS,
    "what a view or figure draws": VIEW,
    "a table of your own": TABLE,
    "texts of your own and their labels": TEXTS_FILE,
    "words of your own and their labels": WORDS_FILE,
}
CASES = [Case(group, *row) for group, rows in GROUPS.items() for row in rows]


# The summary in CONTRIBUTING.md


def message(case: Case) -> str:
    """What a reader sees, without this machine's folders."""
    with TemporaryDirectory() as folder:
        place = write_checkpoint(Path(folder) / "checkpoint")
        try:
            case.call(place)
        except case.error as error:
            return (
                re.sub(r"\s*\n\s*", " ", str(error)).replace(f"{place}{os.sep}", "").replace(str(place), "the folder")
            )
    raise AssertionError(f"{case.given} raised nothing")


def summary() -> str:
    """A row a group: how many cases, how many are refused, and the first of those with its words."""
    groups = {}
    for case in CASES:
        groups.setdefault(case.group, []).append(case)
    lines = ["| what you bring | cases | such as | what you read |", "|---|---|---|---|"]
    for group, cases in groups.items():
        refused = [case for case in cases if case.error]
        first = refused[0]
        lines.append(f"| {group} | {len(cases)} | {first.given} | {message(first)} |")
    taken = sum(case.error is None for case in CASES)
    rejected = f"{len(CASES) - taken} are rejected with a clear message"
    counts = f"{len(CASES)} cases: {rejected}, {taken} are handled correctly."
    return "\n".join([START, counts, "", *lines, END])


def main() -> None:
    """Write the summary into CONTRIBUTING.md."""
    path = ROOT / "CONTRIBUTING.md"
    text = path.read_text("utf-8")
    path.write_text(text[: text.index(START)] + summary() + text[text.index(END) + len(END) :], "utf-8")


if __name__ == "__main__":
    sys.exit(main())
