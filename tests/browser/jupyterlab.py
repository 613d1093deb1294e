"""Serve JupyterLab from a folder and run a notebook in it."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.helpers import ROOT


def environment(folder: Path) -> dict[str, str]:
    """Return variables for a server or kernel that imports this project and keeps its files in `folder`."""
    variables = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {name: str(folder / name.lower()) for name in variables}
    return os.environ | own | {"PYTHONPATH": str(ROOT)}


@contextmanager
def serve_jupyterlab(folder: Path) -> Iterator[Callable[[str], str]]:
    """Serve `folder` in JupyterLab, and yield a function from a notebook's name to its address.

    The server and its kernels are stopped at the end. TimeoutError with the end of its log if it does not answer.
    """
    settings = folder / "jupyter_config_dir" / "labconfig" / "page_config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}))
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    token, log = secrets.token_hex(16), folder / "server.log"
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": token,
        "LabApp.extension_manager": "readonly",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    with log.open("w") as file:
        server = subprocess.Popen(command, env=environment(folder), stdout=file, stderr=file, cwd=folder)
    try:
        deadline = time.monotonic() + 120
        while not answers(f"http://127.0.0.1:{port}/api/status?token={token}"):
            if server.poll() is not None or time.monotonic() > deadline:
                lines = "\n".join(log.read_text("utf-8").splitlines()[-15:])
                raise TimeoutError(f"JupyterLab does not start. The end of its log:\n{lines}")
            time.sleep(0.2)
        yield (lambda name: f"http://127.0.0.1:{port}/lab/workspaces/{name}/tree/{name}.ipynb?token={token}")
    finally:
        kernels = psutil.Process(server.pid).children(recursive=True) if server.poll() is None else []
        server.terminate()
        server.wait(30)
        for kernel in kernels:
            if kernel.is_running():
                kernel.kill()


def answers(address: str) -> bool:
    """Return whether a server answers at an address without an error."""
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def run_all(page, address: str, last: int):
    """Open a notebook and run all cells; return its code cells once the one at index `last` shows a view.

    JupyterLab scrolls there, and not at once: `show` a cell before using it.
    """
    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.get_by_text("| Idle").wait_for()  # the kernel's state, in the status bar
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    cells = page.locator(".jp-CodeCell")
    cells.nth(last).locator("iframe:visible").first.wait_for()
    return cells


# Wait until a picture stays where it is for a second, or stays in sight
REST = """(frame, inSight) => new Promise((rest) => {
  const place = () => frame.getBoundingClientRect().top;
  let last, seen = 0;
  const timer = setInterval(() => {
    seen = place() === last ? seen + 1 : 0;
    if (seen === 10) { clearInterval(timer); rest(); }
    if (inSight) frame.scrollIntoView();
    last = place();
  }, 100);
})"""


def show(cell):
    """Scroll to a cell's picture until it stays in sight, and return its frame: Chromium leaves hidden ones empty."""
    frame = cell.locator("iframe:visible").first
    frame.evaluate(REST, True)
    return frame.content_frame
