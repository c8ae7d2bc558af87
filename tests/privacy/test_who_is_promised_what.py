"""Every promise per group, by brute force: all neighbours of tiny tables, under both kinds, with one row per person and two.

A loss is counted exactly from what reaches the noise on a table and on its neighbour (`sfumato.testing.replay`). The table
in docs/soundness.md has a line for each promise; the tests below are what it rests on.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.attributes import Catalogue, allocate
from sfumato.errors import InputError, PrivacyError
from sfumato.histograms.groups import release_histograms
from sfumato.histograms.offers import preview_histogram
from sfumato.histograms.release import release_histogram
from sfumato.privacy import NANO, Guarantee, Meter, PersonBudgets, Seeded
from sfumato.privacy.losses import objective_loss
from sfumato.registry import mechanisms
from sfumato.testing import Tape, compare, replay, reveal

KINDS = [("absence", 1), ("absence", 2), ("replacement", 1), ("replacement", 2)]
BINS = 3
OPEN = [1.0, 0.1, 0.4]  # bin budgets that differ

TABLE = """
| what differs | who | compared with | loses at most | told by |
|---|---|---|---|---|
| nothing: one ε | a person, all rows | the person absent | `k r` | `guarantee.epsilon` |
| nothing: one ε | a person, all rows | other rows instead | `2 k r` | `guarantee.epsilon` |
| bins | a person's rows in bin i | these rows absent | `k r_i` | `bin_losses` |
| bins | a person's rows in bin i | other rows instead | `k (r_i + r_j)`, the costliest j | `bin_losses` |
| `bin_budgets` that differ | a person's rows in bin i | other rows instead | refused: none could be kept | an error |
| bins of disjoint groups | rows in bin i of their group | as for bins | as for bins, j in any group | `bin_losses` |
| bins of groups that overlap | rows in bin i | as for bins | the sum over the groups | `bin_losses` |
| people | who granted ε_g | the person absent | `k w_g r`, at most ε_g | `guarantee.people` |
| people | who granted ε_g | other rows, same budget | `2 k w_g r`, at most ε_g | `guarantee.people` |
| people | who granted ε_g | rows of another budget | ε of the release, not ε_g | `guarantee.epsilon` |
| attributes | what a's columns show | the person absent | `k` times a's largest `Σ r_j` | `guarantee.attributes` |
| attributes | what a's columns show | other rows instead | twice that | `guarantee.attributes` |
| items | an item, all its occurrences | the item absent | `Σ_j a_ij r_j`; `a_ij r_j` for column j | `guarantee` |
| items counted every time; streams | an item, each time | the item absent once | the same | `assumptions` |
| items | an item | another item instead | twice ε; follows, is not claimed | nothing |
| a sample of the people | a person | other rows instead | refused: priced against absence | an error |
"""


def rows_of_a_person(values, most):
    """What one person's rows may be: none, one, ... up to `most`."""
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(values, n)]


def instead(rows, kind, values):
    """What may stand in their place: nothing, or as many other rows or fewer."""
    return [()] if kind == "absence" else rows_of_a_person(values, len(rows))


def counts(rows, size=BINS):
    """A table of five records in the first bin and one person's rows."""
    others = 5 * (np.arange(size) == 0)
    return others + np.bincount(np.array(rows, dtype=np.int64), minlength=size)


def loss_between(run, here, there):
    found = replay(run, here, there, source=3)
    return found.loss, found.published[0]


def loss_along(run, steps):
    """The sum of the losses from one table to the next, all under the same answers: a bound on that from end to end.

    What one record may do to a partition is known; what two do at once is not counted by itself.
    """
    tapes, published = [Tape(3)], None
    for table in steps:
        made = run(table, tapes[-1])
        published = made if published is None else published
        tapes.append(tapes[0].again())
    return sum(call.loss for a, b in itertools.pairwise(tapes[:-1]) for call in compare(a, b)), published


# --- one ε, and bins ----------------------------------------------------------------------------------------------------


def histogram(kind, most, mechanism="identity", size=BINS, **asked):
    def run(table, source):
        meter = Meter(neighbours=kind, rows_per_person=most, source=source)
        return release_histogram(table, epsilon=1, bins=size, meter=meter, mechanism=mechanism, **asked)

    return run


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_a_person_loses_what_the_guarantee_says(kind, most):
    run, worst = histogram(kind, most), 0
    for rows in rows_of_a_person(range(BINS), most):
        for other in [()] if kind == "absence" else rows_of_a_person(range(BINS), most):
            lost, made = loss_between(run, counts(rows), counts(other))
            worst = max(worst, lost)
            assert lost <= made.guarantee.nano <= NANO
    assert worst == made.guarantee.nano


def worst_by_bin(run, kind, most, size=BINS):
    """For each bin the most that the rows of a person in it lose; their rows elsewhere stay."""
    worst, promised = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for rows in rows_of_a_person(range(size), most):
        for i in set(rows):
            mine, rest = [r for r in rows if r == i], [r for r in rows if r != i]
            for other in instead(mine, kind, range(size)):
                lost, made = loss_between(run, counts(rows, size), counts([*rest, *other], size))
                promised = made.bin_losses
                worst[i] = max(worst[i], lost)
                assert lost <= promised[i], (rows, other)
    return worst, promised


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_rows_of_a_bin_lose_what_stands_beside_it(kind, most):
    worst, promised = worst_by_bin(histogram(kind, most), kind, most)
    assert worst.tolist() == promised.tolist()


@pytest.mark.parametrize("most", [1, 2])
def test_bins_with_budgets_of_their_own_keep_them_against_absence(most):
    worst, promised = worst_by_bin(histogram("absence", most, bin_budgets=OPEN), "absence", most)
    assert worst.tolist() == promised.tolist() == [10**9, 10**8, 4 * 10**8]


@pytest.mark.parametrize("most", [1, 2])
def test_bins_with_budgets_of_their_own_are_refused_against_replacement(most):
    with pytest.raises(InputError, match="absence only"):
        histogram("replacement", most, bin_budgets=OPEN)(counts([]), Seeded(1))
    with pytest.raises(InputError, match="absence only"):
        preview_histogram(epsilon=1, bins=BINS, bin_budgets=OPEN, rows_per_person=most, neighbours="replacement")
    worst, promised = worst_by_bin(histogram("replacement", most, bin_budgets=[0.1] * 3), "replacement", most)
    assert worst.tolist() == promised.tolist() == [10**8] * 3


NAMES = [m.name for m in mechanisms("histogram") if "personal budgets" not in m.needs]


@pytest.mark.parametrize(("kind", "most"), KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_tells_what_a_bin_loses(name, kind, most):
    size = 4
    uneven = {"bin_budgets": [1, 0.5, 0.25, 1]} if kind == "absence" else {}
    run = histogram(kind, most, name, size, **uneven)
    for i in range(size):
        rows = (i,) * most
        for other in [()] if kind == "absence" else [(j,) * most for j in range(size) if j != i]:
            leaving = [rows[n:] for n in range(most + 1)]
            entering = [other[:n] for n in range(1, len(other) + 1)]
            lost, made = loss_along(run, [counts(table, size) for table in (*leaving, *entering)])
            assert lost <= made.bin_losses[i] <= NANO


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", ["sdpa", "dpa"])
def test_bins_that_a_mechanism_protects_more_lose_what_is_told_against_replacement(name, most):
    """Rates fall along the bins here: the most protected one, replaced, shows what the least protected one costs."""
    worst, promised = worst_by_bin(histogram("replacement", most, name), "replacement", most)
    assert (worst > 0.8 * promised).all()  # two bins of one cluster cancel in its total
    assert 2 * promised[-1] > promised[0]


# --- several histograms -------------------------------------------------------------------------------------------------


def regions(kind, most, disjoint, **asked):
    def run(tables, source):
        meter = Meter(neighbours=kind, rows_per_person=most, source=source)
        given = {"epsilon": 1, "bins": 2, "meter": meter, "mechanism": "sdpa", "disjoint": disjoint, **asked}
        return release_histograms(tables, **given)

    return run


def tables_of(rows, groups):
    """Each row is (its groups, its bin)."""
    return {g: counts([i for mine, i in rows if g in mine], 2) for g in groups}


@pytest.mark.parametrize(("kind", "most"), KINDS)
@pytest.mark.parametrize("disjoint", ["each person lives in one region", None])
def test_bins_of_several_histograms_lose_what_is_told_for_the_whole(kind, most, disjoint):
    groups = "ns"
    places = [("n",), ("s",)] if disjoint else [("n",), ("n", "s")]
    values = [(mine, i) for mine in places for i in range(2)]
    run = regions(kind, most, disjoint)
    for rows in rows_of_a_person(values, most):
        for group, i in {(g, i) for mine, i in rows for g in mine}:
            touched = [(mine, j) for mine, j in rows if group in mine and i == j]
            rest = [row for row in rows if row not in touched]
            for other in instead(touched, kind, values):
                here, there = tables_of(rows, groups), tables_of([*rest, *other], groups)
                lost, made = loss_between(run, here, there)
                assert lost <= made[group].bin_losses[i] <= made[group].guarantee.nano <= NANO


def test_groups_that_overlap_share_the_budget_of_a_bin():
    run = regions("absence", 1, None, bin_budgets=[1, 0.1], mechanism="identity")
    both = [(("n", "s"), 1)]
    lost, made = loss_between(run, tables_of(both, "ns"), tables_of([], "ns"))
    assert lost == made["n"].bin_losses[1] == 10**8


# --- people, attributes, items ------------------------------------------------------------------------------------------

TIERS = PersonBudgets.from_tiers({"strict": (0.1, 5), "open": (1, 5)})


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_a_person_of_a_tier_loses_what_their_tier_is_told(kind, most):
    weights = TIERS.levels // (most * (2 if kind == "replacement" else 1))

    def run(people, source):
        meter = Meter(budgets=TIERS, neighbours=kind, rows_per_person=most, source=source)
        exact = sum((weights[g] * (counts(rows, 2) - counts([], 2)) for g, rows in people), np.zeros(2, dtype=np.int64))
        meter.laplace(exact, rate=[1, 1], weights=weights)
        return meter.guarantee()

    worst, mixed = [0, 0], 0
    for g, rows in itertools.product(range(2), rows_of_a_person(range(2), most)):
        for h, other in itertools.product(range(2), [()] if kind == "absence" else rows_of_a_person(range(2), most)):
            lost, promise = loss_between(run, [(g, rows)], [(h, other)] if kind == "replacement" else [(g, ())])
            if g == h or kind == "absence":
                worst[g] = max(worst[g], lost)
                assert lost <= promise.people[g] <= TIERS.levels[g]
            else:
                mixed = max(mixed, lost)
                assert lost <= promise.nano
    assert worst == promise.people.tolist()
    if kind == "replacement":  # why the sentence must speak of the same budget
        assert mixed > promise.people[0]
        said = replace(promise, not_private=()).sentence()
        assert "of the same budget" in said
        assert f"ε = {promise.epsilon} is what is promised" in said


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_an_attribute_alone_loses_what_it_is_told(kind, most):
    names, rates = ["age", "age", "job", "job", "job"], np.array([3, 5, 2, 7, 4])
    values = list(itertools.product(range(2), range(3)))  # a record has an age and a job
    touches = np.array([[*(np.arange(2) == a), *(np.arange(3) == j)] for a, j in values]).astype(np.int64)

    def run(rows, source):
        meter = Meter(attributes=["age", "job"], neighbours=kind, rows_per_person=most, source=source)
        exact = sum((touches[values.index(row)] for row in rows), np.zeros(5, dtype=np.int64))
        meter.laplace(exact, rate=rates, touches=touches, attributes=names)
        return meter.guarantee()

    worst = {"age": 0, "job": 0, "both": 0}
    for rows in rows_of_a_person(values, most):
        for other in instead(rows, kind, values):
            found = replay(run, rows, other, source=3)
            promise = found.published[0]
            moved = np.abs(found.calls[0].here.exact - found.calls[0].there.exact) * rates
            for name in ("age", "job"):
                worst[name] = max(worst[name], int(moved[np.array(names) == name].sum()))
            worst["both"] = max(worst["both"], found.loss)
    assert worst["both"] <= promise.nano
    assert worst["age"] <= promise.attributes["age"]
    assert worst["job"] <= promise.attributes["job"]
    if kind == "absence":  # against replacement two different columns move: less than twice the costliest
        assert worst == {"age": 5 * most, "job": 7 * most, "both": 12 * most}


ITEMS = Catalogue.of({"a": {"x": 1, "y": 2}, "b": {"y": 2}, "c": {"x": 2}, "d": {}})
POLICY = allocate(ITEMS, budgets={"x": 0.4, "y": 0.5}, epsilon=0.6)


@pytest.mark.parametrize("once", [True, False])
def test_an_item_loses_what_the_guarantee_says(once):
    def losses(here, there):
        gap = reveal(ITEMS.histogram(here, once=once).exact) - reveal(ITEMS.histogram(there, once=once).exact)
        return np.abs(gap) * POLICY.rates

    worst, each, exchanged = 0, np.zeros(2, dtype=np.int64), 0
    histories = [h for n in range(4) for h in itertools.combinations_with_replacement("abcd", n)]
    for history in histories:
        for place, item in enumerate(history):
            # Counted once, the item is absent altogether; counted every time, one of its occurrences is.
            left = [i for i in history if i != item] if once else [*history[:place], *history[place + 1 :]]
            moved = losses(history, left)
            worst, each = max(worst, int(moved.sum())), np.maximum(each, moved)
            exchanged = max(exchanged, *(int(losses(history, [*left, new]).sum()) for new in "abcd"))
    assert worst == POLICY.charge.total
    assert each.tolist() == list(POLICY.charge.attributes.values())
    assert POLICY.charge.total < exchanged <= 2 * POLICY.charge.total


def test_a_sample_is_refused_against_replacement():
    with pytest.raises(PrivacyError, match="absence only"), Meter(neighbours="replacement").sampled([1 << 62]):
        pass


@pytest.mark.parametrize(("kind", "most"), KINDS)
def test_who_moves_from_one_branch_to_another_loses_no_more_than_the_costliest_branch(kind, most):
    rates = {"n": 3, "s": 7}

    def run(rows, source):
        meter = Meter(neighbours=kind, rows_per_person=most, source=source)
        with meter.parallel("each person lives in one region") as branch:
            for region, rate in rates.items():
                with branch():
                    meter.laplace([rows.count(region)], rate=rate)
        return meter.guarantee()

    for rows in rows_of_a_person("ns", most):
        for other in instead(rows, kind, "ns"):
            lost, promise = loss_between(run, rows, other)
            assert lost <= promise.nano


def test_what_costs_less_than_two_absences_has_no_price_in_a_branch_against_replacement():
    """Objective perturbation: a person who moves pays for two Hessians, one who is replaced in place for one."""
    weights, settings = [1.0], {"beta": 0.1, "curvature": 0.25, "penalty": 1.0}
    once, twice = (objective_loss(weights, moves=n, **settings)[0] for n in (1, 2))
    assert twice < 2 * once
    for kind in ("absence", "replacement"):
        meter = Meter(neighbours=kind)
        with meter.parallel("each person lives in one region") as branch, branch():
            if kind == "absence":
                assert meter._price(1, 5, doubled=False).largest == 5
            else:
                with pytest.raises(PrivacyError, match="from one branch to another"):
                    meter._price(1, 5, doubled=False)


# --- words --------------------------------------------------------------------------------------------------------------


def test_a_sentence_claims_to_hide_what_its_neighbours_differ_in():
    said = {kind: Guarantee(NANO, neighbours=kind).sentence() for kind in ("absence", "replacement", "item")}
    assert "whether any one person took part" in said["absence"]
    assert "whether any one person took part" not in said["replacement"]  # the number of people may be public there
    assert "what any one person's record says" in said["replacement"]
    assert "whether any one item is in the person's history" in said["item"]


def test_bins_that_differ_are_explained_beside_them():
    even = histogram("absence", 1)(counts([]), Seeded(1))
    assert not even.warnings
    (told,) = histogram("absence", 2, bin_budgets=OPEN)(counts([]), Seeded(1)).warnings
    assert "their rows (up to 2)" in told
    assert "what stands beside both" in told
    (other,) = histogram("replacement", 1, "sdpa")(counts([]), Seeded(1)).warnings
    assert "any others in their place" in other


def test_the_table_in_the_documentation_is_this_one():
    page = (Path(__file__).parents[2] / "docs" / "soundness.md").read_text(encoding="utf-8")
    assert "## Who is promised what, against which neighbour" in page
    assert TABLE.strip() in page
