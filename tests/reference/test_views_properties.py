"""Whatever the tokens and the attention, the page of a view is whole and fetches nothing."""

import re
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from views import head_view, model_view

HOSTILE = ["</script>", "<!--<script>", "\u2028", "`'\""]


@pytest.mark.long
@settings(max_examples=12)
@given(tokens=st.lists(st.text(max_size=8) | st.sampled_from(HOSTILE), max_size=7), seed=st.integers(0, 99))
def test_any_tokens_and_attention_make_a_self_contained_page(tokens, seed):
    tokens = ["[CLS]", *tokens]
    S = len(tokens)
    scores = torch.randn(2, 1, 3, S, S, generator=torch.Generator().manual_seed(seed)) * 10
    for view in (head_view, model_view):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            page = view(list(scores.softmax(-1)), tokens).page
        assert page.count("<script") == page.count("</script>")
        assert page.count("<!--") <= page.split('id="data"')[0].count("<!--")
        assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//""", page)
