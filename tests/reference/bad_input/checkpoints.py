"""A checkpoint: its settings, its weights and its tokenizer."""

import json
import math
import os
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForSequenceClassification

from tests.helpers import TINY, tiny_tokenizer, write_vocabulary
from tests.reference.bad_input import Bad, Good, each
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_tokenizer
from utils.tokenization import WordPieceTokenizer

QUERY = "bert.encoder.layer.0.attention.self.query.weight"
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
PLAIN = {"content": "<new>"} | dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)


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
    content = {"metadata": {"total_size": 1}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    return folder


def copied_links(folder: Path) -> TransformerEncoder:
    """Load a copy of a folder with a link, made as `cp -rL` does."""
    (folder / "model.safetensors").rename(folder / "blob")
    (folder / "model.safetensors").symlink_to("blob")
    copied = shutil.copytree(folder, folder / "copied")
    (folder / "blob").unlink()
    return load(copied)


def resave_pickled(folder: Path) -> TransformerEncoder:
    """Load pickled weights with transformers, and save them again."""
    model = BertForSequenceClassification(BertConfig(**TINY))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    BertForSequenceClassification.from_pretrained(folder).save_pretrained(folder)
    return load(folder)


def contradict(remedy: Callable[[Path, dict], object]):
    """Load a folder in which tokenizer_config.json contradicts tokenizer.json, after a remedy."""

    def call(folder: Path):
        path = folder / "tokenizer_config.json"
        path.unlink(missing_ok=True)
        (folder / "tokenizer.json").unlink(missing_ok=True)
        load_tokenizer(str(folder)).save_pretrained(folder)
        settings = json.loads(path.read_text("utf-8")) | {"do_lower_case": False}
        remedy(folder, settings)
        path.write_text(json.dumps(settings))
        return load(folder)

    return call


def only(*names: str):
    """Load a folder whose weights have given way to other files."""

    def call(folder: Path):
        (folder / "model.safetensors").unlink()
        for name in names:
            (folder / name).write_bytes(b"x")
        return load(folder)

    return call


def twice(folder: Path, kept: str = ""):
    """Load a folder with shards and a single file, of which one is a rest."""
    weights = (folder / "model.safetensors").read_bytes()
    (shard(folder, "a.safetensors") / "model.safetensors").write_bytes(weights)
    for name in {"model.safetensors", "model.safetensors.index.json"} - {kept} if kept else ():
        (folder / name).unlink()
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


COUNTS = ("num_attention_heads", "hidden_size", "vocab_size", "intermediate_size", "max_position_embeddings")

CONFIGS = [  # a setting, its value, words of the error, and the values that its remedy allows
    *((field, 0, f"{field} must be a positive integer, got 0", TINY[field]) for field in COUNTS),
    ("hidden_size", "12", "expected int, got str (value: '12')): correct this setting", 12),
    ("num_attention_heads", 5, "hidden_size=12 is not divisible by num_attention_heads=5: change one of them", 4),
    *(
        (field, share, f"{field} must be a number from 0 to 1, got {share}", 0.0, 1.0)
        for field, share in {
            "hidden_dropout_prob": 1.5,
            "attention_probs_dropout_prob": math.nan,
            "layer_norm_eps": -1.0,
            "initializer_range": math.inf,
        }.items()
    ),
    ("pad_token_id", 50, "pad_token_id must be an integer from 0 to 49, got 50", 0, 49),
    *(
        ("num_hidden_layers", count, f"num_hidden_layers must be an integer from 1 to 1,000, got {count}", 2)
        for count in (0, 10**9)
    ),
    ("hidden_act", [4], "expected str, got list (value: [4])): correct this setting", "gelu"),
    (
        "intermediate_size",
        10**15,
        f"use smaller sizes than hidden_size=12, intermediate_size={10**15}, num_hidden_layers=2 and 68 embeddings",
        20,
    ),
    (
        "hidden_act",
        "silu",
        'hidden_act="silu" is not supported: use one of gelu, gelu_new, relu',
        "gelu",
        "gelu_new",
        "relu",
    ),
    ("is_decoder", True, "is_decoder=True is not supported: use False", False),
    (
        "position_embedding_type",
        "relative_key",
        "position_embedding_type='relative_key' is not supported: use 'absolute'",
        "absolute",
    ),
    ("pruned_heads", {"0": [1]}, "is not supported: use {}", {}),
    ("model_type", ..., 'config.json names no model_type: write "model_type": "bert" into it if it is one', "bert"),
    ("hidden_size", 24, "weights do not fit the configuration; mis-shaped", 12),
    ("num_hidden_layers", 3, "missing: layers.2", 2),
    ("num_hidden_layers", 1, "unexpected: layers.1", 2),
]

BROKEN_JSON = [
    ("an empty file", b"", "config.json cannot be read"),
    ("a list", b"[]", "config.json cannot be read ('list' object"),
    ("bytes that are no UTF-8", b"\xff\xfe{", "config.json cannot be read"),
]

RUNTIME_SETTINGS = [("torch_dtype", "float16"), ("return_dict", False)]
BROKEN_INDEX = [("{}", "index.json cannot be read ('weight_map')"), ("[1]", "index.json cannot be read")]
EMBEDDED = each(lambda _: embedded(), save_again())  # or a local folder with a BERT checkpoint

SETTINGS = [
    *(
        Bad(
            f"`{name}: {value!r}`" if value is not ... else f"no `{name}`",
            alter("config.json", **{name: value}),
            words,
            each(*(alter("config.json", **{name: right}) for right in valid)),
        )
        for name, value, words, *valid in CONFIGS
    ),
    Bad(
        "`model_type: 'roberta'`",
        alter("config.json", model_type="roberta"),
        'model_type="roberta", which is not supported here, but "bert" is: use the embedded',
        EMBEDDED,
    ),
    Bad(
        "`quantization_config: {'bits': 8}`",
        alter("config.json", quantization_config={"bits": 8}),
        "quantized weights (quantization_config) are not supported: save the model as float32",
        save_again(),
    ),
    *(
        Bad(f"config.json: {given}", rewrite("config.json", content), words, save_again())
        for given, content, words in BROKEN_JSON
    ),
    *(
        Good(f"`{name}: {value!r}`, which says how a program used it", loads(alter("config.json", **{name: value})))
        for name, value in RUNTIME_SETTINGS
    ),
    Bad(
        "a folder without config.json",
        lambda folder: (folder / "config.json").unlink() or load(folder),
        "is not a checkpoint, because it has no config.json: use the embedded",
        EMBEDDED,
    ),
    Bad(
        "a link to weights that were not copied",
        lambda folder: (
            (folder / "model.safetensors").unlink(),
            (folder / "model.safetensors").symlink_to("blobs"),
            load(folder),
        ),
        "model.safetensors is a link to a file that does not exist: copy the folder with its links",
        each(EMBEDDED, copied_links),
    ),
    Bad(
        "a name that is neither a folder nor on the Hub",
        lambda folder: load(folder / "nowhere"),
        "is not a local folder and could not be downloaded",
        EMBEDDED,
        error=OSError,
    ),
    Bad(
        "an adapter next to the model",
        alter("adapter_config.json", peft_type="LORA"),
        "holds an adapter (adapter_config.json), which is not applied here: merge it into its model",
        save_again(),
    ),
]

WEIGHTS = [
    Bad(
        "infinity in the word embeddings",
        with_weights(fill(math.inf, WORD_EMBEDDINGS)),
        "contains NaN or inf: use weights from before training went wrong",
        with_weights(fill(0.1, WORD_EMBEDDINGS)),
    ),
    Bad(
        "NaN in the head of a classifier",
        with_weights(fill(math.nan, "classifier.weight"), classify),
        "classifier.weight contains NaN or inf",
        with_weights(fill(0.1, "classifier.weight"), classify),
    ),
    *(
        Bad(
            f"weights stored as {dtype}",
            with_weights(cast(dtype)),
            ": save the model with float32 weights",
            save_again(),
        )
        for dtype in (torch.int64, torch.float8_e4m3fn)
    ),
    *(
        Good(f"weights stored as {dtype}", equals_before(cast(dtype), tolerance))
        for dtype, tolerance in [(torch.float64, 1e-6), (torch.float16, 0.02), (torch.bfloat16, 0.1)]
    ),
    Good("the names of old checkpoints, LayerNorm.gamma", equals_before(old_names, 1e-7)),
    Bad(
        "a weight under two names",
        with_weights(put(QUERY.removeprefix("bert."), 12, 12)),
        "a second time: save the model again",
        save_again(),
    ),
    Good("no pooler, which no layer needs", loads(with_weights(without_pooler))),
    Bad("an empty file", rewrite("model.safetensors", b""), "model.safetensors cannot be read", save_again()),
    Bad(
        "pickled weights only",
        pickled_weights,
        "only pickled weights (pytorch_model.bin), which can run code",
        resave_pickled,
    ),
    Bad(
        "an index that names a pickled file, a bomb",
        pickled_shard,
        "names 'pytorch_model.bin', which is not a safetensors file",
        save_again(),
    ),
    Bad(
        "an index that leads out of the folder",
        lambda folder: load(shard(folder, f"../{folder.name}-1.safetensors")),
        "which is not a safetensors file in its folder: save the model again",
        save_again(),
    ),
    Good("the Hub's cache, with its links", hub_cache),
    Good("two shards", loads(lambda folder: load(shard(folder, "a.safetensors", "b.safetensors")))),
    Bad(
        "NaN in a classifier that is saved over a good one",
        save_broken,
        "encoder.layers.0.attention.query.weight contains NaN or inf",
        lambda folder: classify(folder).save(folder),
    ),
    Bad("a shard that is missing", lost_shard, "has no a.safetensors, which", save_again()),
    *(
        Bad(f"an index that holds {content:.20}", index(content), words, save_again())
        for content, words in BROKEN_INDEX
    ),
    Bad(
        "weights of an earlier save next to shards",
        twice,
        "has weights twice, in model.safetensors and in the files that model.safetensors.index.json names: de",
        each(*(partial(twice, kept=name) for name in ("model.safetensors", "model.safetensors.index.json"))),
    ),
    *(
        Bad(f"only {', '.join(names)}", only(*names), words, save_again())
        for names, words in (
            (
                ("optimizer.pt", "rng_state_0.pth", "scheduler.pt"),
                "optimizer.pt holds the state of a training, so save",
            ),
            (("optimizer.safetensors",), "optimizer.safetensors holds the state of a training, so save the model, too"),
            (("adapter_model.safetensors",), "merge this adapter into its model (merge_and_unload), and save that"),
        )
    ),
    *(
        Bad(
            f"{name} among weights",
            with_weights(put(name, 3)),
            ": leave out the states of the training, and save the model again",
            save_again(),
        )
        for name in ("optimizer.state.0", "lr_scheduler.step", f"ema.{QUERY}", f"{QUERY}.exp_avg")
    ),
    Bad(
        "a prefix of torch.compile before all names",
        with_weights(partial(add_prefix, "_orig_mod.")),
        "has the weight _orig_mod.",
        save_again(),
    ),
    Bad(
        "all weights under the name of a part of a larger model",
        with_weights(partial(add_prefix, "student.")),
        "weights under student.bert.: save this part of the model alone, or remove 'student.bert.' from the names",
        save_again(),
    ),
]
SIZES = "load both from the same checkpoint, and look for added tokens, and for empty or repeated lines in vocab.txt"
SAME = words(*tiny_tokenizer().vocab)  # as the model's

TOKENIZER = [
    Bad(
        "a vocabulary smaller than the model's",
        words(*tiny_tokenizer(40).vocab),
        f"has 40 tokens with ids up to 39, but the model's vocab_size is 50: {SIZES}",
        SAME,
    ),
    Good(
        "rows for 40 tokens, filled up to 48",
        lambda folder: (
            BertConfig(**TINY | {"vocab_size": 48}).save_pretrained(folder)
            or write_vocabulary(folder, [*tiny_tokenizer(40).vocab])
            or len(load_tokenizer(folder)) == 40
        ),
    ),
    Bad(
        "a folder without vocabulary",
        lambda folder: (folder / "vocab.txt").unlink() or load(folder),
        "has no vocab.txt or tokenizer.json: save the tokenizer of the model there, too",
        SAME,
    ),
    Bad(
        "a tokenizer_config.json that contradicts tokenizer.json",
        contradict(lambda *_: None),
        "sets do_lower_case=False: delete this setting, or tokenizer.json, whichever the model was not trained with",
        each(
            contradict(lambda _, settings: settings.pop("do_lower_case")),
            contradict(lambda folder, _: (folder / "tokenizer.json").unlink()),
        ),
    ),
    *(
        Bad(
            f"an added token, {setting}",
            alter("tokenizer_config.json", **{setting: value}),
            f"has 51 tokens with ids up to 50, but the model's vocab_size is 50: {SIZES}",
            alter("tokenizer_config.json", **{setting: ...}),
        )
        for setting, value in (("additional_special_tokens", ["<new>"]), ("added_tokens_decoder", {"50": PLAIN}))
    ),
    *(
        Bad(
            f"another special token, {setting}",
            alter("tokenizer_config.json", **{setting: value}),
            "special tokens that BERT does not have, ['17']: use one with BERT's five special tokens",
            alter("tokenizer_config.json", **{setting: ...}),
        )
        for setting, value in (("additional_special_tokens", ["17"]), ("mask_token", "17"), ("pad_token", "17"))
    ),
    Bad(
        "a token in added_tokens.json",
        rewrite("added_tokens.json", '{"zz": 49}', words(*tiny_tokenizer(49).vocab)),
        "special tokens that BERT does not have, ['zz']: use one with BERT's five special tokens",
        lambda folder: (folder / "added_tokens.json").unlink() or SAME(folder),
    ),
    *(
        Bad(
            f"a tokenizer with `{setting}: {value!r}`",
            alter("tokenizer_config.json", **{setting: value}),
            words,
            each(alter("tokenizer_config.json", **{setting: ...}), lambda _: embedded()),
        )
        for setting, value, words in (
            ("strip_accents", False, "a normalizer that is not supported"),
            ("tokenize_chinese_chars", False, "a normalizer that is not supported"),
            ("tokenizer_class", "GPT2Tokenizer", "has a BPE model, not BERT's WordPiece: use a checkpoint"),
        )
    ),
    *(
        Bad(f"{file}: {given}", rewrite(file, content), "cannot be read", save_again())
        for file, given, content in (
            ("tokenizer_config.json", "a list", "[]"),
            ("tokenizer.json", "an empty file", b""),
            ("tokenizer.json", "no parts", "{}"),
            ("vocab.txt", "bytes that are no UTF-8", b"\xff\xfe"),
        )
    ),
    Good("tokenizer.json as the official tokenizer writes it", tokenizer_json(lambda parts: None)),
]
