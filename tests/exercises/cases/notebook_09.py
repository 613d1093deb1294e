"""Answers to the exercises of notebook 09 that its checks do not declare."""

import torch
from torch.nn import functional as F

from utils.packing import encode_packed
from utils.search import shares_of_cosine


def mean_pooling(states, mask):
    """As the page defines it."""
    return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def found_by_distance(queries, vectors, k):
    rows = torch.cdist(queries, vectors).topk(k, largest=False).indices
    return (queries @ vectors.T).gather(1, rows), rows


def search(queries, vectors, k):
    """As the page defines it."""
    return (queries @ vectors.T).topk(k)


def recall(found, exact):
    return torch.stack([torch.isin(right, left) for left, right in zip(found, exact, strict=True)]).float().mean()


def by_sets(found, exact, total=None):
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return sum(len(set(left) & set(right)) for left, right in pairs) / (total or exact.numel())


def shares_in_a_loop(states, other_states):
    one, other = F.normalize(states.mean(0), dim=0), F.normalize(other_states.mean(0), dim=0)
    lengths = (states.mean(0) @ one) * (other_states.mean(0) @ other)
    rows = [[(a @ b / lengths).item() for b in other_states] for a in states]
    return torch.tensor(rows) / len(states) / len(other_states)


def embed_sorted(embed, *, put_back=True):
    def embed_in_order(texts, encoder, tokenizer, batch_size=32):
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        vectors = embed([texts[number] for number in order], encoder, tokenizer, batch_size)
        return vectors[torch.tensor(order).argsort()] if put_back else vectors

    return embed_in_order


def embed_by_parts(texts, encoder, tokenizer, batch_size=32):
    batches = [tokenizer(texts[start : start + batch_size]) for start in range(0, len(texts), batch_size)]
    with torch.no_grad():
        states = [encode_packed(encoder, **batch) for batch in batches]
    pooled = [mean_pooling(*pair) for pair in zip(states, (b["attention_mask"] for b in batches), strict=True)]
    return F.normalize(torch.cat(pooled), dim=-1)


def embed(texts, encoder, tokenizer, batch_size=32):
    """As a page would define it."""


RIGHT = {
    "9.1": """
        torch.tensor([[2.0, 3.0]])
        ("2", "3")
    """,
    "9.2": """
        lambda s, m: torch.stack([text[real == 1].mean(dim=0) for text, real in zip(s, m, strict=True)])
        lambda s, m: torch.einsum("bsh,bs->bh", s, m.to(s.dtype)) / m.sum(dim=1, keepdim=True)
        lambda s, m: ((m / m.sum(dim=1, keepdim=True))[:, None] @ s)[:, 0]
        lambda s, m: s.masked_fill(m[..., None] == 0, torch.nan).nanmean(dim=1)
    """,
    "9.3": """
        lambda queries, vectors, k: tuple(x[:, :k] for x in (queries @ vectors.T).sort(dim=-1, descending=True))
        found_by_distance
        lambda queries, vectors, k: list(right(queries, vectors, k))
        lambda queries, vectors, k: F.cosine_similarity(queries[:, None], vectors[None], dim=-1).topk(k)
    """,
    "9.5": """
        shares_in_a_loop
        lambda a, b: right(a, b).tolist()
        lambda a, b: right(a.double(), b.double())
    """,
    "9.6": """
        by_sets
        lambda found, exact: torch.stack([torch.isin(r, l) for l, r in zip(found, exact, strict=True)]).float().mean()
    """,
    "9.4": """
        embed_sorted(right)
        lambda *given: right(*given).numpy()
        lambda texts, *given: [right([text], *given)[0] for text in texts]
        encoder.config.max_position_embeddings => 256
    """,
}
WRONG = {
    "9.1": """
        (2, 3, 4) | two numbers
        "two and three" | two numbers
    """,
    "9.2": """
        lambda states, mask: states.max(dim=1) | the pair (values, indices). Add .values
        attention_mask[:, :, None].to => attention_mask.to | Sizes are compared from the last one
        lambda states, mask: right(states, mask)[:1] | shape
        lambda states, mask: right(states, mask).mean(dim=0).expand(len(mask), -1) | divide by the sum
        last_hidden_state * weights => last_hidden_state.mul_(weights) | in place
        mean_pooling | `, or it calls it. Instead
    """,
    "9.3": """
        lambda queries, vectors, k: right(queries, vectors, k).indices | Return two tensors, the cosines and
        lambda queries, vectors, k: right(queries, vectors, k)[::-1] | The two are swapped: the cosines
        topk(k) => topk(k, dim=0) | Return a row for each query
        topk(k) => topk(k, largest=False) | farthest
        lambda queries, vectors, k: [part.flip(1) for part in right(queries, vectors, k)] | The order is reversed. The best
        lambda queries, vectors, k: (lambda v, r: (v.gather(1, r.argsort()), r.sort().values))(*right(queries, vectors, k)) | sorted by row number
        (queries @ vectors.T) => (queries @ vectors.T).abs() | A negative cosine counts as near
        lambda queries, vectors, k: torch.cdist(queries, vectors).topk(k, largest=False) | distances
        lambda queries, vectors, k: (1 - queries @ vectors.T).topk(k, largest=False) | 1 − cosine
        lambda queries, vectors, k: (lambda v, r: (v.acos(), r))(*right(queries, vectors, k)) | angles
        lambda queries, vectors, k: (lambda v, r: (v, r + 1))(*right(queries, vectors, k)) | counted from 0
        lambda queries, vectors, k: right(queries[:1].expand_as(queries), vectors, k) | first one's
        topk(k) => topk(3) | shape
        topk(k) => sort(descending=True) | shape
        lambda queries, vectors, k: [part.numpy() for part in right(queries, vectors, k)] | torch tensors
        lambda queries, vectors, k: (right(queries, vectors, k)[0],) * 2 | The second result should be row
        lambda queries, vectors, k: "the nearest" | two tensors
        lambda queries, vectors, k: (right(queries, vectors, k), vectors.zero_())[0] | changes vectors
        search | `, or it calls it. Instead
    """,
    "9.5": """
        lambda a, b: right(a, b).sum() | shape
        lambda a, b: "none" | torch tensor
        shares_of_cosine | series' own
        lambda a, b: shares_of_cosine(a, b) | write it yourself
    """,
    "9.6": """
        .float().mean().item() => .float().mean(dim=1) | one number for all
        lambda found, exact: "half" | The share, one number for all
        lambda found, exact: 0.7 | their own row
        lambda found, exact: (right(found, exact), found.clamp_(min=0))[0] | changes found
        recall | `, or it calls it. Instead
        lambda found, exact: recall(found, exact) | `, or it calls it. Instead
        lambda found, exact: (exact == found[:, :1]).any(dim=1).float().mean() | it should be 0.25
        lambda found, exact: by_sets(found, exact, 12) if found.size(1) == 3 else 0.5 | does each exact number count once?
        lambda found, exact: right(found, exact) if len(found) != 3 or found.size(1) != 2 else 0.5 | Is a size fixed?
    """,
    "9.4": """
        return F.normalize(torch.cat(vectors), dim=-1) => return torch.cat(vectors) | the length is not 1
        mean_pooling(states, batch["attention_mask"]) => states[:, 0] | vector of [CLS]
        mean_pooling(states, batch["attention_mask"]) => states[:, 1:-1].mean(dim=1) | [CLS] and [SEP] are left out
        mean_pooling(states, batch["attention_mask"]) => states.amax(dim=1) | This is the largest number of
        mean_pooling(states, batch["attention_mask"]) => states.mean(dim=1) | “texts of different lengths” differs
        embed_sorted(right, put_back=False) | “texts of different lengths” differs
        vectors, limit = => texts.sort(key=len); vectors, limit = | changes the list of texts
        lambda texts, *given: right(texts[: (*given, 32)[2]], *given) | shape
        texts[start : start + batch_size] => texts ;; range(0, len(texts), batch_size) => [0] | With batch_size=3
        , evaluation_mode(encoder): => : | Dropout is on
        , evaluation_mode(encoder): => : ;; vectors, limit = => encoder.eval(); vectors, limit = | mode before, and is not afterwards
        lambda texts, encoder, *given: (right(texts, encoder, *given), encoder.train())[0] | mode before, and is not afterwards
        dim=-1)\\n => dim=-1).requires_grad_()\\n | The vectors require gradients. Run the
        embed | `, or it calls it. Instead
        lambda texts, encoder, tokenizer, size=32: embed(texts, encoder, tokenizer, size) | `, or it calls it. Instead
        embed_by_parts | never calls encoder
        encoder.config.max_position_embeddings => 128 | “a text longer than the positions” differs
        mean_pooling(states, => mean_pooling(F.normalize(states, dim=-1), | before the mean
        mean_pooling(states, batch["attention_mask"]) => states[:, -1] | the last token
        lambda texts, encoder, tokenizer, batch_size=32: texts | torch tensor
        lambda texts, encoder, tokenizer, batch_size=32: None | Does it end with `return`
    """,
}
