"""type_bert.html: each mistake is told apart, each answer judged, and the model's weights rounded by half a step."""

import copy
import math

import numpy as np
import pytest

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from publish.type_bert import build, checks, runner
from publish.type_bert.gaps import GAPS, mistakes_of
from tests.browser.type_bert_page import BREAKING, ENDLESS, typed_answers
from tests.helpers import ROOT

SOURCE = checks.split((ROOT / "microbert.py").read_text("utf-8"))


@pytest.mark.parametrize("gap", GAPS)
def test_each_mistake_differs_from_ours_and_from_those_with_other_hints(gap):
    above, ours = checks.parts_of(SOURCE, gap)

    def answers_to(body):
        return checks.run(SOURCE, gap, body, copy.deepcopy(GAPS[gap].cases))

    found = [(answers_to(ours), "right")]
    for body, hint in mistakes_of(gap, ours):
        answers = answers_to(body)
        others = [told for before, told in found if told != hint and all(map(checks.agree, answers, before))]
        assert others == [], body
        assert checks.judge(SOURCE, gap, body)["hint"] == hint
        found.append((answers, hint))
    assert checks.judge(SOURCE, gap, ours)["right"]
    assert not checks.judge(SOURCE, gap, checks.first_lines(SOURCE, gap))["right"]
    assert f'<template id="task-{gap}" title="{gap}: ' in (build.PARTS / "page.html").read_text("utf-8")
    assert above.startswith(f"def {gap}(")


def test_every_answer_is_judged():
    """The page says the same in two browsers (tests/browser). Endless loops are for the page to stop."""
    wrong = []
    for gap, words, body in typed_answers():
        if words == ENDLESS:
            continue
        found = checks.judge(SOURCE, gap, body)
        said = "Right" if found["right"] else f"{found.get('message', '')} {found['hint']}"
        if words == BREAKING:
            assert not checks.is_intact()
            math.exp = checks.UNTOUCHED[0]["exp"]
        elif words not in said:
            wrong.append((gap, words, body, said))
    assert wrong == []
    assert checks.is_intact()


@pytest.mark.parametrize(("gap", "body", "line", "words"), [
    ("dot", "total = 0\nfor x in a:\n    total += y\nreturn total", 3, "NameError: name 'y' is not defined"),
    ("norm", "for vector in x:\nresult.append(1)", 2, "after 'for' statement on line 1"),
    ("encode", "x = 1\nreturn encoder_layer(x, model, 'encoder.layer.{layer}')", 2, "KeyError"),
])  # fmt: skip
def test_an_error_has_the_readers_line(gap, body, line, words):
    found = checks.judge(SOURCE, gap, body)
    assert found["line"] == line
    assert words in found["message"]


def test_the_head_runs_with_a_readers_lines(encoder, tokenizer):
    data = build.numbers_of_head(encoder, tokenizer)
    runner.prepare(SOURCE, data["head"])
    found = runner.check("weights_of", "return [1.0 for key in keys]", {})
    assert set(np.ravel(found["weights"])) == {1.0}
    found = runner.check("dot", "return sum(map(mul, a, b))", {})
    assert found["right"]
    assert found["intact"]
    for weights, official in zip(found["weights"], data["official"], strict=True):
        assert np.abs(np.subtract(weights, official)).max() < 1e-5
    assert "ValueError" in runner.check("weights_of", "return [1.0]", {})["error"]


def test_rounding_keeps_each_number_within_half_a_step():
    matrix = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    matrix[3] = 0
    for name, largest in ((build.TABLE, 255), ("encoder.layer.0.output.dense.weight", 1023)):
        scales, codes = build.round_rows(name, matrix)
        assert (np.abs(codes * scales - matrix) <= 0.501 * scales).all()
        assert (np.abs(codes).max(axis=1) == np.where(scales[:, 0] > 0, largest, 0)).all()
