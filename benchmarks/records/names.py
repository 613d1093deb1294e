"""Compare ways to find names in tweets, for notebook 15.

`python -m benchmarks.records.names` writes utils/data/names.json, which notebook 15 plots, and resumes an interrupted
run; it takes about five minutes on one core. The first 200 tweets selected the settings, in a few trials that also
printed the scores of the others. These are cut into five parts, and each part is labelled by a model that has learned
from the other four, with its own seed. The ways are a list of the training tweets' names; a logistic regression on each
word, its neighbours and its first and last letters, in lower case, or with the information which words have capitals,
and then once more from the encoder's tweets; and the training of notebook 15 on more tweets: the upper three layers and
a head learn from all that have a name and from some that have none. The encoder is uncased, so it never sees a capital.
Each trained model also reads texts in which a new name is separated from its place (`separated`). The predicted tags
are stored, one digit per word, so that every score can be recomputed.
"""

import json
import random
from collections.abc import Callable, Sequence
from functools import partial

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
SEPARATED = ("alone", "made-up words", "ordinary words", "another new name")  # see `separated`


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


def fewer_nameless(train: list[TaggedText]) -> list[TaggedText]:
    """Return the tweets that have a name, and some that have none, from which the encoder learns."""
    named = [tweet for tweet in train if any(tweet.labels)]
    return named + [tweet for tweet in train if not any(tweet.labels)][:NAMELESS]


def count_and_predict(with_capitals: bool, train: list[TaggedText], test: list[TaggedText], seed: int, cut=False):
    """Return the labels of a logistic regression; the seed changes nothing. With `cut`, see `fewer_nameless`."""
    vectorizer, train = DictVectorizer(), fewer_nameless(train) if cut else train
    x = vectorizer.fit_transform([each for words, _ in train for each in features(words, with_capitals)])
    y = [label for _, labels in train for label in labels]
    model = LogisticRegression(C=10, max_iter=200).fit(x, y)
    return [model.predict(vectorizer.transform(features(words, with_capitals))).tolist() for words, _ in test]


def new_names(train: list[TaggedText], test: list[TaggedText]) -> list[list[tuple[str, int, int]]]:
    """Return the names in each tested tweet that are in none of the training tweets, from left to right."""
    known = NameList(train)
    return [
        sorted((name for name in names_of(labels) if words[name[1] : name[2]] not in known), key=lambda name: name[1])
        for words, labels in test
    ]


def separated(train: list[TaggedText], test: list[TaggedText], seed: int) -> dict[str, list[list[str]]]:
    """Return texts that separate each new name from its place: the name without a sentence, then other words there.

    In its place are made-up words, ordinary words of the training tweets, or another new name of its kind and length.
    """
    chance, names = random.Random(seed), new_names(train, test)
    inside = {word.lower() for words, labels in train for word, label in zip(words, labels, strict=True) if label}
    ordinary = sorted({word.lower() for words, _ in train for word in words if word.isalpha()} - inside)
    texts = {name: [] for name in SEPARATED}
    every = [(kind, words[b:e]) for (words, _), each in zip(test, names, strict=True) for kind, b, e in each]
    texts["alone"] = [words for _, words in every]
    replacements = {
        "made-up words": lambda kind, size: [made_up_word(chance) for _ in range(size)],
        "ordinary words": lambda kind, size: chance.choices(ordinary, k=size),
        "another new name": lambda kind, size: chance.choice([w for k, w in every if (k, len(w)) == (kind, size)]),
    }
    for name, replace in replacements.items():
        for (words, _), each in zip(test, names, strict=True):
            changed = list(words)
            for kind, begin, end in each:
                changed[begin:end] = replace(kind, end - begin)
            texts[name].append(changed)
    return texts


def made_up_word(chance: random.Random) -> str:
    """Return three syllables, such as "pakoni"."""
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(3))


def list_and_predict(train: list[TaggedText], test: list[TaggedText], seed: int):
    """Return the labels of a list of names; the seed changes nothing."""
    return [*map(NameList(train).predict, (words for words, _ in test))]


def train_and_predict(train: list[TaggedText], test: list[TaggedText], seed: int) -> dict[str, list[list[int]]]:
    """Train the upper layers and a head as notebook 15 does; return the labels of tested and of `separated` texts."""
    tokenizer = WordPieceTokenizer.from_checkpoint()
    rows = [align(*tweet, tokenizer) for tweet in fewer_nameless(train)]
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
    texts = {"": [words for words, _ in test]} | separated(train, test, seed)
    return {name: predict_labels(model, tokenizer, each) for name, each in texts.items()}


WAYS: dict[str, Callable] = {
    "list": list_and_predict,
    "counts": partial(count_and_predict, False),
    "counts, capitals": partial(count_and_predict, True),
    "counts, capitals, the same tweets": partial(count_and_predict, True, cut=True),
    "fine-tuned": train_and_predict,
}


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
                found = run(train, test, part)
                for kind, labels in (found if isinstance(found, dict) else {"": found}).items():
                    stored = ["".join(map(str, each)) for each in labels]
                    answers[f"{way}, {kind} {part}" if kind else f"{way} {part}"] = stored
                write_file(RESULTS, json.dumps(record, indent=1) + "\n")
                print(way, part, flush=True)


if __name__ == "__main__":
    main()
