"""Make wrong answers by machine: the declared mistakes, and each right answer spoilt in the usual ways."""

from collections.abc import Callable, Iterator, Mapping

import torch

from exercises.comparison import COMPARISONS, MISTAKES
from tests.exercises.misconceptions import MEASURED


def in_place(right: Callable) -> Callable:
    """Return a function with the right values, which it also writes into a tensor that it is given."""

    def spoilt(*given):
        result = right(*given)
        next(x for x in given if isinstance(x, torch.Tensor)).add_(1)
        return result

    return spoilt


FAULTS = {  # what is done to a right answer, by a few words of the hint
    "in place. Make": in_place,
    "Remove any detach": lambda right: lambda *given: right(*given).detach(),
    "torch.no_grad().": torch.no_grad(),
    "keep their dtype": lambda right: lambda *given: right(*given).double(),
    "should have the shape": lambda right: lambda *given: right(*given)[None],
    "should be a torch tensor": lambda right: lambda *given: right(*given).tolist(),
    "is a class": lambda right: type("Answer", (), {"__call__": right}),
}


def made_by_machine(right: Mapping[str, list[Callable]]) -> Iterator[tuple[str, Callable, str]]:
    """Yield (number, answer, words of the hint) for every declared mistake and every fault of a comparison."""
    for number, mistakes in MISTAKES.items():
        yield from ((number, mistake, MEASURED.sub("…", words)) for words, mistake in mistakes)
    for number in sorted(COMPARISONS):
        yield from ((number, fault(right[number][0]), words) for words, fault in FAULTS.items())
