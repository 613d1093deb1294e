"""Measure what an attention head looks at, and silence it. Built in notebooks 07 and 10."""

from collections.abc import Callable

import torch
from torch import Tensor


def previous_token_score(weights: Tensor) -> Tensor:
    """Return the mean weight that each head gives to the token before, (L, A), from weights (L, A, S, S).

    Built in notebook 07, exercise 7.1. The first token has none before it and does not count.
    """
    S = weights.size(-1)
    steps = [weights[:, :, position, position - 1] for position in range(1, S)]  # S - 1 times (L, A)
    return torch.stack(steps).mean(dim=0)


def finds(weights: Tensor, query: int, key: int) -> Tensor:
    """Return whether each head finds the token at `key` from the token at `query`, (L, A), in one sentence.

    Built in notebook 07, exercise 7.3: a head finds a token if this token gets the largest of the weights (L, A, S, S)
    in the row of the query, without [CLS], [SEP] and the query itself.
    """
    row = weights[:, :, query].clone()  # (L, A, S)
    row[..., [0, query, -1]] = -1  # [CLS], the token itself and [SEP] take no part
    return row.argmax(dim=-1) == key


def silence(head: int, columns: Tensor) -> Callable:
    """Return a forward pre-hook for an attention's output layer that writes `columns` in place of a head's result.

    Built in notebook 10, exercise 10.3. `columns` has the D numbers of the head in its last dimension: (D,), or
    (B, S, D) if each token gets its own. The context that the hook receives stays as it is.
    """
    D = columns.size(-1)

    def hook(module, inputs):
        context = inputs[0].clone()  # (B, S, H): what all heads of the layer found, side by side
        context[..., head * D : (head + 1) * D] = columns
        return (context,)

    return hook
