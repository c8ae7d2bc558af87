"""From features and labels to integer codes, by public domains alone.

A row becomes the leaf of each column's taxonomy (see `grids.levels`) and the number of its class. Which codes a row gets
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
from sfumato.records.attributes import Attribute, attributes_of
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.schema import Schema

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Coding:
    """The public side of a classification task: columns with their domains, and the classes.

    Examples
    --------
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
        if not isinstance(schema, Schema):
            raise InputError(
                "a private classifier needs the public domains of its columns: give schema=Schema({...}); "
                "they are never taken from the data"
            )
        if target is not None:
            domain = schema[target]
            if not isinstance(domain, Categorical):
                raise SchemaError(f"the target {target!r} must be categorical: its values are the classes")
            attributes = attributes_of(schema, target=target)
            labels: Sequence[Any] = [*domain.values, *([domain.other] if isinstance(domain.other, str) else [])]
        elif classes is not None:
            labels = list(classes)
            attributes = tuple(a for a in _all_attributes(schema))
        else:
            raise InputError("the classes are public input: name the schema's target column, or give classes=[...]")
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InputError(f"a classifier needs at least two different classes, got {list(labels)!r}")
        return cls(attributes, _label_array(labels), schema)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes)

    @cached_property
    def taxonomies(self) -> tuple[Levels, ...]:
        return tuple(a.levels for a in self.attributes)

    @property
    def class_labels(self) -> tuple[str, ...]:
        return tuple(str(c) for c in self.classes)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """The leaf of every column for the rows of a data frame (by name) or an array (in the order of the schema)."""
        columns = self._columns(X)
        rows = len(columns[0]) if columns else 0
        out = np.empty((rows, len(self.attributes)), dtype=np.int32, order="F")
        for j, (attribute, column) in enumerate(zip(self.attributes, columns, strict=True)):
            cells = cells_of(attribute.domain, column)
            out[:, j] = np.where(cells < 0, UNKNOWN, attribute.leaf_of_cell[np.maximum(cells, 0)])
        return out

    def class_codes(self, y: Any) -> NDArray[np.int64]:
        """The number of each label, -1 for one that is not among the classes."""
        return category_codes(y, self.classes.tolist())

    def records(self, X: Any, y: Any) -> Records:
        """Coded rows that have a cell in every column and a known class."""
        leaves, classes = self.leaves(X), self.class_codes(y)
        if classes.shape != (len(leaves),):
            raise InputError(f"{len(leaves)} rows but {classes.size} labels")
        keep = (classes >= 0) & (leaves >= 0).all(axis=1)
        if not keep.all():
            leaves, classes = np.asfortranarray(leaves[keep]), classes[keep]
        return Records(self.taxonomies, leaves, classes, self.class_labels)

    def _columns(self, X: Any) -> list[Any]:
        if hasattr(X, "columns"):
            missing = [name for name in self.names if name not in X.columns]
            if missing:
                raise InputError(f"the table has no column {missing[0]!r}, which the schema names")
            return [X[name] for name in self.names]
        table = np.asarray(X)
        if table.ndim != 2 or table.shape[1] != len(self.attributes):
            raise InputError(
                f"expected a table with the {len(self.attributes)} columns {', '.join(self.names)}, "
                f"got an array of shape {table.shape}"
            )
        return [table[:, j] for j in range(table.shape[1])]


def _all_attributes(schema: Schema) -> tuple[Attribute, ...]:
    from sfumato.records.attributes import attribute_of

    return tuple(attribute_of(name, schema[name]) for name in schema.names)


def _label_array(labels: Sequence[Any]) -> NDArray[Any]:
    array = np.asarray(labels)
    return array if array.dtype.kind in "biufU" and array.ndim == 1 else np.array(list(labels), dtype=object)


def cells_of(domain: Domain, column: Any) -> NDArray[np.int64]:
    """The schema cell of every value, -1 where there is none. Never fails on a value.

    >>> cells_of(Numeric(0, 10, bins=2, outside="other"), [1, "x", 99, None]).tolist()
    [0, 2, 2, 2]
    >>> cells_of(Categorical(["F", "M"]), ["M", "F", None, 3]).tolist()
    [1, 0, -1, -1]
    """
    if not isinstance(domain, Numeric):
        cells = category_codes(column, domain.values)
    else:
        cells = domain.places(_numbers(column))
    if domain.other:
        cells[cells < 0] = domain.size - 1
    return cells


def category_codes(column: Any, values: Sequence[Any]) -> NDArray[np.int64]:
    """Place of each value in a public list, -1 where it is not listed."""
    import pandas as pd

    if isinstance(getattr(column, "dtype", None), pd.StringDtype | pd.CategoricalDtype):
        # Stored as text or codes already: only the different values have to become Python objects.
        number, different = pd.factorize(column, use_na_sentinel=False)
        return category_codes(np.asarray(different, dtype=object), values)[number]
    plain = column.to_numpy(dtype=object) if hasattr(column, "to_numpy") else np.asarray(column, dtype=object)
    listed = pd.Index(list(values), dtype=object)
    try:
        return np.array(listed.get_indexer(pd.Index(plain.reshape(-1), dtype=object)), dtype=np.int64)
    except TypeError:  # lists or other values without a hash: no category is one
        place = {value: i for i, value in enumerate(values)}
        return np.array([place.get(v, UNKNOWN) if _has_hash(v) else UNKNOWN for v in plain], dtype=np.int64)


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # a list, or a tuple with one inside
        return False
    return True


def _numbers(column: Any) -> NDArray[np.float64]:
    import pandas as pd

    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "biuf" and isinstance(column, np.ndarray):
        return column.astype(np.float64)
    series = column if isinstance(column, pd.Series) else pd.Series(list(column), dtype=object)
    try:
        found = pd.to_numeric(series, errors="coerce")
        if found.dtype.kind != "c":
            return np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_number(v) for v in series], dtype=np.float64)  # a value that is no float64: each by itself


def _number(value: Any) -> float:
    import pandas as pd

    if isinstance(value, complex | np.complexfloating):
        return float("nan")
    try:
        return float(pd.to_numeric(pd.Series([value], dtype=object), errors="coerce").iloc[0])
    except OverflowError:  # a whole number beyond float64
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        return float("nan")
