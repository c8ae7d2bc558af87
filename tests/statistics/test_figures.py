"""Variances and proportions: errors as previewed, intervals that cover, never outside of their bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.privacy import NANO, Exact, Guarantee, Meter, Nano, PersonBudgets, Seeded, Terms
from sfumato.results import load_result
from sfumato.statistics import Figure
from sfumato.statistics.figure_offers import ProportionPlan
from sfumato.statistics.shares import moments_of, plan_parts
from sfumato.statistics.variance import VariancePlan

STEPS = 50
ROSTER = PersonBudgets.from_tiers({"strict": (0.05, 1500), "open": (1.0, 500)})
SHAPES = {
    "even": lambda draw, n: draw.integers(0, STEPS + 1, n),
    "narrow": lambda draw, n: draw.integers(20, 24, n),
    "ends": lambda draw, n: STEPS * draw.integers(0, 2, n),
    "edge": lambda draw, n: draw.binomial(STEPS, 0.02, n),
}


def variance_plan(*, epsilon=0.2, rows=None, terms=None, independent=False):
    held = Terms() if terms is None else terms
    nano = None if held.budgets is not None else int(epsilon * NANO)
    parts = plan_parts(held, None, 3, nano=nano, independent=independent)
    return VariancePlan("laplace", parts, "x", 0.0, 100.0, STEPS, 0.0, rows)


def run(plan, values, seed, groups=None, terms=None):
    who = np.zeros(values.size, dtype=np.int64) if groups is None else groups
    exact = Exact(moments_of(who, np.zeros((values.size, 0), dtype=np.int64), values, powers=2))
    return plan.run(exact, Meter.under((Terms() if terms is None else terms).up_to(plan.charge), source=Seeded(seed)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [3, 40, 2000])
def test_intervals_of_a_variance_cover_and_nothing_is_negative(shape, n):
    values = SHAPES[shape](np.random.default_rng(), n)
    exact = float((100 / STEPS * values).var())
    plan = variance_plan()
    inside = []
    for seed in range(30):
        made = run(plan, values, seed)
        assert 0 <= made.low <= made.high <= 2500
        assert 0 <= made.value <= 2500
        assert made.standard_deviation == pytest.approx(np.sqrt(made.value))
        inside.append(made.low - 1e-6 <= exact <= made.high + 1e-6)
    assert np.mean(inside) >= 0.83  # 25 of 30, below which a coverage of 95% falls in one of a thousand cases


def test_the_previewed_error_of_a_variance_is_what_is_seen():
    values = np.tile(np.arange(STEPS + 1), 40)
    plan = variance_plan(rows=values.size)
    exact = float((100 / STEPS * values).var())
    errors = [run(plan, values, seed).value - exact for seed in range(100)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.expected_rmse, rel=0.25)


@pytest.mark.parametrize("independent", [False, True])
def test_variances_at_budgets_of_everybodys_own_hold_for_any_data(independent):
    """The strict lie in the middle and the others at the ends."""
    tier = np.repeat([0, 1], ROSTER.counts)
    values = np.where(tier == 0, 25, np.where(np.arange(tier.size) % 2, 0, STEPS))
    terms = Terms(budgets=ROSTER)
    plan = variance_plan(terms=terms, independent=independent)
    assert (plan.charge.people <= ROSTER.levels).all()
    exact = float((100 / STEPS * values).var())
    made = [run(plan, values, seed, tier, terms) for seed in range(20)]
    assert np.mean([m.low <= exact <= m.high for m in made]) > 0.8


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5])
def test_a_proportion_covers_and_errs_as_previewed(share):
    n = 300
    hits = (np.arange(n) < share * n).astype(np.int64)
    plan = ProportionPlan("laplace", plan_parts(Terms(), None, 2, nano=NANO // 5), float(n))
    made = [run(plan, hits, seed) for seed in range(120)]
    assert np.mean([m.low <= hits.mean() <= m.high for m in made]) > 0.88
    assert all(0 <= m.low <= m.value <= m.high <= 1 for m in made)
    if share == 0.5:
        seen = np.sqrt(np.mean([(m.value - 0.5) ** 2 for m in made]))
        assert seen == pytest.approx(plan.expected_rmse, rel=0.25)


# --- through the front door ------------------------------------------------------------------------------------------

DRAW = np.random.default_rng(4)
FRAME = pd.DataFrame({"age": DRAW.integers(0, 100, 800), "ward": DRAW.choice(["A", "B"], 800)})
SCHEMA = sf.Schema({"age": sf.Numeric(0, 99, bins=10, integer=True), "ward": sf.Categorical(["A", "B"])})


def opened():
    return sf.open(FRAME, schema=SCHEMA, epsilon=1000, rows=800, ledger=":memory:", noise=Seeded(2))


def test_both_are_asked_of_a_table_and_come_back(tmp_path):
    table = opened()
    spread = table.variance("age", where="ward = 'A'", epsilon=200)
    assert spread.value == pytest.approx(FRAME[FRAME.ward == "A"].age.var(ddof=0), rel=0.01)
    share = table.proportion(where="age >= 65", of="ward = 'B'", epsilon=200)
    assert share.value == pytest.approx((FRAME[FRAME.ward == "B"].age >= 65).mean(), abs=0.001)
    for made in (spread, share):
        again = load_result(made.to_dict())
        assert again.to_dict() == made.to_dict()
        assert again.to_frame().equals(made.to_frame())
        assert made.plot().get_xlabel().startswith(made.kind)
    page = (share.save(tmp_path / "share") / "report.html").read_text(encoding="utf-8")
    assert "95% interval" in page
    assert "column ward" in page  # the condition of the base is part of what was asked


def test_what_cannot_be_asked_is_refused_with_the_remedy():
    table = opened()
    with pytest.raises(InputError, match="needs `where`"):
        table.preview("proportion", epsilon=1)
    with pytest.raises(sf.errors.SfumatoError, match="ward"):
        table.preview("variance", column="ward", epsilon=1)
    with pytest.raises(InputError, match="steps"):
        table.preview("variance", column="age", epsilon=1, steps=10**6)
    with pytest.raises(sf.errors.SfumatoError, match="agee"):
        table.preview("proportion", where="age > 1", of="agee = 3", epsilon=1)


def test_a_second_interval_is_said_only_if_it_is_narrower():
    about = {"kind": "variance", "value": 5.0, "low": 4.0, "high": 6.0, "mechanism": "adaptive", "bounds": (0.0, 9.0)}
    promise = Guarantee(Nano(10**9))
    for second, said in (((4.5, 5.5), (4.5, 5.5)), ((3.0, 7.0), None), (None, None)):
        assert Figure(**about, guarantee=promise, if_independent=second).headline().interval_if_independent == said
