"""Answers to the exercises of notebook 09 that its checks do not declare."""

from functools import cache

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from torch.nn import functional as F

from utils import search as finished
from utils.encoder import TransformerEncoder
from utils.search import search as finished_search
from utils.support.datasets import imdb_reviews
from utils.tokenization import WordPieceTokenizer


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


@cache
def counted() -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True).fit(imdb_reviews("train")[:10_000])


def rival(queries, texts, counter=None):
    counter = counter or counted()
    return counter.transform(queries) @ counter.transform(texts).T


def of_these_texts(queries, texts):
    return rival(queries, texts, TfidfVectorizer().fit(texts)).toarray()


def with_layers(queries, texts):
    return finished.embed(queries, TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint())


RIGHT = r"""
    9.5 | (lambda queries, texts: torch.tensor(rival(queries, texts).toarray()), "(A)")
    9.1 | torch.tensor([[2.0, 3.0]])
    9.1 | ("2", "3")
    9.2 | lambda s, m: torch.stack([text[real == 1].mean(dim=0) for text, real in zip(s, m, strict=True)])
    9.2 | lambda s, m: torch.einsum("bsh,bs->bh", s, m.to(s.dtype)) / m.sum(dim=1, keepdim=True)
    9.2 | lambda s, m: ((m / m.sum(dim=1, keepdim=True))[:, None] @ s)[:, 0]
    9.2 | lambda s, m: s.masked_fill(m[..., None] == 0, torch.nan).nanmean(dim=1)
    9.2 | mean_pooling
    9.3 | lambda queries, vectors, k: tuple(x[:, :k] for x in (queries @ vectors.T).sort(dim=-1, descending=True))
    9.3 | found_by_distance
    9.3 | lambda queries, vectors, k: list(right(queries, vectors, k))
    9.3 | lambda queries, vectors, k: F.cosine_similarity(queries[:, None], vectors[None], dim=-1).topk(k)
    9.3 | search
    9.3 | lambda queries, vectors, k: search(queries, vectors, k)
    9.4 | by_sets
    9.4 | recall
    9.4 | lambda found, exact: torch.stack([torch.isin(r, l) for l, r in zip(found, exact, strict=True)]).float().mean()
"""
WRONG = r"""
    9.5 | 3 | two things
    9.5 | (of_these_texts, "a") | the mean vector for 172
    9.5 | (lambda queries, texts: torch.eye(len(texts)), "a") | Your search has the right text first for
    9.5 | (lambda queries, texts: torch.zeros(len(queries), len(texts)) / 0, "a") | NaN
    9.5 | (lambda queries, texts: torch.zeros(5, 5), "a") | shape
    9.5 | (rival, "a") | toarray
    9.5 | (with_layers, "a") | runs the encoder's layers
    9.5 | (lambda queries, texts: rival(queries, texts).toarray(), "b") | title b falls
    9.5 | (lambda queries, texts: rival(queries, texts).toarray(), "c") | Title c falls
    9.5 | (lambda queries, texts: rival(queries, texts).toarray(), "d") | the title's letter
    9.4 | lambda found, exact: torch.isin(exact + (exact.max() + 1) * torch.arange(len(exact))[:, None], found + (exact.max() + 1) * torch.arange(len(found))[:, None]).float().mean() | their own row
    9.1 | (2, 3, 4) | two numbers
    9.1 | "two and three" | two numbers
    9.2 | lambda states, mask: states.max(dim=1) | the pair (values, indices). Add .values
    9.2 | attention_mask[:, :, None].to => attention_mask.to | Sizes are compared from the last one
    9.2 | lambda states, mask: right(states, mask)[:1] | shape
    9.2 | finished.mean_pooling | series' own mean_pooling
    9.2 | lambda states, mask: finished.mean_pooling(states, mask) | calls the series' own `mean_pooling`
    9.3 | lambda queries, vectors, k: right(queries, vectors, k).indices | Return two tensors, the cosines and
    9.3 | lambda queries, vectors, k: right(queries, vectors, k)[::-1] | The two are swapped: the cosines
    9.3 | topk(k) => topk(k, dim=0) | Return a row for each query
    9.3 | topk(k) => topk(k, largest=False) | farthest
    9.3 | lambda queries, vectors, k: [part.flip(1) for part in right(queries, vectors, k)] | The order is reversed. The best
    9.3 | lambda queries, vectors, k: (lambda v, r: (v.gather(1, r.argsort()), r.sort().values))(*right(queries, vectors, k)) | sorted by row number
    9.3 | (queries @ vectors.T) => (queries @ vectors.T).abs() | A negative cosine counts as near
    9.3 | lambda queries, vectors, k: torch.cdist(queries, vectors).topk(k, largest=False) | distances
    9.3 | lambda queries, vectors, k: (1 - queries @ vectors.T).topk(k, largest=False) | 1 − cosine
    9.3 | lambda queries, vectors, k: (lambda v, r: (v.acos(), r))(*right(queries, vectors, k)) | angles
    9.3 | lambda queries, vectors, k: (lambda v, r: (v, r + 1))(*right(queries, vectors, k)) | counted from 0
    9.3 | lambda queries, vectors, k: right(queries[:1].expand_as(queries), vectors, k) | first one's
    9.3 | topk(k) => topk(3) | shape
    9.3 | lambda queries, vectors, k: [part.numpy() for part in right(queries, vectors, k)] | torch tensors
    9.3 | lambda queries, vectors, k: (right(queries, vectors, k)[0],) * 2 | The second result should be row
    9.3 | lambda queries, vectors, k: (right(queries, vectors, k), vectors.zero_())[0] | changes vectors
    9.3 | finished.search | series' own search
    9.3 | lambda queries, vectors, k: tuple(finished_search(queries, vectors, k)) | calls the series' own `search`
    9.4 | .float().mean().item() => .float().mean(dim=1) | one number for all
    9.4 | lambda found, exact: "half" | The share, one number for all
    9.4 | finished.recall | series' own recall
    9.4 | lambda found, exact: finished.recall(found, exact) | calls the series' own `recall`
    9.4 | lambda found, exact: (exact == found[:, :1]).any(dim=1).float().mean() | it should be 0.25
    9.4 | lambda found, exact: by_sets(found, exact, 12) if found.size(1) == 3 else 0.5 | does each exact number count once?
    9.4 | lambda found, exact: right(found, exact) if len(found) != 3 or found.size(1) != 2 else 0.5 | Is a size fixed?
"""
