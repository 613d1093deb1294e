"""Answers readers give to the exercises of notebook 04: right ones, and wrong ones with a word of the hint."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from torch.nn import functional as F


def split_by_permute(x, num_heads):
    B, S, _ = x.shape
    return x.reshape(B, S, num_heads, -1).permute(0, 2, 1, 3)


def split_by_chunks(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_by_concatenation(x):
    return torch.cat(list(x.unbind(dim=1)), dim=-1)


def merge_by_flatten(x):
    return x.transpose(1, 2).flatten(2)


def merge_contiguous(x):
    B, A, S, D = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(B, S, A * D)


def row_slice_by_view(weight, index, num_heads):
    return weight.view(num_heads, -1, weight.size(1))[index]


def row_slice_by_division(weight, index, num_heads):
    D = weight.size(0) / num_heads
    return weight[index * D : (index + 1) * D]


def split_in_two(x, num_heads):
    B, S = x.shape
    return x.view(B, S, num_heads, -1).transpose(1, 2)


def attend(split=split_by_permute, scale=None, dim=-1, masked=None, merge=merge_by_flatten, project=True):
    """A forward pass, right unless a part of it is given."""

    def forward(attention, hidden_states, attention_mask=None):
        A, H = attention.num_heads, hidden_states.size(-1)
        query, key, value = (
            split(linear(hidden_states), A) for linear in (attention.query, attention.key, attention.value)
        )
        scores = query @ key.transpose(-2, -1) / (H // A if scale is None else scale(H, A)) ** 0.5
        if attention_mask is not None:
            scores = (masked or hide_keys)(scores, attention_mask)
        weights = scores.softmax(dim)
        context = merge(weights @ value)
        return (attention.output(context) if project else context), weights

    return forward


def hide_keys(scores, mask):
    return scores.masked_fill(mask[:, None, None, :] == 0, -torch.inf)


def hide_with(number):
    return lambda scores, mask: scores.masked_fill(mask[:, None, None, :] == 0, number)


def returning(change):
    """A forward pass that changes the output and the weights that it returns."""
    return lambda *arguments: tuple(map(change, attend()(*arguments)))


@torch.no_grad()
def without_gradient(*arguments):
    return attend()(*arguments)


def by_einsum(attention, hidden_states, attention_mask=None):
    A = attention.num_heads
    query, key, value = (
        linear(hidden_states).unflatten(-1, (A, -1)) for linear in (attention.query, attention.key, attention.value)
    )
    scores = torch.einsum("bsad,btad->bast", query, key) * query.size(-1) ** -0.5
    if attention_mask is not None:
        scores = scores + (1.0 - attention_mask[:, None, None].float()) * -1e9
    weights = scores.softmax(-1)
    return [attention.output(torch.einsum("bast,btad->bsad", weights, value).flatten(2)), weights]


def by_torch(attention, hidden_states, attention_mask=None):
    stream, parts = hidden_states.transpose(0, 1), (attention.query, attention.key, attention.value)
    output, weights = torch.nn.functional.multi_head_attention_forward(
        *[stream] * 3,
        *(stream.size(-1), attention.num_heads, torch.cat([part.weight for part in parts])),
        *(torch.cat([part.bias for part in parts]), None, None, False, 0.0),
        *(attention.output.weight, attention.output.bias),
        key_padding_mask=None if attention_mask is None else attention_mask == 0,
        average_attn_weights=False,
    )
    return output.transpose(0, 1), weights


def heads_fixed(attention, hidden_states, attention_mask=None):
    attention.num_heads = 12
    return attend()(attention, hidden_states, attention_mask)


def exchanged(attention, hidden_states, attention_mask=None):
    attention.query, attention.key = attention.key, attention.query
    try:
        return attend()(attention, hidden_states, attention_mask)
    finally:
        attention.query, attention.key = attention.key, attention.query


def values_are_keys(attention, hidden_states, attention_mask=None):
    query, key = (
        split_by_permute(linear(hidden_states), attention.num_heads) for linear in (attention.query, attention.key)
    )
    weights = (query @ key.transpose(-2, -1) / query.size(-1) ** 0.5).softmax(-1)
    return attention.output(merge_by_flatten(weights @ key)), weights


def adds_the_residual(attention, hidden_states, attention_mask=None):
    output, weights = attend()(attention, hidden_states, attention_mask)
    return hidden_states + output, weights


def doubles_the_output(*arguments):
    output, weights = attend()(*arguments)
    return 2 * output, weights


def splits_by_function(attention, hidden_states, attention_mask=None):
    return attention.split_heads(attention.query(hidden_states), attention.num_heads), None


def mask_not_asked_for(attention, hidden_states, attention_mask=None):
    mask = attention_mask[:, None, None, :]
    return attend(masked=lambda scores, _: scores.masked_fill(mask == 0, -1e9))(attention, hidden_states, mask)


def renormalised(attention, hidden_states, attention_mask=None):
    output, weights = attend()(attention, hidden_states)
    if attention_mask is not None:
        weights = weights * attention_mask[:, None, None]
    return output, weights / weights.sum(-1, keepdim=True)


def with_the_methods(self, hidden_states, attention_mask=None):
    query, key, value = (self.split_heads(part(hidden_states)) for part in (self.query, self.key, self.value))
    mask = None if attention_mask is None else attention_mask[:, None, None]
    weights = self.compute_attention_weights(query, key, mask)
    return self.output(merge_by_flatten(weights @ value)), weights


def bypassing(name, by=lambda linear, x: F.linear(x, linear.weight, linear.bias)):
    """Attention that applies one of its layers by its weights, or by its forward."""

    def forward(self, hidden_states, attention_mask=None):
        parts = {part: getattr(self, part) for part in ("query", "key", "value", "output")}
        parts[name] = partial(by, parts[name])
        return attend()(SimpleNamespace(num_heads=self.num_heads, **parts), hidden_states, attention_mask)

    return forward


def with_a_narrow_mask(self, hidden_states, attention_mask=None):
    query, key, value = (self.split_heads(part(hidden_states)) for part in (self.query, self.key, self.value))
    weights = self.compute_attention_weights(query, key, attention_mask)
    return self.output(merge_by_flatten(weights @ value)), weights


def alters_input(attention, hidden_states, attention_mask=None):
    result = attend()(attention, hidden_states, attention_mask)
    hidden_states += 1
    return result


def merge_in_numpy(x):
    B, A, S, D = x.shape
    return np.ascontiguousarray(np.swapaxes(x, 1, 2)).reshape(B, S, A * D)


SHAPES = [(2, 6, 7, 8), (2, 6, 7, 7), (2, 7, 48)]

RIGHT = {
    "4.1": [
        row_slice_by_view,
        lambda weight, index, num_heads: weight.chunk(num_heads)[index],
        lambda weight, index, num_heads: np.split(weight.numpy(), num_heads)[index],
        lambda weight, index, num_heads: np.array_split(weight.copy(), num_heads)[index],
    ],
    "4.2": [split_by_permute, split_by_chunks, lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).transpose(1, 2)],
    "4.3": [merge_by_concatenation, merge_by_flatten, merge_contiguous, merge_in_numpy],
    "4.4": [
        SHAPES,
        [torch.Size(shape) for shape in SHAPES],
        [list(shape) for shape in SHAPES],
        [torch.tensor(shape) for shape in SHAPES],
        tuple(SHAPES),
        [str(shape) for shape in SHAPES],
    ],
    "4.5": [
        attend(),
        with_the_methods,
        attend(merge=merge_contiguous),
        by_einsum,
        attend(masked=hide_with(-1e9)),
        attend(masked=hide_with(-1e4)),
    ],
}
WRONG = {
    "4.1": [
        (lambda weight, index, num_heads: weight.chunk(num_heads, dim=1)[index], "columns"),
        (lambda weight, index, num_heads: weight[index::num_heads], "These are every A-th row. A"),
        (lambda weight, index, num_heads: weight[index], "one row"),
        (lambda weight, index, num_heads: weight[index * num_heads : (index + 1) * num_heads], "A rows"),
        (
            lambda weight, index, num_heads: weight.chunk(num_heads)[index].chunk(num_heads, dim=1)[index],
            "This slices the input, too",
        ),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[index - 1], "counted from 0"),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[-1], "i·D"),
        (row_slice_by_division, "D is 6.0, a float. Sizes and positions are integers"),
        (lambda weight, index, num_heads: weight[6:12], "but not for H = 20 and 5 heads"),
        (lambda weight, index, num_heads: weight[6 * index : 6 * index + 6], "but not for H = 20 and 5 heads"),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[index][:-1], "a slice ends before"),
        (
            lambda weight, index, num_heads: weight[
                index * (len(weight) // num_heads) : (index + 1) * (len(weight) // num_heads) + 1
            ],
            "one row too many",
        ),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[index].flip(0), "reverse order"),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[index].int(), "should have the dtype"),
    ],
    "4.2": [
        (lambda x, num_heads: x.view(x.size(0), x.size(1), num_heads, -1), "transpose(1, 2)"),
        (lambda x, num_heads: x.view(x.size(0), num_heads, x.size(1), -1), "mixed"),
        (lambda x, num_heads: x.view(*x.shape[:2], -1, num_heads).transpose(1, 2), "Head size and number of heads"),
        (lambda x, num_heads: x.view(*x.shape[:2], -1, num_heads).permute(0, 3, 1, 2), "next to each other"),
        (lambda x, num_heads: x.view(-1, 4, 3, 6).transpose(1, 2), "but not for H = 20 and 5 heads"),
        (lambda x, num_heads: x.view(*x.shape[:2], num_heads, 4).transpose(1, 2), "compute a head's size, D ="),
        (lambda x, num_heads: x.view(*x.shape[:2], -1, 6).transpose(1, 2), "but not for H = 20 and 5 heads"),
        (lambda x, num_heads: x.view(*x.shape[:2], num_heads, x.size(2) / num_heads), "Divide with //"),
        (split_in_two, "The shapes here: x (2, 4, 18)"),
        (lambda x, num_heads: x, "shape (2, 3, 4, 6)"),
        (lambda x, num_heads: split_by_chunks(x, num_heads).flip(-1), "Head i should hold"),
        (lambda x, num_heads: split_by_chunks(x, num_heads).long(), "should have the dtype"),
    ],
    "4.3": [
        (lambda x: x.transpose(1, 2), "join the last two"),
        (lambda x: x.reshape(x.size(0), x.size(2), -1), "mixed"),
        (lambda x: x.flatten(2), "move the tokens"),
        (lambda x: x.permute(0, 2, 3, 1).flatten(2), "alternate"),
        (lambda x: x.transpose(1, 2).view(x.size(0), x.size(2), -1), "view fails because transpose leaves the"),
        (lambda x: x.transpose(1, 2).flatten(2).flip(2), "Each token should have"),
        (lambda x: x.transpose(1, 2).reshape(2, 4, 18), "but not for H = 20 and 5 heads"),
        (lambda x: x.transpose(1, 2).reshape(x.size(0), x.size(2), x.size(1) * 4), "compute a head's size, D ="),
    ],
    "4.4": [
        ([(2, 7, 6, 8), SHAPES[1], SHAPES[2]], "transpose"),
        ([(2, 6, 7, 48), SHAPES[1], SHAPES[2]], "D = H / A"),
        ([(2, 8, 7, 6), SHAPES[1], SHAPES[2]], "6 is the number of heads"),
        ([SHAPES[0], (2, 7, 7), SHAPES[2]], "its own matrix"),
        ([SHAPES[0], (2, 6, 7, 8), SHAPES[2]], "weights: the product of query and"),
        ([*SHAPES[:2], (2, 7, 8)], "one head's context"),
        ([*SHAPES[:2], (2, 48)], "shape of the input"),
        ([1, 2, 3], "query_shape should be a shape"),
        ([SHAPES[0]], "three shapes"),
        (["a", "b", "c"], "should be a shape"),
    ],
    "4.5": [
        (attend(scale=lambda H, A: 1), "not scaled"),
        (attend(scale=lambda H, A: H), "√H"),
        (attend(scale=lambda H, A: A), "√A"),
        (attend(scale=lambda H, A: (H // A) ** 2), "The scores are divided by D"),
        (attend(scale=lambda H, A: A / H), "multiplied by √D"),
        (attend(scale=lambda H, A: 32), "but not for H = 18 and 3 heads"),
        (attend(dim=-2), "over the queries"),
        (attend(dim=1), "over the heads"),
        (attend(masked=hide_with(-10.0)), "with −inf"),
        (attend(masked=hide_with(-30.0)), "with −inf"),
        (attend(masked=hide_with(-100.0)), "with −inf"),
        (returning(torch.detach), "Remove any detach"),
        (without_gradient, "torch.no_grad()."),
        (returning(torch.Tensor.double), "should have the dtype"),
        (exchanged, "Query and key are swapped"),
        (attend(split=lambda x, A: x.view(x.size(0), A, x.size(1), -1)), "mixed"),
        (attend(split=lambda x, A: x.unflatten(-1, (-1, A)).permute(0, 3, 1, 2)), "A head got every A-th coordinate"),
        (attend(merge=lambda x: x.reshape(x.size(0), x.size(2), -1)), "Swap heads and tokens again"),
        (attend(project=False), "self.output is missing"),
        (values_are_keys, "They are multiplied by the keys"),
        (adds_the_residual, "The encoder layer adds it later"),
        (doubles_the_output, "“output of layer 0” differs"),
        (splits_by_function, "Call it as attention.split_heads(x)"),
        (mask_not_asked_for, "attention_mask is None in this call, because there is no padding"),
        (renormalised, "Set masked scores to −inf before the softmax"),
        (attend(masked=lambda scores, mask: scores), "Right so far: weights of layer 0, output of layer 0"),
        (attend(masked=lambda scores, mask: scores + mask[:, None, None]), "“weights of layer 0, padded” differs"),
        (attend(masked=lambda scores, mask: scores * mask[:, None, None]), "set hidden scores to −inf"),
        (attend(masked=lambda scores, mask: scores.masked_fill(mask[:, None, :, None] == 0, -1e9)), "hides keys"),
        (heads_fixed, "3 heads"),
        (bypassing("query"), "self.query is never called"),
        (by_torch, "self.query is never called"),
        (bypassing("output", by=lambda linear, x: linear.forward(x)), "self.output is never called"),
        (with_a_narrow_mask, "dimensions of size 1, (B, 1, 1, S)"),
        (
            attend(merge=lambda x: x.transpose(1, 2).view(x.size(0), x.size(2), -1)),
            "view fails because transpose leaves the",
        ),
        (alters_input, "changes its input in place"),
        (lambda *arguments: attend()(*arguments)[0], "two tensors"),
        (lambda *arguments: attend()(*arguments)[::-1], "returned second"),
    ],
}
