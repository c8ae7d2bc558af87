"""How good a grid is for classification, and how much one person can change that.

The score of a grid is the expected number of records that the noisy histogram classifies correctly (Su et al. 2018, Eq.
1; with more than two classes the top-two form, Eq. 5). For the two largest class counts a >= b of a cell and Laplace
noise of rate ε,

    score = Σ_cells a - h(a - b),    h(d) = d e^{-εd}/2 (1 + εd/2),

h being the expected number of records lost because the noise turns the cell round.

**Change.** One more record raises a by one (change ``1 - h(d+1) + h(d)``), raises b by one (``h(d) - h(d-1)``; a rival
third class that ties with b counts as b), or touches neither (0). So every score moves by an amount in [low, high] read
off the table of h; with the paper's h that is [-0.0889, 1.0889]. The exponential choice loses rate times the *spread*
high - low (see `privacy.noise`), not twice the sensitivity: 1.178 where the paper pays 2.2. A record of weight w makes
w such unit steps, so its changes lie in [w low, w high].

**Exactness.** h is tabulated once as integers of 2**-16 record, the scores are integer sums, and the spread is the
maximum minus the minimum over *that table*: no floating-point rounding has to be argued away. Beyond the table h is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.units import NANO

SCALE = 1 << 16
PAPER_DENOMINATOR = 2.2
_LONGEST = 1 << 24  # entries of the table; reached for ε below 2e-6 per unit


@dataclass(frozen=True, eq=False)
class Quality:
    """Scores for one noise rate (nano-ε per unit).

    Examples
    --------
    >>> quality = Quality.of(10**8)
    >>> round(quality.spread, 3), round(quality.high, 4), round(quality.low, 4)
    (1.178, 1.0889, -0.0889)
    >>> table = np.array([[30, 2], [10, 90]])           # class by cell
    >>> round(float(quality.score(table)), 2)
    117.26
    """

    lost: NDArray[np.int64]
    high: float
    low: float

    @classmethod
    def of(cls, rate: int) -> Quality:
        """The table for counts that get noise of this rate."""
        epsilon = rate / NANO
        if epsilon <= 0:
            raise InputError("the noise rate of the counts must be positive")
        # h falls below half a unit of 2**-16 before εd = 18 + ln(1/ε); one more entry makes the table end in 0.
        length = int(min(_LONGEST, np.ceil((20.0 + 2.0 * max(0.0, -np.log(epsilon))) / epsilon))) + 2
        d = np.arange(length, dtype=np.float64)
        lost = np.rint(SCALE * d * 0.5 * np.exp(-epsilon * d) * (1.0 + epsilon * d / 2.0)).astype(np.int64)
        lost[-1] = 0
        rise = np.diff(lost)
        grow = SCALE - rise  # the leading class gains a record
        catch_up = rise  # the second class gains one: d + 1 -> d
        # d beyond the table: changes SCALE and 0.
        high = max(int(grow.max()), int(catch_up.max()), SCALE)
        low = min(int(grow.min()), int(catch_up.min()), 0)
        return cls(lost, high / SCALE, low / SCALE)

    @property
    def spread(self) -> float:
        """Largest minus smallest change that one unit of weight makes to any score; exact (a dyadic number)."""
        return self.high - self.low

    def units(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
        """Score per cell in units of 2**-16, from the largest and second largest class count."""
        gap = np.minimum(first - second, self.lost.size - 1)
        return np.asarray(first * SCALE - self.lost[gap])

    def score(self, table: NDArray[np.int64]) -> np.float64:
        """Score of one grid from its counts, class by class (classes on the first axis)."""
        first, second = top_two(table)
        return np.float64(self.units(first, second).sum() / SCALE)


def top_two(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two largest counts of every cell; classes on the first axis.

    >>> [x.tolist() for x in top_two(np.array([[1, 5], [4, 5], [3, 9]]))]
    [[4, 9], [3, 5]]
    """
    first, second = np.maximum(table[0], table[1]), np.minimum(table[0], table[1])
    for other in table[2:]:
        second = np.maximum(second, np.minimum(first, other))
        first = np.maximum(first, other)
    return first, second


def exact_score(table: NDArray[np.int64], rate: int, *, nodes: int = 400) -> float:
    """Equation 1 for any number of classes by quadrature (for experiments: its change is not bounded here).

    >>> table = np.array([[30, 2], [10, 90]])
    >>> abs(exact_score(table, 10**8) - float(Quality.of(10**8).score(table))) < 0.01
    True
    """
    epsilon = rate / NANO
    counts = np.asarray(table, dtype=np.float64).reshape(table.shape[0], -1)
    x, weight = np.polynomial.legendre.leggauss(nodes)
    total = 0.0
    for own in range(counts.shape[0]):
        # p_i = ∫ f(z) Π_j F(z + n_i - n_j) dz over z, split at 0 where the density has its kink; u = F(z) is uniform.
        u = (x + 1.0) / 2.0
        z = np.where(u < 0.5, np.log(2.0 * np.minimum(u, 0.5)), -np.log(2.0 * np.minimum(1.0 - u, 0.5))) / epsilon
        wins = np.ones((nodes, counts.shape[1]))
        for other in range(counts.shape[0]):
            if other != own:
                y = epsilon * (z[:, None] + counts[own] - counts[other])
                wins *= np.where(y < 0, 0.5 * np.exp(np.minimum(y, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(y, 0.0)))
        total += float((counts[own] * (weight[:, None] / 2.0 * wins).sum(axis=0)).sum())
    return total
