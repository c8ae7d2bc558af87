"""Models of counts with personal budgets: misclassification of each way to use them, and how far a model leans.

Three ways: every record at the weight that its person granted (`classifiers.weighing`), the same with nobody above ten
times another's weight, and everybody at the smallest ε (which is also what ``tiers="in proportion"`` does). Beside them
*threshold*: only the people who grant at least t, all at t, for the t with the largest number of people times t. Then the
same with budgets that follow the label: the mean predicted chance minus the true share.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import classifiers as c
from sfumato.bench.classify_data import Table, census, real_table
from sfumato.bench.classify_methods import splits
from sfumato.bench.people_data import draw_budgets
from sfumato.privacy import Seeded

Floats = NDArray[np.float64]
MODELS = ("PrivateNaiveBayes", "PrivateDecisionTree", "PrivateAdditive", "HistogramClassifier", "AutoClassifier")
PROFILES = ("uniform", "three tiers")
WAYS: dict[str, Any] = {"own": "as granted", "at most 10 times": 10.0, "everybody at the smallest": "in proportion"}
_ODDS = 4.0  # who has the rarer label is so many times as likely to be strict


def models(
    *,
    repeats: int,
    rows: int,
    data: Path | None,
    progress: Callable[[str], None],
    names: tuple[str, ...] = MODELS,
    profiles: tuple[str, ...] = PROFILES,
) -> dict[str, Any]:
    """Mean and standard error of the misclassification by profile, model and way; and the lean."""
    real = data is not None and (data / "adult.parquet").exists()
    table = real_table("adult", data) if real and data is not None else census(rows)
    out: dict[str, Any] = {"table": "real Adult" if real else "synthetic census", "rows": len(table.frame)}
    for profile in profiles:
        out[profile] = {}
        for name in names:
            found: dict[str, list[float]] = {}
            for number, (train, test) in enumerate(splits(table, repeats)):
                granted = np.round(draw_budgets(profile, train.size, np.random.default_rng([31, number])), 3)
                for way, (kept, budgets, tiers) in _used(granted).items():
                    model = _fitted(name, table, train[kept], budgets, tiers, number)
                    wrong = model.predict(table.features.iloc[test]) != table.labels[test]
                    found.setdefault(way, []).append(float(wrong.mean()))
            out[profile][name] = {way: _summary(v) for way, v in found.items()}
            progress(f"models: {profile}, {name}: " + ", ".join(f"{w} {np.mean(v):.4f}" for w, v in found.items()))
    out["budgets follow the label"] = {name: _lean(name, table, repeats, progress) for name in names}
    return out


def _used(granted: Floats) -> dict[str, Any]:
    """For each way: whose records, their budgets, and how tiers are weighed."""
    everybody = np.arange(granted.size)
    levels, heads = np.unique(granted, return_counts=True)
    best = levels[np.argmax(levels * heads[::-1].cumsum()[::-1])]
    above = np.flatnonzero(granted >= best)
    ways = {way: (everybody, granted, tiers) for way, tiers in WAYS.items()}
    return {**ways, "threshold": (above, np.full(above.size, best), "as granted")}


def _fitted(name: str, table: Table, rows: NDArray[np.intp], budgets: Floats, tiers: Any, seed: int) -> Any:
    model = getattr(c, name)(schema=table.schema, target=table.target, tiers=tiers, source=Seeded(9000 + seed))
    return model.fit(table.features.iloc[rows], table.labels[rows], budgets=budgets)


def _lean(name: str, table: Table, repeats: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """The mean predicted chance of the rarer label minus its share, where those who have it are stricter."""
    labels = np.unique(table.labels.astype(str))
    rare = min(labels, key=lambda label: (table.labels == label).mean())
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    about: dict[str, float] = {}
    for number, (train, test) in enumerate(splits(table, repeats)):
        mine = table.labels[train] == rare
        random = np.random.default_rng([37, number])
        base = 0.54 / (1 + (_ODDS - 1) * mine.mean())
        strict = random.random(train.size) < np.where(mine, np.minimum(_ODDS * base, 0.95), base)
        granted = np.where(strict, 0.01, np.where(random.random(train.size) < 0.8, 0.2, 1.0))
        for way, tiers in WAYS.items():
            model = _fitted(name, table, train, granted, tiers, number)
            place = model.classes_.tolist().index(rare)
            chance = model.predict_proba(table.features.iloc[test])[:, place].mean()
            found[way].append(float(chance - (table.labels[test] == rare).mean()))
            about[way] = model.parameters_["lean"]
    progress(f"models: budgets follow the label, {name}: " + ", ".join(f"{w} {np.mean(v):+.3f}" for w, v in found.items()))
    return {way: _summary(v) | {"lean at most": about[way]} for way, v in found.items()}


def _summary(values: list[float]) -> dict[str, float]:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "se": error}


def model_claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Everybody at their own ε errs less than everybody at the smallest, for every model and profile."""
    claims = []
    for profile in PROFILES:
        for name, ways in found.get(profile, {}).items():
            own, least = ways["own"]["mean"], ways["everybody at the smallest"]["mean"]
            claims.append(
                {
                    "name": f"{name}, {profile}: misclassification, own budgets against everybody at the smallest",
                    "figure": round(own, 4),
                    "limit": round(least, 4),
                    "holds": bool(own < least),
                }
            )
    return claims
