"""Without a stated selectivity, plans follow the public condition; a wrong guess costs a bounded factor at both ends."""

import numpy as np
import pytest

from sfumato.bench.people_data import draw_budgets, roster
from sfumato.offers import Facts, Request
from sfumato.people import Question, offers, plan_offer
from sfumato.people.selectivity import LIMIT, loss, planned_share, shrunk
from sfumato.privacy import PersonBudgets
from sfumato.tables import Categorical, Numeric, Schema

SCHEMA = Schema(
    {
        **{f"x{i}": Numeric(0, 99, bins=10, integer=True) for i in range(4)},
        "pay": Numeric(0, 1000, bins=10),
        "sex": Categorical(["F", "M"]),
    }
)
NARROW = " and ".join(f"x{i} between 10 and 14" for i in range(4))  # covers 6e-6


def rosters():
    rng = np.random.default_rng(5)
    for profile in ("uniform", "normal truncated", "three tiers", "lognormal"):
        for n in (10_000, 200_000):
            yield roster(draw_budgets(profile, n, rng), decimals=4)[0]
    # One person grants ten thousand times what the others do.
    yield PersonBudgets.from_tiers({"many": (0.001, 50_000), "one": (10.0, 1)})


def affine(question, mechanism="affine"):
    return plan_offer(question, mechanism).plan


def error(plan, share):
    """Root mean square error of a linear plan where this share of people satisfies the condition."""
    return np.hypot(plan.spread(share * (1 - share)), np.sqrt(2 * np.square(plan.noise_scales).sum()))


@pytest.mark.parametrize("budgets", list(rosters()))
def test_a_wrong_guess_costs_a_bounded_factor(budgets):
    question = Question(budgets)
    for covered in (0.0, 1e-7, 1e-5, 1e-3, 0.05, 0.999):
        share = planned_share(question, covered)
        plan = affine(Question(budgets, selectivity=share))
        for true in (0.5, 0.3, 0.1, 0.01, 0.001):  # half of the people satisfy what covers a millionth of the domain
            if true < min(share, 1 - share):
                continue
            best = error(affine(Question(budgets, selectivity=true)), true)
            assert error(plan, true) <= 1.01 * LIMIT * best
    # The other end: nobody satisfies it. As good as a plan that knew, and never worse than the old one.
    narrow, old = (affine(Question(budgets, selectivity=s)) for s in (planned_share(question, 1e-7), None))
    knew = error(affine(Question(budgets, selectivity=1e-9)), 0.0)
    assert error(narrow, 0.0) <= error(old, 0.0)
    if budgets.groups > 2:
        assert error(narrow, 0.0) <= 1.1 * knew


def test_the_ratio_has_one_valley():
    """Why the two ends are the worst cases."""
    question = Question(PersonBudgets.from_tiers({"a": (0.01, 5400), "b": (0.2, 3700), "c": (1.0, 900)}))
    for planned in (1e-4, 1e-2, 0.3):
        ratios = [loss(question, planned, true) for true in np.geomspace(1e-6, 0.5, 60)]
        least = int(np.argmin(ratios))
        assert min(ratios) >= 1 - 1e-6
        assert (np.diff(ratios[: least + 1]) <= 1e-9).all()
        assert (np.diff(ratios[least:]) >= -1e-9).all()


def test_formula_and_plan_agree():
    budgets = PersonBudgets.from_tiers({"a": (0.01, 5400), "b": (0.2, 3700), "c": (1.0, 900)})
    plans = [affine(Question(budgets, selectivity=s)) for s in (0.001, 0.5)]
    assert loss(Question(budgets), 0.001) == pytest.approx(error(plans[0], 0.5) / error(plans[1], 0.5), rel=1e-3)


def test_shrunk_goes_both_ways():
    assert [shrunk(c) for c in (0.1, 0.5, 0.89)] == [None] * 3
    assert shrunk(1e-5) == pytest.approx(1 - shrunk(1 - 1e-5), rel=1e-9)
    shares = [shrunk(c) for c in np.geomspace(1e-9, 0.0999, 50)]
    assert (np.diff(shares) > 0).all()
    assert shares[-1] < 0.5


def ask(kind, where, **parameters):
    budgets = PersonBudgets.from_tiers({"strict": (0.01, 54_000), "standard": (0.2, 37_000), "open": (1.0, 9_000)})
    request = Request("asked", kind, where=where, parameters=parameters)
    return {o.mechanism: o for o in offers(request, Facts(SCHEMA, budgets=budgets))}


@pytest.mark.parametrize("mechanism", ["affine", "adaptive"])
def test_releases_plan_by_the_condition(mechanism):
    broad, narrow = (ask("count", where)[mechanism] for where in ("sex = 'F'", NARROW))
    assert broad.plan.question.selectivity is None  # as without a schema
    assert narrow.plan.question.selectivity < 0.01
    assert narrow.expected_rmse < broad.expected_rmse
    assert (narrow.charge.people >= broad.charge.people).all()
    assert "planned for" in narrow.note
    assert "planned for" not in broad.note
    stated = ask("count", NARROW, selectivity=0.5)[mechanism]
    assert "planned for" not in stated.note
    assert stated.plan.question.selectivity == 0.5


def test_sums_and_means_know_that_few_take_part():
    for kind in ("sum", "mean"):
        broad, narrow = (ask(kind, where, column="pay")["affine"].plan for where in ("sex = 'F'", NARROW))
        of = (lambda plan: plan.question) if kind == "sum" else (lambda plan: plan.centred.plan.question)
        assert of(narrow).variance < 0.05 * of(broad).variance
        assert of(broad).variance == of(broad).span ** 2 / 4


def test_what_a_share_of_zeros_can_vary():
    """The bound on the variance holds for every table of totals that are 0 but for so many people."""
    rng = np.random.default_rng(0)
    budgets = PersonBudgets.of([0.1] * 50 + [1.0] * 50)
    for low, high in ((0, 7), (-5, 5), (-2, 9)):
        for taking in (0.02, 0.3, 0.9):
            bound = Question(budgets, low=low, high=high, taking=taking).variance
            for _ in range(200):
                values = np.zeros(100)
                some = int(taking * 100)
                values[:some] = rng.choice([low, high], some) if rng.integers(2) else high
                assert values.var() <= bound + 1e-12
