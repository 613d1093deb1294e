"""Pretrain the tiny BERT of notebook 11 on the IMDB reviews, or a BERT of any size on texts of your own.

`python scripts/pretrain.py FOLDER` writes after every 200 steps what going on needs, one file of the folder, and beside
it FOLDER/checkpoint, for readers. Stopped, by Ctrl-C or otherwise, and started again, it comes to the weights of a run
that never stopped. Several GPUs or machines: `accelerate launch scripts/pretrain.py FOLDER`. Two processes without a
GPU: `accelerate launch --multi_gpu --num_processes 2 scripts/pretrain.py FOLDER --cpu`.

`--data texts.txt` takes your own texts, UTF-8, in any language: one in each line, or with empty lines between them. It
learns a vocabulary from them, and puts one text in twenty aside, which judges the model. `--cased` keeps capitals and
accents, which languages such as Hindi need. With `--layers 6 --heads 12 --hidden 384 --positions 512` the notebooks run
on it: `make lab CHECKPOINT=FOLDER/checkpoint`. For English texts `--tokenizer all-MiniLM-L6-v2` takes BERT's own
vocabulary.
"""

import argparse
import hashlib
import json
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from transformers import BertConfig

from processes import add_up, exclusive_lock, in_words, share, start
from utils.masked_lm import TransformerForMaskedLM
from utils.pretraining import (
    TINY,
    WINDOW,
    Settings,
    beside_counts,
    evaluate_masked,
    fill_rows,
    guess_words,
    learn_vocabulary,
    masked_batches,
    train_vocabulary,
    write_rows,
)
from utils.support.checkpoint import reading
from utils.support.checks import check_between, check_config, check_heads, check_size, check_tokenizer
from utils.support.datasets import imdb_reviews, text_hash
from utils.support.files import write_file
from utils.support.notebook import missing_sizes
from utils.support.tables import read_texts, text_file
from utils.tokenization import WordPieceTokenizer
from utils.training import History, make_optimizer, rate_factor, train_epoch

STATE_FILE, CHECKPOINT = "training.safetensors", "checkpoint"  # for going on, and a folder for readers
ROUND = 200  # steps from one saving to the next
ASIDE, JUDGES, COUNTED = (
    20,
    500,
    40_000,
)  # one text in so many is put aside; rows that judge; rows that rivals count in
SIZES = {  # options, and what they are in a configuration
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "hidden_size",
    "positions": "max_position_embeddings",
    "vocabulary": "vocab_size",
}
POINT = ("step", "learned", "loss", "accuracy", "cpu_minutes")  # what is noted after each round


class Run:
    """A model that learns from rows (N, S) of ids, is judged on others, may stop, be saved, and go on."""

    def __init__(self, model, tokenizer, rows: Tensor, held_out: Tensor, settings: Settings, accelerator: Accelerator):
        check_tokenizer(tokenizer, model.config.vocab_size)
        self.model, self.tokenizer, self.rows, self.held_out = model, tokenizer, rows, held_out
        self.settings, self.accelerator = settings, accelerator
        self.optimizer, self.schedule = make_optimizer(model, settings.learning_rate, settings.steps)
        for weight in model.parameters():  # as AdamW does at its first step; a saved state needs the place before
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
        learned = train_epoch(self.model, batches, self.loss, self.optimizer, self.schedule, self.history, **bar)
        before = self.curve[-1]["cpu_minutes"] if self.curve else 0.0
        minutes = before + (time.process_time() - started) / 60
        judged = evaluate_masked(self.model, self.tokenizer, self.held_out)
        point = (self.done, learned.loss, judged.loss, judged.accuracy, minutes)
        self.curve.append(dict(zip(POINT, point, strict=True)))

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """What `guess_words` says of all processes' shares of the batch."""
        hidden, labels = (share(ids, self.accelerator) for ids in batch)
        return add_up(guess_words(self.parallel, hidden, labels), self.accelerator)

    def save(self, folder: Path, dry_run: bool = False) -> None:
        """Write all that resuming needs as one file, then the model as a checkpoint for readers."""
        facts = self.identity() | {"losses": self.history.step_losses, "curve": self.curve}
        content = to_bytes(self.tensors(), metadata={"facts": json.dumps(facts)})
        write_file(folder / STATE_FILE, content, dry_run=dry_run)
        self.model.save(folder / CHECKPOINT, self.tokenizer, dry_run=dry_run)

    def identity(self) -> dict:
        """What must be the same for a run to go on, beside names and shapes of its tensors."""
        digest = hashlib.sha256()
        for part in self.rows.split(WINDOW):
            digest.update(part.long().numpy().tobytes())
        return asdict(self.settings) | {"rows": len(self.rows), "ids": digest.hexdigest()[:16]}

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
    parser.add_argument("--data", nargs="+", help="text files of your own, UTF-8; else the reviews")
    parser.add_argument("--cased", action="store_true", help="keep capitals and accents; else both are dropped")
    parser.add_argument("--tokenizer", help="take the vocabulary of this checkpoint, and learn none")
    for name, field in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=TINY[field], help=f"{field} (default: {TINY[field]})")
    for name, default in asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    parser.add_argument("--until", type=int, help="stop after this step, to go on another time")
    parser.add_argument("--texts", type=int, help="use so many texts only")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU, in spite of a GPU")
    options = vars(parser.parse_args())
    rest = {name: options.pop(name) for name in ("folder", "until", "texts", "cpu", "data", "cased", "tokenizer")}
    sizes = {field: options.pop(name) for name, field in SIZES.items()}
    for name in ("until", "texts"):
        if rest[name] is not None:
            check_size(f"--{name}", rest[name])
    settings, folder = Settings(**options), rest["folder"].expanduser()
    check_between("--learning-rate", settings.learning_rate, 0, 1, "1e-3 suits this model")
    for name, field in SIZES.items():
        check_size(f"--{name}", sizes[field], minimum=3 if name == "positions" else 1)
    config = BertConfig(**TINY | sizes | {"intermediate_size": 4 * sizes["hidden_size"]})
    check_config(config)
    check_heads(config.hidden_size, config.num_attention_heads)
    if rest["data"] is None and (rest["cased"] or rest["tokenizer"]):
        raise ValueError("--cased and --tokenizer are for --data: the reviews are read as in notebook 11")
    for path in rest["data"] or ():
        text_file(path)
    if rest["cased"] and rest["tokenizer"]:
        raise ValueError(f"--tokenizer={rest['tokenizer']} says itself whether it keeps capitals: leave --cased out")
    if not (folder / STATE_FILE).is_file() and any(folder.glob("[!.]*")):
        raise ValueError(f"{folder} holds something else than a run of pretraining: choose an empty folder")
    write_file(folder / STATE_FILE, b"", dry_run=True)
    TransformerForMaskedLM.check_folder(folder / CHECKPOINT)
    return settings, rest | {"folder": folder, "config": config}


def read_reviews(config: BertConfig, count: int | None) -> tuple[WordPieceTokenizer, Tensor, Tensor]:
    """A vocabulary learned from so many reviews, or all, their rows, and the rows of others that judge."""
    train, validation = imdb_reviews("train")[:count], imdb_reviews("validation")[:50]
    tokenizer = train_vocabulary(train, config.vocab_size)
    return tokenizer, *(fill_rows(part, tokenizer, config.max_position_embeddings) for part in (train, validation))


class OwnTexts:
    """Texts of the reader's own files, one in twenty put aside by its hash: gone through, and never held in memory."""

    def __init__(self, paths: Sequence[str], count: int | None):
        """Go through the files once, and count; errors as in `read_texts`, and ValueError for too few texts."""
        self.paths, self.count, self.found, self.marks = paths, count, Counter(), 0
        characters = 0
        for text, aside in self.read():
            self.found[aside] += 1
            characters += len(text)
            self.marks += sum(count for letter, count in Counter(text).items() if unicodedata.category(letter) == "Mn")
        if not self.found[True] or not self.found[False]:
            total = self.found.total()
            raise ValueError(
                f"{total} text"
                + "s" * (total > 1)
                + f" in {', '.join(map(str, paths))} leave none to judge the model: "
                "use 100 or more, each in a line of its own or with empty lines between them"
            )
        self.stripped = self.marks / characters

    def read(self) -> Iterator[tuple[str, bool]]:
        """Each text, and whether it is put aside: equal texts are on the same side."""
        for text in islice(read_texts(self.paths), self.count):
            yield text, int(text_hash(f"aside {text}"), 16) % ASIDE == 0  # not as `split_of` deals

    def part(self, aside: bool) -> Iterator[str]:
        """The texts of one side."""
        return (text for text, is_aside in self.read() if is_aside is aside)


def read_own(
    config: BertConfig, options: Mapping, accelerator: Accelerator
) -> tuple[WordPieceTokenizer, Tensor, Tensor]:
    """A vocabulary learned from the reader's texts, their rows in a file that vanishes, and the rows that judge."""
    own, length, folder = (
        OwnTexts(options["data"], options["texts"]),
        config.max_position_embeddings,
        options["folder"],
    )
    accelerator.print(f"{own.found.total():,} texts read, {own.found[True]:,} of them put aside to judge the model")
    if own.stripped > 0.01 and not options["cased"] and not options["tokenizer"]:
        told = f"{own.stripped:.0%} of the characters are marks that are dropped with the accents"
        accelerator.print(f"{told}: pass --cased if they are vowels, as in Hindi or Thai")
    if options["tokenizer"]:
        tokenizer = WordPieceTokenizer.from_checkpoint(options["tokenizer"])
    else:
        tokenizer = learn_vocabulary(lambda: own.part(False), config.vocab_size, not options["cased"])
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for aside in (False, True):
        with tempfile.TemporaryFile(dir=folder) as file:  # closed, it is gone as soon as its rows are
            parts.append(write_rows(own.part(aside), tokenizer, length, file))
    rows, held_out = parts
    return tokenizer, rows, held_out[:JUDGES].long()


def needs(config: BertConfig, tokenizer: str | None) -> str:
    """What the notebooks will miss in a model of this size and vocabulary, and how to get it."""
    told = "The notebooks will run on this model"
    if lacks := missing_sizes(config):
        remedy = "--layers 6 --heads 12 --hidden 384 --positions 512 gives it"
        told = f"Some cells of the notebooks need a larger model ({lacks}): {remedy}"
    if tokenizer:
        return told
    pieces = "Where the notebooks follow an English word, they will take the first of its pieces"
    return f"{told}\n{pieces}; 10, which is about English pronouns, reads the series' own model if they are no tokens"


def prepare(settings: Settings, options: Mapping, accelerator: Accelerator) -> Run:
    """A new run on the reader's texts, or on the reviews; says what the notebooks need and the model will not have."""
    config = options["config"]
    if options["data"]:
        accelerator.print(needs(config, options["tokenizer"]))
    if options["data"]:
        tokenizer, rows, held_out = read_own(config, options, accelerator)
    else:
        tokenizer, rows, held_out = read_reviews(config, options["texts"])
    config = BertConfig(**config.to_dict() | {"vocab_size": len(tokenizer.vocab)})  # fewer, for few texts
    torch.manual_seed(settings.seed)
    model = TransformerForMaskedLM(config).to(accelerator.device)
    if options["data"]:
        size = sum(weight.numel() for weight in model.parameters())
        told = f"{len(tokenizer.vocab):,} pieces, {len(rows):,} rows of {rows.size(1)} tokens"
        accelerator.print(f"{told}, {size / 1e6:.1f} million parameters")
    return Run(model, tokenizer, rows, held_out, settings, accelerator)


def judge(run: Run) -> str:
    """How the finished model guesses hidden words of the texts put aside, beside two that count."""
    found = beside_counts(run.model, run.tokenizer, run.held_out, run.rows[:COUNTED].long())
    lines = [f"of {found['model'].total:,} words hidden in texts put aside:"]
    for name, each in found.items():
        lines.append(f"{name:<26} {each.accuracy:>6.1%} right, loss {each.loss:.2f}")
    if len(run.rows) > COUNTED:
        lines.append(f"(counted in the first {COUNTED:,} of {len(run.rows):,} rows)")
    return "\n".join(lines)


def main() -> None:
    """Begin a run, or go on with the one in the folder."""
    with ExitStack() as stack:
        with in_words():
            settings, options = read_options()
            folder, until = options["folder"], options["until"] or settings.steps
            accelerator = start(options["cpu"])
            stack.enter_context(exclusive_lock(folder, accelerator))
            run = prepare(settings, options, accelerator)
            if (folder / STATE_FILE).is_file():
                run.resume(folder)
            if accelerator.is_main_process:  # a kill may have kept the last checkpoint from being written
                run.save(folder, dry_run=not run.done)
        try:
            with in_words((FloatingPointError, OSError)):
                run.learn(min(until, settings.steps), folder)
            if run.done == settings.steps and options["data"] and accelerator.is_main_process:
                print(f"{judge(run)}\nmake lab CHECKPOINT={folder / CHECKPOINT}")
            accelerator.wait_for_everyone()  # nobody leaves before the model is saved
        except KeyboardInterrupt:
            accelerator.print(f"stopped: the same command goes on from the last round saved in {folder}")
        accelerator.end_training()


if __name__ == "__main__":
    main()
