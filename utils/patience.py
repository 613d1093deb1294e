"""Say what a notebook waits for while its first cell imports. Imported by `utils.notebook` before what takes long."""

import threading

from IPython import get_ipython
from IPython.display import clear_output

SECONDS = 2  # in which nobody wonders
IMPORTING = "Importing PyTorch and transformers: some seconds, and longer the first time after an installation …"

SAID = threading.Event()


def say() -> None:
    """Print what is waited for."""
    SAID.set()
    print(IMPORTING, flush=True)


WAITING = threading.Timer(SECONDS, say)
WAITING.daemon = True
if get_ipython() is not None:
    WAITING.start()


def over() -> None:
    """End the wait; what was said of it goes when the cell prints something else."""
    WAITING.cancel()
    if WAITING.is_alive():
        WAITING.join()
    if SAID.is_set():
        SAID.clear()
        clear_output(wait=True)
