"""Pages that show a view of bertviz's without internet, in a frame of a notebook's output or in a file."""

import html
import importlib.metadata
import importlib.util
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from utils.files import write_file

FOLDER = Path(__file__).parent
# Nothing may be fetched, from this page's own site either
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
PARTS_OF_A_PAIR = {
    "aa": "Sentence A -> Sentence A",
    "bb": "Sentence B -> Sentence B",
    "ab": "Sentence A -> Sentence B",
    "ba": "Sentence B -> Sentence A",
}
# What is changed in bertviz's drawing code, by functions of page.js: a view of very many lines leaves out what nobody
# can see; heads beyond the ten colours are dashed; what is pressed is large enough for a finger; an enlarged head
# stands beside its cell; the neuron view's sums are named after what they are, printed as its weights are, and stay
# when the pointer moves to them; and a change of theme can draw all again. Each of the old texts must be there.
ALTERED = {
    "head_view": (
        ("let config = {};", "let config = window.config = {};\n    window.redraw = renderVis;"),
        ("const TEXT_TOP = 30;", "const TEXT_TOP = 34;"),
        ("const BOXHEIGHT = 22.5;", "const BOXHEIGHT = 26;"),
        ("const CHECKBOX_SIZE = 20;", "const CHECKBOX_SIZE = 26;"),
        (
            """.attr("stroke-width", 2)
            .attr("stroke",""",
            """.attr("stroke-width", 2)
            .attr("stroke-dasharray", function () {
                return dashes(+this.parentNode.parentNode.getAttribute("head-index"));
            })
            .attr("stroke",""",
        ),
        (
            """.selectAll("line")
            .data(d => d)""",
            """.selectAll("line")
            .data(function (row) { return visible(row, shownHeads(config, this.parentNode)); })""",
        ),
        (
            "(d, rightTokenIndex) => TEXT_TOP + rightTokenIndex",
            "(d, i) => TEXT_TOP + placeOf(d, i)",
        ),
        ('"right-token-index", (d, i) => i)', '"right-token-index", placeOf)'),
        (
            """            updateCheckboxes();
            updateAttention(svg);""",
            """            updateCheckboxes();
            const layers = config.attention[config.filter].attn;
            MANY ? renderAttention(svg, layers[config.layer_seq]) : updateAttention(svg);""",
        ),
    ),
    "model_view": (
        ("const config = {};", "const config = window.config = {};\n        window.redraw = render;"),
        ("const DETAIL_BOX_HEIGHT = 18;", "const DETAIL_BOX_HEIGHT = 26;"),
        ("var xOffset = .8 * config.thumbnailWidth;", "var xOffset = config.thumbnailWidth;"),
        (
            "x = leftPos + THUMBNAIL_PADDING - DETAIL_WIDTH + 8;",
            "x = leftPos < DETAIL_WIDTH ? maxX - DETAIL_WIDTH : leftPos - DETAIL_WIDTH;",
        ),
        (
            """            attnContainer.selectAll("g")
                .data(att)
                .enter()
                .append("g") // Add group for each source token
                .attr""",
            """            const color = getLayerColor(layerIndex);
            const place = { x1, x2, y1, color, box: config.thumbnailBoxHeight };
            if (!painted(config.svg.node(), att, place)) attnContainer.selectAll("g")
                .data(att)
                .enter()
                .append("g") // Add group for each source token
                .attr""",
        ),
    ),
    "neuron_view": (
        ("const config = {};", "const config = window.config = {};\n        window.redraw = render;"),
        ("posDotProduct + BOXHEIGHT + PADDING_WIDTH;", "posDotProduct + BOXHEIGHT + 2.6 * PADDING_WIDTH;"),
        (
            """var vectorContainer = svg.select('#dotproducts').style("opacity", 1);""",
            """var vectorContainer = svg.select('#dotproducts').style("opacity", 1);
            printSums(vectorContainer.node(), dotProducts);""",
        ),
        ("offset = 8;", "offset = expanded ? 40 : 8; // behind the weight"),
        (
            "var container = svg.select('#rightText');",
            "printWeights(attn);\n            var container = svg.select('#rightText');",
        ),
        (
            """tokenContainer.on("mouseleave", function () {""",
            """tokenContainer.on("mouseleave", function () {
                    if (expanded) return;""",
        ),
        (
            """function (d) { // Loop over all target tokens
                    return d;""",
            """function (d) { // Loop over all target tokens
                    return visible(d);""",
        ),
        ("function (d, targetIndex) {", "function (d, i) { const targetIndex = placeOf(d, i);"),
        ("' \\u2219 k'", "' · k / √D'"),
        (
            "            renderVisExpanded(svg, leftText, rightText, queries, keys);",
            """            config.expand = () => {
                config.expand = null;
                renderVisExpanded(svg, leftText, rightText, queries, keys);
                svg.node().prepend(document.getElementById("expanded")); // whose tokens bertviz takes for the first
            };
            if (!MANY || config.expanded) config.expand();""",
        ),
        ("function showExpanded() {", "function showExpanded() { if (config.expand) config.expand();"),
    ),
}
TOOLS = (
    '<label>Hide weights below <input id="threshold" type="range" min="0" max="0.5" step="0.01" value="0">'
    '<output for="threshold">0.00</output></label><button id="save" type="button">Save picture</button>'
)
WIDE = '<p id="wide">The drawing is wider than this page: scroll it sideways.</p>'
INSTEAD = "The interactive view appears in a running notebook: run the cells above, then this one."


class Kind(NamedTuple):
    """One of bertviz's views: its name, its template's name, the width it draws in and how it is used."""

    name: str
    template: str
    width: int  # pixels
    controls: tuple[tuple[str, str], ...]  # label and id of each drop-down that bertviz fills itself
    help: str


BY_KEYBOARD = "By keyboard: Tab, arrow keys and Enter; → from a token tells its weights, the largest first."
HEAD_VIEW = Kind(
    "Head view",
    "head_view",
    340,
    (("Layer", "layer"),),
    "Hover over a token to follow its lines, over a tile to see its head's, over a line for its weight. Click a tile "
    "to hide or show its head, double-click it (Shift+Enter) to see that head alone, double-click it again for all.",
)
MODEL_VIEW = Kind(
    "Model view",
    "model_view",
    970,
    (),
    "Click a cell to enlarge that head and click it again (Escape) to close it. In the enlarged head, hover over a "
    "token on the left to follow its lines, over a line for its weight.",
)
NEURON_VIEW = Kind(
    "Neuron view",
    "neuron_view",
    1050,
    (("Layer", "layer"), ("Head", "att_head")),
    "Hover over a token on the left to follow its lines. Click the + beside it to open its query and the keys: the "
    "token that was hovered over last is multiplied, and each number is told under the pointer. A − closes them.",
)


@dataclass(frozen=True, repr=False)
class View:
    """An interactive view: Jupyter displays it as the last value of a cell, and `save` writes it to a file."""

    summary: str
    page: str

    def __repr__(self) -> str:
        return f"{self.summary}. {INSTEAD}"

    def _repr_html_(self) -> str:
        # In a frame of its own a view shares no names with other views; the text stays where frames are dropped
        source = html.escape(self.page, quote=False).replace("'", "&#x27;")
        summary = html.escape(self.summary)
        return (
            f"<div><iframe title=\"{summary}\" srcdoc='{source}' "
            f'style="width: 100%; height: 400px; border: 0"></iframe><p>{summary}. {INSTEAD}</p></div>'
        )

    def save(self, path: str | os.PathLike) -> Path:
        """Write a page that any browser opens without internet, whole or not at all, and return its path."""
        return write_file(path, self.page)


def make_view(
    kind: Kind, panels: dict[str, dict], *, display_mode: str | None, summary: str, **params
) -> View:
    """A view of these panels (the choices of its attention drop-down); `params` are what bertviz's template reads."""
    if display_mode not in (None, "light", "dark"):
        raise ValueError(
            f'display_mode="{display_mode}" does not exist: use "light" or "dark", or None to follow the page around'
        )
    params = {
        "attention": panels,
        "default_filter": next(iter(panels)),
        "root_div_id": "view",
        "display_mode": display_mode or "auto",  # which reading.js decides
        "width": kind.width,
        **params,
    }
    names = {key: key.capitalize() for key in panels}
    if params["sentence_b_start"] is not None:
        names |= PARTS_OF_A_PAIR
    title = f"{kind.name} of {summary}".encode(
        errors="replace"
    ).decode()  # half a character, which no file holds
    return View(title, build_page(kind, title, params, names))


def build_page(kind: Kind, title: str, params: dict, panel_names: dict[str, str]) -> str:
    """The page: bertviz's template, the libraries it needs and the data, all in one text."""
    bertviz = f"bertviz {importlib.metadata.version('bertviz')} by Jesse Vig, Apache License 2.0"
    return f"""<!doctype html>
<html lang="en" class="{params["display_mode"]} {kind.template}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{html.escape(title)}</title>
<style>
{(FOLDER / "page.css").read_text("utf-8")}</style>
<script>{package_text("mpld3", "js/d3.v5.min.js")}</script>
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
<div id="view"><div id="tools">{drop_downs(kind, panel_names)}{TOOLS}</div><div id="vis"></div>{WIDE}</div>
<p id="help">{kind.help} {BY_KEYBOARD}</p>
</main>
<script type="application/json" id="data">{json_for_html(params)}</script>
<script>
{(FOLDER / "page.js").read_text("utf-8")}</script>
<script>
{(FOLDER / "reading.js").read_text("utf-8")}</script>
<script>
// {bertviz}
{drawing_code(kind.template)}</script>
</body>
</html>
"""


def drop_downs(kind: Kind, panel_names: dict[str, str]) -> str:
    """The drop-downs above a drawing: bertviz fills those of the kind, and that of the panels is filled here."""
    controls = [f'<label>{label}: <select id="{name}"></select></label>' for label, name in kind.controls]
    if len(panel_names) > 1:
        options = "".join(
            f'<option value="{key}">{html.escape(name)}</option>' for key, name in panel_names.items()
        )
        controls.append(f'<label>Attention: <select id="filter">{options}</select></label>')
    return "".join(controls)


def json_for_html(value) -> str:
    """JSON that is safe inside a <script>: ASCII, and without the < that could end or comment out the element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def drawing_code(template: str) -> str:
    """bertviz's own drawing code, altered where we say so, without the addresses it would fetch libraries from."""
    code = package_text("bertviz", f"{template}.js")
    start = code.find("requirejs([")
    if start < 0 or not all(old in code for old, _ in ALTERED[template]):
        version = importlib.metadata.version("bertviz")
        raise RuntimeError(f"bertviz {version} draws in a way not known here: pip install bertviz==1.4.1")
    code = code[start:]
    for old, new in ALTERED[template]:
        code = code.replace(old, new)
    return code


@cache
def package_text(package: str, file: str) -> str:
    """A text file of an installed package, which is not imported for it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"the views need {package}: pip install {package}")
    return (Path(spec.submodule_search_locations[0]) / file).read_text("utf-8")
