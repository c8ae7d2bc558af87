"""Correlation warnings, rebuilt histories and pictures."""

from __future__ import annotations

import itertools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from sfumato.attributes import (
    Catalogue,
    ItemGroups,
    ItemSums,
    allocate,
    catalogue_leaks,
    noisy_leaks,
    rebuild_counts,
    release_batch,
)
from sfumato.attributes.plots import plot_budgets, plot_utility
from sfumato.errors import InputError
from sfumato.privacy import Seeded


def test_attributes_that_give_a_protected_one_away_are_found():
    rng = np.random.default_rng(2)
    secret = rng.random(4000) < 0.3
    proxy = secret ^ (rng.random(4000) < 0.05)
    other = rng.random(4000) < 0.5
    catalogue = Catalogue.from_matrix(np.stack([secret, proxy, other], axis=1).astype(int), ["faith", "hall", "music"])
    policy = allocate(catalogue, budgets={"faith": 0.01, "hall": 1, "music": 1}, epsilon=0.5)
    faith, music = catalogue_leaks(catalogue, ["faith", "music"], policy=policy)
    expected = np.corrcoef(secret, proxy)[0, 1]
    assert faith.predictors[0] == ("hall", pytest.approx(expected, abs=1e-9))
    assert faith.serious
    assert not music.serious
    assert str(policy.charge.total / 1e9) in faith.sentence()
    assert "0.01" in faith.sentence()


def test_popularity_changes_the_answer():
    catalogue = Catalogue.from_matrix([[1, 1], [0, 0], [1, 0], [0, 1]], ["x", "y"])
    assert not catalogue_leaks(catalogue, ["x"])[0].serious
    assert catalogue_leaks(catalogue, ["x"], popularity=[50, 50, 1, 1])[0].serious
    with pytest.raises(InputError):
        catalogue_leaks(catalogue, ["x"], popularity=[1, 1])
    with pytest.raises(InputError):
        catalogue_leaks(catalogue, ["unknown"])


def test_noisy_histograms_show_the_correlation_of_the_exact_ones():
    rng = np.random.default_rng(3)
    base = rng.poisson(40, 20_000)
    exact = np.stack([base + rng.poisson(10, 20_000), base + rng.poisson(10, 20_000), rng.poisson(50, 20_000)], axis=1)
    catalogue = Catalogue.from_matrix(np.eye(3, dtype=int), ["x", "y", "z"])
    policy = allocate(catalogue, budgets={"x": 0.2, "y": 0.2, "z": 0.2}, epsilon=1)
    noisy, _ = release_batch(ItemSums.as_stated(exact, policy), policy, source=Seeded(4))
    true = np.corrcoef(exact[:, 0], exact[:, 1])[0, 1]
    (leak,) = noisy_leaks(noisy, policy, ["x"])
    assert leak.predictors[0][0] == "y"
    assert leak.predictors[0][1] == pytest.approx(true, abs=0.06)
    # Without taking the noise out, the correlation would look much smaller.
    assert np.corrcoef(noisy[:, 0], noisy[:, 1])[0, 1] < true - 0.2
    with pytest.raises(InputError):
        noisy_leaks(noisy[:1], policy, ["x"])


def test_rebuilt_histories_are_nearly_as_close_as_the_best_of_all_histories():
    rng = np.random.default_rng(5)
    catalogue = Catalogue.from_matrix(rng.integers(0, 2, (10, 4)), list("wxyz"))
    groups = ItemGroups.of(catalogue)
    targets = rng.integers(-2, 7, (30, 4))
    counts = rebuild_counts(targets, groups)
    assert (counts >= 0).all()
    assert (counts <= groups.sizes).all()
    mine = ((counts @ groups.rows - targets) ** 2).sum(axis=1)
    everything = np.array(list(itertools.product(*(range(s + 1) for s in groups.sizes)))) @ groups.rows
    best = ((everything[None, :, :] - targets[:, None, :]) ** 2).sum(axis=2).min(axis=1)
    assert (mine >= best).all()
    assert (mine - best).mean() < 0.5
    assert (mine == best).mean() > 0.6


def test_exact_sums_are_reproduced():
    rng = np.random.default_rng(7)
    catalogue = Catalogue.from_matrix(rng.integers(0, 2, (200, 6)), list("uvwxyz"))
    groups = ItemGroups.of(catalogue)
    true = np.array([np.bincount(groups.group_of[rng.choice(200, 60, replace=False)], minlength=len(groups.sizes))])
    counts = rebuild_counts(true @ groups.rows, groups)
    assert np.abs(counts @ groups.rows - true @ groups.rows).max() <= 1


def test_plots_have_labels():
    matplotlib.use("Agg")
    catalogue = Catalogue.of({"i": ["x", "y"]})
    policy = allocate(catalogue, budgets={"x": 0.1, "y": 0.3}, epsilon=0.2)
    axes = plot_budgets(policy)
    assert [t.get_text() for t in axes.get_xticklabels()] == ["x", "y"]
    assert {p.get_height() for p in axes.patches} >= {0.1, 0.3}
    axes = plot_utility([0.1, 0.2], {"mae": [2, 1]}, measure="mae", bounds=[(1, 3), (1, 2)], threshold=0.15)
    assert axes.get_xlabel() == "overall ε"
    assert axes.get_ylabel() == "MAE"
    plt.close("all")
