"""How good a classifier is beyond its share of errors: area under the curve, balanced accuracy; and means with their error.

The share of errors alone hides rare classes: who always says "no" errs in 2% of the cases where 2% are "yes". The area under
the curve asks how well the *scores* order the rows, balanced accuracy how often the rows of each class are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MEASURES = ("error", "auc", "balanced")
"""What is measured of every classifier: share misclassified, area under the curve, balanced accuracy."""


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the curve; for several classes the mean over the classes, each against the rest.

    `labels` are class codes 0 to k - 1. `scores` has one column per class; for two classes it may be one score per row,
    higher for class 1. Equal scores count one half. Classes that no row has, or every row, are left out; with none left the
    area is one half: nothing could be ordered.

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> auc([0, 1, 2], [[3, 0, 0], [0, 2, 1], [0, 0, 2]])
    1.0
    >>> auc([0, 0, 1], [5, 5, 5])
    0.5
    """
    truth, given = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if given.ndim == 1:
        return _one_against_rest(truth == 1, given)
    if given.shape[1] == 2:  # the difference: two scores need not add up to one
        return _one_against_rest(truth == 1, given[:, 1] - given[:, 0])
    areas = [
        _one_against_rest(truth == k, given[:, k]) for k in range(given.shape[1]) if 0 < (truth == k).sum() < truth.size
    ]
    return float(np.mean(areas)) if areas else 0.5


def _one_against_rest(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    from scipy.stats import rankdata

    found = int(positive.sum())
    if found in (0, positive.size):
        return 0.5
    above = rankdata(scores)[positive].sum() - found * (found + 1) / 2
    return float(above / (found * (positive.size - found)))


def balanced_accuracy(labels: ArrayLike, predicted: ArrayLike) -> float:
    """The share predicted rightly within a class, averaged over the classes that occur.

    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    truth, said = np.asarray(labels), np.asarray(predicted)
    return float(np.mean([(said[truth == k] == k).mean() for k in np.unique(truth)]))


def measures(labels: ArrayLike, predicted: ArrayLike, scores: ArrayLike) -> dict[str, float]:
    """All `MEASURES` of one prediction, labels and predictions as class codes.

    >>> measures([0, 0, 1, 1], [0, 0, 0, 1], [0.1, 0.2, 0.4, 0.9])
    {'error': 0.25, 'auc': 1.0, 'balanced': 0.75}
    """
    truth, said = np.asarray(labels), np.asarray(predicted)
    return {
        "error": float((said != truth).mean()),
        "auc": auc(truth, scores),
        "balanced": balanced_accuracy(truth, said),
    }


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error; the error of a single value is not known (nan).

    >>> mean_and_error([1.0, 2.0, 3.0, 4.0])
    (2.5, 0.6454972243679028)
    >>> mean_and_error([1.0])
    (1.0, nan)
    """
    found = np.asarray(list(values), dtype=np.float64)
    error = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else float("nan")
    return float(found.mean()), error


def summarise(draws: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Mean and standard error (None for a single draw) of every measure over the draws, and how many draws there were.

    >>> summarise([{"error": 0.1}, {"error": 0.3}])
    {'error': 0.2, 'error_se': 0.1, 'draws': 2}
    """
    found: dict[str, Any] = {}
    for name in draws[0]:
        mean, error = mean_and_error(draw[name] for draw in draws)
        found |= {name: round(mean, 12), f"{name}_se": None if np.isnan(error) else round(error, 12)}
    return found | {"draws": len(draws)}


def halves(rows: NDArray[np.integer]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two halves of some held-out rows: one may choose a setting that the other then measures.

    They are told apart by the rows' numbers in the whole table, so a row is in the same half in every split: what a choice
    has seen in one split is not what measures it in another.

    >>> [half.tolist() for half in halves(np.array([3, 4, 8]))]
    [[False, True, True], [True, False, False]]
    """
    even = np.asarray(rows) % 2 == 0
    return even, ~even


Halved = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""Measures on one half of the held-out rows, on the other half, and on all of them."""


def measured_by_halves(rows: NDArray[np.integer], labels: Any, predicted: Any, scores: Any) -> Halved:
    """The measures of one prediction on the `halves` of its rows and on all of them."""
    one, other = (measures(labels[half], predicted[half], scores[half]) for half in halves(rows))
    return one, other, measures(labels, predicted, scores)


def chosen_across(candidates: Mapping[str, Sequence[Halved]], by: str = "error") -> tuple[list[dict[str, float]], str]:
    """Measures per split of the best candidate, where no row both chose it and measures it; and which were chosen.

    Every candidate (a setting, a learner) has for every split its measures on the two `halves`. The one with the smallest
    mean `by` over the splits on one half is measured on the other, and the other way round. Where both halves choose the
    same, that is all rows.

    >>> lucky = [({"error": 0.1}, {"error": 0.5}, {"error": 0.3})]
    >>> steady = [({"error": 0.2}, {"error": 0.2}, {"error": 0.2})]
    >>> chosen_across({"lucky": lucky, "steady": steady})
    ([{'error': 0.35}], 'lucky / steady')
    """
    names = [min(candidates, key=lambda name: float(np.mean([s[h][by] for s in candidates[name]]))) for h in (0, 1)]
    if names[0] == names[1]:
        return [dict(whole) for _, _, whole in candidates[names[0]]], names[0]
    both = zip(candidates[names[0]], candidates[names[1]], strict=True)
    return [{k: (first[1][k] + second[0][k]) / 2 for k in first[1]} for first, second in both], " / ".join(names)
