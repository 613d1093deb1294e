"""Plugin that runs nbval's kernels as forks of one warm process: `pytest --nbval -p tests.kernels.plugin`.

One server serves all processes of the run. Forking is safe only on Linux, and not if a GPU could be in use: otherwise
nbval starts ordinary kernels, as without this plugin.

Where a notebook measures time, one round is enough here: its outputs are not compared, and the weekly tests, which run
without this plugin, take all rounds.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

KERNEL = "forked"
FOLDER = Path(__file__).parent
WARM_UP = 600  # seconds that the first kernels may wait for the server's imports on a busy machine


def can_fork() -> bool:
    """Return whether kernels can be forked on this machine."""
    return sys.platform == "linux" and not Path("/dev/nvidiactl").exists()


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server, and yield a folder for JUPYTER_PATH in which Jupyter finds its kernel."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "server"))
        spec = Path(folder, "kernels", KERNEL, "kernel.json")
        spec.parent.mkdir(parents=True)
        client = [sys.executable, "-S", str(FOLDER / "client.py"), path, "{connection_file}"]
        spec.write_text(json.dumps({"argv": client, "display_name": KERNEL, "language": "python"}), "utf-8")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen()  # from now on, clients wait instead of being refused
            command = [sys.executable, str(FOLDER / "server.py"), str(listener.fileno())]
            options = {"stdin": subprocess.PIPE, "start_new_session": True}
            server = subprocess.Popen(command, pass_fds=[listener.fileno()], **options)
        with server:
            try:
                yield folder
            finally:
                server.terminate()


def pytest_configure(config: pytest.Config) -> None:
    """Start the server in pytest-xdist's controller, and select its kernel in all processes."""
    os.environ["TIMING_ROUNDS"] = "1"  # other processes of the run inherit it
    options = config.option
    if hasattr(config, "workerinput"):
        kernel = config.workerinput["kernel"]
    elif can_fork() and (options.nbval or options.nbval_lax):
        kernel = KERNEL
        server = running_server()
        folders = [server.__enter__(), *filter(None, [os.environ.get("JUPYTER_PATH")])]
        config.add_cleanup(lambda: server.__exit__(None, None, None))
        os.environ["JUPYTER_PATH"] = os.pathsep.join(folders)  # other processes of the run inherit it
    else:
        kernel = options.nbval_kernel_name
    options.nbval_kernel_name = kernel
    options.nbval_kernel_startup_timeout = WARM_UP


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Pass the kernel's name to a worker of pytest-xdist."""
    node.workerinput["kernel"] = node.config.option.nbval_kernel_name
