"""Every case in publish/bad_input.py behaves as listed, its remedy works, and CONTRIBUTING.md has their summary."""

import shutil

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from publish.bad_input import CASES, summary, write_checkpoint
from tests.helpers import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("whole") / "checkpoint")


@pytest.fixture
def folder(checkpoint, tmp_path, monkeypatch):
    """Copy the tiny checkpoint, so that a case can damage it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(plt, "show", lambda: None)
    with mpl.rc_context({"backend": "agg"}):
        yield shutil.copytree(checkpoint, tmp_path / "checkpoint")
        plt.close("all")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.given}"[:90])
def test_case_succeeds_or_raises_clear_error(case, folder):
    if case.error is None:
        assert case.call(folder) is True
        return
    with pytest.raises(case.error) as caught:
        case.call(folder)
    assert case.words in str(caught.value)
    assert caught.type in (ValueError, TypeError, OSError, FileNotFoundError, MemoryError)
    assert case.remedy(folder) is not False


def test_cases_are_numerous_and_unique():
    assert len(CASES) >= 150
    assert len({(case.group, case.given) for case in CASES}) == len(CASES)
    assert all((case.error is None) is (case.remedy is None) for case in CASES)


def test_contributing_contains_summary_of_cases():
    assert summary() in (ROOT / "CONTRIBUTING.md").read_text("utf-8"), "run `python -m publish.bad_input`"
