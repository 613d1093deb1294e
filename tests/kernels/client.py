"""Proxy of a kernel forked by the server: Jupyter starts, signals and kills this process.

    python -S client.py SOCKET CONNECTION_FILE

Without a server, it becomes an ordinary kernel.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

STANDARD_FILES = (0, 1, 2)


def ask(connection: socket.socket, path: str, connection_file: str) -> int:
    """Return the process id of a new kernel; OSError if no server answers."""
    request = {"connection_file": connection_file, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    connection.connect(path)
    socket.send_fds(connection, [json.dumps(request).encode()], STANDARD_FILES)
    answer = connection.recv(100)
    if not answer:
        raise OSError("the server has ended")
    return int(answer)


def main(path: str, connection_file: str) -> None:
    """Forward signals to the kernel until it ends; the kernel ends with this process."""
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            kernel = ask(connection, path, connection_file)
        except OSError:
            os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", "-f", connection_file])

        def pass_on(number: int, _: FrameType | None) -> None:
            os.killpg(kernel, number)

        signal.signal(signal.SIGINT, pass_on)
        signal.signal(signal.SIGTERM, pass_on)
        while os.getppid() == parent and not select.select([connection], [], [], 1)[0]:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
