"""Serve a folder on localhost, or run another server there, for as long as a context is open."""

import functools
import http.server
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files without logging each request."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder while the context is open, and yield its address."""
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def run_server(
    command: Sequence, address: str, folder: Path, environment: Mapping[str, str], seconds: float
) -> Iterator[None]:
    """Run a server in a folder, which gets its log, until the context ends; then stop it and what it has started.

    TimeoutError with the end of the log if the server exits before it answers at `address`, or takes longer.
    """
    log = folder / "server.log"
    with log.open("w") as file:
        server = subprocess.Popen(command, env=environment, stdout=file, stderr=file, cwd=folder)
    try:
        deadline = time.monotonic() + seconds
        while not answers(address):
            if server.poll() is not None or time.monotonic() > deadline:
                lines = "\n".join(log.read_text("utf-8").splitlines()[-15:])
                raise TimeoutError(f"{command[2]} does not start. The end of its log:\n{lines}")
            time.sleep(0.2)
        yield
    finally:
        children = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        for child in children:
            if child.is_running():
                child.kill()


def answers(address: str) -> bool:
    """Return whether a server answers at an address without an error."""
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False
