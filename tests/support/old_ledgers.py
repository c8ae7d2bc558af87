"""Ledgers of older formats, as the software of their time wrote them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sfumato.ledger.database import Store

HERE = Path(__file__).parent.parent / "ledger"


def restore(where: str, number: int) -> str:
    """Write a ledger of format `number` to the file or server at `where`."""
    if where.startswith("postgresql://"):
        import psycopg

        with psycopg.connect(where) as server:
            server.execute((HERE / f"format{number}_postgres.sql").read_bytes())
        return where
    connection = sqlite3.connect(where)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript((HERE / f"format{number}_sqlite.sql").read_text(encoding="utf-8"))
    connection.close()
    return where


def version(where: str) -> int:
    """The format of the ledger at `where`."""
    store = Store.existing(where)
    assert store is not None
    return store._version()
