"""Point badges, setup cells and links at this copy's own repository, as its git remote names it."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# where a repository is named: pyproject.toml, badges, Binder's link, and setup cells in a notebook's JSON
NAMED = re.compile(
    r'(Repository = "https://github\.com/|colab\.research\.google\.com/github/|mybinder\.org/v2/gh/|REPOSITORY = \\")'
    r"([\w.-]+/[\w.-]+)"
)


def current_slug(root: Path = ROOT) -> str:
    """The owner/name that the project's files hold now; pyproject.toml is its home."""
    return NAMED.search((root / "pyproject.toml").read_text("utf-8"))[2]


def remote_slug(url: str) -> str:
    """owner/name of a GitHub remote, from its https or ssh address; ValueError for another address."""
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url.strip())
    if match is None:
        raise ValueError(f"the remote {url.strip()!r} is no GitHub repository: git remote set-url origin …")
    return match[1]


def elsewhere(slug: str, root: Path = ROOT) -> list[Path]:
    """The files that name another repository than this one; GitHub does not tell capitals from small letters."""
    notebooks = [*(root / "notebooks").glob("*.ipynb"), *(root / "notebooks" / "solutions").glob("*.ipynb")]
    files = [root / "pyproject.toml", root / "README.md", *sorted(notebooks)]
    found = {path: NAMED.findall(path.read_text("utf-8")) for path in files}
    return [path for path in files if any(name.lower() != slug.lower() for _, name in found[path])]


def rewrite(slug: str, root: Path = ROOT) -> list[Path]:
    """Put this repository's name wherever one stands, whichever it is; the files that changed."""
    changed = elsewhere(slug, root)
    for path in changed:
        path.write_text(NAMED.sub(rf"\g<1>{slug}", path.read_text("utf-8")), "utf-8")
    return changed


def check(slug: str, root: Path = ROOT) -> str | None:
    """What is wrong if badges or setup cells name another repository than this one."""
    names = ", ".join(path.relative_to(root).as_posix() for path in elsewhere(slug, root))
    if not names:
        return None
    return f"another repository than {slug} is named in {names}: run `make badges` in a clone of {slug}"


def rewrite_from_remote() -> str | None:
    """Rewrite from the remote `origin`; return what is wrong, if anything is."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    remote = subprocess.run(command, capture_output=True, text=True, check=False)
    if remote.returncode:
        return "there is no remote to take the repository's name from: git remote add origin …"
    try:
        slug = remote_slug(remote.stdout)
    except ValueError as error:
        return str(error)
    print(f"{slug}: {len(rewrite(slug))} files changed")
    return None


def main(arguments: list[str] | None = None) -> str | None:
    """Rewrite, or with --check only compare; return what is wrong, if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", metavar="OWNER/NAME", help="change nothing; fail where another one is named"
    )
    slug = parser.parse_args(arguments).check
    return rewrite_from_remote() if slug is None else check(slug)


if __name__ == "__main__":
    sys.exit(main())
