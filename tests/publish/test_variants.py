"""Questions with different numbers for each student: the answers are what our modules have and do."""

import math
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig

from publish.variants import QUESTIONS, answers, numbers
from utils.attention import scaled_dot_product_attention
from utils.embeddings import Embeddings

NAMES = ["Ada Berg", "Bo Chen", "李雷"]
SECRET = "a secret of ours"


@pytest.mark.parametrize("name", NAMES)
def test_answers_agree_with_the_modules(name):
    of = numbers(name, SECRET)
    found = answers(of)
    query, key, value = (
        torch.zeros(of["B"], *size) for size in ((of["S"], of["D"]), (of["T"], of["D"]), (of["T"], of["W"]))
    )
    context, weights = scaled_dot_product_attention(query, key, value)
    assert found["3.1"] == f"{tuple(weights.shape)} and {tuple(context.shape)}"
    config = BertConfig(vocab_size=of["V"], max_position_embeddings=of["P"], hidden_size=of["H"], num_attention_heads=1)
    assert found["2.5"] == f"{sum(p.numel() for p in Embeddings(config).parameters()):,}"
    p, h, n = of["percent"] / 100, of["points"] / 100, int(found["8.5"].replace(",", ""))
    widths = [1.96 * math.sqrt(p * (1 - p) / count) for count in (n - 1, n)]
    assert widths[1] <= h < widths[0]
    segments = torch.cat([torch.full((length,), number) for number, length in enumerate(of["lengths"])])
    same = segments[:, None] == segments
    assert found["13.2"] == f"{3 * max(of['lengths']) ** 2}, {same.numel()}, {same.sum()}"


def test_each_student_has_the_same_numbers_again_and_not_those_of_others(tmp_path):
    (tmp_path / "students.txt").write_text("\n".join(NAMES), "utf-8")
    command = [sys.executable, "-m", "publish.variants", str(tmp_path / "students.txt")]
    first, again, other = (
        subprocess.run([*command, secret], capture_output=True, text=True, check=True).stdout
        for secret in (SECRET, SECRET, f"{SECRET}, too")
    )
    assert first == again
    lines = [[line for line in text.splitlines() if line.startswith("| ")] for text in (first, other)]
    assert [mine == theirs for mine, theirs in zip(*lines, strict=True)] == [True] * 2 + [False] * len(NAMES)
    questions = [part.split("\n\n", 1)[1] for part in first.split("## ")[1:4]]
    assert len(set(questions)) == len(NAMES)
    assert all(part.count("?") == len(QUESTIONS) for part in questions)
    assert all(f"| {name} |" in first for name in NAMES)
