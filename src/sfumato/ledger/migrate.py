"""Bringing a ledger of an older format up to date, inside one transaction.

Amounts, states and requests are carried over as they are; each step says what else it changes. SQLite cannot change a
table's constraints, so there a changed table is copied aside, made anew and filled again; PostgreSQL alters it in place.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Connection, Table, select, text, update
from sqlalchemy.schema import AddConstraint, CreateIndex

from sfumato.errors import LedgerError
from sfumato.ledger import log, log_history, schema, triggers

# Tables refer to those that are made anew, and what is dropped must not stay readable in the file's free pages.
SQLITE_SETTINGS = ("PRAGMA foreign_keys = OFF", "PRAGMA secure_delete = ON")


def migrate(connection: Connection, found: int, *, software: str) -> None:
    """Bring the tables from format `found` to the present one; the caller holds the ledger's lock."""
    triggers.remove(connection)
    if found < 2:
        _to_minutes(connection)
    if found < 3:
        _to_lives(connection)
    if found < 4:
        _to_pages(connection)
    if found < 5:
        _to_logs(connection, new_choices=found >= 3)
    for name, value in (("version", str(schema.VERSION)), ("software", software)):
        connection.execute(update(schema.meta).where(schema.meta.c.name == name).values(value=value))
    if found < 5:
        log_history.build(connection, found)  # which says that it is of the new format
    triggers.install(connection)


def _to_lives(connection: Connection) -> None:
    """Format 3: rosters that change. Fixed ones stay as they are, until their people are brought."""
    schema.metadata.create_all(connection, tables=schema.SINCE_3, checkfirst=False)


def _to_logs(connection: Connection, *, new_choices: bool) -> None:
    """Format 5: a log for each dataset, allowances of analysts, and a salt and indexes for the choices that wait."""
    schema.metadata.create_all(connection, tables=schema.SINCE_5, checkfirst=False)
    if not new_choices:  # an earlier step made the table as it is now
        return
    table = schema.choices
    if connection.dialect.name == "sqlite":
        _made_anew(connection, table, {"salt": "lower(hex(randomblob(16)))"})
        return
    for index in table.indexes:
        connection.execute(CreateIndex(index, if_not_exists=True))
    connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN salt TEXT NOT NULL DEFAULT ''"))
    connection.execute(text(f"ALTER TABLE {table.name} ALTER COLUMN salt DROP DEFAULT"))
    for number in connection.execute(select(table.c.id)).scalars().all():
        connection.execute(update(table).where(table.c.id == number).values(salt=log.fresh_salt()))


def _to_pages(connection: Connection) -> None:
    """Format 4: indexes, by which a page of the history is read without the rest of it."""
    for table in (schema.releases, schema.life_charges):
        for index in table.indexes:
            if index.name in schema.INDEXES_SINCE_4:
                connection.execute(CreateIndex(index, if_not_exists=True))  # a table that an earlier step made anew has them


def _to_minutes(connection: Connection) -> None:
    """Format 2: times to the minute, one way to have failed, a name for each release, and `asked_by` may be empty."""
    minute = {
        column: f"substr({column}, 1, 16) || 'Z'"  # format 1 wrote UTC as 2026-01-31T12:34:56.789+00:00
        for column in ("created_at", "reserved_at", "finished_at")
    }
    if connection.dialect.name == "sqlite":
        _made_anew(connection, schema.datasets, minute)
        _made_anew(connection, schema.releases, minute | {"name": "NULL"})
        if connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
            raise LedgerError("the ledger's releases and charges do not belong together; restore it from a backup")
        return
    changes = "ADD COLUMN name TEXT, ALTER COLUMN asked_by DROP NOT NULL, DROP COLUMN reason"
    connection.execute(text(f"ALTER TABLE {schema.releases.name} {changes}"))
    for table, columns in ((schema.datasets, ("created_at",)), (schema.releases, ("reserved_at", "finished_at"))):
        changes = ", ".join(f"{column} = {minute[column]}" for column in columns)
        connection.execute(text(f"UPDATE {table.name} SET {changes}"))
    for table, name in (
        (schema.datasets, "ledger_datasets_minute"),
        (schema.releases, "ledger_releases_finished"),
        (schema.releases, "ledger_releases_minute"),
    ):
        connection.execute(AddConstraint(_check(table, name), isolate_from_table=False))


def _made_anew(connection: Connection, table: Table, changed: dict[str, str]) -> None:
    columns = [column.name for column in table.columns]
    values = ", ".join(changed.get(column, column) for column in columns)
    # Numbers are counted up for good: one that was used and is gone must not come again.
    counted = connection.execute(
        text("SELECT max(seq) FROM sqlite_sequence WHERE name = :name"), {"name": table.name}
    ).scalar()
    connection.execute(text(f"CREATE TEMP TABLE moved AS SELECT * FROM {table.name}"))
    connection.execute(text(f"DROP TABLE {table.name}"))
    table.create(connection)
    connection.execute(text(f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {values} FROM moved ORDER BY id"))
    connection.execute(text("DROP TABLE moved"))
    if counted is not None:
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        row = {"name": table.name, "seq": counted}
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :seq)"), row)


def _check(table: Table, name: str) -> CheckConstraint:
    return next(c for c in table.constraints if isinstance(c, CheckConstraint) and c.name == name)
