"""The process that runs one hand-in: it judges what the exercise cells answer, and notes what they try besides.

The student's code and the check share this process, so Python code that wants to deceive finds ways. Those that are
easy are refused or noted: see `Watch` and `Kept`. Where the kernel can, it shuts the process in: `shut_in`.
"""

import contextlib
import ctypes
import importlib
import io
import json
import multiprocessing
import os
import re
import signal
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, FunctionType, ModuleType

import torch
from IPython.core.interactiveshell import InteractiveShell

import exercises
from exercises.grading.cells import OURS
from exercises.grading.report import ALTERS

ROOT = Path(exercises.__file__).resolve().parents[1]
HOMES = tuple(str(ROOT / name) + os.sep for name in OURS)
UTILS, HERE = str(ROOT / "utils") + os.sep, str(Path(__file__).resolve().parent) + os.sep
LIBRARIES = ("builtins", "math", "numpy", "torch", "torch.nn", "torch.nn.functional", "torch.linalg")
MOST_WORDS = 1000  # letters of a verdict: an error's text may be a whole tensor
MOST_WRITTEN = 200_000_000  # bytes of a file
# Given on the page above an exercise, and yet its answer: tests/slow offers every name of every notebook to the checks
IS_THE_ANSWER = {"9.4": {"embed"}, "9.5": {"shares_of_cosine"}, "9.6": {"recall"}}
SAYS_CORRECT = re.compile(r"Exercise\s+[\d.]+:\s+correct")

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# events of Python's audit hooks, as its documentation lists them
NETWORK = re.compile(r"socket\.(connect|bind|sendto|sendmsg|getaddrinfo|gethostby.*)")
PROGRAMS = re.compile(
    r"subprocess\.Popen|os\.(system|exec|fork.*|posix_spawn|spawn|startfile|kill.*)|signal\.pthread_kill"
)
CHANGES = re.compile(r"os\.(remove|rename|rmdir|mkdir|chmod|chown|link|symlink|truncate|utime)|sqlite3\.connect")
LOOKS_BEHIND = re.compile(
    r"sys\.(_getframe|_current_.*|settrace|setprofile|monitoring\..*)|gc\.get_(objects|referrers|referents)"
)
RUNS_TEXT = re.compile(r"exec|compile|marshal\.loads|code\.__new__|ctypes\..*")
FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__"}
# what code that was made from a text has for a file, and what Python's own such code is called
FROM_TEXT = {"<string>", "<timeit-src>", "<console>", "<input>"}
NO_STUDENTS = ("__create_fn__", "<lambda>")  # of dataclasses and of named tuples
ASK_FOR_FRAMES = ("inspect.py", "traceback.py", "logging/__init__.py")  # and hand them on


class Watch:
    """Refuses and notes what a hand-in has no need of.

    An audit hook, which Python code cannot take away, refuses the network, unless it is allowed, and while the
    student's own code runs: to start or signal a process, to change a file outside of the folder, to read another
    notebook, such as a neighbour's, and to look at the frames of the check. A tracer sees each call: it notes code of
    the series that was not given above the exercise, and what poses as a tensor.
    """

    def __init__(self, folder: str, network: bool):
        self.folder, self.network = os.path.realpath(folder), network
        self.students, self.looking, self.noted = False, False, []
        self.files, self.given, self.answers, self.judging = set(), set(), {}, False
        self.handed = set()  # code of functions that the check gives to the answer
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        """Raise PermissionError for what is refused."""
        if not self.network and NETWORK.fullmatch(event):
            self.refuse("uses the network")
        if not self.students or self.looking:
            return
        if PROGRAMS.fullmatch(event):
            self.refuse("starts or signals a process")
        elif event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                self.inside(path, "writes")
            elif str(path).endswith(".ipynb") or re.match(r"/proc/.*mem$", str(path)):
                self.inside(path, "reads")
        elif CHANGES.fullmatch(event):
            for path in arguments:
                self.inside(path, "changes")
        elif (event == "object.__getattr__" and arguments[-1] in FRAMES) or LOOKS_BEHIND.fullmatch(event):
            if self.is_asked(ASK_FOR_FRAMES):
                self.refuse("looks behind the check")
        elif RUNS_TEXT.fullmatch(event) and self.is_asked():
            self.noted.append(f"uses {event}")

    def is_asked(self, through: tuple[str, ...] = ("nothing",)) -> bool:
        """Whether the student's own lines have brought an event about, directly or by one of these modules."""
        self.looking = True  # or this would be an event, too
        frame = sys._getframe(2)
        if frame.f_code.co_filename.endswith(through):
            frame = frame.f_back
        self.looking = False
        return self.is_students(frame)

    def is_students(self, frame: FrameType | None) -> bool:
        """Whether a frame runs lines of the student's cells."""
        return frame is not None and frame.f_code.co_filename in self.files

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

    def trace(self, frame: FrameType, event: str, value):
        """Note a call, or what one of the student's functions returns."""
        if event != "call":
            if event == "return" and poses(value):
                self.noted.append(f"returns a {type(value).__name__} of its own, which is no plain tensor")
            return self.trace
        code, caller = frame.f_code, frame.f_back
        file = code.co_filename
        if code.co_name == "<module>" and file.startswith("<ipython-input"):
            self.files.add(file)
        if file in self.files:
            arguments = list(frame.f_locals.values())
            if any(isinstance(argument, FrameType) for argument in arguments):
                self.refuse("looks behind the check")  # as a signal's handler
            if not self.is_students(caller):
                self.handed |= {part.__code__ for part in arguments if isinstance(part, FunctionType)}
            frame.f_trace_lines = False
            return self.trace
        if code in self.answers:
            if self.is_students(caller):
                self.noted.append(f"uses {self.answers[code]}, which it should write")
        elif file.startswith(HOMES):
            if not file.startswith(HERE) and self.is_borrowed(frame):
                module = ".".join(Path(file).relative_to(ROOT).with_suffix("").parts)
                self.noted.append(f"uses {module}.{code.co_qualname.partition('.')[0]}")
        elif file in FROM_TEXT:
            if self.judging and not code.co_qualname.startswith(NO_STUDENTS):
                self.noted.append(f"is made from a text: {code.co_qualname}")
        elif code.co_name == "get_ipython" and self.is_students(caller):
            self.noted.append("uses get_ipython")
        return None

    def is_borrowed(self, frame: FrameType) -> bool:
        """Whether code of ours runs, for the student's lines or as the answer, that is not given.

        A method is borrowed if it makes an instance for them, or runs on one that is not ours; others are given.
        """
        code, caller = frame.f_code, frame.f_back
        name = code.co_qualname.partition(".")[0]
        if name in self.given or name == "<module>" or code in self.handed:
            return False
        in_utils = code.co_filename.startswith(UTILS)
        if name != code.co_qualname:
            first = frame.f_locals.get(next(iter(code.co_varnames), ""))
            kinds = (first if isinstance(first, type) else type(first)).__mro__
            if not in_utils or "<locals>" in code.co_qualname or self.given & {kind.__name__ for kind in kinds}:
                return False
            if not is_ours(kinds[0]) or code.co_name != "__init__":
                return not is_ours(kinds[0])
        # perhaps called by way of a library; a check's own function may be a hook, which a library calls
        while in_utils and caller and not caller.f_code.co_filename.startswith((*HOMES, "<ipython-input")):
            caller = caller.f_back
        is_the_answer = in_utils and caller is not None and caller.f_code is exercises.call.__code__
        return is_the_answer or self.is_students(caller)

    @contextlib.contextmanager
    def student(self, given: set[str], answers: dict) -> Iterator[list[str]]:
        """While the student's code runs; gives the list of what is noted."""
        self.noted, self.given, self.answers, self.files, self.handed = [], given, answers, set(), set()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        self.students, self.judging = True, False
        try:
            yield self.noted
        finally:
            self.students = False
            sys.settrace(None)
            threading.settrace(None)


def poses(value) -> bool:
    """Whether a value is of a class of the student's that can lie to a check: a tensor, or with an == of its own."""
    kind = type(value)
    if kind.__module__ != "__main__":
        return False
    lies = "__eq__" in vars(kind) and not hasattr(kind, "__dataclass_fields__")
    return isinstance(value, torch.Tensor) or lies or "__getattribute__" in vars(kind)


def is_ours(owner: ModuleType | type) -> bool:
    """Whether a module or class belongs to the series."""
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return str(module).partition(".")[0] in OURS


class Kept:
    """What checks, reference code and torch hold before a hand-in has run, to tell what it alters."""

    def __init__(self):
        ours = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OURS]
        kinds = [value for module in ours for value in vars(module).values() if isinstance(value, type)]
        layers = [value for value in vars(torch.nn).values() if isinstance(value, type)]
        libraries = [sys.modules[name] for name in LIBRARIES if name in sys.modules]
        self.owners = dict.fromkeys([*ours, *filter(is_ours, kinds), *libraries, *layers, torch.Tensor])
        self.before = self.now()

    def now(self) -> dict[tuple, list]:
        """What each name of each owner means: the object, and of a function or table what it consists of."""
        found = {}
        for owner in self.owners:
            for name, value in list(vars(owner).items()):
                if isinstance(value, FunctionType):
                    found[owner, name] = [value, value.__code__, value.__defaults__, value.__kwdefaults__]
                elif not name.startswith("_"):
                    found[owner, name] = [value]
                    if is_ours(owner) and isinstance(value, (dict, list)):
                        found[owner, name] += [*value, *value.values()] if isinstance(value, dict) else value
        return found

    def altered(self) -> list[str]:
        """The names of what is no longer the same, such as "exercises.CHECKS"; in what is ours new ones count, too."""
        now, changed = self.now(), []
        for key in self.before | now:
            if key not in self.before:  # libraries, and packages of ours, gain names by import
                same = not is_ours(key[0]) or isinstance(now[key][0], ModuleType)
            else:
                parts = zip_longest(self.before[key], now.get(key, ()), fillvalue=self)
                same = all(before is after for before, after in parts)
            if not same:
                changed.append(f"{key[0].__name__}.{key[1]}")
        return changed


def put_back(dtype: torch.dtype, gradients: bool, device: torch.device) -> None:
    """Give torch its settings again, which an answer may have changed."""
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(gradients)
    if torch.get_default_device() != device:
        torch.set_default_device(device)


def landlock() -> int:
    """The version of the kernel's Landlock, with which a process can shut itself in; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(444, None, 0, 1))


def shut_in(folder: str, network: bool) -> None:
    """Take from this process, for good, what the kernel can take: to write elsewhere, run programs, use the network."""
    with contextlib.suppress(ImportError, ValueError):  # Windows has none
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    version = landlock()
    if not version:
        return
    system = ctypes.CDLL(None, use_errno=True)
    files = 2 ** (13 + (version >= 2) + (version >= 3)) - 1 & ~0b1100  # all rights, but those to read
    ways = struct.pack("=QQQ", files, 0 if network else 0b11, 0b11)  # TCP; signals, abstract sockets
    rules = system.syscall(444, ways, 8 if version < 4 else 16 if version < 6 else 24, 0)
    for place, allowed in ((folder, files), (os.devnull, files & 0b100000000000010)):
        descriptor = os.open(place, os.O_PATH)
        system.syscall(445, rules, 1, struct.pack("=Qi", allowed, descriptor), 0)
        os.close(descriptor)
    system.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    system.syscall(446, rules, 0)
    os.close(rules)


def work(
    steps: Sequence[tuple], modules: Sequence[str], folder: str, network: bool, connection: Connection, secret: str
) -> None:
    """Run the cells in a folder of their own, and tell the grader of each; this process ends with it.

    A step is the number of an exercise, or "" for a cell of the original notebook, its sources, and the names that
    are given above it. Each message is JSON and holds the secret.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader ends this process
    multiprocessing.current_process()._args = ()  # which hold the secret
    sys.gettrace = lambda: None  # it would give away the `Watch`
    os.chdir(folder)
    tempfile.tempdir, sys.dont_write_bytecode = folder, True
    os.environ["IPYTHONDIR"] = folder
    for standard in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), standard)
    shut_in(folder, network)

    def say(**message) -> None:
        connection.send_bytes(json.dumps({"secret": secret} | message).encode())

    for module in modules:
        with contextlib.suppress(Exception):  # told where a cell imports it
            importlib.import_module(module)
    try:
        run_steps(steps, folder, network, say)
        say(ends="")
    except Exception as error:  # the grader's own mistake, or a hand-in has altered what it needs
        say(ends=f"breaks the grader ({type(error).__name__}: {error})")
    os._exit(0)  # threads that the hand-in has started are not waited for


def run_steps(steps: Sequence[tuple], folder: str, network: bool, say: Callable) -> None:
    """Run the cells, and say of each that it begins, and what came of it."""
    checks = {number: exercises.find_check(number) for number, *_ in steps if number}
    answers = {}
    exercises.check = lambda number, answer: answers.__setitem__(str(number), answer)
    shell, watch, kept = InteractiveShell.instance(), Watch(folder, network), Kept()
    altered, decide, restore = kept.altered, judge, put_back  # of these, too, a hand-in could alter the names
    for number, sources, given in steps:
        say(begins=number)
        if not number:
            with caught_output():
                run = shell.run_cell(sources[0], silent=True)
            broken = "" if run.success else f"{type(error := error_of(run)).__name__}: {error}"
            say(number="", broken=broken[:MOST_WORDS])
            continue
        answers.clear()
        shell.user_ns["check"] = exercises.check
        to_write = {name: shell.user_ns.get(name) for name in IS_THE_ANSWER.get(number, ())}
        written = {part.__code__: name for name, part in to_write.items() if isinstance(part, FunctionType)}
        given = {"check", "solved", *given} - to_write.keys()
        settings = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()
        with caught_output() as printed, watch.student(given, written) as noted:
            for source in sources:
                run = shell.run_cell(source, silent=True)
            restore(*settings)
            changes = altered()
            watch.judging = True
            words = decide(checks[number], answers, number, run)
        restore(*settings)
        answer = answers.get(number)
        if getattr(answer, "__code__", None) in written:
            noted.append(f"uses {written[answer.__code__]}, which it should write")
        if poses(answer):
            noted.append(f"answers with a {type(answer).__name__} of its own")
        noted += [f"{ALTERS} {name}" for name in changes + altered()]
        claims = bool(SAYS_CORRECT.search(printed.getvalue()))
        say(number=number, words=words[:MOST_WORDS], noted=list(dict.fromkeys(noted)), claims=claims)


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
            return exercises.describe_error(error)
    if run.success:
        return f"not attempted: its cell does not call check({number!r}, …)."
    error = error_of(run)
    if isinstance(error, SyntaxError):
        return f"the cell does not parse: {error.msg} (line {error.lineno})."
    return exercises.describe_error(error)
