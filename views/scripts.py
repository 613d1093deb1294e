"""JavaScript modules as one classic script: a page needs no server, and no npm is needed to make one."""

import re
from functools import cache
from pathlib import Path

IMPORT = re.compile(r'^import (?:\{([^}]*)\} from )?"(\.[^"]*)";\n', re.MULTILINE)
NAME = re.compile(r"^(export )?(?:async )?(?:class|const|function|let) (?:(\w+)|\{([^}]*)\})", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export) .*", re.MULTILINE)
SPACE = re.compile(r"(`(?:\\.|[^`\\])*`)|^\s*//(?! .*License).*\n|^\s+", re.MULTILINE)


def modules(*entries: Path) -> list[Path]:
    """Return modules and all that they import, each after what it imports.

    ValueError for a circle of imports and for a name that a module does not export.
    """
    order: list[Path] = []

    def visit(path: Path, way: list[Path]) -> None:
        if path in way:
            raise ValueError(f"{' imports '.join(one.name for one in [*way, path])}: break this circle")
        if path in order:
            return
        for names, source in IMPORT.findall(path.read_text("utf-8")):
            target = (path.parent / source).resolve()
            visit(target, [*way, path])
            if missing := set(split(names)) - set(names_of(target, "export ")):
                raise ValueError(f"{path.name} imports {', '.join(missing)}, which {target.name} does not export")
        order.append(path)

    for entry in entries:
        visit(entry.resolve(), [])
    return order


def names_of(path: Path, kind: str = "") -> list[str]:
    """Return the names that a module declares at its top or, of kind "export ", those that it exports."""
    found = NAME.findall(path.read_text("utf-8"))
    return [name for exported, one, several in found if kind in exported for name in split(one or several)]


def split(names: str) -> list[str]:
    """Return the names of a list with commas."""
    return re.findall(r"\w+", names)


@cache
def join(*entries: Path, without: tuple[Path, ...] = ()) -> str:
    """Return modules and what they import as one script, but for those modules that a page has already, `without`.

    All share one scope. ValueError for the errors of `modules`, for a name that two of them declare, and for other
    forms of import and export.
    """
    owners: dict[str, Path] = {}
    order = modules(*without, *entries)
    for path in order:
        for name in names_of(path):
            if (owner := owners.setdefault(name, path)) != path:
                raise ValueError(f"{path.name} and {owner.name} both declare {name}, in one scope: rename one")
    texts = map(plain, order[len(modules(*without)) :])
    return shorten("\n".join(['"use strict";', *texts]))


def plain(path: Path) -> str:
    """Return a module without its imports and the word `export`."""
    text = NAME.sub(lambda found: found[0].removeprefix("export "), IMPORT.sub("", path.read_text("utf-8")))
    if other := OTHER.search(text):
        raise ValueError(f'{path.name}: write `import {{ name }} from "./file.js";` in place of {other[0]}')
    return text


def shorten(code: str) -> str:
    """Leave out indents, empty lines and lines that are comments, a third of a page's code, but not in templates."""
    return SPACE.sub(lambda found: found[1] or "", code)
