"""Adaptive histograms: within everybody's budget, precise under independence, bounded when consent follows the values."""

import json
import time
from itertools import product

import numpy as np
import pytest

from sfumato.bench.people_cells import errors, rosters, seen, shares
from sfumato.errors import BudgetError
from sfumato.histograms import Bins
from sfumato.people.blocks import from_blocks, to_blocks
from sfumato.people.cell_shrinkage import CellShrinkage
from sfumato.people.histogram import PersonalHistogram, plan_histogram
from sfumato.people.mechanisms.adaptive_cells import plan_adaptive_histogram
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.testing import Tape, compare, replay

ROSTERS = rosters()
CLINIC = ROSTERS["three tiers, 50k"]
SMALL = PersonBudgets.from_tiers({"strict": (0.3, 200), "standard": (0.8, 100), "open": (2, 100)})
WHOSE = np.array([0, 0, 1, 2])


def planned(budgets, bins, **terms):
    return plan_adaptive_histogram(Terms(budgets=budgets, **terms), Bins.numbered(bins))


def made(plan, cells, source):
    meter = Meter.under(plan.terms.up_to(plan.charge), source=source)
    exact = Exact(cells, rows_per_person=plan.terms.rows_per_person)
    return plan.run(lambda weights: exact.map(lambda counts: weights @ counts), meter)


def released(budgets, bins, seed, *, pattern="one bin", gap=0.0):
    rng = np.random.default_rng(seed)
    usual, other = shares(bins, pattern, gap)
    cells = np.stack([rng.multinomial(n, usual if g else other) for g, n in enumerate(budgets.counts)])
    return made(planned(budgets, bins), cells, Seeded(seed)), cells.sum(axis=0)


# --- who loses what ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_nobody_loses_more_than_they_granted_whatever_the_data(rows, neighbours):
    """Every table of four people in two bins or absent, each against all of its neighbours."""
    plan = planned(SMALL, 2, rows_per_person=rows, neighbours=neighbours)
    homes = (None, 0, 1) if neighbours == "absence" else (0, 1)

    def calls(where):
        cells = np.zeros((3, 2), dtype=np.int64)
        for person, bin_ in enumerate(where):
            if bin_ is not None:
                cells[WHOSE[person], bin_] += rows
        tape = Tape(1)
        made(plan, cells, tape)
        return tape

    tapes = {where: calls(where) for where in product(homes, repeat=4)}
    worst = np.zeros(4, dtype=object)
    for where, tape in tapes.items():
        for person in range(4):
            others = (None,) if neighbours == "absence" else homes
            for home in others:
                there = (*where[:person], home, *where[person + 1 :])
                worst[person] = max(worst[person], sum(pair.loss for pair in compare(tape, tapes[there])))
    assert all(lost <= granted for lost, granted in zip(worst, SMALL.levels[WHOSE], strict=True))
    assert worst.tolist() == plan.charge.people[WHOSE].tolist()  # the price is exact, too


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("group", [0, 1, 2])
def test_everything_published_follows_from_the_noisy_sums(group, rows):
    plan = planned(SMALL, 5, rows_per_person=rows)
    cells = rows * np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]])
    less = cells.copy()
    less[group, int(np.argmax(cells[group]))] -= rows

    def run(table, source):
        found = made(plan, table, source)
        ends = [found.interval(0.9), found.interval(0.9, independent=True), found.range(1, 4).interval(0.9)]
        return {**found.to_dict(), "ends": [np.asarray(e).tolist() for e in ends]}

    found = replay(run, cells, less)
    assert found.same_output
    assert 0 < found.loss <= plan.charge.people[group] <= SMALL.levels[group]
    assert len(found.calls) == 2


def test_a_roster_too_small_for_its_rows_is_refused():
    with pytest.raises(BudgetError, match="buys one row"):
        planned(PersonBudgets.from_nano([1]), 2, rows_per_person=2)


# --- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [21, 200])
@pytest.mark.parametrize("name", ROSTERS)
def test_what_public_facts_promise(name, bins):
    plan, affine = planned(ROSTERS[name], bins), plan_histogram(ROSTERS[name], Bins.numbered(bins))
    safe = np.sqrt(2) * plan.safe_scale
    assert plan.expected_rmse <= 1.3 * affine.expected_rmse
    assert plan.worst_rmse <= 1.2 * safe
    assert max(plan.error_at(gap) for gap in (0.01, 0.05, 0.2, 0.4)) <= 1.2 * safe
    assert plan.error_at(0.2) > 1.5 * plan.expected_rmse or bins == 200


@pytest.mark.parametrize("bins", [21, 200])
@pytest.mark.parametrize("name", ["three tiers, 50k", "three tiers, 190k"])
def test_the_error_if_independent_is_near_that_of_affine_and_as_expected(name, bins):
    rng = np.random.default_rng()
    plan, affine = planned(ROSTERS[name], bins), plan_histogram(ROSTERS[name], Bins.numbered(bins))
    found = errors(plan, 6000 // bins, rng)
    assert found <= 1.4 * errors(affine, 6000 // bins, rng)  # 1.3 and what the draws leave in doubt
    assert found == pytest.approx(plan.expected_rmse, rel=0.25)  # which takes the people as evenly spread


@pytest.mark.parametrize("generous", [False, True])
@pytest.mark.parametrize("pattern", ["one bin", "two bins", "every second bin", "half of the bins"])
@pytest.mark.parametrize("gap", [0.02, 0.1, 0.4])
def test_the_error_is_bounded_and_the_interval_holds_at_every_gap_and_pattern(gap, pattern, generous):
    rng = np.random.default_rng()
    plan = planned(CLINIC, 21)
    found = seen(plan, pattern, gap, 60, rng, generous=generous)
    assert np.sqrt(found.bins) <= 1.3 * np.sqrt(2) * plan.safe_scale  # 1.2 and what 60 draws leave in doubt
    # 1,260 bins: three standard deviations of the share are 1.8%.
    assert 0.925 <= found.covered <= 0.98
    assert found.covered_half >= 0.80  # 60 ranges


def test_affine_fails_the_same_tests():
    rng = np.random.default_rng()
    affine = plan_histogram(CLINIC, Bins.numbered(21))
    found = seen(affine, "half of the bins", 0.4, 10, rng)
    assert np.sqrt(found.bins) > 1.3 * 283
    assert found.covered < 0.5


def test_budgets_below_r_are_in_the_interval_of_bins_and_ranges():
    rng = np.random.default_rng()
    plan = planned(ROSTERS["lognormal, 50k"], 21)
    assert plan.unseen > 0.5 * plan.safe_scale
    for gap in (0.0, 0.4):
        found = seen(plan, "half of the bins", gap, 60, rng)
        assert 0.925 <= found.covered <= 0.985
        assert found.covered_half >= 0.80


def test_the_narrow_interval_holds_under_independence_only():
    def coverage(gap):
        held = []
        for seed in range(30):
            found, truth = released(CLINIC, 21, seed, pattern="every second bin", gap=gap)
            low, high = found.interval(independent=True)
            held.append((low <= truth) & (truth <= high))
        return np.mean(held)

    assert coverage(0.0) >= 0.92
    assert coverage(0.4) <= 0.3
    found, _ = released(CLINIC, 21, 1)
    (low, high), (from_, to) = found.interval(), found.interval(independent=True)
    assert (to - from_).mean() < 0.6 * (high - low).mean()


def test_a_gap_in_all_bins_is_told_and_none_is_not():
    found, _ = released(CLINIC, 21, 3, pattern="every second bin", gap=0.4)
    assert found.parameters["bins_agree"] < 0.01
    assert found.alarm is not None
    assert found.to_dict()["alarm"] == found.alarm == type(found).from_dict(found.to_dict()).alarm
    found, _ = released(CLINIC, 21, 3)
    assert found.parameters["bins_agree"] > 0.3
    assert found.warnings == ()
    assert found.alarm is None


# --- shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (2,), (21,), (5, 4), (3, 2, 7)])
def test_blocks_are_a_rotation(shape):
    cells = int(np.prod(shape))
    turned = to_blocks(np.eye(cells), shape)
    np.testing.assert_allclose(turned @ turned.T, np.eye(cells), atol=1e-12)
    np.testing.assert_allclose(from_blocks(turned, shape), np.eye(cells), atol=1e-12)


def test_every_number_of_cells_is_shrunk_and_far_gaps_are_kept():
    for shape in [(1,), (2,), (7,), (3, 4)]:
        cells = int(np.prod(shape))
        far = np.where(np.arange(cells) % 2, -900.0, 900.0)
        moved, agree = CellShrinkage(shape, np.full(cells, 0.1), 1000.0)(far)
        np.testing.assert_allclose(moved, far, atol=1.0)
        assert agree < 1e-6


def test_a_gap_alike_in_neighbours_is_seen_though_no_cell_shows_it():
    """0.9 noise scales in every cell of one half: invisible in a cell, plain in the half."""
    rng = np.random.default_rng(5)
    gap = np.where(np.arange(200) < 100, 0.9, 0.0)
    shrink = CellShrinkage((200,), np.full(200, 0.02), 250.0)
    moved, _ = shrink(gap + rng.laplace(size=(40, 200)))
    halves = moved[:, :100].sum(axis=1)
    assert halves.mean() > 45
    assert np.sqrt(np.mean((halves - 90) ** 2)) < 3 * np.sqrt(
        200
    )  # the safe histogram's own is √200; the keen one's 6.4 √200


def test_one_budget_for_all_leaves_the_safe_histogram():
    plan = planned(PersonBudgets.of([0.5] * 100), 4)
    assert plan.keen is None
    found = made(plan, np.array([[10, 20, 30, 40]]), Seeded(1))
    np.testing.assert_array_equal(found.flat, found.any_data.values)
    np.testing.assert_array_equal(found.interval()[0], found.interval(independent=True)[0])
    assert plan.error_at(0.3) == plan.expected_rmse == pytest.approx(np.sqrt(2) * 2)


def test_the_record_comes_back_with_both_intervals_and_stays_consistent():
    found, _ = released(ROSTERS["three tiers, 190k"], 21, 4, gap=0.1)
    again = PersonalHistogram.from_dict(json.loads(json.dumps(found.to_dict(), default=str)))
    for independent in (False, True):
        np.testing.assert_allclose(again.interval(independent=independent), found.interval(independent=independent))
        ends = [h.range(3, 9).interval(independent=independent) for h in (again, found)]
        assert ends[0] == pytest.approx(ends[1])
    tidy = found.consistent(total=190_000)
    assert tidy.flat.min() >= 0
    assert tidy.flat.sum() == pytest.approx(190_000)
    np.testing.assert_array_equal(tidy.interval(), found.interval())  # made of the noisy sums, not of what was tidied
    assert found.range(3, 9).value == pytest.approx(found.flat[3:9].sum())


def test_an_affine_histogram_of_before_is_read_as_it_was():
    plan = plan_histogram(CLINIC, Bins.numbered(6))
    meter = Meter.under(plan.terms.up_to(plan.charge), source=Seeded(2))
    found = plan.run(lambda weights: Exact(weights @ np.full((3, 6), 700)), meter)
    record = found.to_dict()
    assert "any_data" not in record
    again = PersonalHistogram.from_dict(record)
    np.testing.assert_array_equal(again.interval(), found.interval(independent=True))
    assert found.range(1, 3).interval() == again.range(1, 3).interval(independent=True)


def test_errors_are_computed_the_same_every_time_and_quickly():
    plan = planned(CLINIC, 100_000)
    start = time.process_time()
    first = plan.expected_rmse, plan.error_at(0.1), plan.worst_rmse
    assert time.process_time() - start < 5  # about half a second; generous to a busy machine
    again = planned(CLINIC, 100_000)
    assert first == (again.expected_rmse, again.error_at(0.1), again.worst_rmse)
