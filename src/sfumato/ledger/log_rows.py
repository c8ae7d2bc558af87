"""The rows of a dataset as they are in the tables, in the order of the log: what its leaves have sealed.

A few releases are read at a time, since each may hold a vector over a million people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, select

from sfumato.ledger import schema
from sfumato.ledger.log import Row, row_of, rows_in
from sfumato.ledger.packing import CHUNK, Columns
from sfumato.ledger.persons import MEMBER

_BATCH = 16
_PEOPLE: tuple[Table, ...] = (schema.people_charges, schema.life_charges, schema.charge_chunks)


@dataclass(frozen=True)
class Charged:
    """A release with everything that was written when it was charged."""

    release: dict[str, Any]
    lines: list[dict[str, Any]]
    people: list[Row]


def charged(connection: Connection, dataset_id: int) -> Iterator[Charged]:
    """Every release, oldest first."""
    table = schema.releases
    query = select(table).where(table.c.dataset_id == dataset_id).order_by(table.c.id).limit(_BATCH)
    found = rows_in(connection, query)
    while found:
        ids = [row["id"] for row in found]
        lines = _by_release(connection, schema.charges, ids)
        people: defaultdict[int, list[Row]] = defaultdict(list)
        for part in _PEOPLE:
            for number, rows in _by_release(connection, part, ids).items():
                people[number] += [row_of(part, row) for row in rows]
        for row in found:
            yield Charged(row, lines[row["id"]], people[row["id"]])
        found = rows_in(connection, query.where(table.c.id > ids[-1]))


def _by_release(connection: Connection, table: Table, ids: list[int]) -> defaultdict[int, list[dict[str, Any]]]:
    out: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_in(connection, select(table).where(table.c.release_id.in_(ids))):
        out[row["release_id"]].append(row)
    return out


@dataclass(frozen=True)
class Change:
    """A change with the chunks that it wrote, and who came with it."""

    row: dict[str, Any]
    chunks: list[dict[str, Any]]
    newcomers: bytes


def changes(connection: Connection, dataset_id: int) -> Iterator[Change]:
    """Every change, oldest first."""
    members, size = everybody(connection, dataset_id), 0
    table, chunks = schema.changes, schema.change_chunks
    query = select(table).where(table.c.dataset_id == dataset_id).order_by(table.c.number)
    for row in rows_in(connection, query):
        here = (chunks.c.dataset_id == dataset_id) & (chunks.c.number == row["number"])
        parts = rows_in(connection, select(chunks).where(here))
        # Places only grow, and who comes has an entry: the last place of a change says how many there are since.
        ends = [int(part["chunk"]) * CHUNK + int(Columns(part["entries"]).column(0).sum()) for part in parts]
        after = max([size, *ends])
        yield Change(row, parts, members[size:after].tobytes())
        size = after


def everybody(connection: Connection, dataset_id: int) -> NDArray[np.void]:
    """All members by place."""
    table = schema.persons
    query = select(table.c.members).where(table.c.dataset_id == dataset_id)
    found = [np.frombuffer(bytes(row), dtype=MEMBER) for row in connection.execute(query).scalars()]
    there = np.concatenate(found) if found else np.zeros(0, dtype=MEMBER)
    return there[np.argsort(there["place"], kind="stable")]


def in_buckets(connection: Connection, dataset_id: int) -> bool:
    """Whether every member lies in the bucket of their hash, in the order in which they came."""
    table = schema.persons
    query = select(table.c.bucket, table.c.members).where(table.c.dataset_id == dataset_id)
    for bucket, members in connection.execute(query):
        there = np.frombuffer(bytes(members), dtype=MEMBER)
        high, places = there["high"].astype(np.uint64), there["place"].astype(np.int64)
        if (high >> np.uint64(56) != bucket).any() or (np.diff(places) <= 0).any():
            return False
    return True


def waiting(connection: Connection, dataset_id: int) -> list[dict[str, Any]]:
    """The choices that are not in force yet, oldest first."""
    table = schema.choices
    query = select(table).where(table.c.dataset_id == dataset_id).order_by(table.c.id)
    return rows_in(connection, query)


def allowances(connection: Connection, dataset_id: int) -> list[dict[str, Any]]:
    """What analysts were allowed, oldest first."""
    table = schema.allowances
    query = select(table).where(table.c.dataset_id == dataset_id).order_by(table.c.id)
    return rows_in(connection, query)
