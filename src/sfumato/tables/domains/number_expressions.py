"""Numbers between bounds as expressions for engines: cleaned values, cells and comparisons that no row can make fail."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from sfumato.tables.columns import Column, Expr, all_of, any_of, bound, exact_double, without_dust
from sfumato.tables.predicate_tree import Op
from sfumato.tables.raw_groups import MOST_GROUPS, Grouping

if TYPE_CHECKING:
    from sfumato.tables.domains.numeric import Numeric

FEW_BINS = 4  # up to here comparisons are cheaper than a division
MOST_SLACK = 2.0**-10  # of a bin; finer bins are at the end of double precision
COMPARISONS: dict[Op, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def inside(column: Column, domain: Numeric) -> Expr:
    """True where the value is in the domain; never NULL."""
    if domain.outside == "clamp":
        return column.known
    x = column.expr
    return column.known & (x >= bound(column, domain.low)) & (x <= bound(column, domain.high, up=False))


def cleaned(column: Column, domain: Numeric) -> Expr:
    """The cleaned number as a double: within the bounds, rounded down in an integer column, NULL where missing."""
    import ibis

    x, low, high = column.expr, exact_double(domain.low), exact_double(domain.high)
    clamp = domain.outside == "clamp"
    below, above = (low, high) if clamp else (ibis.null("float64"), ibis.null("float64"))
    if column.kind == "int":
        tests = (x < bound(column, domain.low), below), (x > bound(column, domain.high, up=False), above)
        value = ibis.cases(*tests, else_=x.cast("float64"))
    else:
        value = ibis.cases((x < low, below), (x <= high, x), ((x > high) & ~x.isnan(), above))
    return value.floor().cast("float64") if domain.integer and column.kind == "float" else value


def tree_cell(column: Column, domain: Numeric) -> Expr:
    """Binary search by comparisons; NULL and NaN are less than nothing and end in the last leaf, which looks."""
    import ibis

    x, last = column.expr, domain.listed - 1
    other = last + 1 if domain.other else None
    cuts = [bound(column, e) for e in domain.edges[1:-1]]

    def search(low: int, high: int) -> Expr | int:
        if low == high:
            return ibis.cases((column.known, last), else_=other) if low == last else low
        middle = (low + high) // 2
        return ibis.ifelse(x < cuts[middle], search(low, middle), search(middle + 1, high))

    found = search(0, last)
    if domain.outside == "other":
        within = (x >= bound(column, domain.low)) & (x <= bound(column, domain.high, up=False))
        return ibis.cases((within, found), else_=other)
    return found


def equal_cell(column: Column, domain: Numeric) -> Expr:
    """Equal width by arithmetic on the cleaned value, which is finite: exactly the bins of `Numeric.edges`."""
    import ibis

    y, low, width = cleaned(column, domain), exact_double(domain.low), exact_double(domain.width)
    bins = domain.listed
    if domain.integer:
        span = int(domain.high) - int(domain.low) + 1
        found = ((y - low) * float(bins) / float(span)).floor()
        return found.fill_null(bins) if domain.other else found
    guess = (without_dust(y - low, domain.width) / width).floor()
    # Rounding can put the guess one bin off; the edges decide.
    start = guess.cast("float64") * width + low
    end = (guess + 1).cast("float64") * width + low
    found = ibis.cases(
        (guess >= bins, bins - 1), (y < start, guess - 1), ((y >= end) & (guess < bins - 1), guess + 1), else_=guess
    )
    return found.fill_null(bins) if domain.other else found


def divided(column: Column, domain: Numeric) -> Grouping | None:
    """Numbers grouped before they are bins: in an integer column by themselves, in bins of equal width by `quotient`."""
    import ibis

    if column.kind != "float" or (domain.missing and domain.outside == "other"):  # whose cleaned values are NULL alike
        return None
    if domain.integer:
        most = int(domain.high) - int(domain.low) + 2
        return Grouping(cleaned(column, domain), most, "float", domain.code) if most <= MOST_GROUPS else None
    if domain.bins is None or domain.bins <= FEW_BINS or slack(domain) > MOST_SLACK:
        return None
    bins, rest = domain.bins, domain.size - 1 if domain.extra else None

    def code(key: Column) -> Expr:
        return ibis.cases((key.expr >= bins, bins - 1), (key.expr >= 0, key.expr), else_=rest).cast("int64")

    return Grouping(quotient(cleaned(column, domain), domain, column.engine), bins + 2, "int", code)


def slack(domain: Numeric) -> float:
    """In bins, more than twice what rounding can move a quotient against an edge, where there are at least five.

    With n bins, M the larger bound in size and u = 2^-53: the shifted bound is off by u (M/w + 1), difference and quotient
    by u (n + 1) each, an edge by u (n + M/w). Together that is below 4 u (n + M/w), and this is 8 u (n + M/w).
    """
    return (domain.listed + max(abs(float(domain.low)), abs(float(domain.high))) / domain.width) * 2.0**-50


def quotient(y: Expr, domain: Numeric, engine: str) -> Expr:
    """The bin of a cleaned number by a division; where rounding might decide, the edges do. At the upper bound, `listed`.

    With s the `slack`, a value of bin i is divided as if it lay 2s further down, so it comes out between i - 3s and
    i + 1 - s: as i, or as i - 1 with a fraction of at least 1 - 3s. Only such a fraction is compared with the edge above,
    which is ``low + i * width`` as in `Numeric.edges`. No quotient is too small for a double, on which PostgreSQL fails.
    """
    import ibis

    low, width, s = float(domain.low), exact_double(domain.width), slack(domain)
    place = (y - exact_double(low + 2 * s * domain.width)) / width
    guess = _floor()(place) if engine in ("duckdb", "postgres") else place.floor().cast("float64")
    above = (guess + 1.0) * width + exact_double(low)
    return ibis.ifelse(place - guess >= exact_double(1 - 4 * s), ibis.ifelse(y >= above, guess + 1.0, guess), guess)


@cache
def _floor() -> Any:
    import ibis

    @ibis.udf.scalar.builtin(name="floor", signature=(("float64",), "float64"))
    def floor(number):  # type: ignore[no-untyped-def]
        """Rounded down, and left a double: Ibis would make a whole number of it, which takes two more steps a row."""

    return floor


def compared(column: Column, domain: Numeric, op: Op, value: float) -> Expr:
    """Compare the cleaned value by testing the raw one, so that engines can skip what cannot match.

    The comparison is an interval of cleaned values. An end of the interval that reaches a bound of the domain
    takes in everything clamped to that bound, so nothing is tested there.
    """
    import ibis

    c = min(max(value, float(domain.low) - 1.0), float(domain.high) + 1.0)  # beyond the bounds all is alike
    if op == "!=":
        return any_of([compared(column, domain, "<", c), compared(column, domain, ">", c)])
    low, low_open = (c, op == ">") if op in ("=", ">", ">=") else (-math.inf, True)
    high, high_open = (c, op == "<") if op in ("=", "<", "<=") else (math.inf, True)
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

    x, tests = column.expr, []
    if domain.outside == "other" or (to_top and from_bottom):
        tests.append(inside(column, domain))
    elif to_top and column.kind == "float":
        tests.append(~x.isnan())  # larger than every number, for most engines; NULL satisfies no comparison
    if not from_bottom:
        above = low_open if column.kind != "int" else low_open and low == math.floor(low)
        limit = bound(column, low)
        tests.append(x > limit if above else x >= limit)
    if not to_top:
        if domain.integer:
            tests.append(x < bound(column, high + 1))
        else:
            tests.append(x < bound(column, high) if high_open else x <= bound(column, high, up=False))
    return all_of(tests)
