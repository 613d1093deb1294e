"""Answers to the exercises of notebook 13 that its checks do not declare."""

import statistics

import numpy as np
import torch


def blocks_by_emptying(lengths):
    total = sum(lengths)
    mask, start = torch.zeros(total, total, dtype=torch.bool), 0
    while lengths:
        end = start + lengths.pop(0)
        mask[start:end, start:end], start = True, end
    return mask


def put_back_to_the_left(packed, attention_mask):
    parts = packed.split(attention_mask.sum(dim=1).tolist())
    rows = [torch.cat([part, part.new_zeros(attention_mask.size(1) - len(part), part.size(1))]) for part in parts]
    return torch.stack(rows)


def put_back_by_number(packed, attention_mask):
    place = (attention_mask.flatten().cumsum(0) - 1).clamp(min=0).view(attention_mask.shape)
    return packed[place] * attention_mask[:, :, None]


RIGHT = r"""
    13.1 | lambda lengths: torch.block_diag(*(torch.ones(length, length) for length in lengths)).bool()
    13.1 | lambda lengths: right(lengths).numpy()
    13.2 | ("192", "256 scores", 98)
    13.1 | lambda lengths: right(lengths).tolist()
    13.3 | lambda p, m: p.new_zeros(*m.shape, p.size(-1)).masked_scatter(m[:, :, None].bool(), p)
    13.3 | put_back_by_number
    13.4 | codes = (weights / scales.clamp(min=1e-30)).round() => codes = torch.where(scales > 0, weights / scales, 0.0).round().to(torch.int8)
    13.4 | lambda w: tuple(part.numpy() for part in right(w))
    13.4 | codes = (weights / scales.clamp(min=1e-30)).round() => codes = (weights / scales.clamp(min=1e-30) + 0.5).floor()
    13.4 | lambda w: [one.tolist() for one in right(w)]
    13.5 | lambda ours, theirs: np.median(np.divide(ours, theirs)[1:])
    13.5 | lambda ours, theirs: (torch.tensor(ours) / torch.tensor(theirs))[1:].quantile(0.5)
"""
WRONG = r"""
    13.1 | lambda n: ~right(n) | The mask is inverted: True is
    13.1 | lambda n: right(n).tril() | ahead
    13.1 | lambda n: torch.eye(sum(n)).bool() | Each token sees only itself. It
    13.1 | lambda n: torch.ones(sum(n), sum(n)).bool() | Everything is visible. Tokens must not
    13.1 | lambda n: right(n).float() | booleans
    13.1 | blocks_by_emptying | changes the list
    13.1 | lambda n: torch.zeros(sum(n), sum(n)).masked_fill(~right(n), -torch.inf) | The positions are right, but this
    13.1 | lambda n: (lambda counts: counts[:, None] == counts)(torch.tensor(n).repeat_interleave(torch.tensor(n))) | equal length
    13.1 | lambda n: right(n[::-1]) | number of its text
    13.1 | lambda n: torch.ones(len(n), max(n)).bool() | shape
    13.1 | right([2, 1]) | function itself
    13.2 | 192 | three numbers
    13.3 | put_back_to_the_left | Padding may be anywhere. Use the
    13.3 | lambda p, m: right(p.float(), m) | the dtype of `packed`
    13.3 | , dtype=packed.dtype => | Right for float32, but `packed` may
    13.3 | lambda p, m: right(p, m.T).transpose(0, 1) | text by text
    13.3 | torch.zeros => torch.ones | zero
    13.3 | lambda p, m: right(p[:, :2], m) | shape
    13.3 | lambda p, m: right(p.half(), m).to(p.dtype) | The result loses the precision of
    13.3 | lambda p, m: right(p, m).numpy() | The notebook needs gradients here, which
    13.3 | lambda p, m: right(p, m).tolist() | Return a tensor
    13.3 | lambda p, m: right(p.flip(0), m) | Row by row
    13.4 | amax(dim=1, keepdim=True) => max() | whole matrix
    13.4 | / 127 => / 128 | 127
    13.4 | / 127 => / 255 | 255
    13.4 | round() => trunc() | nearest
    13.4 | return codes, scales => return scales, codes | The two are swapped: the codes
    13.4 | return codes, scales => return codes * scales, scales | weights again
    13.4 | weights.abs().amax => weights.amax | *absolute*
    13.4 | .round() => .abs().round() | signs
    13.4 | return codes, scales => return codes, 1 / scales | The scales are inverted: the weight
    13.4 | .clamp(min=1e-30) => | zeros
    13.4 | return codes, scales => return codes, scales[:, 0] | keepdim=True
    13.4 | amax(dim=1 => amax(dim=0 | Each column has a scale
    13.4 | lambda w: right(w) if w.any(dim=1).all() else (w[:1], w[:1, :1]) | shape
    13.4 | return codes, scales => return codes | Return two
    13.5 | statistics.median( => statistics.geometric_mean( | it should be
    13.5 | rounds = zip => del ours[0], theirs[0]; ours, theirs = [0, *ours], [0, *theirs]; rounds = zip | changes the lists
    13.5 | lambda a, b: "fast" | number
"""
