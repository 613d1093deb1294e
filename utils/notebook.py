"""What every notebook calls: `start` in its set-up cell, then comparisons that print the same text on every machine."""

import ctypes
import math
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
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

from utils.checkpoint import DEFAULT_CHECKPOINT, checkpoint_name, load_config, load_tokenizer
from utils.plots import set_style

# what the notebooks look at: layer 5, head 11, neuron 1152, and scores of vectors of this size
NEEDED = {"num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384, "intermediate_size": 1153}


def start(seed: int = 0) -> torch.device:
    """Seed, silence reports, set the figures' style, say what runs; the device is DEVICE's, else cuda, else cpu.

    ImportError if a file of the reader's own hides a package of the series, such as a views.py beside the notebook.
    Also prints a line if the notebook belongs to another copy of the series than the one that is installed.
    On Linux, torch then asks for memory in pages of 2 MB, if it has not asked for any yet (benchmarks/faults.py), and
    what a cell has freed goes back to the system after it.
    """
    check_that_nothing_hides("views", "exercises")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # else each profile reports its start and its end on stderr
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
        set_matplotlib_formats("retina")  # two pixels for one, which the screens of laptops have
        shell.events.register("post_execute", give_back_memory)  # once, however often this cell runs
    device = torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))
    versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
    print(f"{versions}, on {device}; checkpoint {checkpoint_name()}")
    if (place := other_checkout(Path.cwd())) is not None:
        print(
            f"This notebook is in {place}, but Python imports the series from {Path(__file__).parents[1]}. "
            f'If you changed the code there, choose its .venv as the kernel, or run %pip install -e "{place}"'
        )
    if short := too_small(checkpoint_name()):
        print(short)
    return device


def give_back_memory() -> None:
    """Hand freed memory back to the system where the C library is glibc, which kept 300 MB after a training."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def check_that_nothing_hides(*packages: str) -> None:
    """Raise ImportError if Python finds a package of the series elsewhere: a folder's own files come first."""
    for name in packages:
        found = find_spec(name)
        if found is not None and Path(found.origin or "").parent != Path(__file__).parents[1] / name:
            raise ImportError(
                f"{found.origin} hides the package {name} of the series: rename it, and restart the kernel"
            )


def other_checkout(folder: Path) -> Path | None:
    """Return the copy of the series that contains a notebook's folder, unless it is the one that is imported."""
    for place in (folder, *folder.parents[:2]):  # notebooks/solutions is two folders below
        if (place / "utils" / "notebook.py").is_file() and (place / "exercises").is_dir():
            return None if place == Path(__file__).parents[1] else place
    return None


def too_small(checkpoint: str) -> str:
    """A sentence on what the notebooks look at and a checkpoint has not, by its config.json; "" if it has all of it."""
    if checkpoint == DEFAULT_CHECKPOINT:
        return ""
    try:
        config = load_config(checkpoint)
    except (OSError, ValueError):  # said in words where a cell loads it
        return ""
    if not (lacks := lacking(config)):
        return ""
    remedy = "use a larger one, or expect some cells to fail"
    return f"This checkpoint is smaller than what the notebooks look at ({lacks}): {remedy}"


def lacking(config) -> str:
    """What the notebooks look at and a model of this configuration has not, field by field; "" if it has all of it."""
    found = {field: getattr(config, field) for field in NEEDED}
    return "; ".join(f"{field}={found[field]}, not {least}" for field, least in NEEDED.items() if found[field] < least)


def need_words(words: str) -> None:
    """Go on with the series' own checkpoint, and say so, if the one chosen has not each of these words as a token.

    For a notebook that is about certain words: a model of another language has no heads for English pronouns.
    """
    vocab = load_tokenizer().get_vocab()
    if missing := [word for word in words.split() if word not in vocab]:
        print(
            f"“{missing[0]}” is no token of {checkpoint_name()}, and this notebook is about such words: "
            f"it reads {DEFAULT_CHECKPOINT} instead"
        )
        os.environ["CHECKPOINT"] = DEFAULT_CHECKPOINT


def largest_difference(ours: Tensor, official: Tensor) -> float:
    """Largest absolute difference of two tensors; ValueError if their shapes differ."""
    if ours.shape != official.shape:
        shapes = f"ours is {tuple(ours.shape)}, the official one {tuple(official.shape)}"
        raise ValueError(f"shapes differ: {shapes}")
    return (ours.detach() - official.detach()).abs().max().item()


def compare(name: str, ours: Tensor, official: Tensor, tolerance: float = 1e-5) -> None:
    """Print the tolerance to which two tensors are equal; AssertionError with their largest difference if they are not.

    The difference itself is not printed: its last digits depend on the processor.
    """
    difference = largest_difference(ours, official)
    assert difference <= tolerance, f"{name}: largest difference {difference:.2e} is above {tolerance:.0e}"
    print(f"{name:<30} {tuple(ours.shape)!s:<18} equal to {spell(tolerance)}")


def spell(tolerance: float) -> str:
    """A tolerance as the text of the notebooks has it, such as 1e-5, or 0.01."""
    return f"{tolerance:g}".replace("e-0", "e-")


PREDICTED: dict[str, tuple] = {}  # what was asked: what the reader predicted, and what came out


def reveal(prediction, actual, asked: str = "") -> None:
    """Print what came out, and beside it what the reader had predicted; None is no prediction.

    With what was `asked`, in a few words, `predictions()` lists it again at the end.
    """
    if prediction is None:
        print(f"{actual}; you predicted nothing: write it above and run both cells again")
        return
    print(f"{actual}; you predicted {prediction}" + (", and so it is" * agrees(prediction, actual)))
    if asked:
        PREDICTED[asked] = prediction, actual


def predictions() -> None:
    """Print what the reader predicted in this notebook, each beside what came out."""
    for asked, (prediction, actual) in PREDICTED.items():
        print(f"{asked}: you predicted {prediction}, and it is {actual}")
    if not PREDICTED:
        print("You predicted nothing so far: type a guess where it says prediction = None, and run the cells again")


def agrees(prediction, actual) -> bool:
    """Say whether a prediction is what came out, within rounding; a list may be typed as a tuple or a tensor.

    A whole number came from rounding to ones, as per cents do, and any other number from rounding to hundredths.
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
    """Print whether a statement about the model holds, ✓ or ✗: it may fail on a reader's own sentences and models.

    Nothing is raised. That it holds for the saved sentences is checked by comparing this line with the saved one.
    """
    print(f"{'✓' if holds else '✗'} {statement}")


def place_of(word: str, tokens: Sequence[str]) -> int:
    """The first place of a token among others. If it is not there, say so and take the first one that is a word.

    So a cell that follows one word of a sentence goes on when a reader types another sentence. The case of letters
    does not matter. ValueError only if there are no tokens.
    """
    lower = [token.lower() for token in tokens]
    if word.lower() in lower:
        return lower.index(word.lower())
    special = ("[CLS]", "[SEP]", "[PAD]")
    place = next((place for place, token in enumerate(tokens) if token not in special), 0)
    if not tokens:
        raise ValueError("there are no tokens to look at: type at least one word")
    tell_once(f"“{word}” is not among these tokens, so this cell follows “{tokens[place]}”")
    return place


def first_piece(word: str, tokenizer) -> int:
    """A word's number in the vocabulary. If it is not in there, say so and take that of the first of its pieces."""
    pieces = tokenizer.tokenize(word) or ["[UNK]"]
    if len(pieces) > 1 or pieces == ["[UNK]"]:
        tell_once(f"“{word}” is not in this vocabulary, so this cell follows “{pieces[0]}”")
    return tokenizer.vocab[pieces[0]]


told_in = []  # the run of a cell that has told of a missing word


def tell_once(line: str) -> None:
    """Print a line, but only the first one in each run of a cell: a cell may follow a hundred words."""
    cell = getattr(get_ipython(), "execution_count", None)
    if cell is None or cell not in told_in:
        print(line)
    told_in[:] = [cell]


def typed(name: str, value, instead):
    """What a reader typed into a box, if it is such as `instead`: a text, a list of texts, or a list of numbers.

    Else say in one line what the box takes, and take `instead`. A list may be a tuple, or one text or number alone;
    empty texts are left out of it, and one alone is taken only where `instead` is empty, too.
    """
    if isinstance(instead, str):
        takes = "one text in quotation marks"
        found = [value] if isinstance(value, str) and (value.strip() or not instead) else []
    else:
        kind = str if isinstance(instead[0], str) else Real
        takes, found = f"a list of {'texts' if kind is str else 'numbers'}", []
        several = [value] if isinstance(value, kind) else value
        if isinstance(several, list | tuple) and all(isinstance(each, kind) for each in several):
            found = [each for each in several if (each.strip() if kind is str else math.isfinite(each))]
    if found:
        return found[0] if isinstance(instead, str) else found
    print(f"{name} is {takes}, not {value!r:.60}: this cell takes {instead!r:.80}")
    return instead


def within(name: str, value: int, count: int, least: int = 0) -> int:
    """A number that a reader typed, such as a layer, if it is from `least` to count - 1; else say so, take the nearest.

    What is no whole number at all becomes `least`.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else least
    nearest = min(max(number, least), count - 1)
    if nearest != value:
        print(f"{name} is a whole number from {least} to {count - 1}, not {value!r}: this cell takes {nearest}")
    return nearest
