"""Running a reader's function on tensors, or on NumPy arrays where it was written for those."""

from collections.abc import Callable

import torch

from exercises import CUT_OFF, Hint, NotAttempted, expect_gradients


def run_on_copies(function: Callable, *arguments):
    """What the function makes of the arguments; of the same as NumPy arrays, if it fails on tensors.

    `Hint` if it alters one of them in place; its error on tensors if it fails on both.
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
    """What the function makes of copies of the arguments, which must be as before when it is done."""
    copies = [copy(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    result = function(*copies)
    for item, used in zip(arguments, copies, strict=True):
        if isinstance(item, torch.Tensor) and not torch.equal(item, torch.as_tensor(used)):
            raise Hint("Your function alters what it is given: work on new tensors, so that the caller's stay.")
    return result


def expect_trainable(function: Callable, right: Callable, *arguments) -> None:
    """Raise `Hint` for a function that cuts its result, or the first of two, off from the tensors it is given.

    What refuses tensors with a gradient has worked without one, so it computes in NumPy, which has none.
    """
    number = torch.is_floating_point
    given = [
        item.clone().requires_grad_() if isinstance(item, torch.Tensor) and number(item) else item for item in arguments
    ]
    try:
        result = first_of(function(*given))
    except Exception:
        return
    if isinstance(result, torch.Tensor):
        sources = [item for item in given if isinstance(item, torch.Tensor) and item.requires_grad]
        expect_gradients(result, first_of(right(*given)), sources, CUT_OFF)


def first_of(result):
    """The first of a pair, and anything else as it is."""
    return result[0] if isinstance(result, (tuple, list)) else result
