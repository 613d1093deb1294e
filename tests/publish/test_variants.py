"""Questions with different numbers for each student: the answers are what our modules have and do."""

import copy
import math
import re
import sys
import unicodedata
from ast import literal_eval
from collections import Counter
from fractions import Fraction
from random import Random

import pytest
import torch
from scipy.stats import binomtest
from torch import nn
from torch.nn.functional import cosine_similarity
from transformers import BertConfig

from exercises.framework import PART_NAMES
from exercises.parts import PARTS, install
from publish.variants import (
    ANSWERS,
    DRAWS,
    EXAM,
    SUBLAYERS,
    TEXTS,
    ask,
    changes,
    defences,
    main,
    page,
    read_names,
    weights_with,
)
from tests.exercises.answers import answer_of
from tests.exercises.parts import NUMBERS
from utils.attention import scaled_dot_product_attention
from utils.encoder_layer import TransformerEncoderLayer
from utils.support.checkpoint import read_checkpoint

NAMES = ["Ada Berg", "Bo Chen", "李雷"]
SECRET = "a secret of ours"
every_draw = pytest.mark.parametrize("seed", range(5))
# what may differ: one text with a cut word, a batch with padding, a pair
BATCHES = {
    "everything": [["an unaffable café barks"]],
    "padding": [["an unaffable café barks", "time"]],
    "pairs": [["time flies"], ["like an arrow"]],
}


def asked(key: str, seed: int) -> tuple[dict, str]:
    """Return the numbers and the answer of a question."""
    numbers = DRAWS[key](Random(seed))
    return numbers, ANSWERS[key](**numbers)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@every_draw
def test_counts_are_those_of_our_modules(seed):
    of, found = asked("layer", seed)
    H, D = of["A"] * of["D"], of["D"]
    size = {"hidden_size": H, "intermediate_size": of["F"] * H, "num_attention_heads": of["A"]}
    layer = TransformerEncoderLayer(BertConfig(**size))
    before, after = (int(number.replace(",", "")) for number in found.split("; "))
    assert before == count(layer)
    linear = [module for module in layer.modules() if isinstance(module, nn.Linear)]
    assert (
        after
        == {
            "twice as many heads, each half as large": count(
                TransformerEncoderLayer(BertConfig(**size | {"num_attention_heads": 2 * of["A"]}))
            ),
            "linear layers without biases": before - sum(module.bias.numel() for module in linear),
            "a single key and a single value that all heads share": before - 2 * count(nn.Linear(H, H - D)),
            "half as many heads, as large as before, in tokens as wide as before": before
            - 3 * count(nn.Linear(H, H // 2))
            - (count(nn.Linear(H, H)) - count(nn.Linear(H // 2, H))),
        }[of["case"]]
    )


@every_draw
def test_answers_by_hand_are_what_torch_computes(seed):
    of, found = asked("weights", seed)
    scores, values = (torch.tensor([of[letter] for letter in letters]).double() for letters in ("abcd", "wxyz"))
    for part, size in zip(found.split("; "), (4, 3), strict=True):
        wanted = scores[:size].log().softmax(0) @ values[:size]
        assert float(Fraction(part)) == pytest.approx(wanted.item())
    of, found = asked("norm", seed)
    x = torch.full((of["n"],), of["m"]).double()
    x[-1] += of["n"] * of["s"]
    plain = nn.functional.layer_norm(x, x.shape, eps=0)[-2:]
    for pair, wanted in zip(found.split("; "), (plain, plain * of["g"] + of["b"]), strict=True):
        assert [float(Fraction(number)) for number in pair.split(" and ")] == pytest.approx(wanted.tolist())
    of, found = asked("after unit 3", seed)
    scores = torch.tensor([of[letter] for letter in "abcd"]).double()
    best, slopes = scores.argmax(), []
    for factor in (1, of["f"]):
        scores = scores.detach().requires_grad_()
        largest = (scores * factor).softmax(0)[best]
        largest.backward()
        slopes += [largest.item(), scores.grad[best].item()]
    assert found.startswith("{:.2f} and {:.2f}. ".format(*slopes[::2]))
    assert ": {:.3f} and {:.3f}, so ".format(*slopes[1::2]) in found


def test_broken_weights_are_told_apart_and_show_their_bug():
    scores, mask = torch.tensor([2.0, 5.0, 3.0, 4.0]).log(), torch.tensor([1, 1, 1, 0])
    hidden = scores.masked_fill(mask == 0, -math.inf)
    by_hand = {
        "right": hidden.softmax(0),
        "no √D": (2 * hidden).softmax(0),
        "by D": (hidden / 2).softmax(0),
        "no mask": scores.softmax(0),
        "mask 0, not −∞": (scores * mask).softmax(0),
        "mask after softmax": scores.softmax(0) * mask,
    }
    assert by_hand.keys() == TEXTS["broken"].keys()
    for name, wanted in by_hand.items():
        assert weights_with(name, (2 * scores).tolist()) == ", ".join(f"{weight:.2f}" for weight in wanted.tolist())
    for seed in range(20):
        of, _ = asked("broken", seed)
        dots = [2 * math.log(of[letter]) for letter in "abcd"]
        assert len({weights_with(name, dots) for name in by_hand}) == len(by_hand), "two mistakes look alike on paper"


def mask_of(kind: str, size: int, p: int, r: int) -> torch.Tensor | None:
    """Return a mask by the words of a question."""
    distance = torch.arange(size)[:, None] - torch.arange(size)
    masks = {
        "no mask": None,
        "a causal mask": distance >= 0,
        "a causal mask that is transposed by mistake": distance <= 0,
        f"a mask that hides position {p} from all": torch.arange(size) != p,
    }
    return masks[kind][None] if masks.get(kind) is not None else masks.get(kind, (distance.abs() <= r)[None])


@every_draw
def test_outputs_that_a_mask_lets_change(seed):
    of, found = asked("mask", seed)
    size, p = of["last"] + 1, of["p"]
    before = torch.randn(1, size, 4, generator=torch.Generator().manual_seed(seed))
    after = before.clone()
    after[0, p] += 1
    for kind, stated in zip((of["first"], of["second"], of["third"]), found.split("; "), strict=True):
        outputs = [before, after]
        for _ in range(1 + kind.endswith("in two layers")):
            outputs = [scaled_dot_product_attention(x, x, x, mask_of(kind, size, p, of["r"]))[0] for x in outputs]
        changed = (outputs[0] - outputs[1])[0].abs().sum(-1).gt(1e-6).nonzero().flatten().tolist()
        assert stated == (f"{p} only" if changed == [p] else f"{changed[0]} to {changed[-1]}")


@every_draw
def test_samples_and_counts_decide_as_stated(seed):
    for key in ("after unit 9", "luck"):
        of, found = asked(key, seed)
        p = binomtest(of["k"], of["k"] + of["j"]).pvalue
        assert f"{of['k']} against {of['j']}: p = {p:.3f}, {'more than luck' if p < 0.05 else 'may be luck'}" in found
    of, found = asked("pieces", seed)
    for word, pieces in zip((of["word"], of["other"]), found.split("; "), strict=True):
        assert pieces == "[UNK]" or "".join(pieces.split()).replace("##", "") == word
    assert not found.startswith("[UNK]")
    of, found = asked("search", seed)
    query, texts = (torch.tensor(literal_eval(f"[{of[name]}]")).double() for name in ("query", "texts"))
    for scores, stated in zip((texts @ query[0], cosine_similarity(texts, query)), found.split("; "), strict=False):
        assert stated == ", ".join(str(index + 1) for index in scores.argsort(descending=True).tolist())
    assert found.endswith(f"; {cosine_similarity(texts, query).max():.2f}")


@pytest.fixture(scope="module")
def official(reference, official_tokenizer, encoder):
    """Weights, tokenizer, an encoder of zeros, and for each kind of batch its ids, real tokens and official vectors."""
    batches = {}
    for kind, texts in BATCHES.items():
        batch = official_tokenizer(*texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            batches[kind] = batch["input_ids"], batch["attention_mask"].bool(), reference(**batch).last_hidden_state
    empty, (_, weights) = copy.deepcopy(encoder), read_checkpoint()
    with torch.no_grad():
        for parameter in empty.parameters():
            parameter.zero_()
    return weights, PARTS["word_pieces"].kind.from_checkpoint(), empty, batches


def effect_of(number: str, code: str, official: tuple) -> str:
    """Return what differs from the official model once a part is changed: the first of `BATCHES`, or "nothing"."""
    weights, tokenizer, empty, batches = official
    part, model, tokenizer = answer_of(number, code).make(), copy.deepcopy(empty), copy.copy(tokenizer)
    assert install(PART_NAMES[number], part, tokenizer if number == "1.1" else model)
    try:
        model.load_bert_weights(weights)
    except ValueError:
        return "error"
    for kind, (ids, real, wanted) in batches.items():
        ours = tokenizer(*BATCHES[kind])
        if not torch.equal(ours["input_ids"], ids):
            return kind
        with torch.inference_mode():
            if not (model(**ours).last_hidden_state - wanted)[real].abs().max() <= 1e-5:
                return kind
    return "nothing"


@pytest.mark.parametrize(("number", "code", "differs"), [(n, code, kind) for n, code, _, kind, _ in changes()])
def test_changed_parts_do_what_the_lecturer_reads(official, number, code, differs):
    assert effect_of(number, code, official) == differs


def test_each_student_defends_two_parts_of_a_bert():
    pool = [number for number, *_ in changes()]
    assert set(pool) == set(NUMBERS.values())
    for part in defences(NAMES, SECRET).split("## ")[1:]:
        *numbers, last = [line[4:].partition(":")[0] for line in part.splitlines() if line.startswith("- **")]
        assert len(set(numbers)) == 2
        assert last.startswith("Numbers.")


@pytest.mark.parametrize("secret", [f"{SECRET} {number}" for number in range(5)])
def test_an_exam_has_two_versions_without_a_common_question_or_answer(secret):
    one, two = ask(["A", "B"], secret, "exam", EXAM)
    assert len(EXAM) == 12
    for first, second in zip(one, two, strict=True):
        assert first[0] != second[0]
        shared = [part for part in zip(first[1].split("; "), second[1].split("; "), strict=False) if len(set(part)) < 2]
        assert shared == []
        assert "{" not in "".join(first + second)


def test_the_rule_of_a_head_is_what_the_official_model_does(reference, official_tokenizer):
    found = ANSWERS["after unit 7"](layer=1, head=2)
    hits, total = map(int, re.search(r"“1 back”: there (\d+) of (\d+)", found).groups())
    looks = []
    for text in TEXTS["sentences"]:
        batch = official_tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            weights = reference(**batch, output_attentions=True).attentions[1][0, 2, 1:-1, 1:-1]
        looks += (weights.argmax(dim=-1) - torch.arange(len(weights))).tolist()
    assert Counter(looks).most_common(1) == [(-1, hits)]
    assert len(looks) == total


@pytest.mark.parametrize("around", SUBLAYERS)
def test_sums_left_out_of_the_official_model_have_the_stated_effect(reference, official_tokenizer, around):
    layer = reference.encoder.layer[2]
    output = layer.attention.output if around == "attention" else layer.output
    means = []
    for kept in (True, False):
        hook = output.register_forward_pre_hook(
            lambda _, given, kept=kept: (given[0], given[1] * kept)  # what comes in, to be added
        )
        similar = []
        for text in TEXTS["sentences"]:
            with torch.inference_mode():
                states = reference(**official_tokenizer(text, return_tensors="pt"), output_hidden_states=True)
            similar.append(cosine_similarity(*states.hidden_states[2:4], dim=-1)[0, 1:-1])
        hook.remove()
        means.append(torch.cat(similar).mean())
    assert "{:.2f} with the sum, and {:.2f} without".format(*means) in ANSWERS["after unit 5"](3, around)


def test_lists_of_names_are_read_as_editors_save_them(tmp_path):
    path, names = tmp_path / "names.txt", ["Zoë", "Bo | x"]
    for text in ("\ufeffZoë\n Bo | x \n\n", unicodedata.normalize("NFD", "Zoë\r\nBo  | x")):
        for encoding in ("utf-8", "utf-16"):
            path.write_text(text.removeprefix("\ufeff") if encoding == "utf-16" else text, encoding)
            assert read_names(path) == names
    assert "| 1. after unit 3 | Bo \\| x | " in page(names, SECRET, "written")
    path.write_text("Zoë\nBo\nZoe\u0308\n", "utf-8")
    with pytest.raises(ValueError, match="has Zoë more than once: add a second name or a number"):
        read_names(path)
    path.write_bytes("Zoë".encode("latin-1"))
    with pytest.raises(ValueError, match="save it as UTF-8"):
        read_names(path)


def run(monkeypatch, capsys, *words: str) -> str:
    """Return what the program prints."""
    monkeypatch.setattr(sys, "argv", ["variants", *words])
    main()
    return capsys.readouterr().out


def test_each_student_has_the_same_numbers_again_and_not_those_of_others(tmp_path, monkeypatch, capsys):
    (tmp_path / "students.txt").write_text("\n".join(NAMES), "utf-8")
    words = [("written", secret, str(tmp_path / "students.txt")) for secret in (SECRET, SECRET, f"{SECRET}, too")]
    first, again, other = (run(monkeypatch, capsys, *each) for each in words)
    assert first == again != other
    pages = [text.partition("\n\n")[2] for text in first.split("## ")[1:-1]]
    assert len(set(pages)) == len(NAMES)
    assert all(page.count("\n\n") >= len(TEXTS["written"]) for page in pages)
    answers = re.findall(r"^\| \d\. (after unit \d+) \| (.*?) \| ", first, re.MULTILINE)
    assert answers == [(key, name) for key in TEXTS["written"] for name in NAMES]


@pytest.mark.parametrize(("words", "remedy"), [
    (["defence", SECRET, "nowhere"], "needs a file with the name of a student in each line, not nowhere"),
    (["written", SECRET], "needs a file with the name of a student in each line"),
    (["exam", "  short      "], "the secret needs at least 12 characters that only you know"),
])  # fmt: skip
def test_a_missing_file_or_secret_is_named(monkeypatch, capsys, words, remedy):
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, capsys, *words)
    assert ended.value.code == 2
    assert remedy in capsys.readouterr().err
