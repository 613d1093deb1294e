"""Installed packages of data, such as the embedded checkpoint, checked by SHA-256."""

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path


def package_folder(package: str, version: str, content: str, hashes: Mapping[str, str]) -> Path:
    """Return the folder of an installed package of data; OSError unless it is installed, ValueError for altered files.

    The package is not imported. `content` says in the error what is not installed, such as "the tweets are".
    """
    found = importlib.util.find_spec(package)
    if found is None:
        raise OSError(f"{content} not installed: pip install {package.replace('_', '-')}=={version}")
    folder = Path(found.origin).parent
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
    return folder
