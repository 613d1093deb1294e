"""`make badges` writes the address of the git remote into all files, and none without a remote."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from publish import badges
from publish.badges import Address
from tests.helpers import run_python, skip_or_fail

ROOT = badges.ROOT
ADA = Address("ada/encoder", "v1.0")
NOTEBOOK, PROOFS = "notebooks/00_overview.ipynb", "notebooks/proofs/00_proofs.ipynb"
SOLUTIONS = "notebooks/solutions/00_solutions.ipynb"
NAMES = [*badges.ADDRESS_PATTERNS, NOTEBOOK, PROOFS, SOLUTIONS]
HELD = {
    "pyproject.toml": 'Repository = "https://github.com/{}/tree/{}"',
    "CITATION.cff": 'repository-code: "https://github.com/{}"',
    "docs/ROOMS.md": "https://mybinder.org/v2/gh/{}/{}?",
    "README.md": "git clone https://github.com/{} --branch {} ",
    NOTEBOOK: "https://colab.research.google.com/github/{}/blob/{}/" + NOTEBOOK,
    PROOFS: "https://colab.research.google.com/github/{}/blob/{}/" + PROOFS,
    SOLUTIONS: 'https://github.com/{}/archive/\\"\\n",\n    "file = \\"{}.zip',
}


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(["git", "-C", folder, *named, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def copy(tmp_path) -> Path:
    """Return a git repository with the files that hold an address and the tool, committed, without a remote."""
    if not shutil.which("git"):
        skip_or_fail("install git to test the address of a clone")
    folder = tmp_path / "copy"
    for name in (*NAMES, "publish/badges.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    badges.rewrite(None, folder)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", "copy")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "All")
    return folder


def make_badges(copy: Path, *arguments: str, remote: str | None = None) -> subprocess.CompletedProcess:
    """Run the tool in a copy, after adding this remote."""
    if remote:
        git(copy, "remote", "add", "origin", remote)
    return run_python("publish/badges.py", *arguments, folder=copy)


def changed(copy: Path) -> set[str]:
    return set(git(copy, "diff", "--name-only").split())


def test_project_files_agree_on_the_address():
    assert badges.find_outdated(badges.current()) == {}


@pytest.mark.parametrize(("url", "slug"), [
    ("https://github.com/ada/encoder.git", "ada/encoder"), ("https://github.com/ada/encoder/", "ada/encoder"),
    ("git@github.com:ada/my.encoder.git\n", "ada/my.encoder"),
])  # fmt: skip
def test_remote_slug_of_github_addresses(url, slug):
    assert badges.remote_slug(url) == slug


def test_release_of_this_version_is_installed_from_its_wheel(copy):
    """Set-up cells of a branch, or of another tag, install the ZIP of the repository."""
    version = re.search(r'\nversion = "(.*)"', (ROOT / badges.HOME).read_text("utf-8"))[1]
    for ref in (f"v{version}", "main", "term-2026", f"v{version}"):
        address = Address("ada/encoder", ref)
        badges.rewrite(address, copy)
        wheel = f"releases/download/{ref}/anatomy_of_a_transformer_encoder-{version}-py3-none-any.whl"
        installed = wheel if ref == f"v{version}" else f"archive/{ref}.zip"
        for name in (NOTEBOOK, PROOFS, SOLUTIONS):
            text = (copy / name).read_text("utf-8")
            found = re.search(r'"address = \\"(.*)\\"\\n",\n    "file = \\"(.*)\\"\\n"', text)
            assert "".join(found.groups()) == f"https://github.com/ada/encoder/{installed}"
        assert badges.check("ada/encoder", copy) is None
        for command in (["check", "--select=E501"], ["format", "--check"]):  # CI checks the style of a copy, too
            subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", "."], cwd=copy, check=True)
    badges.rewrite(None, copy)
    assert badges.find_outdated(None, copy) == {}


def test_clone_gets_its_address_and_can_remove_it(copy, tmp_path):
    """A bare repository in a folder receives what git would push to GitHub."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", str(bare))
    git(copy, "config", f"url.{bare}.pushInsteadOf", "https://github.com/ada/encoder")
    done = make_badges(copy, remote="https://github.com/ada/encoder")
    assert done.stdout == f"ada/encoder, main: {len(NAMES)} files changed\n", done.stderr
    assert changed(copy) == set(NAMES)
    assert make_badges(copy).stdout == "ada/encoder, main: 0 files changed\n"
    git(copy, "commit", "--quiet", "--all", "--message", "The address")
    git(copy, "push", "--quiet", "origin", "main")
    git(tmp_path, "clone", "--quiet", str(bare), "fork")
    fork = tmp_path / "fork"
    assert badges.current(fork) == Address("ada/encoder")
    assert make_badges(fork, "--check", "ada/encoder").returncode == 0
    for name, held in HELD.items():
        assert (fork / name).read_text("utf-8").count(held.format("ada/encoder", "main")) == 1, name
    git(fork, "remote", "remove", "origin")
    assert make_badges(fork).stdout == f"no remote, so no address: {len(NAMES)} files changed\n"
    for name in NAMES:  # nothing else has changed
        first = git(copy, "show", f"HEAD~:{name}")
        assert (fork / name).read_text("utf-8") == first
    assert make_badges(fork).stdout == "no remote, so no address: 0 files changed\n"


@pytest.mark.parametrize(("remote", "arguments", "words"), [
    ("/srv/encoder.git", (), "the remote '/srv/encoder.git' is not on GitHub: correct it with git remote set-url"),
    ("https://github.com/ada/e", ("--ref", "a/b"), "the branch or tag 'a/b' cannot be used in a badge: choose"),
])  # fmt: skip
def test_unusable_remote_or_ref_is_reported(copy, remote, arguments, words):
    done = make_badges(copy, *arguments, remote=remote)
    assert done.returncode == 1
    assert words in done.stderr
    assert changed(copy) == set()


def test_folder_that_is_not_a_clone_is_unchanged(copy):
    """An unpacked ZIP may be inside a clone of another project."""
    badges.rewrite(ADA, copy)
    shutil.rmtree(copy / ".git")
    git(copy.parent, "init", "--quiet", ".")
    done = make_badges(copy)
    assert done.returncode == 1
    assert "is not a git clone, so its address is unknown" in done.stderr
    assert badges.current(copy) == ADA


@pytest.mark.parametrize("slug", [ADA.slug, "Ada/Encoder"])
def test_check_passes_only_in_the_named_repository(copy, slug):
    badges.rewrite(ADA, copy)
    assert badges.check(slug, copy) is None
    wrong = badges.check("grace/encoder", copy)
    assert wrong == (
        f"an address other than grace/encoder, v1.0 is in {', '.join(NAMES)}: "
        "run `make badges` in a clone of grace/encoder"
    )
