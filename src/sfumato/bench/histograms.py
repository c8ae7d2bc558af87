"""Histograms: accuracy at the same true ε, the slides' tables honestly accounted, time up to a million bins, the audit.

KLD everywhere with the rule for zeros of `histograms.metrics`. Seeded noise: nothing here is a private release.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench import histograms_accuracy as accuracy
from sfumato.bench import histograms_data as sets
from sfumato.bench import histograms_ranges as ranges_part
from sfumato.bench import histograms_slides as slides
from sfumato.bench.leave_one_out import OF_HISTOGRAMS, left_out, left_out_table
from sfumato.histograms.estimation.metrics import KLD_RULE
from sfumato.histograms.mechanisms.dynamic import dpa_shares
from sfumato.privacy import NANO, Exact, Meter, Seeded
from sfumato.registry import mechanism

ALL_CELLS = 39  # 13 sets at three ε: the claims on accuracy are about all of them, so they need the public data
SIZES = (1_000, 10_000, 100_000, 1_000_000)
PARTS = ("ranges", "leave-one-out")
Progress = Callable[[str], None]


def run(
    *,
    quick: bool = False,
    data: Path | None = None,
    part: str | None = None,
    draws: int | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """All figures and claims; the 39 cells of the claims need the public sets in `data`.

    The part `leave-one-out` sets the constants that remain again without each of the sets; `ranges` is the fresh ranges.
    """
    if part == "leave-one-out":
        without = left_out(OF_HISTOGRAMS, data=data, quick=quick, draws=draws, progress=progress)
        return {"figures": {"leave one out": without}, "claims": [], "tables": left_out_table(without)}
    fresh_ranges = ranges_part.run(quick=quick, data=data, progress=progress)
    if part == "ranges":
        return fresh_ranges
    repeats = draws or (1 if quick else 10)
    epsilons = accuracy.EPSILONS
    real = [] if data is None else sets.real(data)
    cases = [*real, *sets.made()]
    aside = sets.kept_aside() + ([] if data is None or quick else sets.real_aside(data))
    aside = aside[::4] if quick else aside
    shape = accuracy.cells(cases, purpose="shape", repeats=repeats, epsilons=epsilons, progress=progress)
    ranges = accuracy.cells(cases, purpose="ranges", repeats=repeats, epsilons=epsilons, progress=progress)
    apart = accuracy.cells(aside, purpose="shape", repeats=max(1, repeats // 2), epsilons=epsilons, progress=progress)
    tables = slides.made_tables(3 if quick else 12)
    if data is not None and not quick:
        tables |= slides.real_tables(data, 6)
    deltas = (0.0, 0.075) if quick else slides.DELTAS
    published = slides.table(tables, deltas=deltas, epsilons=epsilons, repeats=1 if quick else 3, progress=progress)
    times = timing(SIZES[:3] if quick else SIZES, progress=progress)
    audits = caught(trials=2000 if quick else 4000, progress=progress)
    figures: dict[str, Any] = {
        "kld_rule": KLD_RULE,
        "cells": len(shape),
        "shape": accuracy.summary(shape),
        "shape_against_optimal_ahp": accuracy.summary(shape, "ahp"),
        "shape_kept_aside": accuracy.summary(apart),
        "ranges": accuracy.summary(ranges),
        "ranges_against_optimal_ahp": accuracy.summary(ranges, "ahp"),
        "shape_cells": shape,
        "shape_cells_kept_aside": apart,
        "range_cells": ranges,
        "slides": published,
        "seconds": times,
        "audit": audits,
        **fresh_ranges["figures"],
    }
    tables_of = (("shape", "KLD over AHP's"), ("shape_kept_aside", "KLD over AHP's"), ("ranges", "squared error over AHP's"))
    written = [
        accuracy.table(f"{name.replace('_', ' ')}, {what}", figures[name], rows[0]["draws"], seen="aside" not in name)
        for (name, what), rows in zip(tables_of, (shape, apart, ranges), strict=True)
    ]
    claims = _claims(figures, largest=max(row["bins"] for row in times))
    return {"figures": figures, "claims": [*claims, *fresh_ranges["claims"]], "tables": "\n\n".join(written)}


def _claims(figures: dict[str, Any], *, largest: int) -> list[dict[str, Any]]:
    shape, ranges, n = figures["shape"], figures["ranges"], figures["cells"]
    seconds = {row["bins"]: row for row in figures["seconds"]}
    growth = max(seconds[largest][f"{m}_processor"] / seconds[largest // 10][f"{m}_processor"] for m in ("ahp", "geb"))
    allowed = 10 * np.log(largest) / np.log(largest / 10)
    claims = [
        _claim(f"seconds for ahp on {largest} bins", seconds[largest]["ahp"], 2.0),
        _claim(f"seconds for geb on {largest} bins", seconds[largest]["geb"], 2.0),
        _claim(
            "growth of processor time per tenfold bins (n log n allows the limit)",
            round(growth, 2),
            round(float(allowed), 2),
        ),
    ]
    if n == ALL_CELLS:
        mean, worst, ahp = "geometric_mean", f"worst of {n} cells", "over AHP as published"
        claims += [
            _claim(f"KLD of auto {ahp}, geometric mean of {n} cells", shape["auto"][mean], 0.50),
            _claim(f"KLD of auto {ahp}, {worst}", shape["auto"]["worst"], 1.3),
            _claim(f"KLD of geb {ahp}, geometric mean of {n} cells", shape["geb"][mean], 0.72),
            _claim(f"range MSE of auto_ranges {ahp}, geometric mean", ranges["auto_ranges"][mean], 0.06),
        ]
    for row in figures["audit"]:
        good = row["lower_bound"] > row["claimed"] if row["published"] else row["lower_bound"] <= row["claimed"]
        words = "published form is caught: loss above its claim" if row["published"] else "sound form passes the same test"
        claims.append(
            {
                "name": f"{row['mechanism']}: {words}",
                "figure": row["lower_bound"],
                "limit": row["claimed"],
                "holds": bool(good),
            }
        )
    return claims


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": bool(figure <= limit)}


def timing(sizes: tuple[int, ...], *, progress: Progress) -> list[dict[str, Any]]:
    """Seconds by number of bins (best of five), and the share of DPA's time that its allocation takes."""
    rows = []
    for n in sizes:
        g = np.random.default_rng(n)
        counts = np.where(g.random(n) < 0.8, 0, g.lognormal(3, 1.5, n)).astype(np.int64)
        row: dict[str, Any] = {"bins": n}
        for name in ("identity", "ahp", "dpa", "geb"):
            row[name], row[f"{name}_processor"] = _best(partial(_once, name, counts))
        row["allocation"], _ = _best(partial(_allocate, n))
        row["allocation_share"] = round(row["allocation"] / row["dpa"], 4)
        rows.append(row)
        progress(f"time: {n} bins")
    return rows


def _once(name: str, counts: NDArray[np.int64]) -> None:
    mechanism("histogram", name).make(Exact(counts), rates=np.full(counts.size, NANO), meter=Meter(source=Seeded(1)))


def _allocate(n: int) -> NDArray[np.float64]:
    shares = dpa_shares(n, 0.075)
    return np.asarray(np.floor(NANO * shares / shares.max()))


def _best(work: Callable[[], Any]) -> tuple[float, float]:
    """The shortest of five runs: by the clock, and in processor time (growth should not count other work on the machine)."""
    clock, processor = [], []
    for _ in range(5):
        begin, busy = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - begin)
        processor.append(time.process_time() - busy)
    return round(min(clock), 4), round(min(processor), 4)


def caught(*, trials: int, progress: Progress) -> list[dict[str, Any]]:
    """The audit of the published and the sound forms on the same pair of neighbours."""
    from sfumato.audit.harness import audit

    rows = []
    for name in ("dpa", "sdpa"):
        for published in (True, False):
            result = audit(
                f"control-{name}-published" if published else f"histogram-{name}", trials=trials, source=Seeded(7)
            )
            rows.append(
                {
                    "mechanism": name,
                    "published": published,
                    "claimed": float(result.claimed),
                    "lower_bound": round(result.lower, 4),
                    "trials": result.trials,
                }
            )
            progress(f"audit: {result.summary}")
    return rows


def plots(folder: Path) -> list[Path]:
    """Pictures for the documentation."""
    from sfumato.bench.histograms_plots import draw

    return draw(folder)
