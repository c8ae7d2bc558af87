"""The experiments themselves: rosters follow their profile, and the table of ratios comes out for the smallest size."""

import numpy as np
import pytest

from sfumato.bench.people_counts import error_table, range_counts, table_claims
from sfumato.bench.people_data import PROFILES, adult_like, census, draw_budgets, range_query, roster
from sfumato.bench.people_learning import learn, learning_claims
from sfumato.errors import InputError


def test_profiles_have_the_means_of_the_paper():
    rng = np.random.default_rng(0)
    means = {p: draw_budgets(p, 100_000, rng).mean() for p in PROFILES}
    assert means["normal clipped"] == pytest.approx(0.355, abs=0.01)
    assert means["normal truncated"] == pytest.approx(0.47, abs=0.01)
    assert means["uniform"] == pytest.approx(0.055, abs=0.001)
    with pytest.raises(InputError, match="known"):
        draw_budgets("magic", 10, rng)
    granted = draw_budgets("uniform", 500, rng)
    budgets, groups = roster(granted, decimals=4)
    assert (budgets.epsilons[groups] <= granted + 1e-12).all()
    assert np.bincount(groups, minlength=budgets.groups).tolist() == budgets.counts.tolist()


def test_queries_and_tables():
    rng = np.random.default_rng(1)
    table = census(2000, rng)
    assert table.shape == (2000, 14)
    wide, narrow = (np.mean([range_query(table, k, rng)[0].mean() for _ in range(40)]) for k in (1, 14))
    assert wide > 0.1 > narrow
    X, y = adult_like(5000, rng)
    assert np.abs(X).max() <= 1
    assert 0.15 < y.mean() < 0.4


def test_small_table_holds_its_claims():
    table = error_table((10_000,), lambda _: None)
    claims = {c["name"][:12]: c for c in table_claims(table, (10_000,))}
    assert claims["affine, RMSE"]["holds"]
    assert claims["ratios to af"]["holds"]
    assert claims["auto, RMSE a"]["holds"]


def test_simulated_range_counts_and_learning_run():
    found = range_counts(2000, queries=4, attributes=(1,), profiles=("three tiers",), progress=lambda _: None)
    row = found["three tiers, 1 attributes"]
    assert row["affine"]["rmse"] < row["exponential"]["rmse"]
    learned = learn(repeats=2, train=2000, losses=("logistic",), data=None, progress=lambda _: None)
    assert len(learning_claims(learned)) == 3
    assert 0.5 < learned["logistic, three tiers"]["weighted"]["auc"] <= 1
