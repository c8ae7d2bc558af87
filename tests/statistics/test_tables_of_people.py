"""Tables and lists over people with budgets of their own: within every budget, right for any data where that is said."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError
from sfumato.histograms import Axis, Bins
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.statistics import CrossTable, TopValues
from sfumato.statistics.crosstab_people import plan_personal_table
from sfumato.statistics.margin_fit import summed
from sfumato.statistics.margin_plan import subsets
from sfumato.statistics.top_people import plan_adaptive_top, plan_affine_top
from sfumato.testing import replay

TIERS = PersonBudgets.from_tiers({"strict": (0.05, 2000), "standard": (0.4, 1500), "open": (1.5, 500)})
SHAPE = (2, 15)
BINS = Bins(tuple(Axis.categories(f"c{i}", [f"v{j}" for j in range(n)]) for i, n in enumerate(SHAPE)))
ASKED = tuple(s for s in subsets(range(2)) if s)
MECHANISMS = ("adaptive", "affine", "minimum")


def reading(cells, rows=1):
    def read(weights, margin):
        found = summed(np.tensordot(weights, cells, axes=1), tuple(range(cells.ndim - 1)), margin)
        return Exact(found.astype(np.int64), rows_per_person=rows)

    return read


def people(seed, *, strict_elsewhere=False):
    """Counts per tier and cell; the strict ones may sit in the first half of the cells."""
    rng = np.random.default_rng(seed)
    usual = np.full(30, 1 / 30)
    other = np.repeat([2 / 30, 0.0], 15) if strict_elsewhere else usual
    return np.stack([rng.multinomial(n, usual if g else other) for g, n in enumerate(TIERS.counts)]).reshape(3, *SHAPE)


def made(plan, cells, source, terms):
    return plan.run(reading(cells, terms.rows_per_person), Meter.under(terms.up_to(plan.charge), source=source))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_nobody_loses_more_than_they_granted(mechanism, rows, neighbours):
    terms = Terms(budgets=TIERS, rows_per_person=rows, neighbours=neighbours)
    plan = plan_personal_table(terms, BINS, ASKED, mechanism=mechanism)
    assert len(plan.parts) > 1
    assert (plan.charge.people <= TIERS.levels).all()
    cells = people(0)
    for group in range(3):
        there = cells.copy()
        there[group, 0, 3] += rows
        if neighbours == "replacement":
            there[group, 1, 5] -= rows

        def run(table, tape):
            result = made(plan, table, tape, terms)
            return [*result.counts.values(), *result.interval("c0"), repr(result.parameters), repr(result.warnings)]

        found = replay(run, cells, there)
        assert found.same_output
        assert found.loss <= plan.charge.people[group]
        assert found.loss >= 0.99 * plan.charge.people[group]  # the price is exact, up to rounding


def error(result, truth):
    found = [np.mean((result.margin(*(f"c{i}" for i in s)).counts - _margin(truth, s)) ** 2) for s in ASKED]
    return float(np.mean(found))


def _margin(truth, s):
    return truth.sum(axis=tuple(i for i in range(2) if i not in s))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_preview_tells_the_error_if_budgets_say_nothing_of_the_values(mechanism):
    terms = Terms(budgets=TIERS)
    plan = plan_personal_table(terms, BINS, ASKED, mechanism=mechanism)
    found = []
    for seed in range(60):
        cells = people(seed)
        found.append(error(made(plan, cells, Seeded(seed), terms), cells.sum(axis=0)))
    assert 0.75 < np.sqrt(np.mean(found)) / plan.expected_rmse < 1.25


@pytest.mark.parametrize("mechanism", ["adaptive", "minimum"])
def test_the_first_interval_holds_where_consent_follows_the_values(mechanism):
    terms = Terms(budgets=TIERS)
    plan = plan_personal_table(terms, BINS, ASKED, mechanism=mechanism)
    covered = {s: [] for s in ASKED}
    for seed in range(60):
        cells = people(seed, strict_elsewhere=True)
        result = made(plan, cells, Seeded(seed), terms)
        for s in ASKED:
            low, high = result.interval(*(f"c{i}" for i in s), confidence=0.9)
            covered[s].append(np.mean((low <= _margin(cells.sum(axis=0), s)) & (_margin(cells.sum(axis=0), s) <= high)))
    assert min(np.mean(c) for c in covered.values()) > 0.85
    assert not plan.assumes_independence


def test_what_assumes_independence_says_so_and_is_wrong_without_it():
    plan = plan_personal_table(Terms(budgets=TIERS), BINS, ASKED, mechanism="affine")
    assert plan.assumes_independence
    cells = people(1, strict_elsewhere=True)
    off = made(plan, cells, Seeded(1), Terms(budgets=TIERS)).margin("c0").counts - cells.sum(axis=(0, 2))
    assert np.abs(off).max() > 5 * plan.errors()[(0,)]
    assert np.abs(off).max() <= plan.bias_bound + 5 * plan.errors()[(0,)]


def test_a_budget_too_small_for_its_margins_is_refused_beforehand():
    few = PersonBudgets(np.array([1]), np.array([10]))
    with pytest.raises(BudgetError, match="ask for fewer margins"):
        plan_personal_table(Terms(budgets=few), BINS, ASKED, mechanism="affine")


@pytest.mark.parametrize("make", [plan_adaptive_top, plan_affine_top])
@pytest.mark.parametrize("counted", [False, True])
def test_a_list_costs_nobody_more_than_they_granted(make, counted):
    terms = Terms(budgets=TIERS)
    plan = make(terms, Bins.numbered(30, ordered=False), 4, counted)
    assert (plan.charge.people <= TIERS.levels).all()
    cells = people(2).reshape(3, 30)
    for group in range(3):
        there = cells.copy()
        there[group, 7] += 1

        def run(table, tape):
            meter = Meter.under(terms.up_to(plan.charge), source=tape)
            result = plan.run(lambda weights: Exact(weights @ table), meter)
            return [result.places, repr(result.shortfalls), repr(result.to_dict()["counts"])]

        found = replay(run, cells, there)
        assert found.same_output
        assert found.loss <= plan.charge.people[group]


def test_how_good_a_list_is_holds_for_any_data():
    terms = Terms(budgets=TIERS)
    plan = plan_adaptive_top(terms, Bins.numbered(30, ordered=False), 4, counted=True)
    held, within = [], []
    for seed in range(60):
        cells = people(seed, strict_elsewhere=True).reshape(3, 30)
        truth = cells.sum(axis=0)
        meter = Meter.under(terms.up_to(plan.charge), source=Seeded(seed))
        result = plan.run(lambda weights, cells=cells: Exact(weights @ cells), meter)
        held.append(truth[result.places].min() >= np.sort(truth)[-4] - result.shortfalls["0.95"])
        within.append(np.mean((result.low <= truth[result.places]) & (truth[result.places] <= result.high)))
    assert np.mean(held) >= 0.95
    assert np.mean(within) > 0.9


# --- through the front door ----------------------------------------------------------------------------------------------


def opened(**more):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], 600),
            "ward": rng.choice([f"w{i}" for i in range(12)], 600, p=np.arange(1, 13) / 78),
            "tier": np.repeat(["strict", "open"], 300),
        }
    )
    schema = sf.Schema({"sex": sf.Categorical(["F", "M"]), "ward": sf.Categorical([f"w{i}" for i in range(12)])})
    if more:
        return sf.open(frame, schema=schema, noise=Seeded(1), **more)
    roster = sf.Roster.tiers({"strict": 0.2, "open": 2.0}, column="tier", counts={"strict": 300, "open": 300})
    return sf.open(frame, schema=schema, budgets=roster, noise=Seeded(1))


def test_the_default_assumes_nothing_and_what_assumes_must_be_asked():
    table = opened()
    assert table.preview("table", columns=["sex", "ward"], share=0.5)[0].mechanism == "adaptive"
    assert table.preview("table", columns=["sex", "ward"], share=0.5, independent=True)[0].mechanism == "affine"
    result = table.table("sex", "ward", share=0.5)
    assert isinstance(result, CrossTable)
    assert "what each group" in str(result.guarantee).lower() or result.guarantee.people is not None
    again = CrossTable.from_dict(result.to_dict())
    np.testing.assert_array_equal(again.interval("sex"), result.interval("sex"))
    listed = table.top("ward", k=2, share=0.25, counts=True)
    assert isinstance(listed, TopValues)
    assert TopValues.from_dict(listed.to_dict()).to_dict() == listed.to_dict()
    assert list(listed.to_frame().columns) == ["rank", "ward", "count", "low", "high"]
    assert table.balance().to_dict()["people"][0]["left"] == ["0.05", "0.05"]


def test_a_record_weighs_what_its_person_granted_in_every_margin():
    from sfumato.tables.personal import PersonalTable
    from sfumato.testing import reveal

    data = opened().dataset
    budgets = PersonBudgets.of([0.2, 2.0])
    read = PersonalTable(data, budgets).margins(["sex", "ward"])
    frame, weights = data.source, np.array([3, 50])
    heavy = np.where(frame["tier"] == "open", 50, 3)
    for kept, names in (((0,), ["sex"]), ((1, 0), ["ward", "sex"]), ((0, 1), ["sex", "ward"])):
        table = pd.Series(heavy).groupby([frame[n] for n in names]).sum()
        labels = [data.schema[n].labels() for n in names]
        wanted = table.reindex(pd.MultiIndex.from_product(labels) if len(names) > 1 else labels[0], fill_value=0)
        np.testing.assert_array_equal(reveal(read(weights, kept)).reshape(-1), wanted.to_numpy())
    assert int(reveal(read(weights, ()))) == int(heavy.sum())


def test_one_row_each_or_several_the_table_is_read_once(monkeypatch):
    from sfumato.tables.engines import Engine

    read = []
    fetch = Engine.fetch
    monkeypatch.setattr(Engine, "fetch", lambda self, expr: read.append(1) or fetch(self, expr))
    plain = opened(epsilon=10, rows=600)
    result = plain.table("sex", "ward", epsilon=0.5)
    assert len(result.scales) > 1
    assert len(read) == 1
    personal = opened()
    personal.preview("table", columns=["sex", "ward"], share=0.5)
    before = len(read)
    made_of = personal.table("sex", "ward", share=0.5)
    assert len(made_of.scales) > 1
    assert len(read) == before + 1
