"""Put this copy's own address, as its git remote names it, into badges, set-up cells, documents and pyproject.toml.

A copy without a remote has no address: then all of these are left away, and nothing else changes.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SLUG, REF = r"[\w.-]+/[\w.-]+", r"[\w.-]+"
HOME = "pyproject.toml"
COLAB = "https://colab.research.google.com/github/{slug}/blob/{ref}/{path}"
# What stands before an address, what is written with one, and what stands behind: once in each file. A notebook is
# JSON, in which a line's end is \n and a quote \".
SET_UP = (r'environ\.get\(\\"SERIES\\", \\"', "https://github.com/{slug}/archive/{ref}.zip", r'(?=\\"\))')
NOTEBOOK = [
    (r"Read \d+ minutes, with exercises \d+", f" · [![Open in Colab](images/colab.svg)]({COLAB})", r'(?=\\n|")'),
    SET_UP,
]
SOLUTIONS = [
    (
        r'"# \d\d · [^"]*: solutions\\n",\n    "\\n",\n    "',
        f"[![Open in Colab](../images/colab.svg)]({COLAB}) · ",
        r"(?=\w)",
    ),
    SET_UP,
]
PLACES = {
    HOME: [
        (
            r"\]\n\n",
            '[project.urls]\nRepository = "https://github.com/{slug}/tree/{ref}"\n\n',
            r"(?=\[tool.setuptools\]\n)",
        )
    ],
    "CITATION.cff": [(r"\nlicense: MIT\n", 'repository-code: "https://github.com/{slug}"\n', r"(?=keywords:)")],
    "README.md": [
        (
            r"\[Read online\]\(notebooks/00_overview\.ipynb\) ·\n",
            f"[Open in Colab]({COLAB.replace('{path}', 'notebooks/00_overview.ipynb')}) ·\n",
            r"(?=\[)",
        ),
        (r"```sh\n", "git clone https://github.com/{slug} --branch {ref} encoder\ncd encoder\n", r"(?=make lab )"),
    ],
    "docs/ROOMS.md": [
        (
            r"## Binder, to try it\n\n",
            "<https://mybinder.org/v2/gh/{slug}/{ref}?urlpath=lab/tree/notebooks/00_overview.ipynb>\n\n",
            r"(?=\w)",
        ),
        (
            r"```sh\n",
            "sudo git clone https://github.com/{slug} --branch {ref} /opt/encoder\n",
            r"(?=cd /opt/encoder\n)",
        ),
    ],
}


class Address(NamedTuple):
    """A repository on GitHub, as owner/name, and the branch or tag that readers get."""

    slug: str
    ref: str = "main"


def files(root: Path) -> dict[str, list[tuple[str, str, str]]]:
    """The files that hold an address, each with its places."""
    kinds = {"notebooks": NOTEBOOK, "notebooks/solutions": SOLUTIONS}
    found = {
        f"{folder}/{path.name}": kind
        for folder, kind in kinds.items()
        for path in sorted((root / folder).glob("[0-9]*.ipynb"))
    }
    return PLACES | found


def current(root: Path = ROOT) -> Address | None:
    """The address that the project's files hold now, or None; pyproject.toml is its home."""
    found = re.search(rf"https://github\.com/({SLUG})/tree/({REF})", (root / HOME).read_text("utf-8"))
    return Address(*found.groups()) if found else None


def link_to(path: str, address: Address | None) -> str | None:
    """Where a file or folder of this repository is read online; None without an address."""
    return f"https://github.com/{address.slug}/blob/{address.ref}/{path}" if address else None


def remote_slug(url: str) -> str:
    """owner/name of a GitHub remote, from its https or ssh address; ValueError for another address."""
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url.strip())
    if match is None:
        raise ValueError(f"the remote {url.strip()!r} is no GitHub repository: git remote set-url origin …")
    return match[1]


def addressed(name: str, text: str, places: list[tuple[str, str, str]], address: Address | None) -> str:
    """The text of a file with this address wherever one belongs, whichever it had; ValueError where none fits in."""
    for before, form, behind in places:
        written = form.format(path=name, **address._asdict()) if address else ""
        any_address = re.escape(form.format(path="PATH", slug="SLUG", ref="REF"))
        for named, pattern in {"PATH": r"[\w./-]+", "SLUG": SLUG, "REF": REF}.items():
            any_address = any_address.replace(named, pattern)
        text, count = re.subn(f"({before})(?:{any_address})?{behind}", lambda match, new=written: match[1] + new, text)
        if count != 1:
            raise ValueError(f"{name} has {count} places for {form.strip(' ·')!r}, not one: mend the file, or PLACES")
    return text


def elsewhere(address: Address | None, root: Path = ROOT) -> dict[Path, str]:
    """The files that hold another address than this, each with its text as it should be.

    GitHub does not tell capitals from small letters in owner/name.
    """
    found = {}
    for name, places in files(root).items():
        text = (root / name).read_text("utf-8")
        new = addressed(name, text, places, address)
        if new.lower() != text.lower():
            found[root / name] = new
    return found


def rewrite(address: Address | None, root: Path = ROOT) -> list[Path]:
    """Put this address, or none, wherever one belongs; the files that changed."""
    changed = elsewhere(address, root)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    return list(changed)


def check(slug: str, root: Path = ROOT) -> str | None:
    """What is wrong if a file holds another address than this repository's; a copy may have none, if no file has."""
    ours = current(root)
    wanted = Address(slug, ours.ref) if ours else None
    names = ", ".join(path.relative_to(root).as_posix() for path in elsewhere(wanted, root))
    if not names:
        return None
    stands = f"another address than {', '.join(wanted)}" if wanted else "an address that pyproject.toml lacks"
    return f"{stands} stands in {names}: run `make badges` in a clone of {slug}"


def git(*arguments: str) -> subprocess.CompletedProcess:
    """What git says of this copy."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def rewrite_from_remote(ref: str, keep_ref: bool = False) -> str | None:
    """Rewrite from the remote `origin`, or to no address where there is none; return what is wrong, if anything is.

    With `keep_ref`, files that name this repository already keep the branch or tag that they name.
    """
    if not re.fullmatch(REF, ref):
        return f"the branch or tag {ref!r} cannot stand in a badge: choose one of letters, digits, dots and hyphens"
    top = git("rev-parse", "--show-toplevel")
    if top.returncode or Path(top.stdout.strip()) != ROOT:
        return f"{ROOT} is no clone, so git knows no address of it: take a clone of your repository instead"
    remote = git("remote", "get-url", "origin")
    try:
        address = None if remote.returncode else Address(remote_slug(remote.stdout), ref)
    except ValueError as error:
        return str(error)
    ours = current()
    if keep_ref and address and ours and ours.slug.lower() == address.slug.lower():
        address = ours
    told = ", ".join(address) if address else "no remote, so no address"
    print(f"{told}: {len(rewrite(address))} files changed")
    return None


def main(arguments: list[str] | None = None) -> str | None:
    """Rewrite, or with --check only compare; return what is wrong, if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ref", default="main", help="the branch or tag that readers get (default: main)")
    parser.add_argument("--check", metavar="OWNER/NAME", help="change nothing; fail where another one is named")
    parser.add_argument("--keep-ref", action="store_true", help="but keep the one that this copy names already")
    options = parser.parse_args(arguments)
    return rewrite_from_remote(options.ref, options.keep_ref) if options.check is None else check(options.check)


if __name__ == "__main__":
    sys.exit(main())
