"""The public domain of a histogram: its bins, their names, and whether their order means something.

Nothing here is ever taken from the private table. A column of categories has labels and no order; a numeric column has
edges and an order; several columns are a grid of bins, stored row by row with the last column running fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.tables.domains import Domain
from sfumato.tables.schema import Schema


@dataclass(frozen=True)
class Axis:
    """One column of the domain.

    Parameters
    ----------
    name : str
    labels : tuple of str
        One per bin.
    edges : tuple of float, optional
        Bin i of a numeric column holds ``edges[i] <= value < edges[i + 1]``.
    ordered : bool
        Whether neighbouring bins are alike; numeric columns are ordered.
    title : str
        What a picture calls it; its name if there is none.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    ordered: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        if not self.labels:
            raise SchemaError(f"column {self.name!r} has no bins; list its categories or its bin edges")
        if self.edges is not None and len(self.edges) != len(self.labels) + 1:
            raise SchemaError(
                f"column {self.name!r} has {len(self.labels)} bins and needs one edge more, not {len(self.edges)}"
            )

    @classmethod
    def categories(cls, name: str, labels: Sequence[str], *, ordered: bool = False) -> Axis:
        """A column called `name` of named values; `ordered` says whether neighbouring `labels` are alike."""
        return cls(name, tuple(str(x) for x in labels), None, ordered)

    @classmethod
    def numbers(cls, name: str, edges: Sequence[float]) -> Axis:
        """A numeric column called `name`, cut at the given `edges`.

        >>> Axis.numbers("age", [0, 18, 65, 120]).labels
        ('[0, 18)', '[18, 65)', '[65, 120)')
        """
        cuts = tuple(float(e) for e in edges)
        if len(cuts) < 2 or not all(a < b for a, b in pairwise(cuts)):
            raise SchemaError(f"the bin edges of {name!r} must increase and be at least two")
        return cls(name, tuple(f"[{a:g}, {b:g})" for a, b in pairwise(cuts)), cuts, True)

    @classmethod
    def of_domain(cls, name: str, domain: Domain, heading: str = "") -> Axis:
        """The cells of a schema's column `name` with this `domain`, called `heading` in pictures; numbers are ordered."""
        title = "" if heading == name else heading
        return cls(name, domain.labels(), domain.cell_edges, domain.ordered, title)

    @property
    def heading(self) -> str:
        """What a picture calls it."""
        return self.title or self.name

    def to_dict(self) -> dict[str, Any]:
        """For artefacts."""
        edges = None if self.edges is None else list(self.edges)
        titled = {"title": self.title} if self.title else {}
        return {"name": self.name, "labels": list(self.labels), "edges": edges, "ordered": self.ordered, **titled}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Axis:
        """The axis that `to_dict` wrote down as `data`."""
        edges = data["edges"]
        cuts, title = None if edges is None else tuple(edges), str(data.get("title", ""))
        return cls(data["name"], tuple(data["labels"]), cuts, data["ordered"], title)

    def slice(self, low: Any = None, high: Any = None) -> tuple[int, int]:
        """The bins from `low` up to, not including, `high`: values of a numeric column, else positions.

        >>> Axis.numbers("age", [0, 18, 65, 120]).slice(18, 120)
        (1, 3)
        """
        start = 0 if low is None else self._position(low)
        stop = len(self.labels) if high is None else self._position(high)
        if start > stop:
            raise InputError(f"the range of {self.name!r} ends before it starts: {low!r} to {high!r}")
        return start, stop

    def _position(self, bound: Any) -> int:
        if self.edges is None:
            position = int(bound)
            if position != bound or not 0 <= position <= len(self.labels):
                raise InputError(f"{self.name!r} has bins 0 to {len(self.labels)}; got the bound {bound!r}")
            return position
        value = float(bound)
        if value <= self.edges[0] or value >= self.edges[-1]:
            return 0 if value <= self.edges[0] else len(self.labels)
        i = int(np.searchsorted(self.edges, value))
        if not isfinite(value) or self.edges[i] != value:
            raise InputError(
                f"{bound!r} is inside a bin of {self.name!r}; use an edge of it, {self.edges[i - 1]:g} or {self.edges[i]:g}"
            )
        return i


@dataclass(frozen=True)
class Bins:
    """All bins of a histogram: one axis per column.

    Attributes
    ----------
    axes : tuple of Axis
        The columns; the last one runs fastest.

    Examples
    --------
    >>> grid = Bins((Axis.categories("sex", ["f", "m"]), Axis.numbers("age", [0, 18, 65, 120])))
    >>> grid.shape, grid.size, grid.ordered
    ((2, 3), 6, True)
    >>> Bins.numbered(4).size
    4
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise SchemaError("a histogram needs at least one column")
        if len({a.name for a in self.axes}) != len(self.axes):
            raise SchemaError("the columns of a histogram must have different names")

    @classmethod
    def numbered(cls, size: int, *, ordered: bool = True, name: str = "bin") -> Bins:
        """So many bins (`size`) that are just numbers 0, 1, 2, ..., `ordered` or not, of a column called `name`."""
        if size < 1:
            raise SchemaError(f"a histogram needs at least one bin, got {size}")
        return cls((Axis(name, tuple(map(str, range(size))), None, ordered),))

    @classmethod
    def of_schema(cls, schema: Schema, columns: Sequence[str]) -> Bins:
        """The cells of some `columns` of a `schema`."""
        return cls(tuple(Axis.of_domain(name, schema[name], schema.heading(name)) for name in columns))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins along each axis."""
        return tuple(len(a.labels) for a in self.axes)

    @property
    def size(self) -> int:
        """Number of bins."""
        return prod(self.shape)

    @property
    def ordered(self) -> bool:
        """Whether flattened neighbours are neighbours: row by row, that is decided by the last column.

        Nearness along the other columns is lost to mechanisms that use order (`dawa`, `covariate`, `hierarchical`); those
        that sort by count (`ahp`, `geb`) never used it.
        """
        return self.axes[-1].ordered

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(a.name for a in self.axes)

    def box(self, **bounds: tuple[Any, Any]) -> NDArray[np.bool_]:
        """The bins inside a box, as a flat mask; `bounds` are (low, high) by column, and columns not named stay whole."""
        unknown = [n for n in bounds if n not in self.names]
        if unknown:
            raise InputError(f"no column {unknown[0]!r} in this histogram; it has {', '.join(self.names)}")
        mask = np.zeros(self.shape, dtype=bool)
        mask[tuple(slice(*a.slice(*bounds.get(a.name, (None, None)))) for a in self.axes)] = True
        return mask.reshape(-1)

    def flat_labels(self) -> list[tuple[str, ...]]:
        """One tuple of labels per flat bin."""
        index = np.indices(self.shape).reshape(len(self.shape), -1)
        return [tuple(a.labels[i] for a, i in zip(self.axes, column, strict=True)) for column in index.T.tolist()]
