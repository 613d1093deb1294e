"""Writing token by token: the cache, the best token each time, the best of several texts. Built in notebook 12."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.checking_decoder import check_scores

NOTHING = -1e9  # the score of a text that is none


class Limits(NamedTuple):
    """Where texts start, end and are padded, how long they may get, and how many are followed for each source."""

    start: int
    end: int
    pad: int
    max_length: int  # the start token counted
    num_beams: int


class LayerCache:
    """Keys and values, (B, A, …, D) each, that a layer keeps: of the text so far, and of the source."""

    def __init__(self):
        self.text: tuple[Tensor, Tensor] | None = None
        self.source: tuple[Tensor, Tensor] | None = None
        self.states: Tensor | None = None  # the source itself, so that another one is noticed

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new tokens' keys and values, and return those of the whole text."""
        if self.text is not None:
            key, value = torch.cat([self.text[0], key], dim=2), torch.cat([self.text[1], value], dim=2)
        self.text = key, value
        return self.text

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows of the batch; a beam stays with its source, which is left as it is."""
        self.text = self.text[0][rows], self.text[1][rows]

    def __len__(self) -> int:
        """How many tokens of the text it knows."""
        return 0 if self.text is None else self.text[0].size(2)


class Writer:
    """What a search asks for the next token: a decoder and the sources, each as often as there are beams."""

    def __init__(
        self, decoder: nn.Module, states: Tensor, mask: Tensor | None, limits: Limits, use_cache: bool = True
    ):
        """`states` (B, S, H) and `mask` (B, S) are the encoder's."""
        self.decoder, self.B = decoder, len(states)
        repeated = [x if x is None else x.repeat_interleave(limits.num_beams, dim=0) for x in (states, mask)]
        self.states, self.mask = repeated  # (B · K, S, H) and (B · K, S)
        self.cache = decoder.new_cache() if use_cache else None

    def begin(self, limits: Limits) -> Tensor:
        """The start token of each text, (B, 1)."""
        return torch.full((self.B, 1), limits.start, device=self.states.device)

    def next_logits(self, ids: Tensor) -> Tensor:
        """Texts so far (B · K, T) to the scores (B · K, V) of the token that follows."""
        return check_scores(self.decoder(ids, None, self.states, self.mask, cache=self.cache).logits[:, -1])

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows of the texts so far."""
        for layer in self.cache or ():
            layer.reorder(rows)


def greedy_search(writer: Writer, limits: Limits) -> Tensor:
    """The likeliest token each time, to texts (B, up to max_length), padded after their end."""
    ids = writer.begin(limits)
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    while ids.size(1) < limits.max_length and not ended.all():
        chosen = writer.next_logits(ids).argmax(dim=-1).masked_fill(ended, limits.pad)  # (B)
        ids = torch.cat([ids, chosen[:, None]], dim=1)
        ended |= chosen == limits.end
    return ids


def beam_search(writer: Writer, limits: Limits) -> Tensor:
    """The best text that `Beams` finds for each source, (B, up to max_length), padded after its end."""
    beams = Beams(writer.begin(limits), limits)
    while beams.running:
        logits = writer.next_logits(beams.ids.flatten(0, 1))  # (B · K, V)
        writer.reorder(beams.extend(logits.log_softmax(dim=-1).unflatten(0, (-1, limits.num_beams))))
    return beams.best()


class Beams:
    """For each source the K likeliest unfinished texts, and the K best finished ones by mean log-probability a token.

    When to stop is transformers' `early_stopping=False`: once the best unfinished text is no better than the worst of
    K finished ones.
    """

    def __init__(self, ids: Tensor, limits: Limits):
        """`ids` (B, 1) hold the start token of each text."""
        B, K = len(ids), limits.num_beams
        self.limits = limits
        self.ids = ids[:, None].expand(B, K, 1)  # (B, K, T)
        self.scores = torch.full((B, K), NOTHING, device=ids.device)
        self.scores[:, 0] = 0  # all K begin alike, so one of them is enough
        self.finished = torch.full((B, K, limits.max_length), limits.pad, device=ids.device)
        self.finished_scores = torch.full((B, K), NOTHING, device=ids.device)
        self.open = torch.ones(B, dtype=torch.bool, device=ids.device)

    @property
    def running(self) -> bool:
        """Whether a text may still become better than those finished."""
        return self.ids.size(-1) < self.limits.max_length and bool(self.open.any())

    def extend(self, log_probabilities: Tensor) -> Tensor:
        """Continue each text by the likeliest tokens, given (B, K, V); return which rows (B · K) survive."""
        B, K, V = log_probabilities.shape
        T = self.ids.size(-1)  # tokens of each text, the new one counted and the start token not
        scores = (self.scores[..., None] + log_probabilities).flatten(1)  # (B, K · V)
        scores, places = scores.topk(2 * K)  # K of them at most can end
        texts = torch.cat([take(self.ids, places // V), (places % V)[..., None]], dim=-1)  # (B, 2K, T + 1)
        ended = (texts[..., -1] == self.limits.end) | (self.limits.max_length == T + 1)
        new = (scores / T).masked_fill(~(ended & self.open[:, None]), NOTHING)
        self.finish(texts[:, :K], new[:, :K])
        self.scores, best = scores.masked_fill(ended, NOTHING).topk(K)
        self.ids = take(texts, best)
        self.open &= self.scores[:, 0] / T > self.finished_scores.amin(dim=1)
        first_rows = K * torch.arange(B, device=best.device)[:, None]
        return (first_rows + (places // V).gather(1, best)).flatten()

    def finish(self, texts: Tensor, scores: Tensor) -> None:
        """Keep the K best of the finished texts and of these, (B, K, T)."""
        room = self.limits.max_length - texts.size(-1)
        texts = torch.cat([self.finished, F.pad(texts, (0, room), value=self.limits.pad)], dim=1)
        self.finished_scores, best = torch.cat([self.finished_scores, scores], dim=1).topk(scores.size(1))
        self.finished = take(texts, best)

    def best(self) -> Tensor:
        """The best finished text of each source, (B, as long as the longest)."""
        texts = self.finished[:, 0]
        ended = F.pad(texts[:, 1:] == self.limits.end, (0, 1), value=True)  # by the limit at the latest
        return texts[:, : ended.int().argmax(dim=1).max() + 2]


def take(texts: Tensor, rows: Tensor) -> Tensor:
    """Of texts (B, N, T) those that rows (B, K) name, (B, K, T)."""
    return texts.gather(1, rows[..., None].expand(-1, -1, texts.size(-1)))
