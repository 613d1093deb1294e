"""A Hub that is silent or talks nonsense, and a set-up that is interrupted: an end in bounded time, and a new start."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.test_faults import ROOT, unix_only
from utils import checkpoints

has_make = pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="needs make and signals")

# The Hub


class Hub(BaseHTTPRequestHandler):
    """A server that answers a status, nonsense or, while `silence` is not set, nothing at all."""

    answer, silence = b"", threading.Event()

    def do_GET(self):
        if self.answer == b"nothing":
            self.silence.wait(60)
        elif self.answer.isdigit():
            self.send_error(int(self.answer))
        else:
            self.wfile.write(self.answer)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Let huggingface_hub talk to a server here, from an empty cache; the class that answers."""
    handler = type("OneHub", (Hub,), {"silence": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    for name, value in {
        "ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": False,
    }.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield handler
    handler.silence.set()
    server.shutdown()
    thread.join()
    server.server_close()


def head(content: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"500", "500"),
        (b"503", "503"),
        (b"401", "401"),
        (b"429", "429"),
        (b"404", "404"),
        (head(b"<html>"), "Expecting value"),
        (head(b"[]"), "list"),
        (b"\x00\xff junk\r\n\r\n", "junk|illegal|protocol"),
    ],
)
def test_a_hub_that_answers_errors_or_nonsense(hub, answer, reason):
    hub.answer = answer
    started = time.perf_counter()
    with pytest.raises(
        OSError, match=rf'"someone/bert" is no local folder .*({reason}).*use the embedded checkpoint='
    ):
        checkpoints.load_config("someone/bert")
    assert time.perf_counter() - started < 20


def test_a_hub_that_is_silent_is_not_waited_for_without_end(hub, monkeypatch):
    hub.answer = b"nothing"
    monkeypatch.setattr(checkpoints, "PATIENCE", 1)
    started = time.perf_counter()
    with pytest.raises(OSError, match=r"could not be fetched \(.*timed out.*use the embedded checkpoint="):
        checkpoints.load_config("someone/bert")
    assert time.perf_counter() - started < 20


def test_a_name_in_the_cache_needs_no_hub(hub, tmp_path, monkeypatch):
    hub.answer = b"nothing"
    monkeypatch.setattr(checkpoints, "PATIENCE", 0.2)
    repository = tmp_path / "cache" / "models--someone--bert"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    settings = json.dumps({"model_type": "bert", "hidden_size": 24})
    (repository / "snapshots" / "abc" / "config.json").write_text(settings)
    assert checkpoints.load_config("someone/bert").hidden_size == 24


# The set-up: the real Makefile, with a Python, a pip, a jupyter and the rest that only note that they were called

STUB = """\
#!/bin/sh
# usage as the real one; notes what it was asked for, and in the phase that the file "hang" names it does not end
name=$(basename "$0")
case "$name $*" in
    *"sys.version_info"*) phase=version ;;
    *"-m venv"*) phase=venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    *"-m pip install"*) phase=pip; cp "$0" .venv/bin/jupyter ;;
    *"-m pytest"*) phase=pytest ;;
    *labextension*) phase=extension ;;
    *"jupyter lab "*) phase=lab ;;
    *"check ."*) phase=lint ;;
    *) phase=other ;;
esac
echo $phase >> log
if [ "$(cat hang)" = $phase ]; then touch hanging; exec sleep 60; fi
for tool in python ruff check-jsonschema; do
    if [ $phase = pip ]; then cp "$0" .venv/bin/$tool.new; mv .venv/bin/$tool.new .venv/bin/$tool; fi
done
"""
SET_UP = ["version", "venv", "pip", "extension"]


@pytest.fixture
def project(tmp_path) -> Path:
    for name in ("Makefile", "requirements.txt", "requirements-site.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "python").write_text(STUB)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "hang").touch()
    return tmp_path


def make(project: Path, target: str) -> subprocess.Popen:
    """`make`, in a process group of its own, with Ctrl-C as in a terminal even where this runs in the background."""
    (project / "log").write_text("")
    return subprocess.Popen(
        ["make", f"PYTHON={project / 'python'}", target],
        cwd=project,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 20
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"{pattern} did not come"
        time.sleep(0.01)


def interrupt(project: Path, target: str, phase: str, sign: int = signal.SIGINT) -> None:
    """Run a target until it is in a phase, and then press Ctrl-C, which reaches all that it started, or kill it all."""
    (project / "hang").write_text(phase)
    process = make(project, target)
    try:
        wait_for(project, "hanging")
        os.killpg(process.pid, sign)
        assert process.wait(timeout=20) != 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    (project / "hanging").unlink()
    (project / "hang").write_text("")


def phases(project: Path, target: str) -> list[str]:
    """What a whole run of a target did, in order."""
    assert make(project, target).wait(timeout=20) == 0
    return (project / "log").read_text().split()


@has_make
@pytest.mark.parametrize("sign", ["SIGINT", "SIGKILL"])
@pytest.mark.parametrize("phase", SET_UP)
def test_make_lab_ended_in_the_set_up_starts_over(project, phase, sign):
    interrupt(project, "lab", phase, getattr(signal, sign))
    assert not (project / ".venv" / ".installed").exists()
    assert phases(project, "lab") == [*SET_UP, "lab"]
    assert phases(project, "lab") == ["lab"]


@has_make
@pytest.mark.parametrize("phase", [*SET_UP, "lint", "pytest"])
def test_make_test_interrupted_goes_on(project, phase):
    interrupt(project, "test", phase)
    done = phases(project, "test")
    assert done[-1] == "pytest"
    assert "lint" in done
    assert done[: len(SET_UP)] == SET_UP if phase in SET_UP else "venv" not in done
    again = phases(project, "test")
    assert "pip" not in again
    assert again[-1] == "pytest"


@has_make
def test_make_test_interrupted_in_the_second_installation(project):
    assert phases(project, "lab") == [*SET_UP, "lab"]
    interrupt(project, "test", "pip")
    assert not (project / ".venv" / ".installed-site").exists()
    assert "pip" in phases(project, "test")
    assert "pip" not in phases(project, "test")


@has_make
def test_a_lab_ended_by_ctrl_c_stays_set_up_until_the_requirements_change(project):
    interrupt(project, "lab", "lab")
    assert phases(project, "lab") == ["lab"]
    later = time.time() + 10
    os.utime(project / "requirements.txt", (later, later))
    interrupt(project, "lab", "pip")
    assert "pip" in phases(project, "lab")


@unix_only
@pytest.mark.parametrize("sign", ["pyvenv.cfg", "lib/python*/site-packages/pip/__init__.py"])
def test_a_half_created_environment_is_completed(tmp_path, sign):
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
