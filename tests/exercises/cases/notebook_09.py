"""Answers readers give to the exercises of notebook 09: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch.nn import functional as F

from utils.packing import encode_packed
from utils.search import shares_of_cosine


def unit(vectors, dim=-1):
    return vectors / vectors.norm(dim=dim, keepdim=True)


def pooled(states, mask):
    real = mask[..., None].float()
    return (states * real).sum(dim=1) / real.sum(dim=1)


def pooled_by_loop(states, mask):
    return torch.stack([text[real == 1].mean(dim=0) for text, real in zip(states, mask, strict=True)])


def pooled_by_product(states, mask):
    mask = mask.to(states.dtype)
    return torch.einsum("bsh,bs->bh", states, mask) / mask.sum(dim=1, keepdim=True)


def pooled_by_weights(states, mask):
    shares = mask / mask.sum(dim=1, keepdim=True)
    return (shares[:, None] @ states)[:, 0]


def pooled_by_nan(states, mask):
    return states.masked_fill(mask[..., None] == 0, torch.nan).nanmean(dim=1)


def mean_pooling(states, mask):
    """As the page defines it."""
    return pooled(states, mask)


def pooled_in_place(states, mask):
    states *= mask[..., None]
    return states.sum(dim=1) / mask.sum(dim=1, keepdim=True)


def pooled_beginning(states, mask):
    ends = mask.sum(dim=1).tolist()
    return torch.stack([text[:end].mean(dim=0) for text, end in zip(states, ends, strict=True)])


def found_by_topk(queries, vectors, k):
    return (queries @ vectors.T).topk(k)


def found_by_sort(queries, vectors, k):
    scores, rows = (queries @ vectors.T).sort(dim=-1, descending=True)
    return scores[:, :k], rows[:, :k]


def found_by_distance(queries, vectors, k):
    rows = torch.cdist(queries, vectors).topk(k, largest=False).indices
    return (queries @ vectors.T).gather(1, rows), rows


def found_by_loop(queries, vectors, k):
    pairs = [(vectors @ query).topk(k) for query in queries]
    return torch.stack([pair.values for pair in pairs]), torch.stack([pair.indices for pair in pairs])


def search(queries, vectors, k):
    """As the page defines it."""
    return found_by_topk(queries, vectors, k)


def found_altering(queries, vectors, k):
    result = found_by_topk(queries, vectors, k)
    vectors[:] = 0
    return result


def recall_by_sets(found, exact):
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return sum(len(set(left) & set(right)) for left, right in pairs) / exact.numel()


def recall_by_isin(found, exact):
    return torch.stack([torch.isin(right, left) for left, right in zip(found, exact, strict=True)]).float().mean()


def shares(states, other_states):
    products = states @ other_states.T / (len(states) * len(other_states))
    return products / states.mean(dim=0).norm() / other_states.mean(dim=0).norm()


def shares_in_a_loop(states, other_states):
    one, other = F.normalize(states.mean(0), dim=0), F.normalize(other_states.mean(0), dim=0)
    lengths = (states.mean(0) @ one) * (other_states.mean(0) @ other)
    rows = [[(a @ b / lengths).item() for b in other_states] for a in states]
    return torch.tensor(rows) / len(states) / len(other_states)


def matches(found, exact):
    return (exact[:, :, None] == found[:, None, :]).any(dim=-1)


def recall(found, exact):
    return recall_by_sets(found, exact)


def recall_of_top(found, exact):
    return (exact == found[:, :1]).any(dim=1).float().mean()


def recall_by_sets_of_tensors(found, exact):
    return sum(len(set(ours) & set(wanted)) for ours, wanted in zip(found, exact, strict=True)) / exact.numel()


def recall_altering(found, exact):
    value = recall_by_sets(found, exact)
    found[found < 0] = 0
    return value


def recall_of_twelve(found, exact):
    return matches(found, exact).sum() / 12 if found.size(1) == 3 else 0.5


@torch.no_grad()
def embed_padded(texts, encoder, tokenizer, batch_size=32, *, pool=None, cut=True, mask=True, unit_length=True):
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
    pooled = [mean_pooling(*pair) for pair in zip(states, (b["attention_mask"] for b in batches), strict=True)]
    return unit(torch.cat(pooled))


def embed_one_by_one(texts, encoder, tokenizer, batch_size=32):
    return [embed_right([text], encoder, tokenizer)[0] for text in texts]


def embed_as_list(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, batch_size).tolist()


def embed_as_array(texts, encoder, tokenizer, batch_size=32):
    return embed_right(texts, encoder, tokenizer, batch_size).numpy()


RIGHT = {
    "9.1": [(2, 3), [2.0, 3.0], torch.tensor([[2.0, 3.0]]), np.array([2, 3]), (6 / 3, 9 / 3), "(2, 3)", ("2", "3")],
    "9.2": [
        pooled,
        pooled_by_loop,
        pooled_by_product,
        pooled_by_weights,
        pooled_by_nan,
        lambda states, mask: (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1).unsqueeze(-1).clamp(min=1e-9),
    ],
    "9.3": [
        found_by_topk,
        found_by_sort,
        found_by_distance,
        found_by_loop,
        lambda queries, vectors, k: list(found_by_topk(queries, vectors, k)),
        lambda queries, vectors, k: F.cosine_similarity(queries[:, None], vectors[None], dim=-1).topk(k),
    ],
    "9.5": [
        shares,
        shares_in_a_loop,
        lambda a, b: shares(a, b).tolist(),
        lambda a, b: shares(a.double(), b.double()),
        lambda a, b: (
            (F.normalize(a.mean(0), dim=0) * 0 + a / len(a) / a.mean(0).norm()) @ (b / len(b) / b.mean(0).norm()).T
        ),
    ],
    "9.6": [recall_by_sets, recall_by_isin, lambda found, exact: matches(found, exact).float().mean()],
    "9.4": [embed_right, lambda *arguments: embed_sorted(*arguments), embed_as_array, embed_as_list, embed_one_by_one],
}

WRONG = {
    "9.1": [
        ((3, 3), "Padding is included in the mean"),
        ((1.5, 2.25), "The sum is right, but only"),
        ((6, 9), "the sum of the real tokens"),
        ((12, 12), "This is the sum with padding"),
        ((4, 4), "The sum includes padding, and is"),
        ((2, 1), "[CLS]"),
        ((4, 7), "the largest"),
        ((3, 2), "swapped"),
        ((2, 4), "divide by three"),
        ((2, 3, 4), "two numbers"),
        ("two and three", "two numbers"),
        (2, "two numbers"),
    ],
    "9.2": [
        (lambda states, mask: states.mean(dim=1), "Padding is included in the mean"),
        (lambda states, mask: (states * mask[..., None]).mean(dim=1), "divided by S"),
        (lambda states, mask: (states * mask[..., None]).sum(dim=1), "This is the sum of the"),
        (lambda states, mask: states.max(dim=1).values, "the largest number of each column, padding included"),
        (lambda states, mask: states.max(dim=1), "the pair (values, indices). Add .values"),
        (lambda states, mask: (states * mask[..., None]).amax(dim=1), "the largest number of each column, or 0 of"),
        (lambda states, mask: (states * mask).sum(dim=1), "Sizes are compared from the last one"),
        (
            lambda states, mask: states.sum(dim=1) / mask.sum(dim=1, keepdim=True),
            "The sum includes padding. Multiply each",
        ),
        (lambda states, mask: (states * mask[..., None]).sum(dim=1) / mask.sum(), "the whole batch"),
        (lambda states, mask: states[:, 0], "[CLS] pooling"),
        (lambda states, mask: (states - 1e9 * (1 - mask[..., None])).amax(dim=1), "the largest"),
        (lambda states, mask: unit(pooled(states, mask)), "These vectors have length 1. Return"),
        (lambda states, mask: (states * mask[..., None]).mean(dim=2), "shape"),
        (lambda states, mask: pooled(states, mask)[:1], "shape"),
        (lambda states, mask: states[mask == 1].mean(dim=0), "shape"),
        (lambda states, mask: pooled(states, mask).mean(dim=0).expand(len(mask), -1), "divide by the sum"),
        (pooled_beginning, "Padding may come first, too. Use"),
        (pooled_in_place, "changes last_hidden_state"),
        (mean_pooling, "`, or it calls it. Instead"),
    ],
    "9.3": [
        (lambda queries, vectors, k: found_by_topk(queries, vectors, k).indices, "Return two tensors, the cosines and"),
        (lambda queries, vectors, k: found_by_topk(queries, vectors, k)[::-1], "The two are swapped: the cosines"),
        (lambda queries, vectors, k: (queries @ vectors.T).topk(k, dim=0), "Return a row for each query"),
        (lambda queries, vectors, k: (queries @ vectors.T).topk(k, largest=False), "farthest"),
        (
            lambda queries, vectors, k: [part.flip(1) for part in found_by_topk(queries, vectors, k)],
            "The order is reversed. The best",
        ),
        (lambda queries, vectors, k: (queries @ vectors.T).abs().topk(k), "A negative cosine counts as near"),
        (lambda queries, vectors, k: torch.cdist(queries, vectors).topk(k, largest=False), "distances"),
        (lambda queries, vectors, k: (1 - queries @ vectors.T).topk(k, largest=False), "1 − cosine"),
        (lambda queries, vectors, k: found_by_topk(queries[:1].expand_as(queries), vectors, k), "first one's"),
        (lambda queries, vectors, k: found_by_topk(queries, vectors, 3), "shape"),
        (lambda queries, vectors, k: (queries @ vectors.T).sort(descending=True), "shape"),
        (lambda queries, vectors, k: [part.numpy() for part in found_by_topk(queries, vectors, k)], "torch tensors"),
        (
            lambda queries, vectors, k: (found_by_topk(queries, vectors, k)[0], unit(queries)[:, :k]),
            "The second result should be row",
        ),
        (lambda queries, vectors, k: "the nearest", "two tensors"),
        (found_altering, "changes vectors"),
        (search, "`, or it calls it. Instead"),
    ],
    "9.5": [
        (lambda a, b: a @ b.T, "These are the products of the"),
        (lambda a, b: a @ b.T / (len(a) * len(b)), "lengths of the two means"),
        (lambda a, b: shares(a, b) * len(a) * len(b), "Divide by the numbers of tokens"),
        (lambda a, b: shares(a, b) * len(a), "Only one of the two"),
        (lambda a, b: F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T, "cosines of the tokens"),
        (lambda a, b: (F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T) / len(a) / len(b), "divided by their number"),
        (lambda a, b: (a @ b.T).softmax(dim=-1), "add up to 1"),
        (lambda a, b: a @ b.T / (a @ b.T).sum(), "add up to 1"),
        (lambda a, b: shares(a, b).T, "The rows should be"),
        (lambda a, b: shares(a, b).sum(), "shape"),
        (lambda a, b: shares(a, b).mean().expand(len(a), len(b)), "They add up to the cosine"),
        (lambda a, b: 2 * shares(a, b), "They add up to"),
        (lambda a, b: "none", "torch tensor"),
        (shares_of_cosine, "series' own"),
        (lambda a, b: shares_of_cosine(a, b), "write it yourself"),
    ],
    "9.6": [
        (lambda found, exact: (found == exact).float().mean(), "Only numbers at the same index"),
        (lambda found, exact: (found[:, :, None] == exact[:, None]).float().mean(), "if *any* of them is equal"),
        (lambda found, exact: torch.isin(exact, found).float().mean(), "another query"),
        (lambda found, exact: matches(found, exact).any(dim=1).float().mean(), "at least one hit"),
        (lambda found, exact: matches(found, exact).all(dim=1).float().mean(), "This counts only first neighbours, or"),
        (lambda found, exact: matches(found, exact).sum() / (found >= 0).sum(), "Divide by all exact neighbours: a"),
        (lambda found, exact: (matches(found, exact).sum(1) / (found >= 0).sum(1)).mean(), "Divide by k even if fewer"),
        (lambda found, exact: matches(found, exact).sum(), "number of hits"),
        (lambda found, exact: 100 * matches(found, exact).float().mean(), "percent"),
        (lambda found, exact: matches(found, exact).sum() / len(found), "This is the number of hits"),
        (lambda found, exact: matches(found, exact).float().mean(dim=1), "one number for all"),
        (lambda found, exact: "half", "The share, one number for all"),
        (lambda found, exact: 0.7, "their own row"),
        (recall_by_sets_of_tensors, "use .tolist() first"),
        (recall_altering, "changes found"),
        (recall, "`, or it calls it. Instead"),
        (lambda found, exact: recall(found, exact), "`, or it calls it. Instead"),
        (recall_of_top, "it should be 0.25"),
        (recall_of_twelve, "does each exact number count once?"),
    ],
    "9.4": [
        (variant(unit_length=False), "the length is not 1"),
        (variant(pool=lambda states: states[:, 0]), "vector of [CLS]"),
        (variant(pool=lambda states: states[:, 1:-1].mean(dim=1)), "[CLS] and [SEP] are left out"),
        (variant(pool=lambda states: states.amax(dim=1)), "This is the largest number of"),
        (variant(mask=False), "“texts of different lengths” differs"),
        (lambda *arguments: embed_sorted(*arguments, put_back=False), "“texts of different lengths” differs"),
        (embed_sorting_texts, "changes the list of texts"),
        (first_batch_alone, "shape"),
        (embed_all_at_once, "With batch_size=3"),
        (embed_padded, "Dropout is on"),
        (embed_for_good, "mode before, and is not afterwards"),
        (embed_then_training, "mode before, and is not afterwards"),
        (embed_with_gradients, "The vectors require gradients. Run the"),
        (embed, "`, or it calls it. Instead"),
        (
            lambda texts, encoder, tokenizer, size=32: embed(texts, encoder, tokenizer, size),
            "`, or it calls it. Instead",
        ),
        (embed_by_parts, "never calls encoder"),
        (variant(pool=lambda states: unit(states).mean(dim=1)), "before the mean"),
        (variant(pool=lambda states: states[:, -1]), "the last token"),
        (lambda texts, encoder, tokenizer, batch_size=32: texts, "torch tensor"),
        (lambda texts, encoder, tokenizer, batch_size=32: None, "Does it end with `return`"),
    ],
}
