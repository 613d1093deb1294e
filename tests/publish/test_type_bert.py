"""type_bert.html: each mistake is told apart, each answer judged, and the model's weights rounded by half a step."""

import base64
import copy
import io
import json
import math
import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from exercises.diagnosis.broken import broken
from exercises.diagnosis.bugs import BUGS, ENCODER_BUGS
from exercises.diagnosis.diagnose import EXERCISE
from exercises.diagnosis.reference import default_reference
from publish.badges import Address
from publish.type_bert import build, checks, runner
from publish.type_bert.gaps import GAPS, mistakes_of
from tests.browser.type_bert_page import BREAKING, ENDLESS, typed_answers
from tests.helpers import ROOT
from tests.js.node import run
from utils.support.checkpoint import DEFAULT_CHECKPOINT, embedded_folder

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


@contextmanager
def restored():
    """Give math, the judge and its cases back as they are now."""
    before = [(vars(module), {**vars(module)}) for module in (math, checks)]
    cases = {name: [*gap.cases] for name, gap in GAPS.items()}
    yield
    for names, was in before:
        names.update(was)
    for name, gap in GAPS.items():
        gap.cases[:] = cases[name]


def test_every_answer_is_judged():
    """The page says the same in two browsers (tests/browser). Endless loops are for the page to stop."""
    is_intact = checks.guard(vars(math), vars(checks))
    wrong = []
    for gap, words, body in typed_answers():
        if words == ENDLESS:
            continue
        with restored():
            found = checks.judge(SOURCE, gap, body)
            assert is_intact() == (words != BREAKING), body
        said = "Right" if found["right"] else f"{found.get('message', '')} {found['hint']}"
        if words != BREAKING and words not in said:
            wrong.append((gap, words, body, said))
    assert wrong == []


def test_what_lines_print_and_a_return_that_is_put_in_are_reported(monkeypatch):
    found = checks.judge(SOURCE, "dot", "for x in range(99): print('.' * x)\nsum(x * y for x, y in zip(a, b))")
    assert found["right"]
    assert found["printed"] == "".join(f"{'.' * x}\n" for x in range(10))
    assert found["completed"].endswith("\nreturn sum(x * y for x, y in zip(a, b))")
    loud = "for x in range(100_000): print(x)\nreturn sum(x * y for x, y in zip(a, b))"
    printed = []
    monkeypatch.setattr(checks, "print", lambda value: printed.append(value) or print(value), raising=False)
    assert checks.judge(SOURCE, "dot", loud)["right"]
    assert printed == [*range(10)]
    assert "completed" not in checks.judge(SOURCE, "dot", "return sum(x * y for x, y in zip(a, b))")


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
    for weights, official in zip(found["weights"], data["official"], strict=True):
        assert np.abs(np.subtract(weights, official)).max() < 1e-5
    assert "ValueError" in runner.check("weights_of", "return [1.0]", {})["error"]


def test_a_sentence_runs_with_a_readers_lines_in_all_heads(encoder, tokenizer, monkeypatch, capsys):
    """All weights are the encoder's; a text that is too long is cut, and that is reported."""
    weights = load_file(embedded_folder() / "model.safetensors")

    def linear(x, name):
        vectors = torch.tensor([vector.tolist() for vector in x])
        found = torch.nn.functional.linear(vectors, weights[f"{name}.weight"], weights[f"{name}.bias"])
        return SimpleNamespace(to_py=found.tolist)

    runner.prepare(SOURCE, {})
    model = runner.functions({})["Checkpoint"](embedded_folder())
    monkeypatch.setitem(runner.state, "models", [model])
    monkeypatch.setattr(runner, "LONGEST", (1000, 4))
    loud = "print(query)\nreturn softmax([dot(query, key) / math.sqrt(len(query)) for key in keys])"
    given = {"bodies": {"weights_of": loud}, "text": "it flies away"}
    found = json.loads(runner.answer("look", json.dumps(given), linear))
    assert found["tokens"] == ["[CLS]", "it", "flies", "[SEP]"]
    assert found["cut"] == ["it flies away"]
    assert capsys.readouterr().out == ""
    official = torch.stack(encoder(**tokenizer("it flies"), output_attentions=True).attentions)
    assert torch.allclose(torch.tensor(found["weights"]), official.detach().reshape(-1, 4), atol=1e-5)
    short = runner.look({"weights_of": "return [0.5 for key in keys[1:]]"}, "it", linear)
    assert short["error"].endswith("this is not one finite number for each token")


@pytest.mark.parametrize("address", [None, Address("owner/name", "v1")])
def test_the_end_leads_into_the_series(address):
    """By links to files that are there or, without an address, by their names and a command."""
    pages = build.addresses(address)
    page = build.make_page({}, pages, dict.fromkeys(("files", "where", "model", "most", "mean", "texts"), ""))
    links = re.findall(r'href="(https://github[^"]*)"', page)
    if address:
        assert {*pages.values()} == {*links}
        assert all((ROOT / link.removeprefix("https://github.com/owner/name/blob/v1/")).is_file() for link in links)
    else:
        assert links == []
        for name in ("make lab", "notebooks/evening.ipynb", "notebooks/03_self_attention.ipynb"):
            assert f"<code>{name}</code>" in page
    assert "Apache License\n" in page


def test_the_packed_model_is_made_once(tmp_path, monkeypatch):
    made = {"pack_model": b"packed", "measure_rounding": {"most": "0.01"}}
    for name, result in made.items():
        monkeypatch.setattr(build, name, lambda *given, result=result: result)
    assert build.packed_model(tmp_path, None, None) == (*made.values(),)
    monkeypatch.setattr(build, "pack_model", None)
    assert build.packed_model(tmp_path, None, None) == (*made.values(),)


def test_rounding_moves_attention_by_little(encoder, tokenizer):
    found = build.measure_rounding(encoder, tokenizer)
    assert 0 < float(found["mean"]) < 0.0005
    assert 0 < float(found["most"]) < 0.02


def test_rounding_keeps_each_number_within_half_a_step():
    matrix = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32)
    matrix[3] = 0
    for largest in build.STEPS.values():
        scales, codes = build.round_rows(matrix, largest)
        assert (np.abs(codes * scales - matrix) <= 0.501 * scales).all()
        assert (np.abs(codes).max(axis=1) == np.where(scales[:, 0] > 0, largest, 0)).all()


# A file of numbers

JUDGE = """given.files.map(([name, content]) => {
  try {
    return diagnose(readNumbers(name, Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))), given.bugs);
  } catch (error) {
    return error.message;
  }
})"""


@pytest.fixture(scope="module")
def say_of():
    """Return a function that returns what the page says of files, [(name, bytes)]."""
    bugs = build.numbers_of_bugs(default_reference(DEFAULT_CHECKPOINT))

    def say(files) -> list[str]:
        files = [(name, base64.b64encode(content).decode()) for name, content in files]
        return run(JUDGE, {"bugs": bugs, "files": files}, build.PARTS / "diagnosis.js")

    return say


def npy(numbers) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, numbers)
    return buffer.getvalue()


def as_json(content) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.long
def test_the_page_names_each_bug_in_the_words_of_the_command(say_of):
    """With rounding as another framework has, and of the exercise nothing; what the page does not name, it leaves."""
    reference, chance = default_reference(DEFAULT_CHECKPOINT), np.random.default_rng(0)
    names = [(), *((name,) for name in ENCODER_BUGS)]
    states = [reference.last(*each).numpy() * chance.normal(1, 5e-7, reference.right.shape) for each in names]
    states += [broken(number)["layer 5, vectors"].numpy() for number in range(1, 5)]
    wanted = ["Right.", *(BUGS[name].sentence for name in ENCODER_BUGS), *[EXERCISE] * 4]
    for found, words in zip(say_of(("a.npy", npy(numbers)) for numbers in states), wanted, strict=True):
        assert found.startswith(words)
    pair = reference.last("no last norm", "words times √H").numpy()
    padded = reference.right.clone()
    padded[4, 0] += 0.01  # what is right in rows 0 and 3 need not be right in all
    others = [pair, padded.numpy(), states[0] * 1.001, states[0].astype("float16").astype("float32"), states[0] * 0]
    assert all("No single mistake" in found for found in say_of(("a.npy", npy(each)) for each in others))


@pytest.mark.long
def test_the_page_reads_what_the_command_reads_and_refuses_the_rest_in_a_sentence(say_of):
    right, sums = default_reference(DEFAULT_CHECKPOINT).right.numpy(), {"embeddings.word_embeddings.weight": 1.0}
    later = bytearray(npy(right))
    later[6:10] = [2, 0, *later[8:10], 0, 0]  # format 2 has a length of four bytes
    cases = (
        ("a.npy", npy(right.astype("float64")), "Right"),
        ("a.npy", npy(np.stack([right * 0, right])), "Right"),
        ("a.npy", bytes(later), "Right"),
        ("a.json", as_json(right.tolist()), "Right"),
        ("a.json", as_json({"numbers": [right.tolist()] * 7}), "Right"),
        ("a.json", as_json({"numbers": right.tolist(), "sums_of_absolute_values": sums}), "The weights are not placed"),
        ("a.npy", npy(right[None]), "The shape of these numbers is (1, 5, 16, 384)"),
        ("a.npy", npy(right[:2]), "The shape of these numbers is (2, 16, 384)"),
        ("a.npy", npy(right[:3, 0]), "The shape of these numbers is (3, 384)"),
        ("a.npy", npy(right * np.nan), "Some numbers are not finite"),
        ("a.npy", npy(np.asfortranarray(right)), "The array is <f4 in Fortran order. Save float32"),
        ("a.npy", npy(right.astype("float16")), "The array is <f2. Save float32"),
        ("a.npy", npy(right.astype(">f4")), "The array is >f4. Save float32"),
        ("a.npy", npy(right)[:-3], "The file is cut off"),
        ("a.npy", npy(right)[:50], "The file is cut off"),
        ("a.npy", b"", "This is neither a .npy file nor a .json file"),
        ("a.pt", b"PK" * 50, "This is neither a .npy file nor a .json file"),
        ("a.json", b"{", "Expected"),
        ("a.json", b"null", "The JSON must be nested lists"),
        ("a.json", as_json(["text"]), "The JSON must be nested lists"),
        ("a.json", as_json([[1, 2], [3]]), "The file is cut off, or its lists"),
    )
    for found, (*_, words) in zip(say_of(case[:2] for case in cases), cases, strict=True):
        assert found.startswith(words), found
