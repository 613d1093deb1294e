"""Answers readers give to the exercises of notebook 10: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch

from exercises.notebook_10 import CHOOSE, takes_his_to_noun
from utils.heads import silence


def ranked_heads(pairs):
    shares = takes_his_to_noun(pairs).mean(dim=0)
    return [divmod(int(place), shares.size(1)) for place in shares.flatten().argsort(descending=True)]


HEADS = ranked_heads(CHOOSE)
BEST, WORST = HEADS[0], HEADS[-1]
RUNNER_UP, SEVENTH = HEADS[1], HEADS[6]  # 48 sentences cannot tell 4-6 from the best


def cluster_means(values, clusters):
    return torch.stack([values[clusters == number].mean() for number in torch.unique(clusters)])


def cluster_means_scattered(values, clusters):
    labels, places = torch.unique(clusters, return_inverse=True)
    sums = torch.zeros(len(labels), dtype=values.dtype).index_add(0, places, values)
    return sums / torch.bincount(places)


def cluster_means_in_a_list(values, clusters):
    return [
        float(np.mean([v for v, c in zip(values, clusters, strict=True) if c == number]))
        for number in sorted(set(clusters.tolist()))
    ]


def cluster_sums(values, clusters):
    return torch.stack([values[clusters == number].sum() for number in torch.unique(clusters)])


def cluster_means_as_they_come(values, clusters):
    return torch.stack([values[clusters == number].mean() for number in dict.fromkeys(clusters.tolist())])


def cluster_means_counted(values, clusters):
    return torch.stack([values[clusters == number].mean() for number in range(int(clusters.max()) + 1)])


def cluster_means_of_equal_sizes(values, clusters):
    order = clusters.argsort()
    number = len(torch.unique(clusters))
    return torch.stack([part.mean() for part in values[order].tensor_split(number)])


def cluster_medians(values, clusters):
    return torch.stack([values[clusters == number].median() for number in torch.unique(clusters)])


def my_silence(head, columns):
    D = columns.shape[-1]

    def hook(module, inputs):
        context = inputs[0].clone()
        context[..., head * D : (head + 1) * D] = columns
        return (context,)

    return hook


def silence_by_cat(head, columns):
    D = columns.shape[-1]

    def hook(module, inputs):
        (context,) = inputs
        middle = columns.expand(*context.shape[:2], D)
        return torch.cat([context[..., : head * D], middle, context[..., (head + 1) * D :]], dim=-1)

    return hook


def silence_by_view(head, columns):
    def hook(module, inputs):
        parts = inputs[0].clone().unflatten(-1, (-1, columns.shape[-1]))
        parts[..., head, :] = columns
        return (parts.flatten(-2),)

    return hook


def silence_by(change):
    """A hook that does something else with the context and the head's place in it."""

    def my_silence(head, columns):
        def hook(module, inputs):
            D = columns.shape[-1]
            context = inputs[0].clone()
            result = change(context, columns, slice(head * D, (head + 1) * D))
            return (context if result is None else result,)

        return hook

    return my_silence


def silence_by_length(head, columns):
    D = len(columns)

    def hook(module, inputs):
        context = inputs[0].clone()
        context[..., head * D : (head + 1) * D] = columns
        return (context,)

    return hook


def silence_in_place(head, columns):
    D = columns.shape[-1]

    def hook(module, inputs):
        inputs[0][..., head * D : (head + 1) * D] = columns
        return inputs

    return hook


def silence_of_32(head, columns):
    def hook(module, inputs):
        context = inputs[0].clone()
        context[..., head * 32 : (head + 1) * 32] = columns
        return (context,)

    return hook


def add_columns(context, columns, place):
    context[..., place] += columns


def put_zero(context, columns, place):
    context[..., place] = 0


def put_first(context, columns, place):
    context[:, 0, place] = columns if columns.dim() == 1 else columns[:, 0]


def put_before(context, columns, place):
    D = columns.shape[-1]
    context[..., place.start - D : place.stop - D] = columns


def put_strided(context, columns, place):
    context[..., place.start // columns.shape[-1] :: context.shape[-1] // columns.shape[-1]] = columns


def put_everywhere(context, columns, place):
    return columns.expand(*context.shape[:2], -1).repeat(1, 1, context.shape[-1] // columns.shape[-1])


def put_to_the_end(context, columns, place):
    context[..., place.start :] = 0
    context[..., place] = columns


def put_mean(context, columns, place):
    context[..., place] = columns.mean()


OFFSET, NEAR = (3 / 8, 1 / 2)  # of 10.1: three of the eight right names stand four places back, four are the nearer

RIGHT = {
    "10.1": [
        (OFFSET, NEAR),
        [OFFSET, NEAR],
        torch.tensor([OFFSET, NEAR]),
        ("3/8", "1/2"),
        (0.38, NEAR),
        ("37.5 %", "50%"),
        {"fixed_distance": OFFSET, "nearest_name": NEAR},
    ],
    "10.2": [BEST, list(BEST), torch.tensor(BEST), np.array(BEST), "{}-{}".format(*BEST), RUNNER_UP],
    "10.3": [
        cluster_means,
        cluster_means_scattered,
        cluster_means_in_a_list,
        lambda v, c: cluster_means(v, c).numpy(),
        lambda v, c: cluster_means(v.double(), c),
        lambda v, c: tuple(cluster_means(v, c)),
        lambda v, c: {int(label): v[c == label].mean() for label in c.unique()},
    ],
    "10.4": [my_silence, silence_by_cat, silence_by_view],
}

WRONG = {
    "10.1": [
        ((NEAR, OFFSET), "The two are swapped: the fixed"),
        ((3, 4), "These are counts. Divide by the"),
        ((37.5, 50), "percentages"),
        ((0.4, NEAR), "most frequent"),
        ((0.25, NEAR), "most frequent"),
        ((OFFSET, 0.25), "nearer than the other"),
        (0.5, "two numbers"),
        ((OFFSET, NEAR, 0), "two numbers"),
        (("half", NEAR), "a number"),
        (None, "two numbers"),
    ],
    "10.2": [
        (WORST, "another head does better"),
        (SEVENTH, f"in {takes_his_to_noun(CHOOSE)[:, *SEVENTH].mean():.0%} of the 48 `possessives`"),
        (BEST[::-1], "The two are swapped" if BEST[1] < takes_his_to_noun(CHOOSE).size(1) else "does not exist"),
        ((99, 0), "does not exist"),
        (5, "two numbers"),
        ((1, 2, 3), "two numbers"),
        ("the third", "two numbers"),
    ],
    "10.3": [
        (cluster_sums, "sums"),
        (cluster_means_as_they_come, "first appearance"),
        (cluster_means_counted, "different clusters"),
        (cluster_means_of_equal_sizes, "so its mean is"),
        (cluster_medians, "so its mean is"),
        (lambda v, c: cluster_means(v, c).flip(0), "The order of the clusters is"),
        (lambda v, c: cluster_means(v, c).sort().values, "sorted by size"),
        (lambda v, c: cluster_sums(v, c) / len(torch.unique(c)), "number of clusters"),
        (lambda v, c: cluster_sums(v, c) / (len(v) / len(torch.unique(c))), "mean size"),
        (lambda v, c: v.mean(), "different clusters"),
        (lambda v, c: v[c.argsort()], "different clusters"),
        (lambda v, c: {7: v.mean(), 0: v.mean()}, "alone"),
        (lambda v, c: ["much"] * len(torch.unique(c)), "Return one number per cluster, as"),
    ],
    "10.4": [
        (silence_by(put_zero), "The head's numbers are zeros. Write"),
        (silence_by(lambda context, columns, place: None), "Nothing is replaced"),
        (silence_by(put_before), "counted from 0"),
        (silence_by(put_first), "in every token"),
        (silence_by(add_columns), "`columns` is added to the head's"),
        (silence_by(put_everywhere), "All heads"),
        (silence_by(put_strided), "Every A-th number is replaced, but"),
        (silence_by(put_to_the_end), "other heads have changed"),
        (silence_by(put_mean), "the head's numbers are not `columns`"),
        (silence_by(lambda context, columns, place: context[..., place]), "shape"),
        (silence_in_place, "context.clone()"),
        (lambda head, columns: lambda module, inputs, output: inputs[0], "as hook(module, inputs), but yours"),
        (lambda head, columns: lambda inputs: inputs[0], "as hook(module, inputs), but yours"),
        (silence_of_32, "It works for 12 heads of 32 numbers, but not"),
        (lambda head, columns: lambda module, inputs: [my_silence(head, columns)(module, inputs)[0]], "a tuple"),
        (lambda head, columns: lambda module, inputs: (1, 2), "Your hook returns several values, but"),
        (lambda head, columns: lambda module, inputs: None, "returns None"),
        (lambda head, columns: columns, "should return a function"),
        (silence, "series' own silence"),
        (lambda head, columns: lambda module, inputs: (inputs.clone(),), "the context is inputs[0]"),
        (silence_by_length, "D is columns.size(-1)"),
    ],
}
