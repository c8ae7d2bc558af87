"""Columns outside a grid: their own noisy counts, by class where there are few classes, and what is made of them.

Everything here is post-processing. A column was counted at its leaves. Where a leaf's count is small beside its noise it
says little by itself, but it may say something together with its neighbours in the taxonomy. So shares are unfolded from the
root down: the children of a node divide its estimate as a *prior* does (the width of an interval, all alike for categories;
for the counts of one class, the column's shares over all classes), and depart from that as far as their noisy counts depart
by more than noise would: by the factor ``1 - (k - 1) / χ²``, or not at all (James & Stein), for k children whose squared
departures over their variances add up to χ². What is then negative is cleaned as by ``norm-sub`` within the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.cleaning import clean
from sfumato.privacy.noise import laplace_variance
from sfumato.records.levels import Levels

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Marginal:
    """The noisy counts of one column.

    Attributes
    ----------
    attribute : int
        Which predictor.
    noisy : int64 array, classes (or 1) by leaves
        The counts as released, in units of weight.
    rate : int
        Nano-ε per unit.
    """

    attribute: int
    noisy: NDArray[np.int64]
    rate: int

    @property
    def by_class(self) -> bool:
        """Whether it was counted class by class."""
        return len(self.noisy) > 1

    def shares(self, levels: Levels, totals: Floats) -> Floats:
        """Shares of the leaves given the class, where `totals` estimate its records: a row per class, or one for all."""
        variance = float(laplace_variance(self.rate))
        everybody = max(float(totals.sum()), 1.0)
        overall = unfolded(
            self.noisy.sum(axis=0), widths(levels), levels, total=everybody, variance=len(self.noisy) * variance
        )
        if not self.by_class:
            return overall[None, :]
        rows = [
            unfolded(row, overall, levels, total=max(float(t), 1.0), variance=variance)
            for row, t in zip(self.noisy, totals, strict=True)
        ]
        return np.stack(rows)

    def to_dict(self, name: str) -> dict[str, Any]:
        """Plain lists and numbers; `marginal_from_dict` reads them back."""
        return {"column": name, "attribute": self.attribute, "noisy": self.noisy.tolist(), "rate": self.rate}


def marginal_from_dict(data: Mapping[str, Any]) -> Marginal:
    """The marginal that `to_dict` wrote down.

    >>> made = Marginal(2, np.array([[5, -1]]), 10**8)
    >>> marginal_from_dict(made.to_dict("sex")).noisy.tolist()
    [[5, -1]]
    """
    return Marginal(data["attribute"], np.array(data["noisy"], dtype=np.int64), data["rate"])


def widths(levels: Levels) -> Floats:
    """What public facts say about the shares of the leaves: by width for numbers, all alike for categories.

    >>> widths(Levels.numeric("age", [0, 10, 20, 60])).round(3).tolist()
    [0.167, 0.167, 0.667]
    """
    size = np.ones(levels.leaves) if levels.edges is None else np.diff(levels.edges)
    return np.asarray(size / size.sum())


def unfolded(noisy: NDArray[np.int64], prior: Floats, levels: Levels, *, total: float, variance: float) -> Floats:
    """Shares of the leaves from noisy counts of this `variance`, drawn towards the `prior` where noise is all there is.

    >>> levels = Levels.numeric("age", [0, 1, 2, 3, 4])
    >>> unfolded(np.array([900, 3, -4, 101]), widths(levels), levels, total=1000.0, variance=25.0).round(2).tolist()
    [0.9, 0.0, 0.0, 0.1]
    >>> unfolded(np.array([260, 243, 251, 246]), widths(levels), levels, total=1000.0, variance=2500.0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    prior = prior + 1e-12  # nothing is impossible
    found = np.array([total])
    for level in range(1, levels.height):
        starts, first = levels.starts[level], levels.within(level - 1, level)
        sums, shares = np.add.reduceat(noisy.astype(np.float64), starts), np.add.reduceat(prior, starts)
        blur = np.diff(np.append(starts, levels.leaves)) * variance
        found = _divided(found, first, sums, shares, blur)
    return np.asarray(found / found.sum()) if found.sum() > 0 else np.asarray(prior / prior.sum())


def _divided(totals: Floats, first: NDArray[np.int64], sums: Floats, prior: Floats, variance: Floats) -> Floats:
    """How the children of nodes share the estimates of these; the children of a node stand together, from `first` on."""
    children = np.diff(np.append(first, sums.size))

    def over(values: Floats) -> Floats:
        """The sum over each node's children, for every child."""
        return np.repeat(np.add.reduceat(values, first), children)

    whole = np.repeat(totals, children)
    expected = whole * prior / over(prior)
    apart = sums - expected
    apart = apart - variance * over(apart) / over(variance)  # the children's sums agree with the node's estimate
    signal = over(apart**2 / variance)
    kept = np.maximum(0.0, 1.0 - (np.repeat(children, children) - 1) / np.maximum(signal, 1e-300))
    made = expected + kept * apart
    # Of two children, one of which is negative, the other has everything; more of them are cleaned together.
    made = np.where(np.repeat(children, children) <= 2, np.clip(made, 0.0, whole), made)
    for node in np.flatnonzero(np.minimum.reduceat(made, first) < 0):
        mine = slice(first[node], first[node] + children[node])
        made[mine] = clean(made[mine], how="norm-sub", scale=1.0, total=float(totals[node]))
    return np.asarray(made)
