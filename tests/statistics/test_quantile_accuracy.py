"""How far off quantiles are: intervals hold for any shape, previews say what simulations show, halving pays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.privacy import Exact, Meter, Nano, PersonBudgets, Seeded, Terms
from sfumato.statistics.quantile_plan import plan_choice, plan_weighted

DRAW = np.random.default_rng(8)
N, SIZE = 4000, 400
SHAPES = {
    "even": DRAW.integers(0, SIZE, N),
    "bell": np.clip(DRAW.normal(200, 30, N), 0, SIZE - 1).astype(int),
    "long tail": np.clip(np.exp(DRAW.normal(3, 1.1, N)), 0, SIZE - 1).astype(int),
    "few points": DRAW.choice([0, 40, 50, 300], N, p=[0.3, 0.35, 0.2, 0.15]),
    "two lumps": np.concatenate([DRAW.integers(10, 30, N // 2), DRAW.integers(350, 380, N // 2)]),
}


def true_quantiles(values, shares):
    ordered = np.sort(values)
    return np.array([ordered[max(int(np.ceil(q * values.size)) - 1, 0)] for q in shares])


def runs(values, shares, epsilon, interval, times, size=SIZE, seed=0):
    counts = np.bincount(values, minlength=size)
    plan = plan_choice(Terms(), tuple(map(Fraction, shares)), size, nano=Nano(int(epsilon * 1e9)), interval=interval)
    return plan, [plan.run(Exact(counts), Meter(source=Seeded(seed + i))) for i in range(times)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("shares", "epsilon"), [(("1/2",), 0.2), (("1/10", "1/2", "9/10"), 1.0), (("1/50",), 1.0)])
def test_intervals_hold_the_quantile_of_any_shape(shape, shares, epsilon):
    truth = true_quantiles(SHAPES[shape], [float(Fraction(q)) for q in shares])
    _, found = runs(SHAPES[shape], shares, epsilon, 0.2, 40, seed=sum(map(ord, shape)))
    held = np.array([(f.ends[:, 0] <= truth) & (truth <= f.ends[:, 1]) for f in found])
    assert held.mean() >= 0.94
    assert np.mean([np.ptp(f.ends, axis=1).mean() for f in found]) < SIZE - 1  # and are not always the whole range


def test_an_interval_is_one_point_where_many_records_share_a_value():
    _, found = runs(SHAPES["few points"], ("1/2",), 2.0, 0.2, 20)
    assert np.mean([f.ends.tolist() == [[40, 40]] for f in found]) > 0.9


@pytest.mark.parametrize("shares", [("1/2",), ("9/10",), ("1/10", "1/4", "1/2", "3/4", "9/10")])
def test_the_expected_rank_error_is_what_simulations_show(shares):
    values = np.arange(6000)  # spread out: one record at every point
    plan, found = runs(values, shares, 0.1, 0.0, 250 if len(shares) == 1 else 160, size=values.size)
    targets = np.array([float(Fraction(q)) for q in shares]) * values.size
    errors = np.array([f.points + 0.5 for f in found]) - targets
    assert np.sqrt((errors**2).mean()) == pytest.approx(plan.expected_rmse, rel=0.2)


def test_the_share_beyond_an_end_holds_as_often_as_it_says():
    values = SHAPES["long tail"]
    _, low = runs(values, ("1/20",), 0.5, 0.3, 100)
    _, high = runs(values, ("19/20",), 0.5, 0.3, 100)
    below = [(values < f.points[0]).mean() <= f.around.share_below(0, 0.05) for f in low]
    above = [(values > f.points[0]).mean() <= f.around.share_above(0, 0.05) for f in high]
    assert np.mean(below + above) >= 0.9
    assert np.mean([f.around.share_above(0, 0.05) for f in high]) < 0.2


def test_halving_is_better_than_a_choice_each():
    values, shares = np.arange(6000), [Fraction(i, 10) for i in range(1, 10)]
    _, halved = runs(values, shares, 0.5, 0.0, 12, size=values.size)
    alone = [runs(values, (q,), 0.5 / len(shares), 0.0, 12, size=values.size)[1] for q in shares]
    truth = np.array([float(q) for q in shares]) * values.size
    by_halving = np.abs(np.array([f.points for f in halved]) - truth).mean()
    each_alone = np.abs(np.array([[f.points[0] for f in found] for found in alone]).T - truth).mean()
    assert by_halving < 0.75 * each_alone


def test_large_points_are_divided_and_not_lost():
    """Half of all records at one point: without dividing it the quantiles beside it would be those of a smaller table."""
    values = np.concatenate([np.arange(100).repeat(10), np.full(2000, 100), np.arange(101, 201).repeat(10)])
    shares = ("1/8", "3/8", "1/2", "5/8", "7/8")
    _, found = runs(values, shares, 8.0, 0.0, 20, size=201)
    truth = true_quantiles(values, [float(Fraction(q)) for q in shares])
    assert np.abs(np.array([f.points for f in found]) - truth).max() <= 3


# --- people with budgets of their own --------------------------------------------------------------------------------

ROSTER = PersonBudgets.from_tiers({"strict": (0.05, 2000), "open": (1.0, 2000)})


def people(gap: int) -> np.ndarray:
    """Counts per tier and point; the stricter people's values are lower by `gap`."""
    strict = np.clip(DRAW.normal(200 - gap, 40, 2000), 0, SIZE - 1).astype(int)
    free = np.clip(DRAW.normal(200, 40, 2000), 0, SIZE - 1).astype(int)
    return np.stack([np.bincount(v, minlength=SIZE) for v in (strict, free)])


def personal_runs(plan, tables, times):
    def one(seed):
        meter = Meter(limit=plan.charge, budgets=ROSTER, source=Seeded(seed))
        return plan.run(Exact(tables).map(lambda counts: plan.weights @ counts), meter)

    return [one(seed) for seed in range(times)]


@pytest.mark.parametrize("gap", [0, 60])
def test_the_default_holds_however_budgets_and_values_go_together(gap):
    tables = people(gap)
    truth = true_quantiles(np.repeat(np.arange(SIZE), tables.sum(axis=0)), [0.5])
    plan = plan_choice(Terms(budgets=ROSTER), (Fraction(1, 2),), SIZE, nano=None, interval=0.2)
    found = personal_runs(plan, tables, 40)
    assert np.mean([f.ends[0, 0] <= truth[0] <= f.ends[0, 1] for f in found]) >= 0.94
    assert np.median([f.points[0] for f in found]) == pytest.approx(truth[0], abs=4)


def test_weights_are_better_where_budgets_are_independent_and_wrong_where_they_are_not():
    shares = (Fraction(1, 2),)
    free = plan_weighted(Terms(budgets=ROSTER), shares, SIZE, interval=0.2)
    safe = plan_choice(Terms(budgets=ROSTER), shares, SIZE, nano=None, interval=0.2)
    assert free.expected_rmse < safe.expected_rmse
    assert free.assumes_independence
    assert not safe.assumes_independence
    assert free.error_at(0.2) > 3 * free.expected_rmse
    tables = people(60)
    truth = true_quantiles(np.repeat(np.arange(SIZE), tables.sum(axis=0)), [0.5])[0]
    assert np.median([f.points[0] for f in personal_runs(free, tables, 30)]) > truth + 10  # the median of the generous


def test_people_below_the_cap_are_in_the_interval():
    """One person with almost nothing must not cost all others their precision; the interval says what they may do."""
    roster = PersonBudgets.from_tiers({"tiny": (0.001, 3), "open": (1.0, 4000)})
    plan = plan_choice(Terms(budgets=roster), (Fraction(1, 2),), SIZE, nano=None, interval=0.2)
    assert plan.weights.tolist()[1] == 100
    assert plan.weights[0] < 100
    assert 0 < plan.bias_bound <= 3
    assert plan.unseen.weight == pytest.approx(100 * 3, rel=0.02)


def test_ties_are_where_the_usual_score_is_off_at_any_epsilon():
    """More than half of all records at 0, the rest far away: the median is 0, and OpenDP's score prefers an empty point."""
    from sfumato.bench import statistics_quantiles as bench

    column = (np.repeat([0, 1, 30], [5500, 500, 4000]), 0, 40)
    ours, theirs = (bench._error(ask(column, (0.5,), 5.0, 5), column, (0.5,)) for ask in (bench._ours, bench._opendp))
    assert ours == 0
    assert theirs >= 1
    assert min(bench.coverage({"ties": column}, 2, lambda _: None).values()) > 0.9
