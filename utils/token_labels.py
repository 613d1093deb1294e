"""A label for every token: the model, labels of words at their pieces, and labels for free. Built in notebook 15."""

import re
import string
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.classifier import head_dropout
from utils.encoder import TransformerEncoder, initialize
from utils.support.batches import collate, device_of, evaluation_mode, sorted_batches
from utils.support.checks import check_size
from utils.training import Evaluation, summarize, summed
from utils.weights import HeadedModel

BILOU = str.maketrans("LUM", "ESI")  # the prefixes of other schemes (last, unit, middle)
IGNORED = -100  # at this label cross_entropy takes nothing from the loss (its ignore_index)
# how a word stands in its text: with a small or a capital letter, and with which mark behind it
LABELS = ("word", "word,", "word.", "word?", "Word", "Word,", "Word.", "Word?")
MARKS = {"": "", ",": ",", ".": ".", "!": ".", "?": "?"}  # an exclamation mark ends a sentence, as a full stop does
KINDS = {  # what is looked for, and the labels that have it
    "capital": (4, 5, 6, 7),
    "comma": (1, 5),
    "full stop": (2, 6),
    "question mark": (3, 7),
}


class TransformerForTokenClassification(HeadedModel):
    """BERT with a label for every token: encoder → dropout → linear, at each position (Devlin et al. 2019, 5.3)."""

    architecture = "BertForTokenClassification"
    without_head = "num_labels=2 asks for a new, untrained one"

    def __init__(self, config: BertConfig):
        """Random weights, in training mode; `config.num_labels` classes. ValueError for fewer than two."""
        super().__init__()
        check_size("num_labels", config.num_labels, minimum=2)
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        initialize(self.classifier, config.initializer_range)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """input_ids, attention_mask (1 = real token) and token_type_ids (B, S) to logits (B, S, num_labels)."""
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(self.dropout(hidden_states))


def align(words: Sequence[str], labels: Sequence[int], tokenizer) -> tuple[list[int], list[int]]:
    """Words and their labels to ids and as many labels: a word's own at its first piece, -100 everywhere else.

    [CLS] in front and [SEP] at the end have -100, too. ValueError unless each word has a label.
    """
    if len(words) != len(labels):
        raise ValueError(f"got {len(words)} words and {len(labels)} labels: pass one label per word")
    cls_id, sep_id = tokenizer.encode("")
    ids, aligned = [cls_id], [IGNORED]
    for word, label in zip(words, labels, strict=True):
        # a word of which no piece is left, such as a lone control character, is [UNK]: no label is lost
        pieces = tokenizer.encode(word, add_special_tokens=False)
        pieces = pieces or tokenizer.encode("[UNK]", add_special_tokens=False)
        ids += pieces
        aligned += [label] + [IGNORED] * (len(pieces) - 1)
    return [*ids, sep_id], [*aligned, IGNORED]


def align_parts(words: Sequence[str], labels: Sequence[int], tokenizer, room: int) -> list[tuple[list[int], list[int]]]:
    """As `align`, in as few rows as hold the text, cut between two words: none has more than `room` ids.

    ValueError for a word that fills no row.
    """
    rows, start = [], 0
    sizes = [len(align([word], [0], tokenizer)[0]) - 2 for word in words]
    while start < len(words):
        end, size = start, 2
        while end < len(words) and size + sizes[end] <= room:
            size += sizes[end]
            end += 1
        if end == start:
            pieces = f"{words[start]!r:.80} has {sizes[start]} pieces"
            raise ValueError(f"{pieces}, and a row takes {room - 2}: use a model with more positions")
        rows.append(align(words[start:end], labels[start:end], tokenizer))
        start = end
    return rows


def join_parts(parts: Sequence[list], counts: Sequence[int]) -> list[list]:
    """Lists joined again, so many of them for each text."""
    parts = iter(parts)
    return [[item for part in islice(parts, count) for item in part] for count in counts]


# Labels for free: capitals and marks are taken away, and the labels tell how to put them back


class Labelled(NamedTuple):
    """A text's words and a label for each."""

    words: list[str]
    labels: list[int]


def take_away(text: str) -> Labelled:
    """The words of a text without capitals and marks, and how each of them stood there: a place in `LABELS`."""
    words, labels = [], []
    for written in text.split():
        word = written.strip(string.punctuation)
        if not word:
            continue  # a dash that stands alone
        behind = written[written.rindex(word) + len(word) :]
        mark = next((MARKS[character] for character in behind if character in MARKS), "")
        words.append(word.lower())
        labels.append(LABELS.index(("Word" if word[0].isupper() else "word") + mark))
    return Labelled(words, labels)


def put_back(words: Sequence[str], labels: Sequence[int]) -> str:
    """Words with the capitals and marks that their labels ask for: `take_away` backwards."""
    marked = []
    for word, label in zip(words, labels, strict=True):
        name = LABELS[label]
        marked.append((word[:1].upper() + word[1:] if name[0] == "W" else word) + name[4:])
    return " ".join(marked)


def passages(reviews: Sequence[str], least: int = 8, most: int = 40) -> list[Labelled]:
    """The first sentences of each review, as many as have `most` words at the most; none of fewer than `least`."""
    found = []
    for review in reviews:
        words = []
        for sentence in re.split(r"(?<=[.!?])\s+", review):
            if len(words) + len(sentence.split()) > most:
                break
            words += sentence.split()
        labelled = take_away(" ".join(words))
        if len(labelled.words) >= least:
            found.append(labelled)
    return found


# Training and answers


def label_tokens(model: nn.Module, rows: Sequence[tuple[list[int], list[int]]], batch: Sequence[int]) -> Tensor:
    """Label the rows with these indices; summed loss, right answers and number of them, (3,), as `fit` takes it.

    A row is what `align` returns. Only tokens with a label count.
    """
    inputs = collate([rows[index][0] for index in batch], device_of(model))
    labels = torch.full_like(inputs["input_ids"], IGNORED)
    for place, index in enumerate(batch):
        labels[place, : len(rows[index][1])] = torch.tensor(rows[index][1])
    asked = labels != IGNORED
    return summed(model(**inputs)[asked], labels[asked])


@torch.no_grad()
def evaluate_tokens(model: nn.Module, rows: Sequence[tuple[list[int], list[int]]]) -> Evaluation:
    """Loss and accuracy per labelled token of rows of ids and labels, in evaluation mode."""
    with evaluation_mode(model):
        batches = sorted_batches([ids for ids, _ in rows], 64)
        return summarize(sum(label_tokens(model, rows, batch).cpu() for batch in batches))


def predict_labels(model: nn.Module, tokenizer, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """The likeliest label of each word of each text, read at the word's first piece, in evaluation mode.

    A text is a list of words. ValueError for one that has more tokens than the model has positions.
    """
    return predict_rows(model, [align(words, [0] * len(words), tokenizer) for words in texts])


@torch.no_grad()
def predict_rows(model: nn.Module, rows: Sequence[tuple[list[int], list[int]]]) -> list[list[int]]:
    """The likeliest label at each place that has one, of rows of ids and labels, in evaluation mode."""
    found = [[] for _ in rows]
    with evaluation_mode(model):
        for batch in sorted_batches([ids for ids, _ in rows], 64):
            logits = model(**collate([rows[index][0] for index in batch], device_of(model)))
            for index, answers in zip(batch, logits.argmax(dim=-1).tolist(), strict=True):
                marked = zip(answers, rows[index][1], strict=False)  # padding has no label
                found[index] = [answer for answer, label in marked if label != IGNORED]
    return found


# How good the answers are


class Score(NamedTuple):
    """How many were found rightly, were found at all, and are there."""

    right: int
    found: int
    there: int

    @property
    def precision(self) -> float:
        """Share of what was found that is right; 0 if nothing was found."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of what is there that was found; 0 if nothing is there."""
        return self.right / self.there if self.there else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both: 2 · right / (found + there)."""
        return 2 * self.right / max(1, self.found + self.there)


def score(truth: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], kind: Sequence[int]) -> Score:
    """How well the labels of one kind are found in texts; a text's first capital and last mark are left out.

    They give themselves away: nearly every text begins with a capital and ends with a mark.
    """
    counts = Counter()
    for wanted, given in zip(truth, answers, strict=True):
        part = slice(1, None) if set(kind) == set(KINDS["capital"]) else slice(None, -1)
        for label, answer in zip(wanted[part], given[part], strict=True):
            counts["right"] += label in kind and answer in kind
            counts["found"] += answer in kind
            counts["there"] += label in kind
    return Score(counts["right"], counts["found"], counts["there"])


def spans(labels: Sequence[str], names: Collection[str] | None = None) -> set[tuple[str, int, int]]:
    """Return the entities in a sequence of labels, each as (type, start, end), by the rules of seqeval.

    B- begins an entity, I- (or M-) continues it, E- (or L-) ends it, S- (or U-) is one of a single word, "O" is
    outside. A label without a prefix counts as I-; what continues or ends nothing of its type begins an entity (CoNLL
    2000 evaluation). `names` are all classes of the data: unless one has B- or I-, none has a prefix, such as U-Bahn.
    """
    prefixed = names is None or any(name.startswith(("B-", "I-")) for name in names)
    found, start, previous = set(), None, ("O", "")
    for place, label in enumerate([*labels, "O"]):
        prefix, kind = ("O" if label == "O" else "I"), label
        if prefixed and re.match("[BIESLUM]-", label):
            prefix, kind = label[0].translate(BILOU), label[2:]
        continues = prefix in "IE" and previous[0] in "BI" and kind == previous[1]
        if start is not None and not continues:
            found.add((previous[1], start, place))
            start = None
        if prefix != "O" and start is None:
            start = place
        previous = prefix, kind
    return found


def count_spans(truth: Sequence[Collection], answers: Sequence[Collection]) -> Score:
    """How many spans are found, text by text: both ends and the kind must agree (CoNLL 2003, and seqeval)."""
    pairs = [*zip(truth, answers, strict=True)]
    right = sum(len(set(wanted) & set(given)) for wanted, given in pairs)
    return Score(right, sum(len(given) for _, given in pairs), sum(len(wanted) for wanted, _ in pairs))


def score_classes(
    truth: Sequence[Sequence[str]], answers: Sequence[Sequence[str]], names: Sequence[str]
) -> dict[str, Score]:
    """Count how well each class is found, word by word."""
    from sklearn.metrics import multilabel_confusion_matrix

    sides = ([label for text in side for label in text] for side in (truth, answers))
    counts = multilabel_confusion_matrix(*sides, labels=[*names])  # (N, 2, 2)
    return {
        name: Score(right, right + wrong, right + missed)
        for name, ((_, wrong), (missed, right)) in zip(names, counts.tolist(), strict=True)
    }


def names(labels: Sequence[int]) -> set[tuple[str, int, int]]:
    """Where words with capitals follow one another without a mark between them, as `spans` finds them.

    The first word of a text is no part of a name: it has its capital in any case.
    """
    capital = [place > 0 and label in KINDS["capital"] for place, label in enumerate(labels)]
    marks = ["I-name" if LABELS[label] == "Word" else "E-name" for label in labels]
    return spans([mark if is_name else "O" for mark, is_name in zip(marks, capital, strict=True)])


def score_names(truth: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], least: int = 1) -> Score:
    """How many whole names of `least` words or more are found."""
    sides = [
        [{run for run in names(labels) if run[2] - run[1] >= least} for labels in side] for side in (truth, answers)
    ]
    return count_spans(*sides)


class PairCounts:
    """The rival that counts: a word's most frequent label before its next word, or, for a new pair, of the word."""

    def __init__(self, texts: Sequence[Labelled]):
        self.pairs, self.words = {}, {}
        for words, labels in texts:
            for word, following, label in zip(words, [*words[1:], None], labels, strict=True):
                self.pairs.setdefault((word, following), Counter())[label] += 1
                self.words.setdefault(word, Counter())[label] += 1

    def predict(self, words: Sequence[str]) -> list[int]:
        """A label for each word; 0 for one that it has never met."""
        pairs = zip(words, [*words[1:], None], strict=True)
        counts = [self.pairs.get(pair) or self.words.get(pair[0]) or Counter([0]) for pair in pairs]
        return [count.most_common(1)[0][0] for count in counts]
