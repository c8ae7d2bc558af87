"""The number of rounds and their shares follow the signal without cliffs, and more than the share of errors gains by it."""

import numpy as np
import pytest

from sfumato import classifiers as c
from sfumato.bench.metrics import auc
from sfumato.classifiers.counting.additive_settings import AdditiveSettings, automatic, heed_for, rounds_for
from sfumato.privacy import Seeded
from sfumato.tables import Categorical, Numeric, Schema

SIGNALS = np.geomspace(20, 10**6, 400)


@pytest.mark.parametrize("rarer", [0.5, 0.25, 0.1, 0.02, 0.0])
def test_a_little_more_signal_never_changes_the_plan_by_much(rarer):
    plans = [automatic(signal / 10**6, 10**6, rarer=rarer) for signal in SIGNALS]
    rounds = np.array([plan.rounds for plan in plans])
    assert set(np.diff(rounds)) <= {0, 1}
    assert rounds[0] == 1
    assert rounds.max() >= 3
    for name in ("select", "cells", "prior", "ahead"):
        values = np.array([getattr(plan, name) for plan in plans])
        assert np.abs(np.diff(values)).max() <= 0.3 * values.max(), name
    first = np.array([plan.shares()[0] for plan in plans])
    assert (np.diff(first) <= 1e-12).all()  # each further round takes a little from all before it


@pytest.mark.parametrize("signal", [300, 3_000, 30_000, 300_000])
def test_a_little_rarer_never_changes_the_plan_by_much(signal):
    rounds = [rounds_for(signal, rarer) for rarer in np.linspace(0, 0.5, 501)[1:]]
    assert set(np.diff(rounds)) <= {0, 1}


def test_the_rarer_a_class_the_less_the_first_choice_heeds_the_others():
    heeds = np.array([heed_for(rarer) for rarer in np.linspace(0, 0.5, 501)])
    assert (np.diff(heeds) >= 0).all()
    assert np.diff(heeds).max() < 0.02
    assert heeds[-1] == 1.0
    assert [heed_for(rarer, rounds=1) for rarer in (0.3, 0.1, 0.01)] == [1.0] * 3  # one term decides everything
    assert heeds[20] * 0.98 < 2 * 0.02  # a class of 2% weighs at least half as much as all others together


def test_the_first_grid_tells_of_a_rare_class_though_no_decision_changes():
    draw = np.random.default_rng(2)
    values = draw.integers(0, 8, (8_000, 5))
    ill = draw.random(8_000) < np.where(values[:, 3] >= 6, 0.14, 0.005)
    schema = Schema({f"x{j}": Numeric(0, 8, bins=8) for j in range(5)} | {"ill": Categorical(["no", "yes"])})
    for seed in range(4):
        model = c.PrivateAdditive(
            epsilon=1, schema=schema, target="ill", columns_per_term=1, rounds=3, source=Seeded(seed)
        ).fit(values, np.where(ill, "yes", "no"))
        assert model.describe()[0].startswith("x3")


def test_a_rare_class_keeps_several_rounds():
    assert [automatic(e, 37_000, rarer=0.02).rounds for e in (0.05, 0.1, 0.2)] == [3, 3, 3]


def test_the_shares_of_all_rounds_add_up_to_the_whole():
    for rounds in (1, 2, 7):
        assert sum(AdditiveSettings(rounds, ahead=1.7).shares()) == pytest.approx(1.0)


def test_what_is_stated_is_kept():
    plan = automatic(1, 36_000, rounds=2, columns=1, candidates=50)
    assert (plan.rounds, plan.columns, plan.first, plan.candidates) == (2, 1, 1, 50)


def test_the_rows_of_a_rare_class_are_ordered_by_several_columns():
    """One grid holds at most a few of eight telling columns; its cells leave most rows tied."""
    draw = np.random.default_rng(4)
    names = [f"x{j}" for j in range(8)]
    values = draw.integers(0, 8, (24_000, 8))
    ill = draw.random(24_000) < 1 / (1 + np.exp(5.5 - 0.75 * (values - 3.5).sum(axis=1) / 2))
    schema = Schema({n: Numeric(0, 8, bins=8) for n in names} | {"ill": Categorical(["no", "yes"])})
    y, train = np.where(ill, "yes", "no"), slice(0, 18_000)
    areas = {}
    for rounds in (1, "auto"):
        found = [
            c.PrivateAdditive(epsilon=0.3, schema=schema, target="ill", rounds=rounds, candidates=1_500, source=Seeded(seed))
            .fit(values[train], y[train])
            .predict_proba(values[18_000:])[:, 1]
            for seed in (1, 2, 3)
        ]
        areas[rounds] = np.mean([auc(ill[18_000:].astype(int), scores) for scores in found])
    assert areas["auto"] > areas[1] + 0.03
