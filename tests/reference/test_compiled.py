"""Compiled models: one graph without breaks, any length. Here, so that torch.compile starts once."""

import pytest
import torch
from transformers import BertConfig

from tests.helpers import SMALL, data_of, ragged_batch, shaken, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder
from utils.encoder import TransformerEncoder
from views import neuron_view

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("fresh_compiler")]
ONE_LAYER = SMALL | {"num_hidden_layers": 1}
EVERYTHING = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}
PADDED, FULL = [7, 4], [7, 7]
MODELS = [
    (TransformerEncoder, "no mask"),
    (TransformerEncoder, "mask"),
    (TransformerEncoder, "everything"),
    (TransformerForSequenceClassification, "mask"),
]


class Counter:
    """A backend for torch.compile that keeps its graphs and runs them unchanged."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        return graph.forward


def new_model(family) -> torch.nn.Module:
    torch.manual_seed(0)
    return shaken(family(BertConfig(**ONE_LAYER)))


def inputs(case: str, lengths: list[int]) -> tuple[dict[str, torch.Tensor], dict[str, bool]]:
    """Return tensors and options for one way to call a model on texts of these lengths."""
    batch = ragged_batch(lengths)
    if case == "no mask":
        return {"input_ids": batch["input_ids"]}, {}
    return batch, EVERYTHING if case == "everything" else {}


def assert_same(found, wanted) -> None:
    """Check that all tensors of two outputs agree, and that both have None at the same positions."""
    found, wanted = (torch.utils._pytree.tree_leaves(output) for output in (found, wanted))
    assert len(found) == len(wanted)
    for mine, eager in zip(found, wanted, strict=True):
        assert (mine is None) == (eager is None)
        assert mine is None or (mine.shape == eager.shape and (mine - eager).abs().max() <= 1e-5)


@torch.no_grad()
def assert_compiles(model, case: str) -> None:
    """Check that a full and a padded batch share one graph (fullgraph=True) and equal eager mode."""
    counter = Counter()
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    for lengths in (FULL, PADDED):
        tensors, options = inputs(case, lengths)
        assert_same(compiled(**tensors, **options), model(**tensors, **options))
    assert len(counter.graphs) == 1


@pytest.mark.parametrize(("family", "case"), MODELS)
def test_model_compiles_to_one_graph(family, case):
    assert_compiles(new_model(family), case)


@torch.no_grad()
def test_decoder_compiles_to_one_graph():
    torch.manual_seed(0)
    decodes = {"is_decoder": True, "add_cross_attention": True, "bos_token_id": 1, "eos_token_id": 2}
    pair = shaken(EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **decodes))).eval()
    batch = {}
    for side, lengths in (("", PADDED), ("decoder_", [3, 5])):
        text = ragged_batch(lengths)
        batch |= {f"{side}{name}": text[name] for name in ("input_ids", "attention_mask")}
    compiled = torch.compile(pair, fullgraph=True, backend="eager")
    assert_same(compiled(**batch), pair(**batch))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile itself
def test_a_view_reads_a_compiled_model():
    model, tokenizer = new_model(TransformerEncoder), tiny_tokenizer(SMALL["vocab_size"])
    wanted, found = (data_of(neuron_view(one, tokenizer, "a b")) for one in (model, torch.compile(model)))
    assert found["attention"]["all"]["attn"].equal(wanted["attention"]["all"]["attn"])
