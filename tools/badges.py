"""Point badges, setup cells and links at this copy's own repository, as its git remote names it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def current_slug(root: Path = ROOT) -> str:
    """The owner/name that the project's files hold now; pyproject.toml is its home."""
    return re.search(
        r'Repository = "https://github\.com/([^"]+)"', (root / "pyproject.toml").read_text("utf-8")
    )[1]


def remote_slug(url: str) -> str:
    """owner/name of a GitHub remote, from its https or ssh address; ValueError for another address."""
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url.strip())
    if match is None:
        raise ValueError(f"the remote {url.strip()!r} is no GitHub repository: git remote set-url origin …")
    return match[1]


def rewrite(old: str, new: str, root: Path = ROOT) -> list[Path]:
    """Replace the slug in every notebook, the README, Binder's links and pyproject.toml; the files that changed."""
    files = [root / "pyproject.toml", root / "README.md", *sorted((root / "notebooks").rglob("*.ipynb"))]
    changed = [path for path in files if old != new and old in path.read_text("utf-8")]
    for path in changed:
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    return changed


def main() -> str | None:
    """Rewrite from the remote `origin`; return what is wrong, if anything is."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    remote = subprocess.run(command, capture_output=True, text=True, check=False)
    if remote.returncode:
        return "there is no remote to take the repository's name from: git remote add origin …"
    try:
        new = remote_slug(remote.stdout)
    except ValueError as error:
        return str(error)
    print(f"{new}: {len(rewrite(current_slug(), new))} files changed")
    return None


if __name__ == "__main__":
    sys.exit(main())
