"""A plausible history from noisy attribute sums: ``min ½‖Aᵀd - a‖²`` with d binary (the paper's case study).

Integer least squares, but items with equal rows are interchangeable: what is unknown is only *how many* items of each
distinct row there are, between 0 and the size of the group. Relax these counts to real numbers (projected gradient with
momentum, all people at once), round, then improve one count at a time by ±1 while it helps. This works on a released
histogram and public facts only, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.errors import InputError


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Items with equal rows: the distinct rows, each group's size and every item's group."""

    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    group_of: NDArray[np.int64]

    @classmethod
    def of(cls, catalogue: Catalogue) -> ItemGroups:
        """Group the items of a catalogue by their rows.

        >>> g = ItemGroups.of(Catalogue.from_matrix([[1, 0], [1, 0], [0, 1]], ["x", "y"]))
        >>> sorted(g.sizes.tolist())
        [1, 2]
        """
        dense = np.zeros((catalogue.size, len(catalogue.attributes)), dtype=np.int64)
        owner = np.repeat(np.arange(catalogue.size), np.diff(catalogue.indptr))
        dense[owner, catalogue.indices] = catalogue.values
        rows, group_of, sizes = np.unique(dense, axis=0, return_inverse=True, return_counts=True)
        return cls(rows, sizes.astype(np.int64), group_of.reshape(-1).astype(np.int64))


def rebuild_counts(
    noisy: NDArray[np.int64], groups: ItemGroups, *, prior: NDArray[np.float64] | None = None, steps: int = 200
) -> NDArray[np.int64]:
    """How many items of each group, per person: integers between 0 and the group's size whose rows add up to the noisy sums.

    Parameters
    ----------
    noisy : (people, attributes) integers
        Released sums in lattice units.
    prior : (groups,) non-negative, optional
        Public popularity of the groups: where to start from, which decides between solutions that fit equally well.
    """
    target = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    A, most = groups.rows.astype(np.float64), groups.sizes.astype(np.float64)
    if target.shape[1] != A.shape[1]:
        raise InputError(f"{target.shape[1]} noisy sums for {A.shape[1]} attributes")
    share = most / most.sum() if prior is None else np.asarray(prior, dtype=np.float64) / np.sum(prior)
    direction = share @ A
    length = np.maximum(target @ direction / max(float(direction @ direction), 1e-300), 0.0)
    counts = np.minimum(length[:, None] * share, most)
    slope = 1.0 / max(float(np.linalg.eigvalsh(A.T @ A)[-1]), 1e-300)
    ahead, pace = counts, 1.0
    for _ in range(steps):
        moved = np.clip(ahead - slope * ((ahead @ A - target) @ A.T), 0.0, most)
        next_pace = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = moved + (pace - 1) / next_pace * (moved - counts)
        counts, pace = moved, next_pace
    return _improve(np.rint(counts).astype(np.int64), target, A, groups.sizes)


def _improve(
    counts: NDArray[np.int64], target: NDArray[np.float64], A: NDArray[np.float64], most: NDArray[np.int64], sweeps: int = 60
) -> NDArray[np.int64]:
    """Change the one count by ±1 that lowers the squared error most, for all people at once, until nobody gains."""
    norms = (A * A).sum(axis=1)
    people = np.arange(counts.shape[0])
    residual = counts @ A - target
    for _ in range(sweeps):
        pull = residual[people] @ A.T
        gain_up = np.where(counts[people] < most, -2 * pull - norms, -np.inf)
        gain_down = np.where(counts[people] > 0, 2 * pull - norms, -np.inf)
        gains = np.maximum(gain_up, gain_down)
        best = gains.argmax(axis=1)
        here = np.arange(people.size)
        helps = gains[here, best] > 1e-9
        if not helps.any():
            break
        people, best, here = people[helps], best[helps], here[helps]
        sign = np.where(gain_up[here, best] >= gain_down[here, best], 1, -1)
        counts[people, best] += sign
        residual[people] += sign[:, None] * A[best]
    return counts
