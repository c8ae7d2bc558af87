"""Slow plain-Python versions of what the engines compute, written from the documented rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.tables import Numeric, Schema
from sfumato.tables.predicates import Both, Compare, Either, InCells, Missing, Not

NANO = 10**9


def clean(value: Any, domain: Any) -> Any:
    """The cleaned value, or None where the value is outside the domain."""
    if not isinstance(domain, Numeric):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        return next((v for v in domain.values if v == value and isinstance(v, str) == isinstance(value, str)), None)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if value < domain.low or value > domain.high:
        if domain.outside == "other":
            return None
        value = min(max(value, domain.low), domain.high)
    return math.floor(value) if domain.integer else value


def code(value: Any, domain: Any) -> int | None:
    """The cell, or None for no cell."""
    known = clean(value, domain)
    if known is None:
        return domain.size - 1 if domain.other else None
    if not isinstance(domain, Numeric):
        return domain.values.index(known)
    cell = 0
    for number, edge in enumerate(domain.edges[:-1]):
        if known >= edge:
            cell = number
    return cell


def holds(predicate: Any, row: dict[str, Any], schema: Schema) -> bool:
    return truth(predicate, row, schema) is True


def truth(predicate: Any, row: dict[str, Any], schema: Schema) -> bool | None:
    """Three-valued logic, as in SQL: None is unknown."""
    if isinstance(predicate, Not):
        inner = truth(predicate.part, row, schema)
        return None if inner is None else not inner
    if isinstance(predicate, Both | Either):
        found = [truth(p, row, schema) for p in predicate.parts]
        decisive = isinstance(predicate, Either)
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    domain = schema[predicate.column]
    known = clean(row[predicate.column], domain)
    if isinstance(predicate, Missing):
        return known is None
    if isinstance(predicate, InCells):
        other = len(domain.values)
        if known is None:
            return True if other in predicate.codes else None
        return domain.values.index(known) in predicate.codes
    assert isinstance(predicate, Compare)
    if known is None:
        return None
    c = predicate.value
    return {"=": known == c, "!=": known != c, "<": known < c, "<=": known <= c, ">": known > c, ">=": known >= c}[
        predicate.op
    ]


def counts(rows: list[dict[str, Any]], columns: list[str], schema: Schema, predicate: Any = None) -> np.ndarray:
    dense = np.zeros(schema.shape(columns), dtype=np.int64)
    for row in rows:
        codes = tuple(code(row[c], schema[c]) for c in columns)
        if None not in codes and (predicate is None or holds(predicate, row, schema)):
            dense[codes] += 1
    return dense


def nano(epsilon: Any) -> int:
    if epsilon is None or math.isnan(epsilon) or epsilon <= 0:
        return 0
    return math.floor(min(float(epsilon), 1e6) * 1e9 + 1e-6)


def lattice(value: Any, domain: Numeric, steps: int) -> int:
    known = clean(value, domain)
    if known is None:
        return 0
    low, high = float(domain.low), float(domain.high)
    return min(steps, math.floor((float(known) - low) * (steps / (high - low)) + 0.5))
