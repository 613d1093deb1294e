"""Read tables and texts from files: CSV, JSON Lines, or a text in each line."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from utils.support.files import as_path

if TYPE_CHECKING:
    import pandas as pd

csv.field_size_limit(2**31 - 1)  # the default, which pandas uses, too, rejects texts over 131,072 characters
TABLES = (".csv", ".tsv", ".tab")  # names of files with columns
# what programs write for a missing value: pandas, R, SQL, Hive, JavaScript, Excel, Windows, SAS, Weka
MISSING = re.compile(
    r"[(<\[{#]?[+-]?(?:nan|null|none|nil|n\.?/?a\.?|nat|undefined|missing|not available)[)>\]}!]?"
    r"|\\N|#(?:VALUE!|REF!|DIV/0!|NAME\?|NUM!|N/A N/A)|-?1\.#(?:IND|QNAN)|[-.?_–—]{1,3}",
    re.IGNORECASE,
)
# a value as Python prints it: b'text', ['text'], (3,), {'a': 1} and tensor(3)
PRINTED = re.compile(r"""b(['"]).*\1|[\[({]\s*(?:b?['"]|-?\d).*[\])}]|[\w.]+\([^()]*\)""", re.DOTALL)

# what files that hold no plain text begin with, and the remedy
SIGNATURES = {
    **{
        beginning: f"is compressed by {program}: unpack it"
        for program, beginning in {
            "gzip": b"\x1f\x8b",
            "bzip2": b"BZh",
            "xz": b"\xfd7zXZ",
            "zstd": b"\x28\xb5\x2f\xfd",
            "7-Zip": b"7z\xbc\xaf\x27\x1c",
            "RAR": b"Rar!",
            "LZ4": b"\x04\x22\x4d\x18",
        }.items()
    },
    b"\xd0\xcf\x11\xe0": "is a document of an older Office: save it as CSV, UTF-8",
    b"SQLite f": "is a database of SQLite: export its table as CSV, UTF-8",
    **dict.fromkeys(
        (b"\x89HDF", b"\x93NUMPY", b"\x80\x04\x95", b"\x80\x05\x95"), "holds data of a program: save its table as CSV"
    ),
    b"PK\x03\x04": "is a workbook or a ZIP file: save it as CSV, UTF-8",
    **dict.fromkeys(
        (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"),
        'is a table of Parquet or Arrow: save it with to_csv, or to_json(orient="records", lines=True)',
    ),
    **dict.fromkeys((b"%PDF", b"{\\rtf"), "is a formatted document: save it as plain text, UTF-8"),
}
# lines of files that hold more than texts, and what they hold
MIXED_LINES = {
    r"</\w+>|<\w+ [^<>]*=[^<>]*>|<(\w+)[^>]*>.*</\1>": "tags, as XML and HTML have",
    r"__label__\S+ .*": "labels (__label__), as files of fastText have",
    r"\d+:\d\d:\d\d[,.]\d+ --> .*": "times, as subtitles have",
}


def existing_file(path: str | Path, kind: str) -> Path:
    """Return the path of a file; FileNotFoundError, with the `kind` of file that is expected, if it does not exist."""
    path = as_path(path)
    if not path.is_file():
        is_other = path.exists() and not path.is_dir()  # such as a named pipe, which would never end
        problem = f"{path} is not a regular file" if is_other else f"there is no file {path}"
        raise FileNotFoundError(f"{problem}: give the path of {kind}")
    return path


def plain_file(path: str | Path, kind: str) -> Path:
    """Return the path of a file of plain text; ValueError, with a remedy, for another format, however it is called."""
    path = existing_file(path, kind)
    with path.open("rb") as file:
        beginning = file.read(8)
    for signature, problem in SIGNATURES.items():
        if beginning.startswith(signature):
            raise ValueError(f"{path} {problem}")
    return path


# Tables


def read_csv(file: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return these columns of a CSV file as one dictionary per row; errors as in `read_table`."""
    remedy = f"save it as CSV, UTF-8, with the columns {', '.join(columns)}"
    return read_table(file, columns, remedy)[[*columns]].to_dict("records")


def read_table(file: Path, columns: Sequence[str], remedy: str) -> "pd.DataFrame":
    """Return a CSV file with a header as a table of texts.

    Commas, semicolons, tabs or bars separate the columns; for quotes with tabs, see `has_quoted_fields`. A byte order
    mark is skipped, and so is a line such as "sep=;" above the header, by which Excel takes the separator. ValueError,
    with file and line, for a missing column, a row that is too short or too long, and bytes that are not UTF-8.
    """
    import pandas as pd

    try:
        with file.open(encoding="utf-8-sig") as lines:
            begin, header = 0, lines.readline()
            if header.strip('" ').lower().startswith("sep="):
                begin, header = lines.tell(), lines.readline()
            separator = separator_of(header, columns)
            lines.seek(begin)
            quoted = separator != "\t" or has_quoted_fields(lines)
            lines.seek(begin)
            quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
            options = {"dtype": str, "keep_default_na": False, "header": None, "skipinitialspace": True}
            table = pd.read_csv(
                lines, sep=separator, quoting=quoting, engine="python", **options
            )  # strict on stray quotes
        if (short := table.isna().any(axis=1)).any():
            raise ValueError(f"row {short.argmax()} below the header has fewer than {table.shape[1]} columns")
    except pd.errors.ParserError as error:
        raise ValueError(
            f"{file} cannot be read ({error}): put double quotes around a text with {separator!r}, and double each "
            "quote in it"
        ) from error
    except ValueError as error:  # such as a UnicodeDecodeError
        raise ValueError(f"{file} cannot be read ({error}): {remedy}") from error
    table.isetitem(0, table[0].str.lstrip("\ufeff"))  # the marks of files that were joined
    table.columns = table.iloc[0].str.strip()
    check_columns(file, table, columns, remedy)
    check_header_once(file, table.iloc[1:], columns)
    return table.iloc[1:]


def separator_of(header: str, columns: Sequence[str]) -> str:
    """Return what separates the columns: what the header has most of, first where it gives the names of `columns`."""

    def fit(mark: str) -> tuple[bool, int]:
        names = {name.strip(' "') for name in header.strip().split(mark)}
        return names >= {*columns}, header.count(mark)

    return max(",;\t|", key=fit)


def has_quoted_fields(lines: Iterable[str]) -> bool:
    """Return whether quotes surround fields of a table with tabs, as pandas writes it, and are not parts of the texts.

    They surround fields if all rows then have equally many, and if no field swallows the end of another row.
    """
    try:
        rows = [*filter(None, csv.reader(lines, delimiter="\t", strict=True))]
    except csv.Error:
        return False
    return len({*map(len, rows)}) == 1 and not any(re.search(r"\t.*\n|\n.*\t", field) for row in rows for field in row)


def check_columns(file: Path, table: "pd.DataFrame", columns: Sequence[str], remedy: str) -> None:
    """Raise ValueError unless the table has each of these columns exactly once."""
    header = [*table.columns]
    for name in columns:
        if name not in header:
            raise ValueError(f"{file} cannot be read (the column {name!r} is missing from {header}): {remedy}")
        if header.count(name) > 1:
            raise ValueError(f"{file} cannot be read (the header names the column {name!r} more than once): {remedy}")


def check_header_once(file: Path, table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Raise ValueError if a row repeats the names of these columns, in any order, as in files that were joined.

    With fewer than two of these columns, a row that repeats all names of the table.
    """
    kept = table[[*columns]] if len(columns) > 1 else table
    header = sorted(name.strip().casefold() for name in kept.columns)
    rows = kept.itertuples(index=False, name=None)
    again = [n for n, row in enumerate(rows, start=1) if sorted(cell.strip().casefold() for cell in row) == header]
    if again:
        rows = f"{again[0]} below the header" + f", and {len(again) - 1} more," * (len(again) > 1)
        raise ValueError(f"{file}: row {rows} has the names of the columns again: delete such rows, as of joined files")


def check_filled(file: Path, table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Raise ValueError if one of these columns has an empty cell."""
    for column in columns:
        if (empty := table[column].str.strip() == "").any():
            raise ValueError(
                f"{file}: row {empty.argmax() + 1} below the header has nothing in the column {column!r}: "
                "fill it in, or delete the row"
            )


def count_missing(cells: Iterable[str]) -> dict[str, int]:
    """Return how often each spelling of a missing value, such as NaN, is used as a text."""
    return dict(Counter(filter(MISSING.fullmatch, cells)))


# JSON Lines


def holds_json(path: Path) -> bool:
    """Return whether a file begins with a JSON object or a list of them."""
    return re.match(r"\{\s*(\"|$)|\[\s*(\{|$)", next(filter(None, text_lines(path)), "")) is not None


def json_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield these fields of each object in a JSON Lines file; ValueError, with file and line, for any other line.

    A missing value, null or NaN, is an error. Half an emoji, as in a cut text, is left out.
    """
    for number, line in enumerate(text_lines(path), start=1):
        if not line:
            continue
        try:
            row = json.loads(line, parse_constant=lambda name: None)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}: line {number} is not a JSON object: write one object per line (JSON Lines), "
                "or save the texts as CSV, UTF-8"
            )
        for column in columns:
            if column not in row:
                raise ValueError(f"{path}: line {number} has no text or number as {column!r}: name one of {[*row]}")
            if not isinstance(row[column], str | int | float):
                value = json.dumps(row[column])
                raise ValueError(
                    f"{path}: line {number} has {value:.40} as {column!r}: write a text or number, or delete the line"
                )
        yield {column: str(row[column]).encode("utf-8", "ignore").decode() for column in columns}


def read_json(path: Path, columns: Sequence[str]) -> "pd.DataFrame":
    """Return these fields of a JSON Lines file as a table."""
    import pandas as pd

    table = pd.DataFrame(json_rows(path, columns), columns=[*columns])
    check_header_once(path, table, columns)
    return table


# Texts


def text_file(path: str | Path) -> Path:
    """Return the path of a text file; FileNotFoundError if it does not exist."""
    return plain_file(path, "a text file, UTF-8, with a text in each line")


def read_texts(paths: Sequence[str | Path], column: str = "text") -> Iterator[str]:
    """Yield the texts of your own files, UTF-8, with only one text in memory at a time, except of tables.

    Each line is a text. If blank lines separate others, each block of lines is a text; in JSON Lines and in a table
    (.csv or .tsv), each entry of the column. FileNotFoundError for a missing file; ValueError, with file and line, for
    an empty file, a table by another name, and bytes that are not UTF-8.
    """
    for path in map(text_file, paths):
        if holds_json(path):
            yield from filter(None, (" ".join(row[column].split()) for row in json_rows(path, (column,))))
            continue
        if is_table(path):
            remedy = "name the column with the texts (--text), or give a file with a text in each line another ending"
            yield from filter(None, (" ".join(text.split()) for text in read_table(path, (column,), remedy)[column]))
            continue
        check_unmixed(path)
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


def is_table(path: Path) -> bool:
    """Return whether a file is a table by its name; ValueError if only its content looks like one."""
    if path.suffix.lower() in TABLES:
        return True
    lines = list(islice(filter(None, text_lines(path)), 200))
    for mark in "\t;,":
        rows = [*csv.reader(lines, delimiter=mark, quoting=csv.QUOTE_NONE if mark == "\t" else csv.QUOTE_MINIMAL)]
        equal = sum(len(row) == len(rows[0]) for row in rows)
        is_header = all(len(name.split()) < 4 for name in rows[0]) if rows and mark != "\t" else True
        if len(rows) >= 20 and len(rows[0]) > 1 and is_header and equal > 0.95 * len(rows):
            raise ValueError(
                f"{path} looks like a table with {len(rows[0])} columns, {', '.join(rows[0])!r:.80}: let its name end "
                "in .csv or .tsv, or save its texts alone, one in each line"
            )
    return False


def check_unmixed(path: Path) -> None:
    """Raise ValueError if lines hold tags, labels or times besides texts: a model would learn them."""
    lines = list(islice(filter(None, text_lines(path)), 200))
    for pattern, content in MIXED_LINES.items():
        if sum(re.fullmatch(pattern, line) is not None for line in lines) > 1:
            raise ValueError(f"{path} has {content}: save its texts alone, one in each line")


def has_blocks(path: Path) -> bool:
    """Return whether blank lines separate the texts of a file; ValueError if it is empty."""
    texts, gap = 0, False
    for line in text_lines(path):
        if line and gap:
            return True
        texts += bool(line)
        gap = bool(texts) and not line
    if not texts:
        raise ValueError(f"{path} is empty: write a text in each line")
    return False


def text_lines(path: Path) -> Iterator[str]:
    """Yield the stripped lines of a file; ValueError, with file and line, for bytes that are not UTF-8."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as lines:  # \r also ends a line
        for number, line in enumerate(lines, start=1):
            try:
                text = line.encode("utf-8", "surrogateescape").decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path} cannot be read (line {number}: {error}): save it as UTF-8") from error
            if "\0" in text:
                raise ValueError(f"{path} has a NUL byte in line {number}, as UTF-16 has: save it as UTF-8")
            yield text.lstrip("\ufeff").strip()  # the mark of another file that was joined
