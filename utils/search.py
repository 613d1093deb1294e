"""Texts to vectors, and the nearest among many: exact, or with faiss's HNSW graph. Built in notebook 09."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.support.batches import collate, device_of, evaluation_mode, model_ids, sorted_batches
from utils.support.checkpoint import check_mean_pooling
from utils.support.checks import check_size, is_integer

if TYPE_CHECKING:
    import faiss


class Neighbours(NamedTuple):
    """The k nearest of each query, best first: cosine similarity and row number, (Q, k) each, on the CPU."""

    scores: Tensor
    indices: Tensor


def mean_pooling(last_hidden_state: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean of the real tokens' vectors: (B, S, H) and mask (B, S), 1 = real token, to (B, H).

    Reimers and Gurevych 2019, section 3. ValueError for shapes that disagree and for a text with no token to average.
    """
    if last_hidden_state.shape[:2] != attention_mask.shape:
        shapes = f"{tuple(attention_mask.shape)}, last_hidden_state {tuple(last_hidden_state.shape)}"
        raise ValueError(f"attention_mask has the shape {shapes}: it must be (B, S) for (B, S, H)")
    weights = attention_mask[:, :, None].to(last_hidden_state.dtype)  # (B, S, 1)
    if not (counts := weights.sum(dim=1)).all():
        raise ValueError("attention_mask masks every token of a row, so there is nothing to average")
    return (last_hidden_state * weights).sum(dim=1) / counts


def shares_of_cosine(states: Tensor, other_states: Tensor) -> Tensor:
    """Share out the cosine of two mean vectors: token vectors (S, H) and (T, H) to (S, T), which sum to the cosine.

    A product of two means is the mean of all products of a token of one text with a token of the other.
    """
    S, T = len(states), len(other_states)
    lengths = states.mean(dim=0).norm() * other_states.mean(dim=0).norm()
    return states @ other_states.T / (S * T * lengths)


@torch.no_grad()
def embed(texts: Sequence[str], encoder: TransformerEncoder, tokenizer, batch_size: int = 32) -> Tensor:
    """One unit vector a text, (N, H) on the CPU: the mean of its tokens, so that a dot product is the cosine.

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


def as_vectors(vectors, name: str = "vectors", size: int | None = None) -> Tensor:
    """Vectors of length 1 as (N, H) float32 on the CPU, whatever held them; ValueError for any others.

    `size` is the H that they must have, if that is known.
    """
    try:
        if isinstance(vectors, (list, tuple)):
            vectors = torch.stack([torch.as_tensor(vector) for vector in vectors])
        vectors = torch.as_tensor(vectors).detach().to("cpu", torch.float32).contiguous()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be numbers, (N, H), as embed() returns them ({error})") from error
    if vectors.dim() != 2 or not len(vectors) or vectors.size(1) != (size or vectors.size(1)):
        wanted = "(N, H) with one or more" if size is None else f"(Q, {size}) as the vectors are"
        raise ValueError(f"{name} must be {wanted}, got {tuple(vectors.shape)}: take them from embed()")
    if not vectors.isfinite().all():
        raise ValueError(f"{name} hold NaN or inf: look for what embedded them")
    if not torch.allclose(vectors.norm(dim=-1), torch.ones(len(vectors)), atol=1e-3):
        raise ValueError(f"{name} must have length 1, so that products are cosines: take them from embed()")
    return vectors


def as_queries(queries, size: int, k: int, total: int) -> Tensor:
    """Queries as `as_vectors` gives them; ValueError for another width, and for more neighbours than vectors."""
    queries = as_vectors(queries, "queries", size)
    if not is_integer(k) or not 1 <= k <= total:
        raise ValueError(f"k={k!r}, but there are {total} vectors to search: use k from 1 to {total}")
    return queries


def search(queries: Tensor, vectors: Tensor, k: int = 10) -> Neighbours:
    """The k of `vectors` (N, H) nearest to each of `queries` (Q, H), all unit vectors, by comparing with every one."""
    vectors = as_vectors(vectors)
    queries = as_queries(queries, vectors.size(1), k, len(vectors))
    return Neighbours(*(queries @ vectors.T).topk(k))


def import_faiss():
    """The package faiss, imported by whoever builds or searches an index; ImportError that says how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError("an index needs the package faiss: pip install faiss-cpu") from error
    return faiss


def hnsw_index(
    vectors: Tensor, *, M: int = 32, ef_construction: int = 40, ef_search: int = 16
) -> "faiss.IndexHNSWFlat":
    """A graph in which a search walks from neighbour to neighbour instead of comparing all (Malkov and Yashunin 2018).

    `vectors` (N, H) of unit length; `M` links a node; `ef_construction` and `ef_search` candidates kept while building
    and while searching: more find more, later. ValueError for settings that faiss does not survive.
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
    """The k nearest to each of `queries` (Q, H) in a faiss index of unit vectors; -1 where it found fewer."""
    faiss = import_faiss()
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError("the index measures distances, no cosines: build it with faiss.METRIC_INNER_PRODUCT")
    queries = as_queries(queries, index.d, k, index.ntotal)
    return Neighbours(*map(torch.from_numpy, index.search(queries.numpy(), k)))
