"""A plausible history from noisy attribute sums: ``min ½‖Aᵀd - a‖²`` with d binary (the paper's case study).

Integer least squares, but items with equal rows are interchangeable: what is unknown is only *how many* items of each
distinct row there are, between 0 and the size of the group. Relax these counts to real numbers (projected gradient with
momentum, all people at once), round, then improve one count at a time by ±1 while it helps. This works on a released
histogram and public facts only, so it costs no privacy.

A server that holds many people's releases first pulls them towards each other (`shrink`): the noise is known, so what the
releases have in common tells how much of each to believe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.errors import InputError
from sfumato.privacy.noise import laplace_variance


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Items with equal rows.

    Attributes
    ----------
    rows : int64 array of shape (groups, attributes)
        The distinct rows of the catalogue.
    sizes : int64 array
        How many items have each row.
    group_of : int64 array
        Every item's group.
    """

    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    group_of: NDArray[np.int64]

    @classmethod
    def of(cls, catalogue: Catalogue) -> ItemGroups:
        """Group the items of a `catalogue` by their rows.

        >>> g = ItemGroups.of(Catalogue.from_matrix([[1, 0], [1, 0], [0, 1]], ["x", "y"]))
        >>> sorted(g.sizes.tolist())
        [1, 2]
        """
        dense = np.zeros((catalogue.size, len(catalogue.attributes)), dtype=np.int64)
        owner = np.repeat(np.arange(catalogue.size), np.diff(catalogue.indptr))
        dense[owner, catalogue.indices] = catalogue.values
        rows, group_of, sizes = np.unique(dense, axis=0, return_inverse=True, return_counts=True)
        return cls(rows, sizes.astype(np.int64), group_of.reshape(-1).astype(np.int64))


def shrink(noisy: NDArray[Any], policy: Policy) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The best linear estimate of many people's exact sums from their releases.

    In units in which the noise of every attribute has variance 1, let 1 + λ be the variances of the releases along their
    principal axes; then λ / (1 + λ) of each deviation from the mean is signal. An axis whose λ could be an accident of
    sampling (heavy-tailed noise, n people: about ``sqrt(6 m / n)``) is not believed at all.

    Parameters
    ----------
    noisy : array of shape (people, attributes)
        Released sums in lattice units, at least two rows.
    policy : Policy
        The noise that is in them.

    Returns
    -------
    tuple of two float arrays
        The estimates in the shape of `noisy`, and per attribute how far off they are expected to be.

    Examples
    --------
    >>> p = Policy(("x",), np.array([10**9]), np.array([[1]]), 10**9, np.array([10**9]))
    >>> believed, off = shrink(np.arange(1000)[:, None] * 100, p)
    >>> believed[:3].round().tolist(), (off < 2).tolist()
    ([[0.0], [100.0], [200.0]], [True])
    """
    values = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    people, m = values.shape
    if people < 2 or m != len(policy.attributes):
        raise InputError(f"give at least two releases of {len(policy.attributes)} attributes")
    noise = np.sqrt(laplace_variance(policy.rates))
    centred = (values - values.mean(axis=0)) / noise
    found, axes = np.linalg.eigh(centred.T @ centred / (people - 1) - np.eye(m))
    doubt = 3.0 * np.sqrt(6.0 * m / people)
    share = np.where(found > doubt, found / (1.0 + np.maximum(found, 0.0)), 0.0)
    estimate = values.mean(axis=0) + (centred @ axes * share) @ axes.T * noise
    left = (axes**2) @ np.where(found > doubt, share, doubt) + 1.0 / people
    return np.asarray(estimate), np.asarray(noise * np.sqrt(left))


def rebuild_counts(
    noisy: NDArray[Any],
    groups: ItemGroups,
    *,
    deviations: NDArray[np.float64] | None = None,
    prior: NDArray[np.float64] | None = None,
    steps: int = 200,
) -> NDArray[np.int64]:
    """How many items of each group every person has: whole numbers whose rows add up to the noisy sums as well as can be.

    Parameters
    ----------
    noisy : (people, attributes) numbers
        Released (or shrunk) sums in lattice units.
    groups : ItemGroups
        The public items, by their rows.
    deviations : (attributes,) positive, optional
        How far off each sum is expected to be: sums that are mostly noise then count little.
    prior : (groups,) non-negative, optional
        Public popularity of the groups: where to start from, which decides between solutions that fit equally well.
    steps : int
        Steps of the gradient method before rounding.

    Returns
    -------
    int64 array of shape (people, groups)
        Between 0 and the group's size.
    """
    target = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    A, most = groups.rows.astype(np.float64), groups.sizes.astype(np.float64)
    if target.shape[1] != A.shape[1]:
        raise InputError(f"{target.shape[1]} noisy sums for {A.shape[1]} attributes")
    if deviations is not None:
        weight = float(np.min(deviations)) / np.asarray(deviations, dtype=np.float64)
        target, A = target * weight, A * weight
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
