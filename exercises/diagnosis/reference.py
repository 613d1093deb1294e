"""Our encoder, and what it returns for the probe with each bug: computed when first needed, and once."""

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


class Reference:
    """The right encoder, its tokenizer, the probe's batch, and which of its tokens are real."""

    def __init__(self, encoder: nn.Module, tokenizer):
        self.encoder, self.tokenizer = deepcopy(encoder).cpu().float(), tokenizer
        self.batch = probe_batch(tokenizer)
        self.real = self.batch[1] == 1

    @torch.no_grad()
    def last(self, *names: str) -> Tensor:
        """Return the last states (5, S, H) with these bugs."""
        return with_bugs(self.encoder, *names)(*self.batch, output_attentions=True).last_hidden_state

    @cached_property
    def right(self) -> Tensor:
        """The last states (5, S, H) without any bug."""
        return self.last()

    @cached_property
    def singles(self) -> dict[Names, Tensor]:
        """The last states of real tokens (N,), without and with each bug."""
        last = {(): self.right} | {(name,): self.last(name) for name in ENCODER_BUGS}
        return {names: states[self.real].flatten() for names, states in last.items()}

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
