"""What is odd about a roster, said before anything is spent. A roster table is public, so tiers and head counts may be told.

Whoever has no budget takes no part: that is the rule, but a mistyped tier must not silence people without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import SchemaError
from sfumato.tables.columns import Expr
from sfumato.tables.roster_join import per_person
from sfumato.tables.roster_sql import Counted, counted
from sfumato.tables.words import did_you_mean

if TYPE_CHECKING:
    from sfumato.tables.engines import Engine
    from sfumato.tables.roster import Roster

MOST_TIERS = 10  # named one by one


def of_statement(roster: Roster) -> tuple[str, ...]:
    """Findings about budgets that stand in the private table: only what was stated beside it."""
    if roster.people is None or roster.people.names is None:
        return ()
    pairs = zip(roster.people.names, roster.people.counts.tolist(), strict=True)
    return tuple(f"tier {name!r} has no stated head count: previews expect nobody in it" for name, n in pairs if n == 0)


def of_table(roster: Roster, persons: Any = None) -> tuple[str, ...]:
    """Findings about a roster table; `persons` is the declared type of the private table's person column."""
    engine = roster.connect()
    found = counted(roster, engine) or _counted(roster, engine)
    numbers = {
        "rows of the roster that name no person and are left out": found.nameless,
        "people listed more than once with different budgets, of which the smallest holds": found.differing,
    }
    if not roster.tiers_nano:
        numbers["people of the roster without a budget above 0 (empty, no number, zero, negative), who take no part"] = int(
            found.heads[found.keys < 1].sum()
        )
    if persons is not None and persons.is_integer() and engine.text:
        numbers["people of the roster who are not named by a whole number, as the table's are, and match nobody"] = (
            _strangers(roster, engine)
        )
    return (
        *(_tiers(roster, found.tiers) if roster.tiers_nano else ()),
        *(f"{sentence}: {n}" for sentence, n in numbers.items() if n),
    )


def heads(roster: Roster, engine: Engine) -> Any:
    """The people of a roster table on `engine` by their smallest ``key``, and how many ``n`` have it."""
    found = counted(roster, engine)
    if found is not None:
        return {"key": found.keys, "n": found.heads}
    each = per_person(roster, engine)
    return engine.fetch(each.group_by("key").agg(n=each.count()))


def _counted(roster: Roster, engine: Engine) -> Counted:
    """`roster_sql.counted` on any engine."""
    who = engine.column(str(roster.person), "the roster's person column")
    budget = engine.column(roster.budget, "the roster's budget column")
    rows = engine.table.select(who=who, budget=budget, key=roster.key(budget, engine))
    named = rows.filter(rows["who"].notnull())
    each = named.group_by("who").agg(key=named["key"].min(), most=named["key"].max())
    heads = engine.fetch(each.group_by("key").agg(n=each.count(), m=(each["key"] < each["most"]).sum()))
    tiers: dict[str | None, int] = {}
    if roster.tiers_nano:
        tally = engine.fetch(named.group_by("budget").agg(n=named["who"].nunique()))
        tiers = dict(zip(tally["budget"].to_pylist(), tally["n"].to_pylist(), strict=True))
    keys, people, differing = (np.asarray(heads[name], dtype=np.int64) for name in ("key", "n", "m"))
    return Counted(keys, people, _number(engine, rows["who"].isnull().sum()), int(differing.sum()), tiers)


def _strangers(roster: Roster, engine: Engine) -> int:
    who = engine.column(str(roster.person), "the roster's person column")
    people = engine.table.select(who=who).filter(who.notnull()).distinct()
    return _number(engine, people.filter(people["who"].try_cast("int64").isnull()).count())


def check_persons(roster: Roster, persons: Any) -> None:
    """Refuse a roster that can match nobody: text, none of it a whole number, for a table whose persons are numbers."""
    engine = roster.connect()
    if engine.text and persons.is_integer():
        who = engine.column(str(roster.person), "the roster's person column")
        if not _number(engine, who.try_cast("int64").notnull().sum()):
            raise SchemaError(
                f"the table names persons by whole numbers, and column {roster.person!r} of the roster holds none: nobody "
                "would match; correct the roster's person column"
            )


def _tiers(roster: Roster, tally: Mapping[str | None, int]) -> Iterator[str]:
    known = [name for name, _ in roster.tiers_nano]
    heads = {tier: n for tier, n in tally.items() if tier is not None}
    if n := tally.get(None, 0):
        yield f"people of the roster without a tier, who take no part: {n}"
    unknown = sorted((t for t in heads if t not in known), key=lambda t: (-heads[t], t))
    for tier in unknown[:MOST_TIERS]:
        yield (
            f"tier {tier!r} of the roster has no budget (people in it, who take no part: {heads[tier]}); "
            f"{did_you_mean(tier, known)}"
        )
    if rest := unknown[MOST_TIERS:]:
        yield f"{len(rest)} more tiers without a budget (people in them, who take no part: {sum(heads[t] for t in rest)})"
    for tier in known:
        if tier not in heads:
            yield f"nobody in the roster has tier {tier!r}"


def _number(engine: Engine, expr: Expr) -> int:
    return int(engine.fetch(expr.as_table())[0][0].as_py() or 0)  # a sum over no rows is NULL
