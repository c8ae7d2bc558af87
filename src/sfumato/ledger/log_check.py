"""Whether a log holds together, and whether the ledger's tables hold what its leaves have sealed.

First the log by itself: numbers without a gap, each leaf the hash of its body, subtrees and chain as they follow from the
leaves. Then every table: each row is in the seal of exactly one leaf, and each leaf finds its rows. Totals (what a cap has
carried, where people stand) are not sealed; they are computed again from rows that are. So a value that was changed in any
column contradicts something, as long as the log itself is the one that was written: that is what signed checkpoints are for.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import Connection, exists, select
from sqlalchemy.exc import InvalidRequestError

from sfumato.errors import LedgerError
from sfumato.ledger import cohorts, log, log_leaves, log_quiet, log_rows, merkle, schema
from sfumato.ledger.allowance import DAILY
from sfumato.ledger.log import Leaf
from sfumato.ledger.merkle import Node
from sfumato.ledger.replay import fixed_charges

_BATCH = 256
_DAMAGED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    zlib.error,
    struct.error,
    InvalidRequestError,
)


class Written:
    """What a log says, leaf by leaf; looked up when the tables are compared with it."""

    def __init__(self, connection: Connection, dataset_id: int, dataset: str) -> None:
        self.dataset = dataset
        self.leaves: dict[tuple[str, int | None], tuple[str, str]] = {}
        self.chosen: list[tuple[int, int, str, str]] = []  # first and last line, salt, body
        self.quiet: list[tuple[str, dict[str, Any]]] = []  # salt and body of changes of a private roster
        self.standing: tuple[str, str] | None = None
        self.ledger: dict[str, str] | None = None
        for salt, text in _holding_together(connection, dataset_id, dataset):
            body = json.loads(text)
            kind = body["kind"]
            if "standing" in body:
                self.standing = salt, body["standing"]
            if "ledger" in body:
                self.ledger = body["ledger"]
            if kind == "chosen":
                self.chosen.append((body["first"], body["last"], salt, text))
            elif kind == "changed" and "change" not in body:
                self.quiet.append((salt, body))
            elif kind in log_leaves.KINDS - {"closed", "migrated"}:
                about = body.get("entry", body.get("change"))
                number: int | None = len(self.leaves) if kind == "allowance" else about
                if (kind, number) in self.leaves:
                    raise unlike(dataset, "an entry of the log is there twice")
                self.leaves[kind, number] = salt, text

    def sealed(self, leaf: Leaf, number: int | None = None) -> bool:
        """Whether a leaf of this kind has these rows."""
        salt, text = self.leaves.get((leaf.kind, number), ("", "{}"))
        return bool(log.seal(salt, leaf.rows) == json.loads(text).get("seal"))

    def take(self, leaf: Leaf, number: int | None, *, what: str, standing: str | None = None) -> None:
        """Compare what the tables say with the leaf that sealed it."""
        salt, text = self.leaves.pop((leaf.kind, number), ("", ""))
        if not salt:
            raise unlike(self.dataset, f"{what} is not in the log")
        body = json.loads(log.body_of(leaf, self.dataset, salt))
        if standing is None:  # only the last of them still says where people stand
            standing = json.loads(text).get("standing")
        if standing is not None:
            body["standing"] = standing
        if body != json.loads(text):
            raise unlike(self.dataset, f"{what} is not what the log says")


def _holding_together(connection: Connection, dataset_id: int, dataset: str) -> Iterator[tuple[str, str]]:
    """Salt and body of every leaf, once it and all before it are as they must be."""
    table = schema.log
    query = select(table).where(table.c.dataset_id == dataset_id).order_by(table.c.number).limit(_BATCH)
    expected, chain, closed = 0, log.BEGINNING, 0
    known: dict[Node, bytes] = {}
    rows = connection.execute(query).all()
    while rows:
        for row in rows:
            hashed = merkle.leaf_hash(row.body.encode())
            if hashed.hex() != row.leaf:
                raise unlike(dataset, f"entry {expected} of the log is not what was written")
            try:
                body = json.loads(row.body)
                nodes = merkle.completed(expected, hashed, known.__getitem__)
            except (ValueError, KeyError):
                raise unlike(dataset, "the log has a hole or an entry that cannot be read") from None
            chain = log.chained(chain, hashed, row.salt)
            closed = int(closed or body["kind"] == "closed")
            for level, found in enumerate([hashed, *nodes]):
                known.pop((level, (expected >> level) - 1), None)
                known[level, expected >> level] = found
            right = (expected, hashed.hex(), b"".join(nodes).hex(), chain.hex(), closed, body["kind"], body.get("entry"))
            if right != (row.number, row.leaf, row.nodes, row.chain, row.closed, row.kind, row.release_id):
                raise unlike(dataset, f"entry {expected} of the log does not follow from those before it")
            bare = row.kind not in log_leaves.KINDS or row.kind in ("closed", "migrated")
            if bare and body["seal"] != log.seal(row.salt, ()):
                raise unlike(dataset, f"entry {expected} of the log is not sealed as it was")
            expected += 1
            yield row.salt, row.body
        rows = connection.execute(query.where(table.c.number > rows[-1].number)).all()
    if expected == 0:
        raise unlike(dataset, "it has no log")
    strangers = select(table.c.number).where(~exists().where(schema.datasets.c.id == table.c.dataset_id)).limit(1)
    if connection.execute(strangers).first() is not None:
        raise unlike(dataset, "the ledger has a log of a dataset that is not there")


def check(connection: Connection, dataset_id: int, dataset: str) -> None:
    """Raise LedgerError if anything in the tables of a dataset is not what its log says."""
    said = Written(connection, dataset_id, dataset)
    if said.ledger != log_leaves.about(connection):
        raise unlike(dataset, "format or software of the ledger is not what the log says")
    registered = log_leaves.registered(connection, dataset_id)
    if not said.sealed(registered):  # which may be older than the key of a private roster's people
        registered = log_leaves.registered(connection, dataset_id, marked=False)
    said.take(
        Leaf("registered", {**registered.body, "ledger": _then(said)}, registered.rows), None, what="its caps or roster"
    )
    _check_key(connection, said)
    for each in log_rows.charged(connection, dataset_id):
        _check_release(said, each)
    started = False
    applied = 0
    quiet: list[tuple[dict[str, Any], list[str]]] | None = [] if log_quiet.is_private(connection, dataset_id) else None
    for change in log_rows.changes(connection, dataset_id):
        turn = int(change.row["number"])
        rows = log_leaves.change_rows(connection, dataset_id, change.row, change.chunks, change.newcomers)
        if quiet is None:
            said.take(log_leaves.changed(change.row, rows, None), turn, what=f"change {turn} of its people")
        else:
            quiet.append((change.row, [log.text_of(row) for row in rows]))
        started = started or change.row["kind"] == "start"
        applied = max(applied, int(change.row["applied"]))
    _check_people(connection, dataset_id, said, living=bool(registered.body["living"]), started=started)
    if quiet is None:
        _check_choices(connection, dataset_id, said, applied)
    else:
        _check_quiet(connection, dataset_id, said, applied, quiet)
    _check_allowances(connection, dataset_id, said)
    if quiet is None and said.quiet:
        raise unlike(dataset, "the log tells of something that is not there (changed)")
    if said.leaves:
        kind, number = next(iter(said.leaves))
        which = kind if number is None else f"{kind} {number}"
        raise unlike(dataset, f"the log tells of something that is not there ({which})")


def _then(said: Written) -> Any:
    """Format and software when the dataset was registered: a later leaf says what they are now."""
    _, text = said.leaves.get(("registered", None), ("", "{}"))
    return json.loads(text).get("ledger")


def _check_key(connection: Connection, said: Written) -> None:
    names = set(connection.execute(select(schema.meta.c.name)).scalars())
    if names - {"format", "version", "software", "people_key"}:
        raise unlike(said.dataset, "the ledger has settings that nobody made")
    anywhere = exists().where(schema.log.c.kind == "people key")
    known = bool(connection.execute(select(anywhere)).scalar())
    if known != ("people_key" in names) and (known or not log_quiet.any_private(connection)):
        raise unlike(said.dataset, "the mark of the people's key is not what the log says")
    if ("people key", None) in said.leaves:
        said.take(log_leaves.people_key(connection), None, what="the mark of the people's key")


def _check_release(said: Written, each: log_rows.Charged) -> None:
    release, number = each.release, int(each.release["id"])
    told = release["name"] == schema.DEVICE_STATEMENT and ("bridged", number) in said.leaves
    if told:
        said.take(log_leaves.bridged(release, each.lines), number, what=f"release {number}")
        if each.people:
            raise unlike(said.dataset, f"release {number} is not what the log says")
        return
    said.take(log_leaves.reserved(release, each.lines, each.people), number, what=f"release {number}")
    if release["state"] != "reserved":
        said.take(log_leaves.finished(release), number, what=f"the end of release {number}")
    elif release["artefact"] is not None or release["finished_at"] is not None:
        raise unlike(said.dataset, f"release {number} has no end in the log")


def _check_people(connection: Connection, dataset_id: int, said: Written, *, living: bool, started: bool) -> None:
    lives = schema.lives
    alive = connection.execute(select(lives.c.fixed).where(lives.c.dataset_id == dataset_id)).scalar()
    if (alive is not None) != (living or started) or not log_rows.in_buckets(connection, dataset_id):
        raise unlike(said.dataset, "who its people are is not what the log says")
    rows = log_leaves.standing_of(connection, dataset_id)
    if rows and (said.standing is None or log.seal(said.standing[0], rows) != said.standing[1]):
        raise unlike(said.dataset, "where its people stand is not what the log says")
    if not rows and said.standing is not None:
        raise unlike(said.dataset, "where its people stand is gone")
    # Of head counts nothing may be missing either, after they came alive too.
    rosters, people = schema.rosters, schema.people
    roster = connection.execute(select(rosters.c.levels).where(rosters.c.dataset_id == dataset_id)).scalar()
    now = connection.execute(select(people).where(people.c.dataset_id == dataset_id)).one_or_none()
    if (now is not None) != (roster is not None and not living):
        raise unlike(said.dataset, "what its people have spent is not what the log says")
    if now is not None and roster is not None:
        levels = cohorts.unpack(roster)
        total, last = np.zeros_like(levels), 0
        for row in fixed_charges(connection, dataset_id):
            total, last = total + cohorts.charge_of(levels, row), int(row.release_id)
        if cohorts.pack(total) != bytes(now.spent) or last != now.last_release:
            raise unlike(said.dataset, "what its people have spent is not what the log says")


def _check_choices(connection: Connection, dataset_id: int, said: Written, applied: int) -> None:
    rows, at = log_rows.waiting(connection, dataset_id), 0
    for first, last, salt, text in said.chosen:  # both rise
        if last <= applied:
            continue
        end = at
        while end < len(rows) and first <= rows[end]["id"] <= last:
            end += 1
        mine, at = rows[at:end], end
        if not mine or log.body_of(log_leaves.chosen(mine), said.dataset, salt) != text:
            raise unlike(said.dataset, "what people have chosen is not what the log says")
    if at < len(rows):
        raise unlike(said.dataset, "a choice of its people is not in the log")


def _check_quiet(
    connection: Connection, dataset_id: int, said: Written, applied: int, changes: list[tuple[dict[str, Any], list[str]]]
) -> None:
    fault = log_quiet.check_changes(said.quiet, changes) or log_quiet.check_strangers(connection)
    fault = fault or log_quiet.check_choices(log_rows.waiting(connection, dataset_id), applied)
    if fault is not None or said.chosen:
        raise unlike(said.dataset, fault or "a choice of its people is in the log")


def _check_allowances(connection: Connection, dataset_id: int, said: Written) -> None:
    leaves = sorted((key for key in said.leaves if key[0] == "allowance"), key=lambda key: key[1] or 0)
    rows = log_rows.allowances(connection, dataset_id)
    if len(leaves) != len(rows):
        raise unlike(said.dataset, "what analysts may spend is not what the log says")
    for (_, number), row in zip(leaves, rows, strict=True):
        said.take(log_leaves.allowance(row), number, what="what an analyst may spend")
    # The cap in all is the newest grant's (`allowances.wrong`); that of a day is one that was granted, or what was spent.
    table = schema.limits
    days = connection.execute(select(table).where(table.c.dataset_id == dataset_id, table.c.kind == DAILY))
    for day in days:
        granted = {row["per_day"] for row in rows if day.name.endswith(f" {row['name']}")}
        if not granted or day.cap not in granted | {day.spent}:
            raise unlike(said.dataset, "what an analyst may spend in a day is not what the log says")


@contextmanager
def readable(dataset: str) -> Iterator[None]:
    """Whatever a damaged row makes its reader say is an error of the ledger."""
    try:
        yield
    except LedgerError:
        raise
    except _DAMAGED as error:
        raise unlike(dataset, f"something cannot be read ({type(error).__name__})") from None


def unlike(dataset: str, what: str) -> LedgerError:
    """The error for tables and log that contradict each other."""
    return LedgerError(
        f"the log of {dataset!r} and the ledger's tables contradict each other: {what}. The ledger was changed from "
        "outside; restore it from a backup before releasing anything"
    )
