"""Pretraining on own texts: a made-up language with agreement at a distance, and large files."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import BertConfig

from tests.helpers import ONE_THREAD, ROOT, unix_only
from utils.masked_lm import TransformerForMaskedLM
from utils.pretraining import learn_vocabulary
from utils.support.datasets import imdb_reviews
from utils.tokenization import WordPieceTokenizer

SIZES = ["--layers", "2", "--heads", "4", "--hidden", "48", "--positions", "16", "--vocabulary", "200"]
ENDINGS = ("ka", "ke")


def language(count: int, agrees: bool) -> list[str]:
    """Sentences of a grammar: a noun of one of two classes, three words, a verb, and an ending that agrees, or not.

    The neighbours of the ending do not determine the class: the noun is five words before it.
    """
    draw = random.Random(0)
    syllables = [consonant + vowel for consonant in "bdfglmnprst" for vowel in "aei"]
    nouns = [[draw.choice(syllables) + "n" + last for _ in range(8)] for last in "ou"]
    others, verbs = ([draw.choice(syllables) + end for _ in range(8)] for end in ("si", "t"))
    sentences = []
    for _ in range(count):
        kind = draw.randrange(2)
        ending = ENDINGS[kind if agrees else draw.randrange(2)]
        sentences.append(" ".join([draw.choice(nouns[kind]), *draw.choices(others, k=3), draw.choice(verbs), ending]))
    return sentences


def pretrain(folder: Path, *options: str) -> str:
    """Return the output of the program."""
    command = [sys.executable, "scripts/pretrain.py", str(folder), "--cpu", *options]
    done = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@torch.no_grad()
def agreement(folder: Path, sentences: list[str]) -> tuple[float, torch.Tensor]:
    """The share of hidden endings guessed rightly, and how much each head looks from there at the noun, (L, A).

    A word looks as much at each of the others as at the noun's last piece if it is 0: their mean is taken away.
    """
    model = TransformerForMaskedLM.from_checkpoint(folder / "checkpoint")
    tokenizer = WordPieceTokenizer.from_checkpoint(folder / "checkpoint")
    both = torch.tensor([tokenizer.vocab[ending] for ending in ENDINGS])
    right, looks = 0, 0
    for sentence in sentences:
        ids = torch.tensor([tokenizer.encode(sentence)])
        answer, place = ids[0, -2].item(), len(tokenizer.tokenize(sentence.split()[0]))
        ids[0, -2] = tokenizer.vocab["[MASK]"]
        right += both[model(ids)[0, -2, both].argmax()].item() == answer
        weights = torch.stack(model.encoder(ids, output_attentions=True).attentions)[:, 0, :, -2]  # (L, A, S)
        looks = looks + weights[..., place] - weights[..., place + 1 : -2].mean(dim=-1)
    return right / len(sentences), looks / len(sentences)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run on the language, one on the same language without agreement, and what was printed of the first."""
    folder, printed = tmp_path_factory.mktemp("languages"), []
    for name in ("agrees", "control"):
        (folder / f"{name}.txt").write_text("\n".join(language(4000, name == "agrees")), "utf-8")
        options = ["--data", str(folder / f"{name}.txt"), *SIZES, "--steps", "600"]
        printed.append(pretrain(folder / name, *options))
    return folder, printed[0]


def test_head_finds_the_word_to_agree_with(runs):
    """Five words away; without agreement in the language the same training finds nothing to look for."""
    folder, _ = runs
    new = {name: language(4300, name == "agrees")[4000:] for name in ("agrees", "control")}
    (right, looks), (chance, idle) = (agreement(folder / name, new[name]) for name in ("agrees", "control"))
    assert right > 0.95
    assert 0.4 < chance < 0.6
    assert looks.max() > 0.5
    assert idle.max() < looks.max() / 2


def test_printed_report_has_baselines_and_requirements(runs):
    """Neighbours do not determine the ending; the requirements of the notebooks are printed before the training."""
    _, printed = runs
    lines = printed.splitlines()
    assert lines[0].startswith("Some cells of the notebooks need a larger model (num_hidden_layers=2, not 6;")
    assert "its first piece" in lines[1]
    assert lines[3].startswith("Read 4,000 texts")
    losses = {line.split("  ")[0]: float(line.split()[-1]) for line in lines if "%, loss " in line}
    assert losses["model"] < losses["both neighbours, counted"] - 0.1
    assert losses["both neighbours, counted"] < losses["frequencies, counted"] - 0.5


VOCABULARIES = {  # the texts that it is learned from: no English word is in the first, and few letters in the second
    "a made-up language": lambda: language(4000, True),
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
    paths = [str(path) for path in sorted((ROOT / "notebooks").glob(which))]
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", *paths]
    environment = os.environ | {"CHECKPOINT": str(tmp_path / "own"), "MINE": "off"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
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
        command = [sys.executable, "-W", "ignore", "-c", MEMORY, str(path), str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append([int(number) for number in done.stdout.split()])
    (few, small), (many, large) = found
    assert many > 9 * few
    assert large - small < 25, found
