"""Our ModernBERT equals ModernBertModel, and refuses other models with clear errors."""

import copy
import re
from collections import Counter
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import (
    BertConfig,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForSequenceClassification,
    ModernBertModel,
)

from tests.helpers import SMALL, shaken
from utils.attention import scaled_dot_product_attention
from utils.modernbert import ModernEncoder, local_attention, local_mask
from utils.support.comparisons import largest_difference
from utils.support.weight_names import rename_modern_weight, split_modern_weights
from utils.weights import rename_weights

GLOBAL, LOCAL = "full_attention", "sliding_attention"
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
SHARED = IDS | {"vocab_size": 99, "max_position_embeddings": 300}
EVERYTHING = {"output_attentions": True, "output_hidden_states": True}


class Case(NamedTuple):
    """A configuration, and the lengths of a padded batch."""

    layers: str  # g for a global layer, l for a local one
    heads: int
    hidden: int
    intermediate: int
    window: int
    biases: str  # of a: attention, f: feed-forward, n: norms
    activation: str
    lengths: tuple[int, ...]

    def config(self) -> ModernBertConfig:
        """Return it as transformers has it."""
        sizes = {"hidden_size": self.hidden, "intermediate_size": self.intermediate, "num_attention_heads": self.heads}
        biases = {f"{part}_bias": part[0] in self.biases for part in ("attention", "norm")}
        layers = [GLOBAL if letter == "g" else LOCAL for letter in self.layers]
        rest = {"mlp_bias": "f" in self.biases, "hidden_activation": self.activation, "local_attention": self.window}
        return ModernBertConfig(**SHARED, **sizes, **biases, **rest, num_hidden_layers=len(layers), layer_types=layers)


CASES = [
    Case("g", 1, 8, 8, 4, "", "gelu", (1,)),
    Case("l", 2, 16, 24, 4, "afn", "gelu", (30, 3, 1)),
    Case("gll", 4, 32, 48, 8, "", "gelu", (40, 20, 7)),
    Case("gllg", 3, 48, 32, 5, "n", "relu", (64, 33)),
    Case("llll", 4, 64, 96, 16, "a", "gelu", (300, 1, 150)),
    Case("gggg", 2, 32, 40, 128, "f", "gelu_new", (128, 127, 2)),
    Case("gllgllgl", 12, 96, 150, 64, "", "gelu", (129, 65, 64, 63)),
]
PARAMETERS = pytest.mark.parametrize(
    "case",
    [*CASES[:4], *(pytest.param(case, marks=pytest.mark.long) for case in CASES[4:])],
    ids=lambda case: "-".join(map(str, case[:7])),
)


def batch_of(lengths: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Return random ids of these lengths, padded on the right."""
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(3, 99, mask.shape, generator=torch.Generator().manual_seed(sum(lengths)))
    return {"input_ids": ids * mask, "attention_mask": mask}


def both(config: ModernBertConfig, attention: str = "eager", std: float = 0.1):
    """Return our encoder and the official one with the same random weights, biases and norms included."""
    torch.manual_seed(0)
    official = shaken(ModernBertModel._from_config(config, attn_implementation=attention), std=std)
    ours = ModernEncoder(config).eval()
    ours.load_weights(official.state_dict())
    return ours, official


def gradients(model, batch: dict[str, torch.Tensor], **options: bool) -> dict[str, torch.Tensor]:
    """Return gradients of all parameters by name, for a random direction of all real tokens' last hidden states."""
    real = batch["attention_mask"].bool()
    states = model(**batch, **options).last_hidden_state[real]
    direction = torch.randn(states.shape, generator=torch.Generator().manual_seed(0)).to(states)
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad((states * direction).sum(), [*parameters.values()])
    return dict(zip(parameters, found, strict=True))


def renamed(found: dict[str, torch.Tensor], ours: ModernEncoder) -> dict[str, torch.Tensor]:
    """Return the official model's gradients under our names."""
    return rename_weights(split_modern_weights(found), ours.state_dict(), rename_modern_weight)


def relative_errors(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> dict[str, float]:
    """Return the norm of each gradient's difference, divided by the gradient's norm.

    Query, key and value count as the one matrix that they are in the official code: with a single token, the gradient
    of the first two is 0.
    """
    differences, norms = Counter(), Counter()
    for name, gradient in wanted.items():
        matrix = re.sub(r"attention\.(query|key|value)", "attention.query, key, value", name)
        differences[matrix] += (found[name] - gradient).square().sum().item()
        norms[matrix] += gradient.square().sum().item()
    return {matrix: (differences[matrix] / norm) ** 0.5 for matrix, norm in norms.items()}


@PARAMETERS
def test_modernbert_equals_the_official_model(case):
    ours, official = both(case.config())
    batch = batch_of(case.lengths)
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        found, wanted = ours(**batch, **EVERYTHING), official(**batch, **EVERYTHING)
        fused = ours(**batch)
    assert len(found.hidden_states) == len(case.layers) + 1
    assert torch.equal(found.last_hidden_state, found.hidden_states[-1])
    for mine, theirs in zip(found.hidden_states, wanted.hidden_states, strict=True):
        assert largest_difference(mine[real], theirs[real]) <= 1e-5
    for mine, theirs in zip(found.attentions, wanted.attentions, strict=True):
        assert mine.shape == theirs.shape
        assert largest_difference(mine.transpose(1, 2)[real], theirs.transpose(1, 2)[real]) <= 1e-5
    assert largest_difference(fused.last_hidden_state[real], wanted.last_hidden_state[real]) <= 1e-5
    expected = renamed(gradients(official, batch), ours)
    for asked in (False, True):
        errors = relative_errors(gradients(ours, batch, output_attentions=asked), expected)
        assert max(errors.values()) <= 1e-5, errors


@pytest.fixture(scope="module")
def small() -> ModernEncoder:
    """Return three layers, two with a window of 4, whose weights are large enough for attention to choose."""
    return both(Case("gll", 2, 16, 24, 4, "afn", "gelu", ()).config(), std=0.3)[0]


# Local attention


@settings(max_examples=80)
@given(S=st.integers(1, 70), reach=st.integers(1, 40), data=st.data())
def test_local_attention_equals_masked_attention(S, reach, data):
    lengths = torch.tensor(data.draw(st.lists(st.integers(1, S), min_size=1, max_size=3)))
    B = len(lengths)
    query, key, value = torch.randn(3, B, 2, S, 4, generator=torch.Generator().manual_seed(S))
    mask = (torch.arange(S) < lengths[:, None])[:, None, None]  # (B, 1, 1, S)
    blocks = local_attention(query, key, value, mask, reach)
    masked, _ = scaled_dot_product_attention(query, key, value, local_mask(mask, S, reach))
    real = mask[:, 0, 0]
    assert largest_difference(blocks.transpose(1, 2)[real], masked.transpose(1, 2)[real]) <= 1e-6
    assert blocks.isfinite().all()


# Any batch


def test_modernbert_works_in_bfloat16(small):
    batch = batch_of((30, 9))
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        exact = small(**batch).last_hidden_state[real]
        coarse = copy.deepcopy(small).bfloat16()(**batch).last_hidden_state[real]
    assert coarse.dtype == torch.bfloat16
    assert F.cosine_similarity(coarse.float(), exact, dim=-1).mean() > 0.95


def test_new_modernbert_is_random_without_biases():
    torch.manual_seed(0)
    encoder = ModernEncoder(Case("gll", 4, 64, 96, 8, "", "gelu", ()).config())
    assert encoder.training
    assert not [name for name, _ in encoder.named_parameters() if name.endswith("bias")]
    matrices = [weight for weight in encoder.parameters() if weight.dim() == 2]
    assert all(abs(weight.std() - 0.02) <= 0.002 for weight in matrices)


# Checkpoints


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a ModernBERT that transformers saved."""
    path = tmp_path_factory.mktemp("modern")
    both(Case("gll", 2, 16, 24, 4, "n", "gelu", ()).config())[1].save_pretrained(path)
    return path


@pytest.mark.parametrize("kind", [ModernBertForMaskedLM, ModernBertForSequenceClassification])
def test_modernbert_loads_the_encoder_of_a_headed_model(kind, tmp_path):
    torch.manual_seed(0)
    official = shaken(kind(Case("gl", 2, 16, 24, 4, "", "gelu", ()).config()))
    official.save_pretrained(tmp_path)
    encoder, batch = ModernEncoder.from_checkpoint(tmp_path), batch_of((9,))
    with torch.no_grad():
        wanted = official.model(**batch).last_hidden_state
        assert largest_difference(encoder(**batch).last_hidden_state, wanted) <= 1e-5


def test_modernbert_refuses_a_checkpoint_of_bert():
    words = r'model_type="bert", which is not supported here, but "modernbert" is: use .* TransformerEncoder'
    with pytest.raises(ValueError, match=words):
        ModernEncoder.from_checkpoint(None)


def test_modernbert_refuses_weights_that_do_not_fit(folder, tmp_path):
    weights = load_file(folder / "model.safetensors")
    weights["layers.1.mlp.Wi.weight"] = weights["layers.1.mlp.Wi.weight"][1:].clone()
    del weights["layers.2.attn_norm.weight"]
    weights["layers.3.attn.Wo.weight"] = torch.ones(16, 16)
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text("utf-8"), "utf-8")
    with pytest.raises(ValueError, match=r"missing: layers\.2\.attention_norm\.weight;") as error:
        ModernEncoder.from_checkpoint(str(tmp_path))
    assert "unexpected: layers.3.attention.output.weight;" in str(error.value)
    assert "mis-shaped: layers.1.feed_forward.intermediate.weight (47, 16) for (48, 16)" in str(error.value)


# Refusals


def bent(**fields):
    """Return a configuration with fields that transformers would not all accept."""
    config = copy.deepcopy(Case("gl", 2, 16, 24, 4, "", "gelu", ()).config())
    for name, value in fields.items():
        object.__setattr__(config, name, value)
    return config


LINEAR = {kind: {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4} for kind in (GLOBAL, LOCAL)}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BertConfig(**SMALL), r'^model_type="bert" is not a ModernBERT: use "modernbert", or TransformerEncoder$'),
        (bent(rope_parameters=LINEAR), r'^rope_type="linear" in full_attention is not supported: use "default"$'),
        (bent(layer_types=[GLOBAL, "chunked"]), r'^layer_types contain "chunked", .* use full_attention or sliding_'),
        (bent(hidden_activation="silu"), r'^hidden_activation="silu" is not supported: use one of gelu, '),
        (bent(num_attention_heads=3), r"^hidden_size=16 is not divisible by num_attention_heads=3: change one"),
        (bent(attention_dropout=0.1), r"^attention_dropout=0\.1 is not supported: use 0\.0, as ModernBERT does$"),
        (bent(hidden_size=12, num_attention_heads=4), r"^a head size of 3 cannot be rotated in pairs: use an even"),
        (bent(vocab_size=0), r"^vocab_size must be a positive integer, got 0$"),
        (bent(norm_eps=float("nan")), r"^norm_eps must be a number from 0 to 1, got nan$"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_modernbert_refuses_unsupported_configurations(config, message):
    with pytest.raises(ValueError, match=message):
        ModernEncoder(config)
