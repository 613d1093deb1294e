"""Kernels killed and notebooks run at the same time: a saved model stays whole, and the next save works."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from jupyter_client.manager import KernelManager
from transformers import BertConfig

from tests.browser.notebook import environment
from utils.classifier import TransformerForSequenceClassification

ROOT = Path(__file__).resolve().parents[1]
TINY = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20}
TINY |= {"vocab_size": 30522, "max_position_embeddings": 16}
unix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals, limits and users")


def filled(number: float) -> TransformerForSequenceClassification:
    """A model that can be told from another: all its weights are one number."""
    model = TransformerForSequenceClassification(BertConfig(**TINY))
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)
    return model


def saved_number(folder: Path) -> float:
    """The number that all weights of the saved model are; more than one would be a mixture of models."""
    weights = TransformerForSequenceClassification.load(folder).state_dict().values()
    (number,) = {value for weight in weights for value in weight.unique().tolist()}
    return number


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# A kernel that is killed, and two at a time

CELLS = [
    "from utils.notebook import start\ndevice = start()",
    f"""\
from transformers import BertConfig
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import reviews
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune
train, validation, test = reviews()
tokenizer = WordPieceTokenizer.from_checkpoint("all-MiniLM-L6-v2")
model = TransformerForSequenceClassification(BertConfig(**{TINY}))""",
    "history = fine_tune(model, tokenizer, train[:400], validation[:20], epochs=4, batch_size=8)",
    "model.save('model')",
]
SAVE_OFTEN = """\
for weight in model.parameters():
    weight.data.fill_({number})
for _ in range(15):
    model.save('model')"""


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path_factory):
    """Jupyter finds and writes no settings of the user's, and needs no home to be there."""
    for name, value in environment(tmp_path_factory.mktemp("jupyter")).items():
        if name.startswith(("JUPYTER_", "IPYTHON")):
            monkeypatch.setenv(name, value)


@contextmanager
def kernel(folder: Path):
    """A kernel of a notebook in this folder, and its client; dead afterwards."""
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


def test_a_kernel_killed_in_training_and_the_notebook_run_again(tmp_path):
    filled(1.0).save(tmp_path / "model")
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
    trained = TransformerForSequenceClassification.load(tmp_path / "model").pooler.weight
    assert trained.unique().numel() > 1
    assert not [name for name in names(tmp_path) if name.startswith(".model")]


def test_two_notebooks_save_into_the_same_folder_at_once(tmp_path):
    filled(1.0).save(tmp_path / "model")
    (tmp_path / "model" / "vocab.txt").write_text("[PAD]\n")
    with kernel(tmp_path) as (_, first), kernel(tmp_path) as (_, second):
        for cell in CELLS[:2]:
            requests = [(client, client.execute(cell)) for client in (first, second)]
            for client, request in requests:
                finish(client, request)
        requests = [
            (client, client.execute(SAVE_OFTEN.format(number=number)))
            for client, number in ((first, 2), (second, 3))
        ]
        for client, request in requests:
            finish(client, request)
    assert saved_number(tmp_path / "model") in (2, 3)
    assert (tmp_path / "model" / "vocab.txt").read_text() == "[PAD]\n"
    assert not [name for name in names(tmp_path) if name.startswith(".model")]


# A process that is killed while it saves. One process forks for each moment, so that torch is imported once.

KILLED = """\
import os, shutil, signal, sys
from pathlib import Path
from tests.test_faults import filled
from utils import classifier

rename, rmtree, calls = Path.rename, shutil.rmtree, []

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def write_half(weights, path, **options):
    Path(path).write_bytes(b"half")
    die()

def rename_once(self, target):
    calls.append(target)
    return rename(self, target) if len(calls) == 1 else die()

def keep_previous(path, **options):
    return die() if path.name.endswith(".previous") and len(calls) == 2 else rmtree(path, **options)

def rename_and_count(self, target):
    calls.append(target)
    return rename(self, target)

MOMENTS = {
    "writing": [(classifier, "save_file", write_half)],
    "before the swap": [(classifier, "replace_folder", die)],
    "between the renames": [(Path, "rename", rename_once)],
    "after the renames": [(Path, "rename", rename_and_count), (shutil, "rmtree", keep_previous)],
}
old, new = filled(1.0), filled(2.0)
for moment, changes in MOMENTS.items():
    folder = Path(sys.argv[1]) / moment / "model"
    old.save(folder)
    (folder / "vocab.txt").write_text("[PAD]")
    child = os.fork()
    if not child:
        for place, name, change in changes:
            setattr(place, name, change)
        new.save(folder)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, moment
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(folder)]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return folder


@unix_only
@pytest.mark.parametrize(
    ("moment", "number", "leftovers"),
    [
        ("writing", 1, ["partial"]),
        ("before the swap", 1, ["partial"]),
        ("between the renames", 1, ["partial", "previous"]),
        ("after the renames", 2, ["previous"]),
    ],
)
def test_a_save_that_is_killed_loses_nothing_and_does_not_disturb_the_next(killed, moment, number, leftovers):
    folder = killed / moment / "model"
    hidden = [name.rsplit(".")[-1] for name in names(folder.parent) if name.startswith(".")]
    assert sorted(hidden) == leftovers
    assert saved_number(folder) == number
    filled(3.0).save(folder)
    assert saved_number(folder) == 3
    assert (folder / "vocab.txt").read_text() == "[PAD]"
    assert names(folder.parent) == ["model"]


def test_the_number_of_a_killed_process_comes_again(tmp_path):
    """In a container the kernel has the same process number every day, and so would its unfinished folder."""
    (tmp_path / f".model.{os.getpid()}.partial").mkdir()
    (tmp_path / f".model.{os.getpid()}.partial" / "old").touch()
    filled(1.0).save(tmp_path / "model")
    assert names(tmp_path) == ["model"]
    assert names(tmp_path / "model") == ["config.json", "model.safetensors"]
