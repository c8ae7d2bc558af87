"""The rivals: their scores under one record by brute force, their prices, their samples."""

from itertools import product

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.grids import PPH, DiffGen, PrivBayes, PrivPfC, UniformGrid, preview_synthesize
from sfumato.grids.publishers.diffgen import children, node_score
from sfumato.grids.publishers.pph import SPREAD as PPH_SPREAD
from sfumato.grids.publishers.pph import undiscerned
from sfumato.grids.search.dependence import R_SPREAD, dependence
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables import open as open_table
from support import grids as helpers


@pytest.mark.parametrize("rival", [DiffGen, PPH, PrivBayes, UniformGrid])
@pytest.mark.parametrize("rows", [None, 3000])
def test_rivals_keep_their_price_and_publish_a_table(rival, rows):
    model = rival(epsilon=0.9, target="ill", rows=rows).fit(helpers.frame(), schema=helpers.schema(), source=Seeded(1))
    assert 0.85 < float(model.synopsis.guarantee.epsilon) <= 0.9
    table = model.sample(500)
    assert len(table) == 500
    assert set(table["ill"]) <= {"no", "yes"}
    assert model.synopsis.to_dict()["mechanism"] == rival.mechanism
    assert model.synopsis.plot().get_title()


def neighbours(rng, n):
    records = helpers.random_records(rng, n, classes=int(rng.integers(2, 4)))
    keep = np.arange(n) != int(rng.integers(n))
    fewer = Records(records.taxonomies, records.leaves[keep], records.classes[keep], records.class_labels)
    return records, fewer


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_diffgen_scores_move_by_zero_or_one(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        a, b = neighbours(rng, n)
        for j, levels in enumerate(a.taxonomies):
            for level in range(levels.height - 1):
                for place in range(levels.sizes[level]):
                    if children(levels, (level, place)):
                        change = node_score(a, j, (level, place)) - node_score(b, j, (level, place))
                        assert change in (0, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 12, 60])
def test_discernibility_keeps_its_spread(n):
    rng = np.random.default_rng(n)
    seen = []
    for _ in range(60):
        a, b = neighbours(rng, n)
        changes = [undiscerned(a, g) - undiscerned(b, g) for g in [(), ((0, 1),), ((1, 2), (2, 1)), ((0, 3), (3, 2))]]
        seen.append(max(changes) - min(changes))
        assert all(-1 - 2**-16 <= c <= 0.5 + 2**-16 for c in changes)
    assert max(seen) <= PPH_SPREAD


def partitions(n):
    """Every way to put n things into groups, as group numbers."""
    found = [[]]
    for _ in range(n):
        found = [[*p, g] for p in found for g in range(max(p, default=-1) + 2)]
    return np.array(found).reshape(len(found), n)


@pytest.mark.parametrize("n", [10, 1_000, 10**6])
def test_discernibility_comes_close_to_its_spread_in_large_tables(n):
    """All others are of one class: one column keeps the new record apart, the other puts it among them."""
    taxonomies = (Levels.flat("apart", ["0", "1"]), Levels.flat("among", ["0", "1"]))
    rows, classes = np.array([[0, 0], [1, 0]]), np.array([0, 1])
    full = Records(taxonomies, rows, classes, ("a", "b"), np.array([n, 1]))
    less = Records(taxonomies, rows[:1], classes[:1], ("a", "b"), np.array([n]))
    apart, among = (undiscerned(full, ((j, 1),)) - undiscerned(less, ((j, 1),)) for j in (0, 1))
    assert n / (n + 1) - 2**-15 <= apart - among <= PPH_SPREAD


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_no_table_and_no_pair_of_columns_moves_discernibility_by_more_than_its_spread(n):
    """Exhaustive: every table of n records of three classes, every record more, every column that there could be."""
    columns = partitions(n + 1)
    groups = [str(g) for g in range(max(2, n + 1))]
    taxonomies = tuple(Levels.flat(f"column {j}", groups) for j in range(len(columns)))
    largest = 0.0
    for classes in product(range(3), repeat=n + 1):
        full = Records(taxonomies, columns.T, np.array(classes), ("a", "b", "c"))
        less = Records(taxonomies, columns.T[:-1], np.array(classes[:-1], dtype=int), ("a", "b", "c"))
        changes = [undiscerned(full, ((j, 1),)) - undiscerned(less, ((j, 1),)) for j in range(len(columns))]
        largest = max(largest, max(changes) - min(changes))
    assert largest <= PPH_SPREAD
    assert n / (n + 1) - 2 / 2**16 <= largest <= n / (n + 1) + 2 / 2**16  # the bound is met, so no smaller one holds


def test_dependence_keeps_its_spread():
    rng = np.random.default_rng(8)
    changes = []
    for _ in range(3000):
        table = rng.integers(0, int(rng.integers(1, 12)), (int(rng.integers(2, 4)), int(rng.integers(2, 5))))
        after = table.copy()
        after[rng.integers(table.shape[0]), rng.integers(table.shape[1])] += 1
        changes.append(dependence(after) - dependence(table))
    assert max(changes) - min(changes) <= R_SPREAD
    assert max(np.abs(changes)) <= 2 + 2**-16


def test_children_skip_levels_that_do_not_divide():
    tree = Levels.tree("y", {"p": ["1", "2"], "q": {"r": ["4", "5"], "s": ["6"]}})
    assert children(tree, (1, 0)) == [(2, 0), (2, 1)]
    assert children(tree, (2, 3)) == []


def test_preview_reads_nothing_and_its_options_run_within_their_charge():
    options = preview_synthesize(schema=helpers.schema(), target="ill", epsilon=0.5, rows=3000)
    table = open_table(helpers.frame(), schema=helpers.schema())
    assert options[0].mechanism == "privpfc"
    assert options[0].expected_rmse > 0
    for option in options:
        result = option.run(table, Meter(limit=option.charge, source=Seeded(1)))
        assert result.guarantee.nano <= option.charge.total
        assert result.mechanism == option.mechanism


def test_preview_with_a_roster_charges_each_group_its_own_budget():
    budgets = PersonBudgets.from_tiers({"open": (1, 1000), "strict": (0.1, 2000)})
    options = preview_synthesize(schema=helpers.schema(), target="ill", budgets=budgets)
    assert [o.mechanism for o in options] == ["privpfc", "marginals"]
    for option in options:
        assert option.charge.people.tolist() == budgets.levels.tolist()


def test_wrong_parameters_are_refused():
    with pytest.raises(InputError, match="rule"):
        UniformGrid(epsilon=1, target="ill", rule="fancy")
    with pytest.raises(InputError, match="step"):
        DiffGen(epsilon=1, target="ill", steps=0)
    with pytest.raises(InputError, match="degree"):
        PrivBayes(epsilon=1, target="ill", degree=0)
    with pytest.raises(InputError, match="too small"):
        PPH(epsilon=1e-7, target="ill").fit(helpers.frame(9), schema=helpers.schema(), source=Seeded(1))


@pytest.mark.parametrize(("grids", "rows"), [(1, None), (1, 20_000), (2, None), ("auto", None), ("auto", 20_000)])
def test_the_preview_states_the_noise_of_the_release(grids, rows):
    frame = helpers.frame(20_000)
    frame["ill"] = np.where(np.arange(20_000) % 2, "yes", "no")  # evenly spread: "auto" takes two grids
    options = preview_synthesize(
        schema=helpers.schema(), target="ill", epsilon=1, rows=rows, mechanism="privpfc", parameters={"grids": grids}
    )
    synopsis = (
        PrivPfC(epsilon=1, target="ill", rows=rows, grids=grids)
        .fit(frame, schema=helpers.schema(), source=Seeded(2))
        .synopsis
    )
    assert options[0].expected_rmse == pytest.approx(synopsis.expected_rmse, rel=1e-6)
