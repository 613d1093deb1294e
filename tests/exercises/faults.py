"""Make wrong answers by machine: each published answer spoilt in the usual ways."""

from collections.abc import Callable, Iterator, Mapping

import torch

from tests.exercises.answers import Answer, own_source


def in_place(right: Callable) -> Callable:
    """Return a function with the right values, which also changes the first tensor of its input."""

    def spoilt(*given):
        result = right(*given)
        next(x for x in given if isinstance(x, torch.Tensor)).add_(1)
        return result

    return spoilt


def with_first(change: Callable) -> Callable:
    """Return a fault that changes the result, or the first tensor of several."""

    def fault(right: Callable) -> Callable:
        def spoilt(*given):
            result = right(*given)
            return (change(result[0]), *result[1:]) if isinstance(result, tuple | list) else change(result)

        return spoilt

    return fault


def returns_nothing(*given, **options) -> None:
    """Forget to return a result."""


FLOATS = "2.2 2.3 2.4 3.2 3.4 4.1 4.2 4.3 5.1 5.2 5.3 9.2"  # tensors of floats through which gradients flow
GRADIENTS = f"{FLOATS} 5.5 8.1 12.2 13.3 14.2"
FAULTS = (  # what is done to a right answer, words of the hint, and the exercises
    (in_place, "in place", f"{GRADIENTS} 6.1 7.1 7.3 9.3 9.4 11.1 12.3 12.4 12.5 13.4"),
    (with_first(torch.Tensor.detach), "Remove any detach", GRADIENTS),
    (torch.no_grad(), "Remove any detach", GRADIENTS),
    (with_first(torch.Tensor.double), "should have the dtype", f"{FLOATS} 5.5 12.2 14.2"),
    (
        with_first(lambda result: result[None]),
        "should have the shape",
        f"{FLOATS} 7.1 7.3 8.1 9.3 11.1 12.1 12.2 12.3 12.4 12.5 13.1 13.3 13.4 14.2 14.4",
    ),
    (with_first(torch.Tensor.tolist), "should be a torch tensor", f"{FLOATS} 5.5 11.1 12.1 12.4"),
)


def made_by_machine(right: Mapping[str, Answer]) -> Iterator[Answer]:
    """Yield what the faults make of published answers."""
    for fault, words, numbers in FAULTS:
        yield from (Answer(n, "", words, lambda n=n, fault=fault: fault(right[n].make())) for n in numbers.split())
    for number, each in right.items():
        if own_source(number).startswith(("def ", "NAMES")) and number != "7.6":  # a function and a letter
            if number != "8.2":  # freezes layers, and returns nothing
                words = "our function returns None. Does it end with `return`?"
                yield Answer(number, "", words, lambda: returns_nothing)
            yield Answer(number, "", "is a class", lambda each=each: type("Own", (), {"__call__": each.make()}))
