"""Compare ways to restore capitals and punctuation in film reviews, for notebook 15.

The ways are a frozen encoder, LoRA on each layer's query and value, full fine-tuning, and a baseline that counts pairs
of words. `python -m benchmarks.records.token_labels` writes utils/data/token_labels.json, which notebook 15 plots, and
resumes an interrupted run; it takes 25 minutes on one core. Each seed has its own 3,000 training passages and its own
head. The predictions for 600 test passages are stored, one digit per word, so that every score can be recomputed. The
learning rates were selected from two to four each, by runs of one epoch on 400 or 1,500 passages, scored on the first
300 test passages, which are excluded here. One run with all passages is enough for the baseline, so its interval is
over passages alone.
"""

import json
from functools import partial

import numpy as np
import torch

from utils.lora import add_lora
from utils.support.datasets import DATA, imdb_reviews
from utils.support.files import write_file
from utils.support.formatting import KINDS, PairCounts, TaggedText, opening_passages, score_kind, score_names
from utils.token_labels import (
    TransformerForTokenClassification,
    align,
    evaluate_tokens,
    predict_labels,
    token_classification_loss,
)
from utils.tokenization import WordPieceTokenizer
from utils.training import fit, plan_batches

RESULTS = DATA / "token_labels.json"
COUNT, SEEDS, EPOCHS, BATCH = 3000, 3, 2, 16  # training passages; runs of each way; passages in a batch
RATES = {"frozen": 2e-2, "LoRA": 3e-3, "fine-tuned": 5e-4}
TUNING, TESTED, JUDGES = (300, 600, 200)  # test passages for the rates and for the scores; passages for the epoch
SAMPLES = 1000  # of the bootstrap


def draw(texts: list[TaggedText], seed: int) -> list[TaggedText]:
    """Return the training passages of a seed."""
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed))[:COUNT]
    return [texts[index] for index in order.tolist()]


def train_and_predict(way: str, seed: int) -> tuple[list[list[int]], int]:
    """Train in one of three ways, and return labels of the test passages and the number of trained parameters."""
    tokenizer = WordPieceTokenizer.from_checkpoint()
    texts, judges = (
        draw(opening_passages(imdb_reviews("train")), seed),
        opening_passages(imdb_reviews("validation"))[:JUDGES],
    )
    rows, held_out = ([align(*text, tokenizer) for text in part] for part in (texts, judges))
    torch.manual_seed(seed)
    model = TransformerForTokenClassification.from_checkpoint(num_labels=8)
    if way == "frozen":
        model.encoder.requires_grad_(False)
    if way == "LoRA":
        add_lora(model, only=("attention.query", "attention.value"))
    size = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    fit(
        model,
        plan_batches([ids for ids, _ in rows], EPOCHS, BATCH, seed),
        partial(token_classification_loss, model, rows),
        lambda: evaluate_tokens(model, held_out),
        learning_rate=RATES[way],
        quiet=True,
    )
    return predict_labels(model, tokenizer, [text.words for text in tested_passages()]), size


def tested_passages() -> list[TaggedText]:
    """Return the test passages whose labels are scored."""
    return opening_passages(imdb_reviews("test"))[TUNING : TUNING + TESTED]


def as_text(labels: list[list[int]]) -> list[str]:
    """Write labels as digits, one string per passage."""
    return ["".join(map(str, each)) for each in labels]


def as_labels(texts: list[str]) -> list[list[int]]:
    """Read labels that `as_text` wrote."""
    return [[int(digit) for digit in text] for text in texts]


def scorers() -> dict:
    """Return each measure with its function of true and predicted labels."""
    found = {kind: partial(score_kind, kind=labels) for kind, labels in KINDS.items()}
    return found | {"name": score_names, "name of two words or more": partial(score_names, min_words=2)}


def summarize_answers(answers: dict[str, list[str]]) -> dict[str, dict[str, list[float]]]:
    """Return precision, recall, F1 (means over the seeds) and the 95 % interval of F1 for each way and measure.

    The interval comes from a bootstrap that resamples both seeds and passages (Efron 1979).
    """
    truth, summary = [text.labels for text in tested_passages()], {}
    rng = np.random.default_rng(0)
    for way in dict.fromkeys(name.rsplit(" ", 1)[0] for name in answers):
        runs = [as_labels(texts) for name, texts in answers.items() if name.rsplit(" ", 1)[0] == way]
        summary[way] = {}
        for measure, scorer in scorers().items():
            counts = np.array(
                [[scorer([a], [b]) for a, b in zip(truth, run, strict=True)] for run in runs]
            )  # (seeds, passages, 3)
            whole = [scorer(truth, run) for run in runs]
            means = [np.mean([getattr(one, part) for one in whole]) for part in ("precision", "recall", "f1")]
            drawn = []
            for _ in range(SAMPLES):
                seeds = rng.integers(len(runs), size=len(runs))
                texts = rng.integers(len(truth), size=len(truth))
                right, found, gold = counts[seeds][:, texts].sum(axis=1).T
                drawn.append(np.mean(2 * right / np.maximum(1, found + gold)))
            bounds = np.quantile(drawn, [0.025, 0.975])
            summary[way][measure] = [round(float(number), 3) for number in (*means, *bounds)]
    return summary


def main() -> None:
    """Run the measurements that are missing from the results, seed by seed."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    record |= {"command": "python -m benchmarks.records.token_labels", "device": "cpu, one thread", "rates": RATES}
    record |= {"passages": COUNT, "epochs": EPOCHS, "batch_size": BATCH}
    answers, sizes = record.setdefault("answers", {}), record.setdefault("parameters", {})
    texts = opening_passages(imdb_reviews("train"))
    record["all passages"] = len(texts)

    def store() -> None:
        record["summary"] = summarize_answers(answers)
        write_file(RESULTS, json.dumps(record, indent=1) + "\n")

    for seed in range(SEEDS):
        baseline = PairCounts(draw(texts, seed))
        answers[f"counts {seed}"] = as_text([baseline.predict(text.words) for text in tested_passages()])
    baseline = PairCounts(texts)
    answers["counts, all passages 0"] = as_text([baseline.predict(text.words) for text in tested_passages()])
    store()
    for seed in range(SEEDS):
        for way in RATES:
            if f"{way} {seed}" not in answers:
                labels, sizes[way] = train_and_predict(way, seed)
                answers[f"{way} {seed}"] = as_text(labels)
                store()
                print(way, seed, record["summary"][way], flush=True)


if __name__ == "__main__":
    main()
