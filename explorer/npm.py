"""Fetch npm packages for pages and tests that run in a browser, once, and verify their published hashes."""

import base64
import shutil
import subprocess
import tarfile
from hashlib import sha512
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

INSTALL_NPM = (
    "on Debian or Ubuntu, `sudo apt install npm`; on a Mac, `brew install node`; on Windows, `winget install "
    "OpenJS.NodeJS`; then run the command again"
)


class Package(NamedTuple):
    """An npm package with its version and the SHA-512 that the registry publishes."""

    name: str
    version: str
    integrity: str


def fetch(package: Package, folder: Path) -> Path:
    """Return the package's archive from the folder, downloading it from npm's registry on first use.

    FileNotFoundError without npm, OSError if npm cannot download the package, ValueError if its hash is wrong.
    """
    name = package.name.removeprefix("@").replace("/", "-")  # as npm names the file
    path = folder / f"{name}-{package.version}.tgz"
    if not path.exists():
        download(package, folder)
    if digest(path.read_bytes()) != package.integrity:
        raise ValueError(f"{path} is not {package.name} {package.version} as published: delete it and try again")
    return path


def download(package: Package, folder: Path) -> None:
    """Let npm write the package's archive into the folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError(f"npm is not installed: {INSTALL_NPM}")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as ours:  # another process may fetch the same package
        command = [npm, "pack", f"{package.name}@{package.version}", "--silent", "--pack-destination", ours]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ours)
        if done.returncode:
            reason = done.stderr.strip().partition("\n")[0] or "no reason given"
            raise OSError(f"npm cannot download {package.name} {package.version} ({reason})")
        for file in Path(ours).iterdir():
            file.replace(folder / file.name)


def digest(content: bytes) -> str:
    """Return the SHA-512 of a file as npm's registries write it."""
    return base64.b64encode(sha512(content).digest()).decode()


def read_member(tarball: Path, name: str) -> bytes:
    """Return a file of a package."""
    with tarfile.open(tarball) as archive:
        return archive.extractfile(f"package/{name}").read()
