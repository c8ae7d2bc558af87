"""The public item-attribute matrix on an integer lattice, and the few of its rows that decide the price.

Row i says by how many lattice units item i moves each attribute; weights are rounded *up* to the lattice, so a price is
never below that of the weights as written. The same integers count and price, so nothing depends on the rounding.

*Only maximal rows matter.* Noise rates are not negative, so if row k is at least row i in every entry, then
``Σ_j a_ij r_j <= Σ_j a_kj r_j`` for every r, and every column takes its maximum in a maximal row too: leaving out
dominated rows changes neither the overall price nor that of an attribute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attributes.rows import distinct_rows, maximal_rows
from sfumato.errors import InputError
from sfumato.privacy.units import Epsilon

_MOST = 1 << 31  # lattice units per entry: sums over items, attributes and rates stay inside 64 bits


class Catalogue:
    """Items, attributes and the sparse integer matrix between them. Public, and the same for everybody.

    Parameters
    ----------
    indptr, indices, values : integer arrays
        The matrix in compressed rows; values are lattice units.
    attributes : sequence of str
        Column names.
    items : sequence, optional
        Identifiers of the rows; ``0 .. n - 1`` if left out.
    unit : Fraction
        What one lattice unit is worth.

    Examples
    --------
    >>> shop = Catalogue.of({"novel": ["paper", "fiction"], "map": ["paper"], "pen": []})
    >>> shop.attributes, shop.maximal.tolist()
    (('paper', 'fiction'), [[1, 1]])
    >>> shop.histogram(["map", "novel", "unheard of"]).tolist()
    [2, 1]
    """

    def __init__(
        self,
        indptr: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        *,
        attributes: Sequence[str],
        items: Sequence[Hashable] | None = None,
        unit: Fraction = Fraction(1),
    ) -> None:
        self.indptr = np.asarray(indptr, dtype=np.int64)
        self.indices = np.asarray(indices, dtype=np.int64)
        self.values = np.asarray(values, dtype=np.int64)
        self.attributes = tuple(str(a) for a in attributes)
        self.unit = unit
        self._items = items
        self.policies: dict[Any, Any] = {}  # allocations already computed: the matrix is public and the same for everybody
        if len(set(self.attributes)) != len(self.attributes) or not self.attributes:
            raise InputError("a catalogue needs at least one attribute, and each name once")
        if self.values.size and (self.values.min() < 1 or self.values.max() > _MOST):
            raise InputError(f"weights must lie between 0 and {_MOST} lattice units; choose a coarser step")
        if self.indices.size and not 0 <= self.indices.min() <= self.indices.max() < len(self.attributes):
            raise InputError(f"an item names a column outside the {len(self.attributes)} attributes")
        if items is not None and len(items) != self.indptr.size - 1:
            raise InputError(f"{len(items)} item names for {self.indptr.size - 1} rows")

    @classmethod
    def of(
        cls,
        items: Mapping[Any, Iterable[str] | Mapping[str, Epsilon]],
        attributes: Sequence[str] | None = None,
        *,
        step: Epsilon = 1,
    ) -> Catalogue:
        """Make a catalogue from a mapping.

        Parameters
        ----------
        items : mapping of item to its attributes, or to a mapping of attribute to weight
            What each item has.
        attributes : sequence of str, optional
            The columns in order; as the items first name them if left out.
        step : number
            Weights are rounded up to multiples of this.

        Returns
        -------
        Catalogue

        Examples
        --------
        >>> Catalogue.of({"a": {"x": 0.25, "y": 1}}, step="0.1").maximal.tolist()
        [[3, 10]]
        """
        rows = [dict(tags) if isinstance(tags, Mapping) else dict.fromkeys(tags, 1) for tags in items.values()]
        if attributes is None:
            attributes = list(dict.fromkeys(name for row in rows for name in row))
        column = {name: j for j, name in enumerate(attributes)}
        unit = _step(step)
        indptr, indices, values = [0], [], []
        for row in rows:
            for name, weight in row.items():
                if name not in column:
                    raise InputError(f"attribute {name!r} is not one of {', '.join(attributes)}")
                units = lattice(weight, unit)
                if units:
                    indices.append(column[name])
                    values.append(units)
            indptr.append(len(indices))
        return cls(indptr, indices, values, attributes=attributes, items=list(items), unit=unit)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        attributes: Sequence[str],
        *,
        items: Sequence[Hashable] | None = None,
        step: Epsilon = 1,
    ) -> Catalogue:
        """Make a catalogue from a matrix.

        Parameters
        ----------
        matrix : array or SciPy sparse matrix
            Weights, with one row per item and one column per attribute.
        attributes : sequence of str
            Names of the columns.
        items : sequence, optional
            Identifiers of the rows; ``0 .. n - 1`` if left out.
        step : number
            Weights are rounded up to multiples of this.

        Returns
        -------
        Catalogue

        Examples
        --------
        >>> Catalogue.from_matrix([[1, 0], [1, 1]], ["x", "y"]).indices.tolist()
        [0, 0, 1]
        """
        unit = _step(step)
        if hasattr(matrix, "tocsr"):
            compressed = matrix.tocsr()
            compressed.sum_duplicates()
            shape, indptr, indices, weights = matrix.shape, compressed.indptr, compressed.indices, compressed.data
            keep = weights != 0
            if not keep.all():
                counts = np.concatenate([[0], np.cumsum(keep)])
                indptr, indices, weights = counts[indptr], indices[keep], weights[keep]
        else:
            dense = np.asarray(matrix)
            if dense.ndim != 2:
                raise InputError("the item-attribute matrix has one row per item and one column per attribute")
            shape = dense.shape
            there = dense != 0
            cells = np.flatnonzero(there)
            weights, indices = dense.reshape(-1)[cells], cells % max(1, shape[1])
            indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        if shape[1] != len(attributes):
            raise InputError(f"{shape[1]} columns for {len(attributes)} attribute names")
        return cls(indptr, indices, _lattice_array(weights, unit), attributes=attributes, items=items, unit=unit)

    @property
    def size(self) -> int:
        """Number of items."""
        return int(self.indptr.size - 1)

    @cached_property
    def _where(self) -> dict[Hashable, int]:
        return {} if self._items is None else {item: i for i, item in enumerate(self._items)}

    @cached_property
    def reach(self) -> NDArray[np.int64]:
        """The most lattice units one item moves each attribute (Δ_j), at least 1."""
        most = np.ones(len(self.attributes), dtype=np.int64)
        np.maximum.at(most, self.indices, self.values)
        return most

    @cached_property
    def distinct(self) -> NDArray[Any]:
        """The distinct rows, dense."""
        return distinct_rows(self.indptr, self.indices, self.values, len(self.attributes))

    @cached_property
    def maximal(self) -> NDArray[Any]:
        """Distinct rows with (almost all of) the dominated ones left out: what prices and policies are computed from."""
        return maximal_rows(self.distinct)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides a price: attributes, unit and maximal rows."""
        text = "\n".join([*self.attributes, str(self.unit)])
        return hashlib.sha256(text.encode() + self.maximal.tobytes()).hexdigest()

    def positions(self, history: Iterable[Any], *, once: bool = True) -> NDArray[np.int64]:
        """Row numbers of a `history`, a repeated item once or (`once=False`) every time.

        Items outside the catalogue count nothing: an error would tell about the history.
        """
        # Each item is judged by itself: a check of the history as a whole would let one odd item erase all others.
        if self._items is None and isinstance(history, np.ndarray) and history.dtype.kind in "iu" and history.ndim == 1:
            rows = history[(history >= 0) & (history < self.size)].astype(np.int64)
        else:
            rows = np.fromiter((i for i in map(self._position, history) if i >= 0), dtype=np.int64)
        return np.asarray(np.unique(rows) if once else rows)

    def _position(self, item: Any) -> int:
        if self._items is None:
            return int(item) if isinstance(item, int | np.integer) and 0 <= item < self.size else -1
        try:
            return self._where.get(item, -1)
        except TypeError:  # not hashable
            return -1

    def histogram(self, history: Iterable[Any], *, once: bool = True) -> NDArray[np.int64]:
        """Sum of the rows of a `history` in lattice units: the exact, private vector. `once` counts a repeated item once."""
        rows = self.positions(history, once=once)
        return self.histograms(np.zeros(rows.size, dtype=np.int64), rows, people=1).reshape(-1)

    def histograms(self, person: NDArray[Any], item: NDArray[Any], *, people: int) -> NDArray[np.int64]:
        """Exact histograms of many people at once.

        Parameters
        ----------
        person, item : integer arrays of one length
            Pairs: this person (0 to `people` - 1) has the item in this row of the catalogue.
        people : int
            How many people there are.

        Returns
        -------
        int64 array of shape (people, attributes)
            Sums in lattice units.
        """
        lengths = self.indptr[item + 1] - self.indptr[item]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry = np.repeat(self.indptr[item], lengths) + within
        cell = np.repeat(person, lengths) * len(self.attributes) + self.indices[entry]
        width = people * len(self.attributes)
        if not entry.size:
            return np.zeros((people, len(self.attributes)), dtype=np.int64)
        if int(self.values.max()) * entry.size < 1 << 53:  # bincount sums in float64: exact below 2**53
            sums = np.bincount(cell, weights=self.values[entry], minlength=width).astype(np.int64)
        else:
            sums = np.zeros(width, dtype=np.int64)
            np.add.at(sums, cell, self.values[entry])
        return sums.reshape(people, len(self.attributes))

    def __repr__(self) -> str:
        return f"Catalogue({self.size} items, {len(self.attributes)} attributes)"


def _step(step: Epsilon) -> Fraction:
    unit = step if isinstance(step, Fraction) else Fraction(str(step))
    if unit <= 0:
        raise InputError(f"step must be greater than 0, got {step!r}")
    return unit


def lattice(weight: Epsilon, unit: Fraction) -> int:
    """A weight in lattice units, rounded up."""
    if unit == 1 and type(weight) is int and weight >= 0:
        return weight
    try:
        value = weight if isinstance(weight, Fraction) else Fraction(str(weight))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"a weight must be a finite number, got {weight!r}") from None
    if value < 0:
        raise InputError(f"a weight must not be negative, got {weight!r}")
    return int(-(-value // unit))


def _lattice_array(weights: NDArray[Any], unit: Fraction) -> NDArray[np.int64]:
    if weights.dtype.kind in "iub" and unit == 1:
        units = weights.astype(np.int64)
    else:
        scaled = weights.astype(np.float64) * (unit.denominator / unit.numerator)
        if not np.isfinite(scaled).all():
            raise InputError("weights must be finite numbers")
        nearest = np.rint(scaled)
        # 0.3 / 0.1 is a hair off 3 in binary; the person wrote three units.
        units = np.where(np.abs(scaled - nearest) <= 1e-9 * np.abs(scaled), nearest, np.ceil(scaled)).astype(np.int64)
    if units.size and units.min() < 0:
        raise InputError("weights must not be negative")
    return units
