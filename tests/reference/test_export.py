"""An ONNX file computes the same results as its model, or nearly so in 8 bits."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig

from tests.helpers import SMALL, names, ragged_batch, shaken
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.eight_bits import BLOCK, in_eight_bits, quantize_onnx, to_eight_bits
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM
from utils.support.notebook import largest_difference
from utils.support.onnx import INPUTS, OnnxModel, export_onnx


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    """Return an encoder with random weights large enough for attention to be uneven."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
    return shaken(TransformerEncoder(BertConfig(**sizes, vocab_size=30)), std=0.5)


EVERYTHING = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}


@pytest.fixture
def run_onnx():
    """Return a function that runs a file in onnxruntime and returns its outputs by name."""
    pytest.importorskip("onnxscript", reason="requirements.txt brings what writes ONNX")
    runtime = pytest.importorskip("onnxruntime", reason="requirements.txt brings what runs ONNX")

    def run(path, batch) -> dict[str, torch.Tensor]:
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        found = session.run(None, {name: batch[name].numpy() for name in INPUTS})
        return {
            output.name: torch.from_numpy(values) for output, values in zip(session.get_outputs(), found, strict=True)
        }

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
    message = r"returns only logits, without output_queries_keys: export its \.encoder$"
    with pytest.raises(ValueError, match=message):
        export_onnx(model, tmp_path / "model.onnx", output_queries_keys=True)


def test_failed_export_keeps_existing_file(small, tmp_path, monkeypatch):
    path = tmp_path / "encoder.onnx"
    path.write_text("an older one")
    monkeypatch.setattr("utils.support.onnx.onnx_bytes", lambda *arguments: b"a model")
    monkeypatch.setattr("utils.support.files.os.fsync", lambda file: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match=r"could not be saved \(disk full\): choose a writable folder"):
        export_onnx(small, path)
    assert (names(tmp_path), path.read_text()) == (["encoder.onnx"], "an older one")


def test_export_checks_path_before_tracing(small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.support.onnx.onnx_bytes", lambda *arguments: pytest.fail("it was traced"))
    (tmp_path / "file").write_text("mine")
    message = r"encoder\.onnx could not be saved \(.*file.*\): choose a writable folder"
    with pytest.raises(OSError, match=message):
        export_onnx(small, tmp_path / "file" / "encoder.onnx")
    assert names(tmp_path) == ["file"]


def test_export_creates_missing_folder(small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.support.onnx.onnx_bytes", lambda *arguments: b"a model")
    export_onnx(small, tmp_path / "new" / "encoder.onnx")
    assert names(tmp_path / "new") == ["encoder.onnx"]


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    """Return a small masked-LM with an embedding table large enough for 8 bits, and its exported file."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what writes and runs ONNX")
    torch.manual_seed(0)
    model = shaken(TransformerForMaskedLM(BertConfig(**SMALL | {"vocab_size": 1300})), std=0.3).eval()
    return model, export_onnx(model, tmp_path_factory.mktemp("onnx") / "masked_lm.onnx")


@pytest.mark.long
def test_exported_masked_lm_matches_model(masked_lm):
    model, path = masked_lm
    exported = OnnxModel(path)
    for lengths in ([7, 4], [5, 5, 5], [1], [10]):
        batch = ragged_batch(lengths)
        with torch.no_grad():
            wanted = model(**batch)
        found = exported(**batch)
        assert [*found] == ["logits"]
        assert largest_difference(found["logits"], wanted) <= 1e-5 * max(1, wanted.abs().max())


@pytest.mark.long
def test_exported_model_takes_ids_alone(masked_lm):
    model, path = masked_lm
    ids = torch.randint(0, 30, (2, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = model(ids)
    assert largest_difference(OnnxModel(path)(ids)["logits"], wanted) <= 1e-4


@pytest.mark.long
def test_quantized_file_is_smaller_and_almost_as_accurate(masked_lm, tmp_path):
    _, path = masked_lm
    smaller = quantize_onnx(path, tmp_path / "smaller.onnx")
    assert names(tmp_path) == ["smaller.onnx"]
    assert smaller.stat().st_size < path.stat().st_size
    batch = ragged_batch([9, 4])
    exact, rounded = (OnnxModel(file)(**batch)["logits"].flatten() for file in (path, smaller))
    assert largest_difference(rounded, exact) > 0
    assert torch.cosine_similarity(rounded, exact, dim=0) > 0.9999


BATCH = {"input_ids": torch.tensor([[5, 6, 7], [8, 9, 1]])}
# what is wrong with a batch for the small masked-LM of 1,300 tokens, 10 positions and 2 token types
BAD_BATCHES = [
    {"input_ids": [[5, 6, 7]]},
    {"input_ids": {"input_ids": BATCH["input_ids"]}},
    {"input_ids": torch.tensor([5, 6, 7])},
    {"input_ids": torch.ones(1, 0).long()},
    {"input_ids": torch.ones(1, 11).long()},
    {"input_ids": torch.tensor([[5, -1]])},
    {"input_ids": torch.tensor([[5, 1300]])},
    {"input_ids": torch.ones(1, 2)},
    {"token_type_ids": torch.full((2, 3), -1)},
    {"token_type_ids": torch.full((2, 3), 2)},
    {"token_type_ids": torch.zeros(1, 3).long()},
    {"attention_mask": torch.ones(2, 2)},
    {"attention_mask": torch.tensor([[1, 1, 1], [0, 0, 0]])},
    {"attention_mask": torch.tensor([[1, 1, 1], [1, torch.nan, 1]])},
    {"attention_mask": [[1, 1, 1], [1, 1, 1]]},
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
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_exported_model_accepts_same_dtypes_and_masks(masked_lm, kind):
    model, path = masked_lm
    batch = {name: values.to(kind) for name, values in ragged_batch([7, 4]).items()}
    for mask in (batch["attention_mask"], batch["attention_mask"] * 0.5, batch["attention_mask"].bool()):
        given = batch | {"attention_mask": mask}
        with torch.no_grad():
            wanted = model(**given)
        assert largest_difference(OnnxModel(path)(**given)["logits"], wanted) <= 1e-4


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (torch.float64, r"is torch.float64, but only float32 can be exported: export model\.float\(\)$"),
        (torch.bfloat16, r"is torch.bfloat16, but only float32 can be exported: export model\.float\(\)$"),
        (torch.float16, r"is torch.float16, but only float32 can be exported: export model\.float\(\)$"),
    ],
    ids=str,
)
def test_export_rejects_other_precisions(small, dtype, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_onnx(copy.deepcopy(small).to(dtype), tmp_path / "encoder.onnx")
    assert names(tmp_path) == []


def test_export_rejects_non_finite_weights(small, tmp_path):
    broken = copy.deepcopy(small)
    with torch.no_grad():
        broken.layers[1].attention_norm.bias[0] = torch.nan
    with pytest.raises(ValueError, match=r"^layers\.1\.attention_norm\.bias contains NaN or inf"):
        export_onnx(broken, tmp_path / "encoder.onnx")
    assert names(tmp_path) == []


def rewritten(path, folder, change):
    """Return the path of a copy of an ONNX file after applying `change` to its model."""
    import onnx

    model = onnx.load_from_string(path.read_bytes())
    change(model)
    (folder / "changed.onnx").write_bytes(model.SerializeToString())
    return folder / "changed.onnx"


@pytest.mark.long
@pytest.mark.parametrize("note", ["x", "", "1e3", "-1", None])
def test_invalid_size_in_metadata_is_rejected(masked_lm, tmp_path, note):
    def change(model):
        for entry in model.metadata_props:
            if entry.key == "vocab_size":
                entry.value = note or ""
        if note is None:
            del model.metadata_props[0]

    with pytest.raises(ValueError, match=r"changed\.onnx does not contain the sizes of its model: write it again"):
        OnnxModel(rewritten(masked_lm[1], tmp_path, change))


@pytest.mark.long
@pytest.mark.parametrize("use", [OnnxModel, lambda path: quantize_onnx(path, path.with_suffix(".smaller"))])
def test_external_weights_are_rejected(masked_lm, tmp_path, monkeypatch, use):
    import onnx

    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(masked_lm[1].read_bytes())
    options = {"save_as_external_data": True, "location": "numbers.bin", "size_threshold": 0}
    onnx.save_model(model, "several.onnx", **options)
    with pytest.raises(ValueError, match=r"several\.onnx stores its weights in another file: write it again"):
        use(tmp_path / "several.onnx")
    assert names(tmp_path) == ["numbers.bin", "several.onnx"]


def test_export_rejects_model_with_one_position(tmp_path):
    model = TransformerEncoder(BertConfig(**SMALL | {"max_position_embeddings": 1}))
    with pytest.raises(ValueError, match="max_position_embeddings must be an integer of at least 2, got 1"):
        export_onnx(model, tmp_path / "encoder.onnx")


@pytest.mark.long
def test_file_without_metadata_is_rejected(masked_lm, tmp_path):
    path = rewritten(masked_lm[1], tmp_path, lambda model: model.ClearField("metadata_props"))
    message = r"changed\.onnx does not contain the sizes of its model: write it again with export_onnx$"
    with pytest.raises(ValueError, match=message):
        OnnxModel(path)


TABLE = "encoder.embeddings.word_embeddings.weight"


@pytest.mark.long
@pytest.mark.parametrize("change", ["times a million", "times 1e30", "plus 100,000", "times a millionth"])
def test_quantization_keeps_matrix_outside_float16_range(masked_lm, tmp_path, change):
    changes = {
        "times a million": lambda weights: weights * 1e6,
        "times 1e30": lambda weights: weights * 1e30,
        "plus 100,000": lambda weights: weights + 1e5,
        "times a millionth": lambda weights: weights * 1e-6,
    }
    model = copy.deepcopy(masked_lm[0])
    with torch.no_grad():
        table = model.get_parameter(TABLE)
        table.copy_(changes[change](table))
    path = export_onnx(model, tmp_path / "model.onnx")
    smaller = quantize_onnx(path, tmp_path / "smaller.onnx")
    batch = ragged_batch([9, 4])
    exact, restored = (OnnxModel(file)(**batch)["logits"] for file in (path, smaller))
    assert torch.equal(exact.isfinite(), restored.isfinite())
    assert torch.allclose(exact, restored, equal_nan=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e8])
def test_in_eight_bits_returns_none_for_unsuitable_value(value):
    values = np.ones((2, BLOCK), np.float32)
    assert in_eight_bits("table", values) is not None
    values[1, 3] = value
    assert in_eight_bits("table", values) is None


@settings(max_examples=60)
@given(numbers=st.lists(st.floats(-100, 100, width=32, allow_subnormal=False), min_size=2 * BLOCK, max_size=2 * BLOCK))
def test_8_bit_error_exceeds_half_a_step_only_by_rounding(numbers):
    values = np.float32(numbers).reshape(2, BLOCK)
    codes, scale, lowest = to_eight_bits(values)
    assert (codes.dtype, codes.shape, scale.shape, lowest.shape) == (np.uint8, values.shape, (2, 1), (2, 1))
    restored = codes * scale.astype(np.float32) + lowest.astype(np.float32)
    steps = np.ptp(values, axis=1, keepdims=True) / 255
    float16 = np.abs(values).max() * 2.0**-10 + 1e-5  # as exact as scale and lowest are
    assert (np.abs(restored - values) <= steps / 2 + float16).all()


def test_equal_numbers_are_exact_in_8_bits():
    codes, scale, lowest = to_eight_bits(np.full((1, BLOCK), 0.5, np.float32))
    assert (codes * scale + lowest == 0.5).all()


@pytest.mark.parametrize("use", [OnnxModel, lambda path: quantize_onnx(path, path.with_suffix(".smaller"))])
def test_missing_or_invalid_onnx_file_is_rejected(use, tmp_path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what runs ONNX")
    path = tmp_path / "notes.onnx"
    with pytest.raises(FileNotFoundError, match=r"notes\.onnx"):
        use(path)
    path.write_text("These are notes.")
    with pytest.raises(ValueError, match=r"notes\.onnx cannot be read \(.+\): download or save it again$"):
        use(path)
    assert names(tmp_path) == ["notes.onnx"]
