"""Store the tiny BERT that scripts/pretrain.py has trained, and what it predicts for held-out reviews.

`python -m benchmarks.records.pretraining FOLDER` reads a run, stores its weights (float16) in utils/data/tiny_bert and
its losses and evaluation in utils/data/pretraining.json, which notebook 11 plots.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional as F

from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.pretraining import EVAL_MASKING_RATE, Settings, fill_rows
from utils.support.checks import SPECIAL_TOKENS
from utils.support.datasets import DATA, imdb_reviews
from utils.support.files import write_file
from utils.support.intervals import bootstrap_interval
from utils.support.neighbour_counts import NeighbourCounts
from utils.tokenization import WordPieceTokenizer

MODEL, RESULTS = DATA / "tiny_bert", DATA / "pretraining.json"
ROWS_A_REVIEW = 6  # approximately; rows of one review are not independent


class WiderCounts(NeighbourCounts):
    """Counts with up to two neighbours on either side; where these are rare, fewer of them take over."""

    WIDER = 10  # the weight of the fallback from three neighbours to two, in counts

    def __init__(self, rows: Tensor, vocab_size: int):
        """Count in rows (N, S) of ids."""
        super().__init__(rows, vocab_size)
        inner = torch.ones_like(rows, dtype=torch.bool)
        inner[:, [0, -1]] = False
        contexts, words = self.contexts(rows, inner), rows.long()[inner].numpy()
        self.two, self.three = ([self.count(given, words) for given in each] for each in contexts[1:])

    def contexts(self, ids: Tensor, where: Tensor) -> list[list[np.ndarray]]:
        """Return the neighbours of each word: one on each side, ids of two on a side, and ids of two and one."""
        padded, base = F.pad(ids.long(), (2, 2), value=self.size), self.size + 1
        columns = (padded[:, start : start + ids.size(1)][where].numpy() for start in range(5))
        far_left, left, _, right, far_right = columns
        two = [far_left * base + left, far_right * base + right]
        return [[left, right], two, [two[0] * base + right, two[1] * base + left]]

    def probabilities(self, hidden: Tensor, where: Tensor) -> Tensor:
        """Return probabilities (N, V) of the words where `where` is True, from ids (B, S) with words masked."""
        one, two, three = self.contexts(hidden, where)
        sides = zip(self.two, two, self.one_sided(*one), strict=True)
        sides = [self.smooth(self.look_up(*counts, ids), near, self.ALONE) for counts, ids, near in sides]
        near = self.combine(*sides, *one)
        wide = (
            self.smooth(self.look_up(*counts, ids), near, self.WIDER)
            for counts, ids in zip(self.three, three, strict=True)
        )
        both = np.prod([*wide], axis=0) / near  # as if the farthest two were independent given the others
        return torch.from_numpy(both / both.sum(axis=1, keepdims=True))


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
    facts = {"sha256": sha256, "command": command, "settings": settings}
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
    """Return loss and accuracy on test reviews for the model, for counts of neighbours, and for the most frequent word.

    They are measured at [MASK] only, since elsewhere the token shown is often the answer. The result also has the loss
    at all masked positions, as in the curve, where the trigram counts may copy the token shown.
    """
    length = model.config.max_position_embeddings
    rows = fill_rows(imdb_reviews("test")[:1000], tokenizer, length)
    guess = WiderCounts(fill_rows(imdb_reviews("train"), tokenizer, length), model.config.vocab_size)
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    found = {name: [] for name in ("model", "neighbours", "two neighbours", "unigram", "neighbours and copies")}
    for ids, wanted in zip(hidden.split(64), labels.split(64), strict=True):
        where = wanted != -100
        answers, every = wanted[where], torch.arange(int(where.sum()))
        shares = {"model": model(ids, where=where).softmax(dim=-1)}
        shares["neighbours"] = NeighbourCounts.probabilities(guess, ids, where)
        shares["two neighbours"] = guess.probabilities(ids, where)
        shares["unigram"] = torch.from_numpy(guess.word).expand(len(every), -1)
        shares["neighbours and copies"] = add_copies(shares["neighbours"], ids[where], tokenizer)
        for name, share in shares.items():
            right = (share.argmax(dim=-1) == answers).float()
            found[name].append(torch.stack([-share[every, answers].log().float(), right]))
    scores = {name: torch.cat(parts, dim=1) for name, parts in found.items()}
    result = {"everywhere": {name: scores[name][0].mean().item() for name in ("model", "neighbours and copies")}}
    is_hidden = hidden[labels != -100] == tokenizer.vocab["[MASK]"]
    for name in ("unigram", "neighbours", "two neighbours", "model"):
        loss, right = scores[name][:, is_hidden].mean(dim=1).tolist()
        result[name] = {"loss": loss, "accuracy": right}
    review = torch.nonzero(labels != -100)[is_hidden, 0] // ROWS_A_REVIEW
    _, words = review.unique(return_counts=True)
    for index, measure in enumerate(("loss", "accuracy")):
        for rival in ("neighbours", "two neighbours"):
            lead = (scores["model"] - scores[rival])[index, is_hidden]
            means = torch.tensor([part.mean() for part in lead.split(words.tolist())])
            result[f"{measure} against {rival}"] = [lead.mean().item(), *bootstrap_interval(means.tolist())]
    return result | {"words": len(review)}


def main() -> None:
    """Store the weights of a run and its evaluation."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of a run of scripts/pretrain.py; by default the stored weights"
    )
    folder = parser.parse_args().folder
    if folder:
        checkpoint = str(folder / "checkpoint")
        model = TransformerForMaskedLM.from_checkpoint(checkpoint)
        model.save(MODEL, WordPieceTokenizer.from_checkpoint(checkpoint), dtype=torch.float16)
    results = read_results(folder, (MODEL / "model.safetensors").read_bytes())
    tokenizer = WordPieceTokenizer.from_checkpoint(str(MODEL))
    results["held out"] = held_out(TransformerForMaskedLM.from_checkpoint(str(MODEL)), tokenizer)
    write_file(RESULTS, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
