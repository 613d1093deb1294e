"""What a link of one head matters, measured by leaving it out."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2Model,
)

from tests.helpers import TINY, official_and_ours, shaken, tiny_tokenizer
from utils.encoder import TransformerEncoder
from views.cuts import angle, measure_cuts

TEXTS = ("a b c 1 2", "d e")


@pytest.fixture
def official_tokenizer(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(tiny_tokenizer().vocab), "utf-8")
    return BertTokenizerFast(str(tmp_path / "vocab.txt"))


def test_a_cut_is_what_the_layer_makes_of_the_other_links():
    """Each of the layer's links is set to 0, and to 0 with the others scaled to add up to 1, by other code."""
    encoder, tokenizer = shaken(TransformerEncoder(BertConfig(**TINY))), tiny_tokenizer()
    turns = measure_cuts(encoder, tokenizer, TEXTS)
    output = encoder(**tokenizer(*TEXTS), output_attentions=True, output_hidden_states=True)
    layer, states = encoder.layers[1], output.hidden_states[1]
    S = states.size(1)
    assert turns.shape == (2, 2, 3, S, S)
    value = layer.attention.project(states)[2]
    for head, asking, asked in [(0, 1, 1), (1, 0, S - 1), (2, 3, 2)]:
        for cut in (0, 1):
            weights = output.attentions[1].detach().clone()
            weights[0, head, asking, asked] = 0
            if cut:
                weights[0, head, asking] /= weights[0, head, asking].sum()
            attended = layer.attention.output((weights @ value).transpose(1, 2).reshape(1, S, -1))
            between = layer.attention_norm(states + attended)
            without = layer.feed_forward_norm(between + layer.feed_forward(between))
            turn = angle(without[0, asking], output.hidden_states[2][0, asking])
            torch.testing.assert_close(turns[cut, 1, head, asking, asked], turn, rtol=0, atol=1e-3)


def test_a_last_vector_is_what_the_other_layers_make_of_a_cut():
    """The token's vector after its layer is replaced in a run of the model; of other tokens nothing is said."""
    encoder, tokenizer = shaken(TransformerEncoder(BertConfig(**TINY))), tiny_tokenizer()
    turns = measure_cuts(encoder, tokenizer, TEXTS, 3)
    assert turns[:, :, :, [0, 1, 2, 4]].isnan().all()
    inputs = tokenizer(*TEXTS)
    output = encoder(**inputs, output_attentions=True, output_hidden_states=True)
    first, states = encoder.layers[0], output.hidden_states[0]
    value = first.attention.project(states)[2]
    for head, asked in [(0, 1), (2, 3)]:
        weights = output.attentions[0].detach().clone()
        weights[0, head, 3, asked] = 0
        attended = first.attention.output((weights @ value).transpose(1, 2).flatten(2))
        between = first.attention_norm(states + attended)
        without = first.feed_forward_norm(between + first.feed_forward(between))
        changed = output.hidden_states[1].clone()
        changed[0, 3] = without[0, 3]
        for layer in encoder.layers[1:]:
            changed = layer(changed)[0]
        turn = angle(changed[0, 3], output.last_hidden_state[0, 3])
        torch.testing.assert_close(turns[0, 0, head, 3, asked], turn, rtol=0, atol=1e-3)


def test_official_and_half_precision_encoders_turn_alike(official_tokenizer):
    official, ours = official_and_ours(BertModel, TransformerEncoder)
    turns = measure_cuts(ours, tiny_tokenizer(), TEXTS)
    theirs = measure_cuts(official, official_tokenizer, TEXTS)
    torch.testing.assert_close(theirs, turns, rtol=0, atol=1e-3)
    assert (measure_cuts(ours.half(), tiny_tokenizer(), TEXTS) - turns).abs().max() < 1


def test_angle_is_exact_for_small_and_large_turns():
    degrees = torch.tensor([0.0, 0.001, 0.3, 90, 179.9], dtype=torch.float64)
    sides = torch.stack([degrees.deg2rad().cos(), degrees.deg2rad().sin()], dim=-1)
    torch.testing.assert_close(angle(torch.tensor([2.0, 0.0]), 3 * sides).double(), degrees, rtol=1e-5, atol=1e-9)


def test_a_weight_of_one_has_nobody_to_share_with():
    encoder = shaken(TransformerEncoder(BertConfig(**TINY)))
    with torch.no_grad():
        encoder.layers[0].attention.query.weight.mul_(1e4)
    turns = measure_cuts(encoder, tiny_tokenizer(), TEXTS)[:, 0]
    assert turns[0].isfinite().all()
    assert turns[1].isnan().any()


def test_other_families_are_measured_or_refused(official_tokenizer):
    size = {"vocab_size": 50, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3}
    with pytest.raises(ValueError, match="it has no list of layers, each with a linear layer after attention"):
        measure_cuts(GPT2Model(GPT2Config(**size)).eval(), official_tokenizer, TEXTS)
    long = shaken(TransformerEncoder(BertConfig(**TINY | {"max_position_embeddings": 128})))
    with pytest.raises(ValueError, match="cuts=True measures texts of at most 64 tokens, got 102: shorten the text"):
        measure_cuts(long, tiny_tokenizer(), ("a " * 100,))
    sizes = {"vocab_size": 50, "dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 16}
    distilled = measure_cuts(DistilBertModel(DistilBertConfig(**sizes)).eval(), official_tokenizer, TEXTS)
    assert distilled.isfinite().all()
