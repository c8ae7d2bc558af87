"""Optimal partitions against brute force; rounds never pass anybody's budget."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.people import Question, plan_offer, privacy_aware, round_down, utility_based
from sfumato.people.mechanisms.partitioned import least_squares_shares, privacy_aware_plan, utility_plan
from sfumato.people.monge import best_cuts
from sfumato.people.partition import count_precision, dominated, erm_precision, privacy_aware_all
from sfumato.privacy import PersonBudgets
from sfumato.privacy.terms import Terms

rosters = st.dictionaries(st.integers(1, 80), st.integers(1, 5), min_size=1, max_size=8)


def _roster(levels):
    pairs = sorted(levels.items())
    return PersonBudgets(np.array([k * 10**7 for k, _ in pairs]), np.array([c for _, c in pairs]))


def _all_cuts(groups, parts):
    for inner in combinations(range(1, groups), parts - 1):
        yield (0, *inner, groups)


def _waste(budgets, cuts):
    e, c = budgets.epsilons, budgets.counts
    return sum(float((c[a:b] * (e[a:b] - e[a]) ** 2).sum()) for a, b in pairwise(cuts))


@given(rosters, st.integers(1, 5), st.integers(1, 6))
@settings(max_examples=110, deadline=None)
def test_least_waste_equals_brute_force(levels, parts, minimum):
    budgets = _roster(levels)
    found = best_cuts(budgets.epsilons, budgets.counts, parts, minimum)
    for k in range(1, parts + 1):
        fits = [
            cuts
            for cuts in _all_cuts(budgets.groups, k)
            if all(budgets.counts[a:b].sum() >= minimum for a, b in pairwise(cuts))
        ]
        if not fits:
            assert len(found) < k
            continue
        cuts = found[k - 1]
        assert all(budgets.counts[a:b].sum() >= minimum for a, b in pairwise(cuts))
        assert _waste(budgets, cuts) == pytest.approx(min(_waste(budgets, c) for c in fits), abs=1e-12)


@given(rosters, st.integers(1, 4), st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_utility_equals_brute_force(levels, parts, minimum, free):
    budgets = _roster(levels)
    utility = count_precision()

    def worth(cuts):
        sizes = np.array([budgets.counts[a:b].sum() for a, b in pairwise(cuts)], dtype=float)
        return float(utility(sizes, budgets.epsilons[list(cuts[:-1])]).sum())

    counts = range(1, budgets.groups + 1) if free else [parts]
    fits = [
        cuts
        for k in counts
        for cuts in _all_cuts(budgets.groups, k)
        if all(budgets.counts[a:b].sum() >= minimum for a, b in pairwise(cuts))
    ]
    if not fits:
        with pytest.raises(InputError, match="do not fit"):
            utility_based(budgets, utility, parts=None if free else parts, minimum_size=minimum)
        return
    found = utility_based(budgets, utility, parts=None if free else parts, minimum_size=minimum)
    assert worth(tuple(found.cuts)) == pytest.approx(max(map(worth, fits)), rel=1e-12)


def test_large_rosters_agree_with_the_plain_recursion():
    rng = np.random.default_rng(5)
    for draw in (rng.uniform(0.01, 0.1, 3000), np.clip(rng.normal(0.1, 1, 3000), 0.01, 1), rng.exponential(0.1, 3000)):
        budgets = PersonBudgets.of(np.maximum(draw, 0.001))
        e, c = budgets.epsilons, budgets.counts.astype(float)
        heads, s1, s2 = (np.concatenate([[0.0], np.cumsum(c * e**p)]) for p in range(3))
        value = np.full(e.size + 1, np.inf)
        value[0] = 0.0
        for _ in range(6):
            after = np.full(e.size + 1, np.inf)
            for b in range(1, e.size + 1):
                a = np.arange(b)
                cost = s2[b] - s2[a] - 2 * e[a] * (s1[b] - s1[a]) + e[a] ** 2 * (heads[b] - heads[a])
                after[b] = (value[:b] + cost).min()
            value = after
        assert privacy_aware(budgets, parts=6).waste == pytest.approx(value[-1], rel=1e-9)


def test_rounding_goes_down_and_keeps_tiny_budgets():
    budgets = PersonBudgets.of([0.00005, 0.12345678, 0.12349])
    coarse, group = round_down(budgets, decimals=4)
    assert (coarse.levels[group] <= budgets.levels).all()
    assert coarse.levels.tolist() == [50_000, 123_400_000]


def test_more_parts_waste_less_and_too_many_are_refused():
    budgets = PersonBudgets.of(np.linspace(0.01, 1, 40))
    waste = [p.waste for p in privacy_aware_all(budgets, parts=10)]
    assert all(b <= a for a, b in pairwise(waste))
    with pytest.raises(InputError, match="do not fit"):
        privacy_aware(budgets, parts=5, minimum_size=10)
    with pytest.raises(InputError, match="never NaN"):
        utility_based(budgets, lambda n, e: n * np.nan)


@pytest.mark.parametrize("plan", [utility_plan, privacy_aware_plan])
@given(rosters, st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_rounds_never_pass_a_budget_and_leave_less_each_time(plan, levels, rounds, reach):
    budgets = _roster(levels)
    made = plan(Question(budgets, high=reach), rounds=rounds)
    used = np.zeros(budgets.groups, dtype=np.int64)
    before = float((budgets.counts * budgets.epsilons**2).sum())
    for one in made.rounds:
        used += one.weights * reach
        left = float((budgets.counts * ((budgets.levels - used) / 1e9) ** 2).sum())
        assert left < before
        before = left
    assert (used <= budgets.levels).all()
    assert (made.charge.people == used).all()


def test_rounds_converge_far_below_the_papers_bound():
    budgets = PersonBudgets.of(np.random.default_rng(3).uniform(0.01, 0.1, 5000))
    plan = privacy_aware_plan(Question(budgets), parts=10, rounds=3)
    assert plan.charge.people is not None
    left = (budgets.levels - plan.charge.people) / 1e9
    share = (budgets.counts * left**2).sum() / (budgets.counts * budgets.epsilons**2).sum()
    assert share < 1e-4


def test_more_rounds_do_not_hurt():
    budgets = PersonBudgets.of(np.random.default_rng(4).uniform(0.01, 0.1, 5000))
    errors = [utility_plan(Question(budgets), rounds=t).expected_rmse for t in (1, 2, 3)]
    assert errors[1] <= errors[0] * 1.001
    assert errors[2] <= errors[1] * 1.001


def test_drop_out_rule_and_pluggable_utility():
    budgets = PersonBudgets.from_tiers({"a": (0.01, 100), "b": (0.2, 100), "c": (1.0, 100)})
    kept = privacy_aware_plan(Question(budgets), parts=3, drop_dominated=True)
    assert kept.charge.people is not None
    assert kept.charge.people.tolist() == [0, 0, 10**9]
    assert dominated(np.array([5, 9]), np.array([0.1, 0.1])).tolist() == [False, False]
    for utility in (erm_precision(10), lambda n, e: n * e):
        assert utility_plan(Question(budgets), utility=utility).expected_rmse > 0


def test_shares_minimise_the_variance_and_are_not_negative():
    rng = np.random.default_rng(6)
    for _ in range(20):
        root = rng.normal(size=(5, 5))
        covariance = root @ root.T + 0.1 * np.eye(5)
        share = least_squares_shares(covariance)
        assert share.sum() == pytest.approx(1)
        assert (share >= 0).all()
        best = share @ covariance @ share
        for _ in range(50):
            other = rng.dirichlet(np.ones(5))
            if (np.linalg.solve(covariance, np.ones(5)) >= 0).all():
                assert best <= other @ covariance @ other + 1e-12


TIERS = PersonBudgets.from_tiers({"strict": ("0.1", 2000), "middle": ("0.5", 5000), "open": ("1", 3000)})


def test_parts_can_be_added_up_and_are_then_right_for_any_data():
    added = plan_offer(Question(Terms(budgets=TIERS)), "partition", ensemble="sum")
    combined = plan_offer(Question(Terms(budgets=TIERS)), "partition")
    assert added.bias_bound == 0
    assert combined.bias_bound > 0
    minimum = plan_offer(Question(Terms(budgets=TIERS)), "minimum")
    assert combined.expected_rmse < minimum.expected_rmse < added.expected_rmse
    with pytest.raises(InputError, match="leave out rounds and drop_dominated"):
        plan_offer(Question(Terms(budgets=TIERS)), "privacy-aware", ensemble="sum", rounds=2)


def test_the_utility_of_the_paper_can_be_asked_for_and_loses():
    question = Question(Terms(budgets=TIERS))
    ours, theirs = plan_offer(question, "partition"), plan_offer(question, "partition", utility="published")
    assert theirs.plan.parameters["parts"] == [3]  # a variance that is made as large as can be: the smallest parts there are
    assert ours.expected_rmse < theirs.expected_rmse
    assert plan_offer(question, "partition", utility="precision").expected_rmse == ours.expected_rmse
