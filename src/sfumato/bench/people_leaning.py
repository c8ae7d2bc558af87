"""Whose model it is: logistic regression where what people grant goes with their age or sex, by how tiers are weighed.

The weighted objective leans towards generous people. For each way to weigh the tiers (`classifiers.linear.proportion`): AUC
and misclassification, the mean predicted chance minus the true share among all people and among the strict, and the same
model without noise, which shows the lean by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.people_data import adult_like, real_adult
from sfumato.privacy import Seeded

Floats = NDArray[np.float64]
WAYS: tuple[Any, ...] = ("as granted", 10.0, 3.0, "in proportion")
# What budgets follow: a place among the features of Adult, which the model may look at or not, or (-1) what is predicted.
FOLLOWS: dict[str, tuple[int | None, bool]] = {
    "nothing": (None, True),
    "age": (0, True),
    "age, unseen": (0, False),
    "sex": (5, True),
    "sex, unseen": (5, False),
    "the label": (-1, True),
}
TIERS = ((0.01, 0.54), (0.2, 0.37), (1.0, 0.09))
_ODDS = 4.0


def leaning(
    *,
    repeats: int,
    train: int,
    data: Path | None,
    progress: Callable[[str], None],
    follows: tuple[str, ...] = tuple(FOLLOWS),
) -> dict[str, Any]:
    """Per column that budgets follow and per way to weigh tiers: what the model is, over all and over the strict."""
    from sfumato.classifiers.linear.erm import PrivateLogisticRegression

    rng = np.random.default_rng(29)
    found = real_adult(data) if data is not None else None
    X, y = found if found is not None else adult_like(train + 16_000, rng)
    out: dict[str, Any] = {"table": "real Adult" if found is not None else "synthetic, Adult-like", "train": train}
    for column in follows:
        rows: dict[str, list[list[float]]] = {}
        about: dict[str, dict[str, float]] = {}
        progress(f"learning: budgets follow {column}")
        place, seen = FOLLOWS[column]
        features = X if seen or place is None else np.delete(X, place, axis=1)
        for repeat in range(repeats):
            order = rng.permutation(y.size)
            a, b = order[:train], order[train:]
            granted = _granted(X, y, place, rng)
            strict = granted[b] == TIERS[0][0]
            for way in WAYS:
                model = PrivateLogisticRegression(bounds=(-1, 1), classes=[0, 1], tiers=way, source=Seeded(repeat))
                model.fit(features[a], y[a], budgets=granted[a])
                chance = model.predict_proba(features[b])[:, 1]
                weights = np.minimum(granted[a], float(model.parameters_["cap"]))
                lean = _without_noise(features[a], y[a], weights).predict_proba(features[b])[:, 1]
                rows.setdefault(str(way), []).append(_measured(chance, lean, y[b], strict))
                about[str(way)] = {k: model.parameters_[k] for k in ("lean", "noise")}
        out[f"budgets follow {column}"] = {way: _summary(np.array(v)) | about[way] for way, v in rows.items()}
    return out


def _granted(X: Floats, y: NDArray[np.int64], place: int | None, rng: np.random.Generator) -> Floats:
    """A tier for each person; the upper half by the column is four times as likely to be strict."""
    shares = np.array([share for _, share in TIERS])
    if place is None:
        strict = np.full(y.size, shares[0])
    else:
        values = y.astype(np.float64) if place < 0 else X[:, place]
        upper = values > np.median(values) if np.unique(values).size > 2 else values > 0
        odds = np.where(upper, _ODDS, 1.0)
        low, high = 1e-6, 1e6  # the base odds at which the strict are as many as without dependence
        for _ in range(80):
            base = np.sqrt(low * high)
            strict = base * odds / (1 + base * odds)
            low, high = (base, high) if strict.mean() < shares[0] else (low, base)
    rest = rng.random(y.size) < shares[1] / (shares[1] + shares[2])
    granted = np.where(rest, TIERS[1][0], TIERS[2][0])
    return np.where(rng.random(y.size) < strict, TIERS[0][0], granted)


def _without_noise(X: Floats, y: NDArray[np.int64], weights: Floats) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1e3, max_iter=300).fit(X, y, sample_weight=weights / weights.max())


_COLUMNS = ("error", "auc", "off", "off, strict", "off without noise", "off without noise, strict")


def _measured(chance: Floats, lean: Floats, y: NDArray[np.int64], strict: NDArray[np.bool_]) -> list[float]:
    from sklearn.metrics import roc_auc_score

    offs = [float(p[who].mean() - y[who].mean()) for p in (chance, lean) for who in (np.ones(y.size, bool), strict)]
    return [float(((chance > 0.5) != (y > 0)).mean()), float(roc_auc_score(y, chance)), *offs]


def _summary(values: Floats) -> dict[str, float]:
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) / np.sqrt(values.shape[0]) if values.shape[0] > 1 else np.zeros(values.shape[1])
    found = {name: float(v) for name, v in zip(_COLUMNS, mean, strict=True)}
    # How far a single model is off, which the mean of several hides: noise goes both ways.
    return found | {"off, typical": float(np.sqrt(np.mean(values[:, 2] ** 2))), "auc_se": float(spread[1])}


def leaning_claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Without noise, weights in proportion take the lean away; as granted it is there when budgets follow the label."""
    rows = {cell: ways for cell, ways in found.items() if isinstance(ways, dict)}
    worst = max(rows, key=lambda c: abs(rows[c]["in proportion"]["off without noise"]))
    figure = abs(rows[worst]["in proportion"]["off without noise"])
    claims = [
        {
            "name": f"in proportion: mean predicted chance minus the truth, without noise, largest ({worst})",
            "figure": round(figure, 4),
            "limit": 0.01,
            "holds": bool(figure <= 0.01),
        }
    ]
    if "budgets follow the label" in rows:
        ways = rows["budgets follow the label"]
        left = abs(ways["in proportion"]["off without noise"]) / abs(ways["as granted"]["off without noise"])
        claims.append(
            {
                "name": "in proportion: lean of the noiseless model as a part of that as granted, budgets follow the label",
                "figure": round(left, 4),
                "limit": 0.2,
                "holds": bool(left <= 0.2),
            }
        )
    return claims
