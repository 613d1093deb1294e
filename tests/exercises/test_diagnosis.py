"""`diagnose` names a bug from numbers alone, and never a wrong one; planted bugs share no code with its table."""

import json
import math
import sys
from copy import deepcopy
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig

from exercises import __main__
from exercises.diagnosis import diagnose, pairs
from exercises.diagnosis.broken import AGREE, RIGHT, SUSPECTS, broken, climb_inside, inside, kind_of, model_of
from exercises.diagnosis.bugs import BUGS, ENCODER_BUGS, POOLING, TEXT_TO_IDS, with_bugs
from exercises.diagnosis.matching import NOISE, distance, match
from exercises.diagnosis.probe import probe_batch
from exercises.diagnosis.reference import ROWS, Reference, default_reference
from exercises.hints import find_original
from tests.exercises.plants import KINDS, bert
from utils.attention import AttentionHead
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_reference_model, load_tokenizer

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def reference() -> Reference:
    return default_reference(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="module")
def official():
    """Return a function that copies the official model."""
    model = load_reference_model().eval()
    return lambda: deepcopy(model)


def states_of(model, batch, dtype=torch.float32):
    with torch.no_grad():
        return torch.stack(model.to(dtype)(*batch, output_hidden_states=True).hidden_states).float()


def test_every_bug_is_named_from_its_last_states(reference):
    for name in ENCODER_BUGS:
        found = diagnose(reference.last(name), pairs=False)
        assert (found.verdict, found.names) == ("mistake", [name]), found
        assert found.stage == BUGS[name].stage
        assert f"exercise {BUGS[name].exercise}" in found.says
        assert found.distance < NOISE["float32"]


def test_bugs_hold_with_and_without_attention_weights(reference):
    for name, summary in zip(ENCODER_BUGS, reference.singles, strict=True):
        fused = with_bugs(reference.encoder, name)(*reference.batch).last_hidden_state
        states = reference.last(name)
        assert_same(fused[reference.real], states[reference.real])
        assert_same(summary, reference.summarized(states[ROWS]))


def test_bugs_are_taught_in_exercises_that_exist():
    for bug in BUGS.values():
        assert find_original(bug.exercise)


@pytest.mark.parametrize("is_unit", [True, False])
def test_every_bug_of_texts_is_named_from_their_vectors(reference, is_unit):
    harmless = {"padding in the count", "sum"} if is_unit else set()
    for name, bug in BUGS.items():
        if bug.stage in (TEXT_TO_IDS, POOLING):
            vectors = reference.vectors[name,]
            found = diagnose(F.normalize(vectors, dim=-1) if is_unit else vectors)
            assert (found.verdict, found.names) == (("right", []) if name in harmless else ("mistake", [name])), found
            assert found.known["normalized"] is is_unit


# Planted into the official model


def test_planted_bug_is_named_from_model_states_and_last_states(official, reference):
    model = official()
    for layer in model.encoder.layer:
        layer.attention.self.scaling = 1.0
    states = states_of(model, reference.batch)
    for given in (model, states, states[-1].numpy()):
        found = diagnose(given, pairs=False)
        assert (found.verdict, found.names) == ("mistake", ["no √D"]), found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_right_model_is_right_in_each_precision(official, reference, dtype):
    found = diagnose(states_of(official(), reference.batch, dtype), pairs=False)
    assert found.verdict == "right"
    assert ("cannot be told" in found.says) == (dtype != torch.float32)


def test_right_model_is_right_in_each_form(official, reference):
    for given in (official(), reference.encoder, lambda *batch: reference.encoder(*batch).last_hidden_state):
        assert diagnose(given, pairs=False).verdict == "right"


def test_other_sizes_are_diagnosed_with_their_own_encoder():
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96}
    encoder, tokenizer = TransformerEncoder(BertConfig(**sizes)).eval(), load_tokenizer()
    for weight in encoder.parameters():
        nn.init.normal_(weight, std=0.2)
    batch = probe_batch(tokenizer)
    assert diagnose(encoder, encoder, tokenizer).verdict == "right"
    assert diagnose(with_bugs(encoder, "by √H")(*batch).last_hidden_state, encoder, tokenizer).names == ["by √H"]
    with pytest.raises(ValueError, match="is it another checkpoint"):
        diagnose(encoder(*batch).last_hidden_state)


def test_mistakes_of_public_threads_are_named_or_unknown(official, reference):
    weights = {name: weight.numpy() for name, weight in official().state_dict().items()}
    batch = [part.numpy() for part in reference.batch]
    assert diagnose(bert(weights, *batch), pairs=False).verdict == "right"
    for thread, name in KINDS.items():
        found = diagnose(bert(weights, *batch, thread)[-1], pairs=False)
        assert found.names == [name] * bool(name), (thread, found)


# The exercise


def test_broken_berts_differ_in_one_part_and_one_of_four_is_right(reference, capsys):
    for first in range(1, 41, 4):
        kinds = {kind_of(number) for number in range(first, first + 4)}
        assert [len(kinds & {*names}) for names in (*SUSPECTS, [RIGHT])] == [1] * 4
    inputs = dict(zip(("ids", "mask", "types"), reference.batch, strict=True))
    for part, names in enumerate((*SUSPECTS, [RIGHT])):
        for name in names:
            climb_inside(reference.encoder, inputs | inside(model_of(name, reference), reference.batch))
            shown = capsys.readouterr().out
            wrong = ["embeddings  DIFFER", "attention weights DIFFER", "y vectors DIFFER", "  vectors DIFFER"]
            found = [words in shown for words in wrong]
            assert found[:2] == [part == 0, part == 1], name
            assert any(found[2:]) == (part == 2), name


def test_diagnose_leaves_the_exercise_to_the_reader_and_names_the_same_bug_of_others(reference):
    for number in range(1, 5):
        states = broken(number)["layer 5, vectors"]
        assert diagnose(states).says.startswith("These are the numbers of exercise 6.4")
        assert (
            states - model_of(kind_of(number), reference)(*reference.batch, output_attentions=True)[0]
        ).abs().max() < AGREE
    assert diagnose(reference.last(kind_of(1))).names == [kind_of(1)]


# The ways in which earlier versions lied


def test_guesses_that_are_not_finite_or_all_alike_say_nothing():
    torch.manual_seed(0)
    right, other, unknown = torch.randn(3, 1000)
    nothing = match(unknown, {(): right, ("nan",): right / 0, ("a",): other})
    assert nothing.fits == []
    assert nothing.nearest != ("nan",)
    assert match(unknown, {(): right}).fits == []
    assert match(right, {(): right, ("same",): right.clone()}).fits != [("same",)]


def test_small_mistake_in_every_layer_is_not_right(official, reference):
    model = official()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-3
    found = diagnose(states_of(model, reference.batch), pairs=False)
    assert (found.verdict, found.names) == ("unknown", [])


def test_order_of_layers_is_read_from_layers_not_guessed_inside_one(official, reference):
    model = official()
    layers = list(model.encoder.layer)
    model.encoder.layer = nn.ModuleList([*layers[:2], layers[3], layers[2], *layers[4:]])
    found = diagnose(states_of(model, reference.batch), pairs=False)
    assert found.verdict == "mistake"
    assert {key: value for key, value in found.known.items() if "layer" in key} == {
        "layer 2": "our layer 3",
        "layer 3": "our layer 2",
    }
    assert "Your layer 2 computes what our layer 3 computes." in found.says


def test_bug_of_one_layer_is_named_in_its_layer(official, reference):
    model = official()
    model.encoder.layer[4].intermediate.intermediate_act_fn = nn.ReLU()
    found = diagnose(states_of(model, reference.batch), pairs=False)
    assert (found.names, found.known["layer 4"]) == (["ReLU"], "ReLU")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_facts_hold_in_half_precision(official, reference, dtype):
    model = official()
    model.embeddings.position_ids = torch.randint(512, (1, 512), generator=torch.Generator().manual_seed(7))
    found = diagnose(states_of(model, reference.batch, dtype)[-1], pairs=False)
    assert found.verdict == "unknown"
    wanted = {"equal rows agree": True, "padding matters": False, "order matters": True, "sees what comes later": True}
    assert wanted.items() <= found.known.items()


def test_small_unknown_mistake_is_never_called_right(official, reference):
    model = official()
    norm = model.embeddings.LayerNorm
    norm.forward = lambda x: norm.weight * x * (x.pow(2).mean(-1, True) + norm.eps).rsqrt() + norm.bias
    found = diagnose(states_of(model, reference.batch)[-1], pairs=False)
    assert found.verdict == "unknown"
    assert "16 bits inside might give this" in found.says


# Two bugs


def test_every_pair_can_be_made_and_run():
    """One that raises would end the search for all."""
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    encoder, batch = TransformerEncoder(BertConfig(**sizes)), probe_batch(load_tokenizer())
    for pair in pairs.pairs_of(ENCODER_BUGS):
        assert with_bugs(encoder, *pair)(*batch, output_attentions=True).last_hidden_state.shape == (5, 16, 8), pair


def test_pair_is_found_among_pairs_that_are_kept(reference, tmp_path, monkeypatch):
    folder = lambda *names: tmp_path  # noqa: E731
    monkeypatch.setattr(pairs.huggingface_hub, "cached_assets_path", folder)
    some = ("words times √H", "no √D", "by D", "no last norm", "eps 1e-5")
    monkeypatch.setattr(pairs.nearest_pairs, "__defaults__", (some,))
    for pair in (("no last norm", "eps 1e-5"), ("words times √H", "by D")):
        found = diagnose(reference.last(*pair))
        assert (found.verdict, found.names) == ("mistake", list(pair))
    (kept,) = tmp_path.glob("*.npy")
    assert np.load(kept).shape[0] == len(pairs.pairs_of(some)) == 9


# Other answers


def test_dropout_is_found_from_a_model_and_from_numbers(official, reference):
    model = official().train()
    assert diagnose(model).verdict == "random"
    assert diagnose(states_of(model, reference.batch)[-1], pairs=False).verdict == "random"


def test_left_padding_and_rows_in_another_order_are_recognized(reference):
    states, mask = reference.right, reference.batch[1]
    left = torch.stack([row.roll(16 - int(n), 0) for row, n in zip(states, mask.sum(1), strict=True)])
    assert diagnose(left, pairs=False).names == ["left padding"]
    reversed_rows = diagnose(states.flip(0), pairs=False)
    assert reversed_rows.names == ["rows in another order"]
    assert "3, 4, 2, 0, 1" in reversed_rows.says or "4, 3, 2, 1, 0" in reversed_rows.says


def test_numbers_that_are_not_finite_are_placed_and_may_stand_at_padding(reference):
    for number, words in ((math.nan, "look for a row without any key"), (math.inf, "overflow")):
        states = reference.right.clone()
        states[1, 2, 3:5] = number
        says = diagnose(states).says
        assert says.startswith("2 of your numbers are not finite, the first at (1, 2, 3).")
        assert words in says
    padded = torch.where(reference.real[..., None], reference.right, math.nan)
    assert diagnose(padded, pairs=False).verdict == "right"


SPOILED = {
    "state 3 of zeros": lambda states: [*states[:3], 0 * states[3], *states[4:]],
    "the last for all": lambda states: [states[-1]] * len(states),
    "no embeddings, and the last twice": lambda states: [*states[1:], states[-1]],
    "no embeddings": lambda states: states[1:],
}


@pytest.mark.parametrize("name", SPOILED)
def test_right_last_states_do_not_excuse_the_others(official, reference, name):
    states = states_of(official(), reference.batch)
    answer = diagnose(torch.stack([*SPOILED[name](states)]), pairs=False)
    assert (answer.verdict, answer.names) == ("mistake", ["states as saved"])
    assert ("there are 6 states, not 7" if name == "no embeddings" else " differs by ") in answer.says


def test_sixteen_bits_say_that_they_hide_mistakes(official, reference):
    answer = diagnose(states_of(official(), reference.batch, torch.bfloat16), pairs=False)
    assert "save the numbers of a float32 run" in answer.says


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((16, 5, 384), "transpose"),
        ((384, 3), "transpose"),
        ((5, 7, 16, 384), "call np.moveaxis"),
        ((1, 5, 16, 384), r"remove the first dimension, y\[0\]"),
        ((2, 16, 384), "feed all 5 rows of 16 tokens"),
        ((2, 384), "give the vectors of all 3 texts"),
        ((5, 16, 768), "another checkpoint"),
    ],
)
def test_other_shapes_are_refused_with_a_remedy(shape, words):
    with pytest.raises(ValueError, match=words):
        diagnose(np.zeros(shape))


@pytest.mark.parametrize("sums", [[1.0], {"embeddings.word_embeddings.weight": "1"}, {"word_embeddings": 1.0}])
def test_sums_that_cannot_be_compared_are_refused(reference, sums):
    with pytest.raises(ValueError, match="sums_of_absolute_values must"):
        diagnose(reference.right, sums=sums)


def test_model_without_its_weights_is_not_searched(reference):
    found = diagnose(TransformerEncoder(reference.encoder.config).eval())
    assert (found.verdict, found.stage) == ("unknown", "weights")


# The pitfalls of the notebooks


def line_of(number: str, cell: str, beginning: str) -> str:
    """Return the line of a notebook's cell that begins so."""
    cells = nbformat.read(find_original(number), as_version=4).cells
    source = next(each.source for each in cells if each.id == cell)
    return next(line for line in source.splitlines() if line.startswith(beginning))


def test_pitfalls_of_notebooks_are_rows_of_the_table(reference):
    encoder, (ids, mask, types) = reference.encoder, reference.batch
    official = SimpleNamespace(config=encoder.config)
    names = {"TransformerEncoder": TransformerEncoder, "reference": official, "device": "cpu"}
    exec(line_of("5.5", "cell-067", "textbook = "), names)  # pre-LN
    names["textbook"].load_state_dict(encoder.state_dict())
    assert_same(names["textbook"](ids, mask, types).last_hidden_state, reference.last("pre-norm"))

    block = deepcopy(encoder.layers[0].attention)
    exec(line_of("4.5", "cell-076", "block.num_heads"), {"block": block, "D": 32})
    states = encoder.embeddings(ids, types)
    patched = with_bugs(encoder, "size and number of heads exchanged").layers[0].attention
    assert_same(block(states, mask, True)[0], patched(states, mask, True)[0])

    head = AttentionHead(384, 32)
    for name in ("query", "key", "value"):
        for each in ("weight", "bias"):
            rows = getattr(getattr(encoder.layers[0].attention, name), each)[5 * 32 : 6 * 32]
            getattr(getattr(head, name), each).data.copy_(rows)
    unmasked = {"head_5": head, "padded": None, "reference": SimpleNamespace(embeddings=lambda input_ids: states)}
    exec(line_of("3.4", "cell-092", "    _, unmasked = ").strip(), unmasked)
    weights = with_bugs(encoder, "no mask").layers[0].attention(states, mask, True)[1][:, 5]
    assert_same(unmasked["unmasked"], weights)

    untyped = with_bugs(encoder, "types ignored")  # the second pitfall of 02, without a cell
    assert_same(encoder(ids, mask).last_hidden_state, untyped(ids, mask, types).last_hidden_state)


def assert_same(one: torch.Tensor, other: torch.Tensor) -> None:
    assert distance(one.flatten(), other.flatten()) < 1e-5


# The command


def run(capsys, *arguments: object) -> tuple[int, str]:
    sys.argv = ["exercises", "diagnose", *map(str, arguments)]
    status = __main__.main()
    return status, capsys.readouterr().out


def test_command_writes_the_probe_and_answers_files(reference, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    assert run(capsys, "--probe", tmp_path / "probe.json")[0] == 0
    probe = json.loads((tmp_path / "probe.json").read_text("utf-8"))
    batch = [torch.tensor(probe[name]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    assert all(map(torch.equal, batch, reference.batch))
    np.save(tmp_path / "out.npy", with_bugs(reference.encoder, "no √D")(*batch).last_hidden_state.detach())
    status, text = run(capsys, tmp_path / "out.npy", "--json")
    answer = json.loads(text)
    assert (status, answer["verdict"], answer["names"], answer["taught"]) == (1, "mistake", ["no √D"], ["3.2"])
    sums = probe["sums_of_absolute_values"]
    for factor, expected in ((1, "Right"), (2, "not placed")):
        content = {
            "numbers": reference.right.tolist(),
            "sums_of_absolute_values": {k: v * factor for k, v in sums.items()},
        }
        (tmp_path / "out.json").write_text(json.dumps(content))
        assert expected in run(capsys, tmp_path / "out.json")[1]
    for name, content, reason in (
        ("out.json", "{", ""),
        ("out.json", '{"a": 1}', 'no "numbers", but a'),
        ("a.npy", "1 2", "not a .npy"),
    ):
        (tmp_path / name).write_text(content)
        refusal = run(capsys, tmp_path / name)[0]
        assert "save an array of numbers" in refusal
        assert reason in refusal
