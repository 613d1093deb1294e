"""Answers to the exercises of notebook 10 that its checks do not declare."""

import numpy as np
import torch

from exercises.notebook_10 import CHOOSE, takes_his_to_noun
from utils.heads import rollout, silence

SHARES = takes_his_to_noun(CHOOSE).mean(dim=0)
HEADS = [divmod(int(place), SHARES.size(1)) for place in SHARES.flatten().argsort(descending=True)]
BEST, WORST = HEADS[0], HEADS[-1]
SEVENTH = HEADS[6]  # 48 sentences cannot tell the six before it from the best


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


def by_multi_dot(weights, residual):
    itself = torch.eye(weights.size(-1))
    layers = [residual * itself + (1 - residual) * layer.mean(dim=0) for layer in weights]
    return torch.linalg.multi_dot(layers[::-1])


def by_numpy(weights, residual):
    flow = np.eye(weights.shape[-1])
    for layer in np.asarray(weights, dtype=np.float64):
        flow = (1 - residual) * layer.mean(axis=0) @ flow + residual * flow
    return flow


RIGHT = {
    "10.1": """
        torch.tensor(right)
        ("3/8", "1/2")
        (0.38, 0.5)
        ("37.5 %", "50%")
        {"fixed_distance": 3 / 8, "nearest_name": 1 / 2}
    """,
    "10.2": """
        torch.tensor(BEST)
        "{}-{}".format(*BEST)
        HEADS[1]
    """,
    "10.3": """
        by_cat
        by_view
    """,
    "10.4": """
        by_multi_dot
        by_numpy
    """,
}
WRONG = {
    "10.1": """
        right[::-1] | The two are swapped: the fixed
        (3, 4) | These are counts. Divide by the
        (37.5, 50) | percentages
        (0.4, 0.5) | most frequent
        (0.25, 0.5) | most frequent
        (3 / 8, 0.25) | nearer than the other
    """,
    "10.2": """
        WORST | another head does better
        SEVENTH | of the 48 `possessives`
        BEST[::-1] | The two are swapped
        (99, 0) | does not exist
    """,
    "10.3": """
        (head + 1) * D] = columns => (head + 1) * D] = 0 | The head's numbers are zeros. Write
        context[..., head * D : (head + 1) * D] = columns => pass | Nothing is replaced
        head * D : (head + 1) * D => (head - 1) * D : head * D | counted from 0
        context[..., head * D : (head + 1) * D] = columns => context[:, 0, head * D : (head + 1) * D] = columns.expand(*context.shape[:2], D)[:, 0] | in every token
        (head + 1) * D] = columns => (head + 1) * D] += columns | `columns` is added to the head's
        return (context,) => return (columns.expand(*context.shape[:2], D).repeat(1, 1, context.size(-1) // D),) | All heads
        head * D : (head + 1) * D => head :: context.size(-1) // D | Every A-th number is replaced, but
        context[..., head * D : (head + 1) * D] = columns => context[..., head * D :] = 0; context[..., head * D : (head + 1) * D] = columns | other heads have changed
        (head + 1) * D] = columns => (head + 1) * D] = columns.mean() | the head's numbers are not `columns`
        return (context,) => return (context[..., :D],) | shape
        .clone() => | context.clone()
        lambda head, columns: lambda module, inputs, output: inputs[0] | as hook(module, inputs), but yours
        lambda head, columns: lambda inputs: inputs[0] | as hook(module, inputs), but yours
        D = columns.size(-1) => D = 32 | It works for 12 heads of 32 numbers, but not
        return (context,) => return [context] | a tuple
        return (context,) => return 1, 2 | Your hook returns several values, but
        return (context,) => return None | returns None
        return hook => return columns | should return a function
        silence | series' own silence
        inputs[0].clone() => inputs.clone() | the context is inputs[0]
        columns.size(-1) => len(columns) | D is columns.size(-1)
    """,
    "10.4": """
        rollout | series' own rollout
        lambda weights, residual: rollout(weights, residual) | series' own `rollout`
        lambda weights, residual: weights.mean(dim=1) | one by one
        lambda weights, residual: None | returns None
    """,
}
