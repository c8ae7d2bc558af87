"""Tables with margins: within the price, as good as planned, all margins sums of the same cells."""

from itertools import product

import numpy as np
import pytest

from sfumato.audit import Weaker
from sfumato.histograms import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, Seeded, Terms
from sfumato.statistics import CrossTable
from sfumato.statistics.crosstab import TablePlan, plan_table
from sfumato.statistics.crosstab_offers import margins_asked
from sfumato.statistics.margin_fit import effects, margin_of, summed
from sfumato.statistics.margin_plan import PARTS, Precision, planned_shares, subsets
from sfumato.statistics.tidy import nonnegative, whole
from sfumato.testing import Tape, compare, replay

SHAPE = (3, 4, 2)


def bins_of(shape=SHAPE):
    return Bins(tuple(Axis.categories(f"c{i}", [f"v{j}" for j in range(n)]) for i, n in enumerate(shape)))


def every(shape=SHAPE):
    return tuple(s for s in subsets(range(len(shape))) if s)


def reading(table, rows=1):
    def read(weights, margin):
        counts = summed(np.tensordot(weights, table[None], axes=1), tuple(range(table.ndim)), margin)
        return Exact(counts.astype(np.int64), rows_per_person=rows)

    return read


def made(plan, table, source):
    meter = Meter.under(plan.terms.up_to(plan.charge), source=source)
    return plan.run(reading(table, plan.terms.rows_per_person), meter)


def planned(mechanism="margins", shape=SHAPE, rate=NANO // 10, asked=None, **terms):
    return plan_table(Terms(**terms), bins_of(shape), asked or every(shape), rate=rate, mechanism=mechanism)


# --- what it costs -------------------------------------------------------------------------------------------------------


SEVERAL = {(): NANO // 50, (0,): NANO // 7, (0, 1): NANO // 3}


@pytest.mark.parametrize("rates", [SEVERAL, {(0, 1): NANO // 3}])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("neighbours", ["absence", "replacement"])
def test_a_person_loses_the_price_and_no_more_whatever_the_table(rates, rows, neighbours):
    """Every table of two people in 2 x 2 cells or absent, each against all of its neighbours."""
    plan = TablePlan(Terms(rows_per_person=rows, neighbours=neighbours), bins_of((2, 2)), every((2, 2)), rates, "margins")
    homes = range(4) if neighbours == "replacement" else (None, *range(4))

    def tape_of(where):
        table = np.zeros(4, dtype=np.int64)
        for home in where:
            if home is not None:
                table[home] += rows
        tape = Tape(1)
        made(plan, table.reshape(2, 2), tape)
        return tape

    tapes = {where: tape_of(where) for where in product(homes, repeat=2)}
    worst = 0
    for (_, second), tape in tapes.items():
        for home in homes if neighbours == "replacement" else (None,):
            worst = max(worst, sum(pair.loss for pair in compare(tape, tapes[home, second])))
    assert worst <= plan.charge.total
    if neighbours == "absence" or () not in rates:  # replacing somebody leaves the total as it is
        assert worst == plan.charge.total


@pytest.mark.parametrize("mechanism", ["margins", "cells"])
@pytest.mark.parametrize("rows", [1, 4])
def test_a_plan_costs_what_was_asked_and_no_more(mechanism, rows):
    for shape in (SHAPE, (30, 40)):
        rate = NANO // 7
        plan = planned(mechanism, shape, rate, rows_per_person=rows)
        assert 0.99 * rate * rows < plan.charge.total <= rate * rows
        meter = Meter.under(plan.terms, source=Seeded(1))  # without a limit: what is spent is what was done
        plan.run(reading(np.zeros(shape, dtype=np.int64), rows), meter)
        assert meter.spent().total == plan.charge.total


@pytest.mark.parametrize("mechanism", ["margins", "cells"])
def test_everything_published_follows_from_the_noisy_margins(mechanism):
    plan = planned(mechanism)
    table = np.arange(24).reshape(SHAPE)
    more = table.copy()
    more[1, 2, 0] += 1

    def run(counts, tape):
        result = made(plan, counts, tape)
        return [*result.counts.values(), *result.interval("c0", "c1"), repr(result.parameters), result.expected_rmse]

    found = replay(run, table, more)
    assert found.same_output
    assert found.loss <= plan.charge.total


# --- the fit -------------------------------------------------------------------------------------------------------------


def matrix(shape, margin):
    """The margin as a matrix on the cells."""
    parts = [np.eye(n) if i in margin else np.ones((1, n)) for i, n in enumerate(shape)]
    out = np.ones((1, 1))
    for part in parts:
        out = np.kron(out, part)
    return out


@pytest.mark.parametrize("variances", [{(0, 1, 2): 2.0}, {(0, 1, 2): 3.0, (0,): 1.0, (1, 2): 0.5, (): 4.0}])
def test_the_fit_is_generalised_least_squares(variances):
    rng = np.random.default_rng(0)
    precision = Precision(SHAPE, variances)
    noisy = {a: rng.normal(10, 5, [SHAPE[i] for i in a]) for a in variances}
    rows = np.vstack([matrix(SHAPE, a) / np.sqrt(v) for a, v in variances.items()])
    seen = np.concatenate([noisy[a].reshape(-1) / np.sqrt(v) for a, v in variances.items()])
    cells, *_ = np.linalg.lstsq(rows, seen, rcond=None)
    covariance = np.linalg.inv(rows.T @ rows)
    found = effects(noisy, precision)
    for margin in subsets(range(3)):
        summing = matrix(SHAPE, margin)
        np.testing.assert_allclose(margin_of(found, SHAPE, margin).reshape(-1), summing @ cells, atol=1e-9)
        np.testing.assert_allclose(np.diag(summing @ covariance @ summing.T), precision.variance(margin), rtol=1e-9)
        told = sum(precision.variances[a] * c**2 * times for a, c, times in precision.terms(margin))
        assert told == pytest.approx(precision.variance(margin))


@pytest.mark.parametrize("shape", [(4, 5), (2, 20, 10), (1, 4, 3), (7,), (2, 2, 2, 2)])
def test_a_plan_is_never_worse_than_the_simple_ones(shape):
    for margins in ("all", 1):
        asked = margins_asked(margins, len(shape), "here")
        shares = planned_shares(shape, asked)
        assert sum(shares.values()) == PARTS

        def error(parts, asked=asked):
            precision = Precision(shape, {a: 2 / (p / PARTS) ** 2 for a, p in parts.items()})
            return np.mean([precision.variance(s) for s in asked])

        cells = {tuple(range(len(shape))): PARTS}
        separate = {s: PARTS // len(asked) for s in asked}
        assert error(shares) <= min(error(cells), error(separate)) * 1.001


@pytest.mark.parametrize("mechanism", ["margins", "cells"])
def test_margins_add_up_in_every_way(mechanism):
    result = made(planned(mechanism), np.arange(24).reshape(SHAPE), Seeded(1))
    for big in subsets(range(3)):
        for small in subsets(big):
            names, fewer = ([f"c{i}" for i in s] for s in (big, small))
            whole_margin = result.margin(*names).counts.reshape([SHAPE[i] for i in big])
            drop = tuple(j for j, i in enumerate(big) if i not in small)
            np.testing.assert_allclose(
                whole_margin.sum(axis=drop).reshape(-1), result.margin(*fewer).counts.reshape(-1), atol=1e-8
            )
    assert result.table("c0", "c1").loc["total", "total"] == pytest.approx(result.total)
    np.testing.assert_allclose(result.margin("c1", "c0").counts, result.margin("c0", "c1").counts.T)


# --- how good it is ------------------------------------------------------------------------------------------------------

TABLE = np.random.default_rng(4).integers(0, 60, SHAPE)


def errors(plan, runs, source):
    found = {s: [] for s in plan.asked}
    covered = {s: [] for s in plan.asked}
    for seed in range(runs):
        result = made(plan, TABLE, source(seed))
        for s in plan.asked:
            truth = TABLE.sum(axis=tuple(i for i in range(3) if i not in s))
            margin = result.margin(*(f"c{i}" for i in s))
            found[s].append(margin.counts - truth)
            low, high = margin.interval(0.9)
            covered[s].append((low <= truth) & (truth <= high))
    return {s: np.array(x) for s, x in found.items()}, {s: float(np.mean(x)) for s, x in covered.items()}


def ratios(plan, found):
    return {s: float(np.mean(np.square(found[s])) / plan.errors()[s] ** 2) for s in plan.asked}


def test_the_preview_tells_the_error_of_every_margin_and_intervals_cover():
    plan = planned(rate=NANO // 20)
    found, covered = errors(plan, 130, Seeded)
    for s, ratio in ratios(plan, found).items():
        assert 0.7 < ratio < 1.4, s  # about 260 to 3000 figures each, of heavy tails
        assert abs(float(np.mean(found[s]))) < 5 * plan.errors()[s] / np.sqrt(130)
        assert covered[s] > 0.86, s
        assert covered[s] < 0.95, s
    assert plan.expected_rmse == pytest.approx(np.sqrt(np.mean(np.square(list(plan.errors().values())))))


def test_noise_that_is_too_small_by_a_third_is_seen():
    plan = planned(rate=NANO // 20)
    found, _ = errors(plan, 60, lambda seed: Weaker(0.3, Seeded(seed)))
    assert all(ratio < 0.7 for ratio in ratios(plan, found).values())


def test_large_epsilon_keeps_its_intervals():
    plan = planned("cells", rate=2 * NANO)
    found, covered = errors(plan, 60, Seeded)
    assert min(covered.values()) > 0.87
    assert ratios(plan, found)[0, 1, 2] == pytest.approx(1, abs=0.2)


# --- without negative cells, in whole numbers ------------------------------------------------------------------------------


def test_no_negative_cells_and_no_rows_from_nowhere():
    plan = planned(rate=NANO // 20)
    rng = np.random.default_rng(8)
    sparse = np.where(rng.random(SHAPE) < 0.6, 0, rng.integers(0, 200, SHAPE))
    plain, better = [], []
    for seed in range(60):
        table = made(plan, sparse, Seeded(seed)).value
        fixed = nonnegative(table, plan.precision)
        assert fixed.min() >= 0
        assert fixed.sum() == pytest.approx(table.sum())
        plain.append(np.mean((table - sparse) ** 2))
        better.append(np.mean((fixed - sparse) ** 2))
    assert np.mean(better) < np.mean(plain)
    assert nonnegative(np.full((2, 2), -1.0), Precision((2, 2), {(0, 1): 1.0})).tolist() == [[0, 0], [0, 0]]
    assert nonnegative(np.full((2, 2), 3.0), Precision((2, 2), {(0, 1): 1.0})).tolist() == [[3, 3], [3, 3]]


def test_no_negative_cells_is_the_nearest_such_table():
    """Against a solver on the dense problem."""
    from scipy import optimize

    precision = Precision((2, 3), {(0, 1): 4.0, (0,): 1.0, (): 0.5})
    table = np.array([[5.0, -3.0, 1.0], [-2.0, 8.0, 0.5]])
    rows = np.vstack([matrix((2, 3), a) / np.sqrt(v) for a, v in precision.variances.items()])
    found = nonnegative(table, precision)

    def far(x):
        return float(np.sum((rows @ (x - table.reshape(-1))) ** 2))

    same = {"type": "eq", "fun": lambda x: x.sum() - table.sum()}
    best = optimize.minimize(far, np.full(6, table.sum() / 6), bounds=[(0, None)] * 6, constraints=[same])
    assert far(found.reshape(-1)) <= best.fun * 1.001


def test_whole_numbers_keep_the_margins_of_the_first_columns():
    table = np.random.default_rng(3).exponential(5, (4, 5, 3))
    found = whole(table)
    assert (found == np.rint(found)).all()
    for depth in range(4):
        axes = tuple(range(depth, 3))
        assert np.abs(found.sum(axis=axes) - table.sum(axis=axes)).max() < 1 + 1e-9
    assert found.min() >= 0
    assert whole(np.array([2.0, 3.0])).tolist() == [2, 3]


# --- forms ---------------------------------------------------------------------------------------------------------------


def test_a_table_is_the_same_after_it_was_written_down():
    for asked in (every(), margins_asked(2, 3, "here")):
        result = made(planned(asked=asked), TABLE, Seeded(2))
        again = CrossTable.from_dict(result.to_dict())
        assert again.to_dict() == result.to_dict()
        for s in asked:
            names = [f"c{i}" for i in s]
            np.testing.assert_array_equal(again.margin(*names).counts, result.margin(*names).counts)
            np.testing.assert_array_equal(again.interval(*names), result.interval(*names))
        assert len(result.to_frame()) == sum(np.prod([SHAPE[i] for i in s]) for s in result.counts)


def test_margins_of_two_columns_agree_with_each_other():
    asked = margins_asked([2], 3, "here")
    result = made(planned(asked=asked), TABLE, Seeded(2))
    (a, b), (c, d) = ((0, 1), (1, 2))
    np.testing.assert_allclose(result.counts[a, b].sum(axis=0), result.counts[c, d].sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_it_is_drawn(columns):
    import matplotlib.pyplot as plt

    shape = SHAPE[:columns]
    result = made(planned(shape=shape), TABLE[(slice(None),) * columns + (0,) * (3 - columns)], Seeded(2))
    ax = result.plot()
    drawn = [text.get_text() for inner in (ax, *ax.child_axes) for text in inner.texts]
    numbers = [f"{count:,.0f}" for count in result.value.reshape(-1)]
    if columns > 1:
        assert set(numbers) <= set(drawn)
    if columns == 3:
        assert len(ax.child_axes) == SHAPE[0]
    assert "NOT PRIVATE" in ax.get_title()
    plt.close("all")
