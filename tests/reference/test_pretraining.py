"""Pretraining learns, goes on after a stop as if there had been none, and loses nothing."""

import errno
from itertools import islice

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig

from tests.helpers import TINY, names, run_pretraining
from utils import pretraining, saving
from utils.encoder import TransformerEncoder
from utils.evaluation import Team
from utils.masked_lm import TransformerForMaskedLM, pack, train_vocabulary
from utils.pretraining import (
    STATE_FILE,
    TEMPERATURE,
    PairLearner,
    Pretraining,
    Settings,
    contrast,
    endless_batches,
)
from utils.training import make_optimizer

TEXTS = ["a good film, a very good film", "a bad film", "the bad actor and the good actor"] * 20
SETTINGS = Settings(steps=8, batch_size=4, learning_rate=1e-2, probability=0.3)
DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(pretraining, "ROUND", 3)


def new_run(settings: Settings = SETTINGS, **options) -> Pretraining:
    tokenizer = train_vocabulary(TEXTS, 80)
    rows = pack(TEXTS, tokenizer, 16)
    torch.manual_seed(0)
    config = TINY | DROPOUT | {"vocab_size": len(tokenizer.vocab), "initializer_range": 0.1} | options
    return Pretraining(TransformerForMaskedLM(BertConfig(**config)), tokenizer, rows, rows, settings)


def weights_of(run: Pretraining) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in run.model.parameters()]).clone()


def test_it_learns():
    run = new_run(Settings(steps=60, batch_size=8, learning_rate=2e-2, probability=0.3))
    run.learn(quiet=True)
    assert run.done == len(run.history.step_losses) == 60
    assert [point["step"] for point in run.curve] == list(range(3, 61, 3))
    first, last = run.curve[0], run.curve[-1]
    assert last["loss"] < 0.8 * first["loss"]
    assert last["accuracy"] > first["accuracy"]
    assert last["cpu_minutes"] > first["cpu_minutes"] > 0


@pytest.mark.parametrize("at", [3, 4, 7])
def test_a_run_that_stopped_comes_to_the_same_weights(tmp_path, at):
    whole = new_run()
    whole.learn(quiet=True)
    stopped = new_run()
    stopped.learn(at, tmp_path, quiet=True)
    torch.manual_seed(77)  # chance moves on meanwhile
    resumed = new_run()
    resumed.resume(tmp_path)
    assert resumed.done == at
    assert torch.equal(weights_of(resumed), weights_of(stopped))
    resumed.learn(quiet=True)
    assert torch.equal(weights_of(resumed), weights_of(whole))
    assert resumed.history.step_losses == whole.history.step_losses
    assert resumed.curve[-1]["loss"] == whole.curve[-1]["loss"]


def test_going_on_without_the_optimizer_would_show():
    whole, stopped = new_run(), new_run()
    whole.learn(quiet=True)
    stopped.learn(4, quiet=True)
    forgetful = new_run()
    forgetful.model.load_state_dict(stopped.model.state_dict())
    forgetful.learner.schedule.load_state_dict(stopped.learner.schedule.state_dict())
    forgetful.learn(quiet=True)
    assert not torch.allclose(weights_of(forgetful), weights_of(whole))


def test_what_lies_in_the_folder_is_a_checkpoint(tmp_path):
    run = new_run()
    run.learn(3, tmp_path, quiet=True)
    loaded = TransformerForMaskedLM.from_checkpoint(str(tmp_path))
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), run.model.parameters(), strict=True))
    assert names(tmp_path) == sorted(
        ["config.json", "model.safetensors", "tokenizer_config.json", "training.safetensors", "vocab.txt"]
    )


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"steps": 9}, {}, r"is of a run with steps=8, and steps=9 is asked for: go on with its own"),
        ({"seed": 1}, {}, r"seed=0, and seed=1"),
        ({"probability": 0.2}, {}, r"probability=0.3, and probability=0.2"),
        ({}, {"hidden_size": 24}, r"weights do not fit the configuration"),
    ],
)
def test_another_run_does_not_go_on(tmp_path, settings, options, message):
    new_run().learn(3, tmp_path, quiet=True)
    other = new_run(Settings(**vars(SETTINGS) | settings), **options)
    before = weights_of(other)
    with pytest.raises(ValueError, match=message):
        other.resume(tmp_path)
    assert torch.equal(weights_of(other), before)


@pytest.mark.parametrize("content", [b"", b"{}", b"\0" * 100, "no facts"])
def test_a_state_that_is_not_whole(tmp_path, content):
    if content == "no facts":
        content = pretraining.to_bytes({"model.head.bias": torch.ones(1)})
    (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=r"training\.safetensors cannot be read .*: fetch or save it again"):
        new_run().resume(tmp_path)


def test_a_full_disk_leaves_the_last_round(tmp_path, monkeypatch):
    run = new_run()
    run.learn(3, tmp_path, quiet=True)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saving.os, "fsync", full)
    with pytest.raises(
        OSError, match=r"could not be saved .*No space left.*: choose a place .* with room for it"
    ):
        run.learn(6, tmp_path, quiet=True)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_loss_that_is_not_finite_is_told(tmp_path):
    run = new_run(Settings(steps=8, batch_size=4, learning_rate=1e-2))
    run.learn(3, tmp_path, quiet=True)
    with torch.no_grad():
        run.model.head.bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match=r"the loss is nan at step 4"):
        run.learn(folder=tmp_path, quiet=True)
    resumed = new_run(run.learner.settings)
    resumed.resume(tmp_path)
    assert resumed.done == 3


def test_a_batch_in_which_chance_asks_for_no_word_is_learned_from_too():
    run = new_run(Settings(steps=40, batch_size=1, learning_rate=1e-3, probability=0.02))
    run.learn(quiet=True)
    assert run.done == len(run.history.step_losses) == 40
    assert all(weight.isfinite().all() for weight in run.model.parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 0.0}, r"nothing to train with learning_rate=0\.0"),
        ({"probability": 1.0}, r"probability=1\.0 must lie between 0 and 1"),
        ({"steps": 0}, r"steps=0 must be a whole number from 1"),
        ({"batch_size": 0}, r"batch_size=0 must be a whole number from 1"),
        ({"seed": -1}, r"seed=-1 must be a whole number from 0"),
    ],
)
def test_settings_with_which_nothing_can_be_learned(settings, message):
    with pytest.raises(ValueError, match=message):
        new_run(Settings(**vars(SETTINGS) | settings))


def test_a_vocabulary_of_another_model():
    run = new_run()
    with pytest.raises(ValueError, match=rf"the model's vocab_size is {run.model.config.vocab_size}"):
        Pretraining(run.model, train_vocabulary(TEXTS, 50), run.held_out, run.held_out, SETTINGS)


def test_each_epoch_has_every_row_once_in_another_order(monkeypatch):
    monkeypatch.setattr(pretraining, "WINDOW", 6)
    settings = Settings(batch_size=2)
    batches = list(islice(endless_batches(12, settings), 12))
    rows = torch.tensor(batches).view(2, 12).tolist()
    assert sorted(rows[0]) == sorted(rows[1]) == list(range(12))
    assert rows[0] != rows[1]
    assert set(rows[0][:6]) == set(range(6))  # a window stays together
    assert list(islice(endless_batches(6, settings), 3)) == batches[:3]  # and needs no later rows


# From words to texts


def test_partners_find_each_other():
    """Each word has another one for a partner, which nobody could know."""
    torch.manual_seed(0)
    encoder = TransformerEncoder(BertConfig(**TINY))
    rows = [([2, 5 + number % 20, 3], [2, 25 + number % 20, 3]) for number in range(2000)]
    history = contrast(encoder, rows, batch_size=20)
    assert len(history.step_losses) == 100
    assert history.step_losses[0] > 2.5
    assert history.step_losses[-1] < 1.5
    assert not encoder.training


def test_the_loss_of_pairs_is_that_of_finding_the_partner():
    torch.manual_seed(0)
    encoder = TransformerEncoder(BertConfig(**TINY)).eval()
    rows = [([2, 5, 3], [2, 6, 7, 3]), ([2, 8, 9, 3], [2, 10, 3]), ([2, 11, 3], [2, 12, 3])]
    learner = PairLearner(encoder, rows, torch.arange(3), *make_optimizer(encoder, 1e-3, 1), Team())
    loss, right, total = learner.sums([0, 1, 2])
    means = [[encoder(torch.tensor([ids])).last_hidden_state[0].mean(dim=0) for ids in pair] for pair in rows]
    first, second = (F.normalize(torch.stack(side), dim=-1) for side in zip(*means, strict=True))
    scores = first @ second.T / TEMPERATURE
    torch.testing.assert_close(loss, F.cross_entropy(scores, torch.arange(3), reduction="sum"))
    assert (right, total) == ((scores.argmax(dim=1) == torch.arange(3)).sum(), 3)


# The command


@pytest.mark.long
def test_the_command_leaves_a_folder_of_something_else_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", "utf-8")
    done = run_pretraining(tmp_path)
    assert done.returncode != 0
    assert "holds something else than a run of pretraining: choose an empty folder" in done.stderr
    assert names(tmp_path) == ["thesis.txt"]
