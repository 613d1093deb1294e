"""Questions with different numbers for each student: the answers are what our modules have and do."""

import copy
import math
import sys
from fractions import Fraction
from random import Random

import pytest
import torch
from scipy.stats import binomtest
from torch import nn
from transformers import BertConfig

from exercises.framework import PART_NAMES
from exercises.parts import PARTS, install
from publish.variants import ANSWERS, DRAWS, EXAM, PAPER, TEXTS, ask, changes, defences, main
from tests.exercises.answers import answer_of
from tests.exercises.parts import NUMBERS
from utils.attention import scaled_dot_product_attention
from utils.embeddings import Embeddings
from utils.encoder import TransformerEncoder
from utils.encoder_layer import TransformerEncoderLayer
from utils.support.checkpoint import load_reference_model, load_tokenizer, read_checkpoint

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
def test_shapes_and_counts_are_those_of_our_modules(seed):
    of, found = asked("shapes", seed)
    sizes = (of["S"], of["D"]), (of["T"], of["D"]), (of["T"], of["W"])
    query, key, value = (torch.zeros(of["B"], *size) for size in sizes)
    context, weights = scaled_dot_product_attention(query, key, value)
    assert found == f"{tuple(weights.shape)} and {tuple(context.shape)}"
    assert len({of["B"], of["S"], of["T"]}) == 3, "a wrong answer would be right"
    assert of["D"] != of["W"]
    of, found = asked("embeddings", seed)
    config = BertConfig(vocab_size=of["V"], max_position_embeddings=of["P"], hidden_size=of["H"], num_attention_heads=1)
    assert found == f"{count(Embeddings(config)):,}"
    of, found = asked("layer", seed)
    for heads in (of["A"], 2 * of["A"]):
        config = BertConfig(hidden_size=of["H"], intermediate_size=of["I"], num_attention_heads=heads)
        assert found == f"{count(TransformerEncoderLayer(config)):,}; as many"
    of, found = asked("packing", seed)
    segments = torch.cat([torch.full((length,), number) for number, length in enumerate(of.values())])
    same = segments[:, None] == segments
    assert found == f"{3 * max(of.values()) ** 2}, {same.numel()}, {same.sum()}"


@every_draw
def test_answers_by_hand_are_what_torch_computes(seed):
    of, found = asked("weights", seed)
    scores, values = (torch.tensor([of[letter] for letter in letters]).double() for letters in ("abcd", "wxyz"))
    for part, size in zip(found.split("; "), (4, 3), strict=True):
        wanted = scores[:size].log().softmax(0) @ values[:size]
        assert float(Fraction(part)) == pytest.approx(wanted.item())
    of, found = asked("norm", seed)
    x = torch.tensor([of["m"] - of["s"], of["m"] + of["s"]] * 2).double()
    plain = nn.functional.layer_norm(x, (4,), eps=0)[:2]
    scaled = plain * of["g"] + of["b"]
    assert found == "; ".join("{:.0f} and {:.0f}".format(*pair.tolist()) for pair in (plain, scaled))
    of, found = asked("perplexity", seed)
    loss = -torch.tensor([0.5**power for power in of.values()]).log().mean()
    stated, power = found.split("; ")
    assert float(Fraction(stated.split(" ·")[0])) * math.log(2) == pytest.approx(loss.item(), rel=1e-5)
    assert 2 ** float(Fraction(power[3:-1])) == pytest.approx(loss.exp().item(), rel=1e-4)
    of, found = asked("after unit 3", seed)
    scores = torch.tensor([of[letter] for letter in "abcd"]).double()
    shares = [(scores * factor).softmax(0).max() for factor in (1, of["f"])]
    assert found.startswith("{:.2f} and {:.2f}. ".format(*shares))


@every_draw
def test_outputs_that_a_mask_lets_change(seed):
    of, found = asked("mask", seed)
    size, p = of["last"] + 1, of["p"]
    before = torch.randn(1, size, 4, generator=torch.Generator().manual_seed(seed))
    after = before.clone()
    after[0, p] += 1
    hidden = torch.ones(1, 1, size)
    hidden[..., p] = 0
    changed = []
    for mask in (None, torch.ones(1, size, size).tril(), hidden):
        outputs = [scaled_dot_product_attention(x, x, x, mask)[0][0] for x in (before, after)]
        changed.append((outputs[0] - outputs[1]).abs().sum(-1).gt(1e-6).nonzero().flatten().tolist())
    assert changed[0] == list(range(size))
    assert changed[1] == list(range(p, size))
    assert set(changed[2]) <= {p}  # its own query: nobody reads it
    assert found == f"all, 0 to {of['last']}; {p} to {of['last']}; none"


@every_draw
def test_samples_and_counts_decide_as_stated(seed):
    of, found = asked("interval", seed)
    p, n = of["percent"] / 100, int(found.replace(",", ""))
    widths = [1.96 * math.sqrt(p * (1 - p) / number) for number in (n - 1, n)]
    assert widths[1] <= of["points"] / 100 + 1e-12 < widths[0]
    of, _ = asked("after unit 9", seed)
    assert binomtest(of["a"] - of["b"], of["a"] - of["b"]).pvalue < 0.05
    assert binomtest(of["n"] - of["b"], 2 * of["n"] - of["a"] - of["b"]).pvalue > 0.05
    of, found = asked("pieces", seed)
    whole, unknown = found.split("; ")
    assert "".join(whole.split()).replace("##", "") == of["word"]
    assert unknown == "[UNK]"
    of, found = asked("names", seed)
    precision, recall, f1 = map(Fraction, found.split(", "))
    assert (precision * of["p"], recall * of["g"]) == (of["r"], of["r"])
    assert f1 == 2 * precision * recall / (precision + recall)


@pytest.fixture(scope="module")
def official():
    """The configuration, weights, tokenizer, and for each kind of batch its ids, real tokens and official vectors."""
    batches, model = {}, load_reference_model()
    for kind, texts in BATCHES.items():
        batch = load_tokenizer()(*texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            batches[kind] = batch["input_ids"], batch["attention_mask"].bool(), model(**batch).last_hidden_state
    return *read_checkpoint(), PARTS["word_pieces"].kind.from_checkpoint(), batches


def effect_of(number: str, code: str, official: tuple) -> str:
    """Return what differs from the official model once a part is changed: the first of `BATCHES`, or "nothing"."""
    config, weights, tokenizer, batches = official
    part, model, tokenizer = answer_of(number, code).make(), TransformerEncoder(config).eval(), copy.copy(tokenizer)
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


def test_each_part_has_changes_and_each_student_two_of_them():
    pool = [number for number, *_ in changes()]
    assert set(pool) == set(NUMBERS.values())
    assert min(map(pool.count, pool)) >= 3
    text = defences(NAMES, SECRET)
    assert text != defences(NAMES, f"{SECRET}, too")
    for part in text.split("## ")[1:]:
        numbers = [line[4:].partition(":")[0] for line in part.splitlines() if line.startswith("- **")]
        assert len(set(numbers)) == 2


def test_an_exam_has_two_versions_without_a_common_question():
    one, two = ask(["A", "B"], SECRET, "exam", EXAM)
    assert len(EXAM) == 12
    assert not {text for text, _ in one} & {text for text, _ in two}
    assert not [text for text, answer in one + two if "{" in text + answer]


def run(monkeypatch, capsys, *words: str) -> str:
    """Return what the program prints."""
    monkeypatch.setattr(sys, "argv", ["variants", *words])
    main()
    return capsys.readouterr().out


def test_each_student_has_the_same_numbers_again_and_not_those_of_others(tmp_path, monkeypatch, capsys):
    (tmp_path / "students.txt").write_text("\n".join(NAMES), "utf-8")
    for kind, keys in (("paper", PAPER), ("written", TEXTS["written"])):
        words = [(kind, secret, str(tmp_path / "students.txt")) for secret in (SECRET, SECRET, f"{SECRET}, too")]
        first, again, other = (run(monkeypatch, capsys, *each) for each in words)
        assert first == again != other
        pages = [text.partition("\n\n")[2] for text in first.split("## ")[1:-1]]
        assert len(set(pages)) == len(NAMES)
        assert all(page.count("\n\n") >= len(keys) for page in pages)
        assert f"|  | {' | '.join(NAMES)} |" in first


@pytest.mark.parametrize(("words", "remedy"), [
    (["paper", SECRET, "nowhere"], "needs a file with the name of a student in each line, not nowhere"),
    (["written", SECRET], "needs a file with the name of a student in each line"),
    (["exam", "short"], "the secret needs at least 12 characters that only you know"),
])  # fmt: skip
def test_a_missing_file_or_secret_is_named(monkeypatch, capsys, words, remedy):
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, capsys, *words)
    assert ended.value.code == 2
    assert remedy in capsys.readouterr().err
