"""Build the site: execute the notebooks, take their views out into files, and let Sphinx make pages of it all."""

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from posixpath import normpath

import nbformat
from nbclient.exceptions import CellExecutionError
from tqdm.auto import tqdm

from tools.badges import current_slug
from tools.notebooks import (
    NOTEBOOKS,
    REMOVE_INPUT,
    ROOT,
    WIDGET,
    is_folded,
    join_streams,
    notebook_paths,
    run,
    save,
)

BUILD, SITE = ROOT / "build", ROOT / "site"
WEB = Path(__file__).parent / "web"
JOBS = 2  # kernels at a time
MATHJAX = "tex-svg-full.js"
MATHJAX_SHA256 = (
    "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6"  # MathJax 3.2.2, as published
)
FRAME = re.compile(r"""<iframe title="([^"]*)" srcdoc='([^']*)'[^>]*></iframe><p>.*?</p>""", re.DOTALL)
REMOTE_PICTURE = re.compile(r"!\[([^\]]*)\]\(https?:[^)]*\)")
EXPLORER_LINK = (  # under the start page's title
    '<p><a href="explorer.html"><strong>One sentence through the encoder</strong></a>: every station with its '
    "real numbers, and your own sentence, computed in your browser.</p>"
)
LINK = re.compile(r"(!?)(\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\])\((?![a-z]+:|#)([^)#\s]+)([^)]*)\)")


def execute(paths: list[Path]) -> list[Path]:
    """Executed copies of the notebooks in the build folder; copies newer than all they were made from are kept."""
    folder = BUILD / "executed"
    for name in ("data", "images"):
        if (NOTEBOOKS / name).exists():
            shutil.copytree(NOTEBOOKS / name, folder / name, dirs_exist_ok=True)
    copies = [folder / path.relative_to(NOTEBOOKS) for path in paths]
    todo = [pair for pair in zip(paths, copies, strict=True) if not is_new(*pair)]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // JOBS)))
    with ThreadPoolExecutor(JOBS) as pool:
        runs = pool.map(
            lambda pair: execute_one(*pair), reversed(todo)
        )  # the long ones come late in the series
        list(tqdm(runs, total=len(todo), unit="notebook", desc="executing"))
    return copies


def is_new(path: Path, copy: Path) -> bool:
    """Whether an executed copy is newer than its notebook, the code and the data."""
    sources = [path, *(ROOT / "utils").rglob("*.*"), *(NOTEBOOKS / "data").rglob("*")]
    made_from = [source for source in sources if "__pycache__" not in source.parts]
    return copy.exists() and copy.stat().st_mtime > max(source.stat().st_mtime for source in made_from)


def execute_one(path: Path, copy: Path) -> None:
    """Write an executed copy of a notebook, its views included."""
    notebook = nbformat.read(path, as_version=4)
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        run(notebook, copy.parent, timeout=900)
    except CellExecutionError as error:
        raise RuntimeError(f"{path.name} fails, so there is no page to make of it") from error
    save(notebook, copy)  # whole, since a copy that is there counts as done


def read_for_readers(path: Path):
    """An executed notebook without what only its run needed: progress bars, warnings and widgets.

    A widget that says how it looks without a kernel, such as that of `explore`, is shown so.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = join_streams([output for output in cell.outputs if is_for_readers(output)])
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)
            describe_pictures(cell)
    return notebook


def is_for_readers(output) -> bool:
    """Whether an output is more than a progress bar or a warning."""
    data = output.get("data", {})
    return output.get("name") != "stderr" and (WIDGET not in data or "text/html" in data)


def describe_pictures(cell) -> None:
    """Give a cell's pictures the title of its figure, for readers who hear the page."""
    titles = re.findall(r"""title(?:=|\()f?(["'])(.*?)\1""", cell.source)
    title = (
        re.sub(r"\{.*?\}", "…", titles[-1][1]) if titles else "Figure; the text around it says what it shows"
    )
    cell.metadata["mystnb"] = {"image": {"alt": title}}
    for output in cell.outputs:
        for kind in output.get("data", {}):
            if kind.startswith("image/"):
                output.metadata.setdefault(kind, {})["alt"] = title  # beside its width and height


def take_out_views(notebook, name: str, folder: Path) -> None:
    """Move the page of each view to a file of its own, which static/views.js loads when a reader comes near."""
    number = 0

    def move(frame: re.Match) -> str:
        nonlocal number
        number += 1
        view, (title, page) = f"{name}-{number}", frame.groups()
        script = f"drawView({json.dumps(view)}, {json.dumps(html.unescape(page))});\n"
        (folder / f"{view}.js").write_text(script, "utf-8")
        style = "width: 100%; height: 400px; border: 0"
        waiting = f"<p>{title}. The interactive view is drawn here, which needs JavaScript.</p>"
        return f'<iframe title="{title}" data-view="{view}" style="{style}"></iframe>{waiting}'

    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "srcdoc" in data.get("text/html", ""):
                data["text/html"] = FRAME.sub(move, data["text/html"]).replace(
                    "<div>", '<div class="attention-view">', 1
                )


def relink(text: str, place: str, stays) -> str:
    """Markdown whose relative links lead to the repository on GitHub, except where `stays(path)` says otherwise.

    `place` is the folder of the text in the repository, and `path` a link's target in it. A picture that would be
    fetched from elsewhere becomes its description.
    """

    def target(match: re.Match) -> str:
        image, label, link, rest = match.groups()
        path = normpath(f"{place}/{link}")
        address = link if image or stays(path) else f"https://github.com/{current_slug()}/blob/main/{path}"
        return f"{image}{label}({address}{rest})"

    return LINK.sub(target, REMOTE_PICTURE.sub(r"\1", text))


def start_page(readme: Path, places: list[str], explored: bool) -> str:
    """The README with the notebooks' places behind it, and under its title the way to explorer.html if there is one."""
    start = relink(readme.read_text("utf-8"), ".", lambda link: link in places)
    if explored:
        start = start.replace("\n", f"\n\n{EXPLORER_LINK}\n", 1)
    for caption, solved in (("Notebooks", False), ("Solutions", True)):
        pages = [place.removesuffix(".ipynb") for place in places if ("solutions/" in place) == solved]
        start += "\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"
    return start


def lay_out(copies: list[Path], readme: Path, source: Path, images: Path, explored: bool = False) -> None:
    """Write what Sphinx reads: the README as start page, the notebooks with their links, the views beside them.

    `explored` says that explorer.html will stand beside the start page, which then leads to it.
    """
    shutil.rmtree(source, ignore_errors=True)
    views = source / "_static" / "views"
    for folder in (source / "notebooks" / "solutions", views):
        folder.mkdir(parents=True)
    shutil.copytree(images, source / "notebooks" / "images")
    places = {
        path: f"notebooks/{'solutions/' if path.stem.endswith('_solutions') else ''}{path.name}"
        for path in copies
    }
    for path, place in places.items():
        notebook = read_for_readers(path)
        take_out_views(notebook, path.stem, views)
        folder = str(Path(place).parent)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = relink(cell.source, folder, lambda link: link in places.values())
        for cell in notebook.cells:  # pages show the code that slides leave out
            tags = [tag for tag in cell.metadata.get("tags", []) if tag != REMOVE_INPUT]
            cell.metadata["tags"] = tags + ["hide-input"] * is_folded(cell)
        nbformat.write(notebook, source / place)
    (source / "index.md").write_text(start_page(readme, list(places.values()), explored), "utf-8")
    shutil.copy(mathjax(), source / "_static" / MATHJAX)


def mathjax() -> Path:
    """MathJax from the installed package, which is not MathJax's own: refused unless it is the published file."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None:
        raise ModuleNotFoundError("formulas need MathJax: pip install -r requirements-dev.txt")
    path = Path(spec.submodule_search_locations[0]) / "static" / "mathjax" / MATHJAX
    if sha256(path.read_bytes()).hexdigest() != MATHJAX_SHA256:
        raise ValueError(f"{path} is not MathJax 3.2.2 as published: pip install -r requirements-dev.txt")
    return path


def explore(copies: list[Path], folder: Path) -> Path | None:
    """The folder with explorer.html and its files; None, said in one line, where npm does not bring its runtime."""
    from tools import explorer  # which needs packages that slides do without

    pages = {
        path.stem[:2]: f"notebooks/{path.stem}.html" for path in copies if path.parent.name != "solutions"
    }
    try:
        explorer.build(folder, BUILD / "npm", pages)
    except OSError as error:
        print(f"explorer.html is left out: {error}")
        return None
    return folder


def build(
    copies: list[Path],
    site: Path,
    work: Path,
    readme: Path = ROOT / "README.md",
    explorer: Path | None = None,
) -> None:
    """Make the site of executed notebooks, with a folder's explorer.html; the old site stays until it is done."""
    lay_out(copies, readme, work / "source", NOTEBOOKS / "images", explorer is not None)
    shutil.rmtree(work / "html", ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", "-c", str(WEB)]
    command += ["-d", str(work / "doctrees"), str(work / "source"), str(work / "html")]
    subprocess.run(command, check=True)
    shutil.copytree(work / "source" / "_static", work / "html" / "_static", dirs_exist_ok=True)
    if explorer:
        shutil.copytree(explorer, work / "html", dirs_exist_ok=True)
    site.mkdir(parents=True, exist_ok=True)
    for old in site.iterdir():
        if old.name != "slides":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(work / "html", site, dirs_exist_ok=True)


def main() -> None:
    """Execute all notebooks, build the site and say how large it is."""
    copies = execute(notebook_paths([]))
    explorer = explore(copies, BUILD / "explorer")
    build(copies, SITE, BUILD, explorer=explorer)
    files = [path for path in SITE.rglob("*") if path.is_file() and "slides" not in path.parts]
    size = sum(path.stat().st_size for path in files)
    print(f"{SITE / 'index.html'}: {len(files)} files, {size / 1e6:.1f} MB")
    if explorer:
        print(
            "explorer.html computes your own sentences when the site is served: python -m http.server -d site"
        )


if __name__ == "__main__":
    main()
