"""What the programs in this folder share: options, errors, and training in several processes with accelerate."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from torch import Tensor

from utils.support.characters import replace_unprintable
from utils.support.checks import check_between, check_size
from utils.support.command_line import Parser


def new_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all programs have; the description keeps its lines."""
    replace_unprintable()
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, metavar="N", help="use only the first N texts")
    parser.add_argument("--cpu", action="store_true", help="use the CPU even if a GPU is available")
    return parser


def check_common_options(options: argparse.Namespace) -> None:
    """Raise ValueError for a limit or a learning rate that no training can have."""
    if options.limit is not None:
        check_size("--limit", options.limit)
    check_between(
        "--learning-rate", options.learning_rate, 0, 1, "try 5e-5 for fine-tuning, 1e-3 for a small new model"
    )


@contextmanager
def exit_on_error(errors: tuple[type[Exception], ...] = (OSError, TypeError, ValueError)) -> Iterator[None]:
    """Exit with the message of an error instead of a traceback; by default, of the errors that bad input raises."""
    try:
        yield
    except errors as error:
        raise SystemExit(str(error)) from error


def start(cpu: bool) -> Accelerator:
    """Return this process's accelerator; matrix products are in bfloat16 on a GPU that supports it."""
    on_gpu = torch.cuda.is_available() and not cpu
    bfloat16 = on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    return Accelerator(cpu=cpu, mixed_precision="bf16" if bfloat16 else "no")


def share(items: Sequence, accelerator: Accelerator) -> Sequence:
    """Return this process's share of the items; ValueError if there are fewer items than processes."""
    size = accelerator.num_processes
    if len(items) < size:
        raise ValueError(f"{size} processes cannot share {len(items)} examples: use more, or larger batches")
    return items[accelerator.process_index :: size]


def add_up(sums: Tensor, accelerator: Accelerator) -> Tensor:
    """Return the sum over all processes, with this process's gradient multiplied by their number.

    accelerate averages the gradients of all processes; the average is then the gradient of the whole sum.
    """
    total = accelerator.reduce(sums.detach(), "sum")
    return total + accelerator.num_processes * (sums - sums.detach())
