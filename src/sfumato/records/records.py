"""Coded records and the counts of one grid. All sums are 64-bit integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.records.levels import Levels

Table = NDArray[np.int64]
Grid = tuple[tuple[int, int], ...]  # (attribute, level) pairs, in the order of the attributes


@dataclass(frozen=True, eq=False)
class Records:
    """Coded rows: the leaf of every attribute, the class, and how much the row weighs.

    Parameters
    ----------
    taxonomies : tuple of Levels
        The levels of each attribute.
    leaves : integer array, rows by attributes
        The leaf of each attribute; column-major is fastest.
    classes : integer array
        The number of each row's class.
    weights : int64 array, optional
        Number of records (or their total weight) behind each row; 1 if left out.
    class_labels : tuple of str
        The classes by name.

    Examples
    --------
    >>> taxonomies = (Levels.numeric("age", [0, 20, 40, 60, 80]), Levels.flat("sex", ["F", "M"]))
    >>> rows = Records(taxonomies, np.array([[0, 0], [1, 1], [3, 1]]), np.array([0, 1, 1]), ("no", "yes"))
    >>> rows.table(((0, 1), (1, 1)))[1].tolist()
    [[0, 1], [0, 1]]
    """

    taxonomies: tuple[Levels, ...]
    leaves: NDArray[np.integer]
    classes: NDArray[np.integer]
    class_labels: tuple[str, ...]
    weights: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.leaves.ndim != 2 or self.leaves.shape[1] != len(self.taxonomies):
            raise InputError(f"{len(self.taxonomies)} taxonomies for a table of shape {self.leaves.shape}")
        if self.classes.shape != (len(self.leaves),):
            raise InputError("one class per row is needed")
        if len(self.class_labels) < 2:
            raise InputError("classification needs a target with at least two classes")

    @property
    def total(self) -> int:
        """Total weight (the number of records if all weigh one). Private."""
        return len(self.leaves) if self.weights is None else int(self.weights.sum())

    def table(self, grid: Grid) -> Table:
        """Counts of `grid`, (attribute, level) pairs: classes first, then one axis per attribute."""
        shape = tuple(self.taxonomies[j].sizes[level] for j, level in grid)
        code = self.classes.astype(np.int64)
        for (j, level), size in zip(grid, shape, strict=True):
            code = code * size + self.taxonomies[j].maps[level][self.leaves[:, j]]
        k = len(self.class_labels)
        return weighted_bincount(code, self.weights, k * prod(shape)).reshape(k, *shape)

    def expanded(self) -> Records:
        """Every record as a row of its own, where the weights are numbers of records.

        >>> rows = Records((Levels.flat("sex", ["F", "M"]),), np.array([[0], [1]]), np.array([0, 1]), ("no", "yes"))
        >>> replace(rows, weights=np.array([1, 2])).expanded().leaves[:, 0].tolist()
        [0, 1, 1]
        """
        if self.weights is None:
            return self
        rows = np.repeat(np.arange(len(self.leaves)), self.weights)
        return replace(self, leaves=np.asfortranarray(self.leaves[rows]), classes=self.classes[rows], weights=None)

    def compressed(self) -> Records:
        """Equal rows merged: fewer rows to pass over when the domain is small."""
        code = self.classes.astype(np.int64)
        for j, t in enumerate(self.taxonomies):
            if code.size and int(code.max()) * t.leaves >= 1 << 62:
                return self
            code = code * t.leaves + self.leaves[:, j]
        _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        weights = weighted_bincount(inverse.reshape(-1), self.weights, first.size)
        return Records(
            self.taxonomies, np.asfortranarray(self.leaves[first]), self.classes[first], self.class_labels, weights
        )


def weighted_bincount(code: NDArray[np.integer], weights: NDArray[np.int64] | None, size: int) -> Table:
    """Exact integer sums per code."""
    if weights is None:
        return np.bincount(code, minlength=size)
    if weights.size == 0 or int(np.abs(weights).max()) * weights.size < 1 << 53:
        return np.bincount(code, weights=weights, minlength=size).astype(np.int64)  # float64 sums are exact below 2**53
    table = np.zeros(size, dtype=np.int64)
    np.add.at(table, code, weights)
    return table
