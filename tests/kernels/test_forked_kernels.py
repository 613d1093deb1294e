"""A forked kernel behaves like an ordinary one, and ends with its client and its test run."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

from tests.helpers import ROOT
from tests.kernels.plugin import FOLDER, KERNEL, WARM_UP, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="kernels are forked on Linux, where no GPU is in use")

# the real server without its slow imports
BARE = f"""
import sys
sys.path[0] = {str(FOLDER)!r}
import server
server.import_everything = lambda: None
server.main(sys.argv[1])
"""


@pytest.fixture
def bare_server(tmp_path) -> Path:
    program = tmp_path / "bare.py"
    program.write_text(BARE)
    return program


@contextmanager
def started(name: str = KERNEL, **options):
    """Start a kernel of this name, yield its manager and client, and stop it at the end."""
    manager, client = start_new_kernel(kernel_name=name, **options)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def evaluate(client, expression: str):
    """Return the value of an expression in a kernel."""
    options = {"silent": True, "user_expressions": {"found": f"__import__('json').dumps({expression})"}}
    found = client.execute("", reply=True, timeout=60, **options)["content"]["user_expressions"]["found"]
    assert found["status"] == "ok", found
    return json.loads(found["data"]["text/plain"][1:-1])


def wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; not every container's first process reaps what it inherits."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


PIDS = "(lambda os: [os.getppid(), os.getpid()])(__import__('os'))"


# a run that starts a server and a kernel, prints their process ids, and waits
RUN = """
import os, sys, time
from pathlib import Path
from jupyter_client.manager import start_new_kernel
from tests.kernels.plugin import KERNEL, running_server
with running_server(Path(sys.argv[1])) as folder:
    os.environ["JUPYTER_PATH"] = folder
    manager, client = start_new_kernel(kernel_name=KERNEL)
    reply = client.execute("", reply=True, user_expressions={"pids": sys.argv[2]})
    print(reply["content"]["user_expressions"]["pids"]["data"]["text/plain"], flush=True)
    time.sleep(60)
"""


def test_killed_run_leaves_no_server_or_kernel(bare_server):
    command = [sys.executable, "-c", RUN, str(bare_server), PIDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as run:
        pids = json.loads(run.stdout.readline())
        run.kill()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid))


def test_server_has_imported_all_and_started_no_thread():
    """A second thread would mean that a library has started work, so that forks could deadlock."""
    if KERNEL not in KernelSpecManager().find_kernel_specs():
        pytest.skip("this run has no server: it compares no notebooks or uses ordinary kernels")
    with started(startup_timeout=WARM_UP) as (_, client):
        loaded = evaluate(client, "sorted(__import__('sys').modules)")
        assert {"torch", "transformers.models.bert.modeling_bert", "utils.support.notebook"} <= set(loaded)
        threads = evaluate(client, "__import__('torch').get_num_threads()")
        assert threads == int(os.environ.get("OMP_NUM_THREADS", threads))
        if threads == 1:
            server, _ = evaluate(client, PIDS)
            assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1
