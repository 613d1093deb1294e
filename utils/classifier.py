"""A classifier on the encoder: pooler, dropout and a linear head. Built in notebook 08."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.encoder import TransformerEncoder, initialize
from utils.support.checks import check_classes
from utils.weights import HeadedModel


class TransformerForSequenceClassification(HeadedModel):
    """BERT with a classification head: [CLS] → pooler → dropout → linear (Devlin et al. 2019, section 4.1).

    Built in notebook 08, exercise 8.1.
    """

    architecture = "BertForSequenceClassification"
    without_head = "pass num_labels=2 for a new, untrained one"

    def __init__(self, config: BertConfig):
        """Initialize the weights at random, in training mode. ValueError for what `check_classes` refuses."""
        super().__init__()
        H = config.hidden_size
        check_classes(config)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.pooler = nn.Linear(H, H)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(H, config.num_labels)
        for part in (self.pooler, self.classifier):
            initialize(part, config.initializer_range)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, num_labels) for input_ids, attention_mask (1 = real token) and token_type_ids (B, S)."""
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        pooled = torch.tanh(self.pooler(hidden_states[:, 0]))  # (B, H), of [CLS] alone
        return self.classifier(self.dropout(pooled))


def head_dropout(config: BertConfig) -> float:
    """Return the dropout probability before the head: `classifier_dropout`, or else `hidden_dropout_prob`.

    Built in notebook 08, exercise 8.1.
    """
    dropout = getattr(config, "classifier_dropout", None)
    return config.hidden_dropout_prob if dropout is None else dropout


def leave_one_out(score: Callable[[list[str]], float], words: list[str]) -> list[float]:
    """Return for each word how much the score of all words drops when that word alone is left out.

    Built in notebook 08, exercise 8.3.
    """
    whole = score(words)
    return [whole - score(words[:position] + words[position + 1 :]) for position in range(len(words))]
