"""The exchange test: can a text's vector tell an exchange of two words that matters from a harmless one?

Built in notebook 01, section “What can tokens know?”; `mean_of` in notebook 02, section “Will positions be enough?”.
The notebooks up to 06 ask it about each part of the encoder.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.search import mean_pooling
from utils.statistics import wilson_interval
from utils.support.batches import collate, token_ids
from utils.support.datasets import DATA, review_sentences

RECORD = DATA / "exchanges.json"  # sentences by row, and the answers of each step: benchmarks/records/exchanges.py
PARTS = ("all", "open", "held", "unchosen")
RUNGS = {
    "01": "counted tokens",
    "02": "embeddings",
    "03": "one head",
    "04": "twelve heads",
    "05": "one layer",
    "06": "six layers",
}
TIE = 1e-5  # the tolerance of `compare`
SIGNS = {"1": 1.0, "0": 0.0, "h": 0.5}  # of answers in the record: right, wrong, a tie


def split_words(text: str) -> list[str]:
    """Return the lowercase words and the signs of a text."""
    return re.findall(r"[a-z]+|[^\sa-z]", text.lower())


def exchange(words: list[str], position: int) -> str:
    """Return the text in which the two words around a position have changed places.

    Built in notebook 01, section “What can tokens know? The exchange test”.
    """
    words = words.copy()
    words[position - 1], words[position + 1] = words[position + 1], words[position - 1]
    return " ".join(words)


@cache
def record() -> dict:
    """Return the recorded sentences, as rows and positions of each half, and the answers of each step."""
    return json.loads(RECORD.read_text("utf-8"))


@cache
def exchanges(part: str = "all") -> list[tuple[str, str, str]]:
    """Return review sentences: each as it is, with a harmless exchange (around "and" or "or"), and with a harmful one.

    There are 200. Choose on the `part` "open", a hundred of them, and report "held", the others. The part "unchosen"
    has 200 sentences that were not chosen against counting pairs of words.
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r:.80}")
    sentences, halves = review_sentences(), ("open", "held") if part == "all" else (part,)
    rows = [row for half in halves for row in record()[half]]
    found = [(split_words(sentences[row]), *places) for row, *places in rows]
    return [(" ".join(words), exchange(words, one), exchange(words, other)) for words, one, other in found]


@torch.inference_mode()
def answers(embedder: Callable[[list[str]], Tensor], part: str = "all") -> list[float]:
    """Return 1 for each sentence whose vector the harmless exchange moves less, 0 for the others, and 0.5 for a tie.

    `embedder` maps N texts to vectors (N, H). Cosines that agree to within 0.00001 are a tie. ValueError for vectors of
    another shape, and for those with nan or inf.
    Built in notebook 01, section “What can tokens know? The exchange test”.
    """
    found, triples = [], exchanges(part)
    for begin in range(0, len(triples), 10):
        texts = [text for triple in triples[begin : begin + 10] for text in triple]
        vectors = check_vectors(embedder(texts), len(texts)).double()
        sentence, harmless, harmful = F.normalize(vectors, dim=-1).unflatten(0, (-1, 3)).unbind(dim=1)  # (10, H) each
        lead = (sentence * harmless).sum(dim=-1) - (sentence * harmful).sum(dim=-1)  # of the cosines, (10,)
        found += [0.5 if abs(each) < TIE else float(each > 0) for each in lead.tolist()]
    return found


def score(embedder: Callable[[list[str]], Tensor], part: str = "all") -> tuple[float, int]:
    """Return for how many sentences the harmless exchange moves the vector less, and how many there are.

    `embedder` maps N texts to vectors, (N, H). Built in notebook 01, section “What can tokens know? The exchange test”.
    """
    found = answers(embedder, part)
    return sum(found), len(found)


def mean_of(states: Callable[[Tensor, Tensor], Tensor], tokenizer, device="cpu") -> Callable[[list[str]], Tensor]:
    """Return an embedder of texts: the mean over the tokens of what `states` makes of ids and mask, (B, S, H).

    Built in notebook 02, section “Will positions be enough?”.
    """

    def embedder(texts):
        batch = collate(token_ids(texts, tokenizer, 128), device)
        ids, mask = batch["input_ids"], batch["attention_mask"]
        return mean_pooling(states(ids, mask), mask)

    return embedder


def rungs(notebook: str, right: float) -> dict[str, tuple[float, float, float] | None]:
    """Return the ladder up to a notebook, for `plots.ladder`: right answers with their 95 % interval; None comes next.

    Earlier rungs are those of our own parts (benchmarks/records/exchanges.py), the last one is the given result on all
    sentences.
    """
    if notebook not in RUNGS:
        raise ValueError(f"notebook must be one of {', '.join(RUNGS)}, got {notebook!r:.80}")
    total = len(record()["open"] + record()["held"])
    found = {}
    for name, step in RUNGS.items():
        if name > notebook:
            return found | {step: None}
        count = right if name == notebook else sum(read_answers(record()["answers"][name]))
        low, high = wilson_interval(count, total)
        found[step] = (count, total * low, total * high)
    return found


def read_answers(text: str) -> list[float]:
    """Return recorded answers, such as "10h", as numbers."""
    return [SIGNS[sign] for sign in text]


def write_answers(answers: Sequence[float]) -> str:
    """Return answers as the record keeps them: a sign for each, h for a tie."""
    return "".join({value: sign for sign, value in SIGNS.items()}[answer] for answer in answers)


def check_vectors(vectors: Tensor, count: int) -> Tensor:
    """Return the vectors (N, H) of an embedder. ValueError unless they are `count` finite rows."""
    if not isinstance(vectors, Tensor) or vectors.dim() != 2 or len(vectors) != count:
        shape = tuple(vectors.shape) if isinstance(vectors, Tensor) else type(vectors).__name__
        raise ValueError(f"the embedder must return a tensor (N, H) for N = {count} texts, got {shape}")
    if not vectors.isfinite().all():
        raise ValueError("the embedder returned nan or inf: score only finite vectors")
    return vectors
