#!/usr/bin/env bash
# nbval: a semicolon that hides a cell's value in Jupyter does not hide it in nbval.
#
# Guess (85 %): the kernel hides the value, so nbval gets no output, just as when the notebook was saved.
# What happens: a notebook that nbclient has just saved fails in nbval, with an unexpected output. IPython finds the
#   semicolon in its history, and nbval runs cells without storing them there. `_ = 1 + 1` hides the value in both.
# Seen with: nbval 0.10.0 and 0.11.0. With 0.9.6 the notebook passes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nbval==0.11.0 pytest==9.2.0 nbclient==0.11.0 \
    nbformat==5.11.1 ipykernel==7.4.0 ipython==9.18.1
cd "$folder"
export IPYTHONDIR="$folder/ipython"
venv/bin/python - <<'PY'
import subprocess
import sys
from importlib.metadata import version

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}


def validate(source):
    """Run and save a notebook with one cell; return its saved outputs, and what nbval reports."""
    notebook = new_notebook(cells=[new_code_cell(source)], metadata={"kernelspec": kernel})
    NotebookClient(notebook).execute()
    nbformat.write(notebook, "saved.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--color=no", "-q", "saved.ipynb"]
    return notebook.cells[0].outputs, subprocess.run(command, capture_output=True, text=True)


print(", ".join(f"{name} {version(name)}" for name in ("nbval", "ipython", "nbclient")))
print("A semicolon hides a value when a notebook is saved, but not when nbval runs the saved notebook.")
seen = {}
for source in ("1 + 1;", "_ = 1 + 1"):
    outputs, result = validate(source)
    reasons = [line for line in result.stdout.splitlines() if "Unexpected output" in line]
    seen[source] = (len(outputs), result.returncode, len(reasons))
    verdict = "failed" if result.returncode else "passed"
    print(f"{source:<10} saved outputs: {len(outputs)}; nbval: {verdict}", *reasons)
expected = seen == {"1 + 1;": (0, 1, 1), "_ = 1 + 1": (0, 0, 0)}
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
