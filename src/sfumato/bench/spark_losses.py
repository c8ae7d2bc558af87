"""An executor is lost while Spark computes, and then the server: what each leaves.

`python -m sfumato.bench.spark_losses` starts a Spark Connect server with two executors, processes of their own, and ends one
of them (kill -9) in the middle of a query, after the first stage: what it had computed is lost, and Spark computes it
again. The query draws 3 rows of every person from rows whose order is not fixed. Afterwards everybody has exactly as many
rows as the cap says, as without the loss. Then the server is ended in the middle of a release: the charge stays and nothing
is released.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.bench.spark_server import SparkServer, spark_server
from sfumato.errors import SfumatoError
from sfumato.ledger import Ledger
from sfumato.releases import open as open_table
from sfumato.tables import Numeric, Schema
from sfumato.tables.capping import capped
from sfumato.tables.connecting import connect
from sfumato.tables.spark_engine import backend_at

PARTS, PERSONS, CAP = 8, 20_000, 3
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(PARTS),
    "spark.worker.cleanup.enabled": "true",
}


def run(rows: int = 200_000, progress: Callable[[str], None] = print) -> dict[str, int]:
    """Lose an executor and the server; the numbers of rows that were drawn, with and without a loss."""
    with spark_server(master="local-cluster[2,1,900]", settings=SETTINGS) as server:
        backend = backend_at(server.url)
        session = backend._session
        query = f"id % {PERSONS} AS person", "CAST(pmod(xxhash64(id), 10) AS INT) AS x"
        session.range(0, rows, 1, PARTS).selectExpr(*query).write.saveAsTable("visits")
        progress(f"{rows:,} rows on a server with executors {executors(server)}")
        drawn = {"without a loss": _drawn(session)}
        with _once(session, PARTS + 1, lambda: _kill_one(server, progress)):
            drawn["after a lost executor"] = _drawn(session)
        progress(f"rows drawn: {drawn}; {CAP * PERSONS:,} are due")
        if set(drawn.values()) != {CAP * PERSONS}:
            raise SfumatoError(f"a lost executor changed how many rows count: {drawn}")
        progress(f"a lost server leaves: {_lost_server(server, session)}")
        return drawn


def _drawn(session: Any) -> int:
    """How many rows are drawn in all, counted by cell; an error if somebody has more than the cap."""
    engine = connect(session.table("visits").repartition(PARTS), columns={})  # rows in no particular order
    rows = capped(engine, engine.table, CAP)
    each = rows.group_by("person").agg(n=rows.count())
    if engine.fetch(each.filter(each["n"] > CAP).count()).as_py():
        raise SfumatoError("somebody counts more often than the cap allows")
    return int(sum(engine.fetch(rows.group_by("x").agg(n=rows.count()))["n"].to_pylist()))


def _lost_server(server: SparkServer, session: Any) -> list[str]:
    """End the server in the middle of a release; how the ledger has it."""
    schema = Schema({"x": Numeric(0, 9, bins=10, integer=True)})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "visits.ledger"
        opened = open_table(server.url, table="visits", schema=schema, epsilon=1, rows=1, ledger=place, name="visits")
        assert opened.dataset.engine.url == server.url  # open: the release is what is stopped
        try:
            with _once(session, 1, server.kill):
                opened.histogram("x", epsilon="0.5")
        except SfumatoError as error:
            if "stays spent" not in str(error):
                raise
        return [f"{entry.state}, charged {entry.total / 10**9}" for entry in Ledger.open(place).history("visits")]


@contextmanager
def _once(session: Any, tasks: int, act: Callable[[], None]) -> Iterator[None]:
    """Act once, when a query has finished so many tasks."""
    acted: list[bool] = []

    def look(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if not acted and sum(stage.num_completed_tasks for stage in stages or ()) >= tasks:
            acted.append(True)
            act()

    session.registerProgressHandler(look)
    try:
        yield
    finally:
        session.removeProgressHandler(look)


def executors(server: SparkServer) -> list[int]:
    """The processes of a server's executors."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in words and parent == server.process:
                found.append(int(entry.name))
    return sorted(found)


def _kill_one(server: SparkServer, progress: Callable[[str], None]) -> None:
    lost = executors(server)[0]
    os.kill(lost, signal.SIGKILL)
    progress(f"executor {lost} is gone")


if __name__ == "__main__":
    run()
