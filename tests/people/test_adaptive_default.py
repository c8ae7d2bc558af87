"""What `auto` takes where budgets differ, what it promises at every gap, and what is said first of an answer."""

import itertools
import json

import numpy as np
import pytest

from sfumato.offers import GAPS, Request
from sfumato.people import ArrayReader, PairReader, Question, count, plan_offer, preview_count, preview_mean, preview_sum
from sfumato.people.gaps import cuts, patterns
from sfumato.people.headline import ALARM, headline_lines
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.results import load_result

CLINIC = PersonBudgets.from_tiers({"strict": (0.005, 26_913), "standard": (0.1, 18_554), "open": (0.5, 4_533)})
LARGE = PersonBudgets.from_tiers({"strict": (0.01, 102_600), "standard": (0.2, 70_300), "open": (1.0, 17_100)})
ALIKE = PersonBudgets.of([0.5] * 400)


def drawn(make, seed=5):
    return PersonBudgets.of(make(np.random.default_rng(seed)), decimals=4)


UNIFORM = drawn(lambda rng: rng.uniform(0.01, 0.1, 50_000))
LOGNORMAL = drawn(lambda rng: np.clip(np.exp(rng.normal(np.log(0.05), 1, 50_000)), 0.001, 2))
NARROW = drawn(lambda rng: np.clip(np.exp(rng.normal(np.log(0.05), 0.5, 50_000)), 0.01, 1))
OTHERS = {
    "two": PersonBudgets.from_tiers({"strict": (0.01, 20_000), "open": (1.0, 20_000)}),
    "ten": PersonBudgets.from_tiers({f"tier {i}": (0.01 * (i + 1), 5_000) for i in range(10)}),
    "a thousand": PersonBudgets.of(np.repeat(np.geomspace(0.005, 1, 1000), 50), decimals=6),
    "heavy tail": drawn(lambda rng: np.minimum(0.01 * (1 + rng.pareto(1.2, 50_000)), 5)),
    "few strict": PersonBudgets.from_tiers({"strict": (0.001, 100), "standard": (0.1, 20_000), "open": (1.0, 5_000)}),
}


class Counted:
    """A reader that is one integer per group."""

    def __init__(self, counts):
        self.counts = counts

    def weighted_sum(self, weights):
        return Exact(int(np.dot(weights, self.counts)))

    def group_sums(self):
        return Exact(np.asarray(self.counts))


def answers(budgets, rates, rng, draws, mechanism="adaptive"):
    offer = plan_offer(Question(budgets), mechanism)
    for _ in range(draws):
        counts = rng.binomial(budgets.counts, np.clip(rates, 0, 1))
        source = Seeded(int(rng.integers(2**62)))
        yield offer.run(Counted(counts), Meter(budgets=budgets, limit=offer.charge, source=source)), int(counts.sum())


# --- what is taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "preview",
    [preview_count, lambda b, **o: preview_sum(b, high=20, **o), lambda b, **o: preview_mean(b, low=0, high=9, **o)],
)
def test_auto_is_adaptive_unless_independence_is_stated(preview):
    usual, stated = preview(CLINIC), preview(CLINIC, independent=True)
    assert usual[0].mechanism == "adaptive"
    assert stated[0].mechanism == "affine"
    assert sorted(o.mechanism for o in usual) == sorted(o.mechanism for o in stated)
    errors = [o.expected_rmse for o in usual[1:]]
    assert errors == sorted(errors)


def test_where_nobody_differs_nothing_changes():
    first = preview_count(ALIKE)
    assert [o.mechanism for o in first] == [o.mechanism for o in preview_count(ALIKE, independent=True)]
    empty = PersonBudgets(np.array([10**7, 5 * 10**8]), np.array([0, 400]))  # a tier that nobody chose is no difference
    assert preview_count(empty)[0].mechanism == preview_count(empty, independent=True)[0].mechanism


def test_a_call_may_state_independence():
    reader = ArrayReader.of(np.repeat([0, 1, 2], CLINIC.counts), np.zeros(CLINIC.people, dtype=int))
    assert count(reader, CLINIC, source=Seeded(1)).mechanism == "adaptive"
    assert count(reader, CLINIC, independent=True, source=Seeded(1)).mechanism == "affine"


def test_a_request_keeps_its_name_unless_independence_is_stated():
    plain = Request("a", "count").canonical()
    assert "independent" not in plain
    assert Request("a", "count", independent=True).canonical() == plain | {"independent": True}


# --- what is promised ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budgets", [CLINIC, UNIFORM])
def test_every_offer_knows_its_errors(budgets):
    for offer in [*preview_count(budgets), *preview_sum(budgets, high=5), *preview_mean(budgets, low=0, high=9)]:
        found = offer.errors
        assert found is not None, offer.mechanism
        assert found.independent == offer.expected_rmse
        assert 0 < found.independent <= found.worst * (1 + 1e-9), offer.mechanism
        assert max(found.at) <= found.worst * (1 + 1e-9), offer.mechanism
        assert found.assumes == (offer.mechanism not in ("adaptive", "robust", "minimum")), offer.mechanism
        assert list(found.to_dict())[1:4] == ["gap_1_point", "gap_5_points", "gap_20_points"]


def test_a_gap_of_one_point_undoes_affine():
    plan = plan_offer(Question(CLINIC, selectivity=0.4), "affine").plan
    heads, weight = CLINIC.counts, plan.influence
    for gap in GAPS:
        biases = []
        for cut in (1, 2):  # by hand: the stricter people's rate is lower by the gap, all else equal
            rates = 0.4 + gap * (np.arange(3) >= cut)
            truth = float(np.dot(heads, rates))
            biases.append(abs(CLINIC.people * float(np.dot(heads * weight, rates)) - truth))
        assert plan.error_at(gap) == pytest.approx(np.hypot(plan.expected_rmse, max(biases)), rel=1e-9)
    assert plan.error_at(0.01) > 2 * plan.expected_rmse


def test_the_edge_of_all_patterns_is_the_true_one():
    rng = np.random.default_rng(8)
    budgets = PersonBudgets.from_tiers({str(i): (0.1 * (i + 1), int(n)) for i, n in enumerate(rng.integers(1, 50, 6))})
    question = Question(budgets)
    across, along = (v - np.dot(v, budgets.counts) / budgets.people for v in rng.normal(size=(2, 6)))
    ends, most = patterns(question, across, along)
    corners = np.array(list(itertools.product([0, 1], repeat=6))) * budgets.counts
    b, u = budgets.people * corners @ across, budgets.people * corners @ along
    assert (u <= np.interp(b, ends, most) + 1e-6).all()
    for x, y in zip(ends, most, strict=True):
        assert np.isclose(b, x).any()
        assert np.isclose(u, y).any()
    assert ends[0] == pytest.approx(b.min())
    assert ends[-1] == pytest.approx(b.max())


@pytest.mark.parametrize(
    ("budgets", "independent", "any_gap"),
    [(CLINIC, 1.6, 1.3), (LARGE, 1.05, 1.12), (UNIFORM, 1.9, 1.4), (LOGNORMAL, 1.9, 1.4), (NARROW, 1.9, 1.4)],
)
def test_the_price_of_assuming_nothing(budgets, independent, any_gap):
    question = Question(budgets)
    plan = plan_offer(question, "adaptive").plan
    affine, unbiased = (plan_offer(question, name).expected_rmse for name in ("affine", "minimum"))
    assert plan.expected_rmse <= independent * affine
    assert max(plan.error_at(gap) for gap in np.linspace(0, 0.4, 81)) <= any_gap * unbiased


@pytest.mark.parametrize("name", OTHERS)
def test_other_rosters_stay_on_the_frontier(name):
    plan = plan_offer(Question(OTHERS[name]), "adaptive").plan
    made = plan.shrinkage(0.25)
    assert made.excess <= 1.005
    assert 0.83 <= plan.weight < 1
    unbiased = plan_offer(Question(OTHERS[name]), "minimum").expected_rmse
    assert max(plan.error_at(gap) for gap in np.linspace(0, 0.4, 41)) <= 1.33 * unbiased


@pytest.mark.parametrize("gap", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("tier", [1, 2])
def test_whichever_tier_differs_the_error_is_bounded_and_the_first_interval_holds(tier, gap):
    rng = np.random.default_rng(31)
    rates = 0.4 + gap * (np.arange(3) == tier)
    found = list(answers(CLINIC, rates, rng, 200))
    plan = plan_offer(Question(CLINIC), "adaptive").plan
    error = np.sqrt(np.mean([(e.value - true) ** 2 for e, true in found]))
    assert error <= 1.2 * plan.worst_rmse  # 200 draws leave a tenth of doubt
    held = np.mean([low <= true <= high for e, true in found for low, high in [e.interval(worst_case=True)]])
    assert 0.91 <= held <= 0.99


@pytest.mark.parametrize("mechanism", ["affine", "partition", "robust", "minimum", "threshold"])
def test_the_first_interval_of_every_mechanism_holds_for_any_data(mechanism):
    rng = np.random.default_rng(32)
    for rates in (np.array([0.1, 0.6, 0.6]), np.array([0.4, 0.4, 0.4])):
        found = list(answers(CLINIC, rates, rng, 120, mechanism))
        assert np.mean([low <= t <= high for e, t in found for low, high in [e.headline().interval]]) >= 0.90
        assert all(e.to_dict()["interval"] == list(e.headline().interval) for e, _ in found[:3])


def test_the_first_interval_of_a_mean_holds_for_any_data():
    rng = np.random.default_rng(33)
    budgets = PersonBudgets.from_tiers({"strict": (0.05, 3_000), "standard": (0.5, 2_000), "open": (2.0, 1_000)})
    groups = np.repeat([0, 1, 2], budgets.counts)
    offer = preview_mean(budgets, low=0, high=10, steps=10)[0]
    held = []
    for _ in range(60):
        values = rng.binomial(10, np.array([0.2, 0.6, 0.7])[groups])
        ones = ArrayReader.of(groups, np.ones(groups.size, dtype=int))
        reader = PairReader(ArrayReader.of(groups, 2 * values - 10, low=-10, high=10), ones)
        made = offer.run(reader, Meter(budgets=budgets, limit=offer.charge, source=Seeded(int(rng.integers(2**62)))))
        low, high = made.headline().interval
        held.append(low <= values.mean() <= high)
        assert made.p_value is not None
    assert np.mean(held) >= 0.88


# --- what is said first ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["adaptive", "partition"])
def test_the_alarm_changes_what_is_said_first(mechanism):
    found = next(answers(CLINIC, np.array([0.2, 0.5, 0.5]), np.random.default_rng(3), 1, mechanism))[0]
    first = found.headline()
    assert first.alarm.startswith("Consent and values seem to go together here")
    assert "if independent" not in repr(found)
    assert repr(found).startswith("Estimate(CONSENT AND VALUES SEEM TO GO TOGETHER")
    assert next(iter(found.to_dict())) == "headline"
    assert found.to_dict()["headline"]["alarm"] == first.alarm
    lines = headline_lines(found.headline(), found.words)
    assert lines[0] == first.alarm
    assert len(lines) == 2
    assert found.to_frame()["alarm"].tolist() == [True]
    expected = found.value if mechanism == "adaptive" else found.details["unbiased_value"]
    assert first.value == expected
    again = load_result(json.loads(json.dumps(found.to_dict())))
    assert again.headline() == first
    assert "go together" in found.plot().get_title()


def test_without_an_alarm_both_intervals_are_said():
    several = [e for e, _ in answers(CLINIC, np.full(3, 0.4), np.random.default_rng(4), 20)]
    found = next(e for e in several if e.headline().alarm is None)
    assert [line.count("interval") for line in headline_lines(found.headline(), found.words)] == [1, 1]
    assert "for any data" in repr(found)
    assert "if independent" in repr(found)


@pytest.mark.parametrize("mechanism", ["adaptive", "partition"])
def test_false_alarms_are_as_rare_as_stated(mechanism):
    found = [e for e, _ in answers(CLINIC, np.full(3, 0.4), np.random.default_rng(6), 400, mechanism)]
    rate = np.mean([e.headline().alarm is not None for e in found])
    assert rate <= ALARM + 3 * np.sqrt(ALARM * (1 - ALARM) / 400)
    if mechanism == "adaptive":  # one comparison, so the level is met; a partition's bound for several may stay below
        assert rate >= ALARM - 3 * np.sqrt(ALARM * (1 - ALARM) / 400)


def test_a_cut_moves_whom_it_says():
    question = Question(CLINIC)
    only_open = np.array([0.0, 0.0, 1 / CLINIC.counts[2]])
    strict, standard = CLINIC.counts[:2]
    np.testing.assert_allclose(cuts(question, only_open), [strict, strict + standard])
