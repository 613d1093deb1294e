"""Measure how long explorer.html takes to draw your own sentence, and write benchmarks/explorer.md.

    python -m benchmarks.explorer [site]

Times are measured inside the page, from the request until the result is painted; the best of five. *First* includes
fetching the model from a server on this machine, unpacking and starting it; *after* is each further sentence, of 7, 11
and 27 tokens. Chromium without a GPU. If no folder with a built site is passed, the page is built first.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.report import markdown, processor, versions
from explorer import explorer
from publish.browser import open_browser
from publish.server import serve
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


def main() -> None:
    """Measure, and print and write the report."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(sys.argv[1] if len(sys.argv) > 1 else folder)
        if not (site / "explorer.html").exists():
            explorer.build(site, BUILD / "npm", {})
        with serve(site) as origin, open_browser("--disable-gpu") as browser:
            where = f"{processor()}; {versions(['torch', 'playwright'])}, Chromium {browser.version}"
            rows = measure(browser, f"{origin}/explorer.html")
    notes = __doc__.partition("[site]\n\n")[2].replace("\n", " ").strip()
    headings = ["sentence", "tokens", "in the encoder", "until drawn", "until painted"]
    table = markdown([headings, *rows])
    text = "\n".join(["# Your own sentence in explorer.html", "", where, "", notes, "", table, ""])
    REPORT.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
