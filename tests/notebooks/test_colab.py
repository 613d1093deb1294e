"""The set-up cell, which is the same in all notebooks, alone in an empty folder, as Colab opens it.

Without pip, whose arguments are noted instead; tests/slow/test_colab.py lets it install, and runs whole notebooks.
"""

import os
import subprocess
import sys

import nbformat

from tests.helpers import ROOT
from tests.repository import address, publish
from tools.badges import current_slug

PIP = "import os, sys\nwith open(os.environ['NOTED'], 'a') as file:\n    print(*sys.argv[1:], file=file)\n"
TWICE = """
import os, sys
set_up = sys.stdin.read()
sys.prefix = os.getcwd()  # this Python belongs to a checkout
exec(set_up, {})
import utils
print(utils.__file__)
os.environ |= %r
exec(set_up, {})
"""


def test_the_set_up_cell_fetches_the_repository_once(tmp_path):
    """The second time there is no repository to fetch, and none is needed."""
    found, nowhere = publish(tmp_path / "published"), address("file:///nowhere")
    pip, folder, noted = tmp_path / "stub" / "pip", tmp_path / "content", tmp_path / "noted"
    pip.mkdir(parents=True)
    folder.mkdir()
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(PIP)
    path = next((ROOT / "notebooks").glob("00_*.ipynb"))
    set_up = next(cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
    variables = os.environ | found | {"PYTHONPATH": str(pip.parent), "NOTED": str(noted)}
    variables.pop("JPY_SESSION_NAME", None)
    command = [sys.executable, "-W", "ignore", "-c", TWICE % nowhere]
    options = {"input": set_up.source, "cwd": folder, "env": variables, "timeout": 60, "check": False}
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    clone = folder / current_slug().split("/")[1]
    fetching, _, module, _ = done.stdout.splitlines()
    assert fetching == f"The series is not here: fetching {current_slug()} from GitHub, and what it needs"
    assert module == str(clone / "utils" / "__init__.py")
    requirements = clone.relative_to(folder) / "requirements-colab.txt"
    assert noted.read_text() == f"install --quiet -r {requirements}\n"
    assert (folder / requirements).is_file()
