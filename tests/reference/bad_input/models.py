"""Ids, masks and token types; a source and settings for writing; labels and settings for training."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from tests.reference.bad_input import Bad, Good, each
from tests.reference.bad_input.checkpoints import alter, classify, loads
from utils.attention import scaled_dot_product_attention
from utils.classifier import TransformerForSequenceClassification
from utils.decoder import EncoderDecoder
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.packing import encode_packed
from utils.support.checkpoint import load_tokenizer
from utils.support.checks import checked_mask
from utils.support.datasets import Examples
from utils.support.neighbour_counts import NeighbourCounts
from utils.training import fine_tune, predict

IDS = torch.tensor([[2, 7, 3], [2, 8, 3]])
PADDING = torch.tensor([[1, 1, 0], [1, 1, 1]])
CONFIG = BertConfig(**TINY)
WRITES = {"is_decoder": True, "add_cross_attention": True, "bos_token_id": 2, "eos_token_id": 3}
SAMPLE = Examples(["a b", "c"], [0, 1])


def encoder() -> TransformerEncoder:
    """Return a tiny encoder of random weights."""
    return TransformerEncoder(CONFIG).eval()


def classifier() -> TransformerForSequenceClassification:
    """Return a tiny classifier of random weights."""
    return TransformerForSequenceClassification(CONFIG)


def encode(**changes):
    """Return a call of the encoder with other arguments."""
    batch = {"input_ids": IDS} | changes
    return lambda _: encoder()(**batch)


def same(**changes):
    """Whether the encoder takes the changed batch as it takes the ids alone."""

    def call(folder: Path) -> bool:
        model = encoder()
        changed = model(**{"input_ids": IDS} | changes).last_hidden_state
        return torch.allclose(changed, model(IDS).last_hidden_state, atol=1e-6)

    return call


def pair(encoder: dict | None = None, **decoder) -> EncoderDecoder:
    """A tiny encoder–decoder with changed settings."""
    return EncoderDecoder(BertConfig(**TINY | (encoder or {})), BertConfig(**TINY | WRITES | decoder)).eval()


def write(settings: dict | None = None, **changes):
    """Return a call of `generate` with other arguments."""
    return lambda _: pair(**settings or {}).generate(**{"input_ids": IDS, "max_length": 8} | changes)


def masked_lm() -> TransformerForMaskedLM:
    """Return a tiny masked language model."""
    return TransformerForMaskedLM(CONFIG).eval()


def write_with_pad(pad_token_id: int):
    """Write with a padding id that was changed in a decoder which was built before."""

    def call(folder: Path):
        model = pair()
        model.decoder.config.pad_token_id = pad_token_id
        return model.generate(IDS, max_length=8)

    return call


def decode(**changes):
    """Return a call of the decoder with other arguments."""
    return lambda _: pair().decoder(IDS, **changes)


def accepts_masks(enter):
    """Return a call with no mask, a full one and one that hides padding."""
    masks = (None, torch.ones(2, 3), PADDING)
    return lambda _: [enter(IDS, mask) for mask in masks]


def attend(mask: torch.Tensor):
    """Return a call of attention with scores (1, 3, 3)."""
    query = torch.zeros(1, 3, 4)
    return lambda _: scaled_dot_product_attention(query, query, query, mask)


def broadcasts(shape: tuple):
    """Whether attention with scores (4, 5, 2, 3) takes a mask of this shape."""
    query, key = torch.zeros(4, 1, 2, 6), torch.zeros(5, 3, 6)
    return lambda _: scaled_dot_product_attention(query, key, key, torch.ones(shape))[1].shape == (4, 5, 2, 3)


def tune(**changes):
    """Fine-tune a tiny model with changed arguments."""

    def call(folder: Path):
        arguments = {"tokenizer": tiny_tokenizer(), "train": SAMPLE, "validation": SAMPLE, "epochs": 1, "quiet": True}
        return fine_tune(classifier(), **arguments | changes)

    return call


STATES = torch.zeros(2, 4, 12)
ENTRANCES = {  # each way into a model: how it takes ids and a mask
    "encoder": lambda ids, mask: encoder()(ids, mask),
    "packed": lambda ids, mask: encode_packed(encoder(), ids, mask),
    "classifier": lambda ids, mask: classifier()(ids, mask),
    "masked-LM": lambda ids, mask: masked_lm()(ids, mask),
    "decoder": lambda ids, mask: pair().decoder(ids, mask, STATES),
    "pair, source": lambda ids, mask: pair()(ids, mask, IDS),
    "pair, text": lambda ids, mask: pair()(IDS, None, ids, mask),
    "generate": lambda ids, mask: pair().generate(ids, mask, max_length=5),
}
OTHER_TENSORS = {  # other arguments that are tensors: who takes them, and a right one
    "token_type_ids": (lambda types: encoder()(IDS, None, types), IDS % 2),
    "encoder_hidden_states": (lambda states: pair().decoder(IDS, None, states), STATES),
    "encoder_attention_mask": (lambda mask: pair().decoder(IDS, None, STATES, mask), torch.ones(2, 4)),
}
LIST = IDS.tolist()
ROWS = "use torch.tensor with a row for each text, or **batch for a tokenizer's dictionary"
MASKED = "masks every token of a row: leave at least one 1 in each"
ODD_MASK = "contains NaN or less than 0: use 1 for real tokens and 0 for padding"

INPUT = [
    *(
        Bad(
            f"the id {wrong} of 50",
            encode(input_ids=torch.tensor([[2, wrong, 3]])),
            f"input_ids contain {wrong}, but valid ids are 0 to 49",
            encode(input_ids=torch.tensor([[0, 49]])),
        )
        for wrong in (50, -1)
    ),
    Bad(
        "ids of the shape (3,)",
        encode(input_ids=IDS[0]),
        "input_ids must be (B, S), got (3,): use ids[None] for a single",
        encode(input_ids=IDS[0][None]),
    ),
    *(
        Bad(
            f"ids of the shape {shape}",
            encode(input_ids=torch.ones(shape).long()),
            f"input_ids must be (B, S), got {shape}: use a row of ids for each text",
            encode(),
        )
        for shape in [(0, 3), (1, 1, 3)]
    ),
    Bad(
        "ids that are not integers",
        encode(input_ids=IDS.float()),
        "input_ids must contain integers, got torch.float32: convert with .long()",
        encode(input_ids=IDS.float().long()),
    ),
    Good("ids of torch.int32", same(input_ids=IDS.int())),
    *(
        Bad(
            f"a list for ids, {entrance}",
            lambda _, enter=enter: enter(LIST, None),
            f"input_ids must be a tensor, got list: {ROWS}",
            lambda _, enter=enter: enter(IDS, None),
            error=TypeError,
        )
        for entrance, enter in ENTRANCES.items()
    ),
    *(
        Bad(
            f"a list for a mask, {entrance}",
            lambda _, enter=enter: enter(IDS, LIST),
            f"attention_mask must be a tensor, got list: {ROWS}",
            accepts_masks(enter),
            error=TypeError,
        )
        for entrance, enter in ENTRANCES.items()
    ),
    *(
        Bad(
            f"a mask with NaN, {entrance}",
            lambda _, enter=enter: enter(IDS, torch.tensor([[1, torch.nan, 1]] * 2)),
            f"attention_mask {ODD_MASK}",
            accepts_masks(enter),
        )
        for entrance, enter in ENTRANCES.items()
    ),
    *(
        Bad(
            f"a list for {name}",
            lambda _, call=call: call(LIST),
            f"{name} must be a tensor, got list: ",
            lambda _, call=call, right=right: call(right),
            error=TypeError,
        )
        for name, (call, right) in OTHER_TENSORS.items()
    ),
    Bad(
        "a mask of one row for a layer and two texts",
        lambda _: encoder().layers[0](torch.zeros(2, 3, 12), torch.ones(1, 3)),
        "attention_mask must have the shape (2, 3) of the input, got (1, 3)",
        lambda _: encoder().layers[0](torch.zeros(2, 3, 12), torch.ones(2, 3)),
    ),
    *(
        Bad(
            f"a mask of the shape {shape} for scores (1, 3, 3)",
            attend(torch.ones(shape)),
            f"attention_mask of shape {shape} does not fit scores of shape (1, 3, 3)",
            attend(torch.ones(3, 3)),
        )
        for shape in [(3, 2), (2, 3), (1, 1, 3, 3)]
    ),
    *(
        Good(f"a mask of the shape {shape} for scores (4, 5, 2, 3)", broadcasts(shape))
        for shape in [(), (1, 3), (5, 1, 3), (4, 1, 2, 3)]
    ),
    Bad(
        "a mask that hides every key of one query",
        attend(torch.ones(3, 3).tril(-1)),
        f"attention_mask {MASKED}",
        attend(torch.ones(3, 3).tril()),
    ),
    Bad(
        "17 tokens for 16 positions",
        encode(input_ids=torch.ones(1, 17).long()),
        "17 tokens, but only 16 positions: tokenize with max_length=16",
        encode(**tiny_tokenizer()("a " * 17, max_length=16)),
    ),
    Bad(
        "the token type 2 of 2",
        encode(token_type_ids=torch.tensor([[0, 2, 0], [0, 0, 0]])),
        "token_type_ids contain 2, but valid ids are 0 to 1",
        encode(token_type_ids=torch.tensor([[0, 1, 0], [0, 0, 0]])),
    ),
    Bad(
        "token types of another shape",
        encode(token_type_ids=torch.zeros(1, 2).long()),
        "token_type_ids must have the shape (2, 3) of the input",
        encode(token_type_ids=torch.zeros(2, 3).long()),
    ),
    Bad(
        "a mask of another shape",
        encode(attention_mask=torch.ones(2, 1, 1, 3)),
        "attention_mask must have the shape (2, 3) of the input",
        encode(attention_mask=torch.ones(2, 3)),
    ),
    Bad(
        "a mask that hides a whole row",
        encode(attention_mask=torch.tensor([[1, 1, 1], [0, 0, 0]])),
        f"attention_mask {MASKED}",
        encode(attention_mask=torch.tensor([[1, 1, 1], [1, 0, 0]])),
    ),
    Bad(
        "a mask to be added to scores",
        encode(attention_mask=torch.tensor([[0, 0, -10_000], [0, 0, 0]])),
        f"attention_mask {ODD_MASK}",
        encode(attention_mask=torch.tensor([[1, 1, 0], [1, 1, 1]])),
    ),
    Good("a full mask, which is left out", lambda _: checked_mask(IDS, torch.ones(2, 3), None, CONFIG) is None),
    Good("a mask of padding, which is kept", lambda _: checked_mask(IDS, PADDING, None, CONFIG) is PADDING),
    *(
        Good(f"a mask of {dtype}", same(attention_mask=torch.ones(2, 3).to(dtype)))
        for dtype in (torch.bool, torch.float32, torch.int64, torch.uint8)
    ),
    Bad(
        "meta ids",
        encode(input_ids=IDS.to("meta")),
        "input_ids must have values, but a tensor on the device meta has none: create it on a CPU",
        encode(),
    ),
    Bad(
        "sparse ids",
        encode(input_ids=IDS.to_sparse()),
        "input_ids must be a dense tensor, got torch.sparse_coo: convert it",
        encode(input_ids=IDS.to_sparse().to_dense()),
    ),
    Bad(
        "a mask of complex numbers",
        encode(attention_mask=torch.ones(2, 3).to(torch.complex64)),
        "attention_mask must contain real numbers, got torch.complex64: convert with .real.float()",
        encode(attention_mask=torch.ones(2, 3).to(torch.complex64).real.float()),
    ),
    Bad(
        "an index tuple for `where`",
        lambda _: masked_lm()(IDS, where=(torch.tensor([0]), torch.tensor([1]))),
        "where must be a tensor, got tuple: use torch.tensor with a row for each text",
        lambda _: masked_lm()(IDS, where=torch.tensor([[False, True, False], [False, False, False]])),
        error=TypeError,
    ),
    Bad(
        "ids to be masked that are not integers",
        lambda _: mask_tokens(IDS.float(), tiny_tokenizer()),
        "input_ids must contain integers, got torch.float32: convert with .long()",
        lambda _: mask_tokens(IDS.float().long(), tiny_tokenizer()),
    ),
    Good(
        "int32 ids of a large vocabulary to be counted",
        lambda _: NeighbourCounts(IDS.int() + 69_990, 70_000).between[0].tolist() == [4_899_509_993],
    ),
]
SOURCE = decode(encoder_hidden_states=STATES)

WRITING = [
    Bad(
        "no source",
        decode(),
        "encoder_hidden_states=None, but this decoder looks at a source: pass the encoder's last_hidden_state",
        lambda _: pair().decoder(IDS, encoder_hidden_states=encoder()(IDS).last_hidden_state),
    ),
    *(
        Bad(
            f"a source of the shape {shape}",
            decode(encoder_hidden_states=torch.zeros(shape)),
            f"encoder_hidden_states must be (2, S, 12), a source for each text, got {shape}",
            SOURCE,
        )
        for shape in ((2, 4, 6), (1, 4, 12))
    ),
    *(
        Bad(
            f"`max_length={length!r}`",
            write(max_length=length),
            "must be an integer from 2 to 16",
            each(write(max_length=2), write(max_length=16)),
        )
        for length in (1, 17, None)
    ),
    *(
        Bad(
            f"`num_beams={beams!r}`",
            write(num_beams=beams),
            "must be an integer from 1 to 25",
            each(write(num_beams=1), write(num_beams=25)),
        )
        for beams in (0, 26)
    ),
    *(
        Bad(
            f"`{name}: {wrong!r}`",
            write({name: wrong}),
            f"{name} must be an integer from 0 to 49, got {wrong!r}",
            each(write({name: 0}), write({name: 49})),
        )
        for name in ("bos_token_id", "eos_token_id")
        for wrong in (None, 50)
    ),
    Bad(
        "`pad_token_id=50`, set after the decoder was built",
        write_with_pad(50),
        "pad_token_id must be an integer from 0 to 49, got 50",
        each(write_with_pad(0), write_with_pad(49)),
    ),
    Bad(
        "an encoder and a decoder of different widths",
        write({"encoder": {"hidden_size": 24}}),
        "hidden_size is 24 in the encoder, 12 in the decoder: use one",
        write({"encoder": {"hidden_size": 24}, "hidden_size": 24}),
    ),
    Bad(
        "a source with inf",
        decode(encoder_hidden_states=STATES + math.inf),
        "encoder_hidden_states contain NaN or inf: look for what went wrong in the encoder",
        SOURCE,
    ),
    *(
        Bad(
            f"{given} for the source",
            decode(encoder_hidden_states=STATES, encoder_attention_mask=mask),
            f"encoder_attention_mask {words}",
            decode(encoder_hidden_states=STATES, encoder_attention_mask=torch.eye(2, 4)),
        )
        for given, mask, words in (
            ("a mask of another shape", torch.ones(2, 3), "must have the shape (2, 4)"),
            ("a mask that hides a row", torch.zeros(2, 4), MASKED),
        )
    ),
    Bad(
        "word embeddings that are not tied",
        write({"tie_word_embeddings": False}),
        "tie_word_embeddings=False is not supported: use tie_word_embeddings=True",
        write({"tie_word_embeddings": True}),
    ),
    Bad(
        "a decoder that does not use a source",
        write({"add_cross_attention": False}),
        "this decoder does not use a source: leave it out, or use add_cross_attention=True",
        each(lambda _: pair(add_cross_attention=False).decoder(IDS), write({"add_cross_attention": True})),
    ),
    Bad(
        "an encoder for the decoder",
        write({"is_decoder": False}),
        "is_decoder=False makes an encoder, but this is a decoder: use is_decoder=True",
        write({"is_decoder": True}),
    ),
]
CLASS = tune(train=Examples(["a"], [1]))


def half_a_classifier() -> TransformerForSequenceClassification:
    """Return a classifier whose first layer is in half precision."""
    model = classifier()
    model.encoder.layers[0].half()
    return model


TRAINING = [
    Bad(
        "weights of two types",
        lambda _: predict(half_a_classifier(), tiny_tokenizer(), ["a film"]),
        "the model has weights of several types, float16, float32: call model.float()",
        lambda _: predict(half_a_classifier().float(), tiny_tokenizer(), ["a film"]),
    ),
    *(
        Bad(
            f"the label {label} of two classes",
            tune(train=Examples(["a"], [label])),
            f"labels must be from 0 to 1, got {label} for text 0",
            CLASS,
        )
        for label in (2, -1)
    ),
    Bad(
        "the label '1'",
        tune(train=Examples(["a"], ["1"])),
        "labels must be integers, got str: '1' of text 0: use the number of its class",
        CLASS,
        error=TypeError,
    ),
    Bad(
        "two texts and one label",
        lambda _: Examples(["a", "b"], [0]),
        "got 2 texts but 1 labels: pass one label per text",
        lambda _: Examples(["a", "b"], [0, 1]),
    ),
    Bad(
        "an empty text among them",
        tune(train=Examples(["a", " "], [0, 1])),
        "text 1 is empty: leave it out",
        tune(train=Examples(["a"], [0])),
    ),
    Bad(
        "a pair of lists instead of Examples",
        tune(train=(["a"], [0])),
        "examples must be Examples(texts, labels), got tuple",
        tune(train=Examples(["a"], [0])),
        error=TypeError,
    ),
    Good(
        "texts and labels in columns of a table, to train",
        lambda folder: tune(train=Examples(pd.Series(["a"], [7]), np.array([0])))(folder) is not False,
    ),
    Bad(
        "labels in a set",
        lambda _: Examples(["a"], {0}),
        "labels must be a list, got set: pass a list, or one column of a table",
        lambda _: Examples(["a"], [0]),
        error=TypeError,
    ),
    *(
        Bad(
            f"no texts as `{name}`",
            tune(**{name: Examples([], [])}),
            "got no texts: pass a list",
            tune(**{name: Examples(["a"], [0])}),
        )
        for name in ("train", "validation")
    ),
    Bad(
        "`max_length=2` to train",
        tune(max_length=2),
        "max_length=2 is too small for 2 special tokens and 1 of text: use at least 3",
        tune(max_length=3),
    ),
    *(
        Bad(
            f"`{name}={wrong!r}`",
            tune(**{name: wrong}),
            f"{name} must be {words}, got {wrong!r}",
            tune(**{name: right}),
        )
        for name, wrong, words, right in (
            ("epochs", 0, "an integer from 1 to 10,000", 1),
            ("epochs", 10_001, "an integer from 1 to 10,000", 1),
            ("batch_size", 0, "a positive integer", 1),
            ("batch_size", 2.5, "a positive integer", 1),
            ("learning_rate", 0.0, "between 0 and inf", 5e-5),
            ("learning_rate", math.nan, "between 0 and inf", 5e-5),
            ("seed", "a", "an integer from 0 to 1,000,000,000", 0),
            ("patience", None, "an integer of at least 0", 0),
            ("max_length", 2.5, "an integer of at least 3", 3),
        )
    ),
    *(
        Bad(
            f"{given} where the tokenizer belongs",
            tune(tokenizer=wrong),
            "tokenizer must be a WordPieceTokenizer or transformers' own, got ",
            each(tune(), lambda folder: tune(tokenizer=load_tokenizer(folder))(folder)),
            error=TypeError,
        )
        for given, wrong in (("a text", "a text"), ("a function without a vocabulary", len))
    ),
    Bad(
        "one text to classify, not a list",
        lambda _: predict(classifier(), tiny_tokenizer(), "a film"),
        "wrap one text in a list",
        lambda _: predict(classifier(), tiny_tokenizer(), ["a film"]),
        error=TypeError,
    ),
    Bad(
        "one class",
        lambda _: TransformerForSequenceClassification(BertConfig(**TINY, num_labels=1)),
        "num_labels must be an integer of at least 2, got 1",
        lambda _: TransformerForSequenceClassification(BertConfig(**TINY, num_labels=2)),
    ),
    Bad(
        "a checkpoint that gives a text several labels",
        alter("config.json", classify, problem_type="multi_label_classification"),
        "problem_type='multi_label_classification' is not supported: use a classifier that gives each text one label",
        alter("config.json", classify, problem_type="single_label_classification"),
    ),
    Good(
        "a new last layer for several labels a text",
        loads(
            alter(
                "config.json",
                lambda folder: TransformerForSequenceClassification.from_checkpoint(folder, num_labels=2),
                problem_type="multi_label_classification",
            )
        ),
    ),
]
