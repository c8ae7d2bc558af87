"""The lowest point of a smooth convex function of many variables: limited-memory BFGS.

Liu & Nocedal, *On the limited memory BFGS method for large scale optimization*, 1989. Written out here because without
bounds on the variables it is short, and several times faster than a general routine that allows for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from sfumato.grids.graphical.marginal import Floats

_MEMORY = 20  # pairs of steps and changes of the gradient
_FALL = 1e-4  # share of the fall that the slope promises which a step must keep
_MOST_CUTS = 30  # of one step, before rounding is all that is left


def lowest(function: Callable[[Floats], tuple[float, Floats]], start: Floats, *, near: float, steps: int) -> Floats:
    """Where a convex function is lowest, as far as no part of its gradient is above `near`.

    Parameters
    ----------
    function : callable
        Gives the value and the gradient at a point.
    start : float array
        Where to begin.
    near : float
        Stop when the gradient is nowhere larger.
    steps : int
        Stop after so many steps.

    Returns
    -------
    float array

    Examples
    --------
    >>> def bowl(x):
    ...     return float(((x - 1) ** 2 * [1, 100]).sum()), 2 * (x - 1) * [1, 100]
    >>> lowest(bowl, np.zeros(2), near=1e-9, steps=50).round(6).tolist()
    [1.0, 1.0]
    """
    x = start
    value, slope = function(x)
    memory: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for _ in range(steps):
        if np.abs(slope).max(initial=0.0) <= near:
            break
        way = _way(slope, memory)
        promised = float(slope @ way)
        length = 1.0
        for _ in range(_MOST_CUTS):
            there, new = function(x + length * way)
            if there <= value + _FALL * length * promised:
                break
            # The parabola through both values and the slope has its lowest point here.
            fitted = -promised * length**2 / (2 * (there - value - promised * length)) if np.isfinite(there) else 0.0
            length = min(max(fitted, 0.1 * length), 0.5 * length)
        else:
            break
        moved, bent = length * way, new - slope
        curved = float(moved @ bent)
        if curved > 1e-12 * float(bent @ bent):
            memory.append((moved, bent, curved))
        x, value, slope = x + moved, there, new
    return x


def _way(slope: Floats, memory: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The step that the remembered curvature asks for: the two loops of the paper."""
    way = -slope
    shares = []
    for moved, bent, curved in reversed(memory):
        share = float(moved @ way) / curved
        shares.append(share)
        way = way - share * bent
    if memory:
        _, bent, curved = memory[-1]
        way = way * (curved / float(bent @ bent))
    for (moved, bent, curved), share in zip(memory, reversed(shares), strict=True):
        way = way + (share - float(bent @ way) / curved) * moved
    return np.asarray(way)
