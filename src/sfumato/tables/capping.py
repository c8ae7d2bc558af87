"""At most so many rows of each person: who is bound by which budget, which rows may count, and then the cap.

The order is: the smallest budget of a person over *all* their rows; then the rows that can count (`where`, and a cell in
every column that is asked for); then at most k of these for each person, chosen at random. A row that could not count
takes nobody's place.

*Guarantee.* Two tables are neighbours if one has all rows of a person that the other lacks. Whether a row can count is a
public function of that row alone, so the rows that can count differ by rows of that person and by no others. Which k of a
person's rows are kept is drawn from these rows, independently of everybody else's: with one and the same draw for the
others, what is left of the two tables differs in at most k rows, all of them of one person. So a sum in which a row adds
at most b moves by at most k b, and whatever costs ε for one row costs k ε. A person's budget is a minimum over rows of
their own, those that cannot count among them: it moves nobody else's weight, and it does not depend on what is asked, so
that nobody weighs more than the least they granted.

The number of rows of a person that count is ``min(n, k)`` whichever are drawn, so that counts need no draw: a hash aggregate
over persons gives the same number (`rows_of_each`). Where cells or values matter, only the rows of those who own more than k
are drawn from.

Which rows are drawn must not follow from the order in which an engine meets them: that order depends on others' rows.

With other values in a column of the `where`, other rows of a person may be kept: up to k leave and up to k come. That is a
replaced record, not k rows less; see `sfumato.releases.attribute_charges`.
"""

from __future__ import annotations

from sfumato.extras import need
from sfumato.tables.columns import Expr
from sfumato.tables.engines import Engine, fresh_name


def with_lowest(rows: Expr, granted: Expr) -> Expr:
    """The `rows` with column ``key``: the smallest one among all rows of the same person in `granted`."""
    each = lowest_of_each(granted).rename(who="person")
    return rows.inner_join(each, rows["person"] == each["who"]).drop("who")


def lowest_of_each(granted: Expr) -> Expr:
    """Every person once, with their smallest ``key``."""
    known = _of_somebody(granted)
    return known.group_by("person").agg(key=_lowest(known))


def capped(engine: Engine, rows: Expr, most: int) -> Expr:
    """At most `most` rows of each ``person``, chosen at random, and none without a person."""
    known = _of_somebody(rows)
    if engine.name == "polars":
        return _drawn_by_polars(engine, known, most)
    if engine.name != "duckdb":
        return _drawn(known, most)
    # DuckDB computes `known` and `each` once, however often they are used: drawing among the rows of those who own too many
    # then takes two thirds of the time that drawing among all takes.
    each = known.group_by("person").agg(owned=known.count())
    many, too = _with_more(each, most).rename(who="person"), _with_more(each, most).rename(too="person")
    within = known.anti_join(many, known["person"] == many["who"])
    beyond = known.semi_join(too, known["person"] == too["too"])
    return within.union(_drawn(beyond, most))


def rows_of_each(rows: Expr, most: int, holds: Expr | None = None) -> Expr:
    """Every person of `rows` once: ``value``, how many of their rows count, and their smallest ``key`` if there is one.

    With `holds` the rows for which it is true are counted, and the smallest key is still that of all rows.
    """
    import ibis

    known = _of_somebody(rows if holds is None else rows.mutate(_holds=holds))
    lowest = {"key": _lowest(known)} if "key" in known.columns else {}
    owned = known.count() if holds is None else known.count(where=known["_holds"])
    each = known.group_by("person").agg(owned=owned, **lowest)
    held = ibis.ifelse(each["owned"] < most, each["owned"], most).cast("int64")
    return each.select(value=held, **{name: each[name] for name in lowest})


def _of_somebody(rows: Expr) -> Expr:
    """No row without a person: nobody could say how many of those are one person's."""
    return rows.filter(rows["person"].notnull())


def _lowest(rows: Expr) -> Expr:
    """Who declares several budgets is bound by the smallest."""
    return rows["key"].min()


def _with_more(each: Expr, most: int) -> Expr:
    return each.filter(each["owned"] > most)


def _drawn(rows: Expr, most: int) -> Expr:
    import ibis

    turn = ibis.row_number().over(ibis.window(group_by=rows["person"], order_by=ibis.random()))
    numbered = rows.mutate(_turn=turn)
    return numbered.filter(numbered["_turn"] < most).drop("_turn")


def _drawn_by_polars(engine: Engine, rows: Expr, most: int) -> Expr:
    """The same for Ibis on Polars, which has no window functions; Polars itself does."""
    pl = need("polars", "a cap on rows per person")
    turn = pl.int_range(pl.len()).shuffle().over("person")
    lazy = engine.backend.compile(rows).filter(turn < most)
    # Collected here: a lazy frame would draw its random rows anew for every use.
    return engine.backend.create_table(fresh_name("_sfumato_rows"), engine._run(lazy.collect))
