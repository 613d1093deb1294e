"""microbert.html in Firefox: it answers as this computer's Python does, shows an error, and stops."""

import pytest

from explorer.micro import build
from tests.browser.microbert_page import address, checkpoint, edit, micro_site, printed_part, run_here
from tests.helpers import ROOT

SOURCE = (ROOT / "microbert.py").read_text("utf-8")
TEXTS = build.TEXTS
__all__ = ["address", "checkpoint", "micro_site"]
pytestmark = pytest.mark.long


def text(page, selector: str) -> str:
    return page.evaluate(f"document.querySelector({selector!r}).textContent")


def press(page, button: str, said: str) -> None:
    page.evaluate("say('')")
    page.evaluate(f"document.getElementById({button!r}).scrollIntoView({{ block: 'center' }})")
    page.point_at(f"#{button}", click=True)
    page.wait_for(f"document.getElementById('status').textContent.includes({said!r})", 180)


def put(page, source: str) -> None:
    page.evaluate(f"by('source').value = {source!r}")


def test_firefox_answers_stops_and_shows_errors(firefox, address, checkpoint):
    firefox.resize(390, 800)
    firefox.open(address)
    firefox.heard.clear()
    press(firefox, "run", "Computed here")
    assert printed_part(text(firefox, "#printed")) == run_here(checkpoint, *TEXTS)
    put(firefox, edit(SOURCE, "math.exp(score - largest)", "1 / 0"))
    press(firefox, "run", "Stopped by an error")
    assert text(firefox, "#message") == "ZeroDivisionError: division by zero"
    put(firefox, edit(SOURCE, "def dot(a, b):", "def dot(a, b):\n    while True: pass\n"))
    firefox.point_at("#run", click=True)
    firefox.wait_for("document.getElementById('doing').textContent.includes('Computing layer 1')", 180)
    press(firefox, "stop", "Stopped.")
    put(firefox, SOURCE)
    press(firefox, "run", "Computed here")
    assert printed_part(text(firefox, "#printed")) == run_here(checkpoint, *TEXTS)
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert firefox.heard == []
