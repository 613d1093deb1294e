"""Answers readers give to the exercises of notebook 09: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch.nn import functional as F


def unit(vectors, dim=-1):
    return vectors / vectors.norm(dim=dim, keepdim=True)


def cosines(queries, vectors):
    return unit(queries) @ unit(vectors).T


def cosines_by_broadcast(queries, vectors):
    return F.cosine_similarity(queries[:, None], vectors[None], dim=-1)


def cosines_by_loops(queries, vectors):
    return torch.tensor([[float(q @ v / (q.norm() * v.norm())) for v in vectors] for q in queries])


def divided_after(queries, vectors):
    return queries @ vectors.T / (queries.norm(dim=-1)[:, None] * vectors.norm(dim=-1)[None])


def recall_by_sets(found, exact):
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return sum(len(set(left) & set(right)) for left, right in pairs) / exact.numel()


def recall_by_isin(found, exact):
    return (
        torch.stack([torch.isin(right, left) for left, right in zip(found, exact, strict=True)])
        .float()
        .mean()
    )


def matches(found, exact):
    return (exact[:, :, None] == found[:, None, :]).any(dim=-1)


def allowed_rows(queries, vectors, allowed, k):
    rows = torch.arange(len(vectors))[allowed]
    return rows[(queries @ vectors[allowed].T).topk(k).indices]


def hidden_scores(queries, vectors, allowed, k):
    scores = queries @ vectors.T
    scores[:, ~allowed] = -torch.inf
    return scores.argsort(dim=-1, descending=True)[:, :k]


def allowed_by_loops(queries, vectors, allowed, k):
    rows = [row for row, is_allowed in enumerate(allowed.tolist()) if is_allowed]
    return [sorted(rows, key=lambda row: -float(query @ vectors[row]))[:k] for query in queries]


def filtered_afterwards(queries, vectors, allowed, k):
    best = (queries @ vectors.T).topk(k).indices.tolist()
    return [[row for row in rows if allowed[row]] for rows in best]


RIGHT = {
    "9.1": [(2, 3), [2.0, 3.0], torch.tensor([[2.0, 3.0]]), np.array([2, 3]), (6 / 3, 9 / 3)],
    "9.2": [cosines, cosines_by_broadcast, cosines_by_loops, divided_after],
    "9.3": [recall_by_sets, recall_by_isin, lambda found, exact: matches(found, exact).float().mean()],
    "9.4": [allowed_rows, hidden_scores, allowed_by_loops],
}

WRONG = {
    "9.1": [
        ((3, 3), "Padding is averaged in"),
        ((1.5, 2.25), "divide by 3"),
        ((6, 9), "the sum of the real tokens"),
        ((12, 12), "padding included"),
        ((4, 4), "out of the sum too"),
        ((2, 1), "[CLS]"),
        ((4, 7), "the largest"),
        ((3, 2), "swapped"),
        ((2, 4), "divide by three"),
        ((2, 3, 4), "two numbers"),
        ("(2, 3)", "two numbers"),
        (2, "two numbers"),
    ],
    "9.2": [
        (lambda queries, vectors: queries @ vectors.T, "dot products"),
        (lambda queries, vectors: unit(queries) @ vectors.T, "vectors still have"),
        (lambda queries, vectors: queries @ unit(vectors).T, "queries still have"),
        (lambda queries, vectors: cosines(vectors, queries), "transposed"),
        (lambda queries, vectors: unit(queries, 0) @ unit(vectors, 0).T, "dim=-1"),
        (lambda queries, vectors: F.cosine_similarity(queries, vectors).expand(4, 4), "every query"),
        (lambda queries, vectors: F.cosine_similarity(queries, vectors), "shape"),
        (lambda queries, vectors: cosines(queries, vectors).acos(), "angles"),
        (lambda queries, vectors: 1 - cosines(queries, vectors), "cosine distances"),
        (torch.cdist, "These are distances"),
        (lambda queries, vectors: cosines(queries, vectors) / 2, "Divide queries and vectors"),
        (lambda queries, vectors: cosines(queries, vectors).tolist(), "torch tensor"),
        (lambda queries, vectors: None, "return"),
    ],
    "9.3": [
        (lambda found, exact: (found == exact).float().mean(), "same place"),
        (lambda found, exact: torch.isin(exact, found).float().mean(), "another query"),
        (lambda found, exact: matches(found, exact).any(dim=1).float().mean(), "at least one hit"),
        (lambda found, exact: matches(found, exact).all(dim=1).float().mean(), "complete"),
        (lambda found, exact: matches(found, exact).sum() / (found >= 0).sum(), "counts as missed"),
        (lambda found, exact: matches(found, exact).sum(), "number of hits"),
        (lambda found, exact: 100 * matches(found, exact).float().mean(), "percent"),
        (lambda found, exact: matches(found, exact).sum() / len(found), "divide by k"),
        (lambda found, exact: matches(found, exact).float().mean(dim=1), "one number for all"),
        (lambda found, exact: "half", "a number"),
        (lambda found, exact: 0.7, "their own row"),
        (lambda found, exact: None, "return"),
    ],
    "9.4": [
        (lambda q, v, allowed, k: (q @ v[allowed].T).topk(k).indices, "translate them back"),
        (lambda q, v, allowed, k: (q @ v.T).topk(k).indices, "mask is ignored"),
        (lambda q, v, allowed, k: allowed_rows(q, v, ~allowed, k), "not allowed: turn"),
        (lambda q, v, allowed, k: allowed_rows(-q, v, allowed, k), "farthest"),
        (lambda q, v, allowed, k: allowed_rows(q, v, allowed, k).flip(1), "order is turned"),
        (lambda q, v, allowed, k: ((q @ v.T) * allowed).topk(k).indices, "−∞ does"),
        (lambda q, v, allowed, k: (q @ v.T).masked_fill(~allowed, -torch.inf).topk(k), "row numbers alone"),
        (lambda q, v, allowed, k: (q @ v[allowed].T).topk(k).values, "These are the scores"),
        (lambda q, v, allowed, k: allowed_rows(q, v, allowed, k + 1), "shape"),
        (filtered_afterwards, "fewer than k"),
        (lambda q, v, allowed, k: "rows", "row numbers"),
        (lambda q, v, allowed, k: None, "return"),
    ],
}
