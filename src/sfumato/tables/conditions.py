"""A `where` as one expression for an engine. Each comparison is made by the domain of its column; none can fail."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.tables.columns import Column, Expr, all_of, any_of
from sfumato.tables.domains import Domain
from sfumato.tables.predicate_tree import Both, Either, Not, Predicate


def condition(
    predicate: Predicate, columns: Mapping[str, Column], domains: Mapping[str, Domain], *, negate: bool = False
) -> Expr:
    """A predicate as a boolean expression; negations are pushed to the comparisons, where missing stays false."""
    if isinstance(predicate, Not):
        return condition(predicate.part, columns, domains, negate=not negate)
    if isinstance(predicate, Both | Either):
        parts = [condition(p, columns, domains, negate=negate) for p in predicate.parts]
        return all_of(parts) if isinstance(predicate, Both) != negate else any_of(parts)
    return domains[predicate.column].holds(columns[predicate.column], predicate, negate=negate)
