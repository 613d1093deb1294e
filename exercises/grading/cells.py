"""Finds a student's cells in a notebook, what they need of others, and what they share with other people's.

Only the text is read here; nothing is run.
"""

import ast
import contextlib
import importlib.util
import json
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from exercises import find_check

CHECK = re.compile(r"""\bcheck\(\s*["']([\d.]+)["']""")
OURS = ("exercises", "utils", "views")
MODULES = {"torch", "nn", "F", "np", "plt", "math", "random"}  # by the names that notebooks give them
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
TOLD = 3  # statements of one's own, from which on two answers that are the same are told

LINE = re.compile(r"^(\s*)%(?:time|timeit|prun|memit)\b[ \t]*((?:-\w+(?:[ \t]+\d+)?[ \t]+)*)", re.MULTILINE)
IDLE = re.compile(r"^(\s*)%(?:matplotlib|config|load_ext|autoreload|precision|xmode|pdb)\b.*$", re.MULTILINE)
WHOLE = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A code cell: its id and its source."""

    id: str
    source: str

    @property
    def number(self) -> str:
        """Of the exercise that it checks, such as "3.1", or ""."""
        found = CHECK.search(self.source)
        return found[1] if found else ""


@dataclass(frozen=True)
class Answer:
    """What is run for one exercise: the sources of the cells in their order, the student's exercise cell last."""

    sources: tuple[str, ...]
    below: bool = False  # whether a cell is among them that stands below the exercise

    @property
    def text(self) -> str:
        """All of it."""
        return "\n\n".join(self.sources)


def read_cells(path: Path) -> list[Cell]:
    """The code cells of a notebook, magics that only measure or show taken away; ValueError for what is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no notebook: it cannot be read as JSON ({error})") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError(f"{path} is no notebook of version 4: it has no list of cells. Save it in JupyterLab")
    try:
        return [
            Cell(str(cell.get("id", "")), without_magics("".join(cell["source"])))
            for cell in cells
            if cell["cell_type"] == "code"
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no notebook: a cell lacks {error}") from error


def without_magics(source: str) -> str:
    """A cell without `%%time`, `%timeit`, `%matplotlib` and the like; what they measure stays."""
    return IDLE.sub(r"\1pass", LINE.sub(r"\1", WHOLE.sub("", source)))


def read_original(path: Path) -> list[Cell]:
    """The code cells of the notebook that was handed out; ValueError if it has no exercises that there are."""
    cells = read_cells(path)
    numbers = [cell.number for cell in cells if cell.number]
    if not numbers:
        raise ValueError(f'{path} has no exercises: no cell calls check("3.1", …)')
    for number in numbers:
        find_check(number)
    return cells


def expect_chapter(path: Path, handed_in: Sequence[Cell], numbers: Sequence[str]) -> None:
    """ValueError for the notebook of another chapter: it checks exercises, but none of these."""
    checked = [number for cell in handed_in for number in CHECK.findall(cell.source)]
    if checked and not set(checked) & set(numbers):
        theirs, ours = (chapters[0].partition(".")[0].zfill(2) for chapters in (checked, numbers))
        raise ValueError(f"{path.name} is notebook {theirs}, not {ours}: it checks exercise {checked[0]}")


def find_answer(exercise: Cell, handed_in: Sequence[Cell]) -> Cell | None:
    """The student's cell that checks an exercise: of several the one with its id, but none that is as handed out."""
    checking = [cell for cell in handed_in if exercise.number in CHECK.findall(cell.source)]
    written = [cell for cell in checking if cell.source.strip() != exercise.source.strip()]
    same = [cell for cell in written if cell.id == exercise.id]
    return next(iter([*same, *written[::-1], *checking]), None)


def with_helpers(answer: Cell, handed_in: Sequence[Cell], original: Sequence[Cell], given: set[str]) -> Answer:
    """A student's cell and, before it, cells of their own that it needs, such as one with a function.

    Their own are those that they have added, and those that they have edited, such as the imports; of these, only
    what binds a name that the original has not given counts. What stands below the exercise is taken where nothing
    above binds the name.
    """
    ids, sources = {cell.id for cell in original}, {cell.source for cell in original}
    place = handed_in.index(answer)
    own = [cell for cell in handed_in if not cell.number and cell.source not in sources]
    above = [cell for cell in own if cell in handed_in[:place]]
    below = [cell for cell in own if cell not in above and cell.id not in ids]
    parts, wanted, found = [answer.source], used(answer.source), bound(answer.source) | given
    taken = False
    for cell in [*above[::-1], *below[::-1]]:
        missing = wanted - given if cell.id in ids else wanted if cell in above else wanted - found
        if leaves(cell.source) & missing:
            parts.append(cell.source)
            taken |= cell in below
            wanted |= used(cell.source)
            found |= bound(cell.source)
    return Answer(tuple(reversed(parts)), taken)


def in_place(original: Sequence[Cell], answers: dict[str, Answer]) -> list[tuple[str, tuple[str, ...]]]:
    """The cells to run, as (number or "", sources): the answers, and of the original's cells those that they need.

    Needed are the first two, set-up and imports, and what binds or changes a name that a needed cell below it uses.
    """
    steps, wanted = [], set()
    for place, cell in reversed(list(enumerate(original))):
        answer = answers.get(cell.number) if cell.number else Answer((cell.source,))
        if answer is not None and (cell.number or place < 2 or leaves(cell.source) & wanted):
            steps.append((cell.number, answer.sources))
            wanted |= used(answer.text)
    return steps[::-1]


def parsed(source: str) -> ast.Module:
    """A cell's syntax tree, magics translated; empty for one that does not parse."""
    with contextlib.suppress(Exception):  # of the many kinds, such as MemoryError for a thousand brackets
        return ast.parse(TransformerManager().transform_cell(source))
    return ast.Module([], [])


def tables(source: str) -> list[symtable.SymbolTable]:
    """Of a cell and of all functions and classes in it, which names are what; none if it does not parse."""
    found = []
    with contextlib.suppress(Exception):
        found.append(symtable.symtable(TransformerManager().transform_cell(source), "cell", "exec"))
    for table in found:
        found += table.get_children()  # and then theirs
    return found


def used(source: str) -> set[str]:
    """The names that a cell takes from cells before it."""
    return {
        symbol.get_name()
        for number, table in enumerate(tables(source))
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (number == 0 or symbol.is_global())
    }


def bound(source: str) -> set[str]:
    """The names that a cell binds for cells after it."""
    symbols = [symbol for table in tables(source)[:1] for symbol in table.get_symbols()]
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def leaves(source: str) -> set[str]:
    """The names that a cell binds, sets a part of, or calls a method of for its effect: `x = 1`, `x.y = 1`, `x.add(1)`.

    A function of a module that is called so, such as torch.manual_seed, changes no name.
    """
    names = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            names.add(root(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            names.add(root(node.value.func))
    return bound(source) | names - MODULES


def root(node: ast.expr) -> str:
    """The name that an expression such as x.y[0].z() begins with, or ""; of a bare function none."""
    depth = 0
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node, depth = node.func if isinstance(node, ast.Call) else node.value, depth + 1
    return node.id if depth and isinstance(node, ast.Name) else ""


def imported(source: str) -> list[tuple[str, str]]:
    """What a cell imports anywhere: the name it is given, and what it is, such as "utils.attention.AttentionHead"."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found += [(alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            found += [(alias.asname or alias.name, f"{home}.{alias.name}") for alias in node.names]
    return found


def given_by(source: str) -> set[str]:
    """What a cell of the original gives to answers: what it imports, and the functions and classes it defines."""
    return {node.name for node in parsed(source).body if isinstance(node, DEFINITIONS)} | {
        home if is_module(home) else home.rpartition(".")[2] for _, home in imported(source)
    }


def is_module(home: str) -> bool:
    """Whether what is imported is itself a module of ours, such as "utils.search"."""
    with contextlib.suppress(ImportError, ValueError):
        return home.partition(".")[0] in OURS and importlib.util.find_spec(home) is not None
    return False


def shape(statements: list[ast.stmt]) -> str:
    """Statements as a text that is the same whatever their author calls things, comments and docstrings aside."""
    module, numbers = ast.Module(statements, []), {}
    for node in ast.walk(module):
        for label in {"annotation", "returns"} & set(node._fields):
            setattr(node, label, None)
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    text = ast.dump(module)
    own = set(re.findall(r"(?:\bName\(id|\barg\(arg|Def\(name)='(\w+)'(?!, ctx=Load)", text))

    def renamed(found: re.Match) -> str:
        name = found[2]
        return f"{found[1]}={numbers.setdefault(name, len(numbers))}" if name in own else found[0]

    return re.sub(r"\b(id|arg|name)='(\w+)'", renamed, text)


def shapes(source: str, stub: str = "") -> set[str]:
    """What an answer looks like, names aside: each of its functions and classes, and its other statements together.

    Left out is what has fewer than `TOLD` statements that the stub has not.
    """
    known = {ast.dump(node) for node in ast.walk(parsed(stub)) if isinstance(node, ast.stmt)}
    body = [node for node in parsed(source).body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    body = [node for node in body if not ast.unparse(node).startswith(("check(", "print("))]
    parts = [[node] for node in body if isinstance(node, DEFINITIONS)]
    parts.append([node for node in body if not isinstance(node, DEFINITIONS)])
    found = set()
    for part in parts:
        inner = [node for node in ast.walk(ast.Module(part, [])) if isinstance(node, ast.stmt)]
        own = [node for node in inner if not isinstance(node, DEFINITIONS) and ast.dump(node) not in known]
        if len(own) >= TOLD:
            found.add(shape(part))
    return found


def published(original: Path, cells: Sequence[Cell]) -> dict[str, str]:
    """Of what the notebook, its solutions and `utils` show, who it is by its shape, such as "the solution"."""
    root = Path(__file__).resolve().parents[2]
    pages = [(f"utils/{module.name}", module.read_text("utf-8")) for module in (root / "utils").glob("*.py")]
    pages += [("the notebook", cell.source) for cell in cells]
    with contextlib.suppress(ValueError):  # a student's copy has no solutions
        solutions = read_cells(root / "notebooks" / "solutions" / f"{original.stem[:2]}_solutions.ipynb")
        pages += [("the solution", cell.source) for cell in solutions if cell.number]
    return {look: whose for whose, source in pages for look in shapes(source)}
