"""A classifier on the encoder: pooler, dropout and a linear head, saved and loaded whole. Built in notebook 08."""

import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from utils.checkpoints import is_encoder_weight, load_config, load_reference_model
from utils.encoder import TransformerEncoder, check_fit, rename_weight

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


class TransformerForSequenceClassification(nn.Module):
    """BERT with a classification head: [CLS] → pooler → dropout → linear (Devlin et al. 2019, section 4.1)."""

    def __init__(self, config: BertConfig):
        """Random weights, in training mode; `config.num_labels` classes. ValueError for fewer than two."""
        super().__init__()
        H, num_labels = config.hidden_size, check_num_labels(config.num_labels)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.pooler = nn.Linear(H, H)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(H, num_labels)

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None, num_labels: int = 2):
        """Pretrained encoder and pooler under an untrained head, in evaluation mode; a trained head is left out."""
        config = load_config(checkpoint)
        config.num_labels = num_labels
        model, body = cls(config), load_reference_model(checkpoint).state_dict()
        head = {f"classifier.{name}": weight for name, weight in model.classifier.state_dict().items()}
        model.load_bert_weights({f"bert.{name}": weight for name, weight in body.items()} | head)
        return model.eval()

    @classmethod
    def load(cls, folder: str | Path, num_labels: int | None = None):
        """What `save` or transformers' `save_pretrained` wrote, in evaluation mode.

        `num_labels` is how many you expect. FileNotFoundError for no folder; ValueError for a half-written one, for
        weights that do not fit their config and for a head with another number of labels.
        """
        config, state_dict = read_folder(Path(folder), num_labels)
        model = cls(config)
        model.load_bert_weights(state_dict)
        return model.eval()

    def save(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors for `load` and for transformers, whole or not at all."""
        write_folder(Path(folder), self.config, official_weights(self.config, self.state_dict()))

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy a `BertForSequenceClassification`'s weights; ValueError lists those that do not fit."""
        self.load_state_dict(rename_classifier_weights(state_dict, self.state_dict()))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """input_ids, attention_mask (1 = real token) and token_type_ids (B, S) to logits (B, num_labels)."""
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        pooled = torch.tanh(self.pooler(hidden_states[:, 0]))  # (B, H), of [CLS] alone
        return self.classifier(self.dropout(pooled))


def check_num_labels(num_labels: int) -> int:
    """Return the number of classes; ValueError for fewer than two, between which there is nothing to choose."""
    if num_labels < 2:
        raise ValueError(f"num_labels={num_labels}: a classifier needs two classes or more")
    return num_labels


def head_dropout(config: BertConfig) -> float:
    """The dropout probability before the head: `classifier_dropout`, or `hidden_dropout_prob` where that is None."""
    dropout = getattr(config, "classifier_dropout", None)
    return config.hidden_dropout_prob if dropout is None else dropout


def rename_classifier_weight(name: str) -> str:
    """Our name for one of `BertForSequenceClassification`'s, such as pooler.weight for bert.pooler.dense.weight."""
    name = name.removeprefix("bert.")
    if is_encoder_weight(name):
        return f"encoder.{rename_weight(name)}"
    return name.replace("pooler.dense.", "pooler.")


def rename_classifier_weights(state_dict: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor]:
    """Official weights under our names; ValueError unless they fit the wanted ones exactly."""
    buffers = ("position_ids", ".token_type_ids")  # old checkpoints store them; they are no weights
    found = {
        rename_classifier_weight(name): weight
        for name, weight in state_dict.items()
        if not name.endswith(buffers)
    }
    if "classifier.weight" in found:
        check_head(len(found["classifier.weight"]), len(wanted["classifier.weight"]))
    check_fit(found, wanted)
    return found


def check_head(found: int, wanted: int) -> None:
    """ValueError if a stored head distinguishes another number of labels than wanted."""
    if found != wanted:
        raise ValueError(
            f"the stored head has {found} labels, and {wanted} are wanted: ask for num_labels={found}, "
            f"or take from_checkpoint(…, num_labels={wanted}), which starts with an untrained head"
        )


def official_weights(config: BertConfig, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our weights under the names of transformers' `BertForSequenceClassification`, on the CPU."""
    with torch.device("meta"):  # names only, no memory
        names = BertForSequenceClassification(config).state_dict()
    return {name: state_dict[rename_classifier_weight(name)].cpu().contiguous() for name in names}


def write_folder(folder: Path, config: BertConfig, weights: dict[str, Tensor]) -> None:
    """Write a model beside `folder` and move it there once whole; other files in `folder` are kept.

    OSError where it cannot be written (nothing old is lost then); ValueError for a folder of something else.
    """
    folder = folder.expanduser().resolve()
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with taking_turns(folder.parent) as alone:
            check_replaceable(folder)
            clear_leftovers(folder, partial, alone)
            fill_folder(partial, folder, config, weights)
            replace_folder(partial, folder)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"the model could not be saved in {folder} ({error}): choose a folder that you may write, "
            "on a disk with room for it"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def taking_turns(parent: Path) -> Iterator[bool]:
    """Wait until no other process saves in `parent`; False, without waiting, where the system cannot lock a folder."""
    try:
        import fcntl  # not on Windows

        handle = os.open(parent, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        yield lock(fcntl, handle)
    finally:
        os.close(handle)  # which unlocks it, and so does the end of the process, whatever ends it


def lock(fcntl, handle: int) -> bool:
    """Wait for an exclusive lock; False on a file system that has none, such as some network drives."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def clear_leftovers(folder: Path, partial: Path, alone: bool) -> None:
    """Put right what a killed save left: the old model comes back to its place, half-written ones are removed."""
    if previous_folder(folder).exists() and not folder.exists():
        previous_folder(folder).rename(folder)
    others = folder.parent.glob(f".{glob.escape(folder.name)}.*.partial") if alone else []
    for leftover in (partial, *others):
        shutil.rmtree(leftover, ignore_errors=True)


def check_replaceable(folder: Path) -> None:
    """ValueError for a folder that holds files, but no model: a model's files would be lost among them."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG_FILE).exists():
        raise ValueError(f"{folder} holds other files than a model's: save into a folder of its own")


def fill_folder(partial: Path, folder: Path, config: BertConfig, weights: dict[str, Tensor]) -> None:
    """Write the model into `partial`, with copies of the other files of `folder` (a tokenizer's, for instance)."""
    if folder.exists():
        shutil.copytree(folder, partial, ignore=shutil.ignore_patterns(CONFIG_FILE, WEIGHTS_FILE))
    else:
        partial.mkdir(parents=True)
    content = json.loads(config.to_json_string())
    content = {key: value for key, value in content.items() if key not in ("dtype", "torch_dtype")}
    content["architectures"] = ["BertForSequenceClassification"]
    (partial / CONFIG_FILE).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    save_file(weights, partial / WEIGHTS_FILE, metadata={"format": "pt"})


def replace_folder(partial: Path, folder: Path) -> None:
    """Move `partial` to `folder`; the old folder steps aside until the new one stands, and back if that fails."""
    previous = previous_folder(folder)
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
    try:
        if folder.exists():
            folder.rename(previous)
        partial.rename(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.rename(folder)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def previous_folder(folder: Path) -> Path:
    """Where the old model stands while a new one takes its place."""
    return folder.with_name(f".{folder.name}.previous")


def read_folder(folder: Path, num_labels: int | None = None) -> tuple[BertConfig, dict[str, Tensor]]:
    """A saved model's configuration and weights, from the old copy if a save was cut off between its two renames."""
    folder = folder.expanduser().resolve()
    if not folder.exists() and previous_folder(folder).exists():
        folder = previous_folder(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: pass one that save() has written")
    missing = [name for name in (CONFIG_FILE, WEIGHTS_FILE) if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder} lacks {' and '.join(missing)}, so it holds no whole model: save it again")
    try:
        content = json.loads((folder / CONFIG_FILE).read_text("utf-8"))
        weights = load_file(folder / WEIGHTS_FILE)
    except (ValueError, SafetensorError) as error:  # a JSON or safetensors file that ends too early
        raise ValueError(f"{folder} is half-written or altered ({error}): save the model again") from error
    if content.get("model_type") != "bert":
        raise ValueError(
            f'{folder} holds model_type="{content.get("model_type")}", and this series builds "bert"'
        )
    config = BertConfig.from_dict(content)
    if num_labels is not None:
        check_head(config.num_labels, num_labels)
    return config, weights
