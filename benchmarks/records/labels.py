"""Measure how much pretraining helps a classifier with 100, 500 and 3,000 labelled sentences, for notebook 11.

`python -m benchmarks.records.labels` writes utils/data/labels.json, which notebook 11 plots, and resumes an interrupted
run. It contains test accuracies for several samples of the labelled sentences: of word counts; of a logistic regression
on mean vectors of a frozen encoder; and of fine-tuning all parameters on the same mean vectors. The encoder is the tiny
BERT, pretrained or random, and, only frozen, the series' own checkpoint. The validation part selects the learning rate.
"""

import json
from collections.abc import Callable
from functools import cache, partial

import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM
from utils.search import embed, mean_pooling
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import DATA, Examples, reviews
from utils.support.files import write_file
from utils.training import History, classification_loss, encode, evaluate, make_optimizer, plan_batches, train_epoch

RESULTS, MODEL = DATA / "labels.json", str(DATA / "tiny_bert")
SIZES, STARTS = (100, 500, 3000), ("pretrained", "random")
EPOCHS = {100: 15, 500: 6, 3000: 2}  # of fine-tuning, by the number of labelled sentences
RATES = {100: (1e-4, 3e-4, 1e-3, 3e-3), 500: (1e-4, 3e-4, 1e-3, 3e-3), 3000: (3e-4, 1e-3)}
BATCH, JUDGES = 16, 500  # sentences of a batch; sentences of the validation part that select a rate
DRAWS = 3  # of labelled sentences, each with its own random parameters
RUNS = {100: 3, 500: 3, 3000: 2}  # draws that are fine-tuned
INVERSE_PENALTIES = (0.001, 0.01, 0.1, 1.0)  # candidates for the cross-validation of a logistic regression


class MeanClassifier(nn.Module):
    """An encoder with a linear layer on the mean of its token vectors, so no token must learn to summarize the text."""

    def __init__(self, encoder: TransformerEncoder, config):
        super().__init__()
        self.encoder, self.config = encoder, config
        self.classifier = nn.Linear(config.hidden_size, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None):
        """Map input_ids, attention_mask and token_type_ids (B, S) to logits (B, 2)."""
        states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(mean_pooling(states, attention_mask))


def draw(examples: Examples, count: int, seed: int) -> Examples:
    """Return `count` labelled sentences, different for each seed."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))[:count].tolist()
    return Examples([examples.texts[index] for index in order], [examples.labels[index] for index in order])


def starting_encoder(start: str, seed: int) -> TransformerEncoder:
    """Return the tiny BERT's encoder, "pretrained" or "random", or the series' checkpoint, "large"."""
    if start == "large":
        return TransformerEncoder.from_checkpoint()
    pretrained = TransformerForMaskedLM.from_checkpoint(MODEL)
    torch.manual_seed(seed)
    return (pretrained if start == "pretrained" else TransformerForMaskedLM(pretrained.config)).encoder


def score_word_counts(count: int, seed: int) -> float:
    """Return the test accuracy of a logistic regression on TF-IDF vectors."""
    train, test = draw(reviews().train, count, seed), reviews().test
    baseline = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=2000))
    return baseline.fit(train.texts, train.labels).score(test.texts, test.labels)


@cache
def mean_vectors(start: str, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Return a frozen encoder's mean vectors of `count` labelled sentences and of the test sentences."""
    encoder, parts = starting_encoder(start, seed), reviews()
    tokenizer = load_tokenizer() if start == "large" else load_tokenizer(MODEL)
    train, test = (embed(part.texts, encoder, tokenizer) for part in (draw(parts.train, count, seed), parts.test))
    return train, test


def score_frozen(start: str, count: int, seed: int, embedded: int = max(SIZES)) -> float:
    """Return the test accuracy of a logistic regression on a frozen encoder's mean vectors.

    A smaller sample is the beginning of a larger one with the same seed, so `embedded` sentences are embedded once.
    """
    parts, (train, test) = reviews(), mean_vectors(start, seed, embedded)
    choice = GridSearchCV(LogisticRegression(max_iter=2000), {"C": INVERSE_PENALTIES})
    model = make_pipeline(StandardScaler(), choice)
    return model.fit(train[:count], draw(parts.train, count, seed).labels).score(test, parts.test.labels)


def score_fine_tuned(start: str, count: int, rate: float, seed: int) -> tuple[float, float]:
    """Train all parameters at one learning rate, and return the accuracies on the validation and test parts."""
    parts, tokenizer = reviews(), load_tokenizer(MODEL)
    encoder = starting_encoder(start, seed)
    model = MeanClassifier(encoder, encoder.config)
    rows, labels = encode(model, tokenizer, draw(parts.train, count, seed), None)
    plan, history = plan_batches(rows, EPOCHS[count], BATCH, seed), History()
    optimizer, schedule = make_optimizer(model, rate, sum(map(len, plan)))
    for batches in plan:
        train_epoch(
            model,
            batches,
            lambda batch: classification_loss(model, rows, labels, batch),
            optimizer,
            schedule,
            history,
            disable=True,
        )
    judged = [evaluate(model, tokenizer, part) for part in (parts.validation[:JUDGES], parts.test)]
    return judged[0].accuracy, judged[1].accuracy


def plan() -> dict[str, Callable[[], object]]:
    """Return every measurement by name, the slowest last."""
    found = {}
    for seed in range(DRAWS):
        for count in SIZES:
            found[f"counted words {count} {seed}"] = partial(score_word_counts, count, seed)
            for start in (*STARTS, "large"):
                found[f"frozen {start} {count} {seed}"] = partial(score_frozen, start, count, seed)
    for count, seeds in RUNS.items():
        for seed in range(seeds):
            for start in STARTS:
                for rate in RATES[count]:
                    name = f"fine-tuned {start} {count} {rate:g} {seed}"
                    found[name] = partial(score_fine_tuned, start, count, rate, seed)
    return found


def accuracies(runs: dict) -> dict[str, dict[str, list[float]]]:
    """Return the test accuracies of all draws, by kind and number of sentences: fine-tuned, at the best learning rate.

    The best rate has the highest mean accuracy on the validation part, over the draws.
    """
    found = {}
    for name, result in runs.items():
        kind, count, *rate = name.rsplit(" ", 3 if name.startswith("fine-tuned") else 2)[:-1]
        found.setdefault(kind, {}).setdefault(count, {}).setdefault("".join(rate), []).append(result)
    best = {}
    for kind, counts in found.items():
        for count, rates in counts.items():
            draws = rates[""] if "" in rates else max(rates.values(), key=lambda draws: sum(one for one, _ in draws))
            best.setdefault(kind, {})[count] = [draw[1] if isinstance(draw, list) else draw for draw in draws]
    return best


def main() -> None:
    """Run the measurements that are missing from the results."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results |= {"command": "python -m benchmarks.records.labels", "epochs": EPOCHS, "batch_size": BATCH}
    runs = results.setdefault("runs", {})
    for name, run in plan().items():
        if name not in runs:
            runs[name] = run()
            write_file(RESULTS, json.dumps(results, indent=1) + "\n")
            print(name, runs[name], flush=True)
    results["accuracies"] = accuracies(runs)
    write_file(RESULTS, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
