"""A fitted distribution over all columns: its marginals, rows drawn from it, and how it is written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.graphical.beliefs import Loglinear
from sfumato.grids.graphical.drawing import draw
from sfumato.grids.graphical.elimination import over_columns
from sfumato.grids.graphical.marginal import Columns, Floats
from sfumato.grids.graphical.tree import Tree, junction_tree
from sfumato.privacy.source import Generator


@dataclass(frozen=True, eq=False)
class Fitted:
    """A distribution over all columns that agrees with noisy marginals as far as these agree with each other.

    Attributes
    ----------
    sizes : tuple of int
        Values per column.
    total : float
        The number of records.
    base : tuple of float64 arrays
        Logarithms of the columns' own shares, from which the fit started.
    potentials : mapping from columns to float64 arrays
        What was added, in logarithms, for each measured marginal: the whole of the distribution.
    """

    sizes: tuple[int, ...]
    total: float
    base: tuple[Floats, ...] = field(repr=False)
    potentials: Mapping[Columns, Floats] = field(repr=False)

    @cached_property
    def tree(self) -> Tree:
        """The junction tree."""
        return junction_tree(self.sizes, self.potentials)

    @property
    def cliques(self) -> tuple[Columns, ...]:
        """Columns whose joint distribution is at hand."""
        return tuple(tuple(sorted(clique)) for clique in self.tree.cliques)

    @cached_property
    def beliefs(self) -> tuple[Floats, ...]:
        """The marginals of the cliques, as shares."""
        sets = in_order(self.potentials)
        model = Loglinear(self.tree, self.base, sets)
        return tuple(model.beliefs([self.potentials[s] for s in sets])[0])

    def marginal(self, columns: Sequence[int]) -> Floats:
        """Expected counts over these columns.

        Parameters
        ----------
        columns : sequence of int
            Any columns, each once; the axes of the answer are in this order. Cheap inside a clique; otherwise the columns
            between the cliques are summed out.

        Returns
        -------
        float64 array

        Examples
        --------
        >>> model = Fitted((2, 2), 10.0, (np.log([0.5, 0.5]), np.log([0.9, 0.1])), {})
        >>> model.marginal([1, 0]).round(2).tolist()
        [[4.5, 4.5], [0.5, 0.5]]
        """
        wanted = tuple(columns)
        if len(set(wanted)) < len(wanted) or any(not 0 <= c < len(self.sizes) for c in wanted):
            raise InputError(f"a marginal is over different columns from 0 to {len(self.sizes) - 1}, got {wanted}")
        ascending = tuple(sorted(wanted))
        found = self.total * over_columns(self.tree, self.beliefs, ascending)
        return np.ascontiguousarray(found.transpose([ascending.index(c) for c in wanted]))

    def sample(self, rows: int, rng: Generator) -> NDArray[np.int64]:
        """Rows drawn from the distribution, in numbers that hardly scatter.

        Parameters
        ----------
        rows : int
            How many.
        rng : Generator
            For post-processing; never noise.

        Returns
        -------
        int64 array
            Rows by columns. Cells of the first clique are within one row of what is expected, and those of the others
            within one row of what is expected given the columns they share with the clique before.

        Examples
        --------
        >>> from sfumato.privacy import Seeded
        >>> model = Fitted((2, 2), 10.0, (np.log([0.5, 0.5]), np.log([0.9, 0.1])), {})
        >>> model.sample(20, Seeded(1).generator()).sum(axis=0).tolist()
        [10, 2]
        """
        if rows < 0:
            raise InputError(f"cannot draw {rows} rows")
        return draw(self.tree, self.beliefs, rows, rng)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` reads them back."""
        return {
            "sizes": list(self.sizes),
            "total": self.total,
            "base": [b.tolist() for b in self.base],
            "potentials": [{"columns": list(s), "values": v.tolist()} for s, v in self.potentials.items()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fitted:
        """The distribution that `to_dict` wrote down as `data`.

        >>> model = Fitted((2,), 10.0, (np.log([0.5, 0.5]),), {(0,): np.array([0.1, -0.3])})
        >>> bool((Fitted.from_dict(model.to_dict()).marginal([0]) == model.marginal([0])).all())
        True
        """
        potentials = {tuple(p["columns"]): np.array(p["values"], dtype=np.float64) for p in data["potentials"]}
        base = tuple(np.array(b, dtype=np.float64) for b in data["base"])
        return cls(tuple(data["sizes"]), float(data["total"]), base, potentials)


def in_order(sets: Iterable[Columns]) -> tuple[Columns, ...]:
    """The sets, smaller ones first.

    >>> in_order([(1, 2), (2,), (0,)])
    ((0,), (2,), (1, 2))
    """
    return tuple(sorted(sets, key=lambda s: (len(s), s)))
