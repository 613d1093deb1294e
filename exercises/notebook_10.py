"""Checks for the exercises of notebook 10."""

from functools import cache
from itertools import product

import torch
from scipy.stats import binomtest
from torch import Tensor

from exercises.comparison import expect_own
from exercises.framework import (
    Hint,
    as_share,
    as_tensor,
    call,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
    readers_frames,
    two_things,
)
from exercises.heads import as_head, largest_is, read_weights
from utils.support.intervals import t_interval

PLACES = ("The {r} and {p} were gone.", "We saw {p} beside the {r}.")
BETWEEN = ("old ", "very beautiful ")
CHOOSE = "king tree, house soldier, river bridge, garden doctor, teacher train, city farmer"
JUDGE = "lawyer street, letter singer, boat mountain, hotel actor, nurse ship, village queen"


# distances of the pronoun to the right name and to the other one, as the notebook prints them
DISTANCES = ((4, 2), (2, 4), (7, 3), (3, 7), (4, 6), (6, 4), (4, 1), (1, 4))


@exercise("10.1")
def two_baselines(answer):
    """Check the accuracies of the best fixed offset and of "the nearest name", by hand."""
    values = list(answer.values()) if isinstance(answer, dict) else answer
    values = values if isinstance(values, (tuple, list)) else as_tensor(values)
    pair = isinstance(values, (tuple, list)) or getattr(values, "ndim", 0) == 1
    expect(pair and len(values) == 2, "Give two numbers: the best fixed offset, then the nearest name.")
    offset, nearest = as_share(values[0], "The first"), as_share(values[1], "The second")
    right = [own for own, _ in DISTANCES]
    best = max(right.count(step) for step in right) / len(right)
    near = sum(own < other for own, other in DISTANCES) / len(right)
    turned = close(offset, near) and abs(nearest - best) < 0.0051
    expect(not turned, "The two are swapped: the fixed offset comes first, then the nearest name.")
    expect(not (offset > 8 or nearest > 8), "These are percentages. Give numbers from 0 to 1.")
    expect(not (offset > 1 or nearest > 1), "These are counts. Divide by the 8 sentences.")
    hint = "Which distance to the right name is the most frequent? Divide its count by 8."
    expect(abs(offset - best) < 0.0051, f"The first number is not right. {hint}")
    hint = "Count the rows in which the right name is nearer than the other, and divide by 8."
    expect(close(nearest, near), f"The second number is not right. {hint}")
    return "A head that is right in half of such sentences has shown nothing."


@cache
def takes_his_to_noun(pairs: str) -> Tensor:
    """Return whether each head takes "his" to the right one of two nouns, in 48 sentences, (48, L, A)."""
    found = []
    for first, second in (pair.split() for pair in pairs.split(", ")):
        for (noun, rival), place, between in product(((first, second), (second, first)), PLACES, BETWEEN):
            weights, tokens = read_weights(place.format(p=f"his {between}{noun}", r=rival))
            his = tokens.index("his")
            left_out = [0, his, len(tokens) - 1]
            found.append(largest_is(weights[:, :, his], tokens.index(noun), left_out))
    return torch.stack(found)


def behind(found: Tensor, best: int, layer: int, head: int) -> float:
    """Return p of McNemar's test of a head against the best one; 1 if they are right in the same sentences."""
    best, one = found.flatten(1)[:, best] > 0, found[:, layer, head] > 0
    lost, won = int((best & ~one).sum()), int((one & ~best).sum())
    return binomtest(won, lost + won).pvalue if lost + won else 1.0


@exercise("10.2", points=2)
def head_for_possessives(answer):
    """Check a head that links "his" to its noun: the best of 72, or one that neither list can tell from it."""
    chosen, judged = takes_his_to_noun(CHOOSE), takes_his_to_noun(JUDGE)
    L, A = chosen.shape[1:]
    layer, head = as_head(answer, L, A)
    best = int(chosen.mean(dim=0).argmax())
    right = behind(chosen, best, layer, head) > 0.05
    turned = layer < A and head < L and behind(chosen, best, head % L, layer % A) > 0.05
    expect(right or not turned, "The two are swapped: the layer comes first, then the head.")
    count = int(chosen[:, layer, head].sum())
    share = f"Head {layer}-{head} finds the right noun in {count / 48:.0%} of the 48 `possessives`"
    recipe = "take the mean of hits(possessives) over them, and its largest entry."
    better = "and another head does better"
    expect(right, f"{share}, {better}: try all {L * A}.", f"{share}, {better}: {recipe}")
    on_others = f"{count} of 48 where it was chosen, {int(judged[:, layer, head].sum())} of 48 with other nouns."
    if best == layer * A + head:
        return on_others
    leads = f"{on_others} There the head that is best at the `possessives` leads clearly: which is it?"
    expect(behind(judged, best, layer, head) > 0.05, leads, f"{share}, {better}: {recipe}")
    most = int(chosen.flatten(1)[:, best].sum())
    return f"{on_others} Head {best // A}-{best % A} has {most} of the first 48: that may be luck."


CONTEXTS = {  # B, S, D, A and the head
    "12 heads of 32 numbers": (2, 3, 32, 12, 5),
    "3 heads of 4 numbers": (3, 2, 4, 3, 1),
    "4 heads of 2 numbers": (4, 5, 2, 4, 3),
}


@exercise("10.3", points=3, sizes=CONTEXTS)
def head_silenced(answer, B, S, D, A, head):
    """Check a hook that writes columns in the place of one head's, (D,) or (B, S, D)."""
    expect_function(answer)
    expect_own(answer, "silence", "write the hook yourself.")
    generator = torch.Generator().manual_seed(B)
    context = torch.randn(B, S, A * D, generator=generator)
    place = slice(head * D, (head + 1) * D)
    for shape in ((D,), (B, S, D)):
        columns, given = torch.randn(shape, generator=generator), context.clone()
        try:
            result = read_by(answer(head, columns.clone()), given, A * D)
        except RuntimeError as error:
            if "must match" in str(error):  # len(columns), or a fixed size
                raise Hint(f"For columns of the shape {shape} the sizes differ: D is columns.size(-1).") from error
            raise
        expect(torch.equal(given, context), "Your hook changes the context in place. Work on context.clone().")
        result = expect_tensor(result, (B, S, A * D), "The context that your hook returns", context.dtype)
        wanted = context.clone()
        wanted[..., place] = columns
        for hint, wrong in wrong_silences(context, columns, head).items():
            expect(not close(result, wrong) or close(wanted, wrong), hint)
        others = torch.ones(A * D, dtype=torch.bool)
        others[place] = False
        first = "The heads come one after another, D numbers each. Which numbers belong to this head?"
        then = "The numbers of a head are those from head * D to (head + 1) * D, in the last dimension."
        expect(close(result[..., others], context[..., others]), f"Numbers of other heads have changed. {first}", then)
        words = f"For columns of the shape {shape}, the head's numbers are not `columns`."
        expect(close(result, wanted), f"{words} D is the size of their last dimension, in every token.", then)
    return "From here on, heads are silenced by your hook."


def read_by(hook, context: Tensor, size: int) -> Tensor:
    """Return the input of a module after the reader's hook; `Hint` if the hook or its result is not valid."""
    expect(callable(hook), "silence(head, columns) should return a function, which PyTorch then calls as a hook.")
    try:
        result = call(hook, torch.nn.Linear(size, size), (context,))
    except AttributeError as error:
        if "'tuple'" in str(error):
            raise Hint("`inputs` is a tuple: the context is inputs[0].") from error
        raise
    except TypeError as error:
        fits = readers_frames(error) or "positional argument" not in str(error)
        expect(fits, f"PyTorch calls a forward pre-hook as hook(module, inputs), but yours fails: {error}.")
        raise
    single = not isinstance(result, (tuple, list)) or len(result) == 1
    expect(single, "Your hook returns several values, but the module takes one: the new context, (context,).")
    expect(not isinstance(result, list), "Your hook returns a list. Return a tuple, (context,).")
    return result[0] if isinstance(result, tuple) else result


def wrong_silences(context: Tensor, columns: Tensor, head: int) -> dict[str, Tensor]:
    """Return the results of common mistakes, by hint."""
    D = columns.size(-1)
    A = context.size(-1) // D
    place = slice(head * D, (head + 1) * D)
    zero, before, first, added, strided = (context.clone() for _ in range(5))
    zero[..., place] = 0
    before[..., (head - 1) * D : head * D] = columns
    first[:, 0, place] = columns.expand(*context.shape[:2], D)[:, 0]
    added[..., place] += columns
    strided[..., head::A] = columns
    return {
        "The head's numbers are zeros. Write `columns` there.": zero,
        "Nothing is replaced. Does your hook return the new context?": context,
        "These are the numbers of the head before. Heads are counted from 0.": before,
        "Only the first token has changed. Silence the head in every token.": first,
        "`columns` is added to the head's numbers. It should replace them.": added,
        "All heads are replaced. Replace only the D numbers of one.": columns.repeat(
            *[1] * (columns.dim() - 1), A
        ).expand_as(context),
        "Every A-th number is replaced, but a head's numbers are next to each other.": strided,
    }


NAMES = ("mark julia", "simon ruth", "george kate", "ben emily", "frank laura", "adam grace", "jack alice")
FRAMES = """{a} called {b} about {p} {t}.
{a} told {b} that {p} {t} was gone.
After lunch {a} met {b} and talked about {p} {t}.
{a} wanted {b} to look at {p} {t} again.
{a} and {b} came home early, because {p} {t} was broken.
When {a} saw {b} at the station, {p} {t} was wet.
{a} is taller than {b}, and {p} {t} is red.""".splitlines()
TITLES = {
    "a": "On crossed sentences this head chose the right name in fewer than half, so it doesn't find the owner.",
    "b": "Other tokens look at the names as well: your own rule gives them {:.2f} on average.",
    "c": "",
}


@cache
def rows_of_5_5() -> list[tuple[Tensor, int, list[int]]]:
    """Return head 5-5's weights (S, S) in 56 crossed sentences, eight of each frame, with pronoun and names."""
    found = []
    for number, frame in enumerate(FRAMES):
        for pair, thing in ((NAMES[number], "phone"), (NAMES[number - 3], "dog")):
            for names, pronoun in product((pair.split(), pair.split()[::-1]), ("his", "her")):
                text = frame.format(a=names[0].title(), b=names[1].title(), p=pronoun, t=thing)
                weights, tokens = read_weights(text)
                found.append((weights[5, 5], tokens.index(pronoun), [*map(tokens.index, names)]))
    return found


def apply_rule(rule, row: Tensor, names: list[int]) -> float:
    """Return what the reader's rule gives for a row, as a number from 0 to 1."""
    value = call(rule, row.clone(), [*names])
    try:
        value = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise Hint(f"Your rule returns {value!r:.80}. Return True, False, or a number from 0 to 1.") from None
    expect(0 <= value <= 1, f"Your rule returns {value:.3g}. Return True, False, or a number from 0 to 1.")
    return value


@exercise("10.4", points=2)
def title_made_false(answer):
    """Check a rule by which the pronoun is more at the names than other tokens are, and the title that is left."""
    rule, title = two_things(answer, "your rule, and the letter of the title")
    title = str(title).strip().strip("()").lower()
    expect(title in TITLES, "The title is one of the letters a, b and c.")
    names, row = [1, 3], torch.tensor([0.1, 0.5, 0.05, 0.3, 0.05])
    least = apply_rule(rule, row, [2, 4])
    expect(
        apply_rule(rule, row, names) > least,
        "Your rule doesn't say more for names with large weights. Use how large the weights at `names` are.",
    )
    pronouns, others = [], []
    for weights, pronoun, names in rows_of_5_5():
        by_token = {
            token: apply_rule(rule, weights[token], names) for token in {*range(1, len(weights) - 1)} - {*names}
        }
        pronouns.append(by_token.pop(pronoun))
        others.append(sum(by_token.values()) / len(by_token))
    lead = (torch.tensor(pronouns) - torch.tensor(others)).view(len(FRAMES), -1).mean(dim=1)  # (7,)
    (low, high), rest = t_interval(lead.tolist()), sum(others) / len(others)
    measured = f"By your rule the pronoun has {sum(pronouns) / len(pronouns):.2f} and other tokens {rest:.2f}"
    interval = f"over the seven frames, the difference is {low:.2f} to {high:.2f}"
    left_out = "Other tokens give [CLS] most of their attention. Does that cost them anything in your rule?"
    expect(low > 0.05, f"{measured}: {interval}, so the title stands. What has your rule left out?", left_out)
    expect(title == "c", f"{measured}, which breaks the title. But {title} falls, too. {TITLES[title].format(rest)}")
    return f"{measured}: {interval}."
