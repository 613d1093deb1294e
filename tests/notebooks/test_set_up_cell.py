"""The set-up cell where the series is not installed: what it asks pip for, and its words when that fails.

pip only notes its arguments here; tests/slow/test_colab.py lets it install, and runs whole notebooks.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from publish import badges
from publish.badges import PLACEHOLDER, Address
from tests.helpers import ROOT
from tests.repository import PACKAGES, set_up_cell

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))
PIP = """
import os, pathlib, sys
with open("noted", "a") as file:
    print(*sys.argv[1:], file=file)
if "FAILING" in os.environ:
    sys.exit("ERROR: HTTP error 404")
series = pathlib.Path(__file__).parents[1] / "utils"
series.mkdir()
(series / "notebook.py").write_text("def start():\\n    return 'started'")
"""
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell, cell = InteractiveShell.instance(), sys.stdin.read()
for _ in range(2):
    print(shell.run_cell(cell).success, shell.user_ns.get("device"))
"""


def test_all_notebooks_have_the_same_of_at_most_eight_lines():
    (cell,) = {set_up_cell(path) for path in NOTEBOOKS}
    assert len([line for line in cell.splitlines() if line]) <= 8


def run_twice(folder: Path, address: Address, **variables: str) -> tuple[str, list[str]]:
    """What the set-up cell of a copy at this address prints when it is run twice, and what it asks pip for."""
    (folder / "notebooks").mkdir()
    notebook = shutil.copy(NOTEBOOKS[0], folder / "notebooks")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    badges.rewrite(address, folder)
    pip = folder / "stub" / "pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(PIP)
    here = folder / "content"
    here.mkdir()
    # without site.py, so that Python looks into these folders and does not know of the checkout that is installed
    own = {"PYTHONPATH": os.pathsep.join([str(pip.parent), *PACKAGES]), "IPYTHONDIR": str(folder / "ipython")}
    environment = {name: value for name, value in os.environ.items() if name != "SERIES"} | own | variables
    done = subprocess.run(
        [sys.executable, "-S", "-c", SHELL],
        input=set_up_cell(Path(notebook)),
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, (here / "noted").read_text().splitlines()


def test_a_forks_address_is_installed_once(tmp_path):
    printed, noted = run_twice(tmp_path, Address("ada/encoder", "v1.0"))
    assert noted == ["install --quiet https://github.com/ada/encoder/archive/v1.0.zip"]
    assert printed.count("True started") == 2


def test_an_address_from_the_environment(tmp_path):
    _, noted = run_twice(tmp_path, Address("ada/encoder"), SERIES="./uploaded.zip")
    assert noted == ["install --quiet ./uploaded.zip"]


@pytest.mark.parametrize("slug", [PLACEHOLDER, "ada/encoder"])
def test_what_cannot_be_fetched_says_in_words_what_to_do(tmp_path, slug):
    printed, noted = run_twice(tmp_path, Address(slug), FAILING="1")
    assert noted == [f"install --quiet https://github.com/{slug}/archive/main.zip"] * 2
    assert printed.count("False None") == 2
    assert "ERROR: HTTP error 404" in printed
    assert ": Is the address right? Or upload the ZIP, %env SERIES=name.zip, and run this again" in printed
    assert "CalledProcessError" not in printed


def test_nobody_can_register_the_address_that_a_copy_has_at_first():
    """A name of an account on GitHub cannot begin with a hyphen."""
    assert PLACEHOLDER.startswith("-")
