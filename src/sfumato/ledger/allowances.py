"""Allowances in the database: the newest grants, and the running totals that are charged.

A grant is a line of ``ledger_allowances`` and is never changed; the newest one holds. What was spent is in two lines of
``ledger_limits``, in all and by day, raised by the same conditional UPDATE as every other cap, held by the same CHECK, and
added up again by `verify`. They are the only caps that may change, and a trigger lets them become what the newest grant
says, or what is spent where that is more: granting again resets nothing, and granting less than is spent leaves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, func, insert, or_, select, update

from sfumato.ledger import clock, schema
from sfumato.ledger.allowance import ALLOWANCE, DAILY, OWN, Allowance, day_name, name_of
from sfumato.ledger.records import Limit
from sfumato.privacy.units import Nano

Pair = tuple[str, str]


def _line(table: Any, kind: str, name: str) -> ColumnElement[bool]:
    return and_(table.c.dataset_id == bindparam("dataset"), table.c.kind == kind, table.c.name == bindparam(name))


_in_all, _today = schema.limits.alias("in_all"), schema.limits.alias("today")
_NEWEST = (
    select(
        schema.allowances,
        *(_in_all.c[column].label(f"in_all_{column}") for column in ("name", "cap", "spent")),
        *(_today.c[column].label(f"today_{column}") for column in ("name", "cap", "spent")),
    )
    .select_from(
        schema.allowances.outerjoin(_in_all, _line(_in_all, ALLOWANCE, "name")).outerjoin(
            _today, _line(_today, DAILY, "day")
        )
    )
    .where(schema.allowances.c.dataset_id == bindparam("dataset"), schema.allowances.c.name == bindparam("name"))
    .order_by(schema.allowances.c.id.desc())
    .limit(1)
)


def one(connection: Connection, dataset_id: int, pair: Pair, day: str) -> tuple[list[Allowance], list[Limit]]:
    """The allowance of an analyst for a purpose, if there is one; and its caps whose lines are not there or say otherwise.

    One statement that is made once: every charge by an analyst begins with it.
    """
    name = name_of(*pair)
    row = connection.execute(_NEWEST, {"dataset": dataset_id, "name": name, "day": day_name(day, name)}).one_or_none()
    if row is None:
        return [], []
    found = _allowance(row, day, row.in_all_spent or 0, row.today_spent or 0)
    lines = ((row.in_all_name, row.in_all_cap), (row.today_name, row.today_cap))
    stale = [limit for limit, line in zip(found.limits, lines, strict=True) if line != (limit.name, _held(limit))]
    return [found], stale


def load(connection: Connection, dataset_id: int, pairs: Collection[Pair] | None, day: str) -> list[Allowance]:
    """The allowances of some pairs of analyst and purpose, or all of a dataset, by name; only what was granted."""
    if pairs is not None:
        return [found for pair in sorted(pairs) for found in one(connection, dataset_id, pair, day)[0]]
    return _loaded(connection, dataset_id, day, None)


def of_analyst(connection: Connection, dataset_id: int, analyst: str, day: str) -> list[Allowance]:
    """All allowances of one analyst."""
    return _loaded(connection, dataset_id, day, schema.allowances.c.analyst == analyst)


def _loaded(connection: Connection, dataset_id: int, day: str, which: Any) -> list[Allowance]:
    table = schema.allowances
    newest = select(func.max(table.c.id)).where(table.c.dataset_id == dataset_id).group_by(table.c.name)
    newest = newest if which is None else newest.where(which)
    rows = sorted(connection.execute(select(table).where(table.c.id.in_(newest))), key=lambda row: str(row.name))
    if not rows:
        return []
    spent = _spent(connection, dataset_id, None if which is None else [row.name for row in rows], day)
    return [
        _allowance(row, day, spent.get((ALLOWANCE, row.name), 0), spent.get((DAILY, day_name(day, row.name)), 0))
        for row in rows
    ]


def _allowance(row: Row[Any], day: str, spent: int, spent_today: int) -> Allowance:
    return Allowance(
        analyst=row.analyst,
        purpose=row.purpose,
        cap=Nano(row.cap),
        per_day=None if row.per_day is None else Nano(row.per_day),
        spent=Nano(spent),
        day=day,
        spent_today=Nano(spent_today),
        granted_at=row.granted_at,
        granted_by=row.granted_by,
        number=int(row.id),
    )


def _held(limit: Limit) -> int | None:
    """What the line of a cap says: what was granted, or what is spent where that is more."""
    return None if limit.cap is None else max(limit.cap, limit.spent)


def _spent(connection: Connection, dataset_id: int, names: list[str] | None, day: str) -> dict[tuple[str, str], int]:
    table = schema.limits
    in_all, today = table.c.kind == ALLOWANCE, table.c.kind == DAILY
    if names is None:
        today = and_(today, table.c.name.like(f"{day} %"))
    else:
        in_all = and_(in_all, table.c.name.in_(names))
        today = and_(today, table.c.name.in_([day_name(day, name) for name in names]))
    query = select(table.c.kind, table.c.name, table.c.spent).where(table.c.dataset_id == dataset_id, or_(in_all, today))
    return {(kind, name): int(spent) for kind, name, spent in connection.execute(query)}


def settle(connection: Connection, dataset_id: int, own: Iterable[Limit]) -> None:
    """Make the lines of ``ledger_limits`` say what the newest grant says; those of a new day begin."""
    table = schema.limits
    for limit in own:
        here = (table.c.dataset_id == dataset_id, table.c.kind == limit.kind, table.c.name == limit.name)
        found = connection.execute(select(table.c.cap, table.c.spent).where(*here)).one_or_none()
        if found is None:
            row = {"dataset_id": dataset_id, "kind": limit.kind, "name": limit.name, "cap": limit.cap, "spent": 0}
            connection.execute(insert(table).values(row))
            continue
        cap = _held(replace(limit, spent=Nano(found.spent)))
        if cap != found.cap:
            connection.execute(update(table).where(*here).values(cap=cap))


def wrong(connection: Connection, dataset_id: int, added: Mapping[tuple[str, str], int]) -> list[str]:
    """The own caps that are not what their lines add up to, `added` as by `sums`, or not what was granted."""
    table = schema.limits
    query = select(table.c.kind, table.c.name, table.c.cap, table.c.spent)
    rows = {
        (row.kind, row.name): row
        for row in connection.execute(query.where(table.c.dataset_id == dataset_id, table.c.kind.in_(OWN)))
    }
    sums = {cap: nano for cap, nano in added.items() if cap[0] in OWN}
    found = {cap for cap in rows.keys() | sums.keys() if cap not in rows or rows[cap].spent != sums.get(cap, 0)}
    granted = {(ALLOWANCE, a.limits[0].name): a for a in load(connection, dataset_id, None, clock.day_of(clock.now()))}
    for cap in granted.keys() | {cap for cap in rows if cap[0] == ALLOWANCE}:
        if cap not in rows or cap not in granted or rows[cap].cap != max(granted[cap].cap, rows[cap].spent):
            found.add(cap)
    return [f"{kind} {name}" for kind, name in sorted(found)] + (
        ["daily rates"] if _days_differ(connection, dataset_id) else []
    )


def _days_differ(connection: Connection, dataset_id: int) -> bool:
    """Whether some release was not charged to an allowance and its day alike, with what it cost and on its own day."""
    releases, lines = schema.releases, schema.charges
    daily = lines.alias()
    name = func.substr(releases.c.reserved_at, 1, 10) + " " + lines.c.name
    same_day = and_(
        daily.c.release_id == lines.c.release_id, daily.c.kind == DAILY, daily.c.name == name, daily.c.nano == lines.c.nano
    )
    mine = select(func.count()).join_from(lines, releases, releases.c.id == lines.c.release_id)
    mine = mine.where(releases.c.dataset_id == dataset_id)
    in_all, by_day = (int(connection.execute(mine.where(lines.c.kind == kind)).scalar_one()) for kind in OWN)
    paired = mine.join(daily, same_day).where(lines.c.kind == ALLOWANCE, lines.c.nano == releases.c.total)
    return not in_all == by_day == int(connection.execute(paired).scalar_one())
