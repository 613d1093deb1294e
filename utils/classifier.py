"""A classifier on the encoder: pooler, dropout and a linear head. Built in notebook 08."""

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.checkpoint import checkpoint_folder, read_checkpoint
from utils.checks import check_size
from utils.encoder import TransformerEncoder, initialize
from utils.saving import SavedModel


class TransformerForSequenceClassification(SavedModel):
    """BERT with a classification head: [CLS] → pooler → dropout → linear (Devlin et al. 2019, section 4.1)."""

    architecture = "BertForSequenceClassification"
    without_head = "num_labels=2 asks for a new, untrained one"

    def __init__(self, config: BertConfig):
        """Random weights, in training mode; `config.num_labels` classes. ValueError for fewer than two."""
        super().__init__()
        H = config.hidden_size
        check_size("num_labels", config.num_labels, minimum=2)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.pooler = nn.Linear(H, H)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(H, config.num_labels)
        for part in (self.pooler, self.classifier):
            initialize(part, config.initializer_range)

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None, num_labels: int | None = None):
        """What was saved, whole, in evaluation mode; `num_labels` asks for a new, untrained last layer.

        The encoder is the checkpoint's then, and the pooler too, if it has one. That of the embedded checkpoint is
        itself an untrained draw (notebook 08). ValueError for a checkpoint without a last layer, and no `num_labels`.
        """
        if num_labels is None:
            return super().from_checkpoint(checkpoint)
        config, weights = read_checkpoint(checkpoint)
        config.id2label, config.num_labels = (None, num_labels)  # the names of its classes went with the old layer
        model = cls(config)
        model.encoder.load_bert_weights(weights)
        if "pooler.dense.weight" in weights:
            pooler = {kind: weights[f"pooler.dense.{kind}"] for kind in ("weight", "bias")}
            model.pooler.load_state_dict(pooler)
        model.checkpoint = str(checkpoint_folder(checkpoint))
        return model.eval()

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
