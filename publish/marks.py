"""Read the marks in the source that say which text belongs to which edition, such as the student copy.

`<!--not student-->…<!--/not-->` is left out of that edition, and `<!--student-->…<!--/student-->` is what it takes from
README. No mark begins a line that has text, because Markdown reads such a line as HTML.
"""

import re
from collections.abc import Callable

# says, to an editor of a cell, why a line of it that speaks of all cases is true
CLAIM = re.compile(r"[ \t]*<!-- claim: .*? -->|^[ \t]*# claim: .*\n|[ \t]*# claim: .*$", re.MULTILINE)
NOT = re.compile(r"<!--not (\w+)-->(.*?)<!--/not-->", re.DOTALL)
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\])\((?![a-z]+:|#)([^)#\s]+)([^)]*)\)")


def read(text: str, edition: str) -> str:
    """Return a text without what an edition leaves out, and without marks."""
    return CLAIM.sub("", NOT.sub(lambda mark: "" if mark[1] == edition else mark[2], text))


def read_notebook(notebook, edition: str):
    """Return a notebook whose cells are without what an edition leaves out, and without marks."""
    for cell in notebook.cells:
        cell.source = read(cell.source, edition)
    return notebook


def parts(text: str, edition: str) -> list[str]:
    """Return the parts of a page that are marked for an edition."""
    found = re.findall(rf"<!--{edition}-->(.*?)<!--/{edition}-->", text, re.DOTALL)
    return [read(part, edition).strip() for part in found]


def keep_links(text: str, is_there: Callable[[str], bool]) -> str:
    """Return Markdown whose relative links to what is not there are only their labels."""
    return LINK.sub(lambda link: link[0] if is_there(link[3]) else link[2][1:-1], text)
