"""How good a classifier is, and what it says of a text: evaluation and prediction. Built in notebook 08."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.datasets import Examples, collate, sorted_batches, token_ids


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
    rows = token_ids(texts, tokenizer, usable_length(model, max_length))
    probabilities = compute_logits(model, rows, batch_size).softmax(dim=-1)
    return Predictions(probabilities.argmax(dim=-1), probabilities)


def encode(model: nn.Module, tokenizer, examples: Examples, max_length: int | None) -> list[list[int]]:
    """The examples' ids; ValueError unless there are some, and each label is one of the model's classes."""
    if not isinstance(examples, Examples):
        raise TypeError(f"examples must be Examples(texts, labels), got {type(examples).__name__}")
    classes = model.config.num_labels
    for number, label in enumerate(examples.labels):
        if not isinstance(label, Integral) or not 0 <= label < classes:
            raise ValueError(
                f"label {label!r} of text {number} is outside the classes 0 … {classes - 1} of the model"
            )
    return token_ids(examples.texts, tokenizer, usable_length(model, max_length))


def usable_length(model: nn.Module, max_length: int | None) -> int:
    """How many tokens of a text the model reads: `max_length`, and never more than it has positions."""
    positions = model.config.max_position_embeddings
    if max_length is not None and max_length < 3:
        raise ValueError(
            f"max_length={max_length} leaves no room for a word between [CLS] and [SEP]: use 3 or more"
        )
    return positions if max_length is None else min(max_length, positions)


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


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and afterwards back to what it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def device_of(model: nn.Module) -> torch.device:
    """Where the model's weights are."""
    return next(model.parameters()).device


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """95 % interval of a share such as an accuracy (Wilson 1927): never below 0 nor above 1, right for few too."""
    if not 0 <= right <= total or total == 0:
        raise ValueError(
            f"{right} right answers of {total}: the count must lie between 0 and a total above 0"
        )
    z, share = 1.96, right / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap_interval(values: Sequence[float], seed: int = 0, samples: int = 2000) -> tuple[float, float]:
    """95 % interval of a mean, by drawing as many values again with replacement (Efron 1979)."""
    values = torch.as_tensor(values, dtype=torch.float64)
    if values.dim() != 1 or not len(values) or not values.isfinite().all():
        raise ValueError("values must be a list of one finite number or more: leave out those that have none")
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randint(len(values), (samples, len(values)), generator=generator)
    low, high = values[draws].mean(dim=1).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high
