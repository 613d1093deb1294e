"""Checks for the exercises of notebook 00."""

import torch

from exercises import Hint, as_positions, as_shape, exercise, expect, expect_function


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


TEXTS = {"S = 5 and T = 3": (5, 3), "S = 2 and T = 4": (2, 4), "S = 3 and T = 6": (3, 6)}


@exercise("0.3", points=2, sizes=TEXTS)
def masks_of_three_kinds(answer, S: int, T: int):
    """Check that the answer returns the masks (S, S), (T, T) and (T, S) of an encoder–decoder model."""
    expect_function(answer)
    found = answer(S, T)
    three = isinstance(found, (tuple, list)) and len(found) == 3
    expect(three, "Return three masks: the encoder's, the decoder's, and the one across.")
    own, causal, across = map(as_mask, found)
    expect(
        tuple(across.shape) != (S, T),
        "In the mask across, the decoder's tokens look and the encoder's are seen: T rows and S columns.",
    )
    sizes = {"The encoder's mask": (own, S, S), "The decoder's mask": (causal, T, T)}
    for name, (mask, rows, columns) in (sizes | {"The mask across": (across, T, S)}).items():
        hint = f"{name} should have the shape {(rows, columns)}, for S={S} and T={T}, not {tuple(mask.shape)}."
        expect(tuple(mask.shape) == (rows, columns), hint)
    check_three_masks(own, causal, across)
    return "Rows look, columns are seen."


def check_three_masks(own: torch.Tensor, causal: torch.Tensor, across: torch.Tensor) -> None:
    """Raise `Hint` unless only the causal mask hides anything, and it hides what follows."""
    square = torch.ones_like(causal)
    expect(not causal.equal(square.triu()), "The decoder's mask is the wrong way round: tokens see what follows them.")
    expect(
        not causal.equal(square.tril(-1)),
        "The decoder's mask hides each token from itself, and leaves the first one nothing to see.",
    )
    expect(not causal.equal(square), "The decoder's mask hides nothing: a token must not see what follows it.")
    expect(not causal.equal(square.triu(1)), "The decoder's mask has 1 where it should have 0: 1 means visible.")
    expect(causal.equal(square.tril()), "The decoder's mask should be 1 up to and including the token itself.")
    expect(own.all(), "The encoder reads both ways: its mask hides nothing.")
    expect(
        across.all(), "The whole source is known before the first word is written, so the mask across hides nothing."
    )


def as_mask(value) -> torch.Tensor:
    """Return the mask as floats; `Hint` unless it is a tensor of ones and zeros."""
    try:
        mask = torch.as_tensor(value).detach().cpu().float()
    except Exception:
        raise Hint(f"Each mask should be a tensor, but one is of type {type(value).__name__}.") from None
    expect(
        not mask.isinf().any(),
        "A mask with -inf is meant to be added to the scores. Here a mask consists of ones and zeros.",
    )
    expect(((mask == 0) | (mask == 1)).all(), "A mask contains only ones (visible) and zeros (hidden).")
    return mask
