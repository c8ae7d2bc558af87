"""Misclassification of classifiers trained on published tables, on real data: PrivPfC and its publishing rivals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.grids_data import Case
from sfumato.bench.grids_learners import LEARNERS, Published, misclassification
from sfumato.grids.published.cuts import codes_of
from sfumato.grids.published.joint import Joint
from sfumato.grids.published.network import Network
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.task import Task
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.grids.search.pool import Pool
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.privacy import Exact, Meter, Seeded
from sfumato.records.records import Records

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
RIVALS = {"diffgen": DiffGen, "pph": PPH, "privbayes": PrivBayes, "uniform-grid": UniformGrid}
PAPER_OPTIONS: dict[str, Any] = {
    "grids": 1,
    "most": 10_000,
    "order": "paper",
    "widest": None,
    "split": "paper",
    "calibration": "published",
    "cells": 0.2,
    "cleaning": "clip",
    "others": 0.0,
}


@dataclass
class KeptScores:
    """Scores of a pool on the same records, kept between draws: they do not depend on the noise."""

    kept: dict[tuple[int, int, int], tuple[Any, NDArray[np.float64]]] = field(default_factory=dict)

    def __call__(self, records: Records, pool: Pool, quality: Quality) -> NDArray[np.float64]:
        key = (id(records), pool.size, quality.lost.size)
        if key not in self.kept:
            self.kept = {key: (records, score_pool(records, pool, quality))}
        return self.kept[key][1]


def splits(case: Case, count: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Stratified 80/20 splits, the same in every run."""
    from sklearn.model_selection import StratifiedShuffleSplit

    y = case.records.classes
    return list(StratifiedShuffleSplit(count, test_size=0.2, random_state=0).split(np.zeros(len(y)), y))


def published(found: Synopsis | Network | Joint, leaves: NDArray[np.integer], train_size: int) -> Published:
    """What a learner gets to see, and the test rows in the same codes."""
    if isinstance(found, Network | Joint):
        drawn = found.leaves(train_size, found.random())
        codes, back, counts = np.unique(drawn, axis=0, return_inverse=True, return_counts=True)
        del back
        sizes = tuple(t.leaves for t in found.columns[:-1])
        ordered = tuple(t.edges is not None for t in found.columns[:-1])
        return Published(codes[:, :-1], codes[:, -1], counts.astype(float), leaves.astype(np.int64), sizes, ordered)
    codes, classes, weights = found.weighted_cells()
    ordered = tuple(c.ordered for c in found.cuts)
    return Published(codes, classes, weights, codes_of(found.cuts, leaves), found.shape, ordered)


def evaluate(
    case: Case,
    make: Callable[[float, int], Any],
    *,
    epsilons: Sequence[float] = EPSILONS,
    repeats: int = 5,
    draws: int = 5,
    learners: Sequence[str] = LEARNERS,
    progress: Callable[[str], None] = lambda _: None,
    name: str = "",
) -> dict[str, dict[str, float]]:
    """Mean misclassification per ε and learner, and the standard error of the best learner's mean over the splits.

    `make(epsilon, rows)` gives an unfitted publisher; the number of training rows is public here, as in the paper's N.
    """
    out: dict[str, dict[str, float]] = {}
    task = Task.of(case.schema, case.target)
    for epsilon in epsilons:
        rows: list[list[dict[str, float]]] = []
        for number, (train, test) in enumerate(splits(case, repeats)):
            records = case.take(train)
            score = KeptScores()
            rows.append([])
            for draw in range(draws):
                publisher = make(epsilon, len(train))
                meter = Meter(source=Seeded(1_000 * number + draw))
                extra = {"score": score} if isinstance(publisher, PrivPfC) else {}
                found = publisher.release(Exact(records), task, meter, **extra)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    table = published(found, case.records.leaves[test], len(train))
                    rows[-1].append(misclassification(table, case.records.classes[test], learners=learners))
        out[str(epsilon)] = summary(rows, learners)
        progress(f"{case.name} {name} ε={epsilon}: {out[str(epsilon)]}")
    return out


def summary(rows: list[list[dict[str, float]]], learners: Sequence[str]) -> dict[str, float]:
    """Means and standard deviations over the splits per learner, the best of them, and the standard error of its mean."""
    per_split = {k: [float(np.mean([r[k] for r in split])) for split in rows] for k in learners}
    means = {k: float(np.mean(v)) for k, v in per_split.items()}
    spread = {k: float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 for k, v in per_split.items()}
    best = min(means, key=lambda k: means[k])
    error = spread[best] / float(np.sqrt(len(rows)))
    return {
        **{k: round(v, 4) for k, v in means.items()},
        **{f"{k}_sd": round(v, 4) for k, v in spread.items()},
        "best": round(means[best], 4),
        "standard_error": round(error, 4),
    }


def privpfc(case: Case, **options: Any) -> Callable[[float, int], PrivPfC]:
    """A maker of PrivPfC with these options."""
    return lambda epsilon, rows: PrivPfC(epsilon=epsilon, target=case.target, rows=rows, **options)


def rival(case: Case, name: str) -> Callable[[float, int], Any]:
    """A maker of one of the rivals."""
    return lambda epsilon, rows: RIVALS[name](epsilon=epsilon, target=case.target, rows=rows)
