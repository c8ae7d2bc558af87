"""The release itself: sensitivity by brute force, the law of the noise, errors as predicted, many people at once."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from sfumato.attributes import Catalogue, ItemSums, Profile, allocate, expected_errors, release_batch, release_histogram
from sfumato.errors import BudgetError
from sfumato.privacy import Charge, Meter, Seeded
from sfumato.privacy.noise import laplace_variance
from sfumato.testing import reveal

ITEMS = {"a": {"x": 1, "y": 2}, "b": {"y": 1, "z": 3}, "c": {"x": 2}, "d": {}, "e": {"x": 1, "y": 1, "z": 1}}
SHOP = Catalogue.of(ITEMS)
POLICY = allocate(SHOP, budgets={"x": 0.4, "y": 0.5, "z": 0.2}, epsilon=0.3)


def empty_histories(people: int) -> ItemSums:
    return ItemSums.as_stated(np.zeros((people, 3), dtype=np.int64), POLICY)


def counted(history) -> np.ndarray:
    return reveal(SHOP.histogram(history).exact)


def test_neighbours_by_brute_force_never_differ_by_more_than_the_promise():
    promise = SHOP, POLICY.charge
    worst, each = 0, dict.fromkeys(POLICY.attributes, 0)
    for size in range(len(ITEMS) + 1):
        for history in itertools.combinations(ITEMS, size):
            for absent in history:
                gap = np.abs(counted(history) - counted([i for i in history if i != absent]))
                losses = [int(d) * int(r) for d, r in zip(gap, POLICY.rates, strict=True)]
                worst = max(worst, sum(losses))
                for name, loss in zip(POLICY.attributes, losses, strict=True):
                    each[name] = max(each[name], loss)
    # Exactly the price: not only an upper bound, so nothing is wasted either.
    assert worst == promise[1].total <= 300_000_000
    assert each == dict(promise[1].attributes)


def test_the_guarantee_is_what_the_meter_added_up():
    meter = Meter(limit=POLICY.charge, attributes=POLICY.attributes, neighbours="item")
    release = release_histogram(SHOP.histogram(["a", "b"]), POLICY, meter)
    assert release.guarantee.nano == POLICY.charge.total
    assert dict(release.guarantee.attributes) == dict(POLICY.charge.attributes)
    assert release.guarantee.private
    assert "overall ε" in release.warnings[0]
    short = Meter(limit=Charge(POLICY.charge.total - 1), attributes=POLICY.attributes, neighbours="item")
    with pytest.raises(BudgetError):
        release_histogram(SHOP.histogram(lambda: pytest.fail("the history was read")), POLICY, short)


def mean_absolute_z(draws: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """z-score of the mean absolute noise per attribute against ``1 / sinh(rate)``."""
    mean = 1 / np.sinh(rates / 1e9)
    spread = np.sqrt(laplace_variance(rates) - mean**2)
    return (np.abs(draws).mean(axis=0) - mean) / (spread / np.sqrt(draws.shape[0]))


def test_noise_has_the_stated_law_and_thirty_percent_less_is_noticed():
    people = 40_000
    noise, _ = release_batch(empty_histories(people), POLICY, source=Seeded(11))
    assert (np.abs(mean_absolute_z(noise, POLICY.rates)) < 5).all()
    small, _ = release_batch(empty_histories(people), POLICY, source=Seeded(12))
    assert (mean_absolute_z(np.rint(0.7 * small), POLICY.rates) < -5).all()


def test_expected_errors_are_those_of_a_simulation():
    noise, _ = release_batch(empty_histories(60_000), POLICY, source=Seeded(13))
    expected = expected_errors(POLICY)
    assert np.abs(noise).mean() == pytest.approx(expected["mae"], rel=0.03)
    assert (noise.astype(float) ** 2).mean() == pytest.approx(expected["mse"], rel=0.06)
    assert expected["kl"] >= 0


def test_intervals_cover():
    meter = Meter(attributes=POLICY.attributes, neighbours="item")
    interval = release_histogram(SHOP.histogram([]), POLICY, meter).interval(0.9)
    width = (interval[:, 1] - interval[:, 0]) / 2
    noise, _ = release_batch(empty_histories(20_000), POLICY, source=Seeded(14))
    covered = (np.abs(noise) <= width).mean(axis=0)
    assert (covered > 0.9 - 0.01).all()
    assert (covered < 0.9 + 0.04).all()


def test_many_people_cost_each_of_them_one_release():
    histograms = np.arange(100_000).reshape(-1, 1) * np.ones((1, 3), dtype=np.int64)
    noisy, promise = release_batch(ItemSums.as_stated(histograms, POLICY), POLICY, source=Seeded(2))
    assert promise.nano == POLICY.charge.total
    assert dict(promise.attributes) == dict(POLICY.charge.attributes)
    assert not promise.private
    noise = noisy - histograms
    # Different people, different noise, also across the blocks in which they are drawn.
    assert abs(np.corrcoef(noise[:50_000, 0], noise[50_000:, 0])[0, 1]) < 0.03
    assert np.unique(noise[:, 0]).size > 20


def test_a_result_says_everything_a_report_needs():
    release = Profile(SHOP, budgets={"x": 0.4, "y": 0.5, "z": 0.2}).release(["a"], to="shop", epsilon=0.3)
    frame = release.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["overall"]) == {str(release.guarantee.epsilon)}
    body = json.loads(json.dumps(release.to_dict()))
    assert body["parameters"]["recipient"] == "shop"
    assert body["guarantee"]["neighbours"] == "item"
    assert release.expected_rmse > 0
    assert "Taken one at a time" in release.guarantee.sentence()


def test_weighted_values_come_back_in_their_own_unit():
    half = Catalogue.of({"i": {"x": 0.5}}, step="0.5")
    policy = allocate(half, budgets={"x": 1000}, epsilon=1000)
    meter = Meter(attributes=("x",), neighbours="item")
    assert release_histogram(half.histogram(["i"]), policy, meter).values.tolist() == [0.5]
    assert policy.scales.tolist() == [0.5 / 1000]


def test_a_release_comes_back_from_its_dictionary_as_it_was():
    from sfumato.results import load_result

    meter = Meter(limit=POLICY.charge, attributes=POLICY.attributes, neighbours="item")
    made = release_histogram(SHOP.histogram(["a", "b"]), POLICY, meter, recipient="adnet")
    again = load_result(json.loads(json.dumps(made.to_dict())))
    assert type(again) is type(made)
    assert again.to_dict() == made.to_dict()
    np.testing.assert_array_equal(again.interval(0.9), made.interval(0.9))
    assert str(again.guarantee) == str(made.guarantee)
