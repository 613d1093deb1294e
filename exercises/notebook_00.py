"""Checks for the exercises of notebook 00."""

import torch

from exercises import Hint, exercise, expect

FOLLOWERS = [3, 2, 5, 4, 0, 1]  # the best next word for each last word; the end token, 0, would call for 3


@exercise("0.1")
def who_reacts(answer):
    """The positions that react to token 2: of six in an encoder, of six in a decoder, of three across."""
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give three lists of positions, one for each kind of model.")
    encoder_only, decoder_only, across = map(positions, answer)
    expect(
        encoder_only != [2, 3, 4, 5], "An encoder has no causal mask: earlier positions see token 2 as well."
    )
    expect(
        encoder_only != [0, 1, 3, 4, 5],
        "Encoder-only: the position itself changes too, it sees its own token.",
    )
    expect(encoder_only == [0, 1, 2, 3, 4, 5], "Encoder-only: who sees token 2, if every token sees all six?")
    expect(
        decoder_only != [0, 1, 2],
        "Turned round: 0 and 1 are what position 2 sees. Who sees position 2?",
    )
    expect(decoder_only != [3, 4, 5], "Decoder-only: position 2 sees its own token as well.")
    expect(decoder_only != [0, 1, 2, 3, 4, 5], "Decoder-only: positions 0 and 1 cannot see what comes later.")
    expect(decoder_only == [2, 3, 4, 5], "Decoder-only: column 2 of the causal mask; which rows have a 1?")
    expect(
        across not in ([2], [0, 1]),
        "Source and written text are different texts: the causal mask does not apply across.",
    )
    expect(
        across != [0, 1, 2, 3, 4, 5],
        "The decoder has only three positions so far, and its output is asked for.",
    )
    expect(across == [0, 1, 2], "Encoder–decoder: which of the three written tokens see the source?")
    return "Each list is column 2 of a mask."


def positions(answer) -> list[int]:
    """A list, tuple, set, range or tensor of positions in order, else a `Hint`."""
    try:
        numbers = sorted({float(position) for position in answer})
    except (TypeError, ValueError, RuntimeError):
        raise Hint(
            f"Give each answer as a list of positions such as [0, 3], not as a {type(answer).__name__}."
        ) from None
    expect(all(number == int(number) for number in numbers), "Positions are whole numbers, counted from 0.")
    expect(6 not in numbers, "Positions are counted from 0, so six tokens have the positions 0 to 5.")
    return [int(number) for number in numbers]


@exercise("0.2")
def masks_of_three_kinds(answer):
    """The answer returns the masks (S, S), (T, T) and (T, S) of an encoder–decoder model."""
    expect(callable(answer), "Write a function of S and T.")
    for S, T in ((5, 3), (2, 4)):
        found = answer(S, T)
        three = isinstance(found, (tuple, list)) and len(found) == 3
        expect(three, "Return three masks: the encoder's, the decoder's, and the one across.")
        own, causal, across = map(as_mask, found)
        expect(
            tuple(across.shape) != (S, T),
            "Across, the decoder's tokens ask and the encoder's are seen: T rows, S columns.",
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
    expect(not causal.equal(square.triu()), "The decoder's mask is turned round: tokens see what follows.")
    expect(
        not causal.equal(square.tril(-1)),
        "The decoder's mask hides each token from itself, and leaves the first one nothing to see.",
    )
    expect(
        not causal.equal(square), "The decoder's mask hides nothing: a token must not see what follows it."
    )
    expect(
        not causal.equal(square.triu(1)), "The decoder's mask has 1 where it should have 0: 1 means visible."
    )
    expect(causal.equal(square.tril()), "The decoder's mask should be 1 up to and including the own token.")
    expect(own.all(), "The encoder reads both ways: its mask hides nothing.")
    expect(across.all(), "The source is all there before the first word is written: hide nothing across.")


def as_mask(value) -> torch.Tensor:
    """The mask as floats; a `Hint` for what is no tensor of ones and zeros."""
    try:
        mask = torch.as_tensor(value).detach().cpu().float()
    except Exception:
        raise Hint(f"Each mask should be a tensor, but one is of type {type(value).__name__}.") from None
    expect(
        not mask.isinf().any(),
        "With -inf it is ready to be added to the scores. Here a mask has ones and zeros.",
    )
    expect(((mask == 0) | (mask == 1)).all(), "A mask has ones (visible) and zeros (hidden) only.")
    return mask


@exercise("0.3")
def greedy_batch(answer):
    """The answer writes a batch greedily; rows end at different times, or never."""
    expect(callable(answer), "Write a function of next_scores, ids, end and limit.")
    for beginnings, limit in (
        ([[5, 4], [2, 3]], 7),
        ([[2, 0 + 3], [3, 1]], 6),
        ([[1, 5, 1]], 9),
        ([[1], [2]], 4),
    ):
        ids = torch.tensor(beginnings)
        wanted = write_batch(ids, limit)
        found = as_ids(answer(NextScores(), ids.clone(), 0, limit))
        hints = {
            "Rows that have ended go on writing: fill them up with `end`.": write_batch(
                ids, limit, fill=False
            ),
            "It stops when the first row ends: go on until all have ended.": write_batch(
                ids, limit, stop=any
            ),
            "Every row has ended before the limit: stop there.": write_batch(
                ids, limit, stop=lambda rows: False
            ),
            "The limit counts the beginning as well.": write_batch(ids, limit + ids.size(1)),
            "The beginning belongs to what is returned.": wanted[:, ids.size(1) :],
            "It goes beyond the limit by one token: look before you write.": write_batch(ids, limit + 1),
            "It stops one token short of the limit.": write_batch(ids, limit - 1),
            "It takes the word with the lowest score.": write_batch(ids, limit, sign=-1),
        }
        for hint, wrong in hints.items():
            expect(wanted.equal(wrong) or not found.equal(wrong), hint)
        shown = f"From {beginnings}, with limit {limit}, it should write {wanted.tolist()}"
        expect(found.equal(wanted), f"{shown}, not {found.tolist()}.")
    return "One run of the model serves all rows."


class NextScores:
    """A decoder made by hand: scores of the next word (B, V) that depend on the last word of each row (B, S)."""

    def __init__(self):
        self.calls = 0

    def __call__(self, ids):
        """The scores; a `Hint` for ids that are no batch, and where the loop does not end."""
        self.calls += 1
        expect(self.calls <= 50, "The loop does not stop: end it when the rows are `limit` tokens long.")
        batch = isinstance(ids, torch.Tensor) and ids.dim() == 2
        expect(batch, "next_scores takes the ids of all rows at once, a tensor (B, S).")
        best = torch.tensor(FOLLOWERS)[ids[:, -1]]
        return torch.nn.functional.one_hot(best, 6) * 3.0 - torch.arange(6) * 0.1 - 5.0  # (B, V), all below 0


def write_batch(ids: torch.Tensor, limit: int, fill=True, stop=all, sign=1) -> torch.Tensor:
    """Greedy writing, and its typical variants: without filling up, with another rule to stop, with other scores."""
    rows, ended = ids.tolist(), [False] * len(ids)
    next_scores = NextScores()
    while len(rows[0]) < limit and not stop(ended):
        best = (sign * next_scores(torch.tensor(rows))).argmax(dim=-1).tolist()
        for number, row in enumerate(rows):
            row.append(0 if fill and ended[number] else best[number])
            ended[number] = ended[number] or row[-1] == 0
    return torch.tensor(rows)


def as_ids(value) -> torch.Tensor:
    """The ids as a tensor (B, S), else a `Hint`."""
    try:
        ids = torch.as_tensor(value).detach().cpu().long()
    except Exception:
        raise Hint(
            f"Return the ids as one tensor (B, S), but it is a {type(value).__name__} that makes none."
        ) from None
    expect(ids.dim() == 2, f"Return the ids of all rows, (B, S), but they have the shape {tuple(ids.shape)}.")
    return ids
