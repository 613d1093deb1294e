"""As in tests/reference/test_mutants.py, with 2,000 others."""

import pytest

from tests.helpers import run_mutants


@pytest.mark.parametrize("seed", range(1, 5))
def test_damaged_files_are_taken_right_or_refused(tmp_path, seed):
    found = run_mutants(500, seed=seed, folder=tmp_path)
    assert found["equal"] + found["refused"] == 500
