"""The same table with its columns in another order, or under other names, has the same pool and the same release."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.classifiers import PrivateAdditive
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.search.pool import crossed_grids, enumerate_grids
from sfumato.privacy import Seeded
from sfumato.records.levels import Levels
from sfumato.tables import Categorical, Numeric, Schema

SHAPES = st.lists(st.sampled_from([(2,), (3,), (2, 4), (2, 4, 8), (2, 5), (3, 7), (4, 8, 16)]), min_size=1, max_size=7)


def column(name, sizes):
    """Levels of so many nodes, each node divided as evenly as can be."""
    leaves = sizes[-1]
    starts = tuple(np.array([i * leaves // n for i in range(n)]) for n in (1, *sizes))
    return Levels(name, tuple(tuple(f"{name}{n.size}-{i}" for i in range(n.size)) for n in starts), starts)


def named(pool, taxonomies):
    """Grids as sets of (name, level), in the order of the pool."""
    return [frozenset((taxonomies[j].name, level) for j, level in pool.grid(i)) for i in range(pool.size)]


@given(SHAPES, st.integers(1, 300), st.integers(2, 300), st.sampled_from([None, 1, 2, 3]), st.data())
@settings(max_examples=60, deadline=None)
def test_the_pool_does_not_depend_on_where_columns_stand(shapes, most, cells, widest, data):
    taxonomies = [column(f"c{i}", sizes) for i, sizes in enumerate(shapes)]
    shuffled = data.draw(st.permutations(taxonomies))
    pools = [named(enumerate_grids(t, most=most, cells=cells, widest=widest), t) for t in (taxonomies, shuffled)]
    assert pools[0] == pools[1]
    assert len(set(pools[0])) == len(pools[0]) <= most + 1
    score = Levels.numeric("score", np.arange(9.0))
    crossed = [
        named(crossed_grids((*t, score), len(t), most=most, cells=cells, widest=widest), (*t, score))
        for t in (taxonomies, shuffled)
    ]
    assert crossed[0] == crossed[1]
    assert len(set(crossed[0])) == len(crossed[0]) <= most


@given(SHAPES, st.integers(1, 300), st.integers(2, 300), st.data())
@settings(max_examples=40, deadline=None)
def test_names_decide_nothing(shapes, most, cells, data):
    """Columns of one shape swap their names: the pool is the same with the names swapped, so none of them is favoured."""
    taxonomies = [column(f"c{i}", sizes) for i, sizes in enumerate(shapes)]
    names = data.draw(st.permutations([t.name for t in taxonomies]))
    renamed = [column(name, sizes) for name, sizes in zip(names, shapes, strict=True)]
    pools = [enumerate_grids(t, most=most, cells=cells) for t in (taxonomies, renamed)]
    assert {frozenset(pools[0].grid(i)) for i in range(pools[0].size)} == {
        frozenset(pools[1].grid(i)) for i in range(pools[1].size)
    }


@given(SHAPES, st.integers(1, 200), st.integers(2, 200))
@settings(max_examples=40, deadline=None)
def test_of_a_layer_that_does_not_fit_all_grids_of_a_size_are_taken_or_none(shapes, most, cells):
    taxonomies = [column(f"c{i}", sizes) for i, sizes in enumerate(shapes)]
    every, pool = (enumerate_grids(taxonomies, most=m, cells=cells) for m in (10**6, most))

    def sizes(found):
        grids = (found.grid(i) for i in range(found.size))
        return Counter((len(g), int(np.prod([taxonomies[j].sizes[v] for j, v in g]))) for g in grids)

    all_of, taken = sizes(every), sizes(pool)
    assert all(taken[key] == all_of[key] for key in taken)
    short = [width for width in {w for w, _ in all_of} if any(k not in taken for k in all_of if k[0] == width)]
    assert all(key in taken for key in all_of if not short or key[0] < min(short))
    if short:
        left = most + 1 - sum(taken.values())
        missing = [all_of[key] for key in all_of if key[0] == min(short) and key not in taken]
        assert min(missing) > left


def table(rows=3_000):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"x{i}": rng.integers(8, size=rows) + 0.5 for i in range(4)})
    frame["kind"] = rng.choice(["a", "b", "c"], rows)
    hot = (frame["x1"] > 4) ^ (frame["kind"] == "b")
    frame["ill"] = np.where(rng.random(rows) < np.where(hot, 0.8, 0.2), "yes", "no")
    columns = {f"x{i}": Numeric(0, 8, bins=8) for i in range(4)} | {"kind": Categorical(["a", "b", "c"])}
    return frame, columns | {"ill": Categorical(["no", "yes"])}


ORDERS = [("x0", "x1", "x2", "x3", "kind", "ill"), ("ill", "kind", "x3", "x1", "x0", "x2")]


@pytest.mark.parametrize("options", [{"grids": 1}, {"grids": 2}, {"grids": 1, "most": 40}, {"grids": "auto", "others": 0.0}])
def test_a_release_is_the_same_for_every_order_of_the_columns(options):
    frame, columns = table()
    found = []
    for order in ORDERS:
        schema = Schema({name: columns[name] for name in order})
        publisher = PrivPfC(epsilon=2, target="ill", rows=len(frame), **options)
        found.append(publisher.fit(frame[list(order)], schema=schema, source=Seeded(5)).synopsis)
    first, second = found
    assert first.grid == second.grid
    assert np.array_equal(first.noisy, second.noisy)
    assert [o.noisy.tolist() for o in first.others] == [o.noisy.tolist() for o in second.others]
    assert (first.classifier().predict(frame) == second.classifier().predict(frame)).all()


def test_an_additive_model_is_the_same_for_every_order_of_the_columns():
    frame, columns = table()
    models = []
    for order in ORDERS:
        schema = Schema({name: columns[name] for name in order})
        X = frame[[name for name in order if name != "ill"]]
        model = PrivateAdditive(epsilon=2, schema=schema, target="ill", source=Seeded(5)).fit(X, frame["ill"])
        models.append((model.describe(), model.predict_proba(X)))
    assert models[0][0] == models[1][0]
    assert np.array_equal(models[0][1], models[1][1])
