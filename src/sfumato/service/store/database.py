"""The service's database: SQLite for a small team, PostgreSQL for a large one, through the ledger's connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, insert, make_url

from sfumato.ledger.connections import connected
from sfumato.service.store import migrations, schema


def now() -> int:
    """Whole seconds since 1970; tests replace it."""
    return int(time.time())


class Store:
    """The tables of the service, in transactions. Open it with `opened`.

    Parameters
    ----------
    location : str or Path
        A file, or ``postgresql://user@host/database``.
    """

    def __init__(self, location: str | Path) -> None:
        place = str(location)
        if "://" in place:
            url = make_url(place)
            if url.get_backend_name() == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
        else:
            url = URL.create("sqlite", database=str(Path(place).absolute()))
        self.url = url
        self._shared = connected(url)

    @classmethod
    def opened(cls, location: str | Path) -> Store:
        """The database with its tables brought up to date."""
        store = cls(location)
        with store.write() as connection:
            migrations.bring_up_to_date(connection)
        return store

    @property
    def engine(self) -> Engine:
        """Where connections come from."""
        return self._shared.engine

    @property
    def is_sqlite(self) -> bool:
        """SQLite, or else PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only looks."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends; SQLite's begins with the lock (``BEGIN IMMEDIATE``)."""
        with self.engine.connect() as connection:
            connection = connection.execution_options(ledger_write=True)
            with connection.begin():
                yield connection


def record(connection: Connection, action: str, *, account_id: str | None, **about: Any) -> None:
    """Write down who did what: `dataset_id` and `target` are identifiers, never values."""
    connection.execute(insert(schema.events).values(at=now(), account_id=account_id, action=action, **about))
