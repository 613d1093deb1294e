"""The project as a repository to clone, which a notebook alone in an empty folder takes for the one on GitHub."""

import shutil
import subprocess
from pathlib import Path

from tests.helpers import ROOT
from tools.badges import current_slug

LEFT_OUT = shutil.ignore_patterns(".*", "site", "build", "__pycache__")


def copy_project(folder: Path) -> Path:
    """The project as it stands, committed or not, without environments and what was built."""
    return Path(shutil.copytree(ROOT, folder, ignore=LEFT_OUT))


def publish(folder: Path) -> dict[str, str]:
    """Make `folder` a repository of the project; the variables with which git finds it at the public address."""
    copy_project(folder)
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for arguments in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "-m", "as it is"],
    ):
        subprocess.run(["git", "-C", folder, *arguments], check=True)
    return address(folder.as_uri())


def address(uri: str) -> dict[str, str]:
    """Variables with which git takes an address for the project's public one."""
    instead = f"https://github.com/{current_slug()}"
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{uri}.insteadOf",
        "GIT_CONFIG_VALUE_0": instead,
    }
