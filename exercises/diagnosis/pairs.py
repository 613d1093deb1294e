"""Two bugs at once: computed once for the embedded checkpoint, and kept in the user's cache folder."""

import hashlib
import sys
from itertools import combinations
from pathlib import Path

import huggingface_hub
import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from exercises.diagnosis.bugs import BUGS, ENCODER_BUGS
from exercises.diagnosis.reference import Reference
from utils.support.files import replacement

ROWS = [0, 3]  # of the probe
PROJECTIONS = 16  # numbers that are kept of each token's vector
CHOSEN = 6  # the nearest pairs, which are computed again in full


def pairs_of(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the pairs of bugs that do not change the same thing."""
    return [pair for pair in combinations(names, 2) if BUGS[pair[0]].group != BUGS[pair[1]].group]


def projected(states: Tensor, real: Tensor) -> Tensor:
    """Return a few numbers of each real token of two rows, from the last states (5, S, H)."""
    directions = torch.randn(states.size(-1), PROJECTIONS, generator=torch.Generator().manual_seed(0))
    return (states[ROWS] @ directions)[real[ROWS]].flatten()


def pair_numbers(reference: Reference, names: tuple[str, ...]) -> Tensor:
    """Return the projected numbers of all pairs, from the cache if they are there."""
    pairs = pairs_of(names)
    key = hashlib.sha256(repr((pairs, [part.tolist() for part in reference.batch])).encode())
    for module in ("bugs.py", "patches.py"):
        key.update(Path(__file__).with_name(module).read_bytes())
    folder = huggingface_hub.cached_assets_path("anatomy-of-a-transformer-encoder", "diagnosis")
    path = Path(folder, f"{key.hexdigest()[:16]}.npy")
    if path.is_file():
        return torch.from_numpy(np.load(path))
    print(f"Computing {len(pairs):,} pairs of bugs once, to be kept in {path}.", file=sys.stderr)
    shown = tqdm(pairs, "pairs")
    numbers = torch.stack([projected(reference.last(*pair), reference.real) for pair in shown])
    with replacement(path) as new, new.open("wb") as file:
        np.save(file, numbers.numpy())
    return numbers


def nearest_pairs(
    states: Tensor, reference: Reference, names: tuple[str, ...] = ENCODER_BUGS
) -> dict[tuple[str, str], Tensor]:
    """Return the pairs whose last states of real tokens (N,) are nearest to states (5, S, H), with these."""
    distances = (pair_numbers(reference, names) - projected(states, reference.real)).pow(2).mean(-1)
    order = distances.nan_to_num(torch.inf).argsort()[:CHOSEN].tolist()
    chosen = [pairs_of(names)[number] for number in order]
    return {pair: reference.last(*pair)[reference.real].flatten() for pair in chosen}
