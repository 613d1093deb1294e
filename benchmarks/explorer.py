"""Measure how long explorer.html and type_bert.html take to answer, and write benchmarks/explorer.md.

    python -m benchmarks.explorer [site]

Times are measured inside the pages, the best of five. In explorer.html, they count from the request until the result is
painted: *first* includes fetching the model from a server on this machine, unpacking and starting it; *after* is each
further sentence, of 7, 11 and 27 tokens. In type_bert.html, they count from opening the page, on a single core, with a
line typed at once. Chromium without a GPU. If no folder with a built site is passed, the pages are built first.
"""

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.report import markdown, processor, versions
from explorer import explorer
from publish.browser import open_browser
from publish.server import serve
from publish.type_bert import build as type_bert
from publish.website import BUILD

REPORT = Path(__file__).with_suffix(".md")
ROUNDS = 5
SENTENCES = (
    "fruit flies like a banana",
    "time flies like a banana",
    "the bark of a palm tree is very rough",
    "the animal didn't cross the street because it was too tired and it wanted to sleep all day long, as every day",
)
# submit a sentence; return the seconds in the encoder, until it is drawn, and until it is painted
ASK = """(text) => new Promise((done) => {
  const status = by("status"), start = performance.now(), since = () => (performance.now() - start) / 1000;
  by("first").value = text;
  status.textContent = "";
  new MutationObserver((_, observer) => {
    if (!status.textContent.includes("computed here")) return;
    observer.disconnect();
    const [encoder] = status.textContent.match(/[0-9.]+(?= s)/), drawn = since(), tokens = shown.tokens.length;
    const end = () => done({ tokens, encoder: +encoder, drawn, painted: since() });
    requestAnimationFrame(() => requestAnimationFrame(end));
  }).observe(status, { childList: true });
  by("form").requestSubmit();
})"""


def measure(browser: Browser, address: str) -> list[list[str]]:
    """Return a row of the table for each sentence; the first one includes loading the model."""
    rounds = []
    for _ in range(ROUNDS):
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(address)
        page.locator("#final canvas").wait_for()
        rounds.append([page.evaluate(ASK, sentence) for sentence in SENTENCES])
        page.close()
    rows = []
    for index, times in enumerate(zip(*rounds, strict=True)):
        best = {name: min(time[name] for time in times) for name in times[0]}
        seconds = [f"{best[name]:.2f} s" for name in ("encoder", "drawn", "painted")]
        rows.append(["after" if index else "first", str(best["tokens"]), *seconds])
    return rows


def measure_typed(browser: Browser, address: str) -> list[list[str]]:
    """Return a row of the table for each moment of a visit to type_bert.html."""
    rounds = []
    for _ in range(ROUNDS):
        page = browser.new_context().new_page()  # nothing is cached
        page.set_default_timeout(120_000)
        page.goto(address)
        page.locator("#body").fill("")
        page.locator("#body").press_sequentially("softmax([dot(query, key) for key in keys])")
        page.keyboard.press("Enter")
        page.locator("#embed:enabled").click()
        page.locator("#cosine", has_text="computed in").wait_for()
        times = page.evaluate("times")
        seconds = page.evaluate("ask('embed', { bodies: {}, texts: DATA.texts }).then(({ seconds }) => seconds)")
        rounds.append([times["ready"] / 1000, times["verdict"] / 1000, times["model"] / 1000, seconds])
        page.context.close()
    names = "Python is ready", "the first line is checked", "the whole model is loaded", "three texts go through it in"
    return [[name, f"{min(found):.1f} s"] for name, *found in zip(names, *rounds, strict=True)]


def main() -> None:
    """Measure, and print and write the report."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(sys.argv[1] if len(sys.argv) > 1 else folder)
        if not (site / type_bert.PAGE).exists():
            explorer.build(site, BUILD / "npm", {})
            type_bert.build(site, BUILD / "npm", {})
        with serve(site) as origin, open_browser("--disable-gpu") as browser:
            where = f"{processor()}; {versions(['torch', 'playwright'])}, Chromium {browser.version}"
            rows = measure(browser, f"{origin}/explorer.html")
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the server and the browser share one core
        with serve(site) as origin, open_browser("--disable-gpu") as browser:
            typed = measure_typed(browser, f"{origin}/{type_bert.PAGE}")
    notes = __doc__.partition("[site]\n\n")[2].replace("\n", " ").strip()
    headings = ["sentence", "tokens", "in the encoder", "until drawn", "until painted"]
    tables = [markdown([headings, *rows]), markdown([["type_bert.html", "seconds"], *typed])]
    text = "\n".join(["# Your own sentence, and your own line", "", where, "", notes, "", tables[0], "", tables[1], ""])
    REPORT.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
