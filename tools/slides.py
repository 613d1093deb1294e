"""Make reveal.js slides of a notebook: where each slide starts is worked out from headings and heights."""

import base64
import re
import shutil
import struct
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import sphinx_revealjs
from nbconvert import SlidesExporter
from pygments.formatters import HtmlFormatter

from tools.notebooks import is_folded, notebook_paths
from tools.website import SITE, WEB, execute, mathjax, read_for_readers, relink, take_out_views

REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
HEIGHT = 28  # lines that a slide holds
LEAD = 9  # lines after which something follows all the same: the slide is shrunk instead
BESIDE = 6  # code of more lines stands beside its picture, as slides.js has it
WIDTH = 95  # characters in a line of text
HEADING = re.compile(r"^#{1,3} ")
FENCE = re.compile(r"^\s*(```|~~~)")


def split_at_headings(source: str) -> list[str]:
    """The parts of a text, each but the first starting with a heading; a # inside a block of code is none."""
    parts, fenced = [[]], False
    for line in source.splitlines():
        fenced ^= bool(FENCE.match(line))
        if HEADING.match(line) and not fenced:
            parts.append([])
        parts[-1].append(line)
    texts = ["\n".join(part).strip() for part in parts]
    return [text for text in texts if text]


def split_cells(cells: list) -> list:
    """The cells, with texts cut at their headings."""
    return [
        part
        for cell in cells
        for part in (
            map(nbformat.v4.new_markdown_cell, split_at_headings(cell.source))
            if cell.cell_type == "markdown" and "slideshow" not in cell.metadata
            else [cell]
        )
    ]


def height(cell) -> float:
    """How many lines a cell takes on a slide, roughly."""
    lines = [max(1, -(-len(line) // WIDTH)) for line in cell.source.splitlines()]
    if cell.cell_type != "code":
        return sum(lines) + 1
    outputs = sum(map(output_height, cell.outputs))
    pictured = any("image/png" in output.get("data", {}) for output in cell.outputs)
    beside = pictured and len(lines) > BESIDE
    return max(len(lines), outputs) + 1 if beside else len(lines) + 1 + outputs


def output_height(output) -> float:
    """How many lines an output takes on a slide, roughly."""
    data = output.get("data", {})
    if "text/html" in data:
        return HEIGHT if "iframe" in data["text/html"] else 1 + 1.3 * data["text/html"].count("<tr")
    if "image/png" in data:
        pixels = struct.unpack(">I", base64.b64decode(data["image/png"])[20:24])[0]
        return min(HEIGHT, pixels / 24)
    return len((output.get("text") or data.get("text/plain", "")).splitlines()) + 1


def slide_types(cells: list) -> list[str]:
    """Each cell's slide type, by Jupyter's names for them.

    ## starts a slide and ### one below it, and so does what no longer fits: code, or a text with the code it leads to.
    The rest appears step by step. Folded cells are skipped. A type stored in a cell's own metadata comes
    first.
    """
    types, used = [], 0.0
    for cell, following in pairwise([*cells, None]):
        chosen, lines = cell.metadata.get("slideshow", {}).get("slide_type"), height(cell)
        leads_on = cell.cell_type == "markdown" and following and following.cell_type == "code"
        wanted = lines + height(following) if leads_on else lines
        if is_folded(cell):
            kind = "skip"
        elif cell.cell_type == "markdown" and HEADING.match(cell.source):
            kind = "subslide" if cell.source.startswith("### ") else "slide"
        else:
            kind = "subslide" if used > LEAD and used + wanted > HEIGHT else "fragment"
        kind = kind if chosen in (None, "", "-") else chosen
        if kind in ("slide", "subslide"):
            used = 0
        used += lines if kind not in ("skip", "notes") else 0
        types.append(kind)
    return types


def make_slides(copy: Path, folder: Path) -> Path:
    """Write the slides of an executed notebook to `folder`, with all that they need beside them."""
    number, notebook = copy.name[:2], read_for_readers(copy)
    views, place = folder / "views", "notebooks/solutions" if copy.stem.endswith("solutions") else "notebooks"
    views.mkdir(parents=True, exist_ok=True)
    take_out_views(notebook, copy.stem, views)
    notebook.cells = split_cells(notebook.cells)
    for cell, kind in zip(notebook.cells, slide_types(notebook.cells), strict=True):
        cell.metadata["slideshow"] = {"slide_type": kind}
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, place, lambda path: False)
    exporter = SlidesExporter(
        template_name="slides",
        extra_template_basedirs=[str(WEB)],
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    code_colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    resources = {"metadata": {"path": str(copy.parent), "name": copy.stem}, "code_colours": code_colours}
    page, _ = exporter.from_notebook_node(notebook, resources)
    shutil.copytree(
        REVEAL / "dist", folder / "reveal", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.map")
    )
    for file in (
        mathjax(),
        WEB / "static" / "views.js",
        WEB / "slides" / "slides.css",
        WEB / "slides" / "slides.js",
    ):
        shutil.copy(file, folder)
    target = folder / f"{number}.html"
    target.write_text(page, "utf-8")
    return target


def main() -> str | None:
    """Make the slides of the notebooks named; return what is wrong, if anything is."""
    names = sys.argv[1:]
    paths = [path for path in notebook_paths(names) if path.parent.name == "notebooks"]
    if not names or not paths:
        return "name a notebook by its number: make slides NB=03"
    for copy in execute(paths):
        print(make_slides(copy, SITE / "slides"))
    return None


if __name__ == "__main__":
    sys.exit(main())
