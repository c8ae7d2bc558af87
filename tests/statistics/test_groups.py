"""A figure per group: errors as previewed, intervals that cover, totals that add up, shrinkage that pays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.results import load_result
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.groups import MECHANISMS
from sfumato.statistics.line_shrinkage import shrunk_line
from sfumato.statistics.shares import moments_of, plan_parts
from sfumato.statistics.shrinking import plain_means, shrunk_means
from sfumato.testing import reveal

MAKE = {entry.name: entry.make for entry in MECHANISMS}
STEPS = 20
GRID = Bins((Axis.categories("ward", [f"w{i}" for i in range(8)]), Axis.categories("sex", ["f", "m"])))


def question(kind, by=GRID, low=0.0, rows=None):
    high = low + 10.0
    if kind in ("count", "proportion"):
        return GroupQuestion(kind, by, rows=rows)
    base = round(low * STEPS / (high - low)) if kind == "sum" else None
    return GroupQuestion(kind, by, "x", low, high, STEPS, base=base, rows=rows)


def planned(kind, mechanism, *, epsilon=1.0, terms=None, by=GRID, low=0.0, rows=None, **given):
    asked = question(kind, by, low=low, rows=rows)
    held = Terms() if terms is None else terms

    def measure(depth, share):
        groups = Bins(by.axes[:depth]) if depth else None
        nano = None if held.budgets is not None else int(epsilon * NANO)
        return plan_parts(held, groups, asked.parts, nano=nano, share=None if share == 1 else share)

    return MAKE[mechanism](asked, measure, **given)


def rows_of(sizes, draw, by=GRID):
    """Rows over all cells of the given sizes: codes and places on the lattice; means differ between the cells."""
    cells = np.stack(np.unravel_index(np.repeat(np.arange(by.size), sizes), by.shape), axis=1)
    chance = np.repeat(draw.uniform(0.3, 0.7, by.size), sizes)
    return cells, draw.binomial(STEPS, chance)


def truth(kind, cells, values, by=GRID, low=0.0):
    place = np.ravel_multi_index(tuple(cells.T), by.shape)
    count = np.bincount(place, minlength=by.size)
    total = np.bincount(place, weights=low + values * 10.0 / STEPS, minlength=by.size)
    return {"count": count, "sum": total, "mean": total / np.maximum(count, 1)}[kind].astype(float)


def released(plan, cells, values, seed, groups=None):
    exact = Exact(moments_of(np.zeros(len(values), dtype=np.int64) if groups is None else groups, cells, values))
    return plan.run(exact, Meter.under(Terms().up_to(plan.charge), source=Seeded(seed)))


@pytest.mark.parametrize(("kind", "low"), [("count", 0.0), ("sum", 0.0), ("sum", -5.0), ("mean", 0.0)])
def test_the_previewed_error_is_that_of_separate_noise_and_intervals_cover(kind, low):
    draw = np.random.default_rng()
    cells, values = rows_of(np.full(GRID.size, 60), draw)
    plan = planned(kind, "separate", rows=60 * GRID.size, low=low)
    exact = truth(kind, cells, values, low=low)
    errors, inside, totals = [], [], []
    whole = exact.sum() if kind != "mean" else np.average(exact)
    for seed in range(40):
        made = released(plan, cells, values, seed)
        errors.append(made.values.reshape(-1) - exact)
        inside.append((made.low.reshape(-1) <= exact) & (exact <= made.high.reshape(-1)))
        totals.append(made.total.low - 1e-9 <= whole <= made.total.high + 1e-9)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.expected_rmse, rel=0.15)
    assert np.mean(inside) > 0.93
    assert np.mean(totals) > 0.85


@pytest.mark.parametrize("kind", ["count", "sum", "mean"])
def test_figures_add_up_to_their_totals(kind):
    draw = np.random.default_rng(1)
    cells, values = rows_of(draw.integers(0, 40, GRID.size), draw)
    made = released(planned(kind, "adding-up"), cells, values, 5)
    flat = made.values.reshape(-1)
    if kind == "mean":
        rows = made.counts.reshape(-1)
        assert (rows * flat).sum() / rows.sum() == pytest.approx(made.total.value)
    else:
        assert flat.sum() == pytest.approx(made.total.value)
        assert flat.min() >= 0
        public = released(planned(kind, "adding-up", total=1234.0), cells, values, 6)
        assert public.values.sum() == pytest.approx(1234.0)
        assert public.total.low == public.total.high == 1234.0


def test_totals_are_nearer_where_they_are_measured():
    many = Bins((Axis.categories("ward", [f"w{i}" for i in range(400)]),))
    cells, values = rows_of(np.full(400, 3), np.random.default_rng(2), many)
    found = {
        name: [released(planned("count", name, by=many), cells, values, seed).total.value - 1200 for seed in range(40)]
        for name in ("separate", "adding-up")
    }
    spread = {name: np.sqrt(np.mean(np.square(errors))) for name, errors in found.items()}
    assert spread["adding-up"] < 0.7 * spread["separate"]


def test_a_public_total_of_a_mean_is_refused():
    with pytest.raises(InputError, match="of a count or a sum"):
        planned("mean", "adding-up", total=5.0)


def simulated(sizes, means, epsilon, draw, within=0.2):
    """Noisy parts of groups, straight from the noise: (lower, upper) and the true shares."""
    share = np.clip(means + within * draw.standard_normal(sizes.size) / np.sqrt(sizes), 0, 1)
    exact = np.stack([sizes * (1 - share), sizes * share], axis=1)
    return exact + draw.laplace(0, 1 / epsilon, exact.shape), share


@pytest.mark.parametrize("leaning", [False, True])
def test_shrinking_pays_and_its_intervals_cover_on_average(leaning):
    draw = np.random.default_rng()
    sizes = np.floor(np.exp(draw.uniform(0, np.log(1e5), 2000))).astype(int)
    means = np.where(sizes > 200, 0.8, 0.2) if leaning else np.clip(0.6 + 0.1 * draw.standard_normal(2000), 0, 1)
    parts, share = simulated(sizes, means, 0.2, draw)
    made = shrunk_means(parts, 5.0)
    plain = np.sqrt(np.mean((plain_means(parts) - share) ** 2))
    assert np.sqrt(np.mean((made.means - share) ** 2)) < 0.8 * plain
    small = ~np.isnan(made.low)
    assert small.sum() > 500
    assert np.mean((made.low - 1e-9 <= share)[small] & (share <= made.high + 1e-9)[small]) > 0.93


@pytest.mark.parametrize("sizes", [np.full(500, 3), np.full(500, 4000), np.repeat([2, 3000], [5, 495])])
def test_groups_at_the_ends_of_the_range_are_not_made_worse(sizes):
    draw = np.random.default_rng()
    means = np.where(draw.random(500) < 0.5, 0.0, 1.0)
    found = []
    for _ in range(3):
        parts, share = simulated(sizes, means, 0.3, draw, within=0.0)
        found.append([np.mean((f - share) ** 2) for f in (plain_means(parts), shrunk_means(parts, 1 / 0.3).means)])
    plain, shrunk = np.sqrt(np.mean(found, axis=0))
    assert shrunk <= 1.05 * plain


@pytest.mark.parametrize("least", [0.0, -np.inf])
def test_sums_are_not_made_worse_however_far_apart_they_lie(least):
    draw = np.random.default_rng()
    for sums in (np.repeat([-1e6, 1e6], 100), np.repeat([0.0, 1e5], [150, 50]), draw.uniform(0, 300, 200)):
        exact = np.maximum(sums, least)
        seen = exact + draw.laplace(0, 10, exact.size)
        made, errors = shrunk_line(seen, 10.0, least=least, most=np.inf)
        plain = np.maximum(seen, least)
        assert np.mean((made - exact) ** 2) <= 1.1 * np.mean((plain - exact) ** 2)
        assert (made >= least).all()
        assert errors.shape == made.shape


ROSTER = PersonBudgets.from_tiers({"strict": (0.05, 3000), "open": (1.0, 1000)})


@pytest.mark.parametrize("kind", ["count", "mean", "sum"])
def test_intervals_hold_where_the_strict_differ_from_the_rest(kind):
    """The strict sit in some wards and have low values; what holds for any data must cover all the same."""
    draw = np.random.default_rng()
    tier = np.repeat([0, 1], ROSTER.counts)
    place = np.where(tier == 0, draw.integers(0, 8, tier.size), draw.integers(4, 16, tier.size))
    cells = np.stack(np.unravel_index(place, GRID.shape), axis=1)
    values = draw.binomial(STEPS, np.where(tier == 0, 0.2, 0.9))
    plan = planned(kind, "shrunk", terms=Terms(budgets=ROSTER))
    assert (plan.charge.people <= ROSTER.levels).all()
    exact, inside = truth(kind, cells, values), []
    moments = Exact(moments_of(tier, cells, values))
    for seed in range(25):
        made = plan.run(moments, Meter.under(Terms(budgets=ROSTER).up_to(plan.charge), source=Seeded(seed)))
        inside.append((made.low.reshape(-1) - 1e-9 <= exact) & (exact <= made.high.reshape(-1) + 1e-9))
    assert np.mean(inside) > 0.92


@pytest.mark.parametrize("base", [-30, -12, -5, 0, 7])
def test_a_row_moves_a_sum_by_at_most_its_weight_whatever_its_sign(base):
    asked = GroupQuestion("sum", GRID, "x", base / 2, (base + STEPS) / 2, STEPS, base=base)
    for value in (0, 11, STEPS):
        rows = np.array([[0, 1], [3, 0], [3, 0]]), np.array([5, 2, value])
        found = [
            reveal(asked.sums(Exact(moments_of(np.zeros(n, dtype=np.int64), rows[0][:n], rows[1][:n])), 2)(np.array([1000])))
            for n in (2, 3)
        ]
        assert np.abs(found[1] - found[0]).sum() <= 1000


@pytest.mark.parametrize("kind", ["count", "sum", "mean"])
def test_intervals_hold_whom_the_safe_parts_hardly_see(kind):
    """A few who granted next to nothing count in part, and all of them sit in one group, with one value."""
    few = PersonBudgets.from_tiers({"wary": (0.0005, 150), "open": (1.0, 3000)})
    terms = Terms(budgets=few)
    plan = planned(kind, "separate", terms=terms)
    assert plan.plans[-1].plan.unseen > 100
    tier = np.repeat([0, 1], few.counts)
    cells = np.stack(np.unravel_index(np.where(tier == 0, 3, np.arange(tier.size) % 16), GRID.shape), axis=1)
    values = np.where(tier == 0, STEPS, 4)
    exact, moments = truth(kind, cells, values), Exact(moments_of(tier, cells, values))
    inside = []
    for seed in range(12):
        made = plan.run(moments, Meter.under(terms.up_to(plan.charge), source=Seeded(seed)))
        inside.append((made.low.reshape(-1) - 1e-9 <= exact) & (exact <= made.high.reshape(-1) + 1e-9))
    assert np.mean(inside) > 0.9
    assert np.mean(np.array(inside)[:, 3]) > 0.7


# --- through the front door ------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "ward": np.random.default_rng(1).choice(["A", "B", "C", None], 900),
        "sex": np.random.default_rng(2).choice(["f", "m"], 900),
        "age": np.random.default_rng(3).integers(0, 100, 900),
    }
)
SCHEMA = sf.Schema(
    {
        "ward": sf.Categorical(["A", "B", "C", "D"]),
        "sex": sf.Categorical(["f", "m"]),
        "age": sf.Numeric(0, 99, bins=10, integer=True),
    }
)


def opened(**more):
    return sf.open(FRAME, schema=SCHEMA, epsilon=1000, rows=900, ledger=":memory:", noise=Seeded(1), **more)


def test_every_group_of_the_schema_is_answered_and_rows_without_one_are_not_counted():
    made = opened().count(by=["ward", "sex"], epsilon=50, mechanism="separate")
    frame = made.to_frame()
    assert frame[["ward", "sex"]].to_numpy().tolist() == [[w, s] for w in "ABCD" for s in "fm"]
    known = FRAME.dropna()
    assert made["B", "m"] == ((known.ward == "B") & (known.sex == "m")).sum()
    assert made["D", "f"] == 0
    assert made.total.value == len(known)
    assert made.guarantee.epsilon == 50
    mean = opened().mean("age", by=["sex"], epsilon=500, where="age >= 50")
    assert mean["f"] == pytest.approx(FRAME[(FRAME.sex == "f") & (FRAME.age >= 50)].age.mean(), abs=0.05)


@pytest.mark.parametrize("kind", ["count", "sum", "mean", "proportion"])
def test_results_come_back_as_they_were_and_are_drawn(kind, tmp_path):
    asked = {"column": "age"} if kind in ("sum", "mean") else {"where": "age > 40"} if kind == "proportion" else {}
    made = opened().release(kind, by=["ward", "sex"], epsilon=1, **asked)
    again = load_result(made.to_dict())
    assert type(again) is type(made)
    assert again.to_frame().equals(made.to_frame())
    assert again.total == made.total
    labels = [label.get_text() for label in made.plot().get_yticklabels()]
    assert sorted(labels) == sorted(f"{w} / {s}" for w in "ABCD" for s in "fm")
    page = (made.save(tmp_path / "made") / "report.html").read_text(encoding="utf-8")
    assert "What the intervals mean" in page
    assert "one of A, B, C, D" in page  # the domain of the column it is grouped by
    with pytest.raises(InputError, match="no group 'Z'"):
        made.interval("Z", "f")


def test_a_plan_may_say_by_and_a_wrong_key_is_refused():
    table = opened()
    assert [o.mechanism for o in table.preview("mean", column="age", by=["ward"], epsilon=1)] == [
        "shrunk",
        "separate",
        "adding-up",
    ]
    for wrong, words in (
        ({"by": ["bed"]}, "bed"),
        ({"by": ["ward"], "selectivity": 0.5}, "leave it out"),
        ({"by": ["ward"], "mechanism": "adaptive"}, "adaptive"),
        ({"by": ["ward"], "mechanism": "adding-up", "parameters": {"totals": 2}}, "totals"),
        ({"by": []}, "by"),
    ):
        with pytest.raises(sf.errors.SfumatoError, match=words):
            table.preview("count", epsilon=1, **wrong)
