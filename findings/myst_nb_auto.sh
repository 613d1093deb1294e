#!/usr/bin/env bash
# myst-nb: in the mode "auto", a complete notebook runs again because one of its cells prints nothing.
#
# Guess (70 %): "auto" leaves a notebook alone if all its cells have an execution count.
# What happens: a code cell without an output counts as not executed. A notebook in which one cell only assigns a name
#   or imports a module runs again in each fresh build, with its training and downloads, and the page shows the new
#   outputs instead of the saved ones.
# Seen with: myst-nb 1.1.2 and 1.4.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet myst-nb==1.4.0 sphinx==9.0.4 nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0
cd "$folder"
export IPYTHONDIR="$folder/ipython"
venv/bin/python - <<'PY'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
pages = Path("pages")
pages.mkdir()
(pages / "conf.py").write_text('extensions = ["myst_nb"]\nnb_execution_mode = "auto"\n')
(pages / "index.md").write_text("# Index\n\n```{toctree}\nprints\nassigns\n```\n")
for name, sources in {"prints": ["x = 1\nprint(x)", "print(x + 1)"], "assigns": ["x = 1", "print(x + 1)"]}.items():
    cells = [new_markdown_cell(f"# {name}"), *map(new_code_cell, sources)]
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    NotebookClient(notebook).execute()
    nbformat.write(notebook, pages / f"{name}.ipynb")
    print(f"{name}.ipynb is saved with the execution counts", [cell.execution_count for cell in notebook.cells[1:]])

command = [sys.executable, "-m", "sphinx", "--no-color", "-b", "html", "pages", "built"]
log = subprocess.run(command, capture_output=True, text=True)
text = log.stdout + log.stderr
print(f"myst-nb {version('myst-nb')}, sphinx {version('sphinx')}")
print('In the mode "auto", the notebook in which every cell prints is not run. The one with a silent cell is.')
run = {name: f"{name}.ipynb: Executing notebook" in text for name in ("prints", "assigns")}
skipped = {name: f"{name}.ipynb: Skipped execution" in text for name in ("prints", "assigns")}
for name in run:
    print(f"{name}.ipynb: executed again: {run[name]}, skipped: {skipped[name]}")
expected = log.returncode == 0 and list(run.values()) == [False, True] and list(skipped.values()) == [True, False]
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
