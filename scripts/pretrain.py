"""Pretrain the tiny BERT of notebook 11 on the IMDB reviews; the reviews of another part judge it.

`python scripts/pretrain.py FOLDER` writes after every 200 steps what going on needs, one file of the folder, and beside
it FOLDER/checkpoint, for readers. Stopped, by Ctrl-C or otherwise, and started again, it comes to the weights of a run
that never stopped. Several GPUs or machines: `accelerate launch scripts/pretrain.py FOLDER`.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from transformers import BertConfig

from processes import add_up, in_words, share, start
from utils.checkpoint import reading
from utils.checks import check_between, check_size, check_tokenizer
from utils.datasets import imdb_reviews
from utils.files import check_writable, write_file
from utils.masked_lm import TransformerForMaskedLM
from utils.pretraining import (
    TINY,
    Settings,
    evaluate_masked,
    fill_rows,
    guess_words,
    masked_batches,
    train_vocabulary,
)
from utils.saving import check_own_folder
from utils.training import History, make_optimizer, rate_factor, train_epoch

STATE_FILE, CHECKPOINT = "training.safetensors", "checkpoint"  # for going on, and a folder for readers
ROUND = 200  # steps from one saving to the next
POINT = ("step", "learned", "loss", "accuracy", "cpu_minutes")  # what is noted after each round


class Run:
    """A model that learns from rows (N, S) of ids, is judged on others, may stop, be saved, and go on."""

    def __init__(
        self, model, tokenizer, rows: Tensor, held_out: Tensor, settings: Settings, accelerator: Accelerator
    ):
        check_tokenizer(tokenizer, model.config.vocab_size)
        self.model, self.tokenizer, self.rows, self.held_out = model, tokenizer, rows, held_out
        self.settings, self.accelerator = settings, accelerator
        self.optimizer, self.schedule = make_optimizer(model, settings.learning_rate, settings.steps)
        for (
            weight
        ) in model.parameters():  # as AdamW does at its first step; a saved state needs the place before
            step = torch.zeros((), device=weight.device)
            moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[weight] = {"step": step} | moments
        self.parallel = accelerator.prepare(model)
        self.history, self.curve = History(), []  # of each step, and of each round

    @property
    def done(self) -> int:
        """Steps so far."""
        return len(self.history.step_losses)

    def learn(self, until: int, folder: Path, quiet: bool = False) -> None:
        """Go on up to a step; after each round judge the model and save. Errors as in `fit`, and OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        while self.done < until:
            end = min(self.done - self.done % ROUND + ROUND, until)
            self.round(end, quiet or not self.accelerator.is_main_process)
            if self.accelerator.is_main_process:
                self.save(folder)

    def round(self, end: int, quiet: bool) -> None:
        """Learn up to a step, and note how well the model does then, and this process's time so far."""
        started, size = time.process_time(), end - self.done
        batches = islice(masked_batches(self.rows, self.tokenizer, self.settings, self.done), size)
        bar = {"desc": f"to step {end} of {self.settings.steps}", "total": size, "disable": quiet}
        learned = train_epoch(
            self.model, batches, self.loss, self.optimizer, self.schedule, self.history, **bar
        )
        before = self.curve[-1]["cpu_minutes"] if self.curve else 0.0
        minutes = before + (time.process_time() - started) / 60
        judged = evaluate_masked(self.model, self.tokenizer, self.held_out)
        point = (self.done, learned.loss, judged.loss, judged.accuracy, minutes)
        self.curve.append(dict(zip(POINT, point, strict=True)))

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """What `guess_words` says of all processes' shares of the batch."""
        hidden, labels = (share(ids, self.accelerator) for ids in batch)
        return add_up(guess_words(self.parallel, hidden, labels), self.accelerator)

    def save(self, folder: Path) -> None:
        """Write all that going on needs as one file, then the model as a checkpoint for readers."""
        facts = self.identity() | {"losses": self.history.step_losses, "curve": self.curve}
        write_file(folder / STATE_FILE, to_bytes(self.tensors(), metadata={"facts": json.dumps(facts)}))
        self.model.save(folder / CHECKPOINT, self.tokenizer)

    def identity(self) -> dict:
        """What must be the same for a run to go on, beside names and shapes of its tensors."""
        rows = {"rows": len(self.rows), "ids": hashlib.sha256(self.rows.numpy().tobytes()).hexdigest()[:16]}
        return asdict(self.settings) | rows

    def tensors(self) -> dict[str, Tensor]:
        """The model's weights and what the optimizer knows of each, by name, as they are now, to read and to write."""
        found = {f"model.{name}": weight for name, weight in self.model.state_dict().items()}
        for name, weight in self.model.named_parameters():
            found |= {f"{kind}.{name}": value for kind, value in self.optimizer.state[weight].items()}
        return found

    def resume(self, folder: Path) -> None:
        """Go back to what `save` wrote; ValueError for a file that is not whole, and for another run or model."""
        path = folder / STATE_FILE
        facts, found = read_state(path)
        losses, curve, own = facts.pop("losses"), facts.pop("curve"), self.tensors()
        check_same(facts, self.identity(), path)
        check_same(kinds(found), kinds(own), path)
        for name, tensor in own.items():
            tensor.copy_(found[name])
        self.history.step_losses, self.curve, self.schedule.last_epoch = losses, curve, len(losses)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * rate_factor(self.done, self.settings.steps)


def read_state(path: Path) -> tuple[dict, dict[str, Tensor]]:
    """A saved run's facts and tensors; ValueError for a file that is not whole."""
    with reading(path), safe_open(path, framework="pt") as file:
        facts = json.loads((file.metadata() or {}).get("facts", ""))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        steps = {tensor.sum().item() for name, tensor in tensors.items() if name.startswith("step.")}
        if not isinstance(facts, dict) or steps != {len(facts.get("losses") or ())}:
            raise ValueError("it does not hold a loss of each step that its optimizer has taken")
        if not all(isinstance(point, dict) and tuple(point) == POINT for point in facts.get("curve") or [0]):
            raise ValueError("it does not hold how the model did after each round")
    return facts, tensors


def kinds(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Shape and type of each tensor."""
    return {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors.items()}


def check_same(found: Mapping, wanted: Mapping, path: Path) -> None:
    """ValueError that names the first thing in which a saved run differs from this one."""
    for name in (*wanted, *found):
        if found.get(name) != wanted.get(name):
            both = f"{name}={found.get(name)!r}, and {name}={wanted.get(name)!r} is asked for"
            raise ValueError(f"{path} is of a run with {both}: go on with its own, or choose another folder")


def read_options() -> tuple[Settings, dict]:
    """The command line: what decides the weights, and the rest; errors for what leaves nothing to do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where it is written; a run that is there already goes on")
    for name, default in asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--until", type=int, help="stop after this step, to go on another time")
    parser.add_argument("--texts", type=int, help="use so many reviews only")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU, in spite of a GPU")
    options = vars(parser.parse_args())
    rest = {name: options.pop(name) for name in ("folder", "until", "texts", "cpu")}
    for name in ("until", "texts"):
        if rest[name] is not None:
            check_size(f"--{name}", rest[name])
    settings, folder = Settings(**options), rest["folder"].expanduser()
    check_between("--learning-rate", settings.learning_rate, 0, 1, "1e-3 suits this model")
    if not (folder / STATE_FILE).is_file() and any(folder.glob("[!.]*")):
        raise ValueError(f"{folder} holds something else than a run of pretraining: choose an empty folder")
    check_own_folder(folder / CHECKPOINT, TransformerForMaskedLM.architecture)
    check_writable(folder / CHECKPOINT)
    return settings, rest | {"folder": folder}


def prepare(settings: Settings, texts: int | None, accelerator: Accelerator) -> Run:
    """A new run on so many reviews, or on all."""
    train, validation = imdb_reviews("train")[:texts], imdb_reviews("validation")[:50]
    tokenizer = train_vocabulary(train, TINY["vocab_size"])
    rows, held_out = (
        fill_rows(part, tokenizer, TINY["max_position_embeddings"]) for part in (train, validation)
    )
    torch.manual_seed(settings.seed)
    model = TransformerForMaskedLM(BertConfig(**TINY)).to(accelerator.device)
    return Run(model, tokenizer, rows, held_out, settings, accelerator)


def main() -> None:
    """Begin a run, or go on with the one in the folder."""
    with in_words():
        settings, options = read_options()
        folder, until = options["folder"], options["until"] or settings.steps
        accelerator = start(options["cpu"])
        run = prepare(settings, options["texts"], accelerator)
        if (folder / STATE_FILE).is_file():
            run.resume(folder)
            if accelerator.is_main_process:
                run.model.save(
                    folder / CHECKPOINT, run.tokenizer
                )  # which a kill may have kept from being written
    try:
        with in_words((FloatingPointError, OSError)):
            run.learn(min(until, settings.steps), folder)
        accelerator.wait_for_everyone()  # nobody leaves before the model is saved
    except KeyboardInterrupt:
        accelerator.print(f"stopped: the same command goes on from the last round saved in {folder}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
