"""Answers readers give to the exercises of notebook 01: right ones, and wrong ones with a word of the hint."""

from itertools import combinations, pairwise

import numpy as np
import torch

from tests.exercises import parts
from utils.tokenization import word_pieces


def fewest_by_cuts(word, vocab):
    for count in range(len(word)):
        for cuts in combinations(range(1, len(word)), count):
            edges = [0, *cuts, len(word)]
            pieces = [("##" if a else "") + word[a:b] for a, b in pairwise(edges)]
            if all(piece in vocab for piece in pieces):
                return tuple(pieces)
    return ["[UNK]"]


def fewest_recursive(word, vocab, prefix=""):
    ways = [[prefix + word]] if prefix + word in vocab else []
    for end in range(1, len(word)):
        rest = fewest_recursive(word[end:], vocab, "##")
        if prefix + word[:end] in vocab and rest != ["[UNK]"]:
            ways.append([prefix + word[:end], *rest])
    return min(ways, key=len, default=["[UNK]"])


def any_way(word, vocab, prefix=""):
    """The first way through, shortest pieces first: not the fewest."""
    for end in range(1, len(word) + 1):
        piece, rest = prefix + word[:end], word[end:]
        if piece in vocab:
            after = any_way(rest, vocab, "##") if rest else []
            if after != ["[UNK]"]:
                return [piece, *after]
    return ["[UNK]"]


def without_marks(word, vocab):
    return [piece.removeprefix("##") for piece in fewest_by_cuts(word, vocab)]


def empty_for_unknown(word, vocab):
    pieces = list(fewest_by_cuts(word, vocab))
    return [] if pieces == ["[UNK]"] else pieces


def ends_twice(word, vocab):
    *pieces, last = fewest_by_cuts(word, vocab)
    return [*pieces, last + word[-1]]


def keeps_known_start(word, vocab):
    pieces = list(fewest_by_cuts(word, vocab))
    return ["x", "[UNK]"] if pieces == ["[UNK]"] else pieces


def greedy_from_the_right(word, vocab):
    pieces, end = [], len(word)
    while end > 0:
        starts = range(end)
        start = next((a for a in starts if ("##" if a else "") + word[a:end] in vocab), None)
        if start is None:
            return ["[UNK]"]
        pieces.insert(0, ("##" if start else "") + word[start:end])
        end = start
    return pieces


def two_pieces_then_greedy(word, vocab):
    for cut in range(1, len(word)):
        if word not in vocab and {word[:cut], f"##{word[cut:]}"} <= vocab.keys():
            return [word[:cut], f"##{word[cut:]}"]
    return word_pieces(word, vocab)


def best_of_both_ends(word, vocab):
    ways = [greedy_from_the_right(word, vocab), two_pieces_then_greedy(word, vocab)]
    return min([way for way in ways if way != ["[UNK]"]], key=len, default=["[UNK]"])


def empties_the_vocabulary(word, vocab):
    pieces = list(fewest_by_cuts(word, vocab))
    vocab.clear()
    return pieces


def cut_letter_by_letter(word, vocab):
    pieces = []
    while word:
        size = len(word)
        while size and ("##" if pieces else "") + word[:size] not in vocab:
            size -= 1
        if not size:
            return ["[UNK]"]
        pieces.append(("##" if pieces else "") + word[:size])
        word = word[size:]
    return pieces


def cut_recursive(word, vocab, prefix=""):
    for end in range(len(word), 0, -1):
        if prefix + word[:end] in vocab:
            rest = cut_recursive(word[end:], vocab, "##") if word[end:] else []
            return ["[UNK]"] if "[UNK]" in rest else [prefix + word[:end], *rest]
    return ["[UNK]"]


def cut_through_the_list(word, vocab):
    """Looks through the whole vocabulary at each place: right, and slow."""
    rest, pieces = word, ()
    while rest != "##":
        rest = "##" + rest.removeprefix("##") if pieces else rest
        fitting = [piece for piece in vocab if rest.startswith(piece) and piece != "##"]
        if rest == "##" or not fitting:
            break
        pieces += (max(fitting, key=len),)
        rest = "##" + rest[len(pieces[-1]) :]
    return pieces if "".join(piece.removeprefix("##") for piece in pieces) == word else ("[UNK]",)


def cut_shortest_first(word, vocab):
    pieces, start = [], 0
    while start < len(word):
        ends = range(start + 1, len(word) + 1)
        end = next((e for e in ends if ("##" if start else "") + word[start:e] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(("##" if start else "") + word[start:end])
        start = end
    return pieces


def cut_without_marks_in_the_vocabulary(word, vocab):
    pieces, rest = [], word
    while rest:
        end = next((e for e in range(len(rest), 0, -1) if rest[:e] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(rest[:end])
        rest = rest[end:]
    return pieces


def cut_and_keep(word, vocab, unknown=("[UNK]",)):
    """Keeps the pieces before the place where nothing fits."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in vocab), None)
        if end is None:
            return [*pieces, *unknown]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def cut_for_ever(word, vocab):
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            if ("##" if start else "") + word[start:end] in vocab:
                pieces.append(("##" if start else "") + word[start:end])
                start = end
                break
    return pieces


def cut_never_a_single_letter(word, vocab):
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((e for e in range(len(word), start + 1, -1) if prefix + word[start:e] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


RIGHT = {
    "1.1": [cut_letter_by_letter, cut_recursive, cut_through_the_list, parts.word_pieces],
    "1.2": [(2, 9), [2, 9], torch.Size([2, 9]), torch.tensor([2, 9]), np.array([2.0, 9.0]), "(2, 9)", "2, 9"],
    "1.3": [fewest_by_cuts, fewest_recursive],
}
WRONG = {
    "1.1": [
        (word_pieces, "the series' own word_pieces"),
        (cut_shortest_first, "is longer"),
        (fewest_by_cuts, "BERT takes the longest piece and"),
        (cut_without_marks_in_the_vocabulary, ", but you return [UNK]. Do"),
        (lambda word, vocab: [piece.removeprefix("##") for piece in word_pieces(word, vocab)], "begins with ##"),
        (cut_and_keep, "whole* word"),
        (lambda word, vocab: cut_and_keep(word, vocab, ()), "whole* word"),
        (lambda word, vocab: " ".join(word_pieces(word, vocab)), "list of strings"),
        (cut_for_ever, "Your loop never ends. It has"),
        (cut_never_a_single_letter, "a single letter last"),
        (lambda word, vocab: [word], "not in `vocab`"),
        (lambda word, vocab: word_pieces(word, vocab)[:1], "does not spell"),
    ],
    "1.2": [
        ((2, 7), "special tokens"),
        ((2, 6), "special tokens"),
        ((2, 8), "Nearly. The longer row sets the"),
        ((4, 7), "one row, not two"),
        ((9, 2), "The numbers are right, but their"),
        ((2, 17), "padded to the longest"),
        ((2, 11), "the longest row gives S"),
        ("2 and 9", "two whole numbers"),
        (9, "two whole numbers"),
        ((2, float("nan")), "two whole numbers"),
    ],
    "1.3": [
        (word_pieces, "the series' own word_pieces"),
        (lambda word, vocab: word_pieces(word, vocab), "still greedy"),
        (any_way, "are enough"),
        (greedy_from_the_right, "the word can be built, but"),
        (two_pieces_then_greedy, "still greedy"),
        (best_of_both_ends, "from the pieces"),
        (empties_the_vocabulary, "changes the vocabulary"),
        (without_marks, "begins with ##"),
        (empty_for_unknown, "list of strings"),
        (ends_twice, "not in `vocab`"),
        (keeps_known_start, "the word cannot be built, so"),
        (lambda word, vocab: len(word), "list of strings"),
        (lambda word, vocab: ["[UNK]"], "the word can be built, but"),
    ],
}
