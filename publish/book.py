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
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

import matplotlib
import nbformat
from docutils import nodes

from publish.browser import find_browser, open_browser
from publish.notebooks import NOTEBOOKS, REMOVE_INPUT, ROOT, is_folded, notebook_paths
from publish.photograph import PNG, photograph
from publish.website import BUILD, WEB, mathjax, read_for_readers, relink

NAME = "anatomy-of-a-transformer-encoder"
XHTML, OPF = "http://www.w3.org/1999/xhtml", "http://www.idpf.org/2007/opf"
FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"  # has the signs that others lack
INSTALL_EPUBCHECK = "to check the EPUB, install epubcheck (apt install epubcheck, or brew install epubcheck)"
FILE_OF_EPUB = re.compile(r'<item\b[^>]*?href="([^"]*\.xhtml)"')
LOST_STYLE = re.compile(rb"<link[^>]*mystnb[^>]*/>")  # which Sphinx names and leaves out
TO_A_HEADING = re.compile(r"(\]\((?![a-z]+:)[^)#\s]*)#([^)\s]+)\)")
START = """# {title}

This is the book of version {version}: the notebooks as they are read, with photographs where a running notebook has
views and figures that can be dragged. The exercises are solved, and checked, in the notebooks themselves.

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
DRAW = """formulas => Promise.all(formulas.map(async ([tex, display]) => {
    const svg = (await MathJax.tex2svgPromise(tex, {display})).querySelector('svg');
    svg.setAttribute('aria-label', tex);
    svg.removeAttribute('focusable');
    for (const part of svg.querySelectorAll('*'))
        for (const {name} of [...part.attributes]) if (name.startsWith('data-')) part.removeAttribute(name);
    return new XMLSerializer().serializeToString(svg);
}))"""


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
                told = relink(cell.source, dirname(place), lambda link: link in places.values())
                cell.source = TO_A_HEADING.sub(lambda link: f"{link[1]}#{slug(unquote(link[2]))})", told)
        nbformat.write(notebook, source / place)
    names = [place.removesuffix(".ipynb") for place in places.values()]
    start = START.format(
        title="Anatomy of a Transformer Encoder",
        version=read_version(),
        notebooks="\n".join(name for name in names if "solutions/" not in name),
        solutions="\n".join(name for name in names if "solutions/" in name),
    )
    (source / "index.md").write_text(start, "utf-8")


def read_version() -> str:
    """The version of the series."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def slug(heading: str) -> str:
    """The name by which a heading is linked to in the book: without signs that pages of an EPUB forbid."""
    return re.sub(r"\W+", "-", heading).strip("-")


def on_paper(notebook):
    """A notebook whose outputs are pictures and text alone, without the code that a reader need not see.

    A view that was saved without its picture is photographed.
    """
    photograph(notebook, before=notebook)
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
        page.evaluate("() => MathJax.startup.promise.then(() => null)")
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
    for folder in ("epub", "settings"):
        shutil.rmtree(work / folder, ignore_errors=True)
    settings = Path(shutil.copytree(WEB / "book", work / "settings"))
    shutil.copy(FONT, settings / "static")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "epub", "-c", str(settings)]
    command += ["-d", str(work / "doctrees"), str(source), str(work / "epub")]
    subprocess.run(command, check=True, cwd=ROOT)
    return work / "epub"


def finish(pages: Path, target: Path) -> Path:
    """Zip the EPUB anew, its list of files with the fonts and with word of the drawn formulas."""
    made, ready = pages / f"{NAME}.epub", target / f"{NAME}.epub"
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(ready, "w", zipfile.ZIP_DEFLATED) as new:
        with_svg = {name for name in old.namelist() if name.endswith(".xhtml") and b"<svg" in old.read(name)}
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith("content.opf"):
                content = FILE_OF_EPUB.sub(partial(declared, with_svg=with_svg), content.decode()).encode()
            elif entry.filename.endswith(".xhtml"):
                content = LOST_STYLE.sub(b"", content)
            new.writestr(entry, content, compress_type=entry.compress_type)
    return ready


def declared(item: re.Match, with_svg: set[str]) -> str:
    """An entry of the EPUB's list of files, which says so if the file holds drawn formulas."""
    return item[0] + ' properties="svg"' * any(name.endswith(item[1]) for name in with_svg)


def one_page(pages: Path) -> str:
    """All pages in the order of the book as one, in which links lead from place to place."""
    package = ET.parse(pages / "content.opf").getroot()
    files = {item.get("id"): item.get("href") for item in package.iter(f"{{{OPF}}}item")}
    order = [files[item.get("idref")] for item in package.iter(f"{{{OPF}}}itemref")]
    chapters = [name for name in order if name == "index.xhtml" or name.startswith("notebooks/")]
    ET.register_namespace("", XHTML)
    bodies = []
    for name in chapters:
        body = ET.parse(pages / name).getroot().find(f".//{{{XHTML}}}body")
        for part in body.iter():
            if place := part.get("id"):
                part.set("id", place_of(name, place))
            link, picture = part.get("href", ""), part.get("src", "")
            if link and not re.match("[a-z]+:", link):
                path, _, place = link.partition("#")
                part.set("href", "#" + place_of(normpath(join(dirname(name), path)) if path else name, place))
            if picture:
                part.set("src", normpath(join(dirname(name), picture)))
        inside = "".join(ET.tostring(part, encoding="unicode") for part in body)
        bodies.append(f'<section id="{html.escape(place_of(name, ""))}">{inside}</section>')
    style = '<link rel="stylesheet" href="_static/pygments.css"><link rel="stylesheet" href="_static/book.css">'
    head = f'<head><meta charset="utf-8"><title>Anatomy of a Transformer Encoder</title>{style}</head>'
    return f'<!doctype html><html lang="en">{head}<body>{"".join(bodies)}</body></html>'


def place_of(name: str, place: str) -> str:
    """The name of a place in one page that holds all."""
    return f"{name.removesuffix('.xhtml')}--{place}"


def print_pdf(pages: Path, target: Path) -> Path:
    """Let the browser print all pages as one PDF, with an outline and links."""
    whole, ready = pages / "whole.html", target / f"{NAME}.pdf"
    whole.write_text(one_page(pages), "utf-8")
    footer = '<div style="font-size: 8px; width: 100%; text-align: center"><span class="pageNumber"></span></div>'
    with open_browser() as browser:
        page = browser.new_page()
        page.goto(whole.as_uri(), timeout=300_000)
        margin = dict.fromkeys(("top", "bottom", "left", "right"), "18mm")
        page.pdf(
            path=ready,
            format="A4",
            margin=margin,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=footer,
            outline=True,
            tagged=True,
        )
    return ready


def epubcheck() -> list[str] | None:
    """The command that checks an EPUB; None where it is not installed. Debian's is an archive that Java runs."""
    program, java = shutil.which("epubcheck"), shutil.which("java")
    if program and Path(program).resolve().suffix == ".jar":
        return [java, "-jar", program] if java else None
    return [program] if program else None


def objection(epub: Path) -> str | None:
    """What to say of an EPUB that epubcheck rejects; None if it accepts it, or is not there, which is said."""
    if (command := epubcheck()) is None:
        print(INSTALL_EPUBCHECK)
        return None
    checked = subprocess.run([*command, str(epub)], check=False)
    return f"epubcheck rejects {epub.name}: see above" if checked.returncode else None


def main() -> str | None:
    """Write the EPUB and the PDF of all notebooks, or of some; return what is missing, if anything is."""
    if find_browser() is None:
        return "the book's formulas and its PDF need Chromium or Chrome, such as apt install chromium"
    work, target = BUILD / "book", ROOT / "site" / "book"
    target.mkdir(parents=True, exist_ok=True)
    lay_out(notebook_paths(sys.argv[1:]), work / "source")
    pages = run_sphinx(work / "source", work)
    epub, pdf = finish(pages, target), print_pdf(pages, target)
    print(*(f"{path}: {path.stat().st_size / 1e6:.1f} MB" for path in (epub, pdf)), sep="\n")
    return objection(epub)


if __name__ == "__main__":
    sys.exit(main())
