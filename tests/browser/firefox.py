"""Drive Firefox over WebDriver BiDi (w3c.github.io/webdriver-bidi), without further programs."""

import itertools
import json
import re
import subprocess
import time
from pathlib import Path

import websocket

PREFERENCES = {
    "browser.download.folderList": 2,  # the folder of the next line
    "browser.download.dir": "",
    "browser.helperApps.neverAsk.saveToDisk": "image/svg+xml,image/png",
    "browser.download.always_ask_before_handling_new_types": False,
    "ui.prefersReducedMotion": 1,  # figures do not move while a test reads them
    "network.proxy.type": 1,  # requests to other computers fail
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
}

# the place of an element once it is the same in two frames that follow each other
RESTING = """new Promise((done) => {
  const look = (before) => {
    const now = FIND;
    if (JSON.stringify(now) === before) done(now);
    else requestAnimationFrame(() => look(JSON.stringify(now)));
  };
  look();
})"""


class Firefox:
    """A headless Firefox with its own profile; it saves files in `downloads`.

    `heard` lists the console errors of pages and their workers.
    """

    def __init__(self, program: str, folder: Path):
        self.downloads = folder / "downloads"
        profile = folder / "profile"
        for path in (self.downloads, profile):
            path.mkdir()
        preferences = PREFERENCES | {"browser.download.dir": str(self.downloads)}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items()]
        (profile / "user.js").write_text("\n".join(lines), "utf-8")
        command = [program, "--headless", "--profile", str(profile), "--remote-debugging-port", "0"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        address = next(filter(None, (re.search(r"ws://\S+", line) for line in self.process.stderr)))[0]
        self.socket = websocket.create_connection(f"{address}/session", suppress_origin=True, timeout=60)
        self.numbers = itertools.count()
        self.heard = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self.context = self.send("browsingContext.create", type="window")["context"]  # which has the focus

    def send(self, method: str, **params) -> dict:
        """Send a command and return its result; RuntimeError if it fails."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                break
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.heard.append(answer["params"]["text"])
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['message']}")
        return answer["result"]

    def open(self, address: str) -> None:
        self.send("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, expression: str):
        """Return the value of a JavaScript expression, which must be JSON."""
        result = self.send(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self.context},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return json.loads(result["result"].get("value", "null"))

    def point_at(self, selector: str, number: int = 0, *, click: bool = False) -> None:
        """Move the pointer to the middle of an element that rests, and optionally click."""
        find = f"document.querySelectorAll({json.dumps(selector)})[{number}].getBoundingClientRect()"
        box = self.evaluate(RESTING.replace("FIND", find))
        x, y = round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)
        actions = [{"type": "pointerMove", "x": x, "y": y}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.send(
            "input.performActions",
            context=self.context,
            actions=[{"type": "pointer", "id": "pointer", "actions": actions}],
        )

    def wait_for(self, expression: str, seconds: float = 60) -> None:
        """Wait until a JavaScript expression is true; TimeoutError after `seconds`."""
        self.wait_until(lambda: self.evaluate(expression), f"{expression} is not true", seconds)

    def wait_to_hear(self, words: str, seconds: float = 60) -> None:
        """Wait until a console error contains `words`; TimeoutError after `seconds`."""

        def is_heard() -> bool:
            self.evaluate("0")  # which also receives what the console says
            return any(words in text for text in self.heard)

        self.wait_until(is_heard, f"the console does not say {words!r}", seconds)

    def wait_until(self, is_true, otherwise: str, seconds: float = 60) -> None:
        """Wait until a function of Python returns true; TimeoutError with `otherwise` after `seconds`."""
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                raise TimeoutError(f"{otherwise} after {seconds} s")
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        """Give the page a window of this size."""
        viewport = {"width": width, "height": height}
        self.send("browsingContext.setViewport", context=self.context, viewport=viewport)

    def drag(self, selector: str, number: int, to: tuple[int, int]) -> None:
        """Drag an element by its middle to a point of the window."""
        self.point_at(selector, number)
        steps = [
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": to[0], "y": to[1]},
            {"type": "pointerUp", "button": 0},
        ]
        self.send(
            "input.performActions",
            context=self.context,
            actions=[{"type": "pointer", "id": "pointer", "actions": steps}],
        )

    def press(self, *keys: str) -> None:
        """Press keys by their WebDriver codes, one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.send(
            "input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": actions}]
        )

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(30)
        self.process.stderr.close()
