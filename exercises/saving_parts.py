"""Keeping a right answer as a part of the reader's BERT: its text, with all that it needs, is run by itself first."""

import ast
import builtins
import inspect
import linecache
import symtable
import time
import types
from collections.abc import Callable

from exercises.part_checks import races, try_part
from exercises.parts import PARTS, folder, load
from utils.support.files import write_file

SLOW = 20  # times as slow as ours: told, and kept


class NotKept(Exception):  # noqa: N818
    """Why a right answer cannot become a part, in words for the reader."""


def keep(name: str, answer: Callable) -> str:
    """Keep a right answer to a part, once its text runs by itself; the sentence that tells the reader."""
    where = folder()
    if where is None:
        return ""
    path, number = where / f"{name}.py", list(PARTS).index(name) + 1
    try:
        text = standing_alone(
            answer, f"Part {number} of {len(PARTS)} of your BERT: {PARTS[name].title}, as check kept it."
        )
        alone = load(path, text)
        try_part(name, alone)
        write_file(path, text)
    except NotKept as reason:
        return f"It is not kept as a part of your BERT, though: {reason}"
    except OSError as error:
        return f"It could not be kept ({error}): set MINE to a folder that can be written."
    except Exception as error:
        why = f"run by itself, it fails ({type(error).__name__}: {error})"
        return f"It is not kept as a part of your BERT, though: {why}."
    return f"That is part {number} of {len(PARTS)} of your BERT.{slowness(name, alone)}"


def slowness(name: str, function: Callable) -> str:
    """A sentence for a part that is much slower than ours, or ""."""

    def least_of_three(run: Callable) -> float:
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
        return min(taken)

    ours, theirs = races(name, function)
    ratio = least_of_three(theirs) / least_of_three(ours)
    if ratio < SLOW:
        return ""
    return f" It is about {ratio:.0f} times as slow as ours, so later notebooks will take longer."


def standing_alone(function: Callable, title: str) -> str:
    """The text of a function with its imports and all that it takes from other cells; `NotKept` if that cannot be."""
    if not isinstance(function, types.FunctionType) or function.__closure__:
        raise NotKept("give check a function that is defined with def in a cell, and not inside of another one.")
    texts: dict[str, str] = {}
    collect(function.__name__, function, function.__globals__, texts)
    imports = sorted(text for text in texts.values() if text.startswith(("import ", "from ")))
    others = [text for text in texts.values() if text not in imports]
    imports = "\n".join(["from __future__ import annotations", "", *imports])
    return "\n\n".join([f"# {title}\n{imports}", *others, f"part = {function.__name__}\n"])


def collect(name: str, value, names: dict, texts: dict[str, str]) -> None:
    """Add the text that gives a name its value, after those of the names that it uses."""
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
        source = statement(name, value)
        texts[name] = ""  # it may call itself
        for used in free_names(source):
            if used in names and not hasattr(builtins, used):
                collect(used, names[used], names, texts)
        texts.pop(name)
        texts[name] = source
        return
    try:
        assert ast.literal_eval(repr(value)) == value
    except Exception:
        raise NotKept(
            f"it uses {name}, of type {type(value).__name__}, from another cell. Take it from what is given, or make "
            "it inside of the function."
        ) from None
    texts[name] = f"{name} = {value!r}"


def statement(name: str, function: types.FunctionType) -> str:
    """The statement of a cell or file that defines the function; `NotKept` if it is not to be had."""
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
    """The names that a definition takes from outside of it."""

    def of_table(table: symtable.SymbolTable) -> set[str]:
        inner = (of_table(child) for child in table.get_children())
        return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}.union(*inner)

    table = symtable.symtable(f"from __future__ import annotations\n{source}", "part", "exec")
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
    around = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    return (of_table(table) | around) - defined
