"""Rows shared out among parts: what one person can move, by brute force, and the noise that is priced."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sfumato.errors import BudgetError
from sfumato.histograms.bins import Bins
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.statistics.shares import OnePlan, plan_parts, shared_out, signed

STEPS = 3
ROSTER = PersonBudgets.from_tiers({"strict": (0.1, 40), "open": (1.0, 20)})


PLACES = np.array([0, 0, 1, 1]), np.array([[0], [1], [0], [1]])


def table(rows, *, powers=2):
    """Moments of (group, cell, value) rows of two groups and two cells."""
    totals = np.zeros((4, powers + 1), dtype=np.int64)
    for group, cell, value in rows:
        totals[2 * group + cell] += [value**p for p in range(powers + 1)]
    return *PLACES, totals


def parts(rows, weights, degree):
    return shared_out(table(rows), np.array(weights), shape=(2,), steps=STEPS, degree=degree)


def moved(before, after, weights, degree):
    return int(np.abs(parts(before, weights, degree) - parts(after, weights, degree)).sum())


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("weight", [1, 7, 10])
def test_a_row_moves_all_parts_together_by_at_most_its_weight(degree, weight):
    """Every table of up to two rows over two cells, every row that may come."""
    rows = list(product([0], [0, 1], range(STEPS + 1)))
    worst = 0
    for size in range(3):
        for others in combinations_with_replacement(rows, size):
            for new in rows:
                worst = max(worst, moved(others, [*others, new], [weight, 1], degree))
    assert worst <= weight
    assert worst == weight if degree < 2 else worst >= weight - 2


@pytest.mark.parametrize("weight", [2, 3, 4, 5])
@pytest.mark.parametrize("values", [(1, 6, 8), (2, 4, 9)])
def test_rounding_three_parts_is_paid_for(weight, values):
    """Two rows on a lattice of ten steps, and a third whose parts round to two more than its share: within the price."""
    where = np.array([0]), np.array([[0]])
    made = [
        shared_out(
            (*where, np.array([[len(v), sum(v), sum(x * x for x in v)]])), np.array([weight]), shape=(1,), steps=10, degree=2
        )
        for v in (values[:2], values)
    ]
    assert np.abs(made[1] - made[0]).sum() <= weight


@pytest.mark.parametrize("degree", [1, 2])
def test_several_rows_and_replaced_rows_cost_what_the_terms_say(degree):
    """A person's rows together: their number times the weight; and twice that if others come in their place."""
    draw = np.random.default_rng()
    for _ in range(300):
        weights = draw.integers(1, 12, 2)
        size, mine, group = draw.integers(0, 6), int(draw.integers(1, 4)), int(draw.integers(2))
        others = [(int(draw.integers(2)), int(draw.integers(2)), int(draw.integers(4))) for _ in range(size)]
        some, instead = ([(group, int(draw.integers(2)), int(draw.integers(4))) for _ in range(mine)] for _ in range(2))
        assert moved(others, [*others, *some], weights, degree) <= mine * weights[group]
        assert moved([*others, *instead], [*others, *some], weights, degree) <= 2 * mine * weights[group]


def test_a_sum_as_one_number_moves_by_at_most_its_weight():
    draw = np.random.default_rng()
    for base in (-5, -1, 0, 4):
        reach = max(abs(base), abs(base + STEPS))
        for _ in range(60):
            size, weight = int(draw.integers(0, 6)), int(draw.integers(1, 30))
            rows = [(0, int(draw.integers(2)), int(draw.integers(4))) for _ in range(size + 1)]
            made = [
                signed(table(r, powers=1), np.array([weight, 0]), shape=(2,), base=base, reach=reach)
                for r in (rows, rows[:-1])
            ]
            assert np.abs(made[0] - made[1]).sum() <= weight


def test_the_parts_add_up_to_the_rows_and_their_moments():
    draw = np.random.default_rng(3)
    values = draw.integers(0, STEPS + 1, 500)
    rows = np.column_stack([np.zeros(500, dtype=int), np.zeros(500, dtype=int), values])
    low, middle, high = (
        shared_out(table(rows), np.array([10**9, 1]), shape=(2,), steps=STEPS, degree=2)[0] / 10**9
    ).tolist()
    u = values / STEPS
    assert low + middle + high == pytest.approx(500)
    assert high + middle / 2 == pytest.approx(u.sum())
    assert high == pytest.approx((u**2).sum())


def test_large_weights_times_large_sums_do_not_overflow():
    rows = np.array([0]), np.array([[0]]), np.array([[2**31, 2**31 * 2**29, 0]])
    made = shared_out(rows, np.array([10**6]), shape=(1,), steps=2**30, degree=1)
    assert made.tolist() == [[2**31 * 10**6 // 2, 2**31 * 10**6 // 2]]


@pytest.mark.parametrize(("rows", "neighbours"), [(1, "absence"), (3, "absence"), (2, "replacement")])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_price_is_the_epsilon_asked_for(rows, neighbours, count):
    terms = Terms(rows_per_person=rows, neighbours=neighbours)
    plan = plan_parts(terms, Bins.numbered(2), count, nano=NANO // 2)
    meter = Meter.under(terms.up_to(plan.charge))
    exact = Exact(np.zeros(2 * max(count, 1), dtype=np.int64), rows_per_person=rows)
    plan.run(lambda weights: exact, meter)
    spent = int(meter.guarantee().nano)
    assert NANO // 2 - terms.factor < spent <= NANO // 2
    assert spent == plan.charge.total
    assert plan.scale == pytest.approx(2 * terms.factor, rel=1e-6)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("count", [0, 2, 3])
def test_nobody_loses_more_than_their_budget_over_all_levels(independent, count):
    terms = Terms(rows_per_person=2, budgets=ROSTER)
    spent = np.zeros(2, dtype=np.int64)
    for share, groups in ((Fraction(1, 10), None), (Fraction(9, 10), Bins.numbered(4))):
        plan = plan_parts(terms, groups, count, nano=None, independent=independent, share=share)
        meter = Meter.under(terms.up_to(plan.charge))
        size = (1 if groups is None else 4) * max(count, 1)
        plan.run(lambda weights, size=size: Exact(np.zeros(size, dtype=np.int64), rows_per_person=2), meter)
        spent += meter.guarantee().people
    assert (spent <= ROSTER.levels).all()
    assert spent[0] > 0.9 * ROSTER.levels[0]


@pytest.mark.parametrize("count", [0, 2])
def test_the_noise_is_the_noise_that_is_priced(count):
    size = 2000 * max(count, 1)
    plan = OnePlan(NANO // 50, 1, count)
    noisy = plan.run(lambda weights: Exact(np.zeros(size, dtype=np.int64)), Meter(source=Seeded(4)))
    units = np.abs(noisy.parts).mean() / 50  # nearly exponential with mean 1
    assert abs(units - 1) < 5 / np.sqrt(size)
    assert abs(0.7 * units - 1) > 5 / np.sqrt(size)  # the same test rejects noise 30% too small


def test_an_epsilon_that_buys_nothing_is_refused():
    with pytest.raises(BudgetError, match="less than a nano-ε per row"):
        plan_parts(Terms(rows_per_person=10), None, 2, nano=5)
