"""Pretrain the tiny BERT of notebook 11 on the IMDB reviews, or a BERT of any size on your own texts.

`python scripts/pretrain.py FOLDER` saves every 200 steps: one file from which a run resumes, and FOLDER/checkpoint for
loading the model. An interrupted run that is started again ends with the weights of an uninterrupted run.

`--data texts.txt` trains on your own texts in UTF-8, in any language: one per line, or separated by empty lines. Of a
table (.csv, .tsv or JSON Lines) it takes the column `--text`. The vocabulary is trained on the texts, too, and one text
in twenty is held out for evaluation. `--cased` keeps capitals and accents, which languages such as Hindi need.
`--tokenizer all-MiniLM-L6-v2` uses BERT's own English vocabulary.

With `--layers 6 --heads 12 --hidden 384 --positions 512` the notebooks run on the model:
`make lab CHECKPOINT=FOLDER/checkpoint`.

Several GPUs or machines: `accelerate launch scripts/pretrain.py FOLDER`. Two processes without a GPU:
`accelerate launch --multi_gpu --num_processes 2 scripts/pretrain.py FOLDER --cpu`.
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
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from transformers import BertConfig

from processes import add_up, check_common_options, exit_on_error, new_parser, share, start
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.pretraining import (
    EVAL_MASKING_RATE,
    TINY,
    WINDOW,
    Settings,
    evaluate_masked,
    fill_rows,
    learn_vocabulary,
    masked_batches,
    masked_lm_loss,
    train_vocabulary,
    write_rows,
)
from utils.support.batches import device_of, evaluation_mode
from utils.support.checkpoint import missing_sizes, wrap_read_errors
from utils.support.checks import check_config, check_heads, check_size, check_tokenizer
from utils.support.datasets import imdb_reviews, text_hash
from utils.support.files import as_path, locked, write_file
from utils.support.neighbour_counts import NeighbourCounts
from utils.support.tables import read_texts, text_file
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, History, loss_sums, make_optimizer, rate_factor, summarize, train_epoch

STATE_FILE, CHECKPOINT = "training.safetensors", "checkpoint"  # for resuming, and a folder for loading the model
ROUND = 200  # steps between two saves
HELD_OUT_EVERY = 20  # one text in so many is held out
EVALUATION_ROWS, BASELINE_ROWS = 500, 40_000  # held-out rows that evaluate; training rows that the baselines count
UNKNOWN_NOTED, UNKNOWN_REFUSED = 0.02, 0.5  # shares of [UNK] among the tokens
SIZES = {  # option: field of the configuration
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "hidden_size",
    "positions": "max_position_embeddings",
    "vocabulary": "vocab_size",
}
SETTINGS_HELP = {
    "steps": "length of the training (default: %(default)s)",
    "batch_size": "rows per batch, in all processes together (default: %(default)s)",
    "learning_rate": "peak learning rate (default: %(default)s)",
    "probability": "share of the tokens to mask (default: %(default)s)",
    "seed": "seed of the weights and of the order (default: %(default)s)",
}
POINT = ("step", "learned", "loss", "accuracy", "cpu_minutes")  # recorded after each round


class Run:
    """Masked language modelling on rows (N, S) of ids, evaluated on held-out rows, that can stop and resume."""

    def __init__(self, model, tokenizer, rows: Tensor, held_out: Tensor, settings: Settings, accelerator: Accelerator):
        check_tokenizer(tokenizer, model.config.vocab_size)
        self.model, self.tokenizer, self.rows, self.held_out = model, tokenizer, rows, held_out
        self.settings, self.accelerator = settings, accelerator
        self.optimizer, self.schedule = make_optimizer(model, settings.learning_rate, settings.steps)
        for weight in model.parameters():  # as AdamW does at its first step, which is too late for resuming
            step = torch.zeros((), device=weight.device)
            moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[weight] = {"step": step} | moments
        self.parallel = accelerator.prepare(model)
        self.history, self.curve = History(), []  # of each step, and of each round

    @property
    def done(self) -> int:
        """Return the number of steps so far."""
        return len(self.history.step_losses)

    def learn(self, until: int, folder: Path, quiet: bool = False) -> None:
        """Train up to a step; evaluate and save after each round. Errors as in `fit`, and OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        while self.done < until:
            end = min(self.done - self.done % ROUND + ROUND, until)
            self.round(end, quiet or not self.accelerator.is_main_process)
            if self.accelerator.is_main_process:
                self.save(folder)

    def round(self, end: int, quiet: bool) -> None:
        """Train up to a step, then record the evaluation and this process's time so far."""
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
        """Return the sums of the masked-LM loss over all processes' shares of the batch."""
        hidden, labels = (share(ids, self.accelerator) for ids in batch)
        return add_up(masked_lm_loss(self.parallel, hidden, labels), self.accelerator)

    def save(self, folder: Path, dry_run: bool = False) -> None:
        """Write all that resuming needs as one file, then the model as a checkpoint."""
        facts = self.identity() | {"losses": self.history.step_losses, "curve": self.curve}
        content = to_bytes(self.tensors(), metadata={"facts": json.dumps(facts)})
        write_file(folder / STATE_FILE, content, dry_run=dry_run)
        self.model.save(folder / CHECKPOINT, self.tokenizer, dry_run=dry_run)

    def identity(self) -> dict:
        """Return what must be equal for a run to resume, besides the names and shapes of its tensors."""
        digest = hashlib.sha256()
        for part in self.rows.split(WINDOW):
            digest.update(part.long().numpy().tobytes())
        return asdict(self.settings) | {"rows": len(self.rows), "ids": digest.hexdigest()[:16]}

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and their optimizer state by name: the tensors themselves, not copies."""
        found = {f"model.{name}": weight for name, weight in self.model.state_dict().items()}
        for name, weight in self.model.named_parameters():
            found |= {f"{kind}.{name}": value for kind, value in self.optimizer.state[weight].items()}
        return found

    def resume(self, folder: Path) -> None:
        """Restore what `save` wrote; ValueError for an incomplete file, and for another run or model."""
        path = folder / STATE_FILE
        facts, found = read_state(path)
        losses, curve, own = facts.pop("losses"), facts.pop("curve"), self.tensors()
        check_same(facts, self.identity(), path)
        check_same(describe_tensors(found), describe_tensors(own), path)
        for name, tensor in own.items():
            tensor.copy_(found[name])
        self.history.step_losses, self.curve, self.schedule.last_epoch = losses, curve, len(losses)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * rate_factor(self.done, self.settings.steps)


def read_state(path: Path) -> tuple[dict, dict[str, Tensor]]:
    """Return a saved run's facts and tensors; ValueError for an incomplete file."""
    with wrap_read_errors(path), safe_open(path, framework="pt") as file:
        facts = json.loads((file.metadata() or {}).get("facts", ""))
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        steps = {tensor.sum().item() for name, tensor in tensors.items() if name.startswith("step.")}
        if not isinstance(facts, dict) or steps != {len(facts.get("losses") or ())}:
            raise ValueError("the number of losses differs from the number of optimizer steps")
        if not all(isinstance(point, dict) and tuple(point) == POINT for point in facts.get("curve") or [0]):
            raise ValueError("the evaluation of a round is missing")
    return facts, tensors


def describe_tensors(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the shape and type of each tensor."""
    return {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in tensors.items()}


def check_same(found: Mapping, wanted: Mapping, path: Path) -> None:
    """Raise ValueError for the first property in which a saved run differs from this one."""
    for name in (*wanted, *found):
        if found.get(name) != wanted.get(name):
            difference = f"{name}={found.get(name)!r}, but this run has {name}={wanted.get(name)!r}"
            raise ValueError(f"{path} is from a run with {difference}: use its settings, or choose another folder")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = new_parser(__doc__)
    parser.usage = "%(prog)s FOLDER [--data FILE ...] [options]"  # --data would take a folder that follows it
    parser.add_argument("folder", type=Path, help="output folder; resumes an existing run")
    parser.add_argument("--data", nargs="+", metavar="FILE", help="your own texts in UTF-8 (default: the IMDB reviews)")
    parser.add_argument("--text", default="text", help="column with the texts, in a table (default: %(default)s)")
    words = parser.add_mutually_exclusive_group()
    words.add_argument("--cased", action="store_true", help="keep capitals and accents (default: remove them)")
    words.add_argument("--tokenizer", metavar="CHECKPOINT", help="use its vocabulary instead of training one")
    for name, field in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=TINY[field], help=f"{field} (default: %(default)s)")
    for name, default in asdict(Settings()).items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default, help=SETTINGS_HELP[name]
        )
    parser.add_argument("--until", type=int, metavar="STEP", help="stop after this step; resume with the same command")
    return parser


def read_options() -> tuple[Settings, argparse.Namespace]:
    """Return the settings that decide the weights, and the other options; OSError or ValueError if one is invalid."""
    options = build_parser().parse_args()
    check_common_options(options)
    if options.until is not None:
        check_size("--until", options.until)
    settings = Settings(**{name: getattr(options, name) for name in asdict(Settings())})
    options.folder, options.config = as_path(options.folder), read_config(options)
    if options.data is None and (options.cased or options.tokenizer):
        raise ValueError("--cased and --tokenizer need --data: the IMDB reviews are read as in notebook 11")
    for path in options.data or ():
        text_file(path)
    check_output_folder(options.folder)
    return settings, options


def read_config(options: argparse.Namespace) -> BertConfig:
    """Return the configuration of the model; ValueError for a size that is out of range."""
    sizes = {field: getattr(options, name) for name, field in SIZES.items()}
    for name, field in SIZES.items():
        check_size(f"--{name}", sizes[field], minimum=3 if name == "positions" else 1)
    config = BertConfig(**TINY | sizes | {"intermediate_size": 4 * sizes["hidden_size"]})
    check_config(config)
    check_heads(config.hidden_size, config.num_attention_heads)
    return config


def check_output_folder(folder: Path) -> None:
    """Raise ValueError for a folder with other files, OSError for one that cannot be written."""
    if not (folder / STATE_FILE).is_file() and (others := sorted(path.name for path in folder.glob("[!.]*"))):
        raise ValueError(f"{folder} contains {others[0]}, but no pretraining run: choose an empty folder")
    write_file(folder / STATE_FILE, b"", dry_run=True)
    TransformerForMaskedLM.check_folder(folder / CHECKPOINT)


def read_reviews(config: BertConfig, count: int | None) -> tuple[WordPieceTokenizer, Tensor, Tensor]:
    """Return a vocabulary trained on the first `count` reviews, their rows, and held-out rows."""
    train, validation = imdb_reviews("train")[:count], imdb_reviews("validation")[:50]
    tokenizer = train_vocabulary(train, config.vocab_size)
    return tokenizer, *(fill_rows(part, tokenizer, config.max_position_embeddings) for part in (train, validation))


class OwnTexts:
    """Texts of your own files, some held out by their hash; read from disk each time, never all in memory."""

    def __init__(self, paths: Sequence[str], column: str, count: int | None):
        """Count texts and characters; errors as in `read_texts`, and ValueError for too few texts."""
        self.paths, self.column, self.count, self.counts = paths, column, count, Counter()
        characters = marks = 0
        for text, is_held_out in self.read():
            self.counts[is_held_out] += 1
            characters += len(text)
            marks += sum(count for letter, count in Counter(text).items() if unicodedata.category(letter) == "Mn")
        if not self.counts[True] or not self.counts[False]:
            raise ValueError(
                f"too few different texts in {', '.join(map(str, paths))} to hold some out for evaluation, among "
                f"{self.counts.total()}: use 100 or more, one per line or separated by empty lines"
            )
        self.marks = marks / characters  # share of characters that are removed together with the accents

    def read(self) -> Iterator[tuple[str, bool]]:
        """Yield each text and whether it is held out; equal texts are on the same side."""
        for text in islice(read_texts(self.paths, self.column), self.count):
            # The prefix makes this split independent of `split_of`.
            yield text, int(text_hash(f"aside {text}"), 16) % HELD_OUT_EVERY == 0

    def part(self, held_out: bool) -> Iterator[str]:
        """Yield the texts of one side."""
        return (text for text, is_held_out in self.read() if is_held_out is held_out)


def read_own(options: argparse.Namespace, accelerator: Accelerator) -> tuple[WordPieceTokenizer, Tensor, Tensor]:
    """Return a tokenizer, the rows of your texts, in a temporary file, and the held-out rows."""
    own, length = OwnTexts(options.data, options.text, options.limit), options.config.max_position_embeddings
    accelerator.print(f"Read {own.counts.total():,} texts, of which {own.counts[True]:,} are held out for evaluation.")
    if own.marks > 0.01 and not options.cased and not options.tokenizer:
        removed = f"{own.marks:.0%} of the characters are combining marks, which are removed together with the accents"
        accelerator.print(f"{removed}. Pass --cased if they are vowels, as in Hindi or Thai.")
    if options.tokenizer:
        tokenizer = WordPieceTokenizer.from_checkpoint(options.tokenizer)
    else:
        tokenizer = learn_vocabulary(lambda: own.part(False), options.config.vocab_size, not options.cased)
    options.folder.mkdir(parents=True, exist_ok=True)
    fill, parts = partial(fill_rows, tokenizer=tokenizer, length=length), []
    for held_out in (False, True):
        with tempfile.TemporaryFile(dir=options.folder) as file:  # deleted with the last reference to its rows
            parts.append(write_rows(own.part(held_out), fill, length, file))
    return tokenizer, parts[0], parts[1][:EVALUATION_ROWS].long()


def unknown_tokens(rows: Tensor, tokenizer: WordPieceTokenizer, path: str) -> str:
    """Return a line with the share of [UNK] among the tokens, and how to lower it; ValueError if most are unknown."""
    parts = rows.split(WINDOW)
    unknown = sum(int((part == tokenizer.vocab["[UNK]"]).sum()) for part in parts)
    special = torch.tensor([tokenizer.vocab[token] for token in ("[PAD]", "[CLS]", "[SEP]")])
    share = unknown / max(1, sum(int((~torch.isin(part.long(), special)).sum()) for part in parts))
    remedy = "use a larger --vocabulary, and no --tokenizer of another language"
    if share > UNKNOWN_REFUSED:
        raise ValueError(f"the vocabulary lacks {share:.0%} of the tokens in {path} ([UNK]): {remedy}")
    line = f"Unknown tokens ([UNK]): {share:.1%}"
    return f"{line}. {remedy.capitalize()}." if share > UNKNOWN_NOTED else line


def requirements(config: BertConfig, tokenizer: str | None) -> str:
    """Return what the notebooks will miss in a model of this size and vocabulary, and how to get it."""
    size = "The notebooks will run on this model."
    if missing := missing_sizes(config):
        remedy = "Use --layers 6 --heads 12 --hidden 384 --positions 512 for them."
        size = f"Some cells of the notebooks need a larger model ({missing}). {remedy}"
    if tokenizer:
        return size
    words = "Where a notebook follows an English word that the vocabulary lacks, it will follow its first piece."
    pronouns = "Notebook 10, which is about English pronouns, will use the default model if it lacks those."
    return f"{size}\n{words}\n{pronouns}"


def prepare(settings: Settings, options: argparse.Namespace, accelerator: Accelerator) -> Run:
    """Return a new run on your texts, or on the reviews; for your texts, print sizes and requirements."""
    if options.data:
        accelerator.print(requirements(options.config, options.tokenizer))
        tokenizer, rows, held_out = read_own(options, accelerator)
    else:
        tokenizer, rows, held_out = read_reviews(options.config, options.limit)
    config = BertConfig(**options.config.to_dict() | {"vocab_size": len(tokenizer.vocab)})  # smaller, for few texts
    torch.manual_seed(settings.seed)
    model = TransformerForMaskedLM(config).to(accelerator.device)
    if options.data:
        size = sum(weight.numel() for weight in model.parameters())
        accelerator.print(f"Vocabulary: {len(tokenizer.vocab):,} tokens")
        accelerator.print(unknown_tokens(rows, tokenizer, ", ".join(options.data)))
        accelerator.print(f"Training data: {len(rows):,} rows of {rows.size(1)} tokens")
        accelerator.print(f"Model: {size / 1e6:.1f} million parameters")
    return Run(model, tokenizer, rows, held_out, settings, accelerator)


@torch.no_grad()
def compare_with_counts(
    model: TransformerForMaskedLM, tokenizer, rows: Tensor, counted: Tensor
) -> dict[str, Evaluation]:
    """Return loss and accuracy at [MASK] in rows (N, S) of a model, and of two baselines that count in other rows.

    One baseline knows the frequency of each word, the other also the words between each pair of neighbours.
    """
    guess, totals = NeighbourCounts(counted, model.config.vocab_size), {}
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    with evaluation_mode(model):
        size = max(1, 2000 // rows.size(1))  # rows at a time, since counts are (N, V)
        for ids, wanted in zip(hidden.split(size), labels.split(size), strict=True):
            where = (wanted != -100) & (ids == tokenizer.vocab["[MASK]"])
            if not where.any():
                continue
            device = device_of(model)
            scores = {"model": model(ids.to(device), where=where.to(device)).cpu()}
            scores["both neighbours, counted"] = guess.probabilities(ids, where).log()
            scores["frequencies, counted"] = torch.from_numpy(guess.word).log().expand(int(where.sum()), -1)
            for name, each in scores.items():
                totals[name] = totals.get(name, 0) + loss_sums(each, wanted[where])
    return {name: summarize(sums) for name, sums in totals.items()}


def evaluation_report(run: Run) -> str:
    """Return the accuracy on masked tokens of held-out texts, of the model and of two baselines that count."""
    found = compare_with_counts(run.model, run.tokenizer, run.held_out, run.rows[:BASELINE_ROWS].long())
    lines = [f"Accuracy on {found['model'].total:,} masked tokens of held-out texts:"]
    for name, each in found.items():
        lines.append(f"{name:<26} {each.accuracy:>6.1%}, loss {each.loss:.2f}")
    if len(run.rows) > BASELINE_ROWS:
        lines.append(f"(The baselines count in the first {BASELINE_ROWS:,} of {len(run.rows):,} rows.)")
    return "\n".join(lines)


def main() -> None:
    """Begin a run, or resume the run in the folder."""
    with ExitStack() as stack:
        with exit_on_error():
            settings, options = read_options()
            folder, until = options.folder, options.until or settings.steps
            accelerator = start(options.cpu)
            if accelerator.is_main_process:  # it holds the lock until it ends, even if it is killed
                folder.mkdir(parents=True, exist_ok=True)
                busy = f"another run is using {folder}: wait for it to finish, stop it, or choose another folder"
                stack.enter_context(locked(folder / ".run.lock", busy))
            run = prepare(settings, options, accelerator)
            if (folder / STATE_FILE).is_file():
                run.resume(folder)
            if accelerator.is_main_process:  # a killed run may have left no checkpoint
                run.save(folder, dry_run=not run.done)
        try:
            with exit_on_error((FloatingPointError, OSError, ValueError)):
                run.learn(min(until, settings.steps), folder)
            if run.done == settings.steps and options.data and accelerator.is_main_process:
                print(evaluation_report(run))
                print(f"Open the notebooks on this model: make lab CHECKPOINT={folder / CHECKPOINT}")
            accelerator.wait_for_everyone()  # until the main process has saved the model
        except KeyboardInterrupt:
            accelerator.print(f"Interrupted. The same command resumes from the last round saved in {folder}.")
        accelerator.end_training()


if __name__ == "__main__":
    main()
