"""The repository's address stands wherever readers need it, and a copy's own gets everywhere."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from publish import badges
from publish.badges import PLACEHOLDER, Address

ROOT = badges.ROOT
OURS = badges.current()
ADA = Address("ada/encoder", "v1.0")


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of files that hold the address, and of the tool."""
    notebooks = [path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").rglob("0[39]_*.ipynb")]
    for name in ("pyproject.toml", "README.md", "ROOMS.md", "publish/badges.py", *notebooks):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make_badges(copy: Path, *arguments: str, remote: str | None = None) -> subprocess.CompletedProcess:
    """Run the tool in a copy, which gets this remote."""
    if remote:
        subprocess.run(["git", "init", "--quiet", copy], check=True)
        subprocess.run(["git", "-C", copy, "remote", "add", "origin", remote], check=True)
    command = [sys.executable, "publish/badges.py", *arguments]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)


def test_every_link_and_set_up_cell_holds_the_one_address():
    slug, ref = OURS
    assert badges.elsewhere(OURS) == []
    for path in [ROOT / "README.md", *(ROOT / "notebooks").glob("*.ipynb")]:
        text = path.read_text("utf-8")
        assert f"https://colab.research.google.com/github/{slug}/blob/{ref}/" in text, path.name
        if path.suffix == ".ipynb":
            assert rf"address = \"https://github.com/{slug}/archive/{ref}.zip\"" in text, path.name
    for path in (ROOT / "notebooks" / "solutions").glob("*.ipynb"):
        assert rf"address = \"https://github.com/{slug}/archive/{ref}.zip\"" in path.read_text("utf-8"), (
            path.name
        )


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        ("https://github.com/ada/encoder.git", "ada/encoder"),
        ("https://github.com/ada/encoder/", "ada/encoder"),
        ("git@github.com:ada/my.encoder.git\n", "ada/my.encoder"),
    ],
)
def test_remote_addresses(url, slug):
    assert badges.remote_slug(url) == slug


def test_a_remote_elsewhere_is_refused():
    with pytest.raises(ValueError, match=r"is no GitHub repository: git remote set-url"):
        badges.remote_slug("/srv/encoder.git")


def test_rewriting(copy):
    changed = badges.rewrite(ADA, copy)
    assert badges.current(copy) == ADA
    assert len(changed) == 3 + len(list((copy / "notebooks").rglob("*.ipynb")))
    assert not any(OURS.slug in path.read_text("utf-8") for path in changed)
    assert badges.rewrite(ADA, copy) == []
    assert len(badges.rewrite(OURS, copy)) == len(changed)
    for path in changed:
        assert path.read_text("utf-8") == (ROOT / path.relative_to(copy)).read_text("utf-8")


def test_a_notebook_that_came_from_elsewhere_later_is_rewritten_too(copy):
    """As after a merge: pyproject.toml has the copy's address, and the new notebook has not."""
    badges.rewrite(ADA, copy)
    new = shutil.copy(next((ROOT / "notebooks").glob("03*.ipynb")), copy / "notebooks" / "14_new.ipynb")
    assert badges.rewrite(ADA, copy) == [new]
    assert OURS.slug not in new.read_text("utf-8")


@pytest.mark.parametrize("arguments", [(), ("--ref", "term-2026")])
def test_a_copy_gets_the_address_of_its_remote(copy, arguments):
    done = make_badges(copy, *arguments, remote="git@github.com:ada/my.encoder.git")
    assert done.returncode == 0, done.stderr
    address = Address("ada/my.encoder", *arguments[1:])
    assert badges.current(copy) == address
    assert badges.elsewhere(address, copy) == []
    assert badges.check("ada/my.encoder", copy) is None


@pytest.mark.parametrize(
    ("remote", "arguments", "words"),
    [
        (None, (), "there is no remote to take the repository's name from: git remote add origin"),
        ("/srv/encoder.git", (), "the remote '/srv/encoder.git' is no GitHub repository: git remote set-url"),
        (
            "https://github.com/ada/e",
            ("--ref", "a/b"),
            "the branch or tag 'a/b' cannot stand in a badge: choose",
        ),
    ],
)
def test_a_copy_that_cannot_get_an_address_is_told_why(copy, remote, arguments, words):
    done = make_badges(copy, *arguments, remote=remote)
    assert done.returncode == 1
    assert words in done.stderr
    assert badges.current(copy) == OURS


@pytest.mark.parametrize("slug", [ADA.slug, "Ada/Encoder"])
def test_the_check_passes_in_the_repository_that_is_named_and_in_no_other(copy, slug):
    badges.rewrite(ADA, copy)
    assert badges.check(slug, copy) is None
    wrong = badges.check("grace/encoder", copy)
    assert wrong.startswith(
        "another address than grace/encoder, v1.0, stands in pyproject.toml, README.md, ROOMS.md, "
    )
    assert wrong.endswith(
        "notebooks/solutions/09_solutions.ipynb: run `make badges` in a clone of grace/encoder"
    )


def test_the_check_passes_anywhere_while_there_is_no_address_yet(copy):
    badges.rewrite(Address(PLACEHOLDER), copy)
    assert make_badges(copy, "--check", ADA.slug).returncode == 0
    badges.rewrite(ADA, copy)
    assert make_badges(copy, "--check", "grace/encoder").returncode == 1


@pytest.mark.parametrize("address", [ADA, Address(PLACEHOLDER)])
@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("ROOMS.md", "https://mybinder.org/v2/gh/{}/{}?"),
        ("README.md", "git clone https://github.com/{} --branch {} "),
        ("README.md", "https://colab.research.google.com/github/{}/blob/{}/"),
        ("notebooks/03_self_attention.ipynb", "https://colab.research.google.com/github/{}/blob/{}/"),
        ("notebooks/solutions/03_solutions.ipynb", r"address = \"https://github.com/{}/archive/{}.zip\""),
    ],
)
@pytest.mark.parametrize("other", [Address("grace/encoder", "v1.0"), Address("ada/encoder", "v2")])
def test_the_check_names_the_one_file_that_is_wrong(copy, address, name, held, other):
    badges.rewrite(address, copy)
    text = (copy / name).read_text("utf-8")
    assert held.format(*address) in text
    (copy / name).write_text(text.replace(held.format(*address), held.format(*other), 1), "utf-8")
    slug, ref = address
    wrong = (
        f"another address than {slug}, {ref}, stands in {name}: run `make badges` in a clone of {ADA.slug}"
    )
    assert badges.check(ADA.slug, copy) == wrong
