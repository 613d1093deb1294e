"""Lets nbval run notebooks on kernels that are forks of one warm process: `pytest --nbval -p tests.kernels.plugin`.

One server serves all processes of the run. Only Linux forks such a process safely, and not where a GPU could be in use:
elsewhere nbval starts its ordinary kernels, as it does without this plugin.
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
WARM_UP = 600  # seconds that the first kernels may wait for the server's imports, on a machine that is busy


def can_fork() -> bool:
    """Whether kernels may be forks here."""
    return sys.platform == "linux" and not Path("/dev/nvidiactl").exists()


@contextmanager
def running_server(program: Path = FOLDER / "server.py") -> Iterator[str]:
    """Start a server; gives a folder for JUPYTER_PATH, in which Jupyter finds the kernel."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "server"))
        spec = Path(folder, "kernels", KERNEL, "kernel.json")
        spec.parent.mkdir(parents=True)
        client = [sys.executable, "-S", str(FOLDER / "client.py"), path, "{connection_file}"]
        spec.write_text(json.dumps({"argv": client, "display_name": KERNEL, "language": "python"}), "utf-8")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen()  # from now on a client waits instead of being refused
            command = [sys.executable, str(program), str(listener.fileno())]
            options = {"stdin": subprocess.PIPE, "start_new_session": True}
            server = subprocess.Popen(command, pass_fds=[listener.fileno()], **options)
        with server:
            try:
                yield folder
            finally:
                server.terminate()


def pytest_configure(config: pytest.Config) -> None:
    """Start the server in the process that shares the tests out; tell nbval, in all processes, of its kernel."""
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
    """Hand the kernel's name to a process of pytest-xdist."""
    node.workerinput["kernel"] = node.config.option.nbval_kernel_name
