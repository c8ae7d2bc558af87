"""The tables of the service, step by step: each file in `versions` brings a database from one version of them to the next.

A revision that people have is never changed; a change of `schema` is a new one. ``python tests/support/service_revision.py``
writes it from the difference, and a test compares what the revisions make with `schema` on both databases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, select, table, text
from sqlalchemy import column as column_of

from sfumato.errors import InputError
from sfumato.service.store import triggers

HEAD: Final = "0001"
"""The newest revision."""
TABLE: Final = "service_revision"
"""The table that says which revision a database has."""
_LOCK: Final = 0x5FE3A71  # PostgreSQL's advisory lock while tables are changed


def revision_of(connection: Connection) -> str | None:
    """The revision that a database has; ``None`` for an empty one."""
    if not inspect(connection).has_table(TABLE):
        return None
    found: str | None = connection.execute(select(column_of("version_num")).select_from(table(TABLE))).scalar()
    return found


def bring_up_to_date(connection: Connection) -> None:
    """Run the revisions that a database does not have, all of them or none.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes. Another process that opens the database meanwhile waits for its end.
    """
    if connection.dialect.name == "postgresql":  # on SQLite the transaction has begun with the lock
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    there = revision_of(connection)
    if there != HEAD:
        _upgrade(connection, there)
    triggers.install(connection)


def _upgrade(connection: Connection, there: str | None) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent))
    if there is not None and there not in {one.revision for one in script.walk_revisions()}:
        raise InputError(
            "the service's database was made by a newer version of Sfumato; install that one, or restore a backup"
        )
    if there is not None:
        triggers.remove(connection)
    with EnvironmentContext(Config(), script, fn=lambda found, _: script._upgrade_revs(HEAD, found)) as environment:
        environment.configure(connection=connection, version_table=TABLE, transactional_ddl=True)
        environment.run_migrations()
