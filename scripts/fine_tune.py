"""Fine-tune BERT on the review sentences of notebook 08, on your own table of texts, or on words with labels.

`python scripts/fine_tune.py --epochs 3 --save FOLDER` trains on the reviews.
`--data FILE --text COLUMN --label COLUMN` trains on your own texts, from a CSV file, a tab-separated table or JSON
Lines, with one class per distinct label. A small table is repeated for about 100 steps. With `--text` twice, as in
`--text premise --text hypothesis`, it trains on pairs of texts.
`--tokens FILE` trains on words, from CSV or CoNLL-2003: a word and its label in each row, no header, and an empty row
between texts (notebook 15).

A checkpoint that was saved with a classification head for this task keeps its head and its classes, which are matched
with the labels of the data by name. Any other checkpoint gets a new head.

Several GPUs or machines: `accelerate launch scripts/fine_tune.py ...`. Two processes without a GPU:
`accelerate launch --multi_gpu --num_processes 2 scripts/fine_tune.py --cpu`.
"""

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig

from processes import add_up, check_common_options, exit_on_error, new_parser, share, start
from utils.classifier import TransformerForSequenceClassification
from utils.statistics import wilson_interval
from utils.support.batches import evaluation_mode, sorted_batches
from utils.support.checkpoint import CONFIG, Checkpoint
from utils.support.checks import check_size
from utils.support.datasets import SENTIMENTS, Examples, reviews
from utils.support.labelled_texts import missing_note, odd_names, parts_of, read_labelled
from utils.support.labelled_words import read_words
from utils.support.saving import SavedModel
from utils.support.scores import Score, is_outside, score_classes, score_spans, spans
from utils.token_labels import (
    TransformerForTokenClassification,
    align_parts,
    join_parts,
    predict_rows,
    token_classification_loss,
)
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, History, classification_loss, encode, fit, plan_batches, summarize

CLASSIFIERS = [f"BertFor{task}" for task in ("SequenceClassification", "TokenClassification", "MultipleChoice")]
FEW_STEPS = 100  # steps that small data needs; epochs and batches follow from it, unless they are given


class TextLabels:
    """The task of a label per text: the data, the loss of a batch, and the report on the test split."""

    kind = TransformerForSequenceClassification

    def __init__(self, options: argparse.Namespace):
        """Read your own file, or the reviews."""
        if options.data is None:
            splits, self.names, self.notes = reviews(), SENTIMENTS, []
        else:
            columns = options.text or ["text"]
            own = read_labelled(options.data, columns, options.label)
            splits, self.names, self.notes = own[:3], own.names, [f"Read {own.rows:,} rows."]
            self.notes += [f"Pairs of texts: {' and '.join(columns)}"] * (len(columns) > 1)
            self.notes += own.notes()
        self.splits = [split[: options.limit] for split in splits]
        self.notes += describe_data(self.splits, self.names, (label for split in self.splits for label in split.labels))

    def encode(self, model: SavedModel, tokenizer: WordPieceTokenizer, classes: list[str]) -> None:
        """Convert all splits to rows of ids, and the labels of the data to classes of the model."""
        class_ids = [classes.index(name) for name in self.names]
        splits = [Examples(split.texts, [class_ids[label] for label in split.labels]) for split in self.splits]
        self.encoded = [encode(model, tokenizer, split, None) for split in splits]
        self.rows = [rows for rows, _ in self.encoded]  # the ids of each split
        longest, truncated = model.config.max_position_embeddings, 0
        for split, rows in zip(splits, self.rows, strict=True):
            full = (text for text, ids in zip(split.texts, rows, strict=True) if len(ids) == longest)
            truncated += sum(len(tokenizer.encode(*parts_of(text))) > longest for text in full)
        if truncated:
            self.notes.append(f"Texts longer than {longest} tokens, which are truncated: {truncated}")

    def loss(self, model: torch.nn.Module, split: int, batch: Sequence[int]) -> Tensor:
        """Return the summed loss, the number of correct predictions and the number of texts, (3,)."""
        return classification_loss(model, *self.encoded[split], list(batch))

    def report(self, model: SavedModel, tested: Evaluation) -> str:
        """Return the share of the most frequent class, and the accuracy with its interval."""
        low, high = wilson_interval(round(tested.accuracy * tested.total), tested.total)
        interval = f"95% interval {low:.1%} to {high:.1%}"
        return "\n".join([baselines(self.names, self.test_labels), accuracy_line(tested, "texts", interval)])

    @property
    def test_labels(self) -> Sequence[int]:
        """Return the labels of the test split."""
        return self.splits[2].labels


class WordLabels:
    """The task of a label per word, with the methods of `TextLabels`."""

    kind = TransformerForTokenClassification

    def __init__(self, options: argparse.Namespace):
        """Read your own file."""
        own = read_words(options.tokens)
        self.splits, self.names = [split[: options.limit] for split in own[:3]], own.names
        source = f" from {own.columns}" if own.columns else ""
        self.notes = [f"Read {own.words:,} words{source} in {own.texts:,} texts."]
        if own.contradicted:
            self.notes += [f"Texts with different labels: {own.contradicted}. The first labels of each are used."]
        self.notes += odd_names(self.names) + missing_note("Labels", own.missing)
        labels = (label for split in self.splits for _, found in split for label in found)
        self.notes += describe_data(self.splits, self.names, labels)

    def encode(self, model: SavedModel, tokenizer: WordPieceTokenizer, classes: list[str]) -> None:
        """Convert all splits to rows of ids and aligned labels; a text longer than the model's maximum gets several."""
        longest = model.config.max_position_embeddings
        self.classes, class_ids = classes, [classes.index(name) for name in self.names]
        self.encoded, self.row_counts = [], []  # of each split: the rows, and how many of them each text has
        for split in self.splits:
            cut = [align_parts(words, [class_ids[i] for i in labels], tokenizer, longest) for words, labels in split]
            self.encoded.append([row for rows in cut for row in rows])
            self.row_counts.append([len(rows) for rows in cut])
        if divided := sum(count > 1 for counts in self.row_counts for count in counts):
            self.notes.append(f"Texts of more than {longest} tokens, divided between words: {divided}")
        self.rows = [[ids for ids, _ in split] for split in self.encoded]

    def loss(self, model: torch.nn.Module, split: int, batch: Sequence[int]) -> Tensor:
        """Return the summed loss, the number of correct predictions and the number of words, (3,)."""
        return token_classification_loss(model, self.encoded[split], batch)

    def report(self, model: SavedModel, tested: Evaluation) -> str:
        """Return precision, recall and F1 of each class, and of each kind of span if there is an outside label."""
        predicted = join_parts(predict_rows(model, self.encoded[2]), self.row_counts[2])
        answers = [[self.classes[class_id] for class_id in text] for text in predicted]
        truth = [[self.names[label] for label in labels] for _, labels in self.splits[2]]
        lines = [baselines(self.names, self.test_labels)]
        lines += [accuracy_line(tested, "words"), *table("class", score_classes(truth, answers, self.classes))]
        if not any(map(is_outside, self.classes)):
            return "\n".join([*lines, 'Spans are not scored, because no word has the label "O" (outside).'])
        sides = [[spans(labels, self.classes) for labels in side] for side in (truth, answers)]
        scores = {}
        for kind in sorted({kind for side in sides for text in side for kind, *_ in text}):
            scores[kind] = score_spans(
                *([{span for span in text if span[0] == kind} for text in side] for side in sides)
            )
        return "\n".join([*lines, *table("span", scores | {"all": score_spans(*sides)})])

    @property
    def test_labels(self) -> Sequence[int]:
        """Return the labels of all words of the test split."""
        return [label for _, labels in self.splits[2] for label in labels]


def describe_data(splits: Sequence[Sequence], names: Sequence[str], labels: Iterable[int]) -> list[str]:
    """Return lines with the sizes of the splits, and with up to twenty classes and their counts."""
    counts = Counter(labels)
    listed = [f"{name:.40} ({counts[label]:,})" for label, name in enumerate(names[:20])]
    listed += [f"and {len(names) - 20} more"] * (len(names) > 20)
    sizes = "{:,} for training, {:,} for validation, {:,} for the test".format(*map(len, splits))
    return [f"{len(names)} classes: {', '.join(listed)}", f"Distinct texts: {sizes}"]


def baselines(names: Sequence[str], labels: Sequence[int]) -> str:
    """Return a line with what guessing gets: the share of the most frequent class, and the loss of equal chances."""
    [(label, count)] = Counter(labels).most_common(1)
    share, loss = count / len(labels), math.log(len(names))
    return f"Most frequent class of the test split: {names[label]:.40} ({share:.1%}); loss of guessing: {loss:.4f}"


def accuracy_line(tested: Evaluation, unit: str, *details: str) -> str:
    """Return a line with accuracy and loss."""
    found = ", ".join([f"{tested.accuracy:.1%} of {tested.total:,} {unit}", *details, f"loss {tested.loss:.4f}"])
    return f"Test accuracy {found}"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = new_parser(__doc__)
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--data", metavar="FILE", help="your own texts, as CSV or JSON Lines (default: the reviews)")
    data.add_argument("--tokens", metavar="FILE", help="your own words with labels, as CSV or CoNLL-2003")
    texts = 'column with the texts (default: "text"); give it twice for pairs of texts'
    parser.add_argument("--text", action="append", metavar="COLUMN", help=texts)
    parser.add_argument("--label", default="label", help="column with the labels (default: %(default)s)")
    parser.add_argument("--checkpoint", help="local folder or name on the Hub (default: the embedded checkpoint)")
    parser.add_argument("--epochs", type=int, help=f"0 only evaluates (default: 2, or up to {FEW_STEPS} steps)")
    parser.add_argument("--batch-size", type=int, help="total of all processes (default: 32, or 8 for small data)")
    parser.add_argument("--learning-rate", type=float, default=5e-5, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="folder for the trained model")
    return parser


def read_options() -> argparse.Namespace:
    """Return the checked command line; ValueError for a value out of range, OSError for a folder that is not ours."""
    options = build_parser().parse_args()
    check_common_options(options)
    if options.epochs is not None:
        check_size("--epochs", options.epochs, minimum=0, maximum=10_000)
    if options.batch_size is not None:
        check_size("--batch-size", options.batch_size)
    check_size("--seed", options.seed, minimum=0, maximum=10**9)
    if options.save is not None:
        task_of(options).kind.check_folder(options.save)
    return options


def task_of(options: argparse.Namespace) -> type[TextLabels | WordLabels]:
    """Return the class of the task."""
    return TextLabels if options.tokens is None else WordLabels


def starting_model(
    kind: type[SavedModel], checkpoint: Checkpoint, names: Sequence[str]
) -> tuple[SavedModel, list[str], str]:
    """Return the model to train, its classes, and a line about its classification head.

    A checkpoint of the same kind keeps its head and its classes; ValueError if the data has other classes. Classes
    without names get those of the data: integers below the number of classes are their ids, other names are taken in
    order. ValueError for a classification head whose kind the configuration does not name.
    """
    config = checkpoint.config
    if kind.architecture in (config.architectures or ()):
        found, new_classes = class_names(config), None
        classes = name_classes(found, names)
        if not set(names) <= set(classes):
            raise ValueError(
                f"{checkpoint.name} has the classes {', '.join(classes)}, but the data has {', '.join(names)}: "
                "choose another checkpoint, or data with these classes"
            )
        head = f"from {checkpoint.name}, with the classes {', '.join(classes)}"
        head += " in this order, as the checkpoint does not name them" * (classes != found)
    else:
        classes, new_classes = list(names), len(names)
        reason = other_head(config, checkpoint.weights, kind.architecture)
        head = f"new and untrained, because {checkpoint.name} has {reason}"
    return kind.from_checkpoint(checkpoint, new_classes), classes, f"Classification head: {head}"


def other_head(config: BertConfig, weights: Iterable[str], architecture: str) -> str:
    """Return which other head a checkpoint has, such as "none"; ValueError for a classifier of an unknown kind."""
    if not any(name.startswith("classifier.") for name in weights):
        return "none"
    [kind] = [name for name in config.architectures or () if name in CLASSIFIERS][:1] or [None]
    if kind is None:
        named = ", ".join(config.architectures or ()) or "no class"
        raise ValueError(
            f"{config.name_or_path} has a classification head, but its {CONFIG} names {named} as architectures: "
            f'to use the head, write "architectures": ["{architecture}"] into it'
        )
    return f"one of {kind}"


def class_names(config: BertConfig) -> list[str]:
    """Return the names of a checkpoint's classes by their ids; LABEL_0, LABEL_1, … if it does not name them.

    The configuration has them twice, and one of the two may have only the default names. ValueError if they disagree.
    """
    given, ids = {class_id: str(name) for class_id, name in config.id2label.items()}, config.label2id or {}
    classes = [given[class_id] for class_id in sorted(given)]
    if classes == unnamed(len(classes)) and sorted(ids.values()) == [*range(len(classes))]:
        return sorted(ids, key=ids.get)
    if wrong := [name for class_id, name in given.items() if ids.get(name, class_id) != class_id]:
        raise ValueError(
            f"{config.name_or_path} gives the class {wrong[0]!r} two ids, in id2label and label2id: correct {CONFIG}"
        )
    return classes


def unnamed(count: int) -> list[str]:
    """Return the names that transformers gives to classes without names."""
    return [f"LABEL_{class_id}" for class_id in range(count)]


def name_classes(classes: list[str], names: Sequence[str]) -> list[str]:
    """Return the classes of a checkpoint, under the names of the data if they have only LABEL_0, LABEL_1, …"""
    if classes != unnamed(len(classes)) or set(names) <= set(classes):
        return classes
    ids = [str(class_id) for class_id in range(len(classes))]
    if set(names) <= set(ids):
        return ids
    return list(names) if len(names) == len(classes) else classes


def schedule(rows: int, epochs: int | None, batch_size: int | None, processes: int = 1) -> tuple[int, int]:
    """Return the given epochs and batch size, or those that make `FEW_STEPS` steps, in at least 2 epochs."""
    if batch_size is None:
        batch_size = 32 if rows >= 32 * FEW_STEPS / 2 else max(8, 2 * processes)
    if epochs is None:
        epochs = max(2, math.ceil(FEW_STEPS / math.ceil(rows / batch_size)))
    return epochs, batch_size


def weak_result(tested: Evaluation, labels: Sequence[int], classes: int, history: History) -> str:
    """Return a line for a model that is hardly better than guessing after its training, or ""."""
    share = max(Counter(labels).values()) / len(labels)
    if tested.loss < 0.9 * math.log(classes) and tested.accuracy > share:
        return ""
    more = "more --epochs, a smaller --batch-size" if history.ended == "finished" else "more texts"
    steps = f"After {len(history.step_losses)} steps the model is hardly better than guessing."
    return f"{steps} Try {more}, or --learning-rate 1e-4."


def table(title: str, scores: dict[str, Score]) -> list[str]:
    """Return the lines of a table: precision, recall, F1 and count (support) of each name."""
    width = max(len(name) for name in (title, *scores))
    lines = [f"{title:<{width}}  precision  recall    F1  support"]
    for name, found in scores.items():
        numbers = f"{found.precision:>9.2f}  {found.recall:>6.2f}  {found.f1:>4.2f}  {found.gold:>7}"
        lines.append(f"{name:<{width}}  {numbers}")
    return lines


class FineTuning:
    """A run: data, model and plan, with every error of the input raised before the training."""

    def __init__(self, options: argparse.Namespace):
        """Read data and checkpoint, and plan the batches of all epochs."""
        self.options, self.task, self.validated = options, task_of(options)(options), []
        self.accelerator = start(options.cpu)
        torch.manual_seed(options.seed)
        checkpoint = Checkpoint(options.checkpoint)
        self.model, self.classes, head = starting_model(self.task.kind, checkpoint, self.task.names)
        self.tokenizer = WordPieceTokenizer.from_checkpoint(checkpoint)
        self.save(dry_run=True)
        self.task.encode(self.model, self.tokenizer, self.classes)
        train, *others = self.task.rows
        epochs, batch_size = schedule(len(train), options.epochs, options.batch_size, self.accelerator.num_processes)
        self.plan = plan_batches(train, epochs, batch_size, options.seed) if epochs else []
        for shared in (*others, *chain.from_iterable(self.plan)):
            share(shared, self.accelerator)
        self.model.to(self.accelerator.device)
        steps = [f"Training: {epochs} epochs of {len(self.plan[0])} batches of up to {batch_size}"] if epochs else []
        self.accelerator.print("\n".join([*self.task.notes, head, *steps]))

    def train(self) -> History:
        """Train on this process's share of each batch, and keep the best epoch."""
        parallel = self.accelerator.prepare(self.model)
        torch.manual_seed(1000 * self.options.seed + self.accelerator.process_index)  # own dropout in each process
        history = fit(
            self.model,
            self.plan,
            loss=lambda batch: add_up(self.task.loss(parallel, 0, share(batch, self.accelerator)), self.accelerator),
            validate=self.validate,
            learning_rate=self.options.learning_rate,
            quiet=not self.accelerator.is_main_process,
        )
        # Evaluate in float32, the precision in which the model is saved.
        self.accelerator.unwrap_model(parallel, keep_fp32_wrapper=False)
        return history

    def validate(self) -> Evaluation:
        """Evaluate the model on the validation split, and remember the result, for a training that is interrupted."""
        self.validated.append(self.evaluate(1))
        return self.validated[-1]

    @torch.no_grad()
    def evaluate(self, split: int) -> Evaluation:
        """Evaluate the model on a split, of which each process takes its share."""
        mine = share(range(len(self.task.rows[split])), self.accelerator)
        sums = torch.zeros(3, device=self.accelerator.device)
        with evaluation_mode(self.model):
            for batch in sorted_batches([self.task.rows[split][index] for index in mine], 64):
                sums += self.task.loss(self.model, split, [mine[index] for index in batch])
        return summarize(add_up(sums, self.accelerator))

    def save(self, dry_run: bool = False) -> None:
        """Save the model if --save names a folder; if that fails after the training, save it in a temporary folder."""
        if not (self.options.save and self.accelerator.is_main_process):
            return
        try:
            self.model.save(self.options.save, self.tokenizer, self.classes, dry_run=dry_run)
        except (OSError, ValueError) as error:
            if dry_run:
                raise
            kept = Path(tempfile.mkdtemp(prefix="unsaved-"), "model")
            self.model.save(kept, self.tokenizer, self.classes)
            raise OSError(f"{error}\nThe trained model is in {kept}") from error


def main() -> None:
    """Train, save the model of the best epoch, and print its results on the test split."""
    with exit_on_error():
        run = FineTuning(read_options())
    accelerator = run.accelerator
    history = None
    if run.plan:
        with exit_on_error((FloatingPointError, torch.OutOfMemoryError)):
            try:
                history = run.train()
            except Exception:
                if any(math.isfinite(epoch.loss) for epoch in run.validated):  # `fit` has restored the best one
                    run.save()
                raise
        processes = f"{accelerator.num_processes} process" + "es" * (accelerator.num_processes > 1)
        accelerator.print(f"Training in {processes}: {history.ended}, best epoch {history.best_epoch}")
    with exit_on_error():
        run.save()
    tested = run.evaluate(2)
    if accelerator.is_main_process:
        print(run.task.report(run.model, tested))
        if history and (hint := weak_result(tested, run.task.test_labels, len(run.classes), history)):
            print(hint)
    accelerator.wait_for_everyone()  # until the main process has printed
    accelerator.end_training()


if __name__ == "__main__":
    main()
