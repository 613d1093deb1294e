"""fine_tune.py in a separate process: training in two processes, and evaluating the saved model."""

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import LAUNCH, ROOT, TINY, run_python, weights_of
from utils.classifier import TransformerForSequenceClassification
from utils.support.comparisons import largest_difference
from utils.support.datasets import SENTIMENTS

PROGRAM = [ROOT / "scripts" / "fine_tune.py", "--cpu", "--limit", "41"]
TRAINING = ["--epochs", "2", "--batch-size", "8", "--learning-rate", "1e-3"]


def run(*arguments) -> str:
    """Return the output of Python."""
    done = run_python("-W", "ignore", *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory, official_tokenizer):
    """Return a folder with a checkpoint and two fine-tuned models, by one process and by two, and their output."""
    folder = tmp_path_factory.mktemp("trained")
    config = BertConfig(**TINY | {"vocab_size": 30522, "max_position_embeddings": 24})
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder / "tiny")
    official_tokenizer.save_pretrained(folder / "tiny")
    common = [*PROGRAM, *TRAINING, "--checkpoint", folder / "tiny", "--save"]
    return folder, run(*common, folder / "one"), run(*LAUNCH, *common, folder / "two")


def test_two_processes_train_to_the_weights_of_one(trained):
    """The weights would differ if an example were repeated, or gradients or metrics were not averaged."""
    folder, alone, together = trained
    assert "Training in 1 process: finished" in alone
    assert "Training in 2 processes: finished" in together
    assert together.splitlines()[-1] == alone.splitlines()[-1]  # the test accuracy and its interval
    one, two = (TransformerForSequenceClassification.from_checkpoint(folder / name) for name in ("one", "two"))
    torch.manual_seed(0)
    untrained = TransformerForSequenceClassification.from_checkpoint(folder / "tiny", num_labels=2)
    assert largest_difference(weights_of(one), weights_of(two)) <= 1e-4
    assert largest_difference(weights_of(one), weights_of(untrained)) > 1e-3
    assert tuple(one.config.id2label.values()) == SENTIMENTS
