"""Answers readers give to the exercises of notebook 00: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch


def masks(S, T, lower=0, across=None):
    return torch.ones(S, S), torch.ones(T, T).tril(lower), torch.ones(T, S) if across is None else across


def masks_as_lists(S, T):
    causal = [[int(key <= query) for key in range(T)] for query in range(T)]
    return [[[1] * S for _ in range(S)], causal, [[1] * S for _ in range(T)]]


def masks_as_booleans(S, T):
    place = torch.arange(T)
    full = torch.ones(max(S, T), max(S, T), dtype=torch.bool)
    return full[:S, :S], place[:, None] >= place[None, :], full[:T, :S]


def masks_as_arrays(S, T):
    return np.ones((S, S)), np.tril(np.ones((T, T))), np.ones((T, S))


def with_decoder(change):
    return lambda S, T: (torch.ones(S, S), change(torch.ones(T, T)), torch.ones(T, S))


def write(next_scores, ids, end, limit):
    ended = torch.zeros(len(ids), dtype=torch.bool)
    while not ended.all() and ids.size(1) < limit:
        following = torch.where(ended, end, next_scores(ids).argmax(dim=-1))
        ids = torch.cat([ids, following[:, None]], dim=1)
        ended = ended | (following == end)
    return ids


def write_in_lists(next_scores, ids, end, limit):
    rows = ids.tolist()
    for _ in range(limit - len(rows[0])):
        if all(end in row for row in rows):
            break
        best = next_scores(torch.tensor(rows)).softmax(dim=1).max(dim=1).indices.tolist()
        rows = [[*row, end if end in row else word] for row, word in zip(rows, best, strict=True)]
    return rows


def write_row_by_row(next_scores, ids, end, limit):
    rows = []
    for row in ids:
        row = row[None]
        while row[0, -1] != end and row.size(1) < limit:
            row = torch.cat([row, next_scores(row).argmax(1, keepdim=True)], dim=1)
        rows.append(row[0].tolist())
    longest = max(map(len, rows))
    return torch.tensor([row + [end] * (longest - len(row)) for row in rows])


def write_without_filling(next_scores, ids, end, limit):
    while ids.size(1) < limit and not (ids == end).any(dim=1).all():
        ids = torch.cat([ids, next_scores(ids).argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def write_to_first_end(next_scores, ids, end, limit):
    while ids.size(1) < limit and not (ids == end).any():
        ids = torch.cat([ids, next_scores(ids).argmax(dim=-1, keepdim=True)], dim=1)
    return ids


def write_to_the_limit(next_scores, ids, end, limit):
    rows = write(next_scores, ids, end, limit)
    return torch.nn.functional.pad(rows, (0, limit - rows.size(1)), value=end)


def write_for_ever(next_scores, ids, end, limit):
    while True:
        ids = torch.cat([ids, next_scores(ids).argmax(dim=-1, keepdim=True)], dim=1)


def write_lowest(next_scores, ids, end, limit):
    return write(lambda rows: -next_scores(rows), ids, end, limit)


def write_last_only(next_scores, ids, end, limit):
    return next_scores(ids[:, -1])


def write_with_zero(next_scores, ids, end, limit):
    return write(next_scores, ids, 0, limit)


def write_from_last_token(next_scores, ids, end, limit):
    return write(lambda rows: next_scores(rows[:, -1:]), ids, end, limit)


def write_from_last_two(next_scores, ids, end, limit):
    return write(lambda rows: next_scores(rows[:, -2:]), ids, end, limit)


def write_before_looking(next_scores, ids, end, limit):
    return write(next_scores, ids, end, max(limit, ids.size(1) + 1))


def write_into_what_was_given(next_scores, ids, end, limit):
    written = write(next_scores, ids, end, limit)
    ids[:] = end
    return written


def write_without_moving(next_scores, ids, end, limit):
    while next_scores(ids).numel():
        pass


def write_as_array(next_scores, ids, end, limit):
    return write(next_scores, ids, end, limit).numpy()


EVERY, LATER, ACROSS = [0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [0, 1, 2]

RIGHT = {
    "0.1": [
        (EVERY, LATER, ACROSS),
        [range(6), range(2, 6), range(3)],
        (set(EVERY), {5, 4, 3, 2}, (2, 1, 0)),
        (torch.arange(6), np.arange(2, 6), torch.arange(3.0)),
        ([True] * 6, torch.arange(6) > 1, "all"),
    ],
    "0.2": [masks, masks_as_lists, masks_as_booleans, masks_as_arrays],
    "0.3": [write, write_in_lists, write_row_by_row, write_as_array],
}

WRONG = {
    "0.1": [
        ((LATER, LATER, ACROSS), "no causal mask"),
        (([0, 1, 3, 4, 5], LATER, ACROSS), "sees its own token"),
        (([2], LATER, ACROSS), "every token sees all six"),
        ((EVERY, [0, 1, 2], ACROSS), "Turned round"),
        ((EVERY, [3, 4, 5], ACROSS), "its own token"),
        ((EVERY, EVERY, ACROSS), "cannot see what comes later"),
        ((EVERY, [2], ACROSS), "column 2"),
        ((EVERY, LATER, [2]), "does not apply across"),
        ((EVERY, LATER, EVERY), "only three positions"),
        ((EVERY, LATER, []), "three written tokens"),
        (([1, 2, 3, 4, 5, 6], LATER, ACROSS), "counted from 0"),
        ((EVERY, 2, ACROSS), "which rows have a 1"),
        ((EVERY, "later", ACROSS), "list of numbers"),
        (("012345", "2345", "012"), "list of numbers"),
        (([0, 1, 2, 2, 3, 4, 5], LATER, ACROSS), "stands there twice"),
        ((EVERY, [False, False, True], ACROSS), "6 booleans"),
        ((EVERY, [2.5], ACROSS), "whole numbers"),
        ((EVERY, LATER), "three lists"),
    ],
    "0.2": [
        (with_decoder(torch.triu), "turned round"),
        (with_decoder(lambda mask: mask.tril(-1)), "hides each token from itself"),
        (with_decoder(lambda mask: mask.triu(1)), "1 means visible"),
        (with_decoder(lambda mask: mask), "hides nothing"),
        (with_decoder(lambda mask: torch.eye(len(mask))), "up to and including"),
        (with_decoder(lambda mask: mask.log().masked_fill(mask.triu(1) == 1, -torch.inf)), "-inf"),
        (with_decoder(lambda mask: mask / mask.sum(-1, keepdim=True)), "ones (visible) and zeros"),
        (lambda S, T: masks(S, T, across=torch.ones(S, T)), "T rows, S columns"),
        (lambda S, T: masks(S, T, across=torch.ones(T, S).tril()), "hide nothing across"),
        (lambda S, T: (torch.ones(S, S).tril(), *masks(S, T)[1:]), "reads both ways"),
        (lambda S, T: masks(T, T), "should have the shape"),
        (lambda S, T: masks(5, 3), "but not for S = 2 and T = 4"),
        (lambda S, T: masks(S, T)[:2], "three masks"),
        (lambda S, T: ("a", "b", "c"), "tensor"),
        (lambda S, T: None, "return"),
    ],
    "0.3": [
        (write_without_filling, "go on writing"),
        (write_to_first_end, "until all have ended"),
        (write_to_the_limit, "stop there"),
        (write_for_ever, "does not stop"),
        (write_lowest, "lowest score"),
        (write_last_only, "tensor (B, S)"),
        (write_with_zero, "the end is what `end` says"),
        (write_from_last_token, "all that came before"),
        (write_from_last_two, "it should write"),
        (write_before_looking, "look before you write"),
        (write_into_what_was_given, "changes the ids"),
        (write_without_moving, "does not stop"),
        (
            lambda scores, ids, end, limit: write(scores, ids, end, limit + ids.size(1)),
            "counts the beginning",
        ),
        (lambda scores, ids, end, limit: write(scores, ids, end, limit + 1), "beyond the limit"),
        (lambda scores, ids, end, limit: write(scores, ids, end, limit - 1), "one token short"),
        (lambda scores, ids, end, limit: write(scores, ids, end, limit)[:, ids.size(1) :], "The beginning"),
        (lambda scores, ids, end, limit: write(scores, ids, end, limit)[0], "all rows"),
        (lambda scores, ids, end, limit: ids, "it should write"),
        (lambda scores, ids, end, limit: "time flies", "one tensor"),
        (lambda scores, ids, end, limit: None, "return"),
    ],
}
