"""A baseline for masked words that only counts neighbours. Used in notebook 11."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from utils.support.checks import check_ids, check_same_shape, check_size


class NeighbourCounts:
    """A baseline that counts: it predicts a masked word from its left and right neighbours.

    Counts of both neighbours together weigh most. Where they are few, counts of each neighbour alone take over, and
    then the word's frequency.
    """

    ALONE, TOGETHER = 20, 5  # the weight of each fallback, in counts

    def __init__(self, rows: Tensor, vocab_size: int):
        """Count in rows (N, S) of ids; ValueError for rows without neighbours, and for ids that are not 2-D."""
        check_ids("rows", rows, vocab_size)
        check_size("the length of rows", rows.size(1), minimum=3)
        rows = rows.long()  # as int32 numbers of pairs overflow
        left, word, right = (rows[:, start : rows.size(1) - 2 + start].flatten().numpy() for start in range(3))
        self.size = vocab_size
        self.word = self.smooth(np.bincount(word, minlength=vocab_size), 1 / vocab_size, 1)  # (V,)
        self.after, self.before = self.count(left, word), self.count(right, word)
        self.between = self.count(left * vocab_size + right, word)  # one id per pair of neighbours

    @staticmethod
    def smooth(counts: np.ndarray, expected: np.ndarray | float, weight: float) -> np.ndarray:
        """Return counts (…, V) as shares, with the expected shares added as if counted `weight` times."""
        return (counts + weight * expected) / (counts.sum(axis=-1, keepdims=True) + weight)

    def count(self, given: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, csr_array]:
        """Return the distinct contexts (K,), sorted, and each word's count with each, (K + 1, V); the last row is 0."""
        known, rows = np.unique(given, return_inverse=True)
        counts = (np.ones(len(word), np.float32), (rows, word))
        return known, csr_array(counts, shape=(len(known) + 1, self.size))

    @staticmethod
    def look_up(known: np.ndarray, counts: csr_array, given: np.ndarray) -> np.ndarray:
        """Return each word's count with the given contexts (N,), from the result of `count`: (N, V), 0 if new."""
        rows = np.searchsorted(known, given)
        seen = np.append(known, -1)[rows] == given
        return counts[np.where(seen, rows, len(known))].toarray()

    def probabilities(self, hidden: Tensor, where: Tensor) -> Tensor:
        """Return probabilities (N, V) of the words where `where` is True, from ids (B, S) with words masked."""
        check_ids("hidden", hidden, self.size)
        check_same_shape("where", where, hidden.shape, "choices")
        left, right = (hidden.long().roll(shift, dims=1)[where].numpy() for shift in (1, -1))
        return torch.from_numpy(self.combine(*self.one_sided(left, right), left, right))

    def one_sided(self, left: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
        """Return probabilities (N, V) after the left neighbours, and before the right ones."""
        given = (self.after, left), (self.before, right)
        return [self.smooth(self.look_up(*counts, ids), self.word, self.ALONE) for counts, ids in given]

    def combine(self, after: np.ndarray, before: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return probabilities (N, V) given both sides: what each side says, and counts of the two together."""
        each = after * before / self.word  # as if both were independent given the word
        each /= each.sum(axis=1, keepdims=True)
        return self.smooth(self.look_up(*self.between, left * self.size + right), each, self.TOGETHER)
