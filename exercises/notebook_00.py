"""Checks for the exercises of notebook 00."""

from exercises import as_positions, as_shape, exercise, expect


@exercise("0.1")
def shape_of_the_vectors(answer):
    """Check that the answer is the shape of the encoder's vectors of two texts of five and two words."""
    shape = as_shape(answer, "The answer")
    expect(
        shape not in ((2, 5, 384), (2, 2, 384)), "The special tokens are missing. Each text gets a [CLS] and a [SEP]."
    )
    expect(shape != (2, 6, 384), "Two tokens are added to each text: [CLS] in front and [SEP] at the end.")
    expect(shape != (2, 4, 384), "The shorter text is filled up to the length of the longer one.")
    expect(shape not in ((1, 11, 384), (1, 7, 384), (1, 9, 384)), "Two texts are two rows: B is 2.")
    expect(shape != (2, 7), "That is the shape of the ids. The encoder gives a vector for each of them.")
    expect(
        sorted(shape) != [2, 7, 384] or shape == (2, 7, 384),
        "The numbers are right, but their order is not: (B, S, H).",
    )
    expect(len(shape) == 3, "Give three numbers, (B, S, H).")
    expect(shape[2] == 384, "The last number is H. How many numbers does a vector of this encoder have?")
    expect(
        shape == (2, 7, 384),
        "(B, S, H): how many texts are there, and how many tokens does the longer one have, with [CLS] and [SEP]?",
    )
    return "The shorter text has 4 tokens, and three that only fill it up."


@exercise("0.2")
def who_reacts(answer):
    """Check the positions that react to token 2: of six in an encoder, of six in a decoder, of three across."""
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give three lists of positions, one for each kind of model.")
    encoder_only, decoder_only, across = map(positions, answer, (6, 6, 3))
    expect(encoder_only != [2, 3, 4, 5], "An encoder has no causal mask: earlier positions see token 2 as well.")
    expect(
        encoder_only != [0, 1, 3, 4, 5],
        "Encoder-only: the position itself changes, too, because it sees its own token.",
    )
    expect(
        encoder_only == [0, 1, 2, 3, 4, 5], "Encoder-only: which positions see token 2, if every token sees all six?"
    )
    expect(
        decoder_only != [0, 1, 2], "It is the other way round: position 2 sees 0 and 1. Which positions see position 2?"
    )
    expect(decoder_only != [3, 4, 5], "Decoder-only: position 2 sees its own token as well.")
    expect(decoder_only != [0, 1, 2, 3, 4, 5], "Decoder-only: positions 0 and 1 cannot see what comes later.")
    expect(decoder_only == [2, 3, 4, 5], "Decoder-only: look at column 2 of the causal mask. Which rows have a 1?")
    expect(
        across not in ([2], [0, 1]),
        "The source and the written text are different texts, so the causal mask does not apply across them.",
    )
    expect(
        across != [0, 1, 2, 3, 4, 5],
        "The question is about the decoder's output, and the decoder has only three positions so far.",
    )
    expect(across == [0, 1, 2], "Encoder–decoder: which of the three written tokens see the source?")
    return "Each list is column 2 of a mask."


def positions(answer, count: int) -> list[int]:
    """Return the positions of an answer in order, else a `Hint`."""
    found = as_positions(answer, count)
    expect(6 not in found, "Positions are counted from 0, so six tokens have the positions 0 to 5.")
    return found
