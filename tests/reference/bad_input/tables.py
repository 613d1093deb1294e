"""A table, texts with labels, and words with labels, all of one's own."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tests.reference.bad_input import Bad, Good, each
from utils.support import labelled_texts, labelled_words, tables


def rows_of(folder: Path, content: bytes | str) -> list[dict[str, str]]:
    """Return the rows of a CSV file with this content."""
    path = folder / "companies.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return tables.read_csv(path, ("name", "ticker"))


def table(content: bytes):
    """Whether a CSV file with these bytes has the row that it should have."""
    return lambda folder: rows_of(folder, content)[0] == {"name": "Café", "ticker": "C"}


GOOD_WORDS = "Anna,name\nmet,O\nBo,name\n\nCafé,O\nin,O\n\nMo,name\nis,O\n"
WORD_TEXTS = [["Anna", "met", "Bo"], ["Café", "in"], ["Mo", "is"]]


def more(*words: str) -> list[list[str]]:
    """Return the texts of GOOD_WORDS, the last of which has these words, too."""
    return [*WORD_TEXTS[:2], [*WORD_TEXTS[2], *words]]


def labelled(content: bytes | str, wanted: Sequence[Sequence[str]] = WORD_TEXTS):
    """The texts of a file of words and labels with this content."""

    def call(folder: Path):
        path = folder / "words.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found = labelled_words.read_words(path)
        return sorted(text for part in found[:3] for text, _ in part) == sorted(map(list, wanted))

    return call


def texts_of(name: str, content: bytes | str, label: str = "label"):
    """The texts and labels of a file with this name and content."""

    def call(folder: Path):
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found = labelled_texts.read_labelled(path, label=label)
        rows = [row for part in found[:3] for row in zip(part.texts, part.labels, strict=True)]
        pairs = [(text, found.names[number]) for text, number in rows]
        return sorted(pairs) == [(letter, "yes" if letter < "d" else "no") for letter in "abcdef"]

    return call


def lines_of(folder: Path, content: bytes | str, column: str = "text") -> list[str]:
    """Return the texts of a file to pretrain on."""
    path = folder / "corpus"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [*tables.read_texts([path], column)]


def corpus(content: bytes | str, column: str = "text"):
    """Whether a file to pretrain on has the texts that it should have."""
    return lambda folder: lines_of(folder, content, column) == ["a text", "another"]


def word_folder(folder: Path):
    """The path of a folder where a file of words belongs."""
    return labelled_words.read_words(folder)


GOOD_TABLE = table("name,ticker\nCafé,C\n".encode())
COLUMNS = "save it as CSV, UTF-8, with the columns name, ticker"

TABLE = [
    Good("a byte order mark, as Excel writes it", table("\ufeffname,ticker\r\nCafé,C\r\n".encode())),
    Good("semicolons, as Excel writes them in Europe", table("name;ticker\nCafé;C\n".encode())),
    Good("a line for Excel above the header", table("\ufeffsep=;\r\nname;ticker\r\nCafé;C\r\n".encode())),
    Good("a comma in the name of a column", table("name;ticker;a, b, c\nCafé;C;d\n".encode())),
    *(
        Bad(given, table(content), words, GOOD_TABLE)
        for given, content, words in (
            (
                "a column that is missing",
                b"name,symbol\nA,B\n",
                f"'ticker' is missing from ['name', 'symbol']): {COLUMNS}",
            ),
            (
                "a row that is too short",
                b"name,ticker\nA\n",
                f"row 1 below the header has fewer than 2 columns): {COLUMNS}",
            ),
            ("Latin-1", "name,ticker\nCafé,C\n".encode("latin-1"), COLUMNS),
            ("an empty file", b"", f"No columns to parse from file): {COLUMNS}"),
            ("a column that is there twice", b"name,ticker,name\nA,B,C\n", f"column 'name' more than once): {COLUMNS}"),
        )
    ),
    Bad(
        "a row that is too long",
        table(b"name,ticker\nA,B,C\n"),
        "Expected 2 fields in line 2, saw 3): put double quotes around a text with ','",
        lambda folder: rows_of(folder, 'name,ticker\n"A,B",C\n') == [{"name": "A,B", "ticker": "C"}],
    ),
    Bad(
        "a stray quote",
        table(b'name,ticker\n"A,B\n"C,D\n'),
        "cannot be read (',' expected after",
        lambda folder: rows_of(folder, 'name,ticker\n"""A",B\n"""C",D\n')[1] == {"name": '"C', "ticker": "D"},
    ),
]
TEXT_ROWS = [(letter, "yes" if letter < "d" else "no") for letter in "abcdef"]
FRAME = pd.DataFrame(TEXT_ROWS, columns=["text", "label"])
GOOD_TEXTS = each(
    texts_of("own.csv", FRAME.to_csv()), texts_of("own.jsonl", FRAME.to_json(orient="records", lines=True))
)

OTHER_FORMATS = (
    ("a workbook", b"PK\3\4\xff", "is a workbook or a ZIP file: save it as CSV, UTF-8"),
    ("a compressed file", b"\x1f\x8b\xff", "is compressed by gzip: unpack it"),
    (
        "Parquet",
        b"PAR1\0",
        'is a table of Parquet or Arrow: save it with to_csv, or to_json(orient="records", lines=True)',
    ),
)


def json_lines(label: str = "label") -> str:
    """Return the rows as JSON Lines."""
    return "".join(json.dumps({"text": a, label: b, "id": 1}) + "\n" for a, b in TEXT_ROWS)


GOOD_ROWS = "text,label\n" + "".join(f"{a},{b}\n" for a, b in TEXT_ROWS)
TEXTS_FILE = [
    Good("a header with spaces", texts_of("own.csv", "text, label\n" + "".join(f"{a}, {b}\n" for a, b in TEXT_ROWS))),
    Good(
        "tabs, and quotes that are no pairs",
        texts_of("own.tsv", "text\tlabel\tnote\n" + "".join(f'{a}\t{b}\t5" x\n' for a, b in TEXT_ROWS)),
    ),
    Good("an index in front", texts_of("own.csv", ",text,label\n" + "".join(f"0,{a},{b}\n" for a, b in TEXT_ROWS))),
    Good("\\r as the end of a row", texts_of("own.csv", "text,label\r" + "".join(f"{a},{b}\r" for a, b in TEXT_ROWS))),
    Good("JSON Lines", texts_of("own.jsonl", json_lines())),
    Good("marks of joined files", texts_of("own.csv", "\ufeff" + GOOD_ROWS.replace("d,no", "\ufeffd,no"))),
    *(
        Bad(
            f"a header in the middle: {header}",
            texts_of("own.csv", GOOD_ROWS.replace("d,no", f"{header}\nd,no")),
            "row 4 below the header has the names of the columns again: delete such rows, as of joined files",
            texts_of("own.csv", GOOD_ROWS),
        )
        for header in ("text,label", "Label, Text")
    ),
    Bad(
        "JSON Lines from tables with their headers",
        texts_of("own.jsonl", json_lines() + '{"text": "text", "label": "label"}\n'),
        "row 7 below the header has the names of the columns again",
        texts_of("own.jsonl", json_lines()),
    ),
    Bad(
        "JSON Lines without a label",
        texts_of("own.jsonl", json_lines("class")),
        "line 1 has no text or number as 'label': name one of ['text', 'class', 'id']",
        texts_of("own.jsonl", json_lines("class"), "class"),
    ),
    Bad(
        "a list in JSON",
        texts_of("own.json", '[\n{"text": "a", "label": "yes"}\n]\n'),
        "line 1 is not a JSON object: write one object per line (JSON Lines), or save the texts as CSV",
        each(texts_of("own.jsonl", json_lines()), GOOD_TEXTS),
    ),
    Bad(
        "a text of 200,000 characters",
        lambda folder: texts_of("own.csv", f"text,label\n{'a ' * 100_000},yes\n")(folder),
        "has one class, 'yes', in the column 'label': use at least two different labels",
        GOOD_TEXTS,
    ),
    *(
        Bad(f"{given} for a table", texts_of("own.csv", content), words, GOOD_TEXTS)
        for given, content, words in OTHER_FORMATS
    ),
    Good("a corpus with \\r as the end of a line", corpus("a text\ranother\r")),
    Good(
        "a corpus with words in angle brackets",
        lambda folder: lines_of(folder, "<unk>\n<applause>\nso <b> it\n") == ["<unk>", "<applause>", "so <b> it"],
    ),
    Good("a corpus of JSON Lines", corpus('{"text": "a\\ntext", "id": 1}\n\n{"text": "another"}\n{"text": " "}\n')),
    Bad(
        "a corpus of JSON Lines without texts",
        corpus('{"content": "a text"}\n{"content": "another"}\n'),
        "line 1 has no text or number as 'text': name one of ['content']",
        corpus('{"content": "a text"}\n{"content": "another"}\n', "content"),
    ),
    *(
        Bad(
            f"a corpus with {given}",
            corpus(content),
            f"has {words}: save its texts alone, one in each line",
            corpus("a text\nanother\n"),
        )
        for given, content, words in (
            ("tags", '<doc id="1">\na text\n</doc>\n<p>another</p>', "tags, as XML and HTML have"),
            (
                "labels of fastText",
                "__label__a a text\n__label__b another\n",
                "labels (__label__), as files of fastText",
            ),
            ("times", "1\n00:00:01,5 --> 00:00:02,0\na text\n\n2\n00:00:03,5 --> 00:00:04,0\nanother", "times, as sub"),
        )
        for words in (words.replace("of fastText", "of fastText have").replace("as sub", "as subtitles have"),)
    ),
    *(
        Bad(f"{given} for a corpus", corpus(content), words, corpus("a text\nanother\n"))
        for given, content, words in OTHER_FORMATS
    ),
]

WORDS_FILE = [
    *(
        Bad(f"{given}", labelled(GOOD_WORDS + row), f"(line 10 {words}", labelled(GOOD_WORDS + right, more(*added)))
        for given, row, words, right, *added in (
            (
                "no label in a row",
                "alone\n",
                "has 1 field, ['alone'], not a word and a label; a label is missing): save",
                "alone,O\n",
                "alone",
            ),
            ("an empty label", "alone,\n", "has no label for the word 'alone'): save it", "alone,O\n", "alone"),
            ("a label without its word", ",name\n", "has no word for the label 'name'): save it", "Li,name\n", "Li"),
            (
                "a word of two words",
                "New York,name\n",
                "has several words, 'New York'; each word needs its own row): ",
                "New,name\nYork,name\n",
                "New",
                "York",
            ),
            (
                "a row of three fields",
                "Anna,NNP,name\n",
                "has 3 fields, ['Anna', 'NNP', 'name'], not a word and a label; "
                "keep two columns, the word and its label; a comma",
                "Anna,name\n",
                "Anna",
            ),
            (
                "a comma as a word, without quotes",
                ",,O\n",
                "has 3 fields, ['', '', 'O'], not a word and a label; keep "
                "two columns, the word and its label; a comma as a word needs double quotes around it",
                '",",O\n',
                ",",
            ),
            ("a NUL byte", "a\0,O\n", "has a NUL byte in it, as UTF-16 has): save it as CSV, UTF-8", "a,O\n", "a"),
        )
    ),
    Bad(
        "one class",
        labelled("a,O\n\nb,O\n\nc,O\n"),
        "has one class, 'O': use at least two different labels",
        labelled("a,O\n\nb,O\n\nc,x\n\nd,x\n", "abcd"),
    ),
    *(
        Bad(
            f"{given}",
            labelled(content),
            f"has {words}, too few for three parts: leave an empty row between texts, and write at least 3",
            labelled("a,O\nB,name\n\na,O\nC,name\n\na,O\nD,name\n", ["aB", "aC", "aD"]),
        )
        for given, content, words in (
            ("two texts", "a,O\n\nB,name\n", "2 different texts in 2 rows"),
            ("one text three times", "a,O\nB,name\n\n" * 3, "1 different text in 6 rows"),
        )
    ),
    Bad(
        "each class in one text only",
        labelled("a,x\n\nb,y\n\nc,z\n"),
        "because the classes x, y, z are in one text each: write more texts, or leave these classes out",
        labelled("a,x\n\nb,y\n\nc,z\n\nd,x\n\ne,y\n\nf,z\n", "abcdef"),
    ),
    Bad(
        "word and label that changed places",
        labelled("O,a\nname,B\n\nO,c\n\nO,d\n"),
        "as if they were swapped: write the word first, then its label",
        labelled("a,O\nB,name\n\nc,O\n\nd,O\n", ["aB", "c", "d"]),
    ),
    *(
        Bad(f"{given}", labelled(content), "save it as CSV, UTF-8", labelled(GOOD_WORDS))
        for given, content in (
            ("Latin-1 words", GOOD_WORDS.encode("latin-1")),
            ("a workbook of Excel", b"PK\x03\x04\x14\x00\x06\xff\xd8"),
            ("JSON Lines of words", '{"tokens": ["a"], "ner_tags": [0]}\n'),
        )
    ),
    *(
        Bad(
            f"{given}",
            labelled(content),
            "is empty: write a word and its label into each row, such as Paris,place",
            labelled("Paris,place\n\nis,O\n\nRome,place\n\na,O\n", [["Paris"], ["is"], ["Rome"], ["a"]]),
        )
        for given, content in (("an empty file of words", b""), ("empty rows only", "\n\n,\n"))
    ),
    Bad(
        "a folder",
        word_folder,
        "give the path of a CSV with a word and a label in each row",
        labelled(GOOD_WORDS),
        error=FileNotFoundError,
    ),
    Good(
        "a byte order mark and Windows' line ends, as Excel writes words",
        labelled("\ufeff" + GOOD_WORDS.replace("\n", "\r\n")),
    ),
    Good("semicolons, and an empty row of them", labelled(GOOD_WORDS.replace(",", ";").replace("\n\n", "\n;\n"))),
    Good("a comma in quotes as a word", labelled(GOOD_WORDS + '",",O\n', [*WORD_TEXTS[:2], ["Mo", "is", ","]])),
    Good(
        "quotes among words between tabs",
        labelled(GOOD_WORDS.replace(",", "\t") + '"\tO\n"\tO\n', [*WORD_TEXTS[:2], ["Mo", "is", '"', '"']]),
    ),
    Bad(
        "quotes around labels between tabs",
        labelled(re.sub(",(.*)", r'\t"\1"', GOOD_WORDS)),
        'line 1 has quotes around the label "name": between tabs or spaces, leave them out',
        labelled(GOOD_WORDS.replace(",", "\t")),
    ),
    Good("spaces between words and labels", labelled(GOOD_WORDS.replace(",", "  "))),
    Good(
        "CoNLL-2003: four columns, and marks of documents",
        labelled("-DOCSTART- -X- -X- O\n\n" + GOOD_WORDS.replace(",", " NNP B-NP ")),
    ),
    Good("marks of documents without an empty row", labelled(GOOD_WORDS.replace("\n\n", "\n-DOCSTART-,O\n"))),
    Good(
        "GermEval: numbered words, and comments",
        labelled("#\thttp://a.b\n" + re.sub("(?m)^(.+),", r"1\t\1\t_\t", GOOD_WORDS.replace("\n\n", "\n\n#\tb c\n"))),
    ),
    Good("comments of CoNLL-U", labelled("# sent_id = 1\n# text = Anna met\n" + GOOD_WORDS.replace(",", " NNP _ "))),
    Good(
        "the sign # as a first word",
        labelled("#\tO\n" + GOOD_WORDS.replace(",", "\t"), [["#", *WORD_TEXTS[0]], *WORD_TEXTS[1:]]),
    ),
    Bad(
        "all ten columns of CoNLL-U",
        labelled("1-2\tim" + "\t_" * 8 + "\n" + re.sub("(?m)^(.+),", "1\t\\1" + "\t_" * 7 + "\t", GOOD_WORDS)),
        "it has the ten columns of CoNLL-U: keep two, the word and its label",
        labelled("im\t_\n" + GOOD_WORDS.replace(",", "\t"), [["im", "Anna", "met", "Bo"], *WORD_TEXTS[1:]]),
    ),
    Bad(
        "prose",
        labelled("It was good.\nSo is this, I think.\n\nIt was not.\n"),
        "not a word and a label; most rows have 3): save it as CSV, UTF-8, with a word and its label in each",
        labelled(
            "It,O\nwas,O\ngood,a\n\nSo,O\n\nIt,O\nwas,O\nnot,a\n", [["It", "was", "good"], ["So"], ["It", "was", "not"]]
        ),
    ),
    Good(
        "no-break spaces in a word and as a word",
        labelled(GOOD_WORDS + "10\u00a0000,O\n\u00a0,O\n", [*WORD_TEXTS[:2], ["Mo", "is", "10\u00a0000", "\u00a0"]]),
    ),
    Good("\\r as the end of a line", labelled(GOOD_WORDS.replace("\n", "\r"))),
    *(
        Bad(f"the header {header}", labelled(f"{header}\n{GOOD_WORDS}"), "begins with a header, ", labelled(GOOD_WORDS))
        for header in ("tokens,ner_tags", "a_word,ner type")
    ),
    Bad(
        "a header of any names, above labels with marks",
        labelled("mot,nature\n" + GOOD_WORDS.replace("name", "B-name")),
        "begins with a header, 'mot' and",
        labelled(GOOD_WORDS.replace("name", "B-name")),
    ),
    *(
        Bad(
            f"a header in the middle, {where}",
            labelled(content),
            f"has among its words a header, 'Word' and 'Tag'{times}: delete it, and begin with a word",
            labelled(GOOD_WORDS),
        )
        for where, content, times in (
            ("above a text", GOOD_WORDS.replace("\n\n", "\n\nWord,Tag\n"), " (2 times)"),
            ("right below a text", GOOD_WORDS.replace("\n\nMo", "\nWord,Tag\nMo"), ""),
        )
    ),
    Bad(
        "one word whose label lacks its mark",
        labelled(GOOD_WORDS.replace("name", "B-name") + "EU,ORG\nEU,ORG\n"),
        "a header, 'EU' and 'ORG' (2 times): delete it, or write its label with a prefix, as B-PER",
        labelled(GOOD_WORDS.replace("name", "B-name") + "EU,B-ORG\nEU,B-ORG\n", more("EU", "EU")),
    ),
    Good("the word text, whose label other words have, too", labelled(GOOD_WORDS + "text,name\n", more("text"))),
    Good("marks of joined files", labelled("\ufeff" + GOOD_WORDS.replace("\nMo", "\n\ufeffMo"))),
]
