"""Check a reader's lines for one part of microbert.py: run the cases, name the mistake, or explain Python's error."""

import ast
import copy
import io
import math
import re
import sys
import textwrap
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache

from exercises.mistakes import read_table
from publish.type_bert.gaps import GAPS, Tiny, edited, mistakes_of

# A table as in gaps.py: what to find in `message, in the function that raised it: the reader's line`, and what it means
EXPLAINED = read_table(r"""
    , in dot: .*\bdot\( | dot takes two lists of numbers. If one is a list of vectors, take its vectors one by one: […
        for … in …].
    , in softmax: .*\bsoftmax\( | softmax takes one list of numbers. Collect all scores in a list first: [… for … in
        …].
    name '(key|score|value|column)' | Nothing has this name yet. Take each one in turn: [… for key in keys], or a loop.
    'NoneType' object has no attribute 'append' | append changes the list and returns nothing: write it without “… =”.
    unsupported operand type\(s\) for \^ | A power is written with two stars in Python, as in 3 ** 2.
    list indices must be integers | Here the loop gives the parts of the list themselves, not their indices: use them
        directly.
    object cannot be interpreted as an integer | range needs a number: range(len(…)).
    around the comprehension target | No comma before for: [… for … in …].
    invalid syntax.*: return \w+ =\s | return gives the answer, so only the last line begins with it. Delete it here.
    invalid syntax.*: [^\[{]* for \w+ in\s | Such a list needs brackets: [… for … in …].
    invalid character '[√∑]' | Python has no such sign. Write math.sqrt(…) for a root and sum(…) for a sum.
    non-int of type 'float' | A list cannot be multiplied like a number. Multiply its numbers: [… for … in …].
    '(Tiny|Checkpoint)' object | The settings of the model are in model.config["…"].
    can only concatenate str | A text and a number cannot be joined. Write f"encoder.layer.{layer}".
    empty sequence|argument is empty | There is nothing to choose from: give default=None for that case.
    StopIteration | next found nothing: give it None for that case, next((…), None).
    name 'np' | numpy is not available here, and plain Python is enough.
    name 'torch' | PyTorch is not available here, and plain Python is enough.
    No module named | Only plain Python is available here, and it is enough.
    name 'sqrt' | Write math.sqrt.
    name 'exp' | Write math.exp.
    name 'D' | Write len(query) for D.
    can't multiply sequence by non-int | Two lists cannot be multiplied. Take their numbers pair by pair: zip(a, b).
    unsupported operand type\(s\) for @ | Lists have no @. Use dot(…).
    unsupported operand type\(s\) | Python cannot calculate with a whole list. Take its numbers one by one.
    has no attribute 'removeprefix' | The name of a layer is a text: f"encoder.layer.{layer}".
    has no attribute | Lists and numbers have no such method. Use a function.
    'list' object
    bad operand type | A list is not a number. Take its numbers one by one.
    must be real number | This needs one number, not a list. Take the numbers one by one.
    object is not iterable | This needs a list, but it got a single value.
    positional argument | The function got too few or too many values: look at the line with def.
    was never closed | A bracket is still open. Close it.
    unmatched | There is one closing bracket too many.
    does not match opening | This bracket closes one of another kind.
    expected an indented block | The line after a colon must be further right.
    unexpected indent | This line is further right than the one above. Align them.
    unindent does not match | The lines of a block must begin in the same column.
    expected ':' | This line must end with a colon.
    invalid character | This character is not one of Python's. Type - * / and straight quotes.
    unterminated string | A quote is still open. Close it.
    invalid syntax | Python cannot read this line.
    KeyError: 'encoder\.layer\.\{ | Put f before the quotes, as in f"encoder.layer.{layer}".
    range error
    Result too large | The powers became too large: math.exp of more than 709 overflows.
    domain error
    expected a\s | This function needs a positive number.
    SystemExit | The function must return instead of ending Python.
    division by zero | You divide by 0.
    maximum recursion | The function calls itself without end. Write what it does.
    index out of range | The index is too large: the last one is len(…) - 1.
""")
SAME = 1e-9  # relative difference of two equal answers


class Printed(io.StringIO):
    """What lines print: the first ten lines of it, since more would cost time."""

    lines = 0.0  # so far

    def write(self, text: str) -> int:
        """Keep a text, unless ten lines are there; 400 characters count as one."""
        if self.lines < 10:
            super().write(text[:4000])
            self.lines += text.count("\n") + len(text) / 400
        return len(text)


def show(*values, **options) -> None:
    """Print, as long as `Printed` keeps it: so a loop that prints 100,000 lines ends."""
    if getattr(sys.stdout, "lines", 0) < 10:
        print(*values, **options)


def split(source: str) -> str:
    """Return microbert.py up to `if __name__`."""
    return source.partition("\nif __name__ ==")[0].rstrip() + "\n"


@cache
def parts_of(source: str, gap: str) -> tuple[str, str]:
    """Return a function's lines above the gap, and ours in it, dedented."""
    (node,) = (node for node in ast.parse(source).body if getattr(node, "name", "") == gap)
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    first = node.body[1 + GAPS[gap].given].lineno - node.lineno
    return "\n".join(lines[:first]) + "\n", textwrap.dedent("\n".join(lines[first:]))


def first_lines(source: str, gap: str) -> str:
    """Return the lines that the box begins with."""
    return edited(parts_of(source, gap)[1], GAPS[gap].blank) if GAPS[gap].blank else "return "


def with_bodies(source: str, bodies: dict[str, str]) -> str:
    """Return the file with a reader's lines in place of ours."""
    for gap, body in bodies.items():
        above, ours = parts_of(source, gap)
        source = source.replace(above + textwrap.indent(ours, "    "), above + completed(body))
    return source


def completed(body: str) -> str:
    """Indent lines as inside a function, with `return` before a last expression if there is none."""
    body = dedented(body)
    try:
        nodes = list(ast.walk(ast.parse(body)))
        last = nodes[0].body[-1]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        last = None
    if isinstance(last, ast.Expr) and not any(isinstance(node, ast.Return | ast.Yield) for node in nodes):
        lines = body.split("\n")
        line, column = lines[last.lineno - 1].encode(), last.col_offset
        lines[last.lineno - 1] = (line[:column] + b"return " + line[column:]).decode()
        body = "\n".join(lines)
    return textwrap.indent(body, "    ")


def dedented(body: str) -> str:
    """Return lines without the indentation that all have, and without empty ones around them."""
    return textwrap.dedent(body.replace("\u00a0", " ").expandtabs(4).strip("\n")).rstrip()


def run(source: str, gap: str, body: str, cases: list[tuple]) -> list:
    """Return the answers to the cases, or what they raise; the function may use every other one of the file."""
    text, file = parts_of(source, gap)[0] + completed(body) + "\n", f"{gap}.py"
    variables = {"__name__": "microbert", "print": show}
    exec(compiled(source), variables)
    exec(compile(text, file, "exec"), variables)
    variables |= GAPS[gap].others
    answers = []
    for arguments in cases:
        try:
            answers.append(variables[gap](*arguments))
        except Exception as error:
            answers.append(error)
    return answers


@cache
def compiled(source: str):
    """Return the compiled file."""
    return compile(source, "microbert.py", "exec")


def agree(a, b) -> bool:
    """Return whether two answers have the same form and nearly the same numbers, or raise the same kind of error."""
    if isinstance(b, Exception):
        return type(a) is type(b)
    if isinstance(b, list | tuple):
        return isinstance(a, list | tuple) and len(a) == len(b) and all(map(agree, a, b))
    if isinstance(b, str) or isinstance(a, str | bool):
        return a == b
    return isinstance(a, int | float) and math.isclose(a, b, rel_tol=SAME, abs_tol=1e-12)


def judge(source: str, gap: str, body: str) -> dict:
    """Return whether a reader's lines are `right`, else a `hint`, with an error's `message` and `line`; never raise.

    `runs` is whether the function returns something, so that it can be tried in the model; `printed` are the first
    lines that it prints, and `completed` is the body, if `return` was put in front of its last line.
    """
    if waiting := unfinished(gap, body):
        return {"right": False, "hint": waiting}
    cases, printed = GAPS[gap].cases, Printed()
    given = copy.deepcopy(cases)
    try:
        with redirect_stdout(printed):
            answers = run(source, gap, body, given)
        found = verdict(source, gap, body, answers, given, bool(printed.getvalue()))
    except BaseException as error:  # also SystemExit
        found = {"right": False} | describe(error, source, gap, body)
    whole = textwrap.dedent(completed(body))
    return found | {"printed": printed.getvalue()} | ({"completed": whole} if len(whole) > len(dedented(body)) else {})


def unfinished(gap: str, body: str) -> str:
    """Return what is missing before the lines can be run, or an empty text."""
    if body.strip() in ("", "return"):
        return "Type your line first."
    try:
        tree = ast.parse(textwrap.dedent(body.expandtabs(4).strip("\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(tree)):
        return "Replace the three dots by your own code."
    if any(getattr(node, "name", "") == gap for node in tree.body):
        return "The line with def is there already: type only what goes below it."
    return ""


def verdict(source: str, gap: str, body: str, answers: list, given: list[tuple], has_printed: bool) -> dict:
    """Judge answers to the cases; `given` are the arguments after the calls."""
    cases, (_, ours) = GAPS[gap].cases, parts_of(source, gap)
    if all(answer is None for answer in answers):
        what = (
            "print shows a value, but the function returns nothing" if has_printed else "The function returns nothing"
        )
        return {"right": False, "hint": f"{what}: its last line must begin with return."}
    if any(hasattr(answer, "__next__") for answer in answers):
        return {"right": False, "hint": "This can be read only once. Make a list of it: [… for … in …]."}
    right = run(source, gap, ours, copy.deepcopy(cases))
    if all(map(agree, answers, right)):
        if not all(agree(plain(after), plain(before)) for after, before in zip(given, cases, strict=True)):
            hint = "The answer is right, but your lines change the lists that they were given. Make new ones."
            return {"right": False, "hint": hint, "runs": True}
        case, text = GAPS[gap].remark or (None, "")
        fails = case and isinstance(run(source, gap, body, [case])[0], Exception)
        return {"right": True, "hint": text if fails else "", "runs": True}
    for wrong, hint in mistakes_of(gap, ours):
        if all(map(agree, answers, run(source, gap, wrong, copy.deepcopy(cases)))):
            return {"right": False, "hint": hint, "runs": True, "known": True}
    if error := next((answer for answer in answers if isinstance(answer, Exception)), None):
        return {"right": False} | describe(error, source, gap, body)
    i = next(i for i, pair in enumerate(zip(answers, right, strict=True)) if not agree(*pair))
    called = f"{gap}({', '.join(map(written, cases[i]))})"
    digits = next((n for n in (4, 8) if written(right[i], n) != written(answers[i], n)), 17)
    hint = f"{called} must be {written(right[i], digits)}, but yours is {written(answers[i], digits)}."
    return {"right": False, "hint": hint, "runs": True}


def plain(value):
    """Return nested lists without what is neither a list, a number nor a text."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if isinstance(value, int | float | str) else 0


def describe(error: BaseException, source: str, gap: str, body: str) -> dict:
    """Return Python's message, its line among the reader's, and what it means."""
    file, above = f"{gap}.py", parts_of(source, gap)[0].count("\n")
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
    text = str(error)
    if isinstance(error, SyntaxError):
        line = error.lineno if error.filename == file else line
        text = re.sub(r"(?<=on line )\d+", lambda found: str(max(1, int(found[0]) - above)), str(error.msg))
    message = f"{type(error).__name__}: {text}".removesuffix(": ")
    line = line and max(1, line - above)
    typed = completed(body).splitlines()[line - 1 : line] if line else []
    called = frames[-1].name if frames and frames[-1].filename == "microbert.py" else gap + ".py"
    where = f"{message}, in {called}: {''.join(typed).strip()}"
    hints = (each.hint for each in EXPLAINED for part in each.answers if re.search(part, where))
    hint = next(hints, "")
    if isinstance(error, NameError) and not hint:
        hint = f"`{error.name}` is not known here. Is a letter wrong, or is it used before it is set?"
    return {"line": line, "message": message, "hint": hint}


def written(value, digits: int = 4) -> str:
    """Write a value briefly: numbers with few digits, a large vocabulary, a model and functions by name."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(written(part, digits) for part in value) + "]"
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "vocab" if len(value) > 3 else "{" + ", ".join(map(repr, value)) + "}"
    return "model" if isinstance(value, Tiny) else "a function" if callable(value) else repr(value)[:60]


def guard(*owners: dict) -> Callable[[], bool]:
    """Return a function that returns whether all names of modules are what they are now, and the cases, too.

    It calls nothing that a reader's lines can replace.
    """
    before, show = [(names, {**names}) for names in owners], repr
    cases = show(GAPS)

    def is_intact() -> bool:
        for now, was in before:
            for name in was:
                if name != "_" and now.get(name) is not was[name]:  # `_` is what Python displayed last
                    return False
        return show(GAPS) == cases

    return is_intact
