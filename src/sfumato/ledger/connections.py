"""Connections to a ledger's database.

*SQLite*: opened for each operation and closed after it. An open file cannot be taken across a fork, and one that was
moved would go on being written to where nobody looks.

*PostgreSQL*: kept in a pool that all ledgers of a process at one address share, because connecting costs the server a
process and the client a few round trips, many times what a charge costs. A connection that is taken from the pool is
asked whether it is still there, *before* a transaction begins on it; if the server was restarted meanwhile, a new one
is opened and nobody notices. After that nothing is ever tried again: when a connection breaks inside a transaction,
or while it is being committed, nobody can tell from here whether the charge is on disk, and the caller is told to
look.

A forked child starts with an empty pool: two processes that spoke over one connection would read each other's
answers. At most `KEPT` connections stay open in a process that is idle; they are closed when the last ledger of that
address is gone or the process ends.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from sfumato.extras import need

BUSY_SECONDS = 60  # how long a writer waits for another one
KEPT = 4  # idle connections to one PostgreSQL database; more than these are opened when many threads ask at once


class Shared:
    """An engine, and its pool, for as long as anybody holds this."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        weakref.finalize(self, engine.dispose)  # runs at the end of the process too


_lock = threading.Lock()
_shared: weakref.WeakValueDictionary[str, Shared] = weakref.WeakValueDictionary()
_left_behind: list[Any] = []  # a parent's pools: in a child they must be neither used nor closed


def connected(url: URL) -> Shared:
    """The engine for an address: one for all ledgers there on PostgreSQL, one each on SQLite."""
    if url.get_backend_name() == "sqlite":
        return Shared(_sqlite(url))
    address = url.render_as_string(hide_password=False)
    with _lock:
        found = _shared.get(address)
        if found is None:
            found = _shared[address] = Shared(_postgres(url))
        return found


def _postgres(url: URL) -> Engine:
    psycopg = need("psycopg", "a PostgreSQL ledger")

    class Binary(psycopg.Cursor[Any]):  # type: ignore[misc, name-defined]
        """Vectors of people arrive as they are, not in hexadecimal digits: a quarter of the time."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.format = psycopg.pq.Format.BINARY

    engine = create_engine(
        url,
        # Statements are not kept on the server: a plan made while a table was small is the wrong one when it has grown.
        connect_args={"cursor_factory": Binary, "prepare_threshold": None},
        pool_size=KEPT,
        max_overflow=-1,
        pool_use_lifo=True,
        pool_pre_ping=True,
    )

    @event.listens_for(engine, "connect")
    def _plans(connection: Any, _record: object) -> None:
        # The same for what the server itself keeps, to check that a charge belongs to a release.
        if connection.info.server_version >= 120000:
            connection.execute("SET plan_cache_mode = force_custom_plan")
            connection.commit()

    return engine


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _settings(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: the driver's own would not be IMMEDIATE
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock first and looks at the balance afterwards, never the other way round.
        writing = connection.get_execution_options().get("ledger_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _forked() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it
    for shared in list(_shared.values()):
        _left_behind.append(shared.engine.pool)
        shared.engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
