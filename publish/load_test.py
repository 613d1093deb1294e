"""`make room`: let students run a notebook on a JupyterHub of this machine at the same time, and print how it went.

Each student has a server, a kernel and a home folder of their own, as in a computer room. JupyterHub and its proxy
listen on this machine only, and are stopped at the end.
"""

import argparse
import json
import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil
import websocket
from tqdm import tqdm

from publish.server import free_ports, run_server

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = Path(__file__).with_name("load_test_hub.py")
PATIENCE = 300  # seconds in which a server must be ready, and in which a kernel must say something
SPARE = 1e9  # bytes that stay free for the system


@dataclass
class Seat:
    """One student: seconds since the start, errors of the notebook, and memory (bytes) of server and kernel."""

    name: str
    server: float | None = None
    first_view: float | None = None
    all_cells: float | None = None
    memory: float | None = None
    errors: list[str] = field(default_factory=list)


class Hub:
    """A running JupyterHub, called with a token."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def address(self, path: str) -> str:
        """Return the address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def call(self, method: str, path: str, data: dict | None = None) -> dict:
        """Call JupyterHub or a student's server; OSError if it refuses."""
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        body = json.dumps(data or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.address(path), body, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or "{}")

    def start_server(self, name: str) -> None:
        """Start a student's server and wait until it answers; TimeoutError if it does not."""
        self.call("POST", f"/hub/api/users/{name}")
        self.call("POST", f"/hub/api/users/{name}/server")
        deadline = time.monotonic() + PATIENCE
        while not self.call("GET", f"/hub/api/users/{name}")["servers"].get("", {}).get("ready"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server of {name} did not start within {PATIENCE} seconds")
            time.sleep(0.5)

    def start_kernel(self, name: str) -> websocket.WebSocket:
        """Start a kernel in a student's home folder, and return the connection to it."""
        kernel = self.call("POST", f"/user/{name}/api/kernels", {"name": "python3"})["id"]
        address = f"ws://127.0.0.1:{self.port}/user/{name}/api/kernels/{kernel}/channels?session_id={uuid.uuid4().hex}"
        return websocket.create_connection(address, PATIENCE, header=[f"Authorization: token {self.token}"])


def execute(kernel: websocket.WebSocket, source: str) -> Iterator[tuple[str, dict]]:
    """Run a cell, and yield the type and the content of each message about it."""
    number = uuid.uuid4().hex
    header = {"msg_id": number, "username": "", "session": number, "date": "", "version": "5.3"}
    header["msg_type"] = "execute_request"
    content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    kernel.send(json.dumps(message | {"channel": "shell", "buffers": []}))
    while True:
        received = kernel.recv()
        if not isinstance(received, str):
            continue  # numbers of a progress bar, which are sent as bytes
        answer = json.loads(received)
        if answer["parent_header"].get("msg_id") != number:
            continue
        yield answer["msg_type"], answer["content"]
        if answer["msg_type"] == "status" and answer["content"]["execution_state"] == "idle":
            return


def attend(hub: Hub, seat: Seat, cells: dict[int, str], progress: tqdm) -> None:
    """Start a student's server and run all cells, whatever happens in them, as "Run All" does not."""
    start = time.monotonic()
    try:
        hub.start_server(seat.name)
        seat.server = time.monotonic() - start
        with closing(hub.start_kernel(seat.name)) as kernel:
            for number, source in cells.items():
                for kind, content in execute(kernel, source):
                    if kind == "error":
                        seat.errors.append(f"cell {number}: {content['ename']}: {content['evalue']}"[:200])
                    if seat.first_view is None and "<iframe" in content.get("data", {}).get("text/html", ""):
                        seat.first_view = time.monotonic() - start
                progress.update()
        seat.all_cells = time.monotonic() - start
    except (OSError, websocket.WebSocketException) as error:
        seat.errors.append(f"{type(error).__name__}: {error}")


def memory_of(seats: list[Seat]) -> None:
    """Add up what the processes of each student take. Memory that several share counts once, divided among them."""
    by_name = {seat.name: seat for seat in seats}
    for process in psutil.process_iter():
        try:
            seat = by_name.get(process.environ().get("JUPYTERHUB_USER"))
            if seat:
                taken = process.memory_full_info()
                seat.memory = (seat.memory or 0) + getattr(taken, "pss", taken.uss)  # pss: on Linux only
        except psutil.Error:
            pass  # it has ended, or belongs to somebody else


@contextmanager
def serve_hub(folder: Path, seats: list[Seat], notebook: Path) -> Iterator[Hub]:
    """Run JupyterHub in a folder that gets the students' homes, each with a copy of the notebook."""
    for seat in seats:
        home = folder / "homes" / seat.name
        home.mkdir(parents=True)
        shutil.copy(notebook, home)
    ports = [str(port) for port in free_ports(3)]
    token = secrets.token_hex(16)
    environment = os.environ | {"ROOM_PORTS": " ".join(ports), "ROOM_TOKEN": token, "ROOM_FOLDER": str(folder)}
    command = [sys.executable, "-m", "jupyterhub", "--config", str(CONFIGURATION)]
    hub = Hub(int(ports[0]), token)
    with run_server(command, hub.address("/hub/api/"), folder, environment, seconds=60):
        yield hub


def seats_that_fit(available: float, seat: float) -> int:
    """Return how many seats of this size (bytes) fit the available memory."""
    return max(0, int((available - SPARE) // seat))


def table(seats: list[Seat]) -> str:
    """Return a row for each quantity: the least, the median and the most over all seats that have it."""
    rows = {
        "server is ready (s)": [seat.server for seat in seats],
        "first view (s)": [seat.first_view for seat in seats],
        "all cells (s)": [seat.all_cells for seat in seats],
        "memory (MB)": [seat.memory and seat.memory / 1e6 for seat in seats],
    }
    lines = [f"{'':<22}{'least':>8}{'median':>8}{'most':>8}{'seats':>8}"]
    for name, values in rows.items():
        known = [value for value in values if value is not None]
        three = (min(known), statistics.median(known), max(known)) if known else ()
        shown = [f"{value:.0f}" for value in three] or ["-"] * 3
        lines.append(f"{name:<22}" + "".join(f"{value:>8}" for value in (*shown, len(known))))
    return "\n".join(lines)


def room(count: int, notebook: Path) -> bool:
    """Let students run a notebook at the same time, print the table, and return True if nothing failed."""
    document = nbformat.read(notebook, as_version=4)
    cells = {i: cell.source for i, cell in enumerate(document.cells) if cell.cell_type == "code" and cell.source}
    seats = [Seat(f"student{number}") for number in range(1, count + 1)]
    available = psutil.virtual_memory().available
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        serve_hub(Path(folder), seats, notebook) as hub,
        tqdm(total=count * len(cells), desc=f"{count} students", unit="cell") as progress,
    ):
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda seat: attend(hub, seat, cells, progress), seats))
        memory_of(seats)
    cores = len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else os.cpu_count()
    print(f"\n{count} students ran {notebook.stem} at the same time, on {cores} processor cores:\n\n{table(seats)}\n")
    for seat in seats:
        for error in seat.errors:
            print(f"{seat.name}: {error}")
    largest = max((seat.memory for seat in seats if seat.memory), default=None)
    if largest:
        fitting = seats_that_fit(available, largest)
        print(f"{available / 1e9:.1f} GB of memory were free: your machine carries about {fitting} seats of it.")
    failed = sum(bool(seat.errors) for seat in seats)
    print("no errors" if not failed else f"{failed} of {count} students met an error")
    return not failed


def main(arguments: list[str] | None = None) -> None:
    """Parse the arguments, check them, and open the room."""
    parser = argparse.ArgumentParser(prog="make room", description=__doc__.splitlines()[0])
    parser.add_argument("count", help="how many students, from 1 to 200")
    parser.add_argument("notebook", nargs="?", default="00", help="the notebook's number, or a path")
    options = parser.parse_args(arguments)
    if not (options.count.isdecimal() and 1 <= int(options.count) <= 200):
        parser.error(f"N must be a whole number from 1 to 200, not {options.count!r}: for example N=8")
    named = Path(options.notebook)
    found = [named] if named.is_file() else sorted((ROOT / "notebooks").glob(f"{options.notebook}*.ipynb"))
    if len(found) != 1:
        parser.error(f"{len(found)} notebooks begin with {options.notebook!r}: give one, for example NB=00")
    sys.exit(not room(int(options.count), found[0].resolve()))


if __name__ == "__main__":
    main()
