"""Records laid out for counting many tables: sorted by class, one narrow column per attribute and level.

A table of a set of attributes is one pass: codes of all but the last attribute are kept from the table before (sets that
follow each other share them), the last is added and counted piece by piece, in pieces that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.integers import narrow
from sfumato.records.levels import Levels
from sfumato.records.records import Records, Table

_Column = NDArray[np.integer]
_PIECE = 1 << 16
_MANY_CLASSES = 64  # with more, one table of all classes is faster than one call per class
_CROWDED = 4  # with fewer rows per cell than this, one table of signed weights is faster than one table per class


@dataclass(frozen=True, eq=False)
class Rows:
    """The records, sorted by class.

    With two classes only the difference (second class minus first) is counted: in a cell with n records and difference d
    the score is ``(n + |d|)/2 - h(|d|)``, and the n/2 add up to the same for every grid.

    Examples
    --------
    >>> taxonomies = (Levels.numeric("age", [0, 20, 40, 60, 80]), Levels.flat("sex", ["F", "M"]))
    >>> records = Records(taxonomies, np.array([[0, 0], [1, 1], [3, 1]]), np.array([0, 1, 1]), ("no", "yes"))
    >>> Rows.of(records).count((0, 1), (1, 1)).tolist()
    [[[-1, 1], [0, 1]]]
    """

    taxonomies: tuple[Levels, ...]
    leaves: tuple[_Column, ...]
    bounds: tuple[int, ...]
    weights: NDArray[np.float64] | None
    binary: bool
    columns: dict[tuple[int, int], _Column] = field(default_factory=dict)
    codes: dict[int, tuple[tuple[tuple[int, int], ...], _Column]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Records) -> Rows:
        k = len(records.class_labels)
        classes = records.classes.astype(narrow(k))
        order = np.argsort(classes, kind="stable")
        bounds = np.searchsorted(classes[order], np.arange(k + 1))
        taxonomies = records.taxonomies
        leaves = tuple(records.leaves[:, j].astype(narrow(t.leaves))[order] for j, t in enumerate(taxonomies))
        weights = None if records.weights is None else records.weights[order].astype(np.float64)
        return cls(taxonomies, leaves, tuple(bounds.tolist()), weights, k == 2)

    @property
    def size(self) -> int:
        return self.bounds[-1]

    @property
    def numbers(self) -> int:
        """How many numbers a cell has: the difference of two classes, or one count per class."""
        return 1 if self.binary else len(self.bounds) - 1

    def count(self, attributes: Sequence[int], levels: Sequence[int]) -> Table:
        """Counts (or the difference) of the cells of some attributes: classes first, then one axis per attribute."""
        sizes = [self.taxonomies[j].sizes[level] for j, level in zip(attributes, levels, strict=True)]
        cells = prod(sizes)
        which = tuple(zip(attributes, levels, strict=True))
        if not self.binary and self.numbers > _MANY_CLASSES:
            return self._all_classes(which, cells).reshape(self.numbers, *sizes)
        signed = self.binary and (self.weights is not None or cells * _CROWDED > self.size)
        weights = self.signed if signed else self.weights
        piece = max(_PIECE, 2 * cells)
        tables = []
        for first, end in [(0, self.size)] if signed else pairwise(self.bounds):
            starts = range(first, max(end, first + 1), piece)
            parts = (self._bincount(which, slice(start, min(start + piece, end)), cells, weights) for start in starts)
            table = next(parts)
            for part in parts:
                table += part
            tables.append(table.astype(np.int64, copy=False))
        if self.binary:
            found = (tables[0] if signed else tables[1] - tables[0])[None]
        else:
            found = np.stack(tables)
        return found.reshape(len(found), *sizes)

    def _all_classes(self, which: tuple[tuple[int, int], ...], cells: int) -> Table:
        code = np.repeat(np.arange(self.numbers), np.diff(self.bounds)) * cells
        inside = self._code(which)
        if inside is not None:
            code += inside
        return np.bincount(code, self.weights, self.numbers * cells).astype(np.int64, copy=False)

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """Weights, those of the first of two classes negative."""
        weights = np.ones(self.size) if self.weights is None else self.weights.copy()
        weights[: self.bounds[1]] *= -1.0
        return weights

    def _bincount(
        self, which: tuple[tuple[int, int], ...], part: slice, cells: int, weights: NDArray[np.float64] | None
    ) -> NDArray[Any]:
        """Sums over some of the rows; exact also in float64, as the caller keeps all sums below 2**53."""
        prefix = self._code(which[:-1])
        if prefix is not None:
            code = self._longer(prefix[part], which[-1], cells, part)
        else:
            code = self._column(*which[0])[part] if which else np.zeros(part.stop - part.start, dtype=np.intp)
        return np.bincount(code, None if weights is None else weights[part], cells)

    def _code(self, which: tuple[tuple[int, int], ...]) -> _Column | None:
        """One number per row for its cell in some attributes at some levels; the latest of each length are kept."""
        if len(which) < 2:
            return self._column(*which[0]) if which else None
        kept = self.codes.get(len(which))
        if kept is not None and kept[0] == which:
            return kept[1]
        before = self._code(which[:-1])
        assert before is not None
        cells = prod(self.taxonomies[j].sizes[level] for j, level in which)
        code = self._longer(before, which[-1], cells, slice(None))
        self.codes[len(which)] = (which, code)
        return code

    def _longer(self, code: _Column, attribute: tuple[int, int], cells: int, part: slice) -> _Column:
        """Codes with one more attribute, `cells` in all: arithmetic in narrow types is several times as fast."""
        size = self.taxonomies[attribute[0]].sizes[attribute[1]]
        longer = code.astype(narrow(max(cells - 1, size)))
        longer *= longer.dtype.type(size)
        longer += self._column(*attribute)[part]
        return longer

    def _column(self, j: int, level: int) -> _Column:
        """The node of every row at one level."""
        t = self.taxonomies[j]
        if level == t.height - 1:
            return self.leaves[j]
        if (j, level) not in self.columns:
            self.columns[j, level] = t.maps[level].astype(narrow(t.sizes[level]))[self.leaves[j]]
        return self.columns[j, level]
