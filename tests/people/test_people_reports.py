"""Over-protection, plots, ensembles, and the reader on a real engine."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.people import (
    ArrayReader,
    DatasetReader,
    PairReader,
    Question,
    bias_of_correlation,
    count,
    overprotection,
    plan_offer,
    preview_count,
    preview_mean,
)
from sfumato.people.ensembles import average_models, generalised_least_squares, inverse_variance, majority_vote
from sfumato.people.plots import plot_budgets, plot_options, plot_threshold_sweep
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.tables import Numeric, Roster, Schema
from sfumato.tables import open as open_table
from sfumato.testing import reveal

mpl.use("Agg")
TIERS = PersonBudgets.from_tiers({"strict": (0.01, 540), "standard": (0.2, 370), "open": (1.0, 90)})


def test_overprotection_counts_people_and_error():
    options = {o.mechanism: o for o in preview_count(TIERS)}
    least = overprotection(options["minimum"])
    assert least.overprotected == 460
    assert least.expected_rmse == least.minimum_rmse
    full = overprotection(options["stretching"])
    assert full.overprotected == 0
    assert full.unused_share == 0
    best = overprotection(options["affine"])
    assert best.generous_rmse < best.expected_rmse < best.minimum_rmse
    assert sum(r["people"] for r in best.rows) == 1000
    assert best.to_frame()["overprotected"].sum() == best.overprotected
    assert "granted more than affine uses" in best.to_dict()["sentence"]


def test_overprotection_of_a_mean_is_in_the_unit_of_the_mean():
    options = {o.mechanism: o for o in preview_mean(TIERS, low=0, high=50)}
    assert overprotection(options["minimum"]).minimum_rmse == overprotection(options["minimum"]).expected_rmse
    best = overprotection(options["affine"])
    assert best.generous_rmse < best.expected_rmse < best.minimum_rmse


def test_plots_have_labels():
    options = preview_count(TIERS)
    ax = plot_options(options)
    assert ax.get_xlabel()
    assert len(ax.get_yticklabels()) == len(options)
    many = PersonBudgets.of(np.linspace(0.01, 1, 300))
    for budgets in (TIERS, many):
        for mechanism in ("affine", "partition"):
            ax = plot_budgets(budgets, plan=plan_offer(Question(budgets), mechanism).plan)
            assert ax.get_xlabel() == "granted ε"
    ax = plot_threshold_sweep([0.01, 0.1], [2.0, 1.0], {"affine": 0.5})
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"sampling", "affine"}
    reader = ArrayReader.of(np.repeat([0, 1, 2], [540, 370, 90]), np.arange(1000) % 2, group_count=3)
    estimate = count(reader, TIERS, mechanism="partition", source=Seeded(1))
    assert estimate.plot().get_xlabel() == "count"
    mpl.pyplot.close("all")


def test_ensembles():
    assert inverse_variance([2.0, 2.0], [1.0, 5.0])[0] == 2.0
    with pytest.raises(InputError):
        inverse_variance([1.0], [0.0])
    value, variance = generalised_least_squares([1.0, 2.0], [[1.0, 0.9], [0.9, 1.0]])
    assert 1 <= value <= 2
    assert variance < 1
    with pytest.raises(InputError):
        generalised_least_squares([1.0], np.eye(2))
    assert majority_vote([[0, 1], [1, 1], [1, 0]], weights=[5, 1, 1]).tolist() == [0, 1]
    with pytest.raises(InputError):
        majority_vote([])
    assert average_models([[0.0, 2.0], [2.0, 0.0]], [1, 3]).tolist() == [1.5, 0.5]


def test_bias_rule_matches_what_happens():
    rng = np.random.default_rng(4)
    e = rng.uniform(0.01, 0.1, 200_000)
    z = (e - e.mean()) / e.std()
    p = 0.3 + 0.1 * np.sqrt(0.21) * z
    budgets = PersonBudgets.of(e, decimals=4)
    plan = plan_offer(Question(budgets), "stretching").plan
    place = np.searchsorted(budgets.levels, np.floor(e * 1e9).astype(np.int64), side="right") - 1
    actual = float(np.dot(plan.influence[place], p)) - p.mean()
    rule = bias_of_correlation(0.1, sd=float(np.sqrt(0.21)), influence=plan.influence, counts=budgets.counts)
    assert actual == pytest.approx(rule, rel=0.02)
    assert actual * 200_000 < plan.bias_bound


def _table(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.integers(0, 100, n), "pay": rng.uniform(1000, 9000, n), "epsilon": rng.choice([0.05, 0.2, 1.0], n)}
    )


def test_reading_from_an_engine_equals_reading_from_memory():
    frame = _table()
    budgets = PersonBudgets.of(frame["epsilon"])
    schema = Schema({"age": Numeric(0, 99, bins=10, integer=True), "pay": Numeric(0, 10_000, bins=10)})
    data = open_table(frame, schema=schema, budgets=Roster.column("epsilon", people=budgets))
    groups = np.searchsorted(budgets.epsilons, frame["epsilon"] - 1e-9)
    old = (frame["age"] >= 65).to_numpy()
    memory = ArrayReader.of(groups, old.astype(int), group_count=3)
    engine = DatasetReader(data, budgets, where="age >= 65")
    weights = np.array([3, 5, 7])
    assert reveal(engine.weighted_sum(weights)) == reveal(memory.weighted_sum(weights))
    assert (reveal(engine.group_sums()) == reveal(memory.group_sums())).all()
    assert (reveal(engine.group_values())[:, 1] == reveal(memory.group_values())[:, 1]).all()
    for option in preview_count(budgets):
        here = option.run(engine, Meter(limit=option.charge, budgets=budgets, source=Seeded(7)))
        there = option.run(memory, Meter(limit=option.charge, budgets=budgets, source=Seeded(7)))
        assert here.value == there.value

    pair = PairReader(
        DatasetReader.centred(data, budgets, where="age >= 65", measure="pay", steps=500),
        DatasetReader(data, budgets, where="age >= 65"),
    )
    option = preview_mean(budgets, low=0, high=10_000, steps=500, selectivity=0.35)[0]
    mean = option.run(pair, Meter(limit=option.charge, budgets=budgets, source=Seeded(8)))
    low, high = mean.interval(0.999)
    assert low <= frame["pay"][old].mean() <= high
    with pytest.raises(InputError, match="choose another mechanism"):
        DatasetReader(data, budgets, measure="pay", steps=10).group_values()


def test_a_coarser_public_roster_only_lowers_weights():
    frame = _table(seed=2)
    coarse = PersonBudgets(np.array([50_000_000, 150_000_000]), np.array([700, 1300]))
    schema = Schema({"age": Numeric(0, 99, bins=10, integer=True)})
    data = open_table(frame, schema=schema, budgets=Roster.column("epsilon", people=coarse))
    reader = DatasetReader(data, coarse)
    sums = reveal(reader.group_sums())
    assert sums.tolist() == [int((frame["epsilon"] < 0.15).sum()), int((frame["epsilon"] >= 0.15).sum())]
    # Weights are those of the levels, also where min(budget, cap) of the people themselves would be larger.
    assert reveal(reader.weighted_sum(coarse.levels)) == int(np.dot(sums, coarse.levels))
    own = PersonBudgets.of(frame["epsilon"])
    assert reveal(DatasetReader(data, own).weighted_sum(own.levels)) == int(np.dot(own.levels, own.counts))


def test_an_adaptive_histogram_is_offered_asked_for_by_name_kept_and_drawn(tmp_path):
    frame = _table(seed=3)
    schema = Schema({"age": Numeric(0, 99, bins=10, integer=True), "pay": Numeric(0, 10_000, bins=4)})
    roster = Roster.column("epsilon", people=PersonBudgets.of(frame["epsilon"]))
    session = sf.open(frame, schema=schema, budgets=roster, ledger=":memory:")
    assert [o.mechanism for o in session.preview("histogram", columns=["age"], share=0.5)] == ["adaptive", "affine"]
    made = session.histogram("age", share=0.5, mechanism="adaptive", nonnegative=True, total=2000)
    assert made.mechanism == "adaptive"
    assert made.flat.min() >= 0
    assert made.flat.sum() == pytest.approx(2000)
    low, high = made.interval(0.9999999)  # of each of ten bins: one failure in a million runs
    true = np.histogram(frame["age"], bins=10, range=(0, 100))[0]
    assert ((low <= true) & (true <= high)).all()
    assert made.plot().get_ylabel() == "records"
    several = session.histogram("age", "pay", share=0.3, mechanism="adaptive")
    assert several.counts.shape == (10, 4)
    assert several.box(age=(0, 50)).interval()[0] <= (frame["age"] < 50).sum() + 500
    several.plot()
    several.save(tmp_path / "several")
    assert (tmp_path / "several" / "report.html").read_text(encoding="utf-8").count("adaptive") >= 1
    mpl.pyplot.close("all")
