"""What the setup cell of every notebook leaves behind, and that comparisons fail when they should."""

import os
import random
import warnings
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from utils.checkpoints import DEFAULT_CHECKPOINT
from utils.notebook import compare, finding, largest_difference, start


@pytest.fixture(autouse=True)
def settings():
    """What `start` sets for a whole notebook, set back after a test."""
    with plt.rc_context(), warnings.catch_warnings(), patch.dict(os.environ):
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


def test_large_pages_unless_the_reader_has_chosen(monkeypatch):
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    start()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    start()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"


def test_numbers_and_figures_look_alike_in_every_notebook():
    start()
    assert "0.0001" in str(torch.tensor([1e-4, 1e4]))
    assert plt.rcParams["image.cmap"] == "cividis"
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("in a later version", FutureWarning, stacklevel=1)
    assert caught == []


def test_the_largest_difference_is_absolute_and_wants_equal_shapes():
    assert largest_difference(torch.tensor([1.0, 2.0]), torch.tensor([1.5, -1.0])) == 3
    with pytest.raises(ValueError, match=r"ours is \(2,\), the official one \(3,\)"):
        largest_difference(torch.zeros(2), torch.zeros(3))


def test_a_comparison_prints_as_many_digits_as_its_tolerance_has(capsys):
    compare("weights", torch.tensor([[1e-6]]), torch.tensor([[0.0]]))
    compare("weights", torch.tensor([0.25]), torch.tensor([0.0]), tolerance=1)
    assert capsys.readouterr().out.splitlines() == [
        f"{'weights':<30} {'(1, 1)':<18} largest difference 0.00000",
        f"{'weights':<30} {'(1,)':<18} largest difference 0",
    ]


def test_a_comparison_fails_above_its_tolerance():
    for wrong in (1e-4, float("nan")):
        with pytest.raises(
            AssertionError, match=r"weights: largest difference (1\.00e-04|nan) is above 1e-05"
        ):
            compare("weights", torch.tensor([wrong]), torch.tensor([0.0]))


def test_findings_are_asserted_for_the_default_checkpoint_only(monkeypatch, capsys):
    monkeypatch.setenv("CHECKPOINT", DEFAULT_CHECKPOINT)
    finding("head 3 looks back", True)
    with pytest.raises(AssertionError, match="not so: head 3 looks back"):
        finding("head 3 looks back", False)
    monkeypatch.setenv("CHECKPOINT", "another")
    finding("head 3 looks back", False)
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["✓ head 3 looks back", "✗ not with this checkpoint: head 3 looks back"]
