"""Error formulas against simulation, coverage of intervals, warnings, and the shape of results."""

import json

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.offers import choose
from sfumato.people import (
    ArrayReader,
    PairReader,
    Question,
    count,
    mean,
    plan_offer,
    preview_count,
    preview_mean,
    preview_sum,
    total,
)
from sfumato.people.error_law import LaplacePlusNormal
from sfumato.privacy import Meter, PersonBudgets, Seeded, Terms

N = 3000


def _people(seed, kind="uniform"):
    rng = np.random.default_rng(seed)
    e = rng.uniform(0.01, 0.1, N) if kind == "uniform" else rng.choice([0.01, 0.2, 1.0], N, p=[0.54, 0.37, 0.09])
    budgets = PersonBudgets.of(e, decimals=3)
    return rng, budgets, np.repeat(np.arange(budgets.groups), budgets.counts)


def _errors(option, budgets, groups, rng, share, runs):
    out = []
    for run in range(runs):
        x = (rng.random(groups.size) < share).astype(int)
        reader = ArrayReader.of(groups, x, group_count=budgets.groups)
        estimate = option.run(reader, Meter(limit=option.charge, budgets=budgets, source=Seeded(1000 + run)))
        low, high = estimate.interval(0.9)
        out.append((estimate.value - x.sum(), low <= x.sum() <= high))
    return np.array(out)


@pytest.mark.parametrize("kind", ["uniform", "tiers"])
@pytest.mark.parametrize(
    "mechanism", ["affine", "minimum", "threshold", "stretching", "sampling", "partition", "privacy-aware", "exponential"]
)
def test_expected_error_and_coverage_match_simulation(kind, mechanism):
    rng, budgets, groups = _people(1, kind)
    option = plan_offer(Question(budgets, selectivity=0.3), mechanism)
    found = _errors(option, budgets, groups, rng, 0.3, 250)
    rmse = np.sqrt((found[:, 0] ** 2).mean())
    # A relative standard error of about 7% (Laplace): 4 of them, and 30% less noise is outside.
    slack = 1.0 if mechanism != "exponential" else 1.25  # softmax bounds the noisy maximum from above
    assert 0.75 / slack * option.expected_rmse < rmse < 1.3 * option.expected_rmse
    assert found[:, 1].mean() > 0.84


def test_expected_error_rejects_noise_thirty_percent_too_small():
    rng, budgets, groups = _people(2)
    option = plan_offer(Question(budgets), "minimum")
    errors = _errors(option, budgets, groups, rng, 0.3, 250)[:, 0] * 0.7
    assert np.sqrt((errors**2).mean()) < 0.75 * option.expected_rmse * 1.06
    law = LaplacePlusNormal((1.0,))
    assert law.coverage(0.7 * law.halfwidth(0.95)) < 0.90


def test_robust_holds_when_budgets_and_values_go_together():
    _rng, budgets, groups = _people(3, "tiers")
    option = plan_offer(Question(budgets), "robust")
    x = (budgets.epsilons[groups] > 0.1).astype(int)  # the worst kind of data: only generous people are counted
    reader = ArrayReader.of(groups, x, group_count=budgets.groups)
    inside, biased = 0, []
    for run in range(100):
        meter = Meter(limit=option.charge, budgets=budgets, source=Seeded(run))
        low, high = option.run(reader, meter).interval(0.9)
        inside += low <= x.sum() <= high
        biased.append(count(reader, budgets, mechanism="affine", source=Seeded(run)).value - x.sum())
    assert inside >= 84
    assert abs(np.mean(biased)) > 500  # affine is far off on such data, as its warning says


def test_affine_is_never_beaten_by_another_linear_mechanism():
    for seed, kind in ((1, "uniform"), (2, "tiers")):
        _, budgets, _ = _people(seed, kind)
        options = {o.mechanism: o for o in preview_count(budgets)}
        best = min(o.expected_rmse for o in options.values())
        assert options["affine"].expected_rmse <= 1.0001 * best


def test_preview_is_sorted_and_priced_and_auto_takes_the_best():
    _, budgets, groups = _people(4, "tiers")
    options = preview_count(budgets, selectivity=0.2, independent=True)
    errors = [o.expected_rmse for o in options]
    assert errors[1:] == sorted(errors[1:])
    assert errors[0] <= 1.011 * min(errors)
    assert {o.mechanism for o in options} >= {"affine", "minimum", "sampling", "partition", "robust", "exponential"}
    chosen = choose(options)
    assert chosen.expected_rmse <= 1.011 * errors[0]
    for option in options:
        assert option.note
        assert (option.charge.people <= budgets.levels).all()
        meter = Meter(limit=option.charge, budgets=budgets)
        reader = ArrayReader.of(groups, np.ones(groups.size, dtype=int), group_count=budgets.groups)
        estimate = option.run(reader, meter)
        assert estimate.guarantee.private
        assert (meter.spent().people == option.charge.people).all()
    with pytest.raises(InputError, match="applicable here: auto"):
        choose(options, "magic")


def test_equal_budgets_are_an_ordinary_count_without_a_warning():
    budgets = PersonBudgets.of(np.full(500, 0.5))
    reader = ArrayReader.of(np.zeros(500, dtype=int), np.arange(500) % 2, group_count=1)
    estimate = count(reader, budgets, source=Seeded(1))
    assert estimate.warnings == ()
    assert estimate.bias_bound == 0
    assert estimate.expected_rmse == pytest.approx(np.sqrt(2) / 0.5, rel=1e-3)
    assert estimate.interval() == estimate.interval(worst_case=True)


def test_warning_and_free_test_of_the_assumption():
    rng, budgets, groups = _people(5, "tiers")
    tiers = np.searchsorted([0.05, 0.5], budgets.epsilons[groups])
    related = (rng.random(N) < np.array([0.2, 0.8, 0.8])[tiers]).astype(int)
    unrelated = (rng.random(N) < 0.4).astype(int)

    def run(x, seed):
        reader = ArrayReader.of(groups, x, group_count=budgets.groups)
        return count(reader, budgets, mechanism="partition", source=Seeded(seed))

    found = [run(related, s) for s in range(40)]
    assert np.mean([e.details["heterogeneity_p_value"] < 0.05 for e in found]) > 0.7
    assert any("seem to go together" in w for e in found for w in e.warnings)
    unbiased = np.mean([e.details["unbiased_value"] for e in found])
    spread = found[0].details["unbiased_rmse"] / np.sqrt(40)
    assert abs(unbiased - related.sum()) < 4 * spread
    calm = [run(unrelated, 100 + s).details["heterogeneity_p_value"] < 0.05 for s in range(60)]
    assert np.mean(calm) < 0.15
    assert "independent" in run(unrelated, 1).warnings[0]


@pytest.mark.parametrize("mechanism", ["affine", "minimum", "sampling", "partition"])
def test_sums_and_means(mechanism):
    rng, budgets, groups = _people(6)
    values = rng.integers(0, 21, N)
    reader = ArrayReader.of(groups, values, high=20, group_count=budgets.groups)
    option = {o.mechanism: o for o in preview_sum(budgets, high=20)}[mechanism]
    errors = [_run(option, reader, budgets, s).value - values.sum() for s in range(60)]
    assert 0.4 * option.expected_rmse < np.sqrt(np.mean(np.square(errors))) < 1.4 * option.expected_rmse
    assert total(reader, budgets, high=20, mechanism=mechanism, source=Seeded(0)).value - values.sum() == errors[0]

    keep = rng.random(N) < 0.6
    pair = PairReader(
        ArrayReader.of(groups, np.where(keep, 2 * values - 20, 0), low=-20, high=20, group_count=budgets.groups),
        ArrayReader.of(groups, keep.astype(int), group_count=budgets.groups),
    )
    truth = values[keep].mean() / 20 * 50 + 10
    bounds = {"low": 10, "high": 60, "steps": 20, "selectivity": 0.6}
    option = {o.mechanism: o for o in preview_mean(budgets, **bounds)}[mechanism]
    runs = [_run(option, pair, budgets, s) for s in range(60)]
    inside = [low <= truth <= high for low, high in (r.interval(0.9) for r in runs)]
    assert np.mean(inside) > 0.78
    assert np.sqrt(np.mean([(r.value - truth) ** 2 for r in runs])) < 1.5 * option.expected_rmse
    assert mean(pair, budgets, mechanism=mechanism, source=Seeded(0), **bounds).value == runs[0].value


def _run(option, reader, budgets, seed):
    return option.run(reader, Meter(limit=option.charge, budgets=budgets, source=Seeded(seed)))


def test_results_follow_the_contract():
    _, budgets, groups = _people(7, "tiers")
    reader = ArrayReader.of(groups, np.arange(N) % 2, group_count=budgets.groups)
    for mechanism in ("affine", "partition", "exponential", "robust", "sampling"):
        estimate = count(reader, budgets, mechanism=mechanism, source=Seeded(2))
        text = json.dumps(estimate.to_dict())
        assert json.loads(text)["value"] == estimate.value
        frame = estimate.to_frame()
        assert frame.loc[0, "low"] <= frame.loc[0, "value"] <= frame.loc[0, "high"]
        assert estimate.frequency == pytest.approx(estimate.value / N)
        assert mechanism in repr(estimate)
        assert "NOT PRIVATE" in repr(estimate)
    with pytest.raises(InputError, match="confidence"):
        estimate.interval(1.0)


def test_bad_questions_say_what_to_do():
    budgets = PersonBudgets.of([0.1, 0.2])
    with pytest.raises(InputError, match="low <= 0 <= high"):
        Question(budgets, low=1, high=3)
    with pytest.raises(InputError, match="selectivity"):
        Question(budgets, selectivity=1.5)
    with pytest.raises(InputError, match="no mechanism 'magic' for count"):
        plan_offer(Question(budgets), "magic")
    with pytest.raises(InputError, match="nobody in the roster"):
        plan_offer(Question(budgets), "threshold", threshold=1)
    with pytest.raises(InputError, match="several rows"):
        plan_offer(Question(Terms(rows_per_person=2, budgets=budgets)), "sampling")
    with pytest.raises(InputError, match="64 bits"):
        plan_offer(Question(PersonBudgets(np.array([10**15]), np.array([10**5]))), "stretching")
    with pytest.raises(InputError, match="low < high"):
        preview_mean(budgets, low=3, high=3)


def test_law_of_several_noises_matches_simulation():
    rng = np.random.default_rng(8)
    draws = rng.laplace(size=(400_000, 3)) @ np.array([1.0, 0.5, 0.2]) + 0.7 * rng.normal(size=400_000)
    law = LaplacePlusNormal((1.0, 0.5, 0.2), 0.7)
    for confidence in (0.5, 0.9, 0.99):
        assert np.mean(np.abs(draws) <= law.halfwidth(confidence)) == pytest.approx(confidence, abs=0.004)
    assert law.rmse == pytest.approx(draws.std(), rel=0.01)
