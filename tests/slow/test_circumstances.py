"""The same outputs with other threads, order, folder, language and time zone, and without a home folder."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers import has_locale
from tests.repository import copy_project


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.skipif(not has_locale("fr_FR.utf8"), reason="needs a French locale: apt install locales-all")
def test_outputs_are_independent_of_the_environment(tmp_path):
    """Outputs are saved with two threads, in order, in English; run with four, in another order, in French."""
    folder = copy_project(tmp_path / "un dossier à part")
    (folder / ".venv").symlink_to(sys.prefix)
    circumstances = {
        "OMP_NUM_THREADS": "4",
        "OMP_WAIT_POLICY": "passive",  # more threads than cores: waiting threads must not block the others
        "LC_ALL": "fr_FR.UTF-8",
        "TZ": "Pacific/Chatham",
        "HOME": "/dev/null/home",  # cannot be created, not even by root
        "PYTHONPATH": str(folder),  # another checkout is installed in the environment
    }
    environment = {**os.environ, **circumstances}
    environment.pop("CHECKPOINT", None)
    command = ["make", "-o", ".venv/.installed", "-o", ".venv/.installed-dev"]  # use the installed packages
    command += ["compare", "NB=05 03 00"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " failed" not in done.stdout
    assert " passed" in done.stdout
