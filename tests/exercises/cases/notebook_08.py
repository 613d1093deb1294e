"""Answers readers give to the exercises of notebook 08: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.classifier import head_dropout


def accuracy_by_concatenating(batches):
    logits = torch.cat([logits for logits, _ in batches])
    labels = torch.cat([labels for _, labels in batches])
    return (logits.argmax(dim=1) == labels).float().mean()


def accuracy_by_hand(batches):
    right = total = 0
    for logits, labels in batches:
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
            right += row.index(max(row)) == label
            total += 1
    return np.float64(right / total)


def hits(logits, labels):
    return (logits.argmax(dim=-1) == labels).sum().item()


def mean_of_batches(batches):
    return sum(hits(*batch) / len(batch[1]) for batch in batches) / len(batches)


def first_batch(batches):
    logits, labels = batches[0]
    return hits(logits, labels) / len(labels)


def last_batch(batches):
    for logits, labels in batches:
        share = hits(logits, labels) / len(labels)
    return share


def right_in_all(batches):
    return sum(hits(*batch) for batch in batches)


def stop(losses, patience):
    best, kept = float("inf"), 0
    for epoch, loss in enumerate(losses):
        if loss < best:
            best, kept = loss, epoch
        elif epoch - kept >= patience:
            break
    return [epoch + 1, kept + 1]


def stop_by_counting(losses, patience):
    waited, kept, ended = 0, 1, 1
    for epoch in range(2, len(losses) + 1):
        if waited >= patience:
            break
        better = losses[epoch - 1] < min(losses[: epoch - 1])
        kept, waited, ended = (epoch, 0, epoch) if better else (kept, waited + 1, epoch)
    return torch.tensor([ended, kept])


def stop_from_zero(losses, patience):
    return tuple(number - 1 for number in stop(losses, patience))


def stop_with_ties(losses, patience):
    kept = 0
    for epoch, loss in enumerate(losses):
        if loss <= losses[kept]:
            kept = epoch
        elif epoch - kept >= patience:
            break
    return epoch + 1, kept + 1


def stop_against_previous(losses, patience):
    waited = 0
    for epoch in range(1, len(losses)):
        waited = 0 if losses[epoch] < losses[epoch - 1] else waited + 1
        if waited >= patience:
            return epoch + 1, losses.index(min(losses[: epoch + 1])) + 1
    return len(losses), losses.index(min(losses)) + 1


def stop_counting_all(losses, patience):
    best, kept, waited = float("inf"), 1, 0
    for epoch, loss in enumerate(losses, start=1):
        if loss < best:
            best, kept = loss, epoch
        else:
            waited += 1
        if waited >= patience:
            return epoch, kept
    return len(losses), kept


def stop_from(best, least=0.0):
    """Early stopping that begins with a best loss of its own, or asks for more than `least` progress."""

    def stop(losses, patience):
        lowest, kept = best, 1
        for epoch, loss in enumerate(losses, start=1):
            if loss < lowest - least:
                lowest, kept = loss, epoch
            elif epoch - kept >= patience:
                return epoch, kept
        return len(losses), kept

    return stop


def stop_sorting(losses, patience):
    found = stop(losses, patience)
    losses.sort()
    return found


def effects(score, words):
    return [score(words) - score(words[:place] + words[place + 1 :]) for place in range(len(words))]


def effects_by_deleting(score, words):
    found = []
    for place in range(len(words)):
        shorter = list(words)
        del shorter[place]
        found.append(score(words) - score(shorter))
    return torch.tensor(found)


def effects_as_array(score, words):
    kept = [[word for number, word in enumerate(words) if number != place] for place in range(len(words))]
    return np.array([score(words)]) - np.array([score(each) for each in kept])


def effects_by_value(score, words):
    return [score(words) - score([other for other in words if other != word]) for word in words]


def effects_in_place(score, words):
    found = []
    whole = score(words)
    while words:
        words.pop(0)
        found.append(whole - score(words))
    return found


def effects_with_text(score, words):
    return [score(" ".join(words)) - score(" ".join(words[:place])) for place in range(len(words))]


def effects_of_the_first(score, words):
    found = []
    for word in words:
        shorter = list(words)
        shorter.remove(word)
        found.append(score(words) - score(shorter))
    return found


def effects_by_unknown(score, words):
    return [score(words) - score([*words[:i], "[UNK]", *words[i + 1 :]]) for i in range(len(words))]


def effects_of_two(score, words):
    return [score(words) - score(words[:i] + words[i + 2 :]) for i in range(len(words))]


def effects_sorted(score, words):
    return [score(words) - score(sorted(words[:i] + words[i + 1 :])) for i in range(len(words))]


def effects_reversed(score, words):
    return [score(words) - score((words[:i] + words[i + 1 :])[::-1]) for i in range(len(words))]


def accuracy_altering(batches):
    value = accuracy_by_hand(batches)
    batches.clear()
    return value


class Head(nn.Module):
    """The right head; its subclasses are wrong in one place each."""

    bias = True

    def __init__(self, config):
        super().__init__()
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size, bias=self.bias)
        self.dropout = nn.Dropout(head_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels, bias=self.bias)

    def pool(self, hidden_states):
        return torch.tanh(self.pooler(hidden_states[:, 0]))

    def forward(self, hidden_states):
        return self.classifier(self.dropout(self.pool(hidden_states)))


class HeadStepByStep(Head):
    def forward(self, hidden_states):
        cls_vectors, *_ = hidden_states.unbind(dim=1)
        pooled = self.pooler(cls_vectors).tanh()
        return self.classifier(F.dropout(pooled, self.dropout.p, self.training))


class WithoutTanh(Head):
    def pool(self, hidden_states):
        return self.pooler(hidden_states[:, 0])


class OfTheMean(Head):
    def pool(self, hidden_states):
        return torch.tanh(self.pooler(hidden_states.mean(dim=1)))


class OfTheLast(Head):
    def pool(self, hidden_states):
        return torch.tanh(self.pooler(hidden_states[:, -1]))


class OfAllTokens(Head):
    def pool(self, hidden_states):
        return torch.tanh(self.pooler(hidden_states))


class WithSoftmax(Head):
    def forward(self, hidden_states):
        return super().forward(hidden_states).softmax(dim=-1)


class WithoutBias(Head):
    bias = False


class WithoutDropout(Head):
    def forward(self, hidden_states):
        return self.classifier(self.pool(hidden_states))


class DropoutFirst(Head):
    def forward(self, hidden_states):
        return self.classifier(self.pool(self.dropout(hidden_states)))


class DropoutLast(Head):
    def forward(self, hidden_states):
        return self.dropout(self.classifier(self.pool(hidden_states)))


class OneMaskForAll(Head):
    def forward(self, hidden_states):
        pooled = self.pool(hidden_states)
        return self.classifier(pooled * self.dropout(torch.ones(pooled.size(1))))


class WholeTexts(Head):
    def forward(self, hidden_states):
        pooled = self.pool(hidden_states)
        return self.classifier(pooled * self.dropout(torch.ones(len(pooled), 1)))


class ByHand(Head):
    def pool(self, hidden_states):
        return torch.tanh(F.linear(hidden_states[:, 0], self.pooler.weight, self.pooler.bias))

    def forward(self, hidden_states):
        return self.dropout(self.pool(hidden_states)) @ self.classifier.weight.T + self.classifier.bias


class Sequences(Head):
    def __init__(self, config):
        super().__init__(config)
        self.pooler = nn.Sequential(self.pooler, nn.Tanh())
        self.classifier = nn.Sequential(self.dropout, self.classifier)

    def forward(self, hidden_states):
        return self.classifier(self.pooler(hidden_states[:, 0]))


class AlwaysDropout(Head):
    def forward(self, hidden_states):
        return self.classifier(F.dropout(self.pool(hidden_states), 0.5))


class DropoutBeforeTanh(Head):
    def forward(self, hidden_states):
        return self.classifier(torch.tanh(self.dropout(self.pooler(hidden_states[:, 0]))))


class WithRelu(Head):
    def pool(self, hidden_states):
        return self.pooler(hidden_states[:, 0]).relu()


class DetachedPooler(Head):
    def pool(self, hidden_states):
        return super().pool(hidden_states).detach()


class DetachedEncoder(Head):
    def pool(self, hidden_states):
        return super().pool(hidden_states.detach())


class DetachedLogits(Head):
    def forward(self, hidden_states):
        return super().forward(hidden_states).detach()


class DropoutOfTenPerCent(Head):
    def __init__(self, config):
        super().__init__(config)
        self.dropout = nn.Dropout(0.1)


class TwoLabels(Head):
    def __init__(self, config):
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, 2)


class WithoutPooler(Head):
    def pool(self, hidden_states):
        return torch.tanh(hidden_states[:, 0])


class Altering(Head):
    def pool(self, hidden_states):
        return torch.tanh(self.pooler(hidden_states.mul_(1.0).add_(1.0)[:, 0] - 1))


class Stub(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pooler = ...

    def forward(self, hidden_states):
        return ...


RIGHT = {
    "8.1": [
        ((16, 10), (16, 3), 143),
        ([16, 10], torch.Size((16, 3)), 143.0),
        (torch.zeros(16, 10), torch.tensor([16, 3]), np.int64(143)),
    ],
    "8.2": [Head, HeadStepByStep, lambda config: Head(config), ByHand, Sequences],
    "8.3": [
        accuracy_by_concatenating,
        accuracy_by_hand,
        lambda batches: np.concatenate([(a.argmax(1) == b).numpy() for a, b in batches]).mean(),
    ],
    "8.4": [
        stop,
        stop_by_counting,
        stop_from(float("inf")),
        lambda losses, patience: np.array(stop(losses, patience)),
        lambda losses, patience: tuple(np.array(stop(losses, patience))),
    ],
    "8.5": [effects, effects_by_deleting, effects_as_array, lambda score, words: iter(effects(score, words))],
    "8.6": [4898, 4898.04, 5000, "4,898", "4 898", np.int64(4900), torch.tensor(4757)],
}

WRONG = {
    "8.1": [
        (((16, 40, 10), (16, 3), 143), "40 tokens are gone"),
        (((16, 10), (16, 40, 3), 143), "40 tokens are gone"),
        (((16, 3), (16, 3), 143), "classes come after"),
        (((10, 16), (16, 3), 143), "one for each text"),
        (((16, 10), (3, 16), 143), "batch comes first"),
        (((16, 10), (16, 2), 143), "one number a class"),
        (((16, 10), (16, 3), 130), "biases"),
        (((16, 10), (16, 3), 110), "pooler alone"),
        (((16, 10), (16, 3), 33), "classifier alone"),
        (((16, 10), (16, 3), 1000), "H biases"),
        (((16, 10), (16, 3), "many"), "a number"),
        ((16, (16, 3), 143), "a tuple such as"),
        (143, "Give the pooled shape"),
    ],
    "8.2": [
        (OneMaskForAll, "All texts lose the same"),
        (WholeTexts, "all of its numbers or none"),
        (WithoutTanh, "then tanh"),
        (OfTheMean, "“pooled vector” differs"),
        (OfTheLast, "“pooled vector” differs"),
        (OfAllTokens, "One vector a text"),
        (WithSoftmax, "without softmax"),
        (WithoutBias, "The pooler has a bias"),
        (WithoutDropout, "nothing is dropped"),
        (DropoutFirst, "not before it"),
        (DropoutLast, "not after it"),
        (DropoutBeforeTanh, "Dropout comes after tanh"),
        (WithRelu, "“pooled vector” differs"),
        (DetachedPooler, "nothing below them can learn"),
        (DetachedEncoder, "nothing below them can learn"),
        (DetachedLogits, "nothing below them can learn"),
        (AlwaysDropout, "In evaluation mode nothing is dropped"),
        (DropoutOfTenPerCent, "head_dropout(config)"),
        (TwoLabels, "5 classes"),
        (WithoutPooler, "“pooled vector” differs"),
        (Altering, "changes the hidden states"),
        (lambda config: lambda hidden_states: torch.zeros(4, 5), "the class itself"),
    ],
    "8.3": [
        (lambda batches: accuracy_by_hand(batches[:-1] or batches), "last batch is left out"),
        (mean_of_batches, "small batch too much weight"),
        (first_batch, "first batch alone"),
        (last_batch, "last batch alone"),
        (right_in_all, "how many are right"),
        (lambda batches: 1 - accuracy_by_hand(batches), "wrong answers"),
        (lambda batches: 100 * accuracy_by_hand(batches), "per cent"),
        (lambda batches: right_in_all(batches) / len(batches), "not of batches"),
        (lambda batches: right_in_all(batches) / (7 * len(batches)), "last batch is smaller"),
        (lambda batches: -1, "largest logit"),
        (lambda batches: "high", "a number"),
        (lambda batches: right_in_all(batches) / 16, "is a number fixed"),
        (accuracy_altering, "changes the batches"),
        (lambda batches: None, "return"),
    ],
    "8.4": [
        (stop_from_zero, "count epochs from 1"),
        (lambda losses, patience: stop(losses, patience)[::-1], "First where it ends"),
        (lambda losses, patience: (stop(losses, patience)[0], losses.index(min(losses)) + 1), "see ahead"),
        (lambda losses, patience: (len(losses), stop(losses, patience)[1]), "it goes on to epoch"),
        (lambda losses, patience: (stop(losses, patience)[0],) * 2, "keeps the last epoch"),
        (lambda losses, patience: stop(losses, patience - 1), "patience lasts to"),
        (stop_with_ties, "equal loss"),
        (stop_from(1.0), "may well be above 1"),
        (stop_from(0.75), "may well be above 1"),
        (stop_from(float("inf"), 0.01), "by however little"),
        (stop_from(float("inf"), 0.001), "by however little"),
        (stop_sorting, "changes the list of losses"),
        (stop_against_previous, "lowest loss so far, not with"),
        (stop_counting_all, "in a row"),
        (lambda losses, patience: (stop(losses, patience)[0], 1), "keep the one with the lowest"),
        (lambda losses, patience: (1, 2), "but ends after"),
        (lambda losses, patience: stop(losses, patience)[0], "two numbers"),
        (lambda losses, patience: ("a", "b"), "a number"),
        (lambda losses, patience: None, "return"),
    ],
    "8.5": [
        (lambda score, words: [-effect for effect in effects(score, words)], "sign is turned"),
        (lambda score, words: [score(words) - effect for effect in effects(score, words)], "the whole"),
        (lambda score, words: [score([word]) for word in words], "single words"),
        (effects_by_value, "repeated word"),
        (lambda score, words: [score(words) - score(words[:i]) for i in range(len(words))], "cuts off"),
        (lambda score, words: [abs(effect) for effect in effects(score, words)], "Keep the sign"),
        (effects_in_place, "changes the list"),
        (effects_with_text, "a list of words"),
        (effects_of_the_first, "always leaves out the first"),
        (effects_sorted, "keep their order"),
        (effects_reversed, "turned round"),
        (lambda score, words: effects(score, words)[::-1], "in the order of the words"),
        (lambda score, words: dict(zip(words, effects(score, words), strict=True)), "dictionary"),
        (effects_by_unknown, "another word in its place"),
        (effects_of_two, "the word after it"),
        (lambda score, words: effects(score, words)[:-1], "numbers come back"),
        (lambda score, words: score(words), "one number a word"),
        (lambda score, words: ["a"] * len(words), "a number"),
        (lambda score, words: [7] * len(words), "For each place"),
        (lambda score, words: None, "return"),
    ],
    "8.6": [
        (70, "square"),
        (1275, "1.96 of them"),
        (2499, "squared as well"),
        (1225, "83 %"),
        (19592, "half-width is 0.01, not 0.005"),
        (9604, "worst case"),
        (49, "0.01 has to be squared"),
        (854, "solve for n"),
        ("many", "a number"),
        ((4898, 4898), "a number"),
    ],
}
