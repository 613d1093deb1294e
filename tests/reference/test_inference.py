"""A packed row gives what a padded batch gives, computes no padding, runs hooks, and mixes no texts in silence."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from transformers import BertConfig

from benchmarks.peers import loop_over_heads
from utils.checks import largest_difference
from utils.datasets import collate, sorted_batches
from utils.encoder import TransformerEncoder
from utils.packing import TextBoundaries, encode_packed
from utils.search import embed

PAIR = ("the film was long", "it was never dull")


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=24,
        num_attention_heads=2,
        num_hidden_layers=2,
        intermediate_size=32,
        vocab_size=50,
    )
    encoder = TransformerEncoder(config).eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # attention that looks at some tokens and not at others
    return encoder


def rows_of(lengths: list[int]) -> list[list[int]]:
    generator = torch.Generator().manual_seed(sum(lengths))
    return [torch.randint(50, (length,), generator=generator).tolist() for length in lengths]


@settings(deadline=None, max_examples=60)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_packed_is_padded_at_real_tokens_and_zero_elsewhere(small, lengths):
    batch = collate(rows_of(lengths))
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        packed, padded = encode_packed(small, **batch), small(**batch).last_hidden_state
    assert packed.shape == padded.shape
    assert largest_difference(packed[real], padded[real]) <= 1e-5
    assert not packed[~real].any()


def test_pairs_and_pretrained_weights(encoder, tokenizer):
    batch = tokenizer([PAIR[0], "no", PAIR[1]], [PAIR[1], "yes", "no"])
    real = batch["attention_mask"].bool()
    assert batch["token_type_ids"].any()
    with torch.no_grad():
        difference = largest_difference(
            encode_packed(encoder, **batch)[real], encoder(**batch).last_hidden_state[real]
        )
    assert difference <= 1e-5


def test_padding_may_stand_anywhere(small):
    ids = torch.tensor([rows_of([6])[0], rows_of([6, 6])[1]])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0]])
    with torch.no_grad():
        packed, padded = encode_packed(small, ids, mask), small(ids, mask).last_hidden_state
    assert largest_difference(packed[mask.bool()], padded[mask.bool()]) <= 1e-5


def test_no_padding_is_computed_and_hooks_run(small):
    batch, seen = collate(rows_of([9, 2, 2, 5])), []
    modules = [small.layers[1], small.layers[1].attention, small.layers[1].feed_forward]
    handles = [
        module.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
        for module in modules
    ]
    encode_packed(small, **batch)
    for handle in handles:
        handle.remove()
    assert seen == [(1, 18, 24)] * 3


def test_texts_of_one_length_that_stand_together_share_a_call():
    assert TextBoundaries([9, 2, 2, 5, 2]).groups == [(1, 9), (2, 2), (1, 5), (1, 2)]


def test_options_by_name_reach_the_fused_attention():
    query, key, value = torch.randn(3, 1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    with TextBoundaries([3, 2]):
        packed = F.scaled_dot_product_attention(query, key, value, scale=3.0)
    texts = [slice(0, 3), slice(3, 5)]
    alone = [
        F.scaled_dot_product_attention(*(x[:, :, text] for x in (query, key, value)), scale=3.0)
        for text in texts
    ]
    assert torch.allclose(packed, torch.cat(alone, dim=2), atol=1e-6)


def test_gradients_are_those_of_the_padded_batch(small):
    batch = collate(rows_of([7, 3, 3]))
    real = batch["attention_mask"].bool()
    found = []
    for states in (encode_packed(small, **batch), small(**batch).last_hidden_state):
        loss = states[real].square().sum()
        found.append(torch.autograd.grad(loss, small.layers[0].attention.query.weight)[0])
    assert found[0].abs().max() > 1e-3
    assert torch.allclose(*found, rtol=1e-4, atol=1e-4)


def test_dropout_of_attention_is_passed_on(small):
    small.layers[0].attention.dropout_p = 1.0
    batch = collate(rows_of([4, 2]))
    try:
        with torch.no_grad():
            kept = encode_packed(small, **batch)
            small.layers[0].attention.train()
            assert not torch.allclose(encode_packed(small, **batch), kept)
    finally:
        small.layers[0].attention.dropout_p = 0.1
        small.eval()


def test_the_mode_ends_with_its_block(small):
    batch = collate(rows_of([4, 2]))
    before = small(**batch).last_hidden_state
    encode_packed(small, **batch)
    assert torch.equal(small(**batch).last_hidden_state, before)


def test_an_attention_that_is_not_fused_is_refused(small):
    message = (
        r"^0 of 2 layers used torch's fused attention, so texts were mixed: "
        r"pad them, as encoder\(input_ids, attention_mask\) does$"
    )
    with pytest.raises(ValueError, match=message):
        encode_packed(loop_over_heads(small), **collate(rows_of([4, 2])))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_numbers_than_float32(dtype, tokenizer):
    torch.manual_seed(0)
    config = BertConfig(hidden_size=24, num_attention_heads=2, num_hidden_layers=1)
    vectors = embed(["a film", "no"], TransformerEncoder(config).to(dtype), tokenizer)
    assert vectors.dtype == torch.float32
    assert torch.allclose(vectors.norm(dim=1), torch.ones(2), atol=1e-5)


def test_bad_masks(small):
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ValueError, match=r"must have the shape \(2, 3\) of the input, got \(2, 2\)"):
        encode_packed(small, ids, torch.ones(2, 2))
    with pytest.raises(ValueError, match=r"masks every token of a row"):
        encode_packed(small, ids, torch.tensor([[1, 1, 1], [0, 0, 0]]))
    with pytest.raises(ValueError, match=r"input_ids must be \(B, S\), got \(3,\)"):
        encode_packed(small, ids[0], torch.ones(3))


def test_embed_takes_a_batch_of_any_lengths_at_once(encoder, tokenizer, monkeypatch):
    shapes = []

    def watch(encoder, input_ids, **others):
        shapes.append(tuple(input_ids.shape))
        return encode_packed(encoder, input_ids, **others)

    monkeypatch.setattr("utils.search.encode_packed", watch)
    embed(["no", "word " * 100, "a film"], encoder, tokenizer)
    assert shapes == [(3, 102)]
    assert list(sorted_batches([[1] * 8, [1], [1] * 4], 2, max_padding=1)) == [[0, 2], [1]]
