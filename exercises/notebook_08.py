"""Checks for the exercises of notebook 08."""

import copy
import math
from collections.abc import Iterator, Mapping

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
    expect(callable(answer), "Give check the class itself: ClassificationHead, without parentheses.")
    for H, classes in ((20, 5), (12, 3)):
        small = BertConfig(hidden_size=H, num_labels=classes, classifier_dropout=0.5)
        head = call(answer, small)
        logits = call(head, torch.randn(4, 7, H))
        expect(isinstance(head, nn.Module), "Pass the class itself: ClassificationHead, a nn.Module.")
        kind, cls = type(logits).__name__, "One vector a text goes in, that of [CLS]: hidden_states[:, 0]."
        expect(isinstance(logits, Tensor), f"forward should return the logits, not a {kind}.")
        found = tuple(logits.shape)
        expect(found != (4, 7, classes), cls)
        wanted = (
            f"For 4 texts and {classes} classes the logits should have the shape (4, {classes}), not {found}."
        )
        expect(found == (4, classes), wanted)
        pooler, classifier = linear_in(head, "pooler", (H, H)), linear_in(head, "classifier", (classes, H))
    expect_dropout(answer)
    climb(head_rungs(answer), HEAD_HINTS)
    head.eval()
    states = torch.randn(4, 7, H).requires_grad_()
    wanted = classifier(torch.tanh(pooler(states[:, 0])))
    sources = [states, *pooler.parameters(), *classifier.parameters()]
    cut_off = "The logits are right, but nothing below them can learn: no detach, no torch.no_grad()."
    expect_gradients(call(head, states), wanted, sources, cut_off)
    return "With the official weights it gives the official logits."


def linear_in(head: nn.Module, name: str, size: tuple[int, int]) -> nn.Linear:
    """The linear layer that a part of the head is, or the only one that it holds; a `Hint` for another size."""
    part = getattr(head, name, None)
    linears = (
        [one for one in part.modules() if isinstance(one, nn.Linear)] if isinstance(part, nn.Module) else []
    )
    expect(len(linears) == 1, f"self.{name} should be a nn.Linear.")
    found = tuple(linears[0].weight.shape)
    expect(
        found == size,
        f"With H = {size[1]} and {size[0]} outputs the {name}'s weight is {size}, yours {found}.",
    )
    expect(linears[0].bias is not None, f"The {name} has a bias.")
    return linears[0]


SHIFT = 7.0


@torch.no_grad()
def see_through(answer, config: BertConfig, pooler: nn.Linear | None = None) -> nn.Module:
    """The reader's head with a classifier that hands on what it gets, plus `SHIFT`, and a pooler with given weights."""
    H, config = config.hidden_size, copy.deepcopy(config)
    config.num_labels = H
    head = call(answer, config)
    classifier = linear_in(head, "classifier", (H, H))
    classifier.weight.copy_(torch.eye(H))
    classifier.bias.fill_(SHIFT)
    if pooler is not None:
        linear_in(head, "pooler", (H, H)).load_state_dict(pooler.state_dict())
    return head


@torch.no_grad()
def expect_dropout(answer) -> None:
    """A `Hint` unless in training a share of the pooled numbers is blanked, just before the classifier."""
    head = see_through(answer, BertConfig(hidden_size=20, classifier_dropout=0.5))
    hidden_states = torch.randn(200, 3, 20)
    quiet, again = (call(head.eval(), hidden_states.clone()) for _ in range(2))
    noisy = call(head.train(), hidden_states.clone())
    shares = [made.sum(dim=-1) for made in (quiet, quiet.exp())]
    ones = torch.ones(len(quiet))
    expect(not any(close(one, ones, 1e-4) for one in shares), "Return the logits, without softmax.")
    expect(quiet.equal(again), "In evaluation mode nothing is dropped: use nn.Dropout, a module.")
    expect(not (noisy == 0).any(), "Dropout comes before the classifier, not after it.")
    pooled, dropped = quiet - SHIFT, noisy - SHIFT
    blank = dropped.abs() < 1e-5  # what is left of 0 + 7 − 7
    if not blank.any():
        unchanged = close(pooled, dropped, 1e-4)
        expect(unchanged, "Dropout comes after the pooler, not before it.")
        raise Hint("In training nothing is dropped between pooler and classifier.")
    whole = "give dropout the pooled vectors (B, H) themselves."
    expect((blank != blank[:1]).any(), f"All texts lose the same numbers: {whole}")
    expect((blank != blank[:, :1]).any(), f"A text loses all of its numbers or none: {whole}")
    share = blank[pooled.abs() > 1e-3].float().mean().item()
    fixed = (
        f"With classifier_dropout=0.5 it drops about {round(10 * share) * 10} %: take head_dropout(config)."
    )
    expect(abs(share - 0.5) < 0.1, fixed)
    expect(
        close(dropped[~blank], 2 * pooled[~blank], 1e-4),
        "Dropout comes after tanh: what it keeps is the pooled vector, divided by 1 − 0.5.",
    )


@torch.no_grad()
def head_rungs(answer) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Pooled vectors and logits with official weights, whose biases are not 0, for a text and a padded batch."""
    folder = load_reference_model().name_or_path
    official = BertForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
    for linear in (official.bert.pooler.dense, official.classifier):
        nn.init.normal_(linear.bias)
    pooler, H = official.bert.pooler.dense, official.config.hidden_size
    pooling, head = see_through(answer, official.config, pooler).eval(), call(answer, official.config).eval()
    linear_in(head, "pooler", (H, H)).load_state_dict(pooler.state_dict())
    linear_in(head, "classifier", (3, H)).load_state_dict(official.classifier.state_dict())
    texts = {"": ["A film to remember."], " of a padded batch": ["Dull.", "It is long, and it feels longer."]}
    for which, batch in texts.items():
        output = official.bert(**load_tokenizer()(batch, padding=True, return_tensors="pt"))
        given = output.last_hidden_state.clone()
        pooled = call(pooling, given) - SHIFT
        expect(given.equal(output.last_hidden_state), "It changes the hidden states that it was given.")
        yield f"pooled vector{'s' * bool(which)}{which}", pooled, output.pooler_output
        yield f"logits{which}", call(head, given), official.classifier(output.pooler_output)


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
    expect(not close(value, sum(right[:2]) / 14), "The last batch is left out.")
    expect(
        close(value, sum(right) / 16), "Count where the largest logit of a row is at the label, then divide."
    )
    logits = torch.tensor([[0.1, 0.2], [3.0, -1.0], [0.5, 0.4], [-2.0, -3.0], [0.0, 1.0]])
    value = as_number(answer([(logits, torch.tensor([1, 0, 1, 0, 0]))]), "The accuracy")
    expect(
        close(value, 3 / 5),
        "For one batch of five with two classes it goes wrong: is the largest logit taken, is a number fixed?",
    )
    return ""


@exercise("8.4", points=3)
def early_stopping(answer):
    """After which epoch training ends, and which is kept, both from 1."""
    expect_function(answer)
    cases = [
        ([0.6, 0.5, 0.4, 0.3], 2, (4, 4)),
        ([0.6, 0.5, 0.7, 0.8, 0.1], 2, (4, 2)),
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
        for hint, rule in OTHER_RULES.items():
            expect((ended, kept) == wanted or (ended, kept) != rule(losses, patience), f"{case}: {hint}")
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


def against_the_previous(losses: list[float], patience: int) -> tuple[int, int]:
    """Early stopping that takes every loss below the one before for progress."""
    waited = 0
    for epoch in range(1, len(losses)):
        waited = 0 if losses[epoch] < losses[epoch - 1] else waited + 1
        if waited >= patience:
            return epoch + 1, losses.index(min(losses[: epoch + 1])) + 1
    return len(losses), losses.index(min(losses)) + 1


def counted_in_all(losses: list[float], patience: int) -> tuple[int, int]:
    """Early stopping that counts the epochs without progress, in a row or not."""
    waited, kept = 0, 0
    for epoch in range(1, len(losses)):
        better = losses[epoch] < losses[kept]
        kept, waited = (epoch, waited) if better else (kept, waited + 1)
        if waited >= patience:
            return epoch + 1, kept + 1
    return len(losses), kept + 1


OTHER_RULES = {
    "compare with the lowest loss so far, not with that of the epoch before.": against_the_previous,
    "the epochs without progress have to be in a row: a new lowest loss begins the count anew.": counted_in_all,
}


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
        expect(
            not isinstance(result, Mapping),
            "A dictionary holds a repeated word once: return a list with a number for each place.",
        )
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
        "It puts another word in its place: leave it out, so that the list is shorter by one.": [
            whole - score([*words[:place], "", *words[place + 1 :]]) for place in places
        ],
        "It leaves out the word after it, too.": [
            whole - score(words[:place] + words[place + 2 :]) for place in places
        ],
        "The effects stand in the order of the words, and these are turned round.": [
            whole - x for x in without[::-1]
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
