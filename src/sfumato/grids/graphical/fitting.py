"""Fit one distribution over all columns to noisy marginals over some of them.

The idea is that of private-pgm (McKenna, Sheldon & Miklau, *Graphical-model based estimation and inference for differential
privacy*, ICML 2019): among distributions whose interactions are within the measured sets, take the one whose marginals are
nearest to the noisy ones in squares weighted by their precision. Its parameters live on a junction tree, so nothing as large
as the table's domain is ever made.

Here the squares stand beside a weak prior. With T records and shares q of the columns by themselves,

    minimise  T · KL(p ‖ q)  +  Σ over marginals  ‖T · M p − y‖² / (2 s)

over distributions p. Its dual is the likelihood of a log-linear model with a quadratic penalty,

    T · A(θ) − ⟨θ, y⟩ + Σ s ‖θ‖² / 2,      p = q · exp(Σ θ − A(θ)),

which is smooth and strongly convex: one optimum, found by a quasi-Newton method in some dozens of passes over the tree. In
a cell by itself it says ``n + s · log(n / m) = y`` where independence expects m (see `shrinking`): squares alone fit noise
in cells that hold nothing. Each marginal has the softness s that suits it, by the estimated error of that equation with the
m that follows from what was measured of fewer of its columns; those of one column have the scale of Laplace noise. (A loss
that grows linearly beyond some noise, as the likelihood of Laplace noise has it, bounds θ and with it how clearly a cell can
be empty; it came out no better.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.graphical.beliefs import Loglinear
from sfumato.grids.graphical.descent import lowest
from sfumato.grids.graphical.fitted import Fitted, in_order
from sfumato.grids.graphical.marginal import Floats, Marginal, merged, shape_of, spread, summed, total_of
from sfumato.grids.graphical.shrinking import best_softness, shrunk
from sfumato.grids.graphical.tree import MOST_CELLS, junction_tree
from sfumato.grids.published.cleaning import clean

MOST_STEPS = 300
_NEAR, _NEAREST, _SMALL = 0.3, 0.003, 30_000  # gaps to the optimum, in √(count + s); the cells from which the first will do
_FLOOR = 0.1  # of the noise: a value that nobody seems to have keeps this much, since no count rules it out


def fit(
    sizes: Sequence[int], marginals: Sequence[Marginal], *, total: float | None = None, start: Fitted | None = None
) -> Fitted:
    """The distribution over all columns that fits the noisy `marginals`.

    Parameters
    ----------
    sizes : sequence of int
        Values per column.
    marginals : sequence of Marginal
        Noisy counts; the same columns may be measured several times, and columns may be in none.
    total : float, optional
        The number of records where it is public; else estimated from the marginals by inverse variance.
    start : Fitted, optional
        An earlier fit to begin from, to some of the same marginals; the result is the same, sooner.

    Returns
    -------
    Fitted

    Examples
    --------
    >>> seen = [Marginal((0, 1), np.array([[40.0, 1.0], [-2.0, 61.0]]), 1.0), Marginal((2,), np.array([30.0, 70.0]), 1.0)]
    >>> model = fit([2, 2, 2], seen)
    >>> model.cliques, model.marginal([0, 1]).round(0).tolist()
    (((0, 1), (2,)), [[39.0, 1.0], [0.0, 60.0]])
    """
    sizes = tuple(int(s) for s in sizes)
    for m in marginals:
        shape = m.counts.shape if m.groups is None else tuple(g.size for g in m.groups)
        if any(c >= len(sizes) for c in m.columns) or shape != shape_of(sizes, m.columns):
            raise InputError(f"the marginal over columns {m.columns} does not have the shape that their sizes say")
    if total is not None and not (np.isfinite(total) and total > 0):
        raise InputError(f"a public number of records must be positive, got {total}")
    if start is not None and start.sizes != sizes:
        raise InputError(f"the earlier fit is over columns of sizes {start.sizes}, these are of sizes {sizes}")
    found = sorted((m for m in merged(marginals) if m.columns), key=lambda m: (len(m.columns), m.columns))
    whole = total_of(marginals) if total is None else float(total)
    sets = in_order({m.columns for m in found})
    tree = junction_tree(sizes, sets)
    if tree.cells > MOST_CELLS:
        raise InputError(
            f"the junction tree of these marginals has {tree.cells:,} cells, at most {MOST_CELLS:,} are kept: "
            "leave out some of those that overlap (`cost` tells beforehand)"
        )
    base = tuple(np.log(own_shares(j, size, found, whole)) for j, size in enumerate(sizes))
    model = Loglinear(tree, base, sets)
    aims = [replace(m, counts=_with_total(m.counts, whole)) for m in found]
    expected = [_expected(m, aims, base, whole) for m in aims]
    soft = [_softness(m, e) for m, e in zip(aims, expected, strict=True)]
    theta = _minimised(model, aims, soft, whole, _first(aims, expected, soft, start))
    return Fitted(sizes, whole, base, dict(zip(sets, theta, strict=True)))


def own_shares(column: int, size: int, marginals: Sequence[Marginal], total: float) -> Floats:
    """Shares of one column's values, all positive, from every marginal that holds it, by inverse variance.

    >>> seen = [Marginal((0,), np.array([90.0, 12.0, -2.0]), 2.0)]
    >>> own_shares(0, 3, seen, 100.0).round(2).tolist()
    [0.89, 0.11, 0.0]
    """
    holding = [m for m in marginals if column in m.columns and m.groups is None]
    if not holding:
        return np.full(size, 1.0 / size)
    counts, precision = np.zeros(size), 0.0
    for m in holding:
        weight = size / (m.counts.size * m.noise**2)
        counts += weight * summed(m.counts, m.columns, (column,))
        precision += weight
    noise = precision**-0.5
    cleaned = clean(counts / precision, how="norm-sub", scale=noise, total=total) + _FLOOR * noise
    return np.asarray(cleaned / cleaned.sum())


def _with_total(counts: Floats, total: float) -> Floats:
    """The nearest counts that add up to the total."""
    return np.asarray(counts - (counts.sum() - total) / counts.size)


def _expected(aim: Marginal, aims: Sequence[Marginal], base: Sequence[Floats], total: float) -> Floats:
    """What a marginal would be by what was measured of fewer of its columns, or by these columns' own shares."""
    inner = [m for m in aims if set(m.columns) < set(aim.columns)]
    shape = tuple(base[c].size for c in aim.columns)
    if max((len(m.columns) for m in inner), default=0) < 2:
        shares = np.exp(sum(spread(base[c], (c,), aim.columns) for c in aim.columns))
        return aim.in_groups(total * shares)
    places = [replace(m, columns=tuple(aim.columns.index(c) for c in m.columns)) for m in inner]
    return aim.in_groups(fit(shape, places, total=total).marginal(range(len(shape))))


def _softness(aim: Marginal, expected: Floats) -> float:
    if len(aim.columns) == 1:
        return float(aim.noise / np.sqrt(2.0))
    return best_softness(aim.counts, expected, aim.noise)


def _first(
    aims: Sequence[Marginal], expected: Sequence[Floats], softness: Sequence[float], start: Fitted | None
) -> list[Floats]:
    """Where to begin: what an earlier fit had; for new marginals, the closed form that holds for each by itself."""
    known = {} if start is None else start.potentials
    theta = []
    for aim, without, soft in zip(aims, expected, softness, strict=True):
        alone = sum(other.columns == aim.columns for other in aims) == 1
        if aim.columns in known and alone:
            first = known[aim.columns]
            for axis, group in enumerate(aim.groups or ()):
                first = first.take(np.unique(group, return_index=True)[1], axis=axis)
            theta.append(first)
        elif len(aim.columns) == 1 or not alone:
            theta.append(np.zeros_like(aim.counts))
        else:
            theta.append(shrunk(aim.counts, without, soft))
    return theta


def _minimised(
    model: Loglinear, aims: Sequence[Marginal], softness: Sequence[float], total: float, first: Sequence[Floats]
) -> list[Floats]:
    """The dual's minimum, in coordinates in which every cell curves about alike."""
    if not aims:
        return []
    ends = np.cumsum([a.counts.size for a in aims])[:-1]
    y = np.concatenate([a.counts.reshape(-1) for a in aims])
    s = np.repeat(softness, [a.counts.size for a in aims])
    scale = 1.0 / np.sqrt(np.maximum(y, 0.0) + s)
    place = {columns: i for i, columns in enumerate(model.sets)}

    def tables(z: Floats) -> list[Floats]:
        found: list[Floats | None] = [None] * len(model.sets)
        for aim, part in zip(aims, np.split(z * scale, ends), strict=True):
            mine, i = aim.by_value(part.reshape(aim.counts.shape)), place[aim.columns]
            before = found[i]
            found[i] = mine if before is None else before + mine
        return [f for f in found if f is not None]

    def dual(z: Floats) -> tuple[float, Floats]:
        beliefs, whole = model.beliefs(tables(z))
        shares = model.marginals(beliefs)
        found = np.concatenate([a.in_groups(shares[place[a.columns]]).reshape(-1) for a in aims])
        theta = z * scale
        value = total * whole - theta @ y + 0.5 * (s * theta) @ theta
        return float(value), (total * found - y + s * theta) * scale

    near = max(_NEAREST, _NEAR * min(1.0, model.tree.cells / _SMALL))
    begin = np.concatenate([f.reshape(-1) for f in first]) / scale
    return tables(lowest(dual, begin, near=near, steps=MOST_STEPS))
