"""Files that are written whole or not at all, and files that must be what they were."""

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
from safetensors import SafetensorError

Found = TypeVar("Found")
PATIENCE = 100  # times a hundredth of a second that a reader waits for whoever is saving


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
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # another process may write the same file
    with saving(path):
        try:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
            flush(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    for left in left_by_killed(path):
        left.unlink(missing_ok=True)
    return path


@contextmanager
def new_folder(folder: Path, names: Sequence[str], check: Callable[[Path], None]) -> Iterator[Path]:
    """A draft beside the folder, to be filled with files of these names: at the end it takes the folder's place.

    `check` refuses, before and after, a folder that must not be replaced. Whatever ends it, the old files or the new
    ones are there, but for an instant between two renamings. The folder in which this process stands keeps its place,
    and its files change theirs one by one, the first of `names` last, without which the others are no model.
    """
    check(folder)
    with saving(folder):
        place = new_place(folder)
        draft, old = place / "new", place / "old"
        try:
            draft.mkdir()
            yield draft
            for path in draft.iterdir():
                flush(path)
            check(folder)
            if folder == Path.cwd():
                move(folder, old, names)
                move(draft, folder, names[::-1])
            else:
                swap(draft, folder, old, names)
        except BaseException:
            if (old / names[0]).exists() and not (folder / names[0]).exists():
                move(old, folder, names[::-1])
            raise
        finally:
            remove_place(place, names)
    for left in left_by_killed(folder, r"\w{8}"):
        remove_place(left, names)


def new_place(folder: Path) -> Path:
    """An empty folder beside this one, with a name that nobody has, and in it the number of the process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}.", dir=folder.parent))


def check_writable(folder: Path) -> None:
    """OSError where nothing can be written beside a folder, so that it could not be saved."""
    with saving(folder):
        new_place(folder).rmdir()


def swap(draft: Path, folder: Path, old: Path, names: Sequence[str]) -> None:
    """Put the draft in the folder's place; of several processes that do so at once, the last one's stays."""
    while True:
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            draft.rename(folder)
            return
        except OSError:
            if not folder.exists():
                raise
            remove_files(old, names)  # another process came between the two renamings


def move(source: Path, target: Path, names: Sequence[str]) -> None:
    """Move the files of these names that are there into a folder, in this order."""
    target.mkdir(exist_ok=True)
    for name in names:
        with suppress(FileNotFoundError):
            (source / name).replace(target / name)


def remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove the files of these names, and the folder if it holds nothing else."""
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


def remove_place(place: Path, names: Sequence[str]) -> None:
    """Remove a draft and what it replaced, and nothing but files of these names."""
    for part in (place / "new", place / "old", place):
        remove_files(part, names)


def drafts(path: Path, ending: str) -> Iterator[tuple[Path, bool]]:
    """The drafts beside a file or folder, and whether the process of each, whose number its name holds, is running."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d{{1,9}})\.{ending}")
    for other in path.parent.iterdir() if path.parent.is_dir() else ():
        if (match := pattern.fullmatch(other.name)) and not other.is_symlink():
            yield other, psutil.pid_exists(int(match[1]))


def left_by_killed(path: Path, ending: str = "tmp") -> list[Path]:
    """The drafts of a file or folder that processes left when they were killed."""
    return [draft for draft, running in drafts(path, ending) if not running]


def being_saved(folder: Path) -> bool:
    """Whether another process is saving this folder."""
    own = f".{folder.name}.{os.getpid()}."
    return any(running and not draft.name.startswith(own) for draft, running in drafts(folder, r"\w{8}"))


def read_whole(folder: Path, read: Callable[[], Found]) -> Found:
    """What `read` makes of a folder's files, all of one saving: it reads again if they were replaced meanwhile."""
    for attempt in range(1, PATIENCE + 1):
        before = state_of(folder)
        try:
            found = read()
        except (OSError, ValueError):
            settled = state_of(folder) == before and not being_saved(folder)
            if settled or attempt == PATIENCE:
                raise
        else:
            if state_of(folder) == before:
                return found
        time.sleep(0.01)
    raise OSError(f"{folder} was being saved whenever it was read: try again once that is over")


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


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """An error of the system's gets the words that help."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        remedy = "choose a place that you may write, on a disk with room for it"
        raise OSError(f"{path} could not be saved ({error}): {remedy}") from error
