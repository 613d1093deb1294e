"""What the tests of figures that can be dragged share: open one, take hold of it, read its numbers."""

import random
from pathlib import Path

import torch


def open_figure(page, view, folder: Path) -> None:
    """Open the saved page of a figure in the browser."""
    page.goto(view.save(folder / "figure.html").as_uri())


def numbers(page, selector: str) -> torch.Tensor:
    """The whole numbers behind what these elements show rounded."""
    values = page.locator(selector).evaluate_all("(all) => all.map((e) => e.dataset.value)")
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def places(page, selector: str = ".handle:visible") -> torch.Tensor:
    """Where handles stand, (N, 2)."""
    found = page.locator(selector).evaluate_all("(all) => all.map((e) => [+e.dataset.x, +e.dataset.y])")
    return torch.tensor(found, dtype=torch.float64)


def drag(page, handle, x: float, y: float) -> None:
    """Drag a handle with a real pointer to a point of the window."""
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y, steps=2)
    page.mouse.up()


def slide(page, slider, chance: random.Random) -> None:
    """Drag a range input with a real pointer to somewhere along it."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 8 + chance.random() * (box["width"] - 16), box["y"] + box["height"] / 2)


def press(page, element, keys: str, chance: random.Random, most: int = 12) -> None:
    """Focus an element and press one of the keys (names with spaces between) up to so many times."""
    element.focus()
    key = chance.choice(keys.split())
    for _ in range(chance.randint(1, most)):
        page.keyboard.press(key)


def write(page, box, text: str) -> None:
    """Put a text in the place of what a box holds, by the keyboard."""
    box.focus()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type(text)


def texts_of(page, selector: str) -> list[str]:
    """What these elements say."""
    return page.locator(selector).all_text_contents()


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether numbers in a page are torch's, to 1e-5 of their size."""
    wanted = torch.as_tensor(wanted, dtype=torch.float64).flatten()
    return found.shape == wanted.shape and torch.allclose(found, wanted, rtol=1e-5, atol=1e-5)
