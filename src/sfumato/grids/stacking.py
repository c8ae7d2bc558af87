"""One grid, or two: the second chosen for what the first misses.

The first grid gets half of the budget. Its published counts score every row (the class share of its cell, in eleven
buckets: a public function of the row), and the second grid is chosen among grids crossed with that score. If the first
grid, as published, leaves few records on the wrong side, there is little for a second one to find: the other half then
measures the first grid again.

**Guarantee.** Every step is PrivPfC as in `privpfc`, or noisy counts of a grid that is already public. What is done
with the second half depends on what the first half published, so the steps are an adaptive sequence and their losses
add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from sfumato.grids.automatic import FIRST_SHARE, MIXED
from sfumato.grids.counting import Records, Table
from sfumato.grids.cuts import Cut, ScoreCut, buckets, cell_codes, cuts_of, score_levels
from sfumato.grids.pool import Pool, crossed, enumerate_grids
from sfumato.grids.privpfc import Chosen, Weights, choose_and_count, factor_of
from sfumato.grids.scoring import Scorer, score_pool
from sfumato.grids.settings import Settings
from sfumato.grids.task import Task
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO

Cuts = tuple[Cut | ScoreCut, ...]


def release_grids(
    records: Callable[[], Records],
    task: Task,
    meter: Meter,
    *,
    nano: int,
    settings: Settings,
    rows: int | None,
    weights: Weights,
    score: Scorer = score_pool,
) -> tuple[Cuts, Chosen, dict[str, Any]]:
    """Cuts, the chosen grid with its noisy counts, and public figures."""
    first_nano = nano if settings.grids == 1 else int(nano * FIRST_SHARE)
    first = choose_and_count(
        records,
        meter,
        nano=first_nano,
        taxonomies=task.taxonomies,
        classes=task.classes,
        settings=settings,
        rows=rows,
        weights=weights,
        score=score,
        label="grid" if settings.grids == 1 else "first grid",
    )
    cuts = cuts_of(first.grid, task.attributes)
    figures: dict[str, Any] = {"grids_used": 1, "candidates": first.candidates, "most_cells": first.most_cells}
    if settings.grids == 1:
        return cuts, first, figures
    if settings.grids == "adaptive" and mixed_share(first) < MIXED:
        return cuts, _measured_again(records, meter, first, nano - first_nano, weights), figures
    return _second(records, task, meter, first, nano - first_nano, settings, rows, weights, figures)


def mixed_share(chosen: Chosen) -> float:
    """The share of records on the wrong side in the published counts, over cells that stand out of the noise."""
    counts = np.maximum(chosen.noisy.reshape(len(chosen.noisy), -1), 0)
    totals = counts.sum(axis=0)
    clear = totals >= 4 * NANO / chosen.rate
    return float((totals - counts.max(axis=0))[clear].sum() / max(int(totals[clear].sum()), 1))


def _measured_again(records: Callable[[], Records], meter: Meter, first: Chosen, nano: int, weights: Weights) -> Chosen:
    """The same counts with the rest of the budget, averaged with the first by precision."""
    rate = weights.usable(nano // factor_of(meter))
    again: Table = meter.laplace(
        lambda: records().table(first.grid).reshape(-1), rate=rate, weights=weights.groups, label="first grid: counts again"
    ).reshape(first.noisy.shape)
    a, b = float(first.rate) ** 2, float(rate) ** 2
    noisy = np.rint((a * first.noisy + b * again) / (a + b)).astype(np.int64)
    return replace(first, noisy=noisy, rate=int(np.sqrt(a + b)))


def _second(
    records: Callable[[], Records],
    task: Task,
    meter: Meter,
    first: Chosen,
    nano: int,
    settings: Settings,
    rows: int | None,
    weights: Weights,
    figures: dict[str, Any],
) -> tuple[Cuts, Chosen, dict[str, Any]]:
    inner = cuts_of(first.grid, task.attributes)
    bucket = buckets(first.noisy, first.rate / NANO)
    scored = (*task.taxonomies, score_levels())

    @cache
    def with_score() -> Records:
        plain = records()
        score = bucket[cell_codes(inner, plain.leaves)]
        return replace(plain, taxonomies=scored, leaves=np.asfortranarray(np.column_stack([plain.leaves, score])))

    def pool(limit: int) -> Pool:
        most, widest = max(1, settings.most // 6), min(3, settings.widest or 3)
        plain = enumerate_grids(task.taxonomies, most=most, cells=max(1, limit // 2), order=settings.order, widest=widest)
        return crossed(plain, scored, len(task.taxonomies), cells=limit)

    second = choose_and_count(
        with_score,
        meter,
        nano=nano,
        taxonomies=scored,
        classes=task.classes,
        settings=settings,
        # The number of records was published in the first step: using it again is free.
        rows=rows if rows is not None else max(1, int(first.size)),
        weights=weights,
        pool=pool,
        label="second grid",
    )
    level = dict(second.grid)[len(task.taxonomies)]
    score = ScoreCut(inner, bucket, first.noisy.reshape(task.classes, -1), level)
    words = " x ".join(f"{c.name} ({c.size} groups)" for c in inner) or "one cell"
    more = {"grids_used": 2, "second_candidates": second.candidates, "first_grid": words}
    return (*cuts_of(second.grid[:-1], task.attributes), score), second, {**figures, **more}
