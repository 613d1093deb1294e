"""Random damage to the files of a checkpoint, and what may come of it: the official model, or an error in words."""

import json
import random
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertModel
from transformers.utils import logging

from tests.bad_input import shard, write_checkpoint
from tests.helpers import ROOT
from utils.checkpoints import load_tokenizer
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer

FILES = ("config.json", "tokenizer.json", "model.safetensors.index.json", "a.safetensors")
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    13,
    10**4,
    10**9,
    2**63,
    -(2**70),
    0.5,
    -1e300,
    1e-12,
    float("nan"),
)
VALUES += (
    float("inf"),
    "",
    "a",
    "bert",
    "[MASK]",
    "a.safetensors",
    "../a.safetensors",
    "/etc/passwd",
    "relu",
)
VALUES += ("float16", "F16", "I64", "\ud800", [], [0], [2**40, 2], ["a"], {}, {"a": 1}, {"type": "BPE"})
IDS = torch.tensor([[2, 7, 9, 3], [2, 6, 3, 0]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
TEXTS = ["a b c", "17 É z [MASK]!", "東京 abc", ""]


def places(content, path=()) -> Iterator[tuple]:
    """Every place in nested dictionaries and lists."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def mutate_json(content: dict, draw: random.Random) -> str:
    """The text after one to three changes: a value replaced, removed, or put in; rarely a letter of it."""
    content = json.loads(json.dumps(content))
    for _ in range(draw.randint(1, 2)):
        everywhere = list(places(content))
        if not everywhere:
            break
        *way, key = draw.choice(everywhere)
        parent = content
        for step in way:
            parent = parent[step]
        kind = draw.random()
        if kind < 0.15:
            del parent[key]
        elif kind < 0.3 and isinstance(parent, dict):
            parent[
                draw.choice(["new", "hidden_size", "content", "special", "vocab", "weight_map", "dtype"])
            ] = draw.choice(VALUES)
        else:
            parent[key] = draw.choice(VALUES)
    text = json.dumps(content)
    if draw.random() < 0.1 and text:
        place = draw.randrange(len(text))
        text = text[:place] + draw.choice('{}[]",:0\x00') + text[place + 1 :]
    return text


def mutate(folder: Path, draw: random.Random) -> str:
    """Damage one file in the folder; what was done to it."""
    name = draw.choice(FILES)
    path = folder / name
    if path.suffix == ".json":
        path.write_text(mutate_json(json.loads(path.read_text("utf-8")), draw), "utf-8", "surrogatepass")
        return name
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header, numbers = whole[8 : 8 + size], whole[8 + size :]
    if draw.random() < 0.3:  # any bits
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(8 + size)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        return f"{name}, bits"
    text = mutate_json(json.loads(header), draw).encode("utf-8", "surrogatepass")
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    return f"{name}, header"


def require_ours(error: Exception) -> None:
    """AssertionError for an error that a library raised, whose words are not ours."""
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    assert raised_in.is_relative_to(ROOT / "utils"), f"raised in {raised_in}"


def outcome(folder: Path, whole: Path) -> str:
    """What comes of a damaged copy of `whole`: "equal" or "refused"; AssertionError for anything else.

    Equal means to what transformers makes of the damaged files, or, where it gives up on them, of the undamaged.
    """
    try:
        tokenizer = WordPieceTokenizer.from_checkpoint(str(folder))
        official = load_tokenizer(str(folder))
        encoder = TransformerEncoder.from_checkpoint(str(folder))
    except (ValueError, OSError, TypeError, MemoryError) as error:
        require_ours(error)
        return "refused"
    for text in TEXTS:
        for pair in (None, "b a"):
            assert tokenizer.encode(text, pair) == official.encode(text, pair, truncation=False)
    options = {"dtype": torch.float32, "attn_implementation": "eager", "use_safetensors": True}
    try:
        model = BertModel.from_pretrained(folder, **options).eval()
    except Exception:
        model = BertModel.from_pretrained(whole, **options).eval()
    with torch.no_grad():
        wanted = model(IDS, MASK, return_dict=True).last_hidden_state
        found = encoder(IDS, MASK).last_hidden_state
    assert torch.allclose(found[MASK == 1], wanted[MASK == 1], atol=1e-5), (found - wanted).abs().max()
    return "equal"


def megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    """Try so many mutants from a seed in a folder, and print how many of each outcome; a JSON line."""
    count, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    whole = shard(write_checkpoint(folder / "whole"), "a.safetensors", "b.safetensors")
    load_tokenizer(str(whole)).save_pretrained(whole)
    assert outcome(whole, whole) == "equal"
    draw, found, slowest, before = random.Random(seed), {"equal": 0, "refused": 0}, 0.0, megabytes()
    for number in range(count):
        place = shutil.copytree(whole, folder / "mutant")
        what, started = mutate(place, draw), time.perf_counter()
        try:
            found[outcome(place, whole)] += 1
        except BaseException as error:
            shutil.copytree(place, folder / f"fault-{number}", dirs_exist_ok=True)
            raise AssertionError(
                f"mutant {number} of seed {seed}, {what}: {type(error).__name__} {error}"
            ) from error
        slowest = max(slowest, time.perf_counter() - started)
        shutil.rmtree(place)
    print(json.dumps(found | {"seconds": round(slowest, 2), "megabytes": round(megabytes() - before)}))


if __name__ == "__main__":
    main()
