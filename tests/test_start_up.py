"""What a command loads: a preview must not pay for engines, learners and frames that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import registry
from sfumato.registry_homes import HOMES
from sfumato.releases.kinds import all_kinds

PLAN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"

[people]
source = "roster.parquet"
person = "patient"
tier = "consent"
tiers = { strict = 0.01, open = 1.0 }

[ledger]
location = "clinic.ledger"

[output]
folder = "releases"

[[release]]
name = "all"
kind = "count"
share = 0.5
"""
SCHEMA = '[unit]\nperson = "patient"\nrows_per_person = 1\n[columns.age]\ntype = "numeric"\nlow = 0\nhigh = 99\nbins = 3\n'
LOADED = """
import json, sys
sys.argv = ["sfumato", "preview", "plan.toml", "--json"]
from sfumato.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def test_a_preview_loads_no_engine_no_frame_no_learner_and_no_ledger(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "clinic.toml").write_text(SCHEMA)
    roster = {"patient": list(range(200)), "consent": ["strict", "open"] * 100}
    pq.write_table(pa.table(roster), tmp_path / "roster.parquet")
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, cwd=tmp_path, check=True)
    said = json.loads(done.stdout)["releases"]
    assert [line["name"] for line in said] == ["all"]
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert "sfumato.people.offers" in loaded
    assert not loaded & {
        *("ibis", "pandas", "polars", "pyspark", "sqlglot", "sqlalchemy", "matplotlib", "sklearn", "scipy.optimize"),
        *("sfumato.grids", "sfumato.classifiers", "sfumato.statistics.quantiles", "sfumato.bench", "sfumato.audit"),
    }


def test_every_family_answers_what_it_says_and_nothing_else():
    for home, said in HOMES.items():
        family = home.rpartition(".")[0]
        made = {kind for m in registry.mechanisms() if m.make.__module__.startswith(family + ".") for kind in m.kinds}
        assert made == set(said)


@pytest.mark.parametrize("name", list(all_kinds()))
def test_a_kind_is_the_same_by_its_name_and_among_all(name):
    assert all_kinds()[name].name == name
    assert dict(all_kinds().items())[name] is all_kinds()[name]
