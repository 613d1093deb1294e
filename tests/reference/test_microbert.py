"""microbert.py needs only Python's own modules, stays short, and gives the official ids and vectors."""

import ast
import inspect
import os
import re
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig

import microbert
from tests.helpers import ROOT, TINY, tiny_tokenizer
from tests.texts import SPECIAL, WORDS, generated_strings
from utils.masked_lm import TransformerForMaskedLM
from utils.search import embed
from utils.support.characters import EARLIER_CATEGORY, LATER_CHARACTERS, in_ranges
from utils.support.checkpoint import embedded_folder
from utils.support.datasets import DATA

SOURCE = (ROOT / "microbert.py").read_text("utf-8")
TEXTS = ["time flies", "Hours go by, naïvely: 北京!", "antidisestablishmentarianism [MASK]", "", "a " * 30 + "x" * 101]


@pytest.fixture(scope="module")
def model() -> microbert.Checkpoint:
    return microbert.Checkpoint(embedded_folder())


def is_of_unicode_8(text: str) -> bool:
    """Return whether the official tokenizer, which knows Unicode 8, has the category that Python has."""
    return not any(in_ranges(character, LATER_CHARACTERS) or character in EARLIER_CATEGORY for character in text)


def test_microbert_has_at_most_110_lines_of_code():
    code = re.sub(r'"""[\s\S]*?"""', "", SOURCE)
    assert len([line for line in code.splitlines() if line.strip()]) <= 110


@pytest.mark.parametrize("version", [(3, 11), (3, 14)])
def test_microbert_imports_only_the_standard_library(version):
    nodes = list(ast.walk(ast.parse(SOURCE, feature_version=version)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_each_function_of_microbert_names_a_notebook():
    named = [part for part in vars(microbert).values() if getattr(part, "__module__", "") == "microbert"]
    assert len(named) > 10
    for part in named:
        numbers = re.findall(r"\b\d\d\b", re.search(r"\(notebooks? [^)]*\)", inspect.getdoc(part))[0])
        assert numbers
        assert all(list((ROOT / "notebooks").glob(f"{number}_*.ipynb")) for number in numbers)


def test_microbert_gives_the_official_ids(model, official_tokenizer):
    texts = [text for text in [*SPECIAL, *WORDS, *generated_strings(2_000), "a b " * 300] if is_of_unicode_8(text)]
    assert len(texts) > 1_000
    official = official_tokenizer(texts, truncation=True, max_length=512)["input_ids"]
    assert [text for text, ids in zip(texts, official, strict=True) if microbert.token_ids(text, model) != ids] == []


def test_microbert_reads_a_checkpoint_with_a_head(tmp_path):
    """Its names begin with "bert.", as in what scripts/pretrain.py and fine_tune.py save."""
    model, ids = TransformerForMaskedLM(BertConfig(**TINY)).eval(), [2, 8, 30, 8, 3]
    model.save(tmp_path / "saved", tiny_tokenizer())
    ours = torch.tensor(microbert.encode(ids, microbert.Checkpoint(tmp_path / "saved")))
    with torch.no_grad():
        official = model.encoder(torch.tensor([ids])).last_hidden_state[0]
    torch.testing.assert_close(ours, official, atol=1e-5, rtol=0)


def test_microbert_refuses_other_numbers_than_float32():
    with pytest.raises(SystemExit, match=r"word_embeddings\.weight has numbers of type F16, and .* reads F32: save"):
        microbert.encode([1], microbert.Checkpoint(DATA / "tiny_bert"))


class Score(float):
    """A number that counts its comparisons."""

    compared = 0

    def __gt__(self, other):
        Score.compared += 1
        return float(self) > other


def test_softmax_looks_for_the_largest_score_once():
    weights = microbert.softmax([Score(number / 10) for number in range(50)])
    assert Score.compared == 49
    torch.testing.assert_close(torch.tensor(weights), (torch.arange(50) / 10).softmax(dim=0))


@pytest.mark.long
def test_microbert_agrees_with_the_encoder_to_within_1e_6(model, encoder, tokenizer):
    ours = torch.tensor([microbert.embed(text, model) for text in TEXTS[:3]])
    torch.testing.assert_close(ours, embed(TEXTS[:3], encoder, tokenizer), atol=1e-6, rtol=0)


@pytest.mark.long
def test_microbert_runs_without_packages(encoder, tokenizer):
    """-S hides all installed packages, and -I the rest of this project."""
    texts = ["time flies", "hours go by quickly", "a fly has two wings"]
    done = subprocess.run(
        [sys.executable, "-S", "-I", ROOT / "microbert.py", *texts],
        env=os.environ | {"CHECKPOINT": str(embedded_folder())},
        capture_output=True,
        text=True,
        check=True,
    )
    first, *others = embed(texts, encoder, tokenizer)
    assert done.stdout == "".join(
        f"{first @ other:.2f} {text}\n" for text, other in zip(texts[1:], others, strict=True)
    )


@pytest.mark.parametrize("arguments", [[], ["one text"]])
def test_microbert_explains_its_use(arguments):
    done = subprocess.run([sys.executable, ROOT / "microbert.py", *arguments], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith('usage: python microbert.py "a text" "another text"')
