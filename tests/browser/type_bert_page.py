"""The pages of type_bert.html for tests in browsers, built once, and the answers of tests/publish/typed_answers.txt."""

import os
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from filelock import FileLock

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from publish.server import serve
from publish.type_bert import build
from publish.website import BUILD
from tests.helpers import ROOT

BUILT = os.environ.get("SITE")
ENDLESS, BREAKING, RECURSIVE = "ran for 5 seconds", "changed Python itself", "calls itself without end"
PAGES = {"evening": "notebooks/evening.html", "03": "notebooks/03_self_attention.html"}


def typed_answers() -> list[tuple[str, str, str]]:
    """Return the gap, the words that are expected, and the lines of each answer."""
    _, *blocks = (ROOT / "tests/publish/typed_answers.txt").read_text("utf-8").split("\n\n")
    return [re.fullmatch(r"(\w+): (.*?)\n(.*?)\n?", block, re.DOTALL).groups() for block in blocks]


def for_browsers() -> list[tuple[str, str, str]]:
    """Return all answers for `make test-all`, else a few; tests/publish judges them in Python.

    Among the few are those that Python in a browser may judge in its own way.
    """
    few = [one for at, one in enumerate(typed_answers()) if at % 20 == 0 or one[1].endswith((BREAKING, RECURSIVE))]
    return typed_answers() if "STATES" in os.environ else few


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with the page of the site and, as file.html, the page that is one file."""
    shared = tmp_path_factory.getbasetemp()
    made = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "type_bert"
    with FileLock(f"{made}.lock"):
        if not (made / "file.html").exists():  # it is written last
            try:
                build.build(made, BUILD / "npm", PAGES)
            except OSError as error:
                pytest.skip(f"{error}: install Node.js to test {build.PAGE}")
            build.write_page(made / "file.html", BUILD / "npm", build.addresses(None))
    return made


@pytest.fixture(scope="module")
def address(folder):
    """Serve the page, of a built site if SITE names one, and yield its address."""
    with serve(Path(BUILT) if BUILT else folder) as origin:
        yield f"{origin}/{build.PAGE}"


# Judge answers as the page does after a click, one after the other: [{ gap, body }] to [what it says]
JUDGE = """async (answers) => {
  if (answers.length > 1) window.tryModel = async () => ""; // half a second each, and tested elsewhere
  const said = [],
    started = async () => {
      while (!isReady) await new Promise((done) => setTimeout(done, 100));
    };
  await started();
  for (const { gap, body } of answers) {
    for (let left = 2; left; left--) {
      choose(gap);
      put(body);
      await check();
      await started();
      if (!by("verdict").textContent.includes("ran for 5 seconds")) break; // a busy machine can take so long
    }
    said.push(by("verdict").textContent);
  }
  return said;
}"""


def visit(page, address: str) -> None:
    """Open the page as in a new tab, which has kept nothing; its folder has the same storage."""
    page.goto(urljoin(address, "."))
    page.evaluate("sessionStorage.clear()")
    page.goto(address)
