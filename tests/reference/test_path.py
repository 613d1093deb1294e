"""The path view: the same for our encoder and the official one, many families, and what it cannot draw."""

import copy

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.families import ENCODER, FAMILIES, TWO_SIDES, sharp_model, word_level
from tests.helpers import TINY
from utils.encoder import TransformerEncoder
from views import path_view
from views.path import read_path

TEXT = "The animal didn't cross the unbelievable street."
WORDS = {f"w{number}": number for number in range(99)} | {"[MASK]": 99}
MASKED = ("bert", "roberta", "xlm-roberta", "electra", "albert", "distilbert", "nomic_bert", "modernbert")


@pytest.fixture(scope="module")
def words():
    return word_level(WORDS, mask_token="[MASK]")


def test_ours_and_the_official_encoder_have_the_same_paths(encoder, tokenizer, reference, official_tokenizer):
    ours = read_path(encoder, tokenizer, TEXT)
    official = read_path(reference, official_tokenizer, TEXT)
    assert ours.names == official.names
    assert ours.names == ["[CLS]", *TEXT[:-1].lower().replace("'", " ' ").split(), ".", "[SEP]"]
    torch.testing.assert_close(ours.turns, official.turns, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.flows, official.flows, atol=1e-5, rtol=0)
    assert (ours.flows.sum(dim=-1) - 1).abs().max() < 1e-6
    assert ours.turns[:, 0].diagonal().min() > 0.1  # each word is another one in the embedding, and the others are not
    assert ours.turns[:, 0].fill_diagonal_(0).max() < 1e-6


@pytest.mark.parametrize("family", MASKED)
def test_path_view_reads_and_splits_many_families(family, words):
    model = sharp_model(family, FAMILIES[family])
    path = read_path(model, words, "w5 w6 w7 w8")
    assert path.turns.shape == (4, 3, 4)
    assert path.flows.shape == (2, 4, 4)
    with torch.no_grad():
        ids = torch.tensor([[5, 6, 7, 8], [5, 6, 99, 8]])
        one, other = model(ids, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(path.turns[2, -1].float(), 1 - torch.cosine_similarity(one, other, dim=-1))
    assert path_view(model, words, "w5 w6 w7 w8", word="w7").page.count("<script") == 2


def test_a_family_whose_layers_cannot_be_split_is_measured(words):
    path = read_path(sharp_model("mpnet", ENCODER), words, "w5 w6 w7 w8")
    assert path.flows is None
    assert path.turns.shape == (4, 3, 4)


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16, torch.float64])
def test_path_of_our_encoder_in_any_precision(precision, encoder, tokenizer):
    exact = read_path(encoder, tokenizer, TEXT)
    found = read_path(copy.deepcopy(encoder).to(precision), tokenizer, TEXT)
    torch.testing.assert_close(found.turns, exact.turns, atol=0.05, rtol=0)
    torch.testing.assert_close(found.flows, exact.flows, atol=0.02, rtol=0)


def test_a_path_that_cannot_be_split_says_why(words):
    view = path_view(sharp_model("mpnet", ENCODER), words, "w5 w6 w7 w8")
    assert "is not drawn: the queries and keys of a mpnet cannot be read: 0 of its 2 layers" in view.page


@pytest.mark.parametrize("official", [False, True])
def test_vectors_without_a_direction_are_refused(official, words):
    model = sharp_model("bert", ENCODER) if official else TransformerEncoder(BertConfig(**TINY | {"vocab_size": 100}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    message = "after layer 0 of a .*, a vector has the length 0, so it has no direction: load trained weights"
    with pytest.raises(ValueError, match=message):
        path_view(model, words, "w5 w6")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            lambda words: (sharp_model("gpt2", FAMILIES["gpt2"]), word_level(WORDS), "w5 w6"),
            "has none .*use a model .* BERT",
        ),
        (lambda words: (sharp_model("t5", TWO_SIDES["t5"]), words, "w5 w6"), r"one encoder, not a t5: .*get_encoder"),
        (lambda words: (BertModel(BertConfig(**TINY)), words, "w5 w6"), "ids up to 99, but the model has 50"),
        (lambda words: (TransformerEncoder(BertConfig(**TINY)), words, "w5 w6"), "100 tokens .*vocab_size is 50"),
        (lambda words: (sharp_model("bert", ENCODER), words, "w5 " * 65), "2 to 64 words, but the text has 65:"),
        (lambda words: (sharp_model("bert", ENCODER), words, "w5"), "2 to 64 words, but the text has 1"),
        (lambda words: (sharp_model("bert", ENCODER), words, ["w5"]), "sentence_a must be one string"),
    ],
)
def test_what_path_view_cannot_draw_is_refused(case, message, words):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        path_view(*case(words))


def test_a_word_that_is_not_in_the_text_is_refused(words):
    with pytest.raises(ValueError, match=r"token='w9' is not among .*: use one of w5, w6"):
        path_view(sharp_model("bert", ENCODER), words, "w5 w6", word="w9")
