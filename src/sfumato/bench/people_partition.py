"""How fast the optimal partition is and how it grows; what a personalized count costs over ten million people."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.people import DatasetReader, preview_count, privacy_aware
from sfumato.people.partition import round_down
from sfumato.privacy import Meter, PersonBudgets, Seeded


def partition_times(sizes: tuple[int, ...], parts: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Processor seconds (others may share the machine) for distinct Uniform(.01, .1) budgets."""
    rng = np.random.default_rng(5)
    exact: dict[str, float] = {}
    for n in sizes:
        progress(f"partition: {n:,} distinct budgets into {parts} parts")
        levels = np.unique(rng.integers(10**7, 10**8, 2 * n))
        budgets = PersonBudgets(np.sort(rng.choice(levels, n, replace=False)), np.ones(n, dtype=np.int64))
        start = time.process_time()
        privacy_aware(budgets, parts=parts)
        exact[str(n)] = time.process_time() - start
        start = time.process_time()
        coarse, _ = round_down(budgets, decimals=4)
        privacy_aware(coarse, parts=parts)
        rounded = time.process_time() - start
    return {
        "seconds": exact,
        "seconds_on_4_decimals": rounded,
        "levels_on_4_decimals": coarse.groups,
        "growth_exponent": float(np.polyfit(np.log(sizes), np.log(list(exact.values())), 1)[0]),
    }


def partition_claims(found: dict[str, Any], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    largest = found["seconds"][str(sizes[-1])]
    # n log n between the smallest and largest size, as an exponent of n.
    limit = 1 + float(np.log(np.log(sizes[-1]) / np.log(sizes[0])) / np.log(sizes[-1] / sizes[0]))
    return [
        {
            "name": f"optimal partition of {sizes[-1]:,} distinct budgets into 50 parts, seconds",
            "figure": round(largest, 2),
            "limit": 10,
            "holds": largest < 10,
        },
        {
            "name": f"the same on budgets rounded down to 4 decimals ({found['levels_on_4_decimals']} levels), seconds",
            "figure": round(found["seconds_on_4_decimals"], 3),
            "limit": 0.5,
            "holds": found["seconds_on_4_decimals"] < 0.5,
        },
        {
            "name": "growth with n, as an exponent (n log n gives the limit)",
            "figure": round(found["growth_exponent"], 3),
            "limit": round(limit, 3),
            "holds": found["growth_exponent"] <= limit,
        },
    ]


def big_count(people: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """A personalized count in DuckDB against the plain weighted SQL sum over the same file, fastest of five each."""
    import duckdb

    from sfumato.tables import Numeric, Roster, Schema
    from sfumato.tables import open as open_table

    progress(f"a personalized count over {people:,} people")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        base = duckdb.connect()
        base.execute(
            "COPY (SELECT (hash(i) % 100)::INTEGER AS age, 0.01 + (hash(i + 7) % 900) / 10000.0 AS epsilon "
            f"FROM range({people}) t(i)) TO '{path}' (FORMAT parquet)"
        )
        column = base.execute(f"SELECT epsilon, count(*) FROM '{path}' GROUP BY 1 ORDER BY 1").fetchnumpy()
        levels = np.rint(np.asarray(column["epsilon"], dtype=np.float64) * 1e9).astype(np.int64)
        budgets = PersonBudgets(levels, np.asarray(column["count_star()"], dtype=np.int64))
        schema = Schema({"age": Numeric(0, 99, bins=10, integer=True)})
        data = open_table(path, schema=schema, budgets=Roster.column("epsilon", people=budgets))
        option = preview_count(budgets, independent=True)[0]
        cap = float(option.charge.total) / 1e9
        plain_sql = f"SELECT sum(least(epsilon, {cap})) FROM '{path}' WHERE age >= 65"

        def personalized() -> None:
            reader = DatasetReader(data, budgets, where="age >= 65")
            option.run(reader, Meter(limit=option.charge, budgets=budgets, source=Seeded(1)))

        times: dict[str, list[float]] = {"plain": [], "personalized": []}
        for _ in range(6):
            for name, job in (("plain", lambda: base.execute(plain_sql).fetchall()), ("personalized", personalized)):
                start = time.perf_counter()
                job()
                times[name].append(time.perf_counter() - start)
        plain, ours = (min(times[name][1:]) for name in ("plain", "personalized"))
    return {"people": people, "plain_seconds": plain, "personalized_seconds": ours, "ratio": ours / plain}
