"""The same outputs under other circumstances: threads, order, place, language, time zone, and a home of no use."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers import has_locale
from tests.repository import copy_project


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.skipif(not has_locale("fr_FR.utf8"), reason="needs a French locale: apt install locales-all")
def test_outputs_depend_on_nothing_around_them(tmp_path):
    """Saved with two threads, in order, in English: run with four, in another order, in French, without a home."""
    folder = copy_project(tmp_path / "un dossier à part")
    (folder / ".venv").symlink_to(sys.prefix)
    circumstances = {
        "OMP_NUM_THREADS": "4",
        "OMP_WAIT_POLICY": "passive",  # more threads than cores: waiting ones must not keep the others from work
        "LC_ALL": "fr_FR.UTF-8",
        "TZ": "Pacific/Chatham",
        "HOME": "/dev/null/home",  # cannot be made, not even by root
        "PYTHONPATH": str(folder),  # the environment has another checkout installed
    }
    environment = {**os.environ, **circumstances}
    environment.pop("CHECKPOINT", None)
    command = ["make", "-o", ".venv/.installed", "-o", ".venv/.installed-dev"]  # whatever is installed will do
    command += ["compare", "NB=05 03 00"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " failed" not in done.stdout
    assert " passed" in done.stdout
