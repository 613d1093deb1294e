"""`diagnose` accuses microbert.py, which computes for minutes, of nothing but what its docstring says."""

import torch
from torch.nn import functional as F

import microbert
from exercises.diagnosis import diagnose
from exercises.diagnosis.reference import default_reference
from utils.support.checkpoint import DEFAULT_CHECKPOINT, embedded_folder


def test_microbert_is_right_but_for_token_types_which_it_lacks():
    model, batch = microbert.Checkpoint(embedded_folder()), default_reference(DEFAULT_CHECKPOINT).batch

    def states(ids, mask, types):
        rows = {tuple(row[kept == 1].tolist()) for row, kept in zip(ids, mask, strict=True)}
        found = {row: torch.tensor(microbert.encode(row, model)) for row in rows}
        kept = [found[tuple(row[real == 1].tolist())] for row, real in zip(ids, mask, strict=True)]
        return torch.stack([F.pad(row, (0, 0, 0, ids.size(1) - len(row))) for row in kept])

    assert diagnose(states(*batch), pairs=False).names == ["types ignored"]
