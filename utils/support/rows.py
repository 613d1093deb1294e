"""Rows of ids in a file, for texts that do not fit into memory."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor


def write_rows(texts: Iterable[str], fill: Callable[[list[str]], Tensor], length: int, file: BinaryIO) -> Tensor:
    """Write the rows of a stream of texts to an open file, and return them as a tensor on it, (N, length).

    `fill`, such as `fill_rows`, turns a list of texts into rows (n, length), and raises ValueError if they fill none.
    It is called with about a million characters at a time, whose incomplete last row is dropped. ValueError if there
    are no rows.
    """
    for chunk in split_into_chunks(texts):
        with suppress(ValueError):  # too short for a row
            file.write(fill(chunk).int().numpy().tobytes())
    file.flush()
    if not (size := file.tell()):
        raise ValueError(f"the texts fill no row of {length} tokens: use more, or shorter rows")
    return torch.from_numpy(np.memmap(file, np.int32, "r+", shape=(size // 4 // length, length)))


def split_into_chunks(texts: Iterable[str], size: int = 1_000_000) -> Iterator[list[str]]:
    """Yield lists of texts of at least `size` characters in total; the last list may be shorter."""
    chunk, length = [], 0
    for text in texts:
        chunk.append(text)
        length += len(text)
        if length >= size:
            yield chunk
            chunk, length = [], 0
    if chunk:
        yield chunk
