"""Lets nbval compare the figures of the cells that it compares: `pytest --nbval -p tests.notebooks.pictures`.

Each machine draws letters and lines a little differently, so blurred pictures are compared. The photograph of a view or
of a figure that can be dragged is not compared here: `make notebooks` takes it, from its page.
"""

import base64
import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

BLUR = 6  # pixels, of about 20 that a letter is high
SIZES = 12  # pixels by which width and height may differ
# of 255: bounds of the mean difference and of the largest; letters drawn without hinting gave 0.9 and 45 in 23 figures
MEAN, MOST = 1.5, 50.0


def figures(outputs: list) -> list[Image.Image]:
    """The figures among the outputs of a cell, as matplotlib has drawn them."""
    data = [output.get("data", {}) for output in outputs]
    found = [item["image/png"] for item in data if item.get("text/plain", "").startswith("<Figure")]
    return [Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB") for picture in found]


def differences(saved: Image.Image, fresh: Image.Image) -> tuple[float, float]:
    """By how much two figures differ, blurred and laid upon each other: on average, and where they differ most."""
    fresh = fresh.resize(saved.size)
    blurred = [np.asarray(picture.filter(ImageFilter.GaussianBlur(BLUR)), float) for picture in (saved, fresh)]
    apart = np.abs(blurred[0] - blurred[1]).mean(axis=-1)
    return float(apart.mean()), float(apart.max())


def verdict(saved: list[Image.Image], fresh: list[Image.Image]) -> str | None:
    """What is stale about the saved figures of a cell; None if they are those of a fresh run."""
    if len(saved) != len(fresh):
        return f"{len(saved)} figures are saved, and {len(fresh)} were drawn"
    for number, (old, new) in enumerate(zip(saved, fresh, strict=True), 1):
        if max(abs(a - b) for a, b in zip(old.size, new.size, strict=True)) > SIZES:
            return f"figure {number} is saved with {old.size} pixels, and was drawn with {new.size}"
        mean, most = differences(old, new)
        if mean > MEAN or most > MOST:
            return f"figure {number} is another than was drawn: by {mean:.1f} of 255 on average, by {most:.0f} at most"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """After nbval has run a cell and compared its text, compare its figures."""
    result = yield
    if getattr(item, "test_outputs", None) is not None and item.options["check"]:
        stale = verdict(figures(item.cell.outputs), figures(item.test_outputs))
        if stale:
            item.raise_cell_error(f"A saved figure is stale: {stale}. Run `make notebooks`")
    return result
