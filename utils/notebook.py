"""What every notebook calls: `start` in its set-up cell, then comparisons that print the same text on every machine."""

import math
import os
import random
import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
import transformers
from IPython import get_ipython
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

from utils.checkpoints import DEFAULT_CHECKPOINT, checkpoint_name


def start(seed: int = 0) -> torch.device:
    """Seed, silence reports, set the figures' style, say what runs; the device is DEVICE's, else cuda, else cpu.

    On Linux, torch then asks for memory in pages of 2 MB, if it has not asked for any yet (measured in notebook 13).
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries still draw from the global generator
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_printoptions(precision=4, sci_mode=False)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning)
    plt.rcParams.update(
        {
            "figure.dpi": 90,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "image.cmap": "cividis",
            "font.size": 10,
        }
    )
    if get_ipython() is not None:
        set_matplotlib_formats("retina")  # two pixels for one, which the screens of laptops have
    device = torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))
    versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
    print(f"{versions}, on {device}; checkpoint {checkpoint_name()}")
    return device


def largest_difference(ours: Tensor, official: Tensor) -> float:
    """Largest absolute difference of two tensors; ValueError if their shapes differ."""
    if ours.shape != official.shape:
        shapes = f"ours is {tuple(ours.shape)}, the official one {tuple(official.shape)}"
        raise ValueError(f"shapes differ: {shapes}")
    return (ours.detach() - official.detach()).abs().max().item()


def compare(name: str, ours: Tensor, official: Tensor, tolerance: float = 1e-5) -> None:
    """Print and assert that two tensors differ by `tolerance` at most, to the tolerance's last digit."""
    difference = largest_difference(ours, official)
    digits = max(0, round(-math.log10(tolerance)))
    print(f"{name:<30} {tuple(ours.shape)!s:<18} largest difference {difference:.{digits}f}")
    assert difference <= tolerance, f"{name}: largest difference {difference:.2e} is above {tolerance:.0e}"


def reveal(prediction, actual) -> None:
    """Print what came out, and beside it what the reader had predicted; None is no prediction."""
    if prediction is None:
        print(f"{actual}; you predicted nothing: write it above and run both cells again")
    else:
        print(f"{actual}; you predicted {prediction}" + (", and so it is" * (prediction == actual)))


def finding(statement: str, holds: bool) -> None:
    """Assert what the default checkpoint has learned; with another checkpoint only print whether it holds there."""
    if checkpoint_name() == DEFAULT_CHECKPOINT:
        assert holds, f"not so: {statement}"
    print(f"{'✓' if holds else '✗ not with this checkpoint:'} {statement}")
