"""Pretraining on own texts: the notebooks run with another vocabulary, and large files need no more memory."""

import os
import random

import pytest
import torch
from transformers import BertConfig

from tests.helpers import ROOT, run_python, unix_only
from utils.masked_lm import TransformerForMaskedLM
from utils.pretraining import learn_vocabulary
from utils.support.datasets import imdb_reviews

SYLLABLES = [consonant + vowel for consonant in "bdfglmnprst" for vowel in "aeiou"]
VOCABULARIES = {  # the texts that it is learned from: no English word is in the first, and few letters in the second
    "a made-up language": lambda: [f"{one}n{other} {other}{one}si" for one in SYLLABLES for other in SYLLABLES],
    "Greek": lambda: ["το σκυλί κοιμάται στο σπίτι και η γάτα το κοιτάζει"] * 20,
    "reviews": lambda: imdb_reviews("train")[:3000],
}


@pytest.mark.skipif("CHECKPOINT" in os.environ, reason="CHECKPOINT is set: the series runs on it already")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_notebooks_run_with_own_vocabulary(tmp_path, name):
    """A cell that follows an English word follows the first of its pieces; weights are random, as before training."""
    tokenizer = learn_vocabulary(lambda: iter(VOCABULARIES[name]()), 8000)
    torch.manual_seed(0)
    shape = {"num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384, "intermediate_size": 1536}
    TransformerForMaskedLM(BertConfig(vocab_size=len(tokenizer.vocab), **shape)).save(tmp_path / "own", tokenizer)
    which = "[0-9]*.ipynb" if name == "a made-up language" else "0[0-79]_*.ipynb"  # all, or those that train nothing
    paths = sorted((ROOT / "notebooks").glob(which))
    command = ["-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", *paths]
    run = run_python(*command, CHECKPOINT=str(tmp_path / "own"), MINE="off")
    assert run.returncode == 0, run.stdout[-8000:]


MEMORY = """\
import resource, sys, tempfile
from pathlib import Path
from functools import partial
from utils.pretraining import fill_rows, learn_vocabulary
from utils.pretraining import write_rows
from utils.support.tables import read_texts
tokenizer = learn_vocabulary(lambda: read_texts([sys.argv[1]]), 2000)
fill = partial(fill_rows, tokenizer=tokenizer, length=64)
rows = write_rows(read_texts([sys.argv[1]]), fill, 64, tempfile.TemporaryFile(dir=sys.argv[2]))
print(len(rows), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@unix_only
def test_memory_is_independent_of_text_size(tmp_path):
    """Texts and rows stay on disk; in memory they would take 40 MB of text and about 40 MB of ids."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(3000)]
    found = []
    for megabytes in (4, 40):
        path = tmp_path / f"{megabytes}.txt"
        with path.open("w", encoding="utf-8") as file:
            for _ in range(megabytes * 10_000):
                file.write(" ".join(draw.choices(words, k=15)) + "\n")
        done = run_python("-W", "ignore", "-c", MEMORY, path, tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append([int(number) for number in done.stdout.split()])
    (few, small), (many, large) = found
    assert many > 9 * few
    assert large - small < 25, found
