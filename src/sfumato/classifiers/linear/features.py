"""Features for linear models, from public domains only: rows of Euclidean norm at most one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.coded_rows import CodedColumn, CodedRows
from sfumato.privacy.integers import narrow
from sfumato.records.levels import Levels

Floats = NDArray[np.float64]
_INSIDE = 1 - 1e-12  # keeps rounding from pushing a row beyond norm one
CONSTANT = 0.25  # length of the constant next to that of all columns together: it is penalised as they are
FEW = 2_500  # N ε below which ordered columns enter linear models as lines; set on other splits than those of the bench


def one_hot(leaves: NDArray[np.integer], taxonomies: Sequence[Levels]) -> Any:
    """Sparse indicator of every leaf; a leaf that is not known has no entry.

    >>> one_hot(np.array([[1], [-1]]), [Levels.flat("sex", ["F", "M"])]).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    from scipy import sparse

    starts = np.concatenate([[0], np.cumsum([t.leaves for t in taxonomies])])
    rows, columns = np.nonzero(leaves >= 0)
    places = leaves[rows, columns] + starts[columns]
    return sparse.csr_matrix((np.ones(rows.size), (rows, places)), shape=(len(leaves), int(starts[-1])))


def design(leaves: NDArray[np.integer], taxonomies: Sequence[Levels], *, groups: int = 8) -> Floats:
    """A matrix for linear models: ordered columns as one number in [-1, 1], others one indicator per group, and a constant.

    A category with many values is taken at the finest level with at most `groups` of them. Each column's part of a row has
    norm at most one, so after division by ``sqrt(columns + 1)`` a row has norm at most one.

    >>> x = design(np.array([[0, 1], [3, 0]]), [Levels.numeric("age", [0, 1, 2, 3, 4]), Levels.flat("sex", ["F", "M"])])
    >>> (x * 3**0.5).round(3).tolist()
    [[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]
    """
    parts = []
    for j, taxonomy in enumerate(taxonomies):
        column = leaves[:, j]
        known = column >= 0
        if taxonomy.edges is not None or taxonomy.leaves == 2:
            place = 2.0 * column / max(1, taxonomy.leaves - 1) - 1.0
            parts.append(np.where(known, place, 0.0)[:, None])
        else:
            level = max(i for i, size in enumerate(taxonomy.sizes) if i <= 1 or size <= groups)
            node = taxonomy.maps[level][np.maximum(column, 0)]
            parts.append(((node[:, None] == np.arange(taxonomy.sizes[level])) & known[:, None]).astype(np.float64))
    parts.append(np.ones((len(leaves), 1)))
    return np.asarray(np.hstack(parts) * (_INSIDE / np.sqrt(len(taxonomies) + 1)))


def design_names(taxonomies: Sequence[Levels], *, groups: int = 8) -> list[tuple[str, str]]:
    """What each column of `design` stands for: a column of the table and a value of it; the constant last.

    >>> design_names([Levels.numeric("age", [0, 1, 2, 3]), Levels.flat("sex", ["F", "M"])])
    [('age', 'from 0 to 1 up to 2 to 3'), ('sex', 'M rather than F'), ('', 'constant')]
    """
    names = []
    for taxonomy in taxonomies:
        if taxonomy.edges is not None or taxonomy.leaves == 2:
            names.append((taxonomy.name, _place_words(taxonomy)))
        else:
            level = max(i for i, size in enumerate(taxonomy.sizes) if i <= 1 or size <= groups)
            names += [(taxonomy.name, label) for label in taxonomy.labels[level]]
    return [*names, ("", "constant")]


def _place_words(taxonomy: Levels) -> str:
    """A column that enters as its place between its first and its last value."""
    first, last = taxonomy.labels[-1][0], taxonomy.labels[-1][-1]
    return f"{last} rather than {first}" if taxonomy.leaves == 2 else f"from {first} up to {last}"


@dataclass(frozen=True, eq=False)
class Indicators:
    """Rows with one entry per column and a constant: short in ‖·‖₁ as well as in Euclidean norm.

    A column is an indicator of its node at a level with at most `groups` nodes; with `lines` an ordered one is its place in
    [-1, 1] instead, and so is a column of two values. Every entry has at most the size s, the constant has a quarter of
    √m s for m columns; s makes the Euclidean norm of a row at most one, and then ``‖x‖₁ <= length``.
    """

    taxonomies: tuple[Levels, ...]
    groups: int
    lines: bool

    @classmethod
    def for_signal(cls, taxonomies: Sequence[Levels], signal: float) -> Indicators:
        """As fine as the sum of all budgets, N ε, carries: a public choice.

        >>> [Indicators.for_signal((), s).groups for s in (1_000, 10_000, 40_000)]
        [8, 20, 80]
        """
        lines = signal < FEW
        return cls(tuple(taxonomies), 8 if lines else max(16, int(signal // 500)), lines)

    @property
    def unit(self) -> float:
        """The size s of an entry."""
        return float(_INSIDE / np.sqrt(max(1, len(self.taxonomies)) * (1 + CONSTANT**2)))

    @property
    def constant(self) -> float:
        return float(CONSTANT * np.sqrt(max(1, len(self.taxonomies))) * self.unit)

    @property
    def length(self) -> float:
        return len(self.taxonomies) * self.unit + self.constant

    @property
    def dimension(self) -> int:
        """The number of entries of a row."""
        return int(self._columns[-1].places.stop)

    def rows(self, leaves: NDArray[np.integer]) -> CodedRows:
        """The rows as codes; a value that is not known (-1) adds nothing."""
        return CodedRows.of(self._columns, self._codes(leaves))

    @cached_property
    def _columns(self) -> tuple[CodedColumn, ...]:
        """What every column puts into a row; the constant comes last."""
        made, start = [], 0
        for taxonomy in self.taxonomies:
            line = self._is_line(taxonomy)
            if line:
                known = (2.0 * np.arange(taxonomy.leaves) / max(1, taxonomy.leaves - 1) - 1.0) * self.unit
            else:
                known = np.full(taxonomy.sizes[self._level(taxonomy)], self.unit)
            made.append(CodedColumn(np.append(known, 0.0), start, line))
            start = made[-1].places.stop
        return (*made, CodedColumn(np.array([self.constant, 0.0]), start, line=False))

    def _codes(self, leaves: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
        """The code of every row in each column: a leaf's place on a line, or its node."""
        for j, (taxonomy, column) in enumerate(zip(self.taxonomies, self._columns, strict=False)):
            unknown = column.values.size - 1
            node = np.arange(unknown) if column.line else taxonomy.maps[self._level(taxonomy)]
            # Leaf -1 finds the last entry of this table.
            yield np.append(node, unknown).astype(narrow(unknown)).take(leaves[:, j], mode="wrap")
        yield np.zeros(len(leaves), dtype=np.uint8)

    def names(self) -> list[tuple[str, str]]:
        """What each entry of a row stands for: a column of the table and a value of it; the constant last."""
        names = []
        for taxonomy in self.taxonomies:
            if self._is_line(taxonomy):
                names.append((taxonomy.name, _place_words(taxonomy)))
            else:
                names += [(taxonomy.name, label) for label in taxonomy.labels[self._level(taxonomy)]]
        return [*names, ("", "constant")]

    def unscaled(self, models: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercepts for indicators of size one."""
        return models[:, :-1] * self.unit, models[:, -1] * self.constant

    def _is_line(self, taxonomy: Levels) -> bool:
        return taxonomy.leaves == 2 or (self.lines and taxonomy.edges is not None)

    def _level(self, taxonomy: Levels) -> int:
        return max(i for i, size in enumerate(taxonomy.sizes) if i <= 1 or size <= self.groups)
