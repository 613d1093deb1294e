"""A folder on a server of this machine."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints no line for each."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield the address at which its files are found meanwhile."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
