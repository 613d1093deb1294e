"""Files of a checkpoint damaged at random give the official model or an error in words; tests/slow tries more."""

import pytest

from tests.helpers import run_mutants


@pytest.mark.long
def test_damaged_files_are_taken_right_or_refused(tmp_path):
    found = run_mutants(80, seed=0, folder=tmp_path)
    assert found["equal"] + found["refused"] == 80
    assert min(found["equal"], found["refused"]) >= 5
