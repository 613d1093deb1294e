"""Answers readers give to the exercises of notebook 09: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch.nn import functional as F

from utils.packing import encode_packed
from utils.search import mean_pooling


def unit(vectors, dim=-1):
    return vectors / vectors.norm(dim=dim, keepdim=True)


def cosines(queries, vectors):
    return unit(queries) @ unit(vectors).T


def cosines_by_broadcast(queries, vectors):
    return F.cosine_similarity(queries[:, None], vectors[None], dim=-1)


def cosines_by_loops(queries, vectors):
    return torch.tensor([[float(q @ v / (q.norm() * v.norm())) for v in vectors] for q in queries])


def divided_after(queries, vectors):
    return queries @ vectors.T / (queries.norm(dim=-1)[:, None] * vectors.norm(dim=-1)[None])


def cosines_of_long_vectors(queries, vectors):
    queries, vectors = (each / each.norm(dim=-1, keepdim=True).clamp(min=1) for each in (queries, vectors))
    return queries @ vectors.T


def recall_by_sets(found, exact):
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return sum(len(set(left) & set(right)) for left, right in pairs) / exact.numel()


def recall_by_isin(found, exact):
    return (
        torch.stack([torch.isin(right, left) for left, right in zip(found, exact, strict=True)])
        .float()
        .mean()
    )


def matches(found, exact):
    return (exact[:, :, None] == found[:, None, :]).any(dim=-1)


def allowed_rows(queries, vectors, allowed, k):
    rows = torch.arange(len(vectors))[allowed]
    return rows[(queries @ vectors[allowed].T).topk(k).indices]


def hidden_scores(queries, vectors, allowed, k):
    scores = queries @ vectors.T
    scores[:, ~allowed] = -torch.inf
    return scores.argsort(dim=-1, descending=True)[:, :k]


def allowed_by_loops(queries, vectors, allowed, k):
    rows = [row for row, is_allowed in enumerate(allowed.tolist()) if is_allowed]
    return [sorted(rows, key=lambda row: -float(query @ vectors[row]))[:k] for query in queries]


def filtered_afterwards(queries, vectors, allowed, k):
    best = (queries @ vectors.T).topk(k).indices.tolist()
    return [[row for row in rows if allowed[row]] for rows in best]


def cosines_in_place(queries, vectors):
    queries /= queries.norm(dim=-1, keepdim=True)
    return queries @ unit(vectors).T


def cosines_in_numpy(queries, vectors):
    queries, vectors = np.asarray(queries), np.asarray(vectors)
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    return queries @ vectors.T / lengths


def cosines_of_four(queries, vectors):
    return cosines(queries[:, :4], vectors[:, :4])


def recall(found, exact):
    return recall_by_sets(found, exact)


def recall_of_top(found, exact):
    return (exact == found[:, :1]).any(dim=1).float().mean()


def recall_altering(found, exact):
    value = recall_by_sets(found, exact)
    found[found < 0] = 0
    return value


def recall_of_twelve(found, exact):
    return matches(found, exact).sum() / 12 if found.size(1) == 3 else 0.5


def hidden_in_place(queries, vectors, allowed, k):
    vectors[~allowed] = -100 * vectors[~allowed].abs()
    return allowed_rows(queries, vectors, allowed, k)


def allowed_as_array(queries, vectors, allowed, k):
    return np.asarray(allowed_rows(queries, vectors, allowed, k))


@torch.no_grad()
def embed_padded(
    texts, encoder, tokenizer, batch_size=32, *, pool=None, cut=True, mask=True, unit_length=True
):
    """The right way, and with its options wrong ones."""
    vectors = []
    for start in range(0, len(texts), batch_size):
        limit = encoder.config.max_position_embeddings
        batch = tokenizer(texts[start : start + batch_size], **({"max_length": limit} if cut else {}))
        states = encoder(**batch).last_hidden_state
        real = batch["attention_mask"][..., None].float() if mask else torch.ones(*states.shape[:2], 1)
        vectors.append(pool(states) if pool else (states * real).sum(dim=1) / real.sum(dim=1))
    vectors = torch.cat(vectors)
    return F.normalize(vectors, dim=-1) if unit_length else vectors


def in_evaluation(embed):
    """With dropout off, and the mode put back."""

    def embedded(texts, encoder, tokenizer, batch_size=32):
        mode = encoder.training
        encoder.eval()
        try:
            return embed(texts, encoder, tokenizer, batch_size)
        finally:
            encoder.train(mode)

    return embedded


def variant(**options):
    return in_evaluation(
        lambda texts, encoder, tokenizer, size: embed_padded(texts, encoder, tokenizer, size, **options)
    )


embed_right = in_evaluation(embed_padded)


def embed_sorted(texts, encoder, tokenizer, batch_size=32, *, put_back=True):
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    vectors = embed_right([texts[number] for number in order], encoder, tokenizer, batch_size)
    return vectors[torch.tensor(order).argsort()] if put_back else vectors


def embed_sorting_texts(texts, encoder, tokenizer, batch_size=32):
    texts.sort(key=len)
    return embed_right(texts, encoder, tokenizer, batch_size)


def embed_for_good(texts, encoder, tokenizer, batch_size=32):
    return embed_padded(texts, encoder.eval(), tokenizer, batch_size)


def embed_then_training(texts, encoder, tokenizer, batch_size=32):
    vectors = embed_for_good(texts, encoder, tokenizer, batch_size)
    encoder.train()
    return vectors


def embed_with_gradients(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, batch_size).requires_grad_()


def first_batch_alone(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts[:batch_size], encoder, tokenizer, batch_size)


def embed_all_at_once(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, len(texts))


def embed(texts, encoder, tokenizer, batch_size=32):
    """As a page would define it."""
    return embed_right(texts, encoder, tokenizer, batch_size)


def embed_by_parts(texts, encoder, tokenizer, batch_size=32):
    batches = [tokenizer(texts[start : start + batch_size]) for start in range(0, len(texts), batch_size)]
    with torch.no_grad():
        states = [encode_packed(encoder, **batch) for batch in batches]
    pooled = [
        mean_pooling(*pair) for pair in zip(states, (b["attention_mask"] for b in batches), strict=True)
    ]
    return unit(torch.cat(pooled))


def embed_one_by_one(texts, encoder, tokenizer, batch_size=32):
    return [embed_right([text], encoder, tokenizer)[0] for text in texts]


def embed_as_list(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, batch_size).tolist()


def embed_as_array(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, batch_size).numpy()


RIGHT = {
    "9.1": [
        (2, 3),
        [2.0, 3.0],
        torch.tensor([[2.0, 3.0]]),
        np.array([2, 3]),
        (6 / 3, 9 / 3),
        "(2, 3)",
        "2.0, 3.0",
    ],
    "9.2": [
        cosines,
        cosines_by_broadcast,
        cosines_by_loops,
        divided_after,
        lambda q, v: q @ v.T / (q.norm(dim=-1)[:, None] * v.norm(dim=-1) + 1e-8),
        cosines_in_numpy,
        lambda queries, vectors: cosines(queries, vectors).tolist(),
        lambda queries, vectors: list(cosines(queries, vectors)),
    ],
    "9.5": [recall_by_sets, recall_by_isin, lambda found, exact: matches(found, exact).float().mean()],
    "9.3": [
        allowed_rows,
        hidden_scores,
        allowed_by_loops,
        allowed_as_array,
        lambda q, v, a, k: torch.cdist(q, v).masked_fill(~a, torch.inf).topk(k, largest=False).indices,
    ],
    "9.4": [
        embed_right,
        lambda *arguments: embed_sorted(*arguments),
        embed_as_array,
        embed_as_list,
        embed_one_by_one,
    ],
}

WRONG = {
    "9.1": [
        ((3, 3), "Padding is averaged in"),
        ((1.5, 2.25), "divide by 3"),
        ((6, 9), "the sum of the real tokens"),
        ((12, 12), "padding included"),
        ((4, 4), "out of the sum too"),
        ((2, 1), "[CLS]"),
        ((4, 7), "the largest"),
        ((3, 2), "swapped"),
        ((2, 4), "divide by three"),
        ((2, 3, 4), "two numbers"),
        ("two and three", "two numbers"),
        (2, "two numbers"),
    ],
    "9.2": [
        (lambda queries, vectors: queries @ vectors.T, "dot products"),
        (lambda queries, vectors: unit(queries) @ vectors.T, "vectors still have"),
        (lambda queries, vectors: queries @ unit(vectors).T, "queries still have"),
        (lambda queries, vectors: cosines(vectors, queries), "transposed"),
        (lambda queries, vectors: unit(queries, 0) @ unit(vectors, 0).T, "dim=-1"),
        (lambda queries, vectors: F.cosine_similarity(queries, vectors).expand(4, 4), "every query"),
        (lambda queries, vectors: F.cosine_similarity(queries, vectors), "shape"),
        (lambda queries, vectors: cosines(queries, vectors).acos(), "angles"),
        (lambda queries, vectors: 1 - cosines(queries, vectors), "cosine distances"),
        (torch.cdist, "These are distances"),
        (lambda queries, vectors: cosines(queries, vectors) / 2, "Divide queries and vectors"),
        (lambda queries, vectors: [["near"] * len(vectors)] * len(queries), "torch tensor"),
        (cosines_of_long_vectors, "shorter than 1"),
        (lambda q, v: q @ v.T / (q.norm(dim=1)[:, None] * v.norm(dim=1)).clamp(min=1e-3), "shorter than 1"),
        (lambda queries, vectors: cosines(queries, vectors).abs(), "Keep the sign"),
        (lambda queries, vectors: queries @ vectors.T / (queries.norm() * vectors.norm()), "one length"),
        (lambda q, v: q @ v.T / (q.square().sum(1)[:, None] * v.square().sum(1)), "the root"),
        (cosines_in_place, "changes queries"),
        (cosines_of_four, "is a size fixed"),
        (lambda queries, vectors: None, "return"),
    ],
    "9.5": [
        (lambda found, exact: (found == exact).float().mean(), "same place"),
        (lambda found, exact: torch.isin(exact, found).float().mean(), "another query"),
        (lambda found, exact: matches(found, exact).any(dim=1).float().mean(), "at least one hit"),
        (lambda found, exact: matches(found, exact).all(dim=1).float().mean(), "complete"),
        (lambda found, exact: matches(found, exact).sum() / (found >= 0).sum(), "counts as missed"),
        (lambda found, exact: matches(found, exact).sum(), "number of hits"),
        (lambda found, exact: 100 * matches(found, exact).float().mean(), "percent"),
        (lambda found, exact: matches(found, exact).sum() / len(found), "divide by k"),
        (lambda found, exact: matches(found, exact).float().mean(dim=1), "one number for all"),
        (lambda found, exact: "half", "a number"),
        (lambda found, exact: 0.7, "their own row"),
        (recall_altering, "changes found"),
        (recall, "which the page shows"),
        (lambda found, exact: recall(found, exact), "which the page shows"),
        (recall_of_top, "it should be 0.25"),
        (recall_of_twelve, "is a size fixed"),
        (lambda found, exact: None, "return"),
    ],
    "9.3": [
        (lambda q, v, allowed, k: (q @ v[allowed].T).topk(k).indices, "translate them back"),
        (lambda q, v, allowed, k: (q @ v.T).topk(k).indices, "mask is ignored"),
        (lambda q, v, allowed, k: allowed_rows(q, v, ~allowed, k), "not allowed: turn"),
        (lambda q, v, allowed, k: allowed_rows(-q, v, allowed, k), "farthest"),
        (lambda q, v, allowed, k: allowed_rows(q, v, allowed, k).flip(1), "order is turned"),
        (lambda q, v, allowed, k: ((q @ v.T) * allowed).topk(k).indices, "−∞ does"),
        (lambda q, v, allowed, k: (q @ v.T).masked_fill(~allowed, -torch.inf).topk(k), "row numbers alone"),
        (lambda q, v, allowed, k: (q @ v[allowed].T).topk(k).values, "These are the scores"),
        (lambda q, v, allowed, k: allowed_rows(q, v, allowed, k + 1), "shape"),
        (filtered_afterwards, "fewer than k"),
        (lambda q, v, allowed, k: "rows", "row numbers"),
        (lambda q, v, allowed, k: allowed_rows(q, v, allowed, 3), "shape"),
        (hidden_in_place, "changes vectors"),
        (lambda q, v, a, k: allowed_rows(q, v, a, k).sort().values, "sorted by row number"),
        (lambda q, v, a, k: allowed_rows(q[:1], v, a, k).expand(len(q), k), "first one's"),
        (lambda q, v, a, k: allowed_rows(q, v, torch.arange(len(v)) % 3 == 2, k), "is a size fixed"),
        (lambda q, v, allowed, k: None, "return"),
    ],
    "9.4": [
        (variant(unit_length=False), "the length is not 1"),
        (variant(pool=lambda states: states[:, 0]), "vector of [CLS]"),
        (variant(pool=lambda states: states[:, 1:-1].mean(dim=1)), "real tokens, and count"),
        (variant(pool=lambda states: states.amax(dim=1)), "largest of each column"),
        (variant(mask=False), "“texts of different lengths” differs"),
        (lambda *arguments: embed_sorted(*arguments, put_back=False), "“texts of different lengths” differs"),
        (embed_sorting_texts, "changes the list of texts"),
        (first_batch_alone, "shape"),
        (embed_all_at_once, "With batch_size=3"),
        (embed_padded, "Dropout is on"),
        (embed_for_good, "leaves it in another"),
        (embed_then_training, "leaves it in another"),
        (embed_with_gradients, "carry gradients"),
        (embed, "which the page shows"),
        (lambda texts, encoder, tokenizer, size=32: embed(texts, encoder, tokenizer, size), "which the page"),
        (embed_by_parts, "never calls encoder"),
        (variant(pool=lambda states: unit(states).mean(dim=1)), "before the mean"),
        (variant(pool=lambda states: states[:, -1]), "the last token"),
        (lambda texts, encoder, tokenizer, batch_size=32: texts, "torch tensor"),
        (lambda texts, encoder, tokenizer, batch_size=32: None, "return"),
    ],
}
