"""Make reveal.js slides of notebooks with nbconvert, following the slide types and tags of their cells."""

import argparse
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import sphinx_revealjs
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from publish.notebooks import BOX, NOTEBOOKS, OUR_VERSION_BLOCK, REMOVE_INPUT, notebook_paths, number_of, reveals_answer
from publish.teaching import EXERCISE, STARTS_A_SLIDE, notes, units
from publish.website import BUILD, SITE, WEB, execute, extract_views, mathjax, read_for_display, relink
from utils.support.colours import fill_in

REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
LARGER_TEXT = WEB / "slides" / "larger_text.py"
# a class reads an answer on the slide; our version of an exercise is left out
FOLD = re.compile(r"<details>.*?</summary>\s*|\s*</details>", re.DOTALL)
GUESS = re.compile(r" (?:Type|Write) your guess in place of `None`(?:\.|(:))")  # the class says it
ANCHOR = re.compile(r'<a class="anchor-link".*?</a>')
COLUMNS, LINES, LONGER = 82, 16, 3  # what fits on a slide with some output; lines that narrower code may add
WORDS = 60  # of a text on a slide; the lecturer says the rest
SENTENCE = re.compile(r"(?<=[.!?)])\s+(?=[A-Z*\"“(])")
KEPT = re.compile(r"#|!\[|\$\$|\||```|<|[-*] |\d\. ")  # how a block begins that stays whole
COMMENT = re.compile(r"\s+# [^'\"]*$")  # left out where it would break its line


def read_for_slides(copy: Path, views: Path):
    """Read an executed notebook for slides, and write its views to separate files."""
    views.mkdir(parents=True, exist_ok=True)
    notebook = read_for_display(copy)
    extract_views(notebook, copy.stem, views)
    for cell in notebook.cells:
        drawn = any({"image/png", "text/html"} & output.get("data", {}).keys() for output in cell.get("outputs", []))
        if drawn or (reveals_answer(cell) and cell.outputs):
            cell.metadata.tags = [*{*cell.metadata.get("tags", []), REMOVE_INPUT}]  # its output needs the room
    following = [cell.metadata.slideshow.slide_type for cell in notebook.cells[1:]] + ["slide"]
    for cell, then in zip(notebook.cells, following, strict=True):
        if cell.cell_type == "markdown":
            text = relink(cell.source, "notebooks", lambda path: False)
            text = FOLD.sub("", OUR_VERSION_BLOCK.sub("", BOX.sub(r"\1", text)))  # the cell itself shows its answer
            cell.source = GUESS.sub(lambda found: " Your guess:" if found[1] else "", text)
        else:
            lines = cell.source.splitlines()
            cell.source = "\n".join(COMMENT.sub("", line) if len(line) > COLUMNS else line for line in lines)
            if cell.metadata.slideshow.slide_type in STARTS_A_SLIDE and then != "-":  # alone on its slide
                cell.source = narrower(cell.source)
    return notebook


def narrower(code: str) -> str:
    """Return code broken at `COLUMNS` where Python breaks it, unless that makes it much longer."""
    if max(map(len, code.splitlines()), default=0) <= COLUMNS:
        return code
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={COLUMNS}", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, encoding="utf-8", check=True)
    lines = done.stdout.count("\n")
    return done.stdout.rstrip() if lines <= min(LINES, len(code.splitlines()) + LONGER) else code


def shorten(notebook) -> None:
    """Move what a text says after `WORDS` words to the notes; formulas, lists, pictures and what is bold stay."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type != "markdown" or cell.metadata.slideshow.slide_type in ("notes", "skip"):
            continue
        words, shown, told = 0, [], []
        for block in cell.source.split("\n\n"):
            here = []
            for part in [block] if KEPT.match(block) else SENTENCE.split(block):
                if not (stays := KEPT.match(block) or part.startswith("**") or "?**" in part):
                    words += len(part.split())
                (here if stays or words <= WORDS else told).append(part)
            shown.append(" ".join(here))
        if told and "".join(shown).count("**") % 2 == 0:
            cell.source = "\n\n".join(filter(None, shown))
            cells.append(new_markdown_cell(" ".join(told), metadata={"slideshow": {"slide_type": "notes"}}))
    notebook.cells = cells


def add_sentences(notebook) -> None:
    """Add the sentence that matters, metadata of a slide's cell, to its notes, from where it comes up at the end."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if sentence := cell.metadata.slideshow.get("sentence"):
            text = f'<p class="sentence">{html.escape(sentence)}</p>'
            cells.append(new_markdown_cell(text, metadata={"slideshow": {"slide_type": "notes"}}))
    notebook.cells = cells


def add_own(notebook, text: str) -> None:
    """Put the lecturer's own slides in, which lines of --- part: after the first, or below the heading they name.

    A slide may begin with a line such as `after: The mask`; ValueError if the deck has no slide with that heading.
    """
    for slide in re.split(r"^---\s*$", text, flags=re.MULTILINE)[::-1]:
        _, after, body = re.match(r"\s*(after: ([^\n]*)\n)?(.*)", slide, re.DOTALL).groups()
        starts = [number for number, cell in enumerate(notebook.cells) if cell.metadata.slideshow.slide_type == "slide"]
        wanted = re.compile(rf"^#+ {re.escape((after or '').strip())}\s*$", re.MULTILINE)
        found = [number for number in starts if wanted.search(notebook.cells[number].source)] if after else starts[:1]
        if not found:
            raise ValueError(f"no slide has the heading {after.strip()!r}: copy it from the notebook")
        end = next((number for number in starts if number > found[0]), len(notebook.cells))
        notebook.cells.insert(end, new_markdown_cell(body.strip(), metadata={"slideshow": {"slide_type": "slide"}}))


def show_exercises(notebook) -> None:
    """Give the exercises that the course solves in class a slide in the full deck of a notebook."""
    in_class = {name for plan in units() for name in plan.exercises}
    for cell in notebook.cells:
        heading = re.search(r"^### Exercise .*$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading and in_class & set(EXERCISE.findall(heading[0])):
            cell.metadata.slideshow.slide_type = "subslide"


def add_notes(notebook, number: str) -> None:
    """Start the speaker's notes of each section with its row in COURSE.md, and those of a unit with its question."""
    texts, cells = notes(number), []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.id in texts:
            note = new_markdown_cell(texts[cell.id], metadata={"slideshow": {"slide_type": "notes"}})
            cells.append(note)
    notebook.cells = cells


def make_slides(copy: Path, folder: Path, by: str = "", own: str = "") -> Path:
    """Write the slides of an executed notebook to `folder`, with all files they need.

    `by` is a line for the first slide, such as the lecturer's name and the date, and `own` the lecturer's own slides.
    """
    notebook = read_for_slides(copy, folder / "views")
    show_exercises(notebook)
    shorten(notebook)
    add_sentences(notebook)
    add_notes(notebook, number_of(copy))
    if own.strip():
        add_own(notebook, own)
    sign(notebook, by)
    return write_deck(notebook, folder, copy)


def sign(notebook, by: str) -> None:
    """Add a line to the first slide, below its heading."""
    first = next(cell for cell in notebook.cells if cell.metadata.slideshow.slide_type in STARTS_A_SLIDE)
    heading, _, text = first.source.partition("\n\n")
    first.source = "\n\n".join([heading, *[by] * bool(by), text])


def write_deck(notebook, folder: Path, copy: Path) -> Path:
    """Write the slides of a notebook read from `copy`, with all files they need."""
    exporter = SlidesExporter(
        config=Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {REMOVE_INPUT}}}),
        template_name="slides",
        extra_template_basedirs=[str(WEB)],
        exclude_anchor_links=False,  # otherwise headings have no ids
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    code_colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    resources = {"metadata": {"path": str(copy.parent), "name": copy.stem}, "code_colours": code_colours}
    page, _ = exporter.from_notebook_node(notebook, resources)
    for part in ("dist", "plugin/notes"):
        unneeded = shutil.ignore_patterns("*.map", "*.esm.js")
        shutil.copytree(REVEAL / part, folder / "reveal" / part, dirs_exist_ok=True, ignore=unneeded)
    for file in (mathjax(), WEB / "static" / "views.js", *(WEB / "slides").glob("slides.*")):
        shutil.copy(file, folder)
    style = folder / "slides.css"
    style.write_text(fill_in(style.read_text("utf-8")), "utf-8")  # slides are light
    target = folder / f"{number_of(copy)}.html"
    target.write_text(ANCHOR.sub("", page), "utf-8")
    return target


def main() -> str | None:
    """Make the slides of the given notebooks; return an error message or None."""
    parser = argparse.ArgumentParser(prog="python -m publish.slides", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="03", help="the number of a notebook, or evening")
    parser.add_argument("--by", default="", metavar="'Ada Berg, 1 December'", help="a line for the first slide")
    parser.add_argument("--own", type=Path, metavar="FILE", help="slides of your own, in Markdown, with --- between")
    options = parser.parse_args()
    paths = [path for path in notebook_paths(options.names) if path.parent == NOTEBOOKS]
    if not options.names or not paths:
        return "no notebook chosen: pass its number, as in make slides NB=03"
    try:
        own = options.own.read_text("utf-8") if options.own else ""
        for copy in execute(paths, BUILD / "executed_for_slides", LARGER_TEXT):
            print(make_slides(copy, SITE / "slides", options.by, own))
    except (OSError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
