"""Answers readers give to the exercises of notebook 08: right alternatives, and wrong ones with a word of the hint."""

import statistics

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


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


def whole_numbers(batches):
    return sum(hits(*batch) // len(batch[1]) for batch in batches) / len(batches)


def median_of_batches(batches):
    return statistics.median(hits(*batch) / len(batch[1]) for batch in batches)


def largest_without_argmax(batches):
    return sum((logits.max(dim=-1) == labels).sum() for logits, labels in batches) / 16


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


def effects_by_sets(score, words):
    return [score(words) - score(list(set(words) - {word})) for word in words]


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


def vectors(self, input_ids, attention_mask, token_type_ids):
    return self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state


def head(self, input_ids, attention_mask=None, token_type_ids=None):
    cls_vectors = vectors(self, input_ids, attention_mask, token_type_ids)[:, 0]
    return self.classifier(self.dropout(torch.tanh(self.pooler(cls_vectors))))


def head_step_by_step(self, input_ids, attention_mask=None, token_type_ids=None):
    output = self.encoder(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
    first, *_ = output[0].unbind(dim=1)
    pooled = self.pooler(first).tanh()
    return self.classifier(F.dropout(pooled, self.dropout.p, self.training))


def head_by_hand(self, input_ids, attention_mask=None, token_type_ids=None):
    states = vectors(self, input_ids, attention_mask, token_type_ids)
    pooled = torch.tanh(F.linear(states[:, 0], self.pooler.weight, self.pooler.bias))
    return self.dropout(pooled) @ self.classifier.weight.T + self.classifier.bias


def head_of_all_tokens_at_once(self, *batch, **options):
    states = self.encoder(*batch, **options).last_hidden_state
    return self.classifier(self.dropout(self.pooler(states).tanh()[:, 0]))


def head_by(pool=None, last=None, read=vectors):
    """The right head, but for one step of its own: reading, pooling or what comes last."""

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        states = read(self, input_ids, attention_mask, token_type_ids)
        pooled = pool(self, states) if pool else torch.tanh(self.pooler(states[:, 0]))
        return last(self, pooled) if last else self.classifier(self.dropout(pooled))

    return forward


def mean_of_real_tokens(self, ids, mask, kinds):
    real = mask[..., None]
    return (vectors(self, ids, mask, kinds) * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)


def maximum_of_real_tokens(self, ids, mask, kinds):
    return vectors(self, ids, mask, kinds).masked_fill(mask[..., None] == 0, -torch.inf).amax(dim=1, keepdim=True)


def without_mask(self, ids, mask, kinds):
    return vectors(self, ids, None, kinds)


def without_types(self, ids, mask, kinds):
    return vectors(self, ids, mask, None)


def only_ids(self, ids, mask, kinds):
    return vectors(self, ids, None, None)


def one_mask_for_all(self, pooled):
    return self.classifier(pooled * self.dropout(torch.ones(pooled.size(1))))


def whole_texts(self, pooled):
    return self.classifier(pooled * self.dropout(torch.ones(len(pooled), 1)))


def altering(self, input_ids, attention_mask=None, token_type_ids=None):
    logits = head(self, input_ids, attention_mask, token_type_ids)
    input_ids.fill_(0)
    return logits


def freeze(model, number):
    for name, parameter in model.named_parameters():
        below = [f"encoder.layers.{place}." for place in range(number)]
        parameter.requires_grad = not name.startswith(("encoder.embeddings", *below))


def freeze_and_return(model, number):
    model.requires_grad_(True)
    model.encoder.embeddings.requires_grad_(False)
    model.encoder.layers[:number].requires_grad_(False)
    return model


def freeze_without_thawing(model, number):
    for module in [model.encoder.embeddings, *model.encoder.layers[:number]]:
        module.requires_grad_(False)


def freezing(choose):
    """Let all learn, then freeze what `choose` takes of a model."""

    def freeze(model, number):
        model.requires_grad_(True)
        for module in choose(model, number):
            module.requires_grad_(False)

    return freeze


def freeze_by_attribute(model, number):
    for module in [model.encoder.embeddings, *model.encoder.layers[:number]]:
        module.requires_grad = False


def freeze_by_eval(model, number):
    freeze(model, number)
    model.encoder.eval()
    model.eval()


def freeze_to_zero(model, number):
    freeze(model, number)
    with torch.no_grad():
        for parameter in model.encoder.embeddings.parameters():
            parameter.zero_()


def freeze_biases_not(model, number):
    freeze(model, number)
    for layer in model.encoder.layers:
        layer.feed_forward.output.bias.requires_grad_(True)


RIGHT = {
    "8.1": [head, head_step_by_step, head_by_hand, head_of_all_tokens_at_once],
    "8.2": [freeze, freeze_and_return],
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
    "8.6": [4898, 4898.04, 5000, "4,898", "4 898", "about 4900", "4898 sentences", np.int64(4900), torch.tensor(4757)],
}

WRONG = {
    "8.1": [
        (head_by(last=one_mask_for_all), "All texts lose the same"),
        (head_by(last=whole_texts), "all of its numbers or none"),
        (head_by(read=without_mask), "mask does not reach"),
        (head_by(read=without_types), "token types do not reach"),
        (head_by(read=only_ids), "Only the ids"),
        (head_by(pool=lambda self, x: self.pooler(x[:, 0])), "tanh is missing between the pooler"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(x.mean(dim=1)))), "mean of all tokens"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(x[:, -1]))), "last token"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(x))), "The head takes one vector per"),
        (head_by(pool=lambda self, x: self.pooler(x[:, 0]).relu()), "not ReLU"),
        (head_by(pool=lambda self, x: torch.tanh(x[:, 0])), "The pooler is missing. The order"),
        (head_by(pool=lambda self, x: x[:, 0]), "The pooler and tanh are missing"),
        (head_by(last=lambda self, x: self.classifier(self.dropout(x)).tanh()), "classifier(tanh"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(2 * x[:, 0]))), "classifier(tanh"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(x[0]))), "[:, 0] takes [CLS] of every text"),
        (head_by(pool=lambda self, x: torch.tanh(self.pooler(x.amax(dim=1)))), "maximum over the tokens"),
        (head_by(read=mean_of_real_tokens), "mean of the real tokens"),
        (head_by(read=maximum_of_real_tokens), "maximum over the real tokens"),
        (head_by(pool=lambda self, x: self.pooler(x[:, 0]).sigmoid()), "not a sigmoid"),
        (head_by(pool=lambda self, x: F.gelu(self.pooler(x[:, 0]))), "not GELU"),
        (head_by(last=lambda self, x: self.classifier(self.dropout(x)).softmax(-1)), "without softmax"),
        (head_by(last=lambda self, x: self.classifier(x).log_softmax(-1)), "logarithm of softmax"),
        (head_by(last=lambda self, x: self.classifier(x)), "Nothing is dropped between pooler and"),
        (head_by(last=lambda self, x: self.dropout(x)), "self.classifier, is missing"),
        (head_by(last=lambda self, x: self.dropout(self.classifier(x))), "not after it"),
        (
            head_by(lambda self, x: self.pooler(self.dropout(x[:, 0])).tanh(), lambda self, x: self.classifier(x)),
            "not before it",
        ),
        (
            head_by(lambda self, x: self.dropout(self.pooler(x[:, 0])).tanh(), lambda self, x: self.classifier(x)),
            "after tanh",
        ),
        (head_by(last=lambda self, x: self.classifier(F.dropout(x, 0.5))), "Values are dropped in evaluation mode"),
        (
            head_by(last=lambda self, x: self.classifier(F.dropout(x, 0.1, self.training))),
            "but this model's rate is 50",
        ),
        (head_by(last=lambda self, x: self.classifier(self.dropout(x.detach()))), "no layer below them can learn"),
        (head_by(read=lambda *batch: vectors(*batch).detach()), "no layer below them can learn"),
        (lambda self, *batch: self.encoder(*batch), "a tensor, not a"),
        (altering, "Your function changes its input in"),
        (lambda self, *batch: torch.zeros(4, 2), "5 classes"),
        (nn.Linear, "is a class"),
        (7, "the function itself"),
    ],
    "8.2": [
        (lambda model, number: None, "learn again"),
        (lambda model, number: model.requires_grad_(True), "but 0 are"),
        (freeze_without_thawing, "learn again"),
        (freezing(lambda model, number: model.encoder.layers[:number]), "embeddings still learn"),
        (freezing(lambda model, number: [model.encoder.embeddings, *model.encoder.layers[: number + 1]]), "but 3 are"),
        (
            freezing(lambda model, number: [model.encoder.embeddings, *model.encoder.layers[-number:]]),
            "last layers are frozen",
        ),
        (freezing(lambda model, number: [model.encoder]), "the whole encoder is"),
        (freezing(lambda model, number: [model]), "The head is frozen"),
        (freezing(lambda model, number: [model.classifier]), "last layer is frozen"),
        (freezing(lambda model, number: [model.encoder.embeddings, *model.encoder.layers[:2]]), "but 2 are"),
        (freeze_by_attribute, "A module has no attribute requires_grad"),
        (freeze_by_eval, "eval() turns off dropout, not learning"),
        (lambda model, number: model.encoder.eval(), "eval() turns off dropout, not learning"),
        (freeze_to_zero, "Your function changes parameters. Change only"),
        (freeze_biases_not, "but one of them is only"),
    ],
    "8.3": [
        (lambda batches: accuracy_by_hand(batches[:-1] or batches), "last batch is left out"),
        (mean_of_batches, "in which the small batch counts"),
        (first_batch, "the accuracy of the first batch"),
        (median_of_batches, "Or is it the batches' median?"),
        (whole_numbers, "once and at the end"),
        (largest_without_argmax, "such as the pair that max(dim=…) returns"),
        (last_batch, "This is only the last batch"),
        (right_in_all, "This is the number of right"),
        (lambda batches: 1 - accuracy_by_hand(batches), "wrong answers"),
        (lambda batches: 100 * accuracy_by_hand(batches), "Return a share between 0 and"),
        (lambda batches: right_in_all(batches) / len(batches), "not of batches"),
        (lambda batches: right_in_all(batches) / (7 * len(batches)), "last batch is smaller"),
        (lambda batches: right_in_all(batches) // sum(len(b) for _, b in batches), "drops everything"),
        (lambda batches: -1, "largest logit"),
        (lambda batches: "high", "a number"),
        (lambda batches: right_in_all(batches) / 16, "is a number fixed"),
        (accuracy_altering, "changes the batches"),
    ],
    "8.4": [
        (stop_from_zero, "count epochs from 1"),
        (lambda losses, patience: stop(losses, patience)[::-1], "The two are swapped: the last"),
        (lambda losses, patience: (stop(losses, patience)[0], losses.index(min(losses)) + 1), "see ahead"),
        (lambda losses, patience: (len(losses), stop(losses, patience)[1]), "it goes on to epoch"),
        (lambda losses, patience: (stop(losses, patience)[0],) * 2, "keeps the last epoch"),
        (lambda losses, patience: stop(losses, patience - 1), "patience lasts to"),
        (stop_with_ties, "equal loss"),
        (stop_from(1.0), "a loss may be above 1"),
        (stop_from(0.75), "a loss may be above 1"),
        (stop_from(float("inf"), 0.01), "any lower loss is progress, however"),
        (stop_from(float("inf"), 0.001), "any lower loss is progress, however"),
        (stop_sorting, "changes the list of losses"),
        (stop_against_previous, "lowest loss so far, not with"),
        (stop_counting_all, "in a row"),
        (lambda losses, patience: (stop(losses, patience)[0], 1), "keep the one with the lowest loss so far"),
        (lambda losses, patience: (1, 2), "but ends after"),
        (lambda losses, patience: stop(losses, patience)[0], "two numbers"),
        (lambda losses, patience: ("a", "b"), "a number"),
    ],
    "8.5": [
        (lambda score, words: [score(words) - score(words - [word]) for word in words], "Lists have no minus"),
        (effects_by_sets, "A set has each word only once, in no order"),
        (lambda score, words: [-effect for effect in effects(score, words)], "The sign is reversed. Use score(all"),
        (
            lambda score, words: [score(words) - effect for effect in effects(score, words)],
            "These are the scores without each",
        ),
        (lambda score, words: [score([word]) for word in words], "single words"),
        (effects_by_value, "A repeated word is left out"),
        (
            lambda score, words: [score(words) - score(words[:i]) for i in range(len(words))],
            "Everything after the word is cut",
        ),
        (lambda score, words: [abs(effect) for effect in effects(score, words)], "Keep the sign"),
        (effects_in_place, "changes the list"),
        (effects_with_text, "a list of words"),
        (effects_of_the_first, "Of a repeated word, the first"),
        (effects_sorted, "keep their order"),
        (effects_reversed, "The remaining words must keep their"),
        (lambda score, words: effects(score, words)[::-1], "in the order of the words"),
        (lambda score, words: dict(zip(words, effects(score, words), strict=True)), "dictionary"),
        (effects_by_unknown, "Another word replaces it. Leave it"),
        (effects_of_two, "The word after it is left"),
        (lambda score, words: effects(score, words)[:-1], "words, but you return"),
        (lambda score, words: score(words), "Return one number per word, not"),
        (lambda score, words: ["a"] * len(words), "a number"),
        (lambda score, words: [7] * len(words), "The effect of a word is"),
    ],
    "8.6": [
        (70, "square"),
        (1275, "1.96 standard errors"),
        (2499, "1.96 is outside the root, so"),
        (1225, "83 %"),
        (19592, "half-width is 0.01, not 0.005"),
        (9604, "worst case"),
        (49, "0.01 has to be squared"),
        (3450, "a 90 % interval"),
        (854, "solve for n"),
        ("many", "a number"),
        ((4898, 4898), "a number"),
    ],
}
