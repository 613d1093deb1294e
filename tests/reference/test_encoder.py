"""Every intermediate of our encoder equals the official BertModel's."""

import copy

import pytest
import torch
from transformers import BertConfig, BertModel

from utils.encoder import TransformerEncoder

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}

# (layers, heads, hidden size, intermediate size, positions, token types, vocabulary, activation)
SIZES = [
    (1, 1, 8, 16, 16, 1, 30, "gelu"),
    (1, 2, 16, 8, 16, 2, 50, "relu"),
    (2, 1, 32, 64, 20, 2, 50, "gelu"),
    (2, 2, 48, 96, 33, 3, 100, "gelu_new"),
    (2, 4, 64, 256, 64, 2, 1000, "gelu"),
    (2, 12, 96, 384, 40, 2, 100, "gelu"),
    (3, 3, 96, 32, 17, 1, 64, "relu"),
    (3, 8, 128, 512, 128, 4, 500, "gelu"),
    (4, 4, 128, 512, 512, 2, 300, "gelu"),
    (4, 16, 64, 128, 64, 2, 77, "gelu_new"),
    (4, 2, 100, 300, 50, 5, 200, "gelu"),
    (5, 5, 80, 160, 25, 2, 99, "gelu"),
    (6, 12, 384, 1536, 64, 2, 128, "gelu"),
    (6, 6, 192, 768, 128, 2, 128, "relu"),
    (7, 7, 112, 224, 31, 3, 61, "gelu"),
    (8, 8, 64, 64, 100, 2, 2000, "gelu"),
    (8, 1, 24, 48, 24, 2, 40, "gelu"),
    (10, 2, 32, 128, 40, 1, 40, "gelu_new"),
    (12, 12, 144, 576, 96, 2, 256, "gelu"),
    (16, 4, 64, 256, 48, 2, 128, "gelu"),
]


def random_models(size) -> tuple[TransformerEncoder, BertModel]:
    """Our encoder and the official one with the same random weights, biases and LayerNorm included."""
    layers, heads, hidden, intermediate, positions, types, vocabulary, activation = size
    config = BertConfig(
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_size=hidden,
        intermediate_size=intermediate,
        max_position_embeddings=positions,
        type_vocab_size=types,
        vocab_size=vocabulary,
        hidden_act=activation,
    )
    torch.manual_seed(0)
    official = BertModel._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in official.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    ours = TransformerEncoder(config).eval()
    ours.load_bert_weights(official.state_dict())
    return ours, official


def random_batches(config: BertConfig) -> dict[str, dict[str, torch.Tensor]]:
    """Ids for a single sentence, a pair and a padded batch, as long as the positions allow."""
    S = min(config.max_position_embeddings, 40)
    ids = torch.randint(1, config.vocab_size, (3, S))
    types = (torch.arange(S) >= S // 2).long().expand(3, S).clamp(max=config.type_vocab_size - 1)
    mask = (torch.arange(S) < torch.tensor([[S], [S // 2], [1]])).long()
    return {
        "single sentence": {"input_ids": ids[:1]},
        "sentence pair": {"input_ids": ids[:1], "token_type_ids": types[:1]},
        "padded batch": {"input_ids": ids * mask, "token_type_ids": types * mask, "attention_mask": mask},
    }


def official_queries_keys(model: BertModel, batch: dict) -> tuple[list, list]:
    """The official projections (B, A, S, D) of each layer, caught as they leave their linear maps."""
    queries, keys, hooks = [], [], []

    def catch(into: list):
        def hook(module, arguments, output):
            B, S, _ = output.shape
            into.append(output.view(B, S, model.config.num_attention_heads, -1).transpose(1, 2))

        return hook

    for layer in model.encoder.layer:
        hooks.append(layer.attention.self.query.register_forward_hook(catch(queries)))
        hooks.append(layer.attention.self.key.register_forward_hook(catch(keys)))
    model(**batch)
    for hook in hooks:
        hook.remove()
    return queries, keys


def assert_parity(ours: TransformerEncoder, official: BertModel, batch: dict, tolerance: float) -> None:
    """Hidden states, attention weights, queries and keys agree at every real token; rows at padding mean nothing."""
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        found = ours(**batch, **asked, output_queries_keys=True)
        wanted = official(**batch, **asked)
        queries, keys = official_queries_keys(official, batch)
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


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", ["single sentence", "sentence pair", "padded batch"])
def test_pretrained(encoder, reference, batches, name, dtype):
    ours, official = copy.deepcopy(encoder).to(dtype), copy.deepcopy(reference).to(dtype)
    assert_parity(ours, official, batches[name], TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "-".join(map(str, size)))
def test_random_configurations(size, dtype):
    ours, official = random_models(size)
    for batch in random_batches(ours.config).values():
        assert_parity(ours.to(dtype), official.to(dtype), batch, TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["single sentence", "sentence pair", "padded batch"])
@pytest.mark.parametrize("output_attentions", [False, True])
def test_gradients(encoder, reference, batches, name, output_attentions):
    ours, official, batch = copy.deepcopy(encoder), copy.deepcopy(reference), batches[name]
    real = batch["attention_mask"].bool()
    direction = torch.randn(real.sum(), ours.config.hidden_size, generator=torch.Generator().manual_seed(0))
    for model in (ours, official):
        options = {"output_attentions": output_attentions} if model is ours else {}
        (model(**batch, **options).last_hidden_state[real] * direction).sum().backward()
    official_gradients = {
        name: parameter.grad for name, parameter in official.named_parameters() if "pooler" not in name
    }
    renamed = TransformerEncoder(ours.config)
    renamed.load_bert_weights(official_gradients)
    for (name, parameter), wanted in zip(ours.named_parameters(), renamed.parameters(), strict=True):
        if name.endswith(
            "key.bias"
        ):  # shifting every score of a row alike changes nothing: zero up to rounding
            assert parameter.grad.norm() <= 1e-4
            continue
        error = (parameter.grad - wanted).norm() / wanted.norm()
        assert error <= 1e-5, f"{name}: relative difference {error:.1e}"


def test_bfloat16(encoder, batches):
    batch = batches["padded batch"]
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        exact = encoder(**batch).last_hidden_state[real]
        for asked in ({}, {"output_attentions": True}):
            coarse = copy.deepcopy(encoder).bfloat16()(**batch, **asked).last_hidden_state
            assert coarse.dtype == torch.bfloat16
            similarity = torch.cosine_similarity(coarse[real].float(), exact, dim=-1)
            assert similarity.min() > 0.99


def test_padding_changes_nothing(encoder, tokenizer):
    alone = tokenizer("time flies like an arrow")
    beside = tokenizer(["time flies like an arrow", "the bark of a palm tree is very rough, said the man"])
    S = alone["input_ids"].size(1)
    with torch.no_grad():
        difference = encoder(**alone).last_hidden_state[0] - encoder(**beside).last_hidden_state[0, :S]
    assert difference.abs().max() <= 1e-5


def test_nothing_is_returned_unasked(encoder, batches):
    output = encoder(**batches["sentence pair"])
    assert (output.hidden_states, output.attentions, output.queries, output.keys) == (None,) * 4


def test_pre_layer_norm_is_another_network(encoder, batches):
    pre = TransformerEncoder(encoder.config, norm_first=True).eval()
    pre.load_state_dict(encoder.state_dict())
    batch = batches["single sentence"]
    with torch.no_grad():
        output = pre(**batch, output_attentions=True, output_queries_keys=True)
        query, key, weights = output.queries[1], output.keys[1], output.attentions[1]
        difference = output.last_hidden_state - encoder(**batch).last_hidden_state
    assert difference.abs().max() > 0.1
    scores = query @ key.transpose(-2, -1) * query.size(-1) ** -0.5
    assert torch.allclose(scores.softmax(-1), weights, atol=1e-6)
