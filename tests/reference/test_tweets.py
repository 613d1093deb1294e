"""The tagged tweets are read as their package holds them, and names in tags are counted as seqeval counts them."""

import random

import nbformat
import pytest

from tests.helpers import ROOT
from utils.support.formatting import TaggedText
from utils.support.tweets import TAGS, NameList, names_of, our_tag

PERSON, PLACE = TAGS.index("B-person"), TAGS.index("B-place")


@pytest.mark.parametrize(
    ("tag", "wanted"),
    [("O", "O"), ("B-geo-loc", "B-place"), ("I-facility", "I-place"), ("B-person",) * 2, ("I-tvshow", "I-other")],
)
def test_ten_kinds_of_names_become_three(tag, wanted):
    assert our_tag(tag) == wanted


def test_list_finds_the_longest_name_in_its_most_frequent_kind():
    train = [
        TaggedText(["New", "York", "wins"], [PLACE, PLACE + 1, 0]),
        TaggedText(["york"], [PERSON]),
        TaggedText(["York"], [PLACE]),
        TaggedText(["york"], [PLACE]),
    ]
    known = NameList(train)
    assert known.predict(["in", "NEW", "york", "York", "new"]) == [0, PLACE, PLACE + 1, PLACE, 0]
    assert ["New", "york"] in known
    assert ["new"] not in known
    assert NameList([]).predict(["york"]) == [0]


def test_notebook_counts_names_as_seqeval_does():
    notebook = nbformat.read(ROOT / "notebooks" / "15_token_labels.ipynb", as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.id == "15-spans"]
    given = {"TAGS": TAGS, "labels": [0]}
    exec(cell.source, given)
    chance = random.Random(0)
    for _ in range(300):
        labels = chance.choices(range(len(TAGS)), [6, 1, 2, 1, 2, 1, 2], k=chance.randint(0, 9))
        assert given["names_in"](labels) == names_of(labels), labels
