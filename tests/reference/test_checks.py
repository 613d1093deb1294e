"""Bad input raises an error that names the argument, the value and the remedy at every entry point."""

import re
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from transformers import BatchEncoding, BertConfig

from tests.helpers import SMALL
from utils import search
from utils.attention import AttentionHead, scaled_dot_product_attention
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM
from utils.packing import encode_packed
from utils.support import checks
from utils.tokenization import WordPieceTokenizer

IDS = torch.tensor([[5, 6, 7], [8, 9, 1]])
HIDDEN_ROW = "attention_mask masks every token of a row: leave at least one 1 in each"


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    return TransformerEncoder(BertConfig(**SMALL)).eval()


def another_shape(name: str, shape: tuple, wanted: tuple = (2, 3)) -> str:
    return f"{name} must have the shape {wanted} of the input, got {shape}"


# what is wrong with ids, mask and token types, and what is said about it


READS = {"is_decoder": True, "add_cross_attention": True, "bos_token_id": 2, "eos_token_id": 3}
STATES = torch.zeros(2, 4, SMALL["hidden_size"])
# each way into a model: how it takes ids and a mask
ENTRANCES = {
    "encoder": lambda make, ids, mask: make(TransformerEncoder)(ids, mask),
    "packed": lambda make, ids, mask: encode_packed(make(TransformerEncoder), ids, mask),
    "classifier": lambda make, ids, mask: make(TransformerForSequenceClassification)(ids, mask),
    "masked-LM": lambda make, ids, mask: make(TransformerForMaskedLM)(ids, mask),
    "decoder": lambda make, ids, mask: make(TransformerDecoder, READS)(ids, mask, STATES),
    "pair, source": lambda make, ids, mask: make(EncoderDecoder)(ids, mask, IDS),
    "pair, text": lambda make, ids, mask: make(EncoderDecoder)(IDS, None, ids, mask),
    "one beam": lambda make, ids, mask: make(EncoderDecoder).generate(ids, mask, max_length=5),
    "two beams": lambda make, ids, mask: make(EncoderDecoder).generate(ids, mask, max_length=5, num_beams=2),
}
NOT_TENSORS = {
    "list": [[5, 6, 7], [8, 9, 1]],
    "tuple": ((5, 6, 7),),
    "ndarray": IDS.numpy(),
    "dict": {"input_ids": IDS},
    "BatchEncoding": BatchEncoding({"input_ids": IDS}),
    "str": "a film",
    "int": 7,
}


@cache
def make(kind: type, changes: tuple = ()) -> torch.nn.Module:
    if kind is EncoderDecoder:
        return EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **READS)).eval()
    return kind(BertConfig(**SMALL, **dict(changes))).eval()


def enter(entrance: str, ids, mask=None):
    return ENTRANCES[entrance](lambda kind, changes=None: make(kind, tuple((changes or {}).items())), ids, mask)


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("kind", NOT_TENSORS)
def test_every_entrance_rejects_non_tensors(entrance, kind):
    given = NOT_TENSORS[kind]
    remedy = "use torch.tensor with a row for each text, or **batch for a tokenizer's dictionary"
    for name, arguments in (("input_ids", [given]), ("attention_mask", [IDS, given])):
        message = f"{name} must be a tensor, got {kind}: {remedy}"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            enter(entrance, *arguments)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_entrance_accepts_tensors_and_rejects_nan_mask(entrance):
    for mask in (None, torch.ones(2, 3), torch.tensor([[1, 1, 0], [1, 1, 1]])):
        enter(entrance, IDS, mask)
    with pytest.raises(
        ValueError, match=r"^attention_mask contains NaN or less than 0: use 1 for real tokens and 0 for padding$"
    ):
        enter(entrance, IDS, torch.tensor([[1, 1, torch.nan], [1, 1, 1]]))


@pytest.mark.parametrize("kind", NOT_TENSORS)
def test_token_types_and_encoder_states_must_be_tensors(kind):
    given = NOT_TENSORS[kind]
    decoder = make(TransformerDecoder, tuple(READS.items()))
    with pytest.raises(TypeError, match=f"^token_type_ids must be a tensor, got {kind}: "):
        make(TransformerEncoder)(IDS, None, given)
    with pytest.raises(
        TypeError, match=f"^encoder_hidden_states must be a tensor, got {kind}: pass the encoder's last"
    ):
        decoder(IDS, None, given)
    with pytest.raises(TypeError, match=f"^encoder_attention_mask must be a tensor, got {kind}: "):
        decoder(IDS, None, STATES, given)


def test_first_and_last_id_of_each_table_are_valid(small):
    ids = torch.tensor([[0, 29] * 5])
    assert small(ids, torch.tensor([[0] * 9 + [1]]), ids.clamp(max=1)).last_hidden_state.isfinite().all()


@pytest.mark.parametrize("shape", [(2, 4), (1, 3), (3,), (2, 1, 1, 3)])
def test_single_layer_checks_mask_shape(small, shape):
    with pytest.raises(ValueError, match=re.escape(another_shape("attention_mask", shape))):
        small.layers[0](torch.zeros(2, 3, 8), torch.ones(shape))


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (2, 3, 3), (1, 1, 3, 3)])
def test_mask_that_does_not_broadcast_to_scores_is_rejected(shape):
    query = torch.zeros(1, 3, 4)
    message = f"attention_mask of shape {shape} does not fit scores of shape (1, 3, 3)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        scaled_dot_product_attention(query, query, query, torch.ones(shape))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (1, 2, 3), (5, 1, 3), (4, 1, 2, 3)])
def test_mask_that_broadcasts_to_scores_is_accepted(shape):
    query, key = torch.zeros(4, 1, 2, 6), torch.zeros(5, 3, 6)
    _, weights = scaled_dot_product_attention(query, key, key, torch.ones(shape))
    assert weights.shape == (4, 5, 2, 3)


def test_mask_that_hides_every_key_is_rejected():
    query = torch.zeros(1, 3, 4)
    for mask in (torch.ones(3, 3).tril(-1), torch.zeros(3), torch.tensor(0)):
        with pytest.raises(ValueError, match=f"^{HIDDEN_ROW}$"):
            scaled_dot_product_attention(query, query, query, mask)
    with pytest.raises(
        ValueError, match=r"^attention_mask contains NaN or less than 0: use 1 for real tokens and 0 for padding$"
    ):
        scaled_dot_product_attention(query, query, query, torch.tensor([1, torch.nan, 1]))
    with pytest.raises(ValueError, match="contains NaN or less than 0"):  # one that is added to the scores
        scaled_dot_product_attention(query, query, query, torch.tensor([0, -1e4, 0]))


def test_attention_head_rejects_bad_mask_shape_and_masked_row():
    head, hidden_states = AttentionHead(8, 4), torch.zeros(2, 3, 8)
    with pytest.raises(ValueError, match=re.escape("of shape (2, 1, 4) does not fit scores of shape (2, 3, 3)")):
        head(hidden_states, torch.ones(2, 4))
    with pytest.raises(ValueError, match=f"^{HIDDEN_ROW}$"):
        head(hidden_states, torch.tensor([[1, 1, 0], [0, 0, 0]]))


def test_checked_mask_returns_none_for_full_mask():
    config, mask = BertConfig(**SMALL), torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert checks.checked_mask(IDS, mask, None, config) is mask
    for full in (None, torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)):
        assert checks.checked_mask(IDS, full, None, config) is None


def decoder(**changes) -> BertConfig:
    config = BertConfig(**SMALL)
    for field, value in changes.items():  # afterwards: some releases of transformers refuse them at once
        setattr(config, field, value)
    return config


VOCAB = {token: number for number, token in enumerate([*checks.SPECIAL_TOKENS, "a"])}
UNIT = torch.eye(3)

# a call, and the whole of what it says


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf")])
def test_loss_must_be_finite(loss):
    message = f"the loss is {loss} at step 7, with a learning rate of 0.0012: use a lower one"
    with pytest.raises(FloatingPointError, match=f"^{re.escape(message)} .*BERT.$"):
        checks.check_finite(loss, 7, 0.00123)


def test_valid_values_pass_checks():
    checks.check_size("k", torch.tensor([1]).numpy()[0], 1, 1)
    checks.check_between("probability", 0.5, 0, 1, "")
    checks.check_heads(8, 8)
    checks.check_activation("relu", ["relu"])
    checks.check_max_length(3, special=2, text=1)
    checks.check_max_length(2, special=2)
    checks.check_weights({"a": UNIT}, {"a": UNIT})
    checks.check_finite_weights({"a": UNIT, "b": UNIT.half()})
    checks.check_labels([0, torch.tensor([1]).numpy()[0]], 2)
    checks.check_vocabulary_size(VOCAB, 6)
    checks.check_finite(1e30, 1, 1e-5)
    checks.check_texts(["a"])
    checks.check_texts(("a", "b"))


@pytest.mark.parametrize("weight", [UNIT.int(), UNIT.to(torch.float8_e4m3fn), UNIT * torch.nan, UNIT / 0])
def test_weights_must_be_finite_floats(weight):
    with pytest.raises(
        ValueError, match=r"^w (contains NaN or inf: use|has the type torch\.(int32|float8_e4m3fn): save)"
    ):
        checks.check_finite_weights({"w": weight})


def test_vocabulary_is_checked_once_per_tokenizer_and_model(monkeypatch):
    compared, compare = [], checks.check_vocabulary_size
    monkeypatch.setattr(checks, "check_vocabulary_size", lambda *given: (compared.append(given), compare(*given)))
    one, other = WordPieceTokenizer(VOCAB), WordPieceTokenizer(dict(VOCAB))
    for tokenizer in (one, other, one, other):
        checks.check_tokenizer(tokenizer, 6)
    assert len(compared) == 2
    for _ in range(2):  # what was refused once is refused again
        with pytest.raises(ValueError, match="load both from the same checkpoint"):
            checks.check_tokenizer(one, 7)


def test_vocab_property_is_read_once_per_tokenizer():
    class Official:
        """Rebuild the vocabulary on every access (30,000 entries), as transformers' Rust tokenizers do."""

        asked = 0

        def __call__(self, texts):
            return texts

        @property
        def vocab(self):
            self.asked += 1
            return VOCAB

    tokenizer = Official()
    for _ in range(3):
        checks.check_tokenizer(tokenizer, 6)
    assert tokenizer.asked == 1


def test_valid_vectors_and_queries_are_returned():
    for vectors in (UNIT[:2] * 1.0009, UNIT.double(), UNIT.half(), UNIT.numpy(), UNIT.tolist(), list(UNIT)):
        assert torch.allclose(search.as_vectors(vectors), UNIT[: len(vectors)], atol=1e-3)
    for number in (1, 5):
        assert torch.equal(search.as_queries(UNIT, 3, k=number, total=5), UNIT)


def test_config_without_decoder_fields_is_accepted():
    config = SimpleNamespace(**BertConfig(**SMALL).to_dict())
    for field in ("is_decoder", "add_cross_attention", "classifier_dropout"):
        vars(config).pop(field, None)
    checks.check_config(config)


def test_as_pairs_matches_texts_with_pairs():
    assert checks.as_pairs("a", None) == [("a", None)]
    assert checks.as_pairs("a", "b") == [("a", "b")]
    assert checks.as_pairs(("a", "b"), ["c", ""]) == [("a", "c"), ("b", "")]
