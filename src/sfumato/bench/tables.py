"""Pushdown: what the table layer costs over SQL as a good engineer writes it, on DuckDB, over ten million rows.

The data and the queries are those of `sfumato bench scale` (see `scale_queries`): raw columns are grouped as they are,
bins of equal width are cut by division. The same file, the same machine, in turns; seconds are processor time of all
threads, medians, so that a busy machine slows neither side more. Memory is the peak of a fresh process counting a table of
one size and of four times that size.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.bench import scale_data as made
from sfumato.bench import scale_queries as yard
from sfumato.bench.scale_run import dataset_of
from sfumato.testing import reveal

COLUMNS = list(made.COLUMNS)
COUNTED = ("one/count", "one/histogram", "one/table", "one/grid", "million/count")
"""The works to compare, with one ε for all and with a million budgets."""
LIMITS = {"one/count": 1.2, "one/histogram": 1.3, "one/table": 1.5, "one/grid": 1.2, "million/count": 2.0}

# VmHWM belongs to the program alone; ru_maxrss would begin at what the parent process held.
_PEAK = """
import resource, sys
from pathlib import Path
from sfumato.bench.tables import COLUMNS, dataset_of, reveal
reveal(dataset_of("one", sys.argv[1], 1).counts(COLUMNS))
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


def _against_hand(work: str, path: Path, rows: int, repeats: int) -> tuple[yard.Ratio, bool]:
    """Seconds of our aggregate and of the query by hand, and whether both give the same."""
    kind, _ = yard.split(work)
    people, connection, query = yard.people_of(kind, rows), made.quiet_duckdb(), yard.hand_query(work, path)
    dataset = dataset_of(kind, str(path), rows)
    ours = yard.ours_as_result(work, yard.weighed(work, dataset, people))
    same = yard.agree(work, ours, yard.result_of(work, yard.run_hand(connection, query)))
    timed = yard.ratio(lambda: yard.weighed(work, dataset, people), lambda: yard.run_hand(connection, query), repeats)
    return timed, bool(same)


def run(*, quick: bool = False, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure; `quick` uses fewer rows and repeats.

    Returns
    -------
    dict with ``figures`` and ``claims``
    """
    rows, repeats = (2_000_000, 1) if quick else (10_000_000, 5)
    return measure(rows, repeats, progress)


def measure(rows: int, repeats: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """The figures and claims for a table of `rows` rows, `repeats` turns each."""
    figures: dict[str, Any] = {"rows": rows}
    claims: list[dict[str, Any]] = []
    equal: list[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        path, quarter = Path(folder) / "people.parquet", Path(folder) / "quarter.parquet"
        granted = Path(folder) / "granted.parquet"
        progress(f"making tables of {rows:,} rows")
        made.make_table(path, rows)
        made.make_table(quarter, rows // 4)
        made.make_table(granted, rows, budgets="million")
        for work in COUNTED:
            progress(f"{work} and the query by hand")
            timed, same = _against_hand(work, granted if work.startswith("million") else path, rows, repeats)
            figures[work] = {"seconds": timed.ours, "hand_seconds": timed.hand, "same": same}
            claims.append(_claim(f"{work} / the query by hand", timed.times, LIMITS[work]))
            equal.append(same)
        progress("ten marginals at once and one by one")
        data = dataset_of("one", str(path), rows)
        pairs = [[a, b] for i, a in enumerate(COLUMNS) for b in COLUMNS[i + 1 :]]
        together = yard.ratio(
            lambda: reveal(data.marginals(pairs)), lambda: [reveal(data.counts(p)) for p in pairs], max(1, repeats // 2)
        )
        progress("measuring peak memory in processes of their own")
        small, large = _peak_megabytes(quarter), _peak_megabytes(path)

    figures |= {
        "ten_pairs_seconds": together.ours,
        "ten_pairs_one_by_one_seconds": together.hand,
        "peak_megabytes_quarter": small,
        "peak_megabytes": large,
    }
    claims += [
        _claim("ten marginals at once / one by one", together.times, 1.0),
        _claim("peak memory, 4 times the rows / a quarter", large / small, 1.5),
        {
            "name": "aggregates that equal the query by hand",
            "figure": sum(equal),
            "limit": len(equal),
            "holds": all(equal),
        },
    ]
    return {"figures": figures, "claims": claims}


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": round(figure, 3), "limit": limit, "holds": figure <= limit}
