"""Text cells and documents: code blocks parse in their language, and links resolve."""

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Error

from publish.website import anchor
from tests.helpers import ROOT

FOLDERS = (".", "docs", "notebooks", "notebooks/proofs", "notebooks/solutions", "benchmarks", "utils/data")
PATHS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*")) if path.suffix in (".md", ".ipynb")]
FENCE = re.compile(r"^( *)(`{3,})([^`\n]*)\n(.*?)^\1\2", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
every_text = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(ROOT).as_posix())


@cache
def text(path: Path) -> str:
    """Return a document, or all text cells of a notebook."""
    if path.suffix == ".md":
        return path.read_text("utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def faults(language: str, source: str) -> list[str]:
    """Return the syntax errors that the site's highlighter, Python or the shell finds."""
    lexer = get_lexer_by_name(language or "text")
    found = [f"{word!r} is not {language}" for kind, word in lexer.get_tokens(source) if kind is Error]
    if language == "python":
        try:
            ast.parse(source)
        except SyntaxError as error:
            found.append(f"line {error.lineno}: {error.msg}")
    if language == "sh" and shutil.which("bash"):
        done = subprocess.run(["bash", "-n"], input=source, capture_output=True, text=True, check=False)
        found += done.stderr.splitlines()
    return found


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a document or a notebook."""
    headings = HEADING.findall(FENCE.sub("", text(path)))
    if path.suffix == ".ipynb":
        return set(map(anchor, headings))
    headings = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_text
def test_code_blocks_parse_in_their_language(path):
    fences = FENCE.findall(text(path))
    assert [fault for *_, language, source in fences for fault in faults(language.strip(), source)] == []
    assert FENCE.sub("", text(path)).count("```") == 0, "an unclosed code block"


@every_text
def test_links_within_the_project_resolve(path):
    lost = []
    for link in LINK.findall(FENCE.sub("", text(path))):
        if link.startswith(("http", "../../issues")):
            continue
        name, _, fragment = link.partition("#")
        target = Path(path.parent / unquote(name)).resolve() if name else path
        if not target.exists() or (fragment and unquote(fragment) not in anchors(target)):
            lost.append(link)
    assert lost == []
