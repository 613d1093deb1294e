"""Checks for the exercises of notebook 00."""

import torch

from exercises import Hint, as_positions, exercise, expect, expect_function

BATCHES = (  # beginnings, the end token, the limit: rows end at different times, never, or have no room at all
    ([[5, 4], [2, 3]], 0, 9),
    ([[3, 1, 2], [4, 4, 1]], 5, 8),
    ([[1, 5, 1]], 2, 9),
    ([[1], [2], [4]], 0, 4),
    ([[2, 3, 4], [1, 1, 3]], 0, 3),
)


@exercise("0.1")
def who_reacts(answer):
    """The positions that react to token 2: of six in an encoder, of six in a decoder, of three across."""
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give three lists of positions, one for each kind of model.")
    encoder_only, decoder_only, across = map(positions, answer, (6, 6, 3))
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


def positions(answer, count: int) -> list[int]:
    """The positions of an answer in order, else a `Hint`."""
    found = as_positions(answer, count)
    expect(6 not in found, "Positions are counted from 0, so six tokens have the positions 0 to 5.")
    return found


TEXTS = {"S = 5 and T = 3": (5, 3), "S = 2 and T = 4": (2, 4), "S = 3 and T = 6": (3, 6)}


@exercise("0.2", points=2, sizes=TEXTS)
def masks_of_three_kinds(answer, S: int, T: int):
    """The answer returns the masks (S, S), (T, T) and (T, S) of an encoder–decoder model."""
    expect_function(answer)
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
        hint = (
            f"{name} should have the shape {(rows, columns)}, for S={S} and T={T}, not {tuple(mask.shape)}."
        )
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


@exercise("0.3", points=3)
def greedy_batch(answer):
    """The answer writes a batch greedily; rows end at different times, or never, and not always with the same token."""
    expect_function(answer)
    for beginnings, end, limit in BATCHES:
        ids = torch.tensor(beginnings)
        given = ids.clone()
        found = as_ids(answer(NextScores(ids.size(1), limit), given, end, limit))
        wanted = write_batch(ids, end, limit)
        for hint, wrong in wrong_batches(ids, end, limit, wanted).items():
            expect(wanted.equal(wrong) or not found.equal(wrong), hint)
        shown = f"From {beginnings}, with end {end} and limit {limit}, it should write {wanted.tolist()}"
        expect(found.equal(wanted), f"{shown}, not {found.tolist()}.")
        expect(given.equal(ids), "It changes the ids that it was given: make new ones, as torch.cat does.")
    return "One run of the model serves all rows."


def wrong_batches(ids: torch.Tensor, end: int, limit: int, wanted: torch.Tensor) -> dict[str, torch.Tensor]:
    """Hints for the usual mistakes, each with what it writes."""
    beginning = ids.size(1)
    one_more = write_batch(ids, end, beginning + 1) if beginning >= limit else wanted
    return {
        "Rows that have ended go on writing: fill them up with `end`.": write_batch(
            ids, end, limit, fill=False
        ),
        "It stops when the first row ends: go on until all have ended.": write_batch(
            ids, end, limit, stop=any
        ),
        "Every row has ended before the limit: stop there.": write_batch(
            ids, end, limit, stop=lambda rows: False
        ),
        "It takes 0 for the end token: the end is what `end` says.": write_batch(ids, 0, limit),
        "The rows are `limit` long already: look before you write.": one_more,
        "The limit counts the beginning as well.": write_batch(ids, end, limit + beginning),
        "The beginning belongs to what is returned.": wanted[:, beginning:],
        "It goes beyond the limit by one token: look before you write.": write_batch(ids, end, limit + 1),
        "It stops one token short of the limit.": write_batch(ids, end, limit - 1),
        "It takes the word with the lowest score.": write_batch(ids, end, limit, sign=-1),
    }


class NextScores:
    """A decoder made by hand: scores of the next word (B, V) that depend on the whole row of ids (B, S) so far."""

    def __init__(self, beginning: int, limit: int):
        """`beginning` is the length of the rows at first, `limit` the one at last."""
        self.length, self.limit, self.calls = beginning, limit, 0

    def __call__(self, ids):
        """The scores; a `Hint` for ids that are no batch, or not the whole text, and where the loop does not end."""
        batch = isinstance(ids, torch.Tensor) and ids.dim() == 2
        expect(batch, "next_scores takes the ids of all rows at once, a tensor (B, S).")
        self.calls += 1
        stops = self.calls <= 50 and ids.size(1) <= self.limit + 20
        expect(stops, "The loop does not stop: end it when the rows are `limit` tokens long.")
        whole = ids.size(1) >= self.length
        expect(whole, "Only a part of the text is passed on: the next word depends on all that came before.")
        best = (ids * torch.arange(1, ids.size(1) + 1)).sum(dim=1) % 6
        return torch.nn.functional.one_hot(best, 6) * 3.0 - torch.arange(6) * 0.1 - 5.0  # (B, V), all below 0


def write_batch(ids: torch.Tensor, end: int, limit: int, fill=True, stop=all, sign=1) -> torch.Tensor:
    """Greedy writing, and its typical variants: without filling up, with another rule to stop, with other scores."""
    rows, ended = ids.tolist(), [False] * len(ids)
    next_scores = NextScores(ids.size(1), limit + ids.size(1))
    while len(rows[0]) < limit and not stop(ended):
        best = (sign * next_scores(torch.tensor(rows))).argmax(dim=-1).tolist()
        for number, row in enumerate(rows):
            row.append(end if fill and ended[number] else best[number])
            ended[number] = ended[number] or row[-1] == end
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
