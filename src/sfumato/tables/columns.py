"""Physical columns of an open table, brought to a kind that engines compare alike, and literals to compare them with.

Engines differ on NaN (in some it is larger than every number), on comparing unlike types and on casts of infinity.
So everything here is decided from the *type* of a column, which is public, and built from comparisons on values
that are finite by then; some engines evaluate every branch of a CASE, so a branch must be total on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from sfumato.errors import SchemaError
from sfumato.privacy.units import MAX_EPSILON, NANO

Expr = Any  # Ibis has no useful static types


@dataclass(frozen=True)
class Column:
    """A column of the table as an expression, and its kind: "int", "float", "bool" or "text".

    `place` is its place in a long public list, where a join has found it (see `sfumato.tables.lookups`); `engine` is the
    name of the engine that holds it, where it matters.
    """

    expr: Expr
    kind: str
    place: Expr | None = None
    engine: str = ""

    @property
    def known(self) -> Expr:
        """True where there is a value: neither NULL nor NaN."""
        if self.kind == "float":
            return self.expr.notnull() & ~self.expr.isnan()
        return self.expr.notnull()


def number_column(expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
    """A column as a number, judged by its type; `text` for untyped tables (CSV), where bad text is missing."""
    import ibis

    kind = expr.type()
    if kind.is_integer():
        return Column(expr, "int")
    if kind.is_floating():
        return Column(expr if kind.is_float64() else expr.cast("float64"), "float")
    if kind.is_decimal():
        return Column(_postgres_double(expr) if engine == "postgres" else expr.cast("float64"), "float")
    if kind.is_boolean():
        return Column(ibis.cases((expr, 1), (~expr, 0)), "int")
    if kind.is_string() and text:
        return Column(expr.try_cast("float64"), "float")
    raise SchemaError(f"{what} is numeric in the schema, but the table holds {kind}; make it categorical or convert it")


def _postgres_double(expr: Expr) -> Expr:
    """PostgreSQL's decimals have no bounds: a cast to double fails on 1e400 and on 1e-400, so neither may reach it."""
    import ibis

    # From text: Ibis compares decimals with decimals only, and a literal of 31 digits with nothing.
    huge, least, tiny, minus_tiny, none = (
        ibis.literal(t).cast("decimal") for t in ("1e30", "-1e30", "1e-300", "-1e-300", "0")
    )
    nan = expr.cast("string").lower() == "nan"
    within = ibis.cases(
        (nan, none), (expr > huge, huge), (expr < least, least), ((expr < tiny) & (expr > minus_tiny), none), else_=expr
    )
    return ibis.cases((nan, math.nan), else_=within.cast("float64"))


def text_column(expr: Expr, *, what: str) -> Column:
    """A column as text, judged by its type."""
    kind = expr.type()
    if kind.is_string():
        return Column(expr, "text")
    hint = "; write whole numbers without quotes" if kind.is_integer() else ""
    raise SchemaError(f"{what} has text values in the schema, but the table holds {kind}{hint}")


def truth_column(expr: Expr, *, what: str, text: bool = False) -> Column:
    """A column as true/false, judged by its type; 0 and 1 will do."""
    import ibis

    kind = expr.type()
    if kind.is_boolean():
        return Column(expr, "bool")
    if kind.is_integer():
        return Column(ibis.cases((expr == 1, True), (expr == 0, False)), "bool")
    if kind.is_string() and text:
        word = expr.lower()
        return Column(ibis.cases((word == "true", True), (word == "false", False)), "bool")
    raise SchemaError(f"{what} is true/false in the schema, but the table holds {kind}")


def nano_budget(column: Column) -> Expr:
    """A budget in ε as whole nano-ε, rounded down; 0 where there is none or it is not positive."""
    import ibis

    e = column.expr.cast("float64") if column.kind == "int" else column.expr
    top = float(MAX_EPSILON)
    finite = ibis.cases((e <= 0.0, 0.0), (e < top, e), (e.notnull() & ~e.isnan(), top), else_=0.0)
    # 0.3 * 1e9 is a hair below 300 million in binary; what the person wrote is 0.3.
    return (finite * float(NANO) + 1e-6).floor().cast("int64")


def part_of(nano: Expr, fraction: Fraction) -> Expr:
    """floor(nano * fraction) in 64 bits: quotient and remainder apart, so that no product overflows."""
    import ibis

    top, bottom = (ibis.literal(n, type="int64") for n in (fraction.numerator, fraction.denominator))
    rest = nano % bottom
    whole = (nano - rest) // bottom
    return (whole * top + (rest * top - (rest * top) % bottom) // bottom).cast("int64")


# --------------------------------------------------------------------------------------------- literals and logic


def exact_double(value: float) -> Any:
    """A literal that reaches the engine to the last bit.

    DuckDB reads 0.09090909090909091 as a decimal and converts it, one bit off; from text every engine is exact.
    """
    import ibis

    text = repr(float(value))
    return float(value) if sum(c.isdigit() for c in text) <= 15 else ibis.literal(text).cast("float64")


def without_dust(distance: Expr, unit: float) -> Expr:
    """A distance of at least 0 with less than 2^-60 of a `unit` taken for 0: it is in no way nearer to the next unit.

    PostgreSQL raises an error where a product or quotient is too small for a double.
    """
    import ibis

    return ibis.ifelse(distance < exact_double(unit * 2.0**-60), 0.0, distance)


def bound(column: Column, value: float, up: bool = True) -> Any:
    """A bound to compare with; on whole numbers x < 2.5 is x < 3, so the engine need not convert the column."""
    if column.kind != "int":
        return exact_double(value)
    return math.ceil(value) if up else math.floor(value)


def all_of(parts: Sequence[Expr]) -> Expr:
    """True where every part is."""
    import ibis

    return _paired(parts, lambda a, b: a & b) if parts else ibis.literal(True)


def any_of(parts: Sequence[Expr]) -> Expr:
    """True where some part is."""
    import ibis

    return _paired(parts, lambda a, b: a | b) if parts else ibis.literal(False)


def _paired(parts: Sequence[Expr], join: Any) -> Expr:
    """Joined in pairs of pairs: a chain of hundreds would nest deeper than engines and Python can follow."""
    while len(parts) > 2:
        parts = [reduce(join, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return reduce(join, parts)
