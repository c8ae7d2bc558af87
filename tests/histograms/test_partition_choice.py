"""The private partition: least cost by brute force, and its price checked on the exact distribution of its choice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.histograms.mechanisms.dawa import LATTICE, deviations, interval_moves, intervals
from sfumato.privacy import NANO, Meter, Seeded
from sfumato.privacy.noise import geometric
from sfumato.privacy.partition import least_cost, partition_price

STARTS, STOPS = np.array([0, 1, 2, 0, 1]), np.array([1, 2, 3, 2, 3])
PARTITIONS = ((0, 1, 2), (3, 2), (0, 4))


def test_least_cost_is_the_least():
    for costs in product(range(3), repeat=5):
        array = np.array(costs)
        found = least_cost(STARTS, STOPS, array)
        assert array[found].sum() == min(array[list(p)].sum() for p in PARTITIONS)
    with pytest.raises(InputError, match="cannot be joined"):
        least_cost(np.array([1]), np.array([2]), np.array([0]))


def distribution(costs, rates, top=11):
    """Exact probabilities of the three partitions, noise cut off far out."""
    noise = np.indices((top,) * 5).reshape(5, -1)
    q = np.exp(-rates / NANO)[:, None]
    chance = np.prod((1 - q) * q**noise, axis=0)
    noisy = costs[:, None] - noise
    totals = np.array([noisy[list(p)].sum(axis=0) for p in ((0, 4), (3, 2), (0, 1, 2))])
    # the rule for ties: from the right end, the interval listed first wins: [2,3) before [1,3), then [1,2) before [0,2)
    order = np.array([2, 1, 0])
    winner = order[np.argmin(totals[order], axis=0)]
    return np.bincount(winner, weights=chance, minlength=3)


def worst_loss(rates):
    """The largest log-ratio over neighbours in which the record sits in the middle bin and costs move by up to one."""
    worst = 0.0
    base = np.array([2, 2, 2, 3, 3])
    around = [1, 3, 4]
    tables = []
    for change in product((0, 1), repeat=3):
        costs = base.copy()
        costs[around] += change
        tables.append(distribution(costs, rates))
    for a, b in product(tables, repeat=2):
        worst = max(worst, float(np.abs(np.log(a / b)).max()))
    return worst


def test_the_price_covers_the_exact_loss_and_half_the_noise_would_not():
    moves = np.array([0, 1, 0, 1, 1])
    rates = np.full(5, 6 * NANO // 10)
    price = partition_price(rates, moves) / NANO
    assert worst_loss(rates) <= price + 1e-3
    assert worst_loss(2 * rates) > price  # the reference code's noise, at the same claim


def test_the_meter_charges_the_price_and_draws_the_distribution():
    meter = Meter(source=Seeded(9))
    rates, moves = np.full(5, NANO), np.array([0, 1, 0, 1, 1])
    costs = np.array([2, 2, 2, 3, 3])
    drawn = [tuple(meter.partition(STARTS, STOPS, costs, rate=rates, moves=moves).tolist()) for _ in range(3000)]
    assert meter.spent().total == 3000 * 2 * NANO
    expected = distribution(costs, rates)
    for k, p in enumerate(((0, 4), (3, 2), (0, 1, 2))):
        share = np.mean([d == p for d in drawn])
        assert abs(share - expected[k]) < 5 * np.sqrt(expected[k] * (1 - expected[k]) / 3000)


def test_one_sided_noise_has_its_distribution_and_a_smaller_one_is_rejected():
    drawn = geometric(np.full(50_000, NANO // 4), source=Seeded(3))
    for k in (1, 4, 12):
        p = np.exp(-k / 4)
        assert abs((drawn >= k).mean() - p) < 5 * np.sqrt(p * (1 - p) / 50_000)
    p = np.exp(-4 / 4 / 0.7)
    assert abs((drawn >= 4).mean() - p) > 5 * np.sqrt(p * (1 - p) / 50_000)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=24), st.data())
def test_one_record_moves_no_cost_further_than_stated(counts, data):
    there = np.array(counts, dtype=np.int64)
    where = data.draw(st.integers(0, there.size - 1))
    lines = intervals(there.size)
    more = there.copy()
    more[where] += 1
    change = np.abs(deviations(there, lines) - deviations(more, lines))
    around = (lines.starts <= where) & (where < lines.stops)
    assert (change[~around] == 0).all()
    assert (change <= interval_moves(lines)).all()
    exact = [np.abs(there[a:b] - there[a:b].mean()).sum() for a, b in zip(lines.starts, lines.stops, strict=True)]
    assert np.allclose(deviations(there, lines), np.floor(LATTICE * np.array(exact) + 1e-9))
