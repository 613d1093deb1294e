"""Checks for the exercises of notebook 11."""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from exercises.framework import (
    NotAttempted,
    as_number,
    call,
    close,
    compare_stages,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
    is_stub,
)
from exercises.prediction import prediction, within
from utils.masked_lm import TransformerForMaskedLM
from utils.support.datasets import DATA

RULE = ": 80 % [MASK], 10 % another word, 10 % the word"


class Vocabulary(NamedTuple):
    """The ids of [PAD], [UNK], [CLS], [SEP] and [MASK], and of words; only `drawn` may be drawn as random ones."""

    special: Tensor
    words: Tensor

    @property
    def drawn(self) -> Tensor:
        """The words that may be drawn: not all, so that words of other rows can be recognised."""
        return self.words[:30]


VOCABULARIES = (
    Vocabulary(torch.arange(5), torch.arange(5, 40)),
    Vocabulary(torch.tensor([17, 3, 20, 39, 8]), torch.tensor([i for i in range(40) if i not in (17, 3, 20, 39, 8)])),
)


def rows_of_words(vocabulary: Vocabulary, B: int, S: int, padded: int, has_all: bool) -> Tensor:
    """Return rows (B, S) of ids: [CLS], words (with [UNK] and [MASK] if `has_all`), [SEP], and padding at the end."""
    words, (pad, unk, cls, sep, mask) = vocabulary.words, vocabulary.special
    ids = words[torch.randint(len(words), (B, S), generator=torch.Generator().manual_seed(0))]
    ids[:, 0], ids[:, S - padded - 1], ids[:, S - padded :] = cls, sep, pad
    if has_all:
        ids[::7, 3], ids[::5, 6] = unk, mask
    return ids


@exercise("11.1", points=4)
def hide_words(answer):
    """Check mask_tokens: which words are selected, and what replaces them."""
    expect_function(answer)
    for vocabulary, probability, sizes in zip(
        VOCABULARIES, (0.15, 0.4), ((600, 50, 9, False), (2000, 46, 4, True)), strict=True
    ):
        ids, mask_id, allowed = rows_of_words(vocabulary, *sizes), vocabulary.special[-1], vocabulary.drawn
        hidden, labels, again = hidden_and_labels(answer, ids, vocabulary, probability)
        special = torch.isin(ids, vocabulary.special)
        selected = labels != -100
        expect(
            not torch.equal(labels, ids),
            "Every position has a label here. Where no word is selected, the label is -100.",
        )
        expect((labels == -100).any(), "Where no word is selected, the label is -100, which the loss ignores.")
        expect(not selected[special].any(), "A special token or padding is selected. Leave out the ids in `special`.")
        expect(torch.equal(labels[selected], ids[selected]), "The label is the original word, before it was hidden.")
        shown, unselected = hidden[selected], (hidden != ids) & ~selected
        expect(
            not unselected.any() or not (shown == mask_id).all(),
            "Only [MASK] has labels here. Replaced and unchanged words that were selected need a label, too.",
        )
        expect(not unselected.any(), "A word that is not selected has changed. Leave it as it is.")
        unhidden = (shown == ids[selected]).any() or (shown == mask_id).all()
        expect(unhidden, "A selected word that is shown unchanged needs a label, too.")
        expect_independent(selected, ~special, ids)
        right_share(int(selected.sum()), int((~special).sum()), probability, "of the words are selected", "")
        at_random = selected & (hidden != mask_id) & (hidden != ids)
        for fate in (hidden == mask_id, at_random):
            for dim, line in ((1, "row"), (0, "column")):
                together = spread_of(fate & selected, selected, dim) > 1
                expect(not together, f"The words of a {line} share one fate. Draw a number for each position.")
        masked, same = (shown == mask_id).sum(), (shown == ids[selected]).sum()
        drawn = shown[(shown != mask_id) & (shown != ids[selected])]
        right_share(int(masked), len(shown), 0.8, "of the selected words show [MASK]")
        right_share(int(same), len(shown), 0.1 + 0.1 / len(vocabulary.words), "of the selected words are unchanged")
        expect(torch.isin(drawn, allowed).all(), "A random word is not in `words`. Draw only from those.")
        expect(len(drawn.unique()) > 25, "The random words are always the same few. Draw one for each position.")
        for lines, places in ((hidden, at_random), (hidden.T, at_random.T)):
            line, word = places.nonzero()[:, 0], lines[places]
            repeated = (word[1:] == word[:-1])[line[1:] == line[:-1]].double().mean()
            expect(repeated < 0.5, "A row or a column shares one random word. Draw one for each position.")
        expect(not torch.equal(labels, again), "Two calls select the same words. Draw them again in each call.")
    expect_evenly_drawn(drawn, allowed)
    return "So the model never knows whether a word that it sees is true. From here on, your function hides the words."


def expect_evenly_drawn(drawn: Tensor, allowed: Tensor) -> None:
    """Raise `Hint` unless all allowed words are drawn, and equally often as far as chance goes."""
    never = allowed[torch.isin(allowed, drawn, invert=True)].tolist()
    ids = allowed.tolist()
    expect(not never, f"Of the words with the ids {ids}, {never} are never drawn as the random word. Draw from all.")
    counts = (drawn[:, None] == allowed).sum(dim=0).double()
    uneven = ((counts - counts.mean()) ** 2 / counts.mean()).sum() / (len(counts) - 1)  # about 1 if drawn evenly
    expect(
        uneven < 1 + SIGMAS * (2 / (len(counts) - 1)) ** 0.5, "Some random words are drawn far more often than others."
    )


def hidden_and_labels(answer, ids: Tensor, vocabulary: Vocabulary, probability: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the reader's function makes of ids, and its labels the next time; a `Hint` for other shapes."""
    given = ids.clone()
    results = []
    for _ in range(2):
        result = answer(given, vocabulary.special, int(vocabulary.special[-1]), vocabulary.drawn, probability)
        expect(torch.equal(given, ids), "Your function changes the ids in place. Work on a clone.")
        two = isinstance(result, (tuple, list)) and len(result) == 2
        expect(two, "Return two tensors: the ids with words hidden, and the labels.")
        results.append([expect_tensor(one, ids.shape) for one in result])
        whole = not any(one.is_floating_point() for one in results[-1])
        expect(whole, "Ids and labels have to be integers, for the embedding and the loss.")
        for name, one in zip(("ids", "labels"), results[-1], strict=True):
            dtype = f"The {name} that you return have the dtype {one.dtype}, but the training needs torch.int64."
            expect(one.dtype == torch.int64, dtype)
    return *results[0], results[1][1]


SIGMAS = 7  # further off than chance puts a right answer, also where few counts have a long tail
MANY, SIGMAS_OF_MANY = 10_000, 5  # of so many, fewer are enough


def right_share(found: int, total: int, wanted: float, words: str, rule: str = RULE) -> None:
    """Raise `Hint` unless a share is as wanted, as far as chance goes."""
    error = (wanted * (1 - wanted) / total) ** 0.5
    expect(
        abs(found / total - wanted) <= (SIGMAS_OF_MANY if total >= MANY else SIGMAS) * error,
        f"{found / total:.1%} {words}, but it should be {wanted:.0%}{rule}.",
    )


def spread_of(hits: Tensor, places: Tensor, dim: int) -> float:
    """Return how unevenly hits fall on rows (dim 1) or columns (dim 0): below 1 as far as chance goes.

    This is the variance of hits per line, compared with that of coin flips.
    """
    hits, places = hits.sum(dim=dim).double(), places.sum(dim=dim).double()
    share = hits.sum() / places.sum()
    if share in (0, 1):
        return 0.0
    coins = share * (1 - share) * places
    ratio = (hits - share * places).square().sum() / coins.sum()
    error = ((2 + 1 / coins.mean()) / len(coins)) ** 0.5
    return float(ratio / (1 + SIGMAS * error))


def expect_independent(selected: Tensor, words: Tensor, ids: Tensor) -> None:
    """Raise `Hint` if positions are selected together: rows, columns, stretches or all occurrences of a word."""
    each = "draw a number for each position of (B, S)."
    expect(spread_of(selected, words, 1) < 1, f"Nearly whole rows are selected: {each}")
    uneven = f"Some columns are selected far more often than others: {each}"
    expect(spread_of(selected, words, 0) < 1, uneven)
    kinds = torch.nn.functional.one_hot(ids).bool() & words[..., None]  # (B, S, ids)
    kinds = kinds.flatten(0, 1)[:, ids[words].unique()]
    by_word = spread_of(kinds & selected.flatten()[:, None], kinds, 0)
    expect(by_word < 1, f"A word is selected everywhere or nowhere: {each}")
    pairs = (words[:, 1:] & words[:, :-1]).sum()
    share = ((selected[:, 1:] & selected[:, :-1]).sum() / pairs).item()
    p = (selected.sum() / words.sum()).item()
    error = ((p**2 * (1 - p**2) + 2 * p**3 * (1 - p)) / pairs).item() ** 0.5
    expect(share <= p**2 + SIGMAS * error, f"The selected words are next to each other: {each}")
    expect(share >= p**2 / 2, f"The selected words avoid each other: {each}")


@cache
def pretrained() -> TransformerForMaskedLM:
    """Return the tiny BERT of this notebook."""
    return TransformerForMaskedLM.from_checkpoint(str(DATA / "tiny_bert"))


@exercise("11.2", points=4)
def write_the_head(answer):
    """Check the masked-LM head as a module, climbing with pretrained weights to the logits."""
    expect(
        isinstance(answer, type) and issubclass(answer, nn.Module),
        "Pass check the class itself, MaskedLMHead, without parentheses.",
    )
    for model in (pretrained(), of_another_size()):
        weight = model.encoder.embeddings.word_embeddings.weight.detach().clone()
        embeddings = nn.Embedding.from_pretrained(weight, freeze=False)
        head = call(answer, model.config, embeddings)
        expect_parts(head, embeddings, model)
        compare_stages(masked_lm_stages(head, embeddings, model), HEAD_HINTS)
    states = torch.randn(2, 3, model.config.hidden_size, requires_grad=True)
    logits = call(head, states)
    logits.sum().backward()
    expect(
        embeddings.weight.grad is not None,
        "No gradient reaches the word embeddings. Use their weight itself, without .detach() or .data.",
    )
    sources = [states, embeddings.weight, *head.transform.parameters(), *head.layer_norm.parameters(), head.bias]
    wanted = head.layer_norm(F.gelu(head.transform(states))) @ embeddings.weight.T + head.bias
    cut_off = "The logits are right, but not every layer below them can learn. Remove any detach or torch.no_grad()."
    expect_gradients(call(head, states), wanted, sources, cut_off)
    return "With it an encoder can be pretrained. From here on, the model that you train has your head."


@cache
def of_another_size() -> TransformerForMaskedLM:
    """Return a random model with other sizes and another eps, so that none can be fixed."""
    torch.manual_seed(3)
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 20}
    config = BertConfig(**sizes, vocab_size=50, layer_norm_eps=1e-3, initializer_range=0.5)
    model = TransformerForMaskedLM(config).eval()
    for parameter in (model.head.bias, model.head.transform.bias, model.head.layer_norm.bias):
        nn.init.normal_(parameter)
    return model


def expect_parts(head: nn.Module, embeddings: nn.Embedding, model: TransformerForMaskedLM) -> None:
    """Raise `Hint` unless the head has the layers that the model's has, and no table of its own."""
    if is_stub([getattr(head, name, None) for name in ("transform", "layer_norm", "bias")]):
        raise NotAttempted
    kinds = {"transform": nn.Linear, "layer_norm": nn.LayerNorm}
    expect(
        all(isinstance(getattr(head, name, None), kind) for name, kind in kinds.items()),
        "The head needs self.transform, an nn.Linear, and self.layer_norm, an nn.LayerNorm.",
    )
    V, H = embeddings.weight.shape
    for name in kinds:
        for part, wanted in getattr(model.head, name).named_parameters():
            found = getattr(getattr(head, name), part, None)
            expect(found is not None, f"self.{name} should have a {part}, as PyTorch gives it one by default.")
            expect(
                found.shape == wanted.shape,
                f"With H = {H} the {part} of self.{name} should have the shape {tuple(wanted.shape)}, not "
                f"{tuple(found.shape)}: take the sizes from the configuration.",
            )
    own = {name: w for name, w in head.named_parameters() if tuple(w.shape) == (V, H)}
    tied = all(weight is embeddings.weight for weight in own.values())
    expect(tied, "The decoder has its own weights. Multiply by word_embeddings.weight, transposed, instead.")
    bias = getattr(head, "bias", None)
    expect(
        isinstance(bias, nn.Parameter) and tuple(bias.shape) == (V,),
        f"self.bias should be an nn.Parameter with one number for each word of the vocabulary, here {V}.",
    )
    frozen = [name for name, parameter in head.named_parameters() if not parameter.requires_grad]
    expect(not frozen, f"{', '.join(frozen)} cannot learn: keep requires_grad=True.")
    expect(head.layer_norm.eps == model.config.layer_norm_eps, "LayerNorm's eps should come from the configuration.")


HEAD_HINTS = {
    "one vector": "The order is transform, activation, LayerNorm, the embeddings' weight, transposed, and the bias.",
    "a batch of sentences": "forward should also accept hidden_states (B, S, H), with any B and S.",
    "after the word embeddings moved": (
        "The logits should change with them. Keep the module, and do not copy its weights."
    ),
}


def masked_lm_stages(head: nn.Module, embeddings: nn.Embedding, model) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the reader's logits and ours, with the pretrained weights."""
    with torch.no_grad():
        head.transform.load_state_dict(model.head.transform.state_dict())
        head.layer_norm.load_state_dict(model.head.layer_norm.state_dict())
        head.bias.copy_(model.head.bias)
        states = torch.randn(2, 3, model.config.hidden_size, generator=torch.Generator().manual_seed(0))
        diagnose(head, states[0, :1], model)
        yield "one vector", call(head, states[0, :1]), logits_of(model, states[0, :1])
        yield "a batch of sentences", call(head, states), logits_of(model, states)
        embeddings.weight[7] += 1
        moved = model.head(states, embeddings.weight)
        yield "after the word embeddings moved", call(head, states), moved


def logits_of(model, states: Tensor, activation=None, normalise=True, bias=True) -> Tensor:
    """Return the head's logits of hidden states (…, H); or what usual mistakes make of them."""
    transformed = (activation or model.head.activation)(model.head.transform(states))
    transformed = model.head.layer_norm(transformed) if normalise else transformed
    logits = transformed @ model.encoder.embeddings.word_embeddings.weight.T
    return logits + model.head.bias if bias else logits


def diagnose(head: nn.Module, states: Tensor, model) -> None:
    """Raise `Hint` for what usual mistakes give."""
    result = call(head, states)
    transform, norm, identity = model.head.transform, model.head.layer_norm, nn.Identity()
    before = model.head.activation(norm(transform(states))) @ model.encoder.embeddings.word_embeddings.weight.T
    wrong = {
        "The activation between transform and LayerNorm is missing.": logits_of(model, states, identity),
        "This is the tanh form of GELU. BERT uses the exact one, nn.GELU().": logits_of(model, states, nn.GELU("tanh")),
        "This is ReLU. BERT uses GELU, nn.GELU().": logits_of(model, states, F.relu),
        "LayerNorm is missing.": logits_of(model, states, normalise=False),
        "LayerNorm comes after the activation.": before + model.head.bias,
        "The bias is missing. It has one number per word, added at the end.": logits_of(model, states, bias=False),
        "These are probabilities. Return the logits.": logits_of(model, states).softmax(dim=-1),
        "These are log-probabilities. Return the logits.": logits_of(model, states).log_softmax(dim=-1),
        "The bias is added twice.": logits_of(model, states) + model.head.bias,
    }
    for hint, value in wrong.items():
        expect(not close(result, value, 1e-6), hint)


UNIGRAM, HALF = 6.34, math.log(2)

prediction(
    "11.3",
    partial(as_number, question="The loss"),
    """
    = 0.9 * UNIGRAM + 0.2 * HALF
    0.8 * UNIGRAM | That is the share of [MASK] alone. The other 20 % of the words to be predicted have a loss, too.
    UNIGRAM | That is the unigram alone. Where the right word is shown, its loss is only ln 2.
    0.9 * UNIGRAM + 0.1 * HALF | One ln 2 is missing. The right word shown costs ln 2, and another word shown costs 6.34
        + ln 2.
    0.8 * UNIGRAM + 0.2 * HALF | Here all words that are shown are right. Half of them are others, with a loss of 6.34 +
        ln 2.
    0.95 * UNIGRAM | Halving a probability adds ln 2 to its loss. It does not halve the loss.
    (2 * UNIGRAM + 2 * HALF) / 3 | This is the plain mean of three losses. Weigh them with 0.8, 0.1 and 0.1.
    5.793 | That is the best that such a model can reach, by trusting "the" more than rare words. This one gives half to
        any word that it sees.
    7.6 | Three cases: [MASK], the right word, another word. Add up share times loss.
    """,
    near=within(0.006),
    good=within(0.02),
    names=lambda: {"UNIGRAM": UNIGRAM, "HALF": HALF},
    remark="Near it the training rests for a long time: see the next figure.",
)
