"""Size and speed of the attention views beside bertviz's own, on the same inputs. Writes benchmarks/views.md.

    python -m benchmarks.views

Sizes are of what a notebook stores. The time is from opening a page until its first line is drawn, the best of three,
in Chromium without internet; bertviz's requests for require.js, jQuery and d3 are answered at once, from this computer.
"""

import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import bertviz
import torch
from bertviz import neuron_view as bertviz_neuron_view
from playwright.sync_api import Browser, Page, sync_playwright
from transformers import BertConfig

from benchmarks.report import markdown, processor, versions
from utils.checkpoints import load_tokenizer
from utils.encoder import TransformerEncoder
from utils.views import head_view, model_view, neuron_view
from utils.views.page import FOLDER, package_text

REPORT = Path(__file__).with_suffix(".md")
PACKAGES = ("bertviz", "torch", "transformers", "playwright")
HEADINGS = [
    "view",
    "input",
    "ours",
    "bertviz",
    "times smaller",
    "drawn, ours",
    "drawn, bertviz",
    "times faster",
]
SHORT_PAIR = ("I called Ian.", "I got his answering machine.")
LONG_PAIR = ("time flies like an arrow " * 6, "fruit flies like a banana " * 6 + "today")  # 64 tokens


class AsBertviz:
    """Our encoder in the shape of the model that bertviz's neuron view calls."""

    def __init__(self, encoder: TransformerEncoder):
        self.encoder = encoder

    def eval(self) -> None:
        """Dropout off."""
        self.encoder.eval()

    def __call__(self, input_ids, token_type_ids=None) -> tuple:
        """Last hidden state, and a dictionary of attention, queries and keys for each layer."""
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
    """Every view of a short pair, by the pretrained encoder, and of a long one, by a random one of BERT-base's size."""
    tokenizer = load_tokenizer()
    encoders = {
        SHORT_PAIR: TransformerEncoder.from_checkpoint,
        LONG_PAIR: lambda: TransformerEncoder(BertConfig()),
    }
    for pair, make_encoder in encoders.items():
        torch.manual_seed(0)
        encoder = make_encoder().eval()
        batch = tokenizer(*pair, return_tensors="pt")
        with torch.no_grad():
            attention = encoder(**batch, output_attentions=True).attentions
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
        start = tokens.index("[SEP]") + 1
        L, A, S = len(attention), *attention[0].shape[1:3]
        size = f"{L} × {A} × {S}"
        for name, draw in (("head_view", head_view), ("model_view", model_view)):
            ours = draw(attention, tokens, start)
            theirs = getattr(bertviz, name)(attention, tokens, start, html_action="return")
            yield Comparison(name, size, ours._repr_html_(), ours.page, theirs.data)
        ours = neuron_view(encoder, tokenizer, *pair)
        theirs = bertviz_neuron_view.show(AsBertviz(encoder), "bert", tokenizer, *pair, html_action="return")
        yield Comparison("neuron_view", size, ours._repr_html_(), ours.page, theirs.data)


def libraries() -> str:
    """What bertviz's pages ask for, in one script: d3, and our stand-ins for jQuery and require.js."""
    stand_ins = (FOLDER / "page.js").read_text("utf-8").partition("// Numbers travel")[0]
    ready = "window.require = window.requirejs; require.config = () => {};"
    return "\n".join([package_text("mpld3", "js/d3.v5.min.js"), stand_ins, ready])


def open_page(browser: Browser) -> Page:
    """A page of a 1300-pixel window, whose requests for libraries are answered."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    script = libraries()
    page.route("https://**/*", lambda route: route.fulfill(body=script, content_type="text/javascript"))
    return page


def seconds_to_first_line(browser: Browser, text: str, folder: Path, repeats: int = 3) -> float:
    """From opening the page to its first line; the best of some repeats, since other work can only slow it down."""
    path = folder / "page.html"
    path.write_text(text if "<!doctype" in text else f"<!doctype html><meta charset=utf-8>{text}", "utf-8")
    times = []
    for _ in range(repeats):
        page = open_page(browser)
        start = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit", timeout=120_000)
        page.wait_for_selector("svg line", state="attached", timeout=120_000)
        times.append(time.perf_counter() - start)
        page.close()
    return min(times)


def measure(browser: Browser) -> list[list[str]]:
    """A row of the table for each comparison."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for comparison in comparisons():
            ours, theirs = (len(text.encode()) / 1e6 for text in (comparison.ours, comparison.theirs))
            our_time, their_time = (
                seconds_to_first_line(browser, text, Path(folder))
                for text in (comparison.our_page, comparison.theirs)
            )
            sizes = [f"{ours:.2f} MB", f"{theirs:.2f} MB", f"{theirs / ours:.1f}"]
            times = [f"{our_time:.2f} s", f"{their_time:.2f} s", f"{their_time / our_time:.1f}"]
            rows.append([comparison.view, comparison.size, *sizes, *times])
            print(" | ".join(rows[-1]), flush=True)
    return rows


def report(rows: list[list[str]], where: str) -> str:
    """The table in Markdown, with a header."""
    notes = __doc__.partition("\n\n    ")[2].partition("\n\n")[2].replace("\n", " ").strip()
    title = "# Attention views beside bertviz's own"
    sizes = "The input is layers × heads × tokens of a sentence pair."
    return "\n".join([title, "", where, "", f"{notes} {sizes}", "", markdown([HEADINGS, *rows]), ""])


def main() -> None:
    """Measure, print and write the report."""
    warnings.simplefilter("ignore", ResourceWarning)  # bertviz closes no file
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        raise SystemExit("this benchmark needs Chromium or Chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        where = f"{processor()}; {versions(PACKAGES)}, Chromium {browser.version}"
        text = report(measure(browser), where)
        browser.close()
    REPORT.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
