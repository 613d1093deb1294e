"""Files that are written whole or not at all, and files that must be what they were."""

import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from safetensors import SafetensorError

Found = TypeVar("Found")
PATIENCE = 100  # times a hundredth of a second that a reader waits for whoever is saving
TURN = 60  # seconds in which whoever is saving must be done


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


def write_file(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write a file beside its place, then move it there, and return its path; OSError where that cannot be."""
    path = Path(path)
    with draft_beside(path) as place:
        draft = place / path.name
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(draft)
        draft.replace(path)
    return path


@contextmanager
def new_folder(folder: Path, names: Sequence[str], check: Callable[[Path], None]) -> Iterator[Path]:
    """A draft beside the folder, to be filled with files of these names: at the end it takes the folder's place.

    `check` refuses, before and after, a folder that must not be replaced. Whatever ends it, the old files or the new
    ones are there, but for an instant between two renamings. The folder in which this process stands keeps its place,
    and its files change theirs one by one, the first of `names` last, without which the others are no model.
    """
    with draft_beside(folder) as place:
        check(folder)
        draft, old = place / "new", place / "old"
        draft.mkdir()
        yield draft
        for path in draft.iterdir():
            flush(path)
        check(folder)
        try:
            move(folder, old, names)
            move(draft, folder, names[::-1])
        except BaseException:
            if (old / names[0]).exists() and not (folder / names[0]).exists():
                move(old, folder, names[::-1])
            raise


@contextmanager
def draft_beside(path: Path) -> Iterator[Path]:
    """An empty folder beside a path, for what will take its place, while nobody else has one; it goes at the end.

    So do those that killed processes left, but only once something is in its place again. An error of the system's gets
    the words that help.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock_beside(path), timeout=TURN):
            try:
                prefix = f".{path.name}.draft-"
                with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent) as place:
                    yield Path(place)
                if path.exists():
                    for left in path.parent.glob(glob.escape(prefix) + "?" * 8):
                        shutil.rmtree(left, ignore_errors=True)
            finally:
                with suppress(OSError):  # Windows removes it when it is released
                    lock_beside(path).unlink()
    except (OSError, SafetensorError) as error:
        remedy = "choose a place that you may write, on a disk with room for it"
        raise OSError(f"{path} could not be saved ({error}): {remedy}") from error


def lock_beside(path: Path) -> Path:
    """The file that is there while a path is being saved, and stays if that is killed, but locks nobody out then."""
    return path.with_name(f".{path.name}.lock")


def check_writable(path: Path) -> None:
    """OSError where nothing can be written beside a path, so that it could not be saved."""
    with draft_beside(path):
        pass


def move(source: Path, target: Path, names: Sequence[str]) -> None:
    """Rename a folder, if it is there; if this process stands in one of the two, move the files of these names."""
    if Path.cwd() in (source, target):
        target.mkdir(exist_ok=True)
        for name in names:
            with suppress(FileNotFoundError):
                (source / name).replace(target / name)
    elif source.exists():
        source.rename(target)


def read_whole(folder: Path, read: Callable[[], Found]) -> Found:
    """What `read` makes of a folder's files, all of one saving: it reads again if they were replaced meanwhile."""
    for _ in range(PATIENCE):
        before = state_of(folder)
        try:
            found = read()
        except (OSError, ValueError):
            if not lock_beside(folder).exists() and state_of(folder) == before:
                raise
        else:
            if state_of(folder) == before:
                return found
        time.sleep(0.01)
    problem = f"{folder} is being saved, or whoever saved it was killed"
    raise OSError(f"{problem}: read it again later, or save it again")


def state_of(folder: Path) -> list[tuple]:
    """Which folder this is and which files it has: another list once one of them was replaced, [] for no folder."""
    with suppress(OSError):
        paths = sorted([folder, *folder.iterdir()])
        return [(path.name, (found := path.stat()).st_ino, found.st_mtime_ns) for path in paths]
    return []


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that it is not renamed before it is there."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
