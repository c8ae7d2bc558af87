"""Classifiers on pairs of neighbours: one record present or absent, the model reduced to the number that shows it best.

Every draw is a whole fit through the Meter (choice, counts and all), so these cases are slow; ten thousand fits of each.
"""

from __future__ import annotations

from collections.abc import Callable

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
    """The record shows in one cell of each column's table, so the sum of their log-likelihoods is what tells."""
    from sfumato.classifiers.naive_bayes import PrivateNaiveBayes

    model = PrivateNaiveBayes(epsilon=1, rows=100)
    model._train(records, meter)
    columns = zip(model.levels_, model.log_likelihood_, strict=True)
    total = sum(table[1, _COLUMNS[j].maps[level][_ROWS[2, j]]] for j, (level, table) in enumerate(columns))
    return round(float(total + model.log_prior_[1]), 6)


def _tree(records: Records, meter: Meter) -> float:
    from sfumato.classifiers.tree import grow, leaf_shares

    tree = grow(records, meter, nano=EPSILON, rows=100, depth=1, prune=False)
    return round(float(leaf_shares(tree, _ROWS[2:])[0, 1]), 6)


def _functional(records: Records, meter: Meter) -> float:
    from sfumato.classifiers.features import design
    from sfumato.classifiers.functional import FunctionalMechanism

    model = FunctionalMechanism(epsilon=1)
    model._train(records, meter)
    return round(float((design(_ROWS[2:], _COLUMNS) @ model.coef_[0])[0]), 6)


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
