"""How the time of a general table grows with its rows: processor seconds of the passes over records, and of all the rest."""

from __future__ import annotations

import cProfile
import pstats
import time
from typing import Any

from sfumato.bench.classify_data import census
from sfumato.grids import PrivMarginals
from sfumato.privacy import Seeded

COUNTING = ("counted", "_column_counts", "_counted_as")
ROWS = (100_000, 1_000_000)


def growth_with_rows(rows: tuple[int, ...] = ROWS, *, epsilon: float = 1.0) -> dict[str, Any]:
    """By number of rows: seconds that count, that read and code the rows, and that choose and fit.

    The rows are those of the synthetic census, the same ones over and over. The profiler itself takes a little of each.
    """
    import pandas as pd

    first = census(min(rows))
    out = {}
    for n in rows:
        frame = pd.concat([first.frame] * -(-n // len(first.frame)), ignore_index=True).iloc[:n]
        profile = cProfile.Profile(time.process_time)
        profile.runcall(
            PrivMarginals(epsilon=epsilon, target=first.target, rows=n).fit, frame, schema=first.schema, source=Seeded(1)
        )
        stats: dict[Any, Any] = vars(pstats.Stats(profile))["stats"]
        took = {name: sum(s[3] for key, s in stats.items() if key[2] == name) for name in (*COUNTING, "release")}
        whole = max(s[3] for s in stats.values())
        counting = sum(took[name] for name in COUNTING)
        out[f"{n:,}"] = {
            "counting": round(counting, 1),
            "reading": round(whole - took["release"], 1),
            "choosing and fitting": round(took["release"] - counting, 1),
        }
    return out
