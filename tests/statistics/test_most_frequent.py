"""Lists of the most frequent values: within the price, as good as stated, fast over long lists."""

import time
from itertools import product

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.audit import Weaker
from sfumato.histograms import Bins
from sfumato.privacy import NANO, Exact, Meter, Seeded, Terms
from sfumato.statistics import TopValues
from sfumato.statistics.top import beaten, flipped, plan_top
from sfumato.testing import Tape, compare, replay

MECHANISMS = ("counts", "flip")


def planned(mechanism, values=6, k=2, rate=NANO, counted=False, **terms):
    bins = Bins.numbered(values, ordered=False)
    return plan_top(Terms(**terms), bins, k, rate=rate, counted=counted, mechanism=mechanism)


def made(plan, counts, source):
    meter = Meter.under(plan.terms.up_to(plan.charge), source=source)
    return plan.run(Exact(np.asarray(counts), rows_per_person=plan.terms.rows_per_person), meter)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_a_person_loses_at_most_the_price_whatever_they_own(mechanism, rows, neighbours):
    """Two people whose rows are anywhere over three values, each list replayed to all of its neighbours."""
    plan = planned(mechanism, 3, rows_per_person=rows, neighbours=neighbours, counted=True)
    homes = [h for h in product(range(rows + 1), repeat=3) if sum(h) == rows]
    homes += [(0, 0, 0)] if neighbours == "absence" else []
    worst = 0
    for first, second in product(homes, repeat=2):
        tape = Tape(5)
        made(plan, np.add(first, second), tape)
        for home in homes if neighbours == "replacement" else [(0, 0, 0)]:
            again = tape.again()
            made(plan, np.add(home, second), again)
            worst = max(worst, sum(pair.loss for pair in compare(tape, again)))
    assert worst <= plan.charge.total
    if mechanism == "counts":
        assert worst == plan.charge.total


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("counted", [False, True])
def test_a_list_costs_what_was_asked_and_no_more(mechanism, counted):
    plan = planned(mechanism, 9, 3, rate=NANO // 7, counted=counted, rows_per_person=2)
    assert 0.99 * 2 * (NANO // 7) < plan.charge.total <= 2 * (NANO // 7)
    meter = Meter.under(plan.terms, source=Seeded(1))
    plan.run(Exact(np.arange(9), rows_per_person=2), meter)
    assert meter.spent().total == plan.charge.total


def test_the_spread_of_counts_is_one_row_and_not_two():
    """A choice at the whole rate costs the whole rate: the ratio of the probabilities of a pair shows it."""
    plan = planned("flip", 2, k=1, rate=NANO)
    draws = [
        np.mean([made(plan, counts, Seeded(seed)).places[0] for seed in range(400)]) for counts in ([3, 3], [3, 4], [4, 3])
    ]
    # one of two exponentials is larger by one unit with probability e^-1 / 2
    assert draws[0] == pytest.approx(0.5, abs=0.12)
    assert draws[1] == pytest.approx(1 - np.exp(-1) / 2, abs=0.12)
    assert np.log(draws[0] / draws[2]) < 1.0 + 0.5


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_everything_published_follows_from_what_was_paid_for(mechanism):
    plan = planned(mechanism, 8, k=3, counted=True)
    counts = np.array([5, 5, 4, 4, 3, 3, 1, 0])

    def run(table, tape):
        result = made(plan, table, tape)
        return [result.places, result.counts, repr(result.shortfalls), repr(result.parameters)]

    for place in range(8):
        found = replay(run, counts, counts + (np.arange(8) == place))
        assert found.same_output
        assert found.loss <= plan.charge.total


HARD = np.concatenate([np.full(5, 40), np.full(45, 30)])  # many values just below the listed ones


def shortfalls(plan, counts, runs, source):
    least = np.sort(counts)[-plan.k]
    return np.array([max(0, least - counts[made(plan, counts, source(seed)).places].min()) for seed in range(runs)])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("k", [1, 5])
def test_a_list_is_as_good_as_stated(mechanism, k):
    plan = planned(mechanism, HARD.size, k, rate=NANO // 2)
    found = shortfalls(plan, HARD, 150, Seeded)
    steps = np.arange(HARD.size)  # every gap is met, not one
    stairs = shortfalls(plan, steps, 150, Seeded)
    for seen in (found, stairs):
        assert np.sqrt(np.mean(seen**2)) <= plan.expected_rmse
        assert np.mean(seen > plan.shortfall(0.95)) <= 0.05
        assert np.mean(seen > plan.shortfall(0.5)) <= 0.5
    assert stairs.max() > 0.1 * plan.shortfall(0.95)  # the bound is of the right size


def test_the_bounds_are_probabilities_that_fall():
    a = np.linspace(0, 60, 200)
    for law in (beaten, flipped):
        assert (np.diff(law(a, 1000, 7)) <= 1e-12).all()
        assert law(a, 1000, 7)[0] == 1


def test_one_value_is_chosen_best_by_flip_and_several_by_counts():
    assert planned("flip", 50, 1).expected_rmse < planned("counts", 50, 1).expected_rmse
    for k in (2, 3, 10):
        assert planned("counts", 50, k).expected_rmse < planned("flip", 50, k).expected_rmse


def test_counts_of_the_listed_are_not_biased_by_the_choice():
    plan = planned("counts", HARD.size, 3, rate=NANO // 5, counted=True)
    off, covered = [], []
    for seed in range(200):
        result = made(plan, HARD, Seeded(seed))
        off.append(result.counts - HARD[result.places])
        low, high = result.interval(0.9)
        covered.append((low <= HARD[result.places]) & (HARD[result.places] <= high))
    scale = 1e9 / plan.count_rate
    assert abs(np.mean(off)) < 5 * np.sqrt(2) * scale / np.sqrt(600)
    assert np.mean(np.abs(off)) == pytest.approx(scale, rel=0.18)
    assert 0.86 < np.mean(covered) < 0.95
    weak = [made(plan, HARD, Weaker(0.3, Seeded(s))) for s in range(100)]
    small = np.mean([np.abs(w.counts - HARD[w.places]) for w in weak])
    assert small < 0.85 * scale  # what the test above would refuse


def test_ten_thousand_values_are_fast():
    counts = np.random.default_rng(0).zipf(1.5, 10_000).clip(max=10**6)
    for mechanism in MECHANISMS:
        plan = planned(mechanism, counts.size, 20, counted=True)
        start = time.process_time()
        found = made(plan, counts, Seeded(1))
        assert time.process_time() - start < 1
        assert counts[found.places].min() >= np.sort(counts)[-20] - plan.shortfall(0.99)


def test_through_the_front_door_by_one_column_or_several():
    frame = pd.DataFrame({"ward": ["a"] * 50 + ["b"] * 5 + ["c"] * 20, "sex": ["F", "M", "M"] * 25})
    schema = sf.Schema({"ward": sf.Categorical(["a", "b", "c", "d"]), "sex": sf.Categorical(["F", "M"])})
    table = sf.open(frame, schema=schema, epsilon=100, rows=75, noise=Seeded(2))
    assert table.top("ward", k=2, epsilon=20).value == ["a", "c"]
    assert table.release("top", column="ward", k=2, epsilon=20, where="sex = 'M'").value == ["a", "c"]
    both = table.top("ward", "sex", k=1, epsilon=20, counts=True)
    assert both.labels == [("a", "M")]
    assert list(both.to_frame().columns) == ["rank", "ward", "sex", "count", "low", "high"]
    assert both.counts == pytest.approx([33], abs=3)


def test_a_list_is_the_same_after_it_was_written_down_and_is_drawn():
    import matplotlib.pyplot as plt

    for counted in (False, True):
        result = made(planned("counts", 8, 3, counted=counted), np.arange(8), Seeded(1))
        again = TopValues.from_dict(result.to_dict())
        assert again.to_dict() == result.to_dict()
        assert again.to_frame().equals(result.to_frame())
        assert [t.get_text().split(". ")[1] for t in again.plot().get_yticklabels()] == result.value
        assert "3rd most frequent" in result.report_sections()[0][1]
    plt.close("all")
