"""A tiny BERT learns from film reviews by guessing masked words, then from pairs of texts. Built in notebook 11.

`scripts/pretrain.py` runs it from the command line, and goes on where it was stopped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.batches import collate, device_of
from utils.checks import check_between
from utils.encoder import TransformerEncoder
from utils.masked_lm import mask_tokens
from utils.search import mean_pooling
from utils.training import History, make_optimizer, summed, train_epoch

TINY = {
    "vocab_size": 2000,
    "hidden_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 768,
    "max_position_embeddings": 64,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.0,  # no text comes often enough for dropout
    "attention_probs_dropout_prob": 0.0,
}
WINDOW = 8192  # rows shuffled among themselves, so that a run's first batches need its first texts only
TEMPERATURE = 0.05  # divides cosines before softmax, as for the embedded checkpoint


@dataclass(frozen=True)
class Settings:
    """What decides a run's weights, beside model and texts. `steps` is the length of the whole schedule."""

    steps: int = 12_000
    batch_size: int = 32  # rows
    learning_rate: float = 1e-3
    probability: float = 0.2  # of a word to be asked for
    seed: int = 0

    def __post_init__(self):
        check_between("probability", self.probability, 0, 1, "BERT's is 0.15")
        if self.steps < 1 or self.batch_size < 1 or self.seed < 0:
            given = f"steps={self.steps}, batch_size={self.batch_size} and seed={self.seed}"
            raise ValueError(f"nothing to learn with {given}: use 1, 1 and 0 at least")


def endless_batches(total: int, settings: Settings) -> Iterator[list[int]]:
    """Batches of row numbers without end, each epoch's in another order, shuffled within windows."""
    for epoch in count(1000 * settings.seed):
        generator = torch.Generator().manual_seed(epoch)
        windows = torch.arange(total).split(WINDOW)
        order = [window[torch.randperm(len(window), generator=generator)] for window in windows]
        yield from (batch.tolist() for batch in torch.cat(order).split(settings.batch_size))


def masked_batches(
    rows: Tensor, tokenizer, settings: Settings, start: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of rows (N, S) with words hidden, and their labels, (B, S) each, without end, from a step on.

    What is drawn depends on seed and step alone, so that a run that was cut off can go on as if nothing had happened.
    """
    batches = islice(endless_batches(len(rows), settings), start, None)
    for step, batch in enumerate(batches, start):
        seed = 10_000_000 * settings.seed + step
        torch.manual_seed(seed)  # for dropout
        generator = torch.Generator().manual_seed(seed)
        yield mask_tokens(rows[batch], tokenizer, settings.probability, generator)


def guess_words(model: nn.Module, hidden: Tensor, labels: Tensor) -> Tensor:
    """Guess the words that labels (B, S) ask for; summed loss, right guesses and number of them, (3,)."""
    hidden, labels = hidden.to(device_of(model)), labels.to(device_of(model))
    asked = labels != -100
    return summed(model(hidden, where=asked), labels[asked])


def find_partners(encoder: nn.Module, pairs: Sequence[tuple[list[int], list[int]]]) -> Tensor:
    """Let each first text find its second among all of the batch; summed loss, right partners and number, (3,).

    Henderson et al. 2017: the other pairs' second texts are the wrong answers.
    """
    first, second = (mean_vectors(encoder, rows) for rows in zip(*pairs, strict=True))
    scores = first @ second.T / TEMPERATURE  # (B, B)
    return summed(scores, torch.arange(len(pairs), device=scores.device))


def mean_vectors(encoder: nn.Module, rows: Sequence[list[int]]) -> Tensor:
    """Rows of ids to unit vectors (B, H): the mean of each text's tokens."""
    batch = collate(rows, device_of(encoder))
    states = encoder(**batch).last_hidden_state
    return F.normalize(mean_pooling(states, batch["attention_mask"]), dim=-1)


def contrast(
    encoder: TransformerEncoder, pairs: list[tuple[list[int], list[int]]], batch_size: int
) -> History:
    """Train an encoder, in place, on pairs of rows of ids, each pair once and in their order; the loss of each step.

    The learning rate grows with the root of the batch, since larger ones leave fewer steps.
    """
    batches = [pairs[start : start + batch_size] for start in range(0, len(pairs), batch_size)]
    optimizer, schedule = make_optimizer(encoder, 2e-4 * batch_size**0.5, len(batches))
    history, loss = History(), partial(find_partners, encoder)
    train_epoch(encoder, batches, loss, optimizer, schedule, history, disable=True)
    encoder.eval()
    return history
