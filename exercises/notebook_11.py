"""Checks for the exercises of notebook 11."""

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from exercises import (
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
from utils.masked_lm import TransformerForMaskedLM
from utils.support.datasets import DATA


@exercise("11.1")
def selected_words(answer):
    """Check how many of 32 · 128 tokens, 8 of each row special, are selected, show [MASK], and stay."""
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give three numbers: selected, shown as [MASK], shown as themselves.")
    selected, masked, same = (
        as_number(number, name) for number, name in zip(answer, ("The first", "The second", "The third"), strict=True)
    )
    expect(abs(selected - 614.4) > 1, "Special tokens and padding are never selected: 8 of each row's 128.")
    expect(abs(selected - 4.5 * 128 / 32) > 1 or selected > 20, "That is a row's: there are 32 rows.")
    expect(abs(selected - 576) <= 1, "Each row has 128 - 8 words, there are 32 rows, and 15 % of all are selected.")
    expect(abs(masked - 3072) > 3, "80 % of the selected words, not of all words.")
    expect(abs(masked - 460.8) <= 1, "[MASK] replaces 80 % of the selected words.")
    expect(abs(same - 115.2) > 1, "Half of the 20 % that show no [MASK] show another word: 10 % are left.")
    expect(abs(same - 57.6) <= 1, "10 % of the selected words show themselves.")
    return "Of 3,840 words the loss sees 576, and 58 of those stand there unhidden."


RULE = ": 80 % [MASK], 10 % another word, 10 % the word"
SPECIAL, MASK_ID = (0, 1, 2, 3, 4), 4
WORDS = torch.arange(5, 40)
DRAWN = WORDS[:30]  # those that a random word may be, so that other rows' words can be told from them


def rows_of_words(B: int, S: int, padded: int) -> Tensor:
    """Return rows (B, S) of ids: [CLS], words, [SEP], and `padded` times padding at the end."""
    ids = WORDS[torch.randint(len(WORDS), (B, S), generator=torch.Generator().manual_seed(0))]
    ids[:, 0], ids[:, S - padded - 1], ids[:, S - padded :] = 2, 3, 0
    return ids


@exercise("11.2", points=3)
def hide_words(answer):
    """Check mask_tokens: which words are selected, and what replaces them."""
    expect_function(answer)
    never = DRAWN
    for probability, sizes in ((0.15, (600, 50, 9)), (0.4, (500, 35, 4))):
        ids = rows_of_words(*sizes)
        hidden, labels, again = hidden_and_labels(answer, ids, probability)
        special = torch.isin(ids, torch.tensor(SPECIAL))
        selected = labels != -100
        expect(not torch.equal(labels, ids), "Every place has a label: where no word is selected, the label is -100.")
        expect((labels == -100).any(), "Where no word is selected, the label is -100: no loss is taken there.")
        expect(not selected[special].any(), "A special token or padding is selected: leave those in `special` out.")
        expect(
            torch.equal(labels[selected], ids[selected]),
            "The label is the word that stood there, before it was hidden.",
        )
        shown, unselected = hidden[selected], (hidden != ids) & ~selected
        expect(
            not unselected.any() or not (shown == MASK_ID).all(),
            "Only what shows [MASK] has a label: a word that is exchanged, or shows itself, is selected too.",
        )
        expect(not unselected.any(), "A word that is not selected has changed: leave it as it is.")
        unhidden = (shown == ids[selected]).any() or (shown == MASK_ID).all()
        expect(unhidden, "A word that shows itself is selected too, and has a label.")
        expect_independent(selected, ~special, ids)
        right_share(int(selected.sum()), int((~special).sum()), probability, "of the words are selected", "")
        at_random = selected & (hidden != MASK_ID) & (hidden != ids)
        for fate in (hidden == MASK_ID, at_random):
            for dim, line in ((1, "row"), (0, "column")):
                together = spread_of(fate & selected, selected, dim) > 1
                expect(not together, f"The words of a {line} share one fate: draw a number for each place.")
        masked, same = (shown == MASK_ID).sum(), (shown == ids[selected]).sum()
        drawn = shown[(shown != MASK_ID) & (shown != ids[selected])]
        right_share(int(masked), len(shown), 0.8, "of the selected words show [MASK]")
        right_share(int(same), len(shown), 0.1 + 0.1 / len(WORDS), "of the selected words show themselves")
        expect(torch.isin(drawn, DRAWN).all(), "A random word is none of `words`: draw from those alone.")
        expect(len(drawn.unique()) > 25, "The random words are always the same few: draw one for each place.")
        never = never[torch.isin(never, drawn, invert=True)]
        for lines, places in ((hidden, at_random), (hidden.T, at_random.T)):
            line, word = places.nonzero()[:, 0], lines[places]
            repeated = (word[1:] == word[:-1])[line[1:] == line[:-1]].double().mean()
            expect(repeated < 0.5, "A row or a column shares one random word: draw one for each place.")
        expect(not torch.equal(labels, again), "Two calls select the same words: draw again in each call.")
    missing = f"Of the words with the ids {DRAWN.tolist()}, {never.tolist()} never come as the random word: all may."
    expect(not len(never), missing)
    return "So the model never knows whether a word that it sees is true. From here on, your function hides the words."


def hidden_and_labels(answer, ids: Tensor, probability: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the reader's function makes of ids, and its labels the next time; a `Hint` for other shapes."""
    given = ids.clone()
    results = []
    for _ in range(2):
        result = answer(given, torch.tensor(SPECIAL), MASK_ID, DRAWN, probability)
        expect(torch.equal(given, ids), "The ids that came in are changed: work on a clone.")
        two = isinstance(result, (tuple, list)) and len(result) == 2
        expect(two, "Return two tensors: the ids with words hidden, and the labels.")
        results.append([expect_tensor(one, ids.shape) for one in result])
        whole = not any(one.is_floating_point() for one in results[-1])
        expect(whole, "Ids and labels are whole numbers: an embedding and a loss take no others.")
    return *results[0], results[1][1]


SIGMAS = 7  # further off than chance puts a right answer, also where few counts have a long tail


def right_share(found: int, total: int, wanted: float, words: str, rule: str = RULE) -> None:
    """Raise `Hint` unless a share is as wanted, as far as chance goes."""
    error = (wanted * (1 - wanted) / total) ** 0.5
    expect(
        abs(found / total - wanted) <= SIGMAS * error,
        f"{found / total:.1%} {words}, and it should be {wanted:.0%}{rule}.",
    )


def spread_of(hits: Tensor, places: Tensor, dim: int) -> float:
    """Return how unevenly hits fall on rows (dim 1) or columns (dim 0): below 1 as far as chance goes.

    The variance of a line's hits among its places, over all lines, beside that of coins.
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
    """Raise `Hint` if places are selected together: whole rows, columns, stretches, or all occurrences of a word."""
    each = "draw a number for each place of (B, S)."
    expect(spread_of(selected, words, 1) < 1, f"Whole rows are selected, or nearly: {each}")
    uneven = f"Some columns are selected far more often than others: {each}"
    expect(spread_of(selected, words, 0) < 1, uneven)
    kinds = torch.nn.functional.one_hot(ids).bool() & words[..., None]  # (B, S, ids)
    kinds = kinds.flatten(0, 1)[:, ids[words].unique()]
    by_word = spread_of(kinds & selected.flatten()[:, None], kinds, 0)
    expect(by_word < 1, f"A word is selected wherever it occurs, or nowhere: {each}")
    pairs = (words[:, 1:] & words[:, :-1]).sum()
    share = ((selected[:, 1:] & selected[:, :-1]).sum() / pairs).item()
    p = (selected.sum() / words.sum()).item()
    error = ((p**2 * (1 - p**2) + 2 * p**3 * (1 - p)) / pairs).item() ** 0.5
    expect(share <= p**2 + SIGMAS * error, f"The selected words are next to each other: {each}")
    expect(share >= p**2 / 2, f"The selected words keep apart from each other: {each}")


@cache
def pretrained() -> TransformerForMaskedLM:
    """Return the tiny BERT of this notebook."""
    return TransformerForMaskedLM.from_checkpoint(str(DATA / "tiny_bert"))


@exercise("11.3", points=3)
def write_the_head(answer):
    """Check the masked-LM head as a module, climbing with pretrained weights to the logits."""
    expect(
        isinstance(answer, type) and issubclass(answer, nn.Module),
        "Give check the class itself: MaskedLMHead, without parentheses.",
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
        "No gradient reaches the word embeddings: use their weight itself, not .detach() or .data.",
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
        "It needs self.transform, an nn.Linear, and self.layer_norm, an nn.LayerNorm.",
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
    expect(tied, "The decoder has weights of its own: multiply with word_embeddings.weight, transposed.")
    bias = getattr(head, "bias", None)
    expect(
        isinstance(bias, nn.Parameter) and tuple(bias.shape) == (V,),
        f"self.bias should be an nn.Parameter with one number for each word of the vocabulary, here {V}.",
    )
    expect(
        head.layer_norm.eps == model.config.layer_norm_eps, "LayerNorm's eps is the configuration's, not the default."
    )


HEAD_HINTS = {
    "one vector": "The order: transform, activation, LayerNorm, then the embeddings' weight, transposed, plus bias.",
    "a batch of sentences": "It should take hidden_states (B, S, H) too, with any B and S.",
    "after the word embeddings moved": "The logits should follow: keep the module, and copy none of its weights.",
}


def masked_lm_stages(head: nn.Module, embeddings: nn.Embedding, model) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the reader's logits beside ours, with the pretrained weights."""
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
        "BERT's GELU is the exact one, nn.GELU().": logits_of(model, states, nn.GELU("tanh")),
        "That is ReLU: BERT uses GELU, nn.GELU().": logits_of(model, states, F.relu),
        "LayerNorm is missing.": logits_of(model, states, normalise=False),
        "LayerNorm comes after the activation.": before + model.head.bias,
        "The bias is missing: one number a word, added at the end.": logits_of(model, states, bias=False),
        "These are probabilities: return the logits.": logits_of(model, states).softmax(dim=-1),
        "These are log-probabilities: return the logits.": logits_of(model, states).log_softmax(dim=-1),
        "The bias is added twice.": logits_of(model, states) + model.head.bias,
    }
    for hint, value in wrong.items():
        expect(not close(result, value, 1e-6), hint)


@exercise("11.4", points=2)
def loss_of_pairs(answer):
    """Check the contrastive loss: finding each first text's partner among all second texts."""
    expect_function(answer)
    for B, H, temperature in ((5, 4, 0.05), (3, 6, 0.5), (1, 4, 0.1)):
        generator = torch.Generator().manual_seed(B)
        first, second = (F.normalize(torch.randn(B, H, generator=generator), dim=-1) for _ in range(2))
        given = first.clone(), second.clone()
        result = answer(*given, temperature)
        unaltered = torch.equal(given[0], first) and torch.equal(given[1], second)
        expect(unaltered, "The vectors that came in are changed: leave them as they are.")
        loss = as_number(result, "The loss")
        scores, partner = first @ second.T / temperature, torch.arange(B)
        wanted = F.cross_entropy(scores, partner)
        for hint, value in wrong_losses(scores, partner, temperature).items():
            expect(not close(loss, value) or close(wanted, value), hint)
        cosines = [[round(number, 2) for number in row] for row in (scores * temperature).tolist()]
        expect(
            close(loss, wanted),
            f"For {B} pairs whose cosines are {cosines}, and a temperature of {temperature}, the loss is {wanted:.4g}, "
            f"not {loss:.4g}. Each row is a choice among {B} texts.",
        )
        number = "The number is right, but nothing can be learned from it: return the tensor, without .item()."
        expect(isinstance(result, Tensor), number)
        longer = (2 * first).requires_grad_(), (2 * second).requires_grad_()
        sides = [F.normalize(one, dim=-1) for one in longer]  # so that a second normalisation changes no gradient
        expect_gradients(
            answer(*sides, temperature),
            F.cross_entropy(sides[0] @ sides[1].T / temperature, partner),
            longer,
            "The number is right, but gradients should flow to both sides. Remove any detach or .data.",
        )
    return "With B pairs, each has B - 1 wrong answers, and none had to be collected."


def wrong_losses(scores: Tensor, partner: Tensor, temperature: float) -> dict[str, Tensor]:
    """Return the results of common mistakes, by hint."""
    cosines = scores * temperature
    return {
        "The cosines have to be divided by the temperature, not multiplied.": F.cross_entropy(
            cosines * temperature, partner
        ),
        "The temperature is missing.": F.cross_entropy(cosines, partner),
        "Here each second text seeks its first: softmax over the second texts, that is along a row.": F.cross_entropy(
            scores.T, partner
        ),
        "That averages both directions: here only each first text seeks its second.": (
            F.cross_entropy(scores, partner) + F.cross_entropy(scores.T, partner)
        )
        / 2,
        "F.cross_entropy takes the scores themselves: it does the softmax.": F.cross_entropy(
            scores.softmax(dim=1), partner
        ),
        "The logarithm is missing: take it of each partner's probability.": -scores.softmax(dim=1).diagonal().mean(),
        "That asks yes or no for each score alone: let the texts of a row compete, by a softmax.": (
            F.binary_cross_entropy_with_logits(scores, torch.eye(len(scores)))
        ),
        "That is the sum over the pairs: take the mean.": F.cross_entropy(scores, partner, reduction="sum"),
        "The partner of row i is column i: torch.arange(B), not always column 0.": F.cross_entropy(
            scores, torch.zeros_like(partner)
        ),
        "That only pulls partners together; without the others in a softmax all texts may become one.": (
            1 - cosines.diagonal()
        ).mean(),
        "The sign: the loss is minus the logarithm.": -F.cross_entropy(scores, partner),
    }
