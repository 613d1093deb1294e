"""The repository's name stands in one place, and a fork's own name gets everywhere it is used."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import badges

ROOT = badges.ROOT
OURS = badges.current_slug()


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the files that name the repository."""
    shutil.copytree(
        ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints")
    )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_every_link_and_setup_cell_holds_the_one_name():
    assert badges.elsewhere(OURS) == []
    for path in [ROOT / "README.md", *(ROOT / "notebooks").glob("*.ipynb")]:
        text = path.read_text("utf-8")
        assert f"https://colab.research.google.com/github/{OURS}/blob/" in text, path.name
        assert path.name == "README.md" or rf"REPOSITORY = \"{OURS}\"" in text, path.name
    for path in (ROOT / "notebooks" / "solutions").glob("*.ipynb"):
        assert rf"REPOSITORY = \"{OURS}\"" in path.read_text("utf-8"), path.name


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
    changed = badges.rewrite("ada/encoder", copy)
    assert badges.current_slug(copy) == "ada/encoder"
    assert len(changed) == 2 + len(list((copy / "notebooks").rglob("*.ipynb")))
    assert not any(OURS in path.read_text("utf-8") for path in changed)
    assert badges.rewrite("ada/encoder", copy) == []
    assert len(badges.rewrite(OURS, copy)) == len(changed)
    for path in changed:
        assert path.read_text("utf-8") == (ROOT / path.relative_to(copy)).read_text("utf-8")


def test_a_notebook_that_came_from_elsewhere_later_is_rewritten_too(copy):
    """As after a merge: pyproject.toml has the fork's name, and the new notebook has not."""
    badges.rewrite("ada/encoder", copy)
    new = shutil.copy(next((ROOT / "notebooks").glob("03*.ipynb")), copy / "notebooks" / "14_new.ipynb")
    assert badges.rewrite("ada/encoder", copy) == [new]
    assert OURS not in new.read_text("utf-8")


@pytest.mark.parametrize("slug", [OURS, OURS.upper()])
def test_the_check_passes_where_the_names_are_right(slug):
    assert badges.main(["--check", slug]) is None


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("pyproject.toml", 'Repository = "https://github.com/{}"'),
        ("README.md", "https://mybinder.org/v2/gh/{}/HEAD"),
        ("README.md", "https://colab.research.google.com/github/{}/blob/"),
        ("notebooks/solutions/03_solutions.ipynb", r"REPOSITORY = \"{}\""),
    ],
)
def test_the_check_names_the_one_file_that_is_wrong(copy, name, old):
    text = (copy / name).read_text("utf-8")
    assert old.format(OURS) in text
    (copy / name).write_text(text.replace(old.format(OURS), old.format("ada/encoder"), 1), "utf-8")
    expected = f"another repository than {OURS} is named in {name}: run `make badges` in a clone of {OURS}"
    assert badges.check(OURS, copy) == expected


def test_the_check_fails_in_another_repository():
    command = [sys.executable, "tools/badges.py", "--check", "ada/encoder"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(
        r"another repository than ada/encoder is named in pyproject\.toml, README\.md, notebooks/00\S+, .*"
        r"notebooks/solutions/\d\d_solutions\.ipynb: run `make badges` in a clone of ada/encoder\n",
        done.stderr,
    )
