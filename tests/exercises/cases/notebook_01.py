"""Answers to the exercises of notebook 01 that its checks do not declare."""

from itertools import combinations, pairwise

from utils.tokenization import word_pieces


def fewest_by_cuts(word, vocab):
    for count in range(len(word)):
        for cuts in combinations(range(1, len(word)), count):
            edges = [0, *cuts, len(word)]
            pieces = [("##" if a else "") + word[a:b] for a, b in pairwise(edges)]
            if all(piece in vocab for piece in pieces):
                return tuple(pieces)
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


RIGHT = r"""
    1.1 | cut_through_the_list
    1.2 | '2 × 9'
"""
WRONG = r"""
    1.1 | word_pieces | the series' own word_pieces
    1.1 | range(len(word), start, -1) => range(start + 1, len(word) + 1) | is longer
    1.1 | fewest_by_cuts | BERT takes the longest piece and
    1.1 | "##" + word[start:end] => word[start:end] | , but you return [UNK]. Do
    1.1 | lambda word, vocab: [piece.removeprefix("##") for piece in right(word, vocab)] | begins with ##
    1.1 | if piece in vocab => if piece in vocab or piece.removeprefix("##") in vocab | fl ies f: ['fl', '##ies'] contains a piece that is not in `vocab`
    1.1 | return ["[UNK]"] => return [*pieces, "[UNK]"] | whole* word
    1.1 | return ["[UNK]"] => return pieces | whole* word
    1.1 | return pieces => return " ".join(pieces) | list of strings
    1.1 | return ["[UNK]"] => pass | Your loop never ends. It has
    1.1 | range(len(word), start, -1) => range(len(word), start + 1, -1) | a single letter last
    1.1 | lambda word, vocab: [word] | not in `vocab`
    1.1 | lambda word, vocab: right(word, vocab)[:1] | does not spell
    1.2 | "2 and 9" | two whole numbers
    1.2 | (2, float("nan")) | two whole numbers
"""
