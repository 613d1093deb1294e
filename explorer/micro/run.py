"""Run microbert.py, as the reader left it, on two texts. The page's worker calls this with Python in the browser.

`vector` runs up to the line `if __name__ == "__main__"` and embeds one text, in a worker for each; `finish` then runs
the complete file on the vectors of both.
"""

import ast
import gc
import io
import json
import linecache
import math
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

FILE, LAYER = "microbert.py", "encoder_layer"
SHOWN = 5_000  # characters of what the file prints


def answer(function: str, inputs: str, report: Callable[[], object] | None = None) -> str:
    """Call `vector` or `finish` with inputs in JSON; return JSON with the result, what was printed, and any error."""
    work = partial(vector, report=report) if function == "vector" else finish
    return json.dumps(attempt(work, **json.loads(inputs)))


def vector(printed, source: str, texts: list[str], folder: str, report=None) -> list[float] | None:
    """Return the vector of the only text, or None if the file has no `embed` that returns numbers."""
    variables, _ = first_part(source, report)
    make, embed = variables.get("Checkpoint"), variables.get("embed")
    if not (callable(make) and callable(embed)):
        return None  # `finish` then runs the file as it is
    model = make(folder)
    printed.seek(printed.truncate(0))  # keep what is printed for this text only
    found = embed(texts[0], model)
    is_list = isinstance(found, list) and all(isinstance(number, float) and math.isfinite(number) for number in found)
    return found if is_list else None


def finish(printed, source: str, texts: list[str], folder: str, vectors: list[list[float] | None]) -> None:
    """Run the complete file on two texts; its `embed` returns the vectors that are known."""
    variables, rest = first_part(source)
    known = {text: vector for text, vector in zip(texts, vectors, strict=True) if vector is not None}
    if known:
        embed = variables["embed"]
        variables["embed"] = lambda text, model: list(known[text]) if text in known else embed(text, model)
    exec(compile(rest, FILE, "exec"), variables)


def attempt(work: Callable, source: str, texts: list[str], folder: str, **others) -> dict:
    """Return the result of `work`, what it printed, and its error or None."""
    gc.collect()  # the weights of the last run
    printed, value, error = io.StringIO(), None, None
    arguments, environment = sys.argv, dict(os.environ)
    sys.argv, os.environ["CHECKPOINT"] = [FILE, *texts], folder
    linecache.cache[FILE] = len(source), None, source.splitlines(keepends=True), FILE  # for tracebacks
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            value = work(printed, source, texts, folder, **others)
        except BaseException as caught:  # also SystemExit, with which the file explains its use
            error = describe(caught)
    sys.argv = arguments
    os.environ.clear()
    os.environ.update(environment)
    return {"value": value, "printed": printed.getvalue()[:SHOWN], "error": error}


def first_part(source: str, report: Callable[[], object] | None = None) -> tuple[dict, ast.Module]:
    """Run the file up to `if __name__ == …`; return its variables and the rest."""
    body = ast.parse(source, FILE).body
    starts = [i for i, node in enumerate(body) if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)]
    start = min(starts, default=len(body))
    code = compile(ast.Module(body[:start], []), FILE, "exec")
    variables = {"__name__": "__main__", "__file__": FILE}
    if report:
        watch(code, report)
    exec(code, variables)
    return variables, ast.Module(body[start:], [])


def watch(code, report: Callable[[], object]) -> None:
    """Call `report` whenever the file's `encoder_layer` starts; the file itself stays as it is."""
    monitoring, tool = sys.monitoring, sys.monitoring.PROFILER_ID
    if not monitoring.get_tool(tool):
        monitoring.use_tool_id(tool, "progress")
    monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, offset: report())
    for part in code.co_consts:
        if getattr(part, "co_name", "") == LAYER:
            monitoring.set_local_events(tool, part, monitoring.events.PY_START)


def describe(error: BaseException) -> dict:
    """Return an error's message, its last line in the file, the function around it, and the traceback in the file."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    line = frames[-1].lineno if frames else None
    function = next((frame.name for frame in reversed(frames) if frame.name.isidentifier()), "")  # not a <listcomp>
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, function = error.lineno, ""
    trace = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    message = str(error) if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    return {
        "message": message.removesuffix(f" ({FILE}, line {line})"),
        "line": line,
        "function": function,
        "trace": "".join(trace),
    }
