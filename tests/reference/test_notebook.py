"""What the setup cell of every notebook leaves behind: seeds, silence, a style, and the device."""

import random
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from utils.notebook import start


@pytest.fixture(autouse=True)
def settings():
    """What `start` sets for a whole notebook, set back after a test."""
    with plt.rc_context(), warnings.catch_warnings():
        yield
    torch.set_printoptions(profile="default")


def draws() -> list[float]:
    return [random.random(), np.random.rand(), torch.rand(1).item()]  # noqa: NPY002


def test_all_generators_are_seeded():
    def drawn_after(*seed: int) -> list[float]:
        start(*seed)
        return draws()

    assert drawn_after() == drawn_after(0)
    assert all(mine != other for mine, other in zip(drawn_after(0), drawn_after(1), strict=True))


@pytest.mark.parametrize(
    ("device", "cuda", "wanted"), [("cpu", True, "cpu"), ("", True, "cuda"), ("", False, "cpu")]
)
def test_the_environment_chooses_the_device_before_cuda_does(monkeypatch, device, cuda, wanted):
    monkeypatch.setenv("DEVICE", device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    assert start() == torch.device(wanted)


def test_numbers_and_figures_look_alike_in_every_notebook():
    start()
    assert "0.0001" in str(torch.tensor([1e-4, 1e4]))
    assert plt.rcParams["image.cmap"] == "cividis"
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("in a later version", FutureWarning, stacklevel=1)
    assert caught == []
