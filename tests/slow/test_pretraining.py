"""The pretraining program: stopped, resumed, in two processes, and interrupted by Ctrl-C."""

import signal
import subprocess
import sys
import time

import torch

import pretrain
from pretrain import STATE_FILE
from tests.helpers import LAUNCH, ONE_THREAD, ROOT, enable_ctrl_c, run_python, unix_only
from utils.support.comparisons import largest_difference

PROGRAM = ("scripts/pretrain.py", "--cpu", "--limit", "60")


def test_two_processes_reach_the_weights_of_one(tmp_path):
    options = ("--steps", "4", "--batch-size", "6")
    for name, launch in (("one", ()), ("two", LAUNCH)):
        done = run_python(*launch, *PROGRAM, tmp_path / name, *options)
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (pretrain.read_state(tmp_path / name / STATE_FILE) for name in ("one", "two"))
    assert largest_difference(torch.tensor(one[0]["losses"]), torch.tensor(two[0]["losses"])) < 1e-3
    for name, tensor in one[1].items():
        assert largest_difference(tensor, two[1][name]) < 1e-3, name


@unix_only
def test_ctrl_c_explains_how_to_resume(tmp_path):
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, tmp_path / "run", "--steps", "1000", "--batch-size", "2"],
        cwd=ROOT,
        env=ONE_THREAD,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=enable_ctrl_c,
    )
    deadline = time.monotonic() + 240
    while not (tmp_path / "run" / STATE_FILE).exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert "The same command resumes from the last round saved" in process.communicate(timeout=60)[0]
    facts = pretrain.read_state(tmp_path / "run" / STATE_FILE)[0]
    assert len(facts["losses"]) >= pretrain.ROUND
