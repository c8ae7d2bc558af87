"""Sums of groups that lend each other strength: empirical Bayes on noisy numbers of either sign.

The prior over sums is learned from all groups (`histograms.estimation.npmle` does the same for counts, which are whole and
not negative): nonparametric maximum likelihood by EM on a grid, started from a mixture of "zero" and "anywhere". A sum
further than `REACH` noise scales from 0, or from the middle of all, keeps its noisy figure: its prior is locally flat. All
of it is post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.estimation.npmle import fit_prior

Floats = NDArray[np.float64]
REACH = 60.0  # noise scales on either side of 0 or of the middle on which the prior is learned
STEPS, PULL = 60, 10.0
FEWEST = 20
_STEP, _CELL = 0.25, 0.1


def shrunk_line(values: Floats, scale: float, *, least: float, most: float) -> tuple[Floats, Floats]:
    """Posterior means and errors of numbers between `least` and `most` (infinite where unknown), seen with Laplace noise.

    >>> seen = np.concatenate([np.linspace(-3, 3, 50), [400.0]])
    >>> means, errors = shrunk_line(seen, 1.0, least=0.0, most=np.inf)
    >>> bool(means.min() >= 0), float(means[-1]), bool(errors[:50].max() < np.sqrt(2))
    (True, 400.0, True)
    """
    held = np.clip(values, least, most)
    errors = np.full(values.size, np.sqrt(2) * scale)
    z = values / scale
    # Around 0, where empty and small groups are, or around the middle of all: wherever more of them lie.
    near = max((np.abs(z - centre) <= REACH for centre in (0.0, float(np.median(z)))), key=lambda some: int(some.sum()))
    if int(near.sum()) < FEWEST:
        return held, errors
    low, high = max(float(z[near].min()), least / scale), min(float(z[near].max()), most / scale)
    if not low < high:
        return held, errors
    grid = np.linspace(low, high, max(2, int(np.ceil((high - low) / _STEP)) + 1))
    if low < 0 < high:
        grid = np.sort(np.append(grid, 0.0))  # an empty group has the sum 0
    code, member = np.unique(np.rint(z[near] / _CELL), return_inverse=True)
    kernel = np.maximum(np.exp(-np.abs(code[:, None] * _CELL - grid)), 1e-300)
    start = np.full(grid.size, 0.7 / grid.size)
    start[np.abs(grid).argmin()] += 0.3
    counts = np.bincount(member.reshape(-1)).astype(np.float64)
    joint = kernel * fit_prior(kernel, counts, start, steps=STEPS, pull=PULL)
    evidence = joint.sum(axis=1)
    mean = joint @ grid / evidence
    spread = np.sqrt(np.maximum(joint @ grid**2 / evidence - mean**2, 0.0))
    held[near], errors[near] = mean[member.reshape(-1)] * scale, spread[member.reshape(-1)] * scale
    return held, errors
