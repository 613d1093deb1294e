"""Put this copy's address, taken from its git remote, into badges, set-up cells, documents and pyproject.toml.

A copy without a remote has no address: then all of these are left out, and nothing else changes.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SLUG, REF = r"[\w.-]+/[\w.-]+", r"[\w.-]+"
FOLDER = rf"https://github\.com/{SLUG}/(?:archive|releases/download/{REF})/"  # of the file that a set-up cell installs
HOME = "pyproject.toml"
COLAB = "https://colab.research.google.com/github/{slug}/blob/{ref}/{path}"
# What precedes an address, how the address is written, and what follows it; each occurs once in its file. A notebook is
# JSON, where a line break is \n and a quote is \".
SET_UP = [(r'"address = \\"', "{folder}", r'(?=\\"\\n")'), (r'"file = \\"', "{file}", r'(?=\\"\\n")')]  # short lines
NOTEBOOK = [
    (r"Read \d+ minutes, with exercises \d+", f" · [![Open in Colab](images/colab.svg)]({COLAB})", r'(?=\\n|")'),
    *SET_UP,
]
COMPANION = [  # proofs and solutions
    (r'"# [^"]*: \w+\\n",\n    "\\n",\n    "', f"[![Open in Colab](../images/colab.svg)]({COLAB}) · ", r"(?=\w)"),
    *SET_UP,
]
ADDRESS_PATTERNS = {
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

    def installed(self) -> tuple[str, str]:
        """Return what a set-up cell installs, as folder and file: the wheel of this version's release, or a ZIP."""
        version = re.search(r'^version = "(.*)"', (ROOT / HOME).read_text("utf-8"), re.M)[1]
        if self.ref == f"v{version}":
            wheel = f"anatomy_of_a_transformer_encoder-{version}-py3-none-any.whl"
            return f"https://github.com/{self.slug}/releases/download/{self.ref}/", wheel
        return f"https://github.com/{self.slug}/archive/", f"{self.ref}.zip"


def patterns_by_file(root: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return the files that hold an address, each with its patterns."""
    kinds = {"notebooks": NOTEBOOK, "notebooks/proofs": COMPANION, "notebooks/solutions": COMPANION}
    found = {
        f"{folder}/{path.name}": kind
        for folder, kind in kinds.items()
        for path in sorted((root / folder).glob("[0-9e]*.ipynb"))
    }
    return ADDRESS_PATTERNS | found


def current(root: Path = ROOT) -> Address | None:
    """Return the current address, as pyproject.toml has it, or None."""
    found = re.search(rf"https://github\.com/({SLUG})/tree/({REF})", (root / HOME).read_text("utf-8"))
    return Address(*found.groups()) if found else None


def link_to(path: str, address: Address | None) -> str | None:
    """Return the address of a file or folder of this repository on GitHub, or None."""
    return f"https://github.com/{address.slug}/blob/{address.ref}/{path}" if address else None


def remote_slug(url: str) -> str:
    """Return owner/name of a GitHub remote from its https or ssh address; ValueError for any other."""
    match = re.search(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url.strip())
    if match is None:
        raise ValueError(f"the remote {url.strip()!r} is not on GitHub: correct it with git remote set-url origin …")
    return match[1]


def set_address(name: str, text: str, patterns: list[tuple[str, str, str]], address: Address | None) -> str:
    """Return the text of a file with its addresses replaced; ValueError unless each pattern occurs once."""
    for before, form, after in patterns:
        folder, file = address.installed() if address else ("", "")
        written = form.format(path=name, folder=folder, file=file, **address._asdict()) if address else ""
        any_address = re.escape(form.format(path="PATH", slug="SLUG", ref="REF", folder="FOLDER", file="FILE"))
        kinds = {"PATH": r"[\w./-]+", "SLUG": SLUG, "REF": REF, "FOLDER": FOLDER, "FILE": REF}
        for placeholder, pattern in kinds.items():
            any_address = any_address.replace(placeholder, pattern)
        text, count = re.subn(f"({before})(?:{any_address})?{after}", lambda match, new=written: match[1] + new, text)
        if count != 1:
            raise ValueError(
                f"{name} has {count} places for {form.strip(' ·')!r}, not 1: correct it or ADDRESS_PATTERNS"
            )
    return text


def find_outdated(address: Address | None, root: Path = ROOT) -> dict[Path, str]:
    """Return the files whose address differs from this one, each with its corrected text.

    The comparison ignores case, as GitHub does in owner/name.
    """
    found = {}
    for name, patterns in patterns_by_file(root).items():
        text = (root / name).read_text("utf-8")
        new = set_address(name, text, patterns, address)
        if new.lower() != text.lower():
            found[root / name] = new
    return found


def rewrite(address: Address | None, root: Path = ROOT) -> list[Path]:
    """Write this address, or none, into all files; return the files that changed."""
    changed = find_outdated(address, root)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    return list(changed)


def check(slug: str, root: Path = ROOT) -> str | None:
    """Return an error message if a file names another repository; None if all agree or none has an address."""
    ours = current(root)
    wanted = Address(slug, ours.ref) if ours else None
    names = ", ".join(path.relative_to(root).as_posix() for path in find_outdated(wanted, root))
    if not names:
        return None
    problem = f"an address other than {', '.join(wanted)}" if wanted else "an address that pyproject.toml lacks"
    return f"{problem} is in {names}: run `make badges` in a clone of {slug}"


def git(*arguments: str) -> subprocess.CompletedProcess:
    """Run git in this copy."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def rewrite_from_remote(ref: str, keep_ref: bool = False) -> str | None:
    """Write the address of the remote `origin`, or none without a remote; return an error message or None.

    With `keep_ref`, a copy that already names this repository keeps its branch or tag.
    """
    if not re.fullmatch(REF, ref):
        return f"the branch or tag {ref!r} cannot be used in a badge: choose one of letters, digits, dots and hyphens"
    top = git("rev-parse", "--show-toplevel")
    if top.returncode or Path(top.stdout.strip()) != ROOT:
        return f"{ROOT} is not a git clone, so its address is unknown: run this in a clone of your repository"
    remote = git("remote", "get-url", "origin")
    try:
        address = None if remote.returncode else Address(remote_slug(remote.stdout), ref)
    except ValueError as error:
        return str(error)
    ours = current()
    if keep_ref and address and ours and ours.slug.lower() == address.slug.lower():
        address = ours
    source = ", ".join(address) if address else "no remote, so no address"
    print(f"{source}: {len(rewrite(address))} files changed")
    return None


def main(arguments: list[str] | None = None) -> str | None:
    """Rewrite the addresses, or with --check only compare them; return an error message or None."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ref", default="main", help="the branch or tag that readers get (default: main)")
    parser.add_argument("--check", metavar="OWNER/NAME", help="change nothing; fail if a file names another repository")
    parser.add_argument("--keep-ref", action="store_true", help="keep the branch or tag that this copy already names")
    options = parser.parse_args(arguments)
    return rewrite_from_remote(options.ref, options.keep_ref) if options.check is None else check(options.check)


if __name__ == "__main__":
    sys.exit(main())
