"""Classifiers on pairs of neighbours: one record present or absent, the model reduced to the number that shows it best.

Every draw is a whole fit through the Meter (choice, counts and all), so these cases are slow; ten thousand fits of each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import register
from sfumato.grids.counting import Records
from sfumato.grids.levels import Levels
from sfumato.privacy import NANO, Meter, Seeded, Source

EPSILON = NANO
_MOST = 10_000
_COLUMNS = (Levels.numeric("age", [0, 1, 2]), Levels.flat("sex", ["F", "M"]))
_ROWS = np.array([[0, 0], [1, 1], [1, 0]], dtype=np.int32)
_CLASSES = np.array([0, 1, 1])

Fit = Callable[[Records, Meter], float]


def _records(which: int) -> Records:
    """Three records, or the first two: the third is the only positive one at its place."""
    keep = 3 - which
    return Records(_COLUMNS, _ROWS[:keep], _CLASSES[:keep], ("no", "yes"))


def _additive(records: Records, meter: Meter) -> float:
    from sfumato.classifiers.additive import boost, model_scores
    from sfumato.classifiers.additive_settings import AdditiveSettings

    terms = boost(records, meter, nano=EPSILON, rows=100, settings=AdditiveSettings(1, columns=2, first=2, select=0.3))
    scores = model_scores(terms, _ROWS[2:], _COLUMNS, 2)
    return round(float(scores[0, 1] - scores[0, 0]), 6)


def _naive_bayes(records: Records, meter: Meter) -> float:
    """Naive Bayes publishes a table per column; the record shows in one cell of each, so their sum is what tells."""
    rate = EPSILON // len(_COLUMNS)
    total = 0
    for j in range(len(_COLUMNS)):
        noisy = meter.laplace(partial(records.table, ((j, 1),)), rate=rate)
        total += int(np.clip(noisy[1, _ROWS[2, j]], -1, 3))
    return float(total)


def _tree(records: Records, meter: Meter) -> float:
    from sfumato.classifiers.tree import grow, leaf_shares

    tree = grow(records, meter, nano=EPSILON, rows=100, depth=1, prune=False)
    return round(float(leaf_shares(tree, _ROWS[2:])[0, 1]), 6)


def _functional(records: Records, meter: Meter) -> float:
    from sfumato.classifiers.features import design
    from sfumato.classifiers.functional import LATTICE, integer_rows, whole

    rows = integer_rows(design(records.leaves, _COLUMNS), len(_COLUMNS))
    entries = len(_COLUMNS) + 1
    rate = EPSILON // (entries * LATTICE)
    noisy = meter.laplace(
        lambda: whole(rows.T @ np.where(records.classes == 1, 1.0, -1.0)), rate=rate, weights=entries * LATTICE
    )
    return float(noisy @ np.sign(integer_rows(design(_ROWS[2:], _COLUMNS), len(_COLUMNS))[0]))


def _case(name: str, fit: Fit) -> AuditCase:
    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        records = _records(which)
        return np.array([fit(records, Meter(source=source)) for _ in range(n)])

    meter = Meter(source=Seeded(0))
    fit(_records(0), meter)
    return AuditCase(name, meter.spent().total, draw, "one record of three present or absent", most=_MOST)


register(_case("classifier-additive", _additive))
register(_case("classifier-naive-bayes", _naive_bayes))
register(_case("classifier-tree", _tree))
register(_case("classifier-functional", _functional))
