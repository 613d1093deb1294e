"""Fine-tune a classifier on the review sentences of notebook 08, with its loop, in one process or many.

`python scripts/fine_tune.py --epochs 3 --save FOLDER`; on several GPUs or machines `accelerate launch
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
from utils.datasets import LABELS, reviews
from utils.statistics import wilson_interval
from utils.tokenization import WordPieceTokenizer
from utils.training import Evaluation, classify, compute_logits, encode, fit, plan_batches, summarize, summed


def starting_model(checkpoint: str | None) -> TransformerForSequenceClassification:
    """A saved classifier with the head it has, any other checkpoint under an untrained one."""
    is_folder = checkpoint and Path(checkpoint).is_dir()
    if is_folder and "BertForSequenceClassification" in (load_config(checkpoint).architectures or ()):
        return TransformerForSequenceClassification.load(checkpoint)
    return TransformerForSequenceClassification.from_checkpoint(checkpoint)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
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
    accelerator = start(options.cpu)
    torch.manual_seed(options.seed)
    model = starting_model(options.checkpoint).to(accelerator.device)
    tokenizer = WordPieceTokenizer.from_checkpoint(options.checkpoint)
    train, validation, test = (encode(model, tokenizer, part[: options.limit], None) for part in reviews())

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
        best = f"best epoch {history.best_epoch}"
        accelerator.print(f"{accelerator.num_processes} processes, {history.ended}, {best}")
    tested = measure(*test)
    low, high = wilson_interval(round(tested.accuracy * tested.total), tested.total)
    accuracy = f"test accuracy {tested.accuracy:.1%} ({low:.1%} … {high:.1%}) of {tested.total}"
    accelerator.print(f"{accuracy}, loss {tested.loss:.4f}")
    if options.save and accelerator.is_main_process:
        model.save(options.save, tokenizer, LABELS)
    accelerator.wait_for_everyone()  # nobody leaves before the model is saved
    accelerator.end_training()


if __name__ == "__main__":
    main()
