"""A plan of what the service keeps: with a place it can be run, without one nobody can open it, and nothing else is read."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.releases.batch import preview, release
from sfumato.service.planning.assembling import NOWHERE, assembled
from sfumato.service.planning.datasets import dataset_of
from sfumato.service.settings import SourceSettings
from sfumato.tables import open as open_table
from support.planning import CLINIC, PEOPLE, RELEASES, VISITS, planning_service

COUNT = [{"name": "old", "kind": "count", "where": "age >= 65", "epsilon": "0.5"}]


@pytest.fixture
def service(tmp_path):
    roster = pd.DataFrame({"patient": range(300), "consent": ["a", "b", "c", "d", "e"] * 60})
    roster.to_parquet(tmp_path / "roster.parquet")
    return planning_service(tmp_path, rosters={"consents": SourceSettings(str(tmp_path / "roster.parquet"))})


def registered(client_as, service, wanted):
    made = client_as("custodian").post("/v1/datasets", json=wanted)
    assert made.status_code == 201, made.text
    with service.store.read() as connection:
        return dataset_of(connection, wanted["name"])


def test_without_a_place_it_is_previewed_and_never_opened(client_as, service):
    row = registered(client_as, service, VISITS)
    plan = assembled(service, row, COUNT, location=None)
    assert plan.source == NOWHERE
    assert [priced.request.name for priced in preview(plan)] == ["old"]
    for opened in (
        lambda: release(plan),
        lambda: plan.described(plan.schema(), None),
        lambda: open_table(plan.source, schema=plan.schema()),
    ):
        with pytest.raises(InputError, match="no engine for nowhere"):
            opened()
    assert service.ledger.balance("visits").total.spent == 0


def test_with_a_place_it_is_what_the_configuration_says(client_as, service, tmp_path, monkeypatch):
    row = registered(client_as, service, VISITS)
    pd.DataFrame({"patient": [1], "age": [70], "stay": [1], "ward": ["general"]}).to_csv(tmp_path / "v.csv", sep=";")
    where = SourceSettings(str(tmp_path / "v.csv"), csv={"delimiter": ";"}, engine={"threads": 1})
    plan = assembled(service, row, json.dumps(COUNT), location=where, folder=tmp_path / "out")
    assert (plan.source, plan.folder) == (str(tmp_path / "v.csv"), tmp_path / "out")
    assert plan.csv is not None
    assert plan.engine is not None
    known = replace(service.settings, sources={"visits": where})
    monkeypatch.setenv("PLACE", "/secret")
    by_text = assembled(replace(service, settings=known), row, COUNT, location="${PLACE}/v.csv")
    assert (by_text.source, by_text.csv) == ("${PLACE}/v.csv", plan.csv)


def test_a_public_roster_is_named_and_counted(client_as, service):
    named = {"source": "consents", "person": "patient", "tier": "consent", "tiers": PEOPLE["tiers"]}
    row = registered(client_as, service, CLINIC | {"people": named})
    assert json.loads(row.people)["source"] == "consents"
    found = client_as("custodian").post("/v1/previews", json={"dataset": "clinic", "releases": RELEASES})
    assert found.status_code == 200, found.text
    assert [tier["people"] for tier in found.json()["people"]] == [60] * 5
    assert os.fspath(service.settings.rosters["consents"].location) not in found.text
    other = client_as("custodian").post("/v1/datasets/check", json=CLINIC | {"people": named | {"source": "patients"}})
    assert "name of a roster of the configuration; it has consents" in other.json()["mistakes"][0]
