"""From features and labels to integer codes, by public domains alone.

A row becomes the leaf of each column's levels (see `records.levels`) and the number of its class. Which codes a row gets
depends on that row and the public schema only, so adding a person adds their rows and changes nobody else's. What the schema
has no cell for is coded -1: in training such a row takes no part, in prediction the column says nothing. Nothing here raises
because of a value: an error would tell that the value is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.exact import Exact
from sfumato.records.attributes import Attribute, attribute_of, attributes_of
from sfumato.records.levels import Levels
from sfumato.records.opened import need_rows
from sfumato.records.owners import owners_in, smallest_of_person, within_cap
from sfumato.records.records import Records
from sfumato.tables.domains import Domain
from sfumato.tables.schema import Schema
from sfumato.tables.values import category_codes, columns_of, stated_names

UNKNOWN = -1


def cells_of(domain: Domain, column: Any) -> NDArray[np.int64]:
    """The schema cell of every value, -1 where there is none. Never fails on a value.

    Parameters
    ----------
    domain : Domain
        The public domain of the column.
    column : array or sequence
        Its values.

    Returns
    -------
    int64 array

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> cells_of(Numeric(0, 10, bins=2, outside="other"), [1, "x", 99, None]).tolist()
    [0, 2, 2, 2]
    >>> cells_of(Categorical(["F", "M"]), ["M", "F", None, 3]).tolist()
    [1, 0, -1, -1]
    """
    return domain.cells(column)


def leaves_of(attribute: Attribute, column: Any) -> NDArray[np.int64]:
    """The leaf of every value of a column, -1 where it has no cell.

    Parameters
    ----------
    attribute : Attribute
        The column and its levels.
    column : array or sequence
        Its values.

    Returns
    -------
    int64 array
    """
    cells = cells_of(attribute.domain, column)
    return np.where(cells < 0, UNKNOWN, attribute.leaf_of_cell[np.maximum(cells, 0)])


def leaves_of_frame(frame: Any, attributes: Sequence[Attribute]) -> NDArray[np.int32]:
    """The leaf of every attribute for the rows of a data frame, -1 where a value has no cell.

    Parameters
    ----------
    frame : DataFrame
        The rows; it must have a column for every attribute.
    attributes : sequence of Attribute
        The columns to code.

    Returns
    -------
    int32 array, rows by attributes
    """
    leaves = np.empty((len(frame), len(attributes)), dtype=np.int32, order="F")
    for j, attribute in enumerate(attributes):
        if attribute.name not in (stated_names(frame) or ()):
            raise InputError(f"the table has no column {attribute.name!r}, which is needed")
        leaves[:, j] = leaves_of(attribute, frame[attribute.name])
    return leaves


@dataclass(frozen=True, eq=False)
class Coding:
    """The public side of a classification task: columns with their domains, and the classes. `of` makes it.

    Attributes
    ----------
    attributes : tuple of Attribute
        The predictors.
    classes : array
        The values to be predicted.
    schema : Schema
        The public schema.

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 80, bins=4), "ill": Categorical(["no", "yes"])})
    >>> coding = Coding.of(schema, target="ill")
    >>> coding.names, coding.classes.tolist()
    (('age',), ['no', 'yes'])
    >>> coding.leaves(np.array([[5.0], [79], [np.nan], [np.inf]]))[:, 0].tolist()
    [0, 3, -1, 3]
    """

    attributes: tuple[Attribute, ...]
    classes: NDArray[Any]
    schema: Schema

    @classmethod
    def of(cls, schema: Schema | None, *, target: str | None = None, classes: Sequence[Any] | None = None) -> Coding:
        """From a public schema.

        Parameters
        ----------
        schema : Schema
            The domains of the columns; None is refused with what to do.
        target : str, optional
            The categorical column to be predicted; all others are predictors.
        classes : sequence, optional
            The values to be predicted, where the target is no column of the schema.

        Returns
        -------
        Coding
        """
        if not isinstance(schema, Schema):
            raise InputError(
                "a private classifier needs the public domains of its columns: give schema=Schema({...}); "
                "they are never taken from the data"
            )
        if target is not None:
            found = schema[target].classes()
            if found is None:
                raise SchemaError(f"the target {target!r} must be categorical: its values are the classes")
            labels: Sequence[Any] = found
            attributes = attributes_of(schema, target=target)
        elif classes is not None:
            labels = list(classes)
            attributes = tuple(attribute_of(name, schema[name]) for name in schema.names)
        else:
            raise InputError("the classes are public input: name the schema's target column, or give classes=[...]")
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InputError(f"a classifier needs at least two different classes, got {list(labels)!r}")
        return cls(attributes, _label_array(labels), schema)

    @property
    def names(self) -> tuple[str, ...]:
        """The predictors by name."""
        return tuple(a.name for a in self.attributes)

    @cached_property
    def taxonomies(self) -> tuple[Levels, ...]:
        """The levels of each predictor."""
        return tuple(a.levels for a in self.attributes)

    @property
    def class_labels(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(str(c) for c in self.classes)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """The leaf of every column for the rows `X`, a data frame (by name) or an array (in the order of the schema)."""
        columns = self._columns(X)
        rows = len(columns[0]) if columns else 0
        out = np.empty((rows, len(self.attributes)), dtype=np.int32, order="F")
        for j, (attribute, column) in enumerate(zip(self.attributes, columns, strict=True)):
            out[:, j] = leaves_of(attribute, column)
        return out

    def class_codes(self, y: Any) -> NDArray[np.int64]:
        """The number of each label in `y`, -1 for one that is not among the classes."""
        return category_codes(y, self.classes.tolist())

    def records(self, X: Any, y: Any, *, weights: NDArray[np.int64] | None = None) -> Exact[Records]:
        """Rows `X` with labels `y`, coded; only those that have a cell in every column and a known class.

        Names, shape and lengths are checked here. The values are read when a Meter opens the records: of every person the
        rows that the schema's unit allows, and no row without a person. `weights` are what each row's public budget pays
        for; a person with several rows has the smallest of theirs.
        """
        unit = self.schema.unit
        owners = None if unit.person is None else owners_in(X, unit.person)
        columns = self._columns(X)
        if columns and len(columns[0]) != len(y):
            raise InputError("X and y have different lengths: one label per row is needed")

        def coded() -> Records:
            leaves, classes = self.leaves(X), self.class_codes(y)
            keep = (classes >= 0) & (leaves >= 0).all(axis=1)
            weighed = weights
            if owners is not None:
                keep = within_cap(owners, unit.rows_per_person, keep)
                weighed = None if weights is None else smallest_of_person(owners, weights)
            if not keep.all():
                leaves, classes = np.asfortranarray(leaves[keep]), classes[keep]
                weighed = None if weighed is None else weighed[keep]
            return Records(self.taxonomies, leaves, classes, self.class_labels, weighed)

        return Exact.reading(coded, rows_per_person=unit.rows_per_person)

    def _columns(self, X: Any) -> list[Any]:
        need_rows(X, "a classifier")
        return columns_of(X, self.names)


def _label_array(labels: Sequence[Any]) -> NDArray[Any]:
    array = np.asarray(labels)
    return array if array.dtype.kind in "biufU" and array.ndim == 1 else np.array(list(labels), dtype=object)
