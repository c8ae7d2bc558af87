"""Roles of a PostgreSQL database: the web cannot read a private table, and the runner cannot approve or admit anybody.

Three roles, none of which can sign in by itself: somebody who can is made a member of one. The *owner* makes and changes the
tables; *web* serves people; *runner* makes releases. What each may do to which table is listed here and nowhere else; a
table that is not listed is closed to both. Private tables lie in schemas of their own, on which only the runner may read.

``python -m sfumato.service.store.roles --private clinic`` prints the statements, for an administrator to read and run.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection, text

from sfumato.errors import InputError
from sfumato.ledger import schema as ledger_schema
from sfumato.service.store import migrations, schema

WEB: Final = "sfumato_web"
RUNNER: Final = "sfumato_runner"

_READ, _ADD = "SELECT", "SELECT, INSERT"
_CHANGE = "SELECT, INSERT, UPDATE"
_ALL = "SELECT, INSERT, UPDATE, DELETE"

WEB_MAY: Final[dict[str, str]] = {
    "service_accounts": _CHANGE,
    "service_sessions": _ALL,
    "service_tokens": _ALL,
    "service_invitations": _CHANGE,
    "service_announcements": _ALL,
    "service_replies": _ALL,
    "service_attempts": _ALL,
    "service_datasets": _ADD,
    "service_subjects": _ALL,
    "service_plans": _CHANGE,
    "service_decisions": _ADD,  # and never changes one: triggers say so too
    "service_preapprovals": _CHANGE,
    "service_jobs": _CHANGE,
    "service_artefacts": _READ,
    "service_policies": _ADD,
    "service_events": _ADD,
}
"""Table of the service -> what the web may do."""

RUNNER_MAY: Final[dict[str, str]] = {
    "service_accounts": _READ,
    "service_datasets": _READ,
    "service_plans": _READ,
    "service_decisions": _READ,
    "service_preapprovals": _READ,
    "service_jobs": "SELECT, UPDATE",
    "service_artefacts": _CHANGE,
}
"""Table of the service -> what the runner may do."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def statements(private: Sequence[str], *, within: str = "public") -> Iterator[str]:
    """The SQL that makes the roles, or brings them up to date, in the order in which it is run.

    Parameters
    ----------
    private : sequence of str
        Schemas with private tables.
    within : str
        The schema with the tables of the service and the ledger.
    """
    for name in (*private, within):
        if not _NAME.fullmatch(name):
            raise InputError(f"a schema is named in small letters, digits and _; got {name[:80]!r}")
    for role in (WEB, RUNNER):
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{role}') THEN "
            f"CREATE ROLE {role} NOLOGIN; END IF; END $$"
        )
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {within} FROM {role}"
        yield f"REVOKE ALL ON SCHEMA {within} FROM {role}"
        yield f"GRANT USAGE ON SCHEMA {within} TO {role}"
        yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {within} TO {role}"
    for schema_name in private:
        for other in (WEB, "PUBLIC"):
            yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema_name} FROM {other}"
            yield f"REVOKE ALL ON SCHEMA {schema_name} FROM {other}"
        yield f"GRANT USAGE ON SCHEMA {schema_name} TO {RUNNER}"
        yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema_name} TO {RUNNER}"
    for table in schema.metadata.sorted_tables:
        yield from _granted(within, table.name, WEB_MAY.get(table.name), RUNNER_MAY.get(table.name))
    yield from _granted(within, migrations.TABLE, _READ, _READ)
    for table in ledger_schema.metadata.sorted_tables:  # whose own triggers keep what was written from being changed
        may = _ALL if table is ledger_schema.choices else _CHANGE  # choices wait until an epoch has taken them
        yield from _granted(within, table.name, may, may)


def apply(connection: Connection, private: Sequence[str], *, within: str = "public") -> None:
    """Make the roles, or bring them up to date, in a transaction of a role that may.

    Parameters
    ----------
    connection : Connection
    private : sequence of str
        Schemas with private tables.
    within : str
        The schema with the tables of the service and the ledger.
    """
    for statement in statements(private, within=within):
        connection.execute(text(statement))


def _granted(within: str, table: str, web: str | None, runner: str | None) -> Iterator[str]:
    """Nothing for a table that is not there: the ledger may have a database of its own."""
    for role, may in ((WEB, web), (RUNNER, runner)):
        if may is not None:
            grant = f'GRANT {may} ON {within}."{table}" TO {role}'
            yield f"DO $$ BEGIN IF to_regclass('{within}.\"{table}\"') IS NOT NULL THEN {grant}; END IF; END $$"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the statements.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line if it is not given.
    """
    parser = argparse.ArgumentParser(prog="python -m sfumato.service.store.roles", description=__doc__)
    parser.add_argument("--private", action="append", default=[], help="a schema with private tables; may be repeated")
    parser.add_argument("--within", default="public", help="the schema with the tables of the service and the ledger")
    given = parser.parse_args(arguments)
    try:
        print("BEGIN;", *(f"{line};" for line in statements(given.private, within=given.within)), "COMMIT;", sep="\n")
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
