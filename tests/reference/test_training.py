"""Training learns, keeps the best weights whatever ends it, and is the same on one process and on two."""

import os
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig, BertModel

from utils import training
from utils.checkpoints import load_tokenizer
from utils.checks import largest_difference
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import Examples
from utils.evaluation import Team, bootstrap_interval, wilson_interval
from utils.training import History, Learner, evaluate, fine_tune, make_optimizer, predict, rate_factor

TINY = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32}
TINY |= {"vocab_size": 30522, "max_position_embeddings": 24}
GOOD = ["a good film", "good , just good", "what a good story this is , told well", "good !", "so good"]
BAD = ["a bad film", "bad , just bad", "what a bad story this is , told badly", "bad !", "so bad"]
TRAIN = Examples((GOOD + BAD) * 4, ([1] * 5 + [0] * 5) * 4)
VALIDATION = Examples(["a good , good story", "a bad , bad story", "good", "bad"], [1, 0, 1, 0])
SETTINGS = {"epochs": 3, "batch_size": 8, "learning_rate": 2e-2, "quiet": True}


def new_model(**options) -> TransformerForSequenceClassification:
    torch.manual_seed(0)
    return TransformerForSequenceClassification(BertConfig(**TINY, **options)).eval()


def weights_of(model) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()]).clone()


def stop_after(monkeypatch, steps: int, error: BaseException) -> None:
    """Let `error` come up in the step after so many."""
    step, count = Learner.step, []

    def counting(self, batch):
        if len(count) == steps:
            raise error
        count.append(batch)
        return step(self, batch)

    monkeypatch.setattr(Learner, "step", counting)


def test_it_learns_and_keeps_the_best_epoch(tokenizer):
    model = new_model()
    history = fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"epochs": 6})
    assert history.ended == "finished"
    assert len(history.step_losses) == 30
    assert [epoch.total for epoch in history.train + history.validation] == [40] * 6 + [4] * 6
    assert history.train[-1].loss < 0.3 < history.train[0].loss
    assert evaluate(model, tokenizer, VALIDATION) == history.validation[history.best_epoch - 1]
    assert history.validation[history.best_epoch - 1].accuracy == 1
    assert not model.training
    assert history.seconds > 0


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tokenizer):
    results = []
    for seed in (0, 0, 1):
        model = new_model()
        fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS, seed=seed)
        results.append(weights_of(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_the_official_tokenizer_trains_to_the_same_weights(tokenizer, official_tokenizer):
    models = [new_model(), new_model()]
    for model, its_tokenizer in zip(models, (tokenizer, official_tokenizer), strict=True):
        fine_tune(model, its_tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert torch.equal(*map(weights_of, models))


def test_a_frozen_body_stays_as_it_was(tokenizer):
    model = new_model()
    model.encoder.requires_grad_(False)
    body, head = weights_of(model.encoder), weights_of(model.classifier)
    fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert torch.equal(weights_of(model.encoder), body)
    assert not torch.equal(weights_of(model.classifier), head)


def test_in_bfloat16_it_learns_too(tokenizer, monkeypatch):
    monkeypatch.setattr(training, "has_bfloat16", lambda device: True)
    model = new_model()
    history = fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"epochs": 6})
    assert history.train[-1].loss < 0.3
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_early_stopping_puts_the_best_weights_back(tokenizer, monkeypatch):
    model, kept = new_model(), []
    accuracies = iter([0.5, 0.75, 0.75, 0.5])

    def fake_evaluate(model, *arguments, **options):
        kept.append(weights_of(model))
        return training.Evaluation(0.6 + 0.01 * len(kept), next(accuracies), 4)

    monkeypatch.setattr(training, "evaluate", fake_evaluate)
    history = fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"epochs": 9}, patience=2)
    assert (history.ended, history.best_epoch, len(history.validation)) == ("early stopping", 2, 4)
    assert torch.equal(weights_of(model), kept[1])


def test_an_epoch_with_the_same_accuracy_is_better_if_its_loss_is_lower():
    history, scores = History(), [(0.5, 0.8), (0.4, 0.8), (0.1, 0.7)]
    records = [history.record(*[training.Evaluation(loss, accuracy, 10)] * 2) for loss, accuracy in scores]
    assert records == [True, True, False]
    assert history.best_epoch == 2


def test_an_interrupt_before_the_first_validation_keeps_what_there_is(tokenizer, monkeypatch):
    model = new_model()
    before = weights_of(model)
    stop_after(monkeypatch, 3, KeyboardInterrupt())
    history = fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert (history.ended, history.best_epoch, len(history.step_losses)) == ("interrupted", None, 3)
    assert not torch.equal(weights_of(model), before)
    assert not model.training


def test_an_interrupt_later_puts_the_best_weights_back(tokenizer, monkeypatch):
    model = new_model()
    stop_after(monkeypatch, 12, KeyboardInterrupt())  # five steps an epoch: in the third
    history = fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert (history.ended, len(history.step_losses), len(history.validation)) == ("interrupted", 12, 2)
    assert evaluate(model, tokenizer, VALIDATION) == history.validation[history.best_epoch - 1]


@pytest.mark.parametrize("good_steps", [0, 2, 7])
def test_a_loss_that_is_not_finite_stops_it(tokenizer, monkeypatch, good_steps):
    model, calls = new_model(), []
    before, summed = weights_of(model), training.summed

    def spoiled(logits, labels):
        calls.append(len(labels))
        return summed(logits * (float("nan") if len(calls) > good_steps else 1), labels)

    monkeypatch.setattr(training, "summed", spoiled)
    message = (
        rf"the loss is nan at step {good_steps + 1}, with a learning rate of .*: train again with a lower one"
    )
    with pytest.raises(FloatingPointError, match=message):
        fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)
    assert weights_of(model).isfinite().all()
    assert torch.equal(weights_of(model), before) == (good_steps < 5)  # no epoch was over yet
    assert not model.training


def test_a_learning_rate_that_is_far_too_high_stops_it(tokenizer):
    model = new_model()
    with pytest.raises(FloatingPointError, match=r"the loss is (nan|inf) at step \d+"):
        fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS | {"learning_rate": 1e20})
    assert weights_of(model).isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, r"epochs=0 and batch_size=8 must both be 1 or more"),
        ({"batch_size": 0}, r"epochs=3 and batch_size=0 must both be 1 or more"),
        ({"learning_rate": 0.0}, r"nothing to train with learning_rate=0.0"),
        ({"learning_rate": float("nan")}, r"nothing to train with learning_rate=nan"),
        ({"max_length": 2}, r"max_length=2 leaves no room for a word"),
        ({"train": Examples([], [])}, r"got an empty list: pass one text or more"),
        ({"validation": Examples([], [])}, r"got an empty list: pass one text or more"),
        ({"train": Examples(["a", " "], [0, 1])}, r"text 1 is empty"),
        (
            {"train": Examples(["a", "b"], [0, 2])},
            r"label 2 of text 1 is outside the classes 0 … 1 of the model",
        ),
        ({"validation": Examples(["a"], [-1])}, r"label -1 of text 0 is outside the classes 0 … 1"),
        ({"train": Examples(["a"], [0.5])}, r"label 0.5 of text 0 is outside the classes"),
    ],
)
def test_bad_input_to_training(tokenizer, change, message):
    model = new_model()
    before = weights_of(model)
    settings = {"train": TRAIN, "validation": VALIDATION} | SETTINGS | change
    with pytest.raises(ValueError, match=message):
        fine_tune(model, tokenizer, **settings)
    assert torch.equal(weights_of(model), before)


def test_everything_frozen(tokenizer):
    model = new_model().requires_grad_(False)
    with pytest.raises(ValueError, match=r"0 weights that require gradients: .* leave the head trainable"):
        fine_tune(model, tokenizer, TRAIN, VALIDATION, **SETTINGS)


def test_examples_must_be_examples(tokenizer):
    with pytest.raises(TypeError, match=r"examples must be Examples\(texts, labels\), got tuple"):
        evaluate(new_model(), tokenizer, (["a"], [1]))


def test_evaluation_counts_every_example(tokenizer):
    model = new_model()
    examples = Examples(TRAIN.texts[:7], [1, 1, 1, 1, 1, 1, 0])
    labels, probabilities = predict(model, tokenizer, examples.texts)
    loss, accuracy, total = evaluate(model, tokenizer, examples, batch_size=3)
    targets = torch.tensor(examples.labels)
    assert total == 7
    assert accuracy == pytest.approx((labels == targets).float().mean().item())
    assert loss == pytest.approx(-probabilities[torch.arange(7), targets].log().mean().item(), abs=1e-6)


def test_two_hundred_sentences_in_one_call(tokenizer):
    model = new_model(num_labels=3).train()
    texts = [f"{'really ' * (number % 17)}good film number {number}" for number in range(200)]
    labels, probabilities = predict(model, tokenizer, texts)
    assert model.training  # dropout was off only while it predicted
    assert labels.shape == (200,)
    assert probabilities.shape == (200, 3)
    assert torch.equal(labels, probabilities.argmax(dim=1))
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(200))
    alone = torch.cat([predict(model, tokenizer, [text]).probabilities for text in texts[:20]])
    assert largest_difference(probabilities[:20], alone) <= 1e-5


def test_a_text_longer_than_the_positions_is_cut(tokenizer):
    model, text = new_model(), "good bad " * 100
    whole = predict(model, tokenizer, [text]).probabilities
    assert torch.equal(
        whole, predict(model, tokenizer, ["good bad " * 11]).probabilities
    )  # 22 + 2 = 24 positions
    assert torch.equal(predict(model, tokenizer, [text], max_length=99).probabilities, whole)
    short = predict(model, tokenizer, [text], max_length=5).probabilities
    assert torch.equal(short, predict(model, tokenizer, ["good bad good"]).probabilities)


@pytest.mark.parametrize(("texts", "message"), [([], "empty list"), (["good", ""], "text 1 is empty")])
def test_bad_input_to_prediction(tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        predict(new_model(), tokenizer, texts)


def test_the_learning_rate_rises_and_falls():
    factors = [rate_factor(step, 100) for step in range(101)]
    assert factors[0] == pytest.approx(0.1)
    assert max(factors) == factors[9] == factors[10] == 1
    assert factors[55] == pytest.approx(0.5)
    assert factors[100] == 0
    assert rate_factor(0, 1) == 1


def test_biases_and_norms_are_not_decayed():
    model = new_model()
    optimizer, _ = make_optimizer(model, 1e-3, steps=10)
    decayed, kept = optimizer.param_groups
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.01, 0.0)
    assert len(decayed["params"]) + len(kept["params"]) == len(list(model.parameters()))
    assert all(weight.dim() == 1 for weight in kept["params"])


def test_intervals():
    assert wilson_interval(0, 10) == pytest.approx(
        (0, 0.2775), abs=1e-4
    )  # Newcombe 1998, Wilson's score method
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)
    low, high = bootstrap_interval(torch.arange(100).tolist())
    assert low == pytest.approx(49.5 - 1.96 * 2.887, abs=0.5)
    assert high == pytest.approx(49.5 + 1.96 * 2.887, abs=0.5)
    for right, total in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=r"the count must lie between 0 and a total above 0"):
            wilson_interval(right, total)
    for values in ([], [1.0, float("nan")]):
        with pytest.raises(ValueError, match=r"one finite number or more"):
            bootstrap_interval(values)


class Pretended:
    """An accelerator of three processes of which this is one."""

    num_processes = 3

    def __init__(self, process_index: int):
        self.process_index = process_index


@pytest.mark.parametrize("count", [2, 3, 10])
def test_a_team_shares_out_every_item_once(count):
    shares = [Team(Pretended(rank)).share(list(range(count))) for rank in range(3)]
    assert sorted(item for share in shares for item in share) == list(range(count))


def test_batches_too_small_to_share(tokenizer):
    with pytest.raises(ValueError, match=r"a batch of 2 examples cannot be shared by 3 processes"):
        training.plan_batches([[1]] * 20, 1, batch_size=2, seed=0, team=Team(Pretended(0)))


def run_training(checkpoint, folder, processes: int) -> str:
    """`accelerate launch -m utils.training`, with a time limit; what it printed."""
    command = [sys.executable, "-W", "ignore", "-m", "accelerate.commands.launch", "--multi_gpu"]
    command += ["--num_processes", str(processes), "--num_machines", "1", "--mixed_precision", "no"]
    command += ["--dynamo_backend", "no", "--main_process_port", "0", "--num_cpu_threads_per_process", "1"]
    command += [
        "-m",
        "utils.training",
        "--cpu",
        "--checkpoint",
        str(checkpoint),
        "--limit",
        "41",
        "--epochs",
        "2",
    ]
    command += ["--batch-size", "8", "--learning-rate", "1e-3", "--save", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def test_two_processes_train_to_the_weights_of_one(tmp_path, monkeypatch, capsys):
    """Each example once an epoch, gradients averaged, metrics over all: otherwise the weights would differ."""
    config = BertConfig(**TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(tmp_path / "tiny")
    load_tokenizer().save_pretrained(tmp_path / "tiny")
    printed = run_training(tmp_path / "tiny", tmp_path / "two", processes=2)
    assert "2 processes" in printed
    arguments = (
        f"--cpu --checkpoint {tmp_path / 'tiny'} --limit 41 --epochs 2 --batch-size 8 --learning-rate 1e-3"
    )
    monkeypatch.setattr(sys, "argv", ["training", *arguments.split(), "--save", str(tmp_path / "one")])
    training.main()
    alone = capsys.readouterr().out
    assert "1 processes" in alone
    assert printed.splitlines()[-1] == alone.splitlines()[-1]  # the test accuracy and its interval
    one, two = (TransformerForSequenceClassification.load(tmp_path / name) for name in ("one", "two"))
    torch.manual_seed(0)
    untrained = TransformerForSequenceClassification.from_checkpoint(tmp_path / "tiny")
    assert largest_difference(weights_of(one), weights_of(two)) <= 1e-4
    assert largest_difference(weights_of(one), weights_of(untrained)) > 1e-3
