"""A classifier on the encoder: pooler, dropout and a linear head, saved and loaded whole. Built in notebook 08."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from utils.checking import (
    require_finite_weights,
    require_fit,
    require_head,
    require_label_names,
    require_num_labels,
    require_vocabulary,
)
from utils.checkpoints import (
    BUFFERS,
    TOKENIZER_FILES,
    checkpoint_name,
    is_encoder_weight,
    load_config,
    load_reference_model,
    load_tokenizer,
    make_config,
    read_config,
    read_vocabulary,
    require_bert,
)
from utils.encoder import TransformerEncoder, initialize, rename_weight
from utils.files import CONFIG_FILE, INDEX_FILE, WEIGHTS_FILE, read_weights, written_at
from utils.saving import LOCK, write_folder
from utils.tokenization import WordPieceTokenizer, tokenizer_files


class Saved(nn.Module):
    """A classifier that is saved in a folder, and comes back from it."""

    checkpoint: str | None = None  # where its vocabulary is, once it came from there

    @classmethod
    def load(cls, folder: str | Path, num_labels: int | None = None):
        """What `save` or transformers' `save_pretrained` wrote, in evaluation mode.

        `num_labels` is how many you expect. FileNotFoundError for no folder; ValueError for a half-written one, for
        weights that do not fit their config and for a head with another number of labels.
        """
        folder = Path(folder).expanduser().resolve()
        config, state_dict = read_folder(folder, num_labels)
        model = cls(config)
        model.load_bert_weights(state_dict)
        model.checkpoint = str(folder)
        return model.eval()

    def save(self, folder: str | Path, tokenizer=None, labels: Sequence[str] | None = None) -> None:
        """Write configuration, weights and vocabulary for `load`, for transformers and for every `from_checkpoint`.

        `tokenizer` is by default that of the checkpoint which the model came from, `labels` name the classes. Written
        whole or not at all: OSError where it cannot be; ValueError for a tokenizer or labels that do not fit the
        model, for weights with NaN or inf, and for a folder of something else. What was there before stays then.
        """
        folder = require_own_folder(Path(folder).expanduser().resolve())
        require_finite_weights(self.state_dict())
        contents = config_file(self.config, labels) | weights_file(self.config, self.state_dict())
        contents |= vocabulary_files(tokenizer, self.checkpoint, self.config)
        write_folder(folder, contents)


class TransformerForSequenceClassification(Saved):
    """BERT with a classification head: [CLS] → pooler → dropout → linear (Devlin et al. 2019, section 4.1)."""

    def __init__(self, config: BertConfig):
        """Random weights, in training mode; `config.num_labels` classes. ValueError for fewer than two."""
        super().__init__()
        H, num_labels = config.hidden_size, require_num_labels(config.num_labels)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.pooler = nn.Linear(H, H)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(H, num_labels)
        for part in (self.pooler, self.classifier):
            initialize(part, config.initializer_range)

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None, num_labels: int = 2):
        """Pretrained encoder, the checkpoint's pooler and an untrained last layer, in evaluation mode.

        The embedded checkpoint's pooler is itself an untrained draw (notebook 08). A trained head is left out.
        """
        config = load_config(checkpoint)
        config.num_labels = num_labels
        official, model = load_reference_model(checkpoint), cls(config)
        model.encoder.load_bert_weights(official.state_dict())
        model.pooler.load_state_dict(official.pooler.dense.state_dict())
        model.checkpoint = checkpoint_name(checkpoint)
        return model.eval()

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
    weights = {name: weight for name, weight in state_dict.items() if not name.endswith(BUFFERS)}
    found = {rename_classifier_weight(name): weight for name, weight in weights.items()}
    if "classifier.weight" in found:
        require_head(len(found["classifier.weight"]), len(wanted["classifier.weight"]))
    require_fit(found, wanted)
    require_finite_weights(found)
    return found


def weights_file(config: BertConfig, state_dict: dict[str, Tensor]) -> dict[str, bytes]:
    """Our weights under the names of transformers' `BertForSequenceClassification`, as safetensors."""
    names = {name: rename_classifier_weight(name) for name in official_weights(config)}
    weights = {name: state_dict[ours].cpu().contiguous() for name, ours in names.items()}
    return {WEIGHTS_FILE: to_bytes(weights, metadata={"format": "pt"})}


def vocabulary_files(tokenizer, checkpoint: str | None, config: BertConfig) -> dict[str, str | None]:
    """The files of the tokenizer, ours or an official one; without one, of the checkpoint's, or ValueError."""
    if tokenizer is None and checkpoint is None:
        raise ValueError("this model was made from a configuration, which has no vocabulary: pass tokenizer=")
    if not isinstance(tokenizer, WordPieceTokenizer):
        tokenizer = WordPieceTokenizer(*read_vocabulary(tokenizer or load_tokenizer(checkpoint)))
    require_vocabulary(tokenizer.vocab, config.vocab_size)
    return dict.fromkeys(TOKENIZER_FILES) | tokenizer_files(tokenizer, config.max_position_embeddings)


def config_file(
    config: BertConfig, labels: Sequence[str] | None, architecture: str = "BertForSequenceClassification"
) -> dict[str, str]:
    """The configuration as transformers reads it, its classes named: as they were, if no names are given."""
    labels = require_label_names(labels or [*config.id2label.values()], config.num_labels)
    content = json.loads(config.to_json_string())
    content = {key: value for key, value in content.items() if key not in ("dtype", "torch_dtype")}
    content["architectures"] = [architecture]
    content["id2label"] = dict(enumerate(labels))
    content["label2id"] = {label: number for number, label in enumerate(labels)}
    return {CONFIG_FILE: json.dumps(content, indent=2) + "\n"}


def require_own_folder(folder: Path) -> Path:
    """Return the folder to save in; ValueError if it holds something else, among which a model would be lost."""
    for _ in range(3):  # config.json is away for a moment while another process saves
        others = {path.name for path in folder.glob("[!.]*")} - {WEIGHTS_FILE, *TOKENIZER_FILES}
        if not others or (folder / LOCK).exists():
            return folder  # nothing there, or a save that has not ended, or was cut off
        with suppress(ValueError):
            return require_bert(folder)
    raise ValueError(f"{folder} holds other files than a model's: save into a folder of its own")


def read_folder(folder: Path, num_labels: int | None) -> tuple[BertConfig, dict[str, Tensor]]:
    """A saved model's configuration and weights; errors as in `load`."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: pass one that save() has written")
    weights_or_index = INDEX_FILE if (folder / INDEX_FILE).is_file() else WEIGHTS_FILE
    lacks = [name for name in (CONFIG_FILE, weights_or_index) if not (folder / name).is_file()]
    if lacks:
        raise ValueError(f"{folder} lacks {' and '.join(lacks)}, so it holds no whole model: save it again")
    version = written_at(folder / CONFIG_FILE)
    config = make_config(read_config(folder), folder)
    config.name_or_path = str(folder)
    require_head(config.num_labels, num_labels or config.num_labels)
    weights = read_weights(
        folder, official_weights(config), lambda name: None if name.endswith(BUFFERS) else name
    )
    if written_at(folder / CONFIG_FILE) != version:  # every save writes it
        raise ValueError(f"{folder / CONFIG_FILE} changed while the weights were read: load the model again")
    return config, weights


def official_weights(config: BertConfig) -> dict[str, Tensor]:
    """The names and shapes of a `BertForSequenceClassification`'s weights, without memory for them."""
    with torch.device("meta"):
        return BertForSequenceClassification(config).state_dict()
