"""A packed row gives what a padded batch gives, and an ONNX file what its model gives; neither fails in silence."""

import copy
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from transformers import BertConfig

from tests.helpers import SMALL, names, ragged_batch, shaken, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.inference import (
    BLOCK,
    INPUTS,
    NOTES,
    OnnxModel,
    TextBoundaries,
    encode_packed,
    export_onnx,
    quantize_onnx,
    to_eight_bits,
)
from utils.masked_lm import TransformerForMaskedLM
from utils.notebook import largest_difference
from utils.search import embed

PAIR = ("the film was long", "it was never dull")


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    """Random weights large enough that attention looks at some tokens and not at others."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
    return shaken(TransformerEncoder(BertConfig(**sizes, vocab_size=30)), std=0.5)


@pytest.fixture(scope="module")
def precise(small) -> TransformerEncoder:
    """The same in double precision, in which no rounding of a generated batch comes near a mistake."""
    return copy.deepcopy(small).double()


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_packed_is_padded_at_real_tokens_and_zero_elsewhere(precise, lengths):
    batch = ragged_batch(lengths)
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        packed, padded = encode_packed(precise, **batch), precise(**batch).last_hidden_state
    assert packed.shape == padded.shape
    assert largest_difference(packed[real], padded[real]) <= 1e-12
    assert not packed[~real].any()


def test_pairs_and_pretrained_weights(encoder, tokenizer):
    batch = tokenizer([PAIR[0], "no", PAIR[1]], [PAIR[1], "yes", "no"])
    real = batch["attention_mask"].bool()
    assert batch["token_type_ids"].any()
    with torch.no_grad():
        packed, padded = encode_packed(encoder, **batch), encoder(**batch).last_hidden_state
    assert largest_difference(packed[real], padded[real]) <= 1e-5


@pytest.mark.parametrize("kind", [torch.long, torch.bool, torch.float])
def test_padding_may_stand_anywhere(small, kind):
    ids, types, _ = ragged_batch([6, 6]).values()
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0]])
    with torch.no_grad():
        packed = encode_packed(small, ids, mask.to(kind), types)
        padded = small(ids, mask, types).last_hidden_state
    assert largest_difference(packed[mask.bool()], padded[mask.bool()]) <= 1e-5


def test_no_padding_is_computed_and_hooks_run(small):
    seen = []
    modules = [small.layers[1], small.layers[1].attention, small.layers[1].feed_forward]
    handles = [
        module.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
        for module in modules
    ]
    encode_packed(small, **ragged_batch([9, 2, 2, 5]))
    for handle in handles:
        handle.remove()
    assert seen == [(1, 18, 24)] * 3


def test_texts_of_one_length_that_stand_together_share_a_call():
    assert TextBoundaries([9, 2, 2, 5, 2]).groups == [(1, 9), (2, 2), (1, 5), (1, 2)]


def test_options_by_name_reach_the_fused_attention():
    query, key, value = torch.randn(3, 1, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    with TextBoundaries([3, 2]):
        packed = F.scaled_dot_product_attention(query, key, value, scale=3.0)
    alone = [
        F.scaled_dot_product_attention(*(x[:, :, text] for x in (query, key, value)), scale=3.0)
        for text in (slice(0, 3), slice(3, 5))
    ]
    assert torch.allclose(packed, torch.cat(alone, dim=2), atol=1e-6)


def test_gradients_are_those_of_the_padded_batch(small):
    batch = ragged_batch([7, 3, 3])
    real = batch["attention_mask"].bool()
    found = []
    for states in (encode_packed(small, **batch), small(**batch).last_hidden_state):
        loss = states[real].square().sum()
        found.append(torch.autograd.grad(loss, small.layers[0].attention.query.weight)[0])
    assert found[0].abs().max() > 1e-3
    assert torch.allclose(*found, rtol=1e-4, atol=1e-4)


def test_dropout_of_attention_is_passed_on(small, monkeypatch):
    attention, batch = small.layers[0].attention, ragged_batch([4, 2])
    with torch.no_grad():
        kept = encode_packed(small, **batch)
        monkeypatch.setattr(attention, "dropout_p", 1.0)
        monkeypatch.setattr(attention, "training", True)
        assert not torch.allclose(encode_packed(small, **batch), kept)


def test_the_mode_ends_with_its_block(small):
    batch = ragged_batch([4, 2])
    before = small(**batch).last_hidden_state
    encode_packed(small, **batch)
    assert torch.equal(small(**batch).last_hidden_state, before)


def test_an_attention_that_is_not_fused_is_refused(small, monkeypatch):
    for layer in small.layers:
        forward = layer.attention.forward
        monkeypatch.setattr(
            layer.attention, "forward", lambda states, mask, _, forward=forward: forward(states, mask, True)
        )
    message = (
        r"^0 of 2 layers used torch's fused attention, so texts were mixed: "
        r"pad them, as encoder\(input_ids, attention_mask\) does$"
    )
    with pytest.raises(ValueError, match=message):
        encode_packed(small, **ragged_batch([4, 2]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_numbers_than_float32(small, dtype):
    batch, other = ragged_batch([4, 2]), copy.deepcopy(small).to(dtype)
    packed = encode_packed(other, **batch)
    assert packed.dtype == dtype
    real = batch["attention_mask"].bool()
    wanted = encode_packed(small, **batch)[real].flatten()
    assert torch.cosine_similarity(packed[real].float().flatten(), wanted, dim=0) > 0.99
    assert embed(["a film", "no"], other, tiny_tokenizer(30)).dtype == torch.float32


def test_embed_packs_a_batch_of_any_lengths_at_once(small, monkeypatch):
    shapes = []

    def watch(encoder, input_ids, **others):
        shapes.append(tuple(input_ids.shape))
        return encode_packed(encoder, input_ids, **others)

    monkeypatch.setattr("utils.search.encode_packed", watch)
    embed(["a", "a " * 100, "b c"], small, tiny_tokenizer(30))
    assert shapes == [(3, 102)]


EVERYTHING = {"output_attentions": True, "output_hidden_states": True, "output_queries_keys": True}


@pytest.fixture
def run_onnx():
    """A file's outputs by name, as onnxruntime computes them."""
    pytest.importorskip("onnxscript", reason="requirements.txt brings what writes ONNX")
    runtime = pytest.importorskip("onnxruntime", reason="requirements.txt brings what runs ONNX")

    def run(path, batch) -> dict[str, torch.Tensor]:
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        found = session.run(None, {name: batch[name].numpy() for name in INPUTS})
        return {
            output.name: torch.from_numpy(values)
            for output, values in zip(session.get_outputs(), found, strict=True)
        }

    return run


def assert_same(found: dict[str, torch.Tensor], wanted: EncoderOutput, mask: torch.Tensor) -> None:
    """Each output by its name, what each layer gives stacked: 1e-5 of the largest number, 2e-5 at any real token."""
    given = {name: value for name, value in wanted._asdict().items() if value is not None}
    stacked = {
        name: torch.stack(value) if isinstance(value, tuple) else value for name, value in given.items()
    }
    assert [*found] == [*stacked]
    for name, value in stacked.items():
        assert found[name].shape == value.shape
        assert largest_difference(found[name], value) <= 1e-5 * max(1, value.abs().max()), name
    real = mask.bool()
    assert largest_difference(found["last_hidden_state"][real], wanted.last_hidden_state[real]) <= 2e-5


@pytest.mark.long
def test_a_file_gives_what_its_encoder_gives_for_any_texts(small, run_onnx, tmp_path):
    path = export_onnx(small, tmp_path / "encoder.onnx", **EVERYTHING)
    assert names(tmp_path) == ["encoder.onnx"]
    for lengths in ([7, 4], [5, 5], [9, 2, 5], [1], [2], [512, 1]):
        batch = ragged_batch(lengths)
        with torch.no_grad():
            assert_same(run_onnx(path, batch), small(**batch, **EVERYTHING), batch["attention_mask"])


@pytest.mark.long
def test_a_classifier_in_training_mode_is_exported_without_dropout_and_left_in_it(run_onnx, tmp_path):
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
def test_what_is_no_model_of_the_series_is_no_file(model, tmp_path):
    message = rf"^a {type(model).__name__} cannot be exported: pass a TransformerEncoder, or a model on one$"
    with pytest.raises(TypeError, match=message):
        export_onnx(model, tmp_path / "model.onnx")
    assert names(tmp_path) == []


def test_a_classifier_gives_logits_only(tmp_path):
    model = TransformerForSequenceClassification(BertConfig(**SMALL))
    message = r"gives logits, and output_queries_keys ask for more: export its \.encoder$"
    with pytest.raises(ValueError, match=message):
        export_onnx(model, tmp_path / "model.onnx", output_queries_keys=True)


def test_a_file_is_written_whole_or_not_at_all(small, tmp_path, monkeypatch):
    path = tmp_path / "encoder.onnx"
    path.write_text("an older one")
    monkeypatch.setattr("utils.inference.onnx_bytes", lambda *arguments: b"a model")
    monkeypatch.setattr("utils.saving.os.fsync", lambda file: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match=r"could not be saved \(disk full\): choose a place that you may write"):
        export_onnx(small, path)
    assert (names(tmp_path), path.read_text()) == (["encoder.onnx"], "an older one")


def test_a_folder_that_is_not_there_is_named_before_a_model_is_traced(small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.inference.onnx_bytes", lambda *arguments: pytest.fail("it was traced"))
    message = r"encoder\.onnx could not be saved \(there is no folder .*nowhere\): choose a place that you may write$"
    with pytest.raises(OSError, match=message):
        export_onnx(small, tmp_path / "nowhere" / "encoder.onnx")
    assert names(tmp_path) == []


def test_more_weights_than_a_file_holds(run_onnx, small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.inference.MOST_BYTES", 100)
    with pytest.raises(ValueError, match=r"^the weights take 0\.0 GB, and a file of ONNX holds 2"):
        export_onnx(small, tmp_path / "encoder.onnx")


def test_without_the_packages_that_write_onnx(small, tmp_path, monkeypatch):
    monkeypatch.setattr("utils.inference.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnx onnxscript"):
        export_onnx(small, tmp_path / "encoder.onnx")


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    """A small masked-LM whose table of words is large enough to be stored in 8 bits, and its file."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what writes and runs ONNX")
    torch.manual_seed(0)
    model = shaken(TransformerForMaskedLM(BertConfig(**SMALL | {"vocab_size": 1300})), std=0.3).eval()
    return model, export_onnx(model, tmp_path_factory.mktemp("onnx") / "masked_lm.onnx")


@pytest.mark.long
def test_a_file_of_a_masked_lm_gives_its_logits_for_any_texts(masked_lm):
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
def test_mask_and_token_types_may_be_left_out_of_a_file_too(masked_lm):
    model, path = masked_lm
    ids = torch.randint(0, 30, (2, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = model(ids)
    assert largest_difference(OnnxModel(path)(ids)["logits"], wanted) <= 1e-4


@pytest.mark.long
def test_8_bits_make_a_small_file_whose_results_hardly_move(masked_lm, tmp_path):
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
def test_a_file_refuses_what_its_model_refuses_and_in_its_words(masked_lm):
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
def test_a_file_takes_numbers_and_masks_as_its_model_does(masked_lm, kind):
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
        (torch.float64, r"is torch.float64, and a file holds float32: export model\.float\(\)$"),
        (torch.bfloat16, r"is torch.bfloat16, and a file holds float32: export model\.float\(\)$"),
        (torch.float16, r"is torch.float16, and a file holds float32: export model\.float\(\)$"),
    ],
    ids=str,
)
def test_other_precisions_are_no_file(small, dtype, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_onnx(copy.deepcopy(small).to(dtype), tmp_path / "encoder.onnx")
    assert names(tmp_path) == []


def test_weights_that_are_no_numbers_are_no_file(small, tmp_path):
    broken = copy.deepcopy(small)
    with torch.no_grad():
        broken.layers[1].attention_norm.bias[0] = torch.nan
    with pytest.raises(ValueError, match=r"^layers\.1\.attention_norm\.bias holds NaN or inf"):
        export_onnx(broken, tmp_path / "encoder.onnx")
    assert names(tmp_path) == []


def test_a_model_of_one_position_is_no_file(tmp_path):
    model = TransformerEncoder(BertConfig(**SMALL | {"max_position_embeddings": 1}))
    with pytest.raises(ValueError, match=r"^max_position_embeddings=1 must be a whole number from 2"):
        export_onnx(model, tmp_path / "encoder.onnx")


def rewritten(path, folder, change):
    """A copy of a file of ONNX, once `change` was done to what it holds."""
    import onnx

    model = onnx.load_from_string(path.read_bytes())
    change(model)
    (folder / "changed.onnx").write_bytes(model.SerializeToString())
    return folder / "changed.onnx"


@pytest.mark.long
@pytest.mark.parametrize("name", NOTES)
@pytest.mark.parametrize("count", ["x", "", "-1", "1.5", "9" * 5000])
def test_notes_that_are_no_counts(masked_lm, tmp_path, name, count):
    def change(model) -> None:
        (note,) = [note for note in model.metadata_props if note.key == name]
        note.value = count

    path = rewritten(masked_lm[1], tmp_path, change)
    with pytest.raises(
        ValueError, match=rf"changed\.onnx notes {name}='.*, which is no count: write it again with"
    ):
        OnnxModel(path)


@pytest.mark.long
def test_a_file_without_notes_is_run_and_looked_at_as_far_as_one_can(masked_lm, tmp_path):
    exported = OnnxModel(rewritten(masked_lm[1], tmp_path, lambda model: model.ClearField("metadata_props")))
    batch = ragged_batch([7, 4])
    assert torch.equal(exported(**batch)["logits"], OnnxModel(masked_lm[1])(**batch)["logits"])
    with pytest.raises(ValueError, match=r"^input_ids hold -1, outside 0 …"):
        exported(torch.tensor([[5, -1]]))


@pytest.mark.long
def test_weights_in_another_file_are_not_read(masked_lm, tmp_path, monkeypatch):
    import onnx

    monkeypatch.chdir(tmp_path)
    options = {"save_as_external_data": True, "location": "secret.bin", "size_threshold": 1000}
    onnx.save_model(onnx.load_from_string(masked_lm[1].read_bytes()), "parts.onnx", **options)
    before = names(tmp_path)
    assert before == ["parts.onnx", "secret.bin"]
    for use in (OnnxModel, lambda path: quantize_onnx(path, "smaller.onnx")):
        with pytest.raises(
            ValueError, match=r"^parts\.onnx is no model in ONNX, or only a part of one: write it again"
        ):
            use("parts.onnx")
    assert names(tmp_path) == before


TABLE = "encoder.embeddings.word_embeddings.weight"


@pytest.mark.long
@pytest.mark.parametrize("change", ["times a million", "times 1e30", "plus 100,000", "times a millionth"])
def test_a_matrix_that_8_bits_cannot_hold_stays_as_it_is(masked_lm, tmp_path, change):
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


@pytest.mark.long
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_matrix_that_is_no_numbers_is_not_quantized(masked_lm, tmp_path, value):
    def change(model) -> None:
        import onnx

        (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name.endswith(TABLE)]
        values = onnx.numpy_helper.to_array(tensor).copy()
        values[7, 3] = value
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))

    path = rewritten(masked_lm[1], tmp_path, change)
    with pytest.raises(
        ValueError, match=rf"{re.escape(TABLE)} holds NaN or inf: take the weights from before"
    ):
        quantize_onnx(path, tmp_path / "smaller.onnx")
    assert names(tmp_path) == ["changed.onnx"]


@settings(max_examples=60)
@given(
    numbers=st.lists(
        st.floats(-100, 100, width=32, allow_subnormal=False), min_size=2 * BLOCK, max_size=2 * BLOCK
    )
)
def test_8_bits_are_off_by_little_more_than_half_a_step(numbers):
    values = np.float32(numbers).reshape(2, BLOCK)
    codes, scale, lowest = to_eight_bits(values)
    assert (codes.dtype, codes.shape, scale.shape, lowest.shape) == (np.uint8, values.shape, (2, 1), (2, 1))
    restored = codes * scale.astype(np.float32) + lowest.astype(np.float32)
    steps = np.ptp(values, axis=1, keepdims=True) / 255
    float16 = np.abs(values).max() * 2.0**-10 + 1e-5  # as exact as scale and lowest are
    assert (np.abs(restored - values) <= steps / 2 + float16).all()


def test_equal_numbers_in_8_bits_stay_themselves():
    codes, scale, lowest = to_eight_bits(np.full((1, BLOCK), 0.5, np.float32))
    assert (codes * scale + lowest == 0.5).all()


@pytest.mark.parametrize("use", [OnnxModel, lambda path: quantize_onnx(path, path.with_suffix(".smaller"))])
def test_what_is_no_file_of_onnx(use, tmp_path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="requirements.txt brings what runs ONNX")
    path = tmp_path / "notes.onnx"
    with pytest.raises(OSError, match=r"notes\.onnx cannot be read .*: name a file that export_onnx wrote$"):
        use(path)
    path.write_text("These are notes.")
    with pytest.raises(
        ValueError, match=r"notes\.onnx is no model in ONNX, or only a part of one: write it again"
    ):
        use(path)
    assert names(tmp_path) == ["notes.onnx"]


def test_without_the_packages_that_run_and_alter_onnx(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.inference.find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError, match=r"is run by the package onnxruntime: pip install onnxruntime$"
    ):
        OnnxModel(tmp_path / "model.onnx")
    with pytest.raises(ModuleNotFoundError, match=r"is altered by the package onnx: pip install onnx$"):
        quantize_onnx(tmp_path / "model.onnx", tmp_path / "smaller.onnx")
