"""What a URL becomes: the call to Ibis with its arguments, and the messages when that fails; no driver is needed."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import ibis
import pytest

import sfumato.tables as tables
from sfumato.errors import InputError, NotInstalledError
from sfumato.tables import Numeric, Roster, Schema, databases
from sfumato.tables.engine_list import DATABASES, SCHEMES
from sfumato.tables.sources import describe

SCHEMA = Schema({"x": Numeric(0, 1, bins=2)})
ELSEWHERE = [s for s in DATABASES if s not in ("duckdb", "postgres", "postgresql", "spark", "sc")]
URLS = {
    "trino": "trino://ann:hu%40sh@db.example.org:8443/hive/clinic",
    "bigquery": "bigquery://project-1/clinic",
    "snowflake": "snowflake://ann:hu%40sh@org-account/DB/CLINIC?warehouse=small",
    "databricks": "databricks://token:hu%40sh@dbc.example.org/sql/1.0/warehouses/abc?catalog=main&schema=clinic",
}
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.UntestedEngineWarning")


@pytest.fixture
def called(monkeypatch):
    """Drivers that are there, and Ibis that writes down how it was called."""
    calls = []
    for scheme in ELSEWHERE:
        for module in SCHEMES[scheme].driver:
            parts = module.split(".")
            for i in range(1, len(parts) + 1):
                name = ".".join(parts[:i])
                if name not in sys.modules:
                    monkeypatch.setitem(sys.modules, name, ModuleType(name))
        tables_of = SimpleNamespace(name=scheme, table=lambda name, database=None: calls.append(("table", name, database)))
        backend = SimpleNamespace(connect=lambda tables_of=tables_of, **given: calls.append(given) or tables_of)
        monkeypatch.setitem(vars(ibis), scheme, backend)  # `setattr` would look it up, which needs the real driver
    auth = ModuleType("google.auth")
    auth.default = lambda scopes: ("the machine's credentials", "project-0")
    monkeypatch.setitem(sys.modules, "google.auth", auth)
    monkeypatch.setattr(databases, "try_hard_constants", lambda engine: engine)
    return calls


@pytest.mark.parametrize("scheme", ELSEWHERE)
def test_a_missing_driver_is_named_without_the_password(scheme):
    data = tables.open(URLS[scheme], table="visits", schema=SCHEMA)
    with pytest.raises(NotInstalledError, match=rf'pip install "sfumato\[{scheme}\]"') as caught:
        data.count()
    assert "hu" not in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "given"),
    [
        (
            "trino",
            {
                "host": "https://db.example.org",
                "port": 8443,
                "user": "ann",
                "auth": "hu@sh",
                "database": "hive",
                "schema": "clinic",
            },
        ),
        ("bigquery", {"project_id": "project-1", "dataset_id": "clinic", "credentials": "the machine's credentials"}),
        (
            "snowflake",
            {
                "account": "org-account",
                "user": "ann",
                "password": "hu@sh",
                "database": "DB",
                "schema": "CLINIC",
                "warehouse": "small",
                "create_object_udfs": False,
            },
        ),
        (
            "databricks",
            {
                "server_hostname": "dbc.example.org",
                "http_path": "/sql/1.0/warehouses/abc",
                "access_token": "hu@sh",
                "catalog": "main",
                "schema": "clinic",
            },
        ),
    ],
)
def test_ibis_is_called_with_the_parts_of_the_url(called, scheme, given):
    engine = databases.open_database(URLS[scheme], "other.visits", None)
    assert called == [given, ("table", "visits", "other")]
    assert engine.name == scheme
    databases.open_database(URLS[scheme], ("cat", "other", "visits.2024"), engine)
    assert called[2:] == [("table", "visits.2024", ("cat", "other"))]  # on the same connection


def test_trino_without_a_password_is_not_encrypted(called):
    databases.open_database("trino://ann@localhost/hive", "clinic.visits", None)
    assert called[0] == {"host": "localhost", "port": 8080, "user": "ann", "database": "hive"}


@pytest.mark.parametrize("scheme", ELSEWHERE)
def test_a_failure_is_told_in_our_words(called, monkeypatch, scheme):
    def fail(**_):
        raise RuntimeError("HTTP 401: hu@sh refused by db.example.org: connection timed out")

    monkeypatch.setitem(vars(ibis), scheme, SimpleNamespace(connect=fail))
    with pytest.raises(InputError, match="cannot connect to") as caught:
        tables.open(URLS[scheme], table="visits", schema=SCHEMA).count()
    assert "hu" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("scheme", ELSEWHERE)
def test_a_wrong_table_is_named_with_its_parts(called, monkeypatch, scheme):
    def missing(name, database=None):
        raise LookupError("hu@sh")

    backend = SimpleNamespace(connect=lambda **_: SimpleNamespace(name=scheme, table=missing))
    monkeypatch.setitem(vars(ibis), scheme, backend)
    with pytest.raises(InputError, match=r"no table 'other\.visits' in .* \(LookupError\); correct table=") as caught:
        tables.open(URLS[scheme], table="other.visits", schema=SCHEMA).count()
    assert "hu" not in str(caught.value)


@pytest.mark.parametrize("url", [*URLS.values(), "sc://host:1/;token=hush", "s3://key:hush@bucket/visits/"])
def test_no_secret_in_what_is_shown(url, tmp_path):
    shown = [describe(url)]
    if not url.startswith("s3"):
        data = tables.open(url, table="visits", schema=SCHEMA, budgets=Roster.column("epsilon"))
        shown += [repr(data), str(data)]
    for text in shown:
        assert "hush" not in text
        assert "hu%40sh" not in text


@pytest.mark.parametrize("scheme", [*ELSEWHERE, "postgresql", "sc", "spark"])
def test_a_database_needs_a_table_and_takes_no_settings_of_duckdb(scheme):
    with pytest.raises(InputError, match="say which table"):
        tables.open(f"{scheme}://host/x", schema=SCHEMA)
    with pytest.raises(InputError, match="engine settings are for DuckDB in this process"):
        tables.open(f"{scheme}://host/x", table="t", schema=SCHEMA, engine={"threads": 2})
    with pytest.raises(InputError, match="two or three names"):
        tables.open(f"{scheme}://host/x", table=("a", "b", "c", "d"), schema=SCHEMA)
