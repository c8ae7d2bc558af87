"""Addresses in messages and in the ledger: no part of a password, whatever the address looks like."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.tables import Numeric, Roster, Schema
from sfumato.tables.addresses import without_secrets
from sfumato.tables.sources import describe

SCHEMA = Schema({"x": Numeric(0, 1, bins=2)})


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:hush@db.example.org/clinic", "postgresql://ann@db.example.org/clinic"),
        ("postgresql://u:p@ss/w@rd@h/db?password=x&sslpassword=y", "postgresql://u@h/db"),
        ("postgresql://db.example.org:5432/clinic?password=hush&user=ann", "postgresql://db.example.org:5432/clinic"),
        ("postgresql:///clinic?host=/run/pg&password=hush", "postgresql:///clinic"),
        ("postgres://ann:hu%40sh%2F%3A@[::1]:5432/clinic", "postgres://ann@[::1]:5432/clinic"),
        ("postgresql://ann:hush@one:5432,two:5433/clinic", "postgresql://ann@one:5432,two:5433/clinic"),
        ("postgresql://:hush@h/db", "postgresql://@h/db"),
        ("postgresql://ann%3Ahush@h/db", "postgresql://ann@h/db"),
        ("postgresql://ann:hu#sh@h/db#hush", "postgresql://ann@h/db"),
        ("postgresql://ann:hu?sh@h/db", "postgresql://..."),
        ("postgresql://h/db?password=hu@sh", "postgresql://..."),
        ("postgresql://ann:hush", "postgresql://..."),
        ("postgresql://ann:hu/sh", "postgresql://..."),
        ("duckdb:////data/ann@home/clinic.db?password=hush", "duckdb:////data/ann@home/clinic.db"),
        ("duckdb://md:clinic?motherduck_token=hush", "duckdb://..."),
        ("sc://spark.example.org:15002/;token=hush;use_ssl=true", "sc://spark.example.org:15002/"),
        ("sc://spark.example.org:15002/;user_id=ann;token=hu@sh", "sc://..."),
        ("trino://ann:hush@db.example.org:8443/hive/clinic", "trino://ann@db.example.org:8443/hive/clinic"),
        ("snowflake://ann:hush@org-account/db/s?private_key=hush", "snowflake://ann@org-account/db/s"),
        ("databricks://token:hush@dbc.example.org/sql/1.0/w?x=hush", "databricks://token@dbc.example.org/sql/1.0/w"),
        ("bigquery://project-1/clinic?credentials=hush", "bigquery://project-1/clinic"),
        ("s3://KEY:hush@bucket/visits/?endpoint_override=h", "s3://KEY@bucket/visits/"),
        ("abfss://visits@account.dfs.core.windows.net/2024/?key=hush", "abfss://visits@account.dfs.core.windows.net/2024/"),
        ("clinic-*.parquet", "clinic-*.parquet"),
        ("C:/data/clinic.csv", "C:/data/clinic.csv"),
        ("/data/ann@home/clinic.csv", "/data/ann@home/clinic.csv"),
    ],
)
def test_what_is_shown(address, shown):
    assert describe(address) == shown
    assert "hush" not in shown


_secret = st.text(st.sampled_from("sS1@/:?#&=%.[] ~!$'\"\\+"), min_size=3, max_size=12).map(lambda t: f"Qz{t}zQ")


@settings(max_examples=150, deadline=None)
@given(_secret, st.sampled_from(["plain", "option", "both", "encoded", "path", "words", "no scheme"]))
def test_no_part_of_a_password_is_shown(secret, shape):
    address = {
        "plain": f"postgresql://ann:{secret}@db.example.org:5432/clinic",
        "option": f"postgresql://ann@db.example.org/clinic?sslmode=require&password={secret}",
        "both": f"postgresql://ann:{secret}@db.example.org/clinic?password={secret}&sslpassword={secret}",
        "encoded": f"postgresql://ann:{quote(secret, safe='')}@db.example.org/clinic?passfile={quote(secret, safe='')}",
        "path": str(Path(f"postgresql://ann:{secret}@db.example.org/clinic")),
        "words": f"host=db.example.org user=ann password={secret}",
        "no scheme": f"ann:{secret}@db.example.org/clinic",
    }[shape]
    shown = without_secrets(address)
    assert "Q" not in shown
    assert "z" not in shown


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hush@h/db",
        "mysql://ann:hush@h/db",
        "ann:hush@h/db",
        "host=h password=hush",
        Path("postgresql://ann:hu/hush@h/db"),
    ],
)
def test_refusals_do_not_quote_it(address):
    with pytest.raises(InputError) as caught:
        tables.open(address, schema=SCHEMA)
    assert "hush" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        Roster.table(address, person="who", epsilon="epsilon")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hush@127.0.0.1:1/db",
        "postgresql://ann:hush@127.0.0.1:1/db?password=hush",
        "postgresql://ann:x@hush/y@127.0.0.1:1/db",
        "postgresql://127.0.0.1:hush/db",
        "duckdb:///nowhere.db?password=hush",
        "duckdb://md:hush?motherduck_token=hush",
    ],
)
def test_nor_does_a_connection_that_fails(address):
    with pytest.raises(InputError, match="cannot connect") as caught:
        tables.open(address, table="people", schema=SCHEMA).count()
    assert "hush" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_refused_connection_is_told_in_our_words():
    with pytest.raises(InputError, match=r"cannot connect to postgresql://ann@127.0.0.1:1/db: nothing listens there"):
        tables.open("postgresql://ann:hush@127.0.0.1:1/db", table="people", schema=SCHEMA).count()
