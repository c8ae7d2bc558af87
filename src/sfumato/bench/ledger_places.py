"""Where the benches of the ledger put one: a file in a temporary folder, or a schema of its own on a PostgreSQL server."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

SERVER = "SFUMATO_BENCH_POSTGRES"
DATABASES = ("sqlite", "postgres")


@dataclass(frozen=True)
class Place:
    """Where a ledger and the key of its persons may be made, and how much room they take."""

    where: str
    key: Path
    schema: str = ""

    def megabytes(self) -> float:
        """On disk, with everything that belongs to it."""
        if not self.schema:
            return sum(file.stat().st_size for file in Path(self.where).parent.iterdir()) / 1e6
        size = text(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = to_regnamespace(:s)"
        )
        engine = create_engine(_driver(self.where), poolclass=NullPool)
        with engine.connect() as connection:
            return float(connection.execute(size, {"s": self.schema}).scalar_one()) / 1e6


def missing(database: str) -> str | None:
    """Why a database cannot be tried, or ``None``."""
    if database == "postgres" and not os.environ.get(SERVER):
        return f"set {SERVER} to the URL of a server"
    return None


@contextmanager
def fresh(database: str) -> Iterator[Place]:
    """A place that nobody else uses, removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "nation.ledger.key"
        if database == "sqlite":
            yield Place(str(Path(folder) / "nation.ledger"), key)
            return
        server = os.environ[SERVER].replace("postgresql+psycopg://", "postgresql://")
        schema = f"ledger_{uuid.uuid4().hex}"
        engine = create_engine(_driver(server), poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE SCHEMA {schema}"))
        try:
            yield Place(f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}", key, schema)
        finally:
            with engine.connect() as connection:
                connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))


def _driver(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")
