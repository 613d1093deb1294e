"""Atomic writes, and integrity checks by SHA-256."""

import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from safetensors import SafetensorError

KINDS = {"a file": stat.S_ISREG, "a folder": stat.S_ISDIR, "a symbolic link": stat.S_ISLNK}
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)  # errors of renaming to a folder that contains files


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


def as_path(path: str | os.PathLike) -> Path:
    """Return a path with ~ expanded; TypeError if it is not a path, ValueError if it is empty."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a string or a pathlib.Path, got {path!r:.80}")
    if not name or "\0" in name:
        raise ValueError(f"a path must be the name of a file or folder, got {name!r:.80}")
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path fails for a missing user


def check_destination(path: str | os.PathLike, kind: str) -> Path:
    """Return the absolute path of a file or folder, which need not exist yet; OSError for anything else.

    `kind` is "a file" or "a folder". Devices, pipes, sockets and symbolic links raise, even for root.
    """
    path = as_path(path)
    with explain_errors(path):
        # resolve the parent first: otherwise missing/../link would be resolved as link
        parent, name = (path, "") if path.name == ".." else (path.parent, path.name)
        absolute = Path(os.path.realpath(parent), name)
        try:
            mode = absolute.lstat().st_mode
        except FileNotFoundError:
            return absolute
    actual = next((name for name, is_kind in KINDS.items() if is_kind(mode)), "a device, pipe or socket")
    if actual == "a file" and is_mount(absolute):  # such as by `docker run -v results.csv:/results.csv`
        actual = "a mount point"
    if actual != kind:
        raise FileExistsError(f"{path} is {actual}, not {kind}: choose another path")
    return absolute


def is_mount(path: Path) -> bool:
    """Return whether a path is a mount point; Linux lists those on the same disk, which `os.path.ismount` misses."""
    with suppress(OSError):
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
        mounts = [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split(" ")[4]) for line in lines]
        return str(path) in mounts
    return os.path.ismount(path)


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
    with explain_errors(destination), staging_dir(destination.parent) as staging:
        draft = staging / "new"
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(draft)
        if not dry_run:
            draft.replace(destination)
    return as_path(path)


@contextmanager
def atomic_folder(
    folder: Path, names: Sequence[str], find_problem: Callable[[Path], str], *, dry_run: bool = False
) -> Iterator[Path]:
    """Yield an empty folder for files of these names, which replaces `folder` at the end.

    `find_problem` returns why a folder must not be replaced, or "". The replacement is atomic except for the instant
    between two renames. An empty folder, which may be a mount point or the current folder, is not replaced: the files
    move into it, `names[0]` last, so that a partial folder is never mistaken for a model. A killed process can leave
    a hidden folder, .saving-…, which can be deleted. `dry_run` tries all this, and leaves everything unchanged.
    """
    check_content(folder, find_problem)
    with explain_errors(folder):
        stays = files_in(folder) == []
        with staging_dir(folder if stays else folder.parent) as staging:
            if stays and files_in(folder) != [staging.parent]:
                raise OSError("another program is saving there")
            draft = staging / "new"
            draft.mkdir()
            yield draft
            for path in draft.iterdir():
                flush(path)
            if not stays:
                replace_folder(folder, draft, find_problem, dry_run)
            elif not dry_run:
                for name in reversed(names):
                    with suppress(FileNotFoundError):
                        (draft / name).rename(folder / name)


def check_content(folder: Path, find_problem: Callable[[Path], str]) -> None:
    """Raise ValueError for a folder that must not be replaced, such as a mount point or the current folder in use."""
    seen = set()
    while problem := find_problem(folder):
        with suppress(FileNotFoundError):  # another program may be replacing it, so look again
            if (inode := folder.stat().st_ino) in seen:
                raise ValueError(f"{folder} {problem}")
            seen.add(inode)
    with suppress(FileNotFoundError):
        if files_in(folder) and (is_mount(folder) or folder.samefile(".")):
            raise ValueError(
                f"{folder} is a mount point or the current folder, and not empty: save into a new folder in it"
            )


def replace_folder(folder: Path, draft: Path, find_problem: Callable[[Path], str], dry_run: bool) -> None:
    """Replace a folder with the draft by two renames; a dry run, or an error, undoes the first one."""
    for number in count():
        old = draft.with_name(f"old {number}")
        try:
            with suppress(FileNotFoundError):
                folder.rename(old)
            if problem := find_problem(old):  # no other program can add files to it now
                raise ValueError(f"{folder} {problem}")
            if not dry_run:
                draft.rename(folder)
            return
        except OSError as error:
            if error.errno not in TAKEN:  # another program saved here meanwhile: replace its files
                raise
        finally:
            if draft.exists() and not folder.exists():
                with suppress(OSError):
                    old.rename(folder)


def files_in(folder: Path) -> list[Path] | None:
    """Return the content of a folder, or None if it does not exist."""
    with suppress(FileNotFoundError):
        return [*folder.iterdir()]


@contextmanager
def staging_dir(parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent`, so that it is on the same disk, and remove it at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".saving-", dir=parent) as folder:
        (Path(folder) / "first").mkdir()
        yield (Path(folder) / "first").rename(Path(folder) / "second")  # fails early on mounts that cannot rename


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that it is not renamed before its content is written."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
