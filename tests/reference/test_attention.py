"""Attention alone, as in notebooks 03 and 04: the formula, one head, all heads, masks and dropout."""

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig

from tests.helpers import SMALL
from utils.attention import AttentionHead, MultiHeadAttention, scaled_dot_product_attention

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture
def hidden_states() -> torch.Tensor:
    return torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(BertConfig(**SMALL)).eval()


@pytest.mark.parametrize("mask", [None, MASK[:, None, :]])
def test_attention_equals_that_of_torch(hidden_states, mask):
    query, key, value = hidden_states, hidden_states.flip(1), hidden_states + 1
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    wanted = F.scaled_dot_product_attention(query, key, value, None if mask is None else mask.bool())
    assert torch.allclose(context, wanted, atol=1e-6)
    assert torch.allclose(context, weights @ value, atol=1e-6)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize("mask", [None, MASK])
def test_head_equals_a_slice_of_all_heads(attention, hidden_states, mask):
    for index in range(attention.num_heads):
        head, rows = AttentionHead(8, 4), slice(4 * index, 4 * index + 4)
        for name in ("query", "key", "value"):
            source, target = getattr(attention, name), getattr(head, name)
            target.load_state_dict({"weight": source.weight[rows], "bias": source.bias[rows]})
        context, weights = head(hidden_states, mask)
        _, all_weights = attention(hidden_states, mask, output_attentions=True)
        assert torch.allclose(weights, all_weights[:, index], atol=1e-6)
        assert torch.allclose(context, weights @ attention.project(hidden_states)[2][:, index], atol=1e-6)


@pytest.mark.parametrize("output_attentions", [False, True])
def test_attention_dropout_keeps_the_mean_in_training(attention, hidden_states, output_attentions):
    attention.dropout_p = 0.5
    copies = hidden_states[:1].expand(4000, 4, 8)
    with torch.no_grad():
        trained, _ = attention.train()(copies, output_attentions=output_attentions)
        evaluated, _ = attention.eval()(copies, output_attentions=output_attentions)
    assert torch.equal(evaluated[0], evaluated[1])
    assert (trained - evaluated).abs().mean() > 0.01
    assert torch.allclose(trained.mean(0), evaluated[0], atol=0.03)


def test_attention_weights_are_those_before_dropout(attention, hidden_states):
    attention.dropout_p = 1.0
    output, weights = attention.train()(hidden_states, output_attentions=True)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 4))
    assert torch.allclose(output, attention.output.bias.expand(2, 4, 8)), "no weight reaches a value"
