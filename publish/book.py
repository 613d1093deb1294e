"""The book: an EPUB of all notebooks as they are saved, and a PDF that Chromium prints of the same pages.

Sphinx builds the pages as for the site, with screenshots in place of interactive views. MathJax renders the formulas
as SVG, so that readers need no fonts for them. The browser that takes the screenshots prints the PDF, because LaTeX
would take gigabytes and typeset everything a second way.
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

import matplotlib as mpl
import nbformat
from docutils import nodes

from exercises.parts import DRAWING
from publish.browser import find_browser, open_browser
from publish.notebooks import (
    FENCED,
    FOLDERS,
    NOTEBOOKS,
    OUR_VERSION_BLOCK,
    REMOVE_INPUT,
    ROOT,
    is_folded,
    is_our_version,
    notebook_paths,
)
from publish.screenshots import PNG, add_screenshots
from publish.website import BUILD, WEB, group_by_folder, mathjax, read_for_display, relink
from utils.support.colours import FACE, LETTERS, LIGHT, MONOSPACE, SMALL

FONTS = Path(mpl.get_data_path(), "fonts", "ttf")  # matplotlib's DejaVu Sans has signs that other fonts lack
NAME = "anatomy-of-a-transformer-encoder"
XHTML, OPF = "http://www.w3.org/1999/xhtml", "http://www.idpf.org/2007/opf"
INSTALL_EPUBCHECK = "to check the EPUB, install epubcheck (apt install epubcheck, or brew install epubcheck)"
FILE_OF_EPUB = re.compile(r'<item\b[^>]*?href="([^"]*\.xhtml)"')
LOST_STYLE = re.compile(rb"<link[^>]*mystnb[^>]*/>")  # linked by Sphinx but not in the EPUB
POINTER = re.compile(r"\b(?:hover|click|drag|press|point at|move the (?!factor)|step through|swap the)", re.IGNORECASE)
BOLD = re.compile(r"(^\d\. )?\*\*(.+?)\*\*(,[^.?!\n]*[.?!])?", re.MULTILINE)
WAY = re.compile(  # through the notebooks
    r" \(open it when you have [^)]*\)"
    r"|^(?:Read \d+ minutes.*|Run each cell with .*|Previous: .*|Next: \[[^\]]*\]\(\S*\))$"
    r"| Run the first two cells, then any section\.",
    re.MULTILINE,
)
TO_DO = re.compile(r"^(?:Exercise \S+: not attempted yet|You have predicted nothing yet).*\n", re.MULTILINE)
TO_A_HEADING = re.compile(r"(\]\((?![a-z]+:)[^)#\s]*)#([^)\s]+)\)")
START = """# Contents

This is the book of version {version}: the notebooks, with pictures of the views and figures that you can change in a
running notebook. Exercises are checked there, too.

"""
COVER = """<div class="cover"><p class="title">Anatomy of a Transformer Encoder</p>
<p>Build BERT in notebooks, and compare each part with the official implementation</p>
{picture}<p>Version {version}</p></div>"""
CONTENTS = """
```{{toctree}}
:caption: {caption}
:maxdepth: 1

{names}
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


def write_sources(paths: list[Path], source: Path) -> None:
    """Write the sources for Sphinx: a start page, and the saved notebooks prepared for print."""
    shutil.rmtree(source, ignore_errors=True)
    for folder in FOLDERS:
        (source / "notebooks" / folder).mkdir(parents=True, exist_ok=True)
    shutil.copytree(NOTEBOOKS / "images", source / "notebooks" / "images")
    names = {path: path.relative_to(ROOT).as_posix() for path in paths}
    appendix = "# Our versions\n\nThe finished code of the exercises.\n"
    for path, name in names.items():
        notebook = prepare_for_print(read_for_display(path))
        ours = [cell for cell in notebook.cells if is_our_version(cell)]
        if ours:
            appendix += f"\n## {notebook.cells[0].source.splitlines()[0].lstrip('# ')}\n"
        for cell in ours:
            appendix += "".join(f"\n```python\n{code}\n```\n" for code in FENCED.findall(cell.source))
            cell.source = OUR_VERSION_BLOCK.sub("*(Our version: in the appendix “Our versions”.)*", cell.source)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                text = relink(for_paper(cell.source), dirname(name), lambda link: link in names.values())
                cell.source = TO_A_HEADING.sub(lambda link: f"{link[1]}#{slug(unquote(link[2]))})", text)
        nbformat.write(notebook, source / name)
    stems = [name.removesuffix(".ipynb") for name in names.values()]
    start = START.format(version=read_version())
    for folder, chapters in group_by_folder(stems).items():
        caption = folder if folder == "Notebooks" else f"Appendix: {folder.lower()}"
        start += CONTENTS.format(caption=caption, names="\n".join(chapters)) if chapters else ""
    if "```" in appendix:
        (source / "our_versions.md").write_text(appendix, "utf-8")
        start += CONTENTS.format(caption="Appendix: our versions", names="our_versions")
    (source / "index.md").write_text(start, "utf-8")


def read_version() -> str:
    """Return the version of the series."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def for_paper(text: str) -> str:
    """Return Markdown with its folds open, without the way through the notebooks and bold requests for a pointer."""

    def without_request(bold: re.Match) -> str:
        begins_an_item, text, rest = bold.groups()
        is_sentence = rest or text.endswith((".", "?", "!"))
        return "" if is_sentence and not begins_an_item and POINTER.search(text) else bold[0]

    return BOLD.sub(without_request, WAY.sub("", text)).replace("<details>", '<details open="open">')


def slug(heading: str) -> str:
    """Return the anchor of a heading in the book, without characters that EPUB forbids."""
    return re.sub(r"\W+", "-", heading).strip("-")


def prepare_for_print(notebook):
    """Keep only pictures and text of a notebook's outputs, without the set-up's and what is to do; hide folded code.

    A view that was saved without a screenshot gets one.
    """
    add_screenshots(notebook, before=notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata["tags"] = [REMOVE_INPUT] if is_folded(cell) else []
            if cell.source.startswith("# @title Set-up"):
                cell.outputs = []
            for output in cell.outputs:
                output.update({"text": TO_DO.sub("", output.text)} if "text" in output else {})
                data = output.get("data", {})
                for kind in [kind for kind in data if kind not in ("text/plain", PNG)]:
                    del data[kind]
            cell.outputs = [output for output in cell.outputs if output.get("text", "there")]
    return notebook


def render_formulas(formulas: list[tuple[str, bool]]) -> dict[tuple[str, bool], str]:
    """Return the SVG of each formula; the flag is true for a displayed formula."""
    settings = "window.MathJax = {svg: {fontCache: 'none'}, startup: {typeset: false}}"
    with open_browser() as browser:
        page = browser.new_page()
        page.set_content(f"<script>{settings}</script>")
        page.add_script_tag(content=mathjax().read_text("utf-8"))
        page.evaluate("() => MathJax.startup.promise.then(() => null)")
        pictures = page.evaluate(DRAW, [list(formula) for formula in formulas])
    return dict(zip(formulas, pictures, strict=True))


def setup(app) -> dict:
    """Register this module as a Sphinx extension that writes formulas as SVG."""

    def draw_all(app, env) -> None:
        found = {
            (node.astext(), isinstance(node, nodes.math_block))
            for name in env.found_docs
            for node in env.get_doctree(name).findall(lambda node: isinstance(node, (nodes.math, nodes.math_block)))
        }
        app.formulas = render_formulas(sorted(found))

    def inline(visitor, node) -> None:
        visitor.body.append(visitor.builder.app.formulas[node.astext(), False])
        raise nodes.SkipNode

    def display(visitor, node) -> None:
        visitor.body.append(f'<div class="formula">{visitor.builder.app.formulas[node.astext(), True]}</div>')
        raise nodes.SkipNode

    app.connect("env-updated", draw_all)
    app.add_html_math_renderer("svg", (inline, None), (display, None))
    return {"parallel_read_safe": False}


def run_sphinx(source: Path, work: Path) -> Path:
    """Run Sphinx, and return the folder with the pages and the EPUB."""
    for folder in ("epub", "settings"):
        shutil.rmtree(work / folder, ignore_errors=True)
    settings = Path(shutil.copytree(WEB / "book", work / "settings"))
    shutil.copy(FONTS / "DejaVuSans.ttf", settings / "static")
    licence = (FONTS / "LICENSE_DEJAVU").read_text("utf-8")
    (source / "fonts.md").write_text(f"# Fonts\n\nThe book holds this font.\n\n```text\n{licence}\n```\n", "utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as start:
        start.write(CONTENTS.format(caption="Appendix: fonts", names="fonts"))
    style = settings / "static" / "book.css"
    style.write_text(fill_in_values(style.read_text("utf-8")), "utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-b", "epub", "-c", str(settings)]
    command += ["-d", str(work / "doctrees"), str(source), str(work / "epub")]
    subprocess.run(command, check=True, cwd=ROOT)
    return work / "epub"


def fill_in_values(sheet: str) -> str:
    """Return a style sheet with the values of the colour table, because reading devices may know no CSS variables."""
    values = LIGHT | {"face": FACE, "monospace": MONOSPACE, "small": f"{SMALL / LETTERS:.2f}em"}
    return re.sub(r"var\(--(\w+)\)", lambda variable: values[variable[1]], sheet)


def repack_epub(pages: Path, target: Path) -> Path:
    """Repack the EPUB: declare SVG formulas in its manifest and remove links to a missing style sheet."""
    made, result = pages / f"{NAME}.epub", target / f"{NAME}.epub"
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        with_svg = {name for name in old.namelist() if name.endswith(".xhtml") and b"<svg" in old.read(name)}
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith("content.opf"):
                content = FILE_OF_EPUB.sub(partial(declare_svg, with_svg=with_svg), content.decode()).encode()
            elif entry.filename.endswith(".xhtml"):
                content = LOST_STYLE.sub(b"", content)
            new.writestr(entry, content, compress_type=entry.compress_type)
    return result


def declare_svg(item: re.Match, with_svg: set[str]) -> str:
    """Return an entry of the EPUB's manifest, with properties="svg" if the file has SVG formulas."""
    return item[0] + ' properties="svg"' * any(name.endswith(item[1]) for name in with_svg)


def merge_pages(pages: Path) -> str:
    """Return one HTML page of all pages in order, with links turned into anchors."""
    package = ET.parse(pages / "content.opf").getroot()
    files = {item.get("id"): item.get("href") for item in package.iter(f"{{{OPF}}}item")}
    order = [files[item.get("idref")] for item in package.iter(f"{{{OPF}}}itemref")]
    others = ("index.xhtml", "our_versions.xhtml", "fonts.xhtml")
    chapters = [name for name in order if name in others or name.startswith("notebooks/")]
    bodies = []
    for name in chapters:
        body = ET.parse(pages / name).getroot().find(f".//{{{XHTML}}}body")
        for part in body.iter():
            part.tag = part.tag.rpartition("}")[2]  # HTML knows no prefixes, and would leave out the formulas
            if anchor := part.get("id"):
                part.set("id", anchor_of(name, anchor))
            link, picture = part.get("href", ""), part.get("src", "")
            if link and not re.match("[a-z]+:", link):
                path, _, anchor = link.partition("#")
                part.set("href", "#" + anchor_of(normpath(join(dirname(name), path)) if path else name, anchor))
            if picture:
                part.set("src", normpath(join(dirname(name), picture)))
        inside = "".join(ET.tostring(part, encoding="unicode", method="html") for part in body)
        bodies.append(f'<section id="{html.escape(anchor_of(name, ""))}">{inside}</section>')
    style = '<link rel="stylesheet" href="_static/pygments.css"><link rel="stylesheet" href="_static/book.css">'
    head = f'<head><meta charset="utf-8"><title>Anatomy of a Transformer Encoder</title>{style}</head>'
    cover = COVER.format(picture=DRAWING.read_text("utf-8"), version=read_version())
    return f'<!doctype html><html lang="en">{head}<body>{cover}{"".join(bodies)}</body></html>'


def anchor_of(name: str, anchor: str) -> str:
    """Return the anchor in the merged page for an anchor of one page."""
    return f"{name.removesuffix('.xhtml')}--{anchor}"


def print_pdf(pages: Path, target: Path) -> Path:
    """Print all pages as one PDF with an outline and links, and return its path."""
    merged, result = pages / "whole.html", target / f"{NAME}.pdf"
    merged.write_text(merge_pages(pages), "utf-8")
    footer = '<div style="font-size: 8px; width: 100%; text-align: center"><span class="pageNumber"></span></div>'
    with open_browser() as browser:
        page = browser.new_page()
        page.goto(merged.as_uri(), timeout=300_000)
        margin = dict.fromkeys(("top", "bottom", "left", "right"), "18mm")
        page.pdf(
            path=result,
            format="A4",
            margin=margin,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=footer,
            outline=True,
            tagged=True,
        )
    return result


def epubcheck() -> list[str] | None:
    """Return the command of epubcheck, or None if it is not installed; Debian's is a JAR that Java runs."""
    program, java = shutil.which("epubcheck"), shutil.which("java")
    if program and Path(program).resolve().suffix == ".jar":
        return [java, "-jar", program] if java else None
    return [program] if program else None


def check_epub(epub: Path) -> str | None:
    """Return an error message if epubcheck rejects an EPUB; None if it passes or epubcheck is not installed."""
    if (command := epubcheck()) is None:
        print(INSTALL_EPUBCHECK)
        return None
    checked = subprocess.run([*command, str(epub)], check=False)
    return f"epubcheck rejects {epub.name}: see above" if checked.returncode else None


def main() -> str | None:
    """Write the EPUB and the PDF of all or some notebooks; return an error message or None."""
    if find_browser() is None:
        return "the book's formulas and its PDF need Chromium or Chrome, such as apt install chromium"
    if not (paths := notebook_paths(sys.argv[1:])):
        return f"no notebook begins with {' or '.join(sys.argv[1:])}: pass its number, as in make book NB=03"
    work, target = BUILD / "book", ROOT / "site" / "book"
    target.mkdir(parents=True, exist_ok=True)
    write_sources(paths, work / "source")
    pages = run_sphinx(work / "source", work)
    epub, pdf = repack_epub(pages, target), print_pdf(pages, target)
    print(*(f"{path}: {path.stat().st_size / 1e6:.1f} MB" for path in (epub, pdf)), sep="\n")
    return check_epub(epub)


if __name__ == "__main__":
    sys.exit(main())
