"""Fine-tune on the review sentences of notebook 08, on your own CSV, or on words with labels, in one process or many.

`python scripts/fine_tune.py --epochs 3 --save FOLDER` trains on the reviews. `--data FILE --text COLUMN --label COLUMN`
takes your own sentences (CSV, a table with tabs, or JSON Lines), with as many classes as there are different labels.
`--tokens FILE` takes words, as CSV or CoNLL-2003 have them: a word and its label in each row, no header, an empty row
between texts (notebook 15). A checkpoint that was saved with classes of this kind keeps its last layer and its classes,
which are matched with the data's by their names; any other gets an untrained one.

On several GPUs or machines `accelerate launch scripts/fine_tune.py …`. Two processes without a GPU: `accelerate launch
--multi_gpu --num_processes 2 scripts/fine_tune.py --cpu`.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor

from processes import add_up, in_words, share, start
from utils.classifier import TransformerForSequenceClassification
from utils.statistics import wilson_interval
from utils.support.batches import evaluation_mode, sorted_batches
from utils.support.checkpoint import load_config
from utils.support.checks import check_between, check_size
from utils.support.datasets import SENTIMENTS, Examples, reviews
from utils.support.labelled_texts import read_labelled
from utils.support.labelled_words import read_words
from utils.support.saving import SavedModel
from utils.token_labels import (
    Score,
    TransformerForTokenClassification,
    align_parts,
    count_spans,
    join_parts,
    label_tokens,
    predict_rows,
    score_classes,
    spans,
)
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, classify, encode, fit, plan_batches, summarize


class TextLabels:
    """A label for each text: what is read, how a batch is learned, and what is said of the test part."""

    kind = TransformerForSequenceClassification

    def __init__(self, options: argparse.Namespace):
        """Read the reader's own file, or the reviews."""
        if options.data is None:
            self.parts, self.names = [part[: options.limit] for part in reviews()], SENTIMENTS
            self.told = [describe_classes(SENTIMENTS, (label for part in self.parts for label in part.labels))]
            return
        own = read_labelled(options.data, options.text, options.label)
        self.parts, self.names = [part[: options.limit] for part in own[:3]], own.names
        self.told = [f"{own.rows} rows read, {sum(map(len, own[:3]))} different texts"]
        if own.multiline_rows:
            self.told += [f"{own.multiline_rows} of them contain line breaks, which a stray quote causes: look there"]
        if own.contradicted:
            self.told += [f"{own.contradicted} texts have different labels in several rows: the first is used"]
        if own.rewritten:
            self.told += ["labels read as whole numbers: " + ", ".join(f"{a} as {b}" for a, b in own.rewritten.items())]
        self.told += [describe_classes(own.names, (label for part in own[:3] for label in part.labels))]
        self.told += [f"{len(self.parts[0])} texts to learn from"]

    def encode(self, model: SavedModel, tokenizer: WordPieceTokenizer, classes: list[str]) -> None:
        """Turn all parts into rows of ids, and the data's labels into the model's classes."""
        numbers = [classes.index(name) for name in self.names]
        parts = [Examples(part.texts, [numbers[label] for label in part.labels]) for part in self.parts]
        self.encoded = [encode(model, tokenizer, part, None) for part in parts]
        self.rows = [rows for rows, _ in self.encoded]  # of each part, the ids
        room, longer = model.config.max_position_embeddings, 0
        for part, rows in zip(parts, self.rows, strict=True):
            full = (text for text, ids in zip(part.texts, rows, strict=True) if len(ids) == room)
            longer += sum(len(tokenizer.encode(text)) > room for text in full)
        if longer:
            self.told.append(f"texts of more than {room} tokens, of which the rest is cut off: {longer}")

    def loss(self, model: torch.nn.Module, part: int, batch: Sequence[int]) -> Tensor:
        """Summed loss, right answers and number of them, (3,)."""
        return classify(model, *self.encoded[part], list(batch))

    def report(self, model: SavedModel, tested: Evaluation) -> str:
        """The share of the most frequent class, and the accuracy."""
        low, high = wilson_interval(round(tested.accuracy * tested.total), tested.total)
        accuracy = f"test accuracy {tested.accuracy:.1%} ({low:.1%} … {high:.1%}) of {tested.total}"
        return f"{most_frequent(self.names, self.parts[2].labels)}\n{accuracy}, loss {tested.loss:.4f}"


class WordLabels:
    """A label for each word, as `TextLabels`."""

    kind = TransformerForTokenClassification

    def __init__(self, options: argparse.Namespace):
        """Read the reader's own file."""
        own = read_words(options.tokens)
        self.parts, self.names = [part[: options.limit] for part in own[:3]], own.names
        place = f" from {own.columns}," * bool(own.columns)
        different = sum(map(len, own[:3]))
        self.told = [f"{own.words:,} words read{place} in {own.texts} texts, {different} of them different"]
        if own.contradicted:
            self.told += [f"{own.contradicted} texts come again with different labels: the first are used"]
        self.told += [describe_classes(own.names, (label for part in own[:3] for _, found in part for label in found))]
        self.told += [f"{len(self.parts[0])} texts to learn from"]

    def encode(self, model: SavedModel, tokenizer: WordPieceTokenizer, classes: list[str]) -> None:
        """Turn all parts into rows of ids and aligned labels, several for a text that the model cannot read at once."""
        room = model.config.max_position_embeddings
        self.classes, numbers = classes, [classes.index(name) for name in self.names]
        self.truth = [[self.names[label] for label in labels] for _, labels in self.parts[2]]
        self.encoded, self.texts = [], []
        for part in self.parts:
            cut = [align_parts(words, [numbers[label] for label in labels], tokenizer, room) for words, labels in part]
            self.encoded.append([row for rows in cut for row in rows])
            self.texts.append([len(rows) for rows in cut])
        if longer := sum(count > 1 for counts in self.texts for count in counts):
            self.told.append(f"texts of more than {room} tokens, cut between two words: {longer}")
        self.rows = [[ids for ids, _ in part] for part in self.encoded]

    def loss(self, model: torch.nn.Module, part: int, batch: Sequence[int]) -> Tensor:
        """Summed loss, right answers and number of them, (3,)."""
        return label_tokens(model, self.encoded[part], batch)

    def report(self, model: SavedModel, tested: Evaluation) -> str:
        """Precision, recall and F1 of each class, and of whole spans where labels have them."""
        numbers = join_parts(predict_rows(model, self.encoded[2]), self.texts[2])
        answers = [[self.classes[number] for number in text] for text in numbers]
        lines = [most_frequent(self.names, [label for _, labels in self.parts[2] for label in labels])]
        lines += [f"test accuracy {tested.accuracy:.1%} of {tested.total} words, loss {tested.loss:.4f}"]
        lines += table("class", score_classes(self.truth, answers, self.classes))
        if "O" not in self.classes:
            return "\n".join([*lines, 'no spans, since no word has the label "O" (outside)'])
        sides = [[spans(labels, self.classes) for labels in side] for side in (self.truth, answers)]
        kinds = sorted({kind for side in sides for text in side for kind, *_ in text})
        of_kind = {
            kind: count_spans(*([{one for one in text if one[0] == kind} for text in side] for side in sides))
            for kind in kinds
        }
        return "\n".join([*lines, *table("whole spans", of_kind | {"all": count_spans(*sides)})])


def describe_classes(names: Sequence[str], labels: Iterable[int]) -> str:
    """Return how many classes there are, and the names of up to twenty with their counts."""
    counts = Counter(labels)
    named = [f"{name:.40} ({counts[number]:,})" for number, name in enumerate(names[:20])]
    named += [f"and {len(names) - 20} more"] * (len(names) > 20)
    return f"{len(names)} classes: {', '.join(named)}"


def most_frequent(names: Sequence[str], labels: Sequence[int]) -> str:
    """Return the share of the most frequent class, which an answer that never changes would get right."""
    [(label, count)] = Counter(labels).most_common(1)
    return f"most frequent class in the test part: {names[label]:.40}, {count / len(labels):.1%}"


def read_options() -> argparse.Namespace:
    """The command line; ValueError for a number that leaves nothing to do, OSError for a place that is not ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="your own table with a header, CSV or JSON Lines; else the review sentences")
    parser.add_argument("--tokens", help="your own words, one and its label in each row, as in CSV or CoNLL-2003")
    parser.add_argument("--text", default="text", help="its column with the texts (default: text)")
    parser.add_argument("--label", default="label", help="its column with the labels (default: label)")
    parser.add_argument("--checkpoint", help="a local folder or a name on the Hub; else the embedded one")
    parser.add_argument("--epochs", type=int, default=2, help="0 only measures what the checkpoint can do")
    parser.add_argument("--batch-size", type=int, default=32, help="of all processes together (default: 32)")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="use so many examples of each part only")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU, in spite of a GPU")
    parser.add_argument("--save", type=Path, help="folder to save the trained model in")
    options = parser.parse_args()
    check_size("--epochs", options.epochs, minimum=0, maximum=10_000)
    check_size("--batch-size", options.batch_size)
    check_size("--seed", options.seed, minimum=0, maximum=10**9)
    check_between("--learning-rate", options.learning_rate, 0, 1, "5e-5 suits BERT")
    if options.limit is not None:
        check_size("--limit", options.limit)
    if options.data is not None and options.tokens is not None:
        raise ValueError(f"--data={options.data} and --tokens={options.tokens} are two tasks: pass one of them")
    if options.save is not None:
        (TextLabels if options.tokens is None else WordLabels).kind.check_folder(options.save)
    return options


def starting_model(
    kind: type[SavedModel], checkpoint: str | None, names: Sequence[str]
) -> tuple[SavedModel, list[str], str]:
    """A saved model of this kind with its last layer, any other under an untrained one; its classes; what it is.

    ValueError for data with a class that a saved one does not have. One whose classes have no names gets the data's:
    whole numbers below the number of its classes are their numbers, other names are taken in order.
    """
    config = load_config(checkpoint)
    if kind.architecture not in (config.architectures or ()):
        new = f"last layer: new and untrained, since {config.name_or_path} has none"
        return kind.from_checkpoint(checkpoint, len(names)), list(names), new
    model = kind.from_checkpoint(checkpoint)
    classes = [config.id2label[number] for number in sorted(config.id2label)]
    if classes == [f"LABEL_{number}" for number in range(len(classes))] and not set(names) <= set(classes):
        numbered = [str(number) for number in range(len(classes))]
        classes = numbered if set(names) <= set(numbered) else list(names) if len(names) == len(classes) else classes
    if not set(names) <= set(classes):
        both = f"{config.name_or_path} tells {', '.join(classes)} apart, and the data has {', '.join(names)}"
        raise ValueError(f"{both}: take another checkpoint, or data with its classes")
    return model, classes, f"last layer: that of {config.name_or_path}, for {', '.join(classes)}"


def table(title: str, scores: dict[str, Score]) -> list[str]:
    """Lines of a table: precision, recall and F1 of each name, and how many there are."""
    width = max(len(name) for name in (title, *scores))
    lines = [f"{title:<{width}}  precision  recall    F1  there"]
    for name, found in scores.items():
        numbers = f"{found.precision:>9.2f}  {found.recall:>6.2f}  {found.f1:>4.2f}  {found.there:>5}"
        lines.append(f"{name:<{width}}  {numbers}")
    return lines


def main() -> None:
    """Train, print how well the best epoch does on the test part, and save it."""
    with in_words():
        options = read_options()
        task = TextLabels(options) if options.tokens is None else WordLabels(options)
        accelerator = start(options.cpu)
        torch.manual_seed(options.seed)
        model, classes, last_layer = starting_model(task.kind, options.checkpoint, task.names)
        tokenizer = WordPieceTokenizer.from_checkpoint(options.checkpoint)
        if options.save and accelerator.is_main_process:
            model.save(options.save, tokenizer, classes, dry_run=True)  # an error now, rather than after the training
        task.encode(model, tokenizer, classes)
        train, *others = task.rows
        plan = plan_batches(train, options.epochs, options.batch_size, options.seed) if options.epochs else []
        for shared in (*others, *chain.from_iterable(plan)):
            share(shared, accelerator)  # an error now, rather than after an epoch
    model.to(accelerator.device)
    accelerator.print("\n".join([*task.told, last_layer]))

    @torch.no_grad()
    def measure(part: int) -> Evaluation:
        mine, sums = (share(range(len(task.rows[part])), accelerator), torch.zeros(3, device=accelerator.device))
        with evaluation_mode(model):
            for batch in sorted_batches([task.rows[part][index] for index in mine], 64):
                sums += task.loss(model, part, [mine[place] for place in batch])
        return summarize(add_up(sums, accelerator))

    if plan:
        parallel = accelerator.prepare(model)
        torch.manual_seed(1000 * options.seed + accelerator.process_index)  # each draws its own dropout
        with in_words((FloatingPointError,)):
            history = fit(
                model,
                plan,
                loss=lambda batch: add_up(task.loss(parallel, 0, share(batch, accelerator)), accelerator),
                validate=lambda: measure(1),
                learning_rate=options.learning_rate,
                quiet=not accelerator.is_main_process,
            )
        accelerator.unwrap_model(parallel, keep_fp32_wrapper=False)  # measured as it is saved, in float32
        many = f"{accelerator.num_processes} process" + "es" * (accelerator.num_processes > 1)
        accelerator.print(f"{many}, {history.ended}, best epoch {history.best_epoch}")
    tested = measure(2)
    if accelerator.is_main_process:
        print(task.report(model, tested))
        if options.save:
            with in_words():
                model.save(options.save, tokenizer, classes)
    accelerator.wait_for_everyone()  # nobody leaves before the model is saved
    accelerator.end_training()


if __name__ == "__main__":
    main()
