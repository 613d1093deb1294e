"""Set up a notebook: `start` seeds, sets the style and prints the versions."""

import ctypes
import os
import random
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers
from IPython import get_ipython
from matplotlib_inline.backend_inline import set_matplotlib_formats

from utils.support.checkpoint import DEFAULT_CHECKPOINT, checkpoint_name, load_config, missing_sizes
from utils.support.plots import set_style


def start(seed: int = 0) -> torch.device:
    """Seed the generators, set the style of figures, print the versions, and return the device.

    The device is that of the environment variable DEVICE, else cuda, else cpu. Also prints a line if the notebook
    belongs to another copy of the series than the installed one. On Linux, torch allocates pages of 2 MB,
    and memory that a cell has freed is returned to the system. ValueError for a DEVICE that does not exist, ImportError
    if a file of the reader's, such as a views.py next to the notebook, hides a package of the series.
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
    device = chosen_device()
    versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
    print(f"{versions}, on {device}; checkpoint {checkpoint_name()}")
    if checkpoint_name() != DEFAULT_CHECKPOINT:
        print(f"The text describes {DEFAULT_CHECKPOINT}: your checkpoint gives other numbers and other heads.")
        with suppress(OSError, ValueError):  # reported by the cell that loads it
            if lacks := missing_sizes(load_config()):
                smaller = f"This checkpoint is smaller than what the notebooks look at ({lacks})"
                print(f"{smaller}: use a larger one, or expect some cells to fail")
    if (checkout := other_checkout(Path.cwd())) is not None:
        print(
            f"This notebook is in {checkout}, but Python imports the series from {Path(__file__).parents[2]}. "
            f'If you changed the code there, choose its .venv as the kernel, or run %pip install -e "{checkout}"'
        )
    return device


def chosen_device() -> torch.device:
    """Return the device of the environment variable DEVICE, else cuda, else cpu; ValueError if it cannot be used."""
    best = "cuda" if torch.cuda.is_available() else "cpu"
    if not (name := os.environ.get("DEVICE")):
        return torch.device(best)
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:  # each kind of device raises its own type
        raise ValueError(f"DEVICE={name} cannot be used here: write DEVICE={best}, or leave it out") from error
    return torch.device(name)


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
