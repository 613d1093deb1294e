"""Run a reader's function on tensors, or on NumPy arrays if it was written for them."""

from collections.abc import Callable

import torch

from exercises.framework import CHANGES_INPUT, CUT_OFF, Hint, NotAttempted, expect_gradients


def run_on_copies(function: Callable, *arguments):
    """Return the function's result for copies of the arguments, or for NumPy arrays if it fails on tensors.

    `Hint` if it changes an argument in place; if it fails on both, its error on tensors.
    """
    try:
        return run_once(function, arguments, torch.clone)
    except (Hint, NotAttempted):
        raise
    except Exception as error:
        try:
            return run_once(function, arguments, lambda tensor: tensor.clone().numpy())
        except (Hint, NotAttempted):
            raise
        except Exception:
            raise error from None


def run_once(function: Callable, arguments: tuple, copy: Callable):
    """Return the function's result for copies of the arguments; `Hint` if it changes one of them."""
    copies = [copy(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    result = function(*copies)
    for item, used in zip(arguments, copies, strict=True):
        if isinstance(item, torch.Tensor) and not torch.equal(item, torch.as_tensor(used)):
            raise Hint(CHANGES_INPUT)
    return result


def expect_trainable(function: Callable, right: Callable, *arguments) -> None:
    """Raise `Hint` if gradients do not reach the inputs and parameters; of two results, only the first is checked.

    A function that raises only on tensors that require gradients computes in NumPy, which has none.
    """
    given = [item.clone() if isinstance(item, torch.Tensor) else item for item in arguments]
    sources = [item.requires_grad_() for item in given if isinstance(item, torch.Tensor) and item.is_floating_point()]
    parameters = [weight for item in given if isinstance(item, torch.nn.Module) for weight in item.parameters()]
    try:
        result = first_of(function(*given))
    except Exception:
        return
    if isinstance(result, torch.Tensor) and sources:
        expect_gradients(result, first_of(right(*given)), [*sources, *parameters], CUT_OFF)


def first_of(result):
    """Return the first of a pair, and anything else unchanged."""
    return result[0] if isinstance(result, (tuple, list)) else result
