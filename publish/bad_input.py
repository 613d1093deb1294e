"""One table of inputs that readers may use, and their outcome: a correct result, or a clear error.

`tests/reference/test_bad_input.py` tries every case, and follows the remedy of each error; `python -m
publish.bad_input` writes their summary into CONTRIBUTING.md.
"""

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import faiss
import matplotlib.pyplot as plt
import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification, BertModel

from publish.tiny import TINY, tiny_tokenizer, write_vocabulary
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.packing import encode_packed
from utils.pretraining import fill_rows, train_vocabulary
from utils.search import embed, hnsw_index, search, search_index
from utils.support import labelled_texts, labelled_words, tables
from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_reference_model, load_tokenizer
from utils.support.checks import check_string
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
PLAIN = {"content": "<new>"} | dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
BYTE_PAIRS = {"type": "BPE", "vocab": {}, "merges": []}
IDS = torch.tensor([[2, 7, 3], [2, 8, 3]])
WRITES = {"is_decoder": True, "add_cross_attention": True, "bos_token_id": 2, "eos_token_id": 3}
SAMPLE = Examples(["a b", "c"], [0, 1])
UNIT = F.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(0)), dim=1)
NAN = UNIT * math.nan
GOOD = [torch.full((1, 3, 4, 4), 0.25)] * 2
WORDS = ["[CLS]", "a", "b", "[SEP]"]


class Case(NamedTuple):
    """An input, the call that receives it in the folder of a tiny checkpoint, and the expected outcome.

    After an error, `remedy` does in the same folder what the message advises, and raises nothing.
    """

    group: str
    given: str
    call: Callable[[Path], object]
    error: type[Exception] | None = None  # None for valid input: the call then returns whether the result is correct
    words: str = ""
    remedy: Callable[[Path], object] | None = None


# The tiny checkpoint, and ways to change it


def write_checkpoint(folder: Path) -> Path:
    """A classifier of random weights with a vocabulary of 50 tokens, as transformers saves it."""
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(**TINY)).save_pretrained(folder)
    write_vocabulary(folder, [*tiny_tokenizer().vocab])
    return folder


def save_again(reader: Callable[[Path], object] | None = None):
    """Load the checkpoint after it has been saved again in place of the folder."""

    def call(folder: Path):
        shutil.rmtree(folder)
        return (reader or load)(write_checkpoint(folder))

    return call


def each(*calls: Callable[[Path], object]):
    """Do one after another, such as the several things that a message offers."""
    return lambda folder: all(call(folder) is not False for call in calls)


def load(folder: Path) -> TransformerEncoder:
    """Everything that a checkpoint holds, read as the series reads it."""
    WordPieceTokenizer.from_checkpoint(str(folder))
    return TransformerEncoder.from_checkpoint(str(folder))


@cache
def embedded() -> TransformerEncoder:
    """The embedded checkpoint, which many messages offer."""
    return load(DEFAULT_CHECKPOINT)


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


def twice(folder: Path):
    """Load a folder with shards and a single file, of which one is a rest."""
    weights = (folder / "model.safetensors").read_bytes()
    (shard(folder, "a.safetensors") / "model.safetensors").write_bytes(weights)
    return load(folder)


def add_prefix(prefix: str, weights: dict) -> None:
    """Put a prefix before all names of weights."""
    for name in list(weights):
        weights[f"{prefix}{name}"] = weights.pop(name)


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


def distances(metric: int = faiss.METRIC_L2) -> faiss.Index:
    """Return an index of distances in place of products."""
    index = faiss.IndexFlat(8, metric)
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


def rows_of(folder: Path, content: bytes | str) -> list[dict[str, str]]:
    """Return the rows of a CSV file with this content."""
    path = folder / "companies.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return tables.read_csv(path, ("name", "ticker"))


def table(content: bytes):
    """Whether a CSV file with these bytes has the row that it should have."""
    return lambda folder: rows_of(folder, content)[0] == {"name": "Café", "ticker": "C"}


GOOD_WORDS = "Anna,name\nmet,O\nBo,name\n\nCafé,O\nin,O\n\nMo,name\nis,O\n"
WORD_TEXTS = [["Anna", "met", "Bo"], ["Café", "in"], ["Mo", "is"]]


def more(*words: str) -> list[list[str]]:
    """Return the texts of GOOD_WORDS, the last of which has these words, too."""
    return [*WORD_TEXTS[:2], [*WORD_TEXTS[2], *words]]


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


def lines_of(folder: Path, content: bytes | str, column: str = "text") -> list[str]:
    """Return the texts of a file to pretrain on."""
    path = folder / "corpus"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [*tables.read_texts([path], column)]


def corpus(content: bytes | str, column: str = "text"):
    """Whether a file to pretrain on has the texts that it should have."""
    return lambda folder: lines_of(folder, content, column) == ["a text", "another"]


def word_folder(folder: Path):
    """The path of a folder where a file of words belongs."""
    return labelled_words.read_words(folder)


# The table: what is given, what is done with it, and the error with some of its words, or nothing if it is taken right.
# First rows that differ in one place only.

# fmt: off
COUNTS = ("num_attention_heads", "hidden_size", "vocab_size", "intermediate_size")
CONFIGS = [  # a setting, its value, words of the error, and the values that its remedy allows
    *((field, value, f"{field} must be a positive integer, got {value}", TINY[field])
      for field in COUNTS for value in (-1, 0)),
    ("max_position_embeddings", 0, "max_position_embeddings must be a positive integer, got 0", 16),
    ("hidden_size", "12", "expected int, got str (value: '12')): correct this setting", 12),
    ("hidden_size", 12.5, "expected int, got float (value: 12.5)): correct this setting", 12),
    ("num_attention_heads", 5, "hidden_size=12 is not divisible by num_attention_heads=5: change one of them", 4),
    ("hidden_dropout_prob", 1.5, "hidden_dropout_prob must be a number from 0 to 1, got 1.5", 0.0, 1.0),
    ("attention_probs_dropout_prob", math.nan, "attention_probs_dropout_prob must be a number from 0 to 1, got nan",
     0.0, 1.0),
    *(("layer_norm_eps", eps, f"layer_norm_eps must be a number from 0 to 1, got {eps}", 0.0, 1.0)
      for eps in (math.nan, -1.0)),
    *(("initializer_range", std, f"initializer_range must be a number from 0 to 1, got {std}", 0.0, 1.0)
      for std in (math.nan, math.inf, -0.1)),
    ("pad_token_id", 50, "pad_token_id must be an integer from 0 to 49, got 50", 0, 49),
    *(("num_hidden_layers", count, f"num_hidden_layers must be an integer from 1 to 1,000, got {count}", 2)
      for count in (-1, 0, 10**9)),
    ("hidden_act", [4], "expected str, got list (value: [4])): correct this setting", "gelu"),
    ("intermediate_size", 10**15,
     f"GB of memory are free: use a smaller hidden_size (now 12) or intermediate_size (now {10**15}), or fewer", 20),
    ("hidden_act", "silu", 'hidden_act="silu" is not supported: use one of gelu, gelu_new, relu',
     "gelu", "gelu_new", "relu"),
    ("is_decoder", True, "is_decoder=True is not supported: use False", False),
    ("add_cross_attention", True, "add_cross_attention=True is not supported: use False", False),
    ("position_embedding_type", "relative_key",
     "position_embedding_type='relative_key' is not supported: use 'absolute'", "absolute"),
    ("pruned_heads", {"0": [1]}, "is not supported: use {}", {}),
    ("model_type", ..., 'config.json names no model_type: write "model_type": "bert" into it if it is one', "bert"),
    ("hidden_size", 24, "weights do not fit the configuration; mis-shaped", 12),
    ("num_hidden_layers", 3, "missing: layers.2", 2),
    ("num_hidden_layers", 1, "unexpected: layers.1", 2),
]
BROKEN_JSON = [
    ("an empty file", b"", "config.json cannot be read"),
    ("half a file", b'{"model_type": "be', "config.json cannot be read"),
    ("a list", b"[]", "config.json cannot be read ('list' object"),
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
NOT_TENSORS = [  # an argument, what it is given, and all arguments as the remedy has them
    ("input_ids", "ids", IDS.tolist(), {"input_ids": torch.tensor(IDS.tolist())}),
    ("input_ids", "ids", IDS.numpy(), {"input_ids": torch.tensor(IDS.numpy())}),
    ("input_ids", "a tokenizer's batch", {"input_ids": IDS}, {"input_ids": IDS}),
    ("input_ids", "a text", "a film", tiny_tokenizer()("a film")),
    ("attention_mask", "a mask", [[1, 1, 1], [1, 1, 1]], {"attention_mask": torch.tensor([[1, 1, 1], [1, 1, 1]])}),
    ("token_type_ids", "token types", [[0, 0, 0], [0, 0, 0]], {"token_type_ids": torch.zeros(2, 3).long()}),
]

# Then the groups

EMBEDDED = each(lambda _: embedded(), save_again())  # or a local folder with a BERT checkpoint
SETTINGS = [
    *((f"`{name}: {value!r}`" if value is not ... else f"no `{name}`", alter("config.json", **{name: value}),
       ValueError, words, each(*(alter("config.json", **{name: right}) for right in valid)))
      for name, value, words, *valid in CONFIGS),
    ("`model_type: 'roberta'`", alter("config.json", model_type="roberta"),
     ValueError, 'model_type="roberta", which is not supported here, but "bert" is: use the embedded', EMBEDDED),
    ("`quantization_config: {'bits': 8}`", alter("config.json", quantization_config={"bits": 8}),
     ValueError, "quantized weights (quantization_config) are not supported: save the model as float32", save_again()),
    *((f"config.json: {given}", rewrite("config.json", content), ValueError, words, save_again())
      for given, content, words in BROKEN_JSON),
    *((f"`{name}: {value!r}`, which says how a program used it", loads(alter("config.json", **{name: value})))
      for name, value in RUNTIME_SETTINGS),
    ("a folder without config.json", lambda folder: (folder / "config.json").unlink() or load(folder),
     ValueError, "is not a checkpoint, because it has no config.json: use the embedded", EMBEDDED),
    ("a name that is neither a folder nor on the Hub", lambda folder: load(folder / "nowhere"),
     OSError, "is not a local folder and could not be downloaded", EMBEDDED),
    ("an adapter next to the model", alter("adapter_config.json", peft_type="LORA"),
     ValueError, "holds an adapter (adapter_config.json), which is not applied here: merge it into its model",
     save_again()),
]

WEIGHTS = [
    ("NaN in one weight", with_weights(fill(math.nan)),
     ValueError, "layers.0.attention.query.weight contains NaN or inf: use weights from before training went wrong",
     with_weights(fill(0.1))),
    *((f"{value} in `{name}`", with_weights(fill(value, name)), ValueError, "contains NaN or inf: use weights from",
       with_weights(fill(0.1, name)))
      for value in (math.inf, -math.inf, math.nan) for name in (WORD_EMBEDDINGS, LAYER_NORM)),
    ("NaN in the head of a classifier", with_weights(fill(math.nan, "classifier.weight"), classify),
     ValueError, "classifier.weight contains NaN or inf",
     with_weights(fill(0.1, "classifier.weight"), classify)),
    *((f"weights stored as {dtype}", with_weights(cast(dtype)),
       ValueError, ": save the model with float32 weights",
     save_again())
      for dtype in (torch.int8, torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn)),
    *((f"weights stored as {dtype}", equals_before(cast(dtype), tolerance))
      for dtype, tolerance in [(torch.float64, 1e-6), (torch.float16, 0.02), (torch.bfloat16, 0.1)]),
    ("the names of old checkpoints, LayerNorm.gamma", equals_before(old_names, 1e-7)),
    ("a weight too few", with_weights(lambda weights: weights.pop(QUERY)),
     ValueError, "missing: layers.0.attention.query.weight",
     save_again()),
    ("a layer too many", with_weights(put(QUERY.replace("layer.0", "layer.7"), 3)),
     ValueError, "unexpected: layers.7",
     save_again()),
    ("a weight of another shape", with_weights(put(QUERY, 12, 11)),
     ValueError, "mis-shaped: layers.0.attention.query.weight (12, 11) for (12, 12)",
     save_again()),
    ("a weight under two names", with_weights(put(QUERY.removeprefix("bert."), 12, 12)),
     ValueError, "a second time: save the model again",
     save_again()),
    ("no pooler, which no layer needs", loads(with_weights(without_pooler))),
    ("an empty file", rewrite("model.safetensors", b""), ValueError, "model.safetensors cannot be read", save_again()),
    ("half a file", half_the_weights, ValueError, "model.safetensors cannot be read", save_again()),
    ("pickled weights only", pickled_weights,
     ValueError, "only pickled weights (pytorch_model.bin), which can run code",
     save_again()),
    ("no weights", lambda folder: (folder / "model.safetensors").unlink() or load(folder),
     ValueError, "has no weights",
     save_again()),
    ("an index that names a pickled file, a bomb", pickled_shard,
     ValueError, "names 'pytorch_model.bin', which is not a safetensors file",
     save_again()),
    ("an index that leads out of the folder", lambda folder: load(shard(folder, f"../{folder.name}-1.safetensors")),
     ValueError, "which is not a safetensors file in its folder: save the model again", save_again()),
    ("an index with an absolute path", lambda folder: load(shard(folder, f"{folder}-2.safetensors")),
     ValueError, "which is not a safetensors file in its folder: save the model again", save_again()),
    ("the Hub's cache, with its links", hub_cache),
    ("two shards", loads(lambda folder: load(shard(folder, "a.safetensors", "b.safetensors")))),
    ("a classifier in two shards", loads(lambda folder: classify(shard(folder, "a.safetensors", "b.safetensors")))),
    ("NaN in a classifier that is saved over a good one", save_broken,
     ValueError, "encoder.layers.0.attention.query.weight contains NaN or inf",
     lambda folder: classify(folder).save(folder)),
    ("a shard that is missing", lost_shard, ValueError, "has no a.safetensors, which", save_again()),
    *((f"an index that holds {content:.20}", index(content), ValueError, words, save_again())
      for content, words in BROKEN_INDEX),
    ("a state dict with NaN", take_state_dict(lambda weight: weight * math.nan), ValueError, "contains NaN or inf",
     take_state_dict(lambda weight: weight)),
    ("a state dict of whole numbers", take_state_dict(torch.Tensor.long),
     ValueError, "has the type torch.int64: save the model with float32 weights",
     take_state_dict(lambda weight: weight.long().float())),
    ("weights of an earlier save next to shards", twice,
     ValueError, "has weights twice, in model.safetensors and in the files that model.safetensors.index.json names: de",
     lambda folder: (folder / "model.safetensors.index.json").unlink() or load(folder)),
    *((f"the prefix {prefix} before all names", with_weights(partial(add_prefix, prefix)),
       ValueError, f"has the weight {prefix}", save_again())
      for prefix in ("module.", "_orig_mod.", "_orig_mod.module.")),
]

SIZES = "load both from the same checkpoint, and look for added tokens, and for empty or repeated lines in vocab.txt"
SAME = words(*tiny_tokenizer().vocab)  # as the model's
TOKENIZER = [
    ("a vocabulary smaller than the model's", words(*tiny_tokenizer(40).vocab),
     ValueError, f"has 40 tokens with ids up to 39, but the model's vocab_size is 50: {SIZES}", SAME),
    ("rows for 40 tokens, filled up to 48", lambda folder: BertConfig(**TINY | {"vocab_size": 48}).save_pretrained(
        folder) or write_vocabulary(folder, [*tiny_tokenizer(40).vocab]) or len(load_tokenizer(folder)) == 40),
    ("a folder without vocabulary", lambda folder: (folder / "vocab.txt").unlink() or load(folder),
     ValueError, "has no vocab.txt or tokenizer.json: save the tokenizer of the model there, too", SAME),
    ("a vocabulary larger than the model's", words(*tiny_tokenizer(60).vocab),
     ValueError, "has 60 tokens with ids up to 59", SAME),
    ("a vocabulary with a token twice", words(*tiny_tokenizer(49).vocab, "a"), ValueError, SIZES, SAME),
    *((f"an added token, {setting}", alter("tokenizer_config.json", **{setting: value}),
       ValueError, f"has 51 tokens with ids up to 50, but the model's vocab_size is 50: {SIZES}",
       alter("tokenizer_config.json", **{setting: ...}))
      for setting, value in (("additional_special_tokens", ["<new>"]), ("added_tokens_decoder", {"50": PLAIN}))),
    *((f"another special token, {setting}", alter("tokenizer_config.json", **{setting: value}),
       ValueError, "special tokens that BERT does not have, ['17']: use one with BERT's five special tokens",
       alter("tokenizer_config.json", **{setting: ...}))
      for setting, value in (("additional_special_tokens", ["17"]), ("mask_token", "17"), ("pad_token", "17"))),
    ("a token in added_tokens.json",
     rewrite("added_tokens.json", '{"zz": 49}', words(*tiny_tokenizer(49).vocab)),
     ValueError, "special tokens that BERT does not have, ['zz']: use one with BERT's five special tokens",
     lambda folder: (folder / "added_tokens.json").unlink() or SAME(folder)),
    *((f"a tokenizer with `{setting}: {value!r}`", alter("tokenizer_config.json", **{setting: value}),
       ValueError, words, each(alter("tokenizer_config.json", **{setting: ...}), lambda _: embedded()))
      for setting, value, words in (
          ("strip_accents", False, "a normalizer that is not supported"),
          ("tokenize_chinese_chars", False, "a normalizer that is not supported"),
          ("tokenizer_class", "GPT2Tokenizer", "has a BPE model, not BERT's WordPiece: use a checkpoint"))),
    *((f"{file}: {given}", rewrite(file, content), ValueError, "cannot be read", save_again())
      for file, given, content in (
          ("tokenizer_config.json", "a list", "[]"), ("tokenizer.json", "an empty file", b""),
          ("tokenizer.json", "no parts", "{}"), ("vocab.txt", "bytes that are no UTF-8", b"\xff\xfe"))),
    ("tokenizer.json as the official tokenizer writes it", tokenizer_json(lambda parts: None)),
    ("tokenizer.json with another mask token", tokenizer_json(lambda parts: parts["added_tokens"].append(ADDED)),
     ValueError, f"has 51 tokens with ids up to 50, but the model's vocab_size is 50: {SIZES}", save_again()),
    ("tokenizer.json of byte pairs", tokenizer_json(lambda parts: parts.update(model=BYTE_PAIRS)),
     ValueError, "has a BPE model, not BERT's WordPiece: use a checkpoint with BERT's own tokenizer", save_again()),
]

VOCABULARY = [
    ("a list for a vocabulary", lambda _: WordPieceTokenizer(SPECIAL),
     TypeError, "must be a dictionary from token to id, got list",
     lambda _: WordPieceTokenizer({token: number for number, token in enumerate(SPECIAL)})),
    ("None for a vocabulary", lambda _: WordPieceTokenizer(None),
     TypeError, "must be a dictionary", lambda _: WordPieceTokenizer(tiny_tokenizer().vocab)),
    ("a vocabulary without [SEP] and [MASK]", lambda _: WordPieceTokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}),
     ValueError, "the vocabulary lacks [SEP], [MASK]: pass BERT's complete vocabulary",
     lambda _: WordPieceTokenizer(tiny_tokenizer().vocab)),
    *((f"a token with the id {wrong!r}",
       lambda _, wrong=wrong: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": wrong}),
       ValueError, f"the vocabulary gives 'n' the id {wrong!r}: ids must be integers of at least 0",
       lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": 50})) for wrong in (-1, 50.0)),
    *((f"the id {wrong}, to decode", lambda _, wrong=wrong: tiny_tokenizer().decode([5, wrong]),
       ValueError, f"id {wrong} is outside the vocabulary of 50 tokens",
       lambda _: tiny_tokenizer().decode([5, 49])) for wrong in (-1, -100)),
    ("two tokens with one id", lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 7}),
     ValueError, "gives several tokens the id 7: use each id once",
     lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 50})),
    *((f"a text that is {text!r}", lambda _, text=text: tiny_tokenizer().tokenize(text),
       TypeError, f"text must be a string, got {type(text).__name__}: pass one string",
       lambda _: tiny_tokenizer().tokenize("a")) for text in (None, 7, b"a", ["a"])),
    *((f"texts that are {texts!r}", lambda _, texts=texts: tiny_tokenizer()(texts),
       TypeError, "texts must be a string or a list of strings",
       each(lambda _: tiny_tokenizer()("a"), lambda _: tiny_tokenizer()(["a"]))) for texts in (None, 7, {"a"})),
    ("a dictionary to learn a vocabulary from", lambda _: train_vocabulary({"a": 1}, 80),
     TypeError, "texts must be a list or stream of strings, got dict",
     each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80))),
    ("an empty stream to learn a vocabulary from", lambda _: train_vocabulary(iter([]), 80),
     ValueError, "got no texts: pass a list",
     each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80))),
    ("a text of six million letters", lambda _: tiny_tokenizer().encode("a " * 3_000_000),
     ValueError, "text has 6,000,000 characters: split it into parts of at most 5,000,000",
     lambda _: check_string("a " * 2_500_000) or tiny_tokenizer().encode("a")),
    ("no texts", lambda _: tiny_tokenizer()([]),
     ValueError, "got 0 texts but 0 pairs: pass at least one text", lambda _: tiny_tokenizer()(["a"])),
    ("two texts and one pair", lambda _: tiny_tokenizer()(["a", "b"], ["c"]),
     ValueError, "got 2 texts but 1 pairs: pass at least one text, and one pair per text",
     lambda _: tiny_tokenizer()(["a", "b"], ["c", "d"])),
    ("`max_length=1`", lambda _: tiny_tokenizer()("a", max_length=1),
     ValueError, "max_length=1 is too small for 2 special tokens: use at least 2",
     lambda _: tiny_tokenizer()("a", max_length=2)),
    ("an id beyond the vocabulary, to decode", lambda _: tiny_tokenizer().decode([50]),
     ValueError, "id 50 is outside the vocabulary of 50 tokens",
     lambda _: tiny_tokenizer().decode([49])),
    ("an empty text", lambda _: tiny_tokenizer().encode("") == [2, 3]),
    ("a text of a million letters", lambda _: tiny_tokenizer().encode("a" * 10**6) == [2, 1, 3]),
    ("half a surrogate pair", lambda _: tiny_tokenizer().encode("a \ud800") == [2, 5, 3]),
    ("half a surrogate pair among texts to learn from",
     lambda _: fill_rows(["a \ud800b c"], tiny_tokenizer(), 5).tolist() == [[2, 5, 6, 7, 3]]),
    *((f"`probability={share!r}`", lambda _, share=share: mask_tokens(IDS, tiny_tokenizer(), share),
       ValueError, "probability must be between 0 and 1, got ", lambda _: mask_tokens(IDS, tiny_tokenizer(), 0.15))
      for share in (0, 1, math.nan, True, "0.15")),
    ("too little text for a row", lambda _: fill_rows(["a"], tiny_tokenizer(), 8),
     ValueError, "the texts have 2 tokens, and a row takes 6: use more, or shorter rows",
     each(lambda _: fill_rows(["a b c d e f"], tiny_tokenizer(), 8), lambda _: fill_rows(["a"], tiny_tokenizer(), 3))),
    ("rows of two tokens", lambda _: fill_rows(["a"], tiny_tokenizer(), 2),
     ValueError, "length must be an integer of at least 3, got 2",
     lambda _: fill_rows(["a"], tiny_tokenizer(), 3)),
    *((f"a vocabulary of {size!r} tokens to learn", lambda _, size=size: train_vocabulary(["a"], size),
       ValueError, "size must be an integer from 41 to 1,000,000",
       each(lambda _: train_vocabulary(["a"], 41), lambda _: train_vocabulary(["a"], 10**6)))
      for size in (40, 10**9, "many")),
    ("two pairs for one text", lambda _: tiny_tokenizer()(["a"], ["b", "c"]),
     ValueError, "got 1 texts but 2 pairs: pass at least one text, and one pair per text",
     lambda _: tiny_tokenizer()(["a"], ["b"])),
    ("`max_length=2` for a pair", lambda _: tiny_tokenizer()("a", "b", max_length=2),
     ValueError, "max_length=2 is too small for 3 special tokens: use at least 3",
     lambda _: tiny_tokenizer()("a", "b", max_length=3)),
    ("rows of special tokens only", lambda _: mask_tokens(torch.tensor([[2, 1, 3]]), tiny_tokenizer()),
     ValueError, "input_ids contain only special tokens: use rows of text",
     lambda _: mask_tokens(torch.tensor([[2, 5, 3]]), tiny_tokenizer())),
]

MASKED = "masks every token of a row: leave at least one 1 in each"
ODD_MASK = "contains NaN or less than 0: use 1 for real tokens and 0 for padding"
INPUT = [
    *((f"the id {wrong} of 50", encode(input_ids=torch.tensor([[2, wrong, 3]])),
       ValueError, f"input_ids contain {wrong}, but valid ids are 0 to 49", encode(input_ids=torch.tensor([[0, 49]])))
      for wrong in (50, -1, 10**9)),
    ("ids of the shape (3,)", encode(input_ids=IDS[0]),
     ValueError, "input_ids must be (B, S), got (3,): use ids[None] for a single", encode(input_ids=IDS[0][None])),
    *((f"ids of the shape {shape}", encode(input_ids=torch.ones(shape).long()),
       ValueError, f"input_ids must be (B, S), got {shape}: use a row of ids for each text", encode())
      for shape in [(0, 3), (1, 0), (1, 1, 3)]),
    *((f"ids of {dtype}", encode(input_ids=IDS.to(dtype)),
       ValueError, f"input_ids must contain integers, got {dtype}: convert with .long()",
       encode(input_ids=IDS.to(dtype).long())) for dtype in (torch.float32, torch.bool, torch.float16)),
    ("ids of torch.int32", same(input_ids=IDS.int())),
    *((f"{name}, a {type(given).__name__}", encode(**{field: given}), TypeError,
       f"{field} must be a tensor, got {type(given).__name__}: use torch.tensor with a row for each text, or **batch",
       encode(**right)) for field, name, given, right in NOT_TENSORS),
    ("17 tokens for 16 positions", encode(input_ids=torch.ones(1, 17).long()),
     ValueError, "17 tokens, but only 16 positions: tokenize with max_length=16",
     encode(**tiny_tokenizer()("a " * 17, max_length=16))),
    *((f"the token type {wrong} of 2", encode(token_type_ids=torch.tensor([[0, wrong, 0], [0, 0, 0]])),
       ValueError, f"token_type_ids contain {wrong}, but valid ids are 0 to 1",
       encode(token_type_ids=torch.tensor([[0, 1, 0], [0, 0, 0]]))) for wrong in (2, -1)),
    ("the id 50 of 50, packed", lambda _: encode_packed(encoder(), torch.tensor([[2, 50, 3]])),
     ValueError, "input_ids contain 50, but valid ids are 0 to 49",
     lambda _: encode_packed(encoder(), torch.tensor([[0, 49, 3]]))),
    ("token types of another shape", encode(token_type_ids=torch.zeros(1, 2).long()),
     ValueError, "token_type_ids must have the shape (2, 3) of the input",
     encode(token_type_ids=torch.zeros(2, 3).long())),
    ("token types of torch.float32", encode(token_type_ids=torch.zeros(2, 3)),
     ValueError, "token_type_ids must contain integers, got torch.float32: convert with .long()",
     encode(token_type_ids=torch.zeros(2, 3).long())),
    *((f"a mask of the shape {shape}", encode(attention_mask=torch.ones(shape)),
       ValueError, "attention_mask must have the shape (2, 3) of the input", encode(attention_mask=torch.ones(2, 3)))
      for shape in [(2, 4), (3,), (2, 1, 1, 3)]),
    ("a mask that hides a whole row", encode(attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])),
     ValueError, f"attention_mask {MASKED}", encode(attention_mask=torch.tensor([[1, 1, 1], [1, 0, 0]]))),
    ("a mask with NaN in it", encode(attention_mask=torch.tensor([[1, 1, torch.nan], [1, 1, 1]])),
     ValueError, f"attention_mask {ODD_MASK}", encode(attention_mask=torch.tensor([[1, 1, 0], [1, 1, 1]]))),
    ("a mask to be added to scores", encode(attention_mask=torch.tensor([[0, 0, -10_000], [0, 0, 0]])),
     ValueError, f"attention_mask {ODD_MASK}", encode(attention_mask=torch.tensor([[1, 1, 0], [1, 1, 1]]))),
    *((f"a mask of {dtype}", same(attention_mask=torch.ones(2, 3).to(dtype)))
      for dtype in (torch.bool, torch.float32, torch.int64, torch.uint8)),
    ("meta ids", encode(input_ids=IDS.to("meta")),
     ValueError, "input_ids must have values, but a tensor on the device meta has none: create it on a CPU", encode()),
    ("sparse ids", encode(input_ids=IDS.to_sparse()),
     ValueError, "input_ids must be a dense tensor, got torch.sparse_coo: convert it",
     encode(input_ids=IDS.to_sparse().to_dense())),
    ("a mask of complex numbers", encode(attention_mask=torch.ones(2, 3).to(torch.complex64)),
     ValueError, "attention_mask must contain real numbers, got torch.complex64: convert with .real.float()",
     encode(attention_mask=torch.ones(2, 3).to(torch.complex64).real.float())),
    ("an index tuple for `where`", lambda _: masked_lm()(IDS, where=(torch.tensor([0]), torch.tensor([1]))),
     TypeError, "where must be a tensor, got tuple: use torch.tensor with a row for each text",
     lambda _: masked_lm()(IDS, where=torch.tensor([[False, True, False], [False, False, False]]))),
    *((f"ids of {dtype} to be masked", lambda _, dtype=dtype: mask_tokens(IDS.to(dtype), tiny_tokenizer()),
       ValueError, f"input_ids must contain integers, got {dtype}: convert with .long()",
       lambda _, dtype=dtype: mask_tokens(IDS.to(dtype).long(), tiny_tokenizer()))
      for dtype in (torch.float32, torch.int8)),
    ("ids of torch.float32 to be counted", lambda _: NeighbourCounts(IDS.float(), 50),
     ValueError, "rows must contain integers, got torch.float32: convert with .long()",
     lambda _: NeighbourCounts(IDS.float().long(), 50)),
    ("int32 ids of a large vocabulary to be counted",
     lambda _: counted(IDS.int() + 69_990)),
    ("no mask, packed", lambda _: encode_packed(encoder(), IDS).shape == (2, 3, 12)),
]

SOURCE = decode(encoder_hidden_states=torch.zeros(2, 4, 12))
WRITING = [
    ("no source", decode(), ValueError,
     "encoder_hidden_states=None, but this decoder looks at a source: pass the encoder's last_hidden_state",
     lambda _: pair().decoder(IDS, encoder_hidden_states=encoder()(IDS).last_hidden_state)),
    *((f"a source of the shape {shape}", decode(encoder_hidden_states=torch.zeros(shape)),
       ValueError, f"encoder_hidden_states must be (2, S, 12), a source for each text, got {shape}", SOURCE)
      for shape in ((2, 4, 6), (1, 4, 12))),
    ("a source without a real token", write(attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])),
     ValueError, f"attention_mask {MASKED}", write(attention_mask=torch.tensor([[1, 1, 1], [1, 0, 0]]))),
    ("the id 50 of 50 in the source", write(input_ids=IDS + 47), ValueError, "but valid ids are 0 to 49", write()),
    *((f"`max_length={length!r}`", write(max_length=length), ValueError, "must be an integer from 2 to 16",
       each(write(max_length=2), write(max_length=16))) for length in (1, 0, 17, 2.5, None)),
    *((f"`num_beams={beams!r}`", write(num_beams=beams), ValueError, "must be an integer from 1 to 25",
       each(write(num_beams=1), write(num_beams=25))) for beams in (0, -1, 1.5, 26)),
    *((f"`{name}: {wrong!r}`", write({name: wrong}), ValueError,
       f"{name} must be an integer from 0 to 49, got {wrong!r}", each(write({name: 0}), write({name: 49})))
      for name in ("bos_token_id", "eos_token_id") for wrong in (None, 50)),
    *((f"`pad_token_id={wrong}`, set after the decoder was built", write_with_pad(wrong),
       ValueError, f"pad_token_id must be an integer from 0 to 49, got {wrong}",
       each(write_with_pad(0), write_with_pad(49))) for wrong in (-1, 10**9)),
    *((f"the cache of another {what}", go_on(**change), ValueError,
       "the cache was filled with another text, source or decoder: pass the same ones, or call new_cache()", go_on())
      for what, change in (("source", {"source": 1.0}), ("text", {"shift": 1}))),
    ("an encoder and a decoder of different widths", write({"encoder": {"hidden_size": 24}}),
     ValueError, "hidden_size is 24 in the encoder, 12 in the decoder: use one",
     write({"encoder": {"hidden_size": 24}, "hidden_size": 24})),
    *((f"a source with {wrong}", decode(encoder_hidden_states=torch.full((2, 4, 12), wrong)),
       ValueError, "encoder_hidden_states contain NaN or inf: look for what went wrong in the encoder", SOURCE)
      for wrong in (math.nan, math.inf)),
    *((f"{given} for the source",
       decode(encoder_hidden_states=torch.zeros(2, 4, 12), encoder_attention_mask=mask), ValueError, words,
       decode(encoder_hidden_states=torch.zeros(2, 4, 12), encoder_attention_mask=torch.eye(2, 4)))
      for given, mask, words in (
          ("a mask of another shape", torch.ones(2, 3), "encoder_attention_mask must have the shape (2, 4)"),
          ("a mask that hides a row", torch.zeros(2, 4), f"encoder_attention_mask {MASKED}"),
          ("a mask with NaN", torch.full((2, 4), math.nan), f"encoder_attention_mask {ODD_MASK}"))),
    ("a text of 17 tokens for 16 positions", lambda _: pair()(IDS, None, torch.ones(2, 17).long()),
     ValueError, "17 tokens, but only 16 positions: tokenize with max_length=16",
     lambda _: pair()(IDS, None, torch.ones(2, 16).long())),
    ("word embeddings that are not tied", write({"tie_word_embeddings": False}),
     ValueError, "tie_word_embeddings=False is not supported: use tie_word_embeddings=True",
     write({"tie_word_embeddings": True})),
    ("a decoder that does not use a source", write({"add_cross_attention": False}),
     ValueError, "this decoder does not use a source: leave it out, or use add_cross_attention=True",
     each(lambda _: pair(add_cross_attention=False).decoder(IDS), write({"add_cross_attention": True}))),
    ("an encoder for the decoder", write({"is_decoder": False}),
     ValueError, "is_decoder=False makes an encoder, but this is a decoder: use is_decoder=True",
     write({"is_decoder": True})),
]

GOOD_SETTINGS = {"seed": 0, "patience": 0, "max_length": 3, "batch_size": 1}
CLASS = tune(train=Examples(["a"], [1]))
TRAINING = [
    *((f"the label {label}{more}", tune(train=Examples(["a"], [label])),
       ValueError, f"labels must be from 0 to 1, got {label} for text 0", CLASS)
      for label, more in ((2, " of two classes"), (-1, ""))),
    *((f"the label {label!r}", tune(train=Examples(["a"], [label])), TypeError,
       f"labels must be integers, got {kind}: {label!r} of text 0: use the number of its class", CLASS)
      for label, kind in [("1", "str"), (None, "NoneType"), (0.5, "float")]),
    ("two texts and one label", lambda _: Examples(["a", "b"], [0]),
     ValueError, "got 2 texts but 1 labels: pass one label per text", lambda _: Examples(["a", "b"], [0, 1])),
    ("an empty text among them", tune(train=Examples(["a", " "], [0, 1])),
     ValueError, "text 1 is empty: leave it out", tune(train=Examples(["a"], [0]))),
    ("a pair of lists instead of Examples", tune(train=(["a"], [0])),
     TypeError, "examples must be Examples(texts, labels), got tuple", tune(train=Examples(["a"], [0]))),
    *((f"no texts as `{name}`", tune(**{name: Examples([], [])}),
       ValueError, "got an empty list: pass at least one text", tune(**{name: Examples(["a"], [0])}))
      for name in ("train", "validation")),
    ("`max_length=2` to train", tune(max_length=2), ValueError,
     "max_length=2 is too small for 2 special tokens and 1 of text: use at least 3", tune(max_length=3)),
    *((f"`epochs={epochs}`", tune(epochs=epochs), ValueError, "epochs must be an integer from 1 to 10,000, got ",
       tune(epochs=1)) for epochs in (0, 2**70)),
    ("`batch_size=0`", tune(batch_size=0), ValueError, "batch_size must be a positive integer, got 0",
     tune(batch_size=1)),
    *((f"`learning_rate={rate}`", tune(learning_rate=rate), ValueError,
       f"learning_rate must be between 0 and inf, got {rate}: use a small one such as 5e-5", tune(learning_rate=5e-5))
      for rate in (0.0, math.nan, -1.0)),
    *((f"`{name}={value!r}`", tune(**{name: value}), ValueError, f"{name} must be {kind}, got {value!r}",
       tune(**{name: GOOD_SETTINGS[name]}))
      for name, value, kind in (
          *(("seed", wrong, "an integer from 0 to 1,000,000,000") for wrong in (0.5, "a")),
          ("patience", None, "an integer of at least 0"), ("max_length", 2.5, "an integer of at least 3"),
          ("batch_size", 2.5, "a positive integer"))),
    ("a tokenizer of another model", tune(tokenizer=tiny_tokenizer(40)), ValueError, SIZES, tune()),
    *((f"{given} where the tokenizer belongs", tune(tokenizer=wrong),
       TypeError, "tokenizer must be a WordPieceTokenizer or transformers' own, got ",
       each(tune(), lambda folder: tune(tokenizer=load_tokenizer(folder))(folder)))
      for given, wrong in (("a text", "a text"), ("a function without a vocabulary", len))),
    ("one text to classify, not a list", lambda _: predict(classifier(), tiny_tokenizer(), "a film"),
     TypeError, "wrap one text in a list", lambda _: predict(classifier(), tiny_tokenizer(), ["a film"])),
    ("one class", lambda _: TransformerForSequenceClassification(BertConfig(**TINY, num_labels=1)),
     ValueError, "num_labels must be an integer of at least 2, got 1",
     lambda _: TransformerForSequenceClassification(BertConfig(**TINY, num_labels=2))),
    *((f"a checkpoint with `problem_type: {kind!r}`", alter("config.json", classify, problem_type=kind),
       ValueError, f"problem_type={kind!r} is not supported: use a classifier that gives each text one label",
       alter("config.json", classify, problem_type="single_label_classification"))
      for kind in ("multi_label_classification", "regression")),
    ("a new last layer for several labels a text", loads(alter(
        "config.json", lambda folder: TransformerForSequenceClassification.from_checkpoint(folder, num_labels=2),
        problem_type="multi_label_classification"))),
]

FROM_EMBED = each(nearest(), lambda _: search(*[embed(["a"], encoder(), tiny_tokenizer())] * 2, 1))
SPOILED = "contain NaN or inf: check the model that embedded them"
LENGTHS = "must have length 1, so that products are cosines: take them from embed()"
VECTORS = [
    ("queries that are not of length 1", nearest(UNIT[:3] * 2), ValueError, f"queries {LENGTHS}", FROM_EMBED),
    ("queries with NaN", nearest(NAN[:3]), ValueError, f"queries {SPOILED}", nearest()),
    ("queries with inf", nearest(UNIT[:3] / 0), ValueError, f"queries {SPOILED}", nearest()),
    ("vectors with NaN", nearest(vectors=NAN), ValueError, f"vectors {SPOILED}", nearest()),
    ("vectors that are not of length 1", nearest(vectors=UNIT * 0.5), ValueError, f"vectors {LENGTHS}", FROM_EMBED),
    *((f"{given}", nearest(queries),
       ValueError, f"queries must be (Q, 8) as the vectors are, got {tuple(queries.shape)}: take them from embed()",
       FROM_EMBED) for given, queries in (("one query that is no row", UNIT[0]),
                                          ("queries of another width", UNIT[:3, :7]))),
    ("words for queries", nearest(["a film"]),
     TypeError, "queries must be numbers, (N, H), as embed() returns them", FROM_EMBED),
    *((f"`k={k!r}` of 40 vectors", nearest(k=k),
       ValueError, f"k={k!r}, but there are 40 vectors to search: use k from 1 to 40",
       each(nearest(k=1), nearest(k=40))) for k in (0, -1, 41, 2.5, "2", None)),
    ("queries of float64", finds_itself(UNIT[:3].double())),
    ("queries of float16", finds_itself(UNIT[:3].half())),
    ("a NumPy array", finds_itself(UNIT[:3].numpy(), UNIT.double().numpy())),
    ("a list of vectors", finds_itself(list(UNIT[:3]), [row.numpy() for row in UNIT])),
    ("a table of pandas", finds_itself(pd.DataFrame(UNIT[:3].numpy()), pd.DataFrame(UNIT.numpy()))),
    ("a column of pandas", finds_itself(pd.Series([*UNIT[:3].numpy()]), pd.Series([*UNIT.numpy()]))),
    ("no index", lambda _: search_index(UNIT[:3], None, 1),
     TypeError, "index must be one of faiss, got NoneType: build it with hnsw_index()",
     lambda _: search_index(UNIT[:3], hnsw_index(UNIT), 1)),
    ("a list of lists", finds_itself(UNIT[:3].tolist(), UNIT.tolist())),
    ("vectors that require gradients",
     finds_itself(UNIT[:3].clone().requires_grad_(), UNIT.clone().requires_grad_())),
    ("a transposed view", finds_itself(UNIT.T.contiguous().T[:3], UNIT.T.contiguous().T)),
    ("an index of distances, not cosines", lambda _: search_index(UNIT[:3], distances(), 1),
     ValueError, "the index measures distances, not cosines: build it with faiss.METRIC_INNER_PRODUCT",
     lambda _: search_index(UNIT[:3], distances(faiss.METRIC_INNER_PRODUCT), 1)),
    ("queries with NaN, in an index", lambda _: search_index(NAN[:3], hnsw_index(UNIT), 1),
     ValueError, "queries contain NaN or inf",
     lambda _: search_index(UNIT[:3], hnsw_index(UNIT), 1)),
    *((f"`M={M!r}`", graph(M=M), ValueError, f"M must be an integer from 2 to 512, got {M!r}",
       each(graph(M=2), graph(M=512)))
      for M in (1, 0, -4, 10**6, 2.5, "32", None)),
    *((f"`{name}={value!r}`", graph(**{name: value}),
       ValueError, f"{name} must be an integer from 1 to 100,000, got {value!r}",
       each(graph(**{name: 1}), graph(**{name: 1000})))
      for name in ("ef_construction", "ef_search") for value in (0, -1, 10**9)),
    ("no texts to embed", lambda _: embed([], encoder(), tiny_tokenizer()),
     ValueError, "got an empty list: pass at least one text", lambda _: embed(["a"], encoder(), tiny_tokenizer())),
    ("a tokenizer of another model, to embed", lambda _: embed(["a"], encoder(), tiny_tokenizer(40)),
     ValueError, SIZES, lambda _: embed(["a"], encoder(), tiny_tokenizer())),
]

DRAWN = lambda _: head_view(encoder(), tiny_tokenizer(), "a", "b")  # noqa: E731
VIEW = [
    *((f"`html_action='save'` for {draw.__name__}", lambda _, draw=draw: draw(GOOD, WORDS, html_action="save"),
       ValueError, 'html_action must be "view", "return" or None',
       lambda _, draw=draw: draw(GOOD, WORDS, html_action="return")) for draw in VIEWS[:2]),
    ("`html_action='return'`",
     lambda _: head_view(GOOD, WORDS, html_action="return").page == head_view(GOOD, WORDS).page),
    ("`include_heads=` for head_view", lambda _: head_view(GOOD, WORDS, include_heads=[0]),
     TypeError, "got an unexpected keyword argument 'include_heads': heads=[…] selects the heads shown at first",
     lambda _: head_view(GOOD, WORDS, heads=[0])),
    ("`attention=` for neuron_view", lambda _: neuron_view(attention=GOOD, tokens=WORDS),
     TypeError, "got an unexpected keyword argument 'attention': attentions hold no queries and keys",
     lambda _: neuron_view(encoder(), tiny_tokenizer(), "a")),
    ("`words='yes'`", lambda _: model_view(GOOD, WORDS, words="yes"),
     TypeError, "words must be True, for whole words, or False",
     each(*(lambda _, words=words: model_view(GOOD, WORDS, words=words) for words in (True, False)))),
    ("`heads=3` of 3", lambda _: head_view(GOOD, WORDS, heads=3),
     ValueError, "heads names 3, but there are 3: use 0 to 2",
     lambda _: head_view(GOOD, WORDS, heads=[0, 2])),
    ("`heads=2`, not in a list",
     lambda _: head_view(GOOD, WORDS, heads=2).page == head_view(GOOD, WORDS, heads=[2]).page),
    ("`heads='2'`", lambda _: head_view(GOOD, WORDS, heads="2"),
     ValueError, "heads names '2', but there are 3: use 0 to 2",
     lambda _: head_view(GOOD, WORDS, heads=2)),
    ("`layer='1'`", lambda _: head_view(GOOD, WORDS, layer="1"),
     ValueError, "layer must be one of the layers shown, [0, 1], got '1'",
     lambda _: head_view(GOOD, WORDS, layer=1)),
    ("`sentence_b_start=tensor(2)`",
     lambda _: head_view(GOOD, WORDS, torch.tensor(2)).page == head_view(GOOD, WORDS, 2).page),
    ("`sentence_b_start='2'`", lambda _: head_view(GOOD, WORDS, "2"),
     ValueError, "sentence_b_start must be an integer from 1 to 3",
     each(*(lambda _, start=start: head_view(GOOD, WORDS, start) for start in (1, 3)))),
    ("a layer that does not exist", lambda _: model_view(GOOD, WORDS, include_layers=[2]),
     ValueError, "include_layers names 2, but there are 2: use 0 to 1",
     lambda _: model_view(GOOD, WORDS, include_layers=[0, 1])),
    ("a text for tokens", lambda _: head_view(GOOD, "a text"),
     TypeError, "tokens must be a list, the 4 tokens of attention, got str: pass (model, tokenizer, sentence_a",
     each(DRAWN, lambda _: head_view(GOOD, WORDS, 2))),
    ("three tokens for four positions", lambda _: head_view(GOOD, WORDS[:3]),
     ValueError, "attention has 4 positions, but there are 3 tokens",
     lambda _: head_view(GOOD, WORDS)),
    ("a model that returned no weights", lambda _: head_view((None, None), WORDS),
     ValueError, 'attn_implementation="eager"',
     lambda _: head_view(BertModel(BertConfig(**TINY, attn_implementation="eager"))(
         IDS[:1], output_attentions=True).attentions, WORDS[:3])),
    ("a number for attention", lambda _: head_view(3, WORDS),
     TypeError, "attention must be one tensor per layer, got int",
     each(DRAWN, lambda _: head_view(GOOD, WORDS))),
    ("attention as NumPy arrays",
     lambda _: head_view([layer.numpy() for layer in GOOD], WORDS).page == head_view(GOOD, WORDS).page),
    ("a model's whole output", lambda _: head_view({"attentions": GOOD}, WORDS),
     TypeError, "attention is the whole output of a model: pass its attentions, output.attentions",
     lambda _: head_view(encoder()(IDS[:1], output_attentions=True).attentions, WORDS[:3])),
    ("the attentions of generate()", lambda _: model_view((tuple(GOOD), tuple(GOOD)), WORDS),
     TypeError, "attention contains tuples of tensors, as in the output of generate(), or in a whole output with",
     lambda _: model_view(tuple(GOOD), WORDS)),
    ("words for attention", lambda _: head_view(["a", "b"], WORDS),
     TypeError, "attention must be one tensor per layer (",
     each(DRAWN, lambda _: head_view(GOOD, WORDS))),
    ("a batch of two texts", lambda _: head_view([torch.ones(2, 3, 4, 4)], WORDS),
     ValueError, "is of a batch of 2, and a view shows one text",
     lambda _: head_view([layer[1:2] for layer in [torch.full((2, 3, 4, 4), 0.25)]], WORDS)),
    ("attention with NaN", lambda _: model_view([torch.full((1, 1, 4, 4), math.nan)], WORDS),
     ValueError, "attention holds nan or inf",
     lambda _: model_view(GOOD, WORDS)),
    ("a text where the tokenizer belongs", lambda _: neuron_view(encoder(), "a", "b"),
     TypeError, "tokenizer must be a WordPieceTokenizer or transformers' own, got str",
     each(*(lambda folder, read=read: neuron_view(encoder(), read(folder), "a", "b")
            for read in (load_tokenizer, WordPieceTokenizer.from_checkpoint)))),
    ("a tokenizer smaller than the model", lambda _: neuron_view(encoder(), tiny_tokenizer(40), "a"),
     ValueError, SIZES, lambda _: neuron_view(encoder(), tiny_tokenizer(), "a")),
    ("a list of sentences for one", lambda _: neuron_view(encoder(), tiny_tokenizer(), ["a", "b"]),
     ValueError, "sentence_a must be one string",
     lambda _: neuron_view(encoder(), tiny_tokenizer(), "a", "b")),
    ("a text longer than the model", lambda _: neuron_view(encoder(), tiny_tokenizer(), "a " * 20),
     ValueError, "22 tokens, but the model has 16 positions",
     lambda _: neuron_view(encoder(), tiny_tokenizer(), "a " * 14)),
    ("another model", lambda _: neuron_view(torch.nn.Linear(2, 2), tiny_tokenizer(), "a"),
     ValueError, "do not support a Linear",
     each(lambda _: neuron_view(encoder(), tiny_tokenizer(), "a"), lambda _: head_view(GOOD, WORDS),
          lambda _: neuron_view(classifier().eval().encoder, tiny_tokenizer(), "a"))),
    ("a tokenizer with attentions", lambda _: head_view(GOOD, tiny_tokenizer(), "a"),
     TypeError, "tokens must be a list, the 4 tokens of attention, got WordPieceTokenizer: pass (model, tokenizer",
     DRAWN),
    ("a tokenizer where the encoder belongs", lambda _: model_view(tiny_tokenizer(), encoder(), "a"),
     TypeError, "attention must be one tensor per layer, got WordPieceTokenizer: pass (model, tokenizer, sentence_a",
     DRAWN),
    ("an encoder and no text", lambda _: head_view(encoder(), tiny_tokenizer()),
     ValueError, "sentence_a must be one string, got None",
     DRAWN),
    ("an encoder, a text and tokens", lambda _: head_view(encoder(), tiny_tokenizer(), "a", encoder_tokens=WORDS),
     TypeError, "the attentions of an encoder–decoder model cannot be combined with other arguments: pass (model",
     each(DRAWN, lambda _: head_view(encoder_attention=GOOD, encoder_tokens=WORDS))),
    ("tokens by name without an attention", lambda _: head_view(encoder_tokens=WORDS),
     TypeError, "encoder_tokens without an attention: pass (model, tokenizer, sentence_a",
     each(DRAWN, lambda _: head_view(encoder_attention=GOOD, encoder_tokens=WORDS))),
    *((f"sentence_b_start for {draw.__name__} of a pair",
       lambda _, draw=draw: draw(encoder(), tiny_tokenizer(), "a", 3),
       ValueError, "sentence_b must be one string, got 3",
       each(*(lambda _, draw=draw, texts=texts: draw(encoder(), tiny_tokenizer(), *texts) for texts in ("a", "ab"))))
      for draw in VIEWS),
    *((f"the label {text}", drawn(text)) for text in ("from $5 to $10", r"$\bad{$", "$", "\\$1")),
    ("the misspelled option `anotate=True`", lambda _: heatmap([[1.0]], ["a"], ["a"], anotate=True),
     TypeError, "'anotate'",
     lambda _: heatmap([[1.0]], ["a"], ["a"], title="b", xlabel="c", ylabel="d", note="e")),
]

GOOD_TABLE = table("name,ticker\nCafé,C\n".encode())
COLUMNS = "save it as CSV, UTF-8, with the columns name, ticker"
TABLE = [
    ("a byte order mark, as Excel writes it", table("\ufeffname,ticker\r\nCafé,C\r\n".encode())),
    ("semicolons, as Excel writes them in Europe", table("name;ticker\nCafé;C\n".encode())),
    ("a line for Excel above the header", table("\ufeffsep=;\r\nname;ticker\r\nCafé;C\r\n".encode())),
    ("bars", table("name|ticker\nCafé|C\n".encode())),
    ("a comma in the name of a column", table("name;ticker;a, b, c\nCafé;C;d\n".encode())),
    ("a column too many", table("more,name,ticker\n1,Café,C\n".encode())),
    *((given, table(content), ValueError, words, GOOD_TABLE) for given, content, words in (
        ("a column that is missing", b"name,symbol\nA,B\n", f"'ticker' is missing from ['name', 'symbol']): {COLUMNS}"),
        ("a row that is too short", b"name,ticker\nA\n",
         f"row 1 below the header has fewer than 2 columns): {COLUMNS}"),
        ("Latin-1", "name,ticker\nCafé,C\n".encode("latin-1"), COLUMNS),
        ("an empty file", b"", f"No columns to parse from file): {COLUMNS}"),
        ("a column that is there twice", b"name,ticker,name\nA,B,C\n", f"column 'name' more than once): {COLUMNS}"))),
    ("a row that is too long", table(b"name,ticker\nA,B,C\n"),
     ValueError, "Expected 2 fields in line 2, saw 3): put double quotes around a text with ','",
     lambda folder: rows_of(folder, 'name,ticker\n"A,B",C\n') == [{"name": "A,B", "ticker": "C"}]),
    ("a stray quote", table(b'name,ticker\n"A,B\n"C,D\n'), ValueError, "cannot be read (',' expected after",
     lambda folder: rows_of(folder, 'name,ticker\n"""A",B\n"""C",D\n')[1] == {"name": '"C', "ticker": "D"}),
]
TEXT_ROWS = [(letter, "yes" if letter < "d" else "no") for letter in "abcdef"]
FRAME = pd.DataFrame(TEXT_ROWS, columns=["text", "label"])
GOOD_TEXTS = each(texts_of("own.csv", FRAME.to_csv()),
                  texts_of("own.jsonl", FRAME.to_json(orient="records", lines=True)))
OTHER_FORMATS = (
    ("a workbook", b"PK\3\4\xff", "is a workbook or a ZIP file: save it as CSV, UTF-8"),
    ("a compressed file", b"\x1f\x8b\xff", "is compressed by gzip: unpack it"),
    *((f"{name}", signature,
       'is a table of Parquet or Arrow: save it with to_csv, or to_json(orient="records", lines=True)')
      for name, signature in (("Parquet", b"PAR1\0"), ("Arrow", b"ARROW1\0"), ("a stream of Arrow", b"\xff" * 4))),
    ("a PDF", b"%PDF-1.7", "is a formatted document: save it as plain text, UTF-8"),
)


def json_lines(label: str = "label") -> str:
    """Return the rows as JSON Lines."""
    return "".join(json.dumps({"text": a, label: b, "id": 1}) + "\n" for a, b in TEXT_ROWS)


TEXTS_FILE = [
    ("a header with spaces", texts_of("own.csv", "text, label\n" + "".join(f"{a}, {b}\n" for a, b in TEXT_ROWS))),
    ("tabs, and quotes that are no pairs",
     texts_of("own.tsv", "text\tlabel\tnote\n" + "".join(f'{a}\t{b}\t5" x\n' for a, b in TEXT_ROWS))),
    ("tabs, and quotes in the header", texts_of(
        "own.tsv", '"text"\t"label"\n' + "".join(f'"{a}"\t"{b}"\n' for a, b in TEXT_ROWS))),
    ("an index in front", texts_of("own.csv", ",text,label\n" + "".join(f"0,{a},{b}\n" for a, b in TEXT_ROWS))),
    ("\\r as the end of a row", texts_of("own.csv", "text,label\r" + "".join(f"{a},{b}\r" for a, b in TEXT_ROWS))),
    ("JSON Lines", texts_of("own.jsonl", json_lines())),
    ("JSON Lines without a label", texts_of("own.jsonl", json_lines("class")),
     ValueError, "line 1 has no text or number as 'label': name one of ['text', 'class', 'id']",
     texts_of("own.jsonl", json_lines("class"), "class")),
    ("JSON Lines with a missing label", texts_of("own.jsonl", json_lines() + '{"text": "g", "label": null}\n'),
     ValueError, "line 7 has null as 'label': write a text or number, or delete the line",
     texts_of("own.jsonl", json_lines())),
    ("a list in JSON", texts_of("own.json", '[\n{"text": "a", "label": "yes"}\n]\n'),
     ValueError, "line 1 is not a JSON object: write one object per line (JSON Lines), or save the texts as CSV",
     each(texts_of("own.jsonl", json_lines()), GOOD_TEXTS)),
    ("a text of 200,000 characters", lambda folder: texts_of("own.csv", f"text,label\n{'a ' * 100_000},yes\n")(folder),
     ValueError, "has one class, 'yes', in the column 'label': use at least two different labels", GOOD_TEXTS),
    *((f"{given} for a table", texts_of("own.csv", content), ValueError, words, GOOD_TEXTS)
      for given, content, words in OTHER_FORMATS),
    ("a corpus with \\r as the end of a line", corpus("a text\ranother\r")),
    ("a corpus with words in angle brackets",
     lambda folder: lines_of(folder, "<unk>\n<applause>\nso <b> it\n") == ["<unk>", "<applause>", "so <b> it"]),
    ("a corpus of JSON Lines", corpus('{"text": "a\\ntext", "id": 1}\n\n{"text": "another"}\n{"text": " "}\n')),
    ("a corpus of JSON Lines without texts", corpus('{"content": "a text"}\n{"content": "another"}\n'),
     ValueError, "line 1 has no text or number as 'text': name one of ['content']",
     corpus('{"content": "a text"}\n{"content": "another"}\n', "content")),
    *((f"a corpus with {given}", corpus(content),
       ValueError, f"has {words}: save its texts alone, one in each line", corpus("a text\nanother\n"))
      for given, content, words in (
          ("tags", '<doc id="1">\na text\n</doc>\n<p>another</p>', "tags, as XML and HTML have"),
          ("labels of fastText", "__label__a a text\n__label__b another\n", "labels (__label__), as files of fastText"),
          ("times", "1\n00:00:01,5 --> 00:00:02,0\na text\n\n2\n00:00:03,5 --> 00:00:04,0\nanother", "times, as sub"))
      for words in (words.replace("of fastText", "of fastText have").replace("as sub", "as subtitles have"),)),
    *((f"{given} for a corpus", corpus(content), ValueError, words, corpus("a text\nanother\n"))
      for given, content, words in OTHER_FORMATS),
]
WORDS_FILE = [
    *((f"{given}", labelled(GOOD_WORDS + row), ValueError, f"(line 10 {words}",
       labelled(GOOD_WORDS + right, more(*added)))
      for given, row, words, right, *added in (
          ("no label in a row", "alone\n", "has 1 field, ['alone'], not a word and a label; a label is missing): save",
           "alone,O\n", "alone"),
          ("an empty label", "alone,\n", "has no label for the word 'alone'): save it", "alone,O\n", "alone"),
          ("a label of spaces", "alone,  \n", "has no label for the word 'alone'): save it", "alone,O\n", "alone"),
          ("a label without its word", ",name\n", "has no word for the label 'name'): save it", "Li,name\n", "Li"),
          ("a word of two words", "New York,name\n", "has several words, 'New York'; each word needs its own row): ",
           "New,name\nYork,name\n", "New", "York"),
          ("a row of three fields", "Anna,NNP,name\n", "has 3 fields, ['Anna', 'NNP', 'name'], not a word and a label; "
           "keep two columns, the word and its label; a comma", "Anna,name\n", "Anna"),
          ("a comma as a word, without quotes", ",,O\n", "has 3 fields, ['', '', 'O'], not a word and a label; keep "
           "two columns, the word and its label; a comma as a word needs double quotes around it", '",",O\n', ","),
          ("a NUL byte", "a\0,O\n", "has a NUL byte in it, as UTF-16 has): save it as CSV, UTF-8", "a,O\n", "a"))),
    ("one class", labelled("a,O\n\nb,O\n\nc,O\n"), ValueError, "has one class, 'O': use at least two different labels",
     labelled("a,O\n\nb,O\n\nc,x\n\nd,x\n", "abcd")),
    *((f"{given}", labelled(content), ValueError,
       f"has {words}, too few for three parts: leave an empty row between texts, and write at least 3",
       labelled("a,O\nB,name\n\na,O\nC,name\n\na,O\nD,name\n", ["aB", "aC", "aD"]))
      for given, content, words in (
          ("no empty row in 100,000 rows", "a,O\nB,name\n" * 50_000, "1 different text in 100,000 rows"),
          ("two texts", "a,O\n\nB,name\n", "2 different texts in 2 rows"),
          ("one text three times", "a,O\nB,name\n\n" * 3, "1 different text in 6 rows"))),
    ("a class of its own in each text", labelled("a,x\n\nb,y\n\nc,z\n"), ValueError,
     "because the classes x, y, z are in one text each: write more texts, or leave these classes out",
     labelled("a,x\n\nb,y\n\nc,z\n\nd,x\n\ne,y\n\nf,z\n", "abcdef")),
    ("a header", labelled("word,label\n" + GOOD_WORDS),
     ValueError, "begins with a header, 'word' and 'label': delete it, and begin with a word", labelled(GOOD_WORDS)),
    ("word and label that changed places", labelled("O,a\nname,B\n\nO,c\n\nO,d\n"),
     ValueError, "as if they were swapped: write the word first, then its label",
     labelled("a,O\nB,name\n\nc,O\n\nd,O\n", ["aB", "c", "d"])),
    *((f"{given}", labelled(content), ValueError, "save it as CSV, UTF-8", labelled(GOOD_WORDS))
      for given, content in (
          ("Latin-1 words", GOOD_WORDS.encode("latin-1")), ("UTF-16", GOOD_WORDS.encode("utf-16")),
          ("UTF-16 without a mark, all NUL bytes", "a,O\nB,name\n".encode("utf-16-le")),
          ("a workbook of Excel", b"PK\x03\x04\x14\x00\x06\xff\xd8"),
          ("JSON Lines of words", '{"tokens": ["a"], "ner_tags": [0]}\n'))),
    *((f"{given}", labelled(content), ValueError,
       "is empty: write a word and its label into each row, such as Paris,place",
       labelled("Paris,place\n\nis,O\n\nRome,place\n\na,O\n", [["Paris"], ["is"], ["Rome"], ["a"]]))
      for given, content in (("an empty file of words", b""), ("empty rows only", "\n\n,\n"))),
    *((f"{given}", labelled(GOOD_WORDS + content), ValueError, words,
       labelled(GOOD_WORDS + "a,O\nb,O\n", more("a", "b")))
      for given, content, words in (
          ("a stray quote that swallows lines", '"a,O\nb",O\n', "a stray quote swallows lines): save it as CSV, UTF-8"),
          ("a stray quote to the end", '"a,O\nb,O\n', "cannot be read (unexpected end of data): save it as CSV"))),
    ("a folder", word_folder, FileNotFoundError,
     "give the path of a CSV with a word and a label in each row", labelled(GOOD_WORDS)),
    ("a byte order mark and Windows' line ends, as Excel writes words",
     labelled("\ufeff" + GOOD_WORDS.replace("\n", "\r\n"))),
    ("semicolons, and an empty row of them", labelled(GOOD_WORDS.replace(",", ";").replace("\n\n", "\n;\n"))),
    ("tabs", labelled(GOOD_WORDS.replace(",", "\t"))),
    ("a comma in quotes as a word", labelled(GOOD_WORDS + '",",O\n', [*WORD_TEXTS[:2], ["Mo", "is", ","]])),
    ("quotes among words between tabs", labelled(
        GOOD_WORDS.replace(",", "\t") + '"\tO\n"\tO\n', [*WORD_TEXTS[:2], ["Mo", "is", '"', '"']])),
    ("quotes around labels between tabs", labelled(re.sub(",(.*)", r'\t"\1"', GOOD_WORDS)),
     ValueError, 'line 1 has quotes around the label "name": between tabs or spaces, leave them out',
     labelled(GOOD_WORDS.replace(",", "\t"))),
    ("spaces between words and labels", labelled(GOOD_WORDS.replace(",", "  "))),
    ("CoNLL-2003: four columns, and marks of documents",
     labelled("-DOCSTART- -X- -X- O\n\n" + GOOD_WORDS.replace(",", " NNP B-NP "))),
    ("marks of documents without an empty row", labelled(GOOD_WORDS.replace("\n\n", "\n-DOCSTART-,O\n"))),
    ("GermEval: numbered words, and comments",
     labelled("#\thttp://a.b\n" + re.sub("(?m)^(.+),", r"1\t\1\t_\t", GOOD_WORDS.replace("\n\n", "\n\n#\tb c\n")))),
    ("CoNLL-2003 with numbered words", labelled(re.sub("(?m)^(.+),", r"1 \1 NNP B-NP ", GOOD_WORDS))),
    ("an empty word between tabs, as in GermEval", labelled(GOOD_WORDS.replace("Bo", "").replace(",", "\t")),
     ValueError, "line 3 has no word for the label 'name'",
     labelled(GOOD_WORDS.replace(",", "\t"))),
    ("comments of CoNLL-U", labelled("# sent_id = 1\n# text = Anna met\n" + GOOD_WORDS.replace(",", " NNP _ "))),
    ("the sign # as a first word", labelled(
        "#\tO\n" + GOOD_WORDS.replace(",", "\t"), [["#", *WORD_TEXTS[0]], *WORD_TEXTS[1:]])),
    ("all ten columns of CoNLL-U",
     labelled("1-2\tim" + "\t_" * 8 + "\n" + re.sub("(?m)^(.+),", "1\t\\1" + "\t_" * 7 + "\t", GOOD_WORDS)),
     ValueError, "it has the ten columns of CoNLL-U: keep two, the word and its label",
     labelled("im\t_\n" + GOOD_WORDS.replace(",", "\t"), [["im", "Anna", "met", "Bo"], *WORD_TEXTS[1:]])),
    ("a row with a space too many", labelled(GOOD_WORDS.replace(",", " ") + "New York name\n"),
     ValueError, "line 10 has 3 fields, ['New', 'York', 'name'], not a word and a label; most rows have 2",
     labelled(GOOD_WORDS.replace(",", " ") + "New name\nYork name\n", more("New", "York"))),
    ("prose", labelled("It was good.\nSo is this, I think.\n\nIt was not.\n"),
     ValueError, "not a word and a label; most rows have 3): save it as CSV, UTF-8, with a word and its label in each",
     labelled("It,O\nwas,O\ngood,a\n\nSo,O\n\nIt,O\nwas,O\nnot,a\n",
              [["It", "was", "good"], ["So"], ["It", "was", "not"]])),
    ("empty columns at the end of rows", labelled(GOOD_WORDS.replace(",", "\t").replace("\n", "\t\t\n"))),
    ("no-break spaces in a word and as a word", labelled(GOOD_WORDS + "10\u00a0000,O\n\u00a0,O\n",
                                                          [*WORD_TEXTS[:2], ["Mo", "is", "10\u00a0000", "\u00a0"]])),
    ("labels and words that mean nothing to a spreadsheet", labelled(GOOD_WORDS + "null,NA\nNone,NA\n",
                                                                     [*WORD_TEXTS[:2], ["Mo", "is", "null", "None"]])),
    ("\\r as the end of a line", labelled(GOOD_WORDS.replace("\n", "\r"))),
    *((f"the header {header}", labelled(f"{header}\n{GOOD_WORDS}"),
       ValueError, "begins with a header, ", labelled(GOOD_WORDS))
      for header in ("tokens,ner_tags", "token,ner_tag", "word,entity", "Word,Tag", "Token,POS", "a_word,ner type")),
    ("a header of any names, above labels with marks",
     labelled("mot,nature\n" + GOOD_WORDS.replace("name", "B-name")), ValueError, "begins with a header, 'mot' and",
     labelled(GOOD_WORDS.replace("name", "B-name"))),
    ("the header of four columns", labelled("word pos chunk ner\n" + GOOD_WORDS.replace(",", " NNP B-NP ")),
     ValueError, "(columns 1 and 4, between spaces) begins with a header, 'word' and 'ner'",
     labelled(GOOD_WORDS.replace(",", " NNP B-NP "))),
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
