"""What is made of a synopsis: samples, classifiers, frames, pictures. All of it post-processing."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.grids import PrivPfC
from sfumato.grids.published.cleaning import clean
from sfumato.grids.published.cuts import Cut, ScoreCut, cell_codes
from sfumato.grids.published.plots import plot_schema
from sfumato.grids.published.sampling import possible_cells
from sfumato.privacy import Seeded
from sfumato.records.coding import cells_of, leaves_of_frame
from sfumato.tables.domains import Categorical, Numeric
from sfumato.tables.schema import Schema
from support import grids as helpers

mpl.use("Agg")


def fitted(grids=1, seed=1, **options):
    model = PrivPfC(epsilon=2, target="ill", grids=grids, **options)
    return model.fit(helpers.frame(), schema=helpers.schema(), source=Seeded(seed))


@pytest.mark.parametrize("grids", [1, 2])
def test_samples_fall_into_the_cells_they_were_drawn_from(grids):
    synopsis = fitted(grids).synopsis
    table = synopsis.sample(20_000)
    complete = synopsis.sample(20_000, outside="public")
    assert list(complete.columns) == ["age", "job", "sex", "visits", "ill"]
    leaves = leaves_of_frame(complete, synopsis.attributes)
    assert complete["age"].between(0, 80).all()
    assert complete["visits"].between(0, 15).all()
    assert set(table.columns) == set(complete.columns)
    assert synopsis.unknown_columns() == []
    bare = fitted(grids, others=0).synopsis
    assert set(bare.sample(10).columns) == {*(c for c in complete.columns if c not in bare.not_in_grid())}
    assert bare.unknown_columns() == bare.not_in_grid()
    code = cells_of(synopsis.target_domain, complete["ill"]) * synopsis.counts.shape[1] + cell_codes(synopsis.cuts, leaves)
    found = np.bincount(code, minlength=synopsis.counts.size) / 20_000
    wanted = synopsis.counts.reshape(-1) / synopsis.counts.sum()
    assert np.abs(found - wanted).max() < 5 * np.sqrt(wanted.max() / 20_000)


def test_columns_outside_the_grid_carry_nothing_unless_they_are_counted():
    synopsis = fitted(most=1, widest=1, others=0).synopsis
    table = synopsis.sample(4000, outside="public")
    for name in synopsis.not_in_grid():
        cell = cells_of(helpers.schema()[name], table[name])
        share = cell >= np.median(cell)
        yes = table["ill"] == "yes"
        assert abs(share[yes].mean() - share[~yes].mean()) < 0.1


def test_default_sample_has_about_as_many_rows_as_the_table():
    assert len(fitted().sample()) == pytest.approx(3000, rel=0.1)


def test_cells_that_contradict_the_first_grid_are_empty():
    synopsis = fitted(2).synopsis
    possible = possible_cells(synopsis.cuts)
    assert possible is not None
    assert synopsis.counts[:, ~possible].sum() == 0
    leaves = leaves_of_frame(helpers.frame(2000, seed=5), synopsis.attributes)
    assert possible[cell_codes(synopsis.cuts, leaves)].all()


@pytest.mark.parametrize("seed", range(6))
def test_possible_cells_are_those_that_agree_with_some_cell_of_the_first_grid(seed):
    rng = np.random.default_rng(seed)

    def cut(attribute):
        starts = np.concatenate([[0], np.sort(rng.choice(np.arange(1, 9), int(rng.integers(1, 4)), replace=False))])
        return Cut(attribute, starts, tuple(map(str, starts)), 9, f"c{attribute}", ordered=True)

    inner = (cut(0), cut(2))
    bucket = rng.integers(0, 11, inner[0].size * inner[1].size)
    cuts = (cut(0), cut(1), cut(2), ScoreCut(inner, bucket, np.zeros((2, bucket.size), dtype=np.int64), level=2))
    every = np.stack(np.meshgrid(*[np.arange(9)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    found = np.zeros(int(np.prod([c.size for c in cuts])), dtype=bool)
    found[cell_codes(cuts, every)] = True
    assert (possible_cells(cuts) == found).all()


def test_a_second_grid_on_a_first_of_one_cell_can_be_sampled_and_reported():
    schema = Schema({"x": Categorical(["a", "b"]), "y": Categorical(["n", "p"])})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.choice(["a", "b"], 300), "y": rng.choice(["n", "p"], 300, p=[0.9, 0.1])})
    firsts = set()
    for seed in range(4):
        synopsis = (
            PrivPfC(epsilon=0.5, target="y", grids=2, rows=300).fit(frame, schema=schema, source=Seeded(seed)).synopsis
        )
        firsts.add(synopsis.parameters["first_grid"])
        assert len(synopsis.sample(50)) == 50
        assert dict(synopsis.report_sections())["The grid in words"]
    assert "one cell" in firsts


def test_classifier_beats_the_majority_and_takes_any_estimator():
    from sklearn.linear_model import LogisticRegression

    model, fresh = fitted(), helpers.frame(2000, seed=99)
    majority = max((fresh["ill"] == "no").mean(), (fresh["ill"] == "yes").mean())
    assert model.classifier().score(fresh, fresh["ill"]) > majority + 0.1
    assert model.classifier(LogisticRegression()).score(fresh, fresh["ill"]) > majority + 0.1
    with pytest.raises(InputError, match="no column"):
        model.classifier().predict(fresh[["ill"]])


def test_the_contract_of_results():
    synopsis = fitted().synopsis
    frame = synopsis.to_frame()
    assert len(frame) == synopsis.counts.shape[1]
    assert frame.filter(like="ill = ").to_numpy().sum() == pytest.approx(synopsis.counts.sum())
    assert json.loads(json.dumps(synopsis.to_dict()))["target"] == "ill"
    assert "age" in synopsis.grid
    assert synopsis.signal()["age"] > 0.05
    axes = synopsis.plot()
    assert axes.get_xlabel()
    assert "ill" in axes.get_title()
    assert len(plot_schema(helpers.schema()).patches) >= 8 + 4 + 2 + 4 + 2


@pytest.mark.parametrize("how", ["clip", "norm-sub", "threshold"])
def test_cleaned_counts_are_not_negative(how):
    noisy = np.random.default_rng(0).integers(-9, 30, (2, 50))
    counts = clean(noisy, how=how, scale=3.0, total=400.0)
    assert (counts >= 0).all()
    if how == "norm-sub":
        assert counts.sum() == pytest.approx(400.0)
    with pytest.raises(InputError, match="cleaning"):
        clean(noisy, how="wish", scale=1.0, total=1.0)


def test_values_outside_the_domain_go_to_the_other_cell():
    assert cells_of(Categorical(["a"], other=True), ["a", "zzz", None]).tolist() == [0, 1, 1]
    assert cells_of(Numeric(0, 4, bins=2, outside="other"), [1, 9, float("nan")]).tolist() == [0, 2, 2]


def test_wrong_requests_to_sample_are_refused():
    with pytest.raises(InputError, match="outside"):
        fitted().sample(5, outside="guess")
    with pytest.raises(InputError, match="rows"):
        fitted().sample(-1)
