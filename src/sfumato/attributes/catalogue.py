"""The public item-attribute matrix on an integer lattice, and the few of its rows that decide the price.

Row i says by how many lattice units item i moves each attribute; weights are rounded *up* to the lattice, so a price is
never below that of the weights as written. The same integers count and price, so nothing depends on the rounding. A cell
that is listed twice is added up before either, and nothing in a catalogue can be changed once it is made.

*Only maximal rows matter.* Noise rates are not negative, so if row k is at least row i in every entry, then
``Σ_j a_ij r_j <= Σ_j a_kj r_j`` for every r, and every column takes its maximum in a maximal row too: leaving out
dominated rows changes neither the overall price nor that of an attribute.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attributes.lattice import MOST, lattice, lattice_array, step_of, whole, wide
from sfumato.attributes.rows import canonical, distinct_rows, maximal_rows
from sfumato.attributes.sums import EACH_TIME, History, ItemSums, held
from sfumato.errors import InputError
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import read_only
from sfumato.privacy.units import Epsilon

T = TypeVar("T")


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
    >>> shop.histogram(["map", "novel", "unheard of"]).exact
    <Exact: a private value>
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: NDArray[np.int64]
    attributes: tuple[str, ...]
    unit: Fraction
    _items: tuple[Hashable, ...] | None
    _known: dict[Any, Any]

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
        names = tuple(str(a) for a in attributes)
        if len(set(names)) != len(names) or not names:
            raise InputError("a catalogue needs at least one attribute, and each name once")
        ends, columns, units = whole(indptr, "row ends"), whole(indices, "column numbers"), whole(values, "weights")
        if not ends.size or ends[0] != 0 or (np.diff(ends) < 0).any() or not ends[-1] == columns.size == units.size:
            raise InputError("row ends begin at 0, never fall, and end at the number of column numbers and of weights")
        if columns.size and not 0 <= columns.min() <= columns.max() < len(names):
            raise InputError(f"an item names a column outside the {len(names)} attributes")
        _require_weights(units)
        ends, columns, units = canonical(ends, columns, units, len(names))
        _require_weights(units)
        if items is not None and len(items) != ends.size - 1:
            raise InputError(f"{len(items)} item names for {ends.size - 1} rows")
        vars(self).update(
            indptr=read_only(ends),
            indices=read_only(columns),
            values=read_only(units),
            attributes=names,
            unit=step_of(unit),
            _items=None if items is None else tuple(items),
            _known={},
        )

    def __setattr__(self, name: str, _value: Any) -> NoReturn:
        raise InputError(f"a catalogue does not change, since prices were computed from it: {name} stays; make a new one")

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
        unit = step_of(step)
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
        unit = step_of(step)
        if hasattr(matrix, "tocsr"):
            compressed = matrix.tocsr()
            shape, indptr = matrix.shape, compressed.indptr.astype(np.int64)
            weights = wide(compressed.data)  # narrow integers would wrap around where a cell is listed twice
            indptr, indices, weights = canonical(indptr, compressed.indices.astype(np.int64), weights, shape[1])
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
        return cls(indptr, indices, lattice_array(weights, unit), attributes=attributes, items=items, unit=unit)

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
        return read_only(most)

    @cached_property
    def distinct(self) -> NDArray[Any]:
        """The distinct rows, dense."""
        return read_only(distinct_rows(self.indptr, self.indices, self.values, len(self.attributes)))

    @cached_property
    def maximal(self) -> NDArray[Any]:
        """Distinct rows with (almost all of) the dominated ones left out: what prices and policies are computed from."""
        return read_only(maximal_rows(self.distinct))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides a price: attributes, unit and maximal rows."""
        text = "\n".join([*self.attributes, str(self.unit)])
        return hashlib.sha256(text.encode() + self.maximal.tobytes()).hexdigest()

    def part(self, items: Sequence[Hashable]) -> Catalogue:
        """The catalogue of these `items` alone, in this order; one that is not listed here moves nothing."""
        found = [self._position(item, self._where) for item in items]
        cells = [range(self.indptr[at], self.indptr[at + 1]) if at >= 0 else range(0) for at in found]
        ends, chosen = np.cumsum([0, *map(len, cells)]), np.array([cell for row in cells for cell in row], dtype=np.int64)
        named: dict[str, Any] = {"attributes": self.attributes, "items": items, "unit": self.unit}
        return Catalogue(ends, self.indices[chosen], self.values[chosen], **named)

    def __contains__(self, item: object) -> bool:
        return self._position(item, self._where) >= 0

    def __str__(self) -> str:
        """A name that two catalogues share if they say the same: requests are told apart by it."""
        said = json.dumps([self.attributes, str(self.unit), self._items], default=str).encode()
        matrix = (np.asarray(part, dtype="<i8").tobytes() for part in (self.indptr, self.indices, self.values))
        return f"catalogue sha256:{hashlib.sha256(b''.join([said, *matrix])).hexdigest()}"

    def computed_once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """What `answer` returns, kept for the same `question`: the matrix is public and the same for everybody."""
        if question not in self._known:
            self._known[question] = answer()
        found: T = self._known[question]
        return found

    def histogram(self, history: History, *, once: bool = True) -> ItemSums:
        """Add up the rows of a history.

        Parameters
        ----------
        history : items, a function that returns them, or an Exact of them
            Items outside the catalogue count nothing: an error would tell about the history.
        once : bool
            Count a repeated item once, or every time.

        Returns
        -------
        ItemSums
            Private sums in lattice units, one per attribute.
        """
        exact = held(history).map(lambda items: self._one(self._positions(items, once=once)))
        return self._sums(exact, None, () if once else (EACH_TIME,))

    def histograms(self, person: NDArray[Any], item: NDArray[Any], *, people: int) -> ItemSums:
        """Add up the histories of many people at once.

        Parameters
        ----------
        person, item : integer arrays of one length
            Pairs: this person (0 to `people` - 1) has the item in this row of the catalogue.
        people : int
            How many people there are.

        Returns
        -------
        ItemSums
            Private sums in lattice units, one row per person.
        """
        exact = Exact((person, item)).map(lambda pair: self._many(*pair, people=people))
        return self._sums(exact, people, (EACH_TIME,))

    def _sums(self, exact: Exact[NDArray[np.int64]], length: int | None, notes: tuple[str, ...]) -> ItemSums:
        return ItemSums(exact, self.maximal, self.attributes, self.unit, length, notes)

    def _positions(self, history: Iterable[Any], *, once: bool) -> NDArray[np.int64]:
        # Each item is judged by itself: a check of the history as a whole would let one odd item erase all others.
        if self._items is None and isinstance(history, np.ndarray) and history.dtype.kind in "iu" and history.ndim == 1:
            rows = history[(history >= 0) & (history < self.size)].astype(np.int64)
        else:
            where = self._where  # made for an empty history too: what is kept tells nothing
            rows = np.fromiter((i for i in (self._position(item, where) for item in history) if i >= 0), dtype=np.int64)
        return np.asarray(np.unique(rows) if once else rows)

    def _position(self, item: Any, where: Mapping[Hashable, int]) -> int:
        try:
            if self._items is None:
                return int(item) if isinstance(item, int | np.integer) and 0 <= item < self.size else -1
            return where.get(item, -1)
        except Exception:  # not hashable, or odd in another way: it counts nothing, and no other item less
            return -1

    def _one(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._many(np.zeros(rows.size, dtype=np.int64), rows, people=1).reshape(-1)

    def _many(self, person: NDArray[Any], item: NDArray[Any], *, people: int) -> NDArray[np.int64]:
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


def _require_weights(units: NDArray[np.int64]) -> None:
    if units.size and not 0 <= int(units.min()) <= int(units.max()) <= MOST:
        raise InputError(f"weights must lie between 0 and {MOST} lattice units; choose a coarser step")
