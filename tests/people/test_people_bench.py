"""The experiments themselves: rosters follow their profile, and the table of ratios comes out for the smallest size."""

import numpy as np
import pytest

from sfumato.bench.people_cells import table as cells_table
from sfumato.bench.people_consent import PATTERNS, cells_claims, consent, consent_claims, consent_table, rates, rosters
from sfumato.bench.people_consent_data import dealt_tiers, people_by
from sfumato.bench.people_counts import error_table, range_counts, table_claims
from sfumato.bench.people_data import PROFILES, adult_like, census, draw_budgets, range_query, roster
from sfumato.bench.people_leaning import leaning, leaning_claims
from sfumato.bench.people_learning import learn, learning_claims
from sfumato.bench.people_models import WAYS, model_claims, models
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
    assert row["affine"]["rmse"] < row["minimum"]["rmse"]
    learned = learn(repeats=2, train=2000, losses=("logistic",), data=None, progress=lambda _: None)
    assert len(learning_claims(learned)) == 3
    assert 0.5 < learned["logistic, three tiers"]["weighted"]["auc"] <= 1


def test_patterns_of_consent_differ_by_the_gap():
    for budgets in rosters().values():
        for pattern in PATTERNS:
            share = rates(budgets, 0.2, pattern)
            assert np.ptp(share) == pytest.approx(0.2, abs=0.01)
            assert (rates(budgets, 0.0, pattern) == 0.4).all()


def test_tiers_that_go_with_a_column():
    for people in people_by(None).values():
        for kinds in people.values():
            for odds in (1.0, 4.0):
                budgets, heads, gap = dealt_tiers(kinds, odds)
                assert heads.sum(axis=1).tolist() == kinds.heads.tolist()
                assert heads.sum(axis=0).tolist() == budgets.counts.tolist()
                assert heads[:, 0].sum() / heads.sum() == pytest.approx(0.54, abs=0.001)
                assert abs(gap) < 0.001 if odds == 1.0 else abs(gap) > 0.005


def test_the_table_of_consent():
    found = consent(
        draws=25, gaps=(0.0, 0.2), names=("three tiers, 190k",), patterns=("strict",), progress=lambda _: None
    ) | consent_table(draws=3, data=None, progress=lambda _: None)
    cells = found["three tiers, 190k"]["cells"]
    assert cells["gap 0.2, strict"]["affine"] > 20 * cells["gap 0"]["affine"]
    assert cells["gap 0.2, strict"]["adaptive"] < 2 * cells["gap 0"]["unbiased"]
    assert cells["gap 0.2, strict"]["narrow interval"] == 0
    assert {"Adult-like", "census-like"} < found.keys()
    claims = consent_claims(found)
    assert all(c["holds"] for c in claims if "190k" in c["name"])
    assert len(claims) == 6 * len(found)


def test_the_table_of_histograms_holds_its_claims():
    claims = cells_claims(cells_table(quick=True))
    assert len(claims) == 4
    assert [c["name"] for c in claims if not c["holds"]] == []


def test_a_model_leans_where_budgets_follow_the_label():
    found = leaning(repeats=1, train=2000, data=None, progress=lambda _: None, follows=("sex, unseen", "the label"))
    ways = found["budgets follow the label"]
    assert ways["as granted"]["off without noise"] < -0.03  # the strict are those with the label: it is predicted too seldom
    assert abs(ways["in proportion"]["off without noise"]) < 0.02
    assert ways["in proportion"]["noise"] > ways["3.0"]["noise"] > ways["10.0"]["noise"] > ways["as granted"]["noise"] == 1
    assert ways["in proportion"]["lean"] == 0 < ways["3.0"]["lean"] < ways["as granted"]["lean"]
    assert len(leaning_claims(found)) == 2


def test_models_of_counts_are_compared_way_by_way():
    found = models(
        repeats=2, rows=2_500, data=None, progress=lambda _: None, names=("PrivateNaiveBayes",), profiles=("three tiers",)
    )
    ways = found["three tiers"]["PrivateNaiveBayes"]
    assert set(ways) == {*WAYS, "threshold"}
    assert ways["own"]["mean"] < ways["everybody at the smallest"]["mean"] - 0.05
    (claim,) = model_claims(found)
    assert claim["holds"]
    assert claim["figure"] < claim["limit"]
    lean = found["budgets follow the label"]["PrivateNaiveBayes"]
    assert lean["own"]["mean"] < -0.1
    assert lean["own"]["lean at most"] > lean["at most 10 times"]["lean at most"] > 0
    assert lean["everybody at the smallest"]["lean at most"] == 0
