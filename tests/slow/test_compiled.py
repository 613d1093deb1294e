"""torch.compile with its default backend, which writes C++, and a program made from pretrained weights."""

import shutil

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, ragged_batch, shaken
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder

EVERYTHING = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}

pytestmark = pytest.mark.usefixtures("fresh_compiler")


def differences(found, wanted) -> list[float]:
    found, wanted = (torch.utils._pytree.tree_leaves(output) for output in (found, wanted))
    pairs = zip(found, wanted, strict=True)
    return [(mine - eager).abs().max().item() for mine, eager in pairs if eager is not None]


@pytest.mark.skipif(not any(map(shutil.which, ["c++", "g++", "clang++"])), reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch uses what it deprecates
@pytest.mark.parametrize("family", [TransformerEncoder, TransformerForSequenceClassification])
def test_the_default_backend_for_any_length(family):
    torch.manual_seed(0)
    model = shaken(family(BertConfig(**TINY | {"num_hidden_layers": 1})))
    options = EVERYTHING if family is TransformerEncoder else {}
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    for lengths in ([7, 4], [12, 2], [5, 5, 1]):
        batch = ragged_batch(lengths)
        with torch.no_grad():
            found = differences(compiled(**batch, **options), model(**batch, **options))
        assert len(found) == (1 if not options else 1 + 2 + 1 + 1 + 1)
        assert max(found) <= 1e-5


def test_gradients_through_a_compiled_model():
    torch.manual_seed(0)
    model, batch = shaken(TransformerEncoder(BertConfig(**TINY))), ragged_batch([7, 4])
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    weights = [*model.parameters()]
    calls = compiled, model
    found, wanted = (torch.autograd.grad(call(**batch)[0].square().sum(), weights) for call in calls)
    assert max(differences(found, wanted)) <= 1e-3
    assert max(gradient.abs().max() for gradient in wanted) > 1
