"""Atomic writes: the old file or folder, or the new one, and never a part of one."""

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout
from safetensors import SafetensorError

KINDS = {"a file": stat.S_ISREG, "a folder": stat.S_ISDIR, "a symbolic link": stat.S_ISLNK}
LOCK_TIMEOUT = 60  # seconds for another program to finish saving
# what fsync answers if content is lost; it has many answers where there is no fsync, as on some network drives
CONTENT_LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def as_path(path: str | os.PathLike) -> Path:
    """Return a path with ~ expanded; TypeError if it is not a path, ValueError if no file can have this name."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a string or a pathlib.Path, got {path!r:.80}")
    with suppress(UnicodeEncodeError):  # half of a character
        encoded = os.fsencode(name)
        if encoded and b"\0" not in encoded and len(encoded) < 4096 and max(map(len, encoded.split(b"/"))) < 256:
            return Path(os.path.expanduser(name))  # noqa: PTH111 - Path fails for a missing user
    raise ValueError(f"a path must be the name of a file or folder, got {name!r:.80}")


def check_destination(path: str | os.PathLike, kind: str) -> Path:
    """Return the absolute path of a file or folder, which need not exist yet; OSError if it must not be replaced.

    `kind` is "a file" or "a folder". Devices, pipes, sockets, symbolic links, the current folder and write-protected
    files raise FileExistsError, even for root.
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
    actual = next((name for name, is_kind in KINDS.items() if is_kind(mode)), "a device, pipe or socket")
    if actual != kind:
        problem = f"is {actual}, not {kind}"
    elif absolute == Path.cwd():
        problem = "is the current folder, which cannot be replaced"
    elif mode & 0o222 and os.access(absolute, os.W_OK):
        return absolute
    else:
        problem = "is write-protected"
    raise FileExistsError(f"{path} {problem}: choose another path")


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
    with replacement(check_destination(path, "a file"), dry_run=dry_run) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
    return as_path(path)


@contextmanager
def replacement(
    path: Path, find_problem: Callable[[Path], str] = lambda folder: "", *, dry_run: bool = False
) -> Iterator[Path]:
    """Yield a path for a new file or folder, which replaces the one at `path` at the end, with its permissions.

    `find_problem` returns why a folder must not be replaced, or "". A file is replaced atomically, a folder except for
    the instant between two renames. What cannot be renamed is replaced file by file: see `swap`. `dry_run` tries
    everything else, and changes nothing. The new one is made in a hidden folder next to `path`, on the same disk. A
    program that is killed can leave it, with an earlier model as `old` if that was being replaced; the next program
    that saves there restores that model and removes the folder. Other programs that save there wait.
    """
    staging = staging_path(path)
    lock, new = staging.with_suffix(".wait"), staging / "new"
    with explain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()  # fails at once where a lock would wait
        with locked(lock, f"another program is saving there: if none is, delete {lock}*", LOCK_TIMEOUT):
            try:
                clear(staging, path)
                staging.mkdir(0o700)
                raise_problem(path, find_problem(path))
                yield new
                for part in (new, *new.rglob("*")):
                    if part.is_file():
                        flush(part)
                    if (earlier := path / part.relative_to(new)).exists():
                        copy_mode(earlier, part)
                if dry_run:  # what cannot be renamed must take new files
                    tempfile.TemporaryFile(dir=path if path.is_dir() else path.parent).close()
                else:
                    swap(new, path, staging / "old", find_problem)
            finally:
                with suppress(OSError):  # NFS keeps what a reader has open: the next program removes it
                    clear(staging, path)


def swap(new: Path, path: Path, old: Path, find_problem: Callable[[Path], str]) -> None:
    """Rename a folder to `old`, and the new one to `path`; or copy, if that fails.

    Mount points, folders from an image's lower layer and those of object stores cannot be renamed. The new one is
    then in a folder unsaved-… next to it, until its copy is complete; an error names it.
    """
    with suppress(OSError):
        if path.is_dir():
            path.rename(old)
            raise_problem(path, find_problem(old))  # no other program can add files to it now
        new.replace(path)
        return
    kept, is_new = Path(tempfile.mkdtemp(prefix="unsaved-", dir=path.parent), path.name), not path.exists()
    with suppress(OSError):
        new.rename(kept)
    if not kept.exists():  # nothing can be renamed there
        copy(new, kept)
    try:
        copy(kept, path)
    except OSError as error:
        if is_new:
            shutil.rmtree(path, ignore_errors=True)
        raise OSError(f"{error}; what was to be saved is in {kept}") from error
    shutil.rmtree(kept.parent)


def copy(source: Path, target: Path) -> None:
    """Copy a file, or the content of a folder in place of another's.

    The first file by name, such as config.json, is removed first and written last: without it no program takes a
    mixture for a model.
    """
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for part in sorted(target.iterdir()):
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        for part in sorted(source.iterdir(), reverse=True):
            copy(part, target / part.name)
    else:
        shutil.copyfile(source, target)
        flush(target)
    copy_mode(source, target)


def copy_mode(source: Path, target: Path) -> None:
    """Copy the permissions, on file systems that have some."""
    with suppress(OSError):
        shutil.copymode(source, target)


def raise_problem(path: Path, problem: str) -> None:
    """Raise ValueError unless the problem is ""."""
    if problem:
        raise ValueError(f"{path} {problem}")


def staging_path(path: Path) -> Path:
    """Return the path of the hidden folder."""
    return path.parent / f".saving-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"


def clear(staging: Path, path: Path) -> None:
    """Remove a staging folder, after restoring what it replaced unless the replacement is complete."""
    if (staging / "old").exists() and not path.exists():
        (staging / "old").rename(path)
    if staging.exists():
        shutil.rmtree(staging)


@contextmanager
def locked(file: Path, problem: str, timeout: float = 0) -> Iterator[None]:
    """Hold a lock on a file, which is removed at the end; OSError, with the problem, if another program holds it.

    Where the file system has no locks, as some of NFS, Lustre and FUSE, the existence of a file is the lock.
    """
    lock = FileLock(file, timeout) if has_locks(file.parent) else SoftFileLock(f"{file}-soft", timeout)
    try:
        lock.acquire()
    except Timeout as error:
        raise OSError(problem) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file
            file.unlink()
        lock.release()


def has_locks(folder: Path) -> bool:
    """Return whether files can be locked in a folder: some systems refuse it, or answer that each is locked already."""
    with suppress(ImportError):  # Windows has no fcntl, and locks everywhere
        import fcntl

        # a file without a name, of which a killed program leaves nothing
        with tempfile.TemporaryFile(dir=folder) as file, suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
    return True


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that it is not renamed before its content is written."""
    try:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in CONTENT_LOST:
            raise
