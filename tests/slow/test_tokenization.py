"""What must hold for any text, batch and attention, sought by hypothesis; found failures are kept in .hypothesis."""

import copy
import re
import warnings

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from utils.views import head_view, model_view

settings.register_profile(
    "series", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("series")

WORDS = st.sampled_from(
    ["time", "fruit", "flies", "like", "an", "arrow", "[MASK]", "naïve", "北京", "👍", "##s", "."]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SENTENCE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
IDS = st.lists(st.integers(0, 30521), min_size=1, max_size=20)


def last_hidden_state(encoder, **batch) -> torch.Tensor:
    with torch.no_grad():
        return encoder(**batch).last_hidden_state


def official_ids(official_tokenizer, text: str, pair: str | None, **options) -> dict[str, list[int]]:
    """The official row, asked for as a batch of one: called with two strings, it drops a pair that is ""."""
    batch = official_tokenizer([text], None if pair is None else [pair], **options)
    return {name: rows[0] for name, rows in batch.items()}


@settings(max_examples=400)
@given(text=TEXT, pair=st.none() | TEXT)
def test_tokenizer_gives_the_official_ids(tokenizer, official_tokenizer, text, pair):
    assert tokenizer.encode(text, pair) == official_ids(official_tokenizer, text, pair)["input_ids"]


@given(text=TEXT, pair=st.none() | TEXT, max_length=st.integers(3, 20))
def test_truncation_is_the_official_one(tokenizer, official_tokenizer, text, pair, max_length):
    official = official_ids(official_tokenizer, text, pair, truncation=True, max_length=max_length)
    ours = tokenizer(text, pair, max_length=max_length)
    assert ours["input_ids"][0].tolist() == official["input_ids"]
    assert ours["token_type_ids"][0].tolist() == official["token_type_ids"]


@given(ids=IDS, filler=IDS)
def test_what_stands_at_padding_never_reaches_real_tokens(encoder, ids, filler):
    S, rows = len(ids), [ids + filler, ids + [0] * len(filler)]
    mask = torch.tensor([[1] * S + [0] * len(filler)] * 2)
    padded = last_hidden_state(encoder, input_ids=torch.tensor(rows), attention_mask=mask)[:, :S]
    alone = last_hidden_state(encoder, input_ids=torch.tensor([ids]))[0]
    assert (padded[0] - padded[1]).abs().max() <= 1e-5
    assert (padded[0] - alone).abs().max() <= 1e-5


@given(sentences=st.lists(SENTENCE, min_size=2, max_size=5), data=st.data())
def test_neither_batch_nor_its_order_matters(encoder, tokenizer, sentences, data):
    order = data.draw(st.permutations(range(len(sentences))))
    batch = tokenizer(sentences)
    states = last_hidden_state(encoder, **batch)
    shuffled = last_hidden_state(encoder, **{name: values[order] for name, values in batch.items()})
    real = batch["attention_mask"][order].bool()
    assert (states[order] - shuffled)[real].abs().max() <= 1e-5
    for row, sentence in enumerate(sentences):
        alone = last_hidden_state(encoder, **tokenizer(sentence))[0]
        assert (states[row, : len(alone)] - alone).abs().max() <= 1e-5


@pytest.fixture(scope="module")
def without_positions(encoder):
    """A copy of the encoder that does not see the order of its tokens."""
    encoder = copy.deepcopy(encoder)
    torch.nn.init.zeros_(encoder.embeddings.position_embeddings.weight)
    return encoder


@given(ids=IDS, data=st.data())
def test_without_positions_a_permutation_passes_through(without_positions, ids, data):
    order = data.draw(st.permutations(range(len(ids))))
    input_ids = torch.tensor([ids])
    states = last_hidden_state(without_positions, input_ids=input_ids)
    permuted = last_hidden_state(without_positions, input_ids=input_ids[:, order])
    assert (states[:, order] - permuted).abs().max() <= 1e-5


@settings(max_examples=30)
@given(
    tokens=st.lists(
        st.text(max_size=8) | st.sampled_from(["</script>", "<!--<script>", "\u2028", "`'\""]), max_size=7
    ),
    seed=st.integers(0, 99),
)
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
