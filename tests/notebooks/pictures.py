"""Plugin that makes nbval compare figures and answers to predictions: `pytest --nbval -p tests.notebooks.pictures`.

Machines render text and lines slightly differently, so blurred pictures are compared. Screenshots of views and
interactive figures are not compared here: `make notebooks` takes them from their pages.

Answers are computed as if the reader had typed "skip", and compared with the box in which they are saved.
"""

import base64
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from publish import notebooks

BLUR = 6  # pixels; a letter is about 20 pixels high
SIZES = 12  # pixels by which width and height may differ
# bounds of the mean and largest difference, of 255; text without hinting gave 0.9 and 45 in 23 figures
MAX_MEAN, MAX_DIFFERENCE = 1.5, 50.0


def figures(outputs: list) -> list[Image.Image]:
    """Return the matplotlib figures among the outputs of a cell."""
    data = [output.get("data", {}) for output in outputs]
    found = [item["image/png"] for item in data if item.get("text/plain", "").startswith("<Figure")]
    return [Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB") for picture in found]


def differences(saved: Image.Image, fresh: Image.Image) -> tuple[float, float]:
    """Return the mean and the largest difference of two blurred figures, of 255."""
    fresh = fresh.resize(saved.size)
    blurred = [np.asarray(picture.filter(ImageFilter.GaussianBlur(BLUR)), float) for picture in (saved, fresh)]
    difference = np.abs(blurred[0] - blurred[1]).mean(axis=-1)
    return float(difference.mean()), float(difference.max())


def verdict(saved: list[Image.Image], fresh: list[Image.Image]) -> str | None:
    """Return what is stale about the saved figures of a cell, or None if they match a fresh run."""
    if len(saved) != len(fresh):
        return f"{len(saved)} figures are saved, but {len(fresh)} were drawn"
    for number, (old, new) in enumerate(zip(saved, fresh, strict=True), 1):
        if max(abs(a - b) for a, b in zip(old.size, new.size, strict=True)) > SIZES:
            return f"figure {number} is saved with {old.size} pixels, but was drawn with {new.size}"
        mean, largest = differences(old, new)
        if mean > MAX_MEAN or largest > MAX_DIFFERENCE:
            return f"figure {number} differs from a fresh run: by {mean:.1f} of 255 on average, {largest:.0f} at most"
    return None


def stale_answer(path: Path, cells: list, answer, outputs: list) -> str | None:
    """Return what is stale in the box of a cell that reveals an answer, or None if it shows its outputs."""
    box = next(box for cell, box in notebooks.answers(cells) if cell is answer)
    saved = notebooks.BOX.search(box.source)[2]
    text, table = ("\n".join(re.findall(r"^\|.*", shown, re.MULTILINE)) for shown in (saved, notebooks.table(outputs)))
    names = re.findall(r"\]\(([^)]*)\)", saved)
    if notebooks.VARIES in answer.metadata.tags:
        text, table = (re.sub(r"\d[\d.]*", "0", shown) for shown in (text, table))
    if text != table:
        return f"{text!r} is saved, but the cell prints {table!r}"
    old, new = [Image.open(path.parent / name).convert("RGB") for name in names], figures(outputs)
    if notebooks.VARIES in answer.metadata.tags and len(old) == len(new):
        return None
    small = zip(old, new, strict=False)
    return verdict(old, [each.resize(saved.size) for saved, each in small] + new[len(old) :])


def pytest_configure() -> None:
    """Let the kernels reveal answers without a guess."""
    os.environ["SHOW"] = "on"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Compare the figures of a cell, or its answer, after nbval has run it and compared its text."""
    result = yield
    if not hasattr(item, "cell"):
        return result
    cell, outputs = item.cell, item.test_outputs
    if outputs is not None and notebooks.reveals_answer(cell):
        stale = stale_answer(Path(item.parent.path), item.parent.nb.cells, cell, outputs)
        if stale:
            item.raise_cell_error(f"A saved answer is stale: {stale}. Run `make notebooks`")
        return result
    if outputs is not None and item.options["check"]:
        stale = verdict(figures(cell.outputs), figures(outputs))
        if stale:
            item.raise_cell_error(f"A saved figure is stale: {stale}. Run `make notebooks`")
    return result
