"""Vectors and an index."""

import math

import faiss
import numpy as np
import pandas as pd
import torch
from torch.nn import functional as F

from tests.helpers import tiny_tokenizer
from tests.reference.bad_input import Bad, Good, each
from tests.reference.bad_input.models import encoder
from utils.search import embed, hnsw_index, search, search_index

UNIT = F.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(0)), dim=1)
NAN = UNIT * math.nan
TABLE = pd.DataFrame({"text": ["a", "b"]})


def nearest(queries=UNIT[:3], vectors=UNIT, k=2):
    """Return a call of `search`."""
    return lambda _: search(queries, vectors, k)


def finds_itself(queries, vectors=UNIT):
    """Whether exact search and the graph give each of these queries itself first."""

    def call(_) -> bool:
        searches = search(queries, vectors, 1), search_index(queries, hnsw_index(vectors), 1)
        return [found.indices[:, 0].tolist() for found in searches] == [[0, 1, 2]] * 2

    return call


def graph(**settings):
    """Return a call of `hnsw_index`."""
    return lambda _: hnsw_index(UNIT, **settings)


def distances(metric: int = faiss.METRIC_L2) -> faiss.Index:
    """Return an index of distances in place of products."""
    index = faiss.IndexFlat(8, metric)
    index.add(UNIT.numpy())
    return index


def embed_listed(texts, expected: list[str] | None = None):
    """Embed texts; with `expected`, whether they have the vectors of this list."""

    def call(_):
        model = encoder()
        found = embed(texts, model, tiny_tokenizer())
        return expected is None or torch.equal(found, embed(expected, model, tiny_tokenizer()))

    return call


FROM_EMBED = each(nearest(), lambda _: search(*[embed(["a"], encoder(), tiny_tokenizer())] * 2, 1))
SPOILED = "contain NaN or inf: check the model that embedded them"
LENGTHS = "must have length 1, so that products are cosines: take them from embed()"

VECTORS = [
    Bad("queries that are not of length 1", nearest(UNIT[:3] * 2), f"queries {LENGTHS}", FROM_EMBED),
    Bad("queries with NaN", nearest(NAN[:3]), f"queries {SPOILED}", nearest()),
    Bad("vectors with NaN", nearest(vectors=NAN), f"vectors {SPOILED}", nearest()),
    *(
        Bad(
            f"{given}",
            nearest(queries),
            f"queries must be (Q, 8) as the vectors are, got {tuple(queries.shape)}: take them from embed()",
            FROM_EMBED,
        )
        for given, queries in (("a query without a batch axis", UNIT[0]), ("queries of another width", UNIT[:3, :7]))
    ),
    Bad(
        "words for queries",
        nearest(["a film"]),
        "queries must be numbers, (N, H), as embed() returns them",
        FROM_EMBED,
        error=TypeError,
    ),
    *(
        Bad(
            f"`k={k!r}` of 40 vectors",
            nearest(k=k),
            f"k={k!r}, but there are 40 vectors to search: use k from 1 to 40",
            each(nearest(k=1), nearest(k=40)),
        )
        for k in (0, 41, 2.5)
    ),
    Good("queries of float64", finds_itself(UNIT[:3].double())),
    Good("a NumPy array", finds_itself(UNIT[:3].numpy(), UNIT.double().numpy())),
    Good("a list of vectors", finds_itself(list(UNIT[:3]), [row.numpy() for row in UNIT])),
    Good("a table of pandas", finds_itself(pd.DataFrame(UNIT[:3].numpy()), pd.DataFrame(UNIT.numpy()))),
    Good("a column of pandas", finds_itself(pd.Series([*UNIT[:3].numpy()]), pd.Series([*UNIT.numpy()]))),
    Bad(
        "no index",
        lambda _: search_index(UNIT[:3], None, 1),
        "index must be one of faiss, got NoneType: build it with hnsw_index()",
        lambda _: search_index(UNIT[:3], hnsw_index(UNIT), 1),
        error=TypeError,
    ),
    Good(
        "vectors that require gradients", finds_itself(UNIT[:3].clone().requires_grad_(), UNIT.clone().requires_grad_())
    ),
    Bad(
        "an index of distances, not cosines",
        lambda _: search_index(UNIT[:3], distances(), 1),
        "the index measures distances, not cosines: build it with faiss.METRIC_INNER_PRODUCT",
        lambda _: search_index(UNIT[:3], distances(faiss.METRIC_INNER_PRODUCT), 1),
    ),
    *(
        Bad(f"`M={M!r}`", graph(M=M), f"M must be an integer from 2 to 512, got {M!r}", each(graph(M=2), graph(M=512)))
        for M in (1, 513, "32")
    ),
    *(
        Bad(
            f"`{name}={value!r}`",
            graph(**{name: value}),
            f"{name} must be an integer from 1 to 100,000, got {value!r}",
            each(graph(**{name: 1}), graph(**{name: 1000})),
        )
        for name in ("ef_construction", "ef_search")
        for value in (0, 10**9)
    ),
    Bad(
        "no texts to embed",
        lambda _: embed([], encoder(), tiny_tokenizer()),
        "got no texts: pass a list, or a stream that has not been read before",
        each(embed_listed(["a"]), embed_listed(iter(["a"]))),
    ),
    *(
        Good(f"{type(texts).__name__} of texts", embed_listed(texts, ["a", "b c"]))
        for texts in (pd.Series(["a", "b c"], [3, 1]), np.array(["a", "b c"]), ("a", "b c"), iter(["a", "b c"]))
    ),
    *(
        Bad(
            f"texts to embed that are {texts!r:.20}",
            embed_listed(texts),
            f"texts must be a list, got {type(texts).__name__}: {remedy}",
            embed_listed(right),
            error=TypeError,
        )
        for texts, remedy, right in (
            ("a", "wrap one text in a list", ["a"]),
            ({"a"}, "pass a list, or one column of a table", ["a"]),
            (TABLE, "pass a list, or one column of a table", TABLE["text"]),
            (b"a", "pass a list, or one column of a table", ["a"]),
        )
    ),
    Bad(
        "a missing text among those to embed",
        embed_listed(pd.Series(["a", math.nan])),
        "text 1 must be a string, got float: convert it, or leave it out",
        each(embed_listed(pd.Series(["a", math.nan]).dropna()), embed_listed(["a", "None"])),
        error=TypeError,
    ),
]
