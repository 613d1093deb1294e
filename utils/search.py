"""Embed texts and find the nearest vectors: exactly, or with an HNSW graph of faiss. Built in notebook 09."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.support.batches import collate, device_of, evaluation_mode, full_batches, model_ids
from utils.support.checks import as_texts
from utils.support.products import with_fast_products
from utils.support.sentence_settings import sentence_length
from utils.support.vectors import as_queries, as_vectors, check_graph, check_inner_product, check_states, import_faiss

if TYPE_CHECKING:
    import faiss


def mean_pooling(last_hidden_state: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the mean of the real tokens' vectors, (B, H), from (B, S, H) and a mask (B, S) with 1 at real tokens.

    Built in notebook 09, exercise 9.2. Reimers and Gurevych 2019, section 3. ValueError if the
    shapes disagree, or if a row has no real token.
    """
    check_states(last_hidden_state, attention_mask)
    weights = (attention_mask != 0)[:, :, None].to(last_hidden_state.dtype)  # (B, S, 1)
    return (last_hidden_state * weights).sum(dim=1) / weights.sum(dim=1)


@torch.no_grad()
def embed(texts: Sequence[str], encoder: TransformerEncoder, tokenizer, batch_size: int | None = None) -> Tensor:
    """Return one unit vector per text, (N, H) on the CPU: the normalized mean of its token vectors.

    Built in notebook 09, section “Build the search”. Runs in evaluation mode, and truncates texts as the checkpoint
    does, with a warning. ValueError for an empty list, an empty text, and an encoder that `encode_packed` refuses.
    """
    rows, device = model_ids(texts, encoder, tokenizer, sentence_length(encoder), report=True), device_of(encoder)
    vectors = torch.empty(len(rows), encoder.config.hidden_size, device=device)
    with evaluation_mode(encoder):
        fast = with_fast_products(encoder, tokens=sum(map(len, rows)))
        for numbers in full_batches(rows, batch_size, device):
            batch = collate([rows[number] for number in numbers])
            pooled = mean_pooling(encode_packed(fast, **batch), batch["attention_mask"].to(device))
            vectors[numbers] = F.normalize(pooled.float(), dim=-1)
    return vectors.cpu()


class Neighbours(NamedTuple):
    """The k nearest vectors of each query, best first: cosine similarities and row indices, (Q, k) each, on the CPU.

    Built in notebook 09, exercise 9.3.
    """

    scores: Tensor
    indices: Tensor


def search(queries: Tensor, vectors: Tensor, k: int = 10) -> Neighbours:
    """Find the k of `vectors` (N, H) with the highest cosine to each of `queries` (Q, H), comparing with all.

    Built in notebook 09, exercise 9.3. All vectors have length 1. Vectors with equal
    cosines come in any order, here and in `search_index`.
    """
    vectors = as_vectors(vectors)
    queries = as_queries(queries, vectors.size(1), k, len(vectors))
    return Neighbours(*(queries @ vectors.T).topk(k))


def bm25(queries: Sequence[str], texts: Sequence[str], tokenizer, k1: float = 1.2, b: float = 0.75) -> Tensor:
    """Score each text for each query by the tokens that they share, (Q, N).

    Built in notebook 09, section “How often does it find the right one?”. Robertson and Zaragoza 2009, section 3.4. A
    token counts more if few texts have it. Each repetition in a text counts less (`k1`), and less in a long one (`b`).
    """
    queries, texts = as_texts(queries), as_texts(texts)
    wanted, ids = ([tokenizer.encode(text, add_special_tokens=False) for text in each] for each in (queries, texts))
    used, places = torch.tensor([token for row in wanted for token in row]).long().unique(return_inverse=True)  # (U,)
    counts = [torch.bincount(torch.tensor(row).long(), minlength=len(tokenizer.vocab))[used] for row in ids]
    counts, lengths = torch.stack(counts), torch.tensor([[float(len(row))] for row in ids])  # (N, U), (N, 1)
    having = (counts > 0).sum(dim=0)  # (U,): the texts that have a token
    rarity = (1 + (len(texts) - having + 0.5) / (having + 0.5)).log()
    saturated = counts * (k1 + 1) / (counts + k1 * (1 - b + b * lengths / lengths.mean()))
    weights = rarity * saturated  # (N, U)
    return torch.stack([weights[:, part].sum(dim=1) for part in places.split([*map(len, wanted)])])


def late_interaction(query_states: Tensor, states: Sequence[Tensor]) -> Tensor:
    """Score texts by their token vectors: each token of the query takes its best match in a text (MaxSim), (N,).

    Built in notebook 09, section “Other ways, other prices”. Khattab and Zaharia 2020, section 3.3. `query_states`
    (S, H) and the N `states`, (T, H) each, are the encoder's vectors without padding, at length 1.
    """
    return torch.stack([(query_states @ each.T).amax(dim=1).sum() for each in states])


def hnsw_index(
    vectors: Tensor, *, M: int = 32, ef_construction: int = 40, ef_search: int = 16
) -> "faiss.IndexHNSWFlat":
    """Build a graph in which a search moves from neighbour to neighbour (Malkov and Yashunin 2018).

    Built in notebook 09, section “HNSW, in five lines of faiss”. `vectors` (N, H) have length 1. A node has `M` links;
    `ef_construction` and `ef_search` are the numbers of candidates kept while building and searching. Larger values
    cost time and raise recall, which stays low if a vector has more copies than a node has links: most of these lead to
    other copies. ValueError for more than `M` equal vectors, and for settings that crash faiss.
    """
    vectors = check_graph(as_vectors(vectors), M, ef_construction, ef_search)
    index = import_faiss().IndexHNSWFlat(vectors.size(1), M, import_faiss().METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = ef_construction  # candidates in view while a new text looks for its neighbours
    index.hnsw.efSearch = ef_search  # candidates in view during a search
    index.add(vectors.numpy())
    return index


def search_index(queries: Tensor, index: "faiss.Index", k: int = 10) -> Neighbours:
    """Find the k nearest of each of `queries` (Q, H) in a faiss index of unit vectors; -1 where it finds fewer.

    Built in notebook 09, section “HNSW, in five lines of faiss”.
    """
    check_inner_product(index)
    queries = as_queries(queries, index.d, k, index.ntotal)
    return Neighbours(*map(torch.from_numpy, index.search(queries.numpy(), k)))


def recall(found: Tensor, exact: Tensor) -> float:
    """Return the share of the exact neighbours that were found; row numbers, (Q, k) each, in any order.

    Built in notebook 09, exercise 9.4.
    """
    return (found[:, :, None] == exact[:, None, :]).any(dim=1).float().mean().item()
