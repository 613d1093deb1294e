"""oneDNN's products give the same numbers, from a copy that leaves the model as it was."""

import copy

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from utils.encoder import TransformerEncoder
from utils.encoder_layer import FeedForward
from utils.search import embed
from utils.support import products
from utils.support.comparisons import largest_difference
from utils.support.products import onednn_is_faster, with_fast_products

TEXTS = ["a b c", "b", "c a a b a", "a c"] * 6
TOKENS = products.WORTH_A_COPY


@pytest.fixture(autouse=True)
def faster(monkeypatch):
    monkeypatch.setattr(products, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(products, "WORTH_A_COPY", 8)


@pytest.fixture
def tiny() -> TransformerEncoder:
    torch.manual_seed(0)
    return TransformerEncoder(BertConfig(**TINY)).eval()


def has_ordinary_products(model: torch.nn.Module) -> bool:
    return any(type(part) is torch.nn.Linear for part in model.modules())


def test_copy_gives_the_same_vectors_and_leaves_the_model(tiny, monkeypatch):
    tokenizer, names = tiny_tokenizer(), list(tiny.state_dict())
    seen = []
    watched = lambda model, tokens: seen.append(with_fast_products(model, tokens)) or seen[-1]  # noqa: E731
    monkeypatch.setattr("utils.search.with_fast_products", watched)
    fast = embed(TEXTS, tiny, tokenizer)
    assert not has_ordinary_products(seen[0])
    assert seen[0].embeddings.word_embeddings.weight is tiny.embeddings.word_embeddings.weight
    assert list(tiny.state_dict()) == names
    assert has_ordinary_products(tiny)
    monkeypatch.setattr(products, "onednn_is_faster", lambda: False)
    assert largest_difference(fast, embed(TEXTS, tiny, tokenizer)) <= 1e-6
    assert seen[1] is tiny


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu"])
def test_only_the_exact_gelu_joins_a_product(hidden_act):
    torch.manual_seed(0)
    model = TransformerEncoder(BertConfig(**TINY | {"hidden_act": hidden_act})).eval()
    states = torch.randn(2, 3, TINY["hidden_size"])
    feed_forward = products.to_onednn(copy.deepcopy(model)).layers[0].feed_forward
    assert (type(feed_forward.activation) is torch.nn.Identity) == (hidden_act == "gelu")
    with torch.inference_mode():
        assert largest_difference(feed_forward(states), model.layers[0].feed_forward(states)) <= 1e-6


def test_readers_own_feed_forward_is_computed(tiny, monkeypatch):
    def own(self, x):
        weight = self.output.weight
        return torch.nn.functional.linear(torch.relu(self.intermediate(x)), weight)

    monkeypatch.setattr(FeedForward, "forward", own)
    with torch.inference_mode():
        states = torch.randn(2, 3, TINY["hidden_size"])
        fast = products.to_onednn(copy.deepcopy(tiny)).layers[0].feed_forward(states)
        assert largest_difference(fast, tiny.layers[0].feed_forward(states)) <= 1e-6


def test_copy_follows_new_weights(tiny):
    tokenizer = tiny_tokenizer()
    before = embed(TEXTS, tiny, tokenizer)
    tiny.layers[0].feed_forward.output.weight.data.mul_(-3)
    assert largest_difference(embed(TEXTS, tiny, tokenizer), before) > 1e-3


def test_other_models_compute_as_they_are(tiny):
    class Own(torch.nn.Linear):
        """A reader's linear layer."""

    hooked, own = copy.deepcopy(tiny), copy.deepcopy(tiny)
    hooked.layers[0].attention.register_forward_hook(lambda *_: None)
    own.layers[0].feed_forward.output = Own(4, 4)
    for model in (hooked, own, copy.deepcopy(tiny).double(), copy.deepcopy(tiny).to("meta")):
        assert with_fast_products(model, TOKENS) is model
    assert with_fast_products(tiny, 7) is tiny
    assert with_fast_products(tiny, 8) is not tiny


def test_timing_is_done_once_and_draws_no_number():
    onednn_is_faster.cache_clear()
    state = torch.get_rng_state()
    assert onednn_is_faster() in (True, False)
    assert torch.equal(torch.get_rng_state(), state)
    assert onednn_is_faster.cache_info().misses == 1


def test_version_of_torch_without_these_operators_uses_mkl(monkeypatch):
    onednn_is_faster.cache_clear()
    monkeypatch.setattr(products, "OPERATORS", ("_no_such_operator",))
    assert not onednn_is_faster()
    onednn_is_faster.cache_clear()
