"""The paper's other experiments.

Pool size (Fig. 8), split (9), columns (11), table size (12), run time (13), and how well Equations 1 and 5 agree (3).
Figure 10 is in `grids_noise_free`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.bench.grids_accuracy import RIVALS, evaluate, privpfc, rival, splits
from sfumato.bench.grids_data import Case
from sfumato.bench.grids_speed import synthetic
from sfumato.grids.publishers.one_grid import choose_and_count
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.settings import Settings
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.pool import enumerate_grids
from sfumato.grids.search.quality import Quality, exact_score
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import Exact, Meter, Seeded, Source, positive_nano
from sfumato.privacy.losses import choice_rate
from sfumato.records.records import Records

Progress = Callable[[str], None]


def chosen_quality(case: Case, epsilon: float, *, repeats: int, draws: int) -> float:
    """True quality of the chosen grid over that of the best grid of the pool, on average, with automatic settings."""
    task = Task.of(case.schema, case.target)
    ratios = []
    for number, (train, _) in enumerate(splits(case, repeats)):
        records = case.take(train)
        settings = PrivPfC(epsilon=epsilon, target=case.target, rows=len(train)).settings(task)
        _, select, count = settings.shares(positive_nano(epsilon), public_size=True)
        cells = settings.most_cells(len(train), count / 10**9)
        pool = enumerate_grids(task.taxonomies, most=settings.most, cells=cells, widest=settings.widest)
        quality = Quality.of(count)
        scores = score_pool(records, pool, quality)
        for draw in range(draws):
            meter = Meter(source=Seeded(1_000 * number + draw))
            i = meter.choose(scores, rate=choice_rate(select, quality.spread), spread=quality.spread)
            ratios.append(scores[i] / scores.max())
    return float(np.mean(ratios))


def pool_sizes(case: Case, sizes: Sequence[int], **how: Any) -> dict[str, Any]:
    """Figure 8: misclassification for growing pools."""
    return {str(most): evaluate(case, privpfc(case, grids=1, most=most), name=f"Θ={most}", **how) for most in sizes}


def budget_splits(case: Case, **how: Any) -> dict[str, Any]:
    """Figure 9: 3/37/60 against 3/10/87."""
    shares = {"3/37/60": (0.03, 0.37, 0.60), "3/10/87": (0.03, 0.10, 0.87)}
    return {k: evaluate(case, privpfc(case, grids=1, split=v), name=k, **how) for k, v in shares.items()}


def columns(case: Case, counts: Sequence[int], **how: Any) -> dict[str, Any]:
    """Figure 11: the first n columns only, PrivPfC and the rivals, ε = 0.5."""
    out: dict[str, Any] = {}
    for n in counts:
        names = tuple(a.name for a in case.attributes[:n])
        records = case.records
        part = Case(
            case.name,
            case.schema.select([*names, case.target]),
            case.target,
            case.attributes[:n],
            Records(records.taxonomies[:n], records.leaves[:, :n], records.classes, records.class_labels),
        )
        out[str(n)] = {
            name: evaluate(part, make, epsilons=(0.5,), name=f"{n} columns, {name}", **how)["0.5"]["best"]
            for name, make in [("privpfc", privpfc(part)), *((k, rival(part, k)) for k in ("diffgen", "pph"))]
        }
    return out


def table_sizes(rows: Sequence[int]) -> dict[str, float]:
    """Figure 12: error of the histogram classifier on fresh records of the synthetic table, ε = 0.1."""
    out = {}
    fresh = synthetic(20_000, seed=99, attributes=8)
    for n in rows:
        records = synthetic(n, seed=1, attributes=8)
        chosen = choose_and_count(
            Exact(records),
            Meter(source=Seeded(1)),
            nano=positive_nano(0.1),
            taxonomies=records.taxonomies,
            classes=2,
            settings=Settings(most=5_000, widest=4),
            rows=n,
        )
        winner = chosen.noisy.reshape(2, -1).argmax(axis=0)
        code = np.zeros(len(fresh.leaves), dtype=np.int64)
        for j, level in chosen.grid:
            code = code * fresh.taxonomies[j].sizes[level] + fresh.taxonomies[j].maps[level][fresh.leaves[:, j]]
        out[str(n)] = round(float((winner[code] != fresh.classes).mean()), 4)
    return out


def run_times(case: Case) -> dict[str, float]:
    """Figure 13: seconds per release at ε = 0.5."""
    task = Task.of(case.schema, case.target)
    out = {}
    n = len(case.records.classes)
    for name, make in [("privpfc", privpfc(case)), *((k, rival(case, k)) for k in RIVALS)]:
        start = time.process_time()
        make(0.5, n).release(Exact(case.records), task, Meter(source=_seeded()))
        out[name] = round(time.process_time() - start, 2)
    return out


def _seeded() -> Source:
    return Seeded(1)


def agreement(case: Case, *, grids: int, rates: Sequence[int]) -> float:
    """Figure 3: mean Pearson correlation of Equation 1 and Equation 5 over grids, for a target of three classes or more."""
    pool = enumerate_grids(case.records.taxonomies, most=grids * 20, cells=500, widest=3)
    picked = np.random.default_rng(0).choice(pool.size, grids, replace=False).tolist()
    tables = [case.records.table(pool.grid(i)) for i in picked]
    found = []
    for rate in rates:
        quality = Quality.of(rate)
        exact = [exact_score(t, rate, nodes=60) for t in tables]
        found.append(np.corrcoef(exact, [float(quality.score(t)) for t in tables])[0, 1])
    return float(np.mean(found))
