"""Files of a checkpoint that come from elsewhere: looked at before a library reads them, and refused in words.

Weights are read from safetensors in the checkpoint's own folder only: nothing is unpickled, and no other file opened.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError, safe_open
from torch import Tensor

from utils.checking import require_finite_weights, require_fit, require_once, require_precision

CONFIG_FILE, WEIGHTS_FILE, INDEX_FILE = "config.json", "model.safetensors", "model.safetensors.index.json"
MOST_BYTES = 50_000_000  # of a file of text; BERT's largest vocabulary has 3 million, the reviews 35


def require_text(path: Path) -> str:
    """A file's text; ValueError, with the remedy, for one that cannot be read, is no UTF-8, or is far too long."""
    with complaining(path):
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ValueError(f"{size:,} bytes are more than the {MOST_BYTES:,} that such a file may have")
        return path.read_text("utf-8")


def require_sha256(folder: Path, hashes: Mapping[str, str]) -> None:
    """Check files in a folder against their SHA-256; ValueError for one that is missing or was altered."""
    for name, expected in hashes.items():
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing: reinstall its package")
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            two = f"its SHA-256 is {found}, the original's is {expected}"
            raise ValueError(f"{folder / name} was altered ({two}): reinstall its package")


def written_at(path: Path) -> int:
    """When a file was last written, in nanoseconds; ValueError if it is gone."""
    with complaining(path):
        return path.stat().st_mtime_ns


def read_json(path: Path) -> dict:
    """What a JSON file holds by name; ValueError for anything else, however deeply nested."""
    with complaining(path):
        content = json.loads(require_text(path))
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ValueError(f"{path} holds a {kind}, not settings by name: fetch or save it again")
    return content


class Stored(NamedTuple):
    """A weight in an open file: its header's facts, and where to read it."""

    shape: tuple[int, ...]
    precision: str  # such as "F32"
    file: safe_open
    name: str


def read_weights(
    folder: Path, wanted: Mapping[str, Tensor], rename: Callable[[str], str | None], optional: str = "\n"
) -> dict[str, Tensor]:
    """The weights of a folder, read once the files' headers say that they fit the wanted ones; else ValueError.

    `rename` gives the wanted name of a stored one, or None for one that nobody wants. Names that begin with `optional`
    may be missing.
    """
    found = {}
    with ExitStack() as stack:
        for path in weight_files(folder):
            file = stack.enter_context(open_weights(path))
            for name in file.keys():  # noqa: SIM118 - it is no dictionary
                if (new := rename(name)) is not None:
                    require_once(new, found, path)
                    part = file.get_slice(name)
                    found[new] = Stored(tuple(part.get_shape()), part.get_dtype(), file, name)
        needed = {name: w for name, w in wanted.items() if name in found or not name.startswith(optional)}
        require_fit(found, needed)
        require_precision({name: stored.precision for name, stored in found.items()})
        weights = {name: stored.file.get_tensor(stored.name) for name, stored in found.items()}
    require_finite_weights(weights)
    return weights


def weight_files(folder: Path) -> list[Path]:
    """The safetensors of a folder, shards as their index names them; ValueError unless all lie in it."""
    if (folder / WEIGHTS_FILE).is_file():
        return [require_inside(folder, WEIGHTS_FILE)]
    if (folder / INDEX_FILE).is_file():
        shards = read_json(folder / INDEX_FILE).get("weight_map")
        if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
            raise ValueError(f"{folder / INDEX_FILE} names no file for each weight: fetch or save it again")
        return [require_inside(folder, name) for name in sorted(set(shards.values()))]
    pickled = ", ".join(path.name for path in folder.glob("*.bin"))
    found = f"only pickled weights ({pickled}), which can run code when loaded" if pickled else "no weights"
    raise ValueError(f"{folder} holds {found}: save_pretrained writes {WEIGHTS_FILE}")


def require_inside(folder: Path, name: str) -> Path:
    """The path of a weights file; ValueError unless it is safetensors, and in the folder once links are resolved.

    The Hub's cache keeps its files in `blobs` beside `snapshots`, and links to them: that counts as inside.
    """
    folder = folder.resolve()
    path = folder / name
    if path.suffix != ".safetensors":
        raise ValueError(f"{folder / INDEX_FILE} names {name!r}, which is no safetensors file: save it again")
    allowed = (folder, *([folder.parents[1] / "blobs"] if folder.parent.name == "snapshots" else []))
    if path.resolve().parent not in allowed:
        raise ValueError(f"{name!r} leads out of {folder}: put the file itself there")
    return path


def open_weights(path: Path):
    """A safetensors file, its header read; ValueError for one that is not whole."""
    with complaining(path):
        return safe_open(path, framework="pt")


@contextmanager
def complaining(path: Path) -> Iterator[None]:
    """What a file's reader complains of names the file and the remedy."""
    try:
        yield
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        if str(error).startswith(str(path)):
            raise
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{path} cannot be read ({reason}): fetch or save it again") from error
