"""How good a classifier is, and what it says of a text: evaluation and prediction. Built in notebook 08."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.batches import collate, device_of, evaluation_mode, model_ids, sorted_batches
from utils.checks import check_labels
from utils.datasets import Examples
from utils.statistics import wilson_interval


class Evaluation(NamedTuple):
    """Mean cross-entropy (nats) and share of right answers over `total` examples."""

    loss: float
    accuracy: float
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        return wilson_interval(round(self.accuracy * self.total), self.total)


class Predictions(NamedTuple):
    """The likeliest class and the probability of every class, a row for each text, on the CPU."""

    labels: Tensor  # (N,)
    probabilities: Tensor  # (N, num_labels), rows sum to 1


class Team:
    """The processes that share a run, by a Hugging Face `Accelerator`; without one it is this process alone."""

    def __init__(self, accelerator=None):
        self.accelerator = accelerator
        self.rank = accelerator.process_index if accelerator else 0
        self.size = accelerator.num_processes if accelerator else 1

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model on its device, averaging gradients over the processes."""
        return self.accelerator.prepare(model) if self.accelerator else model

    def share(self, items: Sequence) -> Sequence:
        """This process's part: every item belongs to one process."""
        return items[self.rank :: self.size]

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the processes."""
        return self.accelerator.reduce(values, "sum") if self.accelerator else values


def evaluate(
    model: nn.Module,
    tokenizer,
    examples: Examples,
    *,
    batch_size: int = 64,
    max_length: int | None = None,
    accelerator=None,
) -> Evaluation:
    """Loss and accuracy on examples, in evaluation mode; with an accelerator each process takes its share of them."""
    team = Team(accelerator)
    rows = team.share(encode(model, tokenizer, examples, max_length))
    labels = torch.tensor(team.share(examples.labels), dtype=torch.long)
    logits = compute_logits(model, rows, batch_size)
    return summarize(team.sum(summed(logits, labels).to(device_of(model))))


def predict(
    model: nn.Module,
    tokenizer,
    texts: Sequence[str],
    *,
    batch_size: int = 64,
    max_length: int | None = None,
) -> Predictions:
    """Classify a list of texts of any length, in evaluation mode; each is cut to `max_length` and to the positions."""
    rows = model_ids(texts, model, tokenizer, max_length)
    probabilities = compute_logits(model, rows, batch_size).softmax(dim=-1)
    return Predictions(probabilities.argmax(dim=-1), probabilities)


def encode(model: nn.Module, tokenizer, examples: Examples, max_length: int | None) -> list[list[int]]:
    """The examples' ids; ValueError unless there are some, and each label is one of the model's classes."""
    if not isinstance(examples, Examples):
        raise TypeError(f"examples must be Examples(texts, labels), got {type(examples).__name__}")
    check_labels(examples.labels, model.config.num_labels)
    return model_ids(examples.texts, model, tokenizer, max_length)


def summed(logits: Tensor, labels: Tensor) -> Tensor:
    """Summed cross-entropy, number of right answers and number of examples, (3,)."""
    right = logits.argmax(dim=-1) == labels
    loss = F.cross_entropy(logits.float(), labels, reduction="sum")
    return torch.stack([loss, right.sum(), torch.ones_like(right).sum()])


def summarize(sums: Tensor) -> Evaluation:
    """What `summed` gathered, divided by the number of examples."""
    loss, right, total = sums.tolist()
    return Evaluation(loss / total, right / total, round(total))


@torch.no_grad()
def compute_logits(model: nn.Module, rows: list[list[int]], batch_size: int) -> Tensor:
    """Logits (N, num_labels) of rows of ids on the CPU, in the rows' order, in evaluation mode."""
    logits = torch.empty(len(rows), model.config.num_labels)
    with evaluation_mode(model):
        for batch in sorted_batches(rows, batch_size):
            logits[batch] = model(**collate([rows[index] for index in batch], device_of(model))).float().cpu()
    return logits
