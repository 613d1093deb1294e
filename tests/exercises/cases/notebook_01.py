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


def any_way(word, vocab, prefix=""):
    """The first way through, shortest pieces first: not the fewest."""
    for end in range(1, len(word) + 1):
        piece, rest = prefix + word[:end], word[end:]
        if piece in vocab:
            after = any_way(rest, vocab, "##") if rest else []
            if after != ["[UNK]"]:
                return [piece, *after]
    return ["[UNK]"]


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


RIGHT = {"1.1": "cut_through_the_list", "1.2": "'2, 9'", "1.3": "fewest_by_cuts"}
WRONG = {
    "1.1": """
        word_pieces | the series' own word_pieces
        range(len(word), start, -1) => range(start + 1, len(word) + 1) | is longer
        fewest_by_cuts | BERT takes the longest piece and
        "##" + word[start:end] => word[start:end] | , but you return [UNK]. Do
        lambda word, vocab: [piece.removeprefix("##") for piece in right(word, vocab)] | begins with ##
        return ["[UNK]"] => return [*pieces, "[UNK]"] | whole* word
        return ["[UNK]"] => return pieces | whole* word
        return pieces => return " ".join(pieces) | list of strings
        return ["[UNK]"] => pass | Your loop never ends. It has
        range(len(word), start, -1) => range(len(word), start + 1, -1) | a single letter last
        lambda word, vocab: [word] | not in `vocab`
        lambda word, vocab: right(word, vocab)[:1] | does not spell
    """,
    "1.2": """
        "2 and 9" | two whole numbers
        9 | two whole numbers
        (2, float("nan")) | two whole numbers
    """,
    "1.3": """
        word_pieces | the series' own word_pieces
        lambda word, vocab: word_pieces(word, vocab) | still greedy
        any_way | are enough
        greedy_from_the_right | the word can be built, but
        two_pieces_then_greedy | still greedy
        best_of_both_ends | from the pieces
        lambda word, vocab: (right(word, vocab), vocab.clear())[0] | changes the vocabulary
        lambda word, vocab: [piece.removeprefix("##") for piece in right(word, vocab)] | begins with ##
        best.get(len(word), ["[UNK]"]) => best.get(len(word), []) | list of strings
        lambda word, vocab: [*right(word, vocab)[:-1], right(word, vocab)[-1] + word[-1]] | not in `vocab`
        best.get(len(word), ["[UNK]"]) => best.get(len(word), ["x", "[UNK]"]) | the word cannot be built, so
        lambda word, vocab: len(word) | list of strings
        lambda word, vocab: ["[UNK]"] | the word can be built, but
    """,
}
