"""What one record can do to a quantile: scores, divisions and whole releases on tiny tables, against what is paid."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.privacy import Charge, Exact, Meter, Nano, PersonBudgets, Seeded, Terms
from sfumato.statistics.quantile_plan import plan_choice, plan_weighted
from sfumato.statistics.ranks import PARTS, _unit, above, below, choose_point, part_scores, rank_scores, spread_of
from sfumato.testing import replay

SHARES = [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1, 100), Fraction(123, 1000)]
TABLES = [np.array(c) for c in itertools.product(range(4), repeat=4)]


def with_one(counts: np.ndarray, point: int, weight: int = 1) -> np.ndarray:
    return counts + weight * (np.arange(counts.size) == point)


@pytest.mark.parametrize("q", SHARES)
def test_the_spread_is_what_one_record_can_do_and_no_more(q):
    moved = [
        np.ptp(rank_scores(with_one(counts, point), q) - rank_scores(counts, q))
        for counts in TABLES
        for point in range(counts.size)
    ]
    assert max(moved) <= spread_of(q)
    first = 100 * q.numerator - 100  # points below, at and above the quantile
    wide = np.array([first, 0, 200, 0, 100 * q.denominator - first - 200])
    reached = max(np.ptp(rank_scores(with_one(wide, point), q) - rank_scores(wide, q)) for point in range(5))
    assert reached == pytest.approx(spread_of(q))


@pytest.mark.parametrize("q", SHARES)
def test_replacing_a_record_moves_scores_by_twice_the_stated_spread(q):
    moved = [
        np.ptp(rank_scores(with_one(counts, a), q) - rank_scores(with_one(counts, b), q))
        for counts in TABLES
        for a, b in itertools.permutations(range(4), 2)
    ]
    assert max(moved) <= 2 * spread_of(q, replaced=True)
    if Fraction(1, 10) < q < Fraction(9, 10):  # tables this small have no point below the extreme ones
        assert max(moved) == pytest.approx(2 * spread_of(q, replaced=True))  # so a smaller spread would be wrong


@pytest.mark.parametrize("q", SHARES)
def test_a_division_is_chosen_at_the_same_spread(q):
    for counts in TABLES[::5]:
        for point, place in itertools.product(range(4), repeat=2):
            change = part_scores(with_one(counts, place), q, point) - part_scores(counts, q, point)
            assert np.ptp(change) <= spread_of(q)


def test_a_divided_record_counts_once_in_all():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts, weight = rng.integers(0, 50, 5), int(rng.integers(1, 20))
        point, place, part = int(rng.integers(5)), int(rng.integers(5)), int(rng.integers(PARTS + 1))
        more = with_one(counts, place, weight)
        sides = [cut(more, point, part).astype(int) - cut(counts, point, part) for cut in (below, above)]
        assert all((side >= 0).all() for side in sides)
        assert sum(int(side.sum()) for side in sides) == weight


def test_the_score_knows_ties():
    """A third of all records at one point: the median is there, and no empty point beside it scores as high."""
    counts = np.array([40, 0, 55, 0, 5])
    assert int(np.argmax(rank_scores(counts, Fraction(1, 2)))) == 2
    assert int(np.argmax(rank_scores(np.array([55, 0, 10, 35]), Fraction(1, 2)))) == 0  # -|A - B| takes point 1
    assert (rank_scores(counts, Fraction(1, 2)) * _unit(Fraction(1, 2)) / 2).tolist() == [-10, -10, 10, -45, -45]


# --- whole releases --------------------------------------------------------------------------------------------------


def plan_of(targets, terms):
    return plan_choice(terms, tuple(map(Fraction, targets)), 6, nano=Nano(10**9), interval=0.2)


def released(plan, rows=1, neighbours="absence"):
    def run(counts, source):
        meter = Meter(limit=plan.charge, rows_per_person=rows, neighbours=neighbours, source=source)
        found = plan.run(Exact(counts, rows_per_person=rows), meter)
        return [found.points, found.ends, found.around.cells]

    return run


QUARTERS = ("1/4", "1/2", "3/4")


@pytest.mark.parametrize("targets", [("1/2",), ("1/10", "9/10"), QUARTERS, ("1/10", "1/5", "1/2", "7/10", "9/10")])
@pytest.mark.parametrize(("rows", "neighbours"), [(1, "absence"), (3, "absence"), (1, "replacement")])
def test_no_answer_tells_more_than_was_paid(targets, rows, neighbours):
    rng = np.random.default_rng(len(targets) + rows)
    terms = Terms(rows_per_person=rows, neighbours=neighbours, person="who" if rows > 1 else None)
    plan = plan_of(targets, terms)
    largest = 0.0
    for seed in range(12):
        counts = rng.integers(0, 30, 6)
        there = counts
        for place in rng.integers(0, 6, rows):
            there = with_one(there, int(place))
        here = counts if neighbours == "absence" else with_one(counts, int(rng.integers(6)))
        found = replay(released(plan, rows, neighbours), here, there, source=seed)
        assert found.same_output
        assert all(call.loss <= call.charged for call in found.calls)
        assert found.loss <= plan.charge.total
        largest = max(largest, found.loss)
    assert largest > 0.15 * plan.charge.total  # the test looks at something


@pytest.mark.parametrize("make", ["choice", "weighted"])
@pytest.mark.parametrize("targets", [("1/2",), QUARTERS])
def test_everybody_pays_their_own_budget_at_most(make, targets):
    roster = PersonBudgets.from_tiers({"strict": (0.1, 40), "standard": (0.5, 40), "open": (1.0, 20)})
    terms, shares = Terms(budgets=roster), tuple(map(Fraction, targets))
    if make == "choice":
        plan = plan_choice(terms, shares, 6, nano=None, interval=0.2)
    else:
        plan = plan_weighted(terms, shares, 6, interval=0.2)
    assert (plan.charge.people <= roster.levels).all()

    def run(groups, source):
        meter = Meter(limit=plan.charge, budgets=roster, source=source)
        found = plan.run(Exact(groups).map(lambda counts: plan.weights @ counts), meter)
        return [found.points, found.ends, found.around.cells]

    rng = np.random.default_rng(3)
    for seed in range(9):
        table, group = rng.integers(0, 20, (3, 6)), seed % 3
        more = table.copy()
        more[group, rng.integers(6)] += 1
        found = replay(run, table, more, source=seed)
        assert found.same_output
        assert found.loss <= plan.charge.people[group]
        assert all(call.loss <= call.here.charged[group] for call in found.calls)


def test_a_record_that_may_leave_for_another_branch_pays_half_on_either_side():
    def run(counts, source):
        meter = Meter(neighbours="replacement", source=source)
        return choose_point(meter, Exact(counts), Fraction(9, 10), nano=10**9, label="quantile")

    counts = np.array([400, 0, 100, 0, 10])
    found = [replay(run, counts, with_one(counts, place)).calls[0] for place in range(5)]
    assert max(call.loss for call in found) == pytest.approx(10**9, rel=1e-6)
    assert found[0].charged == pytest.approx(2 * 10**9, rel=1e-6)


def test_the_price_is_reached():
    """One choice and nothing else: the worst record loses all of it, so no smaller price would do."""
    plan = plan_choice(Terms(), (Fraction(1, 2),), 5, nano=Nano(10**9), interval=0.0)

    def run(counts, source):
        return plan.run(Exact(counts), Meter(limit=Charge(Nano(10**9)), source=source)).points

    counts = np.array([30, 0, 0, 0, 30])
    losses = [replay(run, counts, with_one(counts, place)).loss for place in range(5)]
    assert max(losses) == pytest.approx(10**9, rel=1e-6)


# --- the size of the noise -------------------------------------------------------------------------------------------


def exact_law(counts: np.ndarray, q: Fraction, nano: int) -> np.ndarray:
    """Permute-and-flip, as the noisy maximum with exponential noise draws it: ``p_i ∫ Π (1 - p_j t) dt``."""
    scores = rank_scores(counts, q) * (nano / 1e9 / spread_of(q))
    p = np.exp(scores - scores.max())
    law = []
    for i in range(p.size):
        inner = np.poly1d([1.0])
        for j in range(p.size):
            if j != i:
                inner = inner * np.poly1d([-p[j], 1.0])
        law.append(p[i] * (inner.integ()(1.0)))
    return np.array(law)


def chi_square(counts, q, drawn_at, nano, draws=1500):
    seen = np.zeros(counts.size)
    meter, exact = Meter(source=Seeded(4)), Exact(counts)
    for _ in range(draws):
        seen[choose_point(meter, exact, q, nano=drawn_at, label="median")] += 1
    expected = exact_law(counts, q, nano) * draws
    return float(((seen - expected) ** 2 / expected).sum())


def test_the_noise_is_as_large_as_its_price_says():
    counts, q, nano = np.array([5, 3, 4, 2]), Fraction(2, 5), 3 * 10**8
    assert exact_law(counts, q, nano).sum() == pytest.approx(1)
    assert chi_square(counts, q, nano, nano) < 16.3  # 0.999 of three degrees of freedom
    assert chi_square(counts, q, int(nano * 1.43), nano) > 16.3  # noise that is 30% too small
