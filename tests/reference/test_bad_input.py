"""Every case of the table in tests/bad_input.py, and the summary of it in CONTRIBUTING.md."""

import shutil

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from tests.bad_input import CASES, summary, write_checkpoint
from tests.helpers import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("whole") / "checkpoint")


@pytest.fixture
def folder(checkpoint, tmp_path, monkeypatch):
    """A copy of the tiny checkpoint, to be damaged."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(plt, "show", lambda: None)
    with mpl.rc_context({"backend": "agg"}):
        yield shutil.copytree(checkpoint, tmp_path / "checkpoint")
        plt.close("all")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.given}"[:90])
def test_it_is_taken_right_or_refused_in_words(case, folder):
    if case.error is None:
        assert case.call(folder) is True
        return
    with pytest.raises(case.error) as caught:
        case.call(folder)
    assert case.words in str(caught.value)
    assert caught.type in (ValueError, TypeError, OSError, FileNotFoundError, MemoryError)


def test_there_are_enough_and_no_two_alike():
    assert len(CASES) >= 150
    assert len({(case.group, case.given) for case in CASES}) == len(CASES)


def test_contributing_says_what_the_table_holds():
    assert summary() in (ROOT / "CONTRIBUTING.md").read_text("utf-8"), "run `python -m tests.bad_input`"
