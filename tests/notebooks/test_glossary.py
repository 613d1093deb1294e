"""The glossary for readers: each term occurs in the section that its row links to, which says what it means."""

import re

import nbformat
import pytest

from publish.website import anchor
from tests.helpers import ROOT

GLOSSARY = ROOT / "notebooks" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| \[[^\]]+\]\(([^)#]+)#(\S+)\) \|$", re.M)
ROWS = ROW.findall(GLOSSARY.read_text("utf-8"))


def section(text: str, wanted: str) -> str:
    """Return a heading and what comes after it, up to the next one."""
    parts = re.split(r"^#+ (.+)$", text, flags=re.M)
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return "\n".join(heading + body for heading, body in sections if anchor(heading) == wanted)


def plain(text: str) -> str:
    """Return Markdown in lower case, without marks, on one line."""
    return " ".join(re.sub(r"[*`]", "", text).replace("_", " ").lower().split())


def is_explained(term: str, text: str) -> bool:
    """Return whether every word of "query, key, value" or of another term occurs as a word of the text."""
    return all(re.search(rf"\b{re.escape(plain(word))}", plain(text)) for word in term.split(", "))


@pytest.mark.parametrize(("term", "name", "fragment"), ROWS, ids=[row[0] for row in ROWS])
def test_term_is_where_the_glossary_says(term, name, fragment):
    cells = nbformat.read(GLOSSARY.parent / name, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert is_explained(term, section(text, fragment))


def test_every_row_is_read_and_sorted():
    assert len(ROWS) == GLOSSARY.read_text("utf-8").count("\n| ") - 1  # without the headings of the columns
    assert [row[0] for row in ROWS] == sorted({row[0] for row in ROWS}, key=str.lower)
