"""Misclassification of classifiers trained on published tables, on real data: PrivPfC and its publishing rivals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.grids_data import Case
from sfumato.bench.grids_learners import LEARNERS, Published, predictions
from sfumato.bench.metrics import MEASURES, Halved, chosen_across, measured_by_halves, summarise
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
    shuffled: bool = False,
) -> dict[str, dict[str, Any]]:
    """Misclassification, area under the curve and balanced accuracy per ε and learner: see `summary`.

    `make(epsilon, rows)` gives an unfitted publisher; the number of training rows is public here, as in the paper's N.
    With `shuffled` columns every draw has an order of its own, so that the mean is over orders too.
    """
    out: dict[str, dict[str, Any]] = {}
    for epsilon in epsilons:
        rows: list[list[dict[str, Halved]]] = []
        for number, (train, test) in enumerate(splits(case, repeats)):
            view, records, score = case, case.take(train), KeptScores()
            rows.append([])
            for draw in range(draws):
                if shuffled:
                    view = case.in_order(1 + number * draws + draw)
                    records = view.take(train)
                task = Task.of(view.schema, view.target)
                publisher = make(epsilon, len(train))
                meter = Meter(source=Seeded(1_000 * number + draw))
                extra = {"score": score} if isinstance(publisher, PrivPfC) else {}
                found = publisher.release(Exact(records), task, meter, **extra)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    table = published(found, view.records.leaves[test], len(train))
                    said = predictions(table, len(case.records.class_labels), learners=learners)
                truth = case.records.classes[test]
                rows[-1].append({k: measured_by_halves(test, truth, *found) for k, found in said.items()})
        out[str(epsilon)] = summary(rows, learners)
        progress(f"{case.name} {name} ε={epsilon}: {out[str(epsilon)]}")
    return out


def summary(rows: Sequence[Sequence[Mapping[str, Halved]]], learners: Sequence[str]) -> dict[str, Any]:
    """Figures per learner (`tree`, `tree_sd`, `tree_se`, `tree_auc`, `tree_balanced`), and of the best one.

    `rows` has splits, in them draws, in them learners. Draws of one split are averaged first: they share their rows, so the
    standard errors are those over the splits. The `best` learner is chosen on other rows than measure it (`chosen_across`).
    """
    per_split = {k: [_mean_of([draw[k] for draw in split]) for split in rows] for k in learners}
    found: dict[str, Any] = {}
    for k, halved in per_split.items():
        errors = [whole["error"] for _, _, whole in halved]
        told = summarise([whole for _, _, whole in halved])
        found[k] = round(told["error"], 4)
        found[f"{k}_sd"] = round(float(np.std(errors, ddof=1)), 4) if len(errors) > 1 else 0.0
        found[f"{k}_se"] = round(told["error_se"] or 0.0, 4)
        found |= {f"{k}_{measure}": round(told[measure], 4) for measure in ("auc", "balanced")}
        found |= {f"{k}_{measure}_se": round(told[f"{measure}_se"] or 0.0, 4) for measure in ("auc", "balanced")}
    best, chosen = chosen_across(per_split)
    told = summarise(best)
    return found | {
        "best": round(told["error"], 4),
        "standard_error": round(told["error_se"] or 0.0, 4),
        "best_auc": round(told["auc"], 4),
        "best_balanced": round(told["balanced"], 4),
        "best_learner": chosen,
        "splits": len(rows),
        "draws": sum(len(split) for split in rows),
    }


def _mean_of(draws: Sequence[Halved]) -> Halved:
    one, other, whole = ({k: float(np.mean([d[part][k] for d in draws])) for k in MEASURES} for part in range(3))
    return one, other, whole


def privpfc(case: Case, **options: Any) -> Callable[[float, int], PrivPfC]:
    """A maker of PrivPfC with these options."""
    return lambda epsilon, rows: PrivPfC(epsilon=epsilon, target=case.target, rows=rows, **options)


def rival(case: Case, name: str) -> Callable[[float, int], Any]:
    """A maker of one of the rivals."""
    return lambda epsilon, rows: RIVALS[name](epsilon=epsilon, target=case.target, rows=rows)
