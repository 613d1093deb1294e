"""The pretraining program: stopped, resumed, in two processes, and interrupted by Ctrl-C."""

import json
import signal
import subprocess
import sys
import time

import pytest
import torch

import pretrain
from pretrain import STATE_FILE
from tests.helpers import (
    LAUNCH,
    ONE_THREAD,
    ROOT,
    at_work_in,
    enable_ctrl_c,
    names,
    pretraining_command,
    run_pretraining,
    unix_only,
)
from utils.support.comparisons import largest_difference
from utils.support.datasets import DATA


def test_command_stops_and_resumes(tmp_path):
    options = ("--steps", "4", "--batch-size", "2")
    done = run_pretraining(tmp_path / "run", *options, "--until", "2")
    assert done.returncode == 0, done.stderr
    done = run_pretraining(tmp_path / "run", *options)
    assert "to step 4 of 4" in done.stderr
    facts = pretrain.read_state(tmp_path / "run" / STATE_FILE)[0]
    assert [point["step"] for point in facts["curve"]] == [2, 4]
    assert json.dumps(facts)


def test_two_processes_reach_the_weights_of_one(tmp_path):
    options = ("--steps", "4", "--batch-size", "6")
    for name, launch in (("one", ()), ("two", LAUNCH)):
        done = run_pretraining(tmp_path / name, *options, launch=launch)
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (pretrain.read_state(tmp_path / name / STATE_FILE) for name in ("one", "two"))
    assert largest_difference(torch.tensor(one[0]["losses"]), torch.tensor(two[0]["losses"])) < 1e-3
    for name, tensor in one[1].items():
        assert largest_difference(tensor, two[1][name]) < 1e-3, name


@pytest.mark.parametrize("launch", [(), LAUNCH], ids=["one process", "two processes"])
def test_locked_folder_excludes_other_programs(tmp_path, launch):
    folder = tmp_path / "run"
    tuning = ["scripts/fine_tune.py", "--cpu", "--limit", "41", "--checkpoint", str(DATA / "tiny_bert")]
    tuning = [sys.executable, *launch, *tuning, "--save", str(folder)]
    resuming = pretraining_command(folder, "--steps", "4", launch=launch)
    messages = {
        "contains .run.lock, which is not a file of a model": tuning,
        "run: wait for it to finish, stop it, or": resuming,
    }
    with at_work_in(folder):
        for message, command in messages.items():
            done = subprocess.run(
                command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=False, timeout=240
            )
            assert done.returncode != 0
            assert message in done.stderr
    assert names(folder) == [".run.lock"]


@unix_only
def test_ctrl_c_explains_how_to_resume(tmp_path):
    process = subprocess.Popen(
        pretraining_command(tmp_path / "run", "--steps", "1000", "--batch-size", "2"),
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
