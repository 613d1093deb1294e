"""Labels for free: remove capitals and punctuation from texts, restore them from a label per word, and score that."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from utils.support.scores import Score

# the formats of a word: its first letter in lower or upper case, and the mark that follows it
FORMATS = ("word", "word,", "word.", "word?", "Word", "Word,", "Word.", "Word?")
MARKS = {"": "", ",": ",", ".": ".", "!": ".", "?": "?"}  # an exclamation mark counts as a full stop
KINDS = {  # the indices in FORMATS of each kind
    "capital": (4, 5, 6, 7),
    "comma": (1, 5),
    "full stop": (2, 6),
    "question mark": (3, 7),
}


class TaggedText(NamedTuple):
    """The words of a text, with a label for each."""

    words: list[str]
    labels: list[int]


def strip_formatting(text: str) -> TaggedText:
    """Return the words of a text without capitals and punctuation, and the index in `FORMATS` of each word's format."""
    words, labels = [], []
    for written in text.split():
        word = written.strip(string.punctuation)
        if not word:
            continue  # a separate dash
        ending = written[written.rindex(word) + len(word) :]
        mark = next((MARKS[character] for character in ending if character in MARKS), "")
        words.append(word.lower())
        labels.append(FORMATS.index(("Word" if word[0].isupper() else "word") + mark))
    return TaggedText(words, labels)


def restore_formatting(words: Sequence[str], labels: Sequence[int]) -> str:
    """Return a text of words with the capitals and punctuation of their labels: the inverse of `strip_formatting`."""
    marked = []
    for word, label in zip(words, labels, strict=True):
        name = FORMATS[label]
        marked.append((word[:1].upper() + word[1:] if name[0] == "W" else word) + name[4:])
    return " ".join(marked)


def opening_passages(reviews: Sequence[str]) -> list[TaggedText]:
    """Return the first sentences of each review, up to 40 words; skip those with fewer than 8."""
    passages = []
    for review in reviews:
        words = []
        for sentence in re.split(r"(?<=[.!?])\s+", review):
            if len(words) + len(sentence.split()) > 40:
                break
            words += sentence.split()
        labelled = strip_formatting(" ".join(words))
        if len(labelled.words) >= 8:
            passages.append(labelled)
    return passages


def score_kind(truth: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], kind: Sequence[int]) -> Score:
    """Score the labels of one kind, without each text's first capital or last punctuation mark.

    Nearly every text begins with a capital and ends with a mark, so those do not measure the model.
    """
    counts = Counter()
    for labels, predictions in zip(truth, answers, strict=True):
        part = slice(1, None) if set(kind) == set(KINDS["capital"]) else slice(None, -1)
        for label, answer in zip(labels[part], predictions[part], strict=True):
            counts["right"] += label in kind and answer in kind
            counts["found"] += answer in kind
            counts["there"] += label in kind
    return Score(counts["right"], counts["found"], counts["there"])


class PairCounts:
    """A baseline: the most frequent label of a word and its next word, or of the word alone if the pair is unseen."""

    def __init__(self, texts: Sequence[TaggedText]):
        """Count in tagged texts."""
        self.pairs, self.words = {}, {}
        for words, labels in texts:
            for word, following, label in zip(words, [*words[1:], None], labels, strict=True):
                self.pairs.setdefault((word, following), Counter())[label] += 1
                self.words.setdefault(word, Counter())[label] += 1

    def predict(self, words: Sequence[str]) -> list[int]:
        """Return a label for each word; 0 for a word that was never counted."""
        pairs = zip(words, [*words[1:], None], strict=True)
        counts = [self.pairs.get(pair) or self.words.get(pair[0]) or Counter([0]) for pair in pairs]
        return [count.most_common(1)[0][0] for count in counts]
