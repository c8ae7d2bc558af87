"""What the schema alone says about a condition: how long it is, and whether it can hold for anybody."""

from __future__ import annotations

import math
import time

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError, SchemaError
from sfumato.tables import Categorical, Numeric, Schema, is_empty, open, parse_where
from sfumato.tables.predicates import MAX_TERMS, Both, Compare, Either, InCells, Missing, Not, terms
from sfumato.testing import reveal

CLINIC = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "pay": Numeric(0, 50, bins=5),
        "stay": Numeric(0, 30, bins=3, outside="other"),
        "sex": Categorical(["F", "M"]),
        "place": Categorical(["oslo", "bern"], other="elsewhere"),
        "ward": Categorical([3, 1, 7]),
    }
)


@pytest.mark.parametrize(
    "where",
    [
        "age < 0",
        "age > 119",
        "age = 30.5",
        "age > 30 and age < 31",
        "age > 30 and not (age > 20)",
        "pay > 20 and pay < 20",
        "pay = 7 and pay != 7",
        "pay > 50 or pay < 0",
        "sex = 'F' and sex = 'M'",
        "sex != 'F' and sex != 'M'",
        "sex is missing and sex = 'F'",
        "place = 'elsewhere' and place is not missing",
        "ward > 7",
        "ward between 4 and 6",
        "age >= 0 and (sex = 'F' or pay > 3) and pay < 0",
        "not (age >= 0 or age is missing)",
        "not (sex = 'F' or not (sex = 'F')) and sex is not missing",
        {"sex": []},
        {"age": [], "sex": "F"},
        Either(()),
        InCells("sex", (), ()),
        Both((InCells("pay", (1,), ()), Compare("pay", ">", 30))),
    ],
    ids=str,
)
def test_conditions_that_nobody_can_meet(where):
    assert is_empty(parse_where(where, CLINIC), CLINIC)
    rows = [
        {"age": a, "pay": p, "stay": 1.0, "sex": s, "place": None, "ward": 3}
        for a in (None, 0, 119)
        for p in (0.0, 50.0, None)
        for s in ("F", "M", None)
    ]
    types = pa.schema(
        {
            "age": pa.int64(),
            "pay": pa.float64(),
            "stay": pa.float64(),
            "sex": pa.string(),
            "place": pa.string(),
            "ward": pa.int64(),
        }
    )
    assert reveal(open(pa.Table.from_pylist(rows, types), schema=CLINIC).count(where)) == 0


@pytest.mark.parametrize(
    "where",
    [
        None,
        "age <= 0",
        "age >= 119",
        "age > 30 and age < 32",
        "pay > 20 and pay < 20.0000001",
        "pay >= 50",
        "sex is missing",
        "place = 'elsewhere'",
        "ward > 1 and ward < 7",
        "not (age >= 65)",
        "stay is missing and not (pay > 3)",
        "age < 0 or sex = 'F'",
        "age > 1e300 or pay > -1e300",
        Both((InCells("pay", (3,), ()), Compare("pay", ">", 30))),
    ],
    ids=str,
)
def test_conditions_that_somebody_may_meet(where):
    assert not is_empty(parse_where(where, CLINIC), CLINIC)


def test_long_conditions_are_refused_before_anything_is_opened():
    long = " or ".join(f"age = {i % 119}" for i in range(3000))
    started = time.perf_counter()
    with pytest.raises(SchemaError, match=f"3000 comparisons, at most {MAX_TERMS}"):
        parse_where(long, CLINIC)
    for given_ in ({"pay": [float(i) for i in range(3000)]}, Both(tuple(Compare("age", "<", i) for i in range(3000)))):
        with pytest.raises(SchemaError, match="3000 comparisons"):
            parse_where(given_, CLINIC)
    assert time.perf_counter() - started < 5
    table = sf.open("nowhere.parquet", schema=CLINIC, epsilon=1, rows=100)
    for kind, more in (("count", {}), ("mean", {"column": "pay"}), ("histogram", {"columns": ["age"]})):
        with pytest.raises(InputError, match="3000 comparisons"):
            table.preview(kind, where=long, epsilon=0.1, **more)


def test_long_conditions_within_the_limit_run(put):
    table = pa.table({"age": pa.array(range(200), pa.int64())})
    data = open(**put(table), schema=CLINIC.select(["age"]))
    text = " or ".join(f"age = {i % 119}" for i in range(MAX_TERMS))
    assert terms(parse_where(text, CLINIC)) == MAX_TERMS
    assert reveal(data.count(text)) == 119
    assert reveal(data.count(" and ".join(f"age != {i % 50}" for i in range(MAX_TERMS)))) == 150


def test_deep_conditions_are_refused_and_others_run():
    deep = "(" * 3000 + "age > 3" + ")" * 3000
    with pytest.raises(SchemaError, match="more than 100 deep"):
        parse_where(deep, CLINIC)
    nested = Missing("age")
    for _ in range(5000):
        nested = Not(nested)
    with pytest.raises(SchemaError, match="more than 100 deep"):
        parse_where(nested, CLINIC)
    fine = "not (" * 40 + "age > 3" + ")" * 40
    assert reveal(open(pa.table({"age": [1, 5, 9]}), schema=CLINIC.select(["age"])).count(fine)) == 2


def test_odd_literals_and_comparisons_made_by_hand():
    with pytest.raises(SchemaError, match="at most 300 digits"):
        parse_where(f"age < {'9' * 5000}", CLINIC)
    assert is_empty(parse_where(f"age > {'9' * 299}", CLINIC), CLINIC)
    with pytest.raises(SchemaError, match="no column 'agee'") as caught:
        parse_where("age = 1 or " * 400 + "agee = 2", CLINIC)
    assert len(str(caught.value)) < 700  # of a long line, what stands around the mistake
    for bad in (
        Compare("sex", "<", 3),
        Compare("age", "~", 3),
        Compare("age", "<", math.nan),
        InCells("sex", (2,), ()),
        InCells("place", (3,), ()),
        Missing("nowhere"),
    ):
        with pytest.raises(SchemaError):
            parse_where(Not(bad), CLINIC)


def test_cells_of_a_numeric_column_may_be_asked_for_by_hand(put):
    data = open(**put(pa.table({"stay": [None, 1.0, 15.0, 29.0, 31.0, math.inf]})), schema=CLINIC.select(["stay"]))
    assert reveal(data.count(InCells("stay", (0, 2), ()))) == 2
    assert reveal(data.count(Not(InCells("stay", (0, 2), ())))) == 1
    assert reveal(data.count(InCells("stay", (0, 3), ()))) == 4  # the other cell: NULL and what lies beyond the bounds


def test_nobody_is_not_everybody():
    data = open(pa.table({"age": [1, 5, 9]}), schema=CLINIC.select(["age"]))
    assert reveal(data.count(Either(()))) == 0
    assert reveal(data.count({"age": []})) == 0


def test_the_number_of_cells_is_public():
    wide = Schema({"a": Numeric(0, 1, bins=21_000), "b": Numeric(0, 1, bins=1000)})
    assert wide.check_cells(["a"]) == 21_000
    with pytest.raises(SchemaError, match="21000 x 1000 = 21,000,000 cells over a, b; at most 20,000,000"):
        wide.check_cells(["a", "b"])
    with pytest.raises(InputError, match="use fewer columns or coarser bins"):
        sf.open("nowhere.parquet", schema=wide, epsilon=1).preview("histogram", columns=["a", "b"], epsilon=0.1)
