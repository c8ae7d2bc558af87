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
from sfumato.palette import BLACK, BLUE, GREY

OWN = ("uniform", "identity", "hierarchical", "dawa", "dawa_shape")
OURS = "auto_ranges"
CLASSES = ("below 0.01", "0.01 to 0.1", "0.1 to 1", "1 to 10", "10 to 100", "above 100")
DRAWS = 4
PART_NAMES = {"all": "All shapes", "aside": "Shapes kept aside", "seen": "Shapes seen during the work"}
MEAN_LIMIT, CLASS_LIMIT, REGRET_LIMIT = 0.75, 1.05, 1.15
Progress = Callable[[str], None]


def run(*, quick: bool, data: Path | None, draws: int | None = None, progress: Progress) -> dict[str, Any]:
    """Figures, a table and claims; `quick` takes every eleventh made histogram of at most 1024 bins."""
    cases = fresh.fresh_cases(None if quick else data)
    if quick:
        cases = [case for case in cases if case.counts.size <= 1024][::11]
    rows = cells(cases, draws=draws or (1 if quick else DRAWS), progress=progress)
    parts = {"all": rows, "aside": [row for row in rows if row["aside"]], "seen": [row for row in rows if not row["aside"]]}
    figures = {name: by_class(part) for name, part in parts.items()}
    claims = [] if quick else [claim for name in ("all", "aside") for claim in _claims(figures[name], name)]
    return {
        "figures": {"fresh_ranges": figures, "fresh_range_cells": rows},
        "claims": claims,
        "tables": "\n\n".join(f"{PART_NAMES[name]}:\n\n{table(found)}" for name, found in figures.items()),
    }


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


def table(found: dict[str, Any]) -> str:
    """What `by_class` found, as Markdown.

    >>> row = {"signal": 2, "dawa_reference": 4.0, "auto_ranges": 2.0, "draws": 1} | dict.fromkeys(OWN, 2.5)
    >>> print(table(by_class([row])))
    | Nε/n | over DAWA | worst cell | over the best of our own | worst cell | cells | draws |
    |---|---|---|---|---|---|---|
    | 0.1 to 1 | 0.50 ± 0.00 | 0.5 | 0.80 ± 0.00 | 0.8 | 1 | 1 |
    | geometric mean | 0.50 | | | | 1 | 1 |
    """
    lines = ["| Nε/n | over DAWA | worst cell | over the best of our own | worst cell | cells | draws |", "|---" * 7 + "|"]
    for c in found["classes"]:
        ratio = f"{c['ratio']:.2f} ± {c['ratio_error']:.2f} | {c['worst_ratio']:.1f}"
        regret = f"{c['regret']:.2f} ± {c['regret_error']:.2f} | {c['worst_regret']:.1f}"
        lines.append(f"| {c['signal']} | {ratio} | {regret} | {c['cells']} | {c['draws']} |")
    cells, draws = (sum(c[key] for c in found["classes"]) for key in ("cells", "draws"))
    return "\n".join([*lines, f"| geometric mean | {found['geometric_mean']:.2f} | | | | {cells} | {draws} |"])


def draw(folder: Path, figures: dict[str, Any]) -> Path:
    """The picture of ratio and regret by class, from the figures of a run."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    for ax, key, words in zip(axes, ("ratio", "regret"), ("over DAWA", "over the best of our own"), strict=True):
        for part, colour, shift in (("seen", GREY, -0.08), ("aside", BLUE, 0.08)):
            classes = figures[part]["classes"]
            place = np.array([CLASSES.index(c["signal"]) for c in classes]) + shift
            error = [2 * c[f"{key}_error"] for c in classes]
            ax.errorbar(
                place, [c[key] for c in classes], error, fmt="o-", color=colour, lw=1, ms=4, label=PART_NAMES[part].lower()
            )
        ax.axhline(1.0, color=BLACK, lw=0.6, ls=":")
        ax.set_xticks(range(len(CLASSES)), CLASSES, rotation=30, ha="right", fontsize=8)
        ax.set_xlabel("records per bin and noise, Nε/n")
        ax.set_title(f"error of auto_ranges {words}", fontsize=10, loc="left")
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False, fontsize=8)
    path = folder / "histograms-ranges.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


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
