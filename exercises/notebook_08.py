"""Checks for the exercises of notebook 08."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from exercises import (
    Hint,
    as_number,
    as_shape,
    call,
    climb,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
)
from utils.checkpoint import load_reference_model, load_tokenizer


@exercise("8.1")
def through_the_head(answer):
    """Shapes of pooled vector and logits for 16 texts of 40 tokens, H = 10, 3 classes; parameters of the head."""
    three = isinstance(answer, (tuple, list)) and len(answer) == 3
    expect(three, "Give the pooled shape, the shape of the logits, and the number of parameters.")
    pooled, logits = as_shape(answer[0], "The pooled shape"), as_shape(answer[1], "The shape of the logits")
    number = as_number(answer[2], "The number of parameters")
    hint = "The pooler takes one vector a text, that of [CLS]: the 40 tokens are gone."
    expect(40 not in (*pooled, *logits), hint)
    expect(pooled != (16, 3), "The pooled vector is as long as a token's vector, H; the classes come after.")
    expect(pooled == (16, 10), "The pooled vector: one for each text, of the size of a token's vector.")
    expect(logits != (3, 16), "The batch comes first.")
    expect(logits == (16, 3), "The logits: for each text one number a class.")
    expect(number not in (130, 100, 30), "These are matrices alone: both linear layers have biases.")
    expect(
        number != 110, "This is the pooler alone: add the classifier, H weights and a bias for each class."
    )
    expect(number != 33, "This is the classifier alone: add the pooler, a linear layer from H to H.")
    expect(number == 143, "Pooler: H · H weights and H biases. Classifier: H weights and a bias a class.")
    return "Neither the length of the texts nor their number plays a part."


@exercise("8.2", points=3)
def head_written(answer):
    """Pooler, dropout and classifier on [CLS], compared with the official model's rung by rung."""
    expect_function(answer)
    small = BertConfig(hidden_size=20, num_labels=5, classifier_dropout=0.5)
    head = call(answer, small)
    logits = call(head, torch.randn(4, 7, 20))
    expect(isinstance(head, nn.Module), "Pass the class itself: ClassificationHead, a nn.Module.")
    expect(isinstance(logits, Tensor), f"forward should return the logits, not a {type(logits).__name__}.")
    expect(tuple(logits.shape) != (4, 7, 5), "One vector a text goes in, that of [CLS]: hidden_states[:, 0].")
    shape = f"For 4 texts and 5 classes the logits should have the shape (4, 5), not {tuple(logits.shape)}."
    expect(tuple(logits.shape) == (4, 5), shape)
    expect_parts(head)
    expect_dropout(head, small)
    climb(head_rungs(answer), HEAD_HINTS)
    head.eval()
    states = torch.randn(4, 7, 20).requires_grad_()
    wanted = head.classifier(torch.tanh(head.pooler(states[:, 0])))
    sources = [states, *head.pooler.parameters(), *head.classifier.parameters()]
    cut_off = "The logits are right, but nothing below them can learn: no detach, no torch.no_grad()."
    expect_gradients(call(head, states), wanted, sources, cut_off)
    return "With the official weights it gives the official logits."


def expect_parts(head: nn.Module) -> None:
    """A `Hint` unless pooler and classifier are linear layers with the sizes of H = 20 and five classes."""
    for name, size in {"pooler": (20, 20), "classifier": (5, 20)}.items():
        part = getattr(head, name, None)
        expect(isinstance(part, nn.Linear), f"self.{name} should be a nn.Linear.")
        found = tuple(part.weight.shape)
        expect(found == size, f"With H = 20 and 5 classes the {name}'s weight is {size}, yours {found}.")
        expect(part.bias is not None, f"The {name} has a bias.")


def inputs_of(head: nn.Module, hidden_states: Tensor) -> dict[str, Tensor]:
    """What goes into pooler and classifier, and the logits, in one forward pass."""
    seen = {}
    hooks = [
        getattr(head, name).register_forward_pre_hook(lambda part, x, name=name: seen.update({name: x[0]}))
        for name in ("pooler", "classifier")
    ]
    try:
        seen["logits"] = call(head, hidden_states)
    finally:
        for hook in hooks:
            hook.remove()
    for name in ("pooler", "classifier"):
        expect(name in seen, f"forward does not call self.{name}.")
    return seen


@torch.no_grad()
def expect_dropout(head: nn.Module, config: BertConfig) -> None:
    """A `Hint` unless in training a share of the pooled numbers is blanked, just before the classifier."""
    hidden_states = torch.randn(200, 3, config.hidden_size)
    quiet, again = (inputs_of(head.eval(), hidden_states.clone()) for _ in range(2))
    noisy = inputs_of(head.train(), hidden_states.clone())
    expect(
        quiet["classifier"].equal(again["classifier"]),
        "In evaluation mode nothing is dropped: use nn.Dropout, a module.",
    )
    expect(not (noisy["pooler"] == 0).any(), "Dropout comes after the pooler, not before it.")
    there = quiet["classifier"] != 0
    pooled, dropped = quiet["classifier"][there], noisy["classifier"][there]
    share = (dropped == 0).float().mean().item()
    expect(
        share > 0 or not (noisy["logits"] == 0).any(), "Dropout comes before the classifier, not after it."
    )
    expect(share > 0, "In training nothing is dropped between pooler and classifier.")
    fixed = f"With classifier_dropout=0.5 it drops {share:.0%}: take head_dropout(config)."
    expect(abs(share - 0.5) < 0.1, fixed)
    kept = dropped != 0
    expect(
        close(dropped[kept], 2 * pooled[kept]),
        "Dropout comes after tanh: what it keeps is the pooled vector, divided by 1 − 0.5.",
    )


@torch.no_grad()
def head_rungs(answer) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Pooled vectors and logits with official weights, whose biases are not 0, for a text and a padded batch."""
    folder = load_reference_model().name_or_path
    official = BertForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
    for linear in (official.bert.pooler.dense, official.classifier):
        nn.init.normal_(linear.bias)
    head = call(answer, official.config).eval()
    head.pooler.load_state_dict(official.bert.pooler.dense.state_dict())
    head.classifier.load_state_dict(official.classifier.state_dict())
    texts = {"": ["A film to remember."], " of a padded batch": ["Dull.", "It is long, and it feels longer."]}
    for which, batch in texts.items():
        output = official.bert(**load_tokenizer()(batch, padding=True, return_tensors="pt"))
        given = output.last_hidden_state.clone()
        seen = inputs_of(head, given)
        expect(given.equal(output.last_hidden_state), "It changes the hidden states that it was given.")
        yield f"pooled vector{'s' * bool(which)}{which}", seen["classifier"], output.pooler_output
        yield f"logits{which}", seen["logits"], official.classifier(output.pooler_output)


@exercise("8.3", points=2)
def accuracy_over_batches(answer):
    """Share of right answers over batches of different size."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(8)
    sizes, batches = [7, 7, 2], []
    for size in sizes:
        labels = torch.randint(4, (size,), generator=generator)
        batches.append((torch.randn(size, 4, generator=generator) + 1, labels))
    batches[-1][0][torch.arange(2), batches[-1][1]] += 9  # the small batch is all right
    right = [(logits.argmax(dim=-1) == labels).sum().item() for logits, labels in batches]
    given = [(logits.clone(), labels.clone()) for logits, labels in batches]
    value = as_number(answer(given), "The accuracy")
    unaltered = len(given) == len(batches) and all(
        one.equal(other)
        for old, new in zip(batches, given, strict=True)
        for one, other in zip(old, new, strict=True)
    )
    expect(unaltered, "It changes the batches that it was given: count without changing them.")
    shares = [hits / size for hits, size in zip(right, sizes, strict=True)]
    expect(
        not close(value, sum(shares) / 3),
        "This is the mean of the batches' accuracies, which gives the small batch too much weight.",
    )
    expect(value != sum(right), "This is how many are right: divide by how many there are.")
    expect(not close(value, 1 - sum(right) / 16), "This is the share of wrong answers.")
    expect(not close(value, 100 * sum(right) / 16), "Return a share between 0 and 1, not per cent.")
    expect(not close(value, sum(right) / 3), "Divide by the number of examples, not of batches.")
    expect(not close(value, sum(right) / 21), "The last batch is smaller: count the labels of each.")
    expect(not close(value, shares[-1]), "This is the last batch alone: add up over all of them.")
    expect(not close(value, shares[0]), "This is the first batch alone: does it return inside the loop?")
    expect(
        close(value, sum(right) / 16), "Count where the largest logit of a row is at the label, then divide."
    )
    logits = torch.tensor([[0.1, 0.2], [3.0, -1.0], [0.5, 0.4], [-2.0, -3.0], [0.0, 1.0]])
    value = as_number(answer([(logits, torch.tensor([1, 0, 1, 0, 0]))]), "The accuracy")
    expect(close(value, 3 / 5), "For one batch of five with two classes it goes wrong: is a number fixed?")
    return ""


@exercise("8.4", points=3)
def early_stopping(answer):
    """After which epoch training ends, and which is kept, both from 1."""
    expect_function(answer)
    cases = [
        ([0.6, 0.5, 0.4, 0.3], 2, (4, 4)),
        ([0.6, 0.5, 0.55, 0.52, 0.3], 2, (4, 2)),
        ([0.6, 0.5, 0.55, 0.45, 0.46, 0.47, 0.1], 2, (6, 4)),
        ([0.5, 0.5, 0.5, 0.4], 2, (3, 1)),
        ([0.5, 0.6], 3, (2, 1)),
        ([0.4, 0.5, 0.3], 1, (2, 1)),
        ([0.7], 1, (1, 1)),
        ([2.0, 1.5, 1.2, 1.3, 1.4, 0.3], 2, (5, 3)),
        ([0.5, 0.4999, 0.4998, 0.51, 0.52, 0.1], 2, (5, 3)),
    ]
    for losses, patience, wanted in cases:
        given = list(losses)
        result = answer(given, patience)
        expect(given == losses, "It changes the list of losses that it was given: work on a copy.")
        two = isinstance(result, (tuple, list, Tensor, np.ndarray)) and len(result) == 2
        expect(two, "Return two numbers: after which epoch training ends, and which is kept.")
        ended, kept = (int(as_number(each, "Each of the two")) for each in result)
        case = f"With the losses {losses} and patience {patience}"
        expect((ended + 1, kept + 1) != wanted, f"{case}: count epochs from 1, not from 0.")
        expect((kept, ended) != wanted or ended == kept, "First where it ends, then which is kept.")
        future = losses.index(min(losses)) + 1
        if future > wanted[0] == ended:
            expect(
                kept != future, f"{case} it keeps epoch {kept}, which never ran: the rule cannot see ahead."
            )
        expect(kept <= ended, f"{case} it keeps epoch {kept}, but ends after {ended}.")
        if ended == wanted[0] and kept == ended != wanted[1]:
            raise Hint(f"{case} it keeps the last epoch: keep the one with the lowest loss.")
        expect(
            losses != [0.5, 0.5, 0.5, 0.4] or (ended, kept) == wanted,
            f"{case}: an equal loss is no progress.",
        )
        expect(
            losses[0] < 1 or (ended, kept) == wanted,
            f"{case}: a loss may well be above 1; let the first be the best so far, or begin with infinity.",
        )
        expect(
            losses[:2] != [0.5, 0.4999] or (ended, kept) == wanted,
            f"{case}: a lower loss is progress, by however little.",
        )
        expect(ended <= wanted[0], f"{case} it goes on to epoch {ended}, but should end after {wanted[0]}.")
        expect(ended >= wanted[0], f"{case} it ends after epoch {ended}, but patience lasts to {wanted[0]}.")
        expect(kept == wanted[1], f"{case} it keeps epoch {kept}: keep the one with the lowest loss so far.")
    return ""


WORTH = {"good": 2.0, "bad": -3.0, "very": 0.5, "not": -1.0}


def worth_in_order(words) -> float:
    """A score in which what comes later weighs more, so that it depends on the words' order."""
    if not isinstance(words, (list, tuple)):
        raise Hint(f"score takes a list of words, but it was given a {type(words).__name__}.")
    total = sum(WORTH.get(word, 0.1) * (1 + 0.3 * place) for place, word in enumerate(words))
    return total + 0.25 * len(words) * ("very" in words)  # words act together


@exercise("8.5", points=2)
def leave_one_out(answer):
    """How much a score drops when each word is left out, by its place."""
    expect_function(answer)
    for text in ("a very bad film , and not very good", "a very very bad film", "not bad", "good"):
        words = text.split()
        given = list(words)
        result = answer(worth_in_order, given)
        expect(given == words, "It changes the list it was given: take a copy for each word left out.")
        if hasattr(result, "__next__"):
            result = list(result)
        expect(hasattr(result, "__len__"), f"Return one number a word, not a {type(result).__name__}.")
        expect(len(result) == len(words), f"{len(words)} words, but {len(result)} numbers come back.")
        found = [as_number(each, "Each effect") for each in result]
        without = [worth_in_order(words[:place] + words[place + 1 :]) for place in range(len(words))]
        wanted = [worth_in_order(words) - score for score in without]
        if not close(found, wanted):
            for hint, wrong in wrong_effects(words, without).items():
                expect(not close(found, wrong), hint)
        expect(close(found, wanted), "For each place: score(words) minus score(words without that place).")
    return "It needs nothing but the score, so it works for any model."


def wrong_effects(words: list[str], without: list[float]) -> dict[str, list[float]]:
    """The effects that typical mistakes give, by hint."""
    score, whole, places = worth_in_order, worth_in_order(words), range(len(words))

    def without_first(word):
        shorter = list(words)
        shorter.remove(word)
        return shorter

    return {
        "The sign is turned: score(all words) minus score without the word.": [x - whole for x in without],
        "These are the scores without the word: take the difference to the whole.": without,
        "These are scores of single words: leave one out and keep the others.": [score([w]) for w in words],
        "It leaves out a repeated word at every place: leave it out at one.": [
            whole - score([other for other in words if other != word]) for word in words
        ],
        "Of a repeated word it always leaves out the first: leave out the one at its own place.": [
            whole - score(without_first(word)) for word in words
        ],
        "The words that stay must keep their order: the score depends on it.": [
            whole - score(sorted(words[:place] + words[place + 1 :])) for place in places
        ],
        "The words that stay must keep their order: the score depends on it, and here they are turned round.": [
            whole - score((words[:place] + words[place + 1 :])[::-1]) for place in places
        ],
        "It cuts off everything after the word: keep what follows.": [
            whole - score(words[:place]) for place in places
        ],
        "Keep the sign: a word that lowers the score has a negative effect.": [
            abs(whole - x) for x in without
        ],
    }


HEAD_HINTS = {
    "pooled vector": "The pooler is a linear layer on hidden_states[:, 0], then tanh.",
    "pooled vectors of a padded batch": "Take [CLS] of each text, hidden_states[:, 0].",
    "logits": "In evaluation mode: classifier(tanh(pooler([CLS]))).",
    "logits of a padded batch": "In evaluation mode: classifier(tanh(pooler([CLS]))).",
}


@exercise("8.6")
def sentences_for_an_interval(answer):
    """How many test sentences make a 95 % interval of ± 0.01 at an accuracy of 0.85: about 4,900."""
    number = as_number(answer, "The number of sentences")
    wanted = 1.96**2 * 0.85 * 0.15 / 0.01**2
    wrong = {
        1.96 * math.sqrt(0.85 * 0.15) / 0.01: "This is the root of it: square 1.96·√(p(1 − p)) / 0.01.",
        0.85 * 0.15 / 0.01**2: "This gives one standard error: for 95 % it is 1.96 of them.",
        1.96 * 0.85 * 0.15 / 0.01**2: "1.96 stands outside the root, so it is squared as well.",
        wanted / 4: "This is for 83 % to 87 %: the half-width is 0.01, not 0.02.",
        wanted * 4: "84 % to 86 % is two points wide: the half-width is 0.01, not 0.005.",
        1.96**2 * 0.25 / 0.01**2: "This is for an accuracy of 50 %, the worst case; here p = 0.85.",
        1.96**2 * 0.85 * 0.15 / 0.01: "The 0.01 has to be squared as well.",
    }
    for value, hint in wrong.items():
        expect(not abs(number / value - 1) < 0.01, hint)
    hint = "Set the half-width 1.96·√(p(1 − p)/n) to 0.01 and solve for n."
    expect(abs(number / wanted - 1) <= 0.05, hint)
    return "Twice as exact costs four times the sentences."
