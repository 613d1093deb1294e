"""Answers readers give to the exercises of notebook 13: right alternatives, and wrong ones with a word of the hint."""

import statistics

import numpy as np
import torch


def blocks(lengths):
    return torch.block_diag(*(torch.ones(length, length) for length in lengths)).bool()


def blocks_by_number(lengths):
    text = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    return text[:, None] == text


def blocks_in_numpy(lengths):
    return blocks(lengths).numpy()


def blocks_by_emptying(lengths):
    total = sum(lengths)
    mask, start = torch.zeros(total, total, dtype=torch.bool), 0
    while lengths:
        end = start + lengths.pop(0)
        mask[start:end, start:end], start = True, end
    return mask


def put_back_of_width_2(packed, attention_mask):
    states = packed.new_zeros(*attention_mask.shape, 2)
    states[attention_mask.bool()] = packed[:, :2]
    return states


def put_back_by_number(packed, attention_mask):
    place = (attention_mask.flatten().cumsum(0) - 1).clamp(min=0).view(attention_mask.shape)
    return packed[place] * attention_mask[:, :, None]


def put_back(packed, attention_mask):
    states = torch.zeros(*attention_mask.shape, packed.size(-1), dtype=packed.dtype)
    states[attention_mask.bool()] = packed
    return states


def put_back_by_scatter(packed, attention_mask):
    real = attention_mask[:, :, None].bool()
    return packed.new_zeros(*attention_mask.shape, packed.size(-1)).masked_scatter(real, packed)


def put_back_into_float32(packed, attention_mask):
    states = torch.zeros(*attention_mask.shape, packed.size(-1))
    states[attention_mask.bool()] = packed
    return states


def put_back_to_the_left(packed, attention_mask):
    parts = packed.split(attention_mask.sum(dim=1).tolist())
    rows = [torch.cat([part, part.new_zeros(attention_mask.size(1) - len(part), part.size(1))]) for part in parts]
    return torch.stack(rows)


def put_back_by_columns(packed, attention_mask):
    return put_back(packed, attention_mask.T).transpose(0, 1)


def put_back_over_ones(packed, attention_mask):
    return put_back(packed, attention_mask) + (attention_mask[:, :, None] == 0)


def signed(weights, largest=127, turn=torch.round, dim=1, least=1e-30):
    top = weights.abs().amax(dim=dim, keepdim=True) if dim is not None else weights.abs().max()
    scales = top / largest
    return turn(weights / scales.clamp(min=least)), scales


def signed_by_largest(weights):
    scales = weights.amax(dim=1, keepdim=True) / 127
    return (weights / scales.clamp(min=1e-30)).round(), scales


def signed_with_flat_scales(weights):
    scales = weights.abs().amax(dim=1) / 127
    return (weights / scales[:, None].clamp(min=1e-30)).round(), scales


def signed_with_scales_of(wrong):
    return lambda weights: (signed(weights)[0], wrong)


def signed_with_where(weights):
    scales = weights.abs().amax(1, keepdim=True) / 127
    return torch.where(scales > 0, weights / scales, 0.0).round().to(torch.int8), scales


def signed_in_numpy(weights):
    return tuple(part.numpy() for part in signed(weights))


def fair(ours, theirs):
    return statistics.median(one / other for one, other in zip(ours[1:], theirs[1:], strict=True))


def fair_in_numpy(ours, theirs):
    return np.median(np.divide(ours, theirs)[1:])


def fair_in_place(ours, theirs):
    del ours[0], theirs[0]
    return np.median(np.divide(ours, theirs))


RIGHT = {
    "13.1": [blocks, blocks_by_number, blocks_in_numpy, lambda lengths: blocks(lengths).tolist()],
    "13.2": [
        (192, 256, 98),
        [192.0, 256.0, 98.0],
        tuple(torch.tensor([192, 256, 98])),
        torch.tensor([192, 256, 98]),
        np.array([192, 256, 98]),
    ],
    "13.3": [put_back, put_back_by_scatter, put_back_by_number],
    "13.4": [
        signed,
        signed_with_where,
        signed_in_numpy,
        lambda w: signed(w, turn=lambda x: (x + 0.5).floor()),
        lambda w: [one.tolist() for one in signed(w)],
    ],
    "13.5": [
        fair,
        fair_in_numpy,
        lambda ours, theirs: torch.tensor(fair(ours, theirs)),
        lambda ours, theirs: (torch.tensor(ours) / torch.tensor(theirs))[1:].quantile(0.5),
    ],
}

WRONG = {
    "13.1": [
        (lambda n: ~blocks(n), "The mask is inverted: True is"),
        (lambda n: blocks(n).tril(), "ahead"),
        (lambda n: torch.eye(sum(n)).bool(), "Each token sees only itself. It"),
        (lambda n: torch.ones(sum(n), sum(n)).bool(), "Everything is visible. Tokens must not"),
        (lambda n: blocks(n).float(), "booleans"),
        (blocks_by_emptying, "changes the list"),
        (
            lambda n: torch.zeros(sum(n), sum(n)).masked_fill(~blocks(n), -torch.inf),
            "The positions are right, but this",
        ),
        (lambda n: ~blocks(n) * -1e9, "The positions are right, but this"),
        (lambda n: blocks(n[::-1]), "number of its text"),
        (lambda n: torch.ones(len(n), max(n)).bool(), "shape"),
        (blocks([2, 1]), "function itself"),
    ],
    "13.2": [
        ((64, 256, 98), "three"),
        ((24, 256, 98), "padded_scores: those are the positions. Each"),
        ((98, 256, 98), "padded_scores: each text has 8 positions"),
        ((192, 98, 98), "one_row_scores: the mask hides scores, but"),
        ((192, 192, 98), "16 tokens"),
        ((192, 256, 16), "those are the tokens"),
        ((192, 256, 256), "squared"),
        (192, "three numbers"),
    ],
    "13.3": [
        (put_back_to_the_left, "Padding may be anywhere. Use the"),
        (lambda p, m: put_back(p.detach(), m), "no gradient flows"),
        (lambda p, m: put_back(p.float(), m), "the dtype of `packed`"),
        (put_back_into_float32, "Right for float32, but `packed` may"),
        (put_back_by_columns, "text by text"),
        (put_back_over_ones, "zero"),
        (lambda p, m: put_back(p, m) + 1e-6 * (m[:, :, None] == 0), "zero"),
        (put_back_of_width_2, "shape"),
        (lambda p, m: put_back(p.half(), m).to(p.dtype), "The result loses the precision of"),
        (lambda p, m: put_back(p, m).numpy(), "The notebook needs gradients here, which"),
        (lambda p, m: put_back(p, m).tolist(), "Return a tensor"),
        (lambda p, m: p.view(1, -1, 2), "shape"),
        (lambda p, m: put_back(p.flip(0), m), "Row by row"),
    ],
    "13.4": [
        (lambda w: signed(w, dim=None), "whole matrix"),
        (lambda w: signed(w, largest=128), "127"),
        (lambda w: signed(w, largest=255), "255"),
        (lambda w: signed(w, turn=torch.trunc), "nearest"),
        (lambda w: signed(w, turn=torch.ceil), "nearest"),
        (lambda w: signed(w)[::-1], "The two are swapped: the codes"),
        (lambda w: (signed(w)[0] * signed(w)[1], signed(w)[1]), "weights again"),
        (signed_by_largest, "*absolute*"),
        (lambda w: signed(w, turn=lambda x: x), "whole numbers"),
        (lambda w: signed(w, turn=lambda x: x.abs().round()), "signs"),
        (lambda w: (signed(w)[0], 1 / signed(w)[1]), "The scales are inverted: the weight"),
        (lambda w: signed(w, least=0), "zeros"),
        (signed_with_flat_scales, "keepdim=True"),
        (lambda w: signed(w, dim=0), "Each column has a scale"),
        (signed_with_scales_of(0.5), "torch tensor"),
        (signed_with_scales_of("127"), "torch tensor"),
        (signed_with_scales_of(None), "torch tensor"),
        (signed_with_scales_of(np.array(["a"])), "torch tensor"),
        (lambda w: signed(w) if w.any(dim=1).all() else (w[:1], w[:1, :1]), "shape"),
        (lambda w: signed(w)[0], "Return two"),
    ],
    "13.5": [
        (lambda a, b: statistics.median(np.divide(a, b)), "first round"),
        (lambda a, b: statistics.median(sorted(np.divide(a, b))[:-1]), "The slowest round is left out"),
        (lambda a, b: statistics.median_high(np.divide(a, b)[1:]), "even number of rounds"),
        (lambda a, b: torch.tensor(np.divide(a, b)[1:]).median(), "even number of rounds"),
        (lambda a, b: statistics.median(np.divide(a, b)[:-1]), "last round is left out"),
        (lambda a, b: np.divide(a, b)[1:][len(a[1:]) // 2], "Sort the ratios before you take"),
        (lambda a, b: statistics.geometric_mean(np.divide(a, b)[1:]), "it should be"),
        (lambda a, b: 1 / fair(a, b), "The ratio is inverted: this is"),
        (lambda a, b: fair(b, a), "The ratio is inverted. Use ours"),
        (lambda a, b: np.divide(a, b)[1:].mean(), "mean"),
        (lambda a, b: sum(a[1:]) / sum(b[1:]), "sums"),
        (lambda a, b: statistics.median(a[1:]) / statistics.median(b[1:]), "two medians"),
        (lambda a, b: min(a[1:]) / min(b[1:]), "fastest"),
        (lambda a, b: fair([0, *sorted(a[1:])], [0, *sorted(b[1:])]), "have been sorted"),
        (fair_in_place, "changes the lists"),
        (lambda a, b: "fast", "number"),
    ],
}
