"""Embed texts and find the nearest vectors: exactly, or with an HNSW graph of faiss. Built in notebook 09."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.support.batches import collate, device_of, evaluation_mode, model_ids, sorted_batches
from utils.support.checkpoint import check_mean_pooling
from utils.support.checks import check_mask, check_size
from utils.support.vectors import as_queries, as_vectors

if TYPE_CHECKING:
    import faiss


class Neighbours(NamedTuple):
    """The k nearest vectors of each query, best first: cosine similarities and row indices, (Q, k) each, on the CPU."""

    scores: Tensor
    indices: Tensor


def mean_pooling(last_hidden_state: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the mean of the real tokens' vectors, (B, H), from (B, S, H) and a mask (B, S) with 1 at real tokens.

    Reimers and Gurevych 2019, section 3. ValueError if the shapes disagree, or if a row has no real token.
    """
    check_mask("attention_mask", attention_mask)
    if last_hidden_state.shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask has the shape {tuple(attention_mask.shape)}, last_hidden_state "
            f"{tuple(last_hidden_state.shape)}: it must be (B, S) for (B, S, H)"
        )
    weights = (attention_mask != 0)[:, :, None].to(last_hidden_state.dtype)  # (B, S, 1)
    return (last_hidden_state * weights).sum(dim=1) / weights.sum(dim=1)


def shares_of_cosine(states: Tensor, other_states: Tensor) -> Tensor:
    """Split the cosine of two mean vectors among pairs of tokens: (S, H) and (T, H) to (S, T), which sum to the cosine.

    The product of two means is the mean of the products of all pairs.
    """
    S, T = len(states), len(other_states)
    lengths = states.mean(dim=0).norm() * other_states.mean(dim=0).norm()
    return states @ other_states.T / (S * T * lengths)


@torch.no_grad()
def embed(texts: Sequence[str], encoder: TransformerEncoder, tokenizer, batch_size: int = 32) -> Tensor:
    """Return one unit vector per text, (N, H) on the CPU: the normalized mean of its token vectors.

    Runs in evaluation mode, and truncates texts to the encoder's positions. ValueError for an empty list, an empty
    text, and an encoder that `encode_packed` refuses.
    """
    check_mean_pooling(encoder)
    rows = model_ids(texts, encoder, tokenizer)
    vectors = torch.empty(len(rows), encoder.config.hidden_size)
    with evaluation_mode(encoder):
        for numbers in sorted_batches(rows, batch_size, max_padding=1):
            batch = collate([rows[number] for number in numbers], device_of(encoder))
            pooled = mean_pooling(encode_packed(encoder, **batch), batch["attention_mask"])
            vectors[numbers] = F.normalize(pooled.float(), dim=-1).cpu()
    return vectors


def search(queries: Tensor, vectors: Tensor, k: int = 10) -> Neighbours:
    """Find the k of `vectors` (N, H) with the highest cosine to each of `queries` (Q, H), comparing with all.

    All vectors have length 1.
    """
    vectors = as_vectors(vectors)
    queries = as_queries(queries, vectors.size(1), k, len(vectors))
    return Neighbours(*(queries @ vectors.T).topk(k))


def import_faiss():
    """Import faiss, which only an index needs. ImportError explains how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError("an index needs the package faiss: pip install faiss-cpu") from error
    return faiss


def hnsw_index(
    vectors: Tensor, *, M: int = 32, ef_construction: int = 40, ef_search: int = 16
) -> "faiss.IndexHNSWFlat":
    """Build a graph in which a search moves from neighbour to neighbour (Malkov and Yashunin 2018).

    `vectors` (N, H) have length 1. A node has `M` links; `ef_construction` and `ef_search` are the numbers of
    candidates kept while building and searching. Larger values raise recall and cost time. ValueError for settings that
    crash faiss.
    """
    faiss = import_faiss()
    vectors = as_vectors(vectors)
    check_size("M", M, maximum=512, minimum=2)
    for name, candidates in (("ef_construction", ef_construction), ("ef_search", ef_search)):
        check_size(name, candidates, maximum=100_000)
    index = faiss.IndexHNSWFlat(vectors.size(1), M, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = ef_construction, ef_search
    index.add(vectors.numpy())
    return index


def search_index(queries: Tensor, index: "faiss.Index", k: int = 10) -> Neighbours:
    """Find the k nearest of each of `queries` (Q, H) in a faiss index of unit vectors; -1 where it finds fewer."""
    faiss = import_faiss()
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError("the index measures distances, not cosines: build it with faiss.METRIC_INNER_PRODUCT")
    queries = as_queries(queries, index.d, k, index.ntotal)
    return Neighbours(*map(torch.from_numpy, index.search(queries.numpy(), k)))
