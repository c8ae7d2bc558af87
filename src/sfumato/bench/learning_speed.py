"""How fast linear models are fitted, beside scikit-learn's in the same run: `sfumato bench classify --part speed`.

Made-up tables of 14 columns: numbers with public bounds, the same through a schema of 16 bins each, and that with budgets
per person. Processor seconds, medians of fits that take turns, so that a busy machine slows all of them; the most memory
that a fit asks for beyond the table it is given. scikit-learn sees the plain numbers.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.classifiers import PrivateLogisticRegression, PrivateSVM
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, Schema

COLUMNS = 14
TIMES_SCIKIT = 4.0
GROWTH = 14.0
TIMES_THE_TABLE = 3.0
Fit = Callable[[], Any]


def made_up(rows: int, *, seed: int = 0) -> tuple[Any, Any, Schema]:
    """Numbers between -1 and 1 in a data frame, a class that a linear model can learn, and their schema."""
    import pandas as pd

    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, (rows, COLUMNS))
    signal = X @ draw.normal(size=COLUMNS) * 2
    y = (draw.random(rows) < 1 / (1 + np.exp(-signal))).astype(int)
    names = [f"x{j}" for j in range(COLUMNS)]
    schema = Schema({**{name: Numeric(-1, 1, bins=16) for name in names}, "y": Categorical([0, 1])})
    return pd.DataFrame(X, columns=names), y, schema


def fits(rows: int) -> dict[str, Fit]:
    """What is timed, by name."""
    from sklearn.linear_model import LogisticRegression

    X, y, schema = made_up(rows)
    plain: dict[str, Any] = {"epsilon": 1, "bounds": (-1, 1), "source": Seeded(1)}
    coded: dict[str, Any] = {"epsilon": 1, "schema": schema, "target": "y", "source": Seeded(1)}
    budgets = np.resize([0.01, 0.2, 1.0], rows)
    return {
        "scikit-learn": lambda: LogisticRegression().fit(X, y),
        "logistic, numbers": lambda: PrivateLogisticRegression(**plain).fit(X, y),
        "logistic, schema": lambda: PrivateLogisticRegression(**coded).fit(X, y),
        "logistic, schema, budgets": lambda: PrivateLogisticRegression(**coded).fit(X, y, budgets=budgets),
        "support vectors, schema": lambda: PrivateSVM(**coded).fit(X, y),
    }


def speed(*, quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Seconds and memory at two sizes, and what is claimed of them."""
    sizes = (10_000, 100_000) if quick else (100_000, 1_000_000)
    figures: dict[str, Any] = {}
    for rows in sizes:
        each = fits(rows)
        seconds: dict[str, list[float]] = {name: [] for name in each}
        for _ in range(3):
            for name, fit in each.items():
                start = time.process_time()
                fit()
                seconds[name].append(time.process_time() - start)
        for name, fit in each.items():
            figures.setdefault(name, {})[str(rows)] = {
                "seconds": round(float(np.median(seconds[name])), 3),
                "times_the_table": round(_most_memory(fit) / (8 * rows * COLUMNS), 2),
            }
            progress(f"{rows} rows, {name}: {figures[name][str(rows)]}")
    return figures, _claims(figures, *map(str, sizes))


def _most_memory(fit: Fit) -> int:
    """Bytes that a fit holds at once beyond what was there before."""
    tracemalloc.start()
    fit()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def _claims(figures: dict[str, Any], few: str, many: str) -> list[dict[str, Any]]:
    theirs = figures["scikit-learn"][many]["seconds"]
    claims = []
    for name, found in figures.items():
        if name == "scikit-learn":
            continue
        ratio = round(found[many]["seconds"] / theirs, 2)
        growth = round(found[many]["seconds"] / found[few]["seconds"], 2)
        memory = found[many]["times_the_table"]
        claims += [
            _claim(f"{name}, {many} rows: times the seconds of scikit-learn's", ratio, TIMES_SCIKIT),
            _claim(f"{name}: growth of the time from {few} to {many} rows", growth, GROWTH),
            _claim(f"{name}, {many} rows: memory as a multiple of the table's", memory, TIMES_THE_TABLE),
        ]
    return claims


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit)}
