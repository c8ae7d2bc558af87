"""The log of a roster that is private and changes: nothing in it depends on who chose what, or on whether anybody did.

Everybody who follows a log sees how many entries there are, and some read their kinds and bodies. Where people are private
these must be a function of public events alone:

- *A choice writes no entry.* Until it comes into force each line of it carries a salted checksum of its own, which covers
  the line before it too. Whoever changes a waiting line, takes one out between others or exchanges two is found out; whoever
  computes all checksums anew, or takes out the last line, is not. From the moment it is in force it is in the log.
- *Every epoch, every call of `bind` and every charge writes one entry "changed"*, of the epochs closed so far and the
  minute. Its seal, which is salted, is over the change that it led to, or over nothing. No number of the change is in it.
- *The mark of the people's key* is made and sealed with the registration, not with the first person.

`check_changes` finds the changes of each entry again. They are in order, an entry of epoch e seals everything up to that
epoch, and what binds between two epochs is tried: none, one, and so on. Live entries seal none or one. That of a ledger
which was there before there were logs seals all changes so far: how many there were besides the epochs is not to be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, text, update

from sfumato.ledger import log, schema

_PRIVATE = select(schema.lives.c.private).where(schema.lives.c.dataset_id == bindparam("dataset"))
_SQLITE_LAST = text("SELECT max(seq) FROM sqlite_sequence WHERE name = :name")
_POSTGRES_NEXT = text("SELECT nextval(pg_get_serial_sequence(:name, 'id')) FROM generate_series(1, :many)")
_HEX = 2 * log.SALT


def is_private(connection: Connection, dataset_id: int) -> bool:
    """Whether a dataset has a roster that is private and changes."""
    return bool(connection.execute(_PRIVATE, {"dataset": dataset_id}).scalar())


def any_private(connection: Connection) -> bool:
    """Whether any dataset of the ledger has such a roster."""
    query = select(schema.lives.c.dataset_id).where(schema.lives.c.private != 0).limit(1)
    return connection.execute(query).first() is not None


def with_checksums(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Lines of choices of one dataset, with their numbers and checksums, to come after those that wait."""
    table, made = schema.choices, []
    last = select(table.c.salt).where(table.c.dataset_id == rows[0]["dataset_id"]).order_by(table.c.id.desc()).limit(1)
    before = connection.execute(last).scalar() or ""
    for number, row in zip(_numbers(connection, len(rows)), rows, strict=True):
        numbered = {**row, "id": number}
        before = _checksum(numbered, log.fresh_salt(), before)
        made.append(numbered | {"salt": before})
    return made


def _numbers(connection: Connection, many: int) -> list[int]:
    """The next numbers of lines; the caller writes them in the same transaction."""
    name = schema.choices.name
    if connection.dialect.name == "sqlite":
        last = int(connection.execute(_SQLITE_LAST, {"name": name}).scalar() or 0)
        return list(range(last + 1, last + 1 + many))
    return [int(number) for number in connection.execute(_POSTGRES_NEXT, {"name": name, "many": many}).scalars()]


def _checksum(row: Mapping[str, Any], salt: str, before: str) -> str:
    """Salt and checksum of a line that comes after the one with the checksum `before`."""
    return salt + log.seal(salt, [log.row_of(schema.choices, row, "salt"), ("before", before)])


def check_choices(rows: Iterable[Mapping[str, Any]], applied: int) -> str | None:
    """What is wrong with the lines that wait, oldest first; `applied` is the last line that came into force."""
    before = ""
    for row in rows:
        if row["id"] <= applied or _checksum(row, row["salt"][:_HEX], before) != row["salt"]:
            return "what people have chosen is not what was written"
        before = row["salt"]
    return None


def check_strangers(connection: Connection) -> str | None:
    """What is wrong if a line that waits belongs to no dataset: no log would miss it."""
    table = schema.choices
    lost = select(table.c.id).where(table.c.dataset_id.not_in(select(schema.datasets.c.id))).limit(1)
    return None if connection.execute(lost).first() is None else "a choice belongs to nobody's dataset"


def migrate_choices(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Give lines that wait their checksums, in a ledger that had none."""
    before, table = "", schema.choices
    for row in rows:
        before = _checksum(row, log.fresh_salt(), before)
        connection.execute(update(table).where(table.c.id == row["id"]).values(salt=before))


def check_changes(
    entries: Sequence[tuple[str, Mapping[str, Any]]], changes: Sequence[tuple[Mapping[str, Any], Sequence[str]]]
) -> str | None:
    """What is wrong between the entries (salt and body) and the changes (row, and the texts of all its rows)."""
    epochs = {int(row["epoch"]): place for place, (row, _) in enumerate(changes, start=1) if row["kind"] == "epoch"}
    done = 0
    for salt, body in entries:
        end = max(done, epochs.get(body["epoch"], 0))
        texts = [one for _, mine in changes[done:end] for one in mine]
        while log.sealed(salt, texts) != body["seal"]:
            if end == len(changes) or changes[end][0]["kind"] == "epoch":
                return f"a change of its people, or that there was none, in epoch {body['epoch']}"
            texts += changes[end][1]
            end += 1
        done = end
    return None if done == len(changes) else "a change of its people that is in no entry"
