"""Checks for the exercises of notebook 00."""

from functools import partial

from exercises.framework import as_positions, as_shape, expect
from exercises.prediction import prediction

prediction(
    "0.1",
    as_shape,
    """
    = (2, 7, 384)
    (2, 5, 384)
    (2, 2, 384) | The special tokens are missing. Each text gets a [CLS] and a [SEP].
    (2, 6, 384) | Two tokens are added to each text: [CLS] in front and [SEP] at the end.
    (2, 4, 384) | The shorter text is filled up to the length of the longer one.
    (1, 11, 384)
    (1, 7, 384)
    (1, 9, 384) | Two texts are two rows: B is 2.
    (2, 7) | That is the shape of the ids. The encoder gives a vector for each of them.
    if sorted(answer) == [2, 7, 384]
    (7, 2, 384) | The numbers are right, but their order is not: (B, S, H).
    if len(answer) != 3
    (2, 7, 384, 1) | Give three numbers, (B, S, H).
    if answer[2] != 384
    (2, 7, 768) | The last number is H. How many numbers does a vector of this encoder have?
    (3, 7, 384) | (B, S, H): how many texts are there, and how many tokens does the longer one have, with [CLS] and
        [SEP]?
    """,
    remark="The shorter text has 4 tokens, and three that only fill it up.",
)


def positions(answer, count: int) -> list[int]:
    """Return the positions of an answer in order, else a `Hint`."""
    found = as_positions(answer, count)
    expect(6 not in found, "Positions are counted from 0, so six tokens have the positions 0 to 5.")
    return found


prediction(
    "0.2",
    [partial(positions, count=count) for count in (6, 6, 3)],
    """
    = [0, 1, 2, 3, 4, 5]
    [2, 3, 4, 5] | An encoder has no causal mask: earlier positions see token 2 as well.
    [0, 1, 3, 4, 5] | Encoder-only: the position itself changes, too, because it sees its own token.
    [2] | Encoder-only: which positions see token 2, if every token sees all six?
    = [2, 3, 4, 5]
    [0, 1, 2] | It is the other way round: position 2 sees 0 and 1. Which positions see position 2?
    [3, 4, 5] | Decoder-only: position 2 sees its own token as well.
    [0, 1, 2, 3, 4, 5] | Decoder-only: positions 0 and 1 cannot see what comes later.
    [2] | Decoder-only: look at column 2 of the causal mask. Which rows have a 1?
    = [0, 1, 2]
    [2]
    [0, 1] | The source and the written text are different texts, so the causal mask does not apply across them.
    [0, 1, 2, 3, 4, 5] | The question is about the decoder's output, and the decoder has only three positions so far.
    [] | Encoder–decoder: which of the three written tokens see the source?
    """,
    ask="Give three lists of positions, one for each kind of model.",
    remark="Each list is column 2 of a mask.",
)
