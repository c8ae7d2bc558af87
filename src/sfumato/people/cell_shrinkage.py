"""How far two noisy histograms should be drawn to each other, learnt from all their cells at once.

In units of the safe histogram's Laplace noise, cell j shows ``d_j = b_j + g_j + e_j`` (see `shrinkage`): e_j ~ Laplace(1) is
the safe noise, g_j ~ N(0, A_j²) what chance and noise do to the keen histogram, b_j what consent does to it. Wanted is
``b_j + g_j``. One cell alone cannot say whether its b is 0; all cells together nearly can (James & Stein; Efron & Morris):

    with probability .8 (`INDEPENDENT`)    every b_j = 0
    else, in one of two views              a share w of the b's differs from 0, by a scale τ with heavy tails

The views are the cells as they are, for gaps in single cells or in all of them without order, and differences of
neighbouring blocks (`blocks`), for gaps that are alike in neighbouring cells: too small to be seen in any one of them, and
large in a range. w and τ run over a grid; each combination weighs as much as it makes the whole of d likely, and the answer
is the mean of what they expect. Shares and scales are learnt, so no pattern is assumed; none is excluded either.

The likelihoods are exact for a cell: with y ~ N(0, v) and d = y + Laplace(1) they are two normal tails, and
``E[y | d] = v (P(y < d | d) - P(y > d | d))`` (integrate by parts). A difference of blocks has the noise of several
Laplaces, a normal whose variance is Gamma distributed: a short Gauss-Laguerre rule.

Everything is computed from d, which is noisy already, and from public noise levels: post-processing.

What no estimator can have (`shrinkage`) holds for each cell alone: where *one* cell differs by just less than can be told
from chance, that cell is off by several times its safe noise, while the error over all cells stays near the safe one.
The interval printed first does not rest on any of this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.people.blocks import block_sizes, block_variances, from_blocks, to_blocks

Floats = NDArray[np.float64]
Law = Callable[[Floats], tuple[Floats, Floats]]  # variance of y -> log density of d, E[y | d]

INDEPENDENT = 0.8
_SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
_BLOCKS = (0.1, 0.5, 2.5, 12.5, 62.5, 312.5)  # about how many blocks of one size differ
_STARTS = 6  # scales τ from 1/2 to 16; larger gaps are in the tails, which halve with every doubling
_NODES = 6
_NORMAL = 60.0  # noises that are like this many equal ones are normal for us
_LEAST = 1e-6  # variance: a law needs some


@dataclass(frozen=True, eq=False)
class CellShrinkage:
    """ψ for all cells together.

    Attributes
    ----------
    shape : tuple of int
        How the cells are laid out.
    variances : float array
        A_j², one per cell.
    reach : float
        The largest b that can be: all people, in scales of the safe noise.

    Examples
    --------
    >>> shrink = CellShrinkage((8,), np.full(8, 0.1), 250.0)
    >>> moved, independent = shrink(np.array([0.5, -1.0, 0.3, 1.5, -0.2, 0.8, -0.4, 0.1]))
    >>> bool(np.abs(moved).max() < 0.3), round(float(independent), 1)  # nothing differs: the keen histogram stays
    (True, 0.9)
    >>> far = np.array([9.0, -8.0, 11.0, 7.0, -9.0, 12.0, -8.0, -10.0])
    >>> bool(np.abs(shrink(far)[0] - far).max() < 1)  # all cells differ: the safe one it is
    True
    """

    shape: tuple[int, ...]
    variances: Floats
    reach: float

    def __call__(self, differences: Floats) -> tuple[Floats, Floats]:
        """ψ(d) with cells in the last axis, and how likely it is that no cell differs."""
        given = np.asarray(differences, dtype=np.float64)
        cells = self.variances.size
        d = given.reshape(-1, cells)
        scales, tails = _scales(self.reach)
        shares = np.array([w for w in _SHARES if w >= 0.7 / cells])
        views = [_View(lambda v: _laplace(d, v), self.variances, scales, tails, shares[:, None])]
        if cells > 1:
            sizes, like = block_sizes(self.shape)
            among = np.array([np.minimum(0.99, many * sizes / cells) for many in _BLOCKS if many < 2 * cells])
            apart, variances = to_blocks(d, self.shape), block_variances(self.variances, self.shape)
            views.append(_View(lambda v: _sums(apart, v, like), variances, scales, tails, among))
        odds = [view.odds + np.log((1 - INDEPENDENT) / len(views) / view.odds[0].size) for view in views]
        top = np.maximum(np.log(INDEPENDENT), np.max([o.max(axis=(-2, -1)) for o in odds], axis=0))
        null = np.exp(np.log(INDEPENDENT) - top)
        weights = [np.exp(o - top[:, None, None]) for o in odds]
        total = null + sum(w.sum(axis=(-2, -1)) for w in weights)
        means = [view.mean(w / total[:, None, None]) for view, w in zip(views, weights, strict=True)]
        if cells > 1:
            means[1] = from_blocks(means[1], self.shape)
        moved = np.asarray((null / total)[:, None] * views[0].if_none + sum(means))
        return moved.reshape(given.shape), (null / total).reshape(given.shape[:-1])


class _View:
    """Where some of the numbers differ and others do not: how likely for every share and scale, and what then to expect."""

    def __init__(self, law: Law, variances: Floats, scales: Floats, tails: Floats, shares: Floats) -> None:
        null, mean = law(np.maximum(variances, _LEAST))
        self.if_none, self.shares = mean, shares
        found = [law(variances + scale**2) for scale in scales.tolist()]
        top = np.max([null, *(log for log, _ in found)], axis=0)
        ratios = [np.exp(log - top) for log, _ in found]
        self._none = np.exp(null - top)
        self._some = [sum(t * r for t, r in zip(row, ratios, strict=True)) for row in tails.tolist()]
        moved = [r * m for r, (_, m) in zip(ratios, found, strict=True)]
        self._moved = [sum(t * m for t, m in zip(row, moved, strict=True)) for row in tails.tolist()]
        above = (top - null).sum(axis=-1)
        self.odds = np.stack(
            [
                np.stack([np.log(self._either(share, some)).sum(axis=-1) + above for some in self._some], axis=-1)
                for share in shares
            ],
            axis=-2,
        )

    def _either(self, share: Floats, some: Floats) -> Floats:
        return np.asarray(np.maximum((1 - share) * self._none + share * some, 1e-300))

    def mean(self, weights: Floats) -> Floats:
        """What is expected of every number, the combinations of share and scale weighing so much."""
        out = np.zeros_like(self.if_none)
        for row, share in enumerate(self.shares):
            for column, (some, moved) in enumerate(zip(self._some, self._moved, strict=True)):
                weight = weights[:, row, column, None]
                if float(weight.max()) > 1e-9:
                    either = self._either(share, some)
                    out += weight * ((1 - share) * self._none * self.if_none + share * moved) / either
        return out


@lru_cache(maxsize=64)
def _scales(reach: float) -> tuple[Floats, Floats]:
    """The scales τ, and how each of the first few goes on in the larger ones."""
    last = max(_STARTS - 1, int(np.ceil(np.log2(max(reach, 1.0)))) + 1)
    scales: Floats = 2.0 ** np.arange(-1, last, dtype=np.float64)
    tails = np.array([[2.0 ** (i - j) if j >= i else 0.0 for j in range(scales.size)] for i in range(_STARTS)])
    return scales, tails / tails.sum(axis=1, keepdims=True)


def _laplace(d: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """d = y + Laplace(1), y ~ N(0, v)."""
    from scipy.special import log_ndtr  # slow to import, and only a release or its error needs it

    sd, size = np.sqrt(variances), np.abs(d)
    below = log_ndtr((size - variances) / sd) - size
    above = log_ndtr(-(size + variances) / sd) + size
    top = np.maximum(below, above)
    share_below, share_above = np.exp(below - top), np.exp(above - top)
    total = share_below + share_above
    log = variances / 2 + top + np.log(total / 2)
    return log, np.sign(d) * variances * (share_below - share_above) / total


def _sums(d: Floats, variances: Floats, like: Floats) -> tuple[Floats, Floats]:
    """d = y + noise of variance 2 that is the sum of `like` Laplaces."""
    noise, logs = _mixing(like.tobytes())
    total = noise + variances
    each = (logs - 0.5 * np.log(2 * np.pi * total))[:, None] - d**2 * (0.5 / total)[:, None]
    top = each.max(axis=0)
    parts = np.exp(each - top)
    all_parts = parts.sum(axis=0)
    return top + np.log(all_parts), d * np.einsum("qnk,qk->nk", parts, variances / total) / all_parts


@lru_cache(maxsize=16)
def _mixing(like: bytes) -> tuple[Floats, Floats]:
    """Noise variances of a sum of Laplaces and the logs of their probabilities, as rows: Gauss-Laguerre for Gamma(m)."""
    from scipy.special import roots_genlaguerre

    numbers, place = np.unique(np.frombuffer(like), return_inverse=True)
    noise, parts = np.full((_NODES, numbers.size), 2.0), np.full((_NODES, numbers.size), 1 / _NODES)
    for column, many in enumerate(numbers.tolist()):
        if many < _NORMAL:
            roots, weights = roots_genlaguerre(_NODES, many - 1)
            noise[:, column], parts[:, column] = 2 * roots / many, weights / weights.sum()
    return noise[:, place], np.log(parts)[:, place]
