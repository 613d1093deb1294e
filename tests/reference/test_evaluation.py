"""Evaluation counts every example, and prediction takes texts of any length, without dropout."""

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.search import embed
from utils.support.datasets import Examples
from utils.support.notebook import largest_difference
from utils.tokenization import WordPieceTokenizer
from utils.training import evaluate, fine_tune, predict


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


def test_predict_truncates_to_the_positions(tokenizer):
    model, text = new_model(), "a b " * 100
    whole = predict(model, tokenizer, [text]).probabilities
    assert torch.equal(whole, predict(model, tokenizer, ["a b " * 7]).probabilities)  # 14 + 2 = 16 positions
    assert torch.equal(predict(model, tokenizer, [text], max_length=99).probabilities, whole)
    short = predict(model, tokenizer, [text], max_length=5).probabilities
    assert torch.equal(short, predict(model, tokenizer, ["a b a"]).probabilities)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ([], ValueError, "empty list"),
        (["a", ""], ValueError, "text 1 is empty"),
        ("a", TypeError, "wrap one text in a list"),
    ],
)
def test_predict_refuses_bad_texts(tokenizer, texts, error, message):
    with pytest.raises(error, match=message):
        predict(new_model(), tokenizer, texts)


def test_evaluate_refuses_anything_but_examples(tokenizer):
    with pytest.raises(TypeError, match=r"examples must be Examples\(texts, labels\), got tuple"):
        evaluate(new_model(), tokenizer, (["a"], [1]))


@pytest.mark.parametrize("label", [2, -1])
def test_evaluate_refuses_labels_that_are_not_classes(tokenizer, label):
    with pytest.raises(ValueError, match=rf"labels must be from 0 to 1, got {label!r} for text 1"):
        evaluate(new_model(), tokenizer, Examples(["a", "b"], [0, label]))


@pytest.mark.parametrize("label", [0.5, "1"])
def test_evaluate_refuses_labels_that_are_not_integers(tokenizer, label):
    kind = type(label).__name__
    with pytest.raises(TypeError, match=rf"labels must be integers, got {kind}: {label!r} of text 1: use int\(label\)"):
        evaluate(new_model(), tokenizer, Examples(["a", "b"], [0, label]))


USES = {
    "predict": lambda model, tokenizer: predict(model, tokenizer, ["a"]),
    "evaluate": lambda model, tokenizer: evaluate(model, tokenizer, Examples(["a"], [1])),
    "fine_tune": lambda model, tokenizer: fine_tune(model, tokenizer, *[Examples(["a"], [1])] * 2, epochs=1),
    "embed": lambda model, tokenizer: embed(["a"], model.encoder, tokenizer),
    "save": lambda model, tokenizer: model.save("nowhere", tokenizer),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (40, r"the tokenizer has 40 tokens with ids up to 39, but the model's vocab_size is 50"),
        (51, r"the tokenizer has 51 tokens with ids up to 50, but the model's vocab_size is 50"),
    ],
)
def test_tokenizer_of_another_model_is_refused(name, size, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        USES[name](new_model(), tiny_tokenizer(size))
    assert list(tmp_path.iterdir()) == []


def test_tokenizer_with_a_gap_in_its_ids_is_refused():
    vocab = tiny_tokenizer(50).vocab
    with_gap = WordPieceTokenizer({token: number + (number > 30) for token, number in vocab.items()})
    with pytest.raises(ValueError, match=r"50 tokens with ids up to 50, but the model's vocab_size is 50"):
        predict(new_model(), with_gap, ["a"])
