"""Draw notebooks/images/07_*_view.png: the three views of notebook 07, with a number at each control."""

from pathlib import Path
from tempfile import TemporaryDirectory

from publish.browser import open_browser
from publish.screenshots import reduce_colours
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer
from views import head_view, model_view, neuron_view

IMAGES = Path(__file__).resolve().parents[1] / "notebooks" / "images"
PAIR = ("I called Ian.", "I got his answering machine.")  # its token 8 is “his”
HEAD = """hover: [data-token=L8] | 0 -23: #filter | -24 0: [data-token=L8] .room | 30 0: [data-token=R0] .number
| 0 0: .chosen .ribbon >> nth=1 | -16 0: [data-token=R3] .node | 0 22: .heads .cell >> nth=30
| 0 22: .heads .last >> nth=6"""
MODEL = """click: [aria-label='layer 2, head 4'] | hover: g.detail .token >> nth=8
| 0 -22: #vis text:text-is('2') >> nth=1 | -20 0: #vis text:text-is('4') >> nth=0
| -20 -20: [aria-label='layer 2, head 4'] | -44 0: g.detail .token >> nth=8 | 104 0: g.detail .token >> nth=8"""
NEURON = """0 -23: #layer | 78 0: #query | -60 0: .sums .query >> nth=0 | -88 0: .sums .number >> nth=3
| 0 -16: .block.marked >> nth=3 | -32 0: .score >> nth=3 | -30 0: .sums .weight >> nth=3"""
VIEWS = {  # function, options, width, image pixels per CSS pixel, and steps: an action, or a mark's offset
    "head": (head_view, {"layer": 2, "heads": [4]}, 880, 2, HEAD),
    "model": (model_view, {}, 880, 2, MODEL),
    "neuron": (neuron_view, {"layer": 2, "head": 4, "token": "his"}, 880, 2, NEURON),
}
STYLE = """body { padding-top: 20px }
h1, #details, #help, #tip, #tools details, .model_view #tools { display: none } .mark { position: absolute; z-index: 9;
width: 20px; border-radius: 50%; background: var(--mark); outline: 2px solid white; color: white; text-align: center;
font: bold 13px/20px var(--face) }"""
MARK = """(element, [right, down]) => {
  const box = element.getBoundingClientRect(), mark = document.createElement("div");
  mark.style.left = `${box.x + box.width / 2 + right - 10}px`;
  mark.style.top = `${box.y + box.height / 2 + down - 10}px`;
  mark.className = "mark", mark.textContent = document.querySelectorAll(".mark").length + 1, document.body.append(mark);
}"""
BOTTOM = "(elements) => Math.max(...elements.map((e) => e.getBoundingClientRect().bottom))"

if __name__ == "__main__":
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    with open_browser() as browser, TemporaryDirectory() as folder:
        for name, (view, options, width, scale, steps) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": 900}, device_scale_factor=scale)
            page.goto(view(encoder, tokenizer, *PAIR, **options).save(Path(folder) / "view.html").as_uri())
            page.add_style_tag(content=STYLE)
            page.locator("#vis > svg").wait_for()  # then the view's code has run
            for step in steps.split("|"):
                what, selector = map(str.strip, step.split(":", 1))
                if what in ("hover", "click"):
                    getattr(page.locator(selector), what)(position={"x": 10, "y": 10})
                else:
                    page.locator(selector).evaluate(MARK, [int(pixels) for pixels in what.split()])
            low = page.locator("#vis text:not(.soft), #vis .ground, #vis rect.detail").evaluate_all(BOTTOM)
            shot = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": low + 8})
            (IMAGES / f"07_{name}_view.png").write_bytes(reduce_colours(shot, 256))
