"""Bad input raises an error that names the argument, the value and the remedy at every entry point."""

import re
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from transformers import BatchEncoding, BertConfig

from tests.helpers import SMALL
from utils import search
from utils.attention import AttentionHead, MultiHeadAttention, scaled_dot_product_attention
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.encoder import TransformerEncoder
from utils.encoder_layer import FeedForward
from utils.masked_lm import TransformerForMaskedLM
from utils.packing import encode_packed
from utils.support import checks
from utils.tokenization import WordPieceTokenizer

IDS = torch.tensor([[5, 6, 7], [8, 9, 1]])
HIDDEN_ROW = "attention_mask masks every token of a row: leave at least one 1 in each"


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    return TransformerEncoder(BertConfig(**SMALL)).eval()


def outside(name: str, value: int, size: int) -> str:
    return f"{name} contain {value}, but valid ids are 0 to {size - 1}"


def another_shape(name: str, shape: tuple, wanted: tuple = (2, 3)) -> str:
    return f"{name} must have the shape {wanted} of the input, got {shape}"


def not_a_batch(shape: tuple) -> str:
    return f"input_ids must be (B, S), got {shape}: use ids[None] for a single sentence"


# what is wrong with ids, mask and token types, and what is said about it
BAD_INPUT = [
    *(({"input_ids": torch.tensor([[1, id_, 2]])}, outside("input_ids", id_, 30)) for id_ in (30, 10**6, -1)),
    *(({"input_ids": torch.ones(shape).long()}, not_a_batch(shape)) for shape in [(3,), (1, 3, 1), (0, 3), (1, 0)]),
    ({"input_ids": torch.ones(1, 11).long()}, "11 tokens, but only 10 positions: tokenize with max_length=10"),
    *(
        ({"token_type_ids": torch.tensor([[0, 1, 0], [0, wrong, 1]])}, outside("token_type_ids", wrong, 2))
        for wrong in (2, 10**6, -1)
    ),
    ({"token_type_ids": torch.ones(1, 2).long()}, another_shape("token_type_ids", (1, 2))),
    *(
        ({"attention_mask": torch.ones(shape)}, another_shape("attention_mask", shape))
        for shape in [(2, 4), (1, 3), (3,), (2, 1, 1, 3)]
    ),
    ({"attention_mask": torch.tensor([[1, 1, 0], [0, 0, 0]])}, HIDDEN_ROW),
    ({"attention_mask": torch.zeros(2, 3, dtype=torch.bool)}, HIDDEN_ROW),
    (
        {"attention_mask": torch.tensor([[1, 1, torch.nan], [1, 1, 1]])},
        "attention_mask contains NaN or less than 0: use 1 for real tokens and 0 for padding",
    ),
]


def names(cases: list[tuple]) -> list[str]:
    return [message.split(":")[0].replace("…", "to") for _, message in cases]


@pytest.mark.parametrize(("wrong", "message"), BAD_INPUT, ids=names(BAD_INPUT))
def test_encoder_and_packing_reject_bad_batch_alike(small, wrong, message):
    batch = {"input_ids": IDS} | wrong
    for options in ({}, {"output_attentions": True}):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            small(**batch, **options)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        encode_packed(small, **{"attention_mask": torch.ones_like(batch["input_ids"])} | batch)


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
    remedy = "use torch.tensor([ids]), or **batch for a tokenizer's dictionary"
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
BAD_CALLS = [
    (lambda: TransformerEncoder(decoder(is_decoder=True)), "is_decoder=True is not supported: use False"),
    (
        lambda: TransformerEncoder(decoder(add_cross_attention=True)),
        "add_cross_attention=True is not supported: use False",
    ),
    (
        lambda: TransformerEncoder(decoder(position_embedding_type="relative_key")),
        "position_embedding_type='relative_key' is not supported: use 'absolute'",
    ),
    (
        lambda: MultiHeadAttention(decoder(num_attention_heads=3)),
        "hidden_size=8 is not divisible by num_attention_heads=3: change one of them",
    ),
    (
        lambda: FeedForward(decoder(hidden_act="silu")),
        'hidden_act="silu" is not supported: use one of gelu, gelu_new, relu',
    ),
    (
        lambda: checks.check_weights({"a": UNIT, "x": UNIT}, dict.fromkeys("dab", UNIT)),
        "weights do not fit the configuration; missing: b, d; unexpected: x",
    ),
    (
        lambda: checks.check_weights({"w": torch.ones(9)}, {"w": torch.ones(8)}),
        "weights do not fit the configuration; mis-shaped: w (9,) for (8,)",
    ),
    (
        lambda: TransformerForSequenceClassification(BertConfig(**SMALL, num_labels=1)),
        "num_labels must be an integer of at least 2, got 1",
    ),
    (lambda: checks.check_size("epochs", True), "epochs must be a positive integer, got True"),
    (lambda: checks.check_size("k", 2.0, 1, 5), "k must be an integer from 1 to 5, got 2.0"),
    (lambda: checks.check_size("k", 6, 1, 5), "k must be an integer from 1 to 5, got 6"),
    *(
        (
            lambda number=number: checks.check_between("probability", number, 0, 1, "BERT's is 0.15"),
            f"probability must be between 0 and 1, got {number!r}: BERT's is 0.15",
        )
        for number in (0, 1, float("nan"), "a", True)
    ),
    (lambda: WordPieceTokenizer(VOCAB | {"b": 5}), "the vocabulary gives several tokens the id 5: use each id once"),
    (
        lambda: WordPieceTokenizer({"[PAD]": 0, "[SEP]": 1, "[MASK]": 2}),
        "the vocabulary lacks [UNK], [CLS]: pass BERT's complete vocabulary",
    ),
    (lambda: WordPieceTokenizer(VOCAB).decode([5, 6]), "id 6 is outside the vocabulary of 6 tokens"),
    *(
        (
            lambda vocab=vocab, size=size: checks.check_vocabulary_size(vocab, size),
            f"the tokenizer has {len(vocab)} tokens with ids up to {last}, but the model's vocab_size is {size}: "
            "load both from the same checkpoint, and look for empty or repeated lines in vocab.txt",
        )
        for vocab, last, size in [(VOCAB, 5, 7), (VOCAB | {"b": 7}, 7, 7), (VOCAB, 5, 5), ({}, None, 1)]
    ),
    (
        lambda: WordPieceTokenizer(VOCAB)("a", max_length=1),
        "max_length=1 is too small for 2 special tokens: use at least 2",
    ),
    (
        lambda: WordPieceTokenizer(VOCAB)("a", "a", max_length=2),
        "max_length=2 is too small for 3 special tokens: use at least 3",
    ),
    (
        lambda: checks.check_max_length(2, special=2, text=1),
        "max_length=2 is too small for 2 special tokens and 1 of text: use at least 3",
    ),
    *(
        (
            lambda texts=texts, pairs=pairs: WordPieceTokenizer(VOCAB)(texts, pairs),
            f"got {counts}: pass at least one text, and one pair per text",
        )
        for texts, pairs, counts in [
            ([], None, "0 texts but 0 pairs"),
            (["a"], ["a", "a"], "1 texts but 2 pairs"),
            (["a", "a"], "a", "2 texts but 1 pairs"),
        ]
    ),
    (lambda: checks.check_texts([]), "got an empty list: pass at least one text"),
    (lambda: checks.check_texts(["a", " \n"]), "text 1 is empty: leave it out"),
    *(
        (
            lambda label=label: checks.check_labels([0, label], 2),
            f"labels must be from 0 to 1, got {label!r} for text 1",
        )
        for label in (2, -1)
    ),
    *(
        (
            lambda shape=shape: search.as_vectors(torch.ones(shape)),
            f"vectors must be (N, H) with one or more, got {shape}: take them from embed()",
        )
        for shape in [(3,), (0, 3), (1, 1, 3)]
    ),
    (
        lambda: search.as_vectors(UNIT[:2] * 1.01),
        "vectors must have length 1, so that products are cosines: take them from embed()",
    ),
    *(
        (
            lambda shape=shape: search.as_queries(torch.ones(shape), 3, k=1, total=5),
            f"queries must be (Q, 3) as the vectors are, got {shape}: take them from embed()",
        )
        for shape in [(3,), (1, 4), (1, 1, 3)]
    ),
    *(
        (
            lambda k=k: search.as_queries(UNIT, 3, k, total=5),
            f"k={k}, but there are 5 vectors to search: use k from 1 to 5",
        )
        for k in (0, 6)
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS, ids=names(BAD_CALLS))
def test_bad_call_raises_value_error(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize(
    ("label", "kind"), [("1", "str"), (0.5, "float"), (None, "NoneType"), (UNIT[0].long()[0], "Tensor")], ids=str
)
def test_labels_must_be_integers(label, kind):
    message = f"labels must be integers, got {kind}: {label!r} of text 1: use int(label)"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        checks.check_labels([0, label], 2)


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


@pytest.mark.parametrize(
    ("tokenizer", "kind"), [(None, "NoneType"), ("bert", "str"), ([1], "list"), (VOCAB, "dict"), (len, "builtin")]
)
def test_other_objects_are_rejected_as_tokenizer(tokenizer, kind):
    with pytest.raises(TypeError, match=f"^tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}"):
        checks.check_tokenizer(tokenizer, 6)


def test_as_pairs_matches_texts_with_pairs():
    assert checks.as_pairs("a", None) == [("a", None)]
    assert checks.as_pairs("a", "b") == [("a", "b")]
    assert checks.as_pairs(("a", "b"), ["c", ""]) == [("a", "c"), ("b", "")]


@pytest.mark.parametrize(
    ("text", "kind"), [(None, "NoneType"), (7, "int"), (b"bytes", "bytes"), ([1], "list")], ids=str
)
def test_text_must_be_a_string(text, kind):
    tokenizer = WordPieceTokenizer(VOCAB)
    message = f"^text must be a string, got {kind}: pass one string or a list$"
    for call in (tokenizer.tokenize, tokenizer.encode, lambda text: tokenizer(["a", text])):
        with pytest.raises(TypeError, match=message):
            call(text)


@pytest.mark.parametrize(("texts", "kind"), [(None, "NoneType"), (7, "int"), ({"a"}, "set")], ids=str)
def test_texts_must_be_a_list(texts, kind):
    with pytest.raises(TypeError, match=f"^texts must be a string or a list of strings, got {kind}$"):
        WordPieceTokenizer(VOCAB)(texts)
    with pytest.raises(TypeError, match=f"^texts must be a list of strings, got {kind}: wrap one text in a"):
        checks.check_texts(texts)


def test_check_texts_rejects_single_text_and_non_string():
    with pytest.raises(TypeError, match=r"^texts must be a list of strings, got str: wrap one"):
        checks.check_texts("a film")
    with pytest.raises(TypeError, match=r"^text 1 must be a string, got int$"):
        checks.check_texts(["a film", 7])
