"""Input validation for vectors and queries of a search."""

import torch
from torch import Tensor

from utils.support.checks import check_tensor, is_integer


def as_vectors(vectors, name: str = "vectors", size: int | None = None) -> Tensor:
    """Return vectors of length 1 as a float32 tensor (N, H) on the CPU, from a tensor, an array or a list.

    TypeError or ValueError for anything else; `size` is the required H, if it is known.
    """
    try:
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
    """Return queries as `as_vectors` does. ValueError for another width, or for more neighbours than vectors."""
    queries = as_vectors(queries, "queries", size)
    if not is_integer(k) or not 1 <= k <= total:
        raise ValueError(f"k={k!r}, but there are {total} vectors to search: use k from 1 to {total}")
    return queries
