"""Batches contain every row once with little padding, and inference restores a model's modes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.search import embed
from utils.support.batches import (
    collate,
    device_of,
    evaluation_mode,
    full_batches,
    model_ids,
    shuffled_batches,
    sorted_batches,
    token_ids,
)
from utils.support.datasets import Examples
from utils.training import evaluate, fine_tune, predict
from views import neuron_view

# Ids


def test_model_ids_are_truncated_to_positions():
    model, text = TransformerForSequenceClassification(BertConfig(**TINY)), "a b c " * 20
    lengths = [len(model_ids([text], model, tiny_tokenizer(), limit)[0]) for limit in (None, 99, 5, 3)]
    assert lengths == [16, 16, 5, 3]


def test_pairs_have_the_ids_and_segments_of_the_official_tokenizer(tokenizer, official_tokenizer):
    pairs = [("A fine film!", "naïve [SEP] words"), ("a b " * 300, "c " * 300), ("a " * 600, "b")]
    for limit in (512, 20, 6):
        official = official_tokenizer(
            *zip(*pairs, strict=True), padding=True, truncation=True, max_length=limit, return_tensors="pt"
        )
        for each in (tokenizer, official_tokenizer):
            found = collate(token_ids(pairs, each, limit))
            assert {name: torch.equal(found[name], official[name]) for name in found} == dict.fromkeys(found, True)


@pytest.mark.parametrize(
    ("texts", "settings", "error", "words"),
    [
        ([("a", "b"), "c"], {}, TypeError, "text 1 must be a pair of strings, as others are, got 'c'"),
        ([("a", "b", "c")], {}, TypeError, r"text 0 must be a pair of strings, as others are, got \('a', 'b', 'c'\)"),
        ([("a", "b"), ("c", " ")], {}, ValueError, "text 1 is empty"),
        ([("a", "b")], {"type_vocab_size": 1}, ValueError, "pairs of texts need two segments, but type_vocab_size=1"),
    ],
)
def test_unsuitable_pairs_are_refused(texts, settings, error, words):
    model = TransformerForSequenceClassification(BertConfig(**TINY | settings))
    with pytest.raises(error, match=words):
        predict(model, tiny_tokenizer(), texts)


# Batches


def test_collate_moves_batch_to_model_device():
    model = TransformerForSequenceClassification(BertConfig(**TINY)).to("meta")
    assert {tensor.device for tensor in collate([[5]], device_of(model)).values()} == {torch.device("meta")}


def lengths_of_rows(count: int) -> list[list[int]]:
    lengths = torch.randint(3, 60, (count,), generator=torch.Generator().manual_seed(0))
    return [[1] * length for length in lengths.tolist()]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 500])
def test_batches_contain_every_row_once(count):
    rows = lengths_of_rows(count)
    for batches in (list(sorted_batches(rows, 32)), shuffled_batches(rows, 32, seed=3)):
        assert sorted(index for batch in batches for index in batch) == list(range(count))
        assert max(map(len, batches)) <= 32
    assert len(shuffled_batches(rows, 32, seed=3)) == -(-count // 32)


def test_sorted_batches_are_at_most_a_quarter_padding():
    rows = lengths_of_rows(100)
    lengths = [[len(rows[index]) for index in batch] for batch in sorted_batches(rows, 32)]
    assert all(batch[0] == max(batch) and batch[-1] == min(batch) >= 0.75 * batch[0] for batch in lengths)
    assert len(lengths) < 20
    assert list(sorted_batches([[1] * 8, [1] * 4, [1] * 6, [1] * 7], 2)) == [[0, 3], [2], [1]]
    assert list(sorted_batches([], 2)) == []


def test_shuffled_batches_pad_little_and_depend_on_the_seed():
    rows = lengths_of_rows(500)
    first, again, other = (shuffled_batches(rows, 32, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in other}
    longest = [max(len(rows[index]) for index in batch) for batch in first]
    padded = sum(size * len(batch) for size, batch in zip(longest, first, strict=True))
    assert padded < 1.2 * sum(map(len, rows))
    assert longest not in (sorted(longest), sorted(longest, reverse=True))


def test_a_gpu_fills_batches_by_tokens():
    rows = [[1] * (3 + 37 * number % 510) for number in range(500)]
    batches = list(full_batches(rows, None, torch.device("meta")))
    assert sorted(index for batch in batches for index in batch) == list(range(500))
    assert max(len(batch) * max(len(rows[index]) for index in batch) for batch in batches) <= 16_384
    assert len(batches) < 12
    assert list(map(len, full_batches(rows, None, torch.device("cpu")))) == [32] * 15 + [20]
    assert list(map(len, full_batches(rows[:5], 2, torch.device("meta")))) == [2, 2, 1]


# Evaluation mode


@pytest.fixture
def half_frozen() -> TransformerForSequenceClassification:
    """Return a model in training mode whose encoder is in evaluation mode except for its second layer."""
    model = TransformerForSequenceClassification(BertConfig(**TINY)).train()
    model.encoder.eval()
    model.encoder.layers[1].train()
    return model


def modes(model) -> list[bool]:
    return [module.training for module in model.modules()]


def test_evaluation_mode_restores_modes_after_error(half_frozen):
    before = modes(half_frozen)
    with pytest.raises(KeyboardInterrupt), evaluation_mode(half_frozen):
        raise KeyboardInterrupt
    assert modes(half_frozen) == before


def test_dropout_stays_off_for_other_threads(half_frozen):
    half_frozen.encoder.train()
    before = modes(half_frozen)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: embed(["a b c"], half_frozen.encoder, tiny_tokenizer()), range(40)))
    assert all(vectors.equal(found[0]) for vectors in found)
    assert modes(half_frozen) == before


USES = {
    "predict": lambda model, tokenizer: predict(model, tokenizer, ["a b"]),
    "evaluate": lambda model, tokenizer: evaluate(model, tokenizer, Examples(["a b"], [1])),
    "embed": lambda model, tokenizer: embed(["a b"], model.encoder, tokenizer),
    "neuron_view": lambda model, tokenizer: neuron_view(model.encoder, tokenizer, "a b"),
}


@pytest.mark.parametrize("name", USES)
def test_inference_restores_mode_of_each_module(half_frozen, monkeypatch, name):
    before, inside = modes(half_frozen), []
    layer = type(half_frozen.encoder.layers[0])
    forward = layer.forward

    def watched(self, *args, **options):
        return inside.append(self.training) or forward(self, *args, **options)

    monkeypatch.setattr(layer, "forward", watched)
    USES[name](half_frozen, tiny_tokenizer())
    assert inside == [False, False]
    assert modes(half_frozen) == before


@pytest.mark.parametrize("name", ["predict", "evaluate", "embed", "fine_tune", "save"])
@pytest.mark.parametrize("size", [40, 51])
def test_tokenizer_of_another_model_is_refused(half_frozen, name, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = Examples(["a b"], [1])
    writes = {
        "fine_tune": lambda model, tokenizer: fine_tune(model, tokenizer, examples, examples, epochs=1),
        "save": lambda model, tokenizer: model.save("nowhere", tokenizer),
    }
    message = f"the tokenizer has {size} tokens with ids up to {size - 1}, but the model's vocab_size is 50"
    with pytest.raises(ValueError, match=message):
        (USES | writes)[name](half_frozen, tiny_tokenizer(size))
    assert list(tmp_path.iterdir()) == []
