"""One layer alone, as in notebook 05, equals that of torch in both orders of LayerNorm."""

import pytest
import torch
from torch import nn
from transformers import BertConfig

from benchmarks.baselines import torch_names
from tests.helpers import SMALL, shaken
from utils.encoder_layer import TransformerEncoderLayer

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture
def hidden_states() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 4, 8)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("options", [{}, {"norm_first": False}, {"norm_first": True}], ids=str)
def test_encoder_layer_equals_that_of_torch(hidden_states, options):
    layer = shaken(TransformerEncoderLayer(BertConfig(**SMALL), **options))
    settings = {"activation": "gelu", "layer_norm_eps": 1e-12, "batch_first": True}
    official = nn.TransformerEncoderLayer(8, 2, 16, **settings, **options).eval()
    official.load_state_dict(torch_names(layer.state_dict()))
    with torch.no_grad():
        wanted = official(hidden_states, src_key_padding_mask=MASK == 0)
        found, _ = layer(hidden_states, MASK)
    assert torch.allclose(found[MASK == 1], wanted[MASK == 1], atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_layer_returns_the_query_and_key_of_its_weights(hidden_states, norm_first):
    layer = shaken(TransformerEncoderLayer(BertConfig(**SMALL), norm_first))
    query, key = layer.project(hidden_states)
    _, weights = layer(hidden_states, output_attentions=True)
    assert torch.allclose((query @ key.mT / 2).softmax(-1), weights, atol=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_of_1_leaves_the_residual_stream(hidden_states, norm_first):
    layer = shaken(TransformerEncoderLayer(BertConfig(**SMALL, hidden_dropout_prob=1.0), norm_first))
    found, _ = layer.train()(hidden_states)
    wanted = hidden_states if norm_first else layer.feed_forward_norm(layer.attention_norm(hidden_states))
    assert torch.allclose(found, wanted, atol=1e-6)
