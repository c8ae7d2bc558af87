"""Adaptive answers: within everybody's budget, precise under independence, bounded when consent follows the values."""

import json

import numpy as np
import pytest

from sfumato.people import ArrayReader, PairReader, Question, SumReader, plan_offer, preview_mean
from sfumato.people.estimate import Estimate
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.testing import replay

CLINIC = PersonBudgets.from_tiers({"strict": (0.005, 26_913), "standard": (0.1, 18_554), "open": (0.5, 4_533)})
LARGE = PersonBudgets.from_tiers({"strict": (0.01, 102_600), "standard": (0.2, 70_300), "open": (1.0, 17_100)})
SMALL = PersonBudgets.from_tiers({"strict": (0.3, 3), "standard": (0.8, 2), "open": (2, 1)})


class Counted:
    """A reader that is one integer per group: what an answer needs of a count, without the people."""

    def __init__(self, counts):
        self.counts = counts

    def weighted_sum(self, weights):
        return Exact(int(np.dot(weights, self.counts)))

    def group_sums(self):
        return Exact(np.asarray(self.counts))


def answers(budgets, rates, rng, draws, **question):
    offer = plan_offer(Question(budgets, **question), "adaptive")
    for _ in range(draws):
        counts = rng.binomial(budgets.counts, rates)
        source = Seeded(int(rng.integers(2**62)))
        yield offer.run(Counted(counts), Meter(budgets=budgets, limit=offer.charge, source=source)), int(counts.sum())


def rmse(found):
    return float(np.sqrt(np.mean([(estimate.value - true) ** 2 for estimate, true in found])))


@pytest.mark.parametrize(("budgets", "at_most", "worst"), [(CLINIC, 1.6, 1.3), (LARGE, 1.05, 1.12)])
def test_what_public_facts_promise(budgets, at_most, worst):
    question = Question(budgets, selectivity=0.4)
    plan = plan_offer(question, "adaptive").plan
    affine, minimum = (plan_offer(question, name).expected_rmse for name in ("affine", "minimum"))
    assert plan.expected_rmse <= at_most * affine
    assert plan.worst_rmse <= worst * minimum
    gaps = [plan.error_at(gap) for gap in np.linspace(0, 0.4, 200)]
    assert max(gaps) <= worst * minimum
    assert min(gaps) == pytest.approx(plan.expected_rmse)


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.05, 0.2])
@pytest.mark.parametrize("pattern", [(1, 0, 0), (0.5, 0, -0.5), (0, 0, 1)])
def test_the_error_is_bounded_and_the_first_interval_holds_at_every_gap(gap, pattern):
    rng = np.random.default_rng(11)
    found = list(answers(CLINIC, 0.4 - gap * np.array(pattern), rng, 250))
    minimum = plan_offer(Question(CLINIC), "minimum").expected_rmse
    # A hundred-odd draws leave a tenth of doubt; the bounds themselves are in the test above.
    assert rmse(found) <= (0.75 if gap == 0 else 1.45) * minimum
    held = np.mean([low <= true <= high for estimate, true in found for low, high in [estimate.interval()]])
    assert 0.90 <= held <= 0.99


def test_the_second_interval_holds_under_independence_only_and_is_narrower():
    rng = np.random.default_rng(12)

    def coverage(rates):
        found = list(answers(CLINIC, rates, rng, 200))
        return np.mean([low <= true <= high for e, true in found for low, high in [e.interval(independent=True)]])

    assert coverage(np.full(3, 0.4)) >= 0.90
    assert coverage(np.array([0.35, 0.4, 0.4])) <= 0.05
    estimate = next(answers(CLINIC, np.full(3, 0.4), rng, 1))[0]
    wide, narrow = estimate.interval(), estimate.interval(independent=True)
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("group", [0, 1, 2])
def test_nobody_loses_more_than_they_granted(group, rows):
    groups = np.repeat([0, 1, 2], SMALL.counts)
    offer = plan_offer(Question(Terms(rows_per_person=rows, budgets=SMALL), high=4, kind="sum"), "adaptive")
    values = np.full(groups.size, 4)
    less = values.copy()
    less[int(np.flatnonzero(groups == group)[0])] = 0
    tables = [SumReader.of(np.repeat(groups, rows), np.repeat(v, rows), group_count=3) for v in (values, less)]

    def run(reader, source):
        estimate = offer.run(reader, Meter(limit=offer.charge, budgets=SMALL, rows_per_person=rows, source=source))
        return json.dumps(estimate.to_dict(), default=str, sort_keys=True)

    found = replay(run, *tables)
    assert found.same_output
    assert 0 < found.loss <= offer.charge.people[group] <= SMALL.levels[group]


def test_both_sums_together_use_what_is_granted():
    charge = plan_offer(Question(CLINIC), "adaptive").charge.people
    assert charge[0] == CLINIC.levels[0]
    assert 0 < charge[1] <= CLINIC.levels[1]


def test_budgets_alike_leave_one_unbiased_sum():
    alike = PersonBudgets.of([0.5] * 100)
    offer = plan_offer(Question(alike), "adaptive")
    assert offer.plan.keen is None
    assert offer.expected_rmse == pytest.approx(plan_offer(Question(alike), "minimum").expected_rmse, rel=1e-6)
    reader = ArrayReader.of(np.zeros(100, dtype=int), np.arange(100) % 2)
    estimate = offer.run(reader, Meter(budgets=alike, source=Seeded(1)))
    assert estimate.interval() == estimate.interval(independent=True)


def test_tiny_budgets_of_a_few_do_not_drown_the_answer():
    budgets = PersonBudgets.of([1e-6] * 3 + [0.5] * 5000 + [1.0] * 2000)
    offer = plan_offer(Question(budgets), "adaptive")
    assert offer.plan.worst_rmse < 20  # Minimum would be off by more than a million
    assert plan_offer(Question(budgets), "minimum").expected_rmse > 1e6


def test_means_have_both_intervals_and_come_back_from_their_record():
    rng = np.random.default_rng(13)
    budgets = PersonBudgets.from_tiers({"strict": (0.05, 4000), "open": (1.0, 4000)})
    groups = np.repeat([0, 1], 4000)
    values = rng.integers(0, 1001, 8000)
    offer = next(o for o in preview_mean(budgets, low=0, high=100) if o.mechanism == "adaptive")
    steps = offer.plan.centred.plan.question.high
    centred = np.rint((values / 1000 * 2 - 1) * steps).astype(int)
    reader = PairReader(centred=SumReader.of(groups, centred), ones=ArrayReader.of(groups, np.ones(8000, dtype=int)))
    estimate = offer.run(reader, Meter(limit=offer.charge, budgets=budgets, source=Seeded(3)))
    true = values.mean() / 10
    low, high = estimate.interval(0.999)
    assert low <= true <= high
    assert abs(estimate.value - true) < 5
    assert estimate.guarantee.groups is not None
    assert offer.charge.people[0] <= budgets.levels[0]
    again = Estimate.from_dict(json.loads(json.dumps(estimate.to_dict(), default=str)))
    assert again.interval() == pytest.approx(estimate.interval(), rel=1e-3)
