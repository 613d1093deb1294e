"""Attention between whole words: the weights that it is made of, for three kinds of tokenizers."""

import random

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.families import byte_level
from views import whole_words
from views.words import guess_word_ids, words_of

TEXT = "the animal didn't cross a wide street because naïve answering machines were too 🙂 unbelievably tired"
WORDS = TEXT.split()
ATTENTION = torch.randn(2, 1, 4, 5, 5, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
PIECES, PIECES_OF = ["i", "call", "##ed", "ian", "##s"], [0, 1, 1, 2, 2]


def sentences(count: int = 200) -> list[str]:
    chance = random.Random(0)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(count)]


def word_piece() -> PreTrainedTokenizerFast:
    plain = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    plain.train_from_iterator(WORDS, trainers.WordPieceTrainer(vocab_size=60, special_tokens=["[UNK]"]))
    return PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")


def unigram() -> PreTrainedTokenizerFast:
    plain = Tokenizer(models.Unigram())
    plain.pre_tokenizer = pre_tokenizers.Metaspace()
    plain.train_from_iterator(WORDS, trainers.UnigramTrainer(vocab_size=60, unk_token="?", special_tokens=["?"]))
    return PreTrainedTokenizerFast(tokenizer_object=plain)


def test_weights_are_summed_over_keys_and_averaged_over_queries():
    merged = whole_words(ATTENTION, PIECES_OF)
    assert merged.shape == (2, 1, 4, 3, 3)
    torch.testing.assert_close(merged[..., 0, 1], ATTENTION[..., 0, 1:3].sum(-1))
    torch.testing.assert_close(merged[..., 1, 0], ATTENTION[..., 1:3, 0].mean(-1))
    torch.testing.assert_close(merged[..., 1, 2], ATTENTION[..., 1:3, 3:].sum(-1).mean(-1))
    assert torch.stack(whole_words(list(ATTENTION), PIECES_OF)).equal(merged)
    cross = whole_words(ATTENTION[..., :2, :], [None, None], PIECES_OF)  # None: a word of its own
    torch.testing.assert_close(cross[..., 2], ATTENTION[..., :2, 3:].sum(-1))
    with pytest.raises(ValueError, match="there are 4 word ids for 5 positions: pass one per token"):
        whole_words(ATTENTION, [0, 1, 1, 2])


@pytest.mark.parametrize("tokenizer", [word_piece(), byte_level(WORDS), unigram()], ids=["word", "byte", "unigram"])
def test_rows_of_words_add_up_to_one_and_names_are_the_text(tokenizer):
    generator, split = torch.Generator().manual_seed(0), 0
    for text in sentences():
        batch = tokenizer(text)
        tokens, ids = batch.tokens(), batch.word_ids()
        weights = torch.randn(3, len(ids), len(ids), generator=generator).mul(3).softmax(dim=-1)
        merged = whole_words(weights, ids)
        assert (merged.sum(dim=-1) - 1).abs().max() < 1e-6
        assert merged.size(-1) == len(words_of(tokens, ids).names) <= len(tokens)
        split += merged.size(-1) < len(tokens)
    assert split > 100  # the control: most texts have a word of several pieces


@pytest.mark.parametrize(
    ("tokens", "ids"),
    [
        (["[CLS]", "call", "##ed", ".", "[SEP]"], [0, 1, 1, 2, 3]),
        (["<s>", "▁call", "ed", ".", "</s>"], [0, 1, 1, 2, 3]),
        (["I", "Ġcall", "ed", ".", "</s>"], [0, 1, 1, 2, 3]),
        (["call", "ed</w>", ".</w>"], [0, 0, 1]),
        (["call", "ed"], [0, 1]),  # no mark: each token is a word
    ],
)
def test_marks_of_tokens_show_their_words(tokens, ids):
    assert guess_word_ids(tokens) == ids


def test_names_of_words():
    assert words_of(["[CLS]", "call", "##ed"], [None, 0, 0]).names == ["[CLS]", "called"]
    assert words_of([" so", "🙂·1", "🙂·2", "🙂·3"], [0, 1, 1, 1]).names == [" so", "🙂"]
