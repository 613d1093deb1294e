"""An ONNX file computes the same results as its model."""

import copy
import os

import pytest
import torch
from transformers import BertConfig

from tests.helpers import SMALL, names, ragged_batch, shaken
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.encoder import EncoderOutput
from utils.masked_lm import TransformerForMaskedLM
from utils.support.comparisons import largest_difference
from utils.support.onnx import INPUTS, OnnxModel, export_onnx

EVERYTHING = {"output_attentions": True}


@pytest.fixture
def run_onnx():
    """Return a function that runs a file in onnxruntime and returns its outputs by name."""
    pytest.importorskip("onnxscript", reason="requirements.txt brings what writes ONNX")
    runtime = pytest.importorskip("onnxruntime", reason="requirements.txt brings what runs ONNX")

    def run(path, batch) -> dict[str, torch.Tensor]:
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        found = session.run(None, {name: batch[name].numpy() for name in INPUTS})
        return dict(zip((output.name for output in session.get_outputs()), map(torch.from_numpy, found), strict=True))

    return run


def assert_same(found: dict[str, torch.Tensor], wanted: EncoderOutput, mask: torch.Tensor) -> None:
    """Check each output to within 1e-5 of its largest number, and the last states of real tokens to within 2e-5."""
    given = {name: value for name, value in wanted._asdict().items() if value is not None}
    stacked = {name: torch.stack(value) if isinstance(value, tuple) else value for name, value in given.items()}
    assert [*found] == [*stacked]
    for name, value in stacked.items():
        assert found[name].shape == value.shape
        assert largest_difference(found[name], value) <= 1e-5 * max(1, value.abs().max()), name
    real = mask.bool()
    assert largest_difference(found["last_hidden_state"][real], wanted.last_hidden_state[real]) <= 2e-5


@pytest.mark.long
def test_exported_encoder_matches_model(small, run_onnx, tmp_path):
    path = export_onnx(small, tmp_path / "encoder.onnx", **EVERYTHING)
    assert names(tmp_path) == ["encoder.onnx"]
    for lengths in ([7, 4], [5, 5], [9, 2, 5], [1], [2], [512, 1]):
        batch = ragged_batch(lengths)
        with torch.no_grad():
            assert_same(run_onnx(path, batch), small(**batch, **EVERYTHING), batch["attention_mask"])


@pytest.mark.long
def test_export_of_training_classifier_omits_dropout(run_onnx, tmp_path):
    torch.manual_seed(0)
    model = shaken(TransformerForSequenceClassification(BertConfig(**SMALL | {"num_labels": 3}))).train()
    path = export_onnx(model, str(tmp_path / "classifier.onnx"))
    assert all(module.training for module in model.modules())
    batch = ragged_batch([10, 3, 6])
    found = run_onnx(path, batch)
    with torch.no_grad():
        assert largest_difference(found["logits"], model.eval()(**batch)) <= 1e-5
        assert largest_difference(found["logits"], model.train()(**batch)) > 1e-3


READS = {"is_decoder": True, "add_cross_attention": True}


@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Linear(2, 2),
        None,
        BertConfig(),
        TransformerDecoder(BertConfig(**SMALL, **READS)),
        EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **READS)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_export_rejects_unsupported_models(model, tmp_path):
    message = rf"^a {type(model).__name__} cannot be exported: pass a TransformerEncoder, or a model that has one$"
    with pytest.raises(TypeError, match=message):
        export_onnx(model, tmp_path / "model.onnx")
    assert names(tmp_path) == []


def test_classifier_export_rejects_other_outputs(tmp_path):
    model = TransformerForSequenceClassification(BertConfig(**SMALL))
    message = r"returns only logits, without output_attentions: export its \.encoder$"
    with pytest.raises(ValueError, match=message):
        export_onnx(model, tmp_path / "model.onnx", output_attentions=True)


def test_export_refuses_more_than_two_gigabytes(small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.support.onnx.MAX_BYTES", sum(weight.nbytes for weight in small.parameters()) - 1)
    monkeypatch.setattr("utils.support.onnx.onnx_bytes", lambda *arguments: pytest.fail("it was begun"))
    with pytest.raises(ValueError, match=r"the weights take .* GB, but an ONNX file holds 2 GB at most: call torch"):
        export_onnx(small, tmp_path / "large.onnx")


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    """Return a small masked-LM and its exported file."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what writes and runs ONNX")
    torch.manual_seed(0)
    model = shaken(TransformerForMaskedLM(BertConfig(**SMALL | {"vocab_size": 1300})), std=0.3).eval()
    return model, export_onnx(model, tmp_path_factory.mktemp("onnx") / "masked_lm.onnx")


BATCH = {"input_ids": torch.tensor([[5, 6, 7], [8, 9, 1]])}
# what is wrong with a batch for the small masked-LM of 1,300 tokens, 10 positions and 2 token types
BAD_BATCHES = [
    {"input_ids": [[5, 6, 7]]},
    {"input_ids": torch.ones(1, 11).long()},
    {"input_ids": torch.tensor([[5, 1300]])},
    {"attention_mask": torch.tensor([[1, 1, 1], [0, 0, 0]])},
]


@pytest.mark.long
def test_exported_model_raises_same_errors_as_model(masked_lm):
    model, path = masked_lm
    exported = OnnxModel(path)
    for wrong in BAD_BATCHES:
        with pytest.raises((ValueError, TypeError)) as by_model:
            model(**BATCH | wrong)
        with pytest.raises(type(by_model.value)) as by_file:
            exported(**BATCH | wrong)
        assert str(by_file.value) == str(by_model.value)


@pytest.mark.long
def test_exported_model_accepts_ids_alone_and_the_same_dtypes_and_masks(masked_lm):
    model, path = masked_lm
    batch = {name: values.int() for name, values in ragged_batch([7, 4]).items()}
    mask = batch["attention_mask"]
    for given in (
        {"input_ids": batch["input_ids"]},
        *(batch | {"attention_mask": one} for one in (mask, mask * 0.5, mask.bool())),
    ):
        with torch.no_grad():
            wanted = model(**given)
        assert largest_difference(OnnxModel(path)(**given)["logits"], wanted) <= 1e-4


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_export_rejects_other_precisions(small, dtype, tmp_path):
    message = rf"is {dtype}, but only float32 can be exported: export model\.float\(\)$"
    with pytest.raises(ValueError, match=message):
        export_onnx(copy.deepcopy(small).to(dtype), tmp_path / "encoder.onnx")
    assert names(tmp_path) == []


def test_missing_or_invalid_onnx_file_is_rejected(tmp_path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what runs ONNX")
    path = tmp_path / "notes.onnx"
    with pytest.raises(FileNotFoundError, match=r"there is no file .*notes\.onnx: give the path of an ONNX file"):
        OnnxModel(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileNotFoundError, match=r"pipe is not a regular file: give the path of an ONNX file"):
            OnnxModel(tmp_path / "pipe")
        (tmp_path / "pipe").unlink()
    path.write_text("These are notes.")
    with pytest.raises(ValueError, match=r"notes\.onnx cannot be read \(.+\): download or save it again$"):
        OnnxModel(path)
    assert names(tmp_path) == ["notes.onnx"]
