"""Read your own table with a label for each text, and split it into train, validation and test. Used in 08."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from utils.support.datasets import DATA, Examples, text_hash
from utils.support.tables import PRINTED, check_filled, count_missing, holds_json, plain_file, read_json, read_table

Text = TypeVar("Text")
SHOP_EMAILS = DATA / "shop_emails.csv"
# a label such as 4.5, 4,5, −1, 1e-05, 1.234,56, 80 %, 4/5, €3.20, 4 stars or 4 out of 5
NUMBER = re.compile(
    r"(?:[€$£¥] ?|(?-i:[A-Z]{3}) )?([+−–-]?\d*(?:[.,]\d{3})*[.,]?\d+(?:e[+-]?\d+)?)"
    r"(?: ?(?:[%‰€$£¥★°]|[a-z]{2,8}|k|m))?(?:(?:/| of | out of )\d+)?",
    re.IGNORECASE,
)


class SplitDataset(NamedTuple):
    """Three parts as in `Reviews`, of texts or of pairs, and the names of the classes: the label 0 is `names[0]`."""

    train: Examples
    validation: Examples
    test: Examples
    names: tuple[str, ...]
    rows: int  # in the table, including texts that occur twice
    contradicted: int  # texts that occur with several labels, of which the first is used
    multiline_rows: int  # rows whose text contains a line break, perhaps because of a stray quote
    rewritten: dict[str, str]  # labels such as "1.0" that are read as "1", because that is a label as well
    missing: dict[str, int]  # texts and labels such as "nan", which look like missing values, and how many there are

    def notes(self) -> list[str]:
        """Return a line for each fact that may be a mistake in the table."""
        lines = []
        if self.multiline_rows:
            lines += [f"Rows that span several lines: {self.multiline_rows}. Look for a stray quotation mark."]
        if self.contradicted:
            lines += [f"Texts with two labels or more: {self.contradicted}. The first label of each is used."]
        if self.rewritten:
            pairs = ", ".join(f"{old} as {new}" for old, new in self.rewritten.items())
            lines += [f"Labels read as integers: {pairs}"]
        lines += missing_note("Cells", self.missing)
        texts = [text for part in self[:3] for item in part.texts for text in parts_of(item)]
        if len(printed := [*filter(PRINTED.fullmatch, texts)]) > len(texts) / 2:
            lines += [f"Texts that look like values printed by Python, such as {printed[0]!r:.40}: {len(printed)}"]
        if isinstance(self.train.texts[0], tuple):
            known = {text for pair in self.train.texts for text in pair}
            shared = sum(not known.isdisjoint(pair) for pair in self.test.texts)
            lines += [f"Pairs for the test, {len(self.test)}, with a text that training has in another pair: {shared}"]
        return lines + doubts_about(self.names)


def parts_of(item: str | tuple[str, str]) -> tuple[str, ...]:
    """Return the text, or both texts of a pair."""
    return (item,) if isinstance(item, str) else item


def words_of(item: str | tuple[str, str]) -> str:
    """Return the words of a text or pair, by which equal ones are found, with single spaces between them."""
    return " [SEP] ".join(" ".join(text.split()) for text in parts_of(item))


def read_labelled(
    path: str | Path, text: str | Sequence[str] = "text", label: str = "label", seed: int = 0
) -> SplitDataset:
    """Read the texts and labels in two columns of your own table, split into three parts; the names are sorted.

    With the names of two columns as `text`, the texts are pairs. The table is CSV, separated by commas, semicolons or
    tabs, or JSON Lines. A tenth of each class, but at least one text, goes into test, as many into validation, the rest
    into train. Equal texts are used once, with their first label; texts that differ only in case are in one part. The
    split depends on the `seed`, and not on the order of the rows. FileNotFoundError for a missing file; ValueError for
    a missing column, cell or class, and for too few texts.
    """
    path = plain_file(path, "a CSV with a text and a label in each row")
    names = (text,) if isinstance(text, str) else tuple(text)
    columns = (*names, label)
    if label in names:
        raise ValueError(f"text and label are both {label!r}: name two columns of {path}")
    if len(names) not in (1, 2) or len({*names}) < len(names):
        raise ValueError(f"the texts are in {', '.join(names)}: name one column of {path}, or two for pairs of texts")
    remedy = "save it as CSV, UTF-8, with a header, and name its two columns as text and label (--text and --label)"
    table = read_json(path, columns) if holds_json(path) else read_table(path, columns, remedy)
    check_filled(path, table, columns)
    *texts, labels = ([cell.strip() for cell in table[column]] for column in columns)
    missing = count_missing(chain(*texts, labels))
    texts = texts[0] if len(texts) == 1 else [*zip(*texts, strict=True)]
    rewritten = same_numbers(labels)
    labels = [rewritten.get(name, name) for name in labels]
    items = zip(texts, labels, strict=True)
    rows = ((words_of(item), name, (item, name)) for item, name in items)
    groups, contradicted = group_texts(rows, seed)
    names = sorted_names({name for group in groups for _, name in group})
    counts = Counter(group[0][1] for group in groups)
    check_classes(path, label, names, counts)
    multiline_rows = sum("\n" in "".join(parts_of(item)) for item in texts)
    parts = split_dataset(groups, counts, names)
    return SplitDataset(*parts, names, len(texts), contradicted, multiline_rows, rewritten, missing)


def read_or_example(
    path: str | Path, text: str | Sequence[str] = "text", label: str = "label", most: int = 300
) -> SplitDataset:
    """Return `read_labelled` of a reader's table or, if it cannot be read, print why and return that of SHOP_EMAILS.

    Of a large table only the first `most` texts of each part are returned, and a line says so; other lines are its
    `notes`.
    """
    try:
        own = read_labelled(path, text, label)
    except (OSError, TypeError, ValueError) as error:
        reason = error if isinstance(path, str | Path) else f"the path must be a text, not {path!r:.60}"
        print(f"{reason}. This uses the example, {SHOP_EMAILS.name}, instead.")
        return read_labelled(SHOP_EMAILS)
    for line in own.notes():
        print(line)
    parts = [part[:most] for part in own[:3]]
    if cut := sum(map(len, own[:3])) - sum(map(len, parts)):
        print(f"Your table is large: this leaves out {cut:,} texts, and scripts/fine_tune.py uses all.")
    return own._replace(train=parts[0], validation=parts[1], test=parts[2])


def sorted_names(names: Collection[str]) -> tuple[str, ...]:
    """Return the names of classes in order, numbers by their size: 2 comes before 10."""
    numbers = dict(zip(names, as_numbers(names), strict=False))
    return tuple(sorted(names, key=lambda name: (numbers.get(name, 0), name)))


def as_numbers(names: Collection[str]) -> list[float]:
    """Return the labels as numbers, or an empty list unless all are."""
    matches = [*map(NUMBER.fullmatch, names)]
    # a point is what is last, and other commas and points are between thousands
    plain = (re.sub("[.,](?=.*[.,])", "", match[1]).replace(",", ".") for match in matches if match)
    numbers = (re.sub("[−–]", "-", number) for number in plain)
    return [*map(float, numbers)] if all(matches) else []


def same_numbers(labels: Sequence[str]) -> dict[str, str]:
    """Return each label such as "1.0" with "1", if that is a label, too: a column with missing values has both."""
    integers = {label: re.sub(r"\.0+$", "", label) for label in set(labels) if re.fullmatch(r"-?\d+\.0+", label)}
    return {label: integer for label, integer in sorted(integers.items()) if integer in labels}


def doubts_about(names: Sequence[str]) -> list[str]:
    """Return a line for each sign that the labels of texts are not the names of classes."""
    lines, several = [], []
    if numbers := as_numbers(names):
        if len(names) > 10 or any(number % 1 for number in numbers) or "%" in "".join(names):
            lines.append("The labels look like measurements. Each distinct number is a class of its own here.")
    else:
        parts = {
            name: {part for each in re.split(r"[,;|]", name) if (part := each.strip(" []()'\""))} for name in names
        }
        uses = Counter(part for each in parts.values() for part in each)
        several = [name for name, each in parts.items() if len(each) > 1 and all(uses[part] > 1 for part in each)]
    for name in filter(re.compile("-|-1|-?9{2,}").fullmatch, names):  # of SNLI and of tables of SPSS
        lines.append(f"The label {name} often marks a text without a label. If it does here, delete its rows.")
    if several:
        lines.append(f"Labels such as {several[0]!r:.40} look like several for a text. Each combination is a class.")
    return lines + odd_names(names)


def missing_note(what: str, counts: Mapping[str, int]) -> list[str]:
    """Return a line with what looks like a missing value, and how often it is used, if there is any."""
    listed = ", ".join(f"{word} ({count})" for word, count in counts.items())
    return [f"{what} that look like missing values, but are used: {listed}"] if counts else []


def odd_names(names: Sequence[str]) -> list[str]:
    """Return a line for labels that look like values of Python, and one for labels that are spelled alike.

    Those differ only in case, spaces or characters that are not seen.
    """
    lines, spellings = [], {}
    if printed := [*filter(PRINTED.fullmatch, names)]:
        lines.append(f"Labels such as {printed[0]!r:.40} look like values printed by Python. Write the class alone.")
    for name in names:
        letters = unicodedata.normalize("NFKC", name).casefold()
        spelling = "".join(letter for letter in letters if not re.match(r"Z|C", unicodedata.category(letter)))
        spellings.setdefault(spelling, []).append(name)
    if alike := [" and ".join(map(repr, each)) for each in spellings.values() if len(each) > 1]:
        lines.append(f"Labels that are spelled alike, but are different classes here: {', '.join(alike[:3])}")
    return lines


def group_texts(rows: Iterable[tuple[str, Hashable, Text]], seed: int) -> tuple[list[list[Text]], int]:
    """Return the different texts in an order that the seed draws, and how many come with several labels.

    Each row is (words, labels, item); of rows with equal words, the first item is kept. Texts that differ only in case
    form a group. scikit-learn's splits would depend on the order of the rows, and could leave a class out of a part.
    """
    first, contradicted = {}, set()
    for words, labels, item in rows:
        if first.setdefault(words, (labels, item))[0] != labels:
            contradicted.add(words)
    groups = {}
    for words, (_, item) in sorted(first.items(), key=itemgetter(0)):
        groups.setdefault(text_hash(f"{seed} {words}"), []).append(item)
    return [group for _, group in sorted(groups.items())], len(contradicted)


def check_classes(path: Path, label: str, names: Sequence[str], counts: Counter) -> None:
    """Raise ValueError unless there are two classes, each with a text for every part."""
    if len(names) < 2:
        classes = f"one class, {names[0]!r}," if names else "no class"
        raise ValueError(f"{path} has {classes} in the column {label!r}: use at least two different labels")
    rarest = min(names, key=lambda name: counts[name])
    if counts[rarest] < 3:
        raise ValueError(
            f"{path}: the class {rarest!r} has {counts[rarest]} different texts, too few for three parts: "
            "add texts until it has at least 3, or leave the class out"
        )


def split_dataset(groups: Sequence[list[tuple[str, str]]], counts: Counter, names: Sequence[str]) -> list[Examples]:
    """Split groups of (text, name) pairs into train, validation and test, each class in the same proportions."""
    parts, done = {"test": [], "validation": [], "train": []}, Counter()
    for group in groups:
        name = group[0][1]
        list(parts.values())[min(2, done[name] // max(1, counts[name] // 10))].extend(group)
        done[name] += 1
    numbers = {name: number for number, name in enumerate(names)}
    columns = [zip(*parts[part], strict=True) for part in ("train", "validation", "test")]
    return [Examples(list(texts), [numbers[name] for name in labels]) for texts, labels in columns]
