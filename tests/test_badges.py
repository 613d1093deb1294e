"""The repository's name stands in one place, and a fork's own name gets everywhere it is used."""

import re
import shutil
from pathlib import Path

import pytest

from tools import badges

ROOT = Path(__file__).resolve().parents[1]


def test_every_link_and_setup_cell_holds_the_one_name():
    slug = badges.current_slug()
    for path in [ROOT / "README.md", *(ROOT / "notebooks").rglob("*.ipynb")]:
        text = path.read_text("utf-8")
        found = set(re.findall(r"colab\.research\.google\.com/github/([\w.-]+/[\w.-]+)/blob", text))
        found |= set(re.findall(r'REPOSITORY = \\"([^"\\]+)\\"', text))
        assert found <= {slug}, path.name
        assert found or path.name.endswith(("solutions.ipynb", "README.md"))


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


def test_rewriting(tmp_path):
    shutil.copytree(
        ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints")
    )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    old = badges.current_slug()
    changed = badges.rewrite(old, "ada/encoder", tmp_path)
    assert badges.current_slug(tmp_path) == "ada/encoder"
    assert len(changed) == 2 + len(list((tmp_path / "notebooks").rglob("*.ipynb")))
    assert not any(old in path.read_text("utf-8") for path in changed)
    assert badges.rewrite("ada/encoder", "ada/encoder", tmp_path) == []
