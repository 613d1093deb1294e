"""A model on the encoder that is saved as a checkpoint, which every reader of one reads, and comes back from it."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import BertConfig

from utils.checkpoint import (
    CONFIG,
    NOT_THE_MODELS,
    TOKENIZER_FILES,
    WEIGHTS,
    canonical_name,
    checkpoint_folder,
    load_tokenizer,
    read_checkpoint,
)
from utils.checks import check_finite_weights, check_vocabulary_size
from utils.files import new_folder
from utils.tokenization import read_vocabulary, write_vocabulary
from utils.weights import HEADS, official_headed_name, rename_headed_weight, rename_weights

MODEL_FILES = (CONFIG, WEIGHTS, *TOKENIZER_FILES)  # all that is saved, or replaced


class SavedModel(nn.Module):
    """A model on the encoder that is saved as a checkpoint, and comes back from one."""

    architecture: str  # the class of transformers that has the same weights
    without_head = "use one that was saved with it"  # the remedy for a checkpoint that has none
    checkpoint: str | None = None  # where its vocabulary is, once it came from there

    def load_bert_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Copy the weights of transformers' model; ValueError lists those that do not fit."""
        rename = partial(rename_headed_weight, architecture=self.architecture)
        self.load_state_dict(rename_weights(state_dict, self.state_dict(), rename))

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None, num_labels: int | None = None):
        """Return the saved model in evaluation mode; with `num_labels`, its last layer is new and untrained.

        Encoder and pooler, if the checkpoint has one, are the checkpoint's in either case. That of the embedded one is
        itself an untrained draw (notebook 08). ValueError for a checkpoint without a last layer, and no `num_labels`.
        """
        config, weights = read_checkpoint(checkpoint)
        heads = {canonical_name(theirs): ours for theirs, ours in HEADS[cls.architecture].items()}
        pretrained = {canonical_name(name) for name in HEADS[cls.architecture] if name.startswith("bert.")}
        if num_labels is not None:  # what the configuration says of its classes goes with the old layer
            config.id2label, config.num_labels, config.problem_type = None, num_labels, None
        elif not any(name.startswith(tuple(heads.keys() - pretrained)) for name in weights):
            missing = f"{config.name_or_path} holds no weights of this model's head ({min(heads.keys() - pretrained)}…)"
            raise ValueError(f"{missing}: {cls.without_head}")
        model = cls(config)
        if num_labels is None:
            model.load_bert_weights(weights)
        else:
            model.encoder.load_bert_weights(weights)
            for name in pretrained:
                part = getattr(model, heads[name])
                found = {key.removeprefix(f"{name}."): weights[key] for key in weights if key.startswith(f"{name}.")}
                if found:
                    part.load_state_dict(rename_weights(found, part.state_dict(), str))
        model.checkpoint = str(checkpoint_folder(checkpoint))
        return model.eval()

    def save(
        self,
        folder: str | Path,
        tokenizer=None,
        labels: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Write configuration, weights and vocabulary for every `from_checkpoint`, and for transformers.

        `tokenizer` is by default that of the checkpoint which the model came from, `labels` name the classes. A folder
        that was saved before is replaced whole, or stays: OSError where it cannot be written; ValueError for a
        tokenizer or labels that do not fit the model, for weights with NaN or inf, for a vocabulary that could not be
        read again, and for a folder that holds anything else than a model of the same kind.
        """
        folder = Path(folder).expanduser().resolve()
        if tokenizer is None and self.checkpoint is None:
            raise ValueError("this model was made from a configuration, which has no vocabulary: pass tokenizer=")
        vocab, lowercase = read_vocabulary(tokenizer or load_tokenizer(self.checkpoint))
        check_vocabulary_size(vocab, self.config.vocab_size)
        weights = {
            official_headed_name(name, self.architecture): weight.to("cpu", dtype).contiguous()
            for name, weight in self.state_dict().items()
        }
        check_finite_weights(weights)
        config = saved_config(self.config, self.architecture, labels)
        with new_folder(folder, MODEL_FILES, partial(check_own_folder, architecture=self.architecture)) as draft:
            config.save_pretrained(draft)
            save_file(weights, draft / WEIGHTS, {"format": "pt"})
            # safetensors lets nobody but its owner read it
            (draft / WEIGHTS).chmod((draft / CONFIG).stat().st_mode)
            write_vocabulary(draft, vocab, lowercase, self.config.max_position_embeddings)


def check_own_folder(folder: Path, architecture: str) -> None:
    """Refuse to save where there is anything else than regular files of a model of this architecture: it would go."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file: save into a folder")
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    remedy = "save into a folder of its own"
    for path in found:
        if path.name not in MODEL_FILES or path.is_symlink() or not path.is_file():
            raise ValueError(f"{folder} holds {path.name}, which is no file of a model: {remedy}")
    if found:
        try:
            kinds = json.loads((folder / CONFIG).read_text("utf-8"))["architectures"]
        except (OSError, ValueError, KeyError, TypeError):
            kinds = None
        if kinds != [architecture]:
            raise ValueError(f"{folder} holds {found[0].name}, and no saved {architecture}: {remedy}")


def saved_config(config: BertConfig, architecture: str, labels: Sequence[str] | None) -> BertConfig:
    """The configuration as it is saved: without a program's settings, and with the names of its classes, if given."""
    settings = {name: value for name, value in config.to_dict().items() if name not in NOT_THE_MODELS}
    settings["architectures"] = [architecture]
    if labels is not None:
        listed = isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels)
        if not listed or not len(labels) == len(set(labels)) == config.num_labels:
            wanted = f"a list of {config.num_labels} different names, in the order of the classes"
            raise ValueError(f"labels={labels!r:.80} must be {wanted}")
        settings["id2label"] = dict(enumerate(labels))
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    return BertConfig.from_dict(settings)
