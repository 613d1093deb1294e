"""Checks for the exercises of notebook 00."""

from functools import partial

from exercises.framework import Hint, as_letter, as_positions, exercise, expect
from exercises.heads import read_weights
from exercises.prediction import prediction

TITLES = "abc"


@exercise("0.1")
def last_word_that_breaks_our_title(answer):
    """Check a last word that takes "it" from the animal, but not to the street, and what survives of a title."""
    try:
        word, title = answer
        word = word.strip(" .")
    except (TypeError, ValueError, AttributeError):
        raise Hint("Give two things: a last word, as a text, and the letter of a title.") from None
    weights, tokens = read_weights(f"The animal didn't cross the street because it was too {word[:60]}.")
    again = any(tokens.count(name) > 1 for name in ("it", "animal", "street"))
    expect(word and not again, "Give one word that takes the place of “tired”.")
    expect("[UNK]" not in tokens, "[UNK] is what we tried. Find a word.")
    row = weights[3, 1, tokens.index("it")]
    animal, street = (round(row[tokens.index(noun)].item(), 2) for noun in ("animal", "street"))
    given = f"With “{word}”, “it” gives “animal” {animal:.2f} and “street” {street:.2f}."
    expect(animal <= 0.4, f"{given} Find a word with which “animal” gets 0.40 or less.")
    expect(street <= 0.1, f"{given} So the ribbon may have moved with the meaning. Find a word that fits no street.")
    title = as_letter(title, TITLES)
    expect(title != "b", "Title b falls with your own word: it takes as much away, and does it fit the street?")
    expect(title == "a", "Title c falls with “narrow”: it describes the street, and “animal” still gets more.")
    return f"{given} A smaller title, and a true one."


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
