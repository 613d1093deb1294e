"""Checks for the exercises of notebook 11."""

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exercises import (
    NotAttempted,
    as_number,
    call,
    climb,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
    holds_stub,
)
from utils.datasets import DATA
from utils.masked_lm import TransformerForMaskedLM
from utils.statistics import wilson_interval


@exercise("11.1")
def words_that_are_asked_for(answer):
    """32 rows of 128 tokens, 8 of each row special: how many are asked for, show [MASK], show themselves."""
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give three numbers: asked for, shown as [MASK], shown as themselves.")
    asked, masked, same = (
        as_number(number, name)
        for number, name in zip(answer, ("The first", "The second", "The third"), strict=True)
    )
    expect(abs(asked - 614.4) > 1, "Special tokens and padding are never asked for: 8 of each row's 128.")
    expect(abs(asked - 4.5 * 128 / 32) > 1 or asked > 20, "That is a row's: there are 32 rows.")
    expect(
        abs(asked - 576) <= 1, "Each row has 128 - 8 words, there are 32 rows, and 15 % of all are asked for."
    )
    expect(abs(masked - 3072) > 3, "80 % of those that are asked for, not of all words.")
    expect(abs(masked - 460.8) <= 1, "[MASK] stands for 80 % of those that are asked for.")
    expect(
        abs(same - 115.2) > 1,
        "Half of the 20 % that show no [MASK] show another word: 10 % are left.",
    )
    expect(abs(same - 57.6) <= 1, "10 % of those that are asked for show themselves.")
    return "Of 3,840 words the loss sees 576, and 58 of those stand there unhidden."


SPECIAL, MASK_ID = (0, 1, 2, 3, 4), 4
WORDS = torch.arange(5, 40)
DRAWN = WORDS[:30]  # those that a random word may be, so that other rows' words can be told from them


def rows_of_words() -> Tensor:
    """Rows (600, 50) of ids: [CLS], words, [SEP], and padding at the end."""
    ids = WORDS[torch.randint(len(WORDS), (600, 50), generator=torch.Generator().manual_seed(0))]
    ids[:, 0], ids[:, 40], ids[:, 41:] = 2, 3, 0
    return ids


@exercise("11.2", points=3)
def hide_words(answer):
    """Write mask_tokens: which words are asked for, and what stands in their places."""
    expect_function(answer)
    for probability in (0.15, 0.4):
        ids = rows_of_words()
        hidden, labels, again = hidden_and_labels(answer, ids, probability)
        special = torch.isin(ids, torch.tensor(SPECIAL))
        asked = labels != -100
        expect(
            not torch.equal(labels, ids),
            "Every place has a label: where nothing is asked, the label is -100.",
        )
        expect((labels == -100).any(), "Where nothing is asked, the label is -100: no loss is taken there.")
        expect(
            not asked[special].any(), "A special token or padding is asked for: leave those in `special` out."
        )
        expect(
            torch.equal(labels[asked], ids[asked]),
            "The label is the word that stood there, before it was hidden.",
        )
        expect(
            torch.equal(hidden[~asked], ids[~asked]),
            "A word that is not asked for has changed: leave it as it is.",
        )
        shown = hidden[asked]
        unhidden = (shown == ids[asked]).any() or (shown == MASK_ID).all()
        expect(unhidden, "A word that shows itself is asked for too, and has a label.")
        right_share(int(asked.sum()), int((~special).sum()), probability, "of the words are asked for")
        for half in (asked[:, 1:21], asked[:, 21:40]):
            words = "of the words in one half of the rows are asked for"
            right_share(int(half.sum()), half.numel(), probability, words)
        masked, same = (shown == MASK_ID).sum(), (shown == ids[asked]).sum()
        drawn = shown[(shown != MASK_ID) & (shown != ids[asked])]
        right_share(int(masked), len(shown), 0.8, "of those that are asked for show [MASK]")
        right_share(
            int(same), len(shown), 0.1 + 0.1 / len(WORDS), "of those that are asked for show themselves"
        )
        expect(torch.isin(drawn, DRAWN).all(), "A random word is none of `words`: draw from those alone.")
        expect(len(drawn.unique()) > 25, "The random words are always the same few: draw one for each place.")
        at_random = asked & (hidden != MASK_ID) & (hidden != ids)
        for lines, places in ((hidden, at_random), (hidden.T, at_random.T)):
            line, word = places.nonzero()[:, 0], lines[places]
            repeated = (word[1:] == word[:-1])[line[1:] == line[:-1]].double().mean()
            expect(repeated < 0.5, "A row or a column shares one random word: draw one for each place.")
        expect(not torch.equal(labels, again), "Two calls ask for the same words: draw them anew each time.")
    return "So the model never knows whether a word that it sees is the true one."


def hidden_and_labels(answer, ids: Tensor, probability: float) -> tuple[Tensor, Tensor, Tensor]:
    """What the reader's function makes of ids, and its labels the next time; a `Hint` for other shapes."""
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


def right_share(found: int, total: int, wanted: float, words: str) -> None:
    """A `Hint` unless a share is as wanted, within twice the interval that chance allows."""
    low, high = wilson_interval(found, total)
    margin = (high - low) / 2
    expect(
        low - margin <= wanted <= high + margin,
        f"{found / total:.1%} {words}, and it should be {wanted:.0%}: 80 % [MASK], 10 % another word, 10 % the word.",
    )


@cache
def pretrained() -> TransformerForMaskedLM:
    """The tiny BERT of this notebook."""
    return TransformerForMaskedLM.from_checkpoint(str(DATA / "tiny_bert"))


@exercise("11.3", points=3)
def write_the_head(answer):
    """The masked-LM head as a module, climbing with pretrained weights to the logits."""
    expect(
        isinstance(answer, type) and issubclass(answer, nn.Module),
        "Give check the class itself: MaskedLMHead, without parentheses.",
    )
    model = pretrained()
    weight = model.encoder.embeddings.word_embeddings.weight.detach().clone()
    embeddings = nn.Embedding.from_pretrained(weight, freeze=False)
    head = call(answer, model.config, embeddings)
    if holds_stub([getattr(head, name, None) for name in ("transform", "layer_norm", "bias")]):
        raise NotAttempted
    kinds = {"transform": nn.Linear, "layer_norm": nn.LayerNorm}
    expect(
        all(isinstance(getattr(head, name, None), kind) for name, kind in kinds.items()),
        "It needs self.transform, an nn.Linear, and self.layer_norm, an nn.LayerNorm.",
    )
    V, H = embeddings.weight.shape
    own = {name: w for name, w in head.named_parameters() if tuple(w.shape) == (V, H)}
    tied = all(weight is embeddings.weight for weight in own.values())
    expect(tied, "The decoder has weights of its own: multiply with word_embeddings.weight, transposed.")
    bias = getattr(head, "bias", None)
    expect(
        isinstance(bias, nn.Parameter) and tuple(bias.shape) == (V,),
        "self.bias should be an nn.Parameter with one number for each word of the vocabulary.",
    )
    expect(
        head.layer_norm.eps == model.config.layer_norm_eps,
        "LayerNorm's eps is the configuration's, not the default.",
    )
    climb(rungs_of_the_head(head, embeddings, model), HEAD_HINTS)
    call(head, torch.ones(1, H)).sum().backward()
    expect(
        embeddings.weight.grad is not None,
        "No gradient reaches the word embeddings: use their weight itself, not .detach() or .data.",
    )
    return "With it an encoder can be pretrained. The rest is data and patience."


HEAD_HINTS = {
    "one vector": "The order: transform, activation, LayerNorm, then the embeddings' weight, transposed, plus bias.",
    "a batch of sentences": "It should take hidden_states (B, S, H) too, with any B and S.",
    "after the word embeddings moved": "The logits should follow: keep the module, and copy none of its weights.",
}


def rungs_of_the_head(
    head: nn.Module, embeddings: nn.Embedding, model
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The reader's logits beside ours, with the pretrained weights."""
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
    """The head's logits of hidden states (…, H); or what usual mistakes make of them."""
    transformed = (activation or model.head.activation)(model.head.transform(states))
    transformed = model.head.layer_norm(transformed) if normalise else transformed
    logits = transformed @ model.encoder.embeddings.word_embeddings.weight.T
    return logits + model.head.bias if bias else logits


def diagnose(head: nn.Module, states: Tensor, model) -> None:
    """A `Hint` for what usual mistakes give."""
    result = call(head, states)
    transform, norm, identity = model.head.transform, model.head.layer_norm, nn.Identity()
    before = (
        model.head.activation(norm(transform(states))) @ model.encoder.embeddings.word_embeddings.weight.T
    )
    wrong = {
        "The activation between transform and LayerNorm is missing.": logits_of(model, states, identity),
        "BERT's GELU is the exact one, nn.GELU().": logits_of(model, states, nn.GELU("tanh")),
        "That is ReLU: BERT uses GELU, nn.GELU().": logits_of(model, states, F.relu),
        "LayerNorm is missing.": logits_of(model, states, normalise=False),
        "LayerNorm comes after the activation.": before + model.head.bias,
        "The bias is missing: one number a word, added at the end.": logits_of(model, states, bias=False),
        "These are probabilities: return the logits.": logits_of(model, states).softmax(dim=-1),
    }
    for hint, value in wrong.items():
        expect(not close(result, value, 1e-6), hint)


@exercise("11.4", points=2)
def loss_of_pairs(answer):
    """Mean cross-entropy of finding each first text's partner among all second texts of the batch."""
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
        expect(
            close(loss, wanted),
            "scores = first @ second.T / temperature, and the right answer of row i is column i: F.cross_entropy.",
        )
        number = (
            "The number is right, but nothing can be learned from it: return the tensor, without .item()."
        )
        expect(isinstance(result, Tensor), number)
        sides = first.requires_grad_(), second.requires_grad_()
        expect_gradients(
            answer(*sides, temperature),
            F.cross_entropy(first @ second.T / temperature, partner),
            sides,
            "The number is right, but gradients should flow to both sides as they are: no detach, no .data.",
        )
    return "With B pairs, each has B - 1 wrong answers, and none had to be collected."


def wrong_losses(scores: Tensor, partner: Tensor, temperature: float) -> dict[str, Tensor]:
    """What usual mistakes give, each with its hint."""
    cosines = scores * temperature
    return {
        "The cosines have to be divided by the temperature, not multiplied.": F.cross_entropy(
            cosines * temperature, partner
        ),
        "The temperature is missing.": F.cross_entropy(cosines, partner),
        "Here each second text seeks its first: softmax over the second texts, that is along a row.": F.cross_entropy(
            scores.T, partner
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
