"""Photograph an exercise, a usual mistake and its hint, for the README: notebooks/images/exercise.png."""

from pathlib import Path
from tempfile import TemporaryDirectory

from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from publish.browser import open_browser
from publish.notebooks import ROOT, run
from utils.support.colours import LIGHT

PICTURE = ROOT / "notebooks" / "images" / "exercise.png"
ANSWER = """\
def softmax(scores):
    exponentials = scores.exp()
    return exponentials / exponentials.sum(dim=-1)


check("3.4", softmax)"""
WRONG = 2  # the line of it that the hint is about
MARK = """(code, wrong) => {
  const lines = code.innerHTML.split("\\n");
  lines[wrong] = `<u>${lines[wrong]}</u>`;
  code.innerHTML = lines.join("\\n");
}"""
STYLE = f"""pre {{ white-space: pre-wrap; word-break: normal !important }}
u {{ text-decoration: underline wavy {LIGHT["mark"]}; text-underline-offset: 4px }}
.jp-OutputArea-output pre {{ border-left: 4px solid {LIGHT["mark"]}; padding-left: 8px !important }}"""


def main() -> None:
    """Run the answer in a notebook, photograph the cell, and print the picture's size."""
    notebook = new_notebook(cells=[new_code_cell("from exercises import check"), new_code_cell(ANSWER)])
    run(notebook, ROOT / "notebooks")
    notebook.cells = notebook.cells[1:]
    page, _ = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True).from_notebook_node(notebook)
    with TemporaryDirectory() as folder, open_browser("--host-resolver-rules=MAP * ~NOTFOUND") as browser:
        file = Path(folder) / "exercise.html"
        file.write_text(page, "utf-8")
        shown = browser.new_page(viewport={"width": 620, "height": 400}, device_scale_factor=2)
        shown.goto(file.as_uri())
        shown.add_style_tag(content=STYLE)
        shown.locator(".highlight pre").first.evaluate(MARK, WRONG)
        shown.locator(".jp-CodeCell").screenshot(path=PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
