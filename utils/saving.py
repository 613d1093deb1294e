"""Files written whole or not at all: beside their places, flushed, then moved. For models, views and notebooks."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_native_id

from filelock import FileLock

PATIENCE = 60  # seconds for another process that saves into the same folder
LOCK, DRAFTS = ".saving.lock", ".saving"


def write_file(path: str | os.PathLike, content: str | bytes) -> Path:
    """Write one file and return its path; OSError, with the remedy, where that cannot be: an old file stays then."""
    path = Path(path)
    with complaining(path):
        own = f"{os.getpid()}.{get_native_id()}"  # another process or thread may write the same file
        write_all(path.parent, {path.name: content}, drafts=path.with_name(f".{path.name}.{own}.tmp"))
    return path


def write_folder(folder: str | os.PathLike, contents: Mapping[str, str | bytes | None]) -> Path:
    """Write files (name to content) into a folder and return it; None removes one, and other files stay.

    The first file tells that the folder is whole: it goes before the others change and comes after them, so that
    nobody reads a mixture, whatever ends the process. Two processes take turns. OSError as in `write_file`.
    """
    folder = Path(folder).expanduser().resolve()
    with complaining(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / LOCK, timeout=PATIENCE):
            try:
                write_all(folder, contents, folder / DRAFTS)
            finally:
                with suppress(OSError):  # Windows removes no open file; there the lock itself does
                    (folder / LOCK).unlink()
                    folder.rmdir()  # which only an empty folder lets happen
    return folder


def write_all(folder: Path, contents: Mapping[str, str | bytes | None], drafts: Path) -> None:
    """Write drafts into a folder of their own, over what a killed process left there, and move them to their places."""
    try:
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir()
        new = {name: content for name, content in contents.items() if content is not None}
        for name, content in new.items():
            with (drafts / name).open("wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        first, *others = new
        if others:
            for name in (first, *(contents.keys() - new.keys())):
                (folder / name).unlink(missing_ok=True)
        for name in (*others, first):
            (drafts / name).replace(folder / name)
    finally:
        shutil.rmtree(drafts, ignore_errors=True)


@contextmanager
def complaining(path: Path) -> Iterator[None]:
    """An OSError inside gets the words that help."""
    try:
        yield
    except OSError as error:
        remedy = "choose a place that you may write, on a disk with room for it"
        raise OSError(f"{path} could not be saved ({error}): {remedy}") from error
