"""Checks for the exercises of notebook 08."""

import re
import types
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig

from exercises.comparison import name_the_mistake
from exercises.framework import (
    Hint,
    NotAttempted,
    as_number,
    call,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    is_stub,
)
from exercises.mistakes import functions
from exercises.prediction import close_to, prediction
from utils.classifier import TransformerForSequenceClassification


@exercise("8.1", points=3)
def head_written(answer):
    """Compare the head's forward, inside a classifier, with ours: logits, dropout and gradients."""
    expect_function(answer)
    for H, classes in ((20, 5), (12, 3)):
        model = small_classifier(H, classes).eval()
        batch = padded_batch()
        right = head_of(model, vectors(model, *batch)[:, 0])
        given = [ids.clone() for ids in batch]
        logits = call(with_forward(answer, model), *given)
        kept = all(one.equal(other) for one, other in zip(given, batch, strict=True))
        expect(kept, "Your function changes its input in place: the ids, the mask or the token types.")
        expect_logits(logits, H, classes)
        again = call(model, *given)
        expect(logits.equal(again), "Values are dropped in evaluation mode. Use self.dropout, which knows the mode.")
        name_the_mistake(logits, right, WRONG_HEADS, (model, *batch))
        expect(close(logits, right), "In evaluation mode the logits are classifier(tanh(pooler([CLS]))).")
        alone = call(model, batch[0][:1])
        expect(
            close(alone, head_of(model, vectors(model, batch[0][:1])[:, 0])),
            "The result is wrong without a mask and token types.",
        )
    for rate in (0.5, 0.1):
        expect_dropout(answer, rate)
    sources = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    expect_gradients(
        call(model, *batch),
        head_of(model, vectors(model, *batch)[:, 0]),
        sources,
        "The logits are right, but no layer below them can learn. Remove any detach or torch.no_grad().",
    )
    return "From here on this page runs on your head: run the next cells."


def with_forward(answer, model: nn.Module) -> nn.Module:
    """Return the classifier, with the reader's `forward`."""
    model.forward = types.MethodType(answer, model)
    return model


def small_classifier(H: int, classes: int, rate: float = 0.5) -> TransformerForSequenceClassification:
    """Return a random classifier whose biases are not 0, and in which nothing but the head has dropout."""
    config = BertConfig(
        **{"hidden_size": H, "num_attention_heads": 2, "intermediate_size": 2 * H, "num_hidden_layers": 1},
        **{"vocab_size": 90, "max_position_embeddings": 16, "num_labels": classes, "classifier_dropout": rate},
        **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    )
    model = TransformerForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def padded_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, mask and token types of 4 texts of at most 7 tokens, three of them padded."""
    lengths = torch.tensor([7, 4, 5, 3])
    mask = (torch.arange(7) < lengths[:, None]).long()
    return torch.randint(1, 90, (4, 7)) * mask, mask, torch.randint(2, (4, 7)) * mask


def vectors(model: TransformerForSequenceClassification, *batch: Tensor) -> Tensor:
    """Return the encoder's last hidden states (B, S, H)."""
    return model.encoder(*batch).last_hidden_state


def head_of(model: TransformerForSequenceClassification, vectors: Tensor, between: Callable = torch.tanh) -> Tensor:
    """Return the logits of vectors (B, H), without dropout."""
    return model.classifier(between(model.pooler(vectors)))


WRONG_HEADS = functions(
    "8.1",
    "model, ids, mask=None, kinds=None",
    """
    head_of(model, vectors(model, ids, None, kinds)[:, 0]) | The mask does not reach the encoder, so padding is read.
    head_of(model, vectors(model, ids, mask)[:, 0]) | The token types do not reach the encoder.
    head_of(model, vectors(model, ids, kinds.clamp(min=mask.cumsum(1).eq(1).long()), mask)[:, 0]) | Mask and token types
        are swapped: the encoder takes ids, mask, token types.
    head_of(model, vectors(model, ids)[:, 0]) | Only the ids reach the encoder. Pass on the mask and the token types,
        too.
    head_of(model, vectors(model, ids, mask, kinds).mean(1)) | This is the mean of all tokens. Take the vector of [CLS],
        at position 0.
    head_of(model, vectors(model, ids, mask, kinds)[:, -1]) | This is the last token. Take [CLS], at position 0.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0], lambda x: x) | tanh is missing between the pooler and the
        classifier.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0], lambda x: x).tanh() | Apply tanh after the pooler and before
        the classifier.
    head_of(model, (vectors(model, ids, mask, kinds) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)) |
        This is the mean of the real tokens. Take the vector of [CLS], at position 0.
    head_of(model, vectors(model, ids, mask, kinds).amax(1)) | This is the maximum over the tokens. Take the vector of
        [CLS], at position 0.
    head_of(model, (vectors(model, ids, mask, kinds) - 1e9 * (1 - mask[..., None])).amax(1)) | This is the maximum over
        the real tokens. Take the vector of [CLS], at position 0.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0], torch.sigmoid) | Use tanh after the pooler, not a sigmoid.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0], nn.functional.gelu) | Use tanh after the pooler, not GELU.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0], torch.relu) | Use tanh after the pooler, not ReLU.
    model.classifier(vectors(model, ids, mask, kinds)[:, 0].tanh()) | The pooler is missing. The order is [CLS], pooler,
        tanh, dropout, classifier.
    model.classifier(vectors(model, ids, mask, kinds)[:, 0]) | The pooler and tanh are missing.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0]).softmax(-1) | Return the logits, without softmax.
    head_of(model, vectors(model, ids, mask, kinds)[:, 0]).log_softmax(-1) | Return the logits, without the logarithm of
        softmax.
    """,
    globals(),
)


def expect_logits(logits, H: int, classes: int) -> None:
    """Raise `Hint` unless these are as many numbers as 4 texts have logits."""
    hint = f"forward should return the logits, a tensor, not a {type(logits).__name__}."
    expect(isinstance(logits, Tensor), hint)
    found = tuple(logits.shape)
    expect(found[:2] != (4, 7), "The head takes one vector per text, the one of [CLS], at position 0.")
    expect(found != (7, classes), "[0] takes all tokens of the first text; [:, 0] takes [CLS] of every text.")
    expect(found != (4, H), "These are the pooled vectors. The last layer, self.classifier, is missing.")
    hint = f"For 4 texts and {classes} classes the logits should have the shape (4, {classes}), not {found}."
    expect(found == (4, classes), hint)


SHIFT = 7.0


@torch.no_grad()
def expect_dropout(answer, rate: float) -> None:
    """Raise `Hint` unless in training a share of the pooled numbers is blanked, just before the classifier."""
    model = with_forward(answer, small_classifier(20, 20, rate))  # whose classifier hands on what it gets, plus SHIFT
    model.classifier.weight.copy_(torch.eye(20))
    model.classifier.bias.fill_(SHIFT)
    ids = torch.randint(1, 90, (200, 3))
    quiet, noisy = call(model.eval(), ids), call(model.train(), ids)
    expect(not (noisy == 0).any(), "Dropout comes before the classifier, not after it.")
    pooled, dropped = quiet - SHIFT, noisy - SHIFT
    blank = dropped.abs() < 1e-5  # what is left of 0 + 7 − 7
    if blank.float().mean() < 0.01:
        unchanged = close(pooled, dropped, 1e-4)
        expect(unchanged, "Dropout comes after the pooler, not before it.")
        raise Hint("Nothing is dropped between pooler and classifier in training. Use self.dropout.")
    whole = "pass dropout the pooled vectors (B, H) themselves."
    expect((blank != blank[:1]).any(), f"All texts lose the same numbers: {whole}")
    expect((blank != blank[:, :1]).any(), f"A text loses all of its numbers or none: {whole}")
    share = blank[pooled.abs() > 1e-3].float().mean().item()
    fixed = f"It drops about {round(10 * share) * 10} %, but this model's rate is {rate:.0%}. Use self.dropout."
    expect(abs(share - rate) < 0.1, fixed)
    expect(
        close(dropped[~blank], pooled[~blank] / (1 - rate), 1e-4),
        f"Dropout comes after tanh: the numbers that it keeps are the pooled ones, divided by 1 − {rate}.",
    )


@exercise("8.2", points=1)
def lower_part_frozen(answer):
    """Check that embeddings and the first layers are frozen and everything else is trainable."""
    expect_function(answer)
    for layers, number, frozen in (
        (4, 2, ("pooler", "encoder.layers.3")),
        (6, 6, ()),
        (3, 0, ("",)),  # the whole model
        (4, 1, ("classifier",)),
        (12, 2, ()),  # layers.1 is not layers.10
    ):
        model = several_layers(layers)
        before = {name: parameter.clone() for name, parameter in model.named_parameters()}
        for name in frozen:
            model.get_submodule(name).requires_grad_(False)  # from an earlier call
        result = getattr(answer, "itself", answer)(model, number)  # which may return None
        if is_stub(result):
            raise NotAttempted
        case = f"Of {layers} layers, {number} should be frozen"
        switched = any("requires_grad" in vars(module) for module in model.modules())
        hint = "A module has no attribute requires_grad. Call requires_grad_(False), with a _ and parentheses."
        expect(not switched, hint)
        training = all(module.training for module in model.modules())
        expect(training, "eval() turns off dropout, not learning. Leave the mode as it is.")
        same = before.keys() == dict(model.named_parameters()).keys() and all(
            parameter.equal(before[name]) for name, parameter in model.named_parameters()
        )
        expect(same, "Your function changes parameters. Change only requires_grad.")
        expect_frozen(model, number, case)
    return "Frozen from below: what the lower layers have learned stays."


def several_layers(layers: int) -> TransformerForSequenceClassification:
    """Return a random classifier in training mode, of so many small layers."""
    config = BertConfig(
        **{"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": layers},
        **{"vocab_size": 9, "max_position_embeddings": 8, "num_labels": 2},
    )
    return TransformerForSequenceClassification(config).train()


def expect_frozen(model: TransformerForSequenceClassification, number: int, case: str) -> None:
    """Raise `Hint` unless the embeddings and the first layers are frozen, and nothing else."""

    def learns(module: nn.Module) -> list[bool]:
        return [parameter.requires_grad for parameter in module.parameters()]

    frozen = [not any(learns(layer)) for layer in model.encoder.layers]
    partly = any(len(set(learns(layer))) > 1 for layer in model.encoder.layers)
    head = [*learns(model.pooler), *learns(model.classifier)]
    wanted = [place < number for place in range(len(frozen))]
    expect(not partly, f"{case}, but one of them is only partly frozen. Freeze all parameters of a layer.")
    again = "Layers frozen earlier should learn again. First make everything trainable, then freeze."
    expect(any(head), "The head is frozen, but it always has to learn.")
    expect(all(learns(model.classifier)), "The last layer is frozen, but it always has to learn.")
    expect(all(head), again)
    expect(frozen != [*wanted[:-1], True] or wanted[-1], again)
    expect(not all(frozen) or all(wanted), f"{case}, but the whole encoder is.")
    last = number and frozen == wanted[::-1] and frozen != wanted
    expect(not last, "The last layers are frozen. Freeze the first ones, next to the embeddings.")
    expect(frozen == wanted, f"{case}, but {sum(frozen)} are.")
    expect(
        not any(learns(model.encoder.embeddings)),
        "The embeddings still learn. They are below all layers, so freeze them, too.",
    )


@exercise("8.4", points=1)
def accuracy_over_batches(answer):
    """Check the accuracy over batches of different sizes."""
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
        one.equal(other) for old, new in zip(batches, given, strict=True) for one, other in zip(old, new, strict=True)
    )
    expect(unaltered, "Your function changes the batches in place. Count without changing them.")
    shares = [hits / size for hits, size in zip(right, sizes, strict=True)]
    expect(
        not close(value, sum(shares) / 3),
        "This is the mean of the batches' accuracies, in which the small batch counts too much.",
    )
    expect(value != sum(right), "This is the number of right answers. Divide it by the number of examples.")
    expect(not close(value, 1 - sum(right) / 16), "This is the share of wrong answers.")
    expect(not close(value, 100 * sum(right) / 16), "Return a share between 0 and 1, not a percentage.")
    expect(not close(value, sum(right) / 3), "Divide by the number of examples, not of batches.")
    expect(not close(value, sum(right) / 21), "The last batch is smaller. Count the labels of each batch.")
    expect(value != 0, "This is 0. Divide with /, because // drops everything after the point.")
    expect(not close(value, shares[-1]), "This is only the last batch. Add up over all of them.")
    first = "This is the accuracy of the first batch. Is `return` inside the loop? Or is it the batches' median?"
    expect(not close(value, shares[0]), f"{first} Count over all examples.")
    expect(not close(value, 1 / 3), "Divide with /, once and at the end, because // drops everything after the point.")
    expect(not close(value, sum(right[:2]) / 14), "The last batch is left out.")
    expect(not 1e-4 < abs(value - sum(right) / 16) < 0.03, "This is rounded. Return the share itself.")
    expect(close(value, sum(right) / 16), "Count the rows whose largest logit is at the label, then divide.")
    logits = torch.tensor([[0.1, 0.2], [3.0, -1.0], [0.5, 0.4], [-2.0, -3.0], [0.0, 1.0]])
    value = as_number(answer([(logits, torch.tensor([1, 0, 1, 0, 0]))]), "The accuracy")
    expect(
        close(value, 3 / 5),
        (
            "For one batch of five with two classes the result is wrong. Do you use the largest logit, or is "
            "a number fixed?"
        ),
    )
    return ""


@exercise("8.6", points=2)
def early_stopping(answer):
    """Check after which epoch training ends, and which is kept, both from 1."""
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
        expect(given == losses, "Your function changes the list of losses. Work on a copy.")
        two = isinstance(result, (tuple, list, Tensor, np.ndarray)) and len(result) == 2
        expect(two, "Return two numbers: the epoch after which training ends, and the epoch that is kept.")
        ended, kept = (int(as_number(each, "Each of the two")) for each in result)
        case = f"With the losses {losses} and patience {patience}"
        expect((ended + 1, kept + 1) != wanted, f"{case}: count epochs from 1, not from 0.")
        expect(
            (kept, ended) != wanted or ended == kept,
            "The two are swapped: the last epoch comes first, then the one that is kept.",
        )
        future = losses.index(min(losses)) + 1
        if future > wanted[0] == ended:
            expect(kept != future, f"{case} it keeps epoch {kept}, which never ran. The rule cannot see ahead.")
        expect(kept <= ended, f"{case} it keeps epoch {kept}, but ends after {ended}.")
        if ended == wanted[0] and kept == ended != wanted[1]:
            raise Hint(f"{case} it keeps the last epoch. Keep the one with the lowest loss.")
        for hint, rule in OTHER_RULES.items():
            expect((ended, kept) == wanted or (ended, kept) != rule(losses, patience), f"{case}: {hint}")
        expect(losses != [0.5, 0.5, 0.5, 0.4] or (ended, kept) == wanted, f"{case}: an equal loss is not progress.")
        expect(
            losses[0] < 1 or (ended, kept) == wanted,
            f"{case}: a loss may be above 1. Start with the first loss as the best, or with infinity.",
        )
        expect(
            losses[:2] != [0.5, 0.4999] or (ended, kept) == wanted,
            f"{case}: any lower loss is progress, however small the difference.",
        )
        expect(ended <= wanted[0], f"{case} it goes on to epoch {ended}, but should end after {wanted[0]}.")
        expect(ended >= wanted[0], f"{case} it ends after epoch {ended}, but patience lasts to {wanted[0]}.")
        expect(kept == wanted[1], f"{case} it keeps epoch {kept}: keep the one with the lowest loss so far.")
    return ""


def against_the_previous(losses: list[float], patience: int) -> tuple[int, int]:
    """Return the result of early stopping that compares each loss with the one before."""
    waited = 0
    for epoch in range(1, len(losses)):
        waited = 0 if losses[epoch] < losses[epoch - 1] else waited + 1
        if waited >= patience:
            return epoch + 1, losses.index(min(losses[: epoch + 1])) + 1
    return len(losses), losses.index(min(losses)) + 1


def counted_in_all(losses: list[float], patience: int) -> tuple[int, int]:
    """Return the result of early stopping that counts all epochs without progress, in a row or not."""
    waited, kept = 0, 0
    for epoch in range(1, len(losses)):
        better = losses[epoch] < losses[kept]
        kept, waited = (epoch, waited) if better else (kept, waited + 1)
        if waited >= patience:
            return epoch + 1, kept + 1
    return len(losses), kept + 1


OTHER_RULES = {
    "compare with the lowest loss so far, not with the loss of the epoch before.": against_the_previous,
    "the epochs without progress have to be in a row. A new lowest loss restarts the count.": counted_in_all,
}


WORTH = {"good": 2.0, "bad": -3.0, "very": 0.5, "not": -1.0}


def worth_in_order(words) -> float:
    """Return a score in which what comes later weighs more, so that it depends on the words' order."""
    if not isinstance(words, (list, tuple)):
        raise Hint(f"score takes a list of words, but it was given a {type(words).__name__}.")
    total = sum(WORTH.get(word, 0.1) * (1 + 0.3 * place) for place, word in enumerate(words))
    return total + 0.25 * len(words) * ("very" in words)  # words act together


def recorded(asked: list) -> Callable[[list[str]], float]:
    """Return the score, as a function that appends each list of words it is given to `asked`."""

    def score(words) -> float:
        worth = worth_in_order(words)
        asked.append(list(words))
        return worth

    return score


@exercise("8.3", points=1)
def leave_one_out(answer):
    """Check how much a score drops when each word is left out, by its place."""
    expect_function(answer)
    for text in ("a very bad film , and not very good", "a very very bad film", "not bad", "good"):
        words, asked = text.split(), []
        given = list(words)
        result = answer(recorded(asked), given)
        expect(given == words, "Your function changes the list of words. Make a copy for each word that you leave out.")
        expect(
            not isinstance(result, Mapping),
            "A dictionary has each word only once. Return a list with a number for each position.",
        )
        if hasattr(result, "__next__"):
            result = list(result)
        expect(hasattr(result, "__len__"), f"Return one number per word, not a {type(result).__name__}.")
        expect(len(result) == len(words), f"There are {len(words)} words, but you return {len(result)} numbers.")
        found = [as_number(each, "Each effect") for each in result]
        wanted = effects(worth_in_order, words, lambda w, i: w[:i] + w[i + 1 :])
        if not close(found, wanted):
            alone = "Longer texts are right, but not a single word. Without it the list is empty: what is score([])?"
            expect(len(words) > 1, alone)
            name_the_mistake(found, wanted, WRONG_EFFECTS, (worth_in_order, words))
            kinds = set(words)
            once = any(len(set(some)) == len(some) < len(words) - 1 and len(kinds - set(some)) < 2 for some in asked)
            hint = "A set has each word only once, in no order. Leave out by position: words[:i] + words[i + 1:]."
            expect(not once, hint)
        expect(close(found, wanted), "The effect of a word is score(words) minus score(words without it).")
    return "It needs nothing but the score, so it works for any model."


def effects(score: Callable, words: list[str], shorten: Callable[[list[str], int], list[str]]) -> list[float]:
    """Return how much the score drops if the words are shortened at each place."""
    return [score(words) - score(shorten(words, place)) for place in range(len(words))]


def without_first(words: list[str], place: int) -> list[str]:
    """Return the words without the first occurrence of the one at this place."""
    shorter = list(words)
    shorter.remove(words[place])
    return shorter


WRONG_EFFECTS = functions(
    "8.3",
    "score, words",
    """
    effects(score, words, lambda w, i: w[:i] + w[i + 1 :])[::-1] | The effects should be in the order of the words, but
        yours are reversed.
    [-x for x in effects(score, words, lambda w, i: w[:i] + w[i + 1 :])] | The sign is reversed. Use score(all words)
        minus the score without the word.
    [score(words[:i] + words[i + 1 :]) for i in range(len(words))] | These are the scores without each word. Subtract
        them from the score of all words.
    [score([word]) for word in words] | These are scores of single words. Leave one word out and keep the others.
    effects(score, words, lambda w, i: [x for x in w if x != w[i]]) | A repeated word is left out everywhere. Leave out
        only one occurrence.
    effects(score, words, without_first) | Of a repeated word, the first occurrence is always left out. Leave out the
        one at this position.
    effects(score, words, lambda w, i: w[i + 1 :] + w[:i])
    effects(score, words, lambda w, i: sorted(w[:i] + w[i + 1 :])) | The remaining words must keep their order, because
        the score depends on it.
    effects(score, words, lambda w, i: (w[:i] + w[i + 1 :])[::-1]) | The remaining words must keep their order, because
        the score depends on it; yours are reversed.
    effects(score, words, lambda w, i: [*w[:i], "", *w[i + 1 :]]) | Another word replaces it. Leave it out, so that the
        list is shorter by one.
    effects(score, words, lambda w, i: w[:i] + w[i + 2 :]) | The word after it is left out, too.
    effects(score, words, lambda w, i: w[:i]) | Everything after the word is cut off. Keep the following words.
    [abs(x) for x in effects(score, words, lambda w, i: w[:i] + w[i + 1 :])] | Keep the sign. A word that lowers the
        score has a negative effect.
    """,
    globals(),
)


def number_of_sentences(answer) -> float:
    """Return the answer as a number, from text such as "about 4,900 sentences", too."""
    if isinstance(answer, str):
        answer = re.sub(r"^\s*(about|approximately|roughly|around|≈|~)\s*|\s*(test )?sentences\.?\s*$", "", answer)
    return as_number(answer, "The number of sentences")


prediction(
    "8.5",
    number_of_sentences,
    """
    = 1.96**2 * 0.85 * 0.15 / 0.01**2
    4.898 | The dot makes this fewer than five sentences. Write thousands without it.
    1.96 * (0.85 * 0.15)**0.5 / 0.01 | This is the square root of the answer. Square 1.96·√(p(1 − p)) / 0.01.
    0.85 * 0.15 / 0.01**2 | This uses one standard error. A 95 % interval needs 1.96 standard errors.
    1.96 * 0.85 * 0.15 / 0.01**2 | 1.96 is outside the root, so it is squared, too.
    1.96**2 * 0.85 * 0.15 / 0.02**2 | This is for 83 % to 87 %: the half-width is 0.01, not 0.02.
    1.96**2 * 0.85 * 0.15 / 0.005**2 | 84 % to 86 % is two points wide: the half-width is 0.01, not 0.005.
    1.96**2 * 0.25 / 0.01**2 | This is for an accuracy of 50 %, the worst case; here p = 0.85.
    1.96**2 * 0.85 * 0.15 / 0.01 | 0.01 has to be squared, too.
    1.645**2 * 0.85 * 0.15 / 0.01**2 | This is for a 90 % interval. A 95 % interval needs 1.96 standard errors.
    854 | Set the half-width 1.96·√(p(1 − p)/n) to 0.01 and solve for n.
    """,
    near=close_to(0.01),
    good=close_to(0.05),
    remark="Twice as exact costs four times the sentences.",
)
