"""Bad input to the encoder and its parts gets an error that names the thing, the value and the remedy."""

import re

import pytest
import torch
from transformers import BertConfig

from utils import memory
from utils.attention import (
    AttentionHead,
    MultiHeadAttention,
    check_weights_fit,
    scaled_dot_product_attention,
)
from utils.checkpoints import DEFAULT_CHECKPOINT
from utils.checks import compare, finding, largest_difference
from utils.encoder import TransformerEncoder
from utils.encoder_layer import FeedForward
from utils.plots import heatmap

SMALL = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
SMALL |= {"vocab_size": 30, "max_position_embeddings": 10}


@pytest.fixture
def small() -> TransformerEncoder:
    return TransformerEncoder(BertConfig(**SMALL)).eval()


def test_more_tokens_than_positions(small):
    with pytest.raises(ValueError, match=r"11 tokens, but only 10 positions: tokenize with max_length=10"):
        small(torch.ones(1, 11, dtype=torch.long))


@pytest.mark.parametrize("wrong", [30, 31, 10**6, -1])
def test_id_outside_the_vocabulary(small, wrong):
    with pytest.raises(ValueError, match=rf"input_ids hold {wrong}, outside 0 … 29: the vocabulary has 30"):
        small(torch.tensor([[1, wrong, 2]]))


def test_token_type_outside_its_table(small):
    ids = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"token_type_ids hold 2, outside 0 … 1"):
        small(ids, token_type_ids=ids * 2)


@pytest.mark.parametrize("shape", [(3,), (1, 3, 1), (0, 3), (1, 0)])
def test_ids_of_another_shape(small, shape):
    message = f"input_ids must be (B, S), got {shape}: one sentence is a batch, ids[None]"
    with pytest.raises(ValueError, match=re.escape(message)):
        small(torch.ones(shape, dtype=torch.long))


def test_token_types_of_another_shape(small):
    with pytest.raises(
        ValueError, match=r"token_type_ids have the shape \(1, 2\), input_ids \(1, 3\): the two must agree"
    ):
        small(torch.ones(1, 3, dtype=torch.long), token_type_ids=torch.ones(1, 2, dtype=torch.long))


@pytest.mark.parametrize("shape", [(2, 4), (1, 3), (3,), (2, 1, 1, 3)])
def test_mask_of_another_shape(small, shape):
    hidden_states = torch.zeros(2, 3, 8)
    found = re.escape(str(shape))
    with pytest.raises(
        ValueError, match=rf"attention_mask has the shape {found}, input_ids \(2, 3\): the two must agree"
    ):
        small(torch.ones(2, 3, dtype=torch.long), attention_mask=torch.ones(shape))
    with pytest.raises(
        ValueError, match=rf"attention_mask must have the shape \(2, 3\) of the input, got {found}"
    ):
        small.layers[0](hidden_states, torch.ones(shape))


@pytest.mark.parametrize("output_attentions", [False, True])
def test_a_row_that_masks_every_token(small, output_attentions):
    mask = torch.tensor([[1, 1, 0], [0, 0, 0]])
    ids = torch.ones(2, 3, dtype=torch.long)
    with pytest.raises(ValueError, match="masks every token of a row: leave at least one 1"):
        small(ids, mask, output_attentions=output_attentions)
    head = AttentionHead(8, 4)
    with pytest.raises(ValueError, match="masks every token"):
        head(torch.zeros(2, 3, 8), mask)


def test_mask_that_does_not_fit_the_scores():
    query = torch.zeros(1, 3, 4)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) does not fit scores of shape \(1, 3, 3\)"):
        scaled_dot_product_attention(query, query, query, torch.ones(2, 2))


def test_causal_and_boolean_masks_fit():
    query = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    causal = torch.ones(5, 5).tril()
    _, weights = scaled_dot_product_attention(query, query, query, causal)
    assert torch.equal(weights.triu(1), torch.zeros(2, 5, 5))
    assert torch.equal(scaled_dot_product_attention(query, query, query, causal.bool())[1], weights)


def test_heads_that_do_not_divide_the_hidden_size():
    config = BertConfig(**SMALL)
    config.num_attention_heads = 3
    with pytest.raises(
        ValueError, match=r"hidden_size=8 is not divisible by num_attention_heads=3: change one"
    ):
        MultiHeadAttention(config)


def test_activation_that_is_not_built():
    with pytest.raises(
        ValueError, match=r'hidden_act="silu" is not built here: use one of gelu, gelu_new, relu'
    ):
        FeedForward(BertConfig(**SMALL, hidden_act="silu"))


@pytest.mark.parametrize("field", ["is_decoder", "add_cross_attention"])
def test_decoders(field):
    with pytest.raises(ValueError, match=rf"{field}=True makes a decoder, .*: use {field}=False"):
        TransformerEncoder(BertConfig(**SMALL, **{field: True}))


def test_relative_positions():
    config = BertConfig(**SMALL)
    config.position_embedding_type = "relative_key"
    with pytest.raises(
        ValueError, match='position_embedding_type="relative_key" is not built here: use "absolute"'
    ):
        TransformerEncoder(config)


def test_weights_that_do_not_fit(small):
    names = {f"embeddings.{name}": tensor for name, tensor in [("LayerNorm.weight", torch.ones(9))]}
    with pytest.raises(ValueError, match=r"missing: .*layers\.1.feed_forward_norm\.weight") as error:
        small.load_bert_weights(names | {"encoder.layer.2.output.dense.bias": torch.ones(8)})
    message = str(error.value)
    assert "unexpected: layers.2.feed_forward.output.bias" in message
    assert "mis-shaped: embeddings.layer_norm.weight (9,) for (8,)" in message


def test_the_caller_keeps_what_it_passed(small):
    ids, mask = torch.tensor([[1, 2, 0]]), torch.tensor([[1, 1, 0]])
    config = small.config.to_dict()
    small(ids, mask, output_attentions=True, output_hidden_states=True)
    assert (ids.tolist(), mask.tolist()) == ([[1, 2, 0]], [[1, 1, 0]])
    assert small.config.to_dict() == config


def test_comparisons_fail_when_they_should():
    with pytest.raises(ValueError, match=r"ours is \(2,\), the official one \(3,\)"):
        largest_difference(torch.zeros(2), torch.zeros(3))
    with pytest.raises(AssertionError, match=r"largest difference 1\.00e-04 is above 1e-05"):
        compare("weights", torch.tensor([0.0001]), torch.tensor([0.0]))


def test_findings_are_asserted_for_the_default_checkpoint_only(monkeypatch, capsys):
    monkeypatch.setenv("CHECKPOINT", DEFAULT_CHECKPOINT)
    finding("head 3 looks back", True)
    with pytest.raises(AssertionError, match="not so: head 3 looks back"):
        finding("head 3 looks back", False)
    monkeypatch.setenv("CHECKPOINT", "another")
    finding("head 3 looks back", False)
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["✓ head 3 looks back", "✗ not with this checkpoint: head 3 looks back"]


def test_heatmap_with_too_few_labels():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are 2 rows, 2 columns"):
        heatmap(torch.zeros(2, 3), ["a", "b"], ["a", "b"])


def test_attention_weights_that_would_not_fit_into_memory(small, monkeypatch):
    ids, asked = torch.ones(3, 9, dtype=torch.long), []
    needed = 3 * (3 * 2 * 9 * 9) * 4  # scores, masked scores and weights, (B, A, S, S) in float32
    monkeypatch.setattr(memory, "free_memory", lambda: asked.append("layer") or needed)
    assert len(small(ids, output_attentions=True).attentions) == len(asked) == 2
    monkeypatch.setattr(memory, "free_memory", lambda: needed - 1)
    message = (
        r"^computing attention weights of shape \(3, 2, 9, 9\) needs about 0 MB, and 0 MB are free: "
        r"take fewer or shorter texts at once, or do without output_attentions$"
    )
    with pytest.raises(MemoryError, match=message):
        small(ids, output_attentions=True)
    assert small(ids).last_hidden_state.shape[:2] == (3, 9), "the fused kernel needs no such room"


def test_the_memory_of_a_gpu_is_its_own_affair(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    check_weights_fit(torch.empty(1, 2, 9, 4, device="meta"))
    with pytest.raises(MemoryError):
        check_weights_fit(torch.empty(1, 2, 9, 4))
