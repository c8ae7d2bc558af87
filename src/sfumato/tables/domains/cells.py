"""The cells of a column: how many, what they are called, and how they are grouped level by level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.taxonomy import Leaf, Taxonomy

Codes: TypeAlias = NDArray[np.int64]
Partitions: TypeAlias = list[Codes]
Groups: TypeAlias = list[list[str]]


class Cells(ABC):
    """Listed cells, the extra cells after them, and the levels of both; see `Domain` for what the attributes mean."""

    ordered: ClassVar[bool] = False
    other: bool | str
    missing: bool | str = False
    taxonomy: Taxonomy | None

    # ------------------------------------------------------------------------------------------ cells

    @property
    @abstractmethod
    def listed(self) -> int:
        """Number of cells that hold values of the domain."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """A name for each listed cell."""

    @property
    def size(self) -> int:
        """Number of cells, those beside the listed ones included."""
        return self.listed + len(self.extra)

    @property
    def extra(self) -> tuple[str, ...]:
        """The names of the cells beside the listed ones."""
        return tuple(label for label in (self.other, self.missing) if isinstance(label, str))

    def labels(self) -> tuple[str, ...]:
        """A name for each cell."""
        return (*self.names(), *self.extra)

    @property
    def leaves(self) -> Sequence[Leaf]:
        """What a taxonomy has as its leaves: the numbers of the listed cells, unless a kind has better names."""
        return range(self.listed)

    @property
    def cell_edges(self) -> tuple[float, ...] | None:
        """Where the cells begin and end, if every cell is an interval of numbers."""
        return None

    def classes(self) -> tuple[Any, ...] | None:
        """The values to be predicted if this column is a target; None if it cannot be one."""
        return None

    # ----------------------------------------------------------------------------------------- levels

    @property
    def depth(self) -> int:
        """Levels of the taxonomy below its root (1 without a taxonomy)."""
        return self.taxonomy.depth if self.taxonomy else 1

    def group_codes(self, level: int) -> Codes:
        """For each cell its node at `level` of the taxonomy; each extra cell is a node of its own below the root."""
        groups = (self.taxonomy or Taxonomy(leaves=tuple(self.leaves))).groups(level)
        place = {(type(leaf), leaf): number for number, (_, leaves) in enumerate(groups) for leaf in leaves}
        codes = [place[type(v), v] for v in self.leaves]
        more = [0 if level == 0 else len(groups) + i for i in range(len(self.extra))]
        return np.array([*codes, *more], dtype=np.int64)

    def levels(self) -> tuple[Partitions, Groups]:
        """Per level, coarsest first, the node of every cell and the names of the nodes.

        These are the levels of the given tree. Without one, ordered cells are merged in pairs, level by level; others are
        everything, or each cell by itself. An extra cell is a node of its own on every level below the root.

        >>> from sfumato.tables.domains import Numeric
        >>> partitions, groups = Numeric(0, 8, bins=4).levels()
        >>> [p.tolist() for p in partitions]
        [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
        >>> groups[1]
        ['0 to 4', '4 to 8']
        """
        if self.taxonomy is not None:
            partitions = [self.group_codes(level) for level in range(self.taxonomy.depth + 1)]
            groups = [[label for label, _ in self.taxonomy.groups(level)] for level in range(len(partitions))]
        elif self.ordered:
            partitions, groups = self._pairs()
        else:
            partitions = [np.zeros(self.size, dtype=np.int64), np.arange(self.size)]
            groups = [["all"], list(self.names())]
        for level in range(1, len(groups)):
            groups[level].extend(self.extra)
        return partitions, groups

    def span(self, start: int, end: int) -> str:
        """A name for the listed cells from `start` up to, not including, `end` (ordered cells only)."""
        names = self.names()
        return names[start] if end == start + 1 else f"{names[start]} to {names[end - 1]}"

    def _pairs(self) -> tuple[Partitions, Groups]:
        codes = np.arange(self.listed)
        partitions, groups = [], []
        while True:
            ends = np.append(np.flatnonzero(np.diff(codes)) + 1, self.listed)
            starts = np.concatenate([[0], ends[:-1]])
            partitions.append(np.append(codes, codes[-1] + 1 + np.arange(len(self.extra))))
            groups.append([self.span(int(a), int(b)) for a, b in zip(starts, ends, strict=True)])
            if codes[-1] == 0:
                break
            codes = codes // 2
        if self.extra:
            partitions.append(np.zeros(self.size, dtype=np.int64))
            groups.append(["all"])
        return partitions[::-1], groups[::-1]
