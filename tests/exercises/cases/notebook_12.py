"""Answers readers give to the exercises of notebook 12: right alternatives, and wrong ones with a word of the hint."""

import math

import torch
from torch.nn import functional as F


def mask(T):
    return torch.ones(T, T).tril().bool()


def mask_by_places(T):
    places = torch.arange(T)
    return places[None] <= places[:, None]


def mask_in_a_loop(T):
    result = torch.zeros(T, T, dtype=torch.bool)
    for row in range(T):
        result[row, : row + 1] = True
    return result


def mask_of_four(T):
    return mask(4)


def step(next_scores, ids, end):
    best = next_scores(ids).argmax(dim=-1)
    return torch.cat([ids, best.masked_fill((ids == end).any(dim=1), end)[:, None]], dim=1)


def step_by_last(next_scores, ids, end):
    best = torch.where(ids[:, -1] == end, end, next_scores(ids).argmax(dim=-1))
    return torch.hstack([ids, best.unsqueeze(1)])


def step_in_a_loop(next_scores, ids, end):
    best = next_scores(ids).argmax(dim=-1).tolist()
    rows = ids.tolist()
    return torch.tensor([[*row, end if end in row else token] for row, token in zip(rows, best, strict=True)])


def step_row_by_row(next_scores, ids, end):
    return torch.cat([step(next_scores, row[None], end) for row in ids])


def step_by_chance(next_scores, ids, end):
    drawn = next_scores(ids).softmax(dim=-1).multinomial(1)[:, 0]
    return torch.cat([ids, drawn.masked_fill((ids == end).any(dim=1), end)[:, None]], dim=1)


def step_without_end(next_scores, ids, end):
    return torch.cat([ids, next_scores(ids).argmax(dim=-1, keepdim=True)], dim=1)


def step_to_zero(next_scores, ids, end):
    ended = (ids == end).any(dim=1)
    return torch.cat([ids, next_scores(ids).argmax(dim=-1).masked_fill(ended, 0)[:, None]], dim=1)


def step_all_together(next_scores, ids, end):
    ended = (ids == end).any()
    return torch.cat([ids, next_scores(ids).argmax(dim=-1).masked_fill(ended, end)[:, None]], dim=1)


def step_twice(next_scores, ids, end):
    return step(next_scores, step(next_scores, ids, end), end)


def across(
    attention, hidden_states, source, source_mask=None, *, asks=None, asked=None, given=None, divisor=None, heads=None
):
    """Cross-attention, with a way to get each of its parts wrong."""
    asks = hidden_states if asks is None else asks
    asked = source if asked is None else asked
    A = attention.num_heads

    def split(x):
        return x.view(*x.shape[:2], A, -1).transpose(1, 2)

    query, key = split(attention.query(asks)), split(attention.key(asked))
    value = split(attention.value(asked if given is None else given))
    scores = query @ key.transpose(-2, -1) / (divisor or query.size(-1) ** 0.5)
    if source_mask is not None:
        scores = scores.masked_fill(source_mask[:, None, None, :] == 0, -torch.inf)
    weights = scores.softmax(dim=-1)
    context = weights @ value
    context = context.flatten(1, 2).view(*asks.shape) if heads else context.transpose(1, 2).reshape(asks.shape)
    return attention.output(context), weights


def across_with_fixed_weights(attention, hidden_states, source, source_mask=None):
    with torch.no_grad():
        weights = across(attention, hidden_states, source, source_mask)[1]
    value = attention.value(source).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    return attention.output((weights @ value).transpose(1, 2).flatten(2)), weights


def across_fused(attention, hidden_states, source, source_mask=None):
    """The output by torch's fused kernel, one head after another for the weights."""
    A = attention.num_heads
    query, key, value = (
        part(states).unflatten(-1, (A, -1)).transpose(1, 2)
        for part, states in ((attention.query, hidden_states), (attention.key, source), (attention.value, source))
    )
    mask = None if source_mask is None else source_mask[:, None, None].bool()
    context = F.scaled_dot_product_attention(query, key, value, mask)
    unit = torch.eye(source.size(1)).expand(*key.shape[:2], -1, -1)
    weights = F.scaled_dot_product_attention(query, key, unit, mask)
    return attention.output(context.transpose(1, 2).flatten(2)), weights


def across_by_einsum(attention, hidden_states, source, source_mask=None):
    A = attention.num_heads
    q, k, v = (
        part(x).unflatten(-1, (A, -1))
        for part, x in ((attention.query, hidden_states), (attention.key, source), (attention.value, source))
    )
    scores = torch.einsum("btad,bsad->bats", q, k) * q.size(-1) ** -0.5
    if source_mask is not None:
        scores = scores + torch.where(source_mask == 0, -1e30, 0.0)[:, None, None]
    weights = scores.softmax(dim=-1)
    return attention.output(torch.einsum("bats,bsad->btad", weights, v).flatten(2)), weights


def across_queries(attention, hidden_states, source, source_mask=None):
    weights = across(attention, hidden_states, source, source_mask)[1]
    return hidden_states, weights.softmax(dim=-2)


def across_masked_late(attention, hidden_states, source, source_mask=None):
    output, weights = across(attention, hidden_states, source)
    return output, weights if source_mask is None else weights * source_mask[:, None, None]


def lessons(texts, start, pad):
    given = torch.cat([torch.full_like(texts[:, :1], start), texts[:, :-1]], dim=1)
    return given, texts.masked_fill(texts == pad, -100)


def lessons_by_padding(texts, start, pad):
    return F.pad(texts, (1, 0), value=start)[:, :-1], torch.where(texts == pad, -100, texts)


def lessons_by_roll(texts, start, pad):
    given, labels = texts.roll(1, dims=1), texts.clone()
    given[:, 0] = start
    labels[labels == pad] = -100
    return given, labels


def lessons_not_shifted(texts, start, pad):
    """The bug that the exercise shows."""
    given = lessons(texts, start, pad)[0]
    return given, given.masked_fill(given == pad, -100)


def min_p(logits, p):
    shares = logits.softmax(dim=-1)
    kept = shares * (shares >= p * shares.max())
    return kept / kept.sum()


def min_p_by_logits(logits, p):
    hidden = logits < logits.max() + math.log(p)
    return logits.masked_fill(hidden, -torch.inf).softmax(dim=-1)


def min_p_in_a_loop(logits, p):
    shares = logits.softmax(dim=-1).tolist()
    kept = [share if share >= p * max(shares) else 0.0 for share in shares]
    return [share / sum(kept) for share in kept]


def cut_by(limit):
    def keep(logits, p):
        shares = logits.softmax(dim=-1)
        return logits.masked_fill(limit(logits, shares, p), -torch.inf).softmax(dim=-1)

    return keep


RIGHT = {
    "12.1": [mask, mask_by_places, mask_in_a_loop, lambda T: torch.ones(T, T).tril() == 1],
    "12.2": [across, across_fused, across_by_einsum, lambda a, h, s, m=None: list(across(a, h, s, m))],
    "12.3": [step, step_by_last, step_in_a_loop, step_row_by_row],
    "12.4": [lessons, lessons_by_padding, lessons_by_roll, lambda *given: list(lessons(*given))],
    "12.5": [min_p, min_p_by_logits, min_p_in_a_loop, lambda logits, p: min_p(logits, p).numpy()],
}

WRONG = {
    "12.1": [
        (lambda T: torch.ones(T, T).tril(), "as numbers"),
        (lambda T: mask(T).long(), "as numbers"),
        (lambda T: torch.zeros(T, T).masked_fill(~mask(T), -torch.inf), "A mask with −∞ is meant"),
        (lambda T: mask(T) * 2, "A mask contains only True (may"),
        (lambda T: mask(T).numpy(), "torch tensor"),
        (lambda T: torch.ones(T).bool(), "shape"),
        (mask_of_four, "shape"),
        (lambda T: mask(64)[:T, :T], "shape"),
    ],
    "12.2": [
        (lambda a, h, s, m=None: across(a, h, h), "The text looks at itself"),
        (lambda a, h, s, m=None: across(a, h, s, asks=s, asked=h), "The weights are transposed. The queries"),
        (lambda a, h, s, m=None: across(a, h, s), "The mask is not used"),
        (lambda a, h, s, m=None: across(a, h, s, m, divisor=1.0), "The scores are not scaled. Divide"),
        (lambda a, h, s, m=None: across(a, h, s, m, divisor=h.size(-1) ** 0.5), "divided by √H"),
        (lambda a, h, s, m=None: across(a, h, s, m, heads=True), "The values come from the source"),
        (lambda a, h, s, m=None: across(a, h, s, m)[::-1], "The two results are swapped: the"),
        (across_queries, "over the queries"),
        (across_masked_late, "comes too late"),
        (
            lambda a, h, s, m=None: (across(a, h, s, m)[0], across(a, h, s, m)[1].mean(1)),
            "The heads share their weights. Each",
        ),
        (lambda a, h, s, m=None: (across(a, h, s, m)[0] + h, across(a, h, s, m)[1]), "weights are right"),
        (lambda a, h, s, m=None: across(a, h, s, m)[0], "Return two"),
        (lambda a, h, s, m=None: across(a, h, s, torch.ones(2, s.size(1)) if m is None else 1 - m), "weights"),
        (lambda a, h, s, m=None: (h, across(a, h, s, m)[1]), "output"),
        (lambda a, h, s, m=None: across(a, h, s, torch.tensor([[1] * 3 + [0] * 2] * 2) if m is None else m), "Without"),
        (lambda a, h, s, m=None: across(a, h, s.detach(), m), "gradient of source is missing"),
        (across_with_fixed_weights, "gradient of hidden_states is missing"),
    ],
    "12.3": [
        (step_without_end, "Rows that have ended keep writing"),
        (step_to_zero, "The end token is fixed at"),
        (step_all_together, "One row has ended, and the"),
        (lambda scores, ids, end: step(lambda rows: -scores(rows), ids, end), "lowest"),
        (lambda scores, ids, end: step(scores, ids, end)[:, -1], "These are only the new tokens"),
        (lambda scores, ids, end: step(scores, ids, end)[:, -1:], "These are only the new tokens"),
        (lambda scores, ids, end: step(scores, ids, end).roll(1, dims=1), "The new token comes first. Append"),
        (lambda scores, ids, end: step(scores, ids[:, -1:], end), "Only part of the text is"),
        (lambda scores, ids, end: step(scores, ids[0], end), "next_scores takes the ids of all"),
        (lambda scores, ids, end: step(scores, ids, end).tolist(), "torch tensor"),
        (lambda scores, ids, end: step(scores, ids, end).float(), "Ids are integers, so the texts"),
        (step_twice, "One step"),
        (step_by_chance, "draws nothing"),
        (lambda scores, ids, end: torch.cat([ids, ids], dim=1)[:, : ids.size(1) + 1], "it should make"),
    ],
    "12.4": [
        (lambda t, start, pad: (t, t.masked_fill(t == pad, -100)), "sees its own answer"),
        (lessons_not_shifted, "Look at each position: what is"),
        (lambda t, start, pad: (lessons(t, start, pad)[0], t), "Padding has a label. Use −100"),
        (
            lambda t, start, pad: (lessons(t, start, pad)[0], lessons(t.roll(-1, 1), start, pad)[1]),
            "The labels are shifted, too. Shift",
        ),
        (lambda t, start, pad: (t.roll(1, dims=1), lessons(t, start, pad)[1]), "start token"),
        (lambda t, start, pad: (lessons(t, 1, pad)[0], lessons(t, start, pad)[1]), "start token"),
        (lambda t, start, pad: (lessons(t, start, pad)[0], t.masked_fill(t <= 2, -100)), "end token"),
        (lambda t, start, pad: (lessons(t, start, pad)[0], t.masked_fill(t == 0, -100)), "A real token has no label"),
        (lambda t, start, pad: lessons(t, start, pad)[::-1], "The input contains −100. Return the"),
        (lambda t, start, pad: lessons(t, start, pad)[0], "Return two"),
        (lambda t, start, pad: (lessons(t, start, pad)[0][:, :-1], t[:, 1:]), "shape"),
        (lambda *given: [one.float() for one in lessons(*given)], "The input should be ids, which"),
        (lambda *given: (lessons(*given)[0], lessons(*given)[1].double()), "F.cross_entropy takes no"),
        (lambda *given: [one.int() for one in lessons(*given)], "F.cross_entropy takes no"),
        (lambda t, start, pad: lessons(t, start, 0), "A real token has no label"),
        (lambda t, start, pad: (lessons(t, start, pad)[0], t.masked_fill(t == pad, -1)), "−100 there"),
    ],
    "12.5": [
        (lambda logits, p: logits.softmax(dim=-1), "These are the shares of all"),
        (lambda logits, p: min_p(logits, p).log() + logits.logsumexp(-1) * 0, "sum to 1"),
        (lambda logits, p: logits.masked_fill(min_p(logits, p) == 0, -torch.inf), "These are logits"),
        (cut_by(lambda logits, shares, p: shares < p), "not p itself"),
        (cut_by(lambda logits, shares, p: logits < p * logits.max()), "The limit applies to the shares"),
        (
            lambda logits, p: logits.softmax(-1).masked_fill(min_p(logits, p) == 0, -torch.inf).softmax(-1),
            "second softmax",
        ),
        (lambda logits, p: logits.softmax(-1) * (min_p(logits, p) > 0), "The remaining shares should sum to"),
        (cut_by(lambda logits, shares, p: shares < shares.max()), "Keep exactly the tokens whose share"),
        (cut_by(lambda logits, shares, p: shares < shares.topk(2).values[-1]), "Keep exactly the tokens whose share"),
        (cut_by(lambda logits, shares, p: shares < p * shares.mean()), "Keep exactly the tokens whose share"),
        (cut_by(lambda logits, shares, p: shares < shares.max() - p), "largest share minus p"),
        (cut_by(lambda logits, shares, p: shares >= p * shares.max()), "below the limit"),
        (lambda logits, p: min_p(logits, p)[:2], "shape"),
    ],
}
