"""Precision, recall and F1 of labels and of entity spans."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

BILOU = str.maketrans("LUM", "ESI")  # the prefixes of other schemes (last, unit, middle) as those of BIOES
LABEL = re.compile(r"([BIESLUM])-(.+)")
OTHER_SPELLINGS = re.compile(r"([BIESLUM])[-_:.](.+)", re.IGNORECASE)  # such as B_PER and b-per


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
    2000 evaluation). `names` are all classes of the data, which decide the spelling: see `label_pattern`.
    """
    pattern = label_pattern(names)
    found, start, previous = set(), None, ("O", "")
    for place, label in enumerate([*labels, "O"]):
        prefix, kind = ("O" if is_outside(label) else "I"), label
        if pattern and (match := pattern.fullmatch(label)):
            prefix, kind = match[1].upper().translate(BILOU), match[2]
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


def label_pattern(names: Collection[str] | None) -> re.Pattern | None:
    """Return the pattern of labels with a prefix and a type, or None if no class begins with B- or I-, as U-Bahn.

    Other spellings (B_PER, b-per) are read if all classes have one.
    """
    if names is None or any(re.match("[BI]-.", name) for name in names):
        return LABEL
    matches = [OTHER_SPELLINGS.fullmatch(name) for name in names if not is_outside(name)]
    return OTHER_SPELLINGS if all(matches) and any(match[1] in "BbIi" for match in matches) else None


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
