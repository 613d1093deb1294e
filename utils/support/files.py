"""Atomic writes, and integrity checks by SHA-256."""

import hashlib
import importlib.util
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from safetensors import SafetensorError

KINDS = {"a file": stat.S_ISREG, "a folder": stat.S_ISDIR, "a symbolic link": stat.S_ISLNK}
LOCK_TIMEOUT = 60  # seconds for another program to finish saving


def check_sha256(folder: Path, hashes: Mapping[str, str]) -> None:
    """Raise ValueError if a file is missing, or if its SHA-256 is not the expected one."""
    for name, expected in hashes.items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing: reinstall its package")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected:
            raise ValueError(
                f"{path} was altered (its SHA-256 is {digest}, the original's is {expected}): reinstall its package"
            )


def package_folder(package: str, version: str, content: str, hashes: Mapping[str, str]) -> Path:
    """Return the folder of an installed package of data, after checking its files; OSError unless it is installed.

    The package is not imported. `content` says in the error what is not installed, such as "the tweets are".
    """
    found = importlib.util.find_spec(package)
    if found is None:
        raise OSError(f"{content} not installed: pip install {package.replace('_', '-')}=={version}")
    folder = Path(found.origin).parent
    check_sha256(folder, hashes)
    return folder


def as_path(path: str | os.PathLike) -> Path:
    """Return a path with ~ expanded; TypeError if it is not a path, ValueError if it is empty."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a string or a pathlib.Path, got {path!r:.80}")
    if not name or "\0" in name:
        raise ValueError(f"a path must be the name of a file or folder, got {name!r:.80}")
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path fails for a missing user


def check_destination(path: str | os.PathLike, kind: str) -> Path:
    """Return the absolute path of a file or folder, which need not exist yet; OSError if it must not be replaced.

    `kind` is "a file" or "a folder". Devices, pipes, sockets, symbolic links, mount points, the current folder and
    write-protected files raise FileExistsError, even for root.
    """
    path = as_path(path)
    with explain_errors(path):
        # resolve the parent first: otherwise missing/../link would be resolved as link
        parent, name = (path, "") if path.name in ("", "..") else (path.parent, path.name)
        absolute = Path(os.path.realpath(parent), name)
        try:
            mode = absolute.lstat().st_mode
        except FileNotFoundError:
            return absolute
    problem = ""
    if not KINDS[kind](mode):
        actual = (name for name, is_kind in KINDS.items() if is_kind(mode))
        problem = f"is {next(actual, 'a device, pipe or socket')}, not {kind}"
    elif is_mount(absolute):  # such as by `docker run -v results.csv:/results.csv`
        problem = "is a mount point, which cannot be replaced"
    elif absolute == Path.cwd():
        problem = "is the current folder, which cannot be replaced"
    elif not (mode & 0o222 and os.access(absolute, os.W_OK)):
        problem = "is write-protected"
    if problem:
        raise FileExistsError(f"{path} {problem}: choose another path")
    return absolute


def is_mount(path: Path) -> bool:
    """Return whether a path is a mount point; Linux lists those on the same disk, which `os.path.ismount` misses."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return os.path.ismount(path)
    return str(path) in (re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split(" ")[4]) for line in lines)


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn system errors into an OSError that names the path and a remedy."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"{path} could not be saved ({error}): choose a writable folder on a disk with enough space"
        ) from error


def write_file(path: str | os.PathLike, content: str | bytes, *, dry_run: bool = False) -> Path:
    """Write a file atomically and return its path; OSError if it cannot be written, or if the path is not a file's.

    `dry_run` tries everything except the last step, which replaces the old file.
    """
    destination = check_destination(path, "a file")
    with replacement(destination, dry_run=dry_run) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
    return as_path(path)


@contextmanager
def replacement(
    path: Path, find_problem: Callable[[Path], str] = lambda folder: "", *, dry_run: bool = False
) -> Iterator[Path]:
    """Yield a path for a new file or folder, which replaces the one at `path` at the end, with its permissions.

    `find_problem` returns why a folder must not be replaced, or "". A file is replaced atomically, a folder except for
    the instant between two renames: see `staging_dir`. `dry_run` tries everything else, and changes nothing.
    """
    with explain_errors(path), staging_dir(path) as staging:
        new, old = staging / "new", staging / "old"
        raise_problem(path, find_problem(path))
        yield new
        for part in (new, *new.rglob("*")):
            if part.is_file():
                flush(part)
            if (earlier := path / part.relative_to(new)).exists():
                shutil.copymode(earlier, part)
        if dry_run:
            return
        if path.is_dir():
            path.rename(old)
            raise_problem(path, find_problem(old))  # no other program can add files to it now
        new.replace(path)


def raise_problem(path: Path, problem: str) -> None:
    """Raise ValueError unless the problem is ""."""
    if problem:
        raise ValueError(f"{path} {problem}")


@contextmanager
def staging_dir(path: Path) -> Iterator[Path]:
    """Yield a hidden folder next to `path`, so that it is on the same disk, and remove it at the end.

    A program that is killed can leave it, with an earlier model as `old` if that was being replaced. Its name depends
    on `path` alone, so the next program that saves there restores that model and removes the folder. Other programs
    that save there wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = staging_path(path)
    lock = staging.with_suffix(".lock")
    lock.touch()  # fails at once where FileLock would wait
    with FileLock(lock, timeout=LOCK_TIMEOUT):
        try:
            clear(staging, path)
            (staging / "first").mkdir(parents=True)
            (staging / "first").rename(staging / "second")  # fails early on mounts that cannot rename
            staging.chmod(0o700)
            yield staging
        finally:
            clear(staging, path)
            lock.unlink(missing_ok=True)


def staging_path(path: Path) -> Path:
    """Return the path of the hidden folder."""
    return path.with_name(f".saving-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}")


def clear(staging: Path, path: Path) -> None:
    """Remove a staging folder, after restoring what it replaced unless the replacement is complete."""
    if (staging / "old").exists() and not path.exists():
        (staging / "old").rename(path)
    if staging.exists():
        shutil.rmtree(staging)


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that it is not renamed before its content is written."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
