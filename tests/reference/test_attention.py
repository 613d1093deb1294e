"""The parts of the encoder used alone, as notebooks 02 to 05 use them: defaults, dropout, one head, pre-LN."""

from types import SimpleNamespace

import pytest
import torch
from transformers import BertConfig

from benchmarks.peers import torch_names
from utils.attention import AttentionHead, MultiHeadAttention, scaled_dot_product_attention
from utils.embeddings import Embeddings
from utils.encoder import check_config, drop_full_mask
from utils.encoder_layer import TransformerEncoderLayer

SMALL = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
SMALL |= {"vocab_size": 30, "max_position_embeddings": 10}
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture
def hidden_states() -> torch.Tensor:
    return torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def config() -> BertConfig:
    torch.manual_seed(0)
    return BertConfig(**SMALL)


def test_padding_has_a_vector_of_zeros_that_is_never_trained(config):
    embeddings = Embeddings(config)
    (embeddings(torch.tensor([[5, 0]])) * torch.randn(1, 2, 8)).sum().backward()
    table = embeddings.word_embeddings.weight
    assert not table[config.pad_token_id].any()
    assert not table.grad[config.pad_token_id].any()
    assert table.grad[5].any()


def test_attention_drops_nothing_unless_asked(hidden_states):
    context, weights = scaled_dot_product_attention(hidden_states, hidden_states, hidden_states)
    assert torch.allclose(context, weights @ hidden_states, atol=1e-6)
    context, weights = scaled_dot_product_attention(
        hidden_states, hidden_states, hidden_states, dropout_p=1.0
    )
    assert not context.any()
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4)), "the returned weights are those before dropout"


@pytest.mark.parametrize("mask", [None, MASK])
def test_one_head_is_a_slice_of_all_heads(config, hidden_states, mask):
    attention = MultiHeadAttention(config).eval()
    for index in range(config.num_attention_heads):
        head, rows = AttentionHead(8, 4), slice(4 * index, 4 * index + 4)
        for name in ("query", "key", "value"):
            source, target = getattr(attention, name), getattr(head, name)
            target.load_state_dict({"weight": source.weight[rows], "bias": source.bias[rows]})
        context, weights = head(hidden_states, mask)
        _, all_weights = attention(hidden_states, mask, output_attentions=True)
        assert torch.allclose(weights, all_weights[:, index], atol=1e-6)
        assert torch.allclose(context, weights @ attention.project(hidden_states)[2][:, index], atol=1e-6)


def test_weights_are_returned_only_when_asked_for(config, hidden_states):
    for part in (MultiHeadAttention(config), TransformerEncoderLayer(config)):
        assert part(hidden_states)[1] is None
        assert part(hidden_states, output_attentions=True)[1].shape == (2, 2, 4, 4)


@pytest.mark.parametrize("output_attentions", [False, True])
def test_attention_dropout_in_training_only_and_right_on_average(config, hidden_states, output_attentions):
    config.attention_probs_dropout_prob = 0.5
    attention = MultiHeadAttention(config)
    copies = hidden_states[:1].expand(4000, 4, 8)
    with torch.no_grad():
        trained, _ = attention.train()(copies, output_attentions=output_attentions)
        evaluated, _ = attention.eval()(copies, output_attentions=output_attentions)
    assert torch.equal(evaluated[0], evaluated[1])
    assert (trained - evaluated).abs().mean() > 0.01
    assert torch.allclose(trained.mean(0), evaluated[0], atol=0.03)


def torch_layer(layer: TransformerEncoderLayer, norm_first: bool) -> torch.nn.TransformerEncoderLayer:
    """torch's own layer with the weights of ours."""
    own = torch.nn.TransformerEncoderLayer(
        8, 2, 16, activation="gelu", layer_norm_eps=1e-12, batch_first=True, norm_first=norm_first
    )
    own.load_state_dict(torch_names(layer.state_dict()))
    return own.eval()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("options", [{}, {"norm_first": False}, {"norm_first": True}], ids=str)
def test_post_and_pre_layer_norm_equal_those_of_torch(config, hidden_states, options):
    layer = TransformerEncoderLayer(config, **options).eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        wanted = torch_layer(layer, options.get("norm_first", False))(
            hidden_states, src_key_padding_mask=MASK == 0
        )
        found, _ = layer(hidden_states, MASK)
    assert torch.allclose(found[MASK == 1], wanted[MASK == 1], atol=1e-5)


def test_a_mask_of_ones_is_no_mask():
    ids = torch.ones(2, 4, dtype=torch.long)
    assert drop_full_mask(None, ids) is None
    assert drop_full_mask(torch.ones(2, 4), ids) is None
    assert drop_full_mask(MASK, ids) is MASK


def test_a_configuration_without_decoder_fields_is_an_encoders():
    config = SimpleNamespace(hidden_size=8)
    assert check_config(config) is config
