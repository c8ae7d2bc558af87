"""A private roster by brute force: tiny rosters and every neighbour of them, also those that lack only the budget entry.

A loss is counted exactly from what reaches the noise on a table and on its neighbour, after the same noisy answers
(`sfumato.testing.replay`): head counts and all that follows them. The replay also refuses a neighbour that is asked other
questions, at other rates: whatever looked at the roster outside the Meter would show.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError
from sfumato.histograms.bins import Bins
from sfumato.people import PairReader, Question, SumReader, plan_offer
from sfumato.people.head_counts import plan_head_counts
from sfumato.people.histogram import plan_histogram
from sfumato.people.pairs import Pair
from sfumato.privacy import NANO, Exact, Guarantee, Meter, PersonBudgets
from sfumato.privacy.guarantee import ROSTER_IS_PRIVATE
from sfumato.privacy.terms import Terms
from sfumato.registry import mechanisms
from sfumato.testing import replay

MENU = PersonBudgets.from_tiers({"strict": (0.3, 0), "standard": (0.8, 0), "open": (2, 0)})
RHO = Fraction(1, 20)
LINEAR = [m.name for m in mechanisms("count") if m.name not in ("sampling", "exponential", "laplace")]
OTHERS = ((0, 1), (0, 0), (1, 1), (2, 1), (None, 1))  # tier (None: no budget) and value of those who stay as they are


def by_tier(people, values):
    sums = [0] * MENU.groups
    for (tier, _), value in zip(people, values, strict=True):
        if tier is not None:
            sums[tier] += value
    return tuple(sums)


def heads_of(people):
    return Exact(np.array(by_tier(people, [1] * len(people)), dtype=np.int64))


def terms_after(people, source, rows=1, neighbours="absence"):
    """The first step, and the terms of whatever follows it."""
    offer = plan_head_counts(MENU, RHO, Terms(rows_per_person=rows, neighbours=neighbours))
    made = offer.run(heads_of(people), Meter.under(offer.terms, source=source))
    left = made.budgets.share(1 - RHO)
    return Terms(rows_per_person=rows, neighbours=neighbours, budgets=left, granted=MENU.levels, roster="private"), made


def counted(mechanism):
    def run(people, source):
        terms, made = terms_after(people, source)
        offer = plan_offer(Question(terms), mechanism)
        reader = SumReader(Exact(by_tier(people, [value for _, value in people])))
        answer = offer.run(reader, Meter.under(offer.terms, source=source))
        return made.to_dict(), answer.to_dict()

    return run


def averaged(people, source):
    terms, made = terms_after(people, source)
    offer = Pair(terms, 0.0, 1.0, 4).offer("adaptive")
    centred = SumReader(Exact(by_tier(people, [8 * value - 4 for _, value in people])))
    ones = SumReader(Exact(by_tier(people, [1] * len(people))))
    answer = offer.run(PairReader(centred=centred, ones=ones), Meter.under(offer.terms, source=source))
    return made.to_dict(), answer.to_dict()


def binned(rows, neighbours):
    def run(people, source):
        terms, made = terms_after(people, source, rows, neighbours)
        plan = plan_histogram(terms, Bins.numbered(2))
        cells = [by_tier(people, [rows * (value == b) for _, value in people]) for b in (0, 1)]
        exact = Exact(np.array(cells, dtype=np.int64).T, rows_per_person=rows)
        meter = Meter.under(plan.terms.up_to(plan.charge), source=source)
        return made.to_dict(), plan.run(lambda weights: exact.map(lambda found: weights @ found), meter).to_dict()

    return run


ABSENCE = [*((name, counted(name)) for name in LINEAR), ("mean", averaged)]
ABSENCE += [(f"histogram, {rows} rows", binned(rows, "absence")) for rows in (1, 2)]


@pytest.mark.parametrize("run", [r for _, r in ABSENCE], ids=[n for n, _ in ABSENCE])
def test_nobody_loses_more_than_they_granted_their_choice_included(run):
    for tier, value in itertools.product(range(MENU.groups), (0, 1)):
        here = ((tier, value), *OTHERS)
        for there in (OTHERS, ((None, value), *OTHERS)):  # the person absent; only their budget entry missing
            found = replay(run, here, there, source=3)
            assert found.same_output
            assert 0 < found.loss <= MENU.levels[tier]
            back = replay(run, there, here, source=4)
            assert back.same_output
            assert back.loss <= MENU.levels[tier]


@pytest.mark.parametrize("run", [r for _, r in ABSENCE], ids=[n for n, _ in ABSENCE])
def test_a_change_of_tier_costs_at_most_both_budgets(run):
    for g, h in itertools.permutations(range(MENU.groups), 2):
        found = replay(run, ((g, 1), *OTHERS), ((h, 0), *OTHERS), source=5)
        assert found.same_output
        assert found.loss <= MENU.levels[g] + MENU.levels[h]


def test_against_replacement_a_change_of_tier_costs_no_more_than_the_larger_budget():
    run = binned(1, "replacement")
    for g, h in itertools.product(range(MENU.groups), repeat=2):
        for v, w in itertools.product((0, 1), repeat=2):
            found = replay(run, ((g, v), *OTHERS), ((h, w), *OTHERS), source=5)
            assert found.same_output
            assert found.loss <= max(MENU.levels[g], MENU.levels[h])


def test_a_person_without_a_budget_entry_moves_nothing():
    found = replay(counted("affine"), ((None, 1), *OTHERS), OTHERS, source=3)
    assert found.loss == 0


def test_head_counts_cost_each_tier_its_own_part():
    offer = plan_head_counts(MENU, RHO, Terms(rows_per_person=5))
    assert offer.charge.people.tolist() == [level // 20 for level in MENU.levels.tolist()]
    for tier in range(MENU.groups):
        run = lambda people, source: offer.run(heads_of(people), Meter.under(offer.terms, source=source)).to_dict()  # noqa: E731
        assert replay(run, ((tier, 1), *OTHERS), OTHERS, source=1).loss == offer.charge.people[tier]
    with pytest.raises(BudgetError, match="head_share"):
        plan_head_counts(PersonBudgets(np.array([10]), np.array([0])), RHO, Terms())


def test_one_person_is_one_head_whatever_rows_they_own():
    schema = sf.Schema({"ill": sf.Categorical(["no", "yes"])}, unit=sf.PrivacyUnit(person="who", rows_per_person=2))
    rows = pd.DataFrame({"who": ["a"] * 4 + ["b", "c"], "ill": ["yes"] * 6, "tier": ["x"] * 4 + ["y", "?"]})
    roster = sf.Roster.tiers({"x": 0.1, "y": 1}, column="tier", private=True)
    heads = sf.tables.open(rows, schema=schema, budgets=roster).heads()
    assert heads.rows_per_person == 1
    assert Meter().laplace(heads, rate=50 * NANO).tolist() == [1, 1]


@pytest.mark.parametrize("ids", [[7, 8, 9], ["7", "8", "9"]])
def test_two_spellings_of_one_person_are_one_head(ids, tmp_path):
    schema = sf.Schema({"ill": sf.Categorical(["no", "yes"])}, unit=sf.PrivacyUnit(person="who", rows_per_person=1))
    listed = tmp_path / "roster.csv"
    listed.write_text("who,tier\n7,x\n07,y\n8,y\n8,y\n,x\n99,x\n5,?\n")
    table = pd.DataFrame({"who": ids, "ill": ["yes"] * 3})
    roster = sf.Roster.table(listed, person="who", tier="tier", tiers={"x": 0.1, "y": 1}, private=True)
    heads = Meter().laplace(sf.tables.open(table, schema=schema, budgets=roster).heads(), rate=50 * NANO).tolist()
    assert heads == ([2, 1] if isinstance(ids[0], int) else [2, 2])  # in text "07" is somebody else


def test_budgets_in_epsilon_count_as_the_largest_of_the_menu_that_they_reach():
    schema = sf.Schema({"ill": sf.Categorical(["no", "yes"])})
    frame = pd.DataFrame({"ill": ["yes"] * 5, "epsilon": [0.05, 0.1, 0.55, 3.0, None]})
    roster = sf.Roster.column("epsilon", menu=[1, 0.1, 0.5], private=True)
    table = sf.tables.open(frame, schema=schema, budgets=roster.share(Fraction(1, 3)))
    assert Meter().laplace(table.heads(), rate=50 * NANO).tolist() == [1, 1, 1]
    levels = PersonBudgets(roster.share(Fraction(1, 3)).menu().levels, np.ones(3), roster.menu().names)
    assert Meter().laplace(table.group_sums(levels), rate=50 * NANO).tolist() == [1, 1, 1]


def test_a_private_roster_needs_a_public_menu():
    with pytest.raises(InputError, match="public menu"):
        sf.Roster.column("epsilon", private=True)
    with pytest.raises(InputError, match="public menu"):
        sf.Roster.table(pd.DataFrame({"who": [1]}), person="who", epsilon="e", private=True)
    with pytest.raises(InputError, match="private"):
        sf.Roster.column("epsilon", menu=[0.1])
    with pytest.raises(InputError, match="'public' or 'private'"):
        sf.Roster.from_mapping({"column": "c", "tiers": {"x": 1}, "roster": "secret"})
    with pytest.raises(InputError, match="head_share"):
        sf.Roster.from_mapping({"column": "c", "tiers": {"x": 1}, "head_share": 0.1})
    made = sf.Roster.from_mapping({"column": "c", "tiers": {"x": 1}, "roster": "private", "head_share": 0.1})
    assert made.private
    assert made.head_share == Fraction(1, 10)


def test_the_head_counts_of_a_private_roster_are_told_by_nothing_else():
    schema = sf.Schema({"ill": sf.Categorical(["no", "yes"])})
    roster = sf.Roster.tiers({"x": 1}, column="tier", private=True)
    table = sf.tables.open(pd.DataFrame({"ill": ["yes"], "tier": ["x"]}), schema=schema, budgets=roster)
    for refused in (roster.head_counts, table.person_budgets, table.group_sums):
        with pytest.raises(InputError, match="private"):
            refused()
    assert roster.findings() == table.findings() == ()
    assert roster.menu().people == 0


def test_mechanisms_that_take_head_counts_as_exact_are_refused():
    noisy = PersonBudgets(MENU.levels, np.full(3, 9), MENU.names, np.ones(3))
    for mechanism in ("sampling", "exponential"):
        with pytest.raises(InputError, match="exact head counts"):
            plan_offer(Question(noisy), mechanism)


def test_the_guarantee_says_which_kind_of_roster_it_rests_on():
    private = Meter.under(Terms(budgets=MENU, roster="private")).guarantee()
    public = Meter.under(Terms(budgets=MENU)).guarantee()
    assert ROSTER_IS_PRIVATE in private.sentence()
    assert "is public and does not depend on the data" in public.sentence()
    assert ROSTER_IS_PRIVATE not in public.sentence()
    assert Guarantee.from_dict(private.to_dict()).sentence() == private.sentence()
    assert Terms(roster="private").told()["roster"] == "private"
    assert "roster" not in Terms().told()
