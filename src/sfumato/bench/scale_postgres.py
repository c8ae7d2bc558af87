"""The works of `sfumato bench scale` on PostgreSQL: the server named by SFUMATO_BENCH_POSTGRES.

Seconds are processor time of the server's processes and of this one where the server runs on this machine; of a server
elsewhere they are seconds of the clock, and the figures say so.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.bench import scale_data as made
from sfumato.bench import scale_queries as yard
from sfumato.bench import scale_run as run
from sfumato.bench.ledger_places import SERVER, missing
from sfumato.errors import SfumatoError

TYPES = {
    "age": "integer",
    "sex": "text",
    "income": "double precision",
    "region": "text",
    "stay": "integer",
    "person": "bigint",
    "tier": "text",
    "epsilon": "double precision",
}
MOST = 10_000_000
"""More rows are not loaded: a row takes about 60 bytes there, and every work is a scan."""


def why_not() -> str | None:
    """Why PostgreSQL cannot be tried, or None."""
    return missing("postgres")


def server_url() -> str:
    """The server, as the table layer names it."""
    return os.environ[SERVER].replace("postgresql+psycopg://", "postgresql://")


@contextmanager
def loaded(path: Path) -> Iterator[tuple[Any, str]]:
    """A connection to the server and the name of a table there with the rows of a Parquet file; dropped afterwards."""
    import psycopg

    name = f"scale_{uuid.uuid4().hex[:12]}"
    duckdb = made.quiet_duckdb()
    columns = [row[0] for row in duckdb.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()]
    with psycopg.connect(server_url(), autocommit=True) as connection, tempfile.TemporaryDirectory() as folder:
        declared = ", ".join(f"{column} {TYPES[column]}" for column in columns)
        connection.execute(f"CREATE UNLOGGED TABLE {name} ({declared})".encode())
        try:
            text = Path(folder) / "rows.csv"
            duckdb.execute(f"COPY (SELECT * FROM '{path}') TO '{text}' (FORMAT csv, HEADER false)")
            with text.open("rb") as file, connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)".encode()) as copy:
                while piece := file.read(1 << 20):
                    copy.write(piece)
            text.unlink()
            connection.execute(f"VACUUM ANALYZE {name}".encode())
            yield connection, name
        finally:
            connection.execute(f"DROP TABLE {name}".encode())


def clock_of(connection: Any) -> tuple[Callable[[], float], str]:
    """Processor seconds of server and client, where the server's processes are seen from here; else the time of day."""
    backend = connection.execute("SELECT pg_backend_pid()").fetchone()[0]
    stat = Path(f"/proc/{backend}/stat")
    if stat.exists() and "postgres" in stat.read_text().partition(")")[0]:
        parent = int(stat.read_text().rpartition(")")[2].split()[1])
        clock = yard.server_clock(parent)
        if clock is not None:
            return clock, "processor seconds of server and client"
    return time.perf_counter, "seconds of the clock: the server is elsewhere"


def compare(work: str, connection: Any, table: str, rows: int, *, repeats: int = 1) -> dict[str, Any]:
    """Time and ratio of a work on a table of the server, as `scale_run.compare` has them for a file."""
    kind, asked = yard.split(work)
    people = yard.people_of(kind, rows)
    dataset = run.dataset_of(kind, server_url(), rows, table)
    query = yard.hand_query(work, "-", table=table)
    clock, said = clock_of(connection)

    def by_hand() -> dict[str, list[Any]]:
        cursor = connection.execute(query.encode())
        lines = cursor.fetchall()
        return {column.name: [line[i] for line in lines] for i, column in enumerate(cursor.description)}

    ours = yard.ours_as_result(work, yard.weighed(work, dataset, people))
    same = yard.agree(work, ours, yard.result_of(work, by_hand()))
    exact = yard.ratio(lambda: yard.weighed(work, dataset, people), by_hand, repeats, clock=clock, warm=False)
    found = {
        "engine": "postgres",
        "work": work,
        "rows": rows,
        "seconds": exact.ours,
        "hand_seconds": exact.hand,
        "times": round(exact.times, 3),
        "same": same,
        "clock": said,
        "bytes_per_row": round(_size(connection, table) / rows, 2),
    }
    try:
        with run.releasing(kind, server_url(), rows, table) as release:
            whole = yard.ratio(lambda: release(asked), by_hand, repeats, clock=clock)
            found |= {"release_seconds": whole.ours, "release_times": round(whole.times, 3)}
    except SfumatoError as error:
        found["release_refused"] = str(error)
    return found


def _size(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT pg_table_size('{table}')".encode()).fetchone()[0])
