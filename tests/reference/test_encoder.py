"""Every intermediate result of our encoder equals that of BertModel, and invariants hold for any batch."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from tests.helpers import ragged_batch, random_sizes, shaken
from utils.encoder import TransformerEncoder
from utils.weights import rename_weights

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
IDS = st.lists(st.integers(0, 29), min_size=1, max_size=20)


def random_models(seed: int) -> tuple[TransformerEncoder, BertModel]:
    """Return our encoder and the official one of random sizes, with the same random weights, biases and LayerNorm."""
    config = BertConfig(**random_sizes(seed))
    torch.manual_seed(seed)
    official = shaken(BertModel._from_config(config, attn_implementation="eager"), std=0.05)
    ours = TransformerEncoder(config).eval()
    ours.load_bert_weights(official.state_dict())
    return ours, official


@contextmanager
def caught_queries_keys(model: BertModel) -> Iterator[tuple[list, list]]:
    """Return the official projections (B, A, S, D) of each layer, from hooks on their linear maps."""
    queries, keys, hooks = [], [], []

    def catch(into: list):
        def hook(module, arguments, output):
            B, S, _ = output.shape
            into.append(output.view(B, S, model.config.num_attention_heads, -1).transpose(1, 2))

        return hook

    for layer in model.encoder.layer:
        hooks.append(layer.attention.self.query.register_forward_hook(catch(queries)))
        hooks.append(layer.attention.self.key.register_forward_hook(catch(keys)))
    yield queries, keys
    for hook in hooks:
        hook.remove()


@torch.no_grad()
def assert_parity(ours: TransformerEncoder, official: BertModel, batch: dict, tolerance: float) -> None:
    """Check hidden states, attention weights, queries and keys at all real tokens; padding does not count."""
    asked = {"output_attentions": True, "output_hidden_states": True}
    with caught_queries_keys(official) as (queries, keys):
        wanted = official(**batch, **asked)
    found = ours(**batch, **asked, output_queries_keys=True)
    fused = ours(**batch).last_hidden_state
    real = batch.get("attention_mask", torch.ones_like(batch["input_ids"])).bool()
    assert torch.equal(found.last_hidden_state, found.hidden_states[-1])
    assert (fused - wanted.last_hidden_state)[real].abs().max() <= tolerance
    for mine, theirs in zip(found.hidden_states, wanted.hidden_states, strict=True):
        assert (mine - theirs)[real].abs().max() <= tolerance
    per_head = [*zip(found.attentions, wanted.attentions, strict=True)]
    per_head += [*zip(found.queries, queries, strict=True), *zip(found.keys, keys, strict=True)]
    for mine, theirs in per_head:
        assert mine.shape == theirs.shape
        assert (mine - theirs).transpose(1, 2)[real].abs().max() <= tolerance


@pytest.fixture(scope="module")
def models(encoder, reference) -> dict[torch.dtype, tuple[TransformerEncoder, BertModel]]:
    """Return the pretrained encoder, ours and the official one, in both precisions."""
    doubled = copy.deepcopy(encoder).double(), copy.deepcopy(reference).double()
    return {torch.float32: (encoder, reference), torch.float64: doubled}


def last_hidden_state(encoder, **batch) -> torch.Tensor:
    with torch.no_grad():
        return encoder(**batch).last_hidden_state


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", ["single sentence", "sentence pair", "padded batch"])
def test_pretrained_encoder_equals_the_official_one(models, batches, name, dtype):
    assert_parity(*models[dtype], batches[name], TOLERANCE[dtype])


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 12))], ids="seed {}".format
)
def test_random_encoders_equal_the_official_ones(seed):
    ours, official = random_models(seed)
    S = min(ours.config.max_position_embeddings, 40)
    padded = ragged_batch([S, S // 2, 1], ours.config.vocab_size)
    padded["token_type_ids"].clamp_(max=ours.config.type_vocab_size - 1)
    single = padded["input_ids"][:1]
    pair = {"input_ids": single, "token_type_ids": padded["token_type_ids"][:1]}
    for dtype, tolerance in TOLERANCE.items():
        for batch in ({"input_ids": single}, pair, padded):
            assert_parity(ours.to(dtype), official.to(dtype), batch, tolerance)


@pytest.mark.parametrize("name", ["single sentence", "sentence pair", "padded batch"])
def test_encoder_gradients_equal_the_official_ones(encoder, reference, batches, name):
    batch, weights = batches[name], dict(reference.named_parameters())
    weights = {name: weight for name, weight in weights.items() if "pooler" not in name}
    real = batch["attention_mask"].bool()
    direction = torch.randn(real.sum(), encoder.config.hidden_size, generator=torch.Generator().manual_seed(0))

    def gradients(model, parameters, **options):
        loss = (model(**batch, **options).last_hidden_state[real] * direction).sum()
        return dict(zip(parameters, torch.autograd.grad(loss, [*parameters.values()]), strict=True))

    wanted = rename_weights(gradients(reference, weights), encoder.state_dict())
    for output_attentions in (False, True):
        found = gradients(encoder, dict(encoder.named_parameters()), output_attentions=output_attentions)
        for name, gradient in found.items():
            if name.endswith("key.bias"):  # shifting all scores of a row changes nothing: zero up to rounding
                assert gradient.norm() <= 1e-4
                continue
            error = (gradient - wanted[name]).norm() / wanted[name].norm()
            assert error <= 1e-5, f"{name}: relative difference {error:.1e}"


@settings(max_examples=60)
@given(ids=IDS, filler=IDS)
def test_padding_never_reaches_real_tokens(precise, ids, filler):
    S, rows = len(ids), [ids + filler, ids + [0] * len(filler)]
    mask = torch.tensor([[1] * S + [0] * len(filler)] * 2)
    padded = last_hidden_state(precise, input_ids=torch.tensor(rows), attention_mask=mask)[:, :S]
    alone = last_hidden_state(precise, input_ids=torch.tensor([ids]))[0]
    assert (padded[0] - padded[1]).abs().max() <= 1e-11
    assert (padded[0] - alone).abs().max() <= 1e-11


def test_encoder_returns_states_only_on_request(small):
    output = small(torch.ones(1, 3, dtype=torch.long))
    assert (output.hidden_states, output.attentions, output.queries, output.keys) == (None,) * 4


@pytest.mark.parametrize("initializer_range", [0.02, 0.3])
def test_new_encoder_is_initialized_as_bert(initializer_range):
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(**sizes, vocab_size=99, pad_token_id=7, initializer_range=initializer_range)
    torch.manual_seed(0)
    ours = TransformerEncoder(config)
    official = rename_weights(BertModel(config).state_dict(), ours.state_dict())
    for name, weight in ours.state_dict().items():
        if len(official[name].unique()) == 1:
            assert torch.equal(weight, official[name]), f"{name}: biases are 0, the scales of LayerNorm 1"
            continue
        for drawn in (weight, official[name]):
            if name == "embeddings.word_embeddings.weight":
                assert not drawn[7].any(), "the row of [PAD]"
                drawn = torch.cat([drawn[:7], drawn[8:]])
            error = initializer_range / drawn.numel() ** 0.5  # of a mean; that of a deviation is √2 smaller
            assert abs(drawn.mean()) <= 5 * error, name
            assert abs(drawn.std() - initializer_range) <= 5 * error / 2**0.5, name


def test_encoder_refuses_weights_that_do_not_fit(small):
    names = {"embeddings.LayerNorm.weight": torch.ones(9), "encoder.layer.2.output.dense.bias": torch.ones(24)}
    with pytest.raises(ValueError, match=r"missing: embeddings\.layer_norm\.bias, .* and 28 more") as error:
        small.load_bert_weights(names)
    message = str(error.value)
    assert "unexpected: layers.2.feed_forward.output.bias" in message
    assert "mis-shaped: embeddings.layer_norm.weight (9,) for (24,)" in message
