"""Input validation for the vectors, queries and indexes of a search."""

import torch
from torch import Tensor

from utils.support.checks import check_mask, check_size, check_tensor, is_integer


def import_faiss():
    """Import faiss, which only an index needs. ImportError explains how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError("an index needs the package faiss: pip install faiss-cpu") from error
    return faiss


def check_states(last_hidden_state: Tensor, attention_mask: Tensor) -> None:
    """Raise ValueError unless (B, S, H) and a mask (B, S) belong together and each row has a real token."""
    check_tensor("last_hidden_state", last_hidden_state)
    check_mask("attention_mask", attention_mask)
    if last_hidden_state.shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask has the shape {tuple(attention_mask.shape)}, last_hidden_state "
            f"{tuple(last_hidden_state.shape)}: it must be (B, S) for (B, S, H)"
        )


def as_vectors(vectors, name: str = "vectors", size: int | None = None) -> Tensor:
    """Return vectors of length 1 as a float32 tensor (N, H) on the CPU, from a tensor, an array, a table or a list.

    TypeError or ValueError for anything else; `size` is the required H, if it is known.
    """
    try:
        if hasattr(vectors, "to_numpy"):  # a table or column of pandas, which torch would read by columns
            vectors = [*vectors.to_numpy(copy=True)]
        if isinstance(vectors, (list, tuple)):
            vectors = torch.stack([torch.as_tensor(vector) for vector in vectors])
        vectors = torch.as_tensor(vectors)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be numbers, (N, H), as embed() returns them ({error})") from error
    check_tensor(name, vectors)
    vectors = vectors.detach().to("cpu", torch.float32).contiguous()
    if vectors.dim() != 2 or not len(vectors) or vectors.size(1) != (size or vectors.size(1)):
        shape = "(N, H) with one or more" if size is None else f"(Q, {size}) as the vectors are"
        raise ValueError(f"{name} must be {shape}, got {tuple(vectors.shape)}: take them from embed()")
    if not vectors.isfinite().all():
        raise ValueError(f"{name} contain NaN or inf: check the model that embedded them")
    if not torch.allclose(vectors.norm(dim=-1), torch.ones(len(vectors)), atol=1e-3):
        raise ValueError(f"{name} must have length 1, so that products are cosines: take them from embed()")
    return vectors


def as_queries(queries, size: int, k: int, total: int) -> Tensor:
    """Return queries (Q, H) as `as_vectors` does. ValueError for another width, or more neighbours than vectors."""
    queries = as_vectors(queries, "queries", size)
    if not is_integer(k) or not 1 <= k <= total:
        raise ValueError(f"k={k!r}, but there are {total} vectors to search: use k from 1 to {total}")
    return queries


def check_graph(vectors: Tensor, M: int, ef_construction: int, ef_search: int) -> Tensor:
    """Return the vectors (N, H) of an HNSW graph. ValueError for settings that crash faiss, and for more than M copies.

    Vectors that agree in three decimals count as copies: equal texts from different batches differ in the last bits.
    """
    import_faiss()
    check_size("M", M, maximum=512, minimum=2)
    for name, candidates in (("ef_construction", ef_construction), ("ef_search", ef_search)):
        check_size(name, candidates, maximum=100_000)
    copies = vectors.round(decimals=3).unique(dim=0, return_counts=True)[1].max().item()
    if copies > M:
        raise ValueError(
            f"{copies} of the {len(vectors)} vectors are equal: with M={M} they would link only to each other, and a "
            "search would miss other texts. Index each distinct text once"
        )
    return vectors


def check_inner_product(index) -> None:
    """Raise TypeError for anything but an index of faiss, ValueError unless it compares by the dot product."""
    if not hasattr(index, "metric_type"):
        raise TypeError(f"index must be one of faiss, got {type(index).__name__}: build it with hnsw_index()")
    if index.metric_type != import_faiss().METRIC_INNER_PRODUCT:
        raise ValueError("the index measures distances, not cosines: build it with faiss.METRIC_INNER_PRODUCT")
