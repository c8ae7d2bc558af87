"""Triggers: four eyes are kept by the database itself, whichever program writes to it.

A decision is by an active officer who is not the plan's author, about a submitted plan as it is, and never changes. A plan
that was submitted keeps its releases, author and digest; it is approved or refused only where there is such a decision. What
a dataset is registered with never changes: a plan's digest covers it. The same conditions are written for SQLite and
PostgreSQL; only the way a trigger refuses differs. (The owner of a database can always drop a trigger: this stops accidents,
stray scripts and whoever has a role that may only read and write lines, not its administrator.)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, text

_PLAN = (
    "SELECT 1 FROM service_plans p WHERE p.id = NEW.plan_id AND p.state = 'submitted'"
    " AND p.digest = NEW.plan_digest AND p.author_id <> NEW.officer_id"
)
_OFFICER = "SELECT 1 FROM service_accounts a WHERE a.id = NEW.officer_id AND a.role = 'officer' AND a.state = 'active'"
_AUTHOR = "SELECT 1 FROM service_accounts a WHERE a.id = NEW.author_id AND a.role = 'custodian' AND a.state = 'active'"
_DECIDED = (
    "SELECT 1 FROM service_decisions d WHERE d.plan_id = NEW.id AND d.plan_digest = NEW.digest"
    " AND d.officer_id <> NEW.author_id AND d.decision = NEW.state"
)
_FIXED = ("id", "dataset_id", "author_id", "created_at")
_SUBMITTED = ("name", "releases", "digest", "submitted_at", "preview")
_REGISTERED = ("id", "name", "source", "schema", "people", "caps", "created_by", "created_at")


def _differ(columns: tuple[str, ...]) -> str:
    return "(" + " OR ".join(f'NEW."{c}" {{differs}} OLD."{c}"' for c in columns) + ")"


class _Rule(NamedTuple):
    name: str
    table: str
    event: str
    when: str  # refused if so; always, if empty
    why: str


RULES: Final[tuple[_Rule, ...]] = (
    _Rule(
        "service_decisions_eyes",
        "service_decisions",
        "INSERT",
        f"NOT EXISTS ({_PLAN}) OR NOT EXISTS ({_OFFICER})"
        # INSERT OR REPLACE deletes the old line without firing the trigger on DELETE.
        " OR EXISTS (SELECT 1 FROM service_decisions d WHERE d.plan_id = NEW.plan_id)",
        "a plan is decided once, while it is submitted and as it is, by an active officer who is not its author",
    ),
    _Rule("service_decisions_stay", "service_decisions", "UPDATE", "", "a decision never changes"),
    _Rule("service_decisions_keep", "service_decisions", "DELETE", "", "a decision is never deleted"),
    _Rule(
        "service_plans_begin",
        "service_plans",
        "INSERT",
        f"NEW.state NOT IN ('draft', 'submitted') OR NOT EXISTS ({_AUTHOR})"
        " OR EXISTS (SELECT 1 FROM service_plans p WHERE p.id = NEW.id)",
        "a plan begins as a draft of an active custodian",
    ),
    _Rule(
        "service_plans_change",
        "service_plans",
        "UPDATE",
        f"{_differ(_FIXED)} OR (OLD.state <> 'draft' AND {_differ(_SUBMITTED)})",
        "a plan that was submitted never changes, nor does whose it is",
    ),
    _Rule(
        "service_plans_state",
        "service_plans",
        "UPDATE",
        "OLD.state <> NEW.state AND NOT ("
        "(OLD.state = 'draft' AND NEW.state IN ('submitted', 'withdrawn'))"
        " OR (OLD.state = 'submitted' AND NEW.state = 'withdrawn')"
        f" OR (OLD.state = 'submitted' AND NEW.state IN ('approved', 'refused') AND EXISTS ({_DECIDED}))"
        " OR (OLD.state = 'approved' AND NEW.state = 'run')"
        " OR (OLD.state = 'run' AND NEW.state = 'approved'))",  # a job that was cancelled before it charged
        "a plan is drafted, submitted, decided by an officer and run, in this order",
    ),
    _Rule("service_plans_keep", "service_plans", "DELETE", "", "a plan is never deleted"),
    _Rule(
        "service_datasets_once",
        "service_datasets",
        "INSERT",
        "EXISTS (SELECT 1 FROM service_datasets d WHERE d.id = NEW.id OR d.name = NEW.name OR d.source = NEW.source)",
        "a source is registered once, and a name is given once",
    ),
    _Rule(
        "service_datasets_stay",
        "service_datasets",
        "UPDATE",
        _differ(_REGISTERED),
        "what a dataset is registered with never changes",
    ),
    _Rule("service_datasets_keep", "service_datasets", "DELETE", "", "a dataset is never deleted"),
)
_TABLES: Final = tuple(dict.fromkeys(rule.table for rule in RULES))


def install(connection: Connection) -> None:
    """Create every trigger that is not there yet, in the transaction that creates or changes the tables."""
    there = _there(connection)
    sqlite = connection.dialect.name == "sqlite"
    within = "" if sqlite else str(connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one())
    for rule in RULES:
        if rule.name not in there:
            for statement in _sqlite(rule) if sqlite else _postgres(rule, within):
                connection.execute(text(statement))
    for table in () if sqlite else _TABLES:
        if f"{table}_keep_all" not in there:
            connection.execute(text(_keep_all(table)))


def remove(connection: Connection) -> None:
    """Drop every trigger: for a migration, which installs them again before its transaction ends."""
    for rule in RULES:
        on = "" if connection.dialect.name == "sqlite" else f" ON {rule.table}"
        connection.execute(text(f"DROP TRIGGER IF EXISTS {rule.name}{on}"))
    for table in () if connection.dialect.name == "sqlite" else _TABLES:
        connection.execute(text(f"DROP TRIGGER IF EXISTS {table}_keep_all ON {table}"))


def _there(connection: Connection) -> set[str]:
    if connection.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = ANY(ARRAY[{}]::regclass[])".format(
            ", ".join(f"'{table}'" for table in _TABLES)
        )
    return {str(name) for (name,) in connection.execute(text(query))}


def _sqlite(rule: _Rule) -> list[str]:
    condition = f" WHEN {rule.when.format(differs='IS NOT')}" if rule.when else ""
    refuse = f"SELECT RAISE(ABORT, 'sfumato service: {rule.why}')"
    return [f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table}{condition} BEGIN {refuse}; END"]


def _postgres(rule: _Rule, within: str) -> list[str]:
    """A condition may look at other tables, so it stands in a function.

    Whoever decides locks the plan first: the state that the condition sees is the one that holds until the end. The function
    looks for tables where the service's are: a temporary table of the same name, which anybody may make, is not one of them.
    """
    lock = (
        "PERFORM 1 FROM service_plans WHERE id = NEW.plan_id FOR UPDATE; " if rule.name == "service_decisions_eyes" else ""
    )
    condition = rule.when.format(differs="IS DISTINCT FROM") if rule.when else "TRUE"
    given = "OLD" if rule.event == "DELETE" else "NEW"
    return [
        f"CREATE OR REPLACE FUNCTION {rule.name}() RETURNS trigger LANGUAGE plpgsql"
        f" SET search_path = {within}, pg_temp AS $$ BEGIN {lock}"
        f"IF {condition} THEN RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',"
        f" MESSAGE = 'sfumato service: {rule.why}'; END IF; RETURN {given}; END $$",
        f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table} FOR EACH ROW EXECUTE FUNCTION {rule.name}()",
    ]


def _keep_all(table: str) -> str:
    """TRUNCATE fires no trigger on DELETE; one that always refuses is that of decisions."""
    return (
        f"CREATE TRIGGER {table}_keep_all BEFORE TRUNCATE ON {table} FOR EACH STATEMENT "
        "EXECUTE FUNCTION service_decisions_keep()"
    )
