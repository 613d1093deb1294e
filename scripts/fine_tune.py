"""Fine-tune a classifier on the review sentences of notebook 08, or on your own CSV, in one process or many.

`python scripts/fine_tune.py --epochs 3 --save FOLDER`; `--data FILE.csv --text COLUMN --label COLUMN` takes your own
sentences, with as many classes as there are different labels. On several GPUs or machines `accelerate launch
scripts/fine_tune.py …`. Two processes without a GPU: `accelerate launch --multi_gpu --num_processes 2
scripts/fine_tune.py --cpu`.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

from processes import add_up, share, start
from utils.checkpoint import load_config
from utils.classifier import TransformerForSequenceClassification
from utils.datasets import LABELS, read_labelled, reviews
from utils.statistics import wilson_interval
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, classify, compute_logits, encode, fit, plan_batches, summarize, summed


def starting_model(checkpoint: str | None, num_labels: int) -> TransformerForSequenceClassification:
    """A saved classifier with the head it has, any other checkpoint under an untrained one.

    SystemExit for a saved classifier with another number of classes than the data.
    """
    is_folder = checkpoint and Path(checkpoint).is_dir()
    if not is_folder or "BertForSequenceClassification" not in (load_config(checkpoint).architectures or ()):
        return TransformerForSequenceClassification.from_checkpoint(checkpoint, num_labels)
    model = TransformerForSequenceClassification.load(checkpoint)
    if model.config.num_labels != num_labels:
        counts = f"{checkpoint} tells {model.config.num_labels} classes apart, and the data has {num_labels}"
        raise SystemExit(f"{counts}: take another checkpoint, or data with its classes")
    return model


def read_data(options: argparse.Namespace) -> tuple:
    """Three parts of the reader's own file or of the reviews, and the classes' names; SystemExit for a bad file."""
    if options.data is None:
        return *reviews(), LABELS
    try:
        return read_labelled(options.data, options.text, options.label)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


def read_options() -> argparse.Namespace:
    """The command line."""
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
    parser.add_argument("--save", help="folder to save the trained model in")
    return parser.parse_args()


def main() -> None:
    """Train, print how well the best epoch does on the test part, and save it."""
    options = read_options()
    *parts, names = read_data(options)
    accelerator = start(options.cpu)
    torch.manual_seed(options.seed)
    model = starting_model(options.checkpoint, len(names)).to(accelerator.device)
    tokenizer = WordPieceTokenizer.from_checkpoint(options.checkpoint)
    train, validation, test = (encode(model, tokenizer, part[: options.limit], None) for part in parts)
    if options.data is not None:
        accelerator.print(f"{len(names)} classes: {', '.join(names)}; {len(train[0])} texts to learn from")

    def measure(rows: list[list[int]], labels: Tensor) -> Evaluation:
        logits = compute_logits(model, share(rows, accelerator), batch_size=64)
        sums = summed(logits, share(labels, accelerator))
        return summarize(add_up(sums.to(accelerator.device), accelerator))

    if options.epochs:
        plan = plan_batches(train[0], options.epochs, options.batch_size, options.seed)
        parallel = accelerator.prepare(model)
        torch.manual_seed(1000 * options.seed + accelerator.process_index)  # each draws its own dropout
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
        model.save(options.save, tokenizer, names)
    accelerator.wait_for_everyone()  # nobody leaves before the model is saved
    accelerator.end_training()


if __name__ == "__main__":
    main()
