"""PrivMarginals: what its choices may move, what its steps cost each tier, how large its noise is, and what it finds."""

from itertools import product
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.grids import Joint, PrivMarginals
from sfumato.grids.graphical import Marginal, cost, fit, growth
from sfumato.grids.graphical.tree import junction_tree
from sfumato.grids.published.joint import Measured
from sfumato.grids.publishers.choosing import Chooser
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.target_pairs import LEAST, MOST, affordable, with_target
from sfumato.grids.search.groups import Groups, groups_of
from sfumato.grids.search.pairs import Candidate, candidates, counted, first_steps, missed, pairs_of, rolled
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano, PersonBudgets, Seeded
from sfumato.privacy.noise import laplace_variance
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables import PrivacyUnit, Roster, Schema
from sfumato.tables import open as open_table
from support import grids as helpers


def ladder(levels, rng, total=60.0):
    """Groups from noisy counts of some column."""
    return groups_of(rng.uniform(0, total, levels.leaves), levels, least=10.0)


# --- groups -------------------------------------------------------------------------------------------------------------


def test_groups_are_nested_cover_all_values_and_have_enough_records():
    rng = np.random.default_rng(3)
    trees = (
        Levels.numeric("x", np.arange(34.0)),
        Levels.tree("y", {"p": list("abc"), "q": {"r": list("de"), "s": list("f")}}),
    )
    for levels, least in product(trees, (1.0, 50.0, 400.0)):
        counts = rng.exponential(60.0, levels.leaves)
        made = groups_of(counts, levels, least=least)
        assert set(made.finest) == set(range(made.count))
        held = np.bincount(made.finest, counts)
        assert made.count == 1 or held.min() >= least
        for fine, coarse in zip(made.steps, made.steps[1:], strict=False):
            assert coarse.max() < fine.max()
            assert all(np.unique(coarse[fine == g]).size == 1 for g in range(fine.max() + 1))
        if levels.edges is not None:  # numbers merge with neighbours only
            assert (np.diff(made.finest) >= 0).all()


def test_categories_merge_under_one_node_first():
    place = Levels.tree("place", {"north": ["a", "b", "c"], "south": ["d", "e", "f"]})
    made = groups_of(np.array([3.0, 4.0, 90.0, 4.0, 5.0, 90.0]), place, least=6.0)
    assert made.finest.tolist() == [0, 0, 1, 2, 2, 3]


def test_there_are_never_too_many_groups():
    assert groups_of(np.full(5000, 1e6), Levels.numeric("x", np.arange(5001.0)), least=1.0).count <= 64


# --- the spread of the scores -------------------------------------------------------------------------------------------


def test_one_record_moves_all_scores_up_and_by_no_more_than_its_weight():
    """Every record of a tiny domain, added to random tables, against random models: pairs and triples at all groups."""
    rng = np.random.default_rng(0)
    largest, smallest = 0.0, 1.0
    for number in range(6):
        records = helpers.random_records(rng, 12, weighted=bool(number % 2))
        columns = (*records.taxonomies, Levels.flat("class", list(records.class_labels)))
        groups = [ladder(c, rng) for c in columns]
        sets = [*pairs_of(groups), (0, 1, 4), (1, 2, 3)]
        sets = [s for s in sets if min(groups[j].count for j in s) > 1]
        shapes = {s: Candidate(s, first_steps(s, groups)).shape(groups) for s in sets}
        model = {s: rng.integers(0, 8, shape) for s, shape in shapes.items()}
        before = missed(counted(records, sets, groups), model, sets, groups)
        weight = int(rng.integers(1, 9)) if number % 2 else 1
        for _ in range(60):
            row = [rng.integers(t.leaves) for t in records.taxonomies]
            old = records.weights if records.weights is not None else np.ones(len(records.leaves), dtype=np.int64)
            more = Records(
                records.taxonomies,
                np.vstack([records.leaves, row]),
                np.append(records.classes, rng.integers(2)),
                records.class_labels,
                np.append(old, weight),
            )
            moved = missed(counted(more, sets, groups), model, sets, groups) - before
            assert moved.min() >= 0
            assert moved.max() <= weight
            largest, smallest = max(largest, moved.max() / weight), min(smallest, moved.min() / weight)
    assert (smallest, largest) == (0.0, 1.0), "the bound is met: a smaller spread would be wrong"


def test_scores_are_those_of_the_tables_rolled_up_one_by_one():
    rng = np.random.default_rng(1)
    records = helpers.random_records(rng, 400)
    columns = (*records.taxonomies, Levels.flat("class", list(records.class_labels)))
    groups = [groups_of(np.full(c.leaves, 10.0), c, least=5.0) for c in columns]
    sets = [(0, 1), (1, 3), (0, 3, 4)]
    counts = counted(records, sets, groups)
    model = {s: rng.integers(0, 30, counts[s].shape) for s in sets}
    found = missed(counts, model, sets, groups)
    every = candidates(sets, groups)
    assert len(every) == found.size
    for c, score in zip(every, found, strict=True):
        first = first_steps(c.columns, groups)
        gap = rolled(counts[c.columns], c, groups, first) - rolled(model[c.columns], c, groups, first)
        values = [records.classes if j == 4 else records.leaves[:, j] for j in c.columns]
        direct = np.zeros(c.shape(groups), dtype=np.int64)
        np.add.at(direct, tuple(groups[j].at(s)[v] for j, s, v in zip(c.columns, c.steps, values, strict=True)), 1)
        assert (rolled(counts[c.columns], c, groups, first) == direct).all()
        assert score == np.maximum(gap, 0).sum()


def test_a_set_that_is_too_large_for_the_tree_is_seen_beforehand():
    rng = np.random.default_rng(5)
    for _ in range(20):
        sizes = rng.integers(2, 9, 7).tolist()
        sets = [(int(rng.integers(j)), j) for j in range(1, 7)]
        tree = junction_tree(sizes, sets)
        asked = [(a, b) for a in range(7) for b in range(a + 1, 7)]
        for s, more in zip(asked, growth(tree, asked), strict=True):
            assert tree.cells + more >= cost(sizes, [*sets, s])


# --- what it costs ------------------------------------------------------------------------------------------------------


def test_every_tier_loses_what_its_weight_says_and_no_more_than_it_granted():
    frame = helpers.frame(900)
    frame["consent"] = np.array(["strict", "fair", "open"], dtype=object)[np.arange(900) % 3]
    tiers = {"strict": 0.1, "fair": 0.5, "open": 2.0}
    budgets = PersonBudgets.from_tiers({k: (v, 300) for k, v in tiers.items()})
    table = open_table(frame, schema=helpers.schema(), budgets=Roster.tiers(tiers, column="consent"))
    made = PrivMarginals(budgets=budgets, target="ill").fit(table, source=Seeded(1)).synopsis
    weights = Weights.of(budgets).groups
    lost = np.array([int(n) for n in made.guarantee.people])
    rates = sum(m.rate for m in (*made.ones, *made.tables))
    told = ("pair that", "triple that", "number of records")
    choices = sum(s.loss for s in made.guarantee.steps if any(words in s.label for words in told))
    assert lost.tolist() == [int(w) * (lost[-1] // int(weights[-1])) for w in weights]
    assert lost[-1] == int(weights[-1]) * rates + choices
    assert (lost <= budgets.levels).all()
    assert lost[-1] > 0.97 * budgets.levels[-1]
    assert made.unit == pytest.approx(Weights.of(budgets).average)
    assert 700 < len(made.sample()) < 1100
    assert any("granted" in w for w in made.warnings)


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_per_person_divide_the_budget(rows):
    schema = Schema(helpers.schema().columns, PrivacyUnit(person="who", rows_per_person=rows))
    frame = helpers.frame(600).assign(who=np.arange(600) // rows)
    made = PrivMarginals(epsilon=1, target="ill").fit(frame, schema=schema, source=Seeded(2)).synopsis
    rates = sum(m.rate for m in (*made.ones, *made.tables))
    assert 0.97 * NANO < made.guarantee.nano <= NANO
    assert rates * rows <= NANO


def test_the_noise_has_the_scale_that_was_paid_for_and_not_thirty_percent_less():
    rng = np.random.default_rng(8)
    side = Groups(np.arange(60), (np.arange(60),))
    levels = (Levels.numeric("x", np.arange(61.0)),)
    records = Records(levels, rng.integers(60, size=(500, 1)), rng.integers(60, size=500), tuple(map(str, range(60))))
    meter = Meter(source=Seeded(3), limit=Charge(4 * 10**8))
    chooser = Chooser(Exact(records), [side, side], meter, np.ones(1, dtype=np.int64))
    counts = chooser.counts([(0, 1)])
    first = chooser.measure(counts, [Candidate((0, 1), (0, 0))], 2 * 10**8)[0]
    second = chooser.again([first], 2 * 10**8)[0]
    exact = counted(records, [(0, 1)], [side, side])[0, 1]
    for found in (first, second):
        assert found.rate == 2 * 10**8
        off = found.noisy - exact
        scale = np.sqrt(laplace_variance(found.rate))
        assert np.sqrt((off**2).mean()) == pytest.approx(scale, rel=0.08)  # 3,600 draws: a standard error of 2%
        assert np.sqrt((off**2).mean()) != pytest.approx(0.7 * scale, rel=0.08)
    assert not (first.noisy == second.noisy).all()
    assert meter.guarantee().nano == 4 * 10**8


def test_a_budget_that_comes_to_nothing_is_refused_before_anything_is_read():
    with pytest.raises(InputError, match="too small"):
        PrivMarginals(epsilon=1e-5, target="ill").expected(helpers.task())
    with pytest.raises(InputError, match="between 0 and 1"):
        PrivMarginals(epsilon=1, target="ill", ones=1.0)


# --- how much of it goes to the target ---


def test_the_share_of_the_target_rises_until_one_pair_is_clear_and_falls_once_there_is_enough_for_all():
    signal = np.geomspace(1, 1e6, 4000)  # records of the rarer classes times ε
    share, many = np.array([affordable(rarer, 1.0, 15) for rarer in signal]).T
    assert share.min() == LEAST
    assert share.max() == MOST
    assert np.abs(np.diff(share)).max() < 0.005, "no cliff"
    top = np.flatnonzero(share == MOST)
    assert (np.diff(share[: top[0]]) >= 0).all()
    assert (np.diff(share[top[-1] :]) <= 0).all()
    assert (np.diff(many) >= 0).all()
    assert (many[0], many[-1]) == (1, 6)
    assert affordable(-50.0, 0.1, 2) == (LEAST, 1)  # noise can make nothing of the rarer classes


def telling(n=6000):
    """Five columns that say much about each other, and each by itself something about a class of one record in six."""
    rng = np.random.default_rng(0)
    common = rng.integers(4, size=n)
    frame = {f"c{j}": np.where(rng.random(n) < 0.6, common, rng.integers(4, size=n)) for j in range(5)}
    score = sum((column == 3) * 1.0 for column in frame.values())
    table = pd.DataFrame({**frame, "class": (rng.random(n) < score / 7.5).astype(int)}).astype(str).astype(object)
    return table, Schema({c: sf.Categorical(list("0123") if c != "class" else ["0", "1"]) for c in table})


def test_where_the_signal_is_faint_more_is_spent_on_the_target_and_it_shows():
    frame, schema = telling()
    spent, far = {}, {}
    for contrast in (0.0, "auto"):
        asked = PrivMarginals(epsilon=0.5, target="class", rows=len(frame), contrast=contrast)
        made = [asked.fit(frame, schema=schema, source=Seeded(seed)).synopsis for seed in range(3)]
        assert all(0.97 * 0.5 * NANO < m.guarantee.nano <= 0.5 * NANO for m in made)
        spent[contrast] = sum(t.rate for m in made for t in m.tables if 5 in t.columns)
        far[contrast] = sum(apart(frame, m.sample(6000), (f"c{j}", "class")) for m in made for j in range(5))
    assert made[0].parameters["contrast"] == MOST
    assert spent["auto"] > 1.5 * spent[0.0]
    assert far["auto"] < 0.8 * far[0.0]
    with pytest.raises(InputError, match="'auto'"):
        PrivMarginals(epsilon=1, target="class", contrast="more")


def test_a_pair_that_was_counted_may_be_counted_again_with_other_groups():
    frame, _ = telling()
    fitted = fit([4, 2], [Marginal((0, 1), np.full((4, 2), 700.0), 300.0), Marginal((0,), np.full(4, 1500.0), 1.0)])
    columns = [Levels.flat("c0", list("0123")), Levels.flat("class", ["0", "1"])]
    groups = [groups_of(np.full(c.leaves, 1000.0), c, least=10.0) for c in columns]
    codes = frame[["c0", "class"]].astype(int).to_numpy()
    meter = Meter(source=Seeded(3), limit=Charge(10 * NANO))
    chooser = Chooser(
        Exact(Records((columns[0],), codes[:, :1], codes[:, 1], ("0", "1"))), groups, meter, np.ones(1, np.int64)
    )
    have = [Measured((0, 1), (np.array([0, 0, 1, 1]), np.arange(2)), np.full((2, 2), 1400), 10**6)]
    refit = Mock(side_effect=lambda tables, start: start)
    tables, _, left = with_target(chooser, [(0, 1)], have, fitted, refit, budget=Nano(NANO), select=0.4, many=1)
    assert [m.columns for m in tables] == [(0, 1), (0, 1)]
    assert refit.call_count == 1
    assert meter.guarantee().nano <= NANO - left


# --- what it finds ------------------------------------------------------------------------------------------------------


def chained(n=20_000, seed=0):
    """a says b, b says c; d has nothing to do with any of them."""
    rng = np.random.default_rng(seed)
    a = rng.integers(8, size=n)
    b = np.where(rng.random(n) < 0.9, a // 2, rng.integers(4, size=n))
    c = np.where(rng.random(n) < 0.9, b % 2, rng.integers(2, size=n))
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.integers(2, size=n)}).astype(str).astype(object)
    schema = Schema({k: sf.Categorical([str(v) for v in range(int(frame[k].astype(int).max()) + 1)]) for k in frame})
    return frame, schema


def apart(one, other, columns):
    keys = [f.groupby(list(columns), observed=False).size() / len(f) for f in (one, other)]
    return float(keys[0].sub(keys[1], fill_value=0.0).abs().sum() / 2)


def test_columns_that_say_something_about_each_other_still_do_in_the_drawn_table():
    frame, schema = chained()
    made = PrivMarginals(epsilon=2, target="d", rows=len(frame)).fit(frame, schema=schema, source=Seeded(4)).synopsis
    drawn = made.sample(len(frame))
    assert apart(frame, drawn, ("a", "b")) < 0.03
    assert apart(frame, drawn, ("a", "c")) < 0.04  # through b
    assert {(0, 1), (1, 2)} <= {m.columns for m in made.tables}
    assert drawn.columns.tolist() == frame.columns.tolist()
    assert made.guarantee.nano <= 2 * NANO


def test_without_anything_to_find_little_is_counted_and_the_columns_still_fit():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.integers(4, size=(3000, 6)), columns=list("abcdef")).astype(str).astype(object)
    schema = Schema({c: sf.Categorical(list("0123")) for c in frame})
    made = PrivMarginals(epsilon=0.5, target="f").fit(frame, schema=schema, source=Seeded(5)).synopsis
    drawn = made.sample(3000)
    assert np.mean([apart(frame, drawn, pair) for pair in ("ab", "cd", "ef", "ae")]) < 0.12
    assert abs(made.size - 3000) < 300


def test_the_classifier_learns_what_the_table_says():
    frame = helpers.frame(6000)
    made = PrivMarginals(epsilon=2, target="ill").fit(frame, schema=helpers.schema(), source=Seeded(6))
    fresh = helpers.frame(2000, seed=1)
    best = max((fresh["ill"] == v).mean() for v in ("no", "yes"))
    assert made.classifier().score(fresh, fresh["ill"]) > best + 0.1
    with pytest.raises(InputError, match="no column 'age'"):
        made.classifier().predict(fresh.drop(columns="age"))


def test_one_column_beside_the_target_and_a_single_row_are_enough():
    frame = helpers.frame(1)[["sex", "ill"]]
    schema = Schema({k: helpers.schema()[k] for k in ("sex", "ill")})
    made = PrivMarginals(epsilon=1, target="ill").fit(frame, schema=schema, source=Seeded(7)).synopsis
    assert isinstance(made, Joint)
    assert made.sample(5).columns.tolist() == ["sex", "ill"]
    assert made.to_frame()["columns"].tolist()[:2] == ["sex", "ill"]
