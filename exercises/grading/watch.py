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
import operator
import os
import re
import signal
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

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
LOOKS_BEHIND = {
    *("sys._getframe", "sys._current_frames", "sys._current_exceptions"),
    *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
}
FOLLOWS = {"sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"}
FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__"}
RUNS_TEXT = {"exec", "compile", "marshal.loads", "code.__new__"}
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
        if event in NETWORK and not self.network:
            self.refuse("uses the network")
        if not self.students or self.looking:
            return
        if event in PROGRAMS:
            self.refuse("starts or signals a process")
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                self.inside(path, "writes")
            elif str(path).endswith(".ipynb") or re.match(r"/proc/.*mem$", str(path)):
                self.inside(path, "reads")
        elif event in CHANGES:
            for path in arguments:
                self.inside(path, "changes")
        elif event in LOOKS_BEHIND or (event == "object.__getattr__" and arguments[-1] in FRAMES):
            if self.is_asked(ASK_FOR_FRAMES):
                self.refuse("looks behind the check")
        elif event in FOLLOWS:  # a new thread alone may, which gets the tracer below
            if self.caller().f_code.co_name != "_bootstrap_inner":
                self.refuse("looks behind the check")
        elif (event in RUNS_TEXT or event.startswith("ctypes.")) and self.is_asked():
            self.noted.append(f"uses {event}")

    def caller(self, depth: int = 2) -> FrameType:
        """The frame that has brought an event about."""
        self.looking = True  # or this would be an event, too
        frame = sys._getframe(depth)
        self.looking = False
        return frame

    def is_asked(self, through: tuple[str, ...] = ("nothing",)) -> bool:
        """Whether the student's own lines have brought an event about, directly or by one of these modules."""
        frame = self.caller(3)
        if frame.f_code.co_filename.endswith(through):
            frame = frame.f_back
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

    def trace(self, frame: FrameType, event: str, value) -> Callable | None:
        """Note a call, or what one of the student's functions returns."""
        if event != "call":
            if event == "return" and poses(value):
                self.noted.append(f"returns a {type(value).__name__} of its own, which is no plain tensor")
            return None
        code, caller = frame.f_code, frame.f_back
        file = code.co_filename
        if code.co_name == "<module>" and file.startswith("<ipython-input"):
            self.files.add(file)
        if file in self.files:
            arguments = list(frame.f_locals.values())
            if any(isinstance(argument, FrameType) for argument in arguments):
                self.refuse("looks behind the check")  # as a signal's handler
            if caller and caller.f_code.co_filename not in self.files:
                self.handed |= {part.__code__ for part in arguments if isinstance(part, FunctionType)}
            frame.f_trace_lines = False
            return self.trace
        by_student = caller is not None and caller.f_code.co_filename in self.files
        if code in self.answers:
            if by_student:
                self.noted.append(f"uses {self.answers[code]}, which it should write")
        elif file.startswith(HOMES):
            if not file.startswith(HERE) and self.is_borrowed(frame):
                self.noted.append(f"uses {module_of(code)}.{code.co_qualname.partition('.')[0]}")
        elif file in FROM_TEXT:
            if self.judging and not code.co_qualname.startswith(NO_STUDENTS):
                self.noted.append(f"is made from a text: {code.co_qualname}")
        elif by_student and code.co_name == "get_ipython":
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
            if not in_utils or "<locals>" in code.co_qualname:
                return False
            if not is_ours(first if isinstance(first, type) else type(first)):
                return True
            if code.co_name != "__init__":
                return False
        # perhaps called by way of a library; a check's own function may be a hook, which a library calls
        while in_utils and caller and not self.is_known(caller.f_code.co_filename):
            caller = caller.f_back
        answers = in_utils and caller is not None and caller.f_code is exercises.call.__code__
        return answers or (caller is not None and caller.f_code.co_filename in self.files)

    def is_known(self, file: str) -> bool:
        """Whether a file is the student's or ours, no library's."""
        return file.startswith((*HOMES, "<ipython-input"))

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


def module_of(code: CodeType) -> str:
    """The module of code of ours, such as "utils.attention"."""
    return ".".join(Path(code.co_filename).relative_to(ROOT).with_suffix("").parts)


def poses(value) -> bool:
    """Whether a value is of a class of the student's that can lie to a check: a tensor, or with an == of its own."""
    kind = type(value)
    if kind.__module__ != "__main__":
        return False
    lies = "__eq__" in vars(kind) and not hasattr(kind, "__dataclass_fields__")
    return isinstance(value, torch.Tensor) or lies or "__getattribute__" in vars(kind)


def with_bases(names: set[str]) -> set[str]:
    """The names, and those of the base classes of what they name in our modules."""
    kinds = [value for module in our_modules() for value in vars(module).values() if isinstance(value, type)]
    return names | {
        base.__name__ for kind in kinds if kind.__name__ in names for base in kind.__mro__ if is_ours(base)
    }


def our_modules() -> list[ModuleType]:
    """Those that are imported."""
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OURS]


def is_ours(owner: ModuleType | type) -> bool:
    """Whether a module or class belongs to the series."""
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return str(module).partition(".")[0] in OURS


class Kept:
    """What checks, reference code and torch hold before a hand-in has run, to tell what it alters."""

    def __init__(self):
        ours = our_modules()
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
                if not name.startswith("_"):
                    found[owner, name] = [value]
                if isinstance(value, FunctionType):
                    found[owner, name] = [value, value.__code__, value.__defaults__, value.__kwdefaults__]
                elif is_ours(owner) and isinstance(value, (dict, list)) and not name.startswith("_"):
                    found[owner, name] += [*value, *value.values()] if isinstance(value, dict) else value
        return found

    def altered(self) -> list[str]:
        """The names of what is no longer the same, such as "exercises.CHECKS"; in what is ours new ones count, too."""
        now = self.now()
        return [
            f"{owner.__name__}.{name}"
            for owner, name in self.before | now
            if not same(self.before.get((owner, name)), now.get((owner, name)), is_ours(owner))
        ]


def same(before: list | None, now: list | None, ours: bool) -> bool:
    """Whether a name means the very objects that it meant; libraries, and packages of ours, gain names by import."""
    if before is None:
        return not ours or isinstance(now[0], ModuleType)
    return now is not None and len(before) == len(now) and all(map(operator.is_, before, now))


def settings() -> tuple:
    """Of torch's settings those that an answer may change."""
    return torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()


def put_back(before: tuple) -> None:
    """Give torch these settings again."""
    torch.set_default_dtype(before[0])
    torch.set_grad_enabled(before[1])
    if torch.get_default_device() != before[2]:
        torch.set_default_device(before[2])


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
    steps: Sequence[tuple],
    modules: Sequence[str],
    folder: str,
    network: bool,
    connection: Connection,
    secret: str,
) -> None:
    """Run the cells in a folder of their own, and tell the grader of each; this process ends with it.

    A step is the number of an exercise, or "" for a cell of the original notebook, its sources, the names that are
    given above it, and those of them that are the answer. Each message is JSON and holds the secret.
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
    for number, sources, given, forbidden in steps:
        say(begins=number)
        if not number:
            with caught_output():
                run = shell.run_cell(sources[0], silent=True)
            broken = "" if run.success else f"{type(error := error_of(run)).__name__}: {error}"
            say(number="", broken=broken[:MOST_WORDS])
            continue
        answers.clear()
        shell.user_ns["check"] = exercises.check
        given = with_bases({"check", "solved", *given})
        written = {name: shell.user_ns.get(name) for name in forbidden}
        written = {value.__code__: name for name, value in written.items() if isinstance(value, FunctionType)}
        before = settings()
        with caught_output() as printed, watch.student(given, written) as noted:
            for source in sources:
                run = shell.run_cell(source, silent=True)
            restore(before)
            changes = altered()
            watch.judging = True
            words = decide(checks[number], answers, number, run)
        restore(before)
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
            return exercises.told(error)
    if run.success:
        return f"not attempted: its cell does not call check({number!r}, …)."
    error = error_of(run)
    if isinstance(error, SyntaxError):
        return f"the cell does not parse: {error.msg} (line {error.lineno})."
    return exercises.told(error)
