"""Evaluation counts every example, and prediction takes texts of any length, without dropout."""

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.support.comparisons import largest_difference
from utils.support.datasets import Examples
from utils.training import evaluate, predict


@pytest.fixture
def tokenizer():
    return tiny_tokenizer()


def new_model(**options) -> TransformerForSequenceClassification:
    torch.manual_seed(0)
    model = TransformerForSequenceClassification(BertConfig(**TINY, **options)).eval()
    for weight in model.parameters():
        if weight.dim() > 1:  # BERT starts with weights too small to tell texts apart
            torch.nn.init.normal_(weight)
    return model


def test_evaluate_counts_every_example(tokenizer):
    model = new_model()
    examples = Examples(["a", "b c", "d e f g", "h", "i j", "k", "l m n o p q"], [1, 1, 1, 1, 1, 1, 0])
    labels, probabilities = predict(model, tokenizer, examples.texts)
    loss, accuracy, total = evaluate(model, tokenizer, examples, batch_size=3)
    targets = torch.tensor(examples.labels)
    assert total == 7
    assert accuracy == pytest.approx((labels == targets).float().mean().item())
    assert loss == pytest.approx(-probabilities[torch.arange(7), targets].log().mean().item(), abs=1e-6)


def test_predict_takes_two_hundred_texts(tokenizer):
    model = new_model(num_labels=3).train()
    texts = [f"{'a ' * (number % 17)}b c {number % 20}" for number in range(200)]
    labels, probabilities = predict(model, tokenizer, texts)
    assert labels.shape == (200,)
    assert probabilities.shape == (200, 3)
    assert torch.equal(labels, probabilities.argmax(dim=1))
    assert len(labels.unique()) > 1
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(200))
    alone = torch.cat([predict(model, tokenizer, [text]).probabilities for text in texts[:20]])
    assert largest_difference(probabilities[:20], alone) <= 1e-5
