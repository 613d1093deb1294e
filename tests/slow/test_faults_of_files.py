"""Disks full, folders closed, files altered, memory short: what was saved stays, and the error says what to do."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
import torch
from transformers import BertConfig, BertModel

from tests.test_faults import ROOT, TINY, filled, names, unix_only
from tools import notebooks
from utils import checkpoints, memory
from utils.encoder import TransformerEncoder
from utils.views import head_view

# A disk that is full, and a folder that nobody may write

VIEW = head_view([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
SAVERS = {
    "classifier": (
        lambda path: filled(2.0).save(path),
        r"could not be saved in .*saved \(.*: choose a folder",
    ),
    "view": (VIEW.save, r"could not be saved in .*saved \(.*: choose a file in a folder that you may write"),
    "notebook": (
        lambda path: notebooks.save(nbformat.v4.new_notebook(metadata={"long": "x" * 9000}), path),
        r"could not be saved and is as it was \(.*: use a folder that you may write",
    ),
}


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else path.iterdir()
    return {file.name: file.read_bytes() for file in files}


@contextmanager
def full_disk(size: int = 4000):
    """No file can grow beyond so many bytes: the system itself refuses, in the middle of a write."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def somebody_else():
    """As root, be a user without rights, since root may write everywhere; a normal user stays as he is."""
    root = os.geteuid() == 0
    if root:
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("this root can be nobody else, so nothing is unwritable")
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@unix_only
@pytest.mark.parametrize("name", SAVERS)
def test_a_full_disk_keeps_what_was_saved(tmp_path, name):
    save, message = SAVERS[name]
    filled(1.0).save(tmp_path / "saved") if name == "classifier" else (tmp_path / "saved").write_text("old")
    before = content(tmp_path / "saved")
    with pytest.raises(OSError, match=message), full_disk():
        save(tmp_path / "saved")
    assert content(tmp_path / "saved") == before
    assert names(tmp_path) == ["saved"]
    (tmp_path / "saved").unlink() if name != "classifier" else shutil.rmtree(tmp_path / "saved")
    with pytest.raises(OSError, match=r"File too large"), full_disk():
        save(tmp_path / "saved")
    assert names(tmp_path) == []


@unix_only
@pytest.mark.parametrize("name", SAVERS)
def test_an_unwritable_folder_is_named(name):
    save, message = SAVERS[name]
    with tempfile.TemporaryDirectory() as folder:  # tmp_path cannot be read by another user, and this one can
        path = Path(folder)
        path.chmod(0o555)
        with somebody_else(), pytest.raises(OSError, match=message) as error:
            save(path / "saved")
        path.chmod(0o755)
        assert "Permission denied" in str(error.value)
        assert folder in str(error.value)
        assert names(path) == []


@pytest.mark.parametrize("name", SAVERS)
def test_a_file_where_a_folder_should_be(tmp_path, name):
    save, message = SAVERS[name]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=message):
        save(tmp_path / "file" / "saved")
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path) == ["file"]


# Files that were altered


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.manual_seed(0)
    BertModel(BertConfig(**TINY | {"vocab_size": 30})).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def state_or_error(folder: Path) -> dict[str, torch.Tensor] | str:
    try:
        return TransformerEncoder.from_checkpoint(str(folder)).state_dict()
    except (ValueError, OSError) as error:
        return str(error)


def test_a_bit_flipped_in_the_header_of_the_weights_is_noticed(folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    wanted = TransformerEncoder.from_checkpoint(str(folder)).state_dict()
    header = 8 + int.from_bytes(whole[:8], "little")
    for position in [*range(8), *range(8, header, 61)]:
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        weights.write_bytes(flipped)
        loaded = state_or_error(folder)
        if isinstance(loaded, str):
            assert "model.safetensors" in loaded or "weights do not fit" in loaded
        else:  # it hit nothing that matters, such as the pooler's name or a space
            assert all(torch.equal(loaded[name], weight) for name, weight in wanted.items()), position


@pytest.mark.parametrize("damage", [b"", b'{"model_type": "be', b"\xff\xfe{", b'["bert"]'])
def test_a_damaged_configuration_is_named(folder, damage):
    (folder / "config.json").write_bytes(damage)
    with pytest.raises(ValueError, match=r"config\.json .*: fetch or save it again"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_weights_and_configuration_of_different_models(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 24, "num_attention_heads": 2}))
    with pytest.raises(ValueError, match=r"weights do not fit the configuration; mis-shaped: .*\(30, 12\)"):
        TransformerEncoder.from_checkpoint(str(folder))


def test_another_whole_model_in_the_embedded_ones_place(folder, monkeypatch):
    package = folder.parent / "swapped"
    shutil.copytree(folder, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(checkpoints, "DEFAULT_PACKAGE", "swapped")
    checkpoints._embedded_folder.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"model\.safetensors was altered"):
            checkpoints.load_config(checkpoints.DEFAULT_CHECKPOINT)
    finally:
        checkpoints._embedded_folder.cache_clear()


# Memory

TOO_MUCH = """\
import resource, torch
from pathlib import Path
from transformers import BertConfig
from utils.encoder import TransformerEncoder
encoder = TransformerEncoder(BertConfig(**{config})).eval()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))
ids = torch.ones(1000, 512, dtype=torch.long)
with torch.no_grad():
    try:
        encoder(ids, output_attentions=True)
    except RuntimeError as error:
        print(error)
    print(len(encoder(ids[:1], output_attentions=True).attentions), "layers")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_too_large_a_batch_under_a_memory_limit_is_an_error_and_the_kernel_goes_on():
    program = TOO_MUCH.format(config=TINY | {"max_position_embeddings": 512, "vocab_size": 30})
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", program]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    scores = 1000 * 3 * 512 * 512 * 4
    assert f"you tried to allocate {scores} bytes" in run.stdout
    assert run.stdout.endswith("2 layers\n")


def test_a_view_that_would_not_fit_into_memory_is_refused(monkeypatch):
    attention = [torch.full((1, 12, 100, 100), 0.01)] * 6
    monkeypatch.setattr(memory, "free_memory", lambda: 20_000_000)
    with pytest.raises(MemoryError, match=r"6 layers × 12 heads × 100 × 100 .*23 MB.*20 MB.*include_layers"):
        head_view(attention, ["a"] * 100)
    assert head_view(attention, ["a"] * 100, include_layers=[1]).page


@pytest.mark.parametrize(("limit", "free"), [("max\n", 9e9), ("3000000000\n", 2e9), (None, 9e9)])
def test_the_limit_of_a_container_counts(tmp_path, monkeypatch, limit, free):
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 9e9}))
    monkeypatch.setattr(memory, "own_memory", lambda: 1e9)
    monkeypatch.setattr(memory, "LIMITS", [tmp_path / "memory.max"])
    if limit:
        (tmp_path / "memory.max").write_text(limit)
    assert memory.free_memory() == free
