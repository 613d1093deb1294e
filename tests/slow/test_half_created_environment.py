"""A virtual environment whose creation was killed is completed by the next attempt."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers import unix_only


def wait_for(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 20
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"{pattern} did not come"
        time.sleep(0.01)


@unix_only
@pytest.mark.parametrize("sign", ["pyvenv.cfg", "lib/python*/site-packages/pip/__init__.py"])
def test_half_created_environment_is_completed(tmp_path, sign):
    """The real `python -m venv`, killed before and in the installation of pip."""
    environment = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", str(environment)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    quiet["env"] = os.environ | {"TMPDIR": str(tmp_path)}  # for what a killed pip leaves behind
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    wait_for(environment, sign)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=20) != 0
    subprocess.run(command, check=True, timeout=60, **quiet)
    command = [environment / "bin" / "python", "-m", "pip", "--version"]
    found = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert str(environment) in found.stdout
