"""Every mechanism against AHP at the same true ε: shape (KLD) and ranges (MSE), cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.histograms_data import Case
from sfumato.bench.metrics import mean_and_error
from sfumato.bench.printing import FOOTNOTE, MARK, counted, short
from sfumato.histograms.bins import Bins
from sfumato.histograms.estimation.metrics import kld, range_mse
from sfumato.histograms.release import best_for
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.registry import Mechanism, mechanism

EPSILONS = (0.01, 0.1, 1.0)
YARDSTICK = "ahp_greedy"  # AHP as published
SHAPE = ("ahp_greedy", "ahp", "identity", "noisefirst", "geb", "covariate", "dawa_shape", "auto")
RANGES = ("ahp_greedy", "ahp", "identity", "geb", "hierarchical", "dawa", "auto_ranges")
QUERIES = 2000
SET_HERE = ("auto", "auto_ranges", "covariate", "dawa", "dawa_shape", "geb")  # by trying variants on the cells of the claims


def estimate(name: str, case: Case, epsilon: float, seed: int) -> NDArray[np.float64]:
    """One run of a mechanism with seeded noise."""
    run: Callable[..., Any] = entry_of(name, case.ordered).make
    if name == "ahp_greedy":
        run = partial(run, clustering="greedy")
    rates = np.full(case.counts.size, int(epsilon * NANO))
    # The same noise for all mechanisms of a cell, independent noise for every cell.
    seeds = np.random.SeedSequence([seed, crc32(case.name.encode()), int(rates[0])])
    made = run(Exact(case.counts), rates=rates, meter=Meter(source=Seeded(seeds)))
    return np.asarray(made.counts)


def entry_of(name: str, ordered: bool = True) -> Mechanism:
    """What a column of the bench runs: AHP as published is AHP with greedy clusters, "auto" the best by preview."""
    if name == "auto":
        return best_for(Bins.numbered(1, ordered=ordered))
    return mechanism("histogram", "ahp" if name == "ahp_greedy" else name)


def cells(
    cases: Sequence[Case], *, purpose: str, repeats: int, epsilons: Sequence[float], progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Mean error of every mechanism in every cell (set x ε), with its standard error over the draws (`_se`)."""
    rows = []
    for case in cases:
        if purpose == "ranges" and not case.ordered:
            continue
        low, high = queries(case.counts.size)
        for epsilon in epsilons:
            row: dict[str, Any] = {"set": case.name, "epsilon": epsilon, "aside": case.aside, "ordered": case.ordered}
            for name in SHAPE if purpose == "shape" else RANGES:
                if not case.ordered and "order" in entry_of(name, case.ordered).needs:
                    continue
                made = [estimate(name, case, epsilon, seed) for seed in range(repeats)]
                errors = [kld(case.counts, z) if purpose == "shape" else range_mse(case.counts, z, low, high) for z in made]
                row[name], error = mean_and_error(errors)
                row[f"{name}_se"], row["draws"] = (None if np.isnan(error) else error), repeats
            rows.append(row)
        progress(f"{purpose}: {case.name}")
    return rows


def queries(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random ranges [low, high), the same for everybody."""
    ends = np.random.default_rng(size).integers(0, size, (2, QUERIES))
    return np.minimum(*ends), np.maximum(*ends) + 1


def summary(rows: Sequence[dict[str, Any]], yardstick: str = YARDSTICK) -> dict[str, dict[str, Any]]:
    """Per mechanism: geometric mean of its error over the yardstick's with its standard error, worst, number of cells.

    The standard error says how much other noise would have changed the geometric mean of these cells, not how much other
    sets would. It counts the noise of both errors as if they were independent; they share it in part, so it is on the large
    side.
    """
    out: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(n for row in rows for n in row if n in SHAPE or n in RANGES):
        ratio = np.array([row[name] / row[yardstick] for row in rows if name in row])
        mean = float(np.exp(np.log(ratio).mean()))
        relative = [row[f"{k}_se"] / row[k] for row in rows if name in row for k in (name, yardstick) if row.get(f"{k}_se")]
        out[name] = {
            "geometric_mean": round(mean, 4),
            "geometric_mean_se": round(mean * float(np.linalg.norm(relative)) / ratio.size, 4) if relative else None,
            "worst": round(float(ratio.max()), 3),
            "at_most_0.9": int((ratio <= 0.9).sum()),
            "cells": int(ratio.size),
        }
    return out


def table(title: str, found: Mapping[str, Mapping[str, Any]], draws: int, *, seen: bool) -> str:
    """A summary as Markdown; `seen` marks mechanisms with constants that were set on these very cells.

    >>> figures = {"geometric_mean": 0.449, "geometric_mean_se": 0.012, "worst": 1.09, "at_most_0.9": 36, "cells": 39}
    >>> print(table("shape, KLD over AHP's", {"auto": figures}, 10, seen=True))
    | shape, KLD over AHP's (10 draws) | geometric mean | worst cell | at .9 or less |
    |---|---|---|---|
    | auto † | .449 ± .012 | 1.09 | 36 of 39 |
    <BLANKLINE>
    † Some of this method's rules were set while looking at this data set: no independent test.
    """
    lines = [f"| {title} ({counted(draws)}) | geometric mean | worst cell | at .9 or less |", "|---|---|---|---|"]
    for name, figure in found.items():
        error = "" if figure["geometric_mean_se"] is None else f" ± {short(figure['geometric_mean_se'])}"
        mean = short(figure["geometric_mean"]) + error
        mark = f" {MARK}" if seen and name in SET_HERE else ""
        lines.append(f"| {name}{mark} | {mean} | {figure['worst']:.3g} | {figure['at_most_0.9']} of {figure['cells']} |")
    return "\n".join(lines + (["", FOOTNOTE] if seen else []))
