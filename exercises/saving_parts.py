"""Save a right answer as a part of the reader's BERT: its source, with all that it uses, must run on its own."""

import ast
import builtins
import inspect
import linecache
import symtable
import types
from collections.abc import Callable

from exercises.part_checks import try_part
from exercises.parts import PARTS, announce, folder, load, saved_parts
from utils.support.files import write_file


class NotKept(Exception):  # noqa: N818
    """Explain to the reader why a right answer cannot become a part."""


def save_part(name: str, answer: Callable) -> str:
    """Save a right answer as a part, once its source runs on its own; return a sentence for the reader."""
    where = folder()
    if where is None:
        return announce("MINE=off, so no answer becomes a part of your BERT.")
    path, number = where / f"{name}.py", list(PARTS).index(name) + 1
    try:
        text = standalone_source(
            answer, f"Part {number} of {len(PARTS)} of your BERT: {PARTS[name].title}, as check saved it."
        )
        alone = load(path, text)
        try_part(name, alone)
        write_file(path, text)
    except NotKept as reason:
        return f"It cannot become a part of your BERT, though: {reason}"
    except OSError as error:
        return f"It could not be saved ({error}). Set MINE to a folder that can be written."
    except Exception as error:
        why = f"on its own, it fails ({type(error).__name__}: {error})"
        return f"It cannot become a part of your BERT, though: {why}."
    yours = f"{len(saved_parts())} of {len(PARTS)}"
    return f"It is a part of your BERT now ({yours} are yours)."


def standalone_source(function: Callable, title: str) -> str:
    """Return a function's source with its imports and all it uses from other cells; `NotKept` if impossible."""
    if not isinstance(function, types.FunctionType) or function.__closure__:
        raise NotKept("pass check a function that is defined with def in a cell, and not inside another function.")
    texts: dict[str, str] = {}
    collect_source(function.__name__, function, function.__globals__, texts)
    imports = sorted(text for text in texts.values() if text.startswith(("import ", "from ")))
    others = [text for text in texts.values() if text not in imports]
    imports = "\n".join(["from __future__ import annotations", "", *imports])
    return "\n\n".join([f"# {title}\n{imports}", *others, f"part = {function.__name__}\n"])


def collect_source(name: str, value, names: dict, texts: dict[str, str]) -> None:
    """Add the source that gives a name its value, after the sources of the names that it uses."""
    if name in texts:
        return
    if isinstance(value, types.ModuleType):
        texts[name] = f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
        return
    module = getattr(value, "__module__", None)
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and module not in (None, "__main__"):
        origin = inspect.getmodule(value)
        original = getattr(value, "__name__", name)
        if origin is not None and getattr(origin, original, None) is value and names.get("__name__") != module:
            texts[name] = f"from {module} import {original}" + (f" as {name}" if name != original else "")
            return
    if isinstance(value, types.FunctionType):
        source = definition_source(name, value)
        texts[name] = ""  # it may call itself
        for used in free_names(source):
            if used in names and not hasattr(builtins, used):
                collect_source(used, names[used], names, texts)
        texts.pop(name)
        texts[name] = source
        return
    try:
        assert ast.literal_eval(repr(value)) == value
    except Exception:
        raise NotKept(
            f"it uses {name}, of type {type(value).__name__}, from another cell. Take it from the arguments, or "
            "create it inside the function."
        ) from None
    texts[name] = f"{name} = {value!r}"


def definition_source(name: str, function: types.FunctionType) -> str:
    """Return the statement that defines the function; `NotKept` if it cannot be found."""
    lines = linecache.getlines(function.__code__.co_filename)
    try:
        body = ast.parse("".join(lines)).body
    except SyntaxError:
        body = []
    first = function.__code__.co_firstlineno
    for node in body:
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        if start <= first <= node.end_lineno:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return "".join(lines[start - 1 : node.end_lineno]).rstrip()
            break
    raise NotKept(f"{name} is not defined with def at the beginning of a line in a cell.")


def free_names(source: str) -> set[str]:
    """Return the names that a definition uses from outside."""

    def of_table(table: symtable.SymbolTable) -> set[str]:
        inner = (of_table(child) for child in table.get_children())
        return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}.union(*inner)

    table = symtable.symtable(f"from __future__ import annotations\n{source}", "part", "exec")
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
    around = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    return (of_table(table) | around) - defined
