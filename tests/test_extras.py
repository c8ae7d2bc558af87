"""What is missing is named, with what to install: seen by hiding modules that are installed here."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import sfumato.tables.capping as capping
import sfumato.tables.engines as engines
from sfumato.attributes import Policy
from sfumato.attributes.release import release_histogram
from sfumato.bench import attributes_scale, noise
from sfumato.cli import show
from sfumato.errors import InputError, NotInstalledError
from sfumato.extras import EXTRAS, need
from sfumato.ledger import Ledger
from sfumato.privacy import Meter, PersonBudgets, Seeded
from sfumato.tables.connecting import connect

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def hide(monkeypatch):
    def hidden(package):
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)  # the import system takes None for "there is none"

    return hidden


# Modules that are not called as their distribution is, or that come with another.
BROUGHT_BY = {
    **dict.fromkeys(("google.rpc", "grpc", "grpc_status", "zstandard"), "pyspark"),
    "argon2": "argon2-cffi",
    "starlette": "fastapi",
    "google.auth": "google-cloud-bigquery",
    "google.cloud": "google-cloud-bigquery",
    "databricks": "databricks-sql-connector",
    "snowflake": "snowflake-connector-python",
}


def _names(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_every_extra_that_a_message_can_name_exists_and_brings_the_package():
    for module, extra in EXTRAS.items():
        package = BROUGHT_BY.get(module) or module.replace("_", "-")
        assert package in _names(PROJECT["optional-dependencies"][extra])
        assert package not in _names(PROJECT["dependencies"])


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_a_missing_extra_is_named(hide, package):
    hide(package)
    with pytest.raises(NotInstalledError, match=re.escape(f'pip install "sfumato[{EXTRAS[package]}]"')):
        need(f"{package}.part", "this")


def test_a_package_that_is_there_but_broken_keeps_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import a_dependency_of_it")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_dependency_of_it") as caught:
        need("broken_package", "this")
    assert not isinstance(caught.value, NotInstalledError)


def test_postgres_needs_psycopg(hide):
    hide("psycopg")
    with pytest.raises(NotInstalledError, match=r'a PostgreSQL ledger needs psycopg.*"sfumato\[postgres\]"'):
        Ledger.open("postgresql://ann:secret@127.0.0.1:1/privacy")
    with pytest.raises(InputError, match=r'a PostgreSQL table needs psycopg.*"sfumato\[postgres\]"') as caught:
        connect("postgresql://ann:secret@127.0.0.1:1/clinic", "patients", columns={})
    assert "secret" not in str(caught.value)


def test_a_cap_on_polars_rows_needs_polars(hide):
    hide("polars")
    with pytest.raises(NotInstalledError, match=r"sfumato\[polars\]"):
        capping._drawn_by_polars(engines.Engine(None, None, "polars"), None, 1)


def test_what_a_device_lacks_is_named(hide, tmp_path):
    policy = Policy(("x", "y"), np.array([10**9] * 2), np.array([[1, 1]]), 2 * 10**9, np.array([10**9] * 2))
    meter = Meter(attributes=policy.attributes, neighbours="item", source=Seeded(1))
    release = release_histogram(policy.sums([["x"], ["x", "y"]]), policy, meter)
    for package, use in (
        ("pandas", release.to_frame),
        ("matplotlib", release.plot),
        ("duckdb", lambda: PersonBudgets.from_file(tmp_path / "budgets.csv")),
    ):
        hide(package)
        with pytest.raises(NotInstalledError, match=rf"needs {package}.*pip install {package}.*not with sfumato-device"):
            use()


def test_the_noise_bench_says_what_it_could_not_compare_with(hide, monkeypatch):
    hide("opendp")
    monkeypatch.setattr(noise, "_left_open", lambda size: {})
    monkeypatch.setattr(noise, "_pairs", lambda *_: (np.ones(3), np.ones(3)))
    monkeypatch.setattr(noise, "_seconds", lambda *_: 0.1)
    found = noise.run(quick=True)
    (claim,) = [claim for claim in found["claims"] if "OpenDP" in claim["name"]]
    assert not claim["holds"]
    assert found["figures"]["times_faster_than_opendp"] is None
    console = Console(record=True, width=400)
    show.show_bench(console, "noise", found)
    said = console.export_text()
    # Once among the figures, where JSON escapes the quotes, and once among the claims.
    assert said.count("sfumato[bench]") == 2


def test_the_allocation_bench_says_what_it_could_not_compare_with(hide):
    hide("cvxpy")
    times = attributes_scale.allocation_times(items=50, progress=lambda _: None)
    assert '"sfumato[bench]"' in times["conic_missing"]
    assert times["0/1"]["seconds"] > 0
    assert "times_faster" not in times["weighted"]
