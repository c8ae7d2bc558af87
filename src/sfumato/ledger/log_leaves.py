"""What is written into the log when something happens, kind by kind.

Every column of every row goes into the seal of one leaf. What stands in the body for everybody who may read it is little:
no person, no number of people, nothing finer than a minute, and of a choice only that there was one, or not even that
(`sfumato.ledger.log_quiet`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from sfumato.errors import InputError
from sfumato.ledger import log_quiet, schema
from sfumato.ledger.allowance import OWN
from sfumato.ledger.log import Leaf, Row, row_of, rows_in, rows_of
from sfumato.ledger.requests import canonical, readable
from sfumato.privacy.units import epsilon_text

KINDS = frozenset(
    {
        "registered",
        "people key",
        "reserved",
        "finished",
        "bridged",
        "changed",
        "chosen",
        "allowance",
        "closed",
        "migrated",
    }
)
"""What the ledger itself writes; a note has another kind."""

FINISH = ("state", "artefact", "finished_at")  # of a release: what is written when it ends
_LONGEST = 100_000


def registered(connection: Connection, dataset_id: int, *, marked: bool = True) -> Leaf:
    """A dataset with all its caps; people by what they may choose from.

    With a private roster the mark of the people's key is sealed in it, if there is one: an entry of its own would tell that
    somebody had chosen. `marked` is ``False`` for what it looked like before there was a key.
    """
    (row,) = rows_in(connection, select(schema.datasets).where(schema.datasets.c.id == dataset_id))
    limits = limits_of(connection, dataset_id)
    body = {
        "created": row["created_at"],
        "caps": sorted([kind, name, _epsilon(cap)] for _, _, kind, name, cap in limits),
        "ledger": about(connection),
    }
    rows = [row_of(schema.datasets, row), *limits, *_where(connection, schema.rosters, dataset_id)]
    living = [line for line in _where(connection, schema.lives, dataset_id) if not line[-1]]
    if marked and log_quiet.is_private(connection, dataset_id):
        rows += people_key(connection).rows
    return Leaf("registered", {**body, "living": bool(living)}, [*rows, *living])


def about(connection: Connection) -> dict[str, str]:
    """Format and software of the ledger."""
    meta = schema.meta
    rows = connection.execute(select(meta.c.name, meta.c.value).where(meta.c.name.in_(("format", "version", "software"))))
    return {str(name): str(value) for name, value in rows}


def limits_of(connection: Connection, dataset_id: int) -> list[Row]:
    """The caps that were registered, without what is spent of them."""
    table = schema.limits
    here = (table.c.dataset_id == dataset_id) & table.c.kind.not_in(OWN)
    return rows_of(connection, table, here, "spent")


def people_key(connection: Connection) -> Leaf:
    """The mark of the key under which people are hashed."""
    return Leaf("people key", {}, rows_of(connection, schema.meta, schema.meta.c.name == "people_key"))


def reserved(
    release: Mapping[str, Any],
    lines: Iterable[Mapping[str, Any]],
    charged: Sequence[Row],
    standing: Sequence[Row] | None = None,
) -> Leaf:
    """A charge: the release, its lines, and what people were charged. An analyst's own caps are in nobody's certificate."""
    lines = list(lines)
    body = {
        "entry": int(release["id"]),
        "fingerprint": release["fingerprint"],
        "name": release.get("name"),
        "recipient": release.get("recipient"),
        "epsilon": _epsilon(release["total"]),
        "charges": sorted([line["kind"], line["name"], _epsilon(line["nano"])] for line in lines if line["kind"] not in OWN),
        "reserved": release["reserved_at"],
    }
    rows = [row_of(schema.releases, release, *FINISH), *(row_of(schema.charges, line) for line in lines), *charged]
    return Leaf("reserved", body, rows, standing, int(release["id"]))


def finished(release: Mapping[str, Any]) -> Leaf:
    """How a release ended."""
    artefact = release.get("artefact")
    body = {
        "entry": int(release["id"]),
        "state": release["state"],
        "finished": release["finished_at"],
        "artefact": None if artefact is None else hashlib.sha256(artefact.encode()).hexdigest(),
    }
    return Leaf("finished", body, [ended(release)], release_id=int(release["id"]))


def ended(release: Mapping[str, Any]) -> Row:
    """The columns of a release that are written when it ends."""
    return "ended", int(release["id"]), *(release.get(column) for column in FINISH)


def bridged(release: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Leaf:
    """What somebody's device told: sealed, since it is about one person."""
    rows = [row_of(schema.releases, release), *(row_of(schema.charges, line) for line in lines)]
    body = {"entry": int(release["id"]), "reserved": release["reserved_at"]}
    return Leaf("bridged", body, rows, release_id=int(release["id"]))


def change_rows(
    connection: Connection,
    dataset_id: int,
    change: Mapping[str, Any],
    chunks: Iterable[Mapping[str, Any]],
    newcomers: bytes,
) -> list[Row]:
    """What was written when choices came into force; with the first ones a roster that had head counts came alive."""
    rows = [row_of(schema.changes, change), *(row_of(schema.change_chunks, chunk) for chunk in chunks)]
    if change["kind"] == "start":
        rows += _where(connection, schema.lives, dataset_id)
    return [*rows, ("newcomers", newcomers)]


def changed(change: Mapping[str, Any], rows: Sequence[Row], standing: Sequence[Row] | None) -> Leaf:
    """Choices came into force."""
    body = {"change": int(change["number"]), "epoch": int(change["epoch"]), "at": change["at"]}
    return Leaf("changed", body, rows, standing)


def quietly(epoch: int, at: str, rows: Sequence[Row], standing: Sequence[Row] | None) -> Leaf:
    """Choices of a private roster were asked for, and came into force if there were any: `sfumato.ledger.log_quiet`."""
    return Leaf("changed", {"epoch": epoch, "at": at}, rows, standing)


def chosen(rows: Sequence[Mapping[str, Any]]) -> Leaf:
    """People chose something; nothing is told but that they did."""
    numbers = [int(row["id"]) for row in rows]
    body = {"first": min(numbers), "last": max(numbers)}
    return Leaf("chosen", body, [row_of(schema.choices, row) for row in rows])


def allowance(row: Mapping[str, Any]) -> Leaf:
    """What an analyst may spend for a purpose from now on."""
    body = {
        "analyst": row["analyst"],
        "purpose": row["purpose"],
        "epsilon": _epsilon(row["cap"]),
        "per_day": _epsilon(row.get("per_day")),
        "by": row.get("granted_by"),
        "at": row["granted_at"],
    }
    return Leaf("allowance", body, [row_of(schema.allowances, row)])


def migrated(connection: Connection, dataset_id: int, found: int, at: str) -> Leaf:
    """The ledger was brought to a newer format."""
    standing = standing_of(connection, dataset_id) or None
    return Leaf("migrated", {"from": found, "ledger": about(connection), "at": at}, standing=standing)


def note(kind: str, about: Mapping[str, Any], at: str) -> Leaf:
    """Whatever else is worth proving, such as an approval."""
    if readable(kind, "a note") in KINDS:
        raise InputError(f"the ledger itself writes entries of the kind {kind!r}; give the note another kind")
    if len(canonical(about)) > _LONGEST:
        raise InputError(f"a note holds at most {_LONGEST:,} characters; write down a digest of what is longer")
    return Leaf(kind, {"about": dict(about), "at": at})


def closed(about: Mapping[str, Any], at: str) -> Leaf:
    """No more charges."""
    return Leaf("closed", {"about": dict(about), "at": at})


def standing_of(connection: Connection, dataset_id: int) -> list[Row]:
    """As of which turn each part of where people stand is."""
    return rows_of(connection, schema.states, schema.states.c.dataset_id == dataset_id, "vector")


def _where(connection: Connection, table: Any, dataset_id: int) -> list[Row]:
    return rows_of(connection, table, table.c.dataset_id == dataset_id)


def _epsilon(nano: int | None) -> str | None:
    return None if nano is None else epsilon_text(int(nano))
