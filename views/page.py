"""Self-contained HTML pages for views and figures, for the output of a notebook or a file."""

import base64
import html
import json
import os
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from string import Template
from typing import NamedTuple

from utils.support.colours import css as colours
from utils.support.files import write_file
from views.scripts import join, modules, shorten
from views.words import marks_among

FOLDER = Path(__file__).parent
SHARED = "draggable/figure.js"  # of all views and figures, with what it imports
BERTVIZ = "1.4.1"  # whose views reader.js shows
PARTS_OF_A_PAIR = {
    "aa": "Sentence A -> Sentence A",
    "bb": "Sentence B -> Sentence B",
    "ab": "Sentence A -> Sentence B",
    "ba": "Sentence B -> Sentence A",
}
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"  # no request
STATIC_NOTICE = "The interactive view appears in a running notebook: run the cells above, then this one."


class Kind(NamedTuple):
    """One of the three views that bertviz has, too."""

    name: str
    template: str  # bertviz's
    script: str  # ours
    drop_downs: dict[str, tuple]  # id, label and options
    controls: list[tuple[str, str]]  # bertviz's drop-downs, which it fills itself: id and label
    shows: str  # what one sees, after the layer and head in the heading
    help: str  # how to use the view: one sentence, and the rest behind "?"
    more: str


HEAD_VIEW = Kind(
    "Head view",
    "head_view",
    "head.js",
    {},
    [("layer", "Layer")],
    "what each token gives to each",
    "Every word on the left gives 1, and a word on the right is as high as what it gets.",
    "Point at a word for its numbers, and click or tap it to keep them. Point at a ribbon to read its weight. Click a "
    "head of the map to draw it; Shift+click, or a click with the switch on, adds a head, and the mean of the chosen "
    "heads is drawn. By keyboard: Tab and the arrow keys; → goes to the word that gets most.",
)
MODEL_VIEW = Kind(
    "Model view",
    "model_view",
    "matrices.js",
    {"order": ("Sorted by", {"layer": "layer and head", "kinds": "what they look at"})},
    [],
    "which token looks at which",
    "Each square is a head: a row for each token that looks, a column for each it looks at.",
    "Click or tap a square to enlarge it, and again (or press Escape) to close it. In the enlarged head, point at a "
    "cell to read its weight, and at a token on the left to see its weights alone. By keyboard: Tab, arrow keys and "
    "Enter; → from a token goes through its weights.",
)
NEURON_VIEW = Kind(
    "Neuron view",
    "neuron_view",
    "sums.js",
    {"layer": ("Layer", {}), "att_head": ("Head", {})},
    [("layer", "Layer"), ("att_head", "Head")],
    "products of query and key add up to a score",
    "Each row is a key, each block the product of one of its numbers with the query's.",
    "The largest products come first. Blue pushes the score up, orange pulls it back, and the row ends at its score. "
    "Softmax turns the scores into weights. Point at or tap a block to mark its neuron in every row, and click a word "
    "to make it the query. By keyboard: Tab, arrow keys and Enter.",
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
    parts = [part for panel in panels.values() for part in (panel, panel.get("words") or {})]
    params = {
        "attention": panels,
        "marks": marks_among(*(part[key] for part in parts for key in part if key.endswith("_text"))),
        "default_filter": next(iter(panels)),
        "root_div_id": "view",
        "display_mode": "light",  # bertviz's colours, which reader.css replaces
        **params,
    }
    title = writable(f"{kind.name} of {summary}")
    theirs = f"{own_text('bertviz.js')}\n{package_text('bertviz', f'bertviz/{kind.template}.js', BERTVIZ)}"
    own = join(FOLDER / kind.script, without=(FOLDER / SHARED,))
    params["code"] = compressed(shorten(theirs))
    page = build_page(
        kind.template,
        params | {"controls": kind.controls},
        title=title,
        details=title,
        heading=kind.shows[0].upper() + kind.shows[1:],  # until reader.js writes the finding or the head that is shown
        mode=display_mode or "auto",  # frame.js decides on auto
        figure=f'<div id="view"><div id="tools">{drop_downs(kind, params)}</div><div id="vis"></div></div>',
        help=f"{kind.help} <details><summary>?</summary>{kind.more}</details>",
        css=sheets(FOLDER / kind.script),
        code=[
            join(FOLDER / SHARED),
            f'// Apache License 2.0: the views of bertviz {BERTVIZ}, by Jesse Vig\nrun("{compressed(own)}");',
        ],
    )
    return View(title, page)


def build_page(
    kind: str,
    data: dict,
    *,
    title: str,
    details: str,
    code: list[str],
    heading: str = "",
    mode: str = "auto",
    figure: str = '<div id="figure"></div>',
    help: str = "",
    css: str = "",
) -> str:
    """Fill page.html, whose policy forbids all requests, with style sheets and scripts."""
    return Template(own_text("page.html")).substitute(
        policy=POLICY,
        mode=mode,
        kind=kind,
        title=html.escape(title),
        heading=html.escape(heading or title),
        details=html.escape(details),
        figure=figure,
        help=help,
        data=json_for_html(data),
        css=colours() + css,
        code="</script>\n<script>\n".join(code),
    )


def compressed(code: str) -> str:
    """Return code as base64, for `inflate` in numbers.js."""
    return base64.b64encode(zlib.compress(code.encode(), 9)).decode()


def sheets(script: Path) -> str:
    """Return the style sheets of a script and of what it imports."""
    files = (path.with_suffix(".css") for path in modules(script))
    return "".join(path.read_text("utf-8") for path in files if path.is_file())


def drop_downs(kind: Kind, params: dict) -> str:
    """Build the drop-downs above a drawing."""
    parts = {name: name.capitalize() for name in params["attention"]}
    if params["sentence_b_start"] is not None:
        parts |= PARTS_OF_A_PAIR
    controls = kind.drop_downs | ({"filter": ("Attention", parts)} if len(parts) > 1 else {})
    return "".join(drop_down(name, label, options) for name, (label, options) in controls.items())


def drop_down(name: str, label: str, choices: dict[str, str]) -> str:
    """Build a drop-down with this id and label."""
    options = [f'<option value="{value}">{html.escape(text)}</option>' for value, text in choices.items()]
    return f'<label>{label}: <select id="{name}">{"".join(options)}</select></label>'


def writable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text.encode(errors="replace").decode()


def json_for_html(value) -> str:
    """Write JSON, tensors as lists, that is safe inside a <script>: ASCII without <, which could close the element."""
    text = json.dumps(value, separators=(",", ":"), default=lambda tensor: tensor.tolist())
    return text.replace("<", "\\u003c")


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
