"""Raising the single caps by what a release costs: two statements, however many recipients and attributes there are.

The caps of one analyst, a third: they are found by their names, so other analysts and other days cost nothing.

The lines of a release are written first. One UPDATE then raises every cap by its own line, where that fits: what a total was
raised by and what the line says it was raised by are the same number in the database, not two that a program keeps alike.
It must hit as many caps as are asked to pay; if one is short, the caller's transaction goes back.

A release to everybody asks the same of each recipient, and one that names no attribute the same of each of those. That is
*one* line, with an empty name: it stands for all caps of its kind, of which there are never more than were registered. So
neither the time of a charge nor the size of the ledger grows by a line per recipient and release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, insert, or_, select, update

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.allowance import OWN
from sfumato.ledger.records import Limit
from sfumato.privacy.units import Nano

SHARED = ("attribute", "recipient", "together", "total")
EVERY = ""  # the name that stands for all caps of a kind
Line = tuple[str, str, Nano]


def _line(name: object):  # type: ignore[no-untyped-def]  # SQLAlchemy's name for it is longer than the function
    lines = schema.charges
    here = (lines.c.release_id == bindparam("release"), lines.c.kind == schema.limits.c.kind, lines.c.name == name)
    return select(lines.c.nano).where(*here).scalar_subquery()


_ASKED = func.coalesce(_line(schema.limits.c.name), _line(EVERY), 0)
_OWN_ASKED = func.coalesce(_line(schema.limits.c.name), 0)


def _raise(asked: ColumnElement[int], *which: ColumnElement[bool]):  # type: ignore[no-untyped-def]
    table = schema.limits
    return (
        update(table)
        .where(table.c.dataset_id == bindparam("dataset"), *which, asked > 0)
        .where(or_(table.c.cap.is_(None), table.c.spent + asked <= table.c.cap))
        .values(spent=table.c.spent + asked)
    )


_RAISE = _raise(_ASKED, schema.limits.c.kind.in_(SHARED))
_RAISE_OWN = _raise(_OWN_ASKED, schema.limits.c.kind.in_(OWN), schema.limits.c.name.in_(bindparam("names", expanding=True)))


_HELD = (
    select(schema.limits.c.kind, schema.limits.c.name, schema.limits.c.cap, schema.limits.c.spent)
    .where(schema.limits.c.dataset_id == bindparam("dataset"), schema.limits.c.kind.in_(SHARED))
    .order_by(schema.limits.c.kind, schema.limits.c.name)
)
_ADD = insert(schema.charges)


def charge_limits(
    connection: Connection, dataset_id: int, release_id: int, asked: Iterable[tuple[Limit, Nano]]
) -> list[dict[str, Any]]:
    """Charge every cap of a dataset what is `asked` of it, or raise and leave it to the transaction to charge none.

    Returns the lines that were written.
    """
    asked = list(asked)
    rows = [{"release_id": release_id, "kind": kind, "name": name, "nano": nano} for kind, name, nano in _lines(asked)]
    if not rows:
        return []
    connection.execute(_ADD, rows)
    here = {"dataset": dataset_id, "release": release_id}
    raised = connection.execute(_RAISE, here).rowcount
    own = [limit.name for limit, nano in asked if limit.kind in OWN and nano > 0]
    if own:
        raised += connection.execute(_RAISE_OWN, {**here, "names": own}).rowcount
    if raised != sum(nano > 0 for _, nano in asked):
        raise LedgerError("a balance changed under the dataset's lock; nothing was spent, check the ledger")
    return rows


def shared(connection: Connection, dataset_id: int) -> tuple[Limit, ...]:
    """The caps of a dataset that hold for everybody, in order of kind and name."""
    return tuple(Limit(*row) for row in connection.execute(_HELD, {"dataset": dataset_id}))


def _lines(asked: Iterable[tuple[Limit, Nano]]) -> list[Line]:
    """What to write down: a line for each cap that pays, or one for all of a kind that pay the same."""
    by_kind: defaultdict[str, list[tuple[str, Nano]]] = defaultdict(list)
    for limit, nano in asked:
        by_kind[limit.kind].append((limit.name, nano))
    found: list[Line] = []
    for kind, paid in by_kind.items():
        amounts = {nano for _, nano in paid}
        if len(paid) > 1 and len(amounts) == 1:
            paid = [(EVERY, paid[0][1])]
        found += [(kind, name, nano) for name, nano in paid if nano > 0]
    return found


def spelt_out(lines: Iterable[Line], names: Mapping[str, list[str]]) -> tuple[Line, ...]:
    """What each single cap paid, in order; `names` are those of all caps of a kind.

    >>> spelt_out([("total", "", Nano(2)), ("recipient", "", Nano(2))], {"recipient": ["adnet", "bank"], "total": [""]})
    (('recipient', 'adnet', 2), ('recipient', 'bank', 2), ('total', '', 2))
    """
    return tuple(
        sorted((kind, single, nano) for kind, name, nano in lines for single in (names[kind] if name == EVERY else (name,)))
    )


def sums(connection: Connection, dataset_id: int) -> dict[tuple[str, str], int]:
    """All that each cap was ever charged, added up from the lines; a line for every cap of a kind under `EVERY`."""
    table = schema.charges
    query = (
        select(table.c.kind, table.c.name, func.sum(table.c.nano))
        .join(schema.releases, schema.releases.c.id == table.c.release_id)
        .where(schema.releases.c.dataset_id == dataset_id)
        .group_by(table.c.kind, table.c.name)
    )
    return {(kind, name): int(nano) for kind, name, nano in connection.execute(query)}


def adds_up(limit: Limit, added: Mapping[tuple[str, str], int]) -> bool:
    """Whether a cap has carried what its lines say, `added` up as by `sums`."""
    own = added.get((limit.kind, limit.name), 0)
    return limit.spent == own + (added.get((limit.kind, EVERY), 0) if limit.name != EVERY else 0)
