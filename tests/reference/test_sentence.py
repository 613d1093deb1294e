"""The sentence view, from Python: its numbers are the model's, and errors name the wrong argument and the remedy."""

import base64
import copy
import json
import re
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModel

from tests.families import TWO_SIDES, byte_level, sharp_model
from utils.support.checkpoint import checkpoint_folder, load_official, load_official_tokenizer
from utils.support.datasets import reviews
from views import sentence, sentence_view
from views.__main__ import main
from views.arguments import read_call

TEXT = "The animal didn't cross the street because it was too {}."
TIRED, WIDE, TINY = (TEXT.format(word) for word in ("tired", "wide", "tiny"))
ATTENTION = torch.randn(2, 1, 4, 3, 3, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
TOKENS = ["time", "flies", "fast"]


def drawn(view) -> dict:
    """Return what the page draws, with the weights (L, A, S, S) of each text."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', view.page, re.DOTALL)[1])
    shape = len(data["layers"]), data["heads"]
    packed = zip(data["weights"], data["sizes"], strict=True)
    flat = ((torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float32), S) for text, S in packed)
    weights = [numbers.view(*shape, S, S) for numbers, S in flat]
    return data | {"weights": weights, "texts": data["drawn"]["pieces"]["names"]}


@pytest.mark.parametrize("official", [False, True])
def test_sentences_have_the_models_weights(official, encoder, tokenizer, reference, official_tokenizer):
    read_by = (reference, official_tokenizer) if official else (encoder, tokenizer)
    data = drawn(sentence_view(*read_by, TIRED, other=[WIDE, TINY], token="it", layer=3, head=1))
    assert data["first"] == {"token": 10, "layer": 3, "head": 1, "mode": "pieces", "both": False}
    assert data["labels"] == ["tired", "wide", "tiny"]
    assert [tokens[13] for tokens in data["texts"]] == ["tired", "wide", "tiny"]
    for text, found in zip((TIRED, WIDE, TINY), data["weights"], strict=True):
        with torch.no_grad():
            weights = encoder(**tokenizer(text), output_attentions=True).attentions
        torch.testing.assert_close(found, torch.cat(weights), rtol=0, atol=1e-5)
        torch.testing.assert_close(found.sum(dim=-1), torch.ones(6, 12, 16), rtol=0, atol=1e-5)
    assert (data["weights"][0] - data["weights"][1]).abs().max() > 0.1  # the control: the texts differ


def test_attentions_of_any_model():
    data = drawn(sentence_view(list(ATTENTION), TOKENS, token="fast", layer=1, include_layers=[1]))
    assert data["first"] == {"token": 2, "layer": 0, "head": 0, "mode": "pieces", "both": False}
    assert data["layers"] == [1]
    assert torch.equal(data["weights"][0], ATTENTION[1])
    by_name = sentence_view(encoder_attention=ATTENTION, encoder_tokens=TOKENS)
    assert torch.equal(drawn(by_name)["weights"][0][0], ATTENTION[0, 0])


def test_the_first_word_looks_by_default():
    assert drawn(sentence_view(ATTENTION, ["[CLS]", "“", "time"]))["first"]["token"] == 2
    assert drawn(sentence_view(ATTENTION, ["[CLS]", ".", "[SEP]"]))["first"]["token"] == 0


@pytest.mark.long
def test_a_page_of_512_tokens_is_small(encoder, tokenizer):
    """All six layers have at most 15 MB: one of them has a sixth. A browser test reads such weights."""
    text = " ".join(reviews().train.texts[:60])
    batch = tokenizer(text, max_length=512)
    with torch.no_grad():
        weights = encoder(**batch, output_attentions=True).attentions[3]
    assert weights.size(-1) == 512
    view = sentence_view([weights], [tokenizer.tokens[int(token)] for token in batch["input_ids"][0]])
    assert len(view.page) < 15e6 / 6


def test_other_takes_the_place_of_the_last_text(encoder, tokenizer):
    pair = ("I called Ian.", "I got his answering machine.")
    one, other = drawn(sentence_view(encoder, tokenizer, *pair, other="I got her answering machine."))["texts"]
    assert [(before, after) for before, after in zip(one, other, strict=True) if before != after] == [("his", "her")]


def aligned(first: str, *others: str, mode: str = "pieces") -> tuple[list[list[int]], list[list[str]]]:
    """Align texts of word pieces, with uniform weights: the column of each token, and the names of the columns."""
    split = [text.split() for text in (first, *others)]
    texts = [(torch.full((1, 1, 1, len(words), len(words)), 1 / len(words)), words) for words in split]
    calls = [read_call("sentence_view", (*text, None, None)) for text in texts]
    return sentence.align([sentence.read_sentence(call) for call in calls], mode)


def test_texts_are_aligned_on_words():
    assert aligned("a b c", "a d c") == ([[0, 1, 2], [0, 1, 2]], [["a", "b", "c"], ["a", "d", "c"]])
    ids, names = aligned("a big ##ger c", "a wid ##er c")  # as many pieces
    assert ids == [[0, 1, 2, 3]] * 2
    ids, names = aligned("a big c", "a wid ##er ##est c")  # a word of more pieces has one column
    assert ids == [[0, 1, 2], [0, 1, 1, 1, 2]]
    assert names[1] == ["a", "widerest", "c"]
    ids, names = aligned("a b c", "a b d d c", "c")  # words that others don't have
    assert ids == [[0, 1, 4], [0, 1, 2, 3, 4], [4]]
    assert names == [["a", "b", "", "", "c"], ["a", "b", "d", "d", "c"], ["", "", "", "", "c"]]
    ids, names = aligned("a b", "x y a b")
    assert ids == [[2, 3], [0, 1, 2, 3]]
    assert names[0] == ["", "", "a", "b"]
    assert aligned("a big ##ger", "a wid ##er", mode="words")[1] == [["a", "bigger"], ["a", "wider"]]


def test_a_second_text_begins_where_most_attention_moves(encoder, tokenizer):
    view = sentence_view(encoder, tokenizer, TIRED, token="it", other=WIDE)
    data = drawn(view)
    one, other = data["weights"]
    moved = (one - other).abs().sum(dim=-1)[:, :, 10] / 2
    assert data["first"] == {"token": 10, "layer": 3, "head": 1, "mode": "pieces", "both": True}
    assert moved.argmax() == 3 * 12 + 1
    assert view.summary.startswith(f"{moved.max():.2f} of the attention of “it” moves, mainly from “animal” to “[CLS]”")
    chosen = drawn(sentence_view(encoder, tokenizer, TIRED, layer=5, other=WIDE))["first"]
    moved = (one - other).abs().sum(dim=-1)[5, :, 1:14]
    assert moved[chosen["head"], chosen["token"] - 1] == moved.max()
    assert chosen["layer"] == 5


def test_a_second_model_reads_the_same_text(encoder, tokenizer):
    changed = copy.deepcopy(encoder)
    with torch.no_grad():
        changed.layers[4].attention.query.weight.mul_(1.5)
    data = drawn(sentence_view(encoder, tokenizer, TIRED, other=(changed, tokenizer)))
    with torch.no_grad():
        weights = torch.cat(changed(**tokenizer(TIRED), output_attentions=True).attentions)
    torch.testing.assert_close(data["weights"][1], weights, rtol=0, atol=1e-6)
    assert data["models"]
    assert data["labels"] == ["first", "second"]
    assert data["first"]["layer"] == 4
    view = sentence_view(encoder, tokenizer, TIRED, other=changed, labels=["before", "after"])
    assert view.summary.endswith("above: before, below: after")
    view = sentence_view(encoder, tokenizer, TIRED, token="it", other=copy.deepcopy(encoder))
    assert view.summary.startswith("“it” gives the same in both")


@pytest.mark.long
def test_command_line_compares_models_and_texts(tmp_path, encoder, tokenizer):
    page, folder = tmp_path / "page.html", checkpoint_folder()
    main(["sentence", WIDE, "--other", TIRED, "--token", "it", "--words", "--save", str(page)])
    assert page.read_text("utf-8") == sentence_view(*official(folder), WIDE, other=TIRED, token="it", words=True).page
    model, _ = official(folder)
    with torch.no_grad():
        model.encoder.layer[2].attention.self.key.weight.mul_(2)
    model.save_pretrained(tmp_path / "B")
    load_official_tokenizer(folder).save_pretrained(tmp_path / "B")
    main(["sentence", TIRED, "--model", str(folder), "--other-model", str(tmp_path / "B"), "--save", str(page)])
    data = drawn(SimpleNamespace(page=page.read_text("utf-8")))
    assert data["models"] is True
    assert data["first"]["both"] is True
    assert data["first"]["layer"] == 2


def official(folder) -> tuple:
    return load_official(folder, AutoModel), load_official_tokenizer(folder)


def test_letters_from_the_right_are_isolated_in_sentences():
    assert sentence.quoted("ספר") == "“\u2068ספר\u2069”"
    assert sentence.quoted(" it") == "“ it”"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"token": "slow"}, ValueError, "token='slow' is not among the tokens of the text: use one of time, flies"),
        ({"token": 3}, ValueError, "token names 3, but there are 3: use 0 to 2"),
        ({"layer": True}, ValueError, r"layer must be one of the layers shown, \[0, 1\], got True"),
        ({"head": 4}, ValueError, "head names 4, but there are 4: use 0 to 3"),
        ({"other": "time flies"}, TypeError, r"other must be a tuple \(attention, tokens\) .* got str: pass a model"),
        ({"other": (ATTENTION, TOKENS)}, ValueError, "other repeats the tokens 'time flies fast', with the same weig"),
        ({"other": (ATTENTION.flip(0), TOKENS), "labels": ["one"]}, ValueError, "labels must be a list of 2 names"),
        (
            {"other": (ATTENTION[:1], ["time", "flies", "by"])},
            ValueError,
            "other must have as many layers and heads, 2 layers × 4 heads, got 1 layers × 4 heads",
        ),
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
        (["wide", 3], r"other must be a text, or a list of texts, of at least one word, or a second model, got"),
        (" ", "other must be a text, or a list of texts, of at least one word, or a second model, got ' '"),
        (5, "other must be a text, or a list of texts, of at least one word, or a second model, got 5"),
    ]:
        with pytest.raises(TypeError, match=message):
            sentence_view(encoder, tokenizer, TIRED, other=other)
    with pytest.raises(ValueError, match="other must hold 1 to 5 texts, got 6"):
        sentence_view(encoder, tokenizer, TIRED, other=[WIDE] * 6)
    with pytest.raises(TypeError, match=r"with attentions, other must be .*, not a model: pass two models, or none"):
        sentence_view(ATTENTION, TOKENS, other=encoder)


def test_two_sides_raise():
    model, tokenizer = sharp_model("bart", TWO_SIDES["bart"] | {"vocab_size": 300}), byte_level(["the cat sat"])
    with pytest.raises(ValueError, match=r"encoder_attention and decoder_attention and cross_attention: .*get_encoder"):
        sentence_view(model, tokenizer, "the cat", "sat")
    side = drawn(sentence_view(model.get_encoder(), tokenizer, "the cat"))
    assert side["weights"][0].shape[:2] == (2, 4)
    with pytest.raises(ValueError, match="one text to itself, got cross_attention: pass encoder_attention or"):
        sentence_view(cross_attention=ATTENTION, decoder_tokens=TOKENS, encoder_tokens=["a", "b", "c"])
