"""Opening a ledger: SQLite file or PostgreSQL, created, checked, brought up to date, with errors a person can act on.

Connections come from `sfumato.ledger.connections`; a Ledger object holds nothing that a fork, a thread or a restarted server
could break. Writers to a file queue (`sfumato.ledger.turns`), and are ready to write when their turn comes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from sfumato import __version__
from sfumato.errors import LedgerError
from sfumato.ledger import migrate, schema, triggers
from sfumato.ledger.connections import BUSY_SECONDS, connected
from sfumato.ledger.persons import key_path
from sfumato.ledger.turns import turn

_LOCK = 0x5FE3A70  # PostgreSQL advisory lock held while tables or datasets are created


class Store:
    """A ledger database, with ``read()`` and ``write()`` transactions. Made by `opened` and `existing`, which check it."""

    def __init__(self, location: str | Path, key: str | Path | None = None) -> None:
        self.url = _url(location)
        self.name = self.url.database if self.is_sqlite else self.url.render_as_string(hide_password=True)
        self._shared = connected(self.url)
        self.created = False
        self.key = key_path(str(self.name), self.is_sqlite, key)

    @classmethod
    def opened(cls, location: str | Path, *, create: bool, key: str | Path | None = None) -> Store:
        """A ledger to spend from: made if there is none (and `create` says so), migrated if its format is an older one."""
        store = cls(location, key)
        if not store._exists():
            if not create:
                raise LedgerError(
                    f"there is no ledger at {store.name}; check the name: the first release charged to a ledger makes it"
                )
            store._create()
            store.created = True
        if store._version() < schema.VERSION:
            store._migrate()
        return store

    @classmethod
    def existing(cls, location: str | Path) -> Store | None:
        """A ledger to look at, in whatever format it has; ``None`` if there is none. Nothing is made or changed."""
        store = cls(location)
        if not store._exists():
            return None
        store._version()
        return store

    @property
    def engine(self) -> Engine:
        """Where connections come from."""
        return self._shared.engine

    @property
    def is_sqlite(self) -> bool:
        """SQLite, or else PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def has_lives(self) -> bool:
        """Whether the tables of rosters that change are there: not in a ledger of an older format that is only read."""
        return self._version() >= 3

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger throughout."""
        with self._errors("read"), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def write(self, *, before: Sequence[str] = ()) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends without an error, and leaves no trace otherwise.

        SQLite obeys the settings in `before` only outside a transaction; they end with it.
        """
        with self._errors("write"), self.engine.connect() as connection:
            if self.is_sqlite:
                raw: Any = connection.connection.dbapi_connection
                for setting in before:
                    raw.execute(setting)
                with suppress(sqlite3.Error):  # whatever is wrong with the file, the transaction will say
                    raw.execute("SELECT 1 FROM sqlite_master").fetchone()  # reads the tables' definitions, before the turn
            connection = connection.execution_options(ledger_write=True)
            if not self.is_sqlite:
                # Balances are read after the lock is held and must be the newest, whatever the server's default.
                connection = connection.execution_options(isolation_level="READ COMMITTED")
            with turn(str(self.name)) if self.is_sqlite else nullcontext(), connection.begin():
                if not self.is_sqlite:
                    # A server set up for speed may acknowledge commits that a power cut loses.
                    connection.execute(
                        text(
                            "SELECT set_config('synchronous_commit', 'on', true)"
                            " WHERE current_setting('synchronous_commit') = 'off'"
                        )
                    )
                yield connection

    def tidy(self, table: str) -> None:
        """Let PostgreSQL use the room of rewritten rows again; it may be busy or not allow it, and does so later itself."""
        if self.is_sqlite:
            return
        with suppress(DBAPIError), self.engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(text(f"VACUUM (SKIP_LOCKED) {table}"))

    def alone(self, connection: Connection) -> None:
        """Wait until no other process creates tables or datasets (SQLite has one writer anyway)."""
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})

    def _exists(self) -> bool:
        if self.is_sqlite and not _is_database(Path(str(self.url.database))):
            return False
        with self.read() as connection:
            return self._found(connection)

    def _found(self, connection: Connection) -> bool:
        tables = inspect(connection)
        if tables.has_table(schema.meta.name):
            return True
        if self.is_sqlite and tables.get_table_names():
            raise LedgerError(f"{self.name} is a database but not a Sfumato ledger; give the ledger another name")
        return False

    def _version(self) -> int:
        with self.read() as connection:
            return self._format(connection)

    def _format(self, connection: Connection) -> int:
        rows = {str(n): str(v) for n, v in connection.execute(select(schema.meta.c.name, schema.meta.c.value))}
        version = rows.get("version", "")
        if rows.get("format") != schema.FORMAT or not version.isdecimal() or int(version) < 1:
            raise LedgerError(f"{self.name} is not a Sfumato ledger; give the ledger another name")
        if int(version) > schema.VERSION:
            raise LedgerError(
                f"the ledger {self.name} has format {version}, written by Sfumato {rows.get('software', '?')}; "
                f"this is Sfumato {__version__}, which knows formats up to {schema.VERSION}: upgrade Sfumato. "
                "Nothing was changed"
            )
        return int(version)

    def _migrate(self) -> None:
        with self.write(before=migrate.SQLITE_SETTINGS) as connection:
            self.alone(connection)
            found = self._format(connection)
            if found < schema.VERSION:  # or else another process was faster
                migrate.migrate(connection, found, software=__version__)

    def _create(self) -> None:
        if self.is_sqlite:
            self._use_wal()
        with self.write() as connection:
            self.alone(connection)
            if self._found(connection):
                return  # another process was faster
            schema.metadata.create_all(connection, checkfirst=False)
            triggers.install(connection)
            about = {"format": schema.FORMAT, "version": str(schema.VERSION), "software": __version__}
            connection.execute(insert(schema.meta), [{"name": n, "value": v} for n, v in about.items()])

    def _use_wal(self) -> None:
        # Kept in the file. Switching does not wait for another process that is switching too, hence the loop.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            with self._errors("write"), self.engine.connect() as connection:
                raw: Any = connection.connection.dbapi_connection
                try:
                    raw.execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise LedgerError(_advice(str(self.name), "write", str(error))) from error
            time.sleep(0.01)

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise LedgerError(f"the ledger {self.name} refused a change: {error.orig}") from error
        except DBAPIError as error:
            raise LedgerError(_advice(str(self.name), verb, str(error.orig).strip())) from error


def _advice(name: str, verb: str, reason: str) -> str:
    if "sfumato ledger:" in reason:
        return f"the ledger {name} refused a change: {reason}"
    known = {
        "not a database": "it is not a Sfumato ledger; give the ledger another name",
        "malformed": "the file is damaged; restore it from a backup before releasing anything",
        "full": "the disk is full; free some space and run the release again",
        "disk I/O": "the disk is full or failing; free some space or move the ledger, then run the release again",
        "readonly": "it is read-only; make the file and its folder writable",
        "unable to open": "the file or its folder cannot be written; check the folder and its permissions",
        "no such table": "its tables are gone: the file was moved or deleted since it was opened",
        "locked": f"another process kept it busy for {BUSY_SECONDS} seconds; try again when that one has finished",
        "No space": "the server's disk is full; free some space and run the release again",
        "connect": "the server does not answer; check the address and that PostgreSQL is running, and look at the "
        "balance before asking again: a charge that was under way may be recorded",
    }
    reason = " ".join(reason.split())  # one line, whatever the driver says
    hint = next((text for part, text in known.items() if part in reason), "nothing was released")
    return f"cannot {verb} the ledger {name}: {hint} ({reason})"


def _url(location: str | Path) -> URL:
    place = str(location)
    if "://" not in place:
        if not place or place == ":memory:":
            raise LedgerError("a ledger must be durable: give a file name such as 'clinic.ledger' or a PostgreSQL URL")
        return URL.create("sqlite", database=str(Path(place).expanduser().absolute()))
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):
        raise LedgerError("the ledger's URL is not readable; it looks like postgresql://user@host/database") from None
    if url.get_backend_name() == "sqlite":
        return _url(url.database or "")
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise LedgerError(
            f"a ledger lives in a file or in PostgreSQL, not in {url.drivername}; use postgresql://user@host/database"
        )
    return url.set(drivername="postgresql+psycopg")


def _is_database(path: Path) -> bool:
    """Whether there is a file that SQLite may open; what cannot become a ledger is an error."""
    if not path.parent.is_dir():
        raise LedgerError(f"the folder {path.parent} for the ledger does not exist; create it first")
    if path.is_dir():
        raise LedgerError(f"{path} is a folder; give the ledger a file name, such as {path / 'clinic.ledger'}")
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LedgerError(f"cannot read the ledger {path}: {error.strerror}") from error
    if start and start != b"SQLite format 3\0":
        raise LedgerError(f"{path} is not a Sfumato ledger; give the ledger another name")
    return True
