"""The book: an EPUB of all notebooks as they are saved, and a PDF that Chromium prints of the same pages.

Sphinx makes the pages, as it makes the site's; where a view can be dragged there, its photograph stands here. Formulas
are drawn once, by MathJax, so that no reader needs its fonts. The PDF is printed by the browser that takes the
photographs, since LaTeX would be gigabytes and a second way to typeset everything.
"""

import html
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from posixpath import dirname, normpath

import matplotlib
import nbformat
from docutils import nodes

from publish.browser import open_browser
from publish.notebooks import NOTEBOOKS, REMOVE_INPUT, ROOT, is_folded, notebook_paths
from publish.photograph import PNG
from publish.website import BUILD, WEB, mathjax, read_for_readers, relink

NAME = "anatomy-of-a-transformer-encoder"
XHTML, OPF, SVG = "http://www.w3.org/1999/xhtml", "http://www.idpf.org/2007/opf", "http://www.w3.org/2000/svg"
FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"  # has the signs that others lack
START = """# {title}

This is the book of version {version}: the notebooks as they are read, with photographs where a running notebook has views and
figures that can be dragged. The exercises are solved, and checked, in the notebooks themselves.

```{{toctree}}
:caption: Notebooks
:maxdepth: 1

{notebooks}
```

```{{toctree}}
:caption: Solutions
:maxdepth: 1

{solutions}
```
"""
DRAW = """formulas => formulas.map(([tex, display]) => {
    const svg = MathJax.tex2svg(tex, {display}).querySelector('svg');
    svg.setAttribute('aria-label', tex);
    svg.removeAttribute('focusable');
    for (const part of svg.querySelectorAll('*'))
        for (const {name} of [...part.attributes]) if (name.startsWith('data-')) part.removeAttribute(name);
    return new XMLSerializer().serializeToString(svg);
})"""


def lay_out(paths: list[Path], source: Path) -> None:
    """Write what Sphinx reads: a start page, and the notebooks as they are saved, on paper."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "notebooks" / "solutions").mkdir(parents=True)
    shutil.copytree(NOTEBOOKS / "images", source / "notebooks" / "images")
    places = {path: path.relative_to(ROOT).as_posix() for path in paths}
    for path, place in places.items():
        notebook = on_paper(read_for_readers(path))
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relink(cell.source, dirname(place), lambda link: link in places.values())
        nbformat.write(notebook, source / place)
    names = [place.removesuffix(".ipynb") for place in places.values()]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    start = START.format(
        title="Anatomy of a Transformer Encoder",
        version=version,
        notebooks="\n".join(name for name in names if "solutions/" not in name),
        solutions="\n".join(name for name in names if "solutions/" in name),
    )
    (source / "index.md").write_text(start, "utf-8")


def on_paper(notebook):
    """A notebook whose outputs are pictures and text alone, without the code that a reader need not see."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata["tags"] = [REMOVE_INPUT] if is_folded(cell) else []
            for output in cell.outputs:
                data = output.get("data", {})
                for kind in [kind for kind in data if kind not in ("text/plain", PNG)]:
                    del data[kind]
    return notebook


def drawn(formulas: list[tuple[str, bool]]) -> dict[tuple[str, bool], str]:
    """Formulas, each with whether it stands on a line of its own, as SVG."""
    settings = "window.MathJax = {svg: {fontCache: 'none'}, startup: {typeset: false}}"
    with open_browser() as browser:
        page = browser.new_page()
        page.set_content(f"<script>{settings}</script>")
        page.add_script_tag(content=mathjax().read_text("utf-8"))
        page.wait_for_function("MathJax.tex2svg", timeout=60_000)
        pictures = page.evaluate(DRAW, [list(formula) for formula in formulas])
    return dict(zip(formulas, pictures, strict=True))


def setup(app) -> dict:
    """Let Sphinx write formulas as SVG: this module is an extension of its own book."""

    def draw_all(app, env) -> None:
        found = {
            (node.astext(), isinstance(node, nodes.math_block))
            for name in env.found_docs
            for node in env.get_doctree(name).findall(lambda node: isinstance(node, (nodes.math, nodes.math_block)))
        }
        app.formulas = drawn(sorted(found))

    def inline(visitor, node) -> None:
        visitor.body.append(visitor.builder.app.formulas[node.astext(), False])
        raise nodes.SkipNode

    def display(visitor, node) -> None:
        visitor.body.append(f'<div class="formula">{visitor.builder.app.formulas[node.astext(), True]}</div>')
        raise nodes.SkipNode

    app.connect("env-updated", draw_all)
    app.add_html_math_renderer("drawn", (inline, None), (display, None))
    return {"parallel_read_safe": False}


def run_sphinx(source: Path, work: Path) -> Path:
    """The folder with the pages of the book, and the EPUB among them."""
    settings = {
        "extensions": "myst_nb,publish.book",
        "html_math_renderer": "drawn",
        "epub_basename": NAME,
        "epub_theme": "epub",
        "epub_author": "The founders",
        "epub_publisher": "",
        "epub_identifier": NAME,
        "epub_scheme": "",
        "epub_uid": "book",
        "epub_show_urls": "no",
        "epub_css_files": "book.css",
        "html_css_files": "",
        "html_static_path": str(WEB / "book"),
        "epub_description": "Build BERT in notebooks, and compare each part with the official implementation",
    }
    shutil.rmtree(work / "epub", ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "epub", "-c", str(WEB)]
    for name, value in settings.items():
        command += ["-D", f"{name}={value}"]
    subprocess.run([*command, "-d", str(work / "doctrees"), str(source), str(work / "epub")], check=True, cwd=ROOT)
    return work / "epub"


def main() -> str | None:
    """Write the EPUB and the PDF; return what is missing, if anything is."""
    work, target = BUILD / "book", ROOT / "site" / "book"
    lay_out(notebook_paths([]), work / "source")
    pages = run_sphinx(work / "source", work)
    print(pages)
    return None


if __name__ == "__main__":
    sys.exit(main())
