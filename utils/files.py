"""Files that are written whole or not at all, and files that must be what they were."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError


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
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    return path


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A draft beside the folder, to be written into: at the end it takes the folder's place, with all its files.

    Whatever ends it before, the old folder stays. Between two renamings, for an instant, it is called .NAME.old.
    """
    draft, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    with saving(folder):
        try:
            shutil.rmtree(draft, ignore_errors=True)  # which a killed process left
            draft.mkdir(parents=True)
            yield draft
            for path in draft.iterdir():
                flush(path)
            if folder.exists():
                shutil.rmtree(old, ignore_errors=True)
                folder.rename(old)
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if folder.exists():
                shutil.rmtree(old, ignore_errors=True)
            elif old.exists():
                old.rename(folder)


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
