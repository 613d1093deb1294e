"""Fine-tuning a classifier, on one device or many. Built in notebook 08.

Several GPUs or machines run the same loop in as many processes: `accelerate launch -m utils.training --epochs 3`.
To try that without a GPU: `accelerate launch --multi_gpu --num_processes 2 -m utils.training --cpu`.
"""

import argparse
import math
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

from utils.batches import collate, device_of, shuffled_batches
from utils.checkpoint import load_config
from utils.checks import check_finite
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import LABELS, Examples, reviews
from utils.evaluation import Evaluation, Team, encode, evaluate, predict, summarize, summed
from utils.tokenization import WordPieceTokenizer

__all__ = ["Evaluation", "History", "evaluate", "fine_tune", "predict"]

WARMUP = 0.1  # of all steps, as in the code that Google published for fine-tuning BERT
MAX_GRADIENT_NORM = 1.0  # from there too
WEIGHT_DECAY = 0.01  # Devlin et al. 2019, appendix A.2


@dataclass
class History:
    """What a run of `fine_tune` saw: the loss of each step, both parts after each epoch, and how it ended."""

    step_losses: list[float] = field(default_factory=list)
    train: list[Evaluation] = field(default_factory=list)  # as it learns: dropout on, weights moving
    validation: list[Evaluation] = field(default_factory=list)
    best_epoch: int | None = None  # counted from 1; None before the first validation
    ended: str = "finished"  # or "early stopping", "interrupted"
    seconds: float = 0.0

    def record(self, train: Evaluation, validation: Evaluation) -> bool:
        """Add an epoch; True if it is the best so far: higher accuracy, or the same with a lower loss."""
        self.train.append(train)
        self.validation.append(validation)
        scores = [(epoch.accuracy, -epoch.loss) for epoch in self.validation]
        self.best_epoch = scores.index(max(scores)) + 1
        return self.best_epoch == len(scores)


@dataclass
class Learner:
    """What a step needs: the training rows (ids) and labels, the model, the optimizer and its schedule, the team."""

    model: nn.Module  # as the team wrapped it
    rows: list[list[int]]
    labels: Tensor
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    team: Team

    def sums(self, batch: list[int]) -> Tensor:
        """Summed loss, right answers and count of this process's share of the rows with these indices."""
        share = self.team.share(batch)
        rows, device = [self.rows[index] for index in share], device_of(self.model)
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device)):
            logits = self.model(**collate(rows, device))
        return summed(logits, self.labels[share].to(device))

    def step(self, batch: list[int]) -> Tensor:
        """Learn from the rows with these indices; return their summed loss, right answers and count."""
        sums = self.sums(batch)
        total = self.team.sum(sums.detach()).cpu()
        if total[0].isfinite():
            self.optimizer.zero_grad()
            mean = sums[0] / total[2] * self.team.size  # the team averages its members' gradients
            mean.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRADIENT_NORM)
            self.optimizer.step()
            self.schedule.step()
        return total

    def epoch(self, batches: list[list[int]], history: History, **progress) -> Evaluation:
        """Learn from every batch once, noting each step's loss; `progress` goes to the progress bar."""
        self.model.train()
        total = torch.zeros(3)
        for batch in (bar := tqdm(batches, unit="step", **progress)):
            step_total = self.step(batch)
            total += step_total
            loss = summarize(step_total).loss
            history.step_losses.append(loss)
            check_finite(loss, len(history.step_losses), self.schedule.get_last_lr()[0])
            bar.set_postfix(loss=f"{loss:.3f}")
        return summarize(total)


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
    accelerator=None,
) -> History:
    """Train the weights that require gradients, in place, and keep those of the epoch best on `validation`.

    AdamW with warm-up and linear decay (Devlin et al. 2019, appendix A.2; rate, batch size and epochs from the ranges
    of A.3); `patience` epochs without progress end it.
    Texts are cut to `max_length` tokens, and to the model's positions. Ctrl-C ends it and keeps the best epoch, or,
    before the first validation, what there is. ValueError for input that does not fit; FloatingPointError for a loss
    that is not finite, with the weights of the best epoch put back, or those it came with.
    """
    team, history, started = Team(accelerator), History(), time.perf_counter()
    rows = encode(model, tokenizer, train, max_length)
    encode(model, tokenizer, validation, max_length)  # so that a mistake in it shows now, not after an epoch
    plan = plan_batches(rows, epochs, batch_size, seed, team)
    optimizer, schedule = make_optimizer(model, learning_rate, steps=sum(len(batches) for batches in plan))
    learner = Learner(team.wrap(model), rows, torch.tensor(train.labels), optimizer, schedule, team)
    best = snapshot(model)
    torch.manual_seed(1000 * seed + team.rank)  # for dropout, which each process draws for itself
    try:
        for epoch, batches in enumerate(plan, start=1):
            progress = {"desc": f"epoch {epoch}/{epochs}", "disable": quiet or team.rank > 0}
            learned = learner.epoch(batches, history, **progress)
            validated = evaluate(model, tokenizer, validation, max_length=max_length, accelerator=accelerator)
            check_finite(validated.loss, len(history.step_losses), learning_rate)
            weights = snapshot(model)
            if history.record(learned, validated):
                best = weights
            elif epoch - history.best_epoch >= patience:
                history.ended = "early stopping"
                break
    except KeyboardInterrupt:
        history.ended = "interrupted"
        best = best if history.best_epoch else snapshot(model)
    finally:
        model.load_state_dict(best)
        model.eval()
        history.seconds = time.perf_counter() - started
    return history


def plan_batches(
    rows: list[list[int]], epochs: int, batch_size: int, seed: int, team: Team
) -> list[list[list[int]]]:
    """Every epoch's batches of row indices; ValueError for sizes that leave nothing to do, in all or for a process."""
    if epochs < 1 or batch_size < 1:
        raise ValueError(f"epochs={epochs} and batch_size={batch_size} must both be 1 or more")
    plan = [shuffled_batches(rows, batch_size, seed=1000 * seed + epoch) for epoch in range(epochs)]
    smallest = min(len(batch) for batch in plan[0])
    if smallest < team.size:
        raise ValueError(f"{team.size} processes cannot share a batch of {smallest} examples: use more")
    return plan


def make_optimizer(model: nn.Module, learning_rate: float, steps: int):
    """AdamW on the weights that require gradients, and its schedule; biases and LayerNorm are not decayed."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    if not trained or not 0 < learning_rate < math.inf:
        given = f"learning_rate={learning_rate} and {len(trained)} weights that require gradients"
        remedy = "use a small positive rate such as 5e-5, and leave the head trainable at least"
        raise ValueError(f"nothing to train with {given}: {remedy}")
    matrices = {"params": [weight for weight in trained if weight.dim() > 1], "weight_decay": WEIGHT_DECAY}
    vectors = {"params": [weight for weight in trained if weight.dim() <= 1], "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([matrices, vectors], lr=learning_rate, fused=True)  # a weight is read once
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, steps))


def rate_factor(step: int, steps: int) -> float:
    """Share of the learning rate at a step (from 0): rising over the first tenth, then falling to 0 at the end."""
    warmup = max(1, round(WARMUP * steps))
    return min((step + 1) / warmup, (steps - step) / max(1, steps - warmup))


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights, for `load_state_dict`."""
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device is a GPU that computes in bfloat16, with the range of float32 at half the size."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def starting_model(checkpoint: str | None) -> TransformerForSequenceClassification:
    """A saved classifier with the head it has, any other checkpoint under an untrained one."""
    is_folder = checkpoint and Path(checkpoint).is_dir()
    if is_folder and "BertForSequenceClassification" in (load_config(checkpoint).architectures or ()):
        return TransformerForSequenceClassification.load(checkpoint)
    return TransformerForSequenceClassification.from_checkpoint(checkpoint)


def main() -> None:
    """Fine-tune on the review sentences from the command line, in as many processes as `accelerate launch` started."""
    from accelerate import Accelerator  # only needed here

    parser = argparse.ArgumentParser(prog="python -m utils.training", description=main.__doc__)
    parser.add_argument("--checkpoint", help="a local folder or a name on the Hub; else the embedded one")
    parser.add_argument("--epochs", type=int, default=2, help="0 only measures what the checkpoint can do")
    parser.add_argument("--batch-size", type=int, default=32, help="of all processes together (default: 32)")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="use so many examples of each part only")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU, in spite of a GPU")
    parser.add_argument("--save", help="folder to save the trained model in")
    options = parser.parse_args()
    accelerator = Accelerator(cpu=options.cpu, mixed_precision="no")  # the loop itself chooses bfloat16
    parts = [part[: options.limit] for part in reviews()]
    torch.manual_seed(options.seed)
    model = starting_model(options.checkpoint).to(accelerator.device)
    tokenizer = WordPieceTokenizer.from_checkpoint(options.checkpoint)
    if options.epochs:
        names = ("epochs", "batch_size", "learning_rate", "seed")
        settings = {name: getattr(options, name) for name in names}
        history = fine_tune(model, tokenizer, *parts[:2], **settings, accelerator=accelerator)
        accelerator.print(
            f"{accelerator.num_processes} processes, {history.ended}, best epoch {history.best_epoch}"
        )
    tested = evaluate(model, tokenizer, parts[2], accelerator=accelerator)
    low, high = tested.interval
    accelerator.print(
        f"test accuracy {tested.accuracy:.1%} ({low:.1%} … {high:.1%}) of {tested.total}, loss {tested.loss:.4f}"
    )
    if options.save and accelerator.is_main_process:
        model.save(options.save, tokenizer, LABELS)
    accelerator.end_training()


if __name__ == "__main__":
    main()
