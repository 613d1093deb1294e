"""Our encoder, and what it returns for the probe with each bug: computed when first needed, and once."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache, cached_property

import torch
from torch import Tensor, nn

from exercises.diagnosis import texts
from exercises.diagnosis.bugs import BUGS, ENCODER_BUGS, POOLING, TEXT_TO_IDS, with_bugs
from exercises.diagnosis.matching import Names
from exercises.diagnosis.probe import probe_batch
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import load_tokenizer

ROWS = [0, 3]  # of the probe: without a bug, rows 1 and 4 are these again
ACROSS_ROWS = {"batch and heads mixed", "another row's mask"}  # bugs for which rows do not stand alone
PROJECTIONS = 16  # numbers that are kept of each token's vector
CHOSEN = 8  # the nearest guesses, which are computed in full


class Reference:
    """The right encoder, its tokenizer, the probe's batch, and which of its tokens are real."""

    def __init__(self, encoder: nn.Module, tokenizer):
        self.encoder, self.tokenizer = deepcopy(encoder).cpu().float(), tokenizer
        self.batch = probe_batch(tokenizer)
        self.real = self.batch[1] == 1
        self.last = cache(self.last)

    @torch.no_grad()
    def last(self, *names: str) -> Tensor:
        """Return the last states (5, S, H) with these bugs."""
        return with_bugs(self.encoder, *names)(*self.batch, output_attentions=True).last_hidden_state

    @torch.no_grad()
    def summary(self, *names: str) -> Tensor:
        """Return a few numbers of each real token of two rows with these bugs, in less than half the time of `last`."""
        if ACROSS_ROWS.isdisjoint(names):
            batch = [part[ROWS] for part in self.batch]
            return self.summarized(with_bugs(self.encoder, *names)(*batch, output_attentions=True).last_hidden_state)
        return self.summarized(self.last(*names)[ROWS])

    def summarized(self, states: Tensor) -> Tensor:
        """Return a few numbers of each real token of two rows (2, S, H)."""
        directions = torch.randn(states.size(-1), PROJECTIONS, generator=torch.Generator().manual_seed(0))
        return (states @ directions)[self.real[ROWS]].flatten()

    def nearest(self, states: Tensor, guesses: Sequence[Names], summaries: Tensor) -> dict[Names, Tensor]:
        """Return the guesses whose summaries are nearest to states (5, S, H), with their real tokens' numbers (N,)."""
        distances = (summaries - self.summarized(states[ROWS])).pow(2).mean(-1)
        order = distances.nan_to_num(torch.inf).argsort()[:CHOSEN].tolist()
        return {guesses[i]: self.last(*guesses[i])[self.real].flatten() for i in order}

    @cached_property
    def right(self) -> Tensor:
        """The last states (5, S, H) without any bug."""
        return self.last()

    @cached_property
    def singles(self) -> Tensor:
        """The summaries of all bugs."""
        return torch.stack([self.summary(name) for name in ENCODER_BUGS])

    @cached_property
    def vectors(self) -> dict[Names, Tensor]:
        """The vectors of the texts (3, H), not normalized, without and with each bug."""
        return {(): self.vectors_with("")} | {(name,): self.vectors_with(name) for name in BUGS}

    @torch.no_grad()
    def vectors_with(self, name: str) -> Tensor:
        """Return the vectors of the texts (3, H) with a bug of any stage."""
        stage, patch = (BUGS[name].stage, BUGS[name].patch) if name else ("", None)
        batch = (patch if stage == TEXT_TO_IDS else texts.encode)(self.tokenizer)
        model = with_bugs(self.encoder, *[name] if name in ENCODER_BUGS else [])
        states = model(*batch, output_attentions=True).last_hidden_state
        return (patch if stage == POOLING else texts.mean)(states, batch[1])


@cache
def default_reference(checkpoint: str) -> Reference:
    """Return the reference of a checkpoint."""
    return Reference(TransformerEncoder.from_checkpoint(checkpoint), load_tokenizer(checkpoint))
