"""Triggers: the database itself refuses to forget, whichever program writes to it.

Nothing is deleted, no running total goes down, a finished release and a recorded charge never change. The same
conditions are written for SQLite and PostgreSQL; only the way a trigger refuses differs. (The owner of a database
can always drop a trigger: this stops accidents and stray scripts, not its administrator.)
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Table, text

from sfumato.ledger import schema

_APPEND_ONLY = (
    schema.meta,
    schema.datasets,
    schema.rosters,
    schema.charges,
    schema.people_charges,
    schema.lives,
    schema.choices,
    schema.changes,
    schema.change_chunks,
    schema.life_charges,
    schema.charge_chunks,
    schema.allowances,
    schema.log,
)
# A choice that came into force is in the change that took it in; its own line would only tell when it was made.
_TAKEN_IN = (
    "EXISTS (SELECT 1 FROM ledger_changes WHERE ledger_changes.dataset_id = OLD.dataset_id"
    " AND ledger_changes.applied >= OLD.id)"
)


# A cap of an analyst is what the newest grant says, or what is spent where that is more; a day's name begins with the day.
_NOT_GRANTED = (
    "NEW.kind IN ('allowance', 'daily') AND NOT EXISTS (SELECT 1 FROM ledger_allowances WHERE ledger_allowances.id ="
    " (SELECT max(id) FROM ledger_allowances WHERE dataset_id = NEW.dataset_id"
    " AND name = CASE NEW.kind WHEN 'daily' THEN substr(NEW.name, 12) ELSE NEW.name END)"
    " AND NEW.cap {same} (CASE NEW.kind WHEN 'daily' THEN CASE WHEN per_day < NEW.spent THEN NEW.spent ELSE per_day END"
    " ELSE CASE WHEN cap < NEW.spent THEN NEW.spent ELSE cap END END))"
)
_GRANTS = "the cap of an analyst is what was granted"


def _changed(table: Table, *free: str) -> str:
    """True when any column but the ``free`` ones changes."""
    return " OR ".join(f"NEW.{c.name} {{differs}} OLD.{c.name}" for c in table.columns if c.name not in free)


# table -> the updates that are refused, and why
_UPDATES: tuple[tuple[Table, str, str], ...] = (
    (
        schema.limits,
        f"NEW.spent < OLD.spent OR {_changed(schema.limits, 'spent', 'cap')}"
        " OR (NEW.cap {differs} OLD.cap AND (OLD.kind NOT IN ('allowance', 'daily') OR NEW.spent <> OLD.spent))",
        "what was spent stays spent and caps do not change",
    ),
    (
        schema.people,
        "NEW.last_release <= OLD.last_release OR NEW.dataset_id {differs} OLD.dataset_id"
        " OR length(NEW.spent) <> length(OLD.spent)",
        "what people have spent changes only by the charge of a newer release",
    ),
    (
        schema.releases,
        "OLD.state <> 'reserved' OR NEW.state = 'reserved' OR "
        + _changed(schema.releases, "state", "artefact", "finished_at"),
        "a release is finished once and never changed",
    ),
    (
        schema.persons,
        "substr(NEW.members, 1, length(OLD.members)) {differs} OLD.members"
        " OR NEW.dataset_id {differs} OLD.dataset_id OR NEW.bucket {differs} OLD.bucket",
        "a person keeps their place",
    ),
    (
        schema.states,
        "NEW.turn <= OLD.turn OR length(NEW.vector) < length(OLD.vector)"
        " OR NEW.dataset_id {differs} OLD.dataset_id OR NEW.part {differs} OLD.part",
        "where people stand changes only by a newer charge or epoch",
    ),
    *((table, "", "recorded lines never change") for table in _APPEND_ONLY),
)


def _kept(table: Table) -> str:
    """When a line of a table may not be deleted; always, if this is empty."""
    return f"NOT {_TAKEN_IN}" if table is schema.choices else ""


def install(connection: Connection) -> None:
    """Create every trigger, in the transaction that creates or changes the tables."""
    statements = _sqlite() if connection.dialect.name == "sqlite" else _postgres()
    for statement in statements:
        connection.execute(text(statement))


def remove(connection: Connection) -> None:
    """Drop every trigger; only for a migration, which installs them again before its transaction ends."""
    for table in schema.metadata.sorted_tables:
        on = "" if connection.dialect.name == "sqlite" else f" ON {table.name}"
        for name in ("keep", "keep_all", "replace", "change", "grant", "regrant"):
            connection.execute(text(f"DROP TRIGGER IF EXISTS {table.name}_{name}{on}"))


def _sqlite() -> Iterator[str]:
    def trigger(name: str, event: str, table: str, when: str, why: str) -> str:
        condition = f" WHEN {when}" if when else ""
        refuse = f"SELECT RAISE(ABORT, 'sfumato ledger: {why}')"
        return f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table}{condition} BEGIN {refuse}; END"

    for table in schema.metadata.sorted_tables:
        yield trigger("keep", "DELETE", table.name, _kept(table), "nothing is deleted")
        # INSERT OR REPLACE deletes the old row without firing the trigger above.
        same = " AND ".join(f"{c.name} = NEW.{c.name}" for c in table.primary_key)
        if table is schema.datasets:
            same += " OR name = NEW.name"
        exists = f"EXISTS (SELECT 1 FROM {table.name} WHERE {same})"
        yield trigger("replace", "INSERT", table.name, exists, "a recorded line is not replaced")
    for table, when, why in _UPDATES:
        yield trigger("change", "UPDATE", table.name, when.format(differs="IS NOT"), why)
    for name, event in (("grant", "INSERT"), ("regrant", "UPDATE OF cap")):
        yield trigger(name, event, schema.limits.name, _NOT_GRANTED.format(same="IS"), _GRANTS)


def _postgres() -> Iterator[str]:
    yield (
        "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'sfumato ledger: %', TG_ARGV[0]; END $$"
    )

    def trigger(name: str, event: str, table: str, when: str, why: str, each: str = "ROW") -> str:
        condition = f" WHEN ({when})" if when else ""
        return (
            f"CREATE TRIGGER {table}_{name} BEFORE {event} ON {table} FOR EACH {each}{condition} "
            f"EXECUTE FUNCTION ledger_refuse('{why}')"
        )

    for table in schema.metadata.sorted_tables:
        if _kept(table):  # a condition that looks at another table goes into a function
            yield (
                "CREATE OR REPLACE FUNCTION ledger_keep_waiting() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN IF {_kept(table)} THEN RAISE EXCEPTION 'sfumato ledger: nothing is deleted'; END IF; "
                "RETURN OLD; END $$"
            )
            yield (
                f"CREATE TRIGGER {table.name}_keep BEFORE DELETE ON {table.name} FOR EACH ROW "
                "EXECUTE FUNCTION ledger_keep_waiting()"
            )
        else:
            yield trigger("keep", "DELETE", table.name, "", "nothing is deleted")
        yield trigger("keep_all", "TRUNCATE", table.name, "", "nothing is deleted", each="STATEMENT")
    for table, when, why in _UPDATES:
        yield trigger("change", "UPDATE", table.name, when.format(differs="IS DISTINCT FROM"), why)
    granted = _NOT_GRANTED.format(same="IS NOT DISTINCT FROM")
    yield (
        "CREATE OR REPLACE FUNCTION ledger_keep_granted() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {granted} THEN RAISE EXCEPTION 'sfumato ledger: {_GRANTS}'; END IF; RETURN NEW; END $$"
    )
    yield (
        f"CREATE TRIGGER ledger_limits_grant BEFORE INSERT OR UPDATE OF cap ON {schema.limits.name} FOR EACH ROW "
        "EXECUTE FUNCTION ledger_keep_granted()"
    )
    for table, column in schema.VECTORS:
        # Vectors of distinct budgets hardly compress; trying costs more than writing them.
        yield f"ALTER TABLE {table.name} ALTER COLUMN {column} SET STORAGE EXTERNAL"
