"""The classification bench on tables small enough for a test."""

import numpy as np
import pytest

from sfumato.bench import classify, run_bench
from sfumato.bench.classify_data import census, census_schema
from sfumato.bench.classify_methods import METHODS, misclassification
from sfumato.errors import InputError


def test_the_census_is_learnable_and_fits_its_schema():
    table = census(3000, classes=3, extra=2)
    assert list(table.frame.columns) == list(table.schema.names)
    assert table.schema == census_schema(classes=3, extra=2)
    for name, domain in table.schema.columns.items():
        if hasattr(domain, "values"):
            assert set(table.frame[name]) <= set(domain.values)
        else:
            assert table.frame[name].between(domain.low, domain.high).all()
    assert (census(500).frame == census(500).frame).all().all()


@pytest.mark.parametrize("name", ["AutoClassifier", "PrivateNaiveBayes", "PrivateDecisionTree", "PrivateLogisticRegression"])
def test_methods_beat_the_majority_on_the_census(name):
    table = census(6000)
    floor = misclassification(METHODS["Majority"], table, 2.0, repeats=1)["mean"]
    found = misclassification(METHODS[name], table, 2.0, repeats=1)
    assert found["mean"] < floor - 0.05
    assert found["seconds"] > 0


def test_more_budget_helps_on_average():
    table = census(6000)
    little, much = (
        np.mean([misclassification(METHODS["AutoClassifier"], table, e, repeats=4)["mean"]]) for e in (0.02, 2.0)
    )
    assert much < little


def test_claims_follow_the_figures():
    result = {"0.05": {"mean": 0.2}, "0.1": {"mean": 0.2}, "0.2": {"mean": 0.1}, "0.5": {"mean": 0.1}, "1": {"mean": 0.1}}
    majority = {key: {"mean": 0.248} for key in result}
    claims = classify._claims("adult", {"AutoClassifier": result, "Majority": majority}, classify.EPSILONS, quick=False)
    held = {c["name"]: c["holds"] for c in claims}
    assert not held["adult, ε 0.05: AutoClassifier against the bar"]
    assert held["adult, ε 1: AutoClassifier against the bar"]
    assert held["adult, ε 0.05: AutoClassifier against the majority class"]


def test_speeds_are_claimed_against_scikit_learn_in_the_same_run(monkeypatch):
    from sfumato.bench import learning_speed

    monkeypatch.setattr(learning_speed, "fits", lambda rows: {"scikit-learn": lambda: np.ones(rows), "ours": lambda: [rows]})
    ticks = iter(range(1000))
    monkeypatch.setattr(learning_speed.time, "process_time", lambda: float(next(ticks)))
    figures, claims = learning_speed.speed(quick=True, progress=lambda _: None)
    assert figures["ours"]["100000"]["seconds"] == 1.0
    assert [(c["name"].split(": ")[1], c["figure"]) for c in claims[:2]] == [
        ("times the seconds of scikit-learn's", 1.0),
        ("growth of the time from 10000 to 100000 rows", 1.0),
    ]


def test_the_tables_of_the_speed_bench_are_fitted():
    from sfumato.bench.learning_speed import fits

    models = {name: fit() for name, fit in fits(3000).items()}
    assert all(model.coef_.shape[1] >= 14 for model in models.values())


def test_a_part_of_a_bench_runs_alone_and_an_unknown_one_is_refused():
    found = run_bench("classify", quick=True, part="time")
    assert set(found["figures"]) == {"time"}
    with pytest.raises(InputError, match="it has adult, bank"):
        run_bench("classify", part="nothing")
    with pytest.raises(InputError, match="leave --part out"):
        run_bench("noise", part="adult")
