"""Train, evaluate and apply a classifier, keeping the weights of its best epoch. Built in notebook 08.

`scripts/fine_tune.py` runs this loop from the command line, in one process per GPU.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from utils.support.batches import collate, device_of, evaluation_mode, model_ids, shuffled_batches, sorted_batches
from utils.support.checks import check_finite, check_labels, check_settings
from utils.support.datasets import Examples
from utils.support.products import with_fast_products

WARMUP = 0.1  # share of all steps, as in Google's code for fine-tuning BERT
MAX_GRADIENT_NORM = 1.0  # from the same code
WEIGHT_DECAY = 0.01  # Devlin et al. 2019, appendix A.2


class Evaluation(NamedTuple):
    """Mean cross-entropy (nats) and accuracy over `total` examples.

    Built in notebook 08, exercise 8.4.
    """

    loss: float
    accuracy: float
    total: int


class Predictions(NamedTuple):
    """The most likely class of each text and the probabilities of all classes, on the CPU."""

    labels: Tensor  # (N,)
    probabilities: Tensor  # (N, num_labels), rows sum to 1


@dataclass
class History:
    """Metrics of a training run: the loss of each step, two evaluations per epoch, and how the run ended.

    Built in notebook 08, section “Your own classes, from your own CSV”.
    """

    step_losses: list[float] = field(default_factory=list)
    train: list[Evaluation] = field(default_factory=list)  # during training: with dropout, and weights that change
    validation: list[Evaluation] = field(default_factory=list)
    best_epoch: int | None = None  # counted from 1; None before the first validation
    ended: str = "finished"  # or "early stopping", "interrupted"

    def record(self, train: Evaluation, validation: Evaluation) -> bool:
        """Add an epoch; return True if it is the best so far.

        The best epoch has the highest accuracy, and the lowest loss among epochs with the same accuracy.
        """
        self.train.append(train)
        self.validation.append(validation)
        scores = [(epoch.accuracy, -epoch.loss) for epoch in self.validation]
        self.best_epoch = scores.index(max(scores)) + 1
        return self.best_epoch == len(scores)


# Training


def freeze_lowest(model: nn.Module, number: int) -> None:
    """Freeze the embeddings and the first layers of `model.encoder`, and let everything else be trained.

    Built in notebook 08, exercise 8.2.
    """
    model.requires_grad_(True)
    for module in [model.encoder.embeddings, *model.encoder.layers[:number]]:
        module.requires_grad_(False)


def fine_tune(
    model: nn.Module,
    tokenizer,
    train: Examples,
    validation: Examples,
    *,
    epochs: int = 2,
    batch_size: int = 32,
    learning_rate: float = 5e-5,
    seed: int = 0,
    patience: int = 2,
    max_length: int | None = None,
    quiet: bool = False,
) -> History:
    """Train a classifier in place, and keep the weights of the epoch with the best result on `validation`.

    Only weights that require gradients are trained: AdamW with warm-up and linear decay (Devlin et al. 2019, appendix
    A.2; learning rate, batch size and epochs from the ranges of A.3). ValueError for texts or labels that do not fit
    the model. Otherwise raises and stops as `fit` does.
    Built in notebook 08, section “Your own classes, from your own CSV”.

    Parameters:
        model: a classifier of this series, on any device.
        tokenizer: ours or transformers' own, of the same checkpoint.
        train: the texts and labels to learn.
        validation: texts and labels that choose the epoch to keep; not those of the test.
        epochs: how often each text is read, at most.
        batch_size: texts per step.
        learning_rate: the highest one, reached after a tenth of the steps.
        seed: of the order of the texts and of dropout.
        patience: epochs without improvement after which training stops.
        max_length: tokens of a text that are read; by default as many as the model has positions.
        quiet: draw no progress bars.
    """
    rows, labels = encode(model, tokenizer, train, max_length)
    held_out = encode(model, tokenizer, validation, max_length)
    plan = plan_batches(rows, epochs, batch_size, seed)
    torch.manual_seed(1000 * seed)  # for dropout
    return fit(
        model,
        plan,
        loss=lambda batch: classification_loss(model, rows, labels, batch),
        validate=lambda: evaluate_rows(model, *held_out),
        learning_rate=learning_rate,
        patience=patience,
        quiet=quiet,
    )


def fit(
    model: nn.Module,
    plan: Sequence[Sequence],
    loss: Callable[..., Tensor],
    validate: Callable[[], Evaluation],
    *,
    learning_rate: float,
    patience: int = 2,
    quiet: bool = False,
) -> History:
    """Train on the batches of each epoch in `plan`, and keep the weights of the epoch with the best `validate` result.

    Ctrl-C stops it, and keeps the best epoch, or the current weights if there was no validation yet. Raises
    FloatingPointError if a loss is not finite, after restoring the weights of the best epoch, or the initial ones.
    Built in notebook 08, section “Your own classes, from your own CSV”.

    Parameters:
        model: any module; it is in evaluation mode at the end.
        plan: the batches of each epoch, in whatever form `loss` takes them.
        loss: maps a batch to the three sums of `loss_sums`, (3,).
        validate: evaluates the model after each epoch.
        learning_rate: the highest one, reached after a tenth of the steps.
        patience: epochs without improvement after which training stops.
        quiet: draw no progress bars.
    """
    check_settings(patience=patience)
    history = History()
    optimizer, schedule = make_optimizer(model, learning_rate, steps=sum(len(batches) for batches in plan))
    best = deepcopy(model.state_dict())
    try:
        for epoch, batches in enumerate(plan, start=1):
            progress = {"desc": f"epoch {epoch}/{len(plan)}", "disable": quiet}
            learned = train_epoch(model, batches, loss, optimizer, schedule, history, **progress)
            validated = validate()
            check_finite(validated.loss, len(history.step_losses), learning_rate)
            weights = deepcopy(model.state_dict())
            if history.record(learned, validated):
                best = weights
            elif epoch - history.best_epoch >= patience:
                history.ended = "early stopping"
                break
    except KeyboardInterrupt:
        history.ended = "interrupted"
        best = best if history.best_epoch else deepcopy(model.state_dict())
    finally:
        model.load_state_dict(best)
        model.zero_grad()  # gradients would take as much memory as the model
        model.eval()
    return history


def train_epoch(
    model: nn.Module,
    batches: Iterable,
    loss: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    history: History,
    **progress,
) -> Evaluation:
    """Take a step on every batch, append its loss to `history`, and return the means over all batches.

    `loss` maps a batch to the three sums of `loss_sums`, (3,); `progress` holds options of the progress bar. Raises
    FloatingPointError before a step if its loss is not finite.
    Built in notebook 08, section “Your own classes, from your own CSV”.
    """
    model.train()
    total = torch.zeros(3)
    for batch in (bar := tqdm(batches, unit="step", **progress)):
        optimizer.zero_grad()
        sums = loss(batch)  # forward: sum of losses, correct predictions, examples
        step_loss = summarize(sums).loss
        check_finite(step_loss, len(history.step_losses) + 1, schedule.get_last_lr()[0])
        (sums[0] / sums[2]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        schedule.step()
        total += sums.detach().cpu()
        history.step_losses.append(step_loss)
        bar.set_postfix(loss=f"{step_loss:.3f}")
    return summarize(total)


def classification_loss(model: nn.Module, rows: list[list[int]], labels: Tensor, batch: list[int]) -> Tensor:
    """Return the `loss_sums` of a classifier on the rows of ids with these indices, (3,).

    Built in notebook 08, section “Your own classes, from your own CSV”.
    """
    logits = model(**collate([rows[index] for index in batch], device_of(model)))
    return loss_sums(logits, labels[batch].to(logits.device))


def loss_sums(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of cross-entropies, the number of correct predictions, and the number of examples, (3,).

    Built in notebook 08, exercise 8.4. `logits` are (N, num_labels) and `labels` (N,).
    """
    right = logits.argmax(dim=-1) == labels
    loss = F.cross_entropy(logits.float(), labels, reduction="sum")
    return torch.stack([loss, right.sum(), torch.ones_like(right).sum()])


def summarize(sums: Tensor) -> Evaluation:
    """Turn the sums of `loss_sums`, (3,), into means.

    Built in notebook 08, exercise 8.4.
    """
    loss, right, total = sums.tolist()
    return Evaluation(loss / total, right / total, round(total))


def plan_batches(rows: Sequence[list[int]], epochs: int, batch_size: int, seed: int) -> list[list[list[int]]]:
    """Return the batches of row indices for each epoch. ValueError for zero epochs or an empty batch.

    Built in notebook 08, section “Your own classes, from your own CSV”.
    """
    check_settings(epochs=epochs, batch_size=batch_size, seed=seed)
    return [shuffled_batches(rows, batch_size, seed=1000 * seed + epoch) for epoch in range(epochs)]


def make_optimizer(model: nn.Module, learning_rate: float, steps: int):
    """Return AdamW and its learning-rate schedule. Biases and LayerNorm weights are not decayed.

    Built in notebook 08, section “Your own classes, from your own CSV”.
    """
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    check_settings(learning_rate=learning_rate)
    if not trained:
        raise ValueError("nothing to train, 0 weights require gradients: leave the head trainable at least")
    matrices = {"params": [weight for weight in trained if weight.dim() > 1], "weight_decay": WEIGHT_DECAY}
    vectors = {"params": [weight for weight in trained if weight.dim() <= 1], "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([matrices, vectors], lr=learning_rate, fused=True)  # fused: each weight is read once
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, steps))


def rate_factor(step: int, steps: int) -> float:
    """Return the learning rate's factor at a step, from 0: it rises over the first tenth, then falls to 0.

    Built in notebook 08, section “Your own classes, from your own CSV”.
    """
    warmup = max(1, round(WARMUP * steps))
    return min((step + 1) / warmup, (steps - step) / max(1, steps - warmup))


# Evaluation and prediction


def evaluate(
    model: nn.Module, tokenizer, examples: Examples, *, batch_size: int = 64, max_length: int | None = None
) -> Evaluation:
    """Return loss and accuracy on examples, in evaluation mode; texts are truncated as in `fine_tune`."""
    return evaluate_rows(model, *encode(model, tokenizer, examples, max_length), batch_size)


def predict(
    model: nn.Module, tokenizer, texts: Sequence[str], *, batch_size: int = 64, max_length: int | None = None
) -> Predictions:
    """Classify texts in evaluation mode; each is truncated to `max_length` tokens, and to the model's positions."""
    rows = model_ids(texts, model, tokenizer, max_length)
    probabilities = compute_logits(model, rows, batch_size).softmax(dim=-1)
    return Predictions(probabilities.argmax(dim=-1), probabilities)


def encode(model: nn.Module, tokenizer, examples: Examples, max_length: int | None) -> tuple[list[list[int]], Tensor]:
    """Return the rows of ids and the labels (N,) of examples. ValueError unless the model has each label."""
    if not isinstance(examples, Examples):
        raise TypeError(f"examples must be Examples(texts, labels), got {type(examples).__name__}")
    check_labels(examples.labels, model.config.num_labels)
    rows = model_ids(examples.texts, model, tokenizer, max_length)
    return rows, torch.tensor(examples.labels, dtype=torch.long)


def evaluate_rows(model: nn.Module, rows: list[list[int]], labels: Tensor, batch_size: int = 64) -> Evaluation:
    """Return loss and accuracy on rows of ids with their labels (N,), in evaluation mode."""
    return summarize(loss_sums(compute_logits(model, rows, batch_size), labels))


@torch.no_grad()
def compute_logits(model: nn.Module, rows: list[list[int]], batch_size: int) -> Tensor:
    """Return the logits (N, num_labels) of rows of ids, in their order and on the CPU, in evaluation mode."""
    logits = torch.empty(len(rows), model.config.num_labels)
    with evaluation_mode(model):
        fast = with_fast_products(model, tokens=sum(map(len, rows)))
        for batch in sorted_batches(rows, batch_size):
            logits[batch] = fast(**collate([rows[index] for index in batch], device_of(model))).float().cpu()
    return logits
