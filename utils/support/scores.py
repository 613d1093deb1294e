"""Precision, recall and F1 of labels and of entity spans."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

BILOU = str.maketrans("LUM", "ESI")  # the prefixes of other schemes (last, unit, middle) as those of BIOES
LABEL = re.compile(r"(?P<prefix>[BIESLUM])-(?P<kind>.+)")
SUFFIXED = re.compile(r"(?P<kind>.+)[\W_](?P<prefix>[BIESLUM])")  # such as PER_B
OTHER_SPELLINGS = (
    re.compile(r"(?P<prefix>[BIESLUM])[\W_]?(?P<kind>)", re.IGNORECASE),  # without a type
    re.compile(r"(?P<prefix>[BIESLUM])[\W_](?P<kind>.+)", re.IGNORECASE),  # such as B_PER, b-per and B/PER
    SUFFIXED,
)


class Score(NamedTuple):
    """Counts of correct predictions (true positives), of all predictions, and of gold labels."""

    correct: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Return the share of predictions that are correct; 0 without predictions."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Return the share of gold labels that were predicted; 0 without gold labels."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall: 2 · correct / (predicted + gold)."""
        return 2 * self.correct / max(1, self.predicted + self.gold)


def spans(labels: Sequence[str], names: Collection[str] | None = None) -> set[tuple[str, int, int]]:
    """Return the entities in a sequence of labels, each as (type, start, end), by the rules of seqeval.

    B- begins an entity, I- (or M-) continues it, E- (or L-) ends it, S- (or U-) is one of a single word, "O" is
    outside. A label without a prefix counts as I-; what continues or ends nothing of its type begins an entity (CoNLL
    2000 evaluation). `names` are all classes of the data, which decide the spelling: see `label_pattern`. The type of
    B, I and O alone is "_".
    """
    pattern = label_pattern(labels) or LABEL if names is None else label_pattern(names)
    found, start, previous = set(), None, ("O", "")
    for place, label in enumerate([*labels, "O"]):
        prefix, kind = ("O" if is_outside(label) else "I"), label
        if pattern and (match := pattern.fullmatch(label)):
            prefix, kind = match["prefix"].upper().translate(BILOU), match["kind"] or "_"
        continues = prefix in "IE" and previous[0] in "BI" and kind == previous[1]
        if start is not None and not continues:
            found.add((previous[1], start, place))
            start = None
        if prefix != "O" and start is None:
            start = place
        previous = prefix, kind
    return found


def is_outside(label: str) -> bool:
    """Return whether a label is that of words outside of all spans."""
    return label in ("O", "o")


def label_pattern(names: Collection[str]) -> re.Pattern | None:
    """Return the pattern of labels with a prefix, or None if no class begins with B- or I-, as U-Bahn.

    Other spellings (B alone, B_PER, b-per, PER-B) are read if all classes have one.
    """
    if any(re.match("[BI]-.", name) for name in names):
        return LABEL
    for pattern in OTHER_SPELLINGS:
        matches = [pattern.fullmatch(name) for name in names if not is_outside(name)]
        found = {match["prefix"].upper() for match in matches if match} & {"B", "I"}
        if all(matches) and len(found) > (pattern is SUFFIXED):  # the class hepatitis-B alone is not a scheme
            return pattern
    return None


def kinds_of(values: Collection[str]) -> set[str]:
    """Return the types of labels such as B-PER, or an empty set unless all values are such labels, or O."""
    pattern = label_pattern(values) or LABEL
    matches = [pattern.fullmatch(value) for value in values if not is_outside(value)]
    return {match["kind"] for match in matches} if all(matches) else set()


def score_spans(truth: Sequence[Collection], answers: Sequence[Collection]) -> Score:
    """Score predicted spans, text by text: both ends and the type must agree (CoNLL 2003, and seqeval)."""
    pairs = [*zip(truth, answers, strict=True)]
    right = sum(len(set(wanted) & set(given)) for wanted, given in pairs)
    return Score(right, sum(len(given) for _, given in pairs), sum(len(wanted) for wanted, _ in pairs))


def score_classes(
    truth: Sequence[Sequence[str]], answers: Sequence[Sequence[str]], names: Sequence[str]
) -> dict[str, Score]:
    """Score each class word by word."""
    from sklearn.metrics import multilabel_confusion_matrix

    sides = ([label for text in side for label in text] for side in (truth, answers))
    counts = multilabel_confusion_matrix(*sides, labels=[*names])  # (N, 2, 2)
    return {
        name: Score(right, right + wrong, right + missed)
        for name, ((_, wrong), (missed, right)) in zip(names, counts.tolist(), strict=True)
    }
