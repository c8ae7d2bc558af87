"""Least squares over measured margins: one table that all margins are sums of, found effect by effect.

The cosine transform of a margin is an orthonormal basis in which the effects of `margin_plan` are blocks: a coefficient with
the index 0 in some columns belongs to the effect of the others. So the least squares estimate is one transform for every
measured margin, a weighted mean of every block, and one transform back for every margin wanted. Never a matrix; the largest
array is the largest margin.

Everything here is post-processing of noisy margins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.statistics.margin_plan import Columns, Floats, Precision, cells, subsets

Effects = dict[Columns, Floats]


def effects(noisy: Mapping[Columns, Floats], precision: Precision) -> Effects:
    """The best estimate of every effect that the measured margins show, as blocks of cosine coefficients.

    Parameters
    ----------
    noisy : mapping of columns to float array
        The measured margins, one axis per column.
    precision : Precision
        How good each of them is.

    Returns
    -------
    dict of columns to float array
    """
    from scipy import fft  # slow to import

    found: Effects = {}
    for measured, counts in noisy.items():
        whole = fft.dctn(counts, norm="ortho") if counts.ndim else np.asarray(counts, dtype=np.float64)
        for effect in subsets(measured):
            rest = cells(precision.shape, [i for i in measured if i not in effect])
            block = whole[_block(measured, effect)] * (np.sqrt(rest) * precision.weight(measured, effect))
            found[effect] = found[effect] + block if effect in found else block
    return found


def margin_of(found: Effects, shape: Sequence[int], margin: Columns) -> Floats:
    """The counts of a margin from the effects.

    >>> counts = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    >>> parts = effects({(0, 1): counts}, Precision((2, 3), {(0, 1): 1.0}))
    >>> margin_of(parts, (2, 3), (1,)).round(9).tolist(), float(margin_of(parts, (2, 3), ()).round(9))
    ([3.0, 6.0, 6.0], 15.0)
    """
    from scipy import fft

    whole = np.zeros([shape[i] for i in margin])
    for effect in subsets(margin):
        if any(shape[i] == 1 for i in effect):  # of which nothing is left
            continue
        rest = cells(shape, [i for i in margin if i not in effect])
        whole[_block(margin, effect)] = found[effect] / np.sqrt(rest)
    return np.asarray(fft.idctn(whole, norm="ortho") if margin else whole)


def _block(of: Columns, effect: Columns) -> tuple[slice | int, ...]:
    """Where the coefficients of an effect are in the transform of a margin."""
    return tuple(slice(1, None) if i in effect else 0 for i in of)


def summed(table: NDArray[Any], columns: Columns, margin: Columns) -> NDArray[Any]:
    """The counts of a margin of `columns`, by adding up a table over them; axes in the order of the margin."""
    kept = table.sum(axis=tuple(place for place, i in enumerate(columns) if i not in margin))
    order = [i for i in columns if i in margin]
    return np.asarray(np.transpose(kept, [order.index(i) for i in margin]) if margin else kept)
