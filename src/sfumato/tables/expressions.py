"""From schema to engine: cells, predicates and lattices as Ibis expressions that no row can make fail.

Engines differ on NaN (in some it is larger than every number), on comparing unlike types and on casts of infinity.
So everything here is decided from the *type* of a column, which is public, and built from comparisons on values
that are finite by then; some engines evaluate every branch of a CASE, so a branch must be total on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sfumato.errors import SchemaError
from sfumato.privacy.units import MAX_EPSILON, NANO
from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.predicates import Both, Compare, Either, InCells, Missing, Not, Predicate

Expr = Any  # Ibis has no useful static types


@dataclass(frozen=True)
class Source:
    """A physical column, brought to one of four kinds: "int", "float", "bool" or "text"."""

    expr: Expr
    kind: str

    @property
    def known(self) -> Expr:
        """True where there is a value: neither NULL nor NaN."""
        if self.kind == "float":
            return self.expr.notnull() & ~self.expr.isnan()
        return self.expr.notnull()


def number_source(expr: Expr, *, engine: str, what: str, text: bool = False) -> Source:
    """A column as a number, judged by its type; `text` for untyped sources (CSV), where bad text is missing."""
    import ibis

    kind = expr.type()
    if kind.is_integer():
        return Source(expr, "int")
    if kind.is_floating():
        return Source(expr if kind.is_float64() else expr.cast("float64"), "float")
    if kind.is_decimal():
        if engine == "postgres":
            # Unbounded decimals: 1e400 does not fit a double and the cast would fail on it.
            limit = 10**30
            small = ibis.cases((expr > limit, limit), (expr < -limit, -limit), else_=expr).cast("float64")
            return Source(ibis.cases((expr.cast("string").lower() == "nan", math.nan), else_=small), "float")
        return Source(expr.cast("float64"), "float")
    if kind.is_boolean():
        return Source(ibis.cases((expr, 1), (~expr, 0)), "int")
    if kind.is_string() and text:
        return Source(expr.try_cast("float64"), "float")
    raise SchemaError(f"{what} is numeric in the schema, but the table holds {kind}; make it categorical or convert it")


def category_source(expr: Expr, domain: Categorical, *, engine: str, what: str, text: bool = False) -> Source:
    """A column as something the listed values can be compared with, judged by its type."""
    import ibis

    kind, sample = expr.type(), domain.values[0]
    if isinstance(sample, str):
        if kind.is_string():
            return Source(expr, "text")
        hint = "; write whole numbers without quotes" if kind.is_integer() else ""
        raise SchemaError(f"{what} has text values in the schema, but the table holds {kind}{hint}")
    if isinstance(sample, bool):
        if kind.is_boolean():
            return Source(expr, "bool")
        if kind.is_integer():
            return Source(ibis.cases((expr == 1, True), (expr == 0, False)), "bool")
        if kind.is_string() and text:
            word = expr.lower()
            return Source(ibis.cases((word == "true", True), (word == "false", False)), "bool")
        raise SchemaError(f"{what} is true/false in the schema, but the table holds {kind}")
    if kind.is_boolean():
        raise SchemaError(f"{what} has whole numbers in the schema, but the table holds {kind}; use true and false")
    return number_source(expr, engine=engine, what=what, text=text)


def source_of(expr: Expr, domain: Domain, *, engine: str, what: str, text: bool = False) -> Source:
    """A physical column, ready for its domain."""
    if isinstance(domain, Numeric):
        return number_source(expr, engine=engine, what=what, text=text)
    return category_source(expr, domain, engine=engine, what=what, text=text)


def _double(value: float) -> Any:
    """A literal that reaches the engine to the last bit.

    DuckDB reads 0.09090909090909091 as a decimal and converts it, one bit off; from text every engine is exact.
    """
    import ibis

    text = repr(float(value))
    return float(value) if sum(c.isdigit() for c in text) <= 15 else ibis.literal(text).cast("float64")


def _literal(source: Source, value: float, up: bool = True) -> Any:
    """A bound to compare with; on whole numbers x < 2.5 is x < 3, so the engine need not convert the column."""
    if source.kind != "int":
        return _double(value)
    return math.ceil(value) if up else math.floor(value)


# ------------------------------------------------------------------------------------- cells and lattices


def cleaned(source: Source, domain: Numeric) -> Expr:
    """The cleaned number as a double: within the bounds, rounded down in an integer column, NULL where missing."""
    import ibis

    x, low, high = source.expr, _double(domain.low), _double(domain.high)
    clamp = domain.outside == "clamp"
    below, above = (low, high) if clamp else (ibis.null("float64"), ibis.null("float64"))
    if source.kind == "int":
        tests = (x < _literal(source, domain.low), below), (x > _literal(source, domain.high, up=False), above)
        value = ibis.cases(*tests, else_=x.cast("float64"))
    else:
        value = ibis.cases((x < low, below), (x <= high, x), ((x > high) & ~x.isnan(), above))
    return value.floor().cast("float64") if domain.integer and source.kind == "float" else value


def cell(source: Source, domain: Domain) -> Expr:
    """The number of a row's cell, NULL if it has none."""
    if isinstance(domain, Categorical):
        return _category_cell(source, domain)
    if domain.bins is not None and domain.bins > 16:
        return _equal_cell(source, domain)
    return _tree_cell(source, domain)


def _category_cell(source: Source, domain: Categorical) -> Expr:
    import ibis

    other = len(domain.values) if domain.other else None
    values = [_double(float(v)) for v in domain.values] if source.kind == "float" else list(domain.values)
    if source.kind not in ("int", "float"):
        return ibis.cases(*((source.expr == v, code) for code, v in enumerate(values)), else_=other)
    order = sorted(range(len(values)), key=domain.values.__getitem__)

    def search(first: int, last: int) -> Expr:
        if last - first <= 4:
            return ibis.cases(*((source.expr == values[c], c) for c in order[first:last]), else_=other)
        middle = (first + last) // 2
        return ibis.ifelse(source.expr < values[order[middle]], search(first, middle), search(middle, last))

    return search(0, len(values))


def _tree_cell(source: Source, domain: Numeric) -> Expr:
    """Binary search by comparisons; NULL and NaN are less than nothing and end in the last leaf, which looks."""
    import ibis

    x, last = source.expr, len(domain.edges) - 2
    other = last + 1 if domain.other else None
    cuts = [_literal(source, e) for e in domain.edges[1:-1]]

    def search(low: int, high: int) -> Expr | int:
        if low == high:
            return ibis.cases((source.known, last), else_=other) if low == last else low
        middle = (low + high) // 2
        return ibis.ifelse(x < cuts[middle], search(low, middle), search(middle + 1, high))

    found = search(0, last)
    if domain.outside == "other":
        inside = (x >= _literal(source, domain.low)) & (x <= _literal(source, domain.high, up=False))
        return ibis.cases((inside, found), else_=other)
    return found


def _equal_cell(source: Source, domain: Numeric) -> Expr:
    """Equal width by arithmetic on the cleaned value, which is finite: exactly the bins of `Numeric.edges`."""
    import ibis

    y, low, width, bins = cleaned(source, domain), _double(domain.low), _double(domain.width), int(domain.bins or 1)
    if domain.integer:
        span = int(domain.high) - int(domain.low) + 1
        found = ((y - low) * float(bins) / float(span)).floor()
        return found.fill_null(bins) if domain.other else found
    guess = ((y - low) / width).floor()
    # Rounding can put the guess one bin off; the edges decide.
    start = guess.cast("float64") * width + low
    end = (guess + 1).cast("float64") * width + low
    found = ibis.cases(
        (guess >= bins, bins - 1), (y < start, guess - 1), ((y >= end) & (guess < bins - 1), guess + 1), else_=guess
    )
    return found.fill_null(bins) if domain.other else found


def lattice(source: Source, domain: Numeric, steps: int, base: int = 0) -> Expr:
    """The cleaned number on base..base + steps (nearest point between the public bounds); 0 where missing."""
    import ibis

    scale = steps / (float(domain.high) - float(domain.low))
    place = (cleaned(source, domain) - _double(domain.low)) * _double(scale) + 0.5
    on_lattice = ibis.cases((place >= float(steps), steps), (place.notnull(), place.floor()), else_=0).cast("int64")
    return on_lattice if base == 0 else ibis.ifelse(place.notnull(), on_lattice + base, 0).cast("int64")


def nano_budget(source: Source) -> Expr:
    """A budget in ε as whole nano-ε, rounded down; 0 where there is none or it is not positive."""
    import ibis

    e = source.expr.cast("float64") if source.kind == "int" else source.expr
    top = float(MAX_EPSILON)
    finite = ibis.cases((e <= 0.0, 0.0), (e < top, e), (e.notnull() & ~e.isnan(), top), else_=0.0)
    # 0.3 * 1e9 is a hair below 300 million in binary; what the person wrote is 0.3.
    return (finite * float(NANO) + 1e-6).floor().cast("int64")


# ------------------------------------------------------------------------------------------- predicates


def condition(predicate: Predicate, sources: dict[str, Source], domains: Any, *, negate: bool = False) -> Expr:
    """A predicate as a boolean expression; negations are pushed to the comparisons, where missing stays false."""
    import ibis

    if isinstance(predicate, Not):
        return condition(predicate.part, sources, domains, negate=not negate)
    if isinstance(predicate, Both | Either):
        parts = [condition(p, sources, domains, negate=negate) for p in predicate.parts]
        if isinstance(predicate, Both) != negate:
            return reduce(_and, parts) if parts else ibis.literal(True)
        return reduce(_or, parts) if parts else ibis.literal(False)
    source, domain = sources[predicate.column], domains[predicate.column]
    if isinstance(predicate, InCells):
        codes = set(predicate.codes)
        if negate:
            codes = set(range(len(domain.values))) - codes
        found = _is_in(source, [v for c, v in enumerate(domain.values) if c in codes])
        return found | ~_inside(source, domain) if len(domain.values) in codes else found
    if isinstance(predicate, Missing):
        return _inside(source, domain) if negate else ~_inside(source, domain)
    opposite: Any = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    op = opposite[predicate.op] if negate else predicate.op
    return _compare(source, domain, Compare(predicate.column, op, predicate.value))


def _and(a: Expr, b: Expr) -> Expr:
    return a & b


def _or(a: Expr, b: Expr) -> Expr:
    return a | b


def _is_in(source: Source, values: list[Any]) -> Expr:
    """True or false, never NULL."""
    import ibis

    if not values:
        return ibis.literal(False)
    if source.kind == "bool":
        return source.expr.notnull() & reduce(_or, [source.expr == v for v in values])
    return source.expr.notnull() & source.expr.isin([_double(v) for v in values] if source.kind == "float" else values)


def _inside(source: Source, domain: Domain) -> Expr:
    """True where the value is in the domain; never NULL."""
    if isinstance(domain, Categorical):
        return _is_in(source, list(domain.values))
    if domain.outside == "clamp":
        return source.known
    x = source.expr
    return source.known & (x >= _literal(source, domain.low)) & (x <= _literal(source, domain.high, up=False))


def _compare(source: Source, domain: Numeric, atom: Compare) -> Expr:
    """Compare the cleaned value by testing the raw one, so that engines can skip what cannot match.

    The comparison is an interval of cleaned values. An end of the interval that reaches a bound of the domain
    takes in everything clamped to that bound, so nothing is tested there.
    """
    import ibis

    c = min(max(atom.value, float(domain.low) - 1.0), float(domain.high) + 1.0)  # beyond the bounds all is alike
    if atom.op == "!=":
        return _compare(source, domain, Compare(atom.column, "<", c)) | _compare(
            source, domain, Compare(atom.column, ">", c)
        )
    low, low_open = (c, atom.op == ">") if atom.op in ("=", ">", ">=") else (-math.inf, True)
    high, high_open = (c, atom.op == "<") if atom.op in ("=", "<", "<=") else (math.inf, True)
    if domain.integer:
        low = low if math.isinf(low) else math.floor(low) + 1 if low_open else math.ceil(low)
        high = high if math.isinf(high) else math.ceil(high) - 1 if high_open else math.floor(high)
        low_open = high_open = False
    if low > high or low > domain.high or high < domain.low:
        return ibis.literal(False)
    from_bottom = low < domain.low or (low == domain.low and not low_open)
    to_top = high > domain.high or (high == domain.high and not high_open)
    if (low == domain.high and low_open) or (high == domain.low and high_open):
        return ibis.literal(False)

    x, tests = source.expr, [_inside(source, domain)] if to_top or domain.outside == "other" else []
    if not from_bottom:
        above = low_open if source.kind != "int" else low_open and low == math.floor(low)
        limit = _literal(source, low)
        tests.append(x > limit if above else x >= limit)
    if not to_top:
        if domain.integer:
            tests.append(x < _literal(source, high + 1))
        else:
            tests.append(x < _literal(source, high) if high_open else x <= _literal(source, high, up=False))
    return reduce(_and, tests)
