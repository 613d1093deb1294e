"""A tiny BERT learns from film reviews by guessing masked words: a loop that stops and goes on. Built in notebook 11.

`python -m utils.pretraining FOLDER` writes what there is into the folder after every 200 steps. Stopped, by Ctrl-C or
otherwise, and started again, it goes on from there and comes to the weights of a run that never stopped. Several GPUs
or machines: `accelerate launch -m utils.pretraining FOLDER`.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.nn import functional as F
from transformers import BertConfig

from utils.batches import collate, device_of
from utils.checkpoint import reading
from utils.checks import (
    check_between,
    check_fit,
    check_size,
    check_tokenizer,
)
from utils.datasets import imdb_reviews
from utils.encoder import TransformerEncoder
from utils.evaluation import Team, summed
from utils.files import write_file
from utils.masked_lm import TransformerForMaskedLM, evaluate_masked, mask_tokens, pack, train_vocabulary
from utils.search import mean_pooling
from utils.tokenization import WordPieceTokenizer
from utils.training import History, Learner, has_bfloat16, make_optimizer

STATE_FILE = "training.safetensors"
TINY = {"hidden_size": 192, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 768}
TINY |= {"vocab_size": 2000, "max_position_embeddings": 64, "initializer_range": 0.05}
TINY |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # no text comes often enough for it
WINDOW = 8192  # rows shuffled among themselves, so that a run's first batches need its first texts only
TEMPERATURE = 0.05  # divides cosines before softmax, as for the embedded checkpoint
ROUND = 200  # steps from one saving to the next


@dataclass(frozen=True)
class Settings:
    """What decides a run's weights, beside model and texts. `steps` is the length of the whole schedule."""

    steps: int = 12_000
    batch_size: int = 32  # rows
    learning_rate: float = 1e-3
    probability: float = 0.2  # of a word to be asked for
    seed: int = 0

    def __post_init__(self):
        check_between("probability", self.probability, 0, 1, "BERT's is 0.15")
        check_size("steps", self.steps, most=1_000_000_000)
        check_size("batch_size", self.batch_size, most=1_000_000)
        check_size("seed", self.seed, most=1_000_000, least=0)


@dataclass
class MaskedLearner(Learner):
    """A `Learner` of rows (N, S) whose labels are hidden words; what is drawn depends on seed and step alone."""

    tokenizer: WordPieceTokenizer
    settings: Settings

    def sums(self, batch: list[int]) -> Tensor:
        """Summed loss, right guesses and number of words asked for in this process's share of the rows."""
        seed = 10_000_000 * self.settings.seed + self.schedule.last_epoch
        generator, device = torch.Generator().manual_seed(seed), device_of(self.model)
        torch.manual_seed(seed + self.team.rank)  # for dropout
        hidden, labels = mask_tokens(self.rows[batch], self.tokenizer, self.settings.probability, generator)
        hidden, labels = (self.team.share(ids).to(device) for ids in (hidden, labels))
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device)):
            logits = self.model(hidden, where=labels != -100)
        return summed(logits, labels[labels != -100])


@dataclass
class PairLearner(Learner):
    """A `Learner` of pairs of rows: each first text has to find its second among all of the batch."""

    def sums(self, batch: list[int]) -> Tensor:
        """Summed loss, right partners and number of pairs; every process works on the whole batch.

        Henderson et al. 2017: the other pairs' second texts are the wrong answers.
        """
        first, second = (self.vectors([self.rows[number][side] for number in batch]) for side in (0, 1))
        scores = first @ second.T / TEMPERATURE  # (B, B)
        return summed(scores, torch.arange(len(batch), device=scores.device))

    def vectors(self, rows: list[list[int]]) -> Tensor:
        """Rows of ids to unit vectors (B, H): the mean of each text's tokens."""
        batch = collate(rows, device_of(self.model))
        states = self.model(**batch).last_hidden_state
        return F.normalize(mean_pooling(states, batch["attention_mask"]), dim=-1)


def contrast(
    encoder: TransformerEncoder, rows: list[tuple[list[int], list[int]]], batch_size: int
) -> History:
    """Train an encoder, in place, on pairs of rows of ids, each pair once and in their order; the loss of each step.

    The learning rate grows with the root of the batch, since larger ones leave fewer steps.
    """
    batches = [numbers.tolist() for numbers in torch.arange(len(rows)).split(batch_size)]
    parts, history = make_optimizer(encoder, 2e-4 * batch_size**0.5, len(batches)), History()
    PairLearner(encoder, rows, torch.arange(len(rows)), *parts, Team()).epoch(batches, history, disable=True)
    encoder.eval()
    return history


class Pretraining:
    """A run: a model that learns from rows (N, S) of ids, is judged on others, may stop, be saved, and go on."""

    def __init__(
        self, model, tokenizer, rows: Tensor, held_out: Tensor, settings: Settings, accelerator=None
    ):
        check_tokenizer(tokenizer, model.config.vocab_size)
        self.model, self.held_out, self.team = model, held_out, Team(accelerator)
        parts = make_optimizer(model, settings.learning_rate, settings.steps)
        self.learner = MaskedLearner(
            self.team.wrap(model), rows, rows, *parts, self.team, tokenizer, settings
        )
        self.history, self.curve, self.seconds = History(), [], 0.0

    @property
    def done(self) -> int:
        """Steps so far."""
        return self.learner.schedule.last_epoch

    def learn(self, until: int | None = None, folder: Path | None = None, quiet: bool = False) -> None:
        """Go on up to a step, or to the last; after each round judge the model and, given a folder, save.

        Whatever ends it, Ctrl-C too, the folder holds the last round. Errors as in `fine_tune`; OSError if it cannot
        be saved.
        """
        steps = self.learner.settings.steps
        until = min(steps, until or steps)
        batches = islice(endless_batches(len(self.learner.rows), self.learner.settings), self.done, until)
        while self.done < until:
            size = min(ROUND - self.done % ROUND, until - self.done)
            bar = {"desc": f"to step {self.done + size} of {steps}", "disable": quiet or self.team.rank > 0}
            self.round(list(islice(batches, size)), bar)
            if folder and self.team.rank == 0:
                self.save(folder)

    def round(self, batches: list[list[int]], bar: dict) -> None:
        """Learn from some batches, and note how well the model does then, and this process's time so far."""
        started = time.process_time()
        learned = self.learner.epoch(batches, self.history, **bar)
        self.seconds += time.process_time() - started
        judged = evaluate_masked(self.model, self.learner.tokenizer, self.held_out)
        point = {"step": self.done, "learned": learned.loss, "loss": judged.loss}
        self.curve.append(point | {"accuracy": judged.accuracy, "cpu_minutes": self.seconds / 60})

    def save(self, folder: str | Path) -> None:
        """Write the model as a checkpoint, and beside it all that going on needs, in one file."""
        self.model.save(folder, self.learner.tokenizer)
        optimizer, schedule = self.learner.optimizer.state_dict(), self.learner.schedule.state_dict()
        facts = {"groups": optimizer["param_groups"], "schedule": schedule, "seconds": self.seconds}
        facts |= self.facts() | {"curve": self.curve, "losses": self.history.step_losses}
        tensors = {f"model.{name}": weight for name, weight in self.model.state_dict().items()}
        for number, state in optimizer["state"].items():
            tensors |= {f"optimizer.{number}.{name}": values for name, values in state.items()}
        write_file(Path(folder) / STATE_FILE, to_bytes(tensors, metadata={"facts": json.dumps(facts)}))

    def facts(self) -> dict:
        """What must be the same for a run to go on."""
        return asdict(self.learner.settings) | {"rows": len(self.learner.rows)}

    def resume(self, folder: str | Path) -> None:
        """Go back to what `save` wrote; ValueError for other settings, another model, and a file that is not whole."""
        path = Path(folder) / STATE_FILE
        facts, weights, optimizer = read_state(path)
        check_same_settings(facts, self.facts(), path)
        check_fit(weights, self.model.state_dict())
        self.model.load_state_dict(weights)
        self.learner.optimizer.load_state_dict({"state": optimizer, "param_groups": facts["groups"]})
        self.learner.schedule.load_state_dict(facts["schedule"])
        self.curve, self.history.step_losses = facts["curve"], facts["losses"]
        self.seconds = facts["seconds"]


def read_state(path: Path) -> tuple[dict, dict[str, Tensor], dict[int, dict[str, Tensor]]]:
    """A saved run's facts, the model's weights and the optimizer's state; ValueError for a file that is not whole."""
    with reading(path), safe_open(path, framework="pt") as file:
        facts = json.loads((file.metadata() or {}).get("facts", ""))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    weights, optimizer = {}, {}
    for name, tensor in tensors.items():
        part, name = name.split(".", 1)
        if part == "model":
            weights[name] = tensor
        else:
            number, name = name.split(".")
            optimizer.setdefault(int(number), {})[name] = tensor
    return facts, weights, optimizer


def endless_batches(total: int, settings: Settings) -> Iterator[list[int]]:
    """Batches of row numbers without end, each epoch's in another order, shuffled within windows."""
    for epoch in count(1000 * settings.seed):
        generator = torch.Generator().manual_seed(epoch)
        windows = torch.arange(total).split(WINDOW)
        order = [window[torch.randperm(len(window), generator=generator)] for window in windows]
        yield from (batch.tolist() for batch in torch.cat(order).split(settings.batch_size))


def check_same_settings(found: dict, wanted: dict, path: Path) -> None:
    """ValueError that names the first setting in which a saved run differs."""
    for name, value in wanted.items():
        if found.get(name) != value:
            both = f"{name}={found.get(name)!r}, and {name}={value!r} is asked for"
            raise ValueError(f"{path} is of a run with {both}: go on with its own, or choose another folder")


def check_new_folder(folder: Path, begun: bool) -> None:
    """ValueError, so that nothing is lost, for a folder with something else in it than a run that has begun."""
    if not begun and folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
        raise ValueError(f"{folder} holds something else than a run of pretraining: choose an empty folder")


def main() -> None:
    """Pretrain a tiny BERT on the IMDB reviews from the command line; the reviews of other parts judge it."""
    from accelerate import Accelerator  # only needed here

    parser = argparse.ArgumentParser(prog="python -m utils.pretraining", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where it is written; a run that is there already goes on")
    for name, default in asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--until", type=int, help="stop after this step, to go on another time")
    parser.add_argument("--texts", type=int, help="use so many reviews only")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU, in spite of a GPU")
    options = vars(parser.parse_args())
    folder, until, texts, cpu = (options.pop(name) for name in ("folder", "until", "texts", "cpu"))
    accelerator, settings = Accelerator(cpu=cpu, mixed_precision="no"), Settings(**options)
    begun = (folder / STATE_FILE).is_file()
    check_new_folder(folder, begun)
    train, validation = imdb_reviews("train")[:texts], imdb_reviews("validation")[:50]
    size = TINY["vocab_size"]
    tokenizer = WordPieceTokenizer.from_checkpoint(folder) if begun else train_vocabulary(train, size)
    rows, held_out = (pack(part, tokenizer, TINY["max_position_embeddings"]) for part in (train, validation))
    torch.manual_seed(settings.seed)
    model = TransformerForMaskedLM(BertConfig(**TINY)).to(accelerator.device)
    run = Pretraining(model, tokenizer, rows, held_out, settings, accelerator)
    if begun:
        run.resume(folder)
    try:
        run.learn(until, folder)
    except KeyboardInterrupt:
        accelerator.print(f"stopped: the same command goes on from the last round saved in {folder}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
