"""Ask in order: are weights placed, do two runs agree, is it right, is it one bug, in which layer, is it two bugs?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, permutations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exercises.diagnosis.broken import mark
from exercises.diagnosis.bugs import BUGS, EMBEDDINGS, ENCODER_BUGS, ORDER, with_bugs
from exercises.diagnosis.matching import NOISE, Match, Names, distance, is_equal, match
from exercises.diagnosis.pairs import nearest_pairs
from exercises.diagnosis.probe import EXCHANGED, as_tensor, call, missing_weights, weight_sums
from exercises.diagnosis.reference import Reference, default_reference
from exercises.diagnosis.texts import TEXTS
from utils.support.checkpoint import DEFAULT_CHECKPOINT, checkpoint_folder, checkpoint_name, load_tokenizer
from utils.support.sentence_settings import pooling_of, read_modules

RANDOM = (
    "The numbers are random: two runs differ, so no comparison is possible. Dropout is on: call model.eval(), and pass "
    "dropout_p=0 to scaled_dot_product_attention, which does not know the mode."
)
ROWS_DIFFER = (
    "Rows 0 and 1 are equal, and your numbers for them differ. Run it twice. If they change, dropout is on: call "
    "model.eval(), and pass dropout_p=0 to scaled_dot_product_attention. If they do not, a row depends on its place in "
    "the batch: look for positions that count on from row to row, for a reshape that mixes rows, or for a wrong order."
)
OTHER_ORDER = "Your rows come in another order: {}."
SAVED = "Your last states are right, but not all that you saved: {}. Look at how you collect them."
COARSE = " 16 bits can hide a mistake in one layer: save the numbers of a float32 run to be sure."
FEW_DECIMALS = " Were the numbers written with few decimals? Write more."
NOT_FINITE = "{:,} of your numbers are not finite, the first at {}. {}"
WHY_NAN = "Softmax of scores that are all −∞ is NaN, so look for a row without any key."
WHY_INFINITE = "Infinity is an overflow, as of 16 bits."
NOT_LOADED = "The weights are not placed: {} differ from the checkpoint's. Load them first."
LEFT = "Your rows are padded on the left: the numbers are right, but give the rows to the model as they are."
NO_PAIRS = " Two bugs at once are searched only for the embedded checkpoint."
SAVE_STATES = (
    " Is dropout on? Are the vectors in the order of the texts, and is the pair fed as a pair? Save the states, which "
    "show more."
)
SCOPE = " 8-bit weights differ by 3 to 30 % anyway; ModernBERT and others are other architectures."
EXERCISE = "These are the numbers of exercise 6.4: this mistake is yours to name."
NO_LENGTH = " The vectors are not normalized, which changes nothing for cosine similarity."


@dataclass
class Diagnosis:
    """What is wrong with a BERT: a verdict (right, mistake, alike, unknown, random), and what it rests on.

    `names` are bugs of the table; `distance` and `next` how far the numbers are from the nearest and the next guess, as
    a share of their size; `known` what is sure in any case; `taught` exercises.
    """

    verdict: str
    names: list[str] = field(default_factory=list)
    stage: str = ""
    distance: float | None = None
    next: float | None = None
    known: dict[str, bool | str] = field(default_factory=dict)
    taught: list[str] = field(default_factory=list)
    says: str = ""

    def __str__(self) -> str:
        """Return the sentences for a person."""
        words = {True: "yes", False: "no"}
        known = "; ".join(f"{key}: {words.get(value, value)}" for key, value in self.known.items())
        return self.says + (f"\nKnown: {known}." if known else "")


def diagnose(
    theirs, encoder: nn.Module | None = None, tokenizer=None, *, sums: Mapping[str, float] = {}, pairs: bool = True
) -> Diagnosis:
    """Name the bug in a BERT.

    `theirs` is a model or function of ids, mask and types (5, S), or what it returned for `probe_batch(tokenizer)`:
    all states (L + 1, 5, S, H), the last (5, S, H), or the vectors (3, H) of TEXTS. `encoder` and `tokenizer` are ours
    with the same weights; without an encoder, those of the checkpoint. `sums` are the sums of weights that the probe
    names. Without `pairs`, two bugs at once are not searched. ValueError for numbers of another shape.
    """
    is_embedded = encoder is None and checkpoint_name() == DEFAULT_CHECKPOINT
    reference = Reference(encoder, tokenizer or load_tokenizer()) if encoder else default_reference(checkpoint_name())
    weights, known = reference.encoder.state_dict(), {}
    if callable(theirs):
        missing = missing_weights(theirs, reference.encoder)
        if len(missing) > len(weights) / 2:
            return not_loaded(f"{len(missing)} of {len(weights)} weights, such as {missing[0]},")
        if missing:
            known["weights not found"] = ", ".join(missing[:3]) + ", …" * (len(missing) > 3)
        theirs, again = (call(theirs, reference.batch) for _ in range(2))
        if not is_equal(theirs, again, theirs):
            return Diagnosis("random", stage="dropout", taught=["6.1"], says=RANDOM)
    right_sums = weight_sums(reference.encoder)
    check_sums(sums, right_sums)
    for name, total in right_sums.items():
        if abs(sums.get(name, total) - total) > 0.01 * total:
            return not_loaded(f"the numbers of {name}")
    values = as_tensor(theirs)
    check_shape(values, (*reference.real.shape, reference.encoder.config.hidden_size))
    if values.ndim > 2:
        values = torch.where(reference.real[..., None] | values.isfinite(), values, 0.0)  # padding need not be finite
    if not (finite := values.isfinite()).all():
        place = tuple((~finite).nonzero()[0].tolist())
        says = NOT_FINITE.format(int((~finite).sum()), place, WHY_NAN if values.isnan().any() else WHY_INFINITE)
        return Diagnosis("unknown", stage="numbers", says=says)
    if values.ndim == 2:
        return diagnose_vectors(values, reference)
    answer = diagnose_states(values, reference, pairs and is_embedded)
    answer.known = known | answer.known
    return answer


def not_loaded(what: str) -> Diagnosis:
    """Return that weights are missing."""
    return Diagnosis("unknown", stage="weights", taught=["6.3"], says=NOT_LOADED.format(what))


def check_sums(sums: Mapping[str, float], right: Mapping[str, float]) -> None:
    """Raise ValueError unless these are numbers by names that the probe lists."""
    if not isinstance(sums, Mapping) or not all(isinstance(total, int | float) for total in sums.values()):
        raise ValueError(f"sums_of_absolute_values must be an object of numbers by name, got {sums!r:.200}")
    if unknown := ", ".join(sums.keys() - right.keys()):
        raise ValueError(
            f"sums_of_absolute_values must have names that the probe lists, {', '.join(right)}: got {unknown}"
        )


def check_shape(values: Tensor, states: tuple[int, int, int]) -> None:
    """Raise ValueError unless numbers are states (…, 5, S, H), or vectors (3, H)."""
    shape, vectors = tuple(values.shape), (len(TEXTS), states[-1])
    if shape in (states, vectors) or (len(shape) == 4 and shape[1:] == states and len(values) > 1):
        return
    rows, S, H = states
    if len(shape) == 4 and (shape[0], *shape[2:]) == states:
        remedy = "the states come first, so call np.moveaxis(y, 1, 0)"
    elif shape == (1, *states):
        remedy = "remove the first dimension, y[0]"
    elif sorted(shape[-3:]) == sorted(states) or shape == vectors[::-1]:
        remedy = "its dimensions are in another order, so transpose it"
    elif shape[-1:] != vectors[-1:]:
        remedy = f"a vector has {H} numbers: is it another checkpoint, or are these logits?"
    elif len(shape) == 2 and shape[0] < rows:
        remedy = f"give the vectors of all {len(TEXTS)} texts"
    else:
        remedy = f"feed all {rows} rows of {S} tokens of --probe at once, padding included"
    raise ValueError(f"the array has shape {shape}, not (states, {str(states)[1:]}, {states} or {vectors}: {remedy}")


# States


def diagnose_states(values: Tensor, reference: Reference, pairs: bool) -> Diagnosis:
    """Return what all states (L + 1, 5, S, H) or the last ones (5, S, H) show."""
    last = values[-1] if values.ndim == 4 else values
    mine = last[reference.real].flatten()
    guesses = {(): reference.right[reference.real].flatten()}
    guesses |= reference.nearest(last, [(name,) for name in ENCODER_BUGS], reference.singles)
    found, known = match(mine, guesses), facts(last, reference.batch[1])
    left = mine - guesses[found.nearest]
    if F.cosine_similarity(left, mark(last.shape)[reference.real].flatten(), 0) > 0.5:
        return Diagnosis("unknown", stage="exercise", taught=["6.4"], says=EXERCISE)
    if not found.fits and is_left_padded(last, reference):
        return Diagnosis("mistake", ["left padding"], "rows", known=known, says=LEFT)
    if not found.fits and values.ndim == 4:
        answer = by_parts(values, reference)
        known |= answer.known
        if answer.verdict != "unknown":
            answer.known = known
            return answer
    if pairs and (not found.fits or found.distance > NOISE[found.grain]):
        both = match(mine, guesses | nearest_pairs(last, reference))
        found = both if both.fits else found
    if not found.fits and not known["equal rows agree"]:
        order = rows_in_another_order(last, reference)
        says = OTHER_ORDER.format(", ".join(map(str, order))) if order else ROWS_DIFFER
        if order:
            return Diagnosis("mistake", ["rows in another order"], "rows", known=known, says=says)
        return Diagnosis("random", [], "rows", known=known, taught=["6.1"], says=says)
    if found.is_right and values.ndim == 4 and (wrong := wrongly_saved(values, reference, found.grain)):
        return Diagnosis("mistake", ["states as saved"], "states", known=known, says=SAVED.format(wrong))
    return conclude(found, known, "" if pairs else NO_PAIRS)


def facts(last: Tensor, mask: Tensor) -> dict[str, bool | str]:
    """Return what the five rows tell without any guess."""
    real, shorter = mask[0] == 1, int(mask[3].sum())
    order = list(range(last.size(1)))
    order[EXCHANGED[0]], order[EXCHANGED[1]] = EXCHANGED[::-1]
    first = min(EXCHANGED)
    return {
        "equal rows agree": is_equal(last[0][real], last[1][real], last),
        "padding matters": not is_equal(last[3, :shorter], last[4, :shorter], last),
        "order matters": not is_equal(last[0][real], last[2, order][real], last),
        "sees what comes later": not is_equal(last[0, :first], last[2, :first], last),
    }


def is_left_padded(last: Tensor, reference: Reference) -> bool:
    """Return whether rows are right, but at the other end."""
    rows = zip(last, reference.right, reference.batch[1].sum(1).tolist(), strict=True)
    return all(is_equal(row[-length:], right[:length], reference.right) for row, right, length in rows)


def rows_in_another_order(last: Tensor, reference: Reference) -> tuple[int, ...]:
    """Return the order in which the right rows come, or ()."""
    fits = [
        [
            is_equal(row[real], right[real], reference.right)
            for right, real in zip(reference.right, reference.real, strict=True)
        ]
        for row in last
    ]
    orders = permutations(range(len(last)))
    return next((order for order in orders if all(fits[i][j] for i, j in enumerate(order))), ())


@torch.no_grad()
def wrongly_saved(values: Tensor, reference: Reference, grain: str) -> str:
    """Return what is wrong with all states (L + 1, 5, S, H) of which the last are right, or ""."""
    ids, mask, types = reference.batch
    right = reference.encoder(ids, mask, types, output_hidden_states=True).hidden_states
    if len(values) != len(right):
        return f"there are {len(values)} states, not {len(right)}, and the embeddings come first"
    for number, (one, other) in enumerate(zip(values, right, strict=True)):
        apart = distance(one[reference.real].flatten(), other[reference.real].flatten())
        if apart > NOISE[grain]:
            return (
                f"state {number} differs by {apart:.1g} of its size, as if a list kept arrays that change in place, or "
                "a state from before its LayerNorm"
            )
    return ""


@torch.no_grad()
def by_parts(states: Tensor, reference: Reference) -> Diagnosis:
    """Judge the embeddings and each layer alone: our layers get THEIR input."""
    (ids, mask, types), real, encoder = reference.batch, reference.real, reference.encoder
    patched = {name: with_bugs(encoder, name) for name in ENCODER_BUGS}
    inside = [name for name in patched if BUGS[name].stage != EMBEDDINGS and BUGS[name].group != ORDER]
    guesses = {(): encoder.embeddings(ids, types)}
    guesses |= {(name,): model.embeddings(ids, types) for name, model in patched.items()}
    parts = {"embeddings": match(states[0][real].flatten(), at(real, guesses))}
    for number, (given, wanted) in enumerate(pairwise(states)):
        guesses = {(f"our layer {i}",): layer(given, mask, True)[0] for i, layer in enumerate(encoder.layers)}
        guesses[()] = guesses.pop((f"our layer {number}",), given)  # a further layer has no own one
        for name in inside if number < len(encoder.layers) else []:
            guesses[name,] = patched[name].layers[number](given, mask, True)[0]
        parts[f"layer {number}"] = match(wanted[real].flatten(), at(real, guesses))
    wrong = {part: each for part, each in parts.items() if not each.is_right}
    sure = {part: each.names if each.distance <= NOISE[each.grain] else [] for part, each in wrong.items()}
    known = {part: " or ".join(names) or "differs" for part, names in sure.items()}
    if not wrong or not all(sure.values()):
        return Diagnosis("unknown", known=known)
    names = list(dict.fromkeys(name for found in sure.values() for name in found))
    verdict = "mistake" if all(len(found) == 1 for found in sure.values()) else "alike"
    return explain(verdict, names, max(wrong.values(), key=lambda each: each.distance), known)


def at(real: Tensor, guesses: dict[Names, Tensor]) -> dict[Names, Tensor]:
    """Return the numbers of real tokens, (N,), of each guess (5, S, H)."""
    return {names: guess[real].flatten() for names, guess in guesses.items()}


# Vectors


def diagnose_vectors(vectors: Tensor, reference: Reference) -> Diagnosis:
    """Return what the vectors (3, H) of the texts show, normalized or not."""
    name = reference.encoder.config.name_or_path
    modules = read_modules(checkpoint_folder(name)) if name else []
    kinds = [pooling_of(path) for kind, path in modules if kind == "Pooling"]
    if kinds and kinds != ["mean"]:
        raise ValueError(f"the checkpoint pools by {kinds[0]}, not by the mean: save states in place of vectors")
    is_unit = bool(((vectors.norm(dim=-1) - 1).abs() < 0.02).all())
    scale = partial(F.normalize, dim=-1) if is_unit else torch.clone
    found = match(vectors.flatten(), {names: scale(guess).flatten() for names, guess in reference.vectors.items()})
    answer = conclude(found, {"normalized": is_unit}, SAVE_STATES)
    answer.says += "" if is_unit else NO_LENGTH
    return answer


# The answer


def conclude(found: Match, known: dict, hint: str) -> Diagnosis:
    """Turn a match into a verdict."""
    names = found.names
    if found.is_right:
        says = f"Right: your numbers equal ours up to {found.distance:.1e} of their size."
        if names:
            says += f" As far as {found.grain} tells: {', '.join(names)} cannot be told from it."
        if found.grain != "float32":
            says += COARSE
        return Diagnosis("right", [], "", found.distance, found.next, known, [], says)
    if names:
        return explain("mistake" if len(found.fits) == 1 else "alike", names, found, known)
    nearest = " and ".join(found.nearest) or "no bug"
    says = f"Unknown: none of our bugs gives these numbers. The nearest, {nearest}, is {found.distance:.1e} away."
    if found.nearest == () and found.distance < 0.01:
        says += FEW_DECIMALS
    if found.distance < NOISE["bfloat16"]:
        says += (
            f" Rounding in {found.grain} gives less than {NOISE[found.grain]:.0e}, but 16 bits inside might give this."
        )
    return Diagnosis("unknown", [], "", found.distance, found.next, known, [], says + hint + SCOPE)


def explain(verdict: str, names: list[str], found: Match, known: dict) -> Diagnosis:
    """Return the sentences of bugs, how near the numbers are, and where it is taught."""
    bugs = [BUGS[name] for name in names if name in BUGS]
    exercises = list(dict.fromkeys(bug.exercise for bug in bugs)) or ["6.1"]
    moved = [
        f"Your {part} computes what {each} computes." for part, each in known.items() if each in {*names} - {*BUGS}
    ]
    says = {"alike": "One of these, which your numbers do not tell apart: "}.get(verdict, "")
    says += " ".join([*(bug.sentence for bug in bugs), *moved])
    says += f"\nYour numbers equal ours with this up to {found.distance:.1e} of their size; the next guess is "
    says += f"{found.next:.2g} away."
    if found.distance > NOISE[found.grain]:
        says += " Something smaller is left."
    says += "".join(f" Notebook {number.split('.')[0]:0>2}, exercise {number}." for number in exercises)
    stage = ", ".join(dict.fromkeys(bug.stage for bug in bugs)) or ORDER
    return Diagnosis(verdict, names, stage, found.distance, found.next, known, exercises, says)
