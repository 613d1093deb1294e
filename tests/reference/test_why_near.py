"""The shares of a cosine among pairs of tokens, and the view that draws them."""

import json
import re

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from tests.helpers import TINY, tiny_tokenizer
from utils.search import embed
from views import why_near
from views.why_near import shares_of_cosine

TEXTS = ["fizzy drink", "Coca-Cola sells soft drinks, unbelievably many.", "lifts in tall buildings", "no"]


def drawn(view) -> list[dict]:
    return json.loads(re.search(r'id="data">(.*?)</script>', view.page, re.DOTALL)[1])["comparisons"]


def test_the_shares_add_up_to_the_cosine_of_the_means():
    generator = torch.Generator().manual_seed(0)
    for S, T, H in ((1, 1, 2), (3, 5, 4), (40, 7, 16)):
        states, other = (torch.randn(size, H, generator=generator).double() for size in (S, T))
        shares = shares_of_cosine(states, other)
        assert shares.shape == (S, T)
        cosine = F.cosine_similarity(states.mean(dim=0), other.mean(dim=0), dim=0)
        torch.testing.assert_close(shares.sum(), cosine)
        torch.testing.assert_close(shares_of_cosine(other, states), shares.T)
        torch.testing.assert_close(shares_of_cosine(7 * states, other), shares)


@pytest.mark.long
@pytest.mark.parametrize("official", [False, True])
def test_shares_equal_those_of_search(official, encoder, tokenizer, reference, official_tokenizer):
    vectors = embed(TEXTS, encoder, tokenizer)
    read_by = (reference, official_tokenizer) if official else (encoder, tokenizer)
    for one in range(len(TEXTS)):
        for other in range(len(TEXTS)):
            [pair] = drawn(why_near(*read_by, TEXTS[one], TEXTS[other]))
            shares = torch.tensor(pair["shares"])
            cosine = (vectors[one] @ vectors[other]).item()
            assert abs(shares.sum().item() - cosine) < 1e-6
            assert abs(pair["cosine"] - cosine) < 1e-6
            assert shares.shape == tuple(len(side["tokens"]) for side in pair["sides"])


def test_tokens_of_a_word_share_an_index(encoder, tokenizer, reference, official_tokenizer):
    for read_by in ((encoder, tokenizer), (reference, official_tokenizer)):
        [pair] = drawn(why_near(*read_by, "an escalator.", "no"))
        side = pair["sides"][0]
        assert side["tokens"] == ["[CLS]", "an", "es", "##cala", "##tor", ".", "[SEP]"]
        assert side["words"] == [0, 1, 2, 2, 2, 3, 4]


def test_control_replaces_the_first_text(encoder, tokenizer):
    both = drawn(why_near(encoder, tokenizer, *TEXTS[:2], control=TEXTS[2]))
    assert both[0] == drawn(why_near(encoder, tokenizer, *TEXTS[:2]))[0]
    assert both[1] == drawn(why_near(encoder, tokenizer, TEXTS[2], TEXTS[1]))[0]
    assert drawn(why_near(encoder, tokenizer, *TEXTS[:2], control=[TEXTS[2], TEXTS[0]])) == [*both, both[0]]
    with pytest.raises(ValueError, match="control has 6 texts, but this view draws at most 5"):
        why_near(encoder, tokenizer, *TEXTS[:2], control=TEXTS[:1] * 6)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", "a"), "text must be a string with at least one word, got ''"),
        (("a", "  "), "other must be a string with at least one word, got '  '"),
        (("a", ["b"]), r"other must be a string with at least one word, got \['b'\]"),
        (("a b " * 127 + "a b", "b"), "text has 258 tokens, but this view draws at most 256"),
    ],
)
def test_invalid_texts_raise(texts, message, encoder, tokenizer):
    with pytest.raises(ValueError, match=message):
        why_near(encoder, tokenizer, *texts)


def test_unsupported_models_raise(tokenizer):
    with pytest.raises(ValueError, match="do not support a Linear"):
        why_near(torch.nn.Linear(2, 2), tokenizer, "a", "b")
    with pytest.raises(ValueError, match="BertForMaskedLM returns no last_hidden_state"):
        why_near(BertForMaskedLM(BertConfig(**TINY)), tiny_tokenizer(), "a", "b")
