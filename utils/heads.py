"""Measure what an attention head looks at, and silence it. Built in notebooks 07 and 10."""

from collections.abc import Callable

import torch
from scipy.stats import rankdata
from torch import Tensor
from torch.nn import functional as F


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


def rank_agreement(one: Tensor, other: Tensor) -> float:
    """Return how alike two maps (S, S) rank the other tokens in each row: the mean of Spearman's correlations, -1 to 1.

    Built in notebook 10, section “Which words move a vector?”.
    """
    S = len(one)
    others = ~torch.eye(S, dtype=torch.bool)
    ranks = (torch.tensor(rankdata(x[others].view(S, S - 1), axis=1)) - S / 2 for x in (one, other))  # mean 0
    return F.cosine_similarity(*ranks, dim=1).mean().item()


def rollout(weights: Tensor, residual: float) -> Tensor:
    """Return attention rollout (S, S) of the weights (L, A, S, S): row i, column j: how much of token j is in i?

    Each layer is the mean of its heads, and `residual` is the share that a token keeps of its own vector, 0.5 in the
    paper (Abnar and Zuidema 2020). Built in notebook 10, section “Which picture would you trust?”.
    """
    itself = torch.eye(weights.size(-1), dtype=weights.dtype, device=weights.device)
    flow = itself
    for layer in weights.mean(dim=1):  # (S, S) each, from the first layer to the last
        flow = ((1 - residual) * layer + residual * itself) @ flow
    return flow
