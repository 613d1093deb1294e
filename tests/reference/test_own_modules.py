"""Layers and models share no modules, so a hook on one never fires in another."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers import BertConfig

from tests.helpers import SMALL
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.encoder import TransformerEncoder
from utils.encoder_layer import ACTIVATIONS, FeedForward
from utils.masked_lm import TransformerForMaskedLM

WRITES = {"is_decoder": True, "add_cross_attention": True}
IDS = torch.tensor([[5, 6, 7]])


def decoder_config(name: str) -> BertConfig:
    return BertConfig(**SMALL, **WRITES, hidden_act=name)


# how a model is made with an activation of this name, and how it is called
MODELS: dict[str, tuple[Callable[[str], nn.Module], Callable[[nn.Module], object]]] = {
    "encoder": (lambda name: TransformerEncoder(BertConfig(**SMALL, hidden_act=name)), lambda model: model(IDS)),
    "classifier": (
        lambda name: TransformerForSequenceClassification(BertConfig(**SMALL, hidden_act=name)),
        lambda model: model(IDS),
    ),
    "masked-LM": (lambda name: TransformerForMaskedLM(BertConfig(**SMALL, hidden_act=name)), lambda model: model(IDS)),
    "decoder": (
        lambda name: TransformerDecoder(decoder_config(name)),
        lambda model: model(IDS, None, torch.zeros(1, 2, SMALL["hidden_size"])),
    ),
    "encoder-decoder": (
        lambda name: EncoderDecoder(BertConfig(**SMALL, hidden_act=name), decoder_config(name)),
        lambda model: model(IDS, None, IDS),
    ),
}


def places(model: nn.Module) -> list[nn.Module]:
    """Return all modules of a model, listing a shared module once per name."""
    return [module for _, module in model.named_modules(remove_duplicate=False)]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("kind", MODELS)
def test_layers_and_models_share_no_modules(kind, name):
    make, _ = MODELS[kind]
    modules = [*places(make(name)), *places(make(name))]
    assert len({id(module) for module in modules}) == len(modules)


@pytest.mark.parametrize("kind", MODELS)
def test_hook_fires_only_in_its_own_model(kind):
    make, call = MODELS[kind]
    hooked, other = make("gelu").eval(), make("gelu").eval()
    fired = []
    first = next(module for module in hooked.modules() if isinstance(module, FeedForward))
    first.activation.register_forward_hook(lambda *_: fired.append("here"))
    call(other)
    assert fired == []
    call(hooked)
    assert fired == ["here"]


@pytest.mark.parametrize("kind", MODELS)
def test_evaluation_mode_does_not_affect_other_models(kind):
    make, _ = MODELS[kind]
    one, other = make("gelu").train(), make("gelu").eval()
    assert all(module.training for module in one.modules())
    assert not any(module.training for module in other.modules())
