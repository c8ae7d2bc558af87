"""Opening things: lazily, from everywhere, with errors that quote no private value."""

from __future__ import annotations

import gzip
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato.tables as tables
from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Roster, Schema
from sfumato.testing import reveal

SCHEMA = Schema(
    {
        "age": Numeric(0, 99, bins=2, integer=True, other=True),
        "sex": Categorical(["F", "M"]),
        "ward": Categorical([1, 2], other=True),
        "smoker": Categorical([True, False]),
    }
)
PLAIN = {
    "age": [10, 60, None, 500],
    "sex": ["F", "M", "M", None],
    "ward": [1, 2, 3, None],
    "smoker": [True, False, None, True],
}
AGES, SEXES, WARDS, SMOKERS = [1, 2, 1], [1, 2], [1, 1, 2], [2, 1]


def check(data) -> None:
    assert reveal(data.counts("age")).tolist() == AGES
    assert reveal(data.counts("sex")).tolist() == SEXES
    assert reveal(data.counts("ward")).tolist() == WARDS
    assert reveal(data.counts("smoker")).tolist() == SMOKERS


def test_nothing_is_opened_before_the_first_aggregate(tmp_path):
    missing = str(tmp_path / "nothing-here.parquet")
    data = tables.open(missing, schema=SCHEMA, budgets="epsilon")
    assert data.schema is SCHEMA
    with pytest.raises(InputError, match="no file"):
        data.count()
    remote = tables.open("postgresql://ann:secret@127.0.0.1:1/db", table="t", schema=SCHEMA)
    assert "secret" not in str(remote)
    with pytest.raises(InputError, match="cannot connect") as caught:
        remote.count()
    assert "secret" not in str(caught.value)


def test_importing_tables_loads_no_engine():
    code = (
        "import sys, sfumato.tables; print(any(m in sys.modules for m in ('ibis', 'duckdb', 'pandas', 'pyarrow', 'polars')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_frames():
    check(tables.open(pa.table(PLAIN), schema=SCHEMA))
    check(tables.open(pd.DataFrame(PLAIN), schema=SCHEMA))
    check(tables.open(pd.DataFrame(PLAIN).astype({"sex": "category", "age": "float32"}), schema=SCHEMA))
    check(tables.open(pd.DataFrame({k: pd.array(v) for k, v in PLAIN.items()}), schema=SCHEMA))
    check(tables.open(pl.DataFrame(PLAIN), schema=SCHEMA))
    check(tables.open(pl.DataFrame(PLAIN).with_columns(pl.col("sex").cast(pl.Categorical)), schema=SCHEMA))
    check(tables.open(pl.DataFrame(PLAIN).lazy(), schema=SCHEMA))


def test_mixed_objects_in_pandas_are_missing_not_errors():
    frame = pd.DataFrame({k: pd.Series([*v, object()], dtype=object) for k, v in PLAIN.items()})
    frame.loc[4, "age"] = "secret"
    frame.loc[4, "sex"] = 3
    data = tables.open(frame, schema=SCHEMA)
    assert reveal(data.counts("age")).tolist() == [1, 2, 2]
    assert reveal(data.counts("sex")).tolist() == SEXES
    empty = pd.DataFrame({k: pd.Series([None, None], dtype=object) for k in PLAIN})
    assert reveal(tables.open(empty, schema=SCHEMA).counts("sex")).tolist() == [0, 0]


def test_csv_is_read_as_text_and_bad_cells_are_missing(tmp_path):
    text = 'age,sex,ward,smoker,note\n10,F,1,true,"a,b"\n60.5,M,2,FALSE,\n,M,3,maybe,x\n1e99,,abc,True,y\n'
    path = tmp_path / "o'clock.csv"
    path.write_text(text)
    check(tables.open(path, schema=SCHEMA))
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    check(tables.open(str(tmp_path / "t.csv.gz"), schema=SCHEMA))
    (tmp_path / "t.tsv").write_text(text.replace('"a,b"', "ab").replace(",", "\t"))
    check(tables.open(tmp_path / "t.tsv", schema=SCHEMA))
    (tmp_path / "empty.csv").write_text("age,sex,ward,smoker\n")
    assert reveal(tables.open(tmp_path / "empty.csv", schema=SCHEMA).count()) == 0


def test_csv_type_changes_late_in_the_file_do_not_raise(tmp_path):
    lines = ["age,sex,ward,smoker"] + ["30,F,1,true"] * 30_000 + ["secret,F,1,true", "\xff,F", "1,2,3,4,5,6,7"]
    (tmp_path / "late.csv").write_bytes("\n".join(lines).encode("latin-1"))
    counts = reveal(tables.open(tmp_path / "late.csv", schema=SCHEMA).counts("age"))
    assert counts[0] in (30_000, 30_001)
    assert counts[1] == 0


def test_parquet_globs_and_database_files(tmp_path):
    table = pa.table(PLAIN)
    pq.write_table(table.slice(0, 2), tmp_path / "a-1.parquet")
    pq.write_table(table.slice(2), tmp_path / "a-2.parquet")
    check(tables.open(str(tmp_path / "a-*.parquet"), schema=SCHEMA))
    import duckdb

    with duckdb.connect(str(tmp_path / "x.db")) as connection:
        connection.register("frame", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.people AS SELECT * FROM frame")
    url = f"duckdb:///{tmp_path / 'x.db'}"
    data = tables.open(url, table="people", schema=SCHEMA)
    check(data)
    check(tables.open(url, table=("s", "people"), schema=SCHEMA))
    with pytest.raises(InputError, match="no table 'nobody'"):
        tables.open(url, table="nobody", schema=SCHEMA).count()


def test_marginals_store_their_rows_in_a_read_only_database(tmp_path, monkeypatch):
    import duckdb

    with duckdb.connect(str(tmp_path / "x.db")) as connection:
        connection.register("frame", pa.table(PLAIN))
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    monkeypatch.setattr("sfumato.tables.counting.ROLL_UP_CELLS", 0)
    data = tables.open(f"duckdb:///{tmp_path / 'x.db'}", table="people", schema=SCHEMA)
    assert [m.tolist() for m in reveal(data.marginals(["age", "sex"]))] == [AGES, SEXES]


def test_an_ibis_table_keeps_its_backend():
    import ibis

    table = ibis.duckdb.connect().create_table("t", pa.table(PLAIN))
    check(tables.open(table, schema=SCHEMA))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [1, 60, None, 127]),
        (pa.uint8(), [1, 60, None, 255]),
        (pa.uint64(), [1, 60, None, 2**64 - 1]),
        (pa.float32(), [1.5, 60.0, math.nan, math.inf]),
        (pa.decimal128(38, 2), [1, 60, None, 10**30]),
        (pa.bool_(), [True, None, False, True]),
    ],
)
def test_every_numeric_type(kind, values):
    data = tables.open(pa.table({"age": pa.array(values, kind)}), schema=SCHEMA.select(["age"]))
    assert reveal(data.counts("age")).tolist() == ([3, 0, 1] if kind == pa.bool_() else [1, 2, 1])
    assert reveal(data.count("age >= 60")) == (0 if kind == pa.bool_() else 2)


@pytest.mark.parametrize(
    ("name", "column"),
    [("age", ["secret"]), ("sex", [1]), ("ward", ["secret"]), ("ward", [True]), ("smoker", ["secret"])],
)
def test_a_type_that_does_not_fit_is_refused_from_the_type_alone(name, column):
    data = tables.open(pa.table({**{k: v[:1] for k, v in PLAIN.items()}, name: column}), schema=SCHEMA)
    with pytest.raises(SchemaError, match=f"column '{name}'") as caught:
        data.counts(name)
    assert "secret" not in str(caught.value)
    with pytest.raises(SchemaError):
        data.check()


def test_refusals():
    frame = pd.DataFrame(PLAIN)
    with pytest.raises(SchemaError, match="no column 'agee' in the schema; did you mean 'age'"):
        tables.open(frame, schema=SCHEMA).counts("agee")
    with pytest.raises(SchemaError, match=r"not in the table .*case-sensitive"):
        tables.open(frame.rename(columns={"age": "Age"}), schema=SCHEMA).counts("age")
    with pytest.raises(InputError, match="say which table"):
        tables.open("postgresql://localhost/db", schema=SCHEMA)
    with pytest.raises(InputError, match="no engine for mysql"):
        tables.open("mysql://localhost/db", table="t", schema=SCHEMA)
    with pytest.raises(InputError, match="cannot tell what"):
        tables.open("table.sas7bdat", schema=SCHEMA)
    with pytest.raises(InputError, match="cannot open a builtins dict"):
        tables.open({"a": [1]}, schema=SCHEMA)
    with pytest.raises(SchemaError, match="no schema file"):
        tables.open(frame, schema="nowhere.toml")
    with pytest.raises(InputError, match="needs budgets per person"):
        tables.open(frame, schema=SCHEMA).weighted_sums(10**9)
    wide = Schema({f"c{i}": Numeric(0, 1, bins=1000) for i in range(3)})
    with pytest.raises(SchemaError, match="use fewer columns or coarser bins"):
        tables.open(frame, schema=wide).counts(["c0", "c1", "c2"])
    with pytest.raises(SchemaError, match="named twice"):
        tables.open(frame, schema=SCHEMA).counts(["age", "age"])


def test_engine_errors_do_not_speak():
    import ibis

    table = ibis.duckdb.connect().create_table("t", pa.table({"sex": ["secret"]}))
    broken = table.mutate(age=table["sex"].cast("int64"))
    with pytest.raises(InputError, match="could not compute") as caught:
        reveal(tables.open(broken, schema=SCHEMA).counts("age"))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_rosters():
    unit = PrivacyUnit(person="id", rows_per_person=1)
    schema = Schema({"x": Numeric(0, 1, bins=2)}, unit)
    frame = pa.table({"x": [0.1, 0.9, 0.9], "id": [1, 2, 3]})
    csv_like = pd.DataFrame({"id": [1, 2, 2], "tier": ["open", "open", "strict"]})
    roster = Roster.table(csv_like, person="id", tier="tier", tiers={"open": 1, "strict": 0.1})
    data = tables.open(frame, schema=schema, budgets=roster)
    assert not roster.reads_table
    assert data.person_budgets().counts.tolist() == [1, 1]
    assert reveal(data.weighted_sums(10**9)) == 1_100_000_000
    assert reveal(data.weighted_sums(10**9, by=["x"])).tolist() == [10**9, 10**8]
    text_ids = pd.DataFrame({"id": ["1"], "tier": ["open"]})
    other = Roster.table(text_ids, person="id", tier="tier", tiers={"open": 1})
    with pytest.raises(SchemaError, match="give them one type"):
        tables.open(frame, schema=schema, budgets=other).weighted_sums(10**9)
    with pytest.raises(SchemaError, match="unit is the row"):
        tables.open(frame, schema=SCHEMA, budgets=roster)
    assert Roster.column("epsilon").reads_table
    with pytest.raises(InputError, match="not stated"):
        Roster.column("epsilon").head_counts()
    stated = PersonBudgets.of([0.1, 0.2])
    assert Roster.column("epsilon", people=stated).head_counts() is stated
    for bad in ({"colum": "x"}, {}, {"source": "r.csv"}, {"column": "x", "person": "y"}, {"column": "x", "counts": {}}):
        with pytest.raises(InputError):
            Roster.from_mapping(bad)


def test_a_csv_roster_meets_numbers(tmp_path):
    (tmp_path / "roster.csv").write_text("who,e\n1,0.5\n2,x\n3,\n,1\n")
    roster = Roster.table(str(tmp_path / "roster.csv"), person="who", epsilon="e")
    schema = Schema({"x": Numeric(0, 1, bins=2)}, PrivacyUnit(person="id", rows_per_person=1))
    data = tables.open(pa.table({"x": [0.1, 0.9, 0.9], "id": [1, 2, 3]}), schema=schema, budgets=roster)
    assert reveal(data.weighted_sums(10**9)) == 500_000_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": 0}, "at least 1"),
        ({"weights": 10**12, "measure": "x", "steps": 2**30}, "does not fit 64 bits"),
        ({"weights": 5, "measure": "x"}, "give steps"),
        ({"weights": 5, "measure": "x", "steps": 0}, "from 1 to"),
        ({"weights": 5, "steps": 4}, "needs a measure"),
        ({"weights": 5, "measure": "s", "steps": 4}, "categorical"),
        ({"weights": ([2, 1], [1, 1])}, "sorted, distinct"),
        ({"weights": ([1, 2], [1, -1])}, "negative"),
    ],
)
def test_ranges_are_checked_before_anything_is_read(arguments, message):
    schema = Schema({"x": Numeric(0, 1, bins=2), "s": Categorical(["a"])})
    data = tables.open("does-not-exist.parquet", schema=schema, budgets="e")
    with pytest.raises(InputError, match=message):
        data.weighted_sums(**arguments)


def test_many_bins_and_values_stay_exact():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 101, 5000)
    x[:1001] = np.linspace(0, 100, 1001)  # on the edges
    names = [f"v{i}" for i in range(300)]
    schema = Schema({"x": Numeric(0, 100, bins=1000), "n": Categorical(names, other=True)})
    data = tables.open(pa.table({"x": x, "n": [f"v{i % 310}" for i in range(5000)]}), schema=schema)
    edges = np.array(schema["x"].edges)
    codes = np.clip(np.searchsorted(edges, np.clip(x, 0, 100), side="right") - 1, 0, 999)
    assert np.array_equal(reveal(data.counts("x")), np.bincount(codes, minlength=1000))
    place = np.minimum(np.arange(5000) % 310, 300)
    assert np.array_equal(reveal(data.counts("n")), np.bincount(place, minlength=301))


def test_a_file_without_a_header_does_not_show_its_first_record(tmp_path):
    (tmp_path / "rows.csv").write_text("Ann Smith,41,HIV\nBob Jones,52,none\n")
    with pytest.raises(SchemaError, match="first line must name the columns") as caught:
        tables.open(tmp_path / "rows.csv", schema=Schema({"age": Numeric(0, 99, bins=2, integer=True)})).check()
    assert "Ann" not in str(caught.value)


def test_checking_and_asking_a_lazy_frame_reads_no_row():
    def read(frame):
        raise RuntimeError("a row was read")

    lazy = pl.LazyFrame({"who": [1, 1, 2], "age": [3, 4, 5]}).map_batches(
        read, schema={"who": pl.Int64, "age": pl.Int64}, validate_output_schema=False
    )
    schema = Schema({"age": Numeric(0, 99, bins=2, integer=True)}, unit=tables.PrivacyUnit("who", 1))
    tables.open(lazy, schema=schema).check()
    asked = tables.open(lazy, schema=schema).count()
    with pytest.raises(Exception, match=r"row was read|could not compute"):
        reveal(asked)


class ConnectFrame:
    """Like a Spark Connect data frame: whatever it is asked for, it has, as a column."""

    __module__ = "pyspark.sql.connect.dataframe"

    def __getattr__(self, name):
        return f"Column<{name}>"


class SparkSession:
    __module__ = "pyspark.sql.connect.session"

    def __getattr__(self, name):
        return f"Column<{name}>"


def test_a_spark_connect_frame_is_not_taken_for_a_session():
    assert hasattr(ConnectFrame(), "createDataFrame")
    tables.open(ConnectFrame(), schema=SCHEMA)  # no table has to be named
    with pytest.raises(InputError, match="a Spark session holds many tables"):
        tables.open(SparkSession(), schema=SCHEMA)
    tables.open(SparkSession(), table="people", schema=SCHEMA)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["numeric", "numeric(12, 2)"])
def test_postgres_decimals(postgres_url, kind):
    import os

    import ibis

    name = f"sfumato_decimals_{os.getpid()}"
    values = ["1.5", "60", "99", "119.5", "-3", "NULL", "0.01"]
    if kind == "numeric":
        values += ["1e400", "-1e400", "1e-400", "'NaN'", "'Infinity'", "123456789012345678901234567890.5"]
    backend = ibis.connect(postgres_url)
    backend.raw_sql(f"CREATE TABLE {name} (age {kind}, ward {kind}, epsilon {kind})").close()
    try:
        rows = ", ".join(f"({v}, {v}, {v})" for v in values)
        backend.raw_sql(f"INSERT INTO {name} VALUES {rows}").close()
        backend.con.commit()
        schema = Schema({"age": Numeric(0, 99, bins=2, integer=True, other=True), "ward": Categorical([60, 7])})
        data = tables.open(postgres_url, table=name, schema=schema, budgets="epsilon")
        extra = kind == "numeric"
        assert reveal(data.counts("age")).tolist() == [3 + 2 * extra, 3 + 3 * extra, 1 + extra]
        assert reveal(data.count("age >= 60")) == 3 + 3 * extra
        assert reveal(data.count("age = 0")) == 2 + 2 * extra
        assert reveal(data.counts("ward")).tolist() == [1, 0]
        assert reveal(data.sum("age")) == 1 + 60 + 99 + 99 + 99 * 3 * extra
        heads = data.person_budgets()
        assert heads.levels.tolist()[:2] == [10_000_000, 1_500_000_000]
        assert heads.people == 5 + 3 * extra
    finally:
        backend.raw_sql(f"DROP TABLE {name}").close()
        backend.con.commit()
        backend.disconnect()


@pytest.mark.parametrize("odd", ["sNaN", "half a character", "pandas.NA"])
def test_odd_objects_in_a_frame_are_missing_and_nothing_else(odd):
    from decimal import Decimal

    value = {"sNaN": Decimal("sNaN"), "half a character": "\ud800", "pandas.NA": pd.NA}[odd]
    columns = {"age": [31, value], "sex": ["F", value], "who": [7, value], "epsilon": [0.5, value]}
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})
    schema = Schema(SCHEMA.select(["age", "sex"]).columns, PrivacyUnit(person="who", rows_per_person=1))
    data = tables.open(frame, schema=schema, budgets="epsilon")
    assert reveal(data.counts("age")).sum() == 1
    assert reveal(data.count("sex = 'F'")) == 1
    assert reveal(data.weighted_sums(10**9)) == 500_000_000


def test_what_an_engine_spills_lies_in_a_folder_of_its_own_that_goes_with_it(tmp_path, monkeypatch):
    import gc
    import stat

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    from sfumato.tables.duckdb_engine import fresh_duckdb

    first, second = fresh_duckdb(), fresh_duckdb()
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 2
    assert [stat.S_IMODE(f.stat().st_mode) for f in folders] == [0o700, 0o700]
    del first, second
    gc.collect()
    assert list(tmp_path.iterdir()) == []
