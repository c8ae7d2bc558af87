"""A histogram with everybody at their own budget: losses by brute force, error by simulation, intervals by coverage."""

import numpy as np
import pytest

from sfumato.errors import BudgetError
from sfumato.histograms import Bins
from sfumato.people.histogram import plan_histogram
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.testing import reveal

ROSTER = PersonBudgets.from_tiers({"strict": (0.05, 600), "standard": (0.3, 300), "open": (1.5, 100)})


def weighted(plan, table):
    """`table[g, j]`: people of group g in bin j."""
    return lambda weights: Exact(weights @ table)


def spread_out(rng, bins):
    return np.stack([rng.multinomial(n, np.full(bins, 1 / bins)) for n in ROSTER.counts])


@pytest.mark.parametrize("rows", [1, 3])
def test_nobody_loses_more_than_their_budget_and_the_loss_is_exact(rows):
    plan = plan_histogram(Terms(rows_per_person=rows, budgets=ROSTER), Bins.numbered(4))
    meter = Meter(limit=plan.charge, budgets=ROSTER, rows_per_person=rows)
    plan.run(weighted(plan, np.zeros((3, 4), dtype=np.int64)), meter)
    losses = meter.guarantee().people
    assert (losses <= ROSTER.levels).all()
    assert (losses == plan.weights * rows).all()


def test_a_neighbour_moves_one_bin_by_what_was_charged():
    plan = plan_histogram(ROSTER, Bins.numbered(4))
    rng = np.random.default_rng()
    for group in range(3):
        table = rng.integers(1, 9, (3, 4))
        without = table.copy()
        without[group, rng.integers(4)] -= 1
        moved = np.abs(reveal(weighted(plan, table)(plan.weights)) - reveal(weighted(plan, without)(plan.weights)))
        assert sorted(moved)[-2] == 0
        assert moved.max() == plan.charge.people[group]  # rate 1: a unit moved is a nano-ε lost


def test_the_noise_is_the_noise_that_is_priced():
    plan = plan_histogram(ROSTER, Bins.numbered(2000))
    noisy = plan.run(weighted(plan, np.zeros((3, 2000), dtype=np.int64)), Meter(budgets=ROSTER, source=Seeded(4)))
    units = np.abs(noisy.flat) * plan.mass / plan.budgets.people / NANO  # exponential with mean 1
    assert abs(units.mean() - 1) < 5 / np.sqrt(2000)
    assert abs(units.mean() * 0.7 - 1) > 5 / np.sqrt(2000)  # the same test rejects noise 30% too small


def test_the_expected_error_is_what_is_seen():
    bins, rng = 20, np.random.default_rng()
    plan = plan_histogram(ROSTER, Bins.numbered(bins))
    errors = []
    for seed in range(150):
        table = spread_out(rng, bins)
        made = plan.run(weighted(plan, table), Meter(budgets=ROSTER, source=Seeded(seed)))
        errors.append(made.flat - table.sum(axis=0))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.expected_rmse, rel=0.15)


def test_intervals_of_bins_and_ranges_cover():
    bins, rng = 10, np.random.default_rng()
    plan = plan_histogram(ROSTER, Bins.numbered(bins))
    hits = ranges = 0
    for seed in range(100):
        table = spread_out(rng, bins)
        made = plan.run(weighted(plan, table), Meter(budgets=ROSTER, source=Seeded(seed)))
        truth = table.sum(axis=0)
        low, high = made.interval(0.9)
        hits += int(((low <= truth) & (truth <= high)).sum())
        inside = made.range(2, 7).interval(0.9)
        ranges += inside[0] <= truth[2:7].sum() <= inside[1]
    assert hits / (100 * bins) > 0.85
    assert ranges > 75


def test_a_roster_too_small_for_its_rows_is_refused():
    with pytest.raises(BudgetError, match="buys one row"):
        plan_histogram(Terms(rows_per_person=2, budgets=PersonBudgets.from_nano([1])), Bins.numbered(2))


def test_several_rows_of_a_person_in_one_bin_widen_the_interval():
    """Three rows together err three times as far as one; the spread of single rows is half of it."""
    budgets = PersonBudgets.from_tiers({"strict": (0.002, 30_000), "open": (1.0, 3_000)})
    plan = plan_histogram(Terms(rows_per_person=3, budgets=budgets), Bins.numbered(10))
    rng, held = np.random.default_rng(), []
    for seed in range(40):
        table = 3 * np.stack([rng.multinomial(n, np.full(10, 0.1)) for n in budgets.counts])
        meter = Meter.under(plan.terms.up_to(plan.charge), source=Seeded(seed))
        exact = Exact(table, rows_per_person=3)
        made = plan.run(lambda weights, exact=exact: exact.map(lambda counts: weights @ counts), meter)
        low, high = made.interval(0.9)
        held.append((low <= table.sum(axis=0)) & (table.sum(axis=0) <= high))
    assert np.mean(held) > 0.83
