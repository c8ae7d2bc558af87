"""A record is read by itself: one more, however hostile, changes nobody else's cells and no outcome, on every way in."""

from __future__ import annotations

import itertools
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.records.coding import Coding
from sfumato.records.numbers import number_matrix
from sfumato.tables import Numeric, PrivacyUnit, Schema
from sfumato.tables.frames import text_array
from sfumato.tables.one_value import Places, number_of, text_of
from sfumato.tables.values import category_codes, numbers
from support.hostile import FLOATS, NAMES, OBJECTS, ROWS, SCHEMA, SECRET, TEXTS, TRUTHS, WHOLE, changed, look

_number = itertools.count()
a_table = st.lists(st.sampled_from(ROWS), min_size=1, max_size=6)
a_number = st.integers(0, len(OBJECTS) - 1)  # of an object, which pytest and hypothesis would try to print
a_hostile_row = st.tuples(*[a_number] * len(NAMES))
a_typed_row = st.tuples(*map(st.sampled_from, (WHOLE, FLOATS, TEXTS, WHOLE, TRUTHS)))
few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
fewer = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))


def objects(values):
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        column[i] = value
    return column


def hostile(numbers_of_objects):
    return tuple(OBJECTS[i] for i in numbers_of_objects)


def columns(rows):
    return dict(zip(NAMES, zip(*rows, strict=True), strict=True))


def object_array(rows):
    return np.stack([objects(column) for column in columns(rows).values()], axis=1)


def object_frame(rows):
    return pd.DataFrame({name: pd.Series(objects(column), dtype=object) for name, column in columns(rows).items()})


KINDS = pa.schema(zip(NAMES, [pa.int64(), pa.float64(), pa.string(), pa.int64(), pa.bool_()], strict=True))


def arrow(rows):
    return pa.table([pa.array(c, t) for c, t in zip(columns(rows).values(), KINDS.types, strict=True)], schema=KINDS)


UNTYPED = {"list": list, "lists": lambda rows: [list(r) for r in rows], "array": object_array, "pandas": object_frame}
TYPED = {
    "arrow": arrow,
    "polars": lambda rows: pl.from_arrow(arrow(rows)),
    "pandas, nullable": lambda rows: arrow(rows).to_pandas(
        types_mapper={pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype(), pa.bool_(): pd.BooleanDtype()}.get
    ),
    "pandas, Arrow": lambda rows: arrow(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": lambda rows: arrow(rows).to_pandas().astype({"sex": "category", "ward": "category"}),
    "pandas": lambda rows: arrow(rows).to_pandas(),
    "polars, categories": lambda rows: pl.from_arrow(arrow(rows)).with_columns(pl.col("sex").cast(pl.Categorical)),
}


# ------------------------------------------------------------------------------------------------- in memory

CODING = Coding.of(Schema(SCHEMA.columns), classes=["no", "yes"])


@pytest.mark.parametrize("container", UNTYPED)
@given(rows=a_table, extra=a_hostile_row, place=st.integers(0, 6))
@few
def test_coding_is_a_function_of_one_record(container, rows, extra, place):
    extra, place = hostile(extra), min(place, len(rows))
    make = UNTYPED[container]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning that the others do not cause tells of the record
        before = CODING.leaves(make(rows))
        after = CODING.leaves(make([*rows[:place], extra, *rows[place:]]))
    assert np.delete(after, place, axis=0).tolist() == before.tolist()
    assert after[place].tolist() == CODING.leaves([extra])[0].tolist()


@pytest.mark.parametrize("container", TYPED)
@given(rows=a_table, extra=a_typed_row)
@few
def test_the_type_of_a_column_is_a_short_cut_and_no_rule(container, rows, extra):
    table = [*rows, extra]
    assert CODING.leaves(TYPED[container](table)).tolist() == CODING.leaves(table).tolist()
    matrix = number_matrix(TYPED[container](table))
    assert np.array_equal(matrix, number_matrix(table, width=len(NAMES)), equal_nan=True)


@given(values=st.lists(a_number, max_size=8))
@few
def test_columns_agree_with_the_rule_for_one_value(values):
    values = hostile(values)
    assert np.array_equal(numbers(values), [number_of(v) for v in values], equal_nan=True)
    assert np.array_equal(numbers(objects(values)), [number_of(v) for v in values], equal_nan=True)
    for listed in (["F", "M"], [3, 1], [True, False], [1.5, "3"]):
        assert category_codes(values, listed).tolist() == [Places(listed).of(v) for v in values]


@pytest.mark.parametrize("kind", ["i1", "i8", "u8", "f2", "f4", "f8", "g", "?"])
def test_numpy_types_agree_with_the_rule_for_one_value(kind):
    ends = [0, 1, 255, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.1, 1e30, -1e300, 5e-324, np.inf, np.nan]
    with np.errstate(all="ignore"):
        kept = [x for x in ends if kind not in ("i1", "i8", "u8") or _fits(x, kind)]
        column = np.array(kept, dtype=object).astype(kind)
    assert np.array_equal(numbers(column), [number_of(v) for v in column], equal_nan=True)
    assert category_codes(column, [1, 2**53]).tolist() == [Places([1, 2**53]).of(v) for v in column]


def _fits(value, kind):
    return isinstance(value, int) and np.iinfo(kind).min <= value <= np.iinfo(kind).max


@pytest.mark.parametrize("odd", range(len(OBJECTS)))
def test_a_row_that_is_none_spoils_itself_only(odd):
    row = OBJECTS[odd]
    codes = CODING.leaves([*ROWS, row])
    assert codes[:-1].tolist() == CODING.leaves(ROWS).tolist()
    assert codes[-1].tolist() == CODING.leaves([[None] * 5])[0].tolist()
    assert np.isnan(number_matrix([*ROWS, row], width=5)[-1]).all()
    with pytest.raises(InputError, match="does not state how many features"):
        number_matrix([*ROWS, row])


@given(labels=st.lists(st.sampled_from(["no", "yes"]), max_size=5), odd=a_number)
@few
def test_one_label_does_not_change_another(labels, odd):
    found = CODING.class_codes([*labels, OBJECTS[odd]])
    assert found[:-1].tolist() == [["no", "yes"].index(x) for x in labels]
    assert found[-1] == -1


# ------------------------------------------------------------------------------------------- tables and engines


def counted(source, table=None):
    data = tables.open(source, schema=SCHEMA, table=table)
    data.check()
    return look(data.counts(NAMES)), look(data.sum("dose", steps=7))


def compare(put, rows, extra):
    before, after = counted(**put(rows)), counted(**put([*rows, extra]))
    assert changed(after[0], before[0]) == 1
    assert 0 <= after[1] - before[1] <= 7


@given(rows=a_table, extra=a_hostile_row)
@fewer
def test_objects_in_a_frame(rows, extra):
    compare(lambda rows: {"source": object_frame(rows)}, rows, hostile(extra))


@pytest.mark.parametrize("container", TYPED)
@given(rows=a_table, extra=a_typed_row)
@fewer
def test_typed_frames(container, rows, extra):
    compare(lambda rows: {"source": TYPED[container](rows)}, rows, extra)


@given(rows=a_table, extra=a_typed_row)
@fewer
def test_lazy_frames(rows, extra):
    compare(lambda rows: {"source": pl.from_arrow(arrow(rows)).lazy()}, rows, extra)


@given(rows=a_table, extra=a_typed_row)
@fewer
def test_parquet(tmp_path, rows, extra):
    def put(rows):
        path = tmp_path / f"t{next(_number)}.parquet"
        pq.write_table(arrow(rows), path)
        return {"source": path}

    compare(put, rows, extra)


@given(rows=a_table, extra=a_typed_row)
@fewer
def test_a_database_file(tmp_path, rows, extra):
    import duckdb

    def put(rows):
        path = tmp_path / f"t{next(_number)}.db"
        with duckdb.connect(str(path)) as connection:
            connection.register("frame", arrow(rows))
            connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        return {"source": f"duckdb:///{path}", "table": "people"}

    compare(put, rows, extra)


@pytest.mark.postgres
@given(rows=a_table, extra=a_typed_row)
@fewer
def test_postgres(postgres_url, rows, extra):
    import ibis

    backend, made = ibis.connect(postgres_url), []

    def put(rows):
        made.append(f"sfumato_alone_{os.getpid()}_{next(_number)}")
        backend.create_table(made[-1], arrow(rows))
        return {"source": postgres_url, "table": made[-1]}

    try:
        compare(put, rows, extra)
    finally:
        for name in made:
            backend.drop_table(name)
        backend.disconnect()


@pytest.mark.spark
@given(rows=a_table, extra=a_typed_row)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_spark(spark, rows, extra):
    kinds = "age bigint, dose double, sex string, ward bigint, smoker boolean"
    compare(lambda rows: {"source": spark.createDataFrame(rows, kinds)}, rows, extra)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["numeric", "float8", "real"])
def test_numbers_at_the_end_of_doubles_in_postgres(postgres_url, kind):
    import ibis

    values = ["1e-44", "'NaN'", "1e30", "'-Infinity'"] if kind == "real" else ["5e-324", "-5e-324", "1e-310", "1e300"]
    values += ["1e-400", "-1e-400", "1e400"] if kind == "numeric" else []
    name, backend = f"sfumato_ends_{os.getpid()}", ibis.connect(postgres_url)
    schema = Schema({"x": Numeric(0, 2, bins=40), "y": Numeric(0, 2**50, bins=4)})
    try:
        for value in values:
            backend.raw_sql(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (x {kind}, y {kind})").close()
            backend.raw_sql(f"INSERT INTO {name} VALUES (1, 1), ({value}, {value})").close()
            backend.con.commit()
            data = tables.open(postgres_url, table=name, schema=schema)
            assert look(data.counts("x")).sum() == (1 if value == "'NaN'" else 2), value
            assert look(data.counts("x"))[20] == 1, value
            assert 0 <= look(data.sum("y", steps=2**30)) <= 2**30, value
    finally:
        backend.raw_sql(f"DROP TABLE IF EXISTS {name}").close()
        backend.con.commit()
        backend.disconnect()


# ---------------------------------------------------------------------------------------- errors and the charge


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("age", pd.Series(pd.period_range("2024-01", periods=2))),
        ("age", pd.Series(pd.interval_range(0, 2))),
        ("age", pd.Series(pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Oslo"))),
        ("sex", pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
    ],
    ids=["period", "interval", "stamp", "list"],
)
def test_a_type_that_holds_no_values_of_the_domain_is_refused_by_the_check(name, column):
    data = tables.open(pd.DataFrame({name: column}), schema=SCHEMA.select([name]))
    with pytest.raises(InputError, match=f"column '{name}'"):
        data.check()
    assert set(CODING.leaves(pd.DataFrame(dict.fromkeys(NAMES, column))).ravel()) == set(CODING.leaves([[None] * 5])[0])


def test_a_column_without_any_value_has_the_type_that_the_schema_asks_for():
    for frame in (pa.table({"sex": pa.nulls(3)}), pl.DataFrame({"sex": [None] * 3}), pd.DataFrame({"sex": [None] * 3})):
        data = tables.open(frame, schema=SCHEMA.select(["sex"]))
        data.check()
        assert look(data.counts("sex")).tolist() == [0, 0, 3]


def test_numbers_written_as_text_are_numbers_beside_others_too():
    for column in (["31", "77"], ["31", "77", 5], ["31", "77", None], ["31", "77", "x"]):
        data = tables.open(pd.DataFrame({"age": column}), schema=SCHEMA.select(["age"]))
        data.check()
        assert look(data.counts("age"))[[1, 3]].tolist() == [1, 1]
        assert CODING.leaves(pd.DataFrame(dict.fromkeys(NAMES, column)))[:2, 0].tolist() == [1, 3]


def test_one_complex_number_beside_others():
    for column in ([31, 77], [31, 77, 1j]):
        data = tables.open(pd.DataFrame({"age": column}), schema=SCHEMA.select(["age"]))
        data.check()
        assert look(data.counts("age"))[[1, 3]].tolist() == [1, 1]
        assert numbers(np.array(column))[:2].tolist() == [31, 77]


def test_half_floats_and_records_of_numpy():
    half = np.array([1, 4, 2.5], dtype=np.float16)
    for frame in (pa.table({"dose": half}), pd.DataFrame({"dose": half})):
        assert look(tables.open(frame, schema=SCHEMA.select(["dose"])).sum("dose", steps=8)) == 2 + 8 + 5
    mixed = np.array(ROWS, dtype=list(zip(NAMES, ["i8", "f8", "U2", "i2", "?"], strict=True)))
    assert CODING.leaves(mixed).tolist() == CODING.leaves(ROWS).tolist()


@pytest.mark.parametrize("way", ["arrow", "parquet", "parquet, categories"])
def test_text_that_is_not_utf8_is_missing(tmp_path, way):
    good = ["F", "M", "F", SECRET]
    raw = pa.array([*(v.encode() for v in good), b"\xff " + SECRET.encode()], pa.binary())
    bad = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    schema = SCHEMA.select(["sex"])

    def put(column):
        table = pa.table({"sex": column})
        if way == "parquet, categories":
            table = pa.table({"sex": column.dictionary_encode()})
        if way.startswith("parquet"):
            pq.write_table(table, tmp_path / "t.parquet")
            return tmp_path / "t.parquet"
        return table

    data = tables.open(put(bad), schema=schema)
    data.check()
    assert look(data.counts("sex")).tolist() == [2, 1, 2]
    persons = Schema({"sex": SCHEMA["sex"]}, PrivacyUnit("sex", 1))
    assert look(tables.open(put(bad), schema=persons).count()) == 3


def test_a_check_reads_no_row(monkeypatch):
    def refuse(values):
        if values != []:
            raise RuntimeError("a value was read")
        return np.zeros(0)

    schema = Schema(SCHEMA.columns, PrivacyUnit("who", 1))
    frame = object_frame(ROWS).assign(who=objects([1, "b", None, 4, 5]), epsilon=objects([0.1, 1, "x", None, 2]))
    data = tables.open(frame, schema=schema, budgets="epsilon")
    with monkeypatch.context() as patch:
        for reader in ("numbers_of_all", "text_of", "truth_of", "person_of"):
            patch.setattr(f"sfumato.tables.frames.{reader}", refuse)
        data.check()
        with pytest.raises(Exception, match="could not compute"):
            look(data.count())
    assert look(data.count()) == 4


@pytest.mark.parametrize("odd", range(len(OBJECTS)))
def test_a_person_and_a_budget_of_any_kind(odd):
    schema = Schema({"age": Numeric(0, 99, bins=2)}, PrivacyUnit("who", 1))
    plain = {"age": objects([31, 77]), "who": objects(["a", "b"]), "epsilon": objects([0.5, 0.25])}
    more = {name: objects([*column, OBJECTS[odd]]) for name, column in plain.items()}
    before, after = (
        tables.open(pd.DataFrame({n: pd.Series(c, dtype=object) for n, c in t.items()}), schema=schema, budgets="epsilon")
        for t in (plain, more)
    )
    after.check()
    assert 0 <= look(after.count()) - look(before.count()) <= 1
    assert look(before.weighted_sums(10**9)) == 750_000_000
    assert 750_000_000 <= look(after.weighted_sums(10**9)) <= 1_750_000_000


def test_one_and_one_point_zero_are_one_person():
    schema = Schema({"age": Numeric(0, 99, bins=2)}, PrivacyUnit("who", 1))
    who = objects([1, 1.0, np.int64(1), np.float32(1), "2", 2, True])
    frame = pd.DataFrame({"age": [3] * len(who), "who": pd.Series(who, dtype=object)})
    assert look(tables.open(frame, schema=schema).count()) == 2


@pytest.mark.parametrize(
    "stray", [None, float("nan"), 1.5, float("inf"), 3, b"F", "\ud800", True, ["F"], np.str_("F"), pd.NA]
)
def test_text_at_once_and_value_by_value_are_the_same(stray):
    values = ["F", None, "M", "", float("nan"), "é" * 3]
    plain = [text_of(v) for v in values]
    assert text_array(values).to_pylist() == plain
    assert text_array([*values, stray]).to_pylist() == [*plain, text_of(stray)]
