"""Make reveal.js slides of notebooks with nbconvert, following the slide types and tags of their cells."""

import html
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from functools import cache
from math import ceil
from pathlib import Path

import sphinx_revealjs
from nbconvert import SlidesExporter
from nbformat import from_dict
from nbformat.v4 import new_markdown_cell
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from publish.notebooks import (
    BOX,
    NO_GUESS,
    NOTEBOOKS,
    OUR_VERSION_BLOCK,
    REMOVE_INPUT,
    notebook_paths,
    number_of,
    reveals_answer,
)
from publish.teaching import EXERCISE, STARTS_A_SLIDE, notes, sections, units
from publish.website import BUILD, HEADING, SITE, WEB, execute, extract_views, mathjax, read_for_display, relink
from utils.support.colours import fill_in
from utils.support.command_line import Parser

REVEAL = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
LARGER_TEXT = WEB / "slides" / "larger_text.py"
# a class reads an answer on the slide; our version of an exercise is left out
FOLD = re.compile(r"<details>.*?</summary>\s*|\s*</details>", re.DOTALL)
GOALS = re.compile(r"^\*\*(You will be able to)\*\*")  # a heading of its own on a slide
COLUMNS, LINES = 82, 20  # what fits on a slide with code only
# words of a text, since the lecturer says the rest; on a slide, with code and output; that take a picture's room
WORDS, MOST, PICTURE = 60, 80, 65
SENTENCE = re.compile(r"(?<=[.!?)])\s+(?=[A-Z*\"“(])")
KEPT = re.compile(r"#|!\[|\$\$|\||```|<|[-*] |\d\. ")  # how a block begins that stays whole
BLOCKS = re.compile(r"(?<=\n)(?=\n|[-*] |\d\. )")  # where a text may be divided, before an empty line or a point
STAYS = re.compile(r"!\[|\?\*\*")  # in a part of a text, for which a short deck has a slide: a picture, a question
SAID = re.compile(r"#+ (You will be able to|Recap)")  # how a text begins that a short deck leaves out
NO_WORD = re.compile(r"<[^>]*>|!\[[^]]*\]|(?<=\])\([^)]*\)")  # a tag, the name of a picture, an address
# what is left out where it would break a line: a comment, and then what is printed, since the output shows it
LEFT_OUT = {re.compile(r"\s+# [^'\"]*$"): "", re.compile(r"(?<=\bprint\().*(?=\)$)"): "..."}


def read_for_slides(copy: Path, views: Path):
    """Read an executed notebook for slides, and write its views to separate files."""
    views.mkdir(parents=True, exist_ok=True)
    notebook = read_for_display(copy, "slides")
    extract_views(notebook, copy.stem, views)
    for cell in notebook.cells:
        drawn = any({"image/png", "text/html"} & output.get("data", {}).keys() for output in cell.get("outputs", []))
        if drawn or (reveals_answer(cell) and cell.outputs):
            hide_code(cell)  # its output needs the room
        if cell.cell_type == "markdown":
            text = relink(cell.source, "notebooks", lambda path: False)
            text = FOLD.sub("", OUR_VERSION_BLOCK.sub("", BOX.sub(r"\1", text)))  # the cell itself shows its answer
            cell.source = GOALS.sub(r"## \1", text)
        elif not hides_code(cell):
            cell.source = narrower("\n".join(map(shorter, cell.source.splitlines())))
            if cell.outputs and max(map(len, cell.source.splitlines())) > COLUMNS:
                hide_code(cell)
    return notebook


def hides_code(cell) -> bool:
    """Return whether a cell shows its output without its code."""
    return REMOVE_INPUT in cell.metadata.get("tags", [])


def hide_code(cell) -> None:
    """Show the output of a cell without its code."""
    cell.metadata.tags = [*{*cell.metadata.get("tags", []), REMOVE_INPUT}]


def shorter(line: str) -> str:
    """Return a line of code without what would break it at `COLUMNS`."""
    for pattern, instead in LEFT_OUT.items():
        line = pattern.sub(instead, line) if len(line) > COLUMNS else line
    return line


@cache
def narrower(code: str) -> str:
    """Return code broken at `COLUMNS` where Python breaks it, unless that takes more than `LINES`."""
    if max(map(len, code.splitlines()), default=0) <= COLUMNS:
        return code
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={COLUMNS}", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, encoding="utf-8", check=True)
    return done.stdout.rstrip() if done.stdout.count("\n") <= LINES else code


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


def is_drawn(output) -> bool:
    """Return whether an output is a picture or a view."""
    data = output.get("data", {})
    return "image/png" in data or "image/svg+xml" in data or "<iframe" in data.get("text/html", "")


def texts_of(cell) -> list[str]:
    """Return what a cell shows on a slide: its text or code, and what it prints."""
    hidden = cell.cell_type == "code" and hides_code(cell)
    printed = [output for output in cell.get("outputs", []) if not is_drawn(output)]
    found = [{"text/plain": output.get("text", "")} | output.get("data", {}) for output in printed]
    return [*[cell.source] * (not hidden), *(data.get("text/html", data["text/plain"]) for data in found)]


def count_words(cell) -> int:
    """Count the words of a cell on a slide, each of which has a letter, and those of its sentence."""
    shown = [*texts_of(cell), cell.metadata.get("slideshow", {}).get("sentence", "")]
    return sum(any(map(str.isalpha, word)) for text in shown for word in NO_WORD.sub(" ", text).split())


def room_for(cell) -> float:
    """Return how many words would fill the room that a cell takes on a slide."""
    pictures = sum(map(is_drawn, cell.outputs)) if cell.cell_type == "code" else cell.source.count("![")
    lines = sum(len(text.splitlines()) for text in texts_of(cell)) if cell.cell_type == "code" else 0
    return max(count_words(cell), MOST * lines / LINES) + PICTURE * pictures


def divide(notebook, short: bool = False) -> None:
    """Start a new slide where one would be too full; in a `short` deck, what a text says there goes to the notes."""
    cells, room = [], 0
    for cell in (part for whole in notebook.cells for part in (in_short if short else parts_of)(whole)):
        if (kind := cell.metadata.slideshow.slide_type) not in ("notes", "skip"):
            fits = room + room_for(cell) <= MOST
            if fits and cell.source.startswith(NO_GUESS):
                kind = "-"  # below its question
            elif not fits and kind not in STARTS_A_SLIDE:
                kind = "subslide"
            room = room_for(cell) + room * (kind not in STARTS_A_SLIDE)
            cell.metadata.slideshow.slide_type = kind
        cells.append(cell)
    notebook.cells = cells


def parts_of(cell) -> list:
    """Return a cell, or the parts of one that doesn't fit: code and outputs, or blocks, points and rows of a text."""
    if cell.metadata.slideshow.slide_type in ("notes", "skip") or (whole := room_for(cell)) <= MOST:
        return [cell]
    if cell.cell_type == "code":
        outputs = [half for output in cell.outputs for half in halves(output)]
        parts = [copy_with(cell, cell.source, shown) for shown in ([], *([output] for output in outputs))]
        for part in parts[1:]:
            hide_code(part)
        if outputs and (hides_code(cell) or room_for(parts[0]) > MOST):
            del parts[0]
    else:
        parts = [copy_with(cell, "")]
        for block in blocks(cell.source):
            room = room_for(parts[-1])
            full = room >= whole / ceil(whole / MOST) or room + room_for(new_markdown_cell(block)) > MOST
            if (full and not HEADING.fullmatch(parts[-1].source.strip())) or (HEADING.match(block.strip()) and room):
                parts.append(copy_with(cell, ""))
            parts[-1].source += block
    for part in parts[:-1]:
        part.metadata.slideshow.pop("sentence", None)
    for number, part in enumerate(parts[1:], 2):
        part.id = f"{part.id}-{number}"
        part.metadata.slideshow.slide_type = "subslide" if cell.cell_type == "markdown" else "-"
    return parts


def in_short(cell) -> list:
    """Return the parts of a cell, but of a text only the first on a slide, and what shows, asks or is an exercise."""
    first, *others = parts = parts_of(cell)
    if cell.cell_type == "markdown" and "### Exercise" not in first.source:
        for part in (part for part in others if not STAYS.search(part.source)):
            first.metadata.slideshow |= part.metadata.slideshow | {"slide_type": first.metadata.slideshow.slide_type}
            part.metadata.slideshow = from_dict({"slide_type": "notes"})
    return parts


def copy_with(cell, source: str, outputs=()):
    """Return a copy of a cell with this source and these outputs."""
    return from_dict(deepcopy(cell) | {"source": source} | ({"outputs": [*outputs]} if "outputs" in cell else {}))


def halves(output) -> list:
    """Return an output, or one that prints more than `MOST` words in two halves."""
    lines = output.get("text", "").splitlines(keepends=True)
    half = len(lines) // 2 if count_words(new_markdown_cell(output.get("text", ""))) > MOST else 0
    return [from_dict(output | {"text": "".join(part)}) for part in (lines[:half], lines[half:])] if half else [output]


def blocks(text: str) -> list[str]:
    """Return the blocks and points of a text, and the sentences or two halves of the table where one is long."""
    found = []
    for block in BLOCKS.split(text):
        rows, long = block.strip("\n").split("\n"), count_words(new_markdown_cell(block)) > WORDS
        if long and rows[0].startswith("|"):
            halves = rows[: len(rows) // 2 + 1], [*rows[:2], *rows[len(rows) // 2 + 1 :]]
            found += ["\n\n" + "\n".join(half) + "\n" for half in halves]
        else:
            found += re.split(r"(?<=[.!?] )(?=[A-Z*])", block) if long else [block]
    return found


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


def leave_out(notebook, number: str) -> None:
    """Leave out the sections that the course takes only if there is time, marked ◇, and what one says in class."""
    for cell in (cell for cell in notebook.cells if SAID.match(cell.source)):
        cell.metadata.slideshow.slide_type = "skip"
    for unit in units():
        for row, cells in zip(unit.rows, sections(unit), strict=True):
            late = {cell.id for cell in cells if row.notebook == number and row.if_there_is_time}
            for cell in (cell for cell in notebook.cells if cell.id in late):
                cell.metadata.slideshow.slide_type = "skip"


def lay_out(copy: Path, views: Path, short: bool = False):
    """Read an executed notebook, and lay its cells out on slides of at most `MOST` words; `short` with fewer."""
    notebook = read_for_slides(copy, views)
    if short:
        leave_out(notebook, number_of(copy))
    show_exercises(notebook)
    shorten(notebook)
    divide(notebook, short)
    return notebook


def make_slides(copy: Path, folder: Path, by: str = "", own: str = "", short: bool = False) -> Path:
    """Write the slides of an executed notebook to `folder`, with all files they need.

    `by` is a line for the first slide, such as the lecturer's name and the date, and `own` the lecturer's own slides;
    `short` leaves out what the course takes only if there is time, goals and recaps, and the ends of long texts.
    """
    notebook = lay_out(copy, folder / "views", short)
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
        anchor_link_text="",
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
    target.write_text(page, "utf-8")
    return target


def main() -> str | None:
    """Make the slides of the given notebooks; return an error message or None."""
    parser = Parser(prog="python -m publish.slides", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="03", help="the number of a notebook, or evening")
    parser.add_argument("--by", default="", metavar="'Ada Berg, 1 December'", help="a line for the first slide")
    parser.add_argument("--own", type=Path, metavar="FILE", help="slides of your own, in Markdown, with --- between")
    parser.add_argument("--short", action="store_true", help="fewer slides: without ◇ and recaps, long texts as notes")
    options = parser.parse_args()
    paths = [path for path in notebook_paths(options.names) if path.parent == NOTEBOOKS]
    if not options.names or not paths:
        return "no notebook chosen: pass its number, as in make slides NB=03"
    try:
        own = options.own.read_text("utf-8") if options.own else ""
        for copy in execute(paths, BUILD / "executed_for_slides", LARGER_TEXT):
            print(make_slides(copy, SITE / "slides", options.by, own, options.short))
    except (OSError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
