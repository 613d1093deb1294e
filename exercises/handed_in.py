"""The process that runs one hand-in: it judges what the exercise cells answer, and notes what they try besides.

No sandbox. Python code that wants to deceive finds ways; those that are easy are refused and told, see `Watch` and
`Pristine`. What a library writes or sends from its own machine code is not seen.
"""

import contextlib
import importlib
import io
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from types import FunctionType, ModuleType

import torch
from IPython.core.interactiveshell import InteractiveShell

import exercises

OURS = ("exercises", "utils", "views")
LIBRARIES = ("builtins", "math", "numpy", "torch", "torch.nn", "torch.nn.functional", "torch.linalg")
MOST_WORDS = 1000  # letters of a verdict: an error's text may be a whole tensor
SAYS_CORRECT = re.compile(r"Exercise\s+[\d.]+:\s+correct")

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# events of Python's audit hooks, as its documentation lists them
CHANGES = {
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink"),
    *("os.truncate", "os.utime", "sqlite3.connect"),
}
PROGRAMS = {
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
    *("os.startfile", "os.kill", "os.killpg", "signal.pthread_kill"),
}
NETWORK = {
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
    *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"),
}


class Watch:
    """Refuses and notes, by an audit hook, which Python code cannot take away, what a hand-in has no need of.

    Always, unless it is allowed: the network. While the student's own code runs: to start or signal a process, to
    change a file outside of the folder, and to read another notebook, such as a neighbour's.
    """

    def __init__(self, folder: str, network: bool):
        self.folder, self.network = os.path.realpath(folder), network
        self.students, self.noted = False, []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        """Raise PermissionError for what is refused."""
        if event in NETWORK and not self.network:
            self.refuse("uses the network")
        if not self.students:
            return
        if event in PROGRAMS:
            self.refuse("starts or signals a process")
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                self.inside(path, "writes")
            elif str(path).endswith(".ipynb"):
                self.inside(path, "reads")
        elif event in CHANGES:
            for path in arguments:
                self.inside(path, "changes")

    def inside(self, path, does: str) -> None:
        """Refuse a path outside of the folder; a number is a file that is open already."""
        if isinstance(path, (str, bytes, os.PathLike)):
            place = os.path.realpath(os.fsdecode(path))
            if place != os.devnull and os.path.commonpath([place, self.folder]) != self.folder:
                self.refuse(f"{does} {os.fsdecode(path)}")

    def refuse(self, words: str) -> None:
        """Note it and raise PermissionError."""
        self.noted.append(words)
        raise PermissionError(f"refused while grading: it {words}")

    @contextlib.contextmanager
    def student(self) -> Iterator[list[str]]:
        """While the student's code runs; gives the list of what is noted."""
        self.students, self.noted = True, []
        try:
            yield self.noted
        finally:
            self.students = False


class Pristine:
    """What checks, reference code and torch hold before a hand-in has run, to see and undo what it alters."""

    def __init__(self):
        modules = [
            module
            for name, module in sys.modules.items()
            if name.partition(".")[0] in OURS or name in LIBRARIES
        ]
        values = [
            value
            for module in modules
            if is_ours(module)
            for name, value in vars(module).items()
            if not name.startswith("__")  # such as __builtins__
        ]
        classes = [value for value in values if isinstance(value, type) and is_ours(value)]
        layers = [value for value in vars(torch.nn).values() if isinstance(value, type)]
        owners = [*modules, *classes, *layers, torch.Tensor]
        methods = [value for owner in classes for value in vars(owner).values()]
        self.names = [(owner, dict(vars(owner))) for owner in dict.fromkeys(owners)]
        self.code = [
            (value, value.__code__) for value in (*values, *methods) if isinstance(value, FunctionType)
        ]
        self.tables = [(value, value.copy()) for value in values if isinstance(value, (dict, list))]

    def restore(self) -> list[str]:
        """Put everything back; the names of what had been altered, such as "exercises.CHECKS"."""
        altered = []
        for owner, before in self.names:
            for name in changed_names(owner, before):
                altered.append(f"{owner.__name__}.{name}")
                if name in before:
                    setattr(owner, name, before[name])
                else:
                    delattr(owner, name)
        for function, code in self.code:
            if function.__code__ is not code:
                altered.append(f"{function.__module__}.{function.__qualname__}")
                function.__code__ = code
        for table, before in self.tables:
            if not same_items(table, before):
                altered.append(self.name_of(table))
                table.clear()
                (table.update if isinstance(table, dict) else table.extend)(before)
        return altered

    def name_of(self, table: dict | list) -> str:
        """Where a table of the modules is found."""
        return next(
            f"{owner.__name__}.{name}"
            for owner, before in self.names
            for name, value in before.items()
            if value is table
        )


def is_ours(owner: ModuleType | type) -> bool:
    """Whether a module or class belongs to the series."""
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return module.partition(".")[0] in OURS


def changed_names(owner: ModuleType | type, before: dict) -> list[str]:
    """The names that mean something else than before; in what is ours new ones too, which would hide a built-in."""
    now, missing = vars(owner), object()
    names = [name for name, value in before.items() if now.get(name, missing) is not value]
    if is_ours(owner):
        names += [
            name for name in now if name not in before and not isinstance(now[name], ModuleType)
        ]  # a module of a package appears when it is imported
    return [name for name in names if not name.startswith("_")]


def same_items(table: dict | list, before: dict | list) -> bool:
    """Whether a dict or list holds the very objects that it held."""
    if isinstance(table, dict):
        table, before = [list(part.items()) for part in (table, before)]
        table, before = [[item for pair in part for item in pair] for part in (table, before)]
    return len(table) == len(before) and all(map(lambda x, y: x is y, table, before))


def work(
    steps: Sequence[tuple[str, str]],
    modules: Sequence[str],
    folder: str,
    network: bool,
    connection: Connection,
    secret: str,
) -> None:
    """Run the cells in a folder of their own, and tell the grader of each exercise; this process ends with it.

    A step is the number of an exercise, or "" for a cell of the original notebook, and its source. Each message is
    JSON and holds the secret.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader ends this process
    os.chdir(folder)
    tempfile.tempdir, sys.dont_write_bytecode = folder, True
    os.environ["IPYTHONDIR"] = folder
    for standard in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), standard)

    def say(**message) -> None:
        connection.send_bytes(json.dumps({"secret": secret} | message).encode())

    for module in modules:
        with contextlib.suppress(Exception):  # told where a cell imports it
            importlib.import_module(module)
    try:
        run_steps(steps, folder, network, say)
    except Exception as error:  # the grader's own mistake, or a hand-in has altered what it needs
        say(failed=f"{type(error).__name__}: {error}")
    os._exit(0)  # threads that the hand-in has started are not waited for


def run_steps(steps: Sequence[tuple[str, str]], folder: str, network: bool, say: Callable) -> None:
    """Run the cells, and say of each that it begins, and then how its exercise was answered."""
    checks = {number: exercises.find_check(number) for number, _ in steps if number}
    answers = {}
    exercises.check = lambda number, answer: answers.__setitem__(str(number), answer)
    shell, watch = InteractiveShell.instance(), Watch(folder, network)
    restore, decide = Pristine().restore, judge  # of these, too, a hand-in could alter the names
    for number, source in steps:
        say(begins=number)
        if not number:
            with caught_output():
                run = shell.run_cell(source, silent=True)
            if not run.success:
                say(broken=f"{type(error := error_of(run)).__name__}: {error}"[:MOST_WORDS])
            continue
        answers.clear()
        shell.user_ns["check"] = exercises.check
        with watch.student() as noted, caught_output() as printed:
            run = shell.run_cell(source, silent=True)
            altered = restore()
            words = decide(checks[number], answers, number, run)
            altered += restore()
        noted += [f"alters {name}" for name in altered]
        claims = bool(SAYS_CORRECT.search(printed.getvalue()))
        say(number=number, words=words[:MOST_WORDS], noted=list(dict.fromkeys(noted)), claims=claims)
    say(ends=True)


@contextlib.contextmanager
def caught_output() -> Iterator[io.StringIO]:
    """What is printed meanwhile."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield text


def error_of(run) -> BaseException:
    """What ended a cell."""
    return run.error_before_exec or run.error_in_exec


def judge(check_answer: Callable, answers: dict, number: str, run) -> str:
    """The words for an exercise whose cell has run: those of `check`, or why there is no answer to check."""
    if number in answers:
        try:
            return exercises.verdict(check_answer, answers[number])
        except BaseException as error:  # such as SystemExit, which an exercise may survive
            return exercises.told(error)
    if run.success:
        return f"not attempted: its cell does not call check({number!r}, …)."
    error = error_of(run)
    if isinstance(error, SyntaxError):
        return f"the cell does not parse: {error.msg} (line {error.lineno})."
    return exercises.told(error)
