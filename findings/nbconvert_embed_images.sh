#!/usr/bin/env bash
# nbconvert: embed_images=True takes the text out of <kbd>, <sub> and every other inline tag.
#
# Guess (95 %): embed_images changes images and leaves a cell without images as it is.
# What happens: each inline tag is parsed on its own, as if it were a complete document, so the opening tag is closed at
#   once and its text comes after it: Press <kbd></kbd>Shift. No image is needed, and nothing is reported.
#   Tags inside a block such as <div> and Markdown's own **bold** are not affected.
# Seen with: nbconvert 7.16.6, 7.17.0 and 7.17.2, for HTML and slides.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nbconvert==7.17.2 nbformat==5.11.1 beautifulsoup4==4.15.0 mistune==3.4.0
cd "$folder"
venv/bin/python - <<'PY'
import re
import sys

import nbconvert
from nbconvert import HTMLExporter, SlidesExporter
from nbformat.v4 import new_markdown_cell, new_notebook

notebook = new_notebook(cells=[new_markdown_cell("Press <kbd>Shift</kbd>, drink H<sub>2</sub>O, be **bold**.")])
print(f"nbconvert {nbconvert.__version__}")
print("embed_images=True empties inline HTML, although the cell has no image.")
seen = {}
for exporter in (HTMLExporter, SlidesExporter):
    for embed_images in (False, True):
        page, _ = exporter(embed_images=embed_images).from_notebook_node(notebook)
        (seen[exporter, embed_images],) = re.findall(r"Press .*bold</strong>", page)
        print(f"{exporter.__name__}, embed_images={embed_images}: {seen[exporter, embed_images]}")
whole = "Press <kbd>Shift</kbd>, drink H<sub>2</sub>O, be <strong>bold</strong>"
empty = "Press <kbd></kbd>Shift, drink H<sub></sub>2O, be <strong>bold</strong>"
expected = list(seen.values()) == [whole, empty, whole, empty]
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
