"""Compare our results with the official ones, and with what the reader predicted: the same text on every machine."""

import re
from numbers import Real
from os import environ

import numpy as np
import torch
from IPython import get_ipython
from IPython.utils.capture import capture_output
from torch import Tensor

SKIP, THE_ANSWER = "skip", "The answer: "  # a reader's prediction, and how the result without a guess begins
PREDICTED: dict[str, tuple] = {}  # question: the reader's prediction and the result


def largest_difference(ours: Tensor, official: Tensor) -> float:
    """Return the largest absolute difference of two tensors; ValueError if their shapes differ."""
    if ours.shape != official.shape:
        raise ValueError(f"shapes differ: ours is {tuple(ours.shape)}, the official one {tuple(official.shape)}")
    return (ours.detach() - official.detach()).abs().max().item()


def compare(name: str, ours: Tensor, official: Tensor, tolerance: float = 1e-5) -> None:
    """Print that two tensors agree to within the tolerance; AssertionError with their largest difference if not.

    The difference itself is not printed, because its last digits depend on the processor.
    """
    difference = largest_difference(ours, official)
    assert difference <= tolerance, f"{name}: largest difference {difference:.2e} is above {tolerance:.0e}"
    print(f"{name:<30} {tuple(ours.shape)!s:<18} agree to within {format_tolerance(tolerance)}")


@torch.inference_mode()
def compare_rungs(encoder, official, yours: dict[str, Tensor], theirs: dict[str, Tensor]) -> dict[str, float]:
    """Return the largest difference after the embeddings and, in each layer, of attention weights and vectors.

    The encoder reads the batch `yours`, the official model the batch `theirs`, of the same texts. Padding is left out.
    """
    ours, wanted = (
        model(**batch, output_hidden_states=True, output_attentions=True)
        for model, batch in ((encoder, yours), (official, theirs))
    )
    real = theirs["attention_mask"].bool()  # (B, S): False at padding

    def differ(name: str, layer: int) -> float:  # hidden states (B, S, H), attention weights (B, A, S, S)
        both = (getattr(output, name)[layer] for output in (ours, wanted))
        return largest_difference(*((x.transpose(1, 2) if x.dim() == 4 else x)[real] for x in both))

    rungs = {"embeddings": differ("hidden_states", 0)}
    for layer in range(len(wanted.attentions)):
        rungs[f"layer {layer}, attention weights"] = differ("attentions", layer)
        rungs[f"layer {layer}, vectors"] = differ("hidden_states", layer + 1)
    return rungs


def climb(encoder, official, yours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Print after the embeddings and twice in each layer whether an encoder agrees with the official model to 1e-5."""
    lines: dict[str, list[str]] = {}
    for rung, difference in compare_rungs(encoder, official, yours, theirs).items():
        place, _, what = rung.partition(", ")
        lines.setdefault(place, []).append(f"{what} {'agree' if difference <= 1e-5 else 'DIFFER'}".strip())
    for place, found in lines.items():
        print(f"{place:<10}", *found, sep="  ")


def format_tolerance(tolerance: float) -> str:
    """Return a tolerance as the notebooks write it, such as 1e-5 or 0.01."""
    return f"{tolerance:g}".replace("e-0", "e-")


class Shown(int):
    """A truth value that Jupyter does not print as the last line of a cell."""

    def _ipython_display_(self) -> None:
        pass


def reveal(prediction, actual, question: str = "") -> bool:
    """Print a result next to the reader's prediction; without one, ask for it, and hide what else the cell shows.

    The prediction "skip" shows the result without a guess, and the environment variable SHOW=on shows all of them.
    Returns whether the result is shown. With the `question`, in a few words, `predictions()` lists it again at the end.
    """
    if prediction is None and environ.get("SHOW") == "on":
        prediction = SKIP
    if prediction is None:
        print('Type a guess above first, or "skip", and run both cells again.')
        hide_rest_of_cell()
    elif isinstance(prediction, str | list) and prediction in (SKIP, [SKIP]):
        print(f"{THE_ANSWER}{actual}")
    else:
        print(f"{actual}; you predicted {prediction}" + (": correct" * agrees(prediction, actual)))
        if question:
            PREDICTED[question] = prediction, actual
    return Shown(prediction is not None)


def hide_rest_of_cell() -> None:
    """Show nothing of what the running cell prints, draws and returns from here on."""
    if (shell := get_ipython()) is None:
        return
    hidden = capture_output()
    hidden.__enter__()

    def show_again(_) -> None:
        hidden.__exit__(None, None, None)
        shell.events.unregister("post_run_cell", show_again)

    shell.events.register("post_run_cell", show_again)


def predictions() -> None:
    """Print the reader's predictions in this notebook, each next to its result."""
    for question, (prediction, actual) in PREDICTED.items():
        print(f"{question}: you predicted {prediction}, the result is {actual}")
    if not PREDICTED:
        print("You have predicted nothing yet: type a guess where it says prediction = None, and run the cells again")


def agrees(prediction, actual) -> bool:
    """Return whether a prediction equals the result after rounding; a list may be given as a tuple or a tensor.

    An integer result was rounded to ones, as a percentage is, and any other number to hundredths.
    """
    if isinstance(prediction, Tensor | np.ndarray):
        prediction = prediction.tolist()
    if isinstance(prediction, str):
        prediction, actual = prediction.strip().lower(), actual.lower() if isinstance(actual, str) else actual
        if isinstance(actual, Real) and re.fullmatch(r"[-−]?\d+([.,]\d+)?", prediction):
            prediction = float(prediction.replace(",", ".").replace("−", "-"))
    if isinstance(actual, list | tuple):
        same_length = isinstance(prediction, list | tuple) and len(prediction) == len(actual)
        return same_length and all(map(agrees, prediction, actual))
    if isinstance(actual, Real) and isinstance(prediction, Real):
        return abs(prediction - actual) <= (0.5 if isinstance(actual, int) else 0.005) + 1e-9
    return prediction == actual


def finding(statement: str, holds: bool) -> None:
    """Print a statement about the model with ✓ or ✗; it may fail on a reader's own sentences and models.

    Raises nothing: nbval compares this line with the saved one, so the statement is tested on the saved sentences.
    """
    print(f"{'✓' if holds else '✗'} {statement}")
