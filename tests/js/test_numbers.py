"""What views, figures and the explorer compute, in node: torch's numbers for many states, and our tokenizer's ids."""

import json
import random
import re

import pytest
import torch

from tests.browser.figure_examples import FIGURES, NAMES, close
from tests.js.node import run
from tests.texts import WORDS, generated_strings, in_words, telling_characters
from views.figures import FOLDER, splitting_rules, vocabulary_lines
from views.page import FOLDER as VIEWS
from views.words import merge


@pytest.mark.parametrize("path", sorted((FOLDER / "compute").glob("*.js")), ids=lambda path: path.stem)
def test_a_figure_computes_torchs_numbers(path):
    """For fifty random states."""
    example, chance = FIGURES[path.stem], random.Random(0)
    data = re.search(r'id="data">(.*?)</script>', example.make(NAMES).page, re.DOTALL)[1]
    states = [example.state(chance) for _ in range(50)]
    found = run("given.states.map(makeCompute(given.data))", {"data": json.loads(data), "states": states}, path)
    for state, one in zip(states, found, strict=True):
        example.check(state, one)


def test_whole_words_have_the_weights_of_python():
    weights, queries, keys = torch.rand(5, 6).softmax(dim=-1), [0, 0, 1, 2, 2], [0, 1, 1, 1, 2, 3]
    given = {"rows": weights.tolist(), "queries": queries, "keys": keys}
    found = run("wholeWords(given.rows, given.queries, given.keys)", given, VIEWS / "words.js")
    groups = torch.stack([merge(weights, queries, keys, 4)[i] for i in range(3)])
    assert close(found, groups)


def test_the_tokenizer_gives_our_ids(tokenizer):
    """It agrees on generated strings, chosen words and special characters, unlike a naive tokenizer."""
    texts = generated_strings(400) + WORDS + in_words(telling_characters())
    rules = splitting_rules(tokenizer.lowercase)
    given = {"texts": texts, "vocabulary": vocabulary_lines(tokenizer.vocab), "rules": [rules, rules | {"later": []}]}
    encode = "given.rules.map((rules) => makeTokenizer(given.vocabulary, rules))"
    ids = f"{encode}.map((encode) => given.texts.map((text) => encode(text).ids))"
    found, naive = run(ids, given, FOLDER / "tokenizer.js")
    wanted = [tokenizer.encode(text) for text in texts]
    assert [text for text, ours, theirs in zip(texts, wanted, found, strict=True) if ours != theirs] == []
    assert naive != wanted
