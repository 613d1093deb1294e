"""Atomic writes, and integrity checks by SHA-256."""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from safetensors import SafetensorError

KINDS = {"a file": stat.S_ISREG, "a folder": stat.S_ISDIR, "a symbolic link": stat.S_ISLNK}
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)  # a folder with files cannot be renamed over


def check_sha256(folder: Path, hashes: Mapping[str, str]) -> None:
    """Refuse a folder in which a file is missing or has another SHA-256 than it should have."""
    for name, expected in hashes.items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing: reinstall its package")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            two = f"its SHA-256 is {found}, the original's is {expected}"
            raise ValueError(f"{path} was altered ({two}): reinstall its package")


def as_path(path: str | os.PathLike) -> Path:
    """Return a path with ~ expanded; TypeError for what is not a path, ValueError for an empty one."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"a path must be a string or a pathlib.Path, got {path!r:.80}")
    if not name or "\0" in name:
        raise ValueError(f"a path must be the name of a file or folder, got {name!r:.80}")
    return Path(os.path.expanduser(name))  # noqa: PTH111 - which does not fail for a user who is not there


def check_place(path: str | os.PathLike, kind: str) -> Path:
    """Return the absolute path of a place where there is nothing yet, or a file or folder; OSError for anything else.

    `kind` is "a file" or "a folder". A device, a pipe, a socket or a symbolic link is refused, also for root.
    """
    path = as_path(path)
    with explain_errors(path):
        absolute = Path(os.path.realpath(path))
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return absolute
    found = next((name for name, is_kind in KINDS.items() if is_kind(mode)), "a device, pipe or socket")
    if found == "a file" and os.path.ismount(absolute):  # as `docker run -v results.csv:/results.csv` makes it
        found = "a mount point"
    if found != kind:
        raise FileExistsError(f"{path} is {found}, not {kind}: choose another path")
    return absolute


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system into an OSError that names the path and a remedy."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        remedy = "choose a place that you may write, on a disk with room for it"
        raise OSError(f"{path} could not be saved ({error}): {remedy}") from error


def write_file(path: str | os.PathLike, content: str | bytes, *, dry_run: bool = False) -> Path:
    """Write a file atomically, and return its path; OSError where there is anything else than a file, or no room.

    `dry_run` tries everything but the last step, in which the new file replaces the old one.
    """
    place = check_place(path, "a file")
    with explain_errors(place), staging_dir(place.parent) as staging:
        draft = staging / "new"
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(draft)
        if not dry_run:
            draft.replace(place)
    return as_path(path)


@contextmanager
def atomic_folder(
    folder: Path, names: Sequence[str], find_problem: Callable[[Path], str], *, dry_run: bool = False
) -> Iterator[Path]:
    """Yield an empty folder, to be filled with files of these names: at the end it replaces `folder`.

    `find_problem` says why a folder's content must not be replaced, or "". The replacement is atomic except for the
    instant between two renames. A folder that was empty, which may be a mount point or the current folder, stays: the
    files move into it, the first of `names` last, without which the others are not a model. A killed process can leave
    a hidden folder, .saving-…, which may be deleted. `dry_run` tries all this, and leaves everything as it was.
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
    """Raise ValueError for a folder that must not be replaced, and for a mount point or the current folder in use."""
    seen = set()
    while problem := find_problem(folder):
        with suppress(FileNotFoundError):  # another program may be replacing it, so it gets a second look
            if (found := folder.stat().st_ino) in seen:
                raise ValueError(f"{folder} {problem}")
            seen.add(found)
    with suppress(FileNotFoundError):
        if files_in(folder) and (os.path.ismount(folder) or folder.samefile(".")):
            problem = "is a mount point or the current folder, and not empty"
            raise ValueError(f"{folder} {problem}: save into a new folder in it")


def replace_folder(folder: Path, draft: Path, find_problem: Callable[[Path], str], dry_run: bool) -> None:
    """Rename the old folder away and the draft to its name; a dry run, or an error, renames the old one back."""
    for number in count():
        old = draft.with_name(f"old {number}")
        try:
            with suppress(FileNotFoundError):
                folder.rename(old)
            if problem := find_problem(old):  # now that no other program can fill it
                raise ValueError(f"{folder} {problem}")
            if not dry_run:
                draft.rename(folder)
            return
        except OSError as error:
            if error.errno not in TAKEN:  # by another program that saves there, whose files are replaced in turn
                raise
        finally:
            if draft.exists() and not folder.exists():
                with suppress(OSError):
                    old.rename(folder)


def files_in(folder: Path) -> list[Path] | None:
    """Return what a folder holds, or None where there is none."""
    with suppress(FileNotFoundError):
        return [*folder.iterdir()]


@contextmanager
def staging_dir(parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent`, on the disk of what it will replace, and remove it at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".saving-", dir=parent) as place:
        (Path(place) / "first").mkdir()
        yield (Path(place) / "first").rename(Path(place) / "second")  # some mounts cannot rename, such as S3's


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that it is not renamed before its content is there."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
