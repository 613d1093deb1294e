"""A packed row equals a padded batch, and texts never mix silently."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from transformers import BertConfig

from tests.helpers import TINY, ragged_batch, tiny_tokenizer
from utils import packing
from utils.attention import MultiHeadAttention
from utils.encoder import TransformerEncoder
from utils.packing import attend_packed, attend_packed_on_gpu, encode_packed
from utils.search import embed
from utils.support.comparisons import largest_difference


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_packed_equals_padded_and_is_zero_at_padding(precise, lengths):
    batch = ragged_batch(lengths)
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        packed, padded = encode_packed(precise, **batch), precise(**batch).last_hidden_state
    assert packed.shape == padded.shape
    assert largest_difference(packed[real], padded[real]) <= 1e-12
    assert not packed[~real].any()


@pytest.mark.parametrize("kind", [torch.long, torch.bool, torch.float])
def test_packing_takes_padding_anywhere(small, kind):
    ids, types, _ = ragged_batch([6, 6]).values()
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0]])
    with torch.no_grad():
        packed = encode_packed(small, ids, mask.to(kind), types)
        padded = small(ids, mask, types).last_hidden_state
    assert largest_difference(packed[mask.bool()], padded[mask.bool()]) <= 1e-5


def test_encoder_with_a_readers_own_part_pads(small):
    """Its layers see the padded batch, because the reader's method takes a mask; padding still becomes 0."""
    own, batch, seen = copy.deepcopy(small), ragged_batch([6, 2, 4]), []
    forward = type(own.layers[1]).forward
    own.layers[1].forward = lambda x, *mask: seen.append(x.shape) or forward(own.layers[1], x, *mask)
    batch["token_type_ids"][:, 1] = 1
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        packed, padded = encode_packed(own, **batch), small(**batch).last_hidden_state
    assert seen == [(3, 6, 24)]
    assert torch.equal(packed, padded.masked_fill(~real[:, :, None], 0))


def test_packing_refuses_other_encoders():
    with pytest.raises(TypeError, match=r"^a Linear cannot be packed: pass a TransformerEncoder, or pad its texts$"):
        encode_packed(torch.nn.Linear(2, 2), torch.ones(1, 2).long())


def test_packing_skips_padding_and_runs_hooks(small):
    seen = []
    modules = [small.layers[1], small.layers[1].attention, small.layers[1].feed_forward]
    handles = [part.register_forward_hook(lambda part, x, output: seen.append(x[0].shape)) for part in modules]
    encode_packed(small, **ragged_batch([9, 2, 2, 5]))
    for handle in handles:
        handle.remove()
    assert seen == [(1, 18, 24)] * 3


def test_packed_gradients_equal_those_of_padding(small):
    batch = ragged_batch([7, 3, 3])
    real = batch["attention_mask"].bool()
    found = []
    for states in (encode_packed(small, **batch), small(**batch).last_hidden_state):
        loss = states[real].square().sum()
        found.append(torch.autograd.grad(loss, small.layers[0].attention.query.weight)[0])
    assert found[0].abs().max() > 1e-3
    assert torch.allclose(*found, rtol=1e-4, atol=1e-4)


def test_packing_passes_attention_dropout_on(small, monkeypatch):
    attention, batch = small.layers[0].attention, ragged_batch([4, 2])
    with torch.no_grad():
        kept = encode_packed(small, **batch)
        monkeypatch.setattr(attention, "dropout_p", 1.0)
        monkeypatch.setattr(attention, "training", True)
        assert not torch.allclose(encode_packed(small, **batch), kept)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_packing_takes_other_dtypes(small, dtype):
    batch, other = ragged_batch([4, 2]), copy.deepcopy(small).to(dtype)
    packed = encode_packed(other, **batch)
    assert packed.dtype == dtype
    real = batch["attention_mask"].bool()
    wanted = encode_packed(small, **batch)[real].flatten()
    assert torch.cosine_similarity(packed[real].float().flatten(), wanted, dim=0) > 0.99


def test_embed_packs_a_batch_of_any_lengths(small, monkeypatch):
    shapes = []

    def watch(encoder, input_ids, **others):
        shapes.append(tuple(input_ids.shape))
        return encode_packed(encoder, input_ids, **others)

    monkeypatch.setattr("utils.search.encode_packed", watch)
    embed(["a", "a " * 100, "b c"], small, tiny_tokenizer(30))
    assert shapes == [(3, 102)]


def one_by_one(query, key, value, ends, other_ends, longest, other_longest):
    """Do what varlen_attn does on a GPU: (N, A, D) to (N, A, D), text by text."""
    assert ends.dtype == torch.int32
    assert longest == max(ends.diff()).item()
    assert ends.tolist() == other_ends.tolist()
    assert longest == other_longest
    parts = [x.split(ends.diff().tolist()) for x in (query, key, value)]
    texts = [F.scaled_dot_product_attention(*(x.transpose(0, 1) for x in text)) for text in zip(*parts, strict=True)]
    return torch.cat(texts, dim=1).transpose(0, 1)


def test_one_kernel_gets_the_ends_of_the_texts(monkeypatch):
    monkeypatch.setattr(packing, "varlen_attn", one_by_one)
    parts = torch.randn(3, 1, 2, 10, 4, generator=torch.Generator().manual_seed(0))
    wanted = attend_packed(*parts, 0.0, [4, 1, 5])
    found = attend_packed_on_gpu(*parts, 0.0, torch.tensor([0, 4, 5, 10], dtype=torch.int32), 5)
    assert found.shape == wanted.shape
    assert torch.allclose(found, wanted, atol=1e-6)


def test_encoder_of_one_layer_is_packed():
    encoder = TransformerEncoder(BertConfig(**TINY | {"num_hidden_layers": 1}))
    assert packing.packed_attention(encoder, [4, 2]) is not None


def test_encoder_with_another_attention_pads(small):
    class Own(MultiHeadAttention):
        """An attention that may look at any token of its row."""

    other = copy.deepcopy(small)
    other.layers[1].attention.__class__ = Own
    assert packing.packed_attention(small, [4, 2]) is not None
    assert packing.packed_attention(other, [4, 2]) is None
