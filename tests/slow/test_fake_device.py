"""The series on a fake second device: code that mixes the devices of tensors fails here as on a GPU."""

import os
import subprocess
import sys

import nbformat
import pytest

from tests.helpers import ONE_THREAD, ROOT
from tests.slow import fake_device

NOTEBOOKS = sorted(path.relative_to(ROOT) for path in (ROOT / "notebooks").rglob("[0-9e]*.ipynb"))
FUSED = "growth = {"  # start of notebook 04's cell on fused attention, which this device lacks
ONES = "import torch; near, away = torch.ones(2, 3), torch.ones(2, 3, device='far'); "


@pytest.fixture(scope="module")
def fake_device_env(tmp_path_factory) -> dict[str, str]:
    """Return environment variables with which Python knows the device, and the series uses it."""
    folder = tmp_path_factory.mktemp("far")
    fake_device.install(folder)
    path = os.pathsep.join([str(folder), ONE_THREAD["PYTHONPATH"]])
    return ONE_THREAD | {"PYTHONPATH": path, "DEVICE": fake_device.NAME, "MINE": "off"}


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "error"), [
    ("near + away", "RuntimeError"),
    ("near.add_(away)", "RuntimeError"),
    ("away.add_(near)", "RuntimeError"),
    ("torch.cat([near, away])", "RuntimeError"),
    ("near[torch.tensor([0], device='far')]", "RuntimeError"),
    ("away[near > 0] = near.flatten()", "RuntimeError"),
    ("torch.nn.functional.embedding(torch.tensor([0]), away)", "RuntimeError"),
    ("torch.nn.Linear(3, 2)(away)", "RuntimeError"),
    ("torch.nn.Linear(3, 2).to('far')(near)", "RuntimeError"),
    ("torch.rand(2, device='far', generator=torch.Generator())", "RuntimeError"),
    ("away.numpy()", "TypeError"),
    ("import numpy; numpy.asarray(away)", "TypeError"),
])  # fmt: skip
def test_device_refuses_what_a_gpu_refuses(fake_device_env, code, error):
    done = run("-c", ONES + code, env=fake_device_env)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(error), done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_on_another_device(fake_device_env, path):
    """All outputs equal the saved ones: the device computes like the CPU, and no output depends on random numbers."""
    cells = [cell for cell in nbformat.read(ROOT / path, as_version=4).cells if cell.cell_type == "code"]
    left_out = [f"--deselect={path}::Cell {i}" for i, cell in enumerate(cells) if cell.source.startswith(FUSED)]
    arguments = ("-m", "pytest", "--nbval", "-q", "-p", "tests.notebooks.pictures", "-p", "no:cacheprovider")
    done = run(*arguments, *left_out, str(path), env=fake_device_env)
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
