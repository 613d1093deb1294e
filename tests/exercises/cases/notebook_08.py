"""Answers to the exercises of notebook 08 that its checks do not declare."""

import statistics

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def accuracy_by_hand(batches):
    found = [row.index(max(row)) == y for b in batches for row, y in zip(*(x.tolist() for x in b), strict=True)]
    return np.float64(sum(found) / len(found))


def hits(logits, labels):
    return (logits.argmax(dim=-1) == labels).sum().item()


def stop_by_counting(losses, patience):
    waited, kept, ended = 0, 1, 1
    for epoch in range(2, len(losses) + 1):
        if waited >= patience:
            break
        better = losses[epoch - 1] < min(losses[: epoch - 1])
        kept, waited, ended = (epoch, 0, epoch) if better else (kept, waited + 1, epoch)
    return torch.tensor([ended, kept])


def stop_with(better, in_a_row=True):
    """Early stopping that counts an epoch as progress if `better(loss, the best so far, the loss before)`."""

    def stop(losses, patience):
        lowest, kept, waited = float("inf"), 1, 0
        for epoch, loss in enumerate(losses, start=1):
            progress = better(loss, lowest, losses[epoch - 2] if epoch > 1 else float("inf"))
            waited = (0 if in_a_row else waited) if progress else waited + 1
            if (progress and loss <= lowest) or epoch == 1:
                lowest, kept = loss, epoch
            if waited >= patience:
                return epoch, losses.index(min(losses[:epoch])) + 1 if loss is None else kept
        return len(losses), kept

    return stop


def effects_in_place(score, words):
    found, whole = [], score(words)
    while words:
        words.pop(0)
        found.append(whole - score(words))
    return found


def one_draw(pooled, dropout, *size):
    return pooled * dropout(torch.ones(*size))


RIGHT = r"""
    8.1 | torch.tanh(self.pooler(hidden_states[:, 0])) => self.pooler(hidden_states).tanh()[:, 0]
    8.1 | self.pooler(hidden_states[:, 0]) => F.linear(hidden_states[:, 0], self.pooler.weight, self.pooler.bias) ;; import torch\n => import torch; from torch.nn import functional as F\n
    8.2 | module.requires_grad_(False) => module.requires_grad_(False)\n    return model
    8.4 | accuracy_by_hand
    8.4 | lambda batches: torch.cat([a.argmax(1) == b for a, b in batches]).float().mean()
    8.4 | lambda batches: np.concatenate([(a.argmax(1) == b).numpy() for a, b in batches]).mean()
    8.6 | stop_by_counting
    8.6 | lambda losses, patience: np.array(right(losses, patience))
    8.3 | lambda score, words: torch.tensor(right(score, words))
    8.3 | lambda score, words: iter(right(score, words))
    8.5 | 5000
    8.5 | "4 898"
    8.5 | "about 4900"
    8.5 | "4898 sentences"
    8.5 | torch.tensor(4757)
"""
WRONG = r"""
    8.1 | lambda self, ids, mask=None, kinds=None: self.classifier(torch.nn.functional.dropout(self.pooler(self.encoder(ids, mask, kinds).last_hidden_state[:, 0]).tanh(), 0.5, self.training)) | rate is 10%
    8.1 | self.dropout(pooled) => one_draw(pooled, self.dropout, pooled.size(1)) | All texts lose the same
    8.1 | self.dropout(pooled) => one_draw(pooled, self.dropout, len(pooled), 1) | all of its numbers or none
    8.1 | hidden_states[:, 0] => hidden_states | The head takes one vector per
    8.1 | return self.classifier(self.dropout(pooled)) => return self.classifier(self.dropout(pooled)).tanh() | classifier(tanh
    8.1 | hidden_states[:, 0] => hidden_states[0] | [:, 0] takes [CLS] of every text
    8.1 | self.dropout(pooled) => pooled | Nothing is dropped between pooler and
    8.1 | self.classifier(self.dropout(pooled)) => self.dropout(pooled) | self.classifier, is missing
    8.1 | self.classifier(self.dropout(pooled)) => self.dropout(self.classifier(pooled)) | not after it
    8.1 | self.dropout(pooled) => pooled ;; hidden_states[:, 0] => self.dropout(hidden_states[:, 0]) | not before it
    8.1 | self.dropout(pooled) => pooled ;; torch.tanh(self.pooler(hidden_states[:, 0])) => torch.tanh(self.dropout(self.pooler(hidden_states[:, 0]))) | after tanh
    8.1 | self.dropout(pooled) => F.dropout(pooled, 0.5) | Values are dropped in evaluation mode
    8.1 | self.dropout(pooled) => self.dropout(pooled.detach()) | no layer below them can learn
    8.1 | lambda self, *batch: self.encoder(*batch) | a tensor, not a
    8.1 | lambda self, *batch: torch.zeros(4, 2) | 5 classes
    8.1 | nn.Linear | is a class
    8.1 | 7 | the function itself
    8.2 | lambda model, number: None | learn again
    8.2 | model.requires_grad_(True) => model.requires_grad_(True); return | but 0 are
    8.2 | model.requires_grad_(True) => [module.requires_grad_(True) for module in (model.encoder, model.pooler)] | last layer is frozen
    8.2 | model.encoder.embeddings, => | embeddings still learn
    8.2 | [:number] => [-number:] | last layers are frozen
    8.2 | [model.encoder.embeddings, *model.encoder.layers[:number]] => [model.encoder] | the whole encoder is
    8.2 | [model.encoder.embeddings, *model.encoder.layers[:number]] => [model] | The head is frozen
    8.2 | [:number] => [:2] | but 2 are
    8.2 | module.requires_grad_(False) => module.requires_grad = False | A module has no attribute requires_grad
    8.2 | model.requires_grad_(True) => model.requires_grad_(True); model.eval() | eval() turns off dropout, not learning
    8.2 | module.requires_grad_(False) => [p.data.zero_() for p in module.requires_grad_(False).parameters()] | Your function changes parameters. Change only
    8.2 | module.requires_grad_(False) => [p.requires_grad_(p.dim() == 1) for p in module.parameters()] | but one of them is only
    8.4 | lambda batches: right(batches[:-1] or batches) | last batch is left out
    8.4 | lambda batches: sum(right([batch]) for batch in batches) / len(batches) | in which the small batch counts
    8.4 | lambda batches: right(batches[:1]) | the accuracy of the first batch
    8.4 | lambda batches: sum(hits(*batch) // len(batch[1]) for batch in batches) / len(batches) | once and at the end
    8.4 | .argmax(dim=-1) => .max(dim=-1) | such as the pair that max(dim=…) returns
    8.4 | lambda batches: right(batches[-1:]) | This is only the last batch
    8.4 | return right / sum(len(labels) for _, labels in batches) => return right | This is the number of right
    8.4 | lambda batches: 1 - right(batches) | wrong answers
    8.4 | lambda batches: round(right(batches), 2) | This is rounded
    8.4 | lambda batches: 100 * right(batches) | Return a share between 0 and
    8.4 | sum(len(labels) for _, labels in batches) => len(batches) | not of batches
    8.4 | sum(len(labels) for _, labels in batches) => (7 * len(batches)) | last batch is smaller
    8.4 | return right / => return right // | drops everything
    8.4 | lambda batches: -1 | largest logit
    8.4 | sum(len(labels) for _, labels in batches) => 16 | is a number fixed
    8.4 | lambda batches: (right(batches), batches.clear())[0] | changes the batches
    8.6 | return epoch, best => return epoch - 1, best - 1 ;; return len(losses), best => return len(losses) - 1, best - 1 | count epochs from 1
    8.6 | lambda losses, patience: right(losses, patience)[::-1] | The two are swapped: the last
    8.6 | lambda losses, patience: (right(losses, patience)[0], losses.index(min(losses)) + 1) | see ahead
    8.6 | return epoch, best => pass | it goes on to epoch
    8.6 | lambda losses, patience: (len(losses), right(losses, patience)[1]) | it goes on to epoch
    8.6 | lambda losses, patience: (right(losses, patience)[0],) * 2 | keeps the last epoch
    8.6 | >= patience => >= patience - 1 | patience lasts to
    8.6 | loss < losses => loss <= losses | equal loss
    8.6 | stop_with(lambda loss, best, before: loss < min(best, 1.0)) | a loss may be above 1
    8.6 | stop_with(lambda loss, best, before: loss < best - 0.01) | any lower loss is progress, however
    8.6 | lambda losses, patience: (right(losses, patience), losses.sort())[0] | changes the list of losses
    8.6 | stop_with(lambda loss, best, before: loss < before) | lowest loss so far, not with
    8.6 | stop_with(lambda loss, best, before: loss < best, in_a_row=False) | in a row
    8.6 | lambda losses, patience: (right(losses, patience)[0], 1) | keep the one with the lowest loss so far
    8.6 | lambda losses, patience: (1, 2) | but ends after
    8.3 | words[:place] + words[place + 1 :] => words - [words[place]] | Lists have no minus
    8.3 | words[:place] + words[place + 1 :] => list(set(words) - {words[place]}) | A set has each word only once, in no order
    8.3 | effects_in_place | changes the list
    8.3 | words[:place] + words[place + 1 :] => " ".join(words[:place] + words[place + 1 :]) | a list of words
    8.3 | lambda score, words: dict(zip(words, right(score, words), strict=True)) | dictionary
    8.3 | lambda score, words: right(score, words)[:-1] | words, but you return
    8.3 | lambda score, words: score(words) | Return one number per word, not
    8.3 | lambda score, words: right(score, words) if len(words) > 1 else [0.0] | not a single word
    8.3 | lambda score, words: [7] * len(words) | The effect of a word is
    8.5 | "many" | a number
"""
