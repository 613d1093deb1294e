"""Beam search, with which `EncoderDecoder.generate` writes as transformers does; 12 asks when it helps."""

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.support.decoding import DecoderStep, WritingLimits

NO_TEXT = -1e9  # the score of a beam without a text


def beam_search(writer: DecoderStep, limits: WritingLimits) -> Tensor:
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
        sums, indices = sums.flatten(1).topk(2 * K)  # (B, 2K), since K of them at most can end
        beams, tokens = indices // V, indices % V
        longer = torch.cat([gather_rows(texts, beams), tokens[..., None]], dim=-1)  # (B, 2K, T + 1)
        ended = (tokens == limits.end) | (limits.max_length == T + 1)

        means = (sums / T).masked_fill(~(ended & running[:, None]), NO_TEXT)
        padded = F.pad(longer, (0, limits.max_length - T - 1), value=limits.pad)
        finished_scores, best = torch.cat([finished_scores, means[:, :K]], dim=1).topk(K)
        finished = gather_rows(torch.cat([finished, padded[:, :K]], dim=1), best)

        scores, best = sums.masked_fill(ended, NO_TEXT).topk(K)
        texts = gather_rows(longer, best)
        rows = K * torch.arange(B, device=device)[:, None] + beams.gather(1, best)  # which beams go on
        writer.reorder(rows.flatten())
        running &= scores[:, 0] / T > finished_scores.amin(dim=1)
    ends = F.pad(finished[:, 0, 1:] == limits.end, (0, 1), value=True)  # by the limit at the latest
    return finished[:, 0, : ends.int().argmax(dim=1).max() + 2]


def gather_rows(texts: Tensor, rows: Tensor) -> Tensor:
    """Return the rows (B, K) of texts (B, N, T), as (B, K, T)."""
    return texts.gather(1, rows[..., None].expand(-1, -1, texts.size(-1)))
