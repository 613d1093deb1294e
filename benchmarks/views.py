"""Compare size and speed of the attention views with bertviz's own, and write benchmarks/views.md.

    python -m benchmarks.views

Sizes are of what a notebook stores. The time is from opening a page until all of it is painted, the best of three, or
the first if it is above ten seconds, in Chromium without internet; bertviz's requests for require.js, jQuery and d3 are
answered immediately, from this computer. Nodes are those of our page. The model and the neuron view are timed as they
begin: bertviz's with lines, ours with squares and with sums.
"""

import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import bertviz
import torch
from bertviz import neuron_view as bertviz_neuron_view
from playwright.sync_api import Browser, Page

from benchmarks.report import markdown, processor, versions
from publish.browser import open_browser
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import load_tokenizer
from views import head_view, model_view, neuron_view
from views.page import FOLDER, package_text

REPORT = Path(__file__).with_suffix(".md")
PACKAGES = ("bertviz", "torch", "transformers", "playwright")
HEADINGS = [
    "view",
    "input",
    "ours",
    "bertviz",
    "times smaller",
    "painted, ours",
    "painted, bertviz",
    "times faster",
    "nodes",
]
SHORT_PAIR = ("I called Ian.", "I got his answering machine.")
LONG_PAIR = ("time flies like an arrow " * 6, "fruit flies like a banana " * 6 + "today")  # 64 tokens
LONGEST_PAIR = ("time flies like an arrow " * 20, "fruit flies like a banana " * 19 + "today and")  # 200 tokens
# the view, the pair, and how often the encoder's six layers are repeated
CASES = [
    *((view, SHORT_PAIR, 1) for view in ("head_view", "model_view", "neuron_view")),
    ("model_view", LONG_PAIR, 2),  # as many layers as BERT-base has
    *((view, LONGEST_PAIR, 1) for view in ("head_view", "neuron_view")),
]
DRAWN = "svg line, svg image, svg .block"  # bertviz's lines, our squares and blocks
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


class AsBertviz:
    """Our encoder with the interface of the model that bertviz's neuron view calls."""

    def __init__(self, encoder: TransformerEncoder):
        self.encoder = encoder

    def eval(self) -> None:
        """Switch dropout off."""
        self.encoder.eval()

    def __call__(self, input_ids, token_type_ids=None) -> tuple:
        """Return the last hidden state, and a dictionary of attention, queries and keys for each layer."""
        with torch.no_grad():
            output = self.encoder(
                input_ids, token_type_ids=token_type_ids, output_attentions=True, output_queries_keys=True
            )
        layers = zip(output.attentions, output.queries, output.keys, strict=True)
        return (
            output.last_hidden_state,
            [{"attn": attention, "queries": query, "keys": key} for attention, query, key in layers],
        )


class Comparison(NamedTuple):
    """One view of one input, as a notebook stores it and as a page."""

    view: str
    size: str
    ours: str
    our_page: str
    theirs: str


def comparisons() -> Iterator[Comparison]:
    """Yield all cases, drawn with the pretrained encoder."""
    tokenizer, encoder = load_tokenizer(), TransformerEncoder.from_checkpoint().eval()
    for name, pair, times in CASES:
        batch = tokenizer(*pair, return_tensors="pt")
        with torch.no_grad():
            attention = encoder(**batch, output_attentions=True).attentions * times
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
        if name == "neuron_view":
            ours = neuron_view(encoder, tokenizer, *pair)
            theirs = bertviz_neuron_view.show(AsBertviz(encoder), "bert", tokenizer, *pair, html_action="return")
        else:
            draw = {"head_view": head_view, "model_view": model_view}[name]
            shown = attention, tokens, tokens.index("[SEP]") + 1
            ours, theirs = draw(*shown), getattr(bertviz, name)(*shown, html_action="return")
        size = f"{len(attention)} × {attention[0].size(1)} × {len(tokens)}"
        yield Comparison(name, size, ours._repr_html_(), ours.page, theirs.data)


def libraries() -> str:
    """Return the script that bertviz's pages request: d3, and our replacements of jQuery and require.js."""
    _, lists, rest = (FOLDER / "bertviz.js").read_text("utf-8").partition("class Selection {")
    replacements = lists + rest.partition("const d3 = {")[0]
    ready = "window.requirejs = (names, draw) => draw(...names.map((name) => ({ d3, jquery: jQuery })[name]));"
    ready += "window.require = window.requirejs; require.config = () => {};"
    return "\n".join([package_text("mpld3", "mpld3/js/d3.v5.min.js"), replacements, ready])


def open_page(browser: Browser) -> Page:
    """Open a page in a 1300-pixel window that answers requests for libraries."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    script = libraries()
    page.route("https://**/*", lambda route: route.fulfill(body=script, content_type="text/javascript"))
    return page


def seconds_to_painted(browser: Browser, text: str, folder: Path, repeats: int = 3) -> tuple[float, int]:
    """Return the seconds until a page is painted, the best of some repeats, and its number of nodes."""
    path = folder / "page.html"
    path.write_text(text if "<!doctype" in text else f"<!doctype html><meta charset=utf-8>{text}", "utf-8")
    times = []
    while len(times) < repeats and not (times and times[-1] > 10):
        page = open_page(browser)
        page.set_default_timeout(300_000)
        start = time.perf_counter()
        page.goto(path.as_uri(), timeout=300_000)
        page.locator(DRAWN).first.wait_for(state="attached")
        page.evaluate(PAINTED)
        times.append(time.perf_counter() - start)
        nodes = page.locator("*").count()
        page.close()
    return min(times), nodes


def measure(browser: Browser) -> list[list[str]]:
    """Return a row of the table for each comparison."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for comparison in comparisons():
            ours, theirs = (len(text.encode()) / 1e6 for text in (comparison.ours, comparison.theirs))
            (our_time, nodes), (their_time, _) = (
                seconds_to_painted(browser, text, Path(folder)) for text in (comparison.our_page, comparison.theirs)
            )
            sizes = [f"{ours:.2f} MB", f"{theirs:.2f} MB", f"{theirs / ours:.1f}"]
            times = [f"{our_time:.2f} s", f"{their_time:.2f} s", f"{their_time / our_time:.1f}"]
            rows.append([comparison.view, comparison.size, *sizes, *times, f"{nodes:,}"])
            print(" | ".join(rows[-1]), flush=True)
    return rows


def report(rows: list[list[str]], where: str, load: float) -> str:
    """Return the report as Markdown, without times if the machine was busy."""
    notes = __doc__.partition("\n\n    ")[2].partition("\n\n")[2].replace("\n", " ").strip()
    title = "# Attention views compared with bertviz's own"
    sizes = "The input is layers × heads × tokens of a sentence pair, of the pretrained encoder."
    table = [HEADINGS, *rows]
    if load > (os.cpu_count() or 1):
        table = [[*row[:5], row[-1]] for row in table]
        sizes += f" Times are left out: the machine was busy with other work (load {load:.0f})."
    return "\n".join([title, "", where, "", f"{notes} {sizes}", "", markdown(table), ""])


def main() -> None:
    """Measure, and print and write the report."""
    warnings.simplefilter("ignore", ResourceWarning)  # bertviz leaves files open
    with open_browser("--disable-gpu") as browser:
        where, load = f"{processor()}; {versions(PACKAGES)}, Chromium {browser.version}", os.getloadavg()[0]
        text = report(measure(browser), where, load)
    REPORT.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
