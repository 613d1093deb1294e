"""Self-contained HTML pages for bertviz's views, for the output of a notebook or a file."""

import html
import json
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from string import Template
from typing import NamedTuple

from utils.support.colours import css
from utils.support.files import write_file

FOLDER = Path(__file__).parent
BERTVIZ = "1.4.1"  # whose templates changes.toml fits
PARTS_OF_A_PAIR = {
    "aa": "Sentence A -> Sentence A",
    "bb": "Sentence B -> Sentence B",
    "ab": "Sentence A -> Sentence B",
    "ba": "Sentence B -> Sentence A",
}
CHOICES = {  # of the model view: id, label and options of its drop-downs
    "drawing": ("Heads", {"squares": "as squares", "lines": "as lines"}),
    "order": ("Sorted by", {"layer": "layer and head", "kinds": "what they look at"}),
}
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"  # no request
STATIC_NOTICE = "The interactive view appears in a running notebook: run the cells above, then this one."


class Kind(NamedTuple):
    """One of bertviz's views."""

    name: str
    template: str
    width: int  # pixels
    drop_downs: dict[str, str]  # id and label of those that bertviz fills itself
    shows: str  # what one sees, after the layer and head in the heading
    help: str  # how to use the view


HEAD_VIEW = Kind(
    "Head view",
    "head_view",
    340,
    {"layer": "Layer"},
    "what each token on the left looks at",
    "Hover over a token to see its lines, over a tile to see its head's lines, over a line to read its weight. Click a "
    "tile to hide or show its head; double-click it (Shift+Enter) to show that head alone, and again to show all.",
)
MODEL_VIEW = Kind(
    "Model view",
    "model_view",
    970,
    {},
    "which token looks at which",
    "Each square is a head: a row for each token that looks, a column for each token that it looks at. Click a square "
    "to enlarge it, and click it again (or press Escape) to close it. In the enlarged head, hover over a cell or line "
    "to read its weight, over a token on the left to see its weights alone.",
)
NEURON_VIEW = Kind(
    "Neuron view",
    "neuron_view",
    850,
    {"layer": "Layer", "att_head": "Head"},
    "how well a query fits each key, number by number",
    "Hover over a token on the left to see its lines. Click the + next to it to show its query and all keys, and their "
    "products for the last token you hovered over. Hover over a rectangle to read its number. Click − to close them. "
    "D is how many numbers a query and a key have.",
)


@dataclass(frozen=True, repr=False)
class View:
    """An interactive view or figure, which Jupyter displays and `save` writes to a file."""

    summary: str
    page: str

    def __repr__(self) -> str:
        return f"{self.summary}. {STATIC_NOTICE}"

    def _repr_html_(self) -> str:
        # Its own frame keeps a view from sharing names with other views; the text remains where frames are removed
        source = html.escape(self.page, quote=False).replace("'", "&#x27;")
        summary = html.escape(self.summary)
        return (
            f"<div><iframe title=\"{summary}\" srcdoc='{source}' "
            f'style="width: 100%; height: 400px; border: 0"></iframe><p>{summary}. {STATIC_NOTICE}</p></div>'
        )

    @property
    def data(self) -> str:
        """The page, under the name that it has in the result of bertviz's `html_action="return"`."""
        return self.page

    def save(self, path: str | os.PathLike) -> Path:
        """Write a page that any browser opens offline, atomically, and return its path."""
        return write_file(path, self.page)


def make_view(kind: Kind, panels: dict[str, dict], *, display_mode: str | None, summary: str, **params) -> View:
    """Make a view of these panels, which are the choices of its attention drop-down.

    `params` are further parameters of bertviz's template. ValueError for an unknown `display_mode`.
    """
    if display_mode not in (None, "light", "dark"):
        raise ValueError(
            f'display_mode must be "light", "dark" or None (like the surrounding page), got {display_mode!r:.60}'
        )
    params = {
        "attention": panels,
        "default_filter": next(iter(panels)),
        "root_div_id": "view",
        "display_mode": display_mode or "auto",  # frame.js decides on auto
        "width": kind.width,
        **params,
    }
    title = writable(f"{kind.name} of {summary}")
    return View(title, build_page(kind, title, params))


def build_page(kind: Kind, title: str, params: dict) -> str:
    """Fill page.html, whose policy forbids all requests, with bertviz's template, its libraries and the data."""
    return Template(own_text("page.html")).substitute(
        policy=POLICY,
        mode=params["display_mode"],
        template=kind.template,
        title=html.escape(title),
        heading=kind.shows[0].upper() + kind.shows[1:],  # until reader.js adds the layer and head that are shown
        help=kind.help,
        drop_downs=drop_downs(kind, params),
        data=json_for_html(params),
        css=css() + own_text("page.css"),
        d3=package_text("mpld3", "mpld3/js/d3.v5.min.js"),
        frame=own_text("frame.js"),
        page=own_text("words.js") + own_text("page.js"),
        canvas=own_text("canvas.js"),
        reader=own_text("reader.js") + (own_text("matrices.js") if kind is MODEL_VIEW else ""),
        version=BERTVIZ,
        drawing=drawing_code(kind.template),
    )


def drop_downs(kind: Kind, params: dict) -> str:
    """Build the drop-downs above a drawing; bertviz adds the options to its own."""
    choices = {name: name.capitalize() for name in params["attention"]}
    if params["sentence_b_start"] is not None:
        choices |= PARTS_OF_A_PAIR
    controls = {name: (label, {}) for name, label in kind.drop_downs.items()}
    controls |= {"filter": ("Attention", choices)} if len(choices) > 1 else {}
    controls |= CHOICES if kind is MODEL_VIEW else {}
    return "".join(drop_down(name, label, options) for name, (label, options) in controls.items())


def drop_down(name: str, label: str, choices: dict[str, str]) -> str:
    """Build a drop-down with this id and label."""
    options = [f'<option value="{value}">{html.escape(text)}</option>' for value, text in choices.items()]
    return f'<label>{label}: <select id="{name}">{"".join(options)}</select></label>'


def writable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text.encode(errors="replace").decode()


def json_for_html(value) -> str:
    """Write JSON that is safe inside a <script>: ASCII without <, which could close the element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def drawing_code(template: str) -> str:
    """Return bertviz's drawing code with the changes of changes.toml, without the URLs of its libraries.

    RuntimeError unless each replaced text occurs as often as changes.toml expects.
    """
    _, start, code = package_text("bertviz", f"bertviz/{template}.js", BERTVIZ).partition("requirejs([")
    code = start + code
    for change in tomllib.loads(own_text("changes.toml"))[template]:
        found, expected = code.count(change["old"]), change.get("times", 1)
        if found != expected:
            raise RuntimeError(
                f"views/changes.toml does not fit bertviz: its {template}.js contains {change['old']!r} {found} times, "
                f"not {expected}. Install it again: pip install --force-reinstall --no-deps bertviz=={BERTVIZ}"
            )
        code = code.replace(change["old"], change["new"])
    return code


@cache
def own_text(file: str) -> str:
    """Read a text file of this folder."""
    return (FOLDER / file).read_text("utf-8")


@cache
def package_text(package: str, file: str, version: str = "") -> str:
    """Read a text file of an installed package without importing it.

    ModuleNotFoundError if the package is missing, RuntimeError if a `version` is given and another one is installed.
    """
    remedy = f"pip install {package}" + (f"=={version}" if version else "")
    try:
        found = distribution(package)
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(f"the views need {package}: {remedy}") from error
    if version and found.version != version:
        raise RuntimeError(f"the views need {package} {version}, but {package} {found.version} is installed: {remedy}")
    return Path(found.locate_file(file)).read_text("utf-8")
