"""Answers to the exercises of notebook 15 that its checks do not declare."""

import torch
from torch import nn

from utils.token_labels import align


def by_tokens(words, labels, tokenizer):
    ids, found = [tokenizer.vocab["[CLS]"]], [-100]
    for word, label in zip(words, labels, strict=True):
        for place, piece in enumerate(tokenizer.tokenize(word)):
            ids.append(tokenizer.vocab[piece])
            found.append(label if place == 0 else -100)
    return [*ids, tokenizer.vocab["[SEP]"]], [*found, -100]


def shortened(aligned, limit):
    ids, found = aligned
    return (ids, found) if len(ids) <= limit else ([*ids[: limit - 1], ids[-1]], [*found[: limit - 1], -100])


class Lying(nn.Module):
    """The matrices lie the other way, and each weight of the layer is frozen by itself."""

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


def shifted(words, labels, tokenizer):
    """Drop a word without pieces from the ids, and not from the labels."""
    pieces = [ids for word in words if (ids := tokenizer.encode(word, add_special_tokens=False))]
    labels = [label for ids, label in zip(pieces, labels, strict=False) for label in (label, *[-100] * (len(ids) - 1))]
    return tokenizer.encode(" ".join(words)), [-100, *labels, -100]


RIGHT = r"""
    15.1 | "-100, 4, 0, −100, −100, 4, −100, −100, 2, −100"
    15.2 | by_tokens
    15.2 | lambda *given: list(right(*given))
    15.3 | (0.25, 0.33, 0.29)
    15.3 | ("25 %", "33%", "29 %")
    15.3 | [0.25, "0.333", "0.286"]
    15.4 | Lying
"""
WRONG = r"""
    15.2 | lambda words, labels, tokenizer: shifted(words, labels, tokenizer) | label of another word
    15.1 | right[1:-1] | [CLS] and [SEP] are tokens, too
    15.1 | [4, 0, 4, 2] | You give 4 labels
    15.1 | 7 | a list
    15.2 | [label] + [-100] * (len(pieces) - 1) => [label] * len(pieces) | count several times
    15.2 | [label] + [-100] * (len(pieces) - 1) => [-100] * (len(pieces) - 1) + [label] | last piece
    15.2 | [label] + [-100] * (len(pieces) - 1) => [label] + [0] * (len(pieces) - 1) | 0 is a label
    15.2 | [label] + [-100] * (len(pieces) - 1) => [label] | labels. Give each id a label
    15.2 | lambda *given: tuple(each[1:-1] for each in right(*given)) | are missing
    15.2 | [cls_id], [-100] => [cls_id], [0] ;; [*aligned, -100] => [*aligned, 0] | [CLS] and [SEP] are not words
    15.2 | or [unknown] => | leaves no piece
    15.2 | or [unknown] => or [100] | Take the id of [UNK] from
    15.2 | return [*ids, sep_id], [*aligned, -100] => return [*ids, sep_id], [-100, *labels, *[-100] * (len(ids) - len(labels))] | The labels are all at the
    15.2 | [*aligned, -100] => [*aligned[1:], -100, -100] | the labels should be
    15.2 | return [*ids => labels.clear(); return [*ids | in place
    15.2 | lambda words, labels, t: right(words, [dict(zip(words, labels, strict=True))[word] for word in words], t) | its last occ
    15.2 | lambda words, labels, t: right(words, [labels[words.index(word)] for word in words], t) | its first occurrence
    15.2 | lambda *given: shortened(right(*given), 128) | . Do not truncate the text
    15.2 | lambda *given: shortened(right(*given), 512) | . Do not truncate the text
    15.2 | lambda words, labels, tokenizer: align(words, labels, tokenizer) | This calls the series' own `align`
    15.2 | lambda *given: right(*given)[0] | two lists
    15.2 | lambda words, labels, tokenizer: ([1], [-100]) | the tokenizer gives
    15.2 | lambda *given: tuple(map(torch.tensor, right(*given))) | lists
    15.3 | 1 | three numbers
    15.4 | torch.zeros(linear.out_features => torch.randn(linear.out_features ;; torch.randn(rank, => torch.zeros(rank, | Exchange them
    15.4 | torch.zeros(linear.out_features, rank) => torch.full((linear.out_features, rank), 0.1) | A new layer has to agree
    15.4 | linear.requires_grad_(False) => linear | still learns
    15.4 | torch.randn(rank, linear.in_features) => torch.ones(rank, linear.in_features) | the rank is 1
    15.4 | torch.randn(rank, linear.in_features) / rank => torch.zeros(rank, linear.in_features) | No gradient reaches the two matrices
    15.4 | self.linear(x) => self.linear(x.detach()) | The layers below get another gradient
    15.4 | alpha / rank => 1.0 | not scaled
    15.4 | alpha / rank => alpha | The product is multiplied by alpha
    15.4 | linear = deepcopy(self.linear) => linear = self.linear | has changed
    15.4 | linear.weight += self.scale * self.up @ self.down => pass | `merged` leaves out the product of
    15.4 | return linear\n => return linear.weight\n | nn.Linear
    15.4 | return linear\n => return None\n | return
    15.4 | nn.Linear(3, 3) | the class itself
"""
