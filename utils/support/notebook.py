"""Helpers of the notebooks: `start` for the set-up cell, and checks whose printed text is the same on every machine."""

import ctypes
import os
import random
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from numbers import Real
from pathlib import Path

import numpy as np
import torch
import transformers
from IPython import get_ipython
from IPython.utils.capture import capture_output
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

from utils.support.checkpoint import DEFAULT_CHECKPOINT, checkpoint_name, load_config, load_tokenizer
from utils.support.plots import set_style

# the notebooks use layer 5, head 11 and neuron 1152, and their claims hold for vectors of this size
REQUIRED_SIZES = {"num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384, "intermediate_size": 1153}


def start(seed: int = 0) -> torch.device:
    """Seed the generators, set the style of figures, print the versions, and return the device.

    The device is that of the environment variable DEVICE, else cuda, else cpu. Also prints a line if the notebook
    belongs to another copy of the series than the installed one. On Linux, torch allocates pages of 2 MB
    (benchmarks/faults.py), and memory that a cell has freed is returned to the system. ImportError if a file of the
    reader's, such as a views.py next to the notebook, hides a package of the series.
    """
    check_that_nothing_hides("views", "exercises")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # otherwise each profile reports its start and end on stderr
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries still draw from the global generator
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_printoptions(precision=4, sci_mode=False)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning)
    set_style()
    if (shell := get_ipython()) is not None:
        set_matplotlib_formats("retina")  # twice the resolution, as laptop screens have
        shell.events.register("post_execute", trim_memory)  # once, however often this cell runs
    device = torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))
    versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
    print(f"{versions}, on {device}; checkpoint {checkpoint_name()}")
    if (checkout := other_checkout(Path.cwd())) is not None:
        print(
            f"This notebook is in {checkout}, but Python imports the series from {Path(__file__).parents[2]}. "
            f'If you changed the code there, choose its .venv as the kernel, or run %pip install -e "{checkout}"'
        )
    if short := size_warning(checkpoint_name()):
        print(short)
    return device


def trim_memory() -> None:
    """Return freed memory to the system: glibc kept 300 MB after a training."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def check_that_nothing_hides(*packages: str) -> None:
    """Raise ImportError if a file in the notebook's folder hides a package of the series."""
    for name in packages:
        spec = find_spec(name)
        if spec is not None and Path(spec.origin or "").parent != Path(__file__).parents[2] / name:
            raise ImportError(
                f"{spec.origin} hides the package {name} of the series: rename it, and restart the kernel"
            )


def other_checkout(folder: Path) -> Path | None:
    """Return the copy of the series that contains a notebook's folder, unless it is the imported one."""
    for parent in (folder, *folder.parents[:2]):  # notebooks/solutions is two folders below
        if (parent / "utils" / "support" / "notebook.py").is_file() and (parent / "exercises").is_dir():
            return None if parent == Path(__file__).parents[2] else parent
    return None


def size_warning(checkpoint: str) -> str:
    """Return a warning if a checkpoint is smaller than what the notebooks look at, or an empty string."""
    if checkpoint == DEFAULT_CHECKPOINT:
        return ""
    try:
        config = load_config(checkpoint)
    except (OSError, ValueError):  # reported by the cell that loads it
        return ""
    if not (lacks := missing_sizes(config)):
        return ""
    return (
        f"This checkpoint is smaller than what the notebooks look at ({lacks}): "
        "use a larger one, or expect some cells to fail"
    )


def missing_sizes(config) -> str:
    """Return the sizes of a configuration that are too small for the notebooks, or an empty string."""
    sizes = {field: getattr(config, field) for field in REQUIRED_SIZES}
    return "; ".join(
        f"{field}={sizes[field]}, not {minimum}" for field, minimum in REQUIRED_SIZES.items() if sizes[field] < minimum
    )


def require_tokens(words: str) -> None:
    """Switch to the embedded checkpoint, with a message, if the chosen one lacks one of these words as a token.

    For a notebook about certain words: a model of another language has no heads for English pronouns.
    """
    vocab = load_tokenizer().get_vocab()
    if missing := [word for word in words.split() if word not in vocab]:
        print(
            f"“{missing[0]}” is not a token of {checkpoint_name()}, and this notebook is about such words, "
            f"so it uses {DEFAULT_CHECKPOINT} instead."
        )
        os.environ["CHECKPOINT"] = DEFAULT_CHECKPOINT


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


def format_tolerance(tolerance: float) -> str:
    """Return a tolerance as the notebooks write it, such as 1e-5 or 0.01."""
    return f"{tolerance:g}".replace("e-0", "e-")


SKIP, THE_ANSWER = "skip", "The answer: "  # a reader's prediction, and how the result without a guess begins
PREDICTED: dict[str, tuple] = {}  # question: the reader's prediction and the result


def reveal(prediction, actual, question: str = "") -> bool:
    """Print a result next to the reader's prediction; without one, ask for it, and hide what else the cell shows.

    The prediction "skip" shows the result without a guess. Returns whether there is a prediction. With the `question`,
    in a few words, `predictions()` lists it again at the end.
    """
    if prediction is None:
        print('Type a guess above first, or "skip", and run both cells again.')
        hide_rest_of_cell()
    elif isinstance(prediction, str | list) and prediction in (SKIP, [SKIP]):
        print(f"{THE_ANSWER}{actual}")
    else:
        print(f"{actual}; you predicted {prediction}" + (": correct" * agrees(prediction, actual)))
        if question:
            PREDICTED[question] = prediction, actual
    return prediction is not None


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


def text_or_pair(text) -> tuple[str, ...]:
    """Return a reader's text, or the first two of several, as a tuple; of long ones the beginning, and print so.

    At most 500 characters together, so never more than the 512 tokens that an encoder reads.
    """
    parts = validated("the text", text, ["I called Ian."])
    if len(parts) > 2:
        print(f"The views are for a text or two, so this reads the first two of {len(parts)}.")
    parts = tuple(parts[:2])
    most = 500 // len(parts)
    if any(len(part) > most for part in parts):
        print(f"The views are for sentences, so this reads the first {most} characters.")
    return tuple(part[:most] for part in parts)


def index_of(word: str, tokens: Sequence[str]) -> int:
    """Return the first position of a token, ignoring case; if it is missing, print so and use the first word.

    A cell that follows one word of a sentence then still runs when a reader types another sentence. ValueError if
    there are no tokens.
    """
    lower = [token.lower() for token in tokens]
    if word.lower() in lower:
        return lower.index(word.lower())
    special = ("[CLS]", "[SEP]", "[PAD]")
    position = next((position for position, token in enumerate(tokens) if token not in special), 0)
    if not tokens:
        raise ValueError("there are no tokens to look at: type at least one word")
    print_once(f"“{word}” is not among these tokens, so this cell follows “{tokens[position]}”")
    return position


def as_token(word: str, tokenizer) -> str:
    """Return the token that the tokenizer makes of a word such as "José"; a word of several pieces in lower case."""
    pieces = tokenizer.tokenize(word)
    return pieces[0] if len(pieces) == 1 else word.lower()


def first_piece(word: str, tokenizer) -> int:
    """Return a word's id; if it is not in the vocabulary, print so and use its first piece."""
    pieces = tokenizer.tokenize(word) or ["[UNK]"]
    if len(pieces) > 1 or pieces == ["[UNK]"]:
        print_once(f"“{word}” is not in this vocabulary, so this cell follows “{pieces[0]}”")
    return tokenizer.vocab[pieces[0]]


notified_cell = []  # the execution count of the last cell that printed a notice


def print_once(line: str) -> None:
    """Print a line unless this run of the cell has printed one: a cell may follow a hundred words."""
    cell = getattr(get_ipython(), "execution_count", None)
    if cell is None or cell not in notified_cell:
        print(line)
    notified_cell[:] = [cell]


def validated(name: str, value, default, count: int | None = None):
    """Return a reader's value if it has the same type as the default; otherwise print a message, return the default.

    The type is a text, a list of texts or a list of numbers. A list may be a tuple, or a single text or number. Empty
    texts are dropped from a list; a single empty text is valid only if the default is empty. With a `count`, the list
    must have so many items, and none is dropped.
    """
    if isinstance(default, str):
        expected = "one text in quotation marks"
        valid = [value] if isinstance(value, str) and (value.strip() or not default) else []
    else:
        item_type = str if isinstance(default[0], str) else Real
        expected, valid = f"a list of {count or ''} {'texts' if item_type is str else 'numbers'}".replace("  ", " "), []
        items = [value] if isinstance(value, item_type) else value
        if isinstance(items, list | tuple) and all(isinstance(item, item_type) for item in items):
            valid = [item for item in items if (item.strip() if item_type is str else abs(item) <= sys.float_info.max)]
            if count is not None and not len(valid) == len(items) == count:
                valid = []
    if valid:
        return valid[0] if isinstance(default, str) else valid
    print(f"{name} must be {expected}, not {value!r:.60}: this cell uses {default!r:.80}")
    return default


def first_words(text: str, count: int) -> list[str]:
    """Return the words of a reader's text; of a long one the first `count`, of at most 500 characters, and print so."""
    words = text.strip()[:500].split()[:count]
    if words != text.split():
        print(f"This text is long, so only its beginning is read: {len(words)} words, up to “{words[-1]:.20}”.")
    return words


def clamp(name: str, value: int, count: int, minimum: int = 0) -> int:
    """Return an integer typed by a reader, such as a layer; outside minimum … count - 1, print so, return the nearest.

    A value that is not an integer becomes `minimum`.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else minimum
    nearest = min(max(number, minimum), count - 1)
    if nearest != value:
        print(f"{name} must be an integer from {minimum} to {count - 1}, not {value!r}: this cell uses {nearest}")
    return nearest
