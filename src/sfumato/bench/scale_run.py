"""One work on one table of DuckDB: the exact aggregate and the release, each against the query by hand, and their memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sfumato.bench import scale_data as made
from sfumato.bench import scale_queries as yard
from sfumato.errors import PrivacyWarning, SfumatoError
from sfumato.tables import Dataset
from sfumato.tables import open as describe

REPEATS = 3
LARGE = 20_000_000
"""From so many rows on every job is run once: it takes long enough for nothing else to matter."""


def table_of(kind: str) -> tuple[made.Budgets, bool]:
    """What `make_table` needs for a kind of budgets."""
    return "million" if kind == "million" else "tiers", kind in ("capped", "persons")


def dataset_of(kind: str, source: Any, rows: int, table: str | None = None) -> Dataset:
    """The table as a kind of budgets reads it."""
    budgets, persons = table_of(kind)
    roster = None if kind in ("one", "capped") else made.roster(budgets, rows)
    return describe(source, schema=made.PERSONS if persons else made.SCHEMA, budgets=roster, table=table)


@contextmanager
def releasing(kind: str, source: Any, rows: int, table: str | None = None) -> Iterator[Callable[[str], Any]]:
    """`sf.open(...)` with a ledger of its own, as a function that makes a release for a question, never the same twice."""
    from sfumato.releases import open as opened  # what `sf.open` is

    budgets, persons = table_of(kind)
    roster = None if kind in ("one", "capped") else made.roster(budgets, rows)
    one: dict[str, Any] = {"epsilon": 10, "rows": rows} if roster is None else {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the ledger is new: it lives as long as the bench
        about: dict[str, Any] = {"schema": made.PERSONS if persons else made.SCHEMA, "budgets": roster, "table": table}
        people = opened(source, name="people", ledger=Path(folder) / "people.ledger", **about, **one)
        ask: dict[str, Callable[..., Any]] = {
            "count": lambda **price: people.count(where=yard.WHERE, **price),
            "sum": lambda **price: people.sum("income", **price),
            "histogram": lambda **price: people.histogram("region", **price),
            "bins": lambda **price: people.histogram("income", **price),
            "table": lambda **price: people.histogram("age", "region", **price),
            "quantile": lambda **price: people.quantile("income", [0.5], **price),
            "grid": lambda **price: people.table(*made.COLUMNS, **price),
        }
        # A release that was made before is returned for nothing: every one here has a price of its own.
        prices = itertools.count(1)

        def release(asked: str) -> Any:
            price = f"{0.01 + next(prices) * 1e-5:.5f}"
            return ask[asked](**{"epsilon" if roster is None else "share": price})

        yield release


def compare(work: str, path: Path, rows: int, *, repeats: int = REPEATS, memory: bool = True) -> dict[str, Any]:
    """Time, ratio and memory of a work on a Parquet file.

    Parameters
    ----------
    work : str
        One of `scale_queries.WORKS`.
    path : Path
        What `scale_data.make_table` wrote.
    rows : int
        How many rows it has.
    repeats : int
        Turns of each job.
    memory : bool
        Whether to run a release and the query by hand in fresh processes too, for their peak memory.

    Returns
    -------
    dict
        Processor seconds of the aggregate, the release and the query by hand; whether the aggregate equals the query.
    """
    kind, asked = yard.split(work)
    large = rows >= LARGE
    people = yard.people_of(kind, rows)
    dataset = dataset_of(kind, str(path), rows)
    connection, query = made.quiet_duckdb(), yard.hand_query(work, path)
    found_by: dict[str, Any] = {}

    def ours() -> None:
        found_by["us"] = yard.weighed(work, dataset, people)

    def hand() -> None:
        found_by["hand"] = yard.run_hand(connection, query)

    if large:
        _warm_up(work)
    exact = yard.ratio(ours, hand, 1 if large else repeats, warm=not large)
    same = yard.agree(work, yard.ours_as_result(work, found_by["us"]), yard.result_of(work, found_by["hand"]))
    found: dict[str, Any] = {
        "engine": "duckdb",
        "work": work,
        "rows": rows,
        "seconds": exact.ours,
        "hand_seconds": exact.hand,
        "times": round(exact.times, 3),
        "same": same,
        "bytes_per_row": round(column_bytes(connection, path, yard.columns_read(work)) / rows, 2),
    }
    try:
        measurable = Path("/proc/self/status").exists()
        if measurable and (large or memory):
            spent, found["megabytes"] = alone(work, path, rows)
            found["hand_megabytes"] = alone_by_hand(work, path)
        if not (measurable and large):
            with releasing(kind, str(path), rows) as release:
                spent = yard.ratio(lambda: release(asked), hand, repeats).ours
        found |= {"release_seconds": spent, "release_times": round(spent / exact.hand, 3)}
    except SfumatoError as error:  # a question that this roster cannot pay for is a figure too
        found["release_refused"] = str(error)
    connection.close()
    return found


def _warm_up(work: str) -> None:
    """Load what an aggregate and a release load at first use, on a table that costs nothing."""
    kind, asked = yard.split(work)
    budgets, persons = table_of(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = made.make_table(Path(folder) / "few.parquet", 10_000, budgets=budgets, persons=persons)
        yard.weighed(work, dataset_of(kind, str(path), 10_000), yard.people_of(kind, 10_000))
        with releasing(kind, str(path), 10_000) as release, suppress(SfumatoError):
            release(asked)


def column_bytes(connection: Any, path: Path, columns: tuple[str, ...]) -> int:
    """Bytes that these columns take in the file."""
    names = ", ".join(f"'{name}'" for name in columns)
    query = f"SELECT sum(total_compressed_size) FROM parquet_metadata('{path}') WHERE path_in_schema IN ({names})"
    return int(connection.execute(query).fetchone()[0])


# ------------------------------------------------------------------------------------------------- memory

_ALONE = "import sys; from sfumato.bench.scale_run import one_release; one_release(*sys.argv[1:])"
_BY_HAND = """
import duckdb, pyarrow, sys
duckdb.connect().execute(sys.argv[1]).fetch_arrow_table().to_pydict()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def alone(work: str, path: Path, rows: int) -> tuple[float, int]:
    """Processor seconds of one release in a fresh process, and the megabytes that the process needed at most."""
    seconds, refused, peak = _said_by(_ALONE, work, str(path), str(rows))
    if refused != "-":
        raise SfumatoError(refused.replace("_", " "))
    return float(seconds), int(peak) // 1024


def alone_by_hand(work: str, path: Path) -> int:
    """Megabytes that a fresh process needs at most for the query by hand."""
    return int(_said_by(_BY_HAND, yard.hand_query(work, path))[-1]) // 1024


def one_release(work: str, path: str, rows: str) -> None:
    """Make one release, and print its processor seconds and the peak memory of this process in kilobytes."""
    kind, asked = yard.split(work)
    _warm_up(work)
    refused = "-"
    with releasing(kind, path, int(rows)) as release:
        start = time.process_time()
        try:
            release(asked)
        except SfumatoError as error:
            refused = str(error).replace(" ", "_")
        print(time.process_time() - start, refused)
    # VmHWM belongs to this program alone; ru_maxrss would begin at what the parent process held.
    status = Path("/proc/self/status").read_text().splitlines()
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))


def _said_by(program: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def preview_seconds(levels: int) -> float:
    """Processor seconds of a preview of a count, with so many different budgets."""
    import numpy as np

    from sfumato.privacy.budgets import PersonBudgets
    from sfumato.releases import open as opened
    from sfumato.tables import Roster

    people = PersonBudgets(np.arange(1, levels + 1, dtype=np.int64) * 1000, np.full(levels, 3))
    spent = []
    for _ in range(3):
        roster = Roster.column("epsilon", people=people)
        table = opened("people.parquet", schema=made.SCHEMA, ledger=":memory:", budgets=roster)
        start = time.process_time()
        table.preview("count", where=yard.WHERE, share=0.1)
        spent.append(time.process_time() - start)
    return sorted(spent)[1]
