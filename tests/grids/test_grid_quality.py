"""The change of a score under one record, by brute force, and the exactness of the table."""

import itertools

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.grids.search.quality import SCALE, Quality, exact_score, top_two


@pytest.mark.parametrize("rate", [10**5, 3 * 10**7, 10**8, 10**9, 10**10])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_change_lies_in_the_stated_bounds(rate, classes):
    quality = Quality.of(rate)
    changes = []
    for counts in itertools.product(range(9), repeat=classes):
        before = quality.units(*top_two(np.array(counts)[:, None]))
        for c in range(classes):
            after = np.array(counts)
            after[c] += 1
            changes.append(int((quality.units(*top_two(after[:, None])) - before)[0]) / SCALE)
    assert quality.low <= min(changes)
    assert max(changes) <= quality.high


@pytest.mark.parametrize("rate", [10**6, 10**8, 10**9])
def test_bounds_are_attained(rate):
    quality = Quality.of(rate)
    d = np.arange(quality.lost.size + 3)
    score = quality.units(d, np.zeros_like(d))
    assert np.diff(score).max() / SCALE == quality.high
    behind = quality.units(np.full_like(d, d.size), d)
    assert np.diff(behind).min() / SCALE == quality.low


def test_spread_is_well_below_twice_the_papers_sensitivity():
    spreads = [Quality.of(int(10**9 * e)).spread for e in (0.001, 0.01, 0.1, 0.5, 1, 3)]
    assert max(spreads) < 1.179
    assert min(spreads) >= 1.0


def test_a_heavy_record_moves_a_score_by_its_weight_times_the_bounds():
    quality = Quality.of(10**7)
    rng = np.random.default_rng(1)
    for _ in range(300):
        counts, weight, c = rng.integers(0, 400, 3), int(rng.integers(1, 200)), int(rng.integers(3))
        before = int(quality.units(*top_two(counts[:, None]))[0])
        counts[c] += weight
        change = (int(quality.units(*top_two(counts[:, None]))[0]) - before) / SCALE
        assert weight * quality.low <= change <= weight * quality.high


def test_top_two_form_equals_equation_one_for_two_classes_and_quadrature_for_more():
    rng = np.random.default_rng(2)
    rate = 2 * 10**8
    table = rng.integers(0, 60, (2, 30))
    assert exact_score(table, rate) == pytest.approx(float(Quality.of(rate).score(table)), rel=1e-3)
    tables = [rng.integers(0, 60, (4, 30)) for _ in range(40)]
    exact = [exact_score(t, rate, nodes=100) for t in tables]
    two = [float(Quality.of(rate).score(t)) for t in tables]
    assert np.corrcoef(exact, two)[0, 1] > 0.9


def test_expected_correct_records_match_a_simulation():
    rng = np.random.default_rng(3)
    table, epsilon = np.array([[12, 3, 40], [9, 8, 38]]), 0.3
    noise = rng.laplace(scale=1 / epsilon, size=(40_000, *table.shape))
    winners = (table + noise).argmax(axis=1)
    correct = np.take_along_axis(np.broadcast_to(table, noise.shape), winners[:, None], axis=1).sum(axis=(1, 2))
    assert float(Quality.of(3 * 10**8).score(table)) == pytest.approx(correct.mean(), abs=4 * correct.std() / 200)


def test_zero_rate_is_refused():
    with pytest.raises(InputError, match="positive"):
        Quality.of(0)
