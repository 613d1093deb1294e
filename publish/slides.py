"""Make reveal.js slides of notebooks with nbconvert, as their cells' slide types and tags say."""

import argparse
import re
import shutil
import sys
from pathlib import Path

import nbformat
import sphinx_revealjs
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from publish.notebooks import REMOVE_INPUT, SEMINAR, notebook_paths
from publish.teaching import notes, questions, sessions
from publish.website import BUILD, SITE, WEB, execute, mathjax, read_for_readers, relink, take_out_views
from utils.colours import css

REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
LARGER_LETTERS = WEB / "slides" / "larger_letters.py"
UNANSWERED = re.compile(r"; you predicted nothing.*")  # what `reveal` says to a reader, not to a class


def read_for_a_class(copy: Path, views: Path):
    """An executed notebook as it is shown, its views in files of their own."""
    views.mkdir(parents=True, exist_ok=True)
    notebook = read_for_readers(copy)
    take_out_views(notebook, copy.stem, views)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relink(cell.source, "notebooks", lambda path: False)
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = UNANSWERED.sub("", output.text)
    return notebook


def for_the_seminar(notebook) -> None:
    """Keep what the seminar shows; what the whole deck skips, such as the words of an exercise, gets a slide."""
    notebook.cells = [cell for cell in notebook.cells if SEMINAR in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.metadata.slideshow.slide_type == "skip":
            cell.metadata.slideshow.slide_type = "subslide"


def with_questions(notebook, number: str) -> None:
    """Put what the plan in TEACHING.md asks under the heading of its section, or last, and then the answer."""
    for found in questions(number):
        (first,), (last,) = ([c for c in notebook.cells if c.id == name] for name in (found.first, found.last))
        starts = {"slideshow": {"slide_type": "subslide"}}
        asked, answer = (new_markdown_cell(text, metadata=starts) for text in found.texts)
        notebook.cells.insert(notebook.cells.index(last) + 1, answer)
        if found.opens:
            heading, _, told = first.source.partition("\n\n")
            first.source = f"{heading}\n\n{asked.source}"
            notebook.cells.insert(notebook.cells.index(first) + 1, new_markdown_cell(told, metadata=starts))
        else:
            notebook.cells.insert(notebook.cells.index(answer), asked)


def with_notes(notebook, number: str) -> None:
    """Begin the speaker's notes of each section with what the plan in TEACHING.md says of it."""
    told, cells = notes(number), []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.id in told:
            note = new_markdown_cell(told[cell.id], metadata={"slideshow": {"slide_type": "notes"}})
            cells.append(note)
    notebook.cells = cells


def has_slides(path: Path) -> bool:
    """Whether any cell says what it is on slides; else everything would stand on one."""
    return any("slideshow" in cell.metadata for cell in nbformat.read(path, as_version=4).cells)


def has_seminar(path: Path) -> bool:
    """Whether the seminar shows anything of a notebook."""
    return any(SEMINAR in cell.metadata.get("tags", []) for cell in nbformat.read(path, as_version=4).cells)


def make_slides(copy: Path, folder: Path, seminar: bool = False) -> Path:
    """Write the slides of an executed notebook, or the few of the seminar, to `folder`, with all that they need."""
    number = copy.name[:2]
    notebook = read_for_the_seminar(copy, folder) if seminar else read_for_a_class(copy, folder / "views")
    return write_deck(notebook, folder, f"{number}{'-seminar' * seminar}", copy)


def make_session(copies: list[Path], folder: Path, session: int) -> Path:
    """Write what the seminar shows of the executed notebooks of a session as one deck."""
    notebooks = [read_for_the_seminar(copy, folder) for copy in copies]
    for copy, notebook in zip(copies, notebooks, strict=True):
        for cell in notebook.cells:
            cell.id = f"{copy.name[:2]}-{cell.id}"[:64]  # two notebooks may have a cell of one name
    first, *others = notebooks
    first.cells += [cell for notebook in others for cell in notebook.cells]
    return write_deck(first, folder, f"seminar-{session}", copies[0])


def read_for_the_seminar(copy: Path, folder: Path):
    """What the seminar shows of an executed notebook, with its questions, and notes that begin as the plan says."""
    notebook = read_for_a_class(copy, folder / "views")
    for_the_seminar(notebook)
    with_questions(notebook, copy.name[:2])
    with_notes(notebook, copy.name[:2])
    return notebook


def write_deck(notebook, folder: Path, name: str, copy: Path) -> Path:
    """Write the slides of what was read of an executed notebook, with all that they need."""
    exporter = SlidesExporter(
        config=Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {REMOVE_INPUT}}}),
        template_name="slides",
        extra_template_basedirs=[str(WEB)],
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    code_colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    resources = {
        "metadata": {"path": str(copy.parent), "name": name if name.startswith(SEMINAR) else copy.stem},
        "code_colours": code_colours,
    }
    page, _ = exporter.from_notebook_node(notebook, resources)
    for part in ("dist", "plugin/notes"):
        unneeded = shutil.ignore_patterns("*.map", "*.esm.js")
        shutil.copytree(REVEAL / part, folder / "reveal" / part, dirs_exist_ok=True, ignore=unneeded)
    for file in (mathjax(), WEB / "static" / "views.js", *(WEB / "slides").glob("slides.*")):
        shutil.copy(file, folder)
    style = folder / "slides.css"
    style.write_text(css(dark=None) + style.read_text("utf-8"), "utf-8")  # slides are light
    target = folder / f"{name}.html"
    target.write_text(page, "utf-8")
    return target


def main() -> str | None:
    """Make the slides of the notebooks named, with --seminar the few of the seminar; return what is wrong.

    --session=1 makes one deck of a session's notebooks.
    """
    parser = argparse.ArgumentParser(prog="python -m publish.slides", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="03", help="the number of a notebook")
    parser.add_argument("--seminar", action="store_true", help="the few that the seminar shows")
    choices = range(1, len(sessions()) + 1)
    parser.add_argument("--session", type=int, choices=choices, help="all of a session in one deck")
    options = parser.parse_args()
    seminar, names = options.seminar, options.names
    if options.session:
        slots = sessions()[options.session - 1]
        numbers = dict.fromkeys(row.notebook for slot in slots for row in slot.rows if row.is_section)
        names, seminar = [f"{number}_" for number in numbers], True
    paths = [path for path in notebook_paths(names) if path.parent.name == "notebooks"]
    if not names or not paths:
        return "name a notebook by its number: make slides NB=03"
    if unchosen := [path.name for path in paths if not has_slides(path)]:
        return f"no slides yet in {', '.join(unchosen)}: give its cells slide types (property inspector)"
    if seminar and (without := [path.name for path in paths if not has_seminar(path)]):
        return f"the seminar leaves out {', '.join(without)}: make slides without ARGS=--seminar"
    copies = execute(paths, BUILD / "executed_for_slides", LARGER_LETTERS)
    if options.session:
        print(make_session(copies, SITE / "slides", options.session))
        return None
    for copy in copies:
        print(make_slides(copy, SITE / "slides", seminar))
    return None


if __name__ == "__main__":
    sys.exit(main())
