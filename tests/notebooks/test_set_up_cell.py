"""The set-up cell without an installed series: its calls of pip, and its messages if they fail.

Here, pip only logs its arguments; tests/slow/test_colab.py installs and runs complete notebooks.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from publish import badges
from publish.badges import Address
from tests.helpers import ROOT
from tests.repository import PACKAGES, set_up_cell

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9e]*.ipynb"))
PIP = """
import os, pathlib, sys
with open("noted", "a") as file:
    print(*sys.argv[1:], file=file)
if "FAILING" in os.environ:
    sys.exit("ERROR: HTTP error 404")
series = pathlib.Path(__file__).parents[1] / "utils"
series.mkdir()
(series / "__init__.py").touch()
(series / "support").mkdir()
(series / "support" / "__init__.py").touch()
(series / "support" / "notebook.py").write_text("def start():\\n    return 'started'")
"""
SHELL = """
import importlib, os, shutil, sys
from IPython.core.interactiveshell import InteractiveShell
shell, cell, (stub, *folders) = InteractiveShell.instance(), sys.stdin.read(), sys.argv[1:]
for folder in folders:  # each as in a kernel of its own
    os.chdir(folder)
    shutil.rmtree(os.path.join(stub, "utils"), ignore_errors=True)
    for name in [name for name in sys.modules if name.split(".")[0] == "utils"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    shell.reset()
    for _ in range(2):
        print(shell.run_cell(cell).success, shell.user_ns.get("device"))
    print("next folder")
"""


# Only notebooks that need the packages for ONNX install them.
EXTRA = """\
find_spec("onnxscript") or get_ipython().run_line_magic("pip", 'install -q "anatomy-of-a-transformer-encoder[onnx]"')
"""
ONNX = re.compile(r"utils\.support\.onnx|import onnx|from onnx")


def test_notebooks_share_a_set_up_cell():
    (cell,) = {set_up_cell(path).replace(EXTRA, "") for path in NOTEBOOKS}
    assert len([line for line in cell.splitlines() if line]) <= 19


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_set_up_cell_installs_what_the_notebook_needs(path):
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert (EXTRA in cells[0]) == any(ONNX.search(source) for source in cells[1:])


def zip_of(*names: str) -> bytes:
    """Return a ZIP that holds empty files of these names."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "")
    return content.getvalue()


OURS = zip_of("encoder-main/pyproject.toml", "encoder-main/utils/support/notebook.py")  # as GitHub packs it
OTHER = zip_of("setup.py", "homework/notebook.py")
WHEEL = "anatomy_of_a_transformer_encoder-{}-py3-none-any.whl"


def run_twice(
    folder: Path, address: Address | None, *folders: dict[str, bytes], **variables: str
) -> list[tuple[str, list[str]]]:
    """Run the set-up cell of a copy at this address twice in each folder; return its output and pip's arguments there.

    A folder is given by the files next to the notebook, each with its content.
    """
    for path in (NOTEBOOKS[0], *(ROOT / name for name in badges.ADDRESS_PATTERNS)):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    badges.rewrite(address, folder)
    pip = folder / "stub" / "pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(PIP)
    here = [folder / f"content {number}" for number in range(len(folders))]
    for place, neighbours in zip(here, folders, strict=True):
        place.mkdir()
        for name, content in neighbours.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content)
    # -S skips site.py, so that Python does not find the installed checkout
    own = {"PYTHONPATH": os.pathsep.join([str(pip.parent), *PACKAGES]), "IPYTHONDIR": str(folder / "ipython")}
    environment = {name: value for name, value in os.environ.items() if name != "SERIES"} | own | variables
    done = subprocess.run(
        [sys.executable, "-S", "-c", SHELL, pip.parent, *here],
        input=set_up_cell(folder / NOTEBOOKS[0].relative_to(ROOT)),
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    noted = [place / "noted" for place in here]
    calls = [file.read_text().splitlines() if file.exists() else [] for file in noted]
    return list(zip(done.stdout.split("next folder\n"), calls, strict=False))


REMEDY = ": Not installed: put the series (wheel or ZIP) next to this notebook, run this again"


def test_failed_download_prints_the_remedy(tmp_path):
    [(printed, noted)] = run_twice(tmp_path, Address("ada/encoder"), {}, FAILING="1")
    assert noted == ["install --quiet https://github.com/ada/encoder/archive/main.zip"] * 2
    assert printed.count("False None") == 2
    assert "ERROR: HTTP error 404" in printed
    assert printed.count(REMEDY) == 2
    assert "CalledProcessError" not in printed


@pytest.mark.parametrize(("address", "variables", "wanted"), [
    (Address("ada/encoder", "v1.0"), {}, "https://github.com/ada/encoder/archive/v1.0.zip"),
    (Address("ada/encoder"), {"SERIES": "./mine.zip"}, "./mine.zip"),
    (None, {"SERIES": "./mine.zip"}, "./mine.zip"),
])  # fmt: skip
def test_set_up_installs_once_from_the_first_place_it_finds(tmp_path, address, variables, wanted):
    """The variable, the address, or a file next to the notebook, in this order."""
    [(printed, noted)] = run_twice(tmp_path, address, {"encoder-main.zip": OURS}, **variables)
    assert noted == [f"install --quiet {wanted}"]
    assert printed.count("True started") == 2


NEIGHBOURS = [  # and the file that is installed
    ({"encoder-main.zip": OURS}, "encoder-main.zip"),
    ({"Ada_homework.zip": OTHER, WHEEL.format("1.1.0"): b""}, WHEEL.format("1.1.0")),
    ({WHEEL.format("1.9.0"): b"", WHEEL.format("1.10.0"): b"", "a.zip": OTHER}, WHEEL.format("1.10.0")),
    ({"encoder-main.zip": OURS, "encoder-main (1).zip": OURS}, "encoder-main (1).zip"),  # the later download
    ({"encoder-1.2.0.zip": OURS, WHEEL.format("1.1.0"): b""}, "encoder-1.2.0.zip"),
    ({"encoder-main.zip": OURS, WHEEL.format("1.1.0"): b"", "torch-9-any.whl": b""}, WHEEL.format("1.1.0")),
    ({WHEEL.format("1.1.0").replace("any", "any (1)"): b"", "our copy.zip": OURS}, "our copy.zip"),
    ({"Ada_homework.zip": OTHER, "torch-2.13.0-py3-none-any.whl": OTHER, "data.zip": b"cut off"}, None),
    ({"anatomy.zip": OTHER, "anatomy_of_a_transformer_encoder.zip": b"", "x.whl": OURS, "notes.txt": OURS}, None),
]  # fmt: skip


def test_set_up_installs_the_newest_file_of_the_series_and_no_other(tmp_path):
    found = run_twice(tmp_path, None, *(files for files, _ in NEIGHBOURS))
    for (files, wanted), (printed, noted) in zip(NEIGHBOURS, found, strict=True):
        assert noted == [f"install --quiet {wanted}"] * bool(wanted), files.keys()
        assert printed.count("True started" if wanted else REMEDY) == 2, files.keys()


def test_set_up_names_a_file_that_shadows_utils(tmp_path):
    names = ["utils.py", "utils/__init__.py"]
    found = run_twice(tmp_path, Address("ada/encoder"), *({name: b"x = 1"} for name in names))
    for name, (printed, noted) in zip(names, found, strict=True):
        assert noted == []
        assert printed.count("False None") == 2
        assert printed.count(f"{Path(name)} hides our utils: rename or uninstall it, restart the kernel") == 2
