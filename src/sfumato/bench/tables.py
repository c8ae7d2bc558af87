"""Pushdown: what the table layer costs over SQL written by hand, on DuckDB.

The same bucketing, the same file, the same machine, one after the other; seconds are processor time of all
threads, medians of turns, so that a busy machine slows neither side more. By hand means
one CASE per column; SQL that buckets equal widths by division, and so fails on infinities, is shown too. Memory is
the peak of a fresh process counting a table of one size and of four times that size.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.tables import Categorical, Numeric, Roster, Schema, open
from sfumato.testing import reveal

COLUMNS = ["age", "sex", "income", "region", "stay"]
REGIONS = [f"r{i}" for i in range(12)]
SCHEMA = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "sex": Categorical(["F", "M"]),
        "income": Numeric(0.0, 1000.0, bins=20),
        "region": Categorical(REGIONS, other=True),
        "stay": Numeric(edges=[0, 1, 2, 4, 7, 14, 30, 60], outside="clamp"),
    }
)
CAP = 500_000_000


def _quiet_duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def _make(path: Path, rows: int) -> None:
    _quiet_duckdb().execute(
        f"""COPY (SELECT (random() * 125)::INT AS age, CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex,
        random() * 1050 AS income, 'r' || (random() * 12)::INT AS region, (random() * 70)::INT AS stay,
        0.01 + round(random(), 3) AS epsilon FROM range({rows})) TO '{path}' (FORMAT parquet)"""
    )


def _by_hand(path: Path, *, division: bool = False) -> str:
    """What somebody would write for these bins, ignoring missing values."""
    stay = " ".join(f"WHEN stay < {edge} THEN {i}" for i, edge in enumerate([1, 2, 4, 7, 14, 30]))
    region = " ".join(f"WHEN region = '{name}' THEN {i}" for i, name in enumerate(REGIONS))
    if division:
        age, income = "least(greatest(age // 10, 0), 11)", "least(greatest(floor(income / 50), 0), 19)::INT"
    else:
        age = "CASE " + " ".join(f"WHEN age < {10 * (i + 1)} THEN {i}" for i in range(11)) + " ELSE 11 END"
        income = "CASE " + " ".join(f"WHEN income < {50 * (i + 1)} THEN {i}" for i in range(19)) + " ELSE 19 END"
    return (
        f"SELECT {age} AS a, CASE WHEN sex = 'F' THEN 0 WHEN sex = 'M' THEN 1 END AS s, {income} AS i, "
        f"CASE {region} ELSE 12 END AS r, CASE {stay} ELSE 6 END AS t, count(*) AS n FROM '{path}' GROUP BY ALL"
    )


def _medians(first: Callable[[], Any], second: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median processor seconds of two jobs run in turns, after one warm-up each."""
    first(), second()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for job, times in zip((first, second), seconds, strict=True):
            start = time.process_time()
            job()
            times.append(time.process_time() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


# VmHWM belongs to the program alone; ru_maxrss would begin at what the parent process held.
_PEAK = """
import resource, sys
from pathlib import Path
from sfumato.bench.tables import COLUMNS, SCHEMA, open, reveal
reveal(open(sys.argv[1], schema=SCHEMA).counts(COLUMNS))
status = Path("/proc/self/status")
if status.exists():
    line = next(l for l in status.read_text().splitlines() if l.startswith("VmHWM"))
    print(int(line.split()[1]) // 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _peak_megabytes(path: Path) -> int:
    done = subprocess.run([sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def run(*, quick: bool = False, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure; `quick` uses fewer rows and repeats.

    Returns
    -------
    dict with ``figures`` and ``claims``
    """
    rows, repeats = (4_000_000, 3) if quick else (10_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        path, quarter = Path(folder) / "people.parquet", Path(folder) / "quarter.parquet"
        progress(f"making a table of {rows:,} rows")
        _make(path, rows)
        _make(quarter, rows // 4)
        connection = _quiet_duckdb()
        data = open(str(path), schema=SCHEMA, budgets=Roster.column("epsilon"))

        progress("counting over five columns")
        by_hand = _by_hand(path)
        ours, hand = _medians(lambda: reveal(data.counts(COLUMNS)), lambda: connection.execute(by_hand).arrow(), repeats)
        by_division = _by_hand(path, division=True)
        again, division = _medians(
            lambda: reveal(data.counts(COLUMNS)), lambda: connection.execute(by_division).arrow(), max(1, repeats // 2)
        )
        table = connection.execute(by_hand).fetchnumpy()
        dense = np.zeros(SCHEMA.shape(COLUMNS), dtype=np.int64)
        dense[tuple(table[k].astype(np.int64) for k in "asirt")] = table["n"]
        equal = bool(np.array_equal(dense, reveal(data.counts(COLUMNS))))

        plain_sum = f"SELECT sum(least((epsilon * 1e9)::BIGINT, {CAP})) FROM '{path}' WHERE age >= 65 AND region = 'r3'"
        weighted, raw = _medians(
            lambda: reveal(data.weighted_sums(CAP, where="age >= 65 and region = 'r3'")),
            lambda: connection.execute(plain_sum).fetchall(),
            repeats,
        )
        progress("ten marginals at once and one by one")
        pairs = [[a, b] for i, a in enumerate(COLUMNS) for b in COLUMNS[i + 1 :]]
        together, each = _medians(
            lambda: reveal(data.marginals(pairs)), lambda: [reveal(data.counts(p)) for p in pairs], max(1, repeats // 2)
        )
        progress("measuring peak memory in processes of their own")
        small, large = _peak_megabytes(quarter), _peak_megabytes(path)

    figures = {
        "rows": rows,
        "counts_seconds": ours,
        "counts_by_hand_seconds": hand,
        "counts_times_division_by_hand": round(again / division, 3),
        "weighted_seconds": weighted,
        "weighted_by_hand_seconds": raw,
        "ten_pairs_seconds": together,
        "ten_pairs_one_by_one_seconds": each,
        "peak_megabytes_quarter": small,
        "peak_megabytes": large,
        "same_counts_as_by_hand": equal,
    }
    claims = [
        _claim("counts over 5 columns / SQL by hand", ours / hand, 1.2),
        _claim("weighted count / SQL by hand", weighted / raw, 2.0),
        _claim("ten marginals at once / one by one", together / each, 1.0),
        _claim("peak memory, 4 times the rows / a quarter", large / small, 1.5),
        {"name": "counts equal the SQL by hand", "figure": float(equal), "limit": 1.0, "holds": equal},
    ]
    return {"figures": figures, "claims": claims}


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": round(figure, 3), "limit": limit, "holds": figure <= limit}
