"""Edits of a newcomer where a notebook says "change me", and any guess at a prediction, raise no error."""

import ast

import nbformat
import pytest

from publish.notebooks import NO_GUESS, run
from tests.helpers import ROOT

SERIES = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))
# What a newcomer types in place of a text, a number, a list of either, or a dictionary: one of each in every round.
KINDS = ("str", "int", "float", "list of str", "list of numbers", "dict", "guess")
TYPED = [
    ("", 0, -2.5, [], [5, 5], {}, "none at all"),
    (
        *("北京 is 2,200 km away 🙂 [MASK]… Zürich", 3, 0, ["", "naïve", "KING", "xyzzyqux"], [0, 0, 1]),
        *({"": 3, "banana": 7, "a": 1}, "50 %"),
    ),
    ("word " * 900, -1, 1e6, ["a"], [], {"a": 1}, [0.1, None]),
    ("0,5", 10**6, 50, ["time flies", "time flies"], [1], {"flies": 0}, -3),
]
ROUNDS = [dict(zip(KINDS, typed, strict=True)) for typed in TYPED]


def kind_of(node: ast.expr) -> str | None:
    """Return what a newcomer replaces if an expression is written in a notebook, else None."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    if isinstance(value, list):
        return "list of str" if all(isinstance(item, str) for item in value) else "list of numbers"
    return type(value).__name__ if isinstance(value, (str, int, float, dict)) else None


def replaced(source: str, typed: dict[str, object]) -> str:
    """Return the source of a cell with the literals of its statements marked "change me" replaced by what is typed."""
    if source.startswith(NO_GUESS):
        return source.replace(NO_GUESS, f"prediction = {typed['guess']!r}", 1)
    lines = source.split("\n")
    marked = {number for number, line in enumerate(lines, start=1) if "# change me" in line}
    if not marked:
        return source

    class Newcomer(ast.NodeTransformer):
        def visit(self, node):
            kind = kind_of(node) if isinstance(node, ast.expr) else None
            return ast.parse(repr(typed[kind]), mode="eval").body if kind else self.generic_visit(node)

    tree = ast.parse(source)
    for statement in tree.body:
        if marked & set(range(statement.lineno, statement.end_lineno + 1)):
            if isinstance(statement, ast.For):  # what is looped over; the body is not to be changed
                statement.iter = Newcomer().visit(statement.iter)
            else:
                Newcomer().visit(statement)
    return ast.unparse(tree)


@pytest.mark.parametrize("typed", ROUNDS, ids=range(len(ROUNDS)))
@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_edits_of_a_newcomer_raise_nothing(path, typed):
    notebook = nbformat.read(path, as_version=4)
    before = [cell.source for cell in notebook.cells]
    for cell in notebook.cells:
        if cell.cell_type == "code" and "exercise" not in cell.metadata.get("tags", []):
            cell.source = replaced(cell.source, typed)
    assert [cell.source for cell in notebook.cells] != before
    run(notebook, ROOT / "notebooks", timeout=300)
