"""The masked-LM head equals the official one, and masking follows BERT's rule."""

import json

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from tests.helpers import SMALL, TINY, ragged_batch, random_sizes, shaken, tiny_tokenizer
from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.pretraining import evaluate_masked, fill_rows, train_vocabulary
from utils.statistics import wilson_interval
from utils.support.checks import SPECIAL_TOKENS
from utils.support.comparisons import largest_difference
from utils.support.neighbour_counts import NeighbourCounts
from utils.weights import rename_headed_weight

WORD_EMBEDDINGS = "encoder.embeddings.word_embeddings.weight"


def both(shape: dict, dtype=torch.float32) -> tuple[BertForMaskedLM, TransformerForMaskedLM]:
    """Return an official model with noise on every weight, and ours with the same weights."""
    torch.manual_seed(0)
    official = shaken(BertForMaskedLM(BertConfig(**shape)), 0.05)
    ours = TransformerForMaskedLM(official.config).eval()
    ours.load_bert_weights(official.state_dict())
    return official.to(dtype), ours.to(dtype)


def by_our_names(official: BertForMaskedLM, gradients: bool) -> dict[str, torch.Tensor]:
    """Return the official parameters, or their gradients, under our names."""
    found = {rename_headed_weight(name, "BertForMaskedLM"): weight for name, weight in official.named_parameters()}
    return {name: weight.grad if gradients else weight for name, weight in found.items() if name}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("shape", [random_sizes(seed) | {"pad_token_id": 3 * (seed % 2)} for seed in range(6)], ids=str)
def test_masked_lm_equals_the_official_model(shape, dtype, tolerance):
    official, ours = both(shape, dtype)
    batch = ragged_batch([10, 3, 7], shape["vocab_size"])
    labels = torch.where(torch.rand(batch["input_ids"].shape) < 0.4, batch["input_ids"], -100)
    labels = labels.masked_fill(batch["attention_mask"] == 0, -100)
    labels[0, 1] = 5
    expected, logits = official(**batch, labels=labels), ours(**batch)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert largest_difference(logits, expected.logits) <= tolerance
    assert largest_difference(loss, expected.loss) <= tolerance
    expected.loss.backward()
    loss.backward()
    gradients = by_our_names(official, gradients=True)
    assert gradients.keys() == dict(ours.named_parameters()).keys()
    for name, weight in ours.named_parameters():
        assert largest_difference(weight.grad, gradients[name]) <= tolerance, name


def test_masked_lm_returns_logits_of_chosen_positions():
    ours = both(SMALL)[1]
    batch = ragged_batch([10, 3])
    where = torch.rand(batch["input_ids"].shape) < 0.3
    torch.testing.assert_close(ours(**batch, where=where), ours(**batch)[where])


def test_masked_lm_refuses_word_embeddings_that_are_not_tied():
    with pytest.raises(ValueError, match=r"tie_word_embeddings=False is not supported: use True"):
        TransformerForMaskedLM(BertConfig(**TINY, tie_word_embeddings=False))


def test_tied_weights_survive_a_step_and_saving(tmp_path):
    model = shaken(TransformerForMaskedLM(BertConfig(**TINY)))
    ids = ragged_batch([10, 7], TINY["vocab_size"])["input_ids"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
    model.save(tmp_path / "saved", tiny_tokenizer())
    official = BertForMaskedLM.from_pretrained(tmp_path / "saved").eval()
    loaded = TransformerForMaskedLM.from_checkpoint(str(tmp_path / "saved"))
    assert official.cls.predictions.decoder.weight is official.bert.embeddings.word_embeddings.weight
    assert torch.equal(loaded.state_dict()[WORD_EMBEDDINGS], model.state_dict()[WORD_EMBEDDINGS])
    with torch.no_grad():
        expected = model(ids)
        assert torch.equal(loaded(ids), expected)
        assert largest_difference(official(ids).logits, expected) <= 1e-5
        for other in (loaded, model):
            other.encoder.embeddings.word_embeddings.weight[7] += 1  # both ends of the model move
            assert (other(ids)[..., 7] != expected[..., 7]).all()


def test_masked_lm_loads_names_of_bert_base_uncased(tmp_path):
    """The checkpoint has gamma and beta, a pooler, a next-sentence head, a tied decoder and buffers."""
    official, ours = both(TINY)
    weights = official.state_dict() | {"cls.seq_relationship.weight": torch.ones(2, 12)}
    weights |= {"bert.pooler.dense.bias": torch.ones(12), "bert.embeddings.position_ids": torch.arange(16)[None]}
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, before in old.items():
        weights = {name.replace(new, before): weight for name, weight in weights.items()}
    other = TransformerForMaskedLM(official.config).eval()
    other.load_bert_weights(weights)
    batch = ragged_batch([10, 3])
    assert torch.equal(other(**batch), ours(**batch))


def test_masked_lm_refuses_weights_that_do_not_fit():
    official, ours = both(TINY)
    weights = official.state_dict()
    with pytest.raises(ValueError, match=r"unexpected: surplus"):
        ours.load_bert_weights(weights | {"surplus": torch.zeros(1)})
    with pytest.raises(
        ValueError, match=r"decoder.weight must equal the word embeddings or bias .*: save the model with tied"
    ):
        ours.load_bert_weights(weights | {"cls.predictions.decoder.weight": torch.zeros(50, 12)})


# What is hidden


def many_ids(tokenizer, rows: int = 400) -> torch.Tensor:
    """Return rows of 64 ids with all kinds of tokens, the last 8 of each row padding."""
    ids = torch.randint(len(tokenizer.vocab), (rows, 64), generator=torch.Generator().manual_seed(1))
    ids[:, 0], ids[:, 55], ids[:, 56:] = (tokenizer.vocab[token] for token in ("[CLS]", "[SEP]", "[PAD]"))
    return ids


def special_places(ids, tokenizer) -> torch.Tensor:
    return torch.isin(ids, torch.tensor([tokenizer.vocab[token] for token in SPECIAL_TOKENS]))


def shares(probability: float) -> dict[str, tuple[int, int, float]]:
    """Return, for each kind, its count, the total, and the expected share."""
    tokenizer = tiny_tokenizer()
    ids = many_ids(tokenizer)
    hidden, labels = mask_tokens(ids, tokenizer, probability, torch.Generator().manual_seed(0))
    asked = labels != -100
    masked, same = asked & (hidden == tokenizer.vocab["[MASK]"]), asked & (hidden == ids)
    total, words = int(asked.sum()), TINY["vocab_size"] - len(SPECIAL_TOKENS)
    return {
        "asked": (total, int((~special_places(ids, tokenizer)).sum()), probability),
        "[MASK]": (int(masked.sum()), total, 0.8),
        "itself": (int(same.sum()), total, 0.1 + 0.1 / words),  # a random word may be the same
        "another": (int((asked & ~masked & ~same).sum()), total, 0.1 - 0.1 / words),
    }


@pytest.mark.parametrize("probability", [0.15, 0.5])
@pytest.mark.parametrize("kind", ["asked", "[MASK]", "itself", "another"])
def test_mask_tokens_follows_the_shares_of_bert(probability, kind):
    found, total, wanted = shares(probability)[kind]
    low, high = wilson_interval(found, total)
    margin = (high - low) / 2  # twice the interval: one in 10,000 fails by chance, and the seed is fixed
    assert low - margin <= wanted <= high + margin
    assert high - low < 0.05  # narrow enough to tell 0.8 from 0.9 and 0.1 from 0


def test_mask_tokens_never_selects_special_tokens():
    tokenizer = tiny_tokenizer()
    ids = many_ids(tokenizer)
    hidden, labels = mask_tokens(ids, tokenizer, 0.9, torch.Generator().manual_seed(0))
    special = special_places(ids, tokenizer)
    assert torch.equal(hidden[special], ids[special])
    assert (labels[special] == -100).all()
    assert torch.equal(hidden[labels == -100], ids[labels == -100])
    assert torch.equal(labels[labels != -100], ids[labels != -100])
    drawn = hidden[(hidden != ids) & (hidden != tokenizer.vocab["[MASK]"])]
    assert not special_places(drawn, tokenizer).any()
    assert set(drawn.tolist()) == set(range(TINY["vocab_size"])) - set(range(len(SPECIAL_TOKENS)))


def test_mask_tokens_draws_from_the_generator_alone():
    tokenizer = tiny_tokenizer()
    ids = many_ids(tokenizer, 3)
    before, (first, again, other) = ids.clone(), (torch.Generator().manual_seed(seed) for seed in (0, 0, 1))
    one = mask_tokens(ids, tokenizer, generator=first)
    torch.manual_seed(5)
    same, another = (mask_tokens(ids, tokenizer, generator=generator) for generator in (again, other))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0], another[0])
    assert torch.equal(ids, before)


def test_mask_tokens_selects_at_least_one_word():
    """With one row and a probability of 0.02; nothing is added if a word is selected anyway."""
    tokenizer = tiny_tokenizer()
    ids = torch.tensor([tokenizer.encode("a b c d e f g h")])
    drawn = [mask_tokens(ids, tokenizer, 0.02, torch.Generator().manual_seed(seed))[1] for seed in range(200)]
    counts = [int((labels != -100).sum()) for labels in drawn]
    assert set(counts) == {1, 2}
    assert all(set(labels[0].tolist()) <= {*ids[0, 1:-1].tolist(), -100} for labels in drawn)


# Vocabulary and rows


TEXTS = ["a good film, a very good film!", "a bad film.", "Très bien: the filming was good"] * 3


def test_fill_rows_keeps_the_text_in_order():
    tokenizer = train_vocabulary(TEXTS, 80)
    rows = fill_rows(TEXTS, tokenizer, 8)
    cls_id, sep_id = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]
    stream = [token_id for text in TEXTS for token_id in tokenizer.encode(text)[1:]]  # with its [SEP]
    assert rows[:, 1:-1].flatten().tolist() == stream[: len(stream) // 6 * 6]
    assert set(rows[:, 0].tolist()) == {cls_id}
    assert set(rows[:, -1].tolist()) == {sep_id}


def test_evaluate_masked_counts_correct_predictions():
    """A model that always predicts the same word is right as often as that word is selected."""
    tokenizer, model = (tiny_tokenizer(), TransformerForMaskedLM(BertConfig(**TINY | {"max_position_embeddings": 64})))
    rows = many_ids(tokenizer, 70)
    with torch.no_grad():
        model.head.bias.fill_(-20)
        model.head.bias[9] = 20
    judged = evaluate_masked(model.train(), tokenizer, rows)
    labels = mask_tokens(rows, tokenizer, generator=torch.Generator().manual_seed(0))[1]
    labels = labels[labels != -100]
    assert judged.total == len(labels)
    assert judged.accuracy == pytest.approx((labels == 9).double().mean().item())
    assert judged.loss == pytest.approx(40 * (1 - judged.accuracy), rel=0.05)
    assert model.training
    assert json.dumps(judged)  # plain numbers


# The guess of both neighbours


def dense_guess(rows: torch.Tensor, size: int, hidden: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    """Predict the same from dense tables with a row for each possible context."""
    left, word, right = rows[:, :-2].flatten(), rows[:, 1:-1].flatten(), rows[:, 2:].flatten()

    def table(given: torch.Tensor, rows: int) -> torch.Tensor:
        counts = torch.zeros(rows, size, dtype=torch.double)
        return counts.index_put_((given, word), torch.ones(len(word)).double(), accumulate=True)

    def smooth(counts, expected, weight):
        return (counts + weight * expected) / (counts.sum(dim=-1, keepdim=True) + weight)

    own = smooth(torch.bincount(word, minlength=size).double(), 1 / size, 1)
    before, after = hidden.roll(1, dims=1)[where], hidden.roll(-1, dims=1)[where]
    each = smooth(table(left, size)[before], own, 20) * smooth(table(right, size)[after], own, 20) / own
    both = table(left * size + right, size**2)[before * size + after]
    return smooth(both, each / each.sum(dim=1, keepdim=True), 5)


def test_neighbour_counts_equal_those_of_dense_tables():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(5, 14, (40, 9), generator=generator)
    hidden = torch.randint(0, 16, (30, 9), generator=generator)  # with tokens and pairs that were never seen
    where = torch.zeros(30, 9, dtype=torch.bool)
    where[:, 1:-1] = True
    found = NeighbourCounts(rows, 16).probabilities(hidden, where)
    torch.testing.assert_close(found, dense_guess(rows, 16, hidden, where), rtol=1e-9, atol=1e-12)
