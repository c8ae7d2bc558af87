"""The log: everything that happens to a dataset, one leaf after the other, in a Merkle tree and a hash chain.

*One log for each dataset.* A leaf is written in the transaction of what it tells, under the dataset's lock: datasets do not
wait for each other, and whoever follows the log of one learns nothing of another.

*What a leaf says.* Its body is canonical JSON with what may be read (a charge, a minute), and a **seal**: a salted digest
over every column of the rows that were written with it. `sfumato.ledger.log_check` computes all of them again, so a value
changed anywhere in the ledger's tables contradicts a leaf. The salt (128 random bits) lies beside the leaf and is told to
nobody: without it neither seal nor hash of a leaf lets anybody try out what might be in it, such as one person's choice.

*What is kept for proofs.* Each row holds the perfect subtrees that its leaf completes, one on average. A proof needs at most
2 log2(n) of them; an append needs the last row and, one time in four, one more statement for subtrees before it. Nothing is
ever updated.

The chain and the tree alone do not stop somebody who can write to the database and computes everything anew. Signed
checkpoints do, in the hands of others: see `sfumato.ledger.signing`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, insert, literal_column, select

from sfumato.errors import LedgerError
from sfumato.ledger import merkle, schema
from sfumato.ledger.merkle import Node
from sfumato.ledger.requests import canonical

Row = tuple[Any, ...]  # the name of a table and the values of its columns
SALT = 16
_AT_ONCE = 500
_ROWS = b"sfumato-ledger-rows-v1\0"
_CHAIN = b"\2"
BEGINNING = bytes(merkle.SIZE)

_name = select(schema.datasets.c.name).where(schema.datasets.c.id == bindparam("dataset")).scalar_subquery()
_ADD = insert(schema.log)
_LAST = (
    select(schema.log, _name.label("dataset"))
    .where(schema.log.c.dataset_id == bindparam("dataset"))
    .order_by(schema.log.c.number.desc())
    .limit(literal_column("1"))
)


def row_of(table: Table, values: Mapping[str, Any], *leave_out: str) -> Row:
    """A row for a seal: every column in order but those left out; what is not given is empty."""
    return table.name, *(values.get(c.name) for c in table.columns if c.name not in leave_out)


def rows_of(connection: Connection, table: Table, where: Any, *leave_out: str) -> list[Row]:
    """The rows of a table as the database has them."""
    return [row_of(table, row, *leave_out) for row in rows_in(connection, select(table).where(where))]


def rows_in(connection: Connection, query: Select[Any]) -> list[dict[str, Any]]:
    """What a query finds, by the names of the columns."""
    return [row._asdict() for row in connection.execute(query)]


def seal(salt: str, rows: Iterable[Row]) -> str:
    """The salted digest of rows, in whatever order they come.

    >>> seal("00", [("t", 1, None)]) == seal("00", [("t", 1, None)]), seal("00", [("t", 1)]) == seal("01", [("t", 1)])
    (True, False)
    """
    return sealed(salt, map(text_of, rows))


def text_of(row: Row) -> str:
    """What of a row goes into a seal; short, however large the row is."""
    return json.dumps([_plain(value) for value in row], separators=(",", ":"))


def sealed(salt: str, texts: Iterable[str]) -> str:
    """The seal of rows whose texts are known."""
    return hashlib.sha256(_ROWS + salt.encode() + b"\n" + "\n".join(sorted(texts)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    return {"sha256": hashlib.sha256(value).hexdigest()}


def fresh_salt() -> str:
    """128 random bits."""
    return os.urandom(SALT).hex()


@dataclass(frozen=True)
class Leaf:
    """What is to be written.

    Attributes
    ----------
    kind : str
    body : mapping
        What may be read.
    rows : sequence of Row
        What is sealed.
    standing : sequence of Row, optional
        Where people stand after it: sealed apart, because a later leaf replaces it.
    release_id : int, optional
        The release that it tells about.
    """

    kind: str
    body: Mapping[str, Any]
    rows: Sequence[Row] = ()
    standing: Sequence[Row] | None = None
    release_id: int | None = None


def body_of(leaf: Leaf, dataset: str, salt: str) -> str:
    """The text that is hashed."""
    sealed: dict[str, Any] = {"kind": leaf.kind, "dataset": dataset, "seal": seal(salt, leaf.rows)}
    if leaf.standing is not None:
        sealed["standing"] = seal(salt, leaf.standing)
    return canonical({**leaf.body, **sealed})


def append(connection: Connection, dataset_id: int, leaf: Leaf, *, dataset: str | None = None) -> int:
    """Write a leaf after those that are there; the caller holds the dataset's lock. Returns its number.

    `dataset` is its name, asked for only with the first leaf.
    """
    end = _end(connection, dataset_id, leaf, dataset)
    end.known |= hashes(connection, dataset_id, [n for n in merkle.needed_to_append(end.size) if n not in end.known])
    connection.execute(_ADD, end.grown(leaf) | {"dataset_id": dataset_id})
    return end.size - 1


def append_all(connection: Connection, dataset_id: int, leaves: Iterable[Leaf]) -> None:
    """Write many leaves after those that are there, of which there is at least one: a few statements for all of them."""
    end, rows = None, []
    for leaf in leaves:
        if end is None:
            end = _end(connection, dataset_id, leaf, None)
            end.known |= hashes(connection, dataset_id, merkle.nodes_of((0, end.size)))
        rows.append(end.grown(leaf) | {"dataset_id": dataset_id})
        if len(rows) == _AT_ONCE:
            connection.execute(_ADD, rows)
            rows = []
    if rows:
        connection.execute(_ADD, rows)


@dataclass
class _End:
    """Where a log ends: what one more leaf builds on."""

    dataset: str
    size: int
    chain: bytes
    closed: bool
    known: dict[Node, bytes]

    def grown(self, leaf: Leaf) -> dict[str, Any]:
        """The row of one more leaf."""
        number, salt = self.size, fresh_salt()
        body = body_of(leaf, self.dataset, salt)
        hashed = merkle.leaf_hash(body.encode())
        nodes = merkle.completed(number, hashed, self.known.__getitem__)
        for level, found in enumerate([hashed, *nodes]):
            self.known.pop((level, (number >> level) - 1), None)
            self.known[level, number >> level] = found
        self.size, self.chain = number + 1, chained(self.chain, hashed, salt)
        self.closed = self.closed or leaf.kind == "closed"
        return {
            "number": number,
            "kind": leaf.kind,
            "release_id": leaf.release_id,
            "body": body,
            "salt": salt,
            "leaf": hashed.hex(),
            "nodes": b"".join(nodes).hex(),
            "chain": self.chain.hex(),
            "closed": int(self.closed),
        }


def _end(connection: Connection, dataset_id: int, leaf: Leaf, dataset: str | None) -> _End:
    last = connection.execute(_LAST, {"dataset": dataset_id}).one_or_none()
    if last is None:
        if leaf.kind != "registered" or dataset is None:
            raise gone()
        return _End(dataset, 0, BEGINNING, closed=False, known={})
    if last.closed and leaf.kind == "reserved":
        raise LedgerError(
            f"{last.dataset!r} is closed: entries of its log were lost, so nobody can tell what is left of its budgets. "
            "Nothing was spent; register it under a new name, with budgets that allow for what was released before"
        )
    known = {(0, int(last.number)): bytes.fromhex(last.leaf)}
    return _End(last.dataset, int(last.number) + 1, bytes.fromhex(last.chain), bool(last.closed), known)


def chained(before: bytes, leaf: bytes, salt: str) -> bytes:
    """The chain after one more leaf. It covers salts too, also where what they sealed is gone; it is told to nobody."""
    return hashlib.sha256(_CHAIN + before + leaf + salt.encode()).digest()


def size_of(connection: Connection, dataset_id: int) -> int:
    """How many leaves there are."""
    last = connection.execute(_LAST, {"dataset": dataset_id}).one_or_none()
    return 0 if last is None else int(last.number) + 1


def hashes(connection: Connection, dataset_id: int, nodes: Iterable[Node]) -> dict[Node, bytes]:
    """Perfect subtrees as they were kept, in one statement."""
    wanted = set(nodes)
    if not wanted:
        return {}
    table = schema.log
    at = {node: ((node[1] + 1) << node[0]) - 1 for node in wanted}  # the leaf that completed it
    query = select(table.c.number, table.c.leaf, table.c.nodes)
    here = query.where(table.c.dataset_id == dataset_id, table.c.number.in_(sorted(set(at.values()))))
    rows = {int(row.number): row for row in connection.execute(here)}
    found = {}
    for node, number in at.items():
        row, level = rows.get(number), node[0]
        text = "" if row is None else row.leaf if level == 0 else row.nodes[64 * (level - 1) : 64 * level]
        if len(text) != 2 * merkle.SIZE:
            raise gone()
        found[node] = bytes.fromhex(text)
    return found


def subtrees(connection: Connection, dataset_id: int, spans: Sequence[merkle.Span]) -> list[bytes]:
    """The hashes of subtrees, from the perfect ones."""
    parts = [merkle.nodes_of(span) for span in spans]
    known = hashes(connection, dataset_id, [node for part in parts for node in part])
    return [merkle.folded([known[node] for node in part]) for part in parts]


def gone() -> LedgerError:
    """The error for a log with a hole in it."""
    return LedgerError(
        "entries of the dataset's log are missing: the ledger was changed from outside; restore it from a backup before "
        "releasing anything"
    )
