"""Right and wrong answers to the exercises of notebook 11."""

import math

import numpy as np
import torch
from torch import nn


def hide(ids, special, mask_id, words, probability):
    draw, fate = torch.rand(ids.shape), torch.rand(ids.shape)
    selected = (draw < probability) & ~torch.isin(ids, special)
    hidden = torch.where(selected & (fate < 0.8), mask_id, ids)
    random = words[torch.randint(len(words), ids.shape)]
    return torch.where(selected & (fate > 0.9), random, hidden), torch.where(selected, ids, -100)


def hide_in_numpy(ids, special, mask_id, words, probability):
    generator, ids = np.random.default_rng(), ids.numpy().copy()
    labels = np.full_like(ids, -100)
    for place, token_id in np.ndenumerate(ids):
        if token_id not in special.tolist() and generator.random() < probability:
            labels[place] = token_id
            other = int(generator.choice(words.numpy()))
            ids[place] = generator.choice([mask_id, other, token_id], p=[0.8, 0.1, 0.1])
    return ids, labels


def hide_special(ids, special, mask_id, words, probability):
    return hide(ids, special[:0], mask_id, words, probability)


def hide_all(ids, special, mask_id, words, probability):
    labels = hide(ids, special, mask_id, words, probability)[1]
    return torch.where(labels != -100, mask_id, ids), labels


def hide_never_itself(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    random = words[torch.randint(len(words), ids.shape)]
    return torch.where((labels != -100) & (hidden == ids), random, hidden), labels


def hide_with_one_word(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    drawn = (labels != -100) & (hidden != mask_id) & (hidden != ids)
    return torch.where(drawn, words[7], hidden), labels


def hide_with_any_id(ids, special, mask_id, words, probability):
    return hide(ids, special, mask_id, torch.arange(3), probability)


def hide_twice_as_many(ids, special, mask_id, words, probability):
    return hide(ids, special, mask_id, words, 2 * probability)


def hide_by_seed(ids, special, mask_id, words, probability):
    torch.manual_seed(0)
    return hide(ids, special, mask_id, words, probability)


def hide_in_place(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    ids.copy_(hidden)
    return ids, labels


def label_all(ids, special, mask_id, words, probability):
    return hide(ids, special, mask_id, words, probability)[0], ids.clone()


def label_hidden(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    return hidden, torch.where(labels != -100, hidden, -100)


def disturb(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    hidden[0, 0] += 1
    return hidden, labels


def hide_in_one_half(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, 2 * probability)
    first = torch.arange(ids.size(1)) <= 20
    return torch.where(first, hidden, ids), torch.where(first, labels, -100)


def hide_with_a_word_for_each(shape):
    """Random words that a whole row or column shares."""

    def hide_so(ids, special, mask_id, words, probability):
        hidden, labels = hide(ids, special, mask_id, words, probability)
        drawn = (labels != -100) & (hidden != mask_id) & (hidden != ids)
        size = [length if kept else 1 for length, kept in zip(ids.shape, shape, strict=True)]
        return torch.where(drawn, words[torch.randint(len(words), size)], hidden), labels

    return hide_so


def hide_with_other_rows(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    drawn = (labels != -100) & (hidden != mask_id) & (hidden != ids)
    return torch.where(drawn, ids.roll(1, dims=0), hidden), labels


def hide_chosen(choose, share_fate=None):
    """The right fates for places that `choose` picks, of a mask of words and a probability; or one fate a line."""

    def hide_so(ids, special, mask_id, words, probability):
        selected = choose(~torch.isin(ids, special), probability)
        size = [1 if dim == share_fate else length for dim, length in enumerate(ids.shape)]
        fate = torch.rand(size).expand(ids.shape)
        hidden = torch.where(selected & (fate < 0.8), mask_id, ids)
        random = words[torch.randint(len(words), ids.shape)]
        return torch.where(selected & (fate > 0.9), random, hidden), torch.where(selected, ids, -100)

    return hide_so


def coins(words, probability):
    return (torch.rand(words.shape) < probability) & words


def whole_rows(words, probability):
    return (torch.rand(len(words), 1) < probability) & words


def whole_columns(words, probability):
    return (torch.rand(1, words.size(1)) < probability) & words


def in_each_row(pick):
    """Of each row's words those at the places that `pick` draws from their number and how many are wanted."""

    def choose(words, probability):
        selected = torch.zeros_like(words)
        for row, places in zip(selected, words, strict=True):
            places = places.nonzero()[:, 0]
            row[places[pick(len(places), round(probability * len(places)))]] = True
        return selected

    return choose


a_stretch = in_each_row(lambda count, wanted: torch.arange(count).roll(int(torch.randint(count, ())))[:wanted])
exactly_as_many = in_each_row(lambda count, wanted: torch.randperm(count)[:wanted])


def every_few(words, probability):
    step = round(1 / probability)
    return (torch.arange(words.numel()).view(words.shape) % step == int(torch.randint(step, ()))) & words


def hide_kinds(ids, special, mask_id, words, probability):
    selected = (torch.rand(100) < probability)[ids]
    return hide_chosen(lambda real, _: selected & real)(ids, special, mask_id, words, probability)


def hide_with_one_draw(ids, special, mask_id, words, probability):
    draw = torch.rand(ids.shape)  # decides both, and is scaled for the second
    selected = (draw < probability) & ~torch.isin(ids, special)
    hidden = torch.where(selected & (draw < 0.8 * probability), mask_id, ids)
    random = words[torch.randint(len(words), ids.shape)]
    return torch.where(selected & (draw > 0.9 * probability), random, hidden), torch.where(selected, ids, -100)


def hide_with_one_draw_unscaled(ids, special, mask_id, words, probability):
    draw = torch.rand(ids.shape)
    selected = (draw < probability) & ~torch.isin(ids, special)
    return torch.where(selected & (draw < 0.8), mask_id, ids), torch.where(selected, ids, -100)


def label_masks_alone(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    return hidden, torch.where(hidden == mask_id, labels, -100)


def label_zero(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    return hidden, labels.clamp(min=0)


def label_changed(ids, special, mask_id, words, probability):
    hidden, labels = hide(ids, special, mask_id, words, probability)
    return hidden, torch.where(hidden != ids, labels, -100)


class Head(nn.Module):
    activation = nn.GELU()

    def __init__(self, config, word_embeddings):
        super().__init__()
        H = config.hidden_size
        self.word_embeddings = word_embeddings
        self.transform = nn.Linear(H, H)
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states):
        return self.decode(self.layer_norm(self.activation(self.transform(hidden_states))))

    def decode(self, transformed):
        return transformed @ self.word_embeddings.weight.T + self.bias


class LinearHead(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.decoder.weight = word_embeddings.weight

    def decode(self, transformed):
        return self.decoder(transformed) + self.bias


class UntiedHead(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)


class CopyingHead(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.table = [word_embeddings.weight.detach().clone()]

    def decode(self, transformed):
        return transformed @ self.table[0].T + self.bias


class DetachedHead(Head):
    def decode(self, transformed):
        return transformed @ self.word_embeddings.weight.detach().T + self.bias


class HeadOfTiny(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.transform = nn.Linear(192, 192)
        self.layer_norm = nn.LayerNorm(192, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(2000))


class PlainNorm(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        H, eps = config.hidden_size, config.layer_norm_eps
        self.layer_norm = nn.LayerNorm(H, eps=eps, elementwise_affine=False)


class TransformWithoutBias(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.transform = nn.Linear(config.hidden_size, config.hidden_size, bias=False)


class DetachedStates(Head):
    def forward(self, hidden_states):
        return super().forward(hidden_states.detach())


class LogProbabilities(Head):
    def forward(self, hidden_states):
        return super().forward(hidden_states).log_softmax(dim=-1)


class BiasTwice(Head):
    def decode(self, transformed):
        return super().decode(transformed) + self.bias


class ReluHead(Head):
    activation = nn.ReLU()


class TanhHead(Head):
    activation = nn.GELU(approximate="tanh")


class NoActivation(Head):
    activation = nn.Identity()


class NormFirst(Head):
    def forward(self, hidden_states):
        return self.decode(self.activation(self.layer_norm(self.transform(hidden_states))))


class NoNorm(Head):
    def forward(self, hidden_states):
        return self.decode(self.activation(self.transform(hidden_states)))


class NoBias(Head):
    def decode(self, transformed):
        return transformed @ self.word_embeddings.weight.T


class Probabilities(Head):
    def forward(self, hidden_states):
        return super().forward(hidden_states).softmax(dim=-1)


class DefaultEps(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.layer_norm = nn.LayerNorm(config.hidden_size)


class NoTransform(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        del self.transform


class SmallBias(Head):
    def __init__(self, config, word_embeddings):
        super().__init__(config, word_embeddings)
        self.bias = nn.Parameter(torch.zeros(config.hidden_size))


RIGHT = {
    "11.1": [
        hide,
        hide_in_numpy,
        lambda *a: list(hide(*a)),
        hide_with_one_draw,
        hide_chosen(coins),
        hide_chosen(exactly_as_many),
    ],
    "11.2": [Head, LinearHead],
    "11.3": [5.84, 5.8446, torch.tensor(5.845), np.float64(5.83), 0.9 * 6.34 + 0.2 * math.log(2)],
}

WRONG = {
    "11.1": [
        (hide_special, "special token"),
        (hide_all, "show [MASK]"),
        (hide_never_itself, "of the selected words are unchanged"),
        (hide_with_one_word, "same few"),
        (lambda i, s, m, words, p: hide(i, s, m, words[:-1], p), "are never drawn as the random"),
        (hide_with_any_id, "A random word is not in"),
        (hide_twice_as_many, "of the words are selected, but"),
        (hide_by_seed, "Two calls select the same words"),
        (hide_in_place, "clone"),
        (label_all, "-100"),
        (label_hidden, "before it was hidden"),
        (disturb, "A word that is not selected"),
        (hide_in_one_half, "columns"),
        (hide_chosen(whole_rows), "Nearly whole rows are selected"),
        (hide_chosen(whole_columns), "columns"),
        (hide_chosen(a_stretch), "The selected words are next to"),
        (hide_chosen(every_few), "The selected words avoid each other"),
        (hide_kinds, "A word is selected everywhere or"),
        (hide_chosen(coins, share_fate=1), "of a row share one fate"),
        (hide_chosen(coins, share_fate=0), "of a column share one fate"),
        (hide_with_one_draw_unscaled, "show [MASK]"),
        (label_masks_alone, "Only [MASK] has labels here. Replaced"),
        (lambda i, s, m, w, p: hide(i, s, m, w, 0.15), "of the words are selected, but"),
        (hide_with_a_word_for_each((True, False)), "row or a column"),
        (hide_with_a_word_for_each((False, True)), "The random words are always the"),
        (hide_with_other_rows, "A random word is not in"),
        (lambda i, s, m, w, p: hide(i, s, m, w[:12], p), "same few"),
        (lambda *a: [one.double() for one in hide(*a)], "Ids and labels have to be"),
        (label_zero, "Where no word is selected, the"),
        (label_changed, "A selected word that is shown"),
        (lambda *a: hide(*a)[0], "two tensors"),
        (lambda *a: (hide(*a)[0], [1]), "torch tensor"),
    ],
    "11.2": [
        (UntiedHead, "The decoder has its own weights"),
        (CopyingHead, "The logits should change with them"),
        (DetachedHead, "No gradient"),
        (DetachedStates, "below them can learn"),
        (HeadOfTiny, "sizes from the configuration"),
        (PlainNorm, "should have a weight"),
        (TransformWithoutBias, "should have a bias"),
        (LogProbabilities, "log-probabilities"),
        (BiasTwice, "added twice"),
        (ReluHead, "ReLU"),
        (TanhHead, "exact"),
        (NoActivation, "activation"),
        (NormFirst, "after the activation"),
        (NoNorm, "LayerNorm is missing"),
        (NoBias, "bias is missing"),
        (Probabilities, "probabilities"),
        (DefaultEps, "eps"),
        (NoTransform, "self.transform"),
        (SmallBias, "one number for each word"),
        (nn.Linear(2, 2), "class itself"),
    ],
    "11.3": [
        (5.072, "share of [MASK] alone"),
        (6.34, "unigram alone"),
        (5.775, "One ln 2 is missing"),
        (5.21, "all words that are shown are right"),
        (6.023, "does not halve the loss"),
        (4.689, "plain mean"),
        (7.6, "Three cases"),
        ("low", "should be a number"),
    ],
}
