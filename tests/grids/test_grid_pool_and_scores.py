"""Enumeration against a literal transcription; roll-up against counting each grid by itself."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.grids.search.pool import crossed, enumerate_grids
from sfumato.grids.search.quality import Quality
from sfumato.grids.search.scoring import score_pool
from sfumato.records.levels import Levels
from sfumato.records.records import weighted_bincount
from support import grids as helpers


def levels_of(pool, i, d):
    levels = [0] * d
    for j, v in pool.grid(i):
        levels[j] = v
    return tuple(levels)


@pytest.mark.parametrize(("most", "cells"), [(10**6, 40), (57, 40), (5, 100), (200, 7)])
def test_paper_order_is_algorithm_two(most, cells):
    taxonomies = helpers.random_records(np.random.default_rng(0), 5).taxonomies
    pool = enumerate_grids(taxonomies, most=most, cells=cells, order="paper")
    assert [levels_of(pool, i, 4) for i in range(pool.size)] == helpers.literal_enumeration(taxonomies, most, cells)


@given(st.integers(1, 400), st.integers(2, 200), st.sampled_from(["paper", "balanced"]), st.sampled_from([None, 2, 3]))
@settings(max_examples=40, deadline=None)
def test_pools_keep_their_limits_and_have_no_grid_twice(most, cells, order, widest):
    taxonomies = helpers.random_records(np.random.default_rng(0), 5).taxonomies
    pool = enumerate_grids(taxonomies, most=most, cells=cells, order=order, widest=widest)
    grids = [pool.grid(i) for i in range(pool.size)]
    assert len(set(grids)) == pool.size <= most + 1
    for grid in grids:
        assert np.prod([taxonomies[j].sizes[v] for j, v in grid], initial=1) <= cells
        assert len(grid) <= (widest or 4)


def test_balanced_pools_treat_columns_alike_where_the_papers_order_does_not():
    taxonomies = [Levels.numeric(f"c{j}", np.arange(17.0)) for j in range(12)]

    def share_of_last(order):
        pool = enumerate_grids(taxonomies, most=3000, cells=256, order=order)
        uses = np.zeros(12)
        for family in pool.families:
            if len(family.attributes) == 3:
                uses[list(family.attributes)] += len(family.index)
        return uses[-1] / uses.max()

    assert share_of_last("paper") < 0.2
    assert share_of_last("balanced") == 1


def test_whole_layers_are_kept_while_they_fit():
    taxonomies = [Levels.flat(f"c{j}", ["u", "v"]) for j in range(8)]
    pool = enumerate_grids(taxonomies, most=40, cells=100)
    pairs = {family.attributes for family in pool.families if len(family.attributes) == 2}
    assert pairs == set(combinations(range(8), 2))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 7, 3000])
def test_rolled_up_scores_equal_counting_every_grid(classes, weighted, n):
    records = helpers.random_records(np.random.default_rng(n), n, classes, weighted)
    pool = enumerate_grids(records.taxonomies, most=10**6, cells=10**6)
    quality = Quality.of(10**8)
    scores = score_pool(records, pool, quality)
    assert scores.tolist() == [float(quality.score(records.table(pool.grid(i)))) for i in range(pool.size)]
    merged = records.compressed()
    assert merged.total == records.total
    assert (score_pool(merged, pool, quality) == scores).all()


def test_crossed_pools_score_alike():
    records = helpers.random_records(np.random.default_rng(5), 400)
    pool = crossed(enumerate_grids(records.taxonomies[:3], most=100, cells=20), records.taxonomies, 3, cells=60)
    quality = Quality.of(10**8)
    assert all(dict(pool.grid(i))[3] > 0 for i in range(pool.size))
    assert score_pool(records, pool, quality).tolist() == [
        float(quality.score(records.table(pool.grid(i)))) for i in range(pool.size)
    ]


def test_weighted_counts_beyond_float_precision_stay_exact():
    heavy = np.array([1 << 60, 1, 1], dtype=np.int64)
    assert weighted_bincount(np.array([0, 0, 1]), heavy, 2).tolist() == [(1 << 60) + 1, 1]


def test_bad_pools_and_trees_are_refused():
    with pytest.raises(InputError, match="at least one grid"):
        enumerate_grids([Levels.flat("a", ["x", "y"])], most=0, cells=4)
    with pytest.raises(InputError, match="order"):
        enumerate_grids([Levels.flat("a", ["x", "y"])], most=1, cells=4, order="random")
    with pytest.raises(SchemaError, match="twice"):
        Levels.tree("a", {"p": ["x"], "q": ["x"]})
    with pytest.raises(SchemaError, match="increasing"):
        Levels.numeric("a", [0, 2, 1])


def test_a_table_of_a_thousand_columns_has_a_pool():
    """There are 4e10 sets of four columns, and half a million of two: they must not be listed."""
    pool = enumerate_grids([Levels.flat(f"c{i}", ["a", "b"]) for i in range(1000)], most=3_000, cells=500, widest=4)
    assert pool.size == 1_001
