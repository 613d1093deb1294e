"""Imports once what notebooks import; each kernel is then a fork of this process (Linux).

    python server.py LISTENER    the descriptor of the socket on which client.py asks for kernels

Importing torch, transformers and the series costs a kernel five seconds of a core. A fork has it done, and is a process
of its own all the same: what one notebook does reaches no other. Nothing is computed here, since a fork of a process
whose libraries have started threads may stand still.

Standard input is the lifeline: a pipe whose other end the test run holds. The system closes it however the run ended,
and then this process ends, and so do its kernels.
"""

import ast
import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
STARTS_THREADS = "onnxruntime"  # when it is imported, so it is left to the notebooks
MOST_BYTES = 2**20  # of a request, which holds an environment


def import_everything() -> None:
    """Import what kernels, the series and its notebooks import; what fails is left for the notebook to report."""
    # looked at once, when matplotlib is imported: without it the figures of kernels would not be shown
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # looked at once, when torch first asks for memory, as some imports do; every notebook's `start` sets it
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    importlib.import_module("ipykernel.kernelapp")
    for package in ("utils", "views", "exercises"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(Exception):
                    importlib.import_module(module.name)
    for statement in sorted(set(import_statements())):
        with contextlib.suppress(Exception):
            exec(statement, {})


def import_statements() -> Iterator[str]:
    """The import statements of all notebooks, less those of cells with an IPython magic."""
    for path in NOTEBOOKS.rglob("[0-9]*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            with contextlib.suppress(SyntaxError):
                for node in ast.walk(ast.parse("".join(cell["source"]))):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        statement = ast.unparse(node)
                        if STARTS_THREADS not in statement:
                            yield statement


def wait_for_client(listener: socket.socket, lifeline: int) -> socket.socket:
    """Fork for every client; returns in the forks alone, with the client's connection. The server itself ends here."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a fork that has ended is no zombie
    while lifeline not in select.select([listener, lifeline], [], [])[0]:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return client
        client.close()
    sys.exit()


def become_kernel(client: socket.socket, lifeline: int) -> None:
    """Run a kernel with the client's environment, folder and open files, until it is asked to stop."""
    os.setpgid(0, 0)  # a signal of the client is for the kernel and for what it has started
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(client, MOST_BYTES, 3)
    request = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"] | {"JPY_PARENT_PID": str(os.getppid())})
    sys.argv = ["ipykernel_launcher", "-f", request["connection_file"]]
    threading.Thread(target=end_with, args=(client, lifeline), daemon=True).start()
    client.send(str(os.getpid()).encode())

    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


def end_with(client: socket.socket, lifeline: int) -> None:
    """End this kernel, and what it has started, when its client or the test run has ended: neither ever writes."""
    select.select([client, lifeline], [], [])
    os.killpg(0, signal.SIGKILL)


def main(listener: str) -> None:
    """Import everything, then be the server, or in a fork a kernel."""
    del sys.path[0]  # this folder, from which no kernel imports
    import_everything()
    lifeline = os.dup(0)
    become_kernel(wait_for_client(socket.socket(fileno=int(listener)), lifeline), lifeline)


if __name__ == "__main__":
    main(*sys.argv[1:])
