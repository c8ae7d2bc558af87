"""The two scores of PrivBayes: how much a column depends on its parents, in counts of records.

Zhang, Cormode, Procopiuc, Srivastava & Xiao (SIGMOD 2014) use F where all columns are binary and R for general ones.
Both replace mutual information, which one record can move by far more. Their sensitivities (1/n for F, about 3/n for R)
hold for a fixed public n and replacement; the ones below are for a record that is there or not, on integer counts.

**R** is ``½ Σ |n_xπ - n_x n_π / n|``. One more record moves n_xπ by one in one cell and the product term by at most 3
in L1 norm (write it n p_x p_π and expand), so R moves by at most 2 either way: spread 4, plus two units for rounding
down to 2**-16.

**F** is minus the distance to the nearest table in which the parents fix a fair x. Let an assignment `a` send every
parent cell π to 0 or 1, let ``K_v`` be the records with ``x = v = a(π)``, and ``G_a = (n - 2K_0)⁺ + (n - 2K_1)⁺``. The
score, in half records so that it is a whole number, is ``-min_a G_a``. Add a record (x, π), so that n grows by one:

- if a(π) = x, then K_x grows too: n - 2K_x falls by 1 and the other term's n - 2K rises by 1, so G_a moves by -1 to 1;
- otherwise both K stay: both terms rise by 0 or 1, so G_a moves by 0 to 2.

Every G_a thus moves by an amount in [-1, 2], hence so does their minimum, and the score by one in [-2, 1]: spread 3 half
records. Nothing is rounded. Both ends occur, even for two candidates on the same table (see the tests), so 3 is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.search.quality import SCALE

R_SPREAD = 4.0 + 2.0 / SCALE
F_SPREAD = 3.0
_UNREACHED = -(1 << 40)


def dependence(joint: NDArray[np.int64]) -> float:
    """R: ``½ Σ |n_xπ - n_x n_π / n|`` for a table x by π, rounded down to a multiple of 2**-16.

    >>> dependence(np.array([[5, 0], [0, 5]])), dependence(np.array([[4, 4], [4, 4]]))
    (5.0, 0.0)
    """
    n = int(joint.sum())
    if n == 0:
        return 0.0
    exact = joint if n < 1 << 30 else joint.astype(object)  # Python's integers, where products pass 64 bits
    gaps = np.abs(n * exact - exact.sum(axis=1, keepdims=True) * exact.sum(axis=0, keepdims=True))
    return float(sum(gaps.reshape(-1).tolist()) * SCALE // (2 * n)) / SCALE


def fixed_by_parents(joint: NDArray[np.int64]) -> float:
    """F: ``-min_a (n - 2K_0)⁺ + (n - 2K_1)⁺`` in half records, for a table of two rows (x) by parent cells.

    Parent cells are taken one after the other, keeping for every K_0 that can be reached (all beyond n/2 are alike) the
    largest K_1: n/2 steps per cell instead of two to the number of cells.

    >>> fixed_by_parents(np.array([[5, 0], [0, 5]])), fixed_by_parents(np.array([[4, 4], [4, 4]]))
    (0.0, -16.0)
    """
    if joint.shape[0] != 2:
        raise InputError(f"the score F needs a column of two values, this one has {joint.shape[0]}; use the score R")
    n = int(joint.sum())
    top = (n + 1) // 2
    best = np.full(top + 1, _UNREACHED, dtype=np.int64)
    best[0] = 0
    for zeros, ones in joint.T.tolist():
        step = min(zeros, top)
        taken = np.full_like(best, _UNREACHED)
        taken[step:] = best[: top + 1 - step]
        taken[top] = best[top - step :].max()
        best = np.maximum(best + ones, taken)
    reached = np.flatnonzero(best >= 0)
    short = np.maximum(n - 2 * reached, 0) + np.maximum(n - 2 * best[reached], 0)
    return float(-short.min())
