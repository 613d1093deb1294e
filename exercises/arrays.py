"""Running a reader's function on tensors, or on NumPy arrays where it was written for those."""

from collections.abc import Callable

import torch

from exercises import Hint, NotAttempted


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
            raise Hint(
                "Your function alters what it is given: work on new tensors, so that the caller's stay."
            )
    return result
