"""What one record must not change in a linear model: how the others are read, how many there are, whether `fit` succeeds."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from sfumato.classifiers import (
    FunctionalMechanism,
    OutputPerturbation,
    PrivateLogisticRegression,
    PrivateSVM,
    PrivGene,
    PrivLocal,
)
from sfumato.classifiers.linear.inputs import number_rows
from sfumato.privacy import Exact
from sfumato.tables import Categorical, Numeric, Schema
from sfumato.testing import replay

BOTH = [PrivateLogisticRegression, PrivateSVM]
SCHEMA = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
HOSTILE = ["?", "", None, 10**400, float("nan"), float("inf"), -1e308, [1, 2], {"a": 1}, b"x", 1j, "\udcff", pd.NA]


def ages(n):
    age = (np.arange(n) * 37) % 80
    return age[:, None], np.where(age < 40, "no", "yes")


@pytest.mark.parametrize("estimator", BOTH)
def test_the_number_of_rows_is_counted_with_noise(estimator):
    """2,499 and 2,500 rows lie on either side of where features become finer (ε = 1)."""

    def fit(n, source):
        model = estimator(epsilon=1, schema=SCHEMA, target="ill", source=source).fit(*ages(n))
        return [model.coef_, model.intercept_, model.parameters_, model.guarantee_.nano, model.guarantee_.assumptions]

    found = replay(fit, 2500, 2499)
    assert found.same_output
    assert [pair.here.label for pair in found.calls] == ["number of records", "objective perturbation"]
    assert all(pair.loss <= pair.charged for pair in found.calls)
    assert sum(pair.charged for pair in found.calls) <= 10**9
    assert not any("rows" in said for said in found.published[0][-1])


@pytest.mark.parametrize("estimator", BOTH)
def test_a_stated_number_of_rows_costs_nothing(estimator):
    model = estimator(epsilon=1, schema=SCHEMA, target="ill", rows=100).fit(*ages(90))
    assert [step.label for step in model.guarantee_.steps] == ["objective perturbation"]
    with pytest.raises(ValueError, match="must be positive"):
        estimator(schema=SCHEMA, target="ill", rows=0).fit(*ages(90))


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_an_empty_table_trains_a_model_like_any_other(estimator, neighbours):
    given = {"epsilon": 1, "neighbours": neighbours}

    def with_schema(n, source):
        return estimator(schema=SCHEMA, target="ill", source=source, **given).fit(*ages(n)).coef_

    def with_bounds(n, source):
        X, y = ages(n)
        return estimator(bounds=(0, 80), classes=["no", "yes"], source=source, **given).fit(X, y).coef_

    for fit in (with_schema, with_bounds):
        found = replay(fit, 1, 0)
        assert found.same_output
        assert all(pair.loss <= pair.charged for pair in found.calls)


@pytest.mark.parametrize("stray", HOSTILE, ids=[repr(v)[:12] for v in HOSTILE])
@pytest.mark.parametrize("estimator", BOTH)
def test_a_stray_value_spoils_its_own_record_only(estimator, stray):
    X = [[float(k % 7), k % 3] for k in range(40)]
    y = ["no", "yes"] * 20

    def fit(table, source):
        return estimator(epsilon=1, bounds=(0, 7), classes=["no", "yes"], source=source).fit(*table).coef_

    for strange in (([*X, [stray, 1.0]], [*y, "no"]), ([*X, [1.0, 2.0]], [*y, stray])):
        frames = [(pd.DataFrame(a, columns=["p", "q"]), b) for a, b in (strange, (X, y))]
        for here, there in ((strange, (X, y)), frames):
            found = replay(fit, here, there)
            assert found.same_output
            assert all(pair.loss <= pair.charged for pair in found.calls)


def test_numbers_are_read_one_by_one():
    table = [[1, "2"], [3.5, 4]]
    for stray in HOSTILE:
        assert number_rows([*table, [stray, 5]], 2)[:2].tolist() == [[1.0, 2.0], [3.5, 4.0]]
        assert number_rows([*table, [stray, 5, 6]], 2)[:2].tolist() == [[1.0, 2.0], [3.5, 4.0]]


def test_a_first_row_of_another_width_changes_nothing_where_bounds_state_the_columns():
    X, y = [[k % 7, k % 3] for k in range(40)], ["no", "yes"] * 20

    def fit(table, source):
        return PrivateSVM(epsilon=1, bounds=([0, 0], [7, 3]), classes=["no", "yes"], source=source).fit(*table).coef_

    assert replay(fit, ([[1, 2, 3], *X], ["no", *y]), (X, y)).same_output
    said = "the number of columns is public"
    for bounds, count in ((([0, 0], 7), 0), ((0, 7), 1)):
        model = PrivateSVM(bounds=bounds, classes=["no", "yes"]).fit(X, y)
        assert sum(said in a for a in model.guarantee_.assumptions) == count


def attributes_of(value, seen=None):
    """Everything that hangs on an object."""
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value
        inside = list(vars(value).values()) if hasattr(value, "__dict__") else []
        inside += list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list | tuple) else []
        for part in inside:
            attributes_of(part, seen)
    return list(seen.values())


@pytest.mark.parametrize("estimator", [*BOTH, OutputPerturbation, FunctionalMechanism, PrivGene, PrivLocal])
def test_a_model_keeps_nothing_private(estimator):
    X, y = ages(311)
    model = estimator(epsilon=1, schema=SCHEMA, target="ill").fit(X, y)
    held = attributes_of(model)
    assert not any(isinstance(part, Exact) for part in held)
    assert not any(isinstance(part, np.ndarray) and 311 in part.shape for part in held)
    assert pickle.loads(pickle.dumps(model)).predict(X).shape == (311,)
