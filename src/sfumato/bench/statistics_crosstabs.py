"""Tables with margins that add up, against noise on the cells alone and on every margin apart; lists of frequent values.

One yardstick for tables: the root of the mean, over all margins, of the squared error of a cell. `separate` measures every
margin by itself with an equal part of ε, as a user without planning would; its margins do not add up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.privacy.terms import Terms
from sfumato.statistics.crosstab import TablePlan, plan_table
from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.margin_fit import summed
from sfumato.statistics.margin_plan import Columns, subsets
from sfumato.statistics.top import plan_top

Ints = NDArray[np.int64]
EPSILONS = (0.1, 1.0)
ADULT = ("sex", "race", "workclass", "education", "marital_status")
_MADE = {
    "sex x ward x age": (2, 20, 10),
    "five x twelve x eight": (5, 12, 8),
    "four columns": (2, 6, 10, 7),
    "two long columns": (50, 40),
}


def run(
    *, quick: bool, data: Path | None, peers: bool, progress: Callable[[str], None]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The figures and claims of this part."""
    repeats = 8 if quick else 60
    sets = {name: made(shape, seed) for seed, (name, shape) in enumerate(_MADE.items())}
    if data is not None:
        sets |= adult(data)
    rows = []
    for name, table in sets.items():
        for epsilon in EPSILONS:
            progress(f"tables: {name}, ε {epsilon}")
            rows.append({"set": name, "epsilon": epsilon, **compared(table, epsilon, repeats)})
    progress("lists of the most frequent")
    lists = [listed(k, repeats * 4) for k in (1, 5, 20)]
    progress("a table of a million cells")
    seconds = million()
    figures = {"tables": rows, "lists": lists, "seconds of a million cells": seconds}
    return figures, claims(rows, lists, seconds)


def made(shape: tuple[int, ...], seed: int) -> Ints:
    """Counts of 20,000 records over columns of Zipf margins that depend on each other."""
    rng = np.random.default_rng(seed)
    share = np.ones(shape)
    for axis, size in enumerate(shape):
        part = 1 / np.arange(1, size + 1) ** 0.7
        share = share * part.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    share = share * rng.gamma(2.0, 0.5, shape)
    return rng.multinomial(20_000, (share / share.sum()).reshape(-1)).reshape(shape)


def adult(folder: Path) -> dict[str, Ints]:
    """Tables of the Adult census sample."""
    import pandas as pd

    frame = pd.read_parquet(folder / "adult.parquet", columns=list(ADULT))
    codes = {c: pd.Categorical(frame[c]).codes.astype(np.int64) for c in ADULT}
    found = {}
    for columns in (ADULT[:3], ADULT[:4], ADULT):
        shape = tuple(int(codes[c].max()) + 1 for c in columns)
        flat = np.ravel_multi_index(tuple(np.maximum(codes[c], 0) for c in columns), shape)
        found[f"Adult, {len(columns)} columns"] = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    return found


# --- tables --------------------------------------------------------------------------------------------------------------


def compared(table: Ints, epsilon: float, repeats: int) -> dict[str, Any]:
    """Measured and previewed error of each way, coverage of the intervals, and how far margins are from adding up."""
    bins = Bins(tuple(Axis.categories(f"c{i}", [str(j) for j in range(n)]) for i, n in enumerate(table.shape)))
    asked = tuple(s for s in subsets(range(table.ndim)) if s)
    truth = {s: summed(table, tuple(range(table.ndim)), s) for s in asked}
    rate = round(epsilon * NANO)
    plans = {name: plan_table(Terms(), bins, asked, rate=rate, mechanism=name) for name in ("margins", "cells")}
    squares: dict[str, list[float]] = {name: [] for name in (*plans, "separate")}
    covered, gap = [], 0.0
    for seed in range(repeats):
        for name, plan in plans.items():
            released = drawn(plan, table, seed)
            margins = {s: released.margin(*(f"c{i}" for i in s)) for s in asked}
            squares[name].append(mean_square({s: m.counts for s, m in margins.items()}, truth))
            if name == "margins":
                inside = [np.mean((m.interval()[0] <= truth[s]) & (truth[s] <= m.interval()[1])) for s, m in margins.items()]
                covered.append(float(np.mean(inside)))
                gap = max(gap, max(abs(float(m.counts.sum()) - released.total) for m in margins.values()))
        meter = Meter(source=Seeded(np.random.SeedSequence([seed, 3])))
        apart = {s: meter.laplace(counts, rate=rate // len(asked)).astype(float) for s, counts in truth.items()}
        squares["separate"].append(mean_square(apart, truth))
    error = {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()}
    return {
        "cells": int(table.size),
        "error": error,
        "previewed": {name: plan.expected_rmse for name, plan in plans.items()},
        "measured margins": len(plans["margins"].rates),
        "margins / separate": error["margins"] / error["separate"],
        "margins / cells": error["margins"] / error["cells"],
        "coverage of 95%": float(np.mean(covered)),
        "largest gap of totals": gap,
    }


def drawn(plan: TablePlan, table: Ints, seed: int) -> CrossTable:
    """One release with seeded noise."""

    def read(weights: Ints, margin: Columns) -> Exact[Ints]:
        return Exact(summed(table, tuple(range(table.ndim)), margin).astype(np.int64))

    source = Seeded(np.random.SeedSequence([seed, table.size]))
    return plan.run(read, Meter(source=source))


def mean_square(found: Mapping[Columns, NDArray[np.float64]], truth: Mapping[Columns, Ints]) -> float:
    """The mean over all margins of the mean squared error of a cell."""
    return float(np.mean([np.mean((found[s].reshape(truth[s].shape) - truth[s]) ** 2) for s in truth]))


def million() -> float:
    """Processor time of planning, noise and fit of 100 x 100 x 100 cells."""
    table = np.random.default_rng(5).poisson(2.0, (100, 100, 100)).astype(np.int64)
    bins = Bins(tuple(Axis.categories(f"c{i}", [str(j) for j in range(100)]) for i in range(3)))
    begun = time.process_time()
    plan = plan_table(Terms(), bins, tuple(s for s in subsets(range(3)) if s), rate=NANO)
    drawn(plan, table, 0)
    return time.process_time() - begun


# --- lists ---------------------------------------------------------------------------------------------------------------


def listed(k: int, repeats: int) -> dict[str, Any]:
    """Both mechanisms over 5,000 values of a Zipf law: the share of the rows of the true list that a list lacks, its
    shortfall, and how often the stated limit was passed."""
    rng = np.random.default_rng(9)
    share = 1 / np.arange(1, 5001) ** 1.05
    counts = rng.multinomial(50_000, share / share.sum())
    least = np.sort(counts)[-k]
    found: dict[str, Any] = {"k": k}
    for name in ("counts", "flip"):
        plan = plan_top(Terms(), Bins.numbered(counts.size, ordered=False), k, rate=NANO // 50, mechanism=name)
        short, lacking = [], []
        for seed in range(repeats):
            places = plan.run(Exact(counts), Meter(source=Seeded(np.random.SeedSequence([seed, k])))).places
            short.append(max(0, int(least - counts[places].min())))
            lacking.append(1 - counts[places].sum() / np.sort(counts)[-k:].sum())
        found[name] = {
            "rows lacking": float(np.mean(lacking)),
            "shortfall": float(np.sqrt(np.mean(np.square(short)))),
            "at most, by the preview": plan.expected_rmse,
            "beyond the 95% limit": float(np.mean(np.array(short) > plan.shortfall(0.95))),
        }
    return found


# --- claims and pictures -------------------------------------------------------------------------------------------------


def claims(rows: list[dict[str, Any]], lists: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """What the documentation says, with what was measured."""
    best = max(r["error"]["margins"] / min(r["error"]["cells"], r["error"]["separate"]) for r in rows)
    apart = float(np.mean([r["margins / separate"] for r in rows]))
    off = max(abs(r["error"]["margins"] / r["previewed"]["margins"] - 1) for r in rows)
    cover = min(r["coverage of 95%"] for r in rows)
    gap = max(r["largest gap of totals"] for r in rows)
    beyond = max(found[name]["beyond the 95% limit"] for found in lists for name in ("counts", "flip"))
    lacking = max(f["counts"]["rows lacking"] / max(f["flip"]["rows lacking"], 1e-9) for f in lists if f["k"] > 1)
    return [
        _claim("tables: error of planned margins over the better of cells and separate noise, largest", best, 1.1),
        _claim("tables: error of planned margins over separate noise, mean", apart, 0.75),
        _claim("tables: measured error is the previewed one, largest deviation", off, 0.15),
        {**_claim("tables: coverage of 95% intervals, least", cover, 0.93), "holds": cover >= 0.93},
        _claim("tables: totals of any two margins differ by at most", gap, 1e-6),
        _claim("tables: seconds for a million cells (plan, noise, fit)", seconds, 10.0),
        _claim("top: lists beyond the stated 95% limit", beyond, 0.05),
        _claim("top: rows that lists by counts lack over those by flip, k > 1, largest", lacking, 0.6),
    ]


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": figure <= limit}


def plots(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """The comparison, and a table as it is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from sfumato.palette import BLUE, GREY, ORANGE

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    rows = [r for r in figures["tables"] if r["epsilon"] == EPSILONS[0]]
    place = np.arange(len(rows))
    for i, (name, colour) in enumerate((("margins", BLUE), ("cells", ORANGE), ("separate", GREY))):
        ax.bar(place + 0.27 * (i - 1), [r["error"][name] for r in rows], width=0.25, color=colour, label=name)
    ax.set_yscale("log")
    ax.set_xticks(place, [r["set"].replace(" x ", "\nx ").replace(", ", "\n") for r in rows], fontsize=7)
    ax.set_ylabel(f"error of a cell, all margins (ε {EPSILONS[0]:g})")
    ax.legend(frameon=False)
    first = folder / "crosstabs-margins.png"
    figure.savefig(first, dpi=120, facecolor="white")
    return [first, _heatmap(folder)]


def _heatmap(folder: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    table = made((6, 12), 3)
    wards = Axis.categories("ward", ["surgery", "maternity", "cardiology", "oncology", "children", "emergency"])
    bins = Bins((wards, Axis.numbers("age", [float(10 * i) for i in range(13)])))
    plan = plan_table(Terms(), bins, ((0,), (1,), (0, 1)), rate=NANO // 2)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    ax = drawn(plan, table, 1).margin("ward", "age").plot(figure.add_subplot())
    ax.set_title("made data, ε 0.5", fontsize=10)
    path = folder / "crosstabs-heatmap.png"
    figure.savefig(path, dpi=110, facecolor="white")
    return path
