"""Estimators given Python lists: one stray record changes nothing but itself."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.classifiers import (
    AutoClassifier,
    HistogramClassifier,
    Majority,
    OutputPerturbation,
    PrivateAdditive,
    PrivateDecisionTree,
    PrivateNaiveBayes,
)
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, Schema
from support.hostile import OBJECTS

SCHEMA = Schema(
    {
        "age": Numeric(0, 80, bins=8),
        "ward": Categorical([1, 2, 3]),
        "smoker": Categorical([True, False]),
        "ill": Categorical([0, 1]),
    }
)
ROWS = [[i % 80, i % 3 + 1, i % 2 == 0] for i in range(600)]
LABELS = [int(age >= 40) for age, _, _ in ROWS]
STRAYS = ["?", 10**400, None, [1]]
ESTIMATORS = [
    PrivateNaiveBayes,
    PrivateDecisionTree,
    PrivateAdditive,
    AutoClassifier,
    HistogramClassifier,
    OutputPerturbation,
    Majority,
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_stray_record_leaves_the_model_as_it_is(estimator):
    def fitted(rows, labels):
        model = estimator(epsilon=5, schema=SCHEMA, target="ill", source=Seeded(3)).fit(rows, labels)
        return model.predict_proba(ROWS[:80]).tolist()

    expected = fitted(ROWS, LABELS)
    for stray in STRAYS:
        # Of an unknown class, so that the same model must come out to the last bit.
        assert fitted([[stray, stray, stray], *ROWS], [stray, *LABELS]) == expected
        assert fitted([*ROWS, stray], [*LABELS, "?"]) == expected


@pytest.mark.parametrize("odd", range(len(OBJECTS)))
def test_predictions_for_the_others_do_not_change(odd):
    model = Majority(epsilon=5, schema=SCHEMA, target="ill", source=Seeded(3)).fit(ROWS, LABELS)
    assert model.predict([*ROWS, [OBJECTS[odd]] * 3]).shape == (601,)
    assert np.unique(model.predict([OBJECTS[odd], *ROWS])).size == 1
