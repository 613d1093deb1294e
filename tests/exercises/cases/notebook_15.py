"""Answers readers give to the exercises of notebook 15: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch import nn

N = -100


def with_labels(place):
    """An `align` that puts labels of a word with n pieces as `place(label, n)` says."""

    def aligned(words, labels, tokenizer):
        cls_id, sep_id = tokenizer.encode("")
        ids, found = [cls_id], [N]
        for word, label in zip(words, labels, strict=True):
            pieces = tokenizer.encode(word, add_special_tokens=False)
            ids.extend(pieces)
            found.extend(place(label, len(pieces)))
        return [*ids, sep_id], [*found, N]

    return aligned


first = with_labels(lambda y, n: [y] + [N] * (n - 1))


def by_tokens(words, labels, tokenizer):
    ids, found = [tokenizer.vocab["[CLS]"]], [N]
    for word, label in zip(words, labels, strict=True):
        for place, piece in enumerate(tokenizer.tokenize(word)):
            ids.append(tokenizer.vocab[piece])
            found.append(label if place == 0 else N)
    return [*ids, tokenizer.vocab["[SEP]"]], [*found, N]


def without_specials(words, labels, tokenizer):
    ids, found = first(words, labels, tokenizer)
    return ids[1:-1], found[1:-1]


def zeros_at_specials(words, labels, tokenizer):
    ids, found = first(words, labels, tokenizer)
    return ids, [0, *found[1:-1], 0]


def a_label_too_few(words, labels, tokenizer):
    ids, found = first(words, labels, tokenizer)
    return ids, found[:-1]


def together(words, labels, tokenizer):
    ids, _ = first(words, labels, tokenizer)
    return ids, [N, *labels, *[N] * (len(ids) - 1 - len(labels))]


def shifted(words, labels, tokenizer):
    ids, found = first(words, labels, tokenizer)
    return ids, found[1:] + found[:1]


def by_word(words, label_of, tokenizer):
    return first(words, [label_of(word) for word in words], tokenizer)


def cut_at(limit):
    def aligned(words, labels, tokenizer):
        ids, found = first(words, labels, tokenizer)
        return (ids, found) if len(ids) <= limit else ([*ids[: limit - 1], ids[-1]], [*found[: limit - 1], N])

    return aligned


def altering(words, labels, tokenizer):
    result = first(words, labels, tokenizer)
    labels.clear()
    return result


def align(words, labels, tokenizer):
    return first(words, labels, tokenizer)


class Thin(nn.Module):
    start, freeze, scaled, both = 0.0, True, "right", False

    def __init__(self, linear, rank=8, alpha=16.0):
        super().__init__()
        self.linear = linear.requires_grad_(not self.freeze)
        self.scale = {"right": alpha / rank, "none": 1.0, "alpha": alpha}[self.scaled]
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) * (0 if self.both else 1))
        self.b = nn.Parameter(torch.full((linear.out_features, rank), self.start))

    def forward(self, x):
        return self.linear(x) + self.scale * x @ self.a.T @ self.b.T

    def merged(self):
        linear = nn.Linear(self.linear.in_features, self.linear.out_features)
        with torch.no_grad():
            linear.weight.copy_(self.linear.weight + self.scale * self.b @ self.a)
            linear.bias.copy_(self.linear.bias)
        return linear


class Lying(nn.Module):
    """The matrices lie the other way, and a parameter of the module freezes by detaching."""

    def __init__(self, linear, rank=8, alpha=16.0):
        super().__init__()
        self.old = linear
        for weight in self.old.parameters():
            weight.requires_grad = False
        self.factor = alpha / rank
        self.up = nn.Parameter(torch.zeros(rank, linear.out_features))
        self.down = nn.Parameter(torch.randn(linear.in_features, rank))

    def forward(self, x):
        return self.old(x) + self.factor * ((x @ self.down) @ self.up)

    def merged(self):
        new = nn.Linear(*self.down.shape[:1], self.up.shape[1])
        new.weight = nn.Parameter((self.old.weight + self.factor * (self.down @ self.up).T).detach())
        new.bias = nn.Parameter(self.old.bias.clone())
        return new


def thin(**settings):
    return type("MyLoRA", (Thin,), settings)


def in_place(self):
    with torch.no_grad():
        self.linear.weight += self.scale * self.b @ self.a
    return self.linear


def only_the_old(self):
    linear = nn.Linear(self.linear.in_features, self.linear.out_features)
    linear.load_state_dict(self.linear.state_dict())
    return linear


RIGHT = {
    "15.1": [
        [N, 4, 0, N, N, 4, N, N, 2, N],
        (N, 4, 0, N, N, 4, N, N, 2, N),
        torch.tensor([N, 4, 0, N, N, 4, N, N, 2, N]),
        np.array([N, 4, 0, N, N, 4, N, N, 2, N]),
    ],
    "15.2": [first, by_tokens, lambda words, labels, tokenizer: list(first(words, labels, tokenizer))],
    "15.3": [(1, 5 / 6, 2 / 3), (1.0, 0.83, 0.67), [1, "0.833", "0.667"], torch.tensor([1, 5 / 6, 2 / 3])],
    "15.4": [Thin, Lying],
}

WRONG = {
    "15.1": [
        ([4, 0, N, N, 4, N, N, 2], "[CLS] and [SEP] are tokens, too"),
        ([4, 0, 4, 2], "You give 4 labels"),
        ([0, 4, 0, N, N, 4, N, N, 2, 0], "[CLS] and [SEP] are not words"),
        ([N, 4, 0, 0, 0, 4, 4, 4, 2, N], "three times"),
        ([N, 4, N, N, 0, N, N, 4, 2, N], "last piece"),
        ([N, 4, 0, 0, 0, 4, 0, 0, 2, N], "0 is a label"),
        ([N, 4, 0, N, N, 4, N, N, 0, N], "First pieces"),
        (7, "a list"),
    ],
    "15.2": [
        (with_labels(lambda y, n: [y] * n), "count several times"),
        (with_labels(lambda y, n: [N] * (n - 1) + [y]), "last piece"),
        (with_labels(lambda y, n: [y] + [0] * (n - 1)), "0 is a label"),
        (with_labels(lambda y, n: [y]), "labels. Give each id a label"),
        (without_specials, "are missing"),
        (zeros_at_specials, "[CLS] and [SEP] are not words"),
        (a_label_too_few, "labels. Give each id a label"),
        (together, "The labels are all at the"),
        (shifted, "the labels should be"),
        (altering, "in place"),
        (lambda words, *given: by_word(words, dict(zip(words, given[0], strict=True)).get, given[1]), "its last occ"),
        (lambda words, labels, t: by_word(words, lambda word: labels[words.index(word)], t), "its first occurrence"),
        (cut_at(128), ". Do not truncate the text"),
        (cut_at(512), ". Do not truncate the text"),
        (lambda words, labels, tokenizer: align(words, labels, tokenizer), "This is the notebook's `align`, or"),
        (lambda words, labels, tokenizer: first(words, labels, tokenizer)[0], "two lists"),
        (lambda words, labels, tokenizer: ([1], [N]), "the tokenizer gives"),
        (lambda words, labels, tokenizer: tuple(map(torch.tensor, first(words, labels, tokenizer))), "lists"),
    ],
    "15.3": [
        ((5 / 6, 5 / 6, 2 / 3), "precision: divide by the number of"),
        ((0.5, 5 / 6, 2 / 3), "five capitals"),
        ((1, 1, 2 / 3), "recall: divide by the number of"),
        ((1, 0.5, 2 / 3), "six capitals"),
        ((1, 5 / 6, 10 / 11), "the F1 of the words"),
        ((1, 5 / 6, 1), "both ends"),
        ((1, 5 / 6, 0.5), "two of them agree"),
        (1, "three numbers"),
    ],
    "15.4": [
        (thin(start=0.1), "A new layer has to agree"),
        (thin(freeze=False), "still learns"),
        (thin(both=True), "No gradient reaches the two matrices"),
        (thin(scaled="none"), "not scaled"),
        (thin(scaled="alpha"), "The product is multiplied by alpha"),
        (thin(merged=in_place), "has changed"),
        (thin(merged=only_the_old), "`merged` leaves out the product of"),
        (thin(merged=lambda self: self.linear.weight), "nn.Linear"),
        (thin(merged=lambda self: None), "return"),
        (nn.Linear(3, 3), "the class itself"),
    ],
}
