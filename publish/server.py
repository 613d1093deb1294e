"""Serve a folder on localhost for as long as a context is open."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
