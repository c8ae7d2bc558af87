"""Noisy counts of all combinations of values of a few columns, and arrays whose axes are columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Floats = NDArray[np.float64]
Columns = tuple[int, ...]
Groups = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, eq=False)
class Marginal:
    """Noisy counts over a few columns.

    Parameters
    ----------
    columns : tuple of int
        Which columns, ascending.
    counts : float64 array
        One axis per column; noisy, so some may be negative.
    noise : float
        Standard deviation of the noise on each count, above 0.
    groups : tuple of int64 arrays, optional
        Where values were counted in groups: per column, the group of each value.

    Examples
    --------
    >>> Marginal((0, 2), np.array([[3.0, -1.0], [2.0, 8.0]]), 1.5).total
    12.0
    """

    columns: Columns
    counts: Floats
    noise: float
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if any(a >= b for a, b in zip(self.columns, self.columns[1:], strict=False)) or (
            self.columns and self.columns[0] < 0
        ):
            raise InputError(f"the columns of a marginal are numbers in ascending order, each once; got {self.columns}")
        if self.counts.ndim != len(self.columns):
            raise InputError(f"a marginal over {len(self.columns)} columns needs as many axes, got {self.counts.ndim}")
        if not (np.isfinite(self.noise) and self.noise > 0):
            raise InputError(f"the noise of a marginal is a positive standard deviation, got {self.noise}")
        if not np.isfinite(self.counts).all():
            raise InputError("the counts of a marginal must be finite numbers")
        if self.groups is not None and self.counts.shape != tuple(int(g.max()) + 1 for g in self.groups):
            raise InputError("a marginal in groups needs a count for every combination of groups")

    @property
    def total(self) -> float:
        """All counts together: an estimate of the number of records, with variance ``cells · noise²``."""
        return float(self.counts.sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` reads them back."""
        groups = None if self.groups is None else [g.tolist() for g in self.groups]
        return {"columns": list(self.columns), "counts": self.counts.tolist(), "noise": self.noise, "groups": groups}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Marginal:
        """The marginal that `to_dict` wrote down as `data`.

        >>> Marginal.from_dict(Marginal((1,), np.array([2.0, -0.5]), 0.1).to_dict()).counts.tolist()
        [2.0, -0.5]
        """
        groups = None if data["groups"] is None else tuple(np.array(g, dtype=np.int64) for g in data["groups"])
        return cls(tuple(data["columns"]), np.array(data["counts"], dtype=np.float64), float(data["noise"]), groups)

    @property
    def key(self) -> tuple[Columns, tuple[bytes, ...]]:
        """What was counted: the columns, and how their values were grouped."""
        return self.columns, () if self.groups is None else tuple(g.astype("<i8").tobytes() for g in self.groups)

    def in_groups(self, array: Floats) -> Floats:
        """An array over the columns' values, summed in the groups of this marginal.

        >>> rough = Marginal((0,), np.array([1.0, 2.0]), 1.0, (np.array([0, 1, 0]),))
        >>> rough.in_groups(np.array([1.0, 2.0, 4.0])).tolist(), rough.by_value(np.array([7.0, 8.0])).tolist()
        ([5.0, 2.0], [7.0, 8.0, 7.0])
        """
        for axis, group in enumerate(self.groups or ()):
            if group.size == self.counts.shape[axis]:  # every value is a group: at most their order differs
                order = np.empty_like(group)
                order[group] = np.arange(group.size)
                array = array.take(order, axis=axis)
            else:
                order = np.argsort(group, kind="stable")
                starts = np.searchsorted(group[order], np.arange(self.counts.shape[axis]))
                array = np.add.reduceat(array.take(order, axis=axis), starts, axis=axis)
        return array

    def by_value(self, array: Floats) -> Floats:
        """An array over the groups of this marginal, repeated for every value in them."""
        return array if self.groups is None else array[np.ix_(*self.groups)]


def merged(marginals: Iterable[Marginal]) -> list[Marginal]:
    """One marginal per set of columns and groups: what was measured twice is averaged by inverse variance.

    >>> twice = [Marginal((0,), np.array([4.0]), 1.0), Marginal((0,), np.array([8.0]), 1.0)]
    >>> found = merged(twice)[0]
    >>> found.counts.tolist(), round(found.noise, 3)
    ([6.0], 0.707)
    """
    found: dict[Any, Marginal] = {}
    for m in marginals:
        if m.key in found:
            other = found[m.key]
            a, b = other.noise**-2, m.noise**-2
            m = Marginal(m.columns, (a * other.counts + b * m.counts) / (a + b), float((a + b) ** -0.5), m.groups)
        found[m.key] = m
    return list(found.values())


def total_of(marginals: Iterable[Marginal]) -> float:
    """The number of records, from the totals of all marginals by inverse variance; at least a small positive number.

    >>> total_of([Marginal((0,), np.array([4.0, 8.0]), 1.0), Marginal((), np.array(6.0), 1.0)])
    8.0
    """
    found = [(m.total, 1.0 / (m.counts.size * m.noise**2)) for m in marginals]
    weight = sum(w for _, w in found)
    return max(sum(t * w for t, w in found) / weight, 1e-6) if found else 1.0


def summed(array: Floats, columns: Columns, kept: Columns) -> Floats:
    """The `array` over `columns`, summed to those that are `kept`, with axes in their order.

    >>> summed(np.arange(6.0).reshape(2, 3), (1, 4), (4,)).tolist()
    [3.0, 5.0, 7.0]
    >>> summed(np.zeros((2, 3, 4)), (7, 4, 5), (5, 7)).shape
    (4, 2)
    """
    gone = tuple(i for i, c in enumerate(columns) if c not in kept)
    left = [c for c in columns if c in kept]
    table = np.asarray(array.sum(axis=gone)) if gone else array
    return table.transpose([left.index(c) for c in kept])


def spread(array: Floats, columns: Columns, over: Columns) -> Floats:
    """The `array` over `columns` in a shape that broadcasts `over` more columns, in any order.

    >>> spread(np.zeros((2, 3)), (1, 4), (0, 4, 1, 5)).shape
    (1, 3, 2, 1)
    """
    inside = [columns.index(c) for c in over if c in columns]
    sizes = iter(inside)
    return array.transpose(inside).reshape([array.shape[next(sizes)] if c in columns else 1 for c in over])


def shape_of(sizes: Sequence[int], columns: Columns) -> tuple[int, ...]:
    """The shape of an array over these columns.

    >>> shape_of([4, 2, 3], (0, 2))
    (4, 3)
    """
    return tuple(sizes[c] for c in columns)
