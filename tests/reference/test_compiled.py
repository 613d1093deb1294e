"""Compiled models: one graph without breaks, any length, and at most one wait for the device."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BertConfig

from tests.helpers import SMALL, ragged_batch, shaken
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder

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


pytestmark = pytest.mark.usefixtures("fresh_compiler")


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


class Reads(TorchDispatchMode):
    """A counter of operations that wait for a GPU: values, or sizes that depend on values."""

    def __init__(self):
        super().__init__()
        self.found, self.conversions = [], Conversions(self)

    def __enter__(self):
        self.conversions.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.conversions.__exit__(*error)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::").split(".")[0]
        by_mask = name == "index" and any(x is not None and x.dtype == torch.bool for x in args[1])
        if by_mask or name in ("_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2"):
            self.found.append(name)
        return function(*args, **(kwargs or {}))


class Conversions(TorchFunctionMode):
    """A mode that adds conversions, which are not torch operations on a CPU, to the counts of `Reads`."""

    def __init__(self, reads: Reads):
        super().__init__()
        self.reads = reads

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("tolist", "cpu", "numpy", "__array__"):
            self.reads.found.append(function.__name__)
        return function(*args, **(kwargs or {}))


def reads(call, **batch) -> list[str]:
    with torch.no_grad(), Reads() as counted:
        call(**batch)
    return counted.found


@pytest.mark.parametrize("lengths", [PADDED, FULL], ids=["padded", "full"])
@pytest.mark.parametrize("case", ["no mask", "mask", "everything"])
def test_forward_pass_reads_from_the_device_once(case, lengths):
    config = BertConfig(**SMALL | {"num_hidden_layers": 12})
    tensors, options = inputs(case, lengths)
    assert reads(TransformerEncoder(config).eval(), **tensors, **options) == ["tolist"]
