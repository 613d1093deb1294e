"""Answers to the exercises of notebook 12 that its checks do not declare."""

import math

import torch
from torch.nn import functional as F

from utils.decoder import causal_mask


def mask_in_a_loop(T):
    result = torch.zeros(T, T, dtype=torch.bool)
    for row in range(T):
        result[row, : row + 1] = True
    return result


def step_in_a_loop(next_scores, ids, end):
    pairs = zip(ids.tolist(), next_scores(ids).argmax(dim=-1).tolist(), strict=True)
    return torch.tensor([[*row, end if end in row else token] for row, token in pairs])


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


def min_p_by_logits(logits, p):
    return logits.masked_fill(logits < logits.max() + math.log(p), -torch.inf).softmax(dim=-1)


RIGHT = r"""
    12.1 | lambda T: torch.arange(T)[None] <= torch.arange(T)[:, None]
    12.1 | mask_in_a_loop
    12.2 | across_fused
    12.2 | query @ key.mT => torch.einsum("batd,basd->bats", query, key) ;; -torch.inf => -1e30
    12.2 | lambda a, h, s, m=None: list(right(a, h, s, m))
    12.3 | (ids == end).any(dim=1) => ids[:, -1] == end
    12.3 | step_in_a_loop
    12.3 | lambda scores, ids, end: torch.cat([right(scores, row[None], end) for row in ids])
    12.4 | given = F.pad(texts, (1, 0), value=start)[:, :-1] => given = texts.roll(1, dims=1); given[:, 0] = start
    12.4 | lambda *given: list(right(*given))
    12.5 | min_p_by_logits
    12.5 | lambda logits, p: right(logits, p).tolist()
    12.5 | lambda logits, p: right(logits, p).numpy()
"""
WRONG = r"""
    12.1 | lambda T: torch.nn.Transformer.generate_square_subsequent_mask(T) == 0 | own mask
    12.1 | lambda T: causal_mask(torch.ones(1, T).long())[0, 0] | own `causal_mask`
    12.1 | lambda T: right(T).float() | as numbers
    12.1 | lambda T: torch.zeros(T, T).masked_fill(~right(T), -torch.inf) | A mask with −∞ is meant
    12.1 | lambda T: right(T) * 2 | A mask contains only True (may
    12.1 | lambda T: torch.ones(T).bool() | shape
    12.1 | lambda T: right(4) | shape
    12.1 | lambda T: right(64)[:T, :T] | shape
    12.2 | lambda a, h, s, m=None: right(a, h, h) | The text looks at itself
    12.2 | lambda a, h, s, m=None: right(a, s, h) | The weights are transposed. The queries
    12.2 | if source_mask is not None => if False | The mask is not used
    12.2 | / query.size(-1) ** 0.5 => | The scores are not scaled. Divide
    12.2 | query.size(-1) ** 0.5 => hidden_states.size(-1) ** 0.5 | divided by √H
    12.2 | (weights @ value).transpose(1, 2).flatten(2) => (weights @ value).reshape(hidden_states.shape) | The values come from the source
    12.2 | lambda a, h, s, m=None: right(a, h, s, m)[::-1] | The two results are swapped: the
    12.2 | flatten(2)), weights => flatten(2)), weights.softmax(-2) | over the queries
    12.2 | lambda a, h, s, m=None: (right(a, h, s)[0], right(a, h, s)[1] * (1 if m is None else m[:, None, None])) | comes too late
    12.2 | flatten(2)), weights => flatten(2)), weights.mean(1) | The heads share their weights. Each
    12.2 | lambda a, h, s, m=None: right(a, h, s, m)[0] | Return two
    12.2 | source_mask[:, None, None, :] == 0 => source_mask[:, None, None, :] == 1 | weights
    12.2 | query.size(-1) ** 0.5 => 8**0.5 | weights of layer 0
    12.2 | source_mask[:, None, None, :] == 0, -torch.inf => source_mask[:, None, None, :] == 0, -20 | Hide its scores with −∞
    12.2 | lambda a, h, s, m=None: right(a, h, s, None if m is None else (torch.arange(m.size(1)) < m.sum(1)[:, None]).long()) | weights
    12.2 | query = split => source_mask = torch.tensor([[1] * 3 + [0] * 2] * 2) if source_mask is None else source_mask; query = split | Without
    12.2 | lambda a, h, s, m=None: right(a, h, s.detach(), m) | gradient of source is missing
    12.2 | softmax(dim=-1) => softmax(dim=-1).detach() | gradient of hidden_states is missing
    12.3 | lambda scores, ids, end: right(scores, ids, end)[:, -1] | These are only the new tokens
    12.3 | next_scores(ids) => next_scores(ids[:, -1:]) | Only part of the text is
    12.3 | next_scores(ids) => next_scores(ids[0]) | next_scores takes the ids of all
    12.3 | lambda scores, ids, end: right(scores, ids, end).float() | Ids are integers, so the texts
    12.3 | lambda scores, ids, end: right(scores, right(scores, ids, end), end) | One step
    12.3 | argmax(dim=-1) => softmax(dim=-1).multinomial(1)[:, 0] | draws nothing
    12.3 | best.masked_fill(ended, end)[:, None] => ids[:, :1] | it should make
    12.4 | given = F.pad(texts, (1, 0), value=start)[:, :-1] => given = texts | sees its own answer
    12.4 | texts.masked_fill(texts == pad => given.masked_fill(given == pad | Look at each position: what is
    12.4 | texts.masked_fill(texts == pad, -100) => texts | Padding has a label. Use −100
    12.4 | texts.masked_fill(texts == pad, -100) => texts.roll(-1, 1).masked_fill(texts.roll(-1, 1) == pad, -100) | The labels are shifted, too. Shift
    12.4 | given = F.pad(texts, (1, 0), value=start)[:, :-1] => given = texts.roll(1, dims=1) | start token
    12.4 | value=start => value=1 | start token
    12.4 | texts == pad => texts <= 2 | end token
    12.4 | texts == pad => texts == 0 | A real token has no label
    12.4 | lambda t, start, pad: right(t, start, pad)[::-1] | The input contains −100. Return the
    12.4 | lambda t, start, pad: right(t, start, pad)[0] | Return two
    12.4 | lambda t, start, pad: (right(t.masked_fill(t == pad, -1), start, -1)[0], right(t, start, pad)[1]) | no such id
    12.4 | lambda t, start, pad: (right(t.masked_fill(t == pad, 999), start, -1)[0], right(t, start, pad)[1]) | no such id
    12.4 | lambda t, start, pad: (right(t, start, pad)[0][:, :-1], t[:, 1:]) | shape
    12.4 | lambda *given: [one.float() for one in right(*given)] | The input should be ids, which
    12.4 | lambda *given: (right(*given)[0], right(*given)[1].double()) | F.cross_entropy takes no
    12.4 | lambda *given: [one.int() for one in right(*given)] | F.cross_entropy takes no
    12.5 | lambda logits, p: right(logits, p).log() | sum to 1
    12.5 | shares < p * shares.max() => shares < shares.max() | Keep exactly the tokens whose share
    12.5 | shares < p * shares.max() => shares <= p * shares.max() | *at least* p times
    12.5 | lambda logits, p: right(logits, p)[:2] | shape
"""
