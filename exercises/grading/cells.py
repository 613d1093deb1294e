"""Find the answers in a hand-in, the cells that they need, and code shared with others, without running anything."""

import ast
import builtins
import contextlib
import hashlib
import json
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parents[2]
CHECK = re.compile(r"""\bcheck\(\s*["']([\d.]+)["']""")
# magics that only measure, but hide the code in their cell or line from Python
CELL_MAGIC = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b.*")
LINE_MAGIC = re.compile(r"^([ \t]*)%(?:time|timeit|prun|memit)\b[ \t]*(?:-\w+(?:[ \t]+\d+)?[ \t]+)*", re.MULTILINE)
WRITTEN = re.compile(r"\A\s*%%(?:write)?file\s+(?:-a\s+|--append\s+)?(\w+)\.py\s*$", re.MULTILINE)  # a module
MODULES = {"torch", "nn", "F", "np", "plt", "math", "random"}  # a call of one of their functions changes no name
PROVIDED = {*dir(builtins), "get_ipython", "display", "__name__"}  # by Python and IPython
MIN_LINES = 3  # shorter functions are often the same by chance


@dataclass(frozen=True)
class Cell:
    """A code cell, and the names in it."""

    id: str
    source: str
    position: int = 0

    @property
    def number(self) -> str:
        """Return the number of the exercise that it checks, such as "3.1", or ""."""
        found = CHECK.search(self.source)
        return found[1] if found else ""

    @cached_property
    def python(self) -> str:
        """Return the source without magics; "" if it does not parse."""
        with contextlib.suppress(Exception):  # of many types, such as MemoryError for a thousand brackets
            source = TransformerManager().transform_cell(self.source)
            compile(source, "cell", "exec")
            return source
        return ""

    @cached_property
    def tables(self) -> list[symtable.SymbolTable]:
        """Return the symbol table of the cell, then those of all functions and classes in it."""
        found = [symtable.symtable(self.python, "cell", "exec")]
        for table in found:
            found += table.get_children()  # which this loop reaches, too
        return found

    @cached_property
    def used(self) -> set[str]:
        """Return the names that the cell takes from other cells."""
        symbols = [(table, symbol) for table in self.tables for symbol in table.get_symbols() if symbol.is_referenced()]
        return {symbol.get_name() for table, symbol in symbols if table is self.tables[0] or symbol.is_global()}

    @cached_property
    def changed(self) -> set[str]:
        """Return the names that it binds, sets a part of, calls a method of, or writes as a module.

        Such as `x = 1`, `x.y = 1`, `x.add(1)`, `%%writefile x.py`; and "*" for `import *`, which may bind any name.
        """
        names = set()
        for node in ast.walk(ast.parse(self.python)):
            if isinstance(node, ast.ImportFrom):
                names |= {alias.name for alias in node.names} & {"*"}
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                node = node.value.func
            elif not isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            part = node
            while isinstance(part, (ast.Attribute, ast.Subscript, ast.Call)):
                part = part.func if isinstance(part, ast.Call) else part.value
            if part is not node and isinstance(part, ast.Name):
                names.add(part.id)
        symbols = self.tables[0].get_symbols()
        bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
        return bound | names - MODULES - PROVIDED | {*WRITTEN.findall(self.source)}

    @cached_property
    def imported(self) -> set[str]:
        """Return the modules that it imports, which another cell may have written."""
        nodes = [*ast.walk(ast.parse(self.python))]
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        return {name.partition(".")[0] for name in names}


def read_cells(path: Path) -> list[Cell]:
    """Return the code cells of a notebook; ValueError if the file is not a notebook."""
    if path.exists() and not path.is_file():  # a named pipe would never end
        raise ValueError(f"{path.name} is not a regular file")
    try:
        cells = json.loads(path.read_text("utf-8-sig"))["cells"]
        sources = [(str(cell.get("id", "")), "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is not a notebook: it cannot be read as JSON ({error})") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path.name} is not a notebook of version 4: save it in JupyterLab") from error
    plain = [(id, LINE_MAGIC.sub(r"\1", CELL_MAGIC.sub("", source))) for id, source in sources]
    return [Cell(id, source, position) for position, (id, source) in enumerate(plain)]


def find_answer(exercise: Cell, handed_in: Sequence[Cell]) -> Cell | None:
    """Return the student's cell for an exercise: an edited one, preferably with the original's id, or the first."""
    checking = [cell for cell in handed_in if exercise.number in CHECK.findall(cell.source)]
    written = [cell for cell in checking if cell.source.strip() != exercise.source.strip()]
    same = [cell for cell in written if cell.id == exercise.id]
    return next(iter([*same, *written[::-1], *checking]), None)


def steps_to_run(original: Sequence[Cell], handed_in: Sequence[Cell], answers: dict[str, Cell]) -> list[tuple]:
    """Return the cells to run, each with the number of its exercise or "": the answers, and what they need.

    The original has its first two cells, set-up and imports, and its order. A student's other cells, added or edited,
    go before the next answer; those below the last answer run right after set-up. Cells that define nothing that is
    used later are skipped, unless an answer uses a name that no cell seems to define: then all of the student's cells
    run, since one may define it by `exec` or `globals`; `import *` runs always, as it replaces even `sum` and `max`.
    """
    sources = {cell.source for cell in original}
    students = own = [cell for cell in handed_in if not cell.number and cell.source not in sources]
    steps = []
    for cell in original:
        if answer := answers.get(cell.number):
            steps += [(cell.number, each) for each in own if each.position < answer.position]
            steps.append((cell.number, answer))
            own = [each for each in own if each.position > answer.position]
        elif not cell.number:
            steps.append(("", cell))
    steps[2:2] = [("", cell) for cell in own]
    needed, wanted = [], {"*"}
    for index, (number, cell) in reversed(list(enumerate(steps))):
        if index < 2 or cell is answers.get(number) or cell.changed & wanted:
            needed.insert(0, (number, cell))
            wanted |= cell.used | cell.imported
    known = {name for _, cell in steps for name in cell.changed} | PROVIDED
    if all(cell.used <= known for cell in answers.values()):
        return needed
    return [step for step in steps if step in needed or step[1] in students]


def fingerprints(source: str, stub: str = "") -> set[str]:
    """Return a hash of each longer function and class, which does not depend on comments and names of variables.

    A class is compared as a whole, because an exercise may dictate one of its methods. Only lines that the stub does
    not hold count.
    """
    with contextlib.suppress(Exception):  # such as RecursionError for a sum of thousands of terms
        lines, given = source.splitlines(), {line.strip() for line in stub.splitlines()}
        found = [node for node in ast.parse(source).body if hasattr(node, "body") and hasattr(node, "name")]
        for node in found:
            simplify(node)
        numbers = [
            {part.lineno for part in ast.walk(node) if hasattr(part, "lineno")} - {node.lineno} for node in found
        ]
        written = [{lines[number - 1].strip() for number in each} - given for each in numbers]
        dumped = [ast.dump(node) for node, own in zip(found, written, strict=True) if len(own) >= MIN_LINES]
        return {hashlib.sha256(text.encode()).hexdigest() for text in dumped}
    return set()


def simplify(tree: ast.FunctionDef | ast.ClassDef) -> None:
    """Number the variables of a function or class, and remove its name, docstrings and annotations."""
    nodes = [*ast.walk(tree)]
    bound = [node.arg for node in nodes if isinstance(node, ast.arg)]
    bound += [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    number = {name: str(index) for index, name in enumerate(dict.fromkeys(bound))}
    tree.name = ""
    for node in nodes:
        if isinstance(node, ast.arg):
            node.arg, node.annotation = number[node.arg], None
        elif isinstance(node, ast.Name):
            node.id = number.get(node.id, node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.body = node.body[ast.get_docstring(node) is not None :]
            node.returns = None


def names_used(cell: Cell, handed_in: Sequence[Cell]) -> set[str]:
    """Return the names that a cell uses, also through a student's other cells that check nothing."""
    found, helpers = set(cell.used), [each for each in handed_in if not each.number]
    while more := {name for each in helpers if each.changed & found for name in each.used} - found:
        found |= more
    return found


def names_checked(number: str, among: Sequence[Cell]) -> set[str]:
    """Return the names under which cells check their answer to an exercise, such as `f` in `check("3.2", f)`."""
    named = re.compile(rf"""\bcheck\(\s*["']{re.escape(number)}["']\s*,\s*(\w+)\s*\)""")
    return {name for cell in among for name in named.findall(cell.source)}


def solution_cells(original: Path) -> list[Cell]:
    """Return the code cells of a notebook's published solutions; none in a student's copy, which has no solutions."""
    with contextlib.suppress(ValueError):
        return read_cells(ROOT / "notebooks" / "solutions" / f"{original.stem.partition('_')[0]}_solutions.ipynb")
    return []


def published(original: Path) -> dict[str, str]:
    """Return where the series shows a function, such as "the solution", by its fingerprint."""
    pages = [(f"utils/{path.name}", path.read_text("utf-8")) for path in (ROOT / "utils").rglob("*.py")]
    pages += [("the notebook", cell.python) for cell in read_cells(original)]
    pages += [("the solution", cell.python) for cell in solution_cells(original) if cell.number]
    return {found: where for where, source in pages for found in fingerprints(source)}
