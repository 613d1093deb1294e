"""The process that runs one hand-in: it judges what the exercise cells answer, and notes what they try besides.

The student's code and the check share this process, so Python code that wants to deceive finds ways. Those that are
easy are refused or noted: see `Watch`, `origins` and `Kept`. Where the kernel can, it shuts the process in: `shut_in`.
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
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, FunctionType, MethodType, ModuleType

import torch
from IPython.core.interactiveshell import InteractiveShell

import exercises
from exercises.grading.cells import FOR_EVERYONE, OURS

ROOT = Path(exercises.__file__).resolve().parents[1]
HOMES = tuple(str(ROOT / name) + os.sep for name in OURS)
HERE = str(Path(__file__).resolve().parent) + os.sep
LIBRARIES = ("builtins", "math", "numpy", "torch", "torch.nn", "torch.nn.functional", "torch.linalg")
MOST_WORDS = 1000  # letters of a verdict: an error's text may be a whole tensor
MOST_WRITTEN = 200_000_000  # bytes of a file
SAYS_CORRECT = re.compile(r"Exercise\s+[\d.]+:\s+correct")
FROM_TEXT = {
    "<string>",
    "<timeit-src>",
    "<console>",
    "<input>",
}  # what code that was made from a text has for a file

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
ASK_FOR_FRAMES = ("inspect.py", "traceback.py", "logging/__init__.py")  # and hand them on


class Watch:
    """Refuses and notes what a hand-in has no need of, by an audit hook, which Python code cannot take away.

    Always, unless it is allowed: the network. While the student's own code runs: to start or signal a process, to
    change a file outside of the folder, to read another notebook, such as a neighbour's, and to look at the frames of
    the check. A profiler notes which code of the series is called that was not given above the exercise.
    """

    def __init__(self, folder: str, network: bool):
        self.folder, self.network = os.path.realpath(folder), network
        self.students, self.looking, self.noted = False, False, []
        self.files, self.given, self.answers, self.handed = set(FROM_TEXT), set(), {}, set()
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
            if self.asks(2):
                self.refuse("looks behind the check")
        elif event in FOLLOWS:  # a new thread alone may, which gets the profiler below
            if self.caller().f_code.co_name != "_bootstrap_inner":
                self.refuse("looks behind the check")
        elif (event in RUNS_TEXT or event.startswith("ctypes.")) and self.asks(1):
            self.noted.append(f"uses {event}")

    def caller(self, depth: int = 2) -> FrameType:
        """The frame that has brought an event about."""
        self.looking = True  # or this would be an event, too
        frame = sys._getframe(depth)
        self.looking = False
        return frame

    def asks(self, depth: int) -> bool:
        """Whether the student's own lines have brought an event about, directly or by a module that hands frames on."""
        frame = self.caller(3)
        if depth == 2 and frame.f_code.co_filename.endswith(ASK_FOR_FRAMES):
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

    def profile(self, frame: FrameType, event: str, value) -> None:
        """Note a call of what is not given, and what is returned that only poses as a tensor."""
        code = frame.f_code
        file = code.co_filename
        if event == "call":
            if code in self.answers or (file.startswith(HOMES) and not file.startswith(HERE)):
                self.called(frame)
            elif file.startswith("<ipython-input"):
                if code.co_name == "<module>":
                    self.files.add(file)
                arguments = list(frame.f_locals.values())
                if any(isinstance(argument, FrameType) for argument in arguments):
                    self.refuse("looks behind the check")  # as a signal's handler
                if (
                    frame.f_back and frame.f_back.f_code.co_filename not in self.files
                ):  # the check hands them over
                    self.handed |= {part.__code__ for part in arguments if isinstance(part, FunctionType)}
        elif event == "return" and file in self.files and poses(value):
            self.noted.append(f"returns a {type(value).__name__} of its own, which is no plain tensor")

    def called(self, frame: FrameType) -> None:
        """Note a call from the student's lines of a function, or a class, that is not given or is the answer."""
        code, caller = frame.f_code, frame.f_back
        if code in self.answers:
            if caller.f_code.co_filename in self.files:
                self.noted.append(f"uses {self.answers[code]}, which it should write")
            return
        name = code.co_qualname.partition(".")[0]
        if name in self.given or name == "<module>" or code in self.handed:
            return
        if name == code.co_qualname:
            # a function, perhaps called by way of a library; a check's own may be a hook, which a library calls
            while file_of("utils", code) and caller and not self.is_known(caller.f_code.co_filename):
                caller = caller.f_back
        elif not file_of("utils", code) or not self.is_made_by_hand(frame):
            return
        if caller and caller.f_code.co_filename in self.files:
            self.noted.append(f"uses {module_of(code)}.{name}")

    def is_known(self, file: str) -> bool:
        """Whether a file is the student's or ours, no library's."""
        return file in self.files or file.startswith(HOMES) or file.startswith("<ipython-input")

    def is_made_by_hand(self, frame: FrameType) -> bool:
        """Whether a method makes an instance, or is called on one that is not ours: other instances are given."""
        first = frame.f_locals.get(next(iter(frame.f_code.co_varnames), ""))
        return frame.f_code.co_name == "__init__" or not is_ours(
            first if isinstance(first, type) else type(first)
        )

    @contextlib.contextmanager
    def student(self, given: set[str], answers: dict) -> Iterator[list[str]]:
        """While the student's code runs; gives the list of what is noted."""
        self.noted, self.given, self.answers, self.files = [], given, answers, set(FROM_TEXT)
        self.handed = set()
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        self.students = True
        try:
            yield self.noted
        finally:
            self.students = False
            sys.setprofile(None)
            threading.setprofile(None)


def file_of(home: str, code) -> bool:
    """Whether code stands in a folder of ours."""
    return code.co_filename.startswith(str(ROOT / home) + os.sep)


def module_of(code) -> str:
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


def origins(answer, files: set[str], given: set[str], answers: dict) -> list[str]:
    """What of the series an answer holds that was not given: itself, a base or method, and what these name.

    It follows what stands in the student's own cells, `files`; of a library it looks at nothing.
    """
    ours = {
        id(value): f"{value.__module__}.{name}"
        for module in our_modules()
        for name, value in vars(module).items()
        if isinstance(value, type) and is_ours(value)
    }
    found, seen, waiting = [], {}, [answer]
    while waiting and len(seen) < 10_000:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # kept, so that the number stays its own
        if isinstance(value, ModuleType):
            if is_ours(value) and value.__name__ not in given and value is not exercises:
                found.append(f"uses {value.__name__}")
        elif isinstance(value, FunctionType):
            code = value.__code__
            if code in answers:
                found.append(f"uses {answers[code]}, which it should write")
            elif code.co_filename.startswith(HOMES):
                if code.co_qualname.partition(".")[0] not in given and not code.co_filename.startswith(HERE):
                    found.append(f"uses {module_of(code)}.{code.co_qualname}")
            elif code.co_filename in files:
                if code.co_filename in FROM_TEXT and not code.co_qualname.startswith(
                    ("__create_fn__", "<lambda>")
                ):
                    found.append(f"is made from a text: {code.co_qualname}")
                waiting += parts_of(value)
        elif id(value) in ours:
            if ours[id(value)].rpartition(".")[2] not in given:
                found.append(f"uses {ours[id(value)]}")
        elif isinstance(value, type):
            methods = [part.__code__ for part in vars(value).values() if isinstance(part, FunctionType)]
            students = value.__module__ == "__main__" or any(code.co_filename in files for code in methods)
            if students or any(id(base) in ours for base in value.__mro__):
                waiting += [*value.__bases__, *vars(value).values()]
        elif isinstance(value, (tuple, list, set)):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, partial):
            waiting += [value.func, value.args, value.keywords]
        elif isinstance(value, (MethodType, staticmethod, classmethod)):
            waiting += [value.__func__, getattr(value, "__self__", None)]
        elif isinstance(value, property):
            waiting += [value.fget]
        elif type(value).__module__ == "__main__" or callable(value):
            waiting += [type(value), getattr(value, "__wrapped__", None), getattr(value, "__dict__", None)]
    return found


def parts_of(function: FunctionType) -> list:
    """What a function closes over, takes by default, carries, and takes from its cell by name."""
    parts = [function.__defaults__, function.__kwdefaults__, vars(function)]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not yet bound
            parts.append(cell.cell_contents)
    codes = [function.__code__]
    for code in codes:
        codes += [inner for inner in code.co_consts if hasattr(inner, "co_names")]
        parts += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return parts


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
        modules = [*our_modules(), *(sys.modules[name] for name in LIBRARIES if name in sys.modules)]
        values = [
            (f"{module.__name__}.{name}", value)
            for module in our_modules()
            for name, value in vars(module).items()
            if not name.startswith("__")  # such as __builtins__
        ]
        kinds = [value for _, value in values if isinstance(value, type) and is_ours(value)]
        layers = [value for value in vars(torch.nn).values() if isinstance(value, type)]
        methods = [(kind.__name__, value) for kind in kinds for value in vars(kind).values()]
        self.owners = [
            (owner, dict(vars(owner))) for owner in dict.fromkeys([*modules, *kinds, *layers, torch.Tensor])
        ]
        self.functions = [
            (name, value, body(value))
            for name, value in (*values, *methods)
            if isinstance(value, FunctionType)
        ]
        self.tables = [
            (name, value, value.copy()) for name, value in values if isinstance(value, (dict, list))
        ]

    def altered(self) -> list[str]:
        """The names of what is no longer the same, such as "exercises.CHECKS"."""
        found = [
            f"{owner.__name__}.{name}" for owner, before in self.owners for name in changed(owner, before)
        ]
        found += [name for name, value, before in self.functions if body(value) != before]
        return found + [name for name, table, before in self.tables if not same_items(table, before)]


def body(function: FunctionType) -> tuple:
    """What a function does: its code, and the identity of its defaults."""
    return function.__code__, id(function.__defaults__), id(function.__kwdefaults__)


def changed(owner: ModuleType | type, before: dict) -> list[str]:
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
        table, before = [[*part.keys(), *part.values()] for part in (table, before)]
    return len(table) == len(before) and all(map(lambda x, y: x is y, table, before))


@contextlib.contextmanager
def settings() -> Iterator[Callable]:
    """Gives a function that puts torch's settings, which an answer may change, back to what they are now."""
    dtype, gradients, device = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()

    def put_back() -> None:
        if torch.get_default_dtype() != dtype:
            torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        if torch.get_default_device() != device:
            torch.set_default_device(device)

    yield put_back
    put_back()


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
    """Run the cells in a folder of their own, and tell the grader of each exercise; this process ends with it.

    A step is the number of an exercise, or "" for a cell of the original notebook, its sources, the names that are
    given above it, and those of them that are the answer. Each message is JSON and holds the secret.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader ends this process
    multiprocessing.current_process()._args = ()  # which hold the secret
    sys.getprofile = lambda: None  # it would give away the `Watch`
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
    except Exception as error:  # the grader's own mistake, or a hand-in has altered what it needs
        say(failed=f"{type(error).__name__}: {error}")
    os._exit(0)  # threads that the hand-in has started are not waited for


def run_steps(steps: Sequence[tuple], folder: str, network: bool, say: Callable) -> None:
    """Run the cells, and say of each that it begins, and then how it was answered; one that alters ends it."""
    checks = {number: exercises.find_check(number) for number, *_ in steps if number}
    answers = {}
    exercises.check = lambda number, answer: answers.__setitem__(str(number), answer)
    shell, watch, kept = InteractiveShell.instance(), Watch(folder, network), Kept()
    altered, decide, look = kept.altered, judge, origins  # of these, too, a hand-in could alter the names
    for number, sources, given, forbidden in steps:
        say(begins=number)
        if not number:
            with caught_output():
                run = shell.run_cell(sources[0], silent=True)
            if not run.success:
                say(broken=f"{type(error := error_of(run)).__name__}: {error}"[:MOST_WORDS])
            continue
        answers.clear()
        shell.user_ns["check"] = exercises.check
        given = with_bases(set(given)) | {name.rpartition(".")[2] for name in FOR_EVERYONE}
        written = {name: shell.user_ns.get(name) for name in forbidden}
        written = {value.__code__: name for name, value in written.items() if isinstance(value, FunctionType)}
        with settings() as put_back, caught_output() as printed, watch.student(given, written) as noted:
            for source in sources:
                run = shell.run_cell(source, silent=True)
            put_back()
            changes = altered()
            words = decide(checks[number], answers, number, run)
        changes += altered()
        answer = answers.get(number)
        noted += look(answer, watch.files, given, written)
        if poses(answer):
            noted.append(f"answers with a {type(answer).__name__} of its own")
        noted += [f"alters {name}" for name in changes]
        claims = bool(SAYS_CORRECT.search(printed.getvalue()))
        say(number=number, words=words[:MOST_WORDS], noted=list(dict.fromkeys(noted)), claims=claims)
        if changes:
            say(spoilt=number)  # those after it are run in a process of their own
            return
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
