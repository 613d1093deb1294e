"""Generate text with a decoder by greedy search. Built in notebook 12."""

from collections.abc import Callable

import torch
from torch import Tensor


def greedy_step(next_scores: Callable, ids: Tensor, end: int) -> Tensor:
    """Append the most likely token to the texts (B, T), or the end token to those that have ended: (B, T + 1).

    `next_scores` maps texts to the scores (B, V) of their next tokens. A text begins with a start token, which may be
    the end token as well. Built in notebook 12, exercise 12.3.
    """
    best = next_scores(ids).argmax(dim=-1)  # (B)
    ended = (ids[:, 1:] == end).any(dim=1)  # (B)
    return torch.cat([ids, best.masked_fill(ended, end)[:, None]], dim=1)  # (B, T + 1)


def greedy_search(
    next_scores: Callable, ids: Tensor, end: int, max_length: int, step: Callable = greedy_step
) -> Tensor:
    """Append tokens to the texts (B, T) until each has its end token, or to `max_length` tokens: (B, up to max_length).

    Built in notebook 12, exercise 12.3.
    """
    while ids.size(1) < max_length and not (ids[:, 1:] == end).any(dim=1).all():
        ids = step(next_scores, ids, end)
    return ids
