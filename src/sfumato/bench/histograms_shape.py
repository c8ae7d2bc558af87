"""The default for the shape against the best of our own mechanisms in every cell: fresh sets over all strengths of signal.

*Regret* is the mean error of `auto` over that of the mechanism with the least mean error in the cell, which nobody knows
beforehand; errors are KLD (rule for zeros in `histograms.metrics`), L1 and L2 of counts cut at 0. The same draws choose the
best and measure it, so its error is a little too low and the regret a little too high. Seeded noise: nothing is private.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.histograms_accuracy import estimate
from sfumato.bench.histograms_data import Case
from sfumato.bench.histograms_fresh import EPSILONS, SIZES, TOTALS, fresh_cases
from sfumato.histograms.estimation.metrics import kld, l1
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.registry import mechanism

OWN = ("identity", "geb", "covariate", "dawa_shape", "ahp", "noisefirst", "uniform", "hierarchical", "dawa")
ERRORS = ("KLD", "L1", "L2")
DRAWS = 6
PLAIN_DRAWS = 4  # times as many draws of plain noise, which cost next to nothing
TIMED = (1024, 4096, 16_384, 65_536)

Floats = NDArray[np.float64]


def errors(true: NDArray[np.int64], released: Floats) -> tuple[float, float, float]:
    """KLD, L1 and L2 of a release.

    >>> errors(np.array([3, 4]), np.array([3.0, 4.0]))[1:]
    (0.0, 0.0)
    """
    cut = np.maximum(released, 0.0)
    return kld(true, cut), l1(true, cut), float(np.sqrt(((cut - true) ** 2).sum()))


def cells(
    cases: Sequence[Case], *, epsilons: Sequence[float], draws: int, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Per cell: mean errors of `auto`, of the best of our own and of plain noise, and the standard error of the ratio."""
    rows = []
    for case in cases:
        for epsilon in epsilons:
            drawn = {
                name: np.array(
                    [errors(case.counts, estimate(name, case, epsilon, seed)) for seed in range(_draws(name, draws))]
                )
                for name in (*OWN, "auto")
            }
            mean = {name: found.mean(axis=0) for name, found in drawn.items()}
            best = [min(OWN, key=lambda name, k=k: mean[name][k]) for k in range(3)]  # type: ignore[misc]
            least = np.array([mean[name][k] for k, name in enumerate(best)])
            parts = [_relative(drawn["auto"]), np.array([_relative(drawn[name])[k] for k, name in enumerate(best)])]
            regret = mean["auto"] / np.maximum(least, 1e-300)
            rows.append(
                {
                    "set": case.name,
                    "epsilon": epsilon,
                    "aside": case.aside,
                    "draws": draws,
                    "best": best,
                    "regret": regret.tolist(),
                    "standard_error": (regret * np.sqrt(parts[0] ** 2 + parts[1] ** 2)).tolist(),
                    "to_plain_noise": (mean["auto"] / mean["identity"]).tolist(),
                }
            )
        progress(f"regret: {case.name}")
    return rows


def _draws(name: str, draws: int) -> int:
    return PLAIN_DRAWS * draws if name == "identity" else draws


def _relative(drawn: Floats) -> Floats:
    """Standard error of the mean over the mean."""
    spread = drawn.std(axis=0, ddof=1) if len(drawn) > 1 else np.zeros(drawn.shape[1])
    return np.asarray(spread / np.sqrt(len(drawn)) / np.maximum(drawn.mean(axis=0), 1e-300))


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Per error: mean regret with its standard error, worst cell, and how often plain noise would have been better."""
    out = {}
    for k, name in enumerate(ERRORS):
        regret = np.array([row["regret"][k] for row in rows])
        error = np.array([row["standard_error"][k] for row in rows])
        plain = np.array([row["to_plain_noise"][k] for row in rows])
        worst = int(regret.argmax())
        out[name] = {
            "cells": len(rows),
            "draws": rows[0]["draws"],
            "regret": round(float(regret.mean()), 4),
            "standard_error": round(float(np.sqrt((error**2).sum()) / len(rows)), 4),
            "geometric_mean": round(float(np.exp(np.log(np.maximum(regret, 1e-9)).mean())), 4),
            "worst": round(float(regret[worst]), 3),
            "worst_standard_error": round(float(error[worst]), 3),
            "worst_cell": f"{rows[worst]['set']} at ε = {rows[worst]['epsilon']}",
            "above_1.5": int((regret > 1.5).sum()),
            "to_plain_noise": round(float(np.exp(np.log(np.maximum(plain, 1e-9)).mean())), 4),
            "worst_to_plain_noise": round(float(plain.max()), 3),
            "above_plain_noise_by_3_percent": int((plain > 1.03).sum()),
        }
    return out


def growth(sizes: Sequence[int] = TIMED) -> list[dict[str, float]]:
    """Processor seconds from counts to estimate by number of bins, best of three, and how they grow."""
    rows: list[dict[str, float]] = []
    for n in sizes:
        counts = np.random.default_rng(n).multinomial(100 * n, np.full(n, 1.0 / n)).astype(np.int64)
        taken = []
        for seed in range(3):
            begin = time.process_time()
            meter = Meter(source=Seeded(seed))
            mechanism("histogram", "auto_shape").make(Exact(counts), rates=np.full(n, NANO // 10), meter=meter)
            taken.append(time.process_time() - begin)
        row = {"bins": float(n), "seconds": round(min(taken), 4)}
        if rows:
            row["seconds_per_bin_over_those_of_the_size_before"] = round(
                row["seconds"] / n / (rows[-1]["seconds"] / rows[-1]["bins"]), 3
            )
        rows.append(row)
    return rows


def table(figures: dict[str, Any]) -> str:
    """The summaries as Markdown.

    >>> one = {"cells": 2, "draws": 6, "regret": 1.0, "standard_error": 0.01, "worst": 1.2, "worst_standard_error": 0.1}
    >>> one |= {"worst_cell": "x", "above_1.5": 0, "worst_to_plain_noise": 1.01, "above_plain_noise_by_3_percent": 0}
    >>> print(table({"kept_aside": {"L1": one}}))
    | regret of `auto` (6 draws) | mean ± s.e. | worst cell ± s.e. | above 1.5 | over plain noise, worst | above 1.03 |
    |---|---|---|---|---|---|
    | kept aside, L1 | 1.000 ± 0.010 | 1.20 ± 0.10 (x) | 0 of 2 | 1.010 | 0 of 2 |
    """
    draws = next(iter(next(iter(figures.values())).values()))["draws"]
    heads = ("mean ± s.e.", "worst cell ± s.e.", "above 1.5", "over plain noise, worst", "above 1.03")
    lines = [f"| regret of `auto` ({draws} draws) | {' | '.join(heads)} |"]
    lines.append("|---|---|---|---|---|---|")
    for part, found in figures.items():
        for name, one in found.items():
            worst = f"{one['worst']:.2f} ± {one['worst_standard_error']:.2f} ({one['worst_cell']})"
            lines.append(
                f"| {part.replace('_', ' ')}, {name} | {one['regret']:.3f} ± {one['standard_error']:.3f} | {worst} | "
                f"{one['above_1.5']} of {one['cells']} | {one['worst_to_plain_noise']:.3f} | "
                f"{one['above_plain_noise_by_3_percent']} of {one['cells']} |"
            )
    return "\n".join(lines)


def run(
    *, quick: bool = False, data: Path | None = None, draws: int | None = None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Figures and claims over the fresh sets, developed on or kept aside; `quick` looks at a few cells."""
    cases = fresh_cases(None if quick else data)
    draws = draws or (1 if quick else DRAWS)
    if quick:
        cases = [case for case in cases if case.counts.size == min(SIZES)][:: len(TOTALS) + 1]
    rows = cells(cases, epsilons=EPSILONS[1:2] if quick else EPSILONS, draws=draws, progress=progress)
    times = growth(TIMED[:2] if quick else TIMED)
    figures = {
        "all": summary(rows),
        "developed_on": summary([row for row in rows if not row["aside"]]),
        "kept_aside": summary([row for row in rows if row["aside"]]),
        "cells": rows,
        "growth": times,
    }
    summaries = {name: figures[name] for name in ("developed_on", "kept_aside")}
    return {
        "figures": {"fresh_shape": figures},
        "claims": [] if quick else _claims(figures),
        "tables": table(summaries),
    }


def _claims(figures: dict[str, Any]) -> list[dict[str, Any]]:
    claims = []
    for name in ERRORS:
        found = figures["kept_aside"][name]
        claims.append(_claim(f"{name}: mean regret of auto on shapes kept aside", found["regret"], 1.05))
        claims.append(_claim(f"{name}: regret of auto in the worst cell kept aside", found["worst"], 1.5))
        claims.append(
            _claim(f"{name}: auto over plain noise in the worst cell kept aside", found["worst_to_plain_noise"], 1.03)
        )
    ratio = max(row.get("seconds_per_bin_over_those_of_the_size_before", 0.0) for row in figures["growth"])
    return [*claims, _claim("processor seconds per bin over those at a quarter of the bins", ratio, 1.5)]


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit)}
