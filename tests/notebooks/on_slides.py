"""Helpers: the slide type of a cell and the headings in it."""

import re

STARTS, SHOWN = {"slide", "subslide"}, {"slide", "subslide", "fragment", "-"}
HEADING = re.compile(r"^#{1,3} .*", re.MULTILINE)


def kind_of(cell) -> str | None:
    return cell.metadata.get("slideshow", {}).get("slide_type")


def headings(cell) -> list[str]:
    without_code = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
    return HEADING.findall(without_code) if cell.cell_type == "markdown" else []
