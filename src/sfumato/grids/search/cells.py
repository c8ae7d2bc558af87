"""The cells of a counted table that hold anything.

A fine table over five columns has a hundred thousand cells and as many numbers as there are kinds of people in it: a few
thousand. Rolling it up means to go through those, whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.records.records import Table

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Cells:
    """What is in a table, or in several tables of the same shape.

    Attributes
    ----------
    levels : tuple of int
        The level of each attribute that the table was counted at.
    nodes : tuple of int arrays
        For each attribute, the node that an entry lies in.
    lead : int array
        Which number of a cell an entry is (its class, where classes are counted apart), the numbers of the second table
        after those of the first, and so on.
    sums : float64 array
        The counts: whole numbers, which float64 holds exactly.
    tables : int
        How many tables there are.

    Examples
    --------
    >>> found = Cells.of(np.array([[[0, 3], [0, -2]]]), (1, 1))
    >>> [n.tolist() for n in found.nodes], found.sums.tolist()
    ([[0, 1], [1, 1]], [3.0, -2.0])
    """

    levels: tuple[int, ...]
    nodes: tuple[Codes, ...]
    lead: Codes
    sums: NDArray[np.float64]
    tables: int = 1

    @classmethod
    def of(cls, table: Table | NDArray[np.float64], levels: Sequence[int], *, tables: int = 1) -> Cells:
        """The entries of a table that has the numbers of a cell (and the tables) on its first axis."""
        flat = table.reshape(-1)
        lead = np.flatnonzero(flat != 0)  # of truth values: several times as fast as of numbers
        sums = flat[lead].astype(np.float64)
        nodes: list[Codes] = []
        for size in reversed(table.shape[1:]):
            above = lead // size
            nodes.append(lead - above * size)
            lead = above
        return cls(tuple(levels), tuple(nodes[::-1]), lead, sums, tables)

    @classmethod
    def together(cls, each: Sequence[Cells], numbers: int) -> Cells:
        """Several tables of one shape, with so many numbers per cell, as one."""
        if len(each) == 1:
            return each[0]
        nodes = (np.concatenate(own) for own in zip(*(cells.nodes for cells in each), strict=True))
        lead = np.concatenate([cells.lead + i * numbers for i, cells in enumerate(each)])
        return cls(each[0].levels, tuple(nodes), lead, np.concatenate([cells.sums for cells in each]), len(each))

    def without(self, axis: int) -> Cells:
        """The margin over one attribute, its entries not yet added up."""
        return replace(
            self,
            levels=(*self.levels[:axis], *self.levels[axis + 1 :]),
            nodes=(*self.nodes[:axis], *self.nodes[axis + 1 :]),
        )
