"""What a work costs at sizes that were not run: seconds = a + b rows, and how well that foretells the largest run.

Everything that grows with the rows is one scan of the columns that the question needs, so the time is a constant (plan,
ledger, noise, cells) plus so much per row. The two smaller sizes set a and b of a work; the largest is then foretold and
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FORETOLD = 0.3
"""How far off the foretold seconds may be."""
NEXT = 1_000_000_000


def models(works: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for every work that was run at two sizes or more.

    Parameters
    ----------
    works : list of dict
        Figures of `scale_run.compare`.

    Returns
    -------
    list of dict
        a, nanoseconds per row and megabytes read per processor second from all sizes, the foretold and the measured
        seconds at the largest size, and seconds at a billion rows with a range: 1.3 times less to 1.3 times more, or by
        as much as the worst work was missed.

    Examples
    --------
    >>> runs = [{"engine": "duckdb", "work": "one/count", "rows": n, "seconds": 0.1 + 2e-8 * n, "bytes_per_row": 2}
    ...         for n in (10**6, 10**7, 10**8)]
    >>> line, = models(runs)
    >>> line["nanoseconds_per_row"], line["foretold_off"], [round(s) for s in line["billion_seconds"]]
    (20.0, 0.0, [16, 26])
    """
    found = []
    for engine, work in dict.fromkeys((run["engine"], run["work"]) for run in works):
        runs = sorted((r for r in works if (r["engine"], r["work"]) == (engine, work)), key=lambda r: int(r["rows"]))
        if len(runs) < 2:
            continue
        a, b = _line(runs[-2], runs[-1])
        line = {
            "engine": engine,
            "work": work,
            "constant_seconds": round(a, 3),
            "nanoseconds_per_row": round(b * 1e9, 2),
            "megabytes_per_second": round(runs[-1]["bytes_per_row"] / b / 1e6, 1) if b > 0 else None,
            "billion_seconds": a + b * NEXT,
        }
        if len(runs) >= 3:
            a, b = _line(runs[-3], runs[-2])
            told, seen = a + b * runs[-1]["rows"], runs[-1]["seconds"]
            line |= {"foretold_seconds": round(told, 3), "measured_seconds": round(seen, 3)}
            line["foretold_off"] = round(told / seen - 1, 3)
        found.append(line)
    # A billion rows are ten times the largest size: the range is that by which the largest size was missed, or more.
    missed = [line["measured_seconds"] / line["foretold_seconds"] for line in found if "foretold_off" in line]
    apart = max([1 + FORETOLD, *missed, *(1 / times for times in missed)])
    for line in found:
        line["billion_seconds"] = [round(line["billion_seconds"] * part, 1) for part in (1 / apart, apart)]
    return found


def _line(small: dict[str, Any], large: dict[str, Any]) -> tuple[float, float]:
    b = (large["seconds"] - small["seconds"]) / (large["rows"] - small["rows"])
    return max(0.0, small["seconds"] - b * small["rows"]), b
