"""Several processes that learn as one, by Hugging Face's accelerate: what the programs beside this file share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from accelerate import Accelerator
from filelock import FileLock, Timeout
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


@contextmanager
def exclusive_lock(folder: Path, accelerator: Accelerator) -> Iterator[None]:
    """Keep other runs out of a folder while this one is at work there; OSError if another is.

    The main process holds the lock, on a hidden file in the folder, until it ends, however it ends.
    """
    if not accelerator.is_main_process:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".run.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        problem = f"another run is at work in {folder}"
        raise OSError(f"{problem}: wait for its end, stop it, or choose another folder") from error
    try:
        yield
    finally:
        lock.release()


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
