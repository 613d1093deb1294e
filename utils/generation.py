"""Generate text with a decoder: greedy search and beam search, with a cache. Built in notebook 12."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from utils.support.checks import check_size


class WritingLimits(NamedTuple):
    """The start, end and padding tokens, the maximum length, and the number of beams per source."""

    start: int
    end: int
    pad: int
    max_length: int  # including the start token
    num_beams: int


def as_limits(config: BertConfig, max_length: int, num_beams: int) -> WritingLimits:
    """Return the limits for a decoder; ValueError for a missing token or a size that allows no text."""
    start, end, pad = config.bos_token_id, config.eos_token_id, config.pad_token_id
    check_size("bos_token_id", start, 0, config.vocab_size - 1)
    check_size("eos_token_id", end, 0, config.vocab_size - 1)
    pad = end if pad is None else pad
    check_size("pad_token_id", pad, 0, config.vocab_size - 1)
    check_size("max_length", max_length, 2, config.max_position_embeddings)
    check_size("num_beams", num_beams, 1, config.vocab_size // 2)
    return WritingLimits(start, end, pad, max_length, num_beams)


class Writer:
    """Next-token scores of a decoder, with each source repeated once per beam."""

    def __init__(
        self, decoder: nn.Module, states: Tensor, mask: Tensor | None, limits: WritingLimits, use_cache: bool = True
    ):
        """Keep the decoder, and the encoder's `states` (B, S, H) and `mask` (B, S), repeated for each beam."""
        self.decoder, self.B = decoder, len(states)
        self.states = states.repeat_interleave(limits.num_beams, dim=0)  # (B · K, S, H)
        self.mask = None if mask is None else mask.repeat_interleave(limits.num_beams, dim=0)  # (B · K, S)
        self.cache = decoder.new_cache() if use_cache else None

    def begin(self, limits: WritingLimits) -> Tensor:
        """Return the start token of each text, (B, 1)."""
        return torch.full((self.B, 1), limits.start, device=self.states.device)

    def next_logits(self, ids: Tensor) -> Tensor:
        """Map the texts so far (B · K, T) to the scores (B · K, V) of the next token; ValueError for NaN and inf."""
        logits = self.decoder(ids, None, self.states, self.mask, cache=self.cache).logits[:, -1]
        if not logits.isfinite().all():
            raise ValueError(
                "the scores of the next token contain NaN or inf: use weights from before training went wrong"
            )
        return logits

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows of the texts so far."""
        for layer in self.cache or ():
            layer.reorder(rows)


def greedy_search(writer: Writer, limits: WritingLimits) -> Tensor:
    """Take the most likely token at each step; return the texts (B, up to max_length), padded after their end."""
    ids = writer.begin(limits)
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    while ids.size(1) < limits.max_length and not ended.all():
        chosen = writer.next_logits(ids).argmax(dim=-1).masked_fill(ended, limits.pad)  # (B)
        ids = torch.cat([ids, chosen[:, None]], dim=1)
        ended |= chosen == limits.end
    return ids


NO_TEXT = -1e9  # the score of a beam without a text


def beam_search(writer: Writer, limits: WritingLimits) -> Tensor:
    """Return the finished text with the best mean log-probability per token, (B, up to max_length), padded at its end.

    For each source, the K = `num_beams` most likely unfinished texts are continued, and the K best finished texts are
    kept. It stops as transformers does with `early_stopping=False`: when the best unfinished text is no better than the
    worst of K finished ones.
    """
    start, K = writer.begin(limits), limits.num_beams
    B, device = len(start), start.device
    texts = start[:, None].expand(B, K, 1)  # (B, K, T)
    scores = torch.full((B, K), NO_TEXT, device=device)
    scores[:, 0] = 0  # all K begin alike, so one of them is enough
    finished = torch.full((B, K, limits.max_length), limits.pad, device=device)
    finished_scores = torch.full((B, K), NO_TEXT, device=device)
    running = torch.ones(B, dtype=torch.bool, device=device)
    while texts.size(-1) < limits.max_length and running.any():
        T = texts.size(-1)  # tokens of each text with the new one, the start token not counted
        log_probabilities = writer.next_logits(texts.flatten(0, 1)).log_softmax(dim=-1)  # (B · K, V)
        V = log_probabilities.size(-1)
        sums = scores[..., None] + log_probabilities.view(B, K, V)
        sums, places = sums.flatten(1).topk(2 * K)  # (B, 2K), since K of them at most can end
        beams, tokens = places // V, places % V
        longer = torch.cat([take(texts, beams), tokens[..., None]], dim=-1)  # (B, 2K, T + 1)
        ended = (tokens == limits.end) | (limits.max_length == T + 1)

        means = (sums / T).masked_fill(~(ended & running[:, None]), NO_TEXT)
        padded = F.pad(longer, (0, limits.max_length - T - 1), value=limits.pad)
        finished_scores, best = torch.cat([finished_scores, means[:, :K]], dim=1).topk(K)
        finished = take(torch.cat([finished, padded[:, :K]], dim=1), best)

        scores, best = sums.masked_fill(ended, NO_TEXT).topk(K)
        texts = take(longer, best)
        rows = K * torch.arange(B, device=device)[:, None] + beams.gather(1, best)  # which beams go on
        writer.reorder(rows.flatten())
        running &= scores[:, 0] / T > finished_scores.amin(dim=1)
    ends = F.pad(finished[:, 0, 1:] == limits.end, (0, 1), value=True)  # by the limit at the latest
    return finished[:, 0, : ends.int().argmax(dim=1).max() + 2]


def take(texts: Tensor, rows: Tensor) -> Tensor:
    """Return the rows (B, K) of texts (B, N, T), as (B, K, T)."""
    return texts.gather(1, rows[..., None].expand(-1, -1, texts.size(-1)))
