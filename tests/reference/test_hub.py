"""A Hub that is silent or sends malformed responses causes a clear error within a bounded time."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from utils.support import checkpoint


class Hub(BaseHTTPRequestHandler):
    """Answer with a status code or raw bytes, or wait without an answer until `silence` is set."""

    answer, silence, asked = b"", threading.Event(), []

    def do_GET(self):
        self.asked.append(self.path)
        if self.answer == b"nothing":
            self.silence.wait(60)
        elif self.answer.isdigit():
            self.send_error(int(self.answer))
        else:
            self.wfile.write(self.answer)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture(autouse=True)
def forgotten():
    """Clear the download cache, which otherwise lasts as long as the process."""
    checkpoint.download.cache_clear()
    yield
    checkpoint.download.cache_clear()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Point huggingface_hub to a local server with an empty cache, and return the handler class."""
    handler = type("OneHub", (Hub,), {"silence": threading.Event(), "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    for name, value in {
        "ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": False,
    }.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield handler
    handler.silence.set()
    server.shutdown()
    thread.join()
    server.server_close()


def head(content: bytes) -> bytes:
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *((code.encode(), code) for code in ("500", "503", "401", "429", "404")),
        (head(b"<html>"), "Expecting value"),
        (head(b"[]"), "list"),
        (b"\x00\xff junk\r\n\r\n", "junk|illegal|protocol"),
    ],
)
def test_hub_errors_and_malformed_responses_are_reported(hub, answer, reason):
    hub.answer = answer
    started = time.perf_counter()
    with pytest.raises(OSError, match=rf'"someone/bert" is not a local folder .*({reason}).*use the embedded'):
        checkpoint.load_config("someone/bert")
    assert time.perf_counter() - started < 20


def test_cached_name_loads_without_hub(hub, tmp_path, monkeypatch):
    hub.answer = b"nothing"
    monkeypatch.setattr(checkpoint, "HUB_TIMEOUT", 0.2)
    repository = tmp_path / "cache" / "models--someone--bert"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    settings = json.dumps({"model_type": "bert", "hidden_size": 24})
    (repository / "snapshots" / "abc" / "config.json").write_text(settings)
    assert checkpoint.load_config("someone/bert").hidden_size == 24
    asked = len(hub.asked)
    for _ in range(3):
        checkpoint.load_config("someone/bert")
    assert len(hub.asked) == asked >= 1
