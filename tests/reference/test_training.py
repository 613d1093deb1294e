"""Training learns, keeps the best weights however it ends, and gives the same result in several processes."""

from types import SimpleNamespace

import pytest
import torch
from transformers import BertConfig, get_linear_schedule_with_warmup

import processes
from tests.helpers import weights_of
from utils import training
from utils.classifier import TransformerForSequenceClassification
from utils.support.datasets import Examples

SMALL = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32}
SMALL |= {"vocab_size": 30522, "max_position_embeddings": 24}
GOOD = ["a good film", "good , just good", "what a good story this is , told well", "good !", "so good"]
BAD = ["a bad film", "bad , just bad", "what a bad story this is , told badly", "bad !", "so bad"]
TRAIN = Examples((GOOD + BAD) * 4, ([1] * 5 + [0] * 5) * 4)
VALIDATION = Examples(["a good , good story", "a bad , bad story", "good", "bad"], [1, 0, 1, 0])
LOSS = training.classification_loss
SETTINGS = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-2, "quiet": True}


def new_model(**options) -> TransformerForSequenceClassification:
    torch.manual_seed(0)
    return TransformerForSequenceClassification(BertConfig(**SMALL, **options)).eval()


def stop_after(monkeypatch, steps: int, error: BaseException) -> None:
    """Raise `error` in the step after this many."""
    count = []

    def counting(*arguments):
        if len(count) == steps:
            raise error
        count.append(arguments)
        return LOSS(*arguments)

    monkeypatch.setattr(training, "classification_loss", counting)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_freeze_lowest_freezes_from_below(number):
    model = TransformerForSequenceClassification(BertConfig(**SMALL | {"num_hidden_layers": 2}))
    model.requires_grad_(False)  # by an earlier call
    training.freeze_lowest(model, number)
    frozen = {name.split(".")[2] for name, weight in model.named_parameters() if not weight.requires_grad}
    frozen_layers = {str(layer) for layer in range(number)}
    assert {name for name in frozen if name.isdigit()} == frozen_layers
    assert not any(weight.requires_grad for weight in model.encoder.embeddings.parameters())
    assert all(weight.requires_grad for part in (model.pooler, model.classifier) for weight in part.parameters())


def test_fine_tune_learns_and_keeps_the_best_epoch(tokenizer):
    model = new_model()
    history = training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"epochs": 6})
    assert history.ended == "finished"
    assert len(history.step_losses) == 30
    assert [epoch.total for epoch in history.train + history.validation] == [40] * 6 + [4] * 6
    assert history.train[-1].loss < 0.3 < history.train[0].loss
    assert training.evaluate(model, tokenizer, VALIDATION) == history.validation[history.best_epoch - 1]
    assert history.validation[history.best_epoch - 1].accuracy == 1
    assert not model.training


def test_fine_tune_depends_on_the_seed_alone(tokenizer):
    results = []
    for seed in (0, 0, 1):
        model = new_model()
        training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS, seed=seed)
        results.append(weights_of(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_early_stopping_restores_the_best_weights(tokenizer, monkeypatch):
    model, kept = new_model(), []
    accuracies = iter([0.5, 0.75, 0.75, 0.5])

    def fake_evaluate(model, *arguments, **options):
        kept.append(weights_of(model))
        return training.Evaluation(0.6 + 0.01 * len(kept), next(accuracies), 4)

    monkeypatch.setattr(training, "evaluate_rows", fake_evaluate)
    history = training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"epochs": 9}, patience=2)
    assert history.ended == "early stopping"
    assert history.best_epoch == 2
    assert len(history.validation) == 4
    assert torch.equal(weights_of(model), kept[1])


def test_history_breaks_ties_of_accuracy_by_loss():
    history, scores = training.History(), [(0.5, 0.8), (0.4, 0.8), (0.1, 0.7)]
    records = [history.record(*[training.Evaluation(loss, accuracy, 10)] * 2) for loss, accuracy in scores]
    assert records == [True, True, False]
    assert history.best_epoch == 2


def test_early_interrupt_keeps_the_current_weights(tokenizer, monkeypatch):
    model = new_model()
    before = weights_of(model)
    stop_after(monkeypatch, 3, KeyboardInterrupt())
    history = training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert history.ended == "interrupted"
    assert history.best_epoch is None
    assert len(history.step_losses) == 3
    assert not torch.equal(weights_of(model), before)
    assert not model.training


def test_late_interrupt_restores_the_best_weights(tokenizer, monkeypatch):
    model = new_model()
    stop_after(monkeypatch, 12, KeyboardInterrupt())  # five steps an epoch: in the third
    history = training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert history.ended == "interrupted"
    assert len(history.step_losses) == 12
    assert len(history.validation) == 2
    assert training.evaluate(model, tokenizer, VALIDATION) == history.validation[history.best_epoch - 1]


@pytest.mark.parametrize("good_steps", [0, 2, 7])
def test_training_stops_at_a_loss_that_is_not_finite(tokenizer, monkeypatch, good_steps):
    model, calls = new_model(), []
    before = weights_of(model)

    def spoiled(*arguments):
        calls.append(arguments)
        loss, right, total = LOSS(*arguments)
        return torch.stack([loss * (float("nan") if len(calls) > good_steps else 1), right, total])

    monkeypatch.setattr(training, "classification_loss", spoiled)
    message = rf"the loss is nan at step {good_steps + 1}, with a learning rate of .*: use a lower one"
    with pytest.raises(FloatingPointError, match=message):
        training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert weights_of(model).isfinite().all()
    assert torch.equal(weights_of(model), before) == (good_steps < 5)  # no epoch was over yet
    assert not model.training


def test_fine_tune_refuses_a_frozen_model(tokenizer):
    model = new_model().requires_grad_(False)
    with pytest.raises(ValueError, match=r"0 weights require gradients: leave the head trainable"):
        training.fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)


@pytest.mark.parametrize("steps", [2, 4, 15, 16, 100, 427])
def test_learning_rate_equals_that_of_transformers(steps):
    """transformers starts with a step at rate 0; ours leaves it out, so it is one step ahead during warm-up."""
    warmup = max(1, round(0.1 * steps))
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    (theirs,) = get_linear_schedule_with_warmup(optimizer, warmup, steps).lr_lambdas
    for step in range(steps + 1):
        expected = theirs(step + 1) if step < warmup else theirs(step)
        assert training.rate_factor(step, steps) == pytest.approx(expected, abs=1e-12), step


def test_optimizer_does_not_decay_biases_and_norms():
    model = new_model()
    optimizer, _ = training.make_optimizer(model, 1e-3, steps=10)
    decayed, kept = optimizer.param_groups
    assert decayed["weight_decay"] == 0.01
    assert kept["weight_decay"] == 0.0
    assert len(decayed["params"]) + len(kept["params"]) == len(list(model.parameters()))
    assert all(weight.dim() == 1 for weight in kept["params"])


# Several processes


def test_share_refuses_fewer_examples_than_processes():
    member = SimpleNamespace(process_index=0, num_processes=3)
    with pytest.raises(ValueError, match=r"3 processes cannot share 2 examples: use more, or larger batches"):
        processes.share([7, 8], member)
