"""Parquet on object storage: folders, partitions and files on a stand-in for S3; keys from the environment only."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.tables import Categorical, Numeric, Schema
from sfumato.testing import reveal
from support.object_store import SECRET

SCHEMA = Schema({"age": Numeric(0, 99, bins=2, integer=True), "sex": Categorical(["F", "M"], other=True)})


def parquet(columns: dict) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def test_a_folder_with_partitions_and_columns_that_some_files_lack(object_store):
    files = object_store.files
    files["b/visits/year=2023/a.parquet"] = parquet({"age": [1, 60], "sex": ["F", None]})
    files["b/visits/year=2024/b.parquet"] = parquet({"age": pa.array([99], pa.int32()), "extra": [0.5]})
    files["b/visits/_temporary/c.parquet"] = b"unfinished"
    files["b/visits/readme.txt"] = b"text"
    schema = Schema({**SCHEMA.columns, "year": Numeric(2023, 2024, bins=2, integer=True)})
    data = tables.open(object_store.url("b/visits/"), schema=schema)
    assert reveal(data.counts(["year", "age"])).tolist() == [[1, 1], [0, 1]]
    assert reveal(data.count("sex = 'F'")) == 1
    assert reveal(data.count("year = 2024")) == 1


def test_one_file_and_text_that_is_none(object_store):
    bad = pa.array([b"F", b"\xff\xfe", b"M"], pa.binary()).view(pa.string())
    object_store.files["b/t.parquet"] = parquet({"age": [1, 2, 77], "sex": bad})
    data = tables.open(object_store.url("b/t.parquet"), schema=SCHEMA)
    assert reveal(data.counts("sex")).sum() == 3
    assert reveal(data.count("sex = 'F'")) == 1


def test_opening_reads_no_row(object_store):
    object_store.files["b/t.parquet"] = parquet({"age": list(range(100)) * 2000, "sex": ["F", "M"] * 100_000})
    data = tables.open(object_store.url("b/t.parquet"), schema=SCHEMA)
    data.check()
    before = len(object_store.asked)
    assert reveal(data.count("age >= 50")) == 100_000
    assert len(object_store.asked) > before


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("b/nothing/", r"cannot read s3://b/nothing/: there is no \.parquet file"),
        ("b/nothing.parquet", r"cannot read s3://b/nothing\.parquet"),
    ],
)
def test_what_is_not_there_is_told_without_keys(object_store, path, said):
    object_store.files["b/t.parquet"] = parquet({"age": [1]})
    with pytest.raises(InputError, match=said) as caught:
        tables.open(object_store.url(path), schema=SCHEMA).count()
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_refused_key_is_not_quoted(object_store, monkeypatch):
    object_store.files["b/t.parquet"] = parquet({"age": [1]})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ANOTHERKEY")
    with pytest.raises(InputError, match=r"cannot read s3://b/t\.parquet") as caught:
        tables.open(object_store.url("b/t.parquet"), schema=SCHEMA).count()
    assert "ANOTHERKEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://KEY:hush@bucket/visits/", "keys of object storage do not stand in a URL"),
        ("s3://bucket/visits/?secret_key=hush", "no option 'secret_key'; .*Known: region, scheme, endpoint_override"),
        ("s3://bucket/visits.csv", "neither a .parquet file nor a folder"),
    ],
)
def test_what_is_refused_beforehand(url, said):
    with pytest.raises(InputError, match=said) as caught:
        tables.open(url, schema=SCHEMA).count()
    assert "hush" not in str(caught.value)
    with pytest.raises(InputError, match="leave out table="):
        tables.open("s3://bucket/visits/", table="t", schema=SCHEMA)
