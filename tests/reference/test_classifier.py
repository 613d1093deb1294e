"""The classifier equals BertForSequenceClassification in logits, loss and gradients, and takes its weights."""

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from tests.helpers import TINY, official_and_ours, ragged_batch
from utils.classifier import TransformerForSequenceClassification, leave_one_out
from utils.support.comparisons import largest_difference

BATCH = ragged_batch([9, 2, 6, 1], TINY["vocab_size"])
CLASSES = (BertForSequenceClassification, TransformerForSequenceClassification)


@pytest.mark.parametrize("num_labels", [2, 3, 7])
def test_classifier_equals_the_official_model(num_labels):
    official, ours = official_and_ours(*CLASSES, num_labels=num_labels)
    labels = torch.tensor([0, 1, num_labels - 1, 0])
    expected, logits = official(**BATCH, labels=labels), ours(**BATCH)
    assert logits.shape == (4, num_labels)
    assert largest_difference(logits, expected.logits) <= 1e-5
    assert largest_difference(F.cross_entropy(logits, labels), expected.loss) <= 1e-5


def test_classifier_gradients_equal_the_official_ones():
    official, ours = official_and_ours(*CLASSES)
    labels = torch.tensor([0, 1, 1, 0])
    official(**BATCH, labels=labels).loss.backward()
    F.cross_entropy(ours(**BATCH), labels).backward()
    assert largest_difference(ours.pooler.weight.grad, official.bert.pooler.dense.weight.grad) <= 1e-5
    word_grads = [model.embeddings.word_embeddings.weight.grad for model in (ours.encoder, official.bert)]
    assert largest_difference(*word_grads) <= 1e-5


@pytest.mark.parametrize(("own", "used"), [(None, 0.4), (0.0, 0.0), (0.2, 0.2)])
def test_classifier_takes_dropout_of_its_own(own, used):
    config = BertConfig(**TINY, hidden_dropout_prob=0.4, classifier_dropout=own)
    assert TransformerForSequenceClassification(config).dropout.p == used


def test_classifier_leaves_the_configuration_unchanged():
    config = BertConfig(**TINY)
    before = config.to_dict()
    TransformerForSequenceClassification(config)
    assert config.to_dict() == before


def test_leave_one_out_removes_one_occurrence_and_keeps_the_order():
    words = ["very", "very", "bad"]
    assert leave_one_out(len, words) == [1, 1, 1]
    assert leave_one_out(lambda rest: float("".join(rest) == "verybad"), words) == [-1, -1, 0]
    assert words == ["very", "very", "bad"]
