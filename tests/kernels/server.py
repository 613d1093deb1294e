"""Server that imports everything the notebooks need, and forks a kernel for each client (Linux).

    python server.py LISTENER    the file descriptor of the socket on which client.py requests kernels

Importing torch, transformers and the series takes five seconds of CPU time. A fork skips that, and is still a separate
process, so notebooks cannot affect each other. Nothing is computed here, because a fork of a process whose libraries
have started threads can deadlock.

Standard input is the lifeline: a pipe whose other end the test run holds. However the run ends, the system closes it,
and then this process and its kernels end.
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
STARTS_THREADS = "onnxruntime"  # importing it starts threads, so the notebooks must
MAX_BYTES = 2**20  # of a request, which contains the environment


def import_everything() -> None:
    """Import what kernels, the series and its notebooks import; failed imports are left for the notebook to report."""
    # read once, when matplotlib is imported: without it, kernels would not show figures
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # read once, when torch first allocates memory, as some imports do; every notebook's `start` sets it
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
    """Yield the import statements of all notebooks, without cells that have an IPython magic."""
    for path in NOTEBOOKS.rglob("[0-9e]*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            with contextlib.suppress(SyntaxError):
                for node in ast.walk(ast.parse("".join(cell["source"]))):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        statement = ast.unparse(node)
                        if STARTS_THREADS not in statement:
                            yield statement


def wait_for_client(listener: socket.socket, lifeline: int) -> socket.socket:
    """Fork for every client; return the client's connection in the fork. The server itself exits here."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that finished forks do not become zombies
    while lifeline not in select.select([listener, lifeline], [], [])[0]:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return client
        client.close()
    sys.exit()


def become_kernel(client: socket.socket, lifeline: int) -> None:
    """Run a kernel with the client's environment, folder and open files until it is shut down."""
    os.setpgid(0, 0)  # so that signals reach the kernel and its children
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(client, MAX_BYTES, 3)
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
    """Kill this kernel and its children when its client or the test run ends; neither of them ever writes."""
    select.select([client, lifeline], [], [])
    os.killpg(0, signal.SIGKILL)


def main(listener: str) -> None:
    """Import everything, then serve; a fork becomes a kernel."""
    del sys.path[0]  # this folder, from which kernels must not import
    import_everything()
    lifeline = os.dup(0)
    become_kernel(wait_for_client(socket.socket(fileno=int(listener)), lifeline), lifeline)


if __name__ == "__main__":
    main(*sys.argv[1:])
