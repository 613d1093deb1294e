"""Kernels and processes killed while saving: the old or the new model is complete, and can be saved again."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from publish.jupyterlab import environment
from tests.helpers import ROOT, TINY, filled, names, saved_number, tiny_tokenizer, unix_only
from utils.classifier import TransformerForSequenceClassification

WHOLE = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]

# A kernel that is killed

CELLS = [
    "from utils.support.notebook import start\ndevice = start()",
    f"""\
from transformers import BertConfig
from utils.classifier import TransformerForSequenceClassification
from utils.support.datasets import reviews
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune
train, validation, test = reviews()
tokenizer = WordPieceTokenizer.from_checkpoint("all-MiniLM-L6-v2")
model = TransformerForSequenceClassification(BertConfig(**{TINY | {"vocab_size": 30522}}))""",
    "history = fine_tune(model, tokenizer, train[:400], validation[:20], epochs=4, batch_size=8)",
    "model.save('model', tokenizer)",
]


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path_factory):
    """Keep Jupyter from reading and writing the user's settings, and from needing a home folder."""
    for name, value in environment(tmp_path_factory.mktemp("jupyter")).items():
        if name.startswith(("JUPYTER_", "IPYTHON")):
            monkeypatch.setenv(name, value)


@contextmanager
def kernel(folder: Path):
    """Start a kernel in this folder, and yield its manager and client; the kernel is shut down afterwards."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder), env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def finish(client, request: str) -> None:
    """Wait for a cell to end, without an error."""
    while True:
        reply = client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == request:
            break
    assert reply["content"]["status"] == "ok", reply["content"].get("traceback")


def run_cells(client, cells: list[str]) -> None:
    for cell in cells:
        finish(client, client.execute(cell))


def test_notebook_reruns_after_kernel_was_killed(tmp_path):
    filled(1.0).save(tmp_path / "model", tiny_tokenizer())
    with kernel(tmp_path) as (manager, client):
        run_cells(client, CELLS[:2])
        request = client.execute(CELLS[2])
        while True:  # until the progress bar has counted a step
            message = client.get_iopub_msg(timeout=60)
            if "/50" in message["content"].get("text", "") and " 0/50" not in message["content"]["text"]:
                break
        assert message["parent_header"]["msg_id"] == request
        manager.provisioner.process.kill()
        assert manager.provisioner.process.wait(timeout=10) != 0
    assert saved_number(tmp_path / "model") == 1
    with kernel(tmp_path) as (_, client):
        run_cells(client, CELLS)
    trained = TransformerForSequenceClassification.from_checkpoint(tmp_path / "model").pooler.weight
    assert trained.unique().numel() > 1
    assert names(tmp_path / "model") == WHOLE


# Processes. One forks for each moment, so that torch is imported once.

COMMON = """\
import json, os, signal, sys, time
from pathlib import Path
from tests.helpers import filled, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification

place, tokenizer = Path(sys.argv[1]), tiny_tokenizer()

def save(folder, number, **options):
    filled(number).save(folder, tokenizer, [f"{number} no", f"{number} yes"], **options)

def load(folder):
    "The number of the model; a mixture ends the program."
    model = TransformerForSequenceClassification.from_checkpoint(folder)
    (number,) = {value for weight in model.parameters() for value in weight.unique().tolist()}
    assert model.config.id2label == {0: f"{number:.0f} no", 1: f"{number:.0f} yes"}, (number, model.config.id2label)
    return int(number)

def child(function, *arguments):
    "The number of a process that runs a function, and ends with status 1 if that raises."
    number = os.fork()
    if number:
        return number
    try:
        function(*arguments)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)

def status(number):
    return os.waitpid(number, 0)[1]
"""
# kills a dry run and a save at their first step that changes a file, at their second, and so on until none is killed
EVERY_STEP = """
STEPS = [(os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "mkdir"), (Path, "unlink"), (Path, "rmdir")]

def save_until(step, folder):
    taken = []
    def counting(name, real):
        def stand_in(*arguments, **options):
            taken.append(name)
            if len(taken) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return stand_in
    for owner, name in STEPS:
        setattr(owner, name, counting(name, getattr(owner, name)))
    save(folder, 2, dry_run=True)
    save(folder, 2)

found = []
for step in range(1, 100):
    folder = place / str(step) / "model"
    if sys.argv[2] == "empty":
        folder.mkdir(parents=True)
    else:
        save(folder, 1)
    ended = status(child(save_until, step, folder))
    if folder.is_dir():
        found.append(load(folder) if (folder / "config.json").exists() else 0)
    else:
        (left,) = folder.parent.glob(".saving-*/*/old 0")
        found.append(-load(left))
    if not ended:
        break
    assert ended == signal.SIGKILL
print(json.dumps(found))
"""


# two save again and again
TOGETHER = """
def save_often(numbers, end):
    while time.monotonic() < end:
        for number in numbers:
            save(folder, number, dry_run=True)
            save(folder, number)

folder, found = place / "model", []
for _ in range(int(sys.argv[2])):
    savers = [child(save_often, numbers, time.monotonic() + 2) for numbers in ([1, 2], [3, 4])]
    assert [status(saver) for saver in savers] == [0, 0]
    found.append(load(folder))
print(json.dumps(found))
"""


def run(program: str, folder: Path, *arguments: str) -> list[int | None]:
    """What the program found each time that it loaded."""
    command = [sys.executable, "-W", "ignore", "-c", COMMON + program, str(folder), *arguments]
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@unix_only
def test_a_save_killed_at_any_of_its_steps(tmp_path):
    """The old model is there, for an instant under its other name, then the new one; and the next save works."""
    found = run(EVERY_STEP, tmp_path, "old")
    assert {1, -1, 2} == set(found)
    assert 1 not in found[found.index(2) :]
    for step in range(1, len(found) + 1):
        folder = tmp_path / str(step) / "model"
        filled(3.0).save(folder, tiny_tokenizer())
        assert saved_number(folder) == 3
        assert names(folder) == WHOLE
        assert [name for name in names(folder.parent) if not name.startswith(".saving-")] == ["model"]


@unix_only
def test_killed_while_it_fills_an_empty_folder(tmp_path):
    """The folder is empty, then it has a complete model."""
    found = run(EVERY_STEP, tmp_path, "empty")
    assert found == sorted(found)
    assert {0, 2} == set(found)


@unix_only
def test_two_programs_save_into_one_folder(tmp_path):
    """Neither saving fails, and the model that is there at the end is one of those that were saved."""
    found = run(TOGETHER, tmp_path, "10")
    assert set(found) <= {1, 2, 3, 4}
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == WHOLE
