"""What seqeval says of random labels; `python -m tests.reference.seqeval_answers`, with seqeval 1.2.2, writes it.

The package is built from source and is needed for nothing else, so it is no requirement; test_token_labels.py reads the
file.
"""

import json
import random
from importlib import import_module
from pathlib import Path

ANSWERS = Path(__file__).parent / "seqeval.json"
MARKS = [f"{mark}-{kind}" for mark in "BIES" for kind in ("PER", "LOC")]


def texts(count: int) -> list[list[str]]:
    """Random labels, of which half are outside."""
    return [random.choices(["O", *MARKS], [8, *[1] * 8], k=random.randint(1, 12)) for _ in range(count)]


def main() -> None:
    """Write labels, the spans in them, and precision, recall and F1 of one half judged by the other."""
    classification_report = import_module("seqeval.metrics").classification_report
    get_entities = import_module("seqeval.metrics.sequence_labeling").get_entities
    random.seed(0)
    truth = texts(150)
    answers = [[random.choice([label, "O"]) for label in text] for text in truth[:75]]
    answers += [random.choices(["O", *MARKS], k=len(text)) for text in truth[75:]]
    report = classification_report(truth, answers, output_dict=True, zero_division=0)
    kinds = {
        kind: [float(report[kind][name]) for name in ("precision", "recall", "f1-score", "support")]
        for kind in ("LOC", "PER", "micro avg")
    }
    spans = [[(kind, first, last + 1) for kind, first, last in get_entities(text)] for text in truth]
    found = {"truth": truth, "answers": answers, "spans": spans, "scores": kinds}
    ANSWERS.write_text(json.dumps(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
