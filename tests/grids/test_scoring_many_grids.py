"""The fast scorer against the definition: every grid counted by itself, on random taxonomies, tables and pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.grids.search import rolling, rows, scoring
from sfumato.grids.search.layers import Family
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import SCALE, Quality, top_two
from sfumato.grids.search.rolling import Rolling
from sfumato.grids.search.rows import Rows
from sfumato.grids.search.scoring import score_pool
from sfumato.records.levels import Levels
from sfumato.records.records import Records


def literal_scores(records, pool, quality):
    return [float(quality.score(records.table(pool.grid(i)))) for i in range(pool.size)]


@st.composite
def taxonomies(draw):
    """Binary levels (also of odd sizes), flat lists and uneven trees, none with a single leaf."""
    found = []
    for j in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["numeric", "flat", "tree"]))
        if kind == "numeric":
            found.append(Levels.numeric(f"c{j}", np.arange(draw(st.integers(3, 12)))))
        elif kind == "flat":
            found.append(Levels.flat(f"c{j}", [f"v{i}" for i in range(draw(st.integers(2, 6)))]))
        else:
            sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
            tree = {f"n{i}": [f"v{i}.{k}" for k in range(size)] for i, size in enumerate(sizes)}
            found.append(Levels.tree(f"c{j}", {"all but one": tree, "one": ["last"]}))
    return tuple(found)


@st.composite
def cases(draw):
    """Records of few values (so that counts tie) and a pool that leaves out grids at random."""
    levels = draw(taxonomies())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(0, 120))
    classes = draw(st.integers(2, 5))
    weights = {"none": None, "small": rng.integers(0, 4, n), "large": rng.integers(1, 10**6, n)}[
        draw(st.sampled_from(["none", "small", "large"]))
    ]
    leaves = np.asfortranarray(np.stack([rng.integers(t.leaves, size=n) for t in levels], axis=1))
    records = Records(levels, leaves, rng.integers(classes, size=n), tuple(map(str, range(classes))), weights)
    pool = enumerate_grids(levels, most=10**6, cells=10**6)
    kept = draw(st.sampled_from([1.0, 0.5, 0.1]))
    families, size = [], 0
    for family in pool.families:
        keep = rng.permutation(np.flatnonzero(rng.random(len(family.index)) < kept))
        if keep.size:
            families.append(Family(family.attributes, family.levels[keep], np.arange(size, size + keep.size)))
            size += keep.size
    return records, Pool(tuple(families), size)


@given(cases(), st.sampled_from([10**6, 10**8, 3 * 10**9]))
@settings(max_examples=60, deadline=None)
def test_scores_equal_counting_every_grid(case, rate):
    records, pool = case
    quality = Quality.of(rate)
    assert score_pool(records, pool, quality).tolist() == literal_scores(records, pool, quality)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_scores_do_not_depend_on_how_the_work_is_cut(case):
    records, pool = case
    quality = Quality.of(10**8)
    expected = literal_scores(records, pool, quality)
    small = {
        (rolling, "_SIDE_BY_SIDE"): 4,
        (rolling, "_LONGEST_VALUES"): 0,
        (rolling, "_SHORT"): 2,
        (rows, "_PIECE"): 7,
        (rows, "_CROWDED"): 0,
        (rows, "_MANY_CLASSES"): 0,
        (scoring, "_MOST_CELLS"): 12,
        (scoring, "_TOGETHER"): 0,
        (scoring, "_MOST_WAITING"): 100,
    }
    for which in (list(small), *([key] for key in small)):
        with pytest.MonkeyPatch.context() as patch:
            for module, name in which:
                patch.setattr(module, name, small[module, name])
            assert score_pool(records, pool, quality).tolist() == expected


@given(cases(), st.data())
@settings(max_examples=40, deadline=None)
def test_one_pass_counts_what_the_records_hold(case, data):
    records, _ = case
    grid = [(j, data.draw(st.integers(1, t.height - 1))) for j, t in enumerate(records.taxonomies)]
    order = data.draw(st.permutations(grid))
    table = records.table(tuple(order))
    expected = table[1:] - table[:1] if len(table) == 2 else table
    counted = Rows.of(records).count([j for j, _ in order], [level for _, level in order])
    assert counted.dtype == np.int64
    assert (counted == expected).all()


@given(cases(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_coarser_axis_is_the_coarser_table(case, data):
    records, _ = case
    top = tuple((j, t.height - 1) for j, t in enumerate(records.taxonomies))
    axis = data.draw(st.integers(0, len(top) - 1))
    level = data.draw(st.integers(1, top[axis][1]))
    rolled = Rolling(records.taxonomies, Quality.of(10**8), 2, 0).coarsen(
        records.table(top), axis + 1, axis, top[axis][1], level
    )
    wanted = tuple((j, level if j == axis else now) for j, now in top)
    assert (rolled == records.table(wanted)).all()


def test_more_rows_do_not_change_what_is_rolled_up():
    """What is rolled up follows from the grids: more rows change how long a table takes to count, not which are."""
    levels = tuple(Levels.numeric(f"c{j}", np.arange(17)) for j in range(8))
    pool = enumerate_grids(levels, most=20_000, cells=2_400, widest=4)
    plans = [
        [(job.attributes, job.levels, len(job.index)) for job in scoring._jobs(pool, levels, n, 1)]
        for n in (100_000, 10_000_000)
    ]
    assert plans[0] == plans[1]


def test_sets_inside_larger_sets_are_not_counted(monkeypatch):
    levels = tuple(Levels.numeric(f"c{j}", np.arange(9)) for j in range(5))
    pool = enumerate_grids(levels, most=10**6, cells=512, widest=3)
    rng = np.random.default_rng(0)
    records = Records(levels, rng.integers(8, size=(4_000, 5)), rng.integers(2, size=4_000), ("a", "b"))
    passes = []
    count = Rows.count
    monkeypatch.setattr(Rows, "count", lambda self, a, v: passes.append(tuple(a)) or count(self, a, v))
    score_pool(records, pool, Quality.of(10**8))
    assert len(passes) == len(set(passes)) == 10  # the triples of five attributes, for 26 sets in all
    assert len(pool.families) == 26


@pytest.mark.parametrize("classes", [2, 3])
def test_one_record_moves_the_scores_of_a_huge_table_as_it_does_any_other(classes):
    """On both sides of the size from which scores are lowered by the best: the spread of the changes stays."""
    levels = (Levels.flat("z", ["u", "v"]), Levels.flat("y", ["p", "q", "r"]))
    pool, quality = enumerate_grids(levels, most=9, cells=9), Quality.of(10**8)
    rows, labels = np.array([[0, 0], [1, 1], [1, 2]]), tuple("abc"[:classes])
    for heaviest in ((1 << 36) - 9, (1 << 37) - 10, 1 << 37, 1 << 44):
        for extra in range(3):
            tables = []
            for more in (0, 1):
                weights = np.array([heaviest - 12, 3, 5])
                weights[extra] += more
                tables.append(Records(levels, rows, np.array([0, 1, classes - 1]), labels, weights))
            change = np.subtract(*(score_pool(t, pool, quality) for t in tables))
            assert change.max() - change.min() <= quality.spread
    score = score_pool(tables[0], pool, quality)
    assert score.max() == 0
    units = [quality.units(*top_two(tables[0].table(pool.grid(i)))).sum() for i in range(pool.size)]
    assert score.tolist() == [(int(u) - int(max(units))) / SCALE for u in units]


def test_weights_beyond_exact_sums_are_refused():
    levels = (Levels.flat("z", ["u", "v"]),)
    heavy = Records(levels, np.array([[0], [1]]), np.array([0, 1]), ("a", "b"), np.array([1 << 45, 1 << 45]))
    with pytest.raises(InputError, match="too heavy"):
        score_pool(heavy, enumerate_grids(levels, most=9, cells=9), Quality.of(10**8))
