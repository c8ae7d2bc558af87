"""Whatever a table gives is private: only the Meter opens it, nothing is read before, and public facts are refused early."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import BudgetError, InputError, PrivacyError, SchemaError
from sfumato.people import DatasetReader
from sfumato.privacy import Charge, Exact, Meter, PersonBudgets, Seeded
from sfumato.tables import Categorical, Dataset, Numeric, PersonalTable, PrivacyUnit, Roster, Schema, open
from sfumato.tables.engines import Engine
from sfumato.testing import reveal

GROUPS = PersonBudgets.of([0.1, 1.0])
WEIGHTS = np.array([1, 10])
FRAME = pd.DataFrame(
    {"who": np.arange(30) // 3, "x": np.arange(30) % 5, "s": ["a", "b", "c"] * 10, "epsilon": [0.1] * 15 + [1.0] * 15}
)


def schema(rows=3):
    columns = {"x": Numeric(0, 4, bins=5, integer=True), "s": Categorical(["a", "b"], other="rest")}
    return Schema(columns, unit=PrivacyUnit("who", rows))


def opened(rows=3, source=FRAME):
    return open(source, schema=schema(rows), budgets=Roster.column("epsilon", people=GROUPS))


AGGREGATES = {
    "count": lambda d: d.count("x >= 2"),
    "counts": lambda d: d.counts(["x", "s"]),
    "sparse_counts": lambda d: d.sparse_counts(["x", "s"], "x >= 2"),
    "marginals": lambda d: d.marginals(["x", ["x", "s"]]),
    "one marginal": lambda d: d.marginals(["x"]),
    "sum": lambda d: d.sum("x"),
    "points": lambda d: d.points("x", by=["s"], budgets=GROUPS),
    "group_sums": lambda d: d.group_sums(GROUPS, measure="x"),
    "weighted_sums": lambda d: d.weighted_sums(10**9),
    "weighted_sums by": lambda d: d.weighted_sums(10**9, by=["s"]),
    "weights": lambda d: d.weighted_sums(([1, 10**9], [3, 5]), measure="x"),
    "personal group_sums": lambda d: PersonalTable(d, GROUPS).group_sums(),
    "personal weighted_sum": lambda d: PersonalTable(d, GROUPS).weighted_sum(WEIGHTS, measure="x"),
    "personal weighted_sums": lambda d: PersonalTable(d, GROUPS).weighted_sums([WEIGHTS, WEIGHTS]),
    "personal weighted_tables": lambda d: PersonalTable(d, GROUPS).weighted_tables([WEIGHTS, WEIGHTS], ["x"])[1],
    "personal weighed_at_once": lambda d: PersonalTable(d, GROUPS).weighed_at_once([WEIGHTS], ["x"])(WEIGHTS),
    "personal weighted_cells": lambda d: PersonalTable(d, GROUPS).weighted_cells(WEIGHTS, ["x", "s"]),
    "personal weighted_rows": lambda d: PersonalTable(d, GROUPS).weighted_rows(WEIGHTS, ["x", "s"]),
    "personal moments": lambda d: PersonalTable(d, GROUPS).moments(["s"], measure="x", powers=2),
    "personal weighed_moments": lambda d: PersonalTable(d, GROUPS).weighed_moments([WEIGHTS], ["s"]).of(WEIGHTS),
    "personal group_rows": lambda d: PersonalTable(d, GROUPS).group_rows(["x", "s"]),
    "personal margins": lambda d: PersonalTable(d, GROUPS).margins(["x", "s"])(WEIGHTS, (1,)),
    "the total by margins": lambda d: PersonalTable(d).margins(["x", "s"])(np.array([1]), ()),
    "one group": lambda d: PersonalTable(d).group_sums(measure="x", base=-2, steps=4),
    "reader sums": lambda d: DatasetReader(d, GROUPS, "x >= 1", "x").group_sums(),
    "reader weighted": lambda d: DatasetReader.centred(d, GROUPS, measure="x", steps=2).weighted_sum(WEIGHTS),
    "reader values": lambda d: DatasetReader(d, GROUPS).group_values(),
}


def test_every_aggregate_is_here():
    """A new method of a table that returns something from it must be listed above."""
    asked = {name.split()[-1] for name in AGGREGATES} | {"weighted_sums", "marginals", "heads"}
    opened = {"for_release", "limited_to", "opened_on", "with_budgets"}
    described = {"check", "check_persons", "findings", "person_budgets", *opened}
    for kind, public in ((Dataset, described), (PersonalTable, set())):
        methods = {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}
        assert methods - public <= asked


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_are_private_values_that_know_how_many_rows_a_person_owns(name):
    for rows in (1, 3):
        found = AGGREGATES[name](opened(rows))
        assert isinstance(found, Exact)
        assert found.rows_per_person == rows
    with pytest.raises(PrivacyError, match="one person may own 3 rows"):
        Meter().laplace(found, rate=10**9)


def test_a_head_is_one_row_whatever_rows_a_person_owns(monkeypatch):
    roster = Roster.column("epsilon", menu=[0.1, 1.0], private=True)
    read = []
    fetch = Engine.fetch
    monkeypatch.setattr(Engine, "fetch", lambda self, expr: read.append(1) or fetch(self, expr))
    found = open(FRAME, schema=schema(3), budgets=roster).heads()
    assert isinstance(found, Exact)
    assert found.rows_per_person == 1
    assert not read
    assert reveal(found).tolist() == [5, 5]


@pytest.mark.parametrize("name", AGGREGATES)
def test_no_row_is_read_before_the_price_is_accepted(name, monkeypatch):
    read = []
    fetch = Engine.fetch
    monkeypatch.setattr(Engine, "fetch", lambda self, expr: read.append(1) or fetch(self, expr))
    found = AGGREGATES[name](opened())
    meter = Meter.under(schema().terms.up_to(Charge.of(0.001)), source=Seeded(1))
    with pytest.raises(BudgetError):
        meter.laplace(found.map(lambda value: [1]), rate=10**9)
    assert not read
    reveal(found)
    assert read


def test_what_public_facts_decide_is_refused_before_a_price_is_asked(tmp_path):
    data = opened()
    with pytest.raises(SchemaError, match="agee"):
        data.counts("agee")
    with pytest.raises(InputError):
        data.count("x >> 3")
    with pytest.raises(SchemaError, match="not in the table"):
        opened(source=FRAME.drop(columns="s")).counts("s")
    with pytest.raises(SchemaError, match="person column"):
        opened(source=FRAME.drop(columns="who")).count()
    with pytest.raises(SchemaError, match="budget column"):
        opened(source=FRAME.drop(columns="epsilon")).group_sums(GROUPS)
    with pytest.raises(InputError, match="no file"):
        opened(source=str(tmp_path / "nowhere.parquet")).count()
    with pytest.raises(InputError, match="does not fit 64 bits"):
        data.weighted_sums(10**18, measure="x", steps=1000)
    with pytest.raises(InputError, match="2 person groups"):
        PersonalTable(data, GROUPS).weighted_sum(np.array([1, 2, 3]))
    roster = Roster.table(pd.DataFrame({"who": ["a"], "epsilon": [1.0]}), person="who", epsilon="epsilon")
    with pytest.raises(SchemaError, match="nobody would match"):
        open(FRAME, schema=schema(), budgets=roster).group_sums(GROUPS)


def test_a_failure_in_the_engine_is_one_sentence_and_says_nothing_of_the_table():
    import ibis
    import pyarrow as pa

    table = ibis.duckdb.connect().create_table("t", pa.table({"s": ["secret"], "who": [1]}))
    broken = open(table.mutate(x=table["s"].cast("int64")), schema=schema(1))
    with pytest.raises(PrivacyError, match="could not be computed") as caught:
        Meter().laplace(broken.counts("x"), rate=10**9)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
