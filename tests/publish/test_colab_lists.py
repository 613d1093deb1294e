"""Colab's lists of packages accept what the series requires, so that pip changes none of them.

`make colab COLAB=2026.07` tries it: there pip also looks at what the requirements themselves require.
"""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.helpers import ROOT
from tests.repository import ADDED, ADDED_BY_13, canonical, requirements

LISTS = sorted((ROOT / "tests" / "colab").glob("*.txt"))
SOURCE = r"# https://github\.com/\S+/blob/[0-9a-f]{40}/\S*pip.freeze\S*\.txt\n# Date: .+ 20\d\d\n# Python: (3\.\d+)\n"
each_list = pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)


def packages(path: Path) -> dict[str, str]:
    """Return the version of each package of a list."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_four_lists_are_tried_every_week_with_their_python():
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text("utf-8")
    tried = dict(re.findall(r'- \{ list: "([\d.]+)", python: "([\d.]+)" \}', weekly))
    assert tried == {path.stem: re.search(SOURCE, path.read_text("utf-8"))[1] for path in LISTS}
    assert len(tried) == 4


@each_list
def test_requirements_accept_the_versions_of_the_list(path):
    there = packages(path)
    assert len(there) > 100
    wanted = {canonical(one.name): one.specifier for one in map(Requirement, requirements())}
    assert wanted.keys() - there.keys() <= ADDED | ADDED_BY_13
    assert [name for name in wanted.keys() & there.keys() if not wanted[name].contains(there[name])] == []
