"""A fitted table without negative cells, and in whole numbers, with margins that still add up. Post-processing only."""

from __future__ import annotations

import numpy as np

from sfumato.statistics.margin_plan import Floats, Precision, cells, subsets

_STEPS = 200
_FEWER = 60  # over a million cells
_CLOSE = 1e-4  # of the error of a cell: what a step may still change when the search stops


def nonnegative(table: Floats, precision: Precision) -> Floats:
    """The table without negative cells that is nearest to a fitted one in the metric of its own errors.

    The number of rows stays as it is (at least 0), so that cutting off what is below 0 does not add rows. In the cosine
    basis the metric is diagonal, so a step of the accelerated projected gradient (Beck & Teboulle 2009) costs two transforms
    and a sort.

    >>> whole = np.array([[6.0, -2.0], [3.0, 1.0]])
    >>> nonnegative(whole, Precision((2, 2), {(0, 1): 1.0})).round(6).tolist()
    [[5.333333, 0.0], [2.333333, 0.333333]]
    """
    from scipy import fft

    total = max(float(table.sum()), 0.0)
    if total == 0 or float(table.min()) >= 0:
        return np.maximum(table, 0.0) if total else np.zeros_like(table)
    every = tuple(range(table.ndim))
    weight = np.ones(table.shape)
    for effect in subsets(every):
        if any(table.shape[i] == 1 for i in effect):
            continue
        block = tuple(slice(1, None) if i in effect else 0 for i in every)
        weight[block] = cells(table.shape, [i for i in every if i not in effect]) / precision.tau(effect)
    weight /= weight.max()
    close = _CLOSE * float(np.sqrt(precision.variance(every)))
    current = ahead = _on_simplex(table, total)
    momentum = 1.0
    for _ in range(_STEPS if table.size <= 1_000_000 else _FEWER):
        slope = fft.idctn(weight * fft.dctn(ahead - table, norm="ortho"), norm="ortho")
        before, current = current, _on_simplex(ahead - slope, total)
        step = current - before
        if float(np.abs(step).max()) <= close:
            break
        momentum, last = (1 + np.sqrt(1 + 4 * momentum**2)) / 2, momentum
        ahead = current + (last - 1) / momentum * step
    return current


def _on_simplex(values: Floats, total: float) -> Floats:
    """The nearest table with this sum and nothing below 0: subtract one number, cut at 0."""
    high = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(high) - total) / np.arange(1, high.size + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(high > excess)[-1]], 0.0))


def whole(table: Floats) -> Floats:
    """The table in whole numbers: every cell goes to one of its two neighbours, and so do the total, the margin of the first
    column, of the first two, and so on; what is left to choose goes to the largest remainders.

    >>> whole(np.array([[0.6, 0.6], [0.6, 1.4]])).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    whole_part = np.asarray(np.rint(table.sum()))
    for depth in range(1, table.ndim + 1):
        wanted = table.sum(axis=tuple(range(depth, table.ndim)))
        floors = np.floor(wanted)
        up = np.clip(np.rint(whole_part - floors.sum(axis=-1)), 0, wanted.shape[-1])
        order = np.argsort(-(wanted - floors), axis=-1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(wanted.shape[-1]), wanted.shape).copy(), axis=-1)
        whole_part = floors + (rank < up[..., None])
    return np.asarray(whole_part)
