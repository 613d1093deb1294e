"""Answers readers give to the exercises of notebook 02: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.embeddings import Embeddings
from utils.support.checkpoint import load_config

H, V = load_config().hidden_size, load_config().vocab_size


def token_by_token(x, gamma, beta, eps):
    result = torch.empty_like(x)
    for b in range(x.size(0)):
        for s in range(x.size(1)):
            centred = x[b, s] - x[b, s].sum() / len(x[b, s])
            result[b, s] = centred / (centred.dot(centred) / len(centred) + eps) ** 0.5
    return result * gamma + beta


def in_numpy(x, gamma, beta, eps):
    array = x.numpy()
    centred = array - array.mean(-1, keepdims=True)
    return centred / np.sqrt(array.var(-1, keepdims=True) + eps) * gamma.numpy() + beta.numpy()


def by_module(x, gamma, beta, eps):
    norm = nn.LayerNorm(x.shape[-1], eps=eps)
    norm.weight.data, norm.bias.data = gamma, beta
    return norm(x)


def by_ids(words, table):
    return words + F.embedding(torch.arange(words.size(1)), table)


def by_one_hot(words, table):
    return words + F.one_hot(torch.arange(words.size(1)), len(table)).float() @ table


def embed(
    word=lambda self, ids: self.word_embeddings(ids),
    place=lambda self, ids: self.position_embeddings.weight[: ids.size(1)],
    kind=lambda self, types: self.token_type_embeddings(types),
    norm=lambda self, x: self.layer_norm(x),
    last=lambda self, x: self.dropout(x),
):
    """The forward of `Embeddings`, a step of which the cases below get wrong."""
    return lambda self, ids, types: last(self, norm(self, word(self, ids) + place(self, ids) + kind(self, types)))


RIGHT = {
    "2.1": [
        (4, 9, H),
        [4, 9, H],
        torch.Size([4, 9, H]),
        torch.tensor([4, 9, H]),
        np.array([4, 9, H]),
        (4.0, 9, H),
        f"(4, 9, {H})",
    ],
    "2.2": [
        by_ids,
        by_one_hot,
        lambda words, table: words.numpy() + table.numpy()[: words.shape[1]],
        lambda words, table: words + table[: words.shape[1]].unsqueeze(0),
        lambda words, table: torch.stack([row + table[: len(row)] for row in words]),
    ],
    "2.3": [
        token_by_token,
        in_numpy,
        lambda x, g, b, eps: (
            (x - x.mean(-1, keepdim=True)) * (x.var(-1, correction=0, keepdim=True) + eps).rsqrt() * g + b
        ),
        lambda x, g, b, eps: torch.addcmul(
            b, g, (x - x.mean(-1)[..., None]) / (x.var(-1, False)[..., None] + eps) ** 0.5
        ),
    ],
    "2.4": [embed(), embed(place=lambda self, ids: self.position_embeddings(torch.arange(ids.size(1))))],
    "2.5": [
        23_837_184,
        23_837_184.0,
        (30_522 + 512 + 2 + 2) * 768,
        torch.tensor(23_837_184),
        np.int64(23_837_184),
        np.array([23_837_184]),
        "23,837,184",
        "23,837,184 parameters",
    ],
}

WRONG = {
    "2.1": [
        ((4, 9), "ids"),
        ((9, H), "batch axis"),
        ((9, 4, H), "first"),
        ((4, 9, V), "one-hot"),
        ((4, 9, 3 * H), "added"),
        ((4, 9, 9, H), "The shape has three sizes, (B"),
        ((4, 11, H), "padding"),
        ((4, 9, H + 1), "hidden_size"),
        (4 * 9 * H, "int"),
        (("B", "S", "H"), "the text “B”"),
        (torch.zeros(4, 9), "the shape of the ids"),
    ],
    "2.2": [
        (lambda words, table: words, "missing"),
        (lambda words, table: words + table[:5], "S tokens"),
        (lambda words, table: words + table[:5] if words.size(1) == 5 else words, "missing"),
        (lambda words, table: table[: words.size(1)], "These are only the position vectors"),
        (lambda words, table: table[: words.size(1)].expand_as(words), "These are only the position vectors"),
        (lambda words, table: words + table[: len(words), None], "batch"),
        (lambda words, table: words + table[1 : words.size(1) + 1], "starts with 1"),
        (lambda words, table: words + table[: words.size(1)].flip(0), "reverse"),
        (lambda words, table: words + table[-words.size(1) :], "last rows"),
        (lambda words, table: words + table[words.size(1)], "same vector"),
        (lambda words, table: words + table.mean(0), "same vector"),
        (lambda words, table: words * table[: words.size(1)], "row s"),
        (lambda words, table: words + table, "S tokens"),
        (lambda words, table: torch.cat([words, table[:5].expand_as(words)], -1), "shape"),
    ],
    "2.3": [
        (by_module, "torch's own norm"),
        (lambda x, g, b, eps: F.layer_norm(x, x.shape[-1:], g, b, eps), "torch's own norm"),
        (lambda x, g, b, eps: torch.native_layer_norm(x, x.shape[-1:], g, b, eps)[0], "torch's own norm"),
        (lambda x, g, b, eps: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * g + b, "Subtract each token"),
        (lambda x, g, b, eps: (x - x.mean(-1)) / x.std(-1) * g + b, "keepdim=True"),
        (lambda x, g, b, eps: x.mean(-1), "shape"),
        (lambda x, g, b, eps: x.softmax(-1), "Subtract each token"),
    ],
    "2.4": [
        (embed(place=lambda self, ids: 0), "positions are missing"),
        (embed(kind=lambda self, types: 0), "token types are missing"),
        (embed(word=lambda self, ids: 0), "words are missing"),
        (embed(place=lambda self, ids: 0, kind=lambda self, types: 0), "These are only the words. Add"),
        (embed(norm=lambda self, x: x), "LayerNorm is missing"),
        (embed(norm=lambda self, x: F.layer_norm(x, x.shape[-1:])), "without γ and β"),
        (embed(norm=lambda self, x: self.layer_norm(self.layer_norm(x))), "normalised twice"),
        (embed(last=lambda self, x: x), "Nothing is dropped in training. Dropout"),
        (
            embed(norm=lambda self, x: self.layer_norm(self.dropout(x)), last=lambda self, x: x),
            "Dropout comes before LayerNorm",
        ),
        (
            embed(norm=lambda self, x: F.layer_norm(x, x.shape[-1:], *self.layer_norm.parameters(), eps=1e-12)),
            "self.layer_norm is never called",
        ),
        (embed(last=lambda self, x: F.dropout(x, self.dropout.p, self.training)), "self.dropout is never called"),
        (
            embed(kind=lambda self, types: self.token_type_embeddings.weight[types]),
            "self.token_type_embeddings is never called",
        ),
        (embed(last=lambda self, x: F.dropout(x, 0.5)), "Some numbers are 0 in evaluation"),
        (embed(last=lambda self, x: F.dropout(x, 0.1, self.training)), "self.dropout comes last"),
        (embed(last=lambda self, x: self.dropout(self.dropout(x))), "In training, self.dropout comes last, and"),
        (embed(place=lambda self, ids: self.position_embeddings.weight[1 : ids.size(1) + 1]), "starts with 1"),
        (embed(place=lambda self, ids: self.position_embeddings.weight[0]), "gets position 0"),
        (embed(place=lambda self, ids: self.position_embeddings(ids)), "This looks up positions by id"),
        (
            embed(place=lambda self, ids: self.position_embeddings.weight[: len(ids), None]),
            "This uses the index in the",
        ),
        (embed(place=lambda self, ids: self.position_embeddings.weight), "the first S tokens only"),
        (embed(place=lambda self, ids: self.position_embeddings.weight[:5]), "but not for 3 texts of 4 tokens"),
        (embed(kind=lambda self, types: self.token_type_embeddings.weight[0]), "All token types are treated as"),
        (
            lambda self, ids, types: self.dropout(
                self.layer_norm(self.word_embeddings(ids))
                + self.layer_norm(self.position_embeddings.weight[: ids.size(1)])
                + self.layer_norm(self.token_type_embeddings(types))
            ),
            "Each table is normalised separately",
        ),
        (
            lambda self, ids, types: torch.cat([self.word_embeddings(ids), self.token_type_embeddings(types)], -1),
            "shape",
        ),
        (embed(norm=lambda self, x: self.layer_norm(x.detach())), "Remove any detach"),
        (lambda self, ids, types: embed()(self, ids, types.zero_()), "All token types are treated as"),
        (Embeddings.forward, "the series' own Embeddings.forward"),
    ],
    "2.5": [
        (23_835_648, "token types"),
        (23_836_416, "two vectors"),
        (23_440_896, "word vectors"),
        (23_443_968, "position"),
        (23_442_432, "position"),
        (23_835_650, "2 · H"),
        (23_834_112, "token-type"),
        (23.837184, "millions"),
        (109_482_240, "Three tables and a LayerNorm have"),
        ((30_522 + 512 + 2 + 2) * 384, "H = 384"),
        (23_836_416, "[PAD] has a row"),
        ("23 million", "the text “23 million”"),
        ((30_522, 768), "tuple"),
        (True, "bool"),
    ],
}
