"""A label for every token: model, alignment of labels with pieces, and predictions. Built in notebook 15."""

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.classifier import head_dropout
from utils.encoder import TransformerEncoder, initialize
from utils.support.batches import collate, device_of, evaluation_mode, sorted_batches
from utils.support.checks import check_size
from utils.training import loss_sums
from utils.weights import HeadedModel

IGNORED = -100  # cross_entropy ignores positions with this label (its ignore_index)


class TransformerForTokenClassification(HeadedModel):
    """BERT with a label for every token: encoder → dropout → linear, at each position (Devlin et al. 2019, 5.3).

    Built in notebook 15, section “The head: one linear layer, everywhere”.
    """

    architecture = "BertForTokenClassification"
    without_head = "pass num_labels=2 for a new, untrained one"

    def __init__(self, config: BertConfig):
        """Initialize the weights at random, in training mode. ValueError for fewer than two classes."""
        super().__init__()
        check_size("num_labels", config.num_labels, minimum=2)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        initialize(self.classifier, config.initializer_range)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, S, num_labels) for input_ids, attention_mask (1 = real token) and token_type_ids (B, S)."""
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(self.dropout(hidden_states))


def align(words: Sequence[str], labels: Sequence[int], tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids of words, and equally many labels: a word's label at its first piece, -100 everywhere else.

    [CLS] at the start and [SEP] at the end have -100, too. ValueError unless each word has a label. Built in notebook
    15, exercise 15.2.
    """
    if len(words) != len(labels):
        raise ValueError(f"got {len(words)} words and {len(labels)} labels: pass one label per word")
    cls_id, sep_id = tokenizer.encode("")
    ids, aligned = [cls_id], [IGNORED]
    for word, label in zip(words, labels, strict=True):
        # a word without pieces, such as a control character, becomes [UNK], so that its label is kept
        pieces = tokenizer.encode(word, add_special_tokens=False)
        pieces = pieces or tokenizer.encode("[UNK]", add_special_tokens=False)
        ids += pieces
        aligned += [label] + [IGNORED] * (len(pieces) - 1)
    return [*ids, sep_id], [*aligned, IGNORED]


def align_parts(words: Sequence[str], labels: Sequence[int], tokenizer, room: int) -> list[tuple[list[int], list[int]]]:
    """Align as `align` does, in as few rows of at most `room` ids as possible, cut between words.

    ValueError for a word that does not fit into a row.
    """
    rows, start = [], 0
    sizes = [len(align([word], [0], tokenizer)[0]) - 2 for word in words]
    while start < len(words):
        end, size = start, 2
        while end < len(words) and size + sizes[end] <= room:
            size += sizes[end]
            end += 1
        if end == start:
            raise ValueError(
                f"{words[start]!r:.80} has {sizes[start]} pieces, and a row takes {room - 2}: "
                "use a model with more positions"
            )
        rows.append(align(words[start:end], labels[start:end], tokenizer))
        start = end
    return rows


def join_parts(parts: Sequence[list], counts: Sequence[int]) -> list[list]:
    """Join consecutive lists: `counts` holds the number of lists for each text."""
    parts = iter(parts)
    return [[item for part in islice(parts, count) for item in part] for count in counts]


# Training and prediction


def token_classification_loss(
    model: nn.Module, rows: Sequence[tuple[list[int], list[int]]], batch: Sequence[int]
) -> Tensor:
    """Return the `loss_sums` of a model on the rows with these indices, (3,), as `fit` takes it.

    A row is what `align` returns; only tokens with a label count. Built in notebook 15, section “Train one first”.
    """
    inputs = collate([rows[index][0] for index in batch], device_of(model))
    labels = torch.full_like(inputs["input_ids"], IGNORED)
    for place, index in enumerate(batch):
        labels[place, : len(rows[index][1])] = torch.tensor(rows[index][1])
    selected = labels != IGNORED
    return loss_sums(model(**inputs)[selected], labels[selected])


def predict_labels(model: nn.Module, tokenizer, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the most likely label of each word, read at the word's first piece, in evaluation mode.

    Each text is a list of words. ValueError for a text with more tokens than the model has positions.
    """
    return predict_rows(model, [align(words, [0] * len(words), tokenizer) for words in texts])


@torch.no_grad()
def predict_rows(model: nn.Module, rows: Sequence[tuple[list[int], list[int]]]) -> list[list[int]]:
    """Return the most likely label at each labelled position of rows of ids and labels, in evaluation mode."""
    found = [[] for _ in rows]
    with evaluation_mode(model):
        for batch in sorted_batches([ids for ids, _ in rows], 64):
            logits = model(**collate([rows[index][0] for index in batch], device_of(model)))
            for index, answers in zip(batch, logits.argmax(dim=-1).tolist(), strict=True):
                marked = zip(answers, rows[index][1], strict=False)  # padding has no label
                found[index] = [answer for answer, label in marked if label != IGNORED]
    return found
