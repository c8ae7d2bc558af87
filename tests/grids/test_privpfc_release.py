"""PrivPfC as a release: equal to a slow transcription, priced as promised, right noise, private rows unread when refused."""

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.grids import PrivPfC, Settings
from sfumato.grids.published.cuts import ScoreCut, cell_codes
from sfumato.grids.publishers.one_grid import LATTICE, Weights
from sfumato.privacy import Charge, Exact, Meter, PersonBudgets, Seeded
from sfumato.privacy.losses import choice_rate
from sfumato.records.coding import cells_of, leaves_of_frame
from sfumato.records.reading import read_records
from sfumato.records.records import Records
from sfumato.tables import Categorical, Numeric, Roster, Schema
from sfumato.tables import open as open_table
from sfumato.testing import reveal
from support import grids as helpers


def literal_algorithm_two(frame, schema, epsilon, most, seed, *, classes):
    """Algorithm 2, slowly: one pass over the records per grid, formulas as printed, the choice priced as in the paper.

    The one liberty: h(d) is read off in units of 2**-16 record, as every score must be an exact number.
    """
    task = helpers.task(classes)
    taxonomies = task.taxonomies
    leaves = leaves_of_frame(frame, task.attributes)
    y = cells_of(schema["ill"], frame["ill"])
    nano = int(epsilon * 10**9)
    size, select = nano * 3 // 100, nano * 37 // 100
    count = nano - size - select
    meter = Meter(source=Seeded(seed))
    n_hat = max(1, int(meter.laplace([len(frame)], rate=size)[0]))
    tau = max(2, int(0.2 * n_hat * (count / 10**9)))
    grids = helpers.literal_enumeration(taxonomies, most, tau)

    def histogram(grid):
        shape = [len(classes), *(t.sizes[v] for t, v in zip(taxonomies, grid, strict=True))]
        table = np.zeros(shape, dtype=np.int64)
        for row, label in zip(leaves, y, strict=True):
            table[(label, *(t.maps[v][leaf] for t, v, leaf in zip(taxonomies, grid, row, strict=True)))] += 1
        return table.reshape(len(classes), -1)

    def quality(grid):
        total, e = 0.0, count / 10**9
        for cell in histogram(grid).T:
            second, first = sorted(cell.tolist())[-2:]
            d = first - second
            total += first - round(65536 * d * 0.5 * np.exp(-e * d) * (1 + e * d / 2)) / 65536
        return total

    scores = [quality(g) for g in grids]
    chosen = grids[meter.choose(scores, rate=choice_rate(select, 2.2), spread=2.2)]
    noisy = meter.laplace(histogram(chosen).reshape(-1), rate=count)
    return chosen, noisy


@pytest.mark.parametrize("classes", [("no", "yes"), ("no", "yes", "maybe")])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_seeded_runs_equal_a_literal_transcription(seed, classes):
    frame, schema = helpers.frame(60, seed, classes), helpers.schema(classes)
    chosen, noisy = literal_algorithm_two(frame, schema, 1.5, 40, seed, classes=classes)
    model = PrivPfC(
        epsilon=1.5,
        target="ill",
        grids=1,
        most=40,
        order="paper",
        widest=None,
        split="paper",
        calibration="published",
        cells=0.2,
        others=0,
    ).fit(frame, schema=schema, source=Seeded(seed))
    levels = [0] * 4
    for cut in model.synopsis.cuts:
        levels[cut.attribute] = helpers.task(classes).taxonomies[cut.attribute].sizes.index(cut.size)
    assert tuple(levels) == chosen
    assert model.synopsis.noisy.reshape(-1).tolist() == noisy.tolist()


@pytest.mark.parametrize("grids", [1, 2, "auto"])
@pytest.mark.parametrize("rows", [None, 3000])
def test_the_price_is_the_budget_and_not_more(grids, rows):
    model = PrivPfC(epsilon=0.7, target="ill", grids=grids, rows=rows)
    synopsis = model.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(4)).synopsis
    assert 0.7 - 1e-6 < float(synopsis.guarantee.epsilon) <= 0.7
    assert not synopsis.guarantee.private
    assert synopsis.parameters["public_rows"] == rows


@pytest.mark.parametrize(("share", "used"), [(0.5, 2), (0.05, 1)])
@pytest.mark.parametrize("rows", [None, 20_000])
def test_class_counts_decide_whether_a_second_grid_pays_and_are_paid_for(share, used, rows):
    frame = helpers.frame(20_000)
    frame["ill"] = np.where(np.arange(len(frame)) % 100 < 100 * share, "yes", "no")
    synopsis = PrivPfC(epsilon=1, target="ill", rows=rows).fit(frame, schema=helpers.schema(), source=Seeded(4)).synopsis
    assert synopsis.parameters["grids_used"] == used
    assert synopsis.parameters["rarer_classes_times_epsilon"] == pytest.approx(20_000 * share * 0.98, rel=0.3)
    steps = [step.label for step in synopsis.guarantee.steps]
    assert steps[0] == "class counts"
    assert not any("number of records" in label for label in steps)
    assert 1 - 1e-6 < float(synopsis.guarantee.epsilon) <= 1


@pytest.mark.parametrize(("rows_per_person", "neighbours"), [(3, "absence"), (1, "replacement"), (2, "replacement")])
def test_rows_per_person_and_replacement_are_paid_for(rows_per_person, neighbours):
    meter = Meter(limit=Charge.of(1), rows_per_person=rows_per_person, neighbours=neighbours, source=Seeded(1))
    synopsis = PrivPfC(epsilon=1, target="ill").fit(helpers.frame(), schema=helpers.schema(), meter=meter).synopsis
    factor = rows_per_person * (2 if neighbours == "replacement" else 1)
    assert synopsis.rate < 10**9 / factor
    assert 1 - 1e-6 < float(synopsis.guarantee.epsilon) <= 1


def test_a_refused_release_never_reads_the_table():
    def unread():
        raise AssertionError("the table was read before the price was accepted")

    meter = Meter(limit=Charge.of(0.1), source=Seeded(1))
    with pytest.raises(BudgetError):
        PrivPfC(epsilon=5, target="ill", grids=1).release(Exact.reading(unread), helpers.task(), meter)


def test_noise_has_the_stated_scale_and_a_smaller_one_is_told_apart():
    frame, schema, task = helpers.frame(500), helpers.schema(), helpers.task()
    records = read_records(open_table(frame, schema=schema), task.attributes, "ill")
    exact = reveal(records)
    gaps = []
    for seed in range(60):
        model = PrivPfC(epsilon=1, target="ill", grids=1, rows=500, most=200)
        synopsis = model.release(records, task, Meter(source=Seeded(seed)))
        code = exact.classes * synopsis.noisy.shape[1] + cell_codes(synopsis.cuts, exact.leaves)
        true = np.bincount(code, exact.weights, minlength=synopsis.noisy.size)
        gaps.append((synopsis.noisy.reshape(-1) - true) * synopsis.rate / 1e9)
    gap = np.abs(np.concatenate(gaps))

    def accepted(sizes):  # mean |Laplace(1)| is 1 with standard deviation 1; the lattice adds a little
        return abs(sizes.mean() - 1) < 4 / np.sqrt(sizes.size) + 0.02

    assert gap.size > 1000
    assert accepted(gap)
    assert not accepted(0.7 * gap)


def test_personal_budgets_are_kept_for_every_group_and_weigh_the_counts():
    frame = helpers.frame(2000)
    frame["epsilon"] = np.where(np.arange(2000) % 4 == 0, 0.3, 1.5)
    budgets = PersonBudgets.of(frame["epsilon"])
    table = open_table(frame, schema=helpers.schema(), budgets=Roster.column("epsilon"))
    synopsis = PrivPfC(target="ill", budgets=budgets).fit(table, source=Seeded(3)).synopsis
    losses = synopsis.guarantee.people
    assert (losses <= budgets.levels).all()
    assert (losses > 0.99 * budgets.levels).all()
    assert Weights.of(budgets).groups.tolist() == [LATTICE // 5, LATTICE]
    assert synopsis.counts.sum() == pytest.approx(2000, rel=0.05)
    assert "granted" in synopsis.warnings[0]


def test_people_who_count_for_nothing_are_named():
    frame = helpers.frame(3000)
    frame["epsilon"] = np.where(np.arange(3000) < 40, 0.0005, 1.0)
    budgets = PersonBudgets.of(frame["epsilon"])
    table = open_table(frame, schema=helpers.schema(), budgets=Roster.column("epsilon"))
    synopsis = PrivPfC(target="ill", budgets=budgets).fit(table, source=Seeded(3)).synopsis
    assert any(warning.startswith("40 people granted so little") for warning in synopsis.warnings)


def test_both_budgets_or_none_are_refused():
    with pytest.raises(InputError, match="not both"):
        PrivPfC(target="ill")
    with pytest.raises(InputError, match="not both"):
        PrivPfC(target="ill", epsilon=1, budgets=PersonBudgets.of([1.0]))
    with pytest.raises(InputError, match="add up to 1"):
        Settings(split=(0.1, 0.2, 0.3))
    with pytest.raises(InputError, match="crowd"):
        Settings(crowd=-1)
    with pytest.raises(InputError, match="roster"):
        PrivPfC(target="ill", budgets=PersonBudgets.of([1.0])).fit(helpers.frame(9), schema=helpers.schema())


def test_engine_and_arrays_give_the_same_synopsis():
    frame, schema, task = helpers.frame(800), helpers.schema(), helpers.task()
    by_engine = PrivPfC(epsilon=1, target="ill").fit(frame, schema=schema, source=Seeded(9)).synopsis
    records = Records(
        task.taxonomies, leaves_of_frame(frame, task.attributes), cells_of(schema["ill"], frame["ill"]), ("no", "yes")
    )
    by_array = PrivPfC(epsilon=1, target="ill").release(Exact(records), task, Meter(source=Seeded(9)))
    assert by_engine.grid == by_array.grid
    assert (by_engine.noisy == by_array.noisy).all()


@pytest.mark.spark
def test_spark_gives_the_same_synopsis_as_duckdb(spark):
    frame, schema = helpers.frame(300), helpers.schema()
    there = PrivPfC(epsilon=1, target="ill").fit(spark.createDataFrame(frame), schema=schema, source=Seeded(2)).synopsis
    here = PrivPfC(epsilon=1, target="ill").fit(frame, schema=schema, source=Seeded(2)).synopsis
    assert there.grid == here.grid
    assert (there.noisy == here.noisy).all()


def test_two_grids_use_the_first_as_a_public_score():
    synopsis = (
        PrivPfC(epsilon=4, target="ill", grids=2).fit(helpers.frame(), schema=helpers.schema(), source=Seeded(5)).synopsis
    )
    assert isinstance(synopsis.cuts[-1], ScoreCut)
    assert synopsis.parameters["grids_used"] == 2
    frame = helpers.frame(1000, seed=77)
    assert synopsis.classifier().score(frame, frame["ill"]) > 0.75  # the best possible is 0.8


def test_a_first_grid_of_one_cell_can_still_be_sampled():
    """On tables without signal the first of two grids is often the root: nothing lies behind its score."""
    rng = np.random.default_rng()
    schema = Schema({"a": Numeric(0, 80, bins=8), "b": Categorical(["x", "y"]), "t": Categorical(["no", "yes"])})
    for seed in range(15):
        table = pd.DataFrame(
            {"a": rng.uniform(0, 80, 200), "b": rng.choice(["x", "y"], 200), "t": rng.choice(["no", "yes"], 200)}
        )
        model = PrivPfC(epsilon=0.5, target="t", rows=200, grids=2).fit(table, schema=schema, source=Seeded(seed))
        assert set(model.sample(20)["t"]) <= {"no", "yes"}
        assert len(model.classifier().predict(table)) == 200
