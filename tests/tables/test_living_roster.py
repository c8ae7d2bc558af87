"""A living roster in the engine: rows weigh what their person was charged for, and nobody else's rows weigh anything."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError, SchemaError, SfumatoError
from sfumato.privacy import Meter, PersonBudgets
from sfumato.tables import Numeric, PersonalTable, PrivacyUnit, Roster, Schema
from sfumato.tables import open as open_table

SCHEMA = Schema({"age": Numeric(0, 99, bins=2, integer=True)}, unit=PrivacyUnit(person="who", rows_per_person=2))
ROWS = pd.DataFrame({"who": ["1", "2", "2", "3", "4", None], "age": [10, 20, 80, 30, 90, 40]})
MENU = Roster.living({"strict": "0.1", "open": 1})
BUDGETS = PersonBudgets(np.array([10, 20]), np.array([1, 1]))


def lookup(known: dict[str, int]) -> Any:
    return lambda persons: np.array([known.get(p, 0) for p in persons.to_pylist()], dtype=np.int64)


def opened(value: Any) -> Any:
    return np.asarray(Meter.under(SCHEMA.terms).laplace(value, rate=50 * 10**9)).tolist()


@pytest.fixture(params=["pandas", "whole numbers", "parquet", "csv", "duckdb"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, str | None]:
    if request.param == "pandas":
        return ROWS, None
    whole = ROWS.dropna().astype({"who": "int64"})
    if request.param == "whole numbers":
        return whole, None
    if request.param == "parquet":
        whole.to_parquet(tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet", None
    if request.param == "csv":
        ROWS.to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path / "rows.csv", None
    with duckdb.connect(str(tmp_path / "rows.db")) as connection:
        connection.register("frame", whole)
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return f"duckdb:///{tmp_path / 'rows.db'}", "visits"


def test_rows_weigh_what_their_person_was_charged_for(source: tuple[Any, str | None]) -> None:
    table = open_table(source[0], schema=SCHEMA, table=source[1], budgets=MENU)
    table.check()
    charged = table.with_budgets(MENU.charged(lookup({"1": 10, "2": 20, "5": 20})))
    assert opened(PersonalTable(charged, BUDGETS).group_sums()) == [1, 2]
    assert opened(PersonalTable(charged, BUDGETS).weighted_cells(np.array([1, 10]), ["age"])) == [11, 10]


@pytest.mark.parametrize("charges", list(product((0, 10, 20), repeat=4)))
def test_every_way_to_charge_four_people(charges: tuple[int, ...]) -> None:
    known = {str(i + 1): nano for i, nano in enumerate(charges)}
    table = open_table(ROWS, schema=SCHEMA, budgets=MENU).with_budgets(MENU.charged(lookup(known)))
    rows = [known.get(str(who), 0) for who in ROWS["who"]]
    assert opened(PersonalTable(table, BUDGETS).group_sums()) == [rows.count(10), rows.count(20)]
    everybody = opened(open_table(ROWS, schema=SCHEMA).count())
    assert everybody == len(ROWS) - 1  # whoever has no name is nobody


def test_a_condition_of_one_aggregate_leaves_nobody_out_of_the_next() -> None:
    table = open_table(ROWS, schema=SCHEMA, budgets=MENU).with_budgets(MENU.charged(lookup({"1": 10, "2": 20, "4": 20})))
    people = PersonalTable(table, BUDGETS)
    assert opened(people.group_sums(where="age >= 85")) == [0, 1]
    assert opened(people.weighted_cells(np.array([1, 10]), ["age"], "age < 15")) == [1, 0]
    assert opened(people.group_sums()) == [1, 3]


def test_groups_that_are_called_as_the_tiers_are_still_found_by_budget() -> None:
    named = PersonBudgets(BUDGETS.levels, BUDGETS.counts, names=("strict", "open"))
    table = open_table(ROWS, schema=SCHEMA, budgets=MENU).with_budgets(MENU.charged(lookup({"1": 10, "2": 20})))
    assert opened(PersonalTable(table, named).group_sums()) == [1, 2]


def test_two_spellings_of_one_person_do_not_have_twice_the_rows() -> None:
    composed, apart = "Zo\u00e9", "Zoe\u0301"
    frame = pd.DataFrame({"who": [composed, composed, apart, apart], "age": [1, 2, 3, 4]})
    table = open_table(frame, schema=SCHEMA, budgets=MENU).with_budgets(MENU.charged(lookup({composed: 10})))
    assert opened(PersonalTable(table, BUDGETS).group_sums()) == [2, 0]


def test_nothing_is_read_before_the_charge() -> None:
    table = open_table(ROWS, schema=SCHEMA, budgets=MENU)
    with pytest.raises(SfumatoError, match="could not be computed"):
        opened(PersonalTable(table, BUDGETS).group_sums())


def test_persons_of_another_type_are_refused_before_anything_is_charged() -> None:
    frame = pd.DataFrame({"who": [1.5, 2.5], "age": [1, 2]})
    with pytest.raises(SchemaError, match="whole numbers or text"):
        open_table(frame, schema=SCHEMA, budgets=MENU).check()


def test_a_schema_without_a_person_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"\[unit\] person"):
        open_table(ROWS, schema=Schema({"age": Numeric(0, 99, bins=2, integer=True)}), budgets=MENU)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tiers": {"open": 1}, "period": "week", "per_period": {"open": 1}}, "'year', 'quarter', 'month'"),
        ({"tiers": {"open": 1}, "period": "year"}, "need both"),
        ({"tiers": {"open": 1}, "period": "year", "per_period": {"opne": 1}}, "did you mean 'open'"),
        ({"tiers": {"open": 1}, "source": "roster.csv"}, "import FILE"),
        ({"person": "who"}, "needs tiers"),
        ({"tiers": {"open": 1}, "roster": "secret"}, "is .public. or .private."),
        ({"tiers": {"open": 1}, "head_share": 0.1}, "this one is public"),
    ],
)
def test_what_a_plan_says_wrongly_is_said(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Roster.from_mapping({"living": True, **keys})
