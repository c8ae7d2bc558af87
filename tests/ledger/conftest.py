"""A fresh ledger on SQLite and on PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from support.memory import memory

BACKENDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def _schema_on(server: str) -> Iterator[str]:
    plain = server.replace("postgresql+psycopg://", "postgresql://")
    schema = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    yield f"{plain}{'&' if '?' in plain else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def swift() -> Iterator[Path]:
    """A folder on which nothing waits for a disk."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield Path(folder)


@pytest.fixture(params=BACKENDS)
def where(request: pytest.FixtureRequest, swift: Path) -> Iterator[str]:
    """Where a ledger can be made that nobody else uses."""
    if request.param == "sqlite":
        yield str(swift / "clinic.ledger")
        return
    yield from _schema_on(request.getfixturevalue("postgres_url"))


@pytest.fixture
def new_schema(postgres_url: str) -> Iterator[Callable[[], str]]:
    """Makes places for ledgers on PostgreSQL, as many as are asked for."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(contextmanager(_schema_on)(postgres_url))


@pytest.fixture
def race() -> Callable[..., list[int]]:
    """Run a function in many forked processes at once; returns their exit codes."""

    def run(function: Callable[[int], int], processes: int = 32) -> list[int]:
        fork = multiprocessing.get_context("fork")
        start = fork.Barrier(processes)

        def main(number: int) -> None:
            start.wait(60)
            try:
                code = function(number)
            except BaseException:
                traceback.print_exc()
                os._exit(99)  # and not 1, which a count of one would be
            os._exit(code)

        workers = [fork.Process(target=main, args=(n,)) for n in range(processes)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
        return [worker.exitcode if worker.exitcode is not None else -99 for worker in workers]

    return run
