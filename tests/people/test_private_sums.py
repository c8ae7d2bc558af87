"""Sums stay private: what an answer says follows from its noisy sums, and a table tells nothing by failing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError, PrivacyError
from sfumato.histograms import Bins
from sfumato.offers import Facts, Request
from sfumato.people import ArrayReader, PairReader, Question, SumReader, plan_offer
from sfumato.people.histogram import plan_histogram
from sfumato.people.means import preview_mean
from sfumato.people.offers import offers
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded
from sfumato.tables import Numeric, PrivacyUnit, Roster, Schema, open
from sfumato.testing import replay, reveal

ROSTER = PersonBudgets.from_tiers({"strict": (0.05, 40), "standard": (0.3, 30), "open": (1.5, 30)})
GROUPS = np.repeat([0, 1, 2], ROSTER.counts)
MECHANISMS = [
    "affine",
    "minimum",
    "threshold",
    "stretching",
    "robust",
    "partition",
    "privacy-aware",
    "sampling",
    "exponential",
]
OLD = PersonBudgets.from_tiers({"strict": (0.05, 1), "open": (10**6, 1)})  # head counts older than the table


def shown(estimate):
    return {**estimate.to_dict(), "text": repr(estimate), "wide": estimate.interval(0.5, worst_case=True)}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("kind", "low", "high"), [("count", 0, 1), ("sum", -3, 5)])
def test_an_answer_says_nothing_beyond_its_noisy_sums(mechanism, kind, low, high):
    """Value, interval, warnings, details and the test of the parts: the same for a neighbour with the same answers."""
    offer = plan_offer(Question(ROSTER, low=low, high=high, kind=kind), mechanism)
    values = np.random.default_rng(3).integers(low, high + 1, GROUPS.size)
    values[-1] = high

    def run(rows, source):
        reader = ArrayReader.of(GROUPS[rows], values[rows], low=low, high=high, group_count=3)
        return shown(offer.run(reader, Meter(limit=offer.charge, budgets=ROSTER, source=source)))

    found = replay(run, np.arange(100), np.arange(99))  # without somebody of the most generous tier
    assert found.same_output
    assert all(call.loss <= call.here.charged[2] for call in found.calls if call.here.noisy and mechanism != "sampling")


def test_parts_that_disagree_are_found_from_noisy_sums_alone():
    offer = plan_offer(Question(ROSTER), "partition", parts=3)
    values = (GROUPS == 2).astype(int)  # values go with budgets, which the test of the parts notices

    def run(rows, source):
        reader = ArrayReader.of(GROUPS[rows], values[rows], group_count=3)
        return shown(offer.run(reader, Meter(budgets=ROSTER, source=source)))

    found = replay(run, np.arange(100), np.arange(99))
    assert found.published[0]["details"], "the parts are not compared"
    assert found.same_output


def test_no_bin_of_a_personal_histogram_is_without_noise():
    plan = plan_histogram(ROSTER, Bins.numbered(4))
    heads = np.array([[10, 10, 10, 10], [9, 9, 9, 3], [30, 0, 0, 0]])

    def run(table, source):
        meter = Meter(limit=plan.charge, budgets=ROSTER, source=source)
        made = plan.run(lambda weights: Exact(weights @ table), meter)
        return {**made.to_dict(), "ends": made.interval(0.9)}

    for bin_ in range(4):
        there = heads.copy()
        there[0, bin_] -= 1
        found = replay(run, heads, there)
        assert found.same_output
        assert found.loss == plan.charge.people[0]
        noisy = found.calls[0].here
        assert noisy.answer.shape == noisy.exact.shape == (4,)
        assert (np.broadcast_to(noisy.public["rate"], 4) == 1).all()


# --- a mean, read from a table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", ["mean", "sum", "count", "histogram"])
def test_nobody_moves_an_answer_from_a_table_further_than_is_charged(kind, rows):
    """Whoever sits at either bound, at several rows each: the centred sum of a mean reaches its lattice and no further."""
    schema = Schema({"pay": Numeric(-10, 30, bins=4)}, unit=PrivacyUnit("who", rows))
    roster = Roster.tiers({"strict": 0.1, "open": 1.0}, column="tier", counts={"strict": 5, "open": 5})
    pay = [-10.0, 30.0, 10.0, 10.1, -3.0, 29.9, 30.0, -10.0, 0.0, 7.0]
    people = [(who, tier, value) for who, (tier, value) in enumerate(zip(["strict", "open"] * 5, pay, strict=True))]
    frame = pd.DataFrame([p for p in people for _ in range(rows)], columns=["who", "tier", "pay"])
    parameters = {"columns": ["pay"]} if kind == "histogram" else {} if kind == "count" else {"column": "pay"}
    facts = Facts(schema, budgets=roster.head_counts(), roster=roster)
    offer = next(o for o in offers(Request("r", kind, parameters=parameters), facts) if o.mechanism in ("affine", "minimum"))
    terms = schema.terms.up_to(offer.charge, budgets=facts.budgets)

    def run(table, source):
        made = offer.run(open(table, schema=schema, budgets=roster), Meter.under(terms, source=source))
        return made.to_dict()

    worst = np.zeros(2)
    for who, tier, _ in (people[i] for i in (0, 1, 6, 7)):  # both tiers at both bounds
        found = replay(run, frame, frame[frame["who"] != who])
        assert found.same_output
        group = ["strict", "open"].index(tier)
        assert found.loss <= sum(int(call.here.charged[group]) for call in found.calls) <= facts.budgets.levels[group]
        worst[group] = max(worst[group], found.loss)
    if kind == "mean":  # the charge is attained at the bounds, up to half a step: nothing is left over
        assert (worst >= 0.95 * offer.charge.people).all()


# --- head counts older than the table --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("high", [1, 9])
def test_more_people_than_were_stated_make_no_release_fail(mechanism, high):
    offer = plan_offer(Question(OLD, high=high, kind="count" if high == 1 else "sum"), mechanism)
    few = [0, 1, 8, 9, 10, 9223, 9224]  # 9,224 times 10**15 nano-ε passes 64 bits
    for strict in few:
        for generous in few if mechanism != "sampling" else [0, 9, 9224]:
            table = np.zeros((2, high + 1), dtype=np.int64)
            table[:, high] = strict, generous
            made = offer.run(ArrayReader(Exact(table)), Meter(limit=offer.charge, budgets=OLD, source=Seeded(1)))
            assert np.isfinite(made.value)
    if mechanism != "sampling":
        for total in (2**53, 2**62, 2**63 - 1, 2**70):
            made = offer.run(SumReader(Exact((total, total))), Meter(limit=offer.charge, budgets=OLD, source=Seeded(1)))
            assert np.isfinite(made.value)


def test_a_mean_of_more_people_than_were_stated_does_not_fail():
    for offer in preview_mean(OLD, low=0, high=100, steps=100):
        if offer.mechanism == "sampling":
            continue
        for total in (-(2**63), 8, 9, 2**63 - 1):
            for count in (0, 8, 9, 2**63 - 1):
                pair = PairReader(SumReader(Exact((total,) * 2)), SumReader(Exact((count,) * 2)))
                assert 0 <= offer.run(pair, Meter(budgets=OLD, source=Seeded(1))).value <= 100


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_arrays_are_private_from_the_first_step_and_groups_that_nobody_shows_count_nothing():
    reader = ArrayReader.of([0, 0, 7], [1, 1, 1], group_count=3)
    with pytest.raises(PrivacyError):
        len(reader.table)
    assert reveal(reader.group_sums()).tolist() == [2, 0, 0]
    assert reveal(SumReader.of([0, -1, 5, 2], [2**62, 3, 3, 4], group_count=3).group_sums()).tolist() == [2**62, 0, 4]
    assert reveal(SumReader.of([0, 0, 0], [2**62, 2**62, 2**62]).group_sums()).tolist() == [2**63 - 1]
    assert reveal(ArrayReader.of([0, 0], np.array([2**63 + 1, 0], dtype=np.uint64)).group_sums()).tolist() == [1]
    assert reveal(ArrayReader.of([0, 0, 0], [2**63, -1, 0], low=-1, high=2).group_values()).tolist() == [[1, 1, 0, 1]]
    unstated = ArrayReader.of([0, 0], [1, 0])  # nobody of the other two groups
    for mechanism in MECHANISMS:
        offer = plan_offer(Question(ROSTER), mechanism)
        assert np.isfinite(offer.run(unstated, Meter(budgets=ROSTER)).value)
    for wrong, match in (([0.5, 1.0], "must be integers"), ([0], "equal length")):
        with pytest.raises(InputError, match=match):
            ArrayReader.of([0, 1], wrong)


def test_a_sample_names_its_person_groups():
    meter = Meter(budgets=ROSTER)
    with meter.sampled([2**63] * 3) as sample:
        assert sample([[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 2, 3], [4, 5, 6]]
        for wrong in ([5], 5, [[1], [2], [3]], [1, 2]):
            with pytest.raises(InputError, match="last axis is the 3 person groups"):
                sample(wrong)
