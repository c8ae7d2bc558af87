"""Which share of the public domain a condition covers, from the schema alone.

A column's values count alike (the numbers of an interval by its length), and columns as independent. That says nothing
certain about the people in a table; it says how narrow a condition is, which is a first guess of whom it selects.

    covered(p) = Σ_pieces share(piece) covered(p | piece)

The domain of a column falls into pieces on which none of the comparisons in the condition changes (`Domain.pieces`). The
parts of a condition that share no column multiply; where they share one, the sum over its pieces takes it out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sfumato.tables.predicate_tree import Both, Either, Not, Predicate, atoms, columns_of
from sfumato.tables.predicates import Where, parse_where
from sfumato.tables.schema import Schema

MISSING = 0.5  # a schema does not say how many values are missing: a condition that asks about it is anybody's guess
MOST_PIECES = 500  # looked at one by one; parts of a larger condition count as independent though they share columns


def coverage(schema: Schema, where: Where) -> float:
    """The share of the public domain that a condition covers.

    Parameters
    ----------
    schema : Schema
        The public columns.
    where : str, mapping, Predicate or None
        The condition.

    Returns
    -------
    float
        Between 0 and 1. A single number of a column that is not whole covers 0.

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 119, bins=12, integer=True), "sex": Categorical(["F", "M"])})
    >>> coverage(schema, "age >= 60"), coverage(schema, "age >= 60 and sex = 'F'"), coverage(schema, "age = 7 or age > 113")
    (0.5, 0.25, 0.058333333333333334)
    """
    return min(1.0, max(0.0, _share(parse_where(where, schema), schema, {}, MOST_PIECES, negate=False)))


def _share(predicate: Predicate, schema: Schema, known: Mapping[str, Any], room: int, *, negate: bool) -> float:
    """The share of the domain, where the values of some columns are `known`; `room` pieces may be looked at."""
    if isinstance(predicate, Not):
        return _share(predicate.part, schema, known, room, negate=not negate)
    columns = columns_of(predicate) - known.keys()
    if not columns:
        return float(_holds(predicate, schema, known, negate=negate))
    shared = next(iter(columns)) if len(columns) == 1 else _shared_column(predicate, known)
    if shared is not None:
        pieces = _pieces(shared, predicate, schema)
        if len(columns) == 1 or len(pieces) <= room:
            return math.fsum(
                share * _share(predicate, schema, {**known, shared: value}, room // len(pieces), negate=negate)
                for value, share in pieces
            )
    assert isinstance(predicate, Both | Either)  # a comparison has one column
    found = [_share(part, schema, known, room, negate=negate) for part in predicate.parts]
    return math.prod(found) if isinstance(predicate, Both) != negate else 1 - math.prod(1 - share for share in found)


def _shared_column(predicate: Predicate, known: Mapping[str, Any]) -> str | None:
    """The column that most parts have in common, if any two have one."""
    assert isinstance(predicate, Both | Either)
    counts = Counter(name for part in predicate.parts for name in sorted(columns_of(part) - known.keys()))
    name, parts = counts.most_common(1)[0]
    return name if parts > 1 else None


def _pieces(name: str, predicate: Predicate, schema: Schema) -> list[tuple[Any, float]]:
    """The pieces of a column; a missing value is one only where the condition asks about it."""
    domain = schema[name]
    asked = [atom for atom in atoms(predicate) if atom.column == name]
    found = list(domain.pieces(asked))
    beyond = [value for value in domain.outsiders if any(domain.may_hold(atom, value) for atom in asked)]
    if not beyond:
        return found
    listed = ((value, share * (1 - MISSING)) for value, share in found)
    return [*((value, MISSING / len(beyond)) for value in beyond), *listed]


def _holds(predicate: Predicate, schema: Schema, known: Mapping[str, Any], *, negate: bool) -> bool:
    if isinstance(predicate, Not):
        return _holds(predicate.part, schema, known, negate=not negate)
    if isinstance(predicate, Both | Either):
        found = (_holds(part, schema, known, negate=negate) for part in predicate.parts)
        return all(found) if isinstance(predicate, Both) != negate else any(found)
    return schema[predicate.column].may_hold(predicate, known[predicate.column], negate=negate)
