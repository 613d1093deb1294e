"""Checks for the exercises of notebook 07."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from exercises.arrays import run_once
from exercises.comparison import comparison, name_the_mistake
from exercises.framework import (
    Hint,
    as_letter,
    as_number,
    as_share,
    as_tensor,
    call,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
)
from exercises.heads import as_head, largest_is, random_weights, read_weights
from exercises.mistakes import functions

COLLOCATIONS = (
    "answering machine, sewing machine, swimming pool, palm tree, orange juice, coffee cup, traffic light, "
    "credit card, bus stop, wedding ring, police officer, phone number, birthday party, football team, "
    "bank account, wine glass, railway station, chess board, dining room, post office"
)
IAN = ("I called Ian.", "I got his answering machine.")
HUNT = ("Clara played an old violin.", "One day she sold it.")


class Link(NamedTuple):
    """Two tokens of a pair of sentences, the one that looks and the one that is looked for."""

    pair: tuple[str, str]
    query: str
    key: str

    def of(self, weights: Tensor, tokens: list[str]) -> Tensor:
        """Return the weight of this link, (L, A)."""
        return weights[:, :, tokens.index(self.query), tokens.index(self.key)]


IT, PLAYED = Link(HUNT, "it", "violin"), Link(HUNT, "played", "violin")
MACHINE = Link(IAN, "machine", "answering")


@cache
def link_weights(link: Link) -> Tensor:
    """Return what each head gives a link, (L, A)."""
    return link.of(*read_weights(*link.pair))


def as_heads(answer, L: int, A: int) -> list[tuple[int, int]]:
    """Return one head, or a list of several, as a list."""
    several = isinstance(answer, (tuple, list)) and any(isinstance(one, (tuple, list)) for one in answer)
    return [as_head(one, L, A) for one in (answer if several else [answer])]


comparison(
    "7.1",
    "weights",
    "weights.diagonal(-1, -2, -1).mean(-1)",
    """
    weights[..., 1:, :].mean(dim=(-1, -2)) | This averages over all tokens that are looked at. Use only the token
        before.
    weights[..., -1, -2] | This is only the last token. Average over all tokens but the first.
    weights.diagonal(-1, -2, -1).amax(-1) | This is the largest weight. Take the mean.
    weights.diagonal(1, -2, -1).mean(-1)
    weights.diagonal(1, -2, -1).sum(-1) / weights.size(-1) | This is the token after. A row belongs to the token that
        looks.
    weights.diagonal(0, -2, -1).mean(-1) | These are the weights that tokens give to themselves. Go one column to the
        left of the diagonal.
    weights.diagonal(-1, -2, -1).sum(-1) | This is the sum. Take the mean.
    weights.diagonal(-1, -2, -1).sum(-1) / weights.size(-1) | Divide by S − 1, because no token comes before the first
        one.
    weights.diagonal(-2, -2, -1).mean(-1) | Average weights[..., i, i - 1] over i from 1 to S - 1, separately for each
        head.
    """,
    inputs=lambda *sizes: (random_weights(*sizes),),
    sizes={"5 tokens": (2, 3, 5), "7 tokens": (4, 2, 7)},
    lists=True,
)


@exercise("7.2", points=2)
def heads_for_two_links(answer):
    """Check a head that links "it" to "violin", and one that links "played" to "violin"."""
    try:
        if isinstance(answer, Mapping):  # {"it": (5, 3), "played": (4, 7)}
            names = {re.split(r"\W|_", name.lower())[0]: name for name in answer}
            answer = [answer[names[word]] for word in ("it", "played")]
        first, second = answer
    except (TypeError, ValueError, RuntimeError, KeyError, AttributeError):
        raise Hint("Give two heads: the one for “it”, then the one for “played”.") from None
    to_it, to_played = link_weights(IT), link_weights(PLAYED)
    first, second = (as_heads(heads, *to_it.shape) for heads in (first, second))
    exchanged = to_it[second[0]] > 1 / 3 and to_played[first[0]] > 1 / 3
    expect(not exchanged or to_it[first[0]] > 1 / 3, "The two heads are swapped: “it” comes first.")
    links = [*((head, IT) for head in first), *((head, PLAYED) for head in second)]
    return " ".join(require_link(*head, link) for head, link in links)


def require_link(layer: int, head: int, link: Link) -> str:
    """Return a remark on the head's rank among all for this link; a `Hint` where it does not make it."""
    weights, name = link_weights(link), f"{layer}-{head}"
    given = weights[layer, head]
    turned = layer < weights.size(1) and head < weights.size(0) and weights[head, layer] > 1 / 3
    expect(
        given > 1 / 3 or not turned,
        (
            f"In {name} “{link.query}” gives “{link.key}” {given:.2f}. Swap the two numbers: the layer comes "
            "first, then the head."
        ),
    )
    back = link_weights(link._replace(query=link.key, key=link.query))[layer, head]
    expect(
        given > 1 / 3 or back <= 1 / 3,
        f"In {name} “{link.key}” looks at “{link.query}”, not the other way round. Start at the left column.",
    )
    expect(given > 1 / 3, f"In {name} “{link.query}” gives “{link.key}” only {given:.2f}. Keep looking.")
    rank = int((weights > given).sum()) + 1
    return f"In {name} “{link.query}” gives “{link.key}” {given:.2f}, number {rank} of {weights.numel()}."


@exercise("7.3", points=2)
def rule_for_a_head(answer):
    """Check whether the key has each head's largest weight, [CLS], [SEP] and the token itself excluded."""
    expect_function(answer)
    for L, A, S, query, key in ((2, 200, 6, 3, 1), (3, 150, 9, 2, 6)):
        weights = random_weights(L, A, S)
        weights[..., [0, query, S - 1]] *= 1.3  # so that leaving them out matters
        weights /= weights.sum(dim=-1, keepdim=True)
        result = expect_tensor(as_tensor(run_once(answer, (weights, query, key), torch.clone)), (L, A))
        right = largest_is(weights[:, :, query], key, [0, query, S - 1])
        name_the_mistake(result, right, WRONG_RULES, (weights, query, key), tolerance=1e-3)
        layer, head = divmod(int((result.double() - right).abs().argmax()), A)
        row, found = weights[layer, head, query], bool(right[layer, head])
        expect(
            close(result, right, 1e-3),
            f"With the row {[round(weight, 2) for weight in row.tolist()]} token {query} "
            f"{'finds' if found else 'does not find'} token {key}: without the first, the last and token {query} "
            f"itself, the largest weight is {'' if found else 'not '}there. Yours says otherwise.",
        )
    return ""


WRONG_RULES = functions(
    "7.3",
    "weights, query, key",
    """
    largest_is(weights[:, :, query], key + 1, [0, query, -1]) | A slice that begins at token 1 counts from there, so its
        positions are too small by one.
    largest_is(weights[:, :, query], key + 1, [0, -1]) | A slice that begins at token 1 counts from there, so its
        positions are too small by one; and the token itself is still included.
    largest_is(weights[:, :, query], key, []) | [CLS], [SEP] and the token itself are still included. Leave them out.
    largest_is(weights[:, :, query], key, [0, -1]) | The query token itself is still included. Leave it out, too.
    largest_is(weights[:, :, query], key, [query]) | [CLS] and [SEP] are still included. Leave out the first and the
        last token.
    largest_is(weights[:, :, query], key, [0, query]) | [SEP] is still included. Leave out the last token, too.
    largest_is(weights[:, :, query], key, [query, -1]) | [CLS] is still included. Leave out the first token, too.
    largest_is(weights[..., query], key, [0, query, -1]) | This is the column, the weights that the token receives. The
        row is weights[:, :, query].
    largest_is(weights[:, :, key], query, [0, key, -1]) | Query and key token are swapped.
    """,
    globals(),
)


@exercise("7.4", points=4)
def collocations_and_baseline(answer):
    """Check a head, and the shares of collocations that it, a baseline and strangers find."""
    try:
        head, *shares = answer
        found_together, found_baseline, found_strangers = shares
    except (TypeError, ValueError, RuntimeError):
        raise Hint("Give the head and three shares.") from None
    layer, head = as_head(head, *link_weights(MACHINE).shape)
    require_link(layer, head, MACHINE)
    there, strange = (share_found(layer, head, strangers) for strangers in (False, True))
    expect(
        there > strange, f"Head {layer}-{head} does not find more collocations than strangers. Choose a head that does."
    )
    wanted = {
        "together": (found_together, there),
        "the baseline": (found_baseline, 1.0),
        "strangers": (found_strangers, strange),
    }
    for name, (value, right) in wanted.items():
        share = as_share(value, f"The share for {name}")
        expect(share <= 1, f"The share for {name} is a number from 0 to 1: divide by the number of sentences.")
        baseline = "the first word is one token before the second in every sentence. Count again."
        hint = baseline if name == "the baseline" else "take the mean of your finds over the sentences, for your head."
        expect(abs(share - right) < 0.006, f"The share for {name} is not {share:.2f}: {hint}")
    return f"Collocations {there:.0%}, the baseline 100%, strangers {strange:.0%}: what does the head know?"


@cache
def share_found(layer: int, head: int, strangers: bool) -> float:
    """Return the share of 20 sentences in which a head links a word to the one before it, or to a stranger."""
    pairs = [phrase.split() for phrase in COLLOCATIONS.split(", ")]
    firsts = [first for first, _ in (pairs[7:] + pairs[:7] if strangers else pairs)]
    right = 0
    for first, (_, second) in zip(firsts, pairs, strict=True):
        weights, tokens = read_weights(f"I saw the {first} {second}.")
        query, key = tokens.index(second), tokens.index(first)
        found = largest_is(weights[layer, head, query], key, [0, query, len(tokens) - 1])
        right += int(found)
    return right / len(pairs)


HUNTS = {  # what 7.5 counts: a text, the token that looks, and the token that it may find
    "we": ("We never seem to agree.", "agree", "we"),
    "time": ("time flies like an arrow", "flies", "time"),
    "fruit": ("fruit flies like a banana", "flies", "fruit"),
}


@exercise("7.5", points=2)
def three_hunts_counted(answer):
    """Check in how many heads "agree" finds "we", and "flies" finds the word before it in two texts."""
    names = ", ".join(f"“{name}”" for name in HUNTS)
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(answer, (list, tuple)) and len(answer) == len(HUNTS):
        answer = dict(zip(HUNTS, answer, strict=True))
    named = isinstance(answer, Mapping) and set(answer) == set(HUNTS)
    expect(named, f"Give a dictionary with the keys {names}, or the three numbers in this order.")
    for name, value in answer.items():
        number, (text, asking, wanted) = as_number(value, f"“{name}”"), HUNTS[name]
        weights, tokens = read_weights(text)
        query, key = tokens.index(asking), tokens.index(wanted)
        count, all_heads = heads_that_find(weights, query, key), weights[:, :, 0, 0].numel()
        where = f"“{asking}” in “{text}”"
        turned = heads_that_find(weights, key, query)
        expect(number == count or number != all_heads - count, f"{where}: these are the heads that do not find it.")
        expect(number == count or number != turned, f"{where}: query and key token are swapped.")
        share = number == count or not close(number, count / all_heads, 0.006)
        expect(share, f"{where}: this is a share. Give the number of heads.")
        later = f"{where} is token {query} and “{wanted}” token {key}: rule(weights, {query}, {key}).sum()."
        expect(number == count, f"{where}: count the heads in which it finds “{wanted}”.", later)
    return "Chance would give about 14 of 72 for “we”, and 18 for the others: how do yours compare?"


def heads_that_find(weights: Tensor, query: int, key: int) -> int:
    """Return in how many heads a token finds another, by the rule of 7.3."""
    return int(largest_is(weights[:, :, query], key, [0, query, weights.size(-1) - 1]).sum())


def found_by(rule, weights: Tensor, query: int, key: int) -> Tensor:
    """Return what a rule finds, (L, A), as 0 and 1; `Hint` if it is anything else."""
    found, again = (as_tensor(call(rule, weights.clone(), query, key)) for _ in range(2))
    found = expect_tensor(found, tuple(weights.shape[:2]))
    expect(close(found, again), "Called twice with the same weights, your rule gives two results.")
    expect(set(found.double().unique().tolist()) <= {0.0, 1.0}, "Return True or False for each head.")
    return found.double()


@exercise("7.6", points=2)
def rule_that_breaks_our_title(answer):
    """Check another rule of counting, by which more heads find "answering" than "wedding", and what survives."""
    try:
        rule, title = answer
    except (TypeError, ValueError):
        raise Hint("Give two things: your rule, and the letter of a title.") from None
    expect(callable(rule), "The first is a function, `another_rule`.")
    for query, key in ((4, 2), (3, 5)):  # whatever a rule finds, it has to find a token that gets all
        for given in (1.0, 0.0):
            rows = torch.zeros(2, 3, 7, 7)
            rows[..., 1] = 1.0
            rows[:, :, query] = torch.eye(7)[key if given else 1]
            hint = "misses a token that gets all" if given else "finds a token that gets nothing"
            right = bool((found_by(rule, rows, query, key) == given).all())
            expect(right, f"Your rule {hint}: look at weights[:, :, query, key].")
    counts = []
    for first in ("answering", "wedding"):
        weights, tokens = read_weights(f"I saw the {first} machine.")
        counts.append(int(found_by(rule, weights, tokens.index("machine"), tokens.index(first)).sum()))
    found = "By your rule {} heads find “answering” and {} find “wedding”.".format(*counts)
    expect(counts[0] - counts[1] >= 4, f"{found} Find a rule by which at least four more do. What do the heads *give*?")
    title = as_letter(title, "abc")
    expect(title != "b", "Title b falls with your own rule.")
    expect(title == "a", "Title c says more than two phrases can: count the twenty strangers first.")
    return f"{found} The verdict depends on the rule of counting, so a claim has to name it."
