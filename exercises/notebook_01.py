"""Checks for the exercises of notebook 01."""

import random

from exercises.framework import Hint, exercise, expect, expect_function, from_text
from exercises.prediction import prediction
from utils.tokenization import word_pieces

TOY = "time like fl f ##l ##y ##ies"
CUT = (  # words, and the tokens of their vocabulary: longest first, ## behind the first piece, nothing kept of [UNK]
    *((word, TOY) for word in ("time", "flies", "fly", "flip", "timely", "f", "x")),
    ("flies", "flie fl ##ies"),
    ("ies", "##ies ##i"),
    ("flies", "fl ies f"),
    ("abcdef", "abc ab ##d ##e ##f ##cdef"),
    ("lala", "la ##la ##lala"),
)


class Vocabulary(dict):
    """A vocabulary that is asked so often only by a loop without an end."""

    asked = 0

    def __contains__(self, piece) -> bool:
        self.asked += 1
        hint = "Your loop never ends. It has to return where no piece fits, and at the end of the word."
        expect(self.asked < 2000, hint)
        return super().__contains__(piece)

    def get(self, piece, default=None):
        """Return the id of a piece, or the default."""
        return super().get(piece, default) if piece in self else default


@exercise("1.1", points=4, part="word_pieces")
def cut_a_word(answer):
    """Check that the answer cuts a word by the longest match from the left: chosen words, and 300 random ones."""
    expect_function(answer)
    for word, tokens in (*CUT, *random_words()):
        vocab = {token: token_id for token_id, token in enumerate(["[UNK]", *tokens.split()])}
        given, wanted = Vocabulary(vocab), word_pieces(word, vocab)
        pieces = list_of_strings(answer(word, given))
        check_longest_match(word, vocab, pieces, wanted)
        expect(given == vocab, "Your function changes the vocabulary. Leave it as it is.")
    return "The longest piece first, at every place."


def check_longest_match(word: str, vocab: dict[str, int], pieces: list[str], wanted: list[str]) -> None:
    """Raise `Hint` unless the pieces are the wanted ones."""
    case = f"{word!r} from the pieces {' '.join(vocab).removeprefix('[UNK] ')}"
    known = all(piece in vocab for piece in pieces)
    bare = [piece.removeprefix("##") for piece in pieces]
    marks = [piece.startswith("##") for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    builds = known and marks and "".join(bare) == word
    rule = "a piece that continues a word begins with ##, the first one does not."
    expect(marks or "".join(bare) != word, f"{case}: {rule} You return {pieces}.")
    expect(known, f"{case}: {pieces} contains a piece that is not in `vocab`.")
    if wanted == ["[UNK]"]:
        greedy = "BERT takes the longest piece and never goes back; then no piece fits, so the result is [UNK]."
        expect(not builds, f"{case}: {greedy} You return {pieces}.")
        lost = 'at one point no piece fits, so the *whole* word becomes ["[UNK]"], including the pieces before.'
        expect(pieces == wanted, f"{case}: {lost} You return {pieces}.")
        return
    expect(
        pieces != ["[UNK]"],
        f"{case}: it can be built from {wanted}, but you return [UNK]. Do you look up pieces with ## in front, after "
        "the first one and only there? Do you try the whole rest first, and a single letter last?",
    )
    expect(builds, f"{case}: {pieces} does not spell the word.")
    for found, longest in zip(pieces, wanted, strict=False):
        longer = f"{case}: you take {found}, but {longest} fits there, too, and is longer. You return {pieces}."
        expect(found == longest, longer)


def two_numbers(answer) -> tuple[int, int]:
    """Return the answer as two whole numbers, from a tuple, list or tensor; else a `Hint`."""
    answer = from_text(answer)
    try:
        numbers = tuple(float(number) for number in answer)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 2 or isinstance(answer, (str, dict)) or not all(number.is_integer() for number in numbers):
        raise Hint("Answer with two whole numbers, such as (3, 4).")
    return int(numbers[0]), int(numbers[1])


prediction(
    "1.2",
    two_numbers,
    """
    = (2, 9)
    (2, 7) | The special tokens or the pairs are missing: a row is [CLS] text [SEP] pair [SEP].
    (2, 6) | The special tokens are missing: a row is [CLS] text [SEP] pair [SEP].
    (2, 8) | Nearly. The longer row sets the width, and the second text has its own [SEP] at the end.
    if answer[0] == 4
    (4, 7) | A pair is one row, not two, so there are as many rows as pairs.
    (9, 2) | The numbers are right, but their order is not: rows come first, (B, S).
    (2, 17) | Rows are padded to the longest one, not joined into one row.
    (2, 11) | Count [CLS] text [SEP] pair [SEP] for each row; the longest row gives S.
    """,
    remark="Row 1 has 9 ids; row 2 has 8 and one [PAD].",
)


def random_words() -> list[tuple[str, str]]:
    """Return random words of five to eight letters a, b and c, each with its own vocabulary."""
    generator, cases = random.Random(14), []
    for _ in range(300):
        word = "".join(generator.choices("abc", k=generator.randint(5, 8)))
        spans = [(a, b) for a in range(len(word)) for b in range(a + 1, min(a + 5, len(word)) + 1)]
        chosen = generator.sample(spans, k=len(spans) // 2)
        tokens = dict.fromkeys(("##" if a else "") + word[a:b] for a, b in sorted(chosen))
        cases.append((word, " ".join(tokens)))
    return cases


def list_of_strings(result) -> list[str]:
    """Return the result if it is a list or tuple of strings, not empty; else a `Hint`."""
    fits = isinstance(result, (list, tuple)) and result and all(isinstance(item, str) for item in result)
    if not fits:
        raise Hint(f"Return the pieces as a list of strings, such as ['fl', '##y']; it returns {result!r}.")
    return list(result)
