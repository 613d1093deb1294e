"""What the setup cell of every notebook calls."""

import os
import random
import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
import transformers


def start(seed: int = 0) -> torch.device:
    """Seed, silence progress reports, set the figures' style; return the environment's DEVICE, else cuda, else cpu."""
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
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "image.cmap": "cividis",
            "font.size": 10,
        }
    )
    return torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))
