"""Put this copy's own address, as its git remote names it, into badges, set-up cells, documents and pyproject.toml.

Until then they hold PLACEHOLDER, an account that nobody can register: a name on GitHub cannot begin with a hyphen.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "-this-copy-has-no-address-yet/run-make-badges"
SLUG = r"[\w.-]+/[\w.-]+"
# wherever an address stands: what is before owner/name, owner/name, what is between, branch or tag, what is behind
NAMED = re.compile(
    rf'(Repository = "https://github\.com/)({SLUG})(/tree/)([\w.-]+)(?=")'
    rf"|(colab\.research\.google\.com/github/)({SLUG})(/blob/)([\w.-]+)(?=/)"
    rf"|(mybinder\.org/v2/gh/)({SLUG})(/)([\w.-]+)(?=\?)"
    rf"|(git clone https://github\.com/)({SLUG})( --branch )([\w.-]+)(?= )"
    rf'|(address = \\"https://github\.com/)({SLUG})(/archive/)([\w.-]+)(?=\.zip\\")'  # in a notebook's JSON
)


class Address(NamedTuple):
    """A repository on GitHub, as owner/name, and the branch or tag that readers get."""

    slug: str
    ref: str = "main"


def found(path: Path) -> list[Address]:
    """The addresses that stand in a file."""
    groups = [
        [group for group in match.groups() if group] for match in NAMED.finditer(path.read_text("utf-8"))
    ]
    return [Address(slug, ref) for _, slug, _, ref in groups]


def current(root: Path = ROOT) -> Address:
    """The address that the project's files hold now; pyproject.toml is its home."""
    return found(root / "pyproject.toml")[0]


def remote_slug(url: str) -> str:
    """owner/name of a GitHub remote, from its https or ssh address; ValueError for another address."""
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url.strip())
    if match is None:
        raise ValueError(f"the remote {url.strip()!r} is no GitHub repository: git remote set-url origin …")
    return match[1]


def elsewhere(address: Address, root: Path = ROOT) -> list[Path]:
    """The files that hold another address than this; GitHub does not tell capitals from small letters in owner/name."""
    notebooks = [*(root / "notebooks").glob("*.ipynb"), *(root / "notebooks" / "solutions").glob("*.ipynb")]
    files = [root / "pyproject.toml", *sorted(root.glob("*.md")), *sorted(notebooks)]
    wanted = (address.slug.lower(), address.ref)
    return [path for path in files if any((slug.lower(), ref) != wanted for slug, ref in found(path))]


def rewrite(address: Address, root: Path = ROOT) -> list[Path]:
    """Put this address wherever one stands, whichever it is; the files that changed."""

    def renamed(match: re.Match) -> str:
        before, _, between, _ = (group for group in match.groups() if group)
        return f"{before}{address.slug}{between}{address.ref}"

    changed = elsewhere(address, root)
    for path in changed:
        path.write_text(NAMED.sub(renamed, path.read_text("utf-8")), "utf-8")
    return changed


def check(slug: str, root: Path = ROOT) -> str | None:
    """What is wrong if a file holds another address than this repository's; a copy may have none yet, if all say so."""
    ours = current(root)
    wanted = Address(PLACEHOLDER if ours.slug == PLACEHOLDER else slug, ours.ref)
    names = ", ".join(path.relative_to(root).as_posix() for path in elsewhere(wanted, root))
    if not names:
        return None
    stands = f"another address than {wanted.slug}, {wanted.ref}, stands in {names}"
    return f"{stands}: run `make badges` in a clone of {slug}"


def rewrite_from_remote(ref: str) -> str | None:
    """Rewrite from the remote `origin`; return what is wrong, if anything is."""
    if not re.fullmatch(r"[\w.-]+", ref):
        return f"the branch or tag {ref!r} cannot stand in a badge: choose one of letters, digits, dots and hyphens"
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    remote = subprocess.run(command, capture_output=True, text=True, check=False)
    if remote.returncode:
        return "there is no remote to take the repository's name from: git remote add origin …"
    try:
        address = Address(remote_slug(remote.stdout), ref)
    except ValueError as error:
        return str(error)
    print(f"{address.slug}, {ref}: {len(rewrite(address))} files changed")
    return None


def main(arguments: list[str] | None = None) -> str | None:
    """Rewrite, or with --check only compare; return what is wrong, if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ref", default="main", help="the branch or tag that readers get (default: main)")
    parser.add_argument(
        "--check", metavar="OWNER/NAME", help="change nothing; fail where another one is named"
    )
    options = parser.parse_args(arguments)
    return rewrite_from_remote(options.ref) if options.check is None else check(options.check)


if __name__ == "__main__":
    sys.exit(main())
