"""A prepared encoder gives what the encoder gives, for any batch, and says what it is not for."""

import pytest
import torch
from transformers import BertConfig

from tests.helpers import ragged_batch, shaken
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.prepared import PackedLinear, prepare
from utils.search import embed

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN, so a prepared encoder is a copy"
)
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}


def random_encoder(**others) -> TransformerEncoder:
    torch.manual_seed(0)
    return shaken(TransformerEncoder(BertConfig(**SIZES | others, vocab_size=30)).eval(), std=0.5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize("lengths", [[1], [5, 2, 9], [40] * 3])
def test_the_vectors_are_those_of_the_encoder(activation, lengths):
    encoder, batch = random_encoder(hidden_act=activation), ragged_batch(lengths)
    prepared = prepare(encoder)
    real = batch["attention_mask"].bool()
    wanted = encoder(**batch).last_hidden_state[real]
    for found in (prepared(**batch).last_hidden_state[real], encode_packed(prepared, **batch)[real]):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    ours, theirs = (each(**batch, output_attentions=True).attentions[-1] for each in (prepared, encoder))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_texts_come_to_the_same_vectors(encoder, tokenizer):
    texts = ["time flies like an arrow", "no", "fruit flies like a banana " * 30]
    assert (embed(texts, prepare(encoder), tokenizer) - embed(texts, encoder, tokenizer)).abs().max() < 1e-5


@needs_onednn
def test_each_product_with_weights_is_prepared_and_the_encoder_stays_as_it_was():
    encoder = random_encoder()
    prepared = prepare(encoder)
    assert sum(isinstance(part, PackedLinear) for part in prepared.modules()) == 6 * len(encoder.layers)
    assert not any(isinstance(part, PackedLinear) for part in encoder.modules())
    assert not any(isinstance(part, torch.nn.Linear) for part in prepared.layers.modules())


@needs_onednn
def test_the_activation_is_in_the_product():
    linear, x = torch.nn.Linear(5, 7), torch.randn(3, 5)
    with torch.no_grad():
        for activation in (torch.nn.GELU(), torch.nn.GELU(approximate="tanh"), torch.nn.ReLU()):
            torch.testing.assert_close(PackedLinear(linear, activation)(x), activation(linear(x)))
        torch.testing.assert_close(PackedLinear(linear)(x), linear(x))


@needs_onednn
def test_a_cell_that_prepares_may_run_again_and_an_unknown_activation_is_no_silent_one():
    prepared = prepare(random_encoder())
    assert prepare(prepared) is prepared
    with pytest.raises(KeyError, match="Tanh"):
        PackedLinear(torch.nn.Linear(5, 7), torch.nn.Tanh())


def test_where_there_is_no_onednn_the_copy_is_an_ordinary_one(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    encoder, batch = random_encoder(), ragged_batch([4, 2])
    prepared = prepare(encoder)
    assert prepared is not encoder
    assert torch.equal(prepared(**batch).last_hidden_state, encoder(**batch).last_hidden_state)


def test_other_numbers_than_float32_stay_as_they_are():
    encoder = random_encoder().double()
    batch = ragged_batch([4, 2])
    assert torch.equal(prepare(encoder)(**batch).last_hidden_state, encoder(**batch).last_hidden_state)


def test_what_cannot_be_prepared_is_refused():
    with pytest.raises(TypeError, match="a Linear cannot be prepared: pass a TransformerEncoder"):
        prepare(torch.nn.Linear(2, 2))
    encoder = random_encoder()
    layer = encoder.layers[0]
    layer.feed_forward.forward = lambda states: states
    with pytest.raises(ValueError, match="parts of your own: prepare the finished one"):
        prepare(encoder)
