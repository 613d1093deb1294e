"""type_bert.html in Firefox, served and from a folder: the first line, and every answer."""

import json

import pytest

from tests.browser.type_bert_page import JUDGE, STEP, address, folder, typed_answers

ENTER = "\ue007"
__all__ = ["address", "folder"]
pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", ["site", "file"])
def test_firefox_judges_every_answer_alike(firefox, address, folder, kind):
    firefox.resize(390, 700)
    firefox.open(address if kind == "site" else (folder / "file.html").as_uri())
    firefox.evaluate("box.scrollIntoView({ block: 'center' })")
    firefox.point_at("#body", click=True)
    firefox.press(*"softmax([dot(query, key) for key in keys])", ENTER)
    firefox.wait_for("by('verdict').textContent.includes('Divide each score')", 180)
    firefox.wait_for("by('effect').textContent.includes('1.00')")
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    answers = typed_answers()[:: STEP if kind == "site" else 20]
    asked = json.dumps([{"gap": gap, "body": body} for gap, _, body in answers])
    firefox.evaluate(f"({JUDGE})({asked}).then((said) => {{ window.said = said; }}) && 0")
    firefox.wait_for("window.said !== undefined", 600)
    said = firefox.evaluate("window.said")
    assert [(a, b) for a, b in zip(answers, said, strict=True) if a[1] not in b] == []
    assert firefox.heard == []
