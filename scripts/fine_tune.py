"""Fine-tune a classifier on the review sentences of notebook 08, or on your own CSV, in one process or many.

`python scripts/fine_tune.py --epochs 3 --save FOLDER`; `--data FILE.csv --text COLUMN --label COLUMN` takes your own
sentences, with as many classes as there are different labels. A checkpoint that was saved as a classifier keeps its
last layer and its classes, which are matched with the data's by their names; any other gets an untrained one. On
several GPUs or machines `accelerate launch scripts/fine_tune.py …`. Two processes without a GPU: `accelerate launch
--multi_gpu --num_processes 2 scripts/fine_tune.py --cpu`.
"""

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor

from processes import add_up, in_words, share, start
from utils.checkpoint import load_config
from utils.checks import check_between, check_size
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import LABELS, Examples, read_labelled, reviews
from utils.files import check_writable
from utils.saving import check_own_folder
from utils.statistics import wilson_interval
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, classify, compute_logits, encode, fit, plan_batches, summarize, summed


def read_options() -> argparse.Namespace:
    """The command line; ValueError for a number that leaves nothing to do, OSError for a place that is not ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a CSV file of your own, with a header; else the review sentences")
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
    check_size("--epochs", options.epochs, least=0, most=10_000)
    check_size("--batch-size", options.batch_size)
    check_size("--seed", options.seed, least=0, most=10**9)
    check_between("--learning-rate", options.learning_rate, 0, 1, "5e-5 suits BERT")
    if options.limit is not None:
        check_size("--limit", options.limit)
    if options.save is not None:
        options.save = options.save.expanduser().resolve()
        check_own_folder(options.save, TransformerForSequenceClassification.architecture)
        check_writable(options.save)
    return options


def read_data(options: argparse.Namespace) -> tuple[list[Examples], Sequence[str], list[str]]:
    """Three parts of the reader's own file or of the reviews, the classes' names, and what was read, in lines."""
    if options.data is None:
        return [part[: options.limit] for part in reviews()], LABELS, []
    own = read_labelled(options.data, options.text, options.label)
    parts = [part[: options.limit] for part in own[:3]]
    different = sum(len(part) for part in own[:3])
    told = [f"{own.rows} rows read, {different} different texts"]
    if own.over_lines:
        told += [f"{own.over_lines} of them run over several lines, as a stray quote makes them: look there"]
    return parts, own.names, [*told, f"{len(own.names)} classes, {len(parts[0])} texts to learn from"]


def starting_model(
    checkpoint: str | None, names: Sequence[str]
) -> tuple[TransformerForSequenceClassification, list[str], str]:
    """A saved classifier with its last layer, any other checkpoint under an untrained one; its classes; what it is.

    ValueError for a saved classifier of other classes than the data's. One whose classes have no names gets theirs.
    """
    kind, config = TransformerForSequenceClassification, load_config(checkpoint)
    if kind.architecture not in (config.architectures or ()):
        new = f"last layer: new and untrained, since {config.name_or_path} has none"
        return kind.from_checkpoint(checkpoint, len(names)), list(names), new
    model = kind.from_checkpoint(checkpoint)
    found = [config.id2label[number] for number in sorted(config.id2label)]
    unnamed = found == [f"LABEL_{number}" for number in range(len(found))]
    if len(found) != len(names) or (set(found) != set(names) and not unnamed):
        both = f"{config.name_or_path} tells {', '.join(found)} apart, and the data has {', '.join(names)}"
        raise ValueError(f"{both}: take another checkpoint, or data with its classes")
    classes = list(names) if unnamed else found
    return model, classes, f"last layer: that of {config.name_or_path}, for {', '.join(classes)}"


def main() -> None:
    """Train, print how well the best epoch does on the test part, and save it."""
    with in_words():
        options = read_options()
        parts, names, told = read_data(options)
        accelerator = start(options.cpu)
        torch.manual_seed(options.seed)
        model, classes, last_layer = starting_model(options.checkpoint, names)
        tokenizer = WordPieceTokenizer.from_checkpoint(options.checkpoint)
        numbers = [classes.index(name) for name in names]  # the model's, of the data's
        parts = [Examples(part.texts, [numbers[label] for label in part.labels]) for part in parts]
        train, validation, test = (encode(model, tokenizer, part, None) for part in parts)
        plan = (
            plan_batches(train[0], options.epochs, options.batch_size, options.seed) if options.epochs else []
        )
        for shared in (validation[0], test[0], *chain.from_iterable(plan)):
            share(shared, accelerator)  # an error now, rather than after an epoch
    model.to(accelerator.device)
    accelerator.print("\n".join([*told, last_layer]))

    def measure(rows: list[list[int]], labels: Tensor) -> Evaluation:
        logits = compute_logits(model, share(rows, accelerator), batch_size=64)
        sums = summed(logits, share(labels, accelerator))
        return summarize(add_up(sums.to(accelerator.device), accelerator))

    if plan:
        parallel = accelerator.prepare(model)
        torch.manual_seed(1000 * options.seed + accelerator.process_index)  # each draws its own dropout
        with in_words((FloatingPointError,)):
            history = fit(
                model,
                plan,
                loss=lambda batch: add_up(classify(parallel, *train, share(batch, accelerator)), accelerator),
                validate=lambda: measure(*validation),
                learning_rate=options.learning_rate,
                quiet=not accelerator.is_main_process,
            )
        accelerator.unwrap_model(parallel, keep_fp32_wrapper=False)  # measured as it is saved, in float32
        many = f"{accelerator.num_processes} process" + "es" * (accelerator.num_processes > 1)
        accelerator.print(f"{many}, {history.ended}, best epoch {history.best_epoch}")
    tested = measure(*test)
    low, high = wilson_interval(round(tested.accuracy * tested.total), tested.total)
    accuracy = f"test accuracy {tested.accuracy:.1%} ({low:.1%} … {high:.1%}) of {tested.total}"
    accelerator.print(f"{accuracy}, loss {tested.loss:.4f}")
    if options.save and accelerator.is_main_process:
        model.save(options.save, tokenizer, classes)
    accelerator.wait_for_everyone()  # nobody leaves before the model is saved
    accelerator.end_training()


if __name__ == "__main__":
    main()
