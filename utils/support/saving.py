"""Save and load models as Hugging Face checkpoints."""

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import BertConfig

from utils.support.checkpoint import (
    CONFIG,
    RUNTIME_SETTINGS,
    TOKENIZER_FILES,
    WEIGHTS,
    Checkpoint,
    canonical_name,
    load_tokenizer,
    open_checkpoint,
)
from utils.support.checks import check_finite_weights, check_names, check_vocabulary_size, check_weights, raise_if_any
from utils.support.files import check_destination, copy_mode, raise_problem, replacement
from utils.support.vocabulary import read_vocabulary, write_vocabulary
from utils.support.weight_names import HEADS, official_headed_name

MODEL_FILES = (CONFIG, WEIGHTS, *TOKENIZER_FILES)  # the only files that are saved and replaced


class SavedModel(nn.Module):
    """Base class of models with an encoder and a head, which can be saved as checkpoints and loaded from them."""

    architecture: str  # the class of transformers that has the same weights
    without_head = "use one that was saved with it"  # the remedy for a checkpoint without a head
    checkpoint: str | None = None  # the folder that it was loaded from, which has its vocabulary

    @classmethod
    def from_checkpoint(cls, checkpoint: str | Path | Checkpoint | None = None, num_labels: int | None = None):
        """Return the saved model in evaluation mode; with `num_labels`, its last layer is new and untrained.

        The encoder, and the pooler if there is one, come from the checkpoint in either case. The pooler of the embedded
        checkpoint was never trained (notebook 08). ValueError for a checkpoint without a last layer, unless
        `num_labels` is given.
        """
        checkpoint = open_checkpoint(checkpoint)
        config, weights = deepcopy(checkpoint.config), checkpoint.weights
        heads = {canonical_name(theirs): ours for theirs, ours in HEADS[cls.architecture].items()}
        pretrained = {canonical_name(name) for name in HEADS[cls.architecture] if name.startswith("bert.")}
        if num_labels is not None:  # the configuration describes the classes of the old layer
            config.id2label, config.num_labels, config.problem_type = None, num_labels, None
        elif not any(name.startswith(tuple(heads.keys() - pretrained)) for name in weights):
            raise ValueError(
                f"{config.name_or_path} has no weights for this model's head ({min(heads.keys() - pretrained)}…): "
                f"{cls.without_head}"
            )
        model = cls(config)
        if num_labels is None:
            model.load_bert_weights(weights)
        else:
            model.encoder.load_bert_weights(weights)
            for name in pretrained:
                part = getattr(model, heads[name])
                stored = {key.removeprefix(f"{name}."): weights[key] for key in weights if key.startswith(f"{name}.")}
                if stored:
                    check_weights(stored, part.state_dict())
                    check_finite_weights(stored)
                    part.load_state_dict(stored)
        model.checkpoint = str(checkpoint.folder)
        return model.eval()

    def save(
        self,
        folder: str | Path,
        tokenizer=None,
        labels: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float32,
        *,
        dry_run: bool = False,
    ) -> None:
        """Write configuration, weights and vocabulary for every `from_checkpoint`, and for transformers.

        `tokenizer` defaults to that of the model's checkpoint; `labels` name the classes. Replaces an earlier save
        atomically; `dry_run` tries everything, and leaves the folder unchanged. OSError if it cannot be written, and
        for anything but a folder, such as a symbolic link. ValueError for a folder with anything but a model of the
        same kind, for a tokenizer or labels that do not fit the model, for weights that do not fit its configuration,
        for NaN or inf, and for a vocabulary that cannot be stored.
        """
        folder = check_destination(folder, "a folder")
        if tokenizer is None and self.checkpoint is None:
            raise ValueError("a model made from a configuration has no vocabulary: pass tokenizer=")
        vocab, lowercase = read_vocabulary(tokenizer or load_tokenizer(self.checkpoint))
        check_vocabulary_size(vocab, self.config.vocab_size)
        state = self.state_dict()
        own = next(kind for kind in type(self).__mro__ if "architecture" in vars(kind))  # not a class derived from it
        with torch.device("meta"):  # without memory
            new = own(self.config)
        check_names("the model", state.keys() - new.state_dict().keys())
        check_weights(state, new.state_dict(), remedy := ": write the change into the model's config, or undo it")
        check_finite_weights(state)  # also refuses integers, which are quantized
        wanted = computation(new)
        other = [
            f"{name}={value}, not {wanted[name]}"
            for name, value in computation(self).items()
            if value != wanted.get(name, value)
        ]
        raise_if_any("the model does not compute what its configuration says", {"different": other}, remedy)
        weights = {
            official_headed_name(name, self.architecture): weight.to("cpu", dtype, copy=True).contiguous()
            for name, weight in state.items()
        }
        check_finite_weights(weights)
        config = saved_config(self.config, self.architecture, labels)
        with replacement(folder, self.foreign_content, dry_run=dry_run) as draft:
            config.save_pretrained(draft)
            save_file(weights, draft / WEIGHTS, {"format": "pt"})
            copy_mode(draft / CONFIG, draft / WEIGHTS)  # safetensors makes the file readable for its owner only
            write_vocabulary(draft, vocab, lowercase, self.config.max_position_embeddings)

    @classmethod
    def check_folder(cls, folder: str | Path) -> None:
        """Raise the error of `save` for a folder that holds anything but a model of this kind."""
        folder = check_destination(folder, "a folder")
        raise_problem(folder, cls.foreign_content(folder))

    @classmethod
    def foreign_content(cls, folder: Path) -> str:
        """Return why a folder holds anything but a saved model of this kind, as the end of an error message, or ""."""
        remedy = "save into a new folder"
        try:
            files = sorted(folder.iterdir())
        except FileNotFoundError:
            return ""
        for path in files:
            if path.name not in MODEL_FILES or path.is_symlink() or path.is_dir():
                return f"contains {path.name}, which is not a file of a model: {remedy}"
        if files and read_architectures(folder) != [cls.architecture]:
            return f"contains {files[0].name}, but not a saved {cls.architecture}: {remedy}"
        return ""


def computation(model: nn.Module) -> dict[str, str]:
    """Return the settings of a model that its weights do not show: heads, activations, constants of LayerNorm."""
    names = ("num_heads", "norm_first", "eps", "activation")
    found = {f"{place}.{name}": getattr(part, name, None) for place, part in model.named_modules() for name in names}
    return {name: str(value) for name, value in found.items() if isinstance(value, (nn.Module, int, float))}


def read_architectures(folder: Path) -> list[str] | None:
    """Return the classes that the configuration in a folder names, or None."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads((folder / CONFIG).read_text("utf-8"))["architectures"]


def saved_config(config: BertConfig, architecture: str, labels: Sequence[str] | None) -> BertConfig:
    """Return the configuration to save: without a program's settings, and with the names of the classes, if given."""
    settings = {name: value for name, value in config.to_dict().items() if name not in RUNTIME_SETTINGS}
    settings["architectures"] = [architecture]
    if labels is not None:
        listed = isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels)
        listed = listed and all(label.strip() and label == label.encode(errors="ignore").decode() for label in labels)
        if not listed or not len(labels) == len(set(labels)) == config.num_labels:
            raise ValueError(
                f"labels={labels!r:.80} must be a list of {config.num_labels} different names, "
                "in the order of the classes"
            )
        settings["id2label"] = dict(enumerate(labels))
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return BertConfig.from_dict(settings)
