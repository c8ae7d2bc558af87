"""Sums over ranges on fresh histograms, by strength of signal: `auto_ranges` against DAWA and against the best of our own.

A cell is a histogram at one ε; its error is the root of the mean squared error over random ranges and draws. Ratios to DAWA
are averaged geometrically within a class of Nε/n, regrets (the error over that of the best of `OWN` in the same cell)
arithmetically. The best of several means of few draws is a lucky one, so regrets err on the high side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from sfumato.bench import histograms_fresh as fresh
from sfumato.bench.histograms_accuracy import estimate, queries
from sfumato.bench.histograms_data import Case
from sfumato.histograms.estimation.metrics import range_mse

OWN = ("uniform", "identity", "hierarchical", "dawa", "dawa_shape")
OURS = "auto_ranges"
CLASSES = ("below 0.01", "0.01 to 0.1", "0.1 to 1", "1 to 10", "10 to 100", "above 100")
DRAWS = 2
MEAN_LIMIT, CLASS_LIMIT, REGRET_LIMIT = 0.75, 1.05, 1.15
Progress = Callable[[str], None]


def run(*, quick: bool, data: Path | None, progress: Progress) -> dict[str, Any]:
    """Figures and claims; `quick` takes every eleventh made histogram of at most 1024 bins."""
    cases = fresh.fresh_cases(None if quick else data)
    if quick:
        cases = [case for case in cases if case.counts.size <= 1024][::11]
    rows = cells(cases, draws=1 if quick else DRAWS, progress=progress)
    parts = {"all": rows, "aside": [row for row in rows if row["aside"]], "seen": [row for row in rows if not row["aside"]]}
    figures = {name: by_class(part) for name, part in parts.items()}
    claims = [] if quick else [claim for name in ("all", "aside") for claim in _claims(figures[name], name)]
    return {"figures": {"fresh_ranges": figures, "fresh_range_cells": rows}, "claims": claims}


def cells(cases: Sequence[Case], *, draws: int, progress: Progress) -> list[dict[str, Any]]:
    """One row per histogram and ε: root mean squared error of DAWA, of `auto_ranges` and of the others."""
    rows = []
    for case in cases:
        low, high = queries(case.counts.size)
        for epsilon in fresh.EPSILONS:
            row: dict[str, Any] = {
                "set": case.name,
                "epsilon": epsilon,
                "aside": case.aside,
                "signal": fresh.signal_class(case.counts, epsilon),
                "draws": draws,
            }
            rng = np.random.default_rng([crc32(case.name.encode()), round(epsilon * 1000)])
            peer = [fresh.dawa_reference(case.counts, epsilon, rng) for _ in range(2 * draws)]
            row["dawa_reference"] = _rmse(case, peer, low, high)
            for name in (OURS, *OWN):
                made = [estimate(name, case, epsilon, seed) for seed in range(draws)]
                row[name] = _rmse(case, made, low, high)
            rows.append(row)
        progress(f"fresh ranges: {case.name}")
    return rows


def _rmse(case: Case, made: Sequence[Any], low: Any, high: Any) -> float:
    return float(np.sqrt(np.mean([range_mse(case.counts, one, low, high) for one in made])))


def by_class(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Per class of Nε/n: ratio to DAWA, regret, worst cells, standard errors over cells; and the mean over classes.

    >>> row = {"signal": 2, "dawa_reference": 4.0, "auto_ranges": 2.0, "draws": 1} | dict.fromkeys(OWN, 3.0)
    >>> found = by_class([row, row])
    >>> found["geometric_mean"], found["classes"][0]["signal"], found["classes"][0]["ratio"]
    (0.5, '0.1 to 1', 0.5)
    """
    classes = []
    for k, name in enumerate(CLASSES):
        some = [row for row in rows if row["signal"] == k]
        if not some:
            continue
        ratio = np.log([row[OURS] / row["dawa_reference"] for row in some])
        regret = np.array([row[OURS] / min(row[own] for own in OWN) for row in some])
        mean = float(np.exp(ratio.mean()))
        classes.append(
            {
                "signal": name,
                "ratio": round(mean, 3),
                "ratio_error": round(mean * float(ratio.std()) / np.sqrt(len(some)), 3),
                "worst_ratio": round(float(np.exp(ratio.max())), 2),
                "regret": round(float(regret.mean()), 3),
                "regret_error": round(float(regret.std()) / np.sqrt(len(some)), 3),
                "worst_regret": round(float(regret.max()), 2),
                "cells": len(some),
                "draws": sum(row["draws"] for row in some),
            }
        )
    overall = float(np.exp(np.mean([np.log(c["ratio"]) for c in classes])))
    return {"geometric_mean": round(overall, 3), "classes": classes}


def _claims(found: dict[str, Any], which: str) -> list[dict[str, Any]]:
    words = "all fresh histograms" if which == "all" else "fresh histograms kept aside"
    ratio, regret = (max(c[key] for c in found["classes"]) for key in ("ratio", "regret"))
    return [
        _claim(f"range RMSE of auto_ranges over DAWA, mean of six classes, {words}", found["geometric_mean"], MEAN_LIMIT),
        _claim(f"range RMSE of auto_ranges over DAWA, worst class, {words}", ratio, CLASS_LIMIT),
        _claim(f"range RMSE of auto_ranges over the best of our own, worst class, {words}", regret, REGRET_LIMIT),
    ]


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit)}
