"""Datasets and plans over HTTP: what is kept, who sees it, and that no text of the interface is ever a place."""

from __future__ import annotations

import json
import tomllib

import pytest

from sfumato.service.context import Service
from support.planning import CLINIC, RELEASES, TIERS, VISITS, drafted, planning_service, submitted


@pytest.fixture
def service(tmp_path) -> Service:
    return planning_service(tmp_path)


def test_sources_are_names(client_as, service):
    shown = client_as("custodian").get("/v1/sources")
    assert [source["name"] for source in shown.json()] == ["patients", "patients again", "third", "visits"]
    assert "nowhere" not in shown.text


def test_a_dataset_is_registered_once_here_and_in_the_ledger(client_as, service):
    custodian = client_as("custodian")
    made = custodian.post("/v1/datasets", json=CLINIC)
    assert made.status_code == 201, made.text
    assert service.ledger.datasets() == ["clinic"]
    people = service.ledger.caps("clinic").people
    assert people is not None
    assert people.counts.tolist() == [100, 50, 50, 50, 50]
    again = custodian.post("/v1/datasets", json=CLINIC)
    assert (again.status_code, again.json()) == (201, made.json())
    other = CLINIC | {"people": CLINIC["people"] | {"tiers": TIERS | {"e": "2"}}}
    assert custodian.post("/v1/datasets", json=other).status_code == 409
    assert custodian.get("/v1/datasets").json()["items"] == [made.json()]


def test_a_source_has_one_budget(client_as):
    """Under another name, also where the configuration has two names for one place."""
    custodian = client_as("custodian")
    custodian.post("/v1/datasets", json=CLINIC)
    for source in ("patients", "patients again"):
        second = custodian.post("/v1/datasets", json=CLINIC | {"name": "clinic two", "source": source})
        assert second.status_code == 409
        assert "second budget" in second.json()["detail"]
        assert "'clinic'" in second.json()["detail"]
        stranger = client_as("custodian", "colleague").post("/v1/datasets", json=CLINIC | {"name": "two", "source": source})
        assert (stranger.status_code, "'clinic'" in stranger.text) == (409, False)
    taken = client_as("custodian", "colleague").post("/v1/datasets", json=CLINIC)
    assert (taken.status_code, "schema" in taken.text) == (409, False)


def test_a_dataset_that_the_ledger_knows_with_other_caps_is_refused(client_as, service):
    service.ledger.register("visits", epsilon="3")
    refused = client_as("custodian").post("/v1/datasets", json=VISITS)
    assert refused.status_code == 409
    assert client_as("custodian").get("/v1/datasets/visits").status_code == 404
    same = client_as("custodian").post("/v1/datasets", json=VISITS | {"caps": {"epsilon": "3"}})
    assert same.status_code == 201, same.text


def test_all_mistakes_of_a_dataset_at_once(client_as):
    bad = '[columns.age]\ntype = "numeric"\nlow = 9\nhigh = 1\nbins = 3\n[columns.sex]\ntype = "categorial"\n'
    found = client_as("custodian").post(
        "/v1/datasets", json=VISITS | {"schema": bad, "source": "../../etc/passwd", "people": {"key": "/etc/shadow"}}
    )
    assert found.status_code == 422
    mistakes = found.json()["mistakes"]
    assert len(mistakes) == 4
    assert [any(word in m for m in mistakes) for word in ("'age'", "'sex'", "'key'", "source is a name")] == [True] * 4


PLACES = {
    "a values_file": {"schema": '[columns.x]\ntype = "categorical"\nvalues_file = "/etc/passwd"\n'},
    "a roster's path": {"people": {"source": "/etc/passwd", "person": "root", "epsilon": "x"}},
    "a roster's address": {"people": {"source": "file:///etc/passwd", "person": "root", "epsilon": "x"}},
    "a variable": {"people": {"source": "${HOME}/roster.csv", "person": "p", "epsilon": "x"}},
    "a key file": {"people": {"living": True, "tiers": {"a": "1"}, "key": "/etc/shadow"}},
    "a table": {"people": {"column": "c", "tiers": {"a": "1"}, "table": "pg_shadow"}},
    "csv options": {"people": {"column": "c", "tiers": {"a": "1"}, "csv": {"encoding": "x"}}},
    "a source's path": {"source": "../nowhere/patients.parquet"},
    "a source's address": {"source": "http://169.254.169.254/latest"},
    "a file as schema": {"schema": "/etc/passwd"},
    "an address as schema": {"schema": "file:///etc/passwd"},
}


def test_no_text_of_a_dataset_is_a_place(client_as, monkeypatch):
    monkeypatch.setenv("HOME", "/secret-of-the-server")
    custodian = client_as("custodian")
    for place, given in PLACES.items():
        refused = custodian.post("/v1/datasets", json=VISITS | given)
        assert refused.status_code == 422, (place, refused.text)
        assert "secret-of-the-server" not in refused.text
        assert "root:" not in refused.text


RELEASED = (
    {"name": "x", "kind": "profile", "column": "ward", "catalogue": "/etc/passwd", "epsilon": "1"},
    {"name": "x", "kind": "profile", "column": "ward", "catalogue": ["/etc/passwd"], "epsilon": "1"},
    {"name": "../x", "kind": "count", "epsilon": "1"},
    {"name": "${HOME}", "kind": "count", "epsilon": "1"},
    {"name": "x", "kind": "count", "epsilon": "1", "include": "/etc/passwd"},
    {"name": "x", "kind": "count", "epsilon": "1", "where": "read_text('/etc/passwd') = 'x'"},
    {"name": "x", "kind": "count", "epsilon": "1", "where": "1=1; DROP TABLE service_plans"},
    {"name": "x", "kind": "count", "epsilon": "1e400"},
    {"name": "x", "kind": {"kind": "count"}, "epsilon": "1"},
)


def test_no_file_is_read_that_could_be(client_as, tmp_path):
    """Files that are there and right, so that whoever read one would take it."""
    (tmp_path / "wards.txt").write_text("general\noncology\n")
    (tmp_path / "catalogue.json").write_text(json.dumps({"general": ["calm"]}))
    (tmp_path / "roster.csv").write_text("patient,tier\n1,a\n2,a\n")
    custodian = client_as("custodian")
    schema = f'[columns.ward]\ntype = "categorical"\nvalues_file = "{tmp_path / "wards.txt"}"\n'
    assert custodian.post("/v1/datasets", json=VISITS | {"schema": schema}).status_code == 422
    people = {"source": str(tmp_path / "roster.csv"), "person": "patient", "tier": "tier", "tiers": {"a": "1"}}
    assert custodian.post("/v1/datasets", json=CLINIC | {"people": people}).status_code == 422
    assert custodian.post("/v1/datasets", json=VISITS).status_code == 201
    named = {"kind": "profile", "column": "ward", "epsilon": "0.1", "catalogue": str(tmp_path / "catalogue.json")}
    refused = custodian.post("/v1/previews", json={"dataset": "visits", "releases": [{"name": "p"} | named]})
    assert (refused.status_code, "no file is named" in refused.text) == (422, True)
    given = named | {"catalogue": {"general": ["calm"]}}
    taken = custodian.post("/v1/previews", json={"dataset": "visits", "releases": [{"name": "p"} | given]})
    assert taken.status_code == 200, taken.text


def test_no_text_of_a_release_is_a_place(client_as):
    custodian = client_as("custodian")
    custodian.post("/v1/datasets", json=VISITS)
    for release in RELEASED:
        about = {"dataset": "visits", "releases": [release]}
        for address, more in (("/v1/plans", {"name": "p"}), ("/v1/previews", {})):
            refused = custodian.post(address, json=about | more)
            assert refused.status_code == 422, (release, refused.text)
            assert "root:" not in refused.text


def test_words_of_sql_are_words(client_as):
    """A name is kept as it was written, and nothing else happens."""
    name = "'); DROP TABLE service_plans; --"
    custodian = client_as("custodian")
    plan = drafted(custodian, name=name)
    assert custodian.get(f"/v1/plans/{plan['id']}").json()["name"] == name
    assert custodian.get("/v1/plans", params={"dataset": "clinic' OR '1'='1"}).status_code == 404


BOMBS = {
    "deep lists": "x = " + "[" * 20_000 + "]" * 20_000,
    "deep keys": "a." * 5_000 + "a = 1",
    "a huge number": "rows = " + "9" * 5_000,
    "a number beyond 64 bits": "[columns.x]\ntype = 'numeric'\nlow = 0\nhigh = 1\nbins = 99999999999999999999999",
    "a number that is not finite": "[columns.x]\ntype = 'numeric'\nlow = -inf\nhigh = inf\nbins = 3",
    "many bins": "[columns.x]\ntype = 'numeric'\nlow = 0\nhigh = 1\nbins = 9007199254740992",
}


def test_bombs_of_toml_are_refused(client_as):
    custodian = client_as("custodian")
    custodian.post("/v1/datasets", json=VISITS)
    for bomb, text in BOMBS.items():
        as_schema = custodian.post("/v1/datasets", json=VISITS | {"name": "t", "source": "third", "schema": text})
        assert as_schema.status_code == 422, (bomb, as_schema.text)
        as_plan = custodian.post("/v1/plans/import", json={"dataset": "visits", "name": "p", "toml": text})
        assert as_plan.status_code == 422, (bomb, as_plan.text)
    assert custodian.get("/v1/plans").json()["items"] == []


def test_a_draft_is_its_authors(client_as):
    mine, theirs, officer = client_as("custodian"), client_as("custodian", "colleague"), client_as("officer")
    plan = drafted(mine)
    address = f"/v1/plans/{plan['id']}"
    missing = theirs.get("/v1/plans/plan_none")
    for client in (theirs, officer):
        hidden = client.get(address)
        assert (hidden.status_code, hidden.json()) == (404, missing.json())
        assert client.get("/v1/plans").json()["items"] == []
    changed = {"name": "n", "releases": RELEASES, "digest": plan["digest"]}
    assert theirs.put(address, json=changed).status_code == 404
    assert theirs.post(f"{address}/submit", json={"digest": plan["digest"]}).status_code == 404
    assert theirs.post(f"{address}/withdraw").status_code == 404
    assert mine.post(f"{address}/submit", json={"digest": plan["digest"]}).status_code == 200
    assert theirs.get("/v1/plans").json()["items"] == []
    assert [p["id"] for p in officer.get("/v1/plans").json()["items"]] == [plan["id"]]
    assert officer.get(address).json()["own"] is False
    assert theirs.post(f"{address}/withdraw").status_code == 404


def test_what_was_read_is_what_is_changed_and_submitted(client_as):
    custodian = client_as("custodian")
    plan = drafted(custodian)
    address = f"/v1/plans/{plan['id']}"
    first = custodian.put(address, json={"name": "n", "releases": RELEASES[:1], "digest": plan["digest"]})
    assert first.status_code == 200, first.text
    stale = custodian.put(address, json={"name": "n", "releases": RELEASES, "digest": plan["digest"]})
    assert stale.status_code == 409
    assert custodian.post(f"{address}/submit", json={"digest": plan["digest"]}).status_code == 409
    now = first.json()["digest"]
    assert now != plan["digest"]
    assert custodian.post(f"{address}/submit", json={"digest": now}).status_code == 200
    frozen = custodian.put(address, json={"name": "n", "releases": RELEASES, "digest": now})
    assert frozen.status_code == 409
    assert custodian.get(address).json()["releases"] == first.json()["releases"]
    assert custodian.post(f"{address}/withdraw").json()["state"] == "withdrawn"
    assert custodian.post(f"{address}/submit", json={"digest": now}).status_code == 409


def test_a_plan_that_cannot_be_paid_is_not_submitted(client_as):
    custodian = client_as("custodian")
    custodian.post("/v1/datasets", json=VISITS)
    dear = [{"name": "x", "kind": "count", "epsilon": "1.5"}]
    plan = custodian.post("/v1/plans", json={"dataset": "visits", "name": "p", "releases": dear}).json()
    refused = custodian.post(f"/v1/plans/{plan['id']}/submit", json={"digest": plan["digest"]})
    assert refused.status_code == 409
    assert "asked ε 1.5" in refused.json()["detail"]


def test_a_plan_file_goes_out_and_comes_in(client_as):
    custodian = client_as("custodian")
    catalogue = {"general": ["calm"], "oncology": {"hard": 2}}
    profile = {"name": "p", "kind": "profile", "column": "ward", "catalogue": catalogue, "epsilon": "0.1"}
    plan = drafted(custodian, releases=[*RELEASES, profile])
    text = custodian.get(f"/v1/plans/{plan['id']}/file").text
    document = tomllib.loads(text)
    assert [r["name"] for r in document["release"]] == ["over65", "ages", "p"]
    again = custodian.post("/v1/plans/import", json={"dataset": "clinic", "name": "again", "toml": text})
    assert again.status_code == 201, again.text
    assert again.json()["digest"] == plan["digest"]
    numbers = '[[release]]\nname = "x"\nkind = "count"\nshare = 0.5\n'
    written = custodian.post("/v1/plans/import", json={"dataset": "clinic", "name": "n", "toml": numbers}).json()
    assert written["releases"] == [{"name": "x", "kind": "count", "share": "0.5"}]


ELSEWHERE = (
    '[dataset]\nsource = "/etc/passwd"',
    '[dataset]\nsource = "patients"\nschema = "/etc/passwd"',
    '[ledger]\nlocation = "postgresql://${PGPASSWORD}@host/db"',
    '[output]\nfolder = "/tmp"',
    '[people]\nsource = "roster.csv"',
    "[ledger]\nepsilon = 100",
    '[dataset]\nname = "another"',
    '[include]\nfile = "x"',
    'dataset = "x"',
)


def test_an_imported_file_changes_nothing_but_releases(client_as):
    custodian = client_as("custodian")
    custodian.post("/v1/datasets", json=CLINIC)
    for line in ELSEWHERE:
        text = f'{line}\n[[release]]\nname = "x"\nkind = "count"\n'
        refused = custodian.post("/v1/plans/import", json={"dataset": "clinic", "name": "n", "toml": text})
        assert refused.status_code == 422, (line, refused.text)


def test_an_analyst_sees_what_concerns_them(client_as, service):
    custodian, analyst = client_as("custodian"), client_as("analyst", "ana")
    custodian.post("/v1/datasets", json=CLINIC)
    custodian.post("/v1/datasets", json=VISITS | {"caps": {"epsilon": "1", "recipients": {"ana": "0.5"}}})
    assert [d["name"] for d in analyst.get("/v1/datasets").json()["items"]] == ["visits"]
    missing = analyst.get("/v1/datasets/none")
    hidden = analyst.get("/v1/datasets/clinic")
    assert (hidden.status_code, hidden.json()) == (404, missing.json())
    assert analyst.get("/v1/datasets/visits").json()["caps"] is None
    service.ledger.allow("clinic", analyst="ana", purpose="care", epsilon="0.1")
    assert analyst.get("/v1/datasets/clinic").status_code == 200


def test_a_submitted_plan_keeps_what_it_would_cost(client_as, service):
    plan = submitted(client_as("custodian"))
    assert plan["price"] == "0.75"
    shown = client_as("officer").get(f"/v1/approvals/{plan['id']}").json()
    assert shown["preview"]["price"] == "0.75"
    assert json.loads(json.dumps(shown["plan"])) == plan | {"own": False}
