"""Compare ways to find names in tweets, for notebook 15.

`python -m benchmarks.records.names` writes utils/data/names.json, which notebook 15 plots, and resumes an interrupted
run; it takes about five minutes on one core. The first 200 tweets selected the settings, in a few trials that also
printed the scores of the others. These are cut into five parts, and each part is labelled by a model that has learned
from the other four, with its own seed. The ways are a list of the training tweets' names; a logistic regression on
each word, its neighbours and its first and last letters, in lower case or with the information which words have
capitals; and the training of notebook 15, in which the upper three layers and a head learn from all tweets that have a
name and from some that have none. The encoder is uncased, so it never sees a capital. The predicted tags are stored,
one digit per word, so that every score can be recomputed.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from torch import nn

from utils.support.batches import shuffled_batches
from utils.support.datasets import DATA
from utils.support.files import write_file
from utils.support.formatting import TaggedText
from utils.support.tweets import TAGS, NameList, names_of, tagged_tweets
from utils.token_labels import TransformerForTokenClassification, align, predict_labels, token_classification_loss
from utils.tokenization import WordPieceTokenizer
from utils.training import MAX_GRADIENT_NORM, freeze_lowest, make_optimizer

RESULTS = DATA / "names.json"
CHOICE, PARTS = 200, 5  # tweets that select settings; parts of the others
NAMELESS, FROZEN, RATE, BATCH = 600, 3, 5e-4, 4  # tweets without a name; lowest layers, frozen; as in notebook 15
SAMPLES = 1000  # of the bootstrap


def tested_tweets() -> list[list[TaggedText]]:
    """Return the tweets of each part."""
    tweets = tagged_tweets()[CHOICE:]
    return [tweets[part::PARTS] for part in range(PARTS)]


def features(words: Sequence[str], with_capitals: bool) -> list[dict[str, int]]:
    """Return what a logistic regression reads of each word: itself, its neighbours, and its first and last letters."""
    around = ["", *words, ""]
    found = []
    for place, word in enumerate(words):
        lower = word.lower()
        each = {f"first {lower[:3]}": 1, f"last {lower[-3:]}": 1}
        for offset, near in enumerate(around[place : place + 3]):
            each[f"{offset} {near.lower()}"] = 1
            if with_capitals:
                each[f"{offset} upper {near.isupper()} {near[:1].isupper()}"] = 1
        found.append(each)
    return found


def count_and_predict(with_capitals: bool, train: list[TaggedText], test: list[TaggedText], seed: int):
    """Return the labels of a logistic regression; the seed changes nothing."""
    vectorizer = DictVectorizer()
    x = vectorizer.fit_transform([each for words, _ in train for each in features(words, with_capitals)])
    y = [label for _, labels in train for label in labels]
    model = LogisticRegression(C=10, max_iter=200).fit(x, y)
    return [model.predict(vectorizer.transform(features(words, with_capitals))).tolist() for words, _ in test]


def list_and_predict(train: list[TaggedText], test: list[TaggedText], seed: int):
    """Return the labels of a list of names; the seed changes nothing."""
    return [*map(NameList(train).predict, (words for words, _ in test))]


def train_and_predict(train: list[TaggedText], test: list[TaggedText], seed: int) -> list[list[int]]:
    """Train the upper layers and a head as notebook 15 does, and return the labels of the tested tweets."""
    tokenizer = WordPieceTokenizer.from_checkpoint()
    named = [tweet for tweet in train if any(tweet.labels)]
    rows = [
        align(*tweet, tokenizer) for tweet in named + [tweet for tweet in train if not any(tweet.labels)][:NAMELESS]
    ]
    torch.manual_seed(seed)
    model = TransformerForTokenClassification.from_checkpoint(num_labels=len(TAGS))
    freeze_lowest(model, FROZEN)
    batches = shuffled_batches([ids for ids, _ in rows], BATCH, seed)
    optimizer, schedule = make_optimizer(model, RATE, steps=len(batches))
    torch.manual_seed(seed)
    model.train()
    for batch in batches:
        loss, _, count = token_classification_loss(model, rows, batch)
        optimizer.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        schedule.step()
    return predict_labels(model, tokenizer, [words for words, _ in test])


WAYS: dict[str, Callable] = {
    "list": list_and_predict,
    "counts": partial(count_and_predict, False),
    "counts, capitals": partial(count_and_predict, True),
    "fine-tuned": train_and_predict,
}


def count_names(labels: list[list[int]]) -> np.ndarray:
    """Return correct, predicted and true names of each tweet: of all, by kind, in the training tweets, and new.

    The shape is (tweets, 6, 3). Whether a predicted name was in the training tweets is counted like that of a true one.
    """
    groups = {kind: {kind} for kind in ("person", "place", "other")}
    counts, at = [], 0
    parts = tested_tweets()
    for part, tweets in enumerate(parts):
        known = NameList([tweet for other, each in enumerate(parts) if other != part for tweet in each])
        for words, truth in tweets:
            wanted, given = names_of(truth), names_of(labels[at])
            at += 1
            tests = [lambda name: True, *(lambda name, kinds=kinds: name[0] in kinds for kinds in groups.values())]
            tests += [
                lambda name, words=words, known=known: words[name[1] : name[2]] in known,
                lambda name, words=words, known=known: words[name[1] : name[2]] not in known,
            ]
            rows = [({*filter(test, wanted)}, {*filter(test, given)}) for test in tests]
            counts.append([[len(one & other), len(other), len(one)] for one, other in rows])
    return np.array(counts)


MEASURES = ("all", "person", "place", "other", "met in training", "new")


def f1(counts: np.ndarray) -> np.ndarray:
    """Return F1 of summed counts (…, 3)."""
    return 2 * counts[..., 0] / np.maximum(1, counts[..., 1] + counts[..., 2])


def summarize(answers: dict[str, list[str]]) -> dict:
    """Return F1 (all and by kind) and recall (met, new) of each way, and the paired differences from fine-tuning.

    Each number has a 95 % interval from a bootstrap of the tweets, drawn once for all ways (Efron 1979).
    """
    ways = [way for way in WAYS if all(f"{way} {part}" in answers for part in range(PARTS))]
    stored = {way: [text for part in range(PARTS) for text in answers[f"{way} {part}"]] for way in ways}
    counts = {way: count_names([[int(digit) for digit in text] for text in texts]) for way, texts in stored.items()}
    rng = np.random.default_rng(0)
    size = sum(map(len, tested_tweets()))
    draws = [rng.integers(size, size=size) for _ in range(SAMPLES)]

    def scores(each: np.ndarray) -> np.ndarray:
        recall = each[4:, 0] / np.maximum(1, each[4:, 2])
        return np.concatenate([f1(each[:4]), recall])

    found, drawn, summary = {}, {}, {}
    for way in ways:
        found[way] = scores(counts[way].sum(axis=0))
        drawn[way] = np.array([scores(counts[way][draw].sum(axis=0)) for draw in draws])
        summary[way] = with_intervals(found[way], drawn[way])
    against = {
        way: with_intervals(found["fine-tuned"] - found[way], drawn["fine-tuned"] - drawn[way])
        for way in ways
        if "fine-tuned" in ways and way != "fine-tuned"
    }
    names = {measure: int(total) for measure, total in zip(MEASURES, counts[ways[0]].sum(axis=0)[:, 2], strict=True)}
    return {"names": names, "scores": summary, "fine-tuned minus": against}


def with_intervals(found: np.ndarray, drawn: np.ndarray) -> dict[str, list[float]]:
    """Return value, lower and upper bound for each measure."""
    bounds = np.quantile(drawn, [0.025, 0.975], axis=0)
    rows = np.stack([found, *bounds], axis=1).tolist()
    return {measure: [round(number, 3) for number in row] for measure, row in zip(MEASURES, rows, strict=True)}


def main() -> None:
    """Run the measurements that are missing from the results, part by part."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    record |= {"command": "python -m benchmarks.records.names", "device": "cpu, one thread", "tags": TAGS}
    record |= {"tweets without a name": NAMELESS, "frozen layers": FROZEN, "learning rate": RATE, "batch size": BATCH}
    answers, parts = record.setdefault("answers", {}), tested_tweets()
    for part, test in enumerate(parts):
        train = [tweet for other, tweets in enumerate(parts) if other != part for tweet in tweets]
        for way, run in WAYS.items():
            if f"{way} {part}" not in answers:
                labels = run(train, test, part)
                answers[f"{way} {part}"] = ["".join(map(str, each)) for each in labels]
                write_file(RESULTS, json.dumps(record, indent=1) + "\n")
                print(way, part, flush=True)
    record["summary"] = summarize(answers)
    write_file(RESULTS, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
