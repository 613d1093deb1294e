"""Several processes that learn as one, by Hugging Face's accelerate: what the programs beside this file share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from torch import Tensor


@contextmanager
def in_words(errors: tuple[type[Exception], ...] = (OSError, TypeError, ValueError)) -> Iterator[None]:
    """End the program with the words of an error, by default of one that bad input raises."""
    try:
        yield
    except errors as error:
        raise SystemExit(str(error)) from error


def start(cpu: bool) -> Accelerator:
    """This process's place among those that `accelerate launch` started; on a GPU that can, products in bfloat16."""
    on_gpu = torch.cuda.is_available() and not cpu
    able = on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    return Accelerator(cpu=cpu, mixed_precision="bf16" if able else "no")


def share(items: Sequence, accelerator: Accelerator) -> Sequence:
    """This process's part of the items, each of which belongs to one process; ValueError if nothing is left for it."""
    size = accelerator.num_processes
    if len(items) < size:
        raise ValueError(f"{size} processes cannot share {len(items)} examples: use more, or larger batches")
    return items[accelerator.process_index :: size]


def add_up(sums: Tensor, accelerator: Accelerator) -> Tensor:
    """The sum over all processes, with the gradient of this one's part times their number.

    The processes average their gradients, so that the average is the gradient of the whole sum.
    """
    total = accelerator.reduce(sums.detach(), "sum")
    return total + accelerator.num_processes * (sums - sums.detach())
