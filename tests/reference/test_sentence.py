"""The sentence view, from Python: its numbers are the model's, and errors name the wrong argument and the remedy."""

import base64
import json
import re

import pytest
import torch

from tests.families import FAMILIES, TWO_SIDES, byte_level, sharp_model
from views import sentence_view

TEXT = "The animal didn't cross the street because it was too {}."
TIRED, WIDE, TINY = (TEXT.format(word) for word in ("tired", "wide", "tiny"))
ATTENTION = torch.randn(2, 1, 4, 3, 3, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
TOKENS = ["time", "flies", "fast"]


def drawn(view) -> dict:
    """Return what the page draws, with the weights (texts, L, A, S, S)."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', view.page, re.DOTALL)[1])
    flat = torch.frombuffer(bytearray(base64.b64decode(data["weights"])), dtype=torch.float32)
    S = len(data["texts"][0])
    return data | {"weights": flat.view(len(data["texts"]), len(data["layers"]), data["heads"], S, S)}


@pytest.mark.parametrize("official", [False, True])
def test_sentences_have_the_models_weights(official, encoder, tokenizer, reference, official_tokenizer):
    read_by = (reference, official_tokenizer) if official else (encoder, tokenizer)
    data = drawn(sentence_view(*read_by, TIRED, other=[WIDE, TINY], token="it", layer=3, head=1))
    assert data["first"] == {"token": 10, "layer": 3, "head": 1}
    assert [tokens[13] for tokens in data["texts"]] == ["tired", "wide", "tiny"]
    for text, found in zip((TIRED, WIDE, TINY), data["weights"], strict=True):
        with torch.no_grad():
            weights = encoder(**tokenizer(text), output_attentions=True).attentions
        torch.testing.assert_close(found, torch.cat(weights), rtol=0, atol=1e-5)
        torch.testing.assert_close(found.sum(dim=-1), torch.ones(6, 12, 16), rtol=0, atol=1e-5)
    assert (data["weights"][0] - data["weights"][1]).abs().max() > 0.1  # the control: the texts differ


@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_of_every_family(family):
    model, tokenizer = sharp_model(family, FAMILIES[family] | {"vocab_size": 300}), byte_level(["the cat sat"])
    data = drawn(sentence_view(model, tokenizer, "the cat sat"))
    assert "".join(data["texts"][0]).replace("␣", " ") == "the cat sat"
    assert (data["weights"].sum(dim=-1) - 1).abs().max() < 1e-5


def test_attentions_of_any_model():
    data = drawn(sentence_view(list(ATTENTION), TOKENS, token="fast", layer=1, include_layers=[1]))
    assert data["first"] == {"token": 2, "layer": 0, "head": 0}
    assert data["layers"] == [1]
    assert torch.equal(data["weights"][0], ATTENTION[1])
    assert torch.equal(
        drawn(sentence_view(encoder_attention=ATTENTION, encoder_tokens=TOKENS))["weights"][0, 0], ATTENTION[0, 0]
    )


def test_the_first_word_looks_by_default():
    assert drawn(sentence_view(ATTENTION, ["[CLS]", "“", "time"]))["first"]["token"] == 2
    assert drawn(sentence_view(ATTENTION, ["[CLS]", ".", "[SEP]"]))["first"]["token"] == 0


def test_other_takes_the_place_of_the_last_text(encoder, tokenizer):
    pair = ("I called Ian.", "I got his answering machine.")
    one, other = drawn(sentence_view(encoder, tokenizer, *pair, other="I got her answering machine."))["texts"]
    assert [(before, after) for before, after in zip(one, other, strict=True) if before != after] == [("his", "her")]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"token": "slow"},
            ValueError,
            "token='slow' is not among the tokens of the text: use one of time, flies, fast",
        ),
        ({"token": 3}, ValueError, "token names 3, but there are 3: use 0 to 2"),
        ({"layer": 2}, ValueError, r"layer must be one of the layers shown, \[0, 1\], got 2"),
        ({"layer": True}, ValueError, r"layer must be one of the layers shown, \[0, 1\], got True"),
        ({"head": 4}, ValueError, "head names 4, but there are 4: use 0 to 3"),
        ({"other": "time flies"}, TypeError, r"other must be a tuple \(attention, tokens\) .* got str: pass a model"),
        ({"other": (ATTENTION, TOKENS)}, ValueError, "other repeats the tokens 'time flies fast': exchange a word"),
        (
            {"other": (torch.full((2, 1, 4, 2, 2), 0.5), ["a", "b"])},
            ValueError,
            "other must have as many tokens as the text, 3, got 2, 'a b': exchange a word for one of as many tokens",
        ),
        (
            {"other": (ATTENTION[:1], ["time", "flies", "by"])},
            ValueError,
            "other must come from the same model, 2 layers × 4 heads, got 1 layers × 4 heads",
        ),
        ({"colour": 1}, TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_invalid_options_raise(options, error, message):
    with pytest.raises(error, match=message):
        sentence_view(ATTENTION, TOKENS, **options)


def test_weights_that_do_not_add_up_to_one_raise():
    attention = ATTENTION.clone()
    attention[1, 0, 2, 1] *= 0.9
    message = "token 1 in layer 1, head 2 add up to 0.90, and the ribbons .* need 1: pass the output of softmax"
    with pytest.raises(ValueError, match=message):
        sentence_view(attention, TOKENS)
    sentence_view(ATTENTION.bfloat16(), TOKENS)  # only rounded


def test_invalid_texts_raise(encoder, tokenizer):
    for other, message in [
        (["wide", 3], r"other must be a text, or a list of texts, of at least one word, got \['wide', 3\]"),
        (" ", "other must be a text, or a list of texts, of at least one word, got ' '"),
        (5, "other must be a text, or a list of texts, of at least one word, got 5"),
    ]:
        with pytest.raises(TypeError, match=message):
            sentence_view(encoder, tokenizer, TIRED, other=other)
    with pytest.raises(ValueError, match="other must hold 1 to 5 texts, got 6"):
        sentence_view(encoder, tokenizer, TIRED, other=[WIDE] * 6)
    with pytest.raises(ValueError, match="as many tokens as the text, 16, got 18"):
        sentence_view(encoder, tokenizer, TIRED, other=TEXT.format("very very tired"))
    with pytest.raises(ValueError, match="the text has 129 tokens, but a sentence view draws at most 128: shorten it"):
        sentence_view(encoder, tokenizer, "a " * 127)


def test_two_sides_raise():
    model, tokenizer = sharp_model("bart", TWO_SIDES["bart"] | {"vocab_size": 300}), byte_level(["the cat sat"])
    with pytest.raises(
        ValueError, match=r"got encoder_attention and decoder_attention and cross_attention: .*get_encoder"
    ):
        sentence_view(model, tokenizer, "the cat", "sat")
    side = drawn(sentence_view(model.get_encoder(), tokenizer, "the cat"))
    assert side["weights"].shape[:3] == (1, 2, 4)
    with pytest.raises(ValueError, match="one text to itself, got cross_attention"):
        sentence_view(cross_attention=ATTENTION, decoder_tokens=TOKENS, encoder_tokens=["a", "b", "c"])
