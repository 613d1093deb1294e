"""Token labels equal those of BertForTokenClassification, and transformers reads what we save."""

import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification, BertModel

from tests.helpers import TINY, official_and_ours, ragged_batch, tiny_tokenizer
from utils.encoder import TransformerEncoder
from utils.lora import LoRA, add_lora, merge_lora
from utils.support.checkpoint import load_tokenizer
from utils.support.comparisons import largest_difference
from utils.support.datasets import imdb_reviews
from utils.support.formatting import (
    FORMATS,
    KINDS,
    PairCounts,
    opening_passages,
    restore_formatting,
    score_kind,
    strip_formatting,
)
from utils.support.scores import score_classes, score_spans, spans
from utils.token_labels import (
    IGNORED,
    TransformerForTokenClassification,
    align,
    align_parts,
    join_parts,
    token_classification_loss,
)
from utils.tokenization import WordPieceTokenizer

BATCH = ragged_batch([9, 2, 6, 1], TINY["vocab_size"])
CLASSES = (BertForTokenClassification, TransformerForTokenClassification)


def labels_of(num_labels: int) -> torch.Tensor:
    """Return random labels, with -100 at padding, at the first token and at every third."""
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, num_labels, BATCH["input_ids"].shape, generator=generator)
    labels[:, 0], labels[:, ::3] = IGNORED, IGNORED
    return labels.masked_fill(BATCH["attention_mask"] == 0, IGNORED)


@pytest.mark.parametrize("num_labels", [2, 3, 8])
def test_token_classifier_equals_the_official_model(num_labels):
    official, ours = official_and_ours(*CLASSES, num_labels=num_labels)
    labels, real = labels_of(num_labels), BATCH["attention_mask"].bool()
    expected, logits = official(**BATCH, labels=labels), ours(**BATCH)
    assert logits.shape == (4, 9, num_labels)
    assert largest_difference(logits[real], expected.logits[real]) <= 1e-5
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    assert largest_difference(loss, expected.loss) <= 1e-5
    expected.loss.backward()
    loss.backward()
    renamed = TransformerForTokenClassification(official.config)
    renamed.load_bert_weights({name: weight.grad for name, weight in official.named_parameters()})
    for name, weight in ours.named_parameters():
        assert largest_difference(weight.grad, renamed.state_dict()[name]) <= 1e-5, name


def test_token_classification_loss_equals_the_official_one():
    official, ours = official_and_ours(*CLASSES, num_labels=8)
    rows = [([2, 9, 11, 3], [IGNORED, 5, IGNORED, IGNORED]), ([2, 30, 3], [IGNORED, 1, IGNORED])]
    inputs = {"input_ids": torch.tensor([[2, 9, 11, 3], [2, 30, 3, 0]])}
    inputs["attention_mask"] = (inputs["input_ids"] > 0).long()
    labels = torch.tensor([rows[0][1], [*rows[1][1], IGNORED]])
    loss, _, total = token_classification_loss(ours, rows, [0, 1])
    assert total == 2
    assert largest_difference(loss / total, official(**inputs, labels=labels).loss) <= 1e-5


# Labels at pieces


def test_align_labels_the_first_piece(tokenizer):
    ids, labels = align(["an", "unaffable", "kurosawa"], [4, 0, 5], tokenizer)
    assert ids == tokenizer.encode("an unaffable kurosawa")
    assert labels == [IGNORED, 4, 0, IGNORED, IGNORED, 5, IGNORED, IGNORED, IGNORED]


@pytest.mark.long
def test_align_takes_both_tokenizers():
    texts = opening_passages(imdb_reviews("test")[:200])
    ours, official = WordPieceTokenizer.from_checkpoint(), load_tokenizer()
    assert all(align(*text, ours) == align(*text, official) for text in texts)


@pytest.mark.parametrize("word", ["\x96", "\u200b", "", " "])
def test_align_keeps_labels_of_words_without_pieces(tokenizer, word):
    ids, labels = align(["a", word, "b"], [1, 2, 3], tokenizer)
    assert [label for label in labels if label != IGNORED] == [1, 2, 3]
    assert len(ids) == len(labels)


def test_align_takes_no_words(tokenizer):
    assert align([], [], tokenizer) == (tokenizer.encode(""), [IGNORED, IGNORED])


def test_align_refuses_a_missing_label(tokenizer):
    with pytest.raises(ValueError, match="2 words and 1 labels: pass one label per word"):
        align(["a", "b"], [1], tokenizer)


# Labels for free


def test_restore_formatting_inverts_strip_formatting():
    text = "Is it good? Yes, said Kurosawa. I don't know, sir."
    words, labels = strip_formatting(text)
    assert " ".join(words) == "is it good yes said kurosawa i don't know sir"
    assert restore_formatting(words, labels) == text


@pytest.mark.parametrize(
    ("text", "words", "label"),
    [
        ('"Well..."', ["well"], "Word."),
        ("film!", ["film"], "word."),
        ("(really)", ["really"], "word"),
        ("DVD,", ["dvd"], "Word,"),
        ("- --", [], None),
    ],
)
def test_strip_formatting_labels_single_words(text, words, label):
    found = strip_formatting(text)
    assert found.words == words
    assert [FORMATS[number] for number in found.labels] == [label] * len(words)


def test_opening_passages_are_complete_sentences():
    first = "One two three. Four five six seven eight!"
    assert opening_passages([f"{first} {'nine ' * 33}ten.", "Too short."]) == [strip_formatting(first)]


# Scores


def test_score_kind_ignores_first_capital_and_last_mark():
    truth, answers = [[4, 0, 5, 4, 2]], [[4, 4, 5, 0, 2]]
    capital = score_kind(truth, answers, KINDS["capital"])
    assert capital == (1, 2, 2)
    assert capital.precision == 0.5
    assert capital.recall == 0.5
    assert capital.f1 == 0.5
    assert score_kind(truth, answers, KINDS["comma"]) == (1, 1, 1)
    assert score_kind(truth, answers, KINDS["full stop"]) == (0, 0, 0)
    assert score_kind(truth, answers, KINDS["full stop"]).f1 == 0


# what seqeval 1.2.2 says of 150 texts of random labels; version 1.1.0 has the program, seqeval_answers.py
SEQEVAL = json.loads((Path(__file__).parent / "seqeval.json").read_text("utf-8"))


def test_spans_equal_those_of_seqeval():
    assert [spans(labels) for labels in SEQEVAL["truth"]] == [set(map(tuple, found)) for found in SEQEVAL["spans"]]


@pytest.mark.parametrize("kind", SEQEVAL["scores"])
def test_score_spans_equals_seqeval(kind):
    sides = [
        [{span for span in spans(labels) if kind in (span[0], "micro avg")} for labels in SEQEVAL[side]]
        for side in ("truth", "answers")
    ]
    found = score_spans(*sides)
    assert [found.precision, found.recall, found.f1, found.gold] == pytest.approx(SEQEVAL["scores"][kind])
    assert 0.1 < found.f1 < 0.9


def test_spans_continue_labels_without_prefix():
    assert spans(["A", "A", "B", "O", "A", "B-A"]) == {("A", 0, 2), ("B", 2, 3), ("A", 4, 5), ("A", 5, 6)}


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("U-ORG O B-PER I-PER L-PER O B-LOC L-LOC", {("ORG", 0, 1), ("PER", 2, 5), ("LOC", 6, 8)}),
        ("B-PER M-PER E-PER S-ORG B-LOC", {("PER", 0, 3), ("ORG", 3, 4), ("LOC", 4, 5)}),
        ("I I B O I", {("_", 0, 2), ("_", 2, 3), ("_", 4, 5)}),  # IOB1
        ("U B L U o", {("_", 0, 1), ("_", 1, 3), ("_", 3, 4)}),
        ("A B B", {("A", 0, 1), ("B", 1, 3)}),  # names of classes
    ],
)
def test_spans_take_other_schemes(labels, wanted):
    assert spans(labels.split()) == wanted


def test_spans_keep_class_names_without_scheme():
    assert spans(["U-Bahn", "U-Bahn", "O", "S-Bahn"], ["O", "S-Bahn", "U-Bahn"]) == {("U-Bahn", 0, 2), ("S-Bahn", 3, 4)}
    assert spans(["hepatitis-B"] * 2, ["O", "hepatitis-B"]) == {("hepatitis-B", 0, 2)}
    assert spans(["U-PER", "U-PER"], ["B-PER", "O", "U-PER"]) == {("PER", 0, 1), ("PER", 1, 2)}


@pytest.mark.parametrize("label", ["b_per", "B PER", "PER-B"])
def test_spans_read_other_spellings(label):
    names = [label, label.replace("b", "i").replace("B", "I"), "o" if label.islower() else "O"]
    labels = [names[0], names[1], names[0], names[2]]
    assert {(start, end) for _, start, end in spans(labels, names)} == {(0, 2), (2, 3)}
    assert len(spans(labels, [*names, "person"])) == 3  # not a scheme that all labels follow


def test_score_classes_scores_each_class():
    found = score_classes([["a", "b", "a"]], [["a", "a", "c"]], ["a", "b", "c"])
    assert found == {"a": (1, 2, 2), "b": (0, 0, 1), "c": (0, 1, 0)}


def test_align_parts_cuts_between_words():
    tokenizer = tiny_tokenizer()
    words, labels = ["a", "b", "zz", "c", "d"], [0, 1, 2, 1, 0]
    rows = align_parts(words, labels, tokenizer, 4)
    assert [labels for _, labels in rows] == [[-100, *part, -100] for part in ([0, 1], [2, 1], [0])]
    assert [ids[1:-1] for ids, _ in rows] == [tokenizer.ids_of(part) for part in ("a b", "zz c", "d")]
    assert align_parts(words, labels, tokenizer, 7) == [align(words, labels, tokenizer)]
    assert join_parts([[0, 1], [2, 1], [0], [5]], [3, 1]) == [labels, [5]]


def test_align_parts_refuses_a_word_longer_than_a_row(tokenizer):
    with pytest.raises(ValueError, match=r"'unaffable' has 3 pieces, and a row takes 2: use a model with more"):
        align_parts(["an", "unaffable"], [0, 0], tokenizer, 4)


def test_pair_counts_fall_back_on_words_then_0():
    rival = PairCounts(list(map(strip_formatting, ("Mr. Smith said so, twice.", "so it is", "so it was"))))
    assert rival.predict(["mr", "smith", "so", "twice", "so", "unheard"]) == [6, 4, 1, 2, 0, 0]


# Training


def test_lora_starts_as_the_model_and_merges_into_it():
    _, model = official_and_ours(*CLASSES, num_labels=3)
    model.double()
    before = model(**BATCH)
    add_lora(model, rank=2)
    with pytest.raises(ValueError, match=r"the model has LoRA already: call merge_lora\(model\) first"):
        add_lora(model, rank=2)
    model.double()
    learning = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert {name for name in learning if "classifier" in name} == {"classifier.weight", "classifier.bias"}
    assert len(learning) == 2 * 2 * 6 + 2  # two layers of six linear ones, two thin matrices each, and the head
    assert largest_difference(model(**BATCH), before) <= 1e-12
    for module in model.modules():
        if isinstance(module, LoRA):
            torch.nn.init.normal_(module.up)
    learned = model(**BATCH)
    assert largest_difference(learned, before) > 0.01
    merge_lora(model)
    assert not any(isinstance(module, LoRA) for module in model.modules())
    assert set(model.state_dict()) == set(official_and_ours(*CLASSES, num_labels=3)[1].state_dict())
    assert largest_difference(model(**BATCH), learned) <= 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [TransformerEncoder, BertModel, BertForSequenceClassification])
def test_lora_takes_berts_of_any_floating_type(kind, dtype):
    """With a random second matrix, the merged model computes what the wrapped one does."""
    torch.manual_seed(0)
    model = kind(BertConfig(**TINY)).to(dtype).eval()
    before = model(**BATCH)[0]
    add_lora(model, rank=2)
    assert torch.equal(model(**BATCH)[0], before)
    for module in model.modules():
        if isinstance(module, LoRA):
            torch.nn.init.normal_(module.up, std=0.1)
    learned = model(**BATCH)[0]
    assert learned.dtype == dtype
    merge_lora(model)
    assert largest_difference(model(**BATCH)[0], learned) <= 60 * torch.finfo(dtype).eps


def test_lora_refuses_other_models_by_name():
    with pytest.raises(
        TypeError, match=r"the layers of a Linear: use a TransformerEncoder, a model with one, or a BERT"
    ):
        add_lora(torch.nn.Linear(2, 2))
