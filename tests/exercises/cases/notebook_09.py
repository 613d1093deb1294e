"""Answers to the exercises of notebook 09 that its checks do not declare."""

import torch
from torch.nn import functional as F

from utils import search as finished
from utils.search import search as finished_search


def mean_pooling(states, mask):
    """A reader's own, under the name of the finished one."""
    return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def found_by_distance(queries, vectors, k):
    rows = torch.cdist(queries, vectors).topk(k, largest=False).indices
    return (queries @ vectors.T).gather(1, rows), rows


def search(queries, vectors, k):
    """A reader's own, under the name of the finished one."""
    return (queries @ vectors.T).topk(k)


def recall(found, exact):
    return torch.stack([torch.isin(right, left) for left, right in zip(found, exact, strict=True)]).float().mean()


def by_sets(found, exact, total=None):
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return sum(len(set(left) & set(right)) for left, right in pairs) / (total or exact.numel())


RIGHT = {
    "9.1": """
        torch.tensor([[2.0, 3.0]])
        ("2", "3")
    """,
    "9.2": """
        lambda s, m: torch.stack([text[real == 1].mean(dim=0) for text, real in zip(s, m, strict=True)])
        lambda s, m: torch.einsum("bsh,bs->bh", s, m.to(s.dtype)) / m.sum(dim=1, keepdim=True)
        lambda s, m: ((m / m.sum(dim=1, keepdim=True))[:, None] @ s)[:, 0]
        lambda s, m: s.masked_fill(m[..., None] == 0, torch.nan).nanmean(dim=1)
        mean_pooling
    """,
    "9.3": """
        lambda queries, vectors, k: tuple(x[:, :k] for x in (queries @ vectors.T).sort(dim=-1, descending=True))
        found_by_distance
        lambda queries, vectors, k: list(right(queries, vectors, k))
        lambda queries, vectors, k: F.cosine_similarity(queries[:, None], vectors[None], dim=-1).topk(k)
        search
        lambda queries, vectors, k: search(queries, vectors, k)
    """,
    "9.4": """
        by_sets
        recall
        lambda found, exact: torch.stack([torch.isin(r, l) for l, r in zip(found, exact, strict=True)]).float().mean()
    """,
}
WRONG = {
    "9.1": """
        (2, 3, 4) | two numbers
        "two and three" | two numbers
    """,
    "9.2": """
        lambda states, mask: states.max(dim=1) | the pair (values, indices). Add .values
        attention_mask[:, :, None].to => attention_mask.to | Sizes are compared from the last one
        lambda states, mask: right(states, mask)[:1] | shape
        lambda states, mask: right(states, mask).mean(dim=0).expand(len(mask), -1) | divide by the sum
        last_hidden_state * weights => last_hidden_state.mul_(weights) | in place
        finished.mean_pooling | series' own mean_pooling
        lambda states, mask: finished.mean_pooling(states, mask) | calls the series' own `mean_pooling`
    """,
    "9.3": """
        lambda queries, vectors, k: right(queries, vectors, k).indices | Return two tensors, the cosines and
        lambda queries, vectors, k: right(queries, vectors, k)[::-1] | The two are swapped: the cosines
        topk(k) => topk(k, dim=0) | Return a row for each query
        topk(k) => topk(k, largest=False) | farthest
        lambda queries, vectors, k: [part.flip(1) for part in right(queries, vectors, k)] | The order is reversed. The best
        lambda queries, vectors, k: (lambda v, r: (v.gather(1, r.argsort()), r.sort().values))(*right(queries, vectors, k)) | sorted by row number
        (queries @ vectors.T) => (queries @ vectors.T).abs() | A negative cosine counts as near
        lambda queries, vectors, k: torch.cdist(queries, vectors).topk(k, largest=False) | distances
        lambda queries, vectors, k: (1 - queries @ vectors.T).topk(k, largest=False) | 1 − cosine
        lambda queries, vectors, k: (lambda v, r: (v.acos(), r))(*right(queries, vectors, k)) | angles
        lambda queries, vectors, k: (lambda v, r: (v, r + 1))(*right(queries, vectors, k)) | counted from 0
        lambda queries, vectors, k: right(queries[:1].expand_as(queries), vectors, k) | first one's
        topk(k) => topk(3) | shape
        topk(k) => sort(descending=True) | shape
        lambda queries, vectors, k: [part.numpy() for part in right(queries, vectors, k)] | torch tensors
        lambda queries, vectors, k: (right(queries, vectors, k)[0],) * 2 | The second result should be row
        lambda queries, vectors, k: (right(queries, vectors, k), vectors.zero_())[0] | changes vectors
        finished.search | series' own search
        lambda queries, vectors, k: tuple(finished_search(queries, vectors, k)) | calls the series' own `search`
    """,
    "9.4": """
        .float().mean().item() => .float().mean(dim=1) | one number for all
        lambda found, exact: "half" | The share, one number for all
        lambda found, exact: 0.7 | their own row
        lambda found, exact: (right(found, exact), found.clamp_(min=0))[0] | changes found
        finished.recall | series' own recall
        lambda found, exact: finished.recall(found, exact) | calls the series' own `recall`
        lambda found, exact: (exact == found[:, :1]).any(dim=1).float().mean() | it should be 0.25
        lambda found, exact: by_sets(found, exact, 12) if found.size(1) == 3 else 0.5 | does each exact number count once?
        lambda found, exact: right(found, exact) if len(found) != 3 or found.size(1) != 2 else 0.5 | Is a size fixed?
    """,
}
