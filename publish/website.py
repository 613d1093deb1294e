"""Build the site: execute the notebooks, move their views to separate files, and run Sphinx."""

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from posixpath import normpath

import nbformat
from nbclient.exceptions import CellExecutionError
from tqdm.auto import tqdm

from exercises.parts import DRAWING
from publish import marks, misconceptions
from publish.badges import current, link_to
from publish.marks import LINK
from publish.notebooks import (
    FOLDERS,
    NOTEBOOKS,
    REMOVE_INPUT,
    ROOT,
    WIDGET,
    is_folded,
    join_streams,
    notebook_paths,
    number_of,
    reveals_answer,
    run,
    save,
)
from publish.screenshots import FRAME, PAGE, PNG, add_screenshots
from utils.support.colours import fill_in
from utils.support.files import replacement

BUILD, SITE = ROOT / "build", ROOT / "site"
WEB = Path(__file__).parent / "web"
JOBS = 2  # kernels at a time
OTHER_COMMANDS = {"slides"}  # folders of the site that other commands write
MADE = ".made.txt"  # the list of the site's files
FOLDED_NAME = re.compile(r"# @title ([^:\n]*)")
MATHJAX = "tex-svg-full.js"
MATHJAX_SHA256 = "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6"  # MathJax 3.2.2, as published
HEADING = re.compile(r"^#{1,4} (.*)", re.MULTILINE)
LABEL = re.compile(r"""(title|xlabel|ylabel)(?:=|\()f?(["'])(.*?)\2""")  # in the code that draws a figure
FILM = re.compile(r"!\[[^\]]*\]\([^)]*\.gif\)")  # of the README, which cannot show the view itself
REMOTE_PICTURE = re.compile(r"!\[([^\]]*)\]\(https?:[^)]*\)")
EXPLORER = "explorer.html"
# Pages that need npm, by name: the module whose `build` writes each, and the link under the start page's title.
NPM_PAGES = {
    "type_bert.html": (
        "publish.type_bert.build",
        '<p><a href="{}type_bert.html"><strong>Type the line that makes BERT look</strong></a>: a quarter of an hour, '
        "here in your browser, and the real model runs with your line.</p>",
    ),
    EXPLORER: (
        "explorer.explorer",  # its link is above a notebook's boxes for a reader's own sentences, too
        '<p><a href="{}explorer.html"><strong>One sentence through the encoder</strong></a>: every station with its '
        "real numbers, and your own sentence, computed in your browser.</p>",
    ),
}
ACCESSIBILITY_FIXES = {  # for screen readers: what the HTML of Sphinx and its theme lacks
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
}


def execute(paths: list[Path], folder: Path = BUILD / "executed", first: Path | None = None) -> list[Path]:
    """Execute copies of the notebooks in a folder, unless they are up to date; return their paths.

    Each kernel runs the Python file `first` before the notebook. Without one, a notebook that is saved with all that
    its page shows is copied as it is: tests compare its outputs with a run.
    """
    shutil.copytree(NOTEBOOKS / "images", folder / "images", dirs_exist_ok=True)
    copies = [folder / path.relative_to(NOTEBOOKS) for path in paths]
    todo = [pair for pair in zip(paths, copies, strict=True) if not is_up_to_date(*pair, first)]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // JOBS)))
    with ThreadPoolExecutor(JOBS) as pool:
        runs = pool.map(lambda pair: execute_one(*pair, first), reversed(todo))  # the last notebooks take longest
        list(tqdm(runs, total=len(todo), unit="notebook", desc="executing"))
    return copies


def is_up_to_date(path: Path, copy: Path, first: Path | None) -> bool:
    """Return whether an executed copy is newer than its notebook and the code, including data."""
    packages = (file for folder in ("utils", "views", "exercises") for file in (ROOT / folder).rglob("*.*"))
    sources = [path, ROOT / "microbert.py", *packages, *filter(None, [first])]
    made_from = [source for source in sources if "__pycache__" not in source.parts]
    return copy.exists() and copy.stat().st_mtime > max(source.stat().st_mtime for source in made_from)


def is_saved_whole(notebook) -> bool:
    """Return whether a notebook was run and saved with all its outputs: without views and widgets."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    views = (PAGE in output.get("metadata", {}).get(PNG, {}) for cell in cells for output in cell.outputs)
    is_run = all(cell.execution_count for cell in cells)
    return is_run and not any(views) and not any("explore(" in cell.source for cell in cells)


def execute_one(path: Path, copy: Path, first: Path | None = None) -> None:
    """Write an executed copy of a notebook with its views; `first` runs before it in a separate namespace."""
    notebook, before = nbformat.read(path, as_version=4), nbformat.read(path, as_version=4)
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not first and is_saved_whole(notebook):
        save(notebook, copy)
        return
    if first:
        in_own_namespace = f"exec({first.read_text('utf-8')!r}, {{'__name__': {first.stem!r}}})"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(in_own_namespace))
    try:
        run(notebook, copy.parent, timeout=900)
    except CellExecutionError as error:
        raise RuntimeError(f"{path.name} raised an error, so it has no page") from error
    if first:
        del notebook.cells[0]
    try:
        add_screenshots(notebook, before)
    except FileNotFoundError as error:
        print(f"{path.name}: a view has no still picture for pages without scripts: {error}")
    save(notebook, copy)  # atomically, because an existing copy counts as executed


def read_for_display(path: Path, edition: str = "site", above_boxes: str = ""):
    """Read an executed notebook for an edition, without progress bars, warnings and widgets.

    A widget with an HTML fallback, such as that of `explore`, is replaced by it, below `above_boxes`.
    """
    notebook, heading = marks.read_notebook(nbformat.read(path, as_version=4), edition), path.stem
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = join_streams([output for output in cell.outputs if is_displayed(output)])
            for data in (output.get("data", {}) for output in cell.outputs):
                if WIDGET in data:
                    data.pop(WIDGET)
                    data["text/html"] = above_boxes + data["text/html"]
                if "image/svg+xml" in data:  # the diagram of parts, whose links lead to notebooks
                    data.pop("text/html", None)
            add_alt_texts(cell, heading)
        else:
            heading = [heading, *HEADING.findall(cell.source)][-1]
    return notebook


def is_displayed(output) -> bool:
    """Return whether an output is more than a progress bar, a warning or a bare widget."""
    data = output.get("data", {})
    return output.get("name") != "stderr" and (WIDGET not in data or "text/html" in data)


def add_alt_texts(cell, heading: str) -> None:
    """Set the alt text of a cell's pictures to the title of its figure.

    Without a title, it is the heading above the cell with the names of the axes.
    """
    labels = LABEL.findall(cell.source)
    titles = [text for name, _, text in labels if name == "title"]
    axes = [text for name, _, text in labels if name != "title"]
    title = re.sub(r"\{.*?\}", "…", (titles or ["; ".join([f"Figure to “{heading}”", *axes])])[-1])
    cell.metadata["mystnb"] = {"image": {"alt": title}}
    for output in cell.outputs:
        for kind in output.get("data", {}):
            if kind.startswith("image/"):
                output.metadata.setdefault(kind, {})["alt"] = title  # next to width and height


def extract_views(notebook, name: str, folder: Path) -> list[str]:
    """Move the page of each view to its own file, which static/views.js loads when it scrolls into view.

    Return the HTML of the outputs that show them.
    """
    number, shown = 0, []

    def move(frame: re.Match, picture: str) -> str:
        nonlocal number
        number += 1
        view, (title, page) = f"{name}-{number}", frame.groups()
        script = f"drawView({json.dumps(view)}, {json.dumps(html.unescape(page))});\n"
        (folder / f"{view}.js").write_text(script, "utf-8")
        style = "width: 100%; height: 400px; border: 0"
        still = f'<img alt="{title}" src="data:image/png;base64,{picture}"><br>' if picture else ""
        fallback = f"<p>{still}{title}. The interactive view appears here if JavaScript is enabled.</p>"
        return f'<iframe title="{title}" data-view="{view}" style="{style}"></iframe>{fallback}'

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "srcdoc" in data.get("text/html", ""):
                extracted = FRAME.sub(partial(move, picture=data.pop(PNG, "")), data["text/html"])
                data["text/html"] = extracted.replace("<div>", '<div class="attention-view">', 1)
                shown.append(data["text/html"])
    return shown


def first_picture_first(cells: list) -> list:
    """Return a page's cells with what one runs or reads before the first section at its end, if that has a picture."""
    sections = [at for at, cell in enumerate(cells) if cell.source.startswith("## ")]
    if len(sections) < 2 or "![" in cells[0].source:
        return cells
    begin, end = sections[:2]
    data = [output.get("data", {}) for cell in cells[begin:end] for output in cell.get("outputs", [])]
    if not any(PNG in each or "<iframe" in each.get("text/html", "") for each in data):
        return cells
    return [cells[0], *cells[begin:end], *cells[1:begin], *cells[end:]]


def anchor(heading: str) -> str:
    """Return the anchor of a heading, the same on the site as in JupyterLab and on GitHub."""
    return heading.replace(" ", "-")


def relink(text: str, folder: str, stays) -> str:
    """Return Markdown whose relative links lead to the repository on GitHub, except where `stays(path)` is true.

    `folder` is the folder of the text in the repository, and `path` the target of a link in it. In a copy without an
    address, only the label of such a link stays. A remote picture is replaced by its alt text.
    """
    ours = current()

    def target(match: re.Match) -> str:
        image, label, link, rest = match.groups()
        path = normpath(f"{folder}/{link}")
        address = link if image or stays(path) else link_to(path, ours)
        return f"{image}{label}({address}{rest})" if address else label[1:-1]

    return LINK.sub(target, REMOTE_PICTURE.sub(r"\1", text))


def place_of(path: Path) -> str:
    """Return the path of a notebook in notebooks/, from its name: that of a solution ends with _solutions.ipynb."""
    folder = path.stem.rpartition("_")[2]
    return f"{folder}/{path.name}" if folder in FOLDERS else path.name


def group_by_folder(names: list[str]) -> dict[str, list[str]]:
    """Return the names of pages by caption: notebooks, the evening first, then each folder in notebooks/."""
    return {
        "Notebooks" if folder == "." else folder.capitalize(): sorted(
            (name for name in names if Path(name).parent == Path("notebooks", folder)),
            key=lambda name: Path(name).name != "evening",
        )
        for folder in FOLDERS
    }


def start_page(readme: Path, places: list[str], extras: Collection[str] = (), opening: str = "") -> str:
    """Return the README with a table of all pages and, under its title, links to the NPM_PAGES that are in `extras`.

    `opening` is the HTML of the view that takes the place of the README's first film.
    """
    start = relink(readme.read_text("utf-8"), ".", lambda link: link in places)
    if opening:
        start = FILM.sub(lambda _: opening, start, count=1)
    for name, (_, link) in NPM_PAGES.items():
        if name in extras:
            start = start.replace("\n", f"\n\n{link.format('')}\n", 1)
    names = [place.removesuffix(".ipynb") for place in places]
    pages_of = group_by_folder(names) | {"For teachers": ["misconceptions"]}
    for caption, pages in pages_of.items():
        if pages:
            start += "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"
    return start


def write_sources(copies: list[Path], readme: Path, source: Path, images: Path, extras: Collection[str] = ()) -> None:
    """Write the sources for Sphinx: the README as start page, the notebooks with their links, and the views.

    `extras` are the NPM_PAGES that will be next to the start page.
    """
    shutil.rmtree(source, ignore_errors=True)
    views = source / "_static" / "views"
    for folder in (*(source / "notebooks" / folder for folder in FOLDERS), views):
        folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(images, source / "notebooks" / "images")
    (source / DRAWING.parent.name).mkdir()
    shutil.copy(DRAWING, source / DRAWING.parent.name)
    places, opening = {path: f"notebooks/{place_of(path)}" for path in copies}, ""
    for path, place in places.items():
        link = NPM_PAGES[EXPLORER][1].format("../" * place.count("/")) if EXPLORER in extras else ""
        notebook = read_for_display(path, above_boxes=link)
        shown = extract_views(notebook, path.stem, views)
        notebook.cells = first_picture_first(notebook.cells)
        if place.startswith("notebooks/00"):  # not its proofs and solutions
            opening = next(iter(shown), "")
        folder = str(Path(place).parent)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relink(cell.source, folder, lambda link: link in places.values())
        for cell in notebook.cells:  # pages show the code that slides hide
            tags = [tag for tag in cell.metadata.get("tags", []) if tag != REMOVE_INPUT]
            cell.metadata["tags"] = tags + ["hide-input"] * is_folded(cell)
            if is_folded(cell):
                name = FOLDED_NAME.match(cell.source)[1]
                cell.metadata["mystnb"] |= {f"code_prompt_{do}": f"{name}: {do} the code" for do in ("show", "hide")}
            if reveals_answer(cell):
                cell.outputs = []  # the box after it shows them
        nbformat.write(notebook, source / place)
    start = start_page(readme, list(places.values()), extras, opening)
    (source / "index.md").write_text(start, "utf-8")
    page = relink(misconceptions.page(), ".", lambda link: link in places.values())
    (source / "misconceptions.md").write_text(page, "utf-8")
    shutil.copy(mathjax(), source / "_static" / MATHJAX)


def mathjax() -> Path:
    """Return the path of MathJax in a third-party package; ValueError unless it is the file that MathJax published."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None:
        raise ModuleNotFoundError("formulas need MathJax: pip install -r requirements-dev.txt")
    path = Path(spec.submodule_search_locations[0]) / "static" / "mathjax" / MATHJAX
    if sha256(path.read_bytes()).hexdigest() != MATHJAX_SHA256:
        raise ValueError(f"{path} is not MathJax 3.2.2 as published: pip install -r requirements-dev.txt")
    return path


def make_npm_pages(copies: list[Path], folder: Path) -> None:
    """Write the NPM_PAGES into a folder; print why one is left out, if npm cannot install its runtime."""
    pages = {number_of(path): f"notebooks/{path.stem}.html" for path in copies if path.parent.name not in FOLDERS}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    all_pages = tqdm(NPM_PAGES.items(), unit="page", desc="pages that compute")
    for name, (module, _) in all_pages:  # imported here, because slides do not need their packages
        try:
            importlib.import_module(module).build(folder, BUILD / "npm", pages)
        except OSError as error:
            print(f"{name} is left out: {error}")


def build(copies: list[Path], site: Path, work: Path, extras: Path | None = None) -> None:
    """Build the site from executed notebooks, with the pages in `extras`; the old site stays until the end."""
    found = {path.name for path in extras.glob("*.html")} if extras else set()
    write_sources(copies, ROOT / "README.md", work / "source", NOTEBOOKS / "images", found)
    shutil.rmtree(work / "html", ignore_errors=True)
    quiet = [] if sys.stdout.isatty() else ["-q"]  # Sphinx has a progress line of its own
    command = [sys.executable, "-m", "sphinx", *quiet, "-W", "--keep-going", "-E", "-b", "html", "-c", str(WEB)]
    command += ["-d", str(work / "doctrees"), str(work / "source"), str(work / "html")]
    subprocess.run(command, check=True)
    for path in (work / "html").rglob("*.html"):
        page = path.read_text("utf-8")
        for old, new in ACCESSIBILITY_FIXES.items():
            page = page.replace(old, new)
        path.write_text(page, "utf-8")
    shutil.copytree(work / "source" / "_static", work / "html" / "_static", dirs_exist_ok=True)
    style = work / "html" / "_static" / "site.css"
    style.write_text(fill_in(style.read_text("utf-8")), "utf-8")
    if extras:
        shutil.copytree(extras, work / "html", dirs_exist_ok=True)
    replace_site(site, work / "html")


def replace_site(site: Path, new: Path) -> None:
    """Replace a site by a new one in one step. What the last build did not write stays, such as slides and CNAME."""
    made = {path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()} | {MADE}
    with replacement(site.resolve()) as complete:  # a link keeps its place
        shutil.copytree(new, complete)
        (complete / MADE).write_text("\n".join(sorted(made)), "utf-8")
        listed = (site / MADE).read_text("utf-8").split("\n") if (site / MADE).is_file() else []
        for path in (path for path in site.rglob("*") if path.is_file()):
            name = path.relative_to(site).as_posix()
            if name not in made.union(listed):
                (complete / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, complete / name)


def main() -> None:
    """Execute all notebooks, build the site and print its size."""
    copies = execute(notebook_paths([]))
    make_npm_pages(copies, BUILD / "explorer")
    build(copies, SITE, BUILD, BUILD / "explorer")
    files = [path for path in SITE.rglob("*") if path.is_file() and not OTHER_COMMANDS & {*path.parts}]
    size = sum(path.stat().st_size for path in files)
    print(f"{SITE / 'index.html'}: {len(files)} files, {size / 1e6:.1f} MB")
    print("explorer.html and type_bert.html compute when served: python -m http.server --bind 127.0.0.1 -d site")


if __name__ == "__main__":
    main()
