"""Grade one hand-in in its own process: read the notebook, run its answers in the original, and check them."""

import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from IPython.core.interactiveshell import InteractiveShell

import exercises
from exercises import framework
from exercises.grading import cells

MAX_WORDS = 1000  # characters: the text of an error may be a large tensor
PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl
MAX_BYTES = 200_000_000  # the largest file that a hand-in may write


def work(original: Path, hand_in: Path, without: list[str], again: bool, results: Path) -> None:
    """Grade a hand-in without some exercises, in its own folder; `results` gets a line of JSON for each message.

    Where the system can fork, the student's code runs in a child of this process, because it may kill its parent.
    """
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C stays with the grader, and signals to its own group with the hand-in
    adopt_orphans()
    if sys.platform == "linux":
        child = os.fork()
        os.setpgid(child, child)
    if sys.platform == "linux" and child:
        os.waitpid(child, 0)
        while children := psutil.Process().children(recursive=True):
            end_all(children)
        os._exit(0)
    folder = results.with_name("work")
    folder.mkdir()
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as in a notebook, for what %%writefile writes
    tempfile.tempdir = os.environ["IPYTHONDIR"] = str(folder)
    for standard in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), standard)
    with contextlib.suppress(ImportError):  # Windows has none
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES))

    def send(*message) -> None:
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")

    try:
        send("begins", "")
        judge(original, hand_in, without, again, send)
        send("ends", "")
    except BaseException as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        send("ends", f"{kind}{error}"[:MAX_WORDS])
    os._exit(0)  # does not wait for threads that the hand-in has started


def adopt_orphans() -> None:
    """Become the parent of what a descendant starts and leaves behind, on Linux: `setsid` does not escape that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all(processes: Sequence[psutil.Process]) -> None:
    """Kill processes, with what has just been started in their groups, and wait until they are gone."""
    for each in processes:
        with contextlib.suppress(psutil.Error, OSError):
            if hasattr(os, "killpg") and (group := os.getpgid(each.pid)) != os.getpgrp():
                os.killpg(group, signal.SIGKILL)
            each.kill()
    psutil.wait_procs(processes, timeout=5)


def judge(original: Path, hand_in: Path, without: list[str], again: bool, send: Callable) -> None:
    """Run the original's cells with a student's answers in place, and send the verdict of each check.

    `again` is for the second, more detailed hint of each.
    """
    given, handed_in = cells.read_cells(original), cells.read_cells(hand_in)
    asked = {cell.number: cell for cell in given if cell.number}
    checked = [number for cell in handed_in for number in cells.CHECK.findall(cell.source)]
    if checked and not set(checked) & set(asked):
        raise ValueError(f"{hand_in.name} is another notebook: it checks exercise {checked[0]}, not {min(asked)}")
    found = {number: cells.find_answer(cell, handed_in) for number, cell in asked.items() if number not in without}
    answers = {number: cell for number, cell in found.items() if cell}
    for number in found.keys() - answers.keys():
        send("judged", number, f"not attempted: no cell calls check({number!r}, …).")
    shell, source, last = InteractiveShell.instance(), "", ""
    shell.enable_gui = lambda gui=None: None  # for %matplotlib
    verdicts = {}
    with exercises.collect_answers() as answered:
        for number, cell in cells.steps_to_run(given, handed_in, answers):
            send("begins", number)
            error = run_cell(shell, cell, answered)
            source, last = f"{source}\n{cell.python}" if number == last else cell.python, number
            if cell is answers.get(number):
                answer, looks = answered.get(number), cells.fingerprints(source, asked[number].source)
                reference = framework.reference_name(answer) if callable(answer) else ""
                verdicts[number] = check_words(number, answered, error, again)
                send("judged", number, verdicts[number][:MAX_WORDS], sorted(looks), reference)
            elif error and cell in given:
                send("remark", f"a cell of the original notebook raised {type(error).__name__}: {error}"[:MAX_WORDS])
        wrong = [number for number in asked if not verdicts.get(number, "").startswith(framework.CORRECT)]
        ours = {}
        for place, number in enumerate(wrong):
            if number not in answers:
                continue
            used = cells.names_used(answers[number], handed_in)
            earlier = {each: used & cells.names_checked(each, [asked[each], *handed_in]) for each in wrong[:place]}
            if any(earlier.values()):
                ours = ours or published_answers(original)
            earlier = {each: names for each, names in earlier.items() if names and each in ours}
            if earlier:
                send("begins", number)
                names = {name: ours[each] for each, found in earlier.items() for name in found}
                theirs = {name: shell.user_ns[name] for name in names if name in shell.user_ns}
                shell.user_ns.update(names)
                error = run_cell(shell, answers[number], answered)
                if check_words(number, answered, error).startswith(framework.CORRECT):
                    send("follows", number, list(earlier))
                shell.user_ns.update(theirs)


@framework.usual_settings()
def run_cell(shell: InteractiveShell, cell: cells.Cell, answered: dict) -> BaseException | None:
    """Run a cell in silence, with torch's usual settings, and return the cell's error."""
    answered.clear()
    shell.user_ns["check"] = exercises.check
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
        run = shell.run_cell(cell.source, silent=True)
    return run.error_before_exec or run.error_in_exec


def published_answers(original: Path) -> dict[str, Callable]:
    """Return the functions and classes that the published solutions check, by exercise; none in a student's copy."""
    solutions = cells.solution_cells(original)
    names = {"__name__": "__main__"}
    with exercises.collect_answers() as found:
        for cell in solutions[1:2] + [cell for cell in solutions if cell.number]:
            with contextlib.suppress(Exception):  # what other cells compute is not there
                exec(cell.python, names)
    return {number: answer for number, answer in found.items() if callable(answer)}


def check_words(number: str, answered: dict, error: BaseException | None, again: bool = False) -> str:
    """Return the verdict on an answer, with its second hint or that there is none, or why there is no verdict."""
    if number in answered:
        check, answer = exercises.find_check(number), answered[number]
        try:
            first = framework.verdict(check, answer)
            words = framework.verdict(check, answer, tries=1) if again else first
            return words + " There is no second hint." * (again and words == first != framework.CORRECT)
        except BaseException as raised:  # such as SystemExit
            return framework.describe_error(raised)
    if error is None:
        return f"not attempted: its cell does not call check({number!r}, …)."
    if isinstance(error, SyntaxError):
        return f"the cell does not parse: {error.msg} (line {error.lineno})."
    return framework.describe_error(error)
