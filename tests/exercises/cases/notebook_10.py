"""Answers to the exercises of notebook 10 that its checks do not declare."""

import torch

from exercises.notebook_10 import CHOOSE, takes_his_to_noun
from utils.heads import silence

SHARES = takes_his_to_noun(CHOOSE).mean(dim=0)
HEADS = [divmod(int(place), SHARES.size(1)) for place in SHARES.flatten().argsort(descending=True)]
BEST, WORST = HEADS[0], HEADS[-1]


def by_view(head, columns):
    def hook(module, inputs):
        parts = inputs[0].clone().unflatten(-1, (-1, columns.shape[-1]))
        parts[..., head, :] = columns
        return (parts.flatten(-2),)

    return hook


def by_cat(head, columns):
    D = columns.shape[-1]

    def hook(module, inputs):
        (context,) = inputs
        middle = columns.expand(*context.shape[:2], D)
        return torch.cat([context[..., : head * D], middle, context[..., (head + 1) * D :]], dim=-1)

    return hook


RIGHT = r"""
    10.1 | torch.tensor(right)
    10.1 | ("3/8", "1/2")
    10.1 | (0.38, 0.5)
    10.1 | ("37.5 percent", "50%")
    10.1 | {"fixed_distance": 3 / 8, "nearest_name": 1 / 2}
    10.2 | torch.tensor(BEST)
    10.2 | "{}-{}".format(*BEST)
    10.2 | (1, 7)
    10.3 | by_cat
    10.3 | by_view
    10.4 | (lambda row, names: row[names].sum(), "c")
    10.4 | (lambda row, names: float(row[names].sum() > row[0]), "(C)")
    10.4 | [lambda row, names: max(row.tolist()) in row[names].tolist(), " c "]
    10.4 | (lambda row, names: any(row[name] > 1 / 3 for name in names), "c")
"""
WRONG = r"""
    10.1 | right[::-1] | The two are swapped: the fixed
    10.1 | (3, 4) | These are counts. Divide by the
    10.1 | (37.5, 50) | percentages
    10.1 | (0.4, 0.5) | most frequent
    10.1 | (3 / 8, 0.25) | nearer than the other
    10.2 | WORST | another head does better
    10.2 | BEST[::-1] | The two are swapped
    10.2 | (3, 4) | leads clearly
    10.2 | HEADS[1] | leads clearly
    10.2 | (99, 0) | does not exist
    10.3 | (head + 1) * D] = columns => (head + 1) * D] = 0 | The head's numbers are zeros. Write
    10.3 | context[..., head * D : (head + 1) * D] = columns => pass | Nothing is replaced
    10.3 | head * D : (head + 1) * D => (head - 1) * D : head * D | counted from 0
    10.3 | context[..., head * D : (head + 1) * D] = columns => context[:, 0, head * D : (head + 1) * D] = columns.expand(*context.shape[:2], D)[:, 0] | in every token
    10.3 | (head + 1) * D] = columns => (head + 1) * D] += columns | `columns` is added to the head's
    10.3 | return (context,) => return (columns.expand(*context.shape[:2], D).repeat(1, 1, context.size(-1) // D),) | All heads
    10.3 | head * D : (head + 1) * D => head :: context.size(-1) // D | Every A-th number is replaced, but
    10.3 | context[..., head * D : (head + 1) * D] = columns => context[..., head * D :] = 0; context[..., head * D : (head + 1) * D] = columns | other heads have changed
    10.3 | (head + 1) * D] = columns => (head + 1) * D] = columns.mean() | the head's numbers are not `columns`
    10.3 | return (context,) => return (context[..., :D],) | shape
    10.3 | .clone() => | context.clone()
    10.3 | lambda head, columns: lambda module, inputs, output: inputs[0] | as hook(module, inputs), but yours
    10.3 | lambda head, columns: lambda inputs: inputs[0] | as hook(module, inputs), but yours
    10.3 | D = columns.size(-1) => D = 32 | It works for 12 heads of 32 numbers, but not
    10.3 | return (context,) => return [context] | a tuple
    10.3 | return (context,) => return 1, 2 | Your hook returns several values, but
    10.3 | return (context,) => return None | returns None
    10.3 | return hook => return columns | should return a function
    10.3 | silence | series' own silence
    10.3 | inputs[0].clone() => inputs.clone() | the context is inputs[0]
    10.3 | columns.size(-1) => len(columns) | D is columns.size(-1)
    10.4 | row.argmax() in names => row[1:-1].argmax() + 1 in names | so the title stands
    10.4 | row.argmax() in names => row[names].sum() / row[1:-1].sum() | so the title stands
    10.4 | row.argmax() in names => any(place in names for place in row.topk(2).indices) | so the title stands
    10.4 | row.argmax() in names => 1 - row[0] | doesn't say more for names
    10.4 | row.argmax() in names => row[names].sum() > 0 | Use how large the weights at `names` are
    10.4 | row.argmax() in names => 2 * row[names].sum() | Return True, False, or a number
    10.4 | title = "c" => title = "a" | fewer than half
    10.4 | title = "c" => title = "b" | as well
    10.4 | title = "c" => title = "d" | one of the letters
    10.4 | right[0] | Give two things
"""
