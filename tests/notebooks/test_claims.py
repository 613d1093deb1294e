"""Lines that are quoted alone: one that speaks of all cases carries the reason why it is true, in its cell.

A reason is a comment that no reader sees, such as `<!-- claim: counted here, all 200 -->` in the paragraph of a bold
line or at the end of a point of the recap, or `# claim: …` in the cell of a title.
"""

import ast
import re

import nbformat
import pytest

from publish.marks import read_notebook
from publish.notebooks import minutes
from publish.student import without_solutions
from publish.website import read_for_display
from tests.helpers import ROOT

NOTEBOOKS = {path.stem.partition("_")[0]: path for path in sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))}
SWEEPING = re.compile(r"\b(every|all|only|always|never|whatever|has to|have to|needs?|because)\b", re.IGNORECASE)
NOT_PROSE = re.compile(r"^```.*?^```|`[^`\n]*`|\$\$.*?\$\$", re.MULTILINE | re.DOTALL)
BOLD = re.compile(r"\*\*(\S.*?)\*\*", re.DOTALL)
REASON = re.compile(r"<!-- claim: \S.+? -->|# claim: \S.+")


def quotable(cell) -> list[tuple[list[str], str]]:
    """Return the lines of a cell that may be quoted alone, by paragraph, each with the text that holds their reasons.

    Bold sentences that are not questions, points of a recap, and titles of figures.
    """
    if cell.cell_type == "code":
        return [(titles(cell.source), cell.source)]
    blocks = NOT_PROSE.sub("", cell.source).split("\n\n")
    if "## Recap" in cell.source:
        return [
            ([point], point)
            for point in "\n".join(blocks).partition("**Sources**")[0].split("\n")
            if point.startswith("- ")
        ]
    return [([line for line in BOLD.findall(block) if not line.endswith("?")], block) for block in blocks]


def titles(source: str) -> list[str]:
    """Return the titles of figures, and findings, in a cell's code, without what is filled in."""
    found = []
    for node in ast.walk(ast.parse(re.sub(r"(?m)^%.*", "", source))):
        named = [(node.arg, node.value)] if isinstance(node, ast.keyword) else []
        if isinstance(node, ast.Assign):
            named += [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.Dict):
            named += [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "finding":
            named.append(("title", node.args[0]))
        for text in (value for name, value in named if name == "title"):
            parts = (part.value for part in ast.walk(text) if isinstance(part, ast.Constant))
            found.append(" ".join(part for part in parts if isinstance(part, str)))
    return found


def unreasoned(notebook) -> list[str]:
    """Return the lines with a word such as "every" in paragraphs, points or cells that have fewer reasons."""
    found = []
    for lines, text in (part for cell in notebook.cells for part in quotable(cell)):
        sweeping = [line for line in lines if SWEEPING.search(REASON.sub("", line))]
        found += sweeping if len(sweeping) > len(REASON.findall(text)) else []
    return found


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_lines_that_speak_of_all_cases_have_their_reason(number):
    lines = unreasoned(nbformat.read(NOTEBOOKS[number], as_version=4))
    assert not lines, "\n".join(lines)


def test_no_reader_of_a_copy_sees_a_reason(tmp_path):
    text = "**Each sees every token.**{} So it does.\n\n- All of them.{}"
    code = "title = 'All of them'{}\nx = 1"
    plain, reasoned = (
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text.format(*[note] * 2), id="text"),
                                        nbformat.v4.new_code_cell(code.format(remark), id="code")])
        for note, remark in (("", ""), (" <!-- claim: the definition of the mask, counted here -->", "  # claim: so"))
    )  # fmt: skip
    assert minutes(reasoned) == minutes(plain)
    nbformat.write(reasoned, path := tmp_path / "03_a.ipynb")
    shown = read_for_display(path), without_solutions(nbformat.read(path, as_version=4), "03_a.ipynb", [])
    for notebook in (*shown, read_notebook(reasoned, "")):
        assert [cell.source for cell in notebook.cells] == [cell.source for cell in plain.cells]
