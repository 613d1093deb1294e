"""Read how sentence-transformers makes the vector of a text from the settings of a checkpoint. Used in notebook 09."""

import json
from collections.abc import Mapping
from pathlib import Path

from utils.support.checkpoint import (
    DEFAULT_CHECKPOINT,
    MODULES,
    POOLING,
    SENTENCE_SETTINGS,
    checkpoint_folder,
    wrap_read_errors,
)

POOLINGS = ("cls", "mean", "max", "weightedmean", "lasttoken")
TEXT_ONLY = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
ANY = object()
# the values with which a setting changes nothing here, besides null, false and empty ones
KNOWN = {
    "Transformer": {
        "max_seq_length": ANY,
        "transformer_task": "feature-extraction",
        "modality_config": TEXT_ONLY,
        "module_output_name": "token_embeddings",
        "unpad_inputs": ANY,
    },
    "Pooling": {"word_embedding_dimension": ANY, "embedding_dimension": ANY, "include_prompt": ANY},
    "Normalize": {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"},
    SENTENCE_SETTINGS: {"__version__": ANY, "prompts": ANY, "model_type": "SentenceTransformer"},
}


def sentence_length(model) -> int | None:
    """Return the largest number of tokens that a model's checkpoint reads of a text, or None if it sets none.

    ValueError for settings of sentence-transformers, next to the weights, that make the vector of a text from anything
    but the mean of all token vectors, such as [CLS], another layer after the mean, or a prompt before the text.
    """
    name = getattr(model.config, "name_or_path", "")
    try:
        folder = checkpoint_folder(name) if name else None
    except OSError:  # the folder that it was loaded from no longer exists
        folder = None
    if folder is None:
        return None
    modules = read_modules(folder)
    kinds = [kind for kind, _ in modules]
    labels = [pooling_of(path) if kind == "Pooling" else kind for kind, path in modules]
    if labels and labels not in (["mean"], ["Transformer", "mean"], ["Transformer", "mean", "Normalize"]):
        others = [label for label in labels if label not in ("Transformer", "mean", "Normalize")] or labels
        raise ValueError(
            f"{name} does not average its token vectors ({MODULES} and {POOLING}: {', '.join(others)}): "
            f"use a checkpoint with mean pooling, such as {DEFAULT_CHECKPOINT}"
        )
    limits = []
    for kind, path in modules:
        for file in sorted(path.glob("sentence_*_config.json" if kind == "Transformer" else "config.json")):
            settings = read_settings(file)
            check_known(name, file, settings, kind)
            limits.append(settings.get("max_seq_length"))
    settings = read_settings(folder / SENTENCE_SETTINGS)
    similarity = {"similarity_fn_name": ANY if "Normalize" in kinds else "cosine"}
    check_known(name, folder / SENTENCE_SETTINGS, settings, SENTENCE_SETTINGS, similarity)
    if "Transformer" in kinds:
        limits.append(read_settings(folder / "tokenizer_config.json").get("model_max_length"))
    return min((int(limit) for limit in limits if limit), default=None)


def read_modules(folder: Path) -> list[tuple[str, Path]]:
    """Return the name and the folder of each module of sentence-transformers, in their order; [] without any."""
    if not (folder / MODULES).is_file() and (folder.parent / MODULES).is_file() and folder.name.startswith("0_"):
        folder = folder.parent  # an old checkpoint, whose weights are in 0_Transformer
    if not (folder / MODULES).is_file():
        return [("Pooling", (folder / POOLING).parent)] if (folder / POOLING).is_file() else []
    with wrap_read_errors(folder / MODULES):
        modules = json.loads((folder / MODULES).read_text("utf-8"))
        return [(module["type"].split(".")[-1], folder / module.get("path", "")) for module in modules]


def read_settings(file: Path) -> dict:
    """Return the settings in a JSON file, or {} if it does not exist."""
    if not file.is_file():
        return {}
    with wrap_read_errors(file):
        return dict(json.loads(file.read_text("utf-8")))


def pooling_of(path: Path) -> str:
    """Return the kinds of pooling that a module's configuration names, joined by +; "mean" if it names none."""
    settings = read_settings(path / "config.json")
    modes = [key.removeprefix("pooling_mode_") for key, value in settings.items() if value is True]
    modes = settings.get("pooling_mode") or [mode for mode in modes if mode.split("_")[0] in POOLINGS]
    modes = [modes] if isinstance(modes, str) else modes
    return "+".join(mode.removesuffix("_tokens").removesuffix("_token") for mode in modes) or "mean"


def check_known(name: str, file: Path, settings: Mapping, kind: str, more: Mapping = {}) -> None:
    """Raise ValueError for a setting that could change the vector of a text."""
    for key, value in settings.items():
        expected = (KNOWN[kind] | more).get(key)
        harmless = key.startswith("pooling_mode") or expected is ANY or value == expected or not value
        if not harmless:
            raise ValueError(
                f"{name} sets {key}={value!r:.60} ({file.name}), which is not supported here: "
                f"use a checkpoint without it, such as {DEFAULT_CHECKPOINT}"
            )
