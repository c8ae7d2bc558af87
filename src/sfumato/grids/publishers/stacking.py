"""One grid, or two: the second chosen for what the first misses.

Two grids share the budget evenly. The first one's published counts score every row (the class share of its cell, in
eleven buckets: a public function of the row), and the second grid is chosen among grids crossed with that score.

Whether a second grid pays depends on how many records a first one can get wrong: those outside the most frequent class.
With ``grids="auto"`` a fiftieth of the budget goes into noisy class counts, which decide (and tell the number of
records, where that is not public).

**Guarantee.** A record is in one class, so noise of rate r on the class counts loses r. Every other step is PrivPfC as
in `privpfc`. What a step does depends on what the ones before published, so they are an adaptive sequence and their
losses add up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut, ScoreCut, buckets, cell_codes, cuts_of, score_levels
from sfumato.grids.publishers.automatic import SECOND
from sfumato.grids.publishers.one_grid import TOO_SMALL, Chosen, Weights, choose_and_count, most_grids, step_rates
from sfumato.grids.publishers.settings import Settings
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.pool import Pool, crossed_grids
from sfumato.grids.search.scoring import Scorer, score_pool
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.records import Records

Cuts = tuple[Cut | ScoreCut, ...]
CLASS_PART = 50  # one part in this many goes into the class counts


def release_grids(
    records: Exact[Records],
    task: Task,
    meter: Meter,
    *,
    nano: Nano,
    settings: Settings,
    rows: int | None,
    weights: Weights,
    score: Scorer = score_pool,
) -> tuple[Cuts, Chosen, dict[str, Any]]:
    """Cuts, the chosen grid with its noisy counts, and public figures."""
    figures: dict[str, Any] = {}
    grids, counted = settings.grids, None
    if grids == "auto":
        nano, rows, rarer, counted = _class_counts(records, task, meter, nano, rows, weights)
        grids = 2 if rarer >= SECOND else 1
        figures["rarer_classes_times_epsilon"] = round(rarer)
    first_nano = nano if grids == 1 else Nano(nano // 2)
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
        label="grid" if grids == 1 else "first grid",
    )
    cuts: Cuts = cuts_of(first.grid, task.attributes)
    figures |= {"grids_used": 1, "candidates": first.candidates, "most_cells": first.most_cells}
    if grids == 1:
        return cuts, replace(first, class_counts=counted), figures
    cuts, second, figures = _second(records, task, meter, first, Nano(nano - first_nano), settings, rows, weights, figures)
    return cuts, replace(second, class_counts=counted), figures


def counts_rate(settings: Settings, nano: Nano, *, factor: int, public_size: bool, weights: Weights) -> Nano:
    """The rate of the counts that are published, from public facts; refused where a step could not be done.

    That of the last of two grids where there may be two: it has the smaller budget.
    """
    if settings.grids == "auto":
        nano, public_size = Nano(nano - _class_rate(nano, factor, weights)[0]), True
    if settings.grids != 1:
        step_rates(settings, Nano(nano // 2), factor=factor, public_size=public_size, weights=weights)
        nano, public_size = Nano(nano - nano // 2), True
    return step_rates(settings, nano, factor=factor, public_size=public_size, weights=weights)[2]


def _class_rate(nano: Nano, factor: int, weights: Weights) -> tuple[Nano, Nano]:
    """What the class counts cost, and their rate for a record of weight one."""
    part = Nano(nano // CLASS_PART)
    rate = weights.usable(Nano(part // factor))
    if rate < 1:
        raise InputError(TOO_SMALL)
    return part, rate


def _class_counts(
    records: Exact[Records], task: Task, meter: Meter, nano: Nano, rows: int | None, weights: Weights
) -> tuple[Nano, int, float, tuple[NDArray[np.int64], Nano]]:
    """What is left of the budget, the number of records, ε times those outside the most frequent class, and the counts.

    Records of less weight than the heaviest count for less, as their budgets do.
    """
    part, rate = _class_rate(nano, meter.terms.factor, weights)
    noisy = meter.laplace(records.map(lambda r: r.table(())), rate=rate, weights=weights.groups, label="class counts")
    size = max(1, int(noisy.sum())) if rows is None else weights.total(rows)
    rarer = max(0.0, float(size - noisy.max())) / weights.top * (nano - part) / meter.terms.factor / NANO
    return Nano(nano - part), size if rows is None else rows, rarer, (noisy, rate)


def _second(
    records: Exact[Records],
    task: Task,
    meter: Meter,
    first: Chosen,
    nano: Nano,
    settings: Settings,
    rows: int | None,
    weights: Weights,
    figures: dict[str, Any],
) -> tuple[Cuts, Chosen, dict[str, Any]]:
    inner = cuts_of(first.grid, task.attributes)
    bucket = buckets(first.noisy, first.rate / NANO)
    scored = (*task.taxonomies, score_levels())

    def with_score(plain: Records) -> Records:
        score = bucket[cell_codes(inner, plain.leaves)]
        return replace(plain, taxonomies=scored, leaves=np.asfortranarray(np.column_stack([plain.leaves, score])))

    def pool(limit: int) -> Pool:
        most, widest = most_grids(settings, limit, task.classes), min(3, settings.widest or 3)
        return crossed_grids(scored, len(task.taxonomies), most=most, cells=limit, order=settings.order, widest=widest)

    second = choose_and_count(
        records.map(with_score),
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
