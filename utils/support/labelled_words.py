"""Read your own texts with a label for each word, and split them into train, validation and test. Used in 15."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import NamedTuple

from utils.support.labelled_texts import group_texts, sorted_names
from utils.support.scores import LABEL, kinds_of
from utils.support.tables import count_missing, holds_json, plain_file

BLANK = " \t\r\n"  # separates words; a no-break space does not
MARKS = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "spaces"}  # between columns, the most likely first
WORD_COLUMN = re.compile(r"(\w+[_ ])?(word|token|form|text)s?([_ ]\w+)?", re.IGNORECASE)
LABEL_COLUMN = re.compile(
    r"(\w+[_ -])?(labels?|tags?|class(es)?|ner|[ux]?pos|bio|bilou|iob2?|entity|entities)([_ -]\w+)?", re.IGNORECASE
)
NUMBER = re.compile(r"[+-]?\d+([-.,:]\d+|%)?")  # a position or class, or with the group a range or share
MANY_CLASSES = 40  # of integers, which are no classes if they are more
NOT_OF_WORDS = re.compile(r"[\d\s=|/_]")  # of ids, offsets, features, paths and phrases
# of labels in WebAnno TSV and CoNLL-2012, which mark whole spans: PER[1], _ and (PER*, *)
WHOLE_SPANS = re.compile(r"_|\*|.+\[\d+\]|\(.+|.+\)")
WordText = list[tuple[str, str]]  # (word, label) for each word of a text


class SplitWordDataset(NamedTuple):
    """Three parts as in `SplitDataset`: a text is its words and a label for each."""

    train: list[tuple[list[str], list[int]]]
    validation: list[tuple[list[str], list[int]]]
    test: list[tuple[list[str], list[int]]]
    names: tuple[str, ...]
    words: int  # in the file
    texts: int  # in the file, including those that occur twice
    contradicted: int  # texts that occur with several labels, of which the first are used
    missing: dict[str, int]  # labels such as "NA", which look like missing values, and how many there are
    columns: str  # with words and labels in a file with tabs or spaces, otherwise ""


def read_words(path: str | Path, seed: int = 0) -> SplitWordDataset:
    """Read the texts of your own file without a header: a word and its label in each row, a blank row between texts.

    Columns are separated by commas or semicolons, as in CSV, or by tabs or spaces, without quotes, as in CoNLL-2003.
    The column with the most different words, without digits, has the words; the last other one has the labels, unless
    only an earlier one has labels such as B-PER. Lines above a text that begin with # are comments. A tenth of the
    texts, but at least one, goes into test, as many into validation if possible, the rest into train, which has a text
    of each class.
    Equal texts are used once, with their first labels; texts that differ only in case are in one part. The split
    depends on the `seed`. FileNotFoundError for a missing file; ValueError, with file and line, for anything that is
    missing or unexpected.
    """
    path = plain_file(path, "a CSV with a word and a label in each row")
    try:
        texts, columns = word_texts(path)
    except (ValueError, csv.Error) as error:  # such as a UnicodeDecodeError
        raise ValueError(
            f"{path} cannot be read ({error}): save it as CSV, UTF-8, with a word and its label in each row, "
            "and an empty row between texts"
        ) from error
    file = f"{path} ({columns})" if columns else str(path)
    counts = Counter(label for text in texts for _, label in text)
    names = sorted_names(counts)
    check_words(file, texts, counts)
    rows = ((" ".join(word for word, _ in text), [label for _, label in text], text) for text in texts)
    groups, contradicted = group_texts(rows, seed)
    if len(groups) < 3:
        different = f"{len(groups)} different text" + "s" * (len(groups) > 1)
        raise ValueError(
            f"{file} has {different} in {counts.total():,} rows, too few for three parts: "
            "leave an empty row between texts, and write at least 3"
        )
    numbers = {name: number for number, name in enumerate(names)}
    parts = [
        [([word for word, _ in text], [numbers[label] for _, label in text]) for text in part]
        for part in split_word_dataset(file, groups)
    ]
    missing = {label: counts[label] for label in count_missing(names) if re.search(r"\w", label)}
    return SplitWordDataset(*parts, names, counts.total(), len(texts), contradicted, missing, columns)


def word_texts(path: Path) -> tuple[list[WordText], str]:
    """Return a file's texts and the columns that hold words and labels, or "" for CSV, which has two.

    ValueError, with the line, for a row that has more or fewer columns than most.
    """
    if holds_json(path):
        raise ValueError("it contains JSON")
    with path.open(encoding="utf-8-sig") as file:
        lines = [line.lstrip("\ufeff") for line in file]  # the marks of files that were joined
    sample = [line for line in lines[:5000] if not line.startswith("#")]
    splits = {mark: sum(len(row) > 1 for _, row in split_rows(sample, mark)) for mark in MARKS}
    mark = max(splits, key=splits.get)
    rows = [*split_rows(lines, mark, strict=True)]
    sizes = Counter(len(row) for _, row in rows if any(row) and not row[0].startswith(("#", "-DOCSTART-")))
    columns = 2 if mark in ",;" or not sizes else max(2, sizes.most_common(1)[0][0])
    texts = [[]]
    for line, row in rows:
        if not any(row) or row[0].startswith("-DOCSTART-"):
            texts.append([])
        else:
            texts[-1].append((line, row))
    has_comments = commented(texts)
    texts = [text for text in (without_comments(text, columns, has_comments) for text in texts) if text]
    for line, row in (item for text in texts for item in text):
        check_fields(row, line, columns, mark)
    if columns == 10 and all(NUMBER.fullmatch(row[0]) for text in texts for _, row in text):
        raise ValueError("it has the ten columns of CoNLL-U: keep two, the word and its label, with a tab between them")
    first, last = word_and_label_columns([[row for _, row in text] for text in texts]) if texts else (0, 1)
    texts = [[word_and_label(row[first], row[last], line) for line, row in text] for text in texts]
    return texts, "" if mark in ",;" else f"columns {first + 1} and {last + 1}, between {MARKS[mark]}"


def commented(texts: Sequence[list[tuple[int, list[str]]]]) -> bool:
    """Return whether the first line of most texts begins with # and ends with what no other line does: a comment."""
    firsts = [text[0][1] for text in texts if text]
    labels = {row[-1] for text in texts for _, row in text if not row[0].startswith("#")}
    marked = [row for row in firsts if row[0].startswith("#") and row[-1] not in labels]
    return len(marked) > 1 and len(marked) > 0.9 * len(firsts)


def without_comments(
    text: list[tuple[int, list[str]]], columns: int, has_comments: bool
) -> list[tuple[int, list[str]]]:
    """Return the rows of a text without the comments above it, as in CoNLL-U, GermEval and MultiCoNER."""
    return list(
        dropwhile(lambda item: is_comment(item[1], columns) or (has_comments and item[1][0].startswith("#")), text)
    )


def word_and_label_columns(texts: Sequence[Sequence[Sequence[str]]]) -> tuple[int, int]:
    """Return the indices of the columns with words and with labels; ValueError if two could be one of them."""
    rows = [row for text in texts for row in text]
    columns = [*zip(*([row for row in rows if row != rows[0]] or rows), strict=True)]  # without a header
    kinds = {index: found for index, column in enumerate(columns) if (found := kinds_of({*column}))}
    others = [index for index in range(len(columns)) if index not in kinds]
    first = word_column(columns, others) if len(columns) > 2 else min(others, default=0)
    others = [index for index in range(len(columns)) if index != first]
    of_words = [index for index in others if any(len({row[index] for row in text}) > 1 for text in texts[1:])]
    return first, label_column(columns, kinds, of_words or others)


def word_column(columns: Sequence[Sequence[str]], others: Sequence[int]) -> int:
    """Return the one of these other columns with the most different values that have letters, and no digits.

    ValueError if another has nearly as many, unless it comes later and begins as the words do, as lemmas.
    """
    counts = {
        index: sum(any(map(str.isalpha, value)) and not NOT_OF_WORDS.search(value) for value in {*columns[index]})
        for index in others
    }
    if not any(counts.values()):  # the words are numbers, too
        return int(all(map(NUMBER.fullmatch, columns[0])))
    first = max(counts, key=counts.get)
    beginnings = [[value[:2].casefold() for value in column] for column in columns]
    for index in others:
        alike = sum(map(str.__eq__, beginnings[index], beginnings[first])) > len(columns[0]) / 2
        if index != first and counts[index] > 0.8 * counts[first] and not (alike and index > first):
            low, high = sorted((first + 1, index + 1))
            raise ValueError(f"its columns {low} and {high} could both be the words: leave one of them out")
    return first


def label_column(columns: Sequence[Sequence[str]], kinds: Mapping[int, set[str]], others: Sequence[int]) -> int:
    """Return the one of these other columns with the labels: the last, unless only an earlier one has B-PER or O.

    Positions, shares and columns with one value are no labels. ValueError if two columns have labels of the same kinds,
    as nested entities have, and for labels of whole spans.
    """
    classes = [index for index in others if len({*columns[index]}) > 1 and not are_positions(columns[index])]
    chosen = max(classes or others)
    if chosen not in kinds and "O" not in columns[chosen]:
        chosen = max(kinds or [index for index in others if "O" in columns[index]], default=chosen)
    if rivals := [index for index in kinds if index != chosen and kinds[index] & kinds.get(chosen, set())]:
        both = " and ".join(str(index + 1) for index in sorted([*rivals, chosen]))
        raise ValueError(f"its columns {both} all have labels such as B-{min(kinds[chosen])}: keep one of them")
    spans = sorted(filter(WHOLE_SPANS.fullmatch, {*columns[chosen]}))
    if spans and len(columns) > 2 and "O" not in columns[chosen]:
        raise ValueError(
            f"its labels such as {spans[0]!r}, in column {chosen + 1}, mark whole spans, as in WebAnno TSV and "
            "CoNLL-2012: export it as CoNLL-2003, with labels such as B-PER, I-PER and O"
        )
    return chosen


def are_positions(column: Sequence[str]) -> bool:
    """Return whether a column has ranges such as 0-4, shares such as 0.98, or integers that rise or are too many."""
    numbers = [*map(NUMBER.fullmatch, column)]
    if not all(numbers) or any(number[1] for number in numbers):
        return all(numbers)
    rising = sum(int(value) < int(following) for value, following in pairwise(column))
    return rising > 0.6 * len(column) or len({*column}) > MANY_CLASSES


def split_rows(lines: Sequence[str], mark: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row; quotes count only with commas and semicolons."""
    if mark in ",;":
        rows = csv.reader(lines, delimiter=mark, strict=strict)
        yield from ((rows.line_num, [field.strip(BLANK) for field in row]) for row in rows)
        return
    for number, line in enumerate(lines, start=1):
        line = line.rstrip(BLANK) if mark == "\t" else re.sub(r"[ \t]+", " ", line.strip(BLANK))
        yield number, [field.strip(BLANK) for field in line.split(mark)]


def is_comment(row: Sequence[str], columns: int) -> bool:
    """Return whether a row above a text is a comment, as in CoNLL-U and GermEval, and not the character # as a word."""
    line = " ".join(row)
    return re.match(r"# ?\S+ = ", line) is not None or (line.startswith("# ") and len(row) != columns)


def check_fields(row: Sequence[str], line: int, columns: int, mark: str) -> None:
    """Raise ValueError unless a row has as many fields as most."""
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
    """Return the word and label of a row; ValueError, with the line, unless it has one of each."""
    label = label.strip()
    if not word or not label:
        missing = "word for the label" if label else "label for the word"
        raise ValueError(f"line {line} has no {missing} {word or label!r:.80}")
    if "\0" in word + label:
        raise ValueError(f"line {line} has a NUL byte in it, as UTF-16 has")
    if re.search(f"[{BLANK}]", word):  # a no-break space is a part of its word
        reason = "a stray quote swallows lines" if "\n" in word else "each word needs its own row"
        raise ValueError(f"line {line} has several words, {word!r:.80}; {reason}")
    if re.fullmatch('".*"', label):
        raise ValueError(f"line {line} has quotes around the label {label}: between tabs or spaces, leave them out")
    return word, label


def check_words(file: str, texts: Sequence[WordText], counts: Counter) -> None:
    """Raise ValueError for fewer than two classes, for labels in the column of words, and for a header.

    A header names the columns, or has the only label without a prefix such as B-; joined files may have several.
    """
    if not counts:
        raise ValueError(f"{file} is empty: write a word and its label into each row, such as Paris,place")
    label = texts[0][0][1]
    marked = set(filter(LABEL.fullmatch, counts))
    for name in sorted(counts.keys() - marked):
        words = {word for text in texts for word, label in text if label == name}
        named = LABEL_COLUMN.fullmatch(name) and all(map(WORD_COLUMN.fullmatch, words))
        alone = marked and counts.keys() - marked - {"O"} == {name} and len(words) == 1
        if named or (alone and (label == name or counts[name] > 1)):
            where = "begins with" if label == name else "has among its words"
            times = f" ({counts[name]} times)" if counts[name] > 1 else ""
            remedy = "and begin with a word" if named or label == name else "or write its label with a prefix, as B-PER"
            raise ValueError(f"{file} {where} a header, {min(words)!r} and {name!r}{times}: delete it, {remedy}")
    if wrong := [name for name in counts if re.fullmatch("[BIESLUM]-[Oo]", name)]:
        raise ValueError(f"{file} has the label {wrong[0]!r}: write the letter O, without a prefix, for words outside")
    if marked and "O" not in counts and counts.keys() != marked:
        outside = max(counts.keys() - marked, key=lambda name: counts[name])
        raise ValueError(
            f"{file} has labels such as {min(marked)} and {outside!r}: write the letter O for words outside"
        )
    if len(counts) < 2:
        raise ValueError(f"{file} has one class, {label!r}: use at least two different labels")
    words = {word for text in texts for word, _ in text}
    if len(beginnings := {word.partition(":")[0] + ":" for word in words}) == 1 and len(words) > 1:
        raise ValueError(f"{file}: every word begins with {min(beginnings)!r}, as in WikiANN: leave that out")
    if len(counts) > len(words):
        raise ValueError(
            f"{file} has {len(words)} different words and {len(counts)} different labels, as if they were swapped: "
            "write the word first, then its label"
        )


def split_word_dataset(file: str, groups: Sequence[list[WordText]]) -> list[list[WordText]]:
    """Split groups of texts into train, validation and test; train keeps a text of each class."""
    in_train = Counter(label for group in groups for label in labels_of(group))  # groups that have each class
    parts, tenth = {"train": [], "validation": [], "test": []}, max(1, sum(map(len, groups)) // 10)
    for group in groups:
        labels, name = labels_of(group), "train"
        if all(in_train[label] > 1 for label in labels):
            name = next((name for name in ("test", "validation") if len(parts[name]) < tenth), "train")
        parts[name] += group
        if name != "train":
            in_train.subtract(labels)
    if not (parts["test"] and parts["validation"]):  # each text has a class that no other text has
        rare = ", ".join(sorted(label for label, count in in_train.items() if count == 1))
        raise ValueError(
            f"{file}: no text can be set aside, because the classes {rare:.80} are in one text each: "
            "write more texts, or leave these classes out"
        )
    return list(parts.values())


def labels_of(group: Sequence[WordText]) -> set[str]:
    """Return the classes that occur in a group of texts."""
    return {label for text in group for _, label in text}
